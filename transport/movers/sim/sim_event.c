/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_event.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    RANK_SHIFT = 56,
    HEAP_ARITY = 4,
    HEAP_FIRST = 256,
    SLAB_EVENTS = 256,
    MASK = MRD_SIM_CALENDAR_NS - 1
};

struct mrd_sim_slab {
    struct mrd_sim_slab *next;
    struct mrd_sim_event events[SLAB_EVENTS];
};

int mrd_sim_events_init(struct mrd_sim_events *events)
{
    *events = (struct mrd_sim_events){.near_ns = MRD_SIM_NEVER, .sorted_ns = MRD_SIM_NEVER};
    events->bucket = calloc(MRD_SIM_CALENDAR_NS, sizeof(events->bucket[0]));
    events->used = calloc(MRD_SIM_CALENDAR_WORDS, sizeof(events->used[0]));
    if (events->bucket && events->used)
        return 0;
    mrd_sim_events_fini(events);
    return -ENOMEM;
}

void mrd_sim_events_fini(struct mrd_sim_events *events)
{
    free(events->bucket);
    free(events->used);
    free(events->far);
    while (events->slabs) {
        struct mrd_sim_slab *slab = events->slabs;

        events->slabs = slab->next;
        free(slab);
    }
    *events = (struct mrd_sim_events){.near_ns = MRD_SIM_NEVER, .sorted_ns = MRD_SIM_NEVER};
}

/* ------------------------------------------------------------------------------------- calendar */

static void near_push(struct mrd_sim_events *events, struct mrd_sim_event *event)
{
    uint32_t index = (uint32_t)event->at_ns & MASK;
    struct mrd_sim_bucket *bucket = &events->bucket[index];

    event->next = NULL;
    if (!bucket->first) {
        bucket->first = bucket->last = event;
        events->used[index / 64] |= UINT64_C(1) << (index % 64);
        events->used_words[index / 4096] |= UINT64_C(1) << (index / 64 % 64);
    } else {
        bucket->last->next = event;
        bucket->last = event;
    }
    if (event->at_ns < events->near_ns)
        events->near_ns = event->at_ns;
}

/* The first set bit at or after `from` in a bitmap of `words` words; words * 64: none. */
static uint32_t next_bit(const uint64_t *map, uint32_t words, uint32_t from)
{
    uint32_t word = from / 64;

    if (word >= words)
        return words * 64;

    uint64_t bits = map[word] & (~UINT64_C(0) << (from % 64));

    while (bits == 0) {
        if (++word == words)
            return words * 64;
        bits = map[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The first used bucket at or after `from`; MRD_SIM_CALENDAR_NS: none. */
static uint32_t next_bucket(const struct mrd_sim_events *events, uint32_t from)
{
    uint32_t word = from / 64;

    if (from >= MRD_SIM_CALENDAR_NS)
        return MRD_SIM_CALENDAR_NS;

    uint64_t bits = events->used[word] & (~UINT64_C(0) << (from % 64));

    if (bits)
        return word * 64 + (uint32_t)__builtin_ctzll(bits);
    word = next_bit(events->used_words, MRD_SIM_CALENDAR_WORDS / 64, word + 1);
    if (word == MRD_SIM_CALENDAR_WORDS)
        return MRD_SIM_CALENDAR_NS;
    return word * 64 + (uint32_t)__builtin_ctzll(events->used[word]);
}

/* The bucket of time `ns`, the first one, is empty now: find the next that is not. */
static void find_near(struct mrd_sim_events *events, uint64_t ns)
{
    uint32_t from = (uint32_t)ns & MASK;
    uint32_t index = next_bucket(events, from);

    if (index == MRD_SIM_CALENDAR_NS) {
        index = next_bucket(events, 0);
        if (index == MRD_SIM_CALENDAR_NS) {
            events->near_ns = MRD_SIM_NEVER;
            return;
        }
    }
    events->near_ns = ns + ((index - from) & MASK);
}

/*
 * Put events of low ranks first. Not as they are pushed: to look at those that are there already
 * costs a cache line each, which is needed again only when they are due.
 */
static void sort(struct mrd_sim_bucket *bucket)
{
    struct mrd_sim_bucket of[MRD_SIM_RANK_LAST + 1] = {0};
    struct mrd_sim_event **at = &bucket->first;
    bool is_sorted = true;

    for (struct mrd_sim_event *event = bucket->first; event->next; event = event->next)
        is_sorted &= event->rank <= event->next->rank;
    if (is_sorted)
        return;
    for (struct mrd_sim_event *event = bucket->first; event; event = event->next) {
        struct mrd_sim_bucket *same = &of[event->rank];

        if (same->first)
            same->last->next = event;
        else
            same->first = event;
        same->last = event;
    }
    for (unsigned rank = 0; rank <= MRD_SIM_RANK_LAST; rank++) {
        if (!of[rank].first)
            continue;
        *at = of[rank].first;
        at = &of[rank].last->next;
        bucket->last = of[rank].last;
    }
    *at = NULL;
}

/* The calendar's first event; there is one. */
static struct mrd_sim_event *near_first(struct mrd_sim_events *events)
{
    struct mrd_sim_bucket *bucket = &events->bucket[events->near_ns & MASK];

    if (events->sorted_ns != events->near_ns) {
        sort(bucket);
        events->sorted_ns = events->near_ns;
    }
    return bucket->first;
}

static struct mrd_sim_event *near_pop(struct mrd_sim_events *events)
{
    uint64_t ns = events->near_ns;
    uint32_t index = (uint32_t)ns & MASK;
    struct mrd_sim_bucket *bucket = &events->bucket[index];
    struct mrd_sim_event *first = near_first(events);

    bucket->first = first->next;
    if (bucket->first) {
        __builtin_prefetch(bucket->first->next);
        return first;
    }
    events->used[index / 64] &= ~(UINT64_C(1) << (index % 64));
    if (events->used[index / 64] == 0)
        events->used_words[index / 4096] &= ~(UINT64_C(1) << (index / 64 % 64));
    find_near(events, ns);
    if (events->near_ns != MRD_SIM_NEVER)
        __builtin_prefetch(events->bucket[events->near_ns & MASK].first);
    return first;
}

/* ----------------------------------------------------------------------------------------- heap */

static bool is_before(const struct mrd_sim_far *a, const struct mrd_sim_far *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static int far_grow(struct mrd_sim_events *events)
{
    size_t cap = events->cap_far ? events->cap_far * 2 : HEAP_FIRST;
    struct mrd_sim_far *far = realloc(events->far, cap * sizeof(*far));

    if (!far)
        return -ENOMEM;
    events->far = far;
    events->cap_far = cap;
    return 0;
}

static int far_push(struct mrd_sim_events *events, struct mrd_sim_event *event)
{
    if (events->num_far == events->cap_far && far_grow(events) != 0)
        return -ENOMEM;

    struct mrd_sim_far item = {event->at_ns, events->order_next++, event};

    item.order |= (uint64_t)event->rank << RANK_SHIFT;

    size_t hole = events->num_far++;

    while (hole > 0) {
        size_t parent = (hole - 1) / HEAP_ARITY;

        if (!is_before(&item, &events->far[parent]))
            break;
        events->far[hole] = events->far[parent];
        hole = parent;
    }
    events->far[hole] = item;
    return 0;
}

/* The child of `hole` whose event comes first; num_far: it has no children. */
static size_t first_child(const struct mrd_sim_events *events, size_t hole)
{
    size_t child = hole * HEAP_ARITY + 1;
    size_t end = child + HEAP_ARITY < events->num_far ? child + HEAP_ARITY : events->num_far;

    if (child >= events->num_far)
        return events->num_far;
    for (size_t i = child + 1; i < end; i++) {
        if (is_before(&events->far[i], &events->far[child]))
            child = i;
    }
    return child;
}

static struct mrd_sim_event *far_pop(struct mrd_sim_events *events)
{
    struct mrd_sim_event *first = events->far[0].event;
    struct mrd_sim_far moved = events->far[--events->num_far];
    size_t hole = 0;

    for (;;) {
        size_t child = first_child(events, hole);

        if (child == events->num_far || !is_before(&events->far[child], &moved))
            break;
        events->far[hole] = events->far[child];
        hole = child;
    }
    if (events->num_far)
        events->far[hole] = moved;
    return first;
}

/* ---------------------------------------------------------------------------------------- queue */

int mrd_sim_events_push(struct mrd_sim_events *events, struct mrd_sim_event *event, uint64_t at_ns)
{
    return mrd_sim_events_push_rank(events, event, at_ns, MRD_SIM_RANK_LAST);
}

int mrd_sim_events_push_rank(struct mrd_sim_events *events, struct mrd_sim_event *event,
                             uint64_t at_ns, uint8_t rank)
{
    event->rank = rank;
    event->at_ns = at_ns > events->base_ns ? at_ns : events->base_ns;
    if (event->at_ns - events->base_ns >= MRD_SIM_CALENDAR_NS)
        return far_push(events, event);
    near_push(events, event);
    return 0;
}

struct mrd_sim_event *mrd_sim_events_alloc(struct mrd_sim_events *events)
{
    if (!events->free) {
        struct mrd_sim_slab *slab = malloc(sizeof(*slab));

        if (!slab)
            return NULL;
        slab->next = events->slabs;
        events->slabs = slab;
        for (unsigned i = 0; i < SLAB_EVENTS; i++)
            mrd_sim_events_release(events, &slab->events[i]);
    }

    struct mrd_sim_event *event = events->free;

    events->free = event->next;
    return event;
}

void mrd_sim_events_release(struct mrd_sim_events *events, struct mrd_sim_event *event)
{
    event->next = events->free;
    events->free = event;
}

uint64_t mrd_sim_events_next_ns(const struct mrd_sim_events *events)
{
    if (events->num_far && events->far[0].at_ns < events->near_ns)
        return events->far[0].at_ns;
    return events->near_ns;
}

/* Is the first event in the heap? */
static bool is_far_first(struct mrd_sim_events *events)
{
    if (!events->num_far || events->far[0].at_ns > events->near_ns)
        return false;
    return events->far[0].at_ns < events->near_ns ||
           events->far[0].event->rank <= near_first(events)->rank;
}

struct mrd_sim_event *mrd_sim_events_pop(struct mrd_sim_events *events)
{
    bool is_far = is_far_first(events);

    assert(is_far || events->near_ns != MRD_SIM_NEVER);

    struct mrd_sim_event *event = is_far ? far_pop(events) : near_pop(events);

    events->base_ns = event->at_ns;
    return event;
}
