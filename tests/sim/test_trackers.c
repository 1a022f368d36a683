/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers whose trackers differ: one may have outstanding what the other can refuse. */
#include "core/engine/state.h"
#include "tests/support/world.h"

static void mixed(uint32_t tracker0, uint32_t tracker1, uint32_t num0, uint32_t num1)
{
    const uint32_t trackers[2] = {tracker0, tracker1}, nums[2] = {num0, num1};
    enum { BYTES = 4000 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.no_challenge = true,
                                                                 .cc = "none",
                                                                 .send_wr = 2048,
                                                                 .recv_wr = 4096,
                                                                 .delay_ns = MSEC_NS,
                                                                 .queue_bytes = 64 << 20,
                                                                 .no_receives = true});
    uint32_t done = 0, failed = 0;

    for (uint32_t host = 0; host < 2; host++) {
        struct mrd_engine *e = sim_engine(w, host);

        e->config.mover.tracker = trackers[host];
        e->share.packets_max = trackers[host] / 2;
        e->config.mover.cwnd_cap_bytes = 16 << 20;
    }
    for (uint32_t host = 0; host < 2; host++)
        for (uint32_t i = 0; i < nums[host]; i++)
            sim_send(w, host, 1 - host, BYTES);
    sim_run(w, 100 * MSEC_NS);
    for (uint32_t host = 0; host < 2; host++)
        sim_post_recvs(w, 1 - host, 0, nums[host], BYTES);
    sim_run(w, 60 * SEC_NS);
    for (uint32_t i = 0; i < w->num_messages; i++) {
        done += w->messages[i].sent;
        failed += w->messages[i].sent && w->messages[i].status != MRD_WC_SUCCESS;
    }
    test_check(w->options.seed, !failed,
               "trackers %u and %u: %u of %u messages failed, the last after %llu ms; unreachable "
               "%u %u, beyond the window %llu %llu",
               tracker0, tracker1, failed, w->num_messages,
               (unsigned long long)(w->messages[w->num_messages - 1].sent_ns / MSEC_NS),
               w->node[0].unreachable, w->node[1].unreachable,
               (unsigned long long)sim_counter(w, 0, "rx_drop_window"),
               (unsigned long long)sim_counter(w, 1, "rx_drop_window"));
    test_check(w->options.seed, done == w->num_messages,
               "trackers %u and %u: %u of %u messages done, 60 s after receives were posted",
               tracker0, tracker1, done, w->num_messages);
    assert_true(sim_payload_equal(w, HOST_0) && sim_payload_equal(w, HOST_1));
}

TEST(sim_trackers__equal_trackers)
{
    mixed(4096, 4096, 1000, 1000);
    mixed(MRD_TRACKER_MIN, MRD_TRACKER_MIN, 1000, 1000);
}

TEST(sim_trackers__one_small_tracker)
{
    mixed(4096, MRD_TRACKER_MIN, 1000, 1000);
}

TEST(sim_trackers__trackers_of_udp_and_ibv)
{
    mixed(4096, 2048, 1000, 1000);
    mixed(4096, 1024, 1000, 1000);
}

/* Buffers without a bound: trackers grow as senders ask for more, and most of that is refused. */
TEST(sim_trackers__grow)
{
    mixed(MRD_TRACKER_MIN, MRD_TRACKER_MIN, 2000, 2000);
    mixed(4096, MRD_TRACKER_MIN, 2000, 2000);
    mixed(MRD_TRACKER_MIN, 4096, 2000, 20);
}
