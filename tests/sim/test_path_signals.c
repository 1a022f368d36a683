/* SPDX-License-Identifier: BSD-2-Clause */
/* What losses and marks say of a path, and what only of the network as a whole. */
#include "tests/support/world.h"

enum { PATHS = 8, SAMPLES = 200 };

/* Loss that is the same everywhere says nothing about a path: none dies, half stay in use. */
TEST(sim_path__uniform_loss_kills_none)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.paths = PATHS, .loss_ppm = 300000});
    struct mrd_path_attr attr;
    uint64_t least = UINT64_MAX, most = 0;

    sim_write(w, HOST_0, HOST_1, 16 << 20);
    for (uint32_t step = 0; !sim_is_complete(w); step++) {
        uint32_t suspended = 0;

        assert_true(step < 1000);
        sim_run(w, 10 * USEC_NS);
        for (uint32_t i = 0; i < PATHS; i++) {
            assert_int_equal(mrd_query_path(w->node[HOST_0].ah[HOST_1], i, &attr, sizeof(attr)), 0);
            assert_int_not_equal(attr.state, MRD_PATH_DEAD);
            suspended += attr.state == MRD_PATH_SUSPENDED;
        }
        assert_in_range(suspended, 0, PATHS / 2);
    }
    for (uint32_t i = 0; i < PATHS; i++) {
        assert_int_equal(mrd_query_path(w->node[HOST_0].ah[HOST_1], i, &attr, sizeof(attr)), 0);
        least = attr.packets < least ? attr.packets : least;
        most = attr.packets > most ? attr.packets : most;
    }
    assert_true(most < 4 * least);
    assert_true(sim_counter(w, HOST_0, "paths_suspended") > 10);
}

/* What a long transfer looks like from its sender. */
struct view {
    uint64_t cwnd_bytes, ce; /* window: the mean */
    uint64_t packets[PATHS];
};

static struct view transfer_view(struct sim_world *w)
{
    struct view v = {0};
    struct mrd_peer_attr peer;
    struct mrd_path_attr path;

    sim_write(w, HOST_0, HOST_1, 64 << 20);
    sim_run(w, 1 * MSEC_NS);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        sim_run(w, 10 * USEC_NS);
        assert_int_equal(mrd_query_peer(w->node[HOST_0].ah[HOST_1], &peer, sizeof(peer)), 0);
        v.cwnd_bytes += peer.cwnd_bytes / SAMPLES;
    }
    for (uint32_t i = 0; i < PATHS; i++) {
        assert_int_equal(mrd_query_path(w->node[HOST_0].ah[HOST_1], i, &path, sizeof(path)), 0);
        v.packets[i] = path.packets;
        v.ce += path.ce;
    }
    return v;
}

/*
 * All paths share the last hop, and it is full: no path is better than another, so the window is
 * cut and traffic stays where it is.
 */
TEST(sim_marks__of_the_last_hop_cut_the_window)
{
    struct sim_options options = {.seed = test_seed(),
                                  .rate_bps = 10000000000,
                                  .links = 1,
                                  .paths = PATHS,
                                  .ecn_min_bytes = 8000,
                                  .ecn_max_bytes = 16000};
    struct sim_world *w = sim_fabric_world(&options);
    struct view v = transfer_view(w);

    assert_true(v.ce > 100);
    assert_true(v.cwnd_bytes < 42000); /* of 51000 that it would be without marks */
    assert_int_equal(sim_counter(w, HOST_0, "retx_packets"), 0);
    assert_int_equal(sim_counter(w, HOST_0, "paths_suspended"), 0);
}

/* One of the paths is hot: traffic moves away from it, and the window stays. */
TEST(sim_marks__of_one_path_move_traffic)
{
    struct sim_options options = {.seed = test_seed(),
                                  .rate_bps = 10000000000,
                                  .links = PATHS,
                                  .paths = PATHS,
                                  .ecn_min_bytes = 8000,
                                  .ecn_max_bytes = 16000};
    struct sim_world *w = sim_fabric_world(&options);

    sim_links(w, "host0>host1.3", "degrade", "0.1");

    struct view v = transfer_view(w);

    assert_true(v.cwnd_bytes > 46000);
    for (uint32_t i = 0; i < PATHS; i++)
        assert_true(i == 3 || v.packets[i] > 4 * v.packets[3]);
    assert_true(sim_counter(w, HOST_0, "retx_packets") * 100 <
                sim_counter(w, HOST_0, "tx_packets"));
}
