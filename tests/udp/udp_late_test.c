/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver that posts its receives late, with all defaults. */
#include "udp_process.h"

#include "tests/kit/kit.h"

enum {
    MESSAGES = 65,
    MESSAGE_BYTES = 20000, /* 5 packets of the loopback */
    LATE_MS = 50,
};

static const struct mrd_context_attr defaults;

/*
 * Told of the sender's posts, it lets them wait. Unordered: any message may take any receive, each
 * takes one.
 */
static void receive_late(int channel)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;
    bool seen[MESSAGES] = {false};
    struct node n;
    char posted;

    node_open(&n, &defaults, 1, MESSAGES, MESSAGES * MESSAGE_BYTES);
    struct node_name name = node_name(&n);
    process_tell(channel, &name, sizeof(name));
    must(process_hear(channel, &posted, sizeof(posted), until_ns));
    sleep_ms(LATE_MS);
    for (unsigned i = 0; i < MESSAGES; i++)
        node_receive(&n, 0, i, (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct mrd_wc wc;
        unsigned m = 0;

        must(node_poll(&n, &wc, until_ns));
        must(wc.status == MRD_WC_SUCCESS && wc.byte_len == MESSAGE_BYTES);
        while (m < MESSAGES &&
               (seen[m] || !node_is_filled(&n, wc.wr_id * MESSAGE_BYTES, MESSAGE_BYTES, m)))
            m++;
        must(m < MESSAGES);
        seen[m] = true;
    }
    must(process_hear(channel, &posted, sizeof(posted), until_ns));
    node_close(&n);
}

/* More messages of several packets than a peer once could refuse at a time: each arrives, once. */
TEST(udp_late__receives_after_sends_of_several_packets)
{
    struct process receiver;
    struct node_name name;
    struct node n;
    char posted = 0;

    process_start(&receiver, receive_late);

    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;

    node_open(&n, &defaults, 1, MESSAGES, MESSAGES * MESSAGE_BYTES);
    must(process_hear(receiver.channel, &name, sizeof(name), until_ns));
    struct mrd_ah *to = node_ah(&n, name.address);
    for (unsigned i = 0; i < MESSAGES; i++) {
        node_fill(&n, (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES, i);
        node_send(&n, 0, to, name.qpn[0], i, (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES);
    }
    process_tell(receiver.channel, &posted, sizeof(posted));
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct mrd_wc wc;

        if (!node_poll(&n, &wc, until_ns))
            fail_msg("%u of %d sends completed", i, MESSAGES);
        must(wc.status == MRD_WC_SUCCESS);
    }
    process_tell(receiver.channel, &posted, sizeof(posted));
    process_join(&receiver);
    must(mrd_destroy_ah(to) == 0);
    node_close(&n);
}
