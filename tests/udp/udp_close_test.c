/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver that closes as soon as it has its message, while acks are lost. */
#include "udp_process.h"

#include "tests/kit/kit.h"

enum {
    ROUNDS = 200,
    MESSAGE_BYTES = 10000, /* 3 packets of the loopback */
    LOSS_PPM = 50000,
    /*
     * Of a share of 5%, this seed never loses three of the sender's packets in a row (looked at:
     * 30,000).
     */
    SEED = 23,
};

/*
 * At a port that none before had: at the same one it would be a process that restarted, which is
 * another test.
 */
static void open_elsewhere(struct node *n)
{
    static bool used[UINT16_MAX + 1];
    struct mrd_context_info info;

    for (;;) {
        node_open(n, &(struct mrd_context_attr){0}, 1, 1, MESSAGE_BYTES);
        must(mrd_query_context(n->context, &info, sizeof(info)) == 0);
        if (!used[info.port])
            break;
        node_close(n);
    }
    used[info.port] = true;
}

static void receive_and_close(int channel)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mrd_wc wc;
        struct node n;

        open_elsewhere(&n);
        node_receive(&n, 0, 0, 0, MESSAGE_BYTES);
        struct node_name name = node_name(&n);
        process_tell(channel, &name, sizeof(name));
        must(node_poll(&n, &wc, clock_now_ns() + PATIENCE_S * SEC_NS));
        must(wc.status == MRD_WC_SUCCESS && wc.byte_len == MESSAGE_BYTES);
        must(node_is_filled(&n, 0, MESSAGE_BYTES, round));
        node_close(&n);
    }
}

TEST(udp_close__right_after_the_completion)
{
    struct process receiver;
    struct node n;

    process_start(&receiver, receive_and_close);

    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;

    node_open(&n,
              &(struct mrd_context_attr){
                  .peer_timeout_ns = 2 * SEC_NS, .seed = SEED, .rx_drop_ppm = LOSS_PPM},
              1, 1, MESSAGE_BYTES);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct node_name name;
        struct mrd_wc wc;

        must(process_hear(receiver.channel, &name, sizeof(name), until_ns));
        struct mrd_ah *to = node_ah(&n, name.address);
        node_fill(&n, 0, MESSAGE_BYTES, round);
        node_send(&n, 0, to, name.qpn[0], round, 0, MESSAGE_BYTES);
        if (!node_poll(&n, &wc, until_ns))
            fail_msg("round %u: no completion", round);
        if (wc.status != MRD_WC_SUCCESS)
            fail_msg("round %u: the message arrived, but the send ended with: %s", round,
                     mrd_wc_status_str(wc.status));
        must(mrd_destroy_ah(to) == 0);
    }
    process_join(&receiver);
    node_close(&n);
}
