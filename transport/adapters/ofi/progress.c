/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress of endpoints: completions, messages, events. */
#include "transport/adapters/ofi/ep.h"

#include <stdlib.h>
#include <string.h>

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
    int left = ep->cq->cqe, n = MRD_OFI_RX_POLL;

    for (; !ep->taking && n == MRD_OFI_RX_POLL && left > 0; left -= n)
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
        if (!op->pending)
            op->done(ep, op, NULL);
    }
    mrd_ofi_keys_fini(peer);
}

/* Another one may be where it was, and send: receives wait for that. */
static void is_gone(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    peer->watched = false; /* the event ended that */
    fail_answers(ep, peer, FI_EHOSTUNREACH, MRD_WC_RETRY_EXC_ERR);
    if (mrd_ofi_peer_is_awaited(peer))
        mrd_ofi_peer_watch_again(ep, peer);
}

static void is_silent(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    take_what_came(ep);
    peer->receives_ended =
        peer->heard && mrd_ofi_match_lost(ep, peer, FI_EHOSTUNREACH, MRD_WC_RETRY_EXC_ERR);
    mrd_list_remove(&peer->expected_node);
    is_gone(ep, peer);
}

/* What receives told of the one before is not told of this one. */
static void is_replaced(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    peer->receives_ended = false;
    is_gone(ep, peer);
}

static void end_answers(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    peer->watched = false;
    fail_answers(ep, peer, FI_EIO, MRD_WC_WR_FLUSH_ERR);
}

static void device_is_gone(struct mrd_ofi_ep *ep)
{
    take_what_came(ep);
    ep->device_gone = true;
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
            is_silent(ep, peer);
        else if (peer)
            is_replaced(ep, peer);
    } else if (event->event_type == MRD_EVENT_DEVICE_FATAL) {
        MRD_OFI_WARN(EP_CTRL, "%s: the device is gone\n", event->address);
        device_is_gone(ep);
    }
}

bool mrd_ofi_take_events(struct mrd_ofi_ep *ep)
{
    struct mrd_async_event event;
    uint32_t taken = 0;

    while (mrd_get_async_event(ep->context, &event) == 0) {
        take_event(ep, &event);
        mrd_ack_async_event(&event);
        taken++;
    }
    if (taken >= MANY) /* the one that ended a watch may be lost */
        mrd_ofi_peers_each_awaited(ep, mrd_ofi_peer_watch_again);
    return taken > 0;
}

/* ---------------------------------------------------------------------------------- completions */

static void end_injected(struct mrd_ofi_ep *ep, const struct mrd_wc *wc)
{
    struct mrd_ofi_peer *peer;

    ep->silent--;
    if (wc->wr_id == MRD_OFI_SAID)
        return;
    peer = mrd_ofi_peer_of(ep, wc->peer_id);
    if (wc->status == MRD_WC_SUCCESS) {
        if (peer)
            mrd_ofi_peer_heard(ep, peer);
        mrd_ofi_cntr_add(ep->cntr[MRD_OFI_COUNT_SEND], 1);
        return;
    }
    mrd_ofi_cntr_add_error(ep->cntr[MRD_OFI_COUNT_SEND], 1);
    if (wc->status == MRD_WC_RETRY_EXC_ERR)
        (void)mrd_ofi_take_events(ep); /* which may end receives that tell of it */
    mrd_ofi_peer_injected_failed(ep, peer, mrd_ofi_error_of(wc->status), (int)wc->status);
}

static void received(struct mrd_ofi_ep *ep, const struct mrd_wc *wc)
{
    struct mrd_ofi_peer *peer;

    if (wc->status != MRD_WC_SUCCESS)
        return; /* its sender gave it up, and knows */
    peer = mrd_ofi_peer_of(ep, wc->peer_id);
    if (!peer) {
        MRD_OFI_WARN(EP_DATA,
                     "a message is lost: its sender is forgotten, or there is no memory\n");
        return;
    }
    mrd_ofi_peer_heard(ep, peer);
    mrd_ofi_progress_message(ep, peer, ep->rx_memory + wc->wr_id * ep->rx_bytes, wc->byte_len);
}

/* The versions of the two ends differ. */
static void is_foreign(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                       const struct mrd_ofi_wire_head *head)
{
    struct mrd_ofi_wire_head refused = {.what = MRD_OFI_REFUSED};

    MRD_OFI_WARN(EP_DATA, "%s speaks version %u of this protocol, this is version %d\n", peer->text,
                 head->version, MRD_OFI_WIRE_VERSION);
    if (head->what != MRD_OFI_REFUSED)
        mrd_ofi_say(ep, peer, &refused, NULL, 0);
    fail_answers(ep, peer, FI_EOPNOTSUPP, 0);
}

void mrd_ofi_progress_message(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, const uint8_t *data,
                              uint32_t bytes)
{
    struct mrd_ofi_wire_head head;
    const uint8_t *more = data + sizeof(head);

    if (bytes < sizeof(head)) {
        MRD_OFI_WARN(EP_DATA, "%s sent %u bytes that are no message\n", peer->text, bytes);
        return;
    }
    memcpy(&head, data, sizeof(head));
    mrd_ofi_wire_swap_head(&head);
    bytes -= (uint32_t)sizeof(head);
    if (head.version != MRD_OFI_WIRE_VERSION || head.what == MRD_OFI_REFUSED) {
        is_foreign(ep, peer, &head);
        return;
    }
    switch (head.what) {
    case MRD_OFI_MSG:
        mrd_ofi_match_message(ep, peer, &head, more, bytes);
        break;
    case MRD_OFI_DONE:
        mrd_ofi_done(ep, peer, &head, more, bytes);
        break;
    case MRD_OFI_ASK:
        mrd_ofi_key_asked(ep, peer, &head);
        break;
    case MRD_OFI_TELL:
        mrd_ofi_key_told(ep, peer, &head, more, bytes);
        break;
    case MRD_OFI_NOTE:
        mrd_ofi_rma_noted(ep, peer, &head);
        break;
    case MRD_OFI_ATOMIC:
        mrd_ofi_atomic_asked(ep, peer, &head, more, bytes);
        break;
    default:
        MRD_OFI_WARN(EP_DATA, "%s sent a message of an unknown kind, %u\n", peer->text, head.what);
        break;
    }
}

/* Buffers that were read are posted again, some at a time: a call for each would cost more. */
static void repost(struct mrd_ofi_ep *ep)
{
    struct mrd_recv_wr wr[MRD_OFI_RX_SPENT], *bad;
    struct mrd_sge sge[MRD_OFI_RX_SPENT];

    for (uint32_t i = 0; i < ep->num_spent; i++) {
        uint32_t index = ep->spent[i];

        sge[i] = (struct mrd_sge){(uintptr_t)(ep->rx_memory + (size_t)index * ep->rx_bytes),
                                  ep->rx_bytes, ep->rx_mr->lkey};
        wr[i] = (struct mrd_recv_wr){.wr_id = index,
                                     .next = i + 1 < ep->num_spent ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1};
    }
    ep->num_spent = 0;
    if (mrd_post_recv(ep->messages, wr, &bad))
        MRD_OFI_WARN(EP_DATA, "buffers for messages are lost: %s\n", mrd_last_error());
}

/* Deals with completions; returns how many. */
static int take_completions(struct mrd_ofi_ep *ep)
{
    struct mrd_wc wc[MRD_OFI_RX_POLL];
    int n = mrd_poll_cq(ep->cq, MRD_OFI_RX_POLL, wc);

    ep->taking = true;
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode < MRD_WC_RECV) {
            if (wc[i].wr_id <= MRD_OFI_INJECTED_TAGGED) {
                end_injected(ep, &wc[i]);
            } else {
                struct mrd_ofi_op *op = (struct mrd_ofi_op *)(uintptr_t)wc[i].wr_id;

                op->pending--;
                if (wc[i].status == MRD_WC_SUCCESS)
                    mrd_ofi_peer_heard(ep, op->peer);
                else
                    mrd_ofi_op_fail(op, mrd_ofi_error_of(wc[i].status), (int)wc[i].status);
                op->done(ep, op, &wc[i]);
            }
            continue;
        }
        received(ep, &wc[i]);
        if (wc[i].status == MRD_WC_WR_FLUSH_ERR)
            continue;
        ep->spent[ep->num_spent++] = (uint32_t)wc[i].wr_id;
        if (ep->num_spent == MRD_OFI_RX_SPENT || ep->num_spent >= ep->num_rx / 4)
            repost(ep);
    }
    ep->taking = false;
    return n;
}

void mrd_ofi_ep_progress(struct mrd_ofi_ep *ep)
{
    int n = MRD_OFI_RX_POLL;

    for (unsigned turn = 0; turn < TURNS && n == MRD_OFI_RX_POLL; turn++)
        n = take_completions(ep);
    mrd_ofi_peers_note_heard(ep);
    if (!mrd_list_empty(&ep->unsent))
        mrd_ofi_op_flush(ep);
    if (++ep->calls % CALLS == 0) {
        (void)mrd_ofi_take_events(ep);
        mrd_ofi_peers_watch(ep);
    }
}

/* ----------------------------------------------------------------------------------- who sleeps */

void mrd_ofi_ep_arm(struct mrd_ofi_ep *ep)
{
    struct mrd_cq *cq;
    void *context;
    unsigned taken = 0;

    while (mrd_get_cq_event(ep->channel, &cq, &context) == 0)
        taken++;
    if (taken)
        mrd_ack_cq_events(ep->cq, taken);
    (void)mrd_req_notify_cq(ep->cq, 0);
    (void)mrd_ofi_take_events(ep);
    mrd_ofi_peers_watch(ep);
}
