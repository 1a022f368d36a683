/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver whose process is stopped in the middle of a message, for longer than peers have
 * patience.
 */
#include "udp_process.h"

#include "tests/kit/kit.h"

enum {
    MESSAGE_BYTES = 256 << 20, /* takes longer than it takes to stop its receiver */
    FIRST_BYTES = 1 << 20,     /* when so much was sent, the message is under way */
    AWAKE_S = 5,               /* less than it takes to forget an idle peer */
};

/*
 * The sender goes on only when it is called, so that the message cannot end before its receiver
 * stands.
 */
static const struct mrd_context_attr sender_attr = {.peer_timeout_ns = 500 * MSEC_NS,
                                                    .progress = MRD_PROGRESS_MANUAL};
static const struct mrd_context_attr receiver_attr = {.peer_timeout_ns = 500 * MSEC_NS};

static void receive_one(int channel)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;
    struct mrd_wc wc;
    struct node n;

    node_open(&n, &receiver_attr, 1, 1, MESSAGE_BYTES);
    node_receive(&n, 0, 0, 0, MESSAGE_BYTES);
    struct node_name name = node_name(&n);
    process_tell(channel, &name, sizeof(name));
    must(node_poll(&n, &wc, until_ns));
    process_tell(channel, &wc.status, sizeof(wc.status));
    node_close(&n);
}

/*
 * Post, and return when a part of the message has gone out, which the receiver has acked in part.
 */
static void begin(struct node *n, struct mrd_ah *to, uint32_t qpn, uint64_t until_ns)
{
    struct mrd_peer_attr peer = {0};

    node_send(n, 0, to, qpn, 0, 0, MESSAGE_BYTES);
    while (peer.bytes_sent < FIRST_BYTES || peer.bytes_sent == peer.inflight_bytes) {
        must(clock_now_ns() < until_ns);
        must(mrd_progress(n->context) >= 0);
        if (mrd_query_peer(to, &peer, sizeof(peer)) != 0)
            peer.bytes_sent = 0;
    }
}

TEST(udp_stop__receiver_in_mid_message)
{
    struct process receiver;
    enum mrd_wc_status status;
    struct node_name name;
    struct mrd_wc wc;
    struct node n;

    process_start(&receiver, receive_one);

    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;

    node_open(&n, &sender_attr, 1, 1, MESSAGE_BYTES);
    must(process_hear(receiver.channel, &name, sizeof(name), until_ns));
    struct mrd_ah *to = node_ah(&n, name.address);
    begin(&n, to, name.qpn[0], until_ns);
    process_stop(&receiver);
    must(node_poll(&n, &wc, until_ns)); /* the sender's patience is over */
    must(wc.status == MRD_WC_RETRY_EXC_ERR);

    process_continue(&receiver);
    until_ns = clock_now_ns() + AWAKE_S * SEC_NS;
    while (!process_hear(receiver.channel, &status, sizeof(status), 0)) {
        must(mrd_progress(n.context) >= 0);
        if (clock_now_ns() > until_ns)
            fail_msg("%d s after it went on, the receive of the stopped process is still posted",
                     AWAKE_S);
    }
    must(status != MRD_WC_SUCCESS);
    process_join(&receiver);
    must(mrd_destroy_ah(to) == 0);
    node_close(&n);
}
