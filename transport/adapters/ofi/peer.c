/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/av.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/hint.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/wait.h"

enum { BUCKETS = 1024, IDS = 1024, LOST_TOLD = 8 };

/* How often peers are looked for that no receive waits for any more: they are watched so much longer. */
#define EXPECTED_NS 1000000000ull

int mrd_ofi_peers_init(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_peers *p = &ep->peers;

    *p = (struct mrd_ofi_peers){.num_buckets = BUCKETS, .num_by_id = IDS};
    p->bucket = malloc(BUCKETS * sizeof(*p->bucket));
    p->by_id = calloc(IDS, sizeof(*p->by_id));
    if (!p->bucket || !p->by_id) {
        free(p->bucket);
        free(p->by_id);
        *p = (struct mrd_ofi_peers){0};
        return -FI_ENOMEM;
    }
    for (uint32_t i = 0; i < BUCKETS; i++)
        mrd_list_init(&p->bucket[i]);
    mrd_list_init(&p->unwatched);
    mrd_list_init(&p->expected);
    mrd_list_init(&p->heard);
    return 0;
}

void mrd_ofi_peers_fini(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_peers *p = &ep->peers;

    for (uint32_t i = 0; i < p->num_buckets; i++) {
        for (struct mrd_node *n = p->bucket[i].next, *next; n != &p->bucket[i]; n = next) {
            struct mrd_ofi_peer *peer = mrd_container_of(n, struct mrd_ofi_peer, by_addr);

            next = n->next;
            mrd_ofi_keys_fini(&peer->keys);
            (void)mrd_destroy_ah(peer->ah);
            free(peer);
        }
    }
    free(p->bucket);
    free(p->by_id);
    free(p->by_fi_addr);
    *p = (struct mrd_ofi_peers){0};
}

/* NULL with errno. */
static struct mrd_ofi_peer *create(struct mrd_ofi_ep *ep, const union mrd_ofi_addr *addr,
                                   struct mrd_node *bucket)
{
    struct mrd_ofi_peer *peer = calloc(1, sizeof(*peer));

    if (!peer)
        return NULL;
    peer->addr = *addr;
    mrd_ofi_addr_text(addr, peer->text);
    peer->ah = mrd_create_ah(ep->dev.pd, peer->text);
    if (!peer->ah) {
        int error = errno;

        MRD_OFI_WARN(AV, "%s cannot be sent to: %s\n", peer->text, mrd_last_error());
        free(peer);
        errno = error;
        return NULL;
    }
    peer->fi_addr = FI_ADDR_NOTAVAIL;
    peer->av_version = ep->bound.av ? ep->bound.av->version - 1 : 0;
    mrd_list_init(&peer->answers);
    mrd_list_init(&peer->receives);
    mrd_ofi_keys_init(&peer->keys);
    mrd_list_init(&peer->unwatched_node);
    mrd_list_init(&peer->expected_node);
    mrd_list_init(&peer->heard_node);
    mrd_list_append(bucket, &peer->by_addr);
    ep->peers.num++;
    return peer;
}

static struct mrd_ofi_peer *by_addr(struct mrd_ofi_ep *ep, const union mrd_ofi_addr *addr)
{
    struct mrd_node *bucket =
        &ep->peers.bucket[mrd_ofi_addr_hash(addr) & (ep->peers.num_buckets - 1)];

    for (struct mrd_node *n = bucket->next; n != bucket; n = n->next) {
        struct mrd_ofi_peer *peer = mrd_container_of(n, struct mrd_ofi_peer, by_addr);

        if (mrd_ofi_addr_equal(&peer->addr, addr))
            return peer;
    }
    return create(ep, addr, bucket);
}

struct mrd_ofi_peer *mrd_ofi_peer_by_text(struct mrd_ofi_ep *ep, const char *text)
{
    union mrd_ofi_addr addr;

    return mrd_ofi_addr_parse(text, &addr) == 0 ? by_addr(ep, &addr) : NULL;
}

/*
 * Room for as many fi_addrs as the AV has; what was remembered of an older AV is forgotten. 0 or
 * -FI_ENOMEM.
 */
static int renew_by_fi_addr(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_peers *p = &ep->peers;

    if (p->by_fi_addr && p->av_version == ep->bound.av->version)
        return 0;
    if (p->num_by_fi_addr < ep->bound.av->num) {
        void *larger = realloc(p->by_fi_addr, ep->bound.av->room * sizeof(*p->by_fi_addr));

        if (!larger)
            return -FI_ENOMEM;
        p->by_fi_addr = larger;
        p->num_by_fi_addr = ep->bound.av->room;
    }
    if (p->num_by_fi_addr)
        memset(p->by_fi_addr, 0, p->num_by_fi_addr * sizeof(*p->by_fi_addr));
    p->av_version = ep->bound.av->version;
    return 0;
}

int mrd_ofi_peer_get(struct mrd_ofi_ep *ep, fi_addr_t fi_addr, struct mrd_ofi_peer **peer)
{
    struct mrd_ofi_peers *p = &ep->peers;
    const union mrd_ofi_addr *addr;
    int error = ep->bound.av ? renew_by_fi_addr(ep) : -FI_EINVAL;

    if (error)
        return error;
    if (fi_addr >= p->num_by_fi_addr)
        return -FI_EINVAL;
    if (!p->by_fi_addr[fi_addr]) {
        addr = mrd_ofi_av_get(ep->bound.av, fi_addr);
        if (!addr)
            return -FI_EINVAL;
        p->by_fi_addr[fi_addr] = by_addr(ep, addr);
        if (!p->by_fi_addr[fi_addr])
            return errno == ENOMEM ? -FI_ENOMEM : -FI_EINVAL;
    }
    *peer = p->by_fi_addr[fi_addr];
    return 0;
}

struct mrd_ofi_peer *mrd_ofi_peer_of(struct mrd_ofi_ep *ep, uint32_t peer_id)
{
    struct mrd_ofi_peer_id *slot = &ep->peers.by_id[peer_id & (ep->peers.num_by_id - 1)];
    struct mrd_peer_attr attr;
    struct mrd_ofi_peer *peer;

    if (slot->peer && slot->id == peer_id)
        return slot->peer;
    if (mrd_query_peer_id(ep->dev.context, peer_id, &attr, sizeof(attr))) {
        errno = ENOENT;
        return NULL;
    }
    peer = mrd_ofi_peer_by_text(ep, attr.address);
    if (peer)
        *slot = (struct mrd_ofi_peer_id){peer_id, peer};
    return peer;
}

void mrd_ofi_peers_each_awaited(struct mrd_ofi_ep *ep,
                                void (*f)(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer))
{
    for (uint32_t i = 0; i < ep->peers.num_buckets; i++) {
        struct mrd_node *bucket = &ep->peers.bucket[i];

        for (struct mrd_node *n = bucket->next; n != bucket; n = n->next) {
            struct mrd_ofi_peer *peer = mrd_container_of(n, struct mrd_ofi_peer, by_addr);

            if (mrd_ofi_peer_is_awaited(peer))
                f(ep, peer);
        }
    }
}

/* ------------------------------------------------------------------------------------- watching */

void mrd_ofi_peer_watch(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (!peer->watched)
        mrd_ofi_peer_watch_again(ep, peer);
}

void mrd_ofi_peer_watch_again(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (peer->watched) /* as far as is known: an event that was lost may have ended it */
        (void)mrd_watch_peer(peer->ah, 0);
    peer->watched = mrd_watch_peer(peer->ah, 1) == 0;
    if (!peer->watched && mrd_list_empty(&peer->unwatched_node))
        mrd_list_append(&ep->peers.unwatched, &peer->unwatched_node);
}

void mrd_ofi_peer_watch_no_more(struct mrd_ofi_peer *peer)
{
    if (!peer->watched || mrd_ofi_peer_is_awaited(peer))
        return;
    (void)mrd_watch_peer(peer->ah, 0);
    peer->watched = false;
}

static void expect_lately(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (mrd_list_empty(&peer->expected_node))
        mrd_list_append(&ep->peers.expected, &peer->expected_node);
    if (!peer->watched)
        mrd_ofi_peer_watch_again(ep, peer); /* at once: who makes progress may sleep already */
}

void mrd_ofi_peer_expect(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx)
{
    mrd_list_append(&rx->from->receives, &rx->from_node);
    if (rx->from->heard)
        expect_lately(ep, rx->from);
}

void mrd_ofi_peer_heard_first(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (mrd_list_empty(&peer->heard_node))
        mrd_list_append(&ep->peers.heard, &peer->heard_node);
}

void mrd_ofi_peers_note_heard(struct mrd_ofi_ep *ep)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&ep->peers.heard))) {
        struct mrd_ofi_peer *peer = mrd_container_of(n, struct mrd_ofi_peer, heard_node);

        peer->heard = true;
        if (!mrd_list_empty(&peer->receives))
            expect_lately(ep, peer);
    }
}

/* Programs post one receive after the other: those of the last while count. */
static void sweep_expected(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_peers *p = &ep->peers;
    uint64_t now_ns = mrd_ofi_now_ns();

    if (now_ns - p->swept_ns < EXPECTED_NS)
        return;
    p->swept_ns = now_ns;
    for (struct mrd_node *n = p->expected.next, *next; n != &p->expected; n = next) {
        struct mrd_ofi_peer *peer = mrd_container_of(n, struct mrd_ofi_peer, expected_node);

        next = n->next;
        if (!mrd_list_empty(&peer->receives))
            continue;
        mrd_list_remove(&peer->expected_node);
        mrd_ofi_peer_watch_no_more(peer);
    }
}

void mrd_ofi_peers_watch(struct mrd_ofi_ep *ep)
{
    struct mrd_node list, *n;

    mrd_list_init(&list);
    mrd_list_splice(&list, &ep->peers.unwatched);
    while ((n = mrd_list_pop(&list))) {
        struct mrd_ofi_peer *peer = mrd_container_of(n, struct mrd_ofi_peer, unwatched_node);

        if (mrd_ofi_peer_is_awaited(peer))
            mrd_ofi_peer_watch(ep, peer);
    }
    if (!mrd_list_empty(&ep->peers.expected))
        sweep_expected(ep);
}

/* ----------------------------------------------------------------------------- what is told of them */

void mrd_ofi_peer_lost(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (peer->lost || ep->peers.num_lost == LOST_TOLD)
        return;
    peer->lost = true;
    ep->peers.num_lost++;
    MRD_OFI_ERROR(EP_DATA, "%s: %s\n", peer->text, mrd_wc_status_str(MRD_WC_RETRY_EXC_ERR));
    if (!peer->heard && !ep->peers.hinted)
        mrd_ofi_peer_hint(ep, peer);
}

fi_addr_t mrd_ofi_peer_fi_addr(const struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (!ep->bound.av)
        return FI_ADDR_NOTAVAIL;
    if (peer->av_version != ep->bound.av->version) {
        peer->fi_addr = mrd_ofi_av_find(ep->bound.av, &peer->addr);
        peer->av_version = ep->bound.av->version;
    }
    return peer->fi_addr;
}
