/* SPDX-License-Identifier: BSD-2-Clause */
/* What hosts know of the network: their contexts have the figures of the mover that they imitate. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/state.h"
#include "tests/support/world.h"
#include "transport/context.h"
#include "transport/mover.h"

#define RATE_BPS  25000000000ull
#define OTHER_BPS 7000000000ull

static const struct mrd_sim_topology tree = {
    4, 2, 0, {{2, 2, 0, RATE_BPS, 1000, 0}, {2, 0, 0, RATE_BPS, 1000, 0}}};

static struct sim_world *world(uint32_t knows, const struct mrd_sim_topology *topology)
{
    return sim_world_create(
        &(struct sim_options){.knows = knows, .topology = topology, .rate_bps = RATE_BPS});
}

static const struct mrd_mover *mover_of(const struct mrd_context *context)
{
    return &mrd_context_engine((struct mrd_context *)(uintptr_t)context)->config.mover;
}

/* Opens a context on host 0 with that link_bps, and returns the rate that its engine knows. */
static uint64_t known_bps(struct mrd_sim *sim, uint64_t link_bps)
{
    struct mrd_context *context = mrd_open_device(
        mrd_sim_device(sim, 0), &(struct mrd_context_attr){.link_bps = link_bps, .max_peers = 4});

    assert_non_null(context);
    uint64_t bps = mover_of(context)->link_bps;
    assert_int_equal(mrd_close_device(context), 0);
    return bps;
}

/* What the mover of sockets says of itself, sizes and paths aside; a topology changes nothing. */
TEST(sim_knows__sockets_as_the_mover_of_udp)
{
    for (int i = 0; i < 2; i++) {
        struct sim_world *w = world(MRD_SIM_KNOWS_SOCKETS, i ? &tree : NULL);
        const struct mrd_mover *m = mover_of(w->node[HOST_0].context);
        struct mrd_mover expected = *m;

        mrd_mover_fill_sockets(&expected);
        assert_memory_equal(m, &expected, sizeof(*m));
        assert_true(m->link_bps == 0 && m->base_rtt_max_ns == 0 && m->quantum > 1);
    }
}

/* The same of RDMA, with the rate of the host's own link. */
TEST(sim_knows__rdma_as_the_mover_of_rdma)
{
    for (int i = 0; i < 2; i++) {
        struct sim_world *w = world(MRD_SIM_KNOWS_RDMA, i ? &tree : NULL);
        const struct mrd_mover *m = mover_of(w->node[HOST_0].context);
        struct mrd_mover expected = *m;

        mrd_mover_fill_rdma(&expected, RATE_BPS);
        assert_memory_equal(m, &expected, sizeof(*m));
        assert_true(m->link_bps == RATE_BPS && m->base_rtt_max_ns == 0 && m->quantum == 1);
    }
}

/* A link of infinite rate tells none, as the port of a software device. */
TEST(sim_knows__rdma_without_a_rate)
{
    struct mrd_sim *sim =
        test_sim(&(struct mrd_sim_attr){.knows = MRD_SIM_KNOWS_RDMA, .link = {.delay_ns = 5000}});

    struct mrd_context *context =
        mrd_open_device(mrd_sim_device(sim, 0), &(struct mrd_context_attr){.max_peers = 4});

    assert_non_null(context);

    struct mrd_mover expected = *mover_of(context);

    mrd_mover_fill_rdma(&expected, 0);
    assert_memory_equal(mover_of(context), &expected, sizeof(expected));
    assert_int_equal(mrd_close_device(context), 0);
}

/* The rate, and in a tree the RTT of its longest way. */
TEST(sim_knows__fabric_has_rate_and_rtt)
{
    for (int i = 0; i < 2; i++) {
        struct sim_world *w = world(MRD_SIM_KNOWS_FABRIC, i ? &tree : NULL);
        const struct mrd_mover *m = mover_of(w->node[HOST_0].context);

        assert_int_equal(m->link_bps, RATE_BPS);
        assert_true(i ? m->base_rtt_max_ns > 8000 && m->base_rtt_max_ns < 20000
                      : m->base_rtt_max_ns == 0);
    }
}

TEST(sim_knows__link_bps_of_the_user_wins)
{
    for (uint32_t knows = MRD_SIM_KNOWS_SOCKETS; knows <= MRD_SIM_KNOWS_FABRIC; knows++) {
        for (int i = 0; i < 2; i++) {
            struct mrd_sim_attr attr = {.knows = knows, .topology = i ? &tree : NULL};

            assert_int_equal(known_bps(test_sim(&attr), OTHER_BPS), OTHER_BPS);
        }
    }
}

/* Whatever hosts know, messages arrive, also where packets are lost. */
TEST(sim_knows__messages_arrive)
{
    for (uint32_t knows = MRD_SIM_KNOWS_SOCKETS; knows <= MRD_SIM_KNOWS_FABRIC; knows++) {
        struct sim_world *w =
            sim_world_create(&(struct sim_options){.knows = knows,
                                                   .rate_bps = RATE_BPS,
                                                   .loss_ppm = 1000,
                                                   .straight = knows == MRD_SIM_KNOWS_SOCKETS});

        sim_send(w, HOST_0, HOST_1, 4 << 20);
        sim_write_complete(w, HOST_1, HOST_0, 4 << 20, 50 * MSEC_NS);
    }
}

/* Whoever says nothing has sockets; but not callers that were compiled before they could say. */
TEST(mrd_sim_create__knows_of_older_callers)
{
    const struct mrd_sim_attr attr = {.link = {.rate_bps = RATE_BPS, .delay_ns = 5000}};
    const struct {
        const struct mrd_sim_attr *attr;
        size_t bytes;
        uint64_t bps;
    } rows[] = {
        {&attr, sizeof(attr), 0},
        {NULL, sizeof(attr), 0},
        {&attr, offsetof(struct mrd_sim_attr, knows), RATE_BPS},
        {NULL, offsetof(struct mrd_sim_attr, knows), 100000000000},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_sim *sim = mrd_sim_create_sized(rows[i].attr, rows[i].bytes);

        assert_non_null(sim);
        assert_int_equal(known_bps(sim, 0), rows[i].bps);
        mrd_sim_destroy(sim);
    }
}

TEST(mrd_sim_create__knows_what_nobody_does)
{
    errno = 0;
    assert_null(mrd_sim_create(&(struct mrd_sim_attr){.knows = MRD_SIM_KNOWS_FABRIC + 1}));
    assert_int_equal(errno, EINVAL);
    assert_non_null(strstr(mrd_last_error(), "knows 3 "));

    errno = 0;
    assert_null(mrd_sim_create(&(struct mrd_sim_attr){.reserved = 1}));
    assert_int_equal(errno, EINVAL);
}
