/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection matrices: the generated patterns. */
#include <errno.h>

#include "tests/kit/kit.h"
#include "tools/sim/cm.h"

static struct simx_cm cm;

TEST(simx_cm_permutation__one_circle)
{
    static const uint32_t sizes[] = {2, 3, 16, 1024};

    for (unsigned i = 0; i < 4; i++) {
        uint32_t hosts = sizes[i], at = 0, length = 0;

        assert_int_equal(simx_cm_permutation(&cm, hosts, 2000, 5), 0);
        assert_int_equal(cm.num_flows, hosts);
        for (uint32_t host = 0; host < hosts; host++) {
            assert_int_equal(cm.flows[host].src, host);
            assert_int_equal(cm.flows[host].bytes, 2000);
            assert_false(cm.flows[host].triggered);
        }
        do {
            at = cm.flows[at].dst;
            length++;
        } while (at != 0 && length <= hosts);
        assert_int_equal(length, hosts);
        simx_cm_fini(&cm);
    }
}

static uint64_t fingerprint(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < cm.num_flows; i++)
        sum = sum * 1000003 + cm.flows[i].src * 65537u + cm.flows[i].dst;
    simx_cm_fini(&cm);
    return sum;
}

/* The same seed gives the same pattern, another one another. */
TEST(simx_cm_permutation__seed)
{
    uint64_t seen[3];

    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(simx_cm_permutation(&cm, 64, 1, i / 2), 0);
        seen[i] = fingerprint();
    }
    assert_true(seen[0] == seen[1] && seen[1] != seen[2]);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(simx_cm_incast(&cm, 64, 3, 20, 1, i / 2), 0);
        seen[i] = fingerprint();
    }
    assert_true(seen[0] == seen[1] && seen[1] != seen[2]);
}

TEST(simx_cm_incast__distinct_senders)
{
    static const uint32_t counts[] = {1, 7, 31};

    for (unsigned i = 0; i < 3; i++) {
        bool sends[32] = {false};

        assert_int_equal(simx_cm_incast(&cm, 32, 9, counts[i], 500, i), 0);
        assert_int_equal(cm.num_flows, counts[i]);
        for (uint32_t j = 0; j < cm.num_flows; j++) {
            assert_int_equal(cm.flows[j].dst, 9);
            assert_int_not_equal(cm.flows[j].src, 9);
            assert_false(sends[cm.flows[j].src]);
            sends[cm.flows[j].src] = true;
        }
        simx_cm_fini(&cm);
    }
}

/*
 * Each pair once, and every send but the first of a host waits for the one before it, of the same
 * host.
 */
TEST(simx_cm_alltoall_serial__chains)
{
    for (uint32_t hosts = 2; hosts <= 7; hosts++) {
        bool seen[7][7] = {{false}};
        uint32_t starts = 0;

        assert_int_equal(simx_cm_alltoall(&cm, hosts, 9, true), 0);
        assert_int_equal(cm.num_flows, hosts * (hosts - 1));
        assert_int_equal(cm.num_triggers, hosts * (hosts - 2));
        for (uint32_t i = 0; i < cm.num_flows; i++) {
            const struct simx_flow *flow = &cm.flows[i];
            const struct simx_flow *before = flow - 1;

            assert_false(seen[flow->src][flow->dst]);
            seen[flow->src][flow->dst] = true;
            assert_int_equal(flow->recv_done, -1);
            if (!flow->triggered) {
                starts++;
                assert_int_equal(flow->dst, (flow->src + 1) % hosts);
                continue;
            }
            assert_int_equal(before->send_done, flow->trigger);
            assert_int_equal(before->src, flow->src);
            assert_int_equal(flow->dst, (before->dst + 1) % hosts);
        }
        assert_int_equal(starts, hosts);
        simx_cm_fini(&cm);
    }
}

/*
 * Pieces are carried along: what a host sends it must have, after hosts - 1 steps each host has one
 * piece of all, and at the end every host has every piece.
 */
TEST(simx_cm_ring_allreduce__pieces)
{
    for (uint32_t hosts = 2; hosts <= 6; hosts++) {
        uint32_t parts[6][6]; /* bit h: host h's share is in this host's piece */
        uint32_t all = (1u << hosts) - 1;
        uint64_t piece_bytes[6] = {0};
        uint64_t bytes = 1003, sum = 0;

        assert_int_equal(simx_cm_ring_allreduce(&cm, hosts, bytes), 0);
        assert_int_equal(cm.num_flows, 2 * (hosts - 1) * hosts);
        for (uint32_t i = 0; i < hosts; i++) {
            for (uint32_t piece = 0; piece < hosts; piece++)
                parts[i][piece] = 1u << i;
        }
        for (uint32_t i = 0; i < cm.num_flows; i++) {
            const struct simx_flow *flow = &cm.flows[i];
            uint32_t step = i / hosts;
            uint32_t piece = (flow->src + 2 * hosts - step) % hosts;

            assert_int_equal(flow->dst, (flow->src + 1) % hosts);
            assert_int_equal(flow->triggered, step > 0);
            parts[flow->dst][piece] |= parts[flow->src][piece];
            sum += flow->bytes;
            /* The same piece is as long in each step. */
            if (step == 0)
                piece_bytes[piece] = flow->bytes;
            assert_int_equal(flow->bytes, piece_bytes[piece]);
            assert_in_range(flow->bytes, bytes / hosts, bytes / hosts + 1);
            if (step == 0)
                continue;
            /* The one flow that fires it is the step before, arriving at this host. */
            for (uint32_t j = 0; j < cm.num_flows; j++) {
                bool fires = cm.flows[j].recv_done == (int32_t)flow->trigger;

                assert_int_equal(fires, j / hosts + 1 == step && cm.flows[j].dst == flow->src);
            }
        }
        assert_int_equal(sum, bytes * 2 * (hosts - 1));
        for (uint32_t i = 0; i < hosts * hosts; i++)
            assert_int_equal(parts[i / hosts][i % hosts], all);
        simx_cm_fini(&cm);
    }
}

TEST(simx_cm_generators__refused)
{
    assert_int_equal(simx_cm_permutation(&cm, 1, 1, 0), -EINVAL);
    assert_int_equal(simx_cm_permutation(&cm, 4, 0, 0), -EINVAL);
    assert_int_equal(simx_cm_permutation(&cm, SIMX_NODES_MAX + 1, 1, 0), -EINVAL);
    assert_int_equal(simx_cm_incast(&cm, 4, 4, 1, 1, 0), -EINVAL);
    assert_int_equal(simx_cm_incast(&cm, 4, 0, 4, 1, 0), -EINVAL);
    assert_int_equal(simx_cm_incast(&cm, 4, 0, 0, 1, 0), -EINVAL);
    assert_int_equal(simx_cm_alltoall(&cm, 0, 1, true), -EINVAL);
    assert_int_equal(simx_cm_alltoall(&cm, 1025, 1, true), -EINVAL);
    assert_int_equal(simx_cm_ring_allreduce(&cm, 1, 100), -EINVAL);
    assert_int_equal(simx_cm_ring_allreduce(&cm, 8, 7), -EINVAL);
    assert_int_equal(simx_cm_ring_allreduce(&cm, 725, 1 << 20), -EINVAL);
}

/* Of the largest sizes, and sums near 64 bits. */
TEST(simx_cm_generators__largest)
{
    assert_int_equal(simx_cm_permutation(&cm, SIMX_NODES_MAX, 1, 0), 0);
    simx_cm_fini(&cm);
    assert_int_equal(simx_cm_ring_allreduce(&cm, 3, UINT64_MAX), 0);
    for (uint32_t i = 0; i < cm.num_flows; i++)
        assert_int_equal(cm.flows[i].bytes, UINT64_MAX / 3);
    simx_cm_fini(&cm);
}
