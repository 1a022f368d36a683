/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receivers that are late, or never come: a message that waits for a receive holds nothing that
 * others need.
 *
 * "Late" is 50 ms, which is longer than all delays between retries added up.
 */
#include "core/engine/state.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_host.h"

enum {
    SEGMENTED_BYTES = 5000, /* two packets */
    LATE_MS = 50,
    DEPTH = 2048,
};

static struct sim_world *create(enum mrd_order order, uint32_t qps)
{
    return sim_fabric_world(&(struct sim_options){.order = order,
                                                  .qps = qps,
                                                  .send_wr = DEPTH,
                                                  .recv_wr = DEPTH,
                                                  .cqe = 4 * DEPTH,
                                                  .no_receives = true});
}

static void send_many(struct sim_world *w, uint32_t qp, uint32_t num, uint32_t len)
{
    for (uint32_t i = 0; i < num; i++)
        sim_post_on(w, HOST_0, HOST_1, qp, len, MRD_WR_SEND);
}

/* All arrive although the receives come late: soon after these, and in order where asked for. */
static void late(enum mrd_order order, uint32_t num, uint32_t len)
{
    struct sim_world *w = create(order, 1);

    send_many(w, 0, num, len);
    sim_run(w, LATE_MS * MSEC_NS);
    assert_false(sim_is_complete(w));
    sim_post_recvs(w, HOST_1, 0, num, len);
    sim_all_arrive(w, 5 * MSEC_NS);
    if (order == MRD_ORDER_MSG)
        assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
    sim_world_destroy(w);
}

/* More messages of several packets than a target had slots. */
TEST(sim_starving__more_messages_than_slots)
{
    late(MRD_ORDER_NONE, 64, SEGMENTED_BYTES);
    late(MRD_ORDER_NONE, 65, SEGMENTED_BYTES);
    late(MRD_ORDER_NONE, DEPTH, SEGMENTED_BYTES);
    late(MRD_ORDER_MSG, 65, SEGMENTED_BYTES);
    late(MRD_ORDER_MSG, DEPTH, SEGMENTED_BYTES);
}

/* More ordered messages than the window of MSNs is wide. */
TEST(sim_starving__more_messages_than_the_window)
{
    late(MRD_ORDER_MSG, MRD_MSN_WINDOW, 8);
    late(MRD_ORDER_MSG, MRD_MSN_WINDOW + 1, 8);
    late(MRD_ORDER_MSG, DEPTH, 8);
    late(MRD_ORDER_NONE, DEPTH, 8);
}

/*
 * The same with a window below one packet, as an incast leaves it: the next packet's time is past,
 * but its message is too far ahead in the order. Nobody looks at it again and again meanwhile.
 */
TEST(sim_starving__paced_beyond_the_window)
{
    enum { MESSAGES = MRD_MSN_WINDOW + 1, EVENTS_MOST = 1000 };
    struct sim_world *w = create(MRD_ORDER_MSG, 1);
    struct mrd_mover *mover = &sim_engine(w, HOST_0)->config.mover;
    uint32_t events = 0;

    mover->cwnd_cap_bytes = mover->payload_bytes / 2;
    send_many(w, 0, MESSAGES, 8);
    uint64_t end_ns = mrd_sim_now(w->sim) + LATE_MS * MSEC_NS;
    while (mrd_sim_now(w->sim) < end_ns && events < LATE_MS * EVENTS_MOST) {
        mrd_sim_run_until(w->sim, mrd_sim_next_event_ns(w->sim));
        events++;
    }
    test_check(w->options.seed, mrd_sim_now(w->sim) >= end_ns, "%u events in %.3f ms", events,
               (double)(mrd_sim_now(w->sim) + LATE_MS * MSEC_NS - end_ns) / 1e6);
    sim_post_recvs(w, HOST_1, 0, MESSAGES, 8);
    sim_run_until_complete(w, 50 * MSEC_NS);
    assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
}

/* Many messages outstanding, few receives, which are posted again as they complete. */
static void few_receives(enum mrd_order order, uint32_t loss_ppm)
{
    enum { MESSAGES = 4000, OUTSTANDING = 128, RECEIVES = 4, BYTES = 16 << 10 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .order = order, .recv_wr = RECEIVES, .loss_ppm = loss_ppm, .no_receives = true});
    uint32_t posted = 0, sent = 0, received = 0;
    uint64_t begin_ns = mrd_sim_now(w->sim);

    sim_post_recvs(w, HOST_1, 0, RECEIVES, BYTES);
    while (received < MESSAGES) {
        for (; posted < MESSAGES && posted - sent < OUTSTANDING; posted++)
            send_many(w, 0, 1, BYTES);
        sim_run(w, 2 * USEC_NS);
        while (sent < posted && w->messages[sent].sent)
            sent++;
        while (received < w->node[HOST_1].deliveries) {
            received++;
            sim_post_recvs(w, HOST_1, 0, 1, BYTES);
        }
        test_check(w->options.seed, mrd_sim_now(w->sim) - begin_ns < 500 * MSEC_NS,
                   "%u of %u messages after 500 ms", received, MESSAGES);
    }
    sim_all_arrive(w, 10 * MSEC_NS);
    sim_world_destroy(w);
}

TEST(sim_starving__few_receives)
{
    few_receives(MRD_ORDER_NONE, 0);
    few_receives(MRD_ORDER_MSG, 0);
    few_receives(MRD_ORDER_NONE, 10000);
    few_receives(MRD_ORDER_MSG, 10000);
}

/* How long so many writes on QP 0 took, the last posted when the others were done. */
static uint64_t write_many(struct sim_world *w)
{
    uint64_t begin_ns = mrd_sim_now(w->sim);
    uint32_t first = w->num_messages;

    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < 100; i++)
            sim_write(w, HOST_0, HOST_1, SEGMENTED_BYTES);
        for (bool done = false; !done;) {
            sim_run(w, USEC_NS);
            done = true;
            for (uint32_t i = first; i < w->num_messages; i++)
                done = done && w->messages[i].sent;
            test_check(w->options.seed, mrd_sim_now(w->sim) - begin_ns < 100 * MSEC_NS,
                       "the writes of another queue pair stand still");
        }
    }
    return mrd_sim_now(w->sim) - begin_ns;
}

/* Whatever number of messages starves, other queue pairs go on at full rate. */
TEST(sim_starving__others_go_on)
{
    static const uint32_t starving[] = {1, 64, 2 * MRD_MSG_SLOTS};

    for (unsigned i = 0; i < 3; i++) {
        for (enum mrd_order order = MRD_ORDER_NONE; order <= MRD_ORDER_MSG; order++) {
            struct sim_world *w = create(order, 2);

            sim_write_complete(w, HOST_0, HOST_1, 1 << 20, 10 * MSEC_NS);
            uint64_t alone_ns = write_many(w);
            send_many(w, 1, starving[i], SEGMENTED_BYTES);
            sim_run(w, 10 * MSEC_NS);
            uint64_t beside_ns = write_many(w);
            test_check(w->options.seed, beside_ns * 9 < alone_ns * 10,
                       "%u starving messages: %llu ns in place of %llu", starving[i],
                       (unsigned long long)beside_ns, (unsigned long long)alone_ns);
            sim_post_recvs(w, HOST_1, 1, starving[i], SEGMENTED_BYTES);
            sim_run_until_complete(w, 10 * MSEC_NS);
            sim_world_destroy(w);
        }
    }
}

/* One long transfer does not keep short ones of another queue pair waiting for its end. */
TEST(sim_starving__a_long_message_blocks_nobody)
{
    struct sim_world *w = create(MRD_ORDER_NONE, 2);
    uint32_t longest = sim_post_on(w, HOST_0, HOST_1, 1, 256 << 20, MRD_WR_RDMA_WRITE);

    write_many(w);
    assert_false(w->messages[longest].sent);
    sim_run_until_complete(w, 100 * MSEC_NS);
}

/* Of a message alone, likewise. */
TEST(sim_starving__alone)
{
    for (unsigned i = 0; i < 2; i++) {
        struct sim_world *w = create(i ? MRD_ORDER_MSG : MRD_ORDER_NONE, 1);

        send_many(w, 0, 1, i ? 100 : SEGMENTED_BYTES);
        sim_run(w, SEC_NS);
        uint64_t refused = sim_counter(w, HOST_1, "rx_refuse_rnr");
        test_check(w->options.seed, refused >= 100 && refused <= 170, "%llu refusals in a second",
                   (unsigned long long)refused);
        sim_post_recvs(w, HOST_1, 0, 1, SEGMENTED_BYTES);
        sim_run_until_complete(w, MSEC_NS);
        sim_world_destroy(w);
    }
}

/*
 * The delay doubles with each attempt up to 64 times, so waiting costs little; and its end is told.
 */
TEST(sim_starving__retries_become_rare)
{
    for (unsigned i = 0; i < 2; i++) {
        struct sim_world *w = create(i ? MRD_ORDER_MSG : MRD_ORDER_NONE, 1);

        send_many(w, 0, 100, SEGMENTED_BYTES);
        sim_run(w, SEC_NS);
        uint64_t refused = sim_counter(w, HOST_1, "rx_refuse_rnr");
        /* 100 at first, 6 while the delay doubles, then one every 6.4 ms. */
        test_check(w->options.seed, refused >= 100 + 6 + 100 && refused <= 100 + 6 + 160,
                   "%llu refusals in a second", (unsigned long long)refused);
        sim_post_recvs(w, HOST_1, 0, 100, SEGMENTED_BYTES);
        sim_run_until_complete(w, MSEC_NS);
        sim_world_destroy(w);
    }
}

/* Who waits is told of receives before the end of its delay, and once each time that it waits. */
TEST(sim_starving__is_told_of_receives)
{
    enum { MESSAGES = 10, TIMER_MS = 20 };

    for (unsigned i = 0; i < 2; i++) {
        struct sim_world *w =
            sim_fabric_world(&(struct sim_options){.order = i ? MRD_ORDER_MSG : MRD_ORDER_NONE,
                                                   .rnr_timer_ns = TIMER_MS * MSEC_NS,
                                                   .no_receives = true});

        send_many(w, 0, MESSAGES, SEGMENTED_BYTES);
        sim_run(w, TIMER_MS / 2 * MSEC_NS);
        sim_post_recvs(w, HOST_1, 0, MESSAGES, SEGMENTED_BYTES);
        sim_run_until_complete(w, 200 * USEC_NS);
        uint64_t readies = sim_counter(w, HOST_1, "tx_readies");
        assert_true(readies > 0);
        sim_post_recvs(w, HOST_1, 0, MESSAGES, SEGMENTED_BYTES);
        sim_run(w, MSEC_NS);
        assert_int_equal(sim_counter(w, HOST_1, "tx_readies"), readies);
        send_many(w, 0, 2 * MESSAGES, SEGMENTED_BYTES);
        sim_run(w, TIMER_MS / 2 * MSEC_NS);
        sim_post_recvs(w, HOST_1, 0, MESSAGES, SEGMENTED_BYTES);
        sim_run_until_complete(w, 200 * USEC_NS);
        assert_true(sim_counter(w, HOST_1, "tx_readies") > readies);
        sim_world_destroy(w);
    }
}
