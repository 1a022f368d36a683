/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/queue.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "transport/adapters/ofi/peer.h"

enum {
    SHAPES_KEPT = 16,   /* tables of receives that are kept without any; of messages, at most */
    SCANNED_FIRST = 32, /* messages that are looked at before there is a table */
};

/* Receives that ignore the same bits, and name a peer or do not; or messages, as these see them. */
struct mrd_ofi_shape {
    struct mrd_node node; /* on mrd_ofi_match.shapes or .searched */
    uint64_t ignore;
    bool directed;
    uint32_t num; /* of receives */
    struct mrd_ofi_index index;
};

/* The place of a message in a table. */
struct mrd_ofi_seen {
    struct mrd_ofi_item item;
    struct mrd_ofi_unexpected *message;
    struct mrd_ofi_shape *shape;
    struct mrd_ofi_seen *next; /* of the same message */
};

static struct mrd_ofi_rx *rx_of(struct mrd_node *n)
{
    return mrd_container_of(n, struct mrd_ofi_rx, node);
}

static struct mrd_ofi_unexpected *unexpected_of(struct mrd_node *n)
{
    return mrd_container_of(n, struct mrd_ofi_unexpected, node);
}

/* --------------------------------------------------------------------------------------- shapes */

static struct mrd_ofi_shape *shape_of(struct mrd_node *n)
{
    return mrd_container_of(n, struct mrd_ofi_shape, node);
}

/* Bits of the tag that do not count: without tags, all. */
static uint64_t ignored(const struct mrd_ofi_rx *rx)
{
    return rx->tagged ? rx->ignore : ~0ull;
}

/* The one on the list that receives like this one have; NULL: none. */
static struct mrd_ofi_shape *find_shape(struct mrd_ofi_match *m, struct mrd_node *list,
                                        const struct mrd_ofi_rx *rx)
{
    for (struct mrd_node *n = list->next; n != list; n = n->next) {
        struct mrd_ofi_shape *shape = shape_of(n);

        m->steps++;
        if (shape->ignore == ignored(rx) && shape->directed == (rx->from != NULL))
            return shape;
    }
    return NULL;
}

/* NULL: no memory. */
static struct mrd_ofi_shape *make_shape(struct mrd_ofi_match *m, struct mrd_node *list,
                                        const struct mrd_ofi_rx *rx)
{
    struct mrd_ofi_shape *shape = calloc(1, sizeof(*shape));

    if (!shape)
        return NULL;
    shape->ignore = ignored(rx);
    shape->directed = rx->from;
    mrd_ofi_index_init(&shape->index, m->seed, &m->steps);
    mrd_list_prepend(list, &shape->node);
    return shape;
}

static void free_shape(struct mrd_ofi_shape *shape)
{
    mrd_list_remove(&shape->node);
    mrd_ofi_index_fini(&shape->index);
    free(shape);
}

/* The first of those that a receive of this shape takes, for a message, or of such messages. */
static struct mrd_ofi_item *first_of(const struct mrd_ofi_shape *shape, uint64_t tag,
                                     const struct mrd_ofi_peer *peer)
{
    return mrd_ofi_index_first(&shape->index, tag & ~shape->ignore, shape->directed ? peer : NULL);
}

/* ------------------------------------------------------------------------------------- receives */

int mrd_ofi_posted_add(struct mrd_ofi_match *m, struct mrd_ofi_rx *rx)
{
    struct mrd_ofi_shape *shape = find_shape(m, &m->shapes, rx);
    int error;

    if (!shape) {
        shape = make_shape(m, &m->shapes, rx);
        if (!shape)
            return -FI_ENOMEM;
        m->num_shapes++;
    }
    error = mrd_ofi_index_add(&shape->index, &rx->by_tag, rx->tag & ~shape->ignore, rx->from);
    if (error)
        return error;
    if (m->cancels &&
        mrd_ofi_index_add(&m->by_context, &rx->by_context, (uintptr_t)rx->context, NULL)) {
        mrd_ofi_index_remove(&shape->index, &rx->by_tag);
        return -FI_ENOMEM;
    }
    shape->num++;
    rx->shape = shape;
    rx->turn = m->turn++;
    mrd_list_append(&m->posted, &rx->node);
    return 0;
}

void mrd_ofi_posted_remove(struct mrd_ofi_match *m, struct mrd_ofi_rx *rx)
{
    struct mrd_ofi_shape *shape = rx->shape;

    mrd_list_remove(&rx->node);
    mrd_ofi_index_remove(&shape->index, &rx->by_tag);
    if (m->cancels)
        mrd_ofi_index_remove(&m->by_context, &rx->by_context);
    m->cancels = m->cancels && !mrd_list_empty(&m->posted);
    rx->shape = NULL;
    if (--shape->num == 0 && m->num_shapes > SHAPES_KEPT) {
        free_shape(shape);
        m->num_shapes--;
    }
}

struct mrd_ofi_rx *mrd_ofi_posted_find(const struct mrd_ofi_match *m,
                                       const struct mrd_ofi_peer *peer, uint64_t tag)
{
    struct mrd_ofi_rx *first = NULL;

    for (struct mrd_node *n = m->shapes.next; n != &m->shapes; n = n->next) {
        struct mrd_ofi_item *item = first_of(shape_of(n), tag, peer);
        struct mrd_ofi_rx *rx = item ? mrd_container_of(item, struct mrd_ofi_rx, by_tag) : NULL;

        if (rx && (!first || rx->turn < first->turn))
            first = rx;
    }
    return first;
}

/* Few programs cancel: the table is made for the first one that does, and left when nothing waits. */
static void fill_by_context(struct mrd_ofi_match *m)
{
    for (struct mrd_node *n = m->posted.next; n != &m->posted; n = n->next) {
        struct mrd_ofi_rx *rx = rx_of(n);

        m->steps++;
        if (mrd_ofi_index_add(&m->by_context, &rx->by_context, (uintptr_t)rx->context, NULL))
            return; /* with the first one, or not at all */
    }
    m->cancels = !mrd_list_empty(&m->posted);
}

struct mrd_ofi_rx *mrd_ofi_posted_of(struct mrd_ofi_match *m, const void *context)
{
    struct mrd_ofi_item *item;

    if (!m->cancels)
        fill_by_context(m);
    item = mrd_ofi_index_first(&m->by_context, (uintptr_t)context, NULL);
    return item ? mrd_container_of(item, struct mrd_ofi_rx, by_context) : NULL;
}

/* ------------------------------------------------------------------------------------- messages */

static bool takes(const struct mrd_ofi_rx *rx, const struct mrd_ofi_unexpected *u)
{
    return (!rx->from || rx->from == u->peer) && !((rx->tag ^ u->head.tag) & ~ignored(rx));
}

/* false: no memory. */
static bool see(struct mrd_ofi_shape *shape, struct mrd_ofi_unexpected *u)
{
    struct mrd_ofi_seen *seen = malloc(sizeof(*seen));

    if (!seen)
        return false;
    if (mrd_ofi_index_add(&shape->index, &seen->item, u->head.tag & ~shape->ignore,
                          shape->directed ? u->peer : NULL)) {
        free(seen);
        return false;
    }
    seen->message = u;
    seen->shape = shape;
    seen->next = u->seen;
    u->seen = seen;
    return true;
}

/* Of a message that is in no table of that shape, nothing is forgotten. */
static void forget_shape(struct mrd_ofi_match *m, struct mrd_ofi_shape *shape)
{
    for (struct mrd_node *n = m->unexpected.next; n != &m->unexpected; n = n->next) {
        struct mrd_ofi_seen **at = &unexpected_of(n)->seen, *seen;

        while (*at && (*at)->shape != shape)
            at = &(*at)->next;
        m->steps++;
        seen = *at;
        if (!seen)
            continue;
        *at = seen->next;
        free(seen);
    }
    free_shape(shape);
    m->num_searched--;
}

/* A table of all messages. It takes the place of the one that was not searched for longest. */
static struct mrd_ofi_shape *see_all(struct mrd_ofi_match *m, const struct mrd_ofi_rx *rx)
{
    struct mrd_ofi_shape *shape;

    if (m->num_searched == SHAPES_KEPT)
        forget_shape(m, shape_of(m->searched.prev));
    shape = make_shape(m, &m->searched, rx);
    if (!shape)
        return NULL;
    m->num_searched++;
    for (struct mrd_node *n = m->unexpected.next; n != &m->unexpected; n = n->next) {
        if (!see(shape, unexpected_of(n))) {
            forget_shape(m, shape);
            return NULL;
        }
    }
    return shape;
}

void mrd_ofi_unexpected_add(struct mrd_ofi_match *m, struct mrd_ofi_unexpected *u)
{
    u->seen = NULL;
    mrd_list_append(&m->unexpected, &u->node);
    for (struct mrd_node *n = m->searched.next, *next; n != &m->searched; n = next) {
        next = n->next;
        if (!see(shape_of(n), u))
            forget_shape(m, shape_of(n));
    }
}

void mrd_ofi_unexpected_remove(struct mrd_ofi_match *m, struct mrd_ofi_unexpected *u)
{
    mrd_list_remove(&u->node);
    while (u->seen) {
        struct mrd_ofi_seen *seen = u->seen;

        u->seen = seen->next;
        mrd_ofi_index_remove(&seen->shape->index, &seen->item);
        free(seen);
    }
    while (mrd_list_empty(&m->unexpected) && m->num_searched)
        forget_shape(m, shape_of(m->searched.next));
}

/* Looks at messages until one is found, or so many were. *all: they were all. */
static struct mrd_ofi_unexpected *scan(struct mrd_ofi_match *m, const struct mrd_ofi_rx *rx,
                                       uint32_t most, bool *all)
{
    struct mrd_node *n = m->unexpected.next;

    for (; n != &m->unexpected && most > 0; n = n->next, most--) {
        m->steps++;
        if (takes(rx, unexpected_of(n)))
            return unexpected_of(n);
    }
    *all = n == &m->unexpected;
    return NULL;
}

struct mrd_ofi_unexpected *mrd_ofi_unexpected_find(struct mrd_ofi_match *m,
                                                   const struct mrd_ofi_rx *rx)
{
    struct mrd_ofi_shape *shape = find_shape(m, &m->searched, rx);
    struct mrd_ofi_unexpected *u = NULL;
    struct mrd_ofi_item *item;
    bool all = false;

    if (!shape) {
        u = scan(m, rx, SCANNED_FIRST, &all);
        if (u || all)
            return u;
        shape = see_all(m, rx);
    }
    if (!shape)
        return scan(m, rx, UINT32_MAX, &all);
    mrd_list_remove(&shape->node);
    mrd_list_prepend(&m->searched, &shape->node);
    item = first_of(shape, rx->tag, rx->from);
    return item ? mrd_container_of(item, struct mrd_ofi_seen, item)->message : NULL;
}

/* --------------------------------------------------------------------------------------- claims */

int mrd_ofi_unexpected_claim(struct mrd_ofi_match *m, struct mrd_ofi_unexpected *u,
                             const void *context)
{
    int error = mrd_ofi_index_add(&m->by_claimer, &u->by_claimer, (uintptr_t)context, NULL);

    if (error)
        return error;
    mrd_ofi_unexpected_remove(m, u);
    mrd_list_append(&m->claimed, &u->node);
    return 0;
}

struct mrd_ofi_unexpected *mrd_ofi_claimed_take(struct mrd_ofi_match *m, const void *context)
{
    struct mrd_ofi_item *item = mrd_ofi_index_first(&m->by_claimer, (uintptr_t)context, NULL);
    struct mrd_ofi_unexpected *u =
        item ? mrd_container_of(item, struct mrd_ofi_unexpected, by_claimer) : NULL;

    if (!u)
        return NULL;
    mrd_ofi_index_remove(&m->by_claimer, item);
    mrd_list_remove(&u->node);
    return u;
}

/* ---------------------------------------------------------------------------------- begin and end */

void mrd_ofi_match_init(struct mrd_ofi_match *m, uint64_t seed)
{
    *m = (struct mrd_ofi_match){.seed = seed};
    mrd_list_init(&m->posted);
    mrd_list_init(&m->shapes);
    mrd_list_init(&m->unexpected);
    mrd_list_init(&m->searched);
    mrd_list_init(&m->claimed);
    mrd_ofi_index_init(&m->by_context, seed, &m->steps);
    mrd_ofi_index_init(&m->by_claimer, seed, &m->steps);
}

void mrd_ofi_match_fini(struct mrd_ofi_match *m)
{
    struct mrd_node *n, *next;

    while (m->num_searched)
        forget_shape(m, shape_of(m->searched.next));
    for (n = m->shapes.next; n != &m->shapes; n = next) {
        next = n->next;
        mrd_ofi_index_fini(&shape_of(n)->index);
        free(shape_of(n));
    }
    mrd_list_init(&m->shapes);
    mrd_ofi_index_fini(&m->by_context);
    mrd_ofi_index_fini(&m->by_claimer);
    for (n = m->unexpected.next; n != &m->unexpected; n = next) {
        next = n->next;
        free(unexpected_of(n));
    }
    for (n = m->claimed.next; n != &m->claimed; n = next) {
        next = n->next;
        free(unexpected_of(n));
    }
}
