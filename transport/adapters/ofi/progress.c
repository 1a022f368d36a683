/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/progress.h"

#include <errno.h>
#include <string.h>

#include "transport/adapters/ofi/atomic_target.h"
#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/errors.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/key.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/match.h"
#include "transport/adapters/ofi/message.h"
#include "transport/adapters/ofi/remote.h"
#include "transport/adapters/ofi/report.h"

enum {
    TURNS = 8,   /* polls of the completion queue in one call, at most */
    CALLS = 128, /* events are looked for in one of so many */
    MANY = 64,   /* events at a time: mrd may have dropped others, for want of room */
};

/* --------------------------------------------------------------------------------------- events */

static int take_completions(struct mrd_ofi_ep *ep);

/* What was there when the news came. */
static void take_what_came(struct mrd_ofi_ep *ep)
{
    int left = ep->dev.cq->cqe, n = MRD_OFI_RX_POLL;

    for (; n == MRD_OFI_RX_POLL && left > 0; left -= n)
        n = take_completions(ep);
}

/* What the peer owes will not come. */
static void fail_answers(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, int error, int status)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&peer->answers))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, answer_node);

        mrd_ofi_op_fail(op, error, status);
        mrd_ofi_op_answered(op);
        mrd_ofi_op_settle(ep, op);
    }
    mrd_ofi_keys_fini(&peer->keys);
}

/* Another one may be where it was, and send: receives wait for that. */
static void on_gone(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    peer->watched = false; /* the event ended that */
    fail_answers(ep, peer, FI_EHOSTUNREACH, MRD_WC_RETRY_EXC_ERR);
    if (mrd_ofi_peer_is_awaited(peer))
        mrd_ofi_peer_watch_again(ep, peer);
}

static void on_silent(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    take_what_came(ep);
    peer->receives_ended =
        peer->heard && mrd_ofi_match_lost(ep, peer, FI_EHOSTUNREACH, MRD_WC_RETRY_EXC_ERR);
    mrd_list_remove(&peer->expected_node);
    on_gone(ep, peer);
}

/* What receives told of the one before is not told of this one. */
static void on_replaced(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    peer->receives_ended = false;
    on_gone(ep, peer);
}

static void end_answers(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    peer->watched = false;
    fail_answers(ep, peer, FI_EIO, MRD_WC_WR_FLUSH_ERR);
}

static void on_device_gone(struct mrd_ofi_ep *ep)
{
    take_what_came(ep);
    ep->dev.gone = true;
    mrd_ofi_peers_each_awaited(ep, end_answers);
    (void)mrd_ofi_match_lost(ep, NULL, FI_EIO, MRD_WC_WR_FLUSH_ERR);
}

static void take_event(struct mrd_ofi_ep *ep, const struct mrd_async_event *event)
{
    struct mrd_ofi_peer *peer;

    MRD_OFI_INFO(EP_CTRL, "%s: %s\n", event->address, mrd_event_type_str(event->event_type));
    if (event->event_type == MRD_EVENT_PEER_UNREACHABLE ||
        event->event_type == MRD_EVENT_PEER_RESTARTED) {
        peer = mrd_ofi_peer_by_text(ep, event->address);
        if (peer && event->event_type == MRD_EVENT_PEER_UNREACHABLE)
            on_silent(ep, peer);
        else if (peer)
            on_replaced(ep, peer);
    } else if (event->event_type == MRD_EVENT_DEVICE_FATAL) {
        MRD_OFI_WARN(EP_CTRL, "%s: the device is gone\n", event->address);
        on_device_gone(ep);
    }
}

bool mrd_ofi_take_events(struct mrd_ofi_ep *ep)
{
    struct mrd_async_event event;
    uint32_t taken = 0;

    while (mrd_get_async_event(ep->dev.context, &event) == 0) {
        take_event(ep, &event);
        mrd_ack_async_event(&event);
        taken++;
    }
    if (taken >= MANY) /* the one that ended a watch may be lost */
        mrd_ofi_peers_each_awaited(ep, mrd_ofi_peer_watch_again);
    return taken > 0;
}

/* ---------------------------------------------------------------------------------- completions */

static void injected_failed(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    mrd_ofi_report_injected(ep, op->peer, op->error, op->status);
    mrd_ofi_op_release(ep, op);
}

/* It had no operation: it gets one now, which is reported at the end of the turn as others are. */
static void fail_injected(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, int error, int status)
{
    struct mrd_ofi_op *op = mrd_ofi_op_alloc(ep);

    if (!op) {
        mrd_ofi_report_injected(ep, peer, error, status);
        return;
    }
    op->peer = peer;
    op->done = injected_failed;
    mrd_ofi_op_fail(op, error, status);
    mrd_ofi_op_settle(ep, op);
}

static void end_injected(struct mrd_ofi_ep *ep, const struct mrd_wc *wc)
{
    struct mrd_ofi_peer *peer;

    ep->tx.num_internal--;
    if (wc->wr_id == MRD_OFI_INTERNAL)
        return;
    peer = mrd_ofi_peer_of(ep, wc->peer_id);
    if (wc->status == MRD_WC_SUCCESS) {
        if (peer)
            mrd_ofi_peer_heard(ep, peer);
        mrd_ofi_cntr_add(ep->bound.cntr[MRD_OFI_COUNT_SEND], 1);
        return;
    }
    mrd_ofi_cntr_add_error(ep->bound.cntr[MRD_OFI_COUNT_SEND], 1);
    fail_injected(ep, peer, mrd_ofi_error_of(wc->status), (int)wc->status);
}

/* The versions of the two ends differ. */
static void on_foreign(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                       const struct mrd_ofi_wire_head *head)
{
    struct mrd_ofi_wire_head refused = {.what = MRD_OFI_REFUSED};

    MRD_OFI_WARN(EP_DATA, "%s speaks version %u of this protocol, this is version %d\n", peer->text,
                 head->version, MRD_OFI_WIRE_VERSION);
    if (head->what != MRD_OFI_REFUSED)
        mrd_ofi_message_internal(ep, peer, &refused, NULL, 0);
    fail_answers(ep, peer, FI_EOPNOTSUPP, 0);
}

/* false: there is no memory for it, and nothing was done. */
static bool take_message(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, const uint8_t *data,
                         uint32_t bytes)
{
    struct mrd_ofi_wire_head head;
    const uint8_t *more = data + sizeof(head);

    if (bytes < sizeof(head)) {
        MRD_OFI_WARN(EP_DATA, "%s sent %u bytes that are no message\n", peer->text, bytes);
        return true;
    }
    memcpy(&head, data, sizeof(head));
    mrd_ofi_wire_swap_head(&head);
    bytes -= (uint32_t)sizeof(head);
    if (head.version != MRD_OFI_WIRE_VERSION || head.what == MRD_OFI_REFUSED) {
        on_foreign(ep, peer, &head);
        return true;
    }
    switch (head.what) {
    case MRD_OFI_MSG:
        return mrd_ofi_match_message(ep, peer, &head, more, bytes);
    case MRD_OFI_DONE:
        mrd_ofi_op_on_done(ep, peer, &head, more, bytes);
        break;
    case MRD_OFI_ASK:
        mrd_ofi_key_on_ask(ep, peer, &head);
        break;
    case MRD_OFI_TELL:
        mrd_ofi_key_on_tell(ep, peer, &head, more, bytes);
        break;
    case MRD_OFI_NOTE:
        mrd_ofi_remote_on_note(ep, peer, &head);
        break;
    case MRD_OFI_ATOMIC:
        mrd_ofi_atomic_on_ask(ep, peer, &head, more, bytes);
        break;
    default:
        MRD_OFI_WARN(EP_DATA, "%s sent a message of an unknown kind, %u\n", peer->text, head.what);
        break;
    }
    return true;
}

/* false: there is no memory for it, which may need an operation for its answer. */
static bool take_held(struct mrd_ofi_ep *ep, const struct mrd_ofi_held *h)
{
    struct mrd_ofi_peer *peer = mrd_ofi_peer_of(ep, h->peer_id);

    if (!peer && errno == ENOMEM)
        return false;
    if (!peer) {
        MRD_OFI_WARN(EP_DATA, "a message is lost: its sender is forgotten\n");
        return true;
    }
    mrd_ofi_peer_heard(ep, peer);
    return mrd_ofi_op_is_spare(ep) &&
           take_message(ep, peer, ep->rx.memory + (size_t)h->index * ep->rx.bytes, h->bytes);
}

/* Buffers that were read are posted again, some at a time: a call for each would cost more. */
static void repost(struct mrd_ofi_ep *ep)
{
    struct mrd_recv_wr wr[MRD_OFI_RX_SPENT], *bad;
    struct mrd_sge sge[MRD_OFI_RX_SPENT];

    for (uint32_t i = 0; i < ep->rx.num_spent; i++) {
        uint32_t index = ep->rx.spent[i];

        sge[i] = (struct mrd_sge){(uintptr_t)(ep->rx.memory + (size_t)index * ep->rx.bytes),
                                  ep->rx.bytes, ep->rx.mr->lkey};
        wr[i] = (struct mrd_recv_wr){.wr_id = index,
                                     .next = i + 1 < ep->rx.num_spent ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1};
    }
    ep->rx.num_spent = 0;
    if (mrd_post_recv(ep->dev.messages, wr, &bad))
        MRD_OFI_WARN(EP_DATA, "buffers for messages are lost: %s\n", mrd_last_error());
}

static void spend(struct mrd_ofi_ep *ep, uint32_t index)
{
    ep->rx.spent[ep->rx.num_spent++] = index;
    if (ep->rx.num_spent == MRD_OFI_RX_SPENT || ep->rx.num_spent >= ep->rx.num / 4)
        repost(ep);
}

/*
 * Messages are dealt with in the order in which they came. Those that there is no memory for keep
 * their buffers: when these run out, the peers wait.
 */
static void take_all_held(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_rx_side *rx = &ep->rx;

    while (rx->num_held && take_held(ep, &rx->held[rx->first_held])) {
        uint32_t index = rx->held[rx->first_held].index;

        rx->first_held = (rx->first_held + 1) % rx->num;
        rx->num_held--;
        spend(ep, index);
    }
}

static void received(struct mrd_ofi_ep *ep, const struct mrd_wc *wc)
{
    struct mrd_ofi_held h = {(uint32_t)wc->wr_id, wc->peer_id, wc->byte_len};
    struct mrd_ofi_rx_side *rx = &ep->rx;

    if (wc->status == MRD_WC_WR_FLUSH_ERR)
        return;
    /* The sender of one that failed gave it up, and knows. */
    if (wc->status != MRD_WC_SUCCESS || (!rx->num_held && take_held(ep, &h))) {
        spend(ep, h.index);
        return;
    }
    if (!rx->num_held)
        MRD_OFI_WARN(EP_DATA, "no memory for a message that came: it waits\n");
    rx->held[(rx->first_held + rx->num_held++) % rx->num] = h;
}

/* Who sleeps looks again: nothing that comes would wake it up for what is held. */
static void stay_awake(struct mrd_ofi_ep *ep)
{
    if (ep->domain->running)
        mrd_ofi_wait_signal(&ep->domain->wait);
    if (ep->rx.cq)
        mrd_ofi_wait_signal(&ep->rx.cq->wait);
    if (ep->bound.cntr[MRD_OFI_COUNT_RECV])
        mrd_ofi_wait_signal(&ep->bound.cntr[MRD_OFI_COUNT_RECV]->wait);
}

/* A work request of an operation is complete. */
static void op_completed(struct mrd_ofi_ep *ep, const struct mrd_wc *wc)
{
    struct mrd_ofi_op *op = (struct mrd_ofi_op *)(uintptr_t)wc->wr_id;

    op->pending--;
    if (wc->status == MRD_WC_SUCCESS)
        mrd_ofi_peer_heard(ep, op->peer);
    else
        mrd_ofi_op_fail(op, mrd_ofi_error_of(wc->status), (int)wc->status);
    mrd_ofi_op_settle(ep, op);
}

/* Deals with completions; returns how many. */
static int take_completions(struct mrd_ofi_ep *ep)
{
    struct mrd_wc wc[MRD_OFI_RX_POLL];
    int n;

    if (ep->rx.num_held)
        take_all_held(ep);
    n = mrd_poll_cq(ep->dev.cq, MRD_OFI_RX_POLL, wc);
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode < MRD_WC_RECV) {
            if (wc[i].wr_id <= MRD_OFI_INJECTED_TAGGED)
                end_injected(ep, &wc[i]);
            else
                op_completed(ep, &wc[i]);
            continue;
        }
        received(ep, &wc[i]);
    }
    return n;
}

/* ---------------------------------------------------------------------------------------- turns */

void mrd_ofi_progress_end_ops(struct mrd_ofi_ep *ep)
{
    bool events_taken = false;
    struct mrd_node *n;

    while ((n = mrd_list_first(&ep->turn.ended))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, node);

        /* One that goes on, or is tried again, is not to fail by what happened before. */
        if (!events_taken && (op->error || op->goes_on)) {
            events_taken = true;
            (void)mrd_ofi_take_events(ep);
        }
        mrd_list_remove(n);
        if (op->goes_on) {
            op->goes_on = false;
            op->resume(ep, op);
        } else {
            op->done(ep, op);
        }
    }
}

/* Some of what is there; but all of it if the caller may sleep then: it raises no event any more. */
static void take_turns(struct mrd_ofi_ep *ep)
{
    int n = MRD_OFI_RX_POLL;

    if (ep->turn.armed) {
        ep->turn.armed = false;
        take_what_came(ep);
        return;
    }
    for (unsigned turn = 0; turn < TURNS && n == MRD_OFI_RX_POLL; turn++)
        n = take_completions(ep);
}

void mrd_ofi_ep_progress(struct mrd_ofi_ep *ep)
{
    take_turns(ep);
    if (ep->rx.num_held)
        stay_awake(ep);
    mrd_ofi_progress_end_turn(ep);
    /* Events first: that nobody was there before does not apply to a peer that is heard of now. */
    if (!mrd_list_empty(&ep->peers.heard)) {
        (void)mrd_ofi_take_events(ep);
        mrd_ofi_peers_note_heard(ep);
        mrd_ofi_progress_end_turn(ep);
    }
    if (!mrd_list_empty(&ep->tx.unsent)) {
        mrd_ofi_op_flush(ep);
        mrd_ofi_progress_end_turn(ep);
    }
    if (++ep->turn.calls % CALLS == 0) {
        (void)mrd_ofi_take_events(ep);
        mrd_ofi_peers_watch(ep);
        mrd_ofi_progress_end_turn(ep);
    }
}

bool mrd_ofi_progress_has_room(struct mrd_ofi_ep *ep)
{
    mrd_ofi_ep_progress(ep);
    return mrd_ofi_ep_has_room(ep);
}

/* ----------------------------------------------------------------------------------- who sleeps */

void mrd_ofi_ep_arm(struct mrd_ofi_ep *ep)
{
    struct mrd_cq *cq;
    void *context;
    unsigned taken = 0;

    while (mrd_get_cq_event(ep->dev.channel, &cq, &context) == 0)
        taken++;
    if (taken)
        mrd_ack_cq_events(ep->dev.cq, taken);
    (void)mrd_req_notify_cq(ep->dev.cq, 0);
    ep->turn.armed = true;
    (void)mrd_ofi_take_events(ep);
    mrd_ofi_peers_watch(ep);
    mrd_ofi_progress_end_turn(ep);
}
