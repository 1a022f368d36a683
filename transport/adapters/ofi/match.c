/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/match.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/iov.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/pull.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/rx.h"
#include "transport/adapters/ofi/rx_end.h"

static struct mrd_ofi_rx *rx_of(struct mrd_node *n)
{
    return mrd_container_of(n, struct mrd_ofi_rx, node);
}

static struct mrd_ofi_match *queue_of(struct mrd_ofi_ep *ep, bool tagged)
{
    return tagged ? &ep->rx.tagged : &ep->rx.msg;
}

static int enqueue(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx)
{
    int error = mrd_ofi_posted_add(queue_of(ep, rx->tagged), rx);

    if (!error && rx->from)
        mrd_ofi_peer_expect(ep, rx);
    return error;
}

/* Does nothing for one that was never queued: it got a message at once. */
static void dequeue(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx)
{
    if (mrd_list_empty(&rx->node))
        return;
    mrd_ofi_posted_remove(queue_of(ep, rx->tagged), rx);
    mrd_list_remove(&rx->from_node);
}

/* ------------------------------------------------------------------------------------- messages */

/*
 * The receive gets the message: its bytes, or those at the sender's, are put into its buffer.
 * Returns whether it takes more; else it may have ended.
 */
static bool fill_receive(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, struct mrd_ofi_peer *peer,
                         const struct mrd_ofi_wire_head *head, const uint8_t *payload)
{
    const struct iovec *iov = mrd_ofi_rx_iov(rx);
    uint64_t at = rx->used, room = mrd_ofi_iov_bytes(iov, rx->num_iov) - at;
    uint64_t got = head->bytes < room ? head->bytes : room;
    bool more = false;

    if (rx->flags & FI_MULTI_RECV) {
        rx->used += got;
        more = room - got >= ep->rx.min_multi && head->bytes <= room;
        rx->retired = !more;
    }
    if (!more)
        dequeue(ep, rx);
    if (head->flags & MRD_OFI_PULL) {
        mrd_ofi_pull(ep, rx, peer, head, payload, at, got);
        return more;
    }
    mrd_ofi_iov_write(iov, rx->num_iov, at, payload, got);
    mrd_ofi_rx_confirm(ep, peer, head, 0);
    mrd_ofi_rx_end(ep, rx, peer, head, at, got, head->bytes > room ? FI_ETRUNC : 0, 0);
    return more;
}

/* Does the head say what there is? */
static bool is_sound(const struct mrd_ofi_wire_head *head, const uint8_t *payload, uint32_t bytes)
{
    uint64_t sum = 0;

    if (!(head->flags & MRD_OFI_PULL))
        return head->bytes == bytes;
    if (head->num > MRD_OFI_IOV_MAX || bytes != head->num * sizeof(struct mrd_ofi_wire_range) ||
        head->bytes > MRD_MESSAGE_BYTES_MAX)
        return false;
    for (uint32_t i = 0; i < head->num; i++) {
        struct mrd_ofi_wire_range r;

        memcpy(&r, payload + i * sizeof(r), sizeof(r));
        mrd_ofi_wire_swap_range(&r);
        if (r.bytes > MRD_MESSAGE_BYTES_MAX)
            return false;
        sum += r.bytes;
    }
    return sum == head->bytes;
}

/* false: no memory. */
static bool keep_unexpected(struct mrd_ofi_match *q, struct mrd_ofi_peer *peer,
                            const struct mrd_ofi_wire_head *head, const uint8_t *payload,
                            uint32_t bytes)
{
    struct mrd_ofi_unexpected *u = malloc(sizeof(*u) + bytes);

    if (!u)
        return false;
    u->peer = peer;
    u->head = *head;
    u->bytes = bytes;
    memcpy(u->payload, payload, bytes);
    mrd_ofi_unexpected_add(q, u);
    return true;
}

bool mrd_ofi_match_message(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           const struct mrd_ofi_wire_head *head, const uint8_t *payload,
                           uint32_t bytes)
{
    struct mrd_ofi_match *q = queue_of(ep, head->flags & MRD_OFI_TAGGED);
    struct mrd_ofi_rx *rx;

    if (!is_sound(head, payload, bytes)) {
        MRD_OFI_WARN(EP_DATA, "%s sent a malformed message\n", peer->text);
        return true;
    }
    rx = mrd_ofi_posted_find(q, peer, head->tag);
    if (!rx)
        return keep_unexpected(q, peer, head, payload, bytes);
    (void)fill_receive(ep, rx, peer, head, payload);
    return true;
}

/* ------------------------------------------------------------------------------------- receives */

/* The message, which is on no queue, is the receive's, as for fill_receive(); its record ends. */
static bool take_unexpected(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx,
                            struct mrd_ofi_unexpected *u)
{
    bool more = fill_receive(ep, rx, u->peer, &u->head, u->payload);

    free(u);
    return more;
}

struct mrd_ofi_unexpected *mrd_ofi_match_unexpected(struct mrd_ofi_ep *ep,
                                                    const struct mrd_ofi_rx *rx)
{
    return mrd_ofi_unexpected_find(queue_of(ep, rx->tagged), rx);
}

int mrd_ofi_match_receive(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx,
                          struct mrd_ofi_unexpected *u)
{
    struct mrd_ofi_match *q = queue_of(ep, rx->tagged);
    int error = 0;

    if (!u || rx->flags & FI_MULTI_RECV)
        error = enqueue(ep, rx);
    if (error)
        return error;
    while (u) {
        mrd_ofi_unexpected_remove(q, u);
        u = take_unexpected(ep, rx, u) ? mrd_ofi_unexpected_find(q, rx) : NULL;
    }
    if (ep->dev.gone)
        (void)mrd_ofi_match_lost(ep, NULL, FI_EIO, MRD_WC_WR_FLUSH_ERR);
    return 0;
}

/* It is on no queue. */
static void discard(struct mrd_ofi_ep *ep, struct mrd_ofi_unexpected *u)
{
    mrd_ofi_rx_confirm(ep, u->peer, &u->head, 0);
    free(u);
}

/* The completion of a search that found a message. */
static struct mrd_ofi_comp completion_of(struct mrd_ofi_ep *ep, const struct mrd_ofi_unexpected *u,
                                         void *context)
{
    struct mrd_ofi_comp comp = {.context = context,
                                .flags = FI_RECV | FI_TAGGED,
                                .len = u->head.bytes,
                                .tag = u->head.tag,
                                .src = mrd_ofi_peer_fi_addr(ep, u->peer)};

    if (u->head.flags & MRD_OFI_DATA) {
        comp.flags |= FI_REMOTE_CQ_DATA;
        comp.data = u->head.data;
    }
    return comp;
}

int mrd_ofi_match_peek(struct mrd_ofi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
    struct mrd_ofi_rx like = {.tagged = true, .tag = msg->tag, .ignore = msg->ignore};
    struct mrd_ofi_comp comp = {.context = msg->context,
                                .flags = FI_RECV | FI_TAGGED,
                                .tag = msg->tag,
                                .src = FI_ADDR_NOTAVAIL,
                                .err = FI_ENOMSG};
    struct mrd_ofi_unexpected *u;
    int error = 0;

    if (ep->info->caps & FI_DIRECTED_RECV && msg->addr != FI_ADDR_UNSPEC) {
        error = mrd_ofi_peer_get(ep, msg->addr, &like.from);
        if (error)
            return error;
    }
    u = mrd_ofi_unexpected_find(&ep->rx.tagged, &like);
    if (!u) {
        mrd_ofi_cq_add(ep->rx.cq, &comp);
        return 0;
    }
    comp = completion_of(ep, u, msg->context);
    if (flags & FI_DISCARD) {
        mrd_ofi_unexpected_remove(&ep->rx.tagged, u);
        discard(ep, u);
    } else if (flags & FI_CLAIM) {
        error = mrd_ofi_unexpected_claim(&ep->rx.tagged, u, msg->context);
    }
    if (!error)
        mrd_ofi_cq_add(ep->rx.cq, &comp);
    return error;
}

int mrd_ofi_match_claimed(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, void *context)
{
    struct mrd_ofi_unexpected *u = mrd_ofi_claimed_take(&ep->rx.tagged, context);
    struct mrd_ofi_comp comp;

    if (!u)
        return -FI_EINVAL;
    if (rx) {
        (void)take_unexpected(ep, rx, u);
        return 0;
    }
    comp = completion_of(ep, u, context);
    discard(ep, u);
    mrd_ofi_cq_add(ep->rx.cq, &comp);
    return 0;
}

/* ------------------------------------------------------------------------ ends without a message */

static void end_receive(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, int error, int status)
{
    struct mrd_ofi_wire_head none = {.tag = rx->tag};

    dequeue(ep, rx);
    rx->retired = true;
    if (!rx->pulls) /* else the last one tells */
        mrd_ofi_rx_end(ep, rx, rx->from, &none, rx->used, 0, error, status);
}

static bool end_all_receives(struct mrd_ofi_ep *ep, struct mrd_ofi_match *q, int error, int status)
{
    bool any = !mrd_list_empty(&q->posted);

    while (!mrd_list_empty(&q->posted))
        end_receive(ep, rx_of(q->posted.next), error, status);
    return any;
}

/* Those on one of the queues. */
static bool end_receives_of(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *from, bool tagged,
                            int error, int status)
{
    bool any = false;

    for (struct mrd_node *n = from->receives.next, *next; n != &from->receives; n = next) {
        struct mrd_ofi_rx *rx = mrd_container_of(n, struct mrd_ofi_rx, from_node);

        next = n->next;
        if (rx->tagged != tagged)
            continue;
        any = true;
        end_receive(ep, rx, error, status);
    }
    return any;
}

bool mrd_ofi_match_lost(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *from, int error, int status)
{
    bool any = false;

    for (int tagged = 0; tagged < 2; tagged++) {
        if (from)
            any |= end_receives_of(ep, from, tagged, error, status);
        else
            any |= end_all_receives(ep, queue_of(ep, tagged), error, status);
    }
    return any;
}

int mrd_ofi_match_cancel(struct mrd_ofi_ep *ep, void *context)
{
    struct mrd_ofi_rx *rx = mrd_ofi_posted_of(&ep->rx.tagged, context);

    if (!rx)
        rx = mrd_ofi_posted_of(&ep->rx.msg, context);
    if (!rx)
        return -FI_ENOENT;
    dequeue(ep, rx);
    if (rx->pulls) { /* the last one tells */
        rx->retired = rx->cancelled = true;
        return 0;
    }
    mrd_ofi_rx_report_cancelled(ep, rx);
    mrd_ofi_rx_release(&ep->rx.pool, rx);
    return 0;
}
