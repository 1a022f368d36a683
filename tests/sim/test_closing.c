/* SPDX-License-Identifier: BSD-2-Clause */
/* A context that closes tells what it received: what was delivered does not fail at its sender. */
#include "core/limits.h"
#include "tests/support/wiretap.h"

enum { ROUNDS = 1500, LOSS_PPM = 50000 };

/* The receiver closes as soon as it has its message, while 5% of the packets are lost. */
static void receiver_closes(enum mrd_order order, uint32_t len)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .order = order, .recv_bytes = len, .loss_ppm = LOSS_PPM, .peer_timeout_ns = 50 * MSEC_NS});

    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t message = sim_send(w, HOST_0, HOST_1, len);
        uint64_t begin_ns = mrd_sim_now(w->sim);

        while (!w->messages[message].received) {
            mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + USEC_NS);
            sim_poll(w);
            test_check(w->options.seed, mrd_sim_now(w->sim) - begin_ns < SEC_NS, "round %u", i);
        }
        sim_close(w, HOST_1);
        sim_run(w, 100 * MSEC_NS);
        test_check(w->options.seed,
                   w->messages[message].sent && w->messages[message].status == MRD_WC_SUCCESS,
                   "round %u: delivered, and reported as %s", i,
                   w->messages[message].sent ? mrd_wc_status_str(w->messages[message].status)
                                             : "nothing");
        sim_open(w, HOST_1);
    }
    sim_world_destroy(w);
}

TEST(sim_close__what_was_delivered_succeeds)
{
    receiver_closes(MRD_ORDER_NONE, 100);
    receiver_closes(MRD_ORDER_MSG, 20000);
}

/* Who receives from a context that closes learns that no more will come: half messages end. */
TEST(sim_close__half_messages_end)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.rate_bps = 10000000000});

    sim_send(w, HOST_1, HOST_0, 64); /* so that the one who closes has something to ack */
    sim_send_complete(w, HOST_0, HOST_1, 64, 10 * MSEC_NS);
    sim_send(w, HOST_0, HOST_1, 4 << 20);
    sim_run(w, 300 * USEC_NS);
    assert_false(w->receives[2].done);
    sim_close(w, HOST_0);
    sim_run(w, 100 * USEC_NS);
    sim_expect_received(w, 2, MRD_WC_REM_ABORT_ERR);
    sim_open(w, HOST_0);
}

/* The acks leave on different paths. */
TEST(sim_close__acks_take_different_paths)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});
    uint32_t first, path[MRD_FAREWELL_ACKS], num = 0;

    sim_send_complete(w, HOST_0, HOST_1, 64, 10 * MSEC_NS);
    sim_run(w, MSEC_NS);
    struct wiretap *tap = wiretap_open(w);
    first = tap->num;
    sim_close(w, HOST_1);
    sim_run(w, 10 * USEC_NS);
    for (uint32_t i = first; i < tap->num; i++) {
        if (tap->packets[i].from != HOST_1)
            continue;
        assert_int_equal(tap->packets[i].kind, WIRE_ACK);
        assert_true(num < MRD_FAREWELL_ACKS);
        path[num++] = tap->packets[i].path;
        assert_true(num < 2 || path[num - 1] != path[num - 2]);
    }
    assert_int_equal(num, MRD_FAREWELL_ACKS);
    wiretap_close(tap);
    sim_open(w, HOST_1);
}
