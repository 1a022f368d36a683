/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/path.h"
#include "core/rng.h"

enum { PATHS = 64, BASE_NS = 10000 };

#define SEC_NS UINT64_C(1000000000)

struct path_fixture {
    struct mrd_path path[PATHS];
    struct mrd_path_load load[PATHS];
    struct mrd_paths paths;
    struct mrd_rng rng;
};

static void begin(struct path_fixture *f, uint32_t num)
{
    memset(f, 0, sizeof(*f));
    mrd_paths_init(&f->paths, f->path, f->load, num, NULL, 1);
    mrd_rng_init(&f->rng, 7);
}

static void lose_at(struct path_fixture *f, uint32_t index, uint64_t now_ns)
{
    mrd_path_sent(&f->paths, index);
    mrd_path_lost(&f->paths, index, BASE_NS, now_ns);
}

static void ack_at(struct path_fixture *f, uint32_t index, uint64_t now_ns)
{
    mrd_path_sent(&f->paths, index);
    mrd_path_acked(&f->paths, index, now_ns);
}

/* Probes of path `index` fail while all others work, until it is DEAD; how many were lost. */
static unsigned fail_until_dead(struct path_fixture *f, uint32_t index, uint64_t *now_ns)
{
    unsigned lost = 0;

    while (f->path[index].state != MRD_PATH_DEAD && lost < 1000) {
        *now_ns = f->path[index].until_ns > *now_ns ? f->path[index].until_ns : *now_ns + 1;
        for (uint32_t i = 0; i < f->paths.num; i++) {
            if (i != index)
                ack_at(f, i, *now_ns);
        }
        *now_ns += BASE_NS;
        lose_at(f, index, *now_ns);
        lost++;
    }
    return lost;
}

static void count_states(const struct path_fixture *f, uint32_t *out, uint32_t *dead)
{
    *out = *dead = 0;
    for (uint32_t i = 0; i < f->paths.num; i++) {
        *out += f->path[i].state != MRD_PATH_GOOD;
        *dead += f->path[i].state == MRD_PATH_DEAD;
    }
}

static void mrd_paths_init__numbers_paths(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    for (uint32_t i = 0; i < PATHS; i++) {
        assert_int_equal(f->path[i].ev, i);
        assert_int_equal(f->path[i].id, i);
        assert_true(mrd_path_usable(&f->path[i], 0));
    }
    assert_int_equal(f->paths.num_out, 0);
}

static void mrd_path_sent__counts_pseq_per_path(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    assert_int_equal(mrd_path_sent(&f->paths, 3), 1);
    assert_int_equal(mrd_path_sent(&f->paths, 3), 2);
    assert_int_equal(mrd_path_sent(&f->paths, 4), 1);
    assert_int_equal(f->load[3].out_packets, 2);
    assert_int_equal(f->path[3].packets, 2);
}

static void mrd_path_pseq_acked__keeps_two_highest(void **state)
{
    static const struct {
        uint32_t ack[4];
        uint32_t highest, second;
    } table[] = {
        {{1, 2, 3, 4}, 4, 3},
        {{4, 3, 2, 1}, 4, 3},
        {{2, 2, 2, 1}, 2, 1},
        {{5, 1, 7, 6}, 7, 6},
    };
    struct path_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, 1);
        for (int k = 0; k < 4; k++)
            mrd_path_pseq_acked(&f->path[0], table[i].ack[k]);
        assert_int_equal(f->path[0].pseq_acked[0], table[i].highest);
        assert_int_equal(f->path[0].pseq_acked[1], table[i].second);
    }
}

/* 32 bits of PSEQ wrap. */
static void mrd_path_pseq_acked__wraps(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 1);
    f->path[0].pseq_acked[0] = UINT32_MAX - 1;
    f->path[0].pseq_acked[1] = UINT32_MAX - 2;
    mrd_path_pseq_acked(&f->path[0], 1);
    mrd_path_pseq_acked(&f->path[0], UINT32_MAX);
    assert_int_equal(f->path[0].pseq_acked[0], 1);
    assert_int_equal(f->path[0].pseq_acked[1], UINT32_MAX);
}

/* 4 base RTTs, doubling to 64. */
static void mrd_path_lost__suspends_for_doubling_time(void **state)
{
    static const uint64_t rtts[] = {4, 8, 16, 32, 64, 64, 64};
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    for (size_t i = 0; i < sizeof(rtts) / sizeof(rtts[0]); i++) {
        ack_at(f, 1, now_ns); /* others work */
        lose_at(f, 0, now_ns + 1);
        assert_int_equal(f->path[0].state, MRD_PATH_SUSPENDED);
        assert_int_equal(f->path[0].until_ns, now_ns + 1 + rtts[i] * BASE_NS);
        assert_false(mrd_path_usable(&f->path[0], f->path[0].until_ns - 1));
        assert_true(mrd_path_usable(&f->path[0], f->path[0].until_ns));
        now_ns = f->path[0].until_ns;
    }
    assert_int_equal(f->paths.num_out, 1);
}

/* All that was in flight on it when it broke counts as one failure. */
static void mrd_path_lost__burst_counts_once(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    for (int i = 0; i < 15; i++)
        mrd_path_sent(&f->paths, 0);
    for (int i = 0; i < 15; i++) {
        ack_at(f, 1, SEC_NS + i);
        mrd_path_lost(&f->paths, 0, BASE_NS, SEC_NS + i);
    }
    assert_int_equal(f->path[0].losses_row, 1);
    assert_int_equal(f->path[0].until_ns, SEC_NS + 4 * BASE_NS);
    assert_int_equal(f->path[0].lost, 15);
    assert_int_equal(f->load[0].out_packets, 0);
}

/* While nothing gets through on any path, none of them is to blame. */
static void mrd_path_lost__outage_of_all_blames_none(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;
    uint32_t out, dead;

    begin(f, PATHS);
    for (int round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < PATHS; i++)
            lose_at(f, i, now_ns);
        now_ns += 64 * BASE_NS;
    }
    count_states(f, &out, &dead);
    assert_int_equal(out, PATHS / 2);
    assert_int_equal(dead, 0);
    for (uint32_t i = 0; i < PATHS; i++)
        assert_true(f->path[i].losses_row <= 1);
}

/* One packet is let through after a suspension; the path is back with its ack. */
static void mrd_path_usable__first_packet_after_expiry_is_probe(void **state)
{
    struct path_fixture *f = *state;
    uint64_t end_ns;

    begin(f, PATHS);
    lose_at(f, 5, SEC_NS);
    end_ns = f->path[5].until_ns;
    assert_true(mrd_path_usable(&f->path[5], end_ns));
    assert_false(mrd_path_is_good(&f->path[5])); /* not for data */
    mrd_path_sent(&f->paths, 5);
    assert_false(mrd_path_usable(&f->path[5], end_ns + SEC_NS));
    mrd_path_acked(&f->paths, 5, end_ns + 1);
    assert_true(mrd_path_is_good(&f->path[5]));
    assert_int_equal(f->path[5].losses_row, 0);
    assert_int_equal(f->paths.num_out, 0);
    assert_true(mrd_path_usable(&f->path[5], 0));
}

static void mrd_path_acked__ends_suspension(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    mrd_path_sent(&f->paths, 2);
    lose_at(f, 2, SEC_NS);
    assert_int_equal(f->path[2].state, MRD_PATH_SUSPENDED);
    mrd_path_acked(&f->paths, 2, SEC_NS + 1);
    assert_int_equal(f->path[2].state, MRD_PATH_GOOD);
}

static void mrd_path_lost__at_most_half_out(void **state)
{
    static const uint32_t nums[] = {1, 2, 3, 4, 7, 64};
    struct path_fixture *f = *state;

    for (size_t k = 0; k < sizeof(nums) / sizeof(nums[0]); k++) {
        begin(f, nums[k]);
        for (int round = 0; round < 10; round++) {
            for (uint32_t i = 0; i < nums[k]; i++)
                lose_at(f, i, SEC_NS + round);
        }
        assert_int_equal(f->paths.num_out, nums[k] / 2);
    }
}

/* A suspension that is over but that nobody tested makes room for a path that fails now. */
static void mrd_path_lost__served_suspension_makes_room(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 4);
    lose_at(f, 0, SEC_NS);
    lose_at(f, 1, SEC_NS);
    lose_at(f, 2, 2 * SEC_NS);
    assert_int_equal(f->path[2].state, MRD_PATH_SUSPENDED);
    assert_int_equal(f->paths.num_out, 2);
    assert_int_equal((f->path[0].state == MRD_PATH_GOOD) + (f->path[1].state == MRD_PATH_GOOD), 1);
}

/* The one that is out for longest comes back: in a fixed order those behind it never would. */
static void mrd_path_lost__takes_turns(void **state)
{
    struct path_fixture *f = *state;
    bool back[8] = {false};

    begin(f, 8);
    for (uint32_t i = 0; i < 4; i++)
        lose_at(f, i, SEC_NS + i);
    for (unsigned round = 1; round <= 8; round++) {
        for (uint32_t i = 0; i < 8; i++)
            back[i] |= f->path[i].state == MRD_PATH_GOOD;
        for (uint32_t i = 0; i < 8; i++) {
            if (f->path[i].state == MRD_PATH_GOOD) {
                lose_at(f, i, SEC_NS + round * SEC_NS);
                break;
            }
        }
    }
    for (uint32_t i = 0; i < 8; i++)
        assert_true(back[i]);
    assert_int_equal(f->paths.num_out, 4);
}

/*
 * Most paths are black holes: they die all the same, which makes room, and only those that work
 * are left.
 */
static void mrd_path_lost__most_paths_die(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;
    uint32_t out, dead;

    begin(f, 16);
    for (int i = 0; i < 40000; i++) {
        uint32_t index = mrd_rng_below(&f->rng, 16);

        now_ns += 1000;
        if (!mrd_path_usable(&f->path[index], now_ns))
            continue;
        if (index < 12)
            lose_at(f, index, now_ns);
        else
            ack_at(f, index, now_ns);
    }
    count_states(f, &out, &dead);
    assert_int_equal(dead, 12);
    assert_int_equal(out, 12);
    assert_int_equal(f->paths.num_dead, 12);
    lose_at(f, 15, now_ns);
    assert_int_equal(f->path[15].state, MRD_PATH_SUSPENDED);
}

/*
 * Uniform loss of up to 20%: no path ever dies, and never more than half are out (trap: all paths
 * judged dead). A path that is not GOOD is offered a packet whenever it is usable.
 */
static void mrd_path_lost__uniform_loss_kills_no_path(void **state)
{
    static const uint32_t percents[] = {1, 5, 10, 20};
    struct path_fixture *f = *state;

    for (size_t k = 0; k < sizeof(percents) / sizeof(percents[0]); k++) {
        uint64_t now_ns = SEC_NS;

        begin(f, PATHS);
        for (int i = 0; i < 1000000; i++) {
            uint32_t index = mrd_rng_below(&f->rng, PATHS);

            now_ns += 300;
            if (!mrd_path_usable(&f->path[index], now_ns))
                continue;
            if (mrd_rng_below(&f->rng, 100) < percents[k])
                lose_at(f, index, now_ns);
            else
                ack_at(f, index, now_ns);
            assert_int_not_equal(f->path[index].state, MRD_PATH_DEAD);
            assert_true(f->paths.num_out <= PATHS / 2);
        }
        uint32_t out, dead;
        count_states(f, &out, &dead);
        assert_int_equal(out, f->paths.num_out);
    }
}

/* The first loss, then seven failed probes. */
static void mrd_path_lost__black_hole_dies_after_eight(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    for (int i = 0; i < 100 * PATHS; i++)
        ack_at(f, i % PATHS, now_ns);
    assert_int_equal(fail_until_dead(f, 9, &now_ns), 8);
    assert_int_equal(f->path[9].wants_ev, 1);
    assert_true(now_ns - SEC_NS < 300 * BASE_NS);
    assert_int_equal(f->path[9].until_ns, now_ns + SEC_NS);
    assert_int_equal(f->paths.num_out, 1);
}

/*
 * Half of the paths black-holed at once, as when two of four spines die: all of these die,
 * no other.
 */
static void mrd_path_lost__half_of_paths_dies_at_once(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;
    uint32_t out, dead;

    begin(f, PATHS);
    for (int i = 0; i < 20000; i++) {
        uint32_t index = mrd_rng_below(&f->rng, PATHS);

        now_ns += 1000;
        if (!mrd_path_usable(&f->path[index], now_ns))
            continue;
        if (index % 2 == 1)
            lose_at(f, index, now_ns);
        else
            ack_at(f, index, now_ns);
    }
    count_states(f, &out, &dead);
    assert_int_equal(dead, PATHS / 2);
    assert_int_equal(out, PATHS / 2);
}

/* A bad cable: a third of its packets lost, with acks in between, while the others lose 1%. */
static void mrd_path_lost__lossy_path_dies_in_the_end(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;
    unsigned packets = 0;

    begin(f, 8);
    while (f->path[3].state != MRD_PATH_DEAD && packets < 100000) {
        uint32_t index = mrd_rng_below(&f->rng, 8);

        now_ns += 1000;
        if (!mrd_path_usable(&f->path[index], now_ns))
            continue;
        packets += index == 3;
        if (mrd_rng_below(&f->rng, 300) < (index == 3 ? 100 : 3))
            lose_at(f, index, now_ns);
        else
            ack_at(f, index, now_ns);
    }
    assert_in_range(packets, 128, 2000);
    assert_true(f->paths.num_out >= 1);
}

/* With no other path in use there is nothing to compare with. */
static void mrd_path_lost__only_path_in_use_never_dies(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    for (int i = 0; i < 1000; i++) {
        uint64_t now_ns = SEC_NS + (uint64_t)i * 100 * BASE_NS;

        if (i % 3 == 0)
            ack_at(f, 0, now_ns);
        else
            lose_at(f, 0, now_ns);
        assert_int_not_equal(f->path[0].state, MRD_PATH_DEAD);
    }
}

/* A DEAD path is probed each second; an old packet's ack does not revive it, the probe's does. */
static void mrd_path_acked__dead_path_revived_by_probe_only(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    mrd_path_sent(&f->paths, 9);
    fail_until_dead(f, 9, &now_ns);
    mrd_path_acked(&f->paths, 9, now_ns);
    assert_int_equal(f->path[9].state, MRD_PATH_DEAD);

    mrd_path_keep(&f->paths, 9, now_ns);
    assert_int_equal(f->path[9].wants_ev, 0);
    now_ns += SEC_NS;
    assert_false(mrd_path_usable(&f->path[9], now_ns - 1));
    assert_true(mrd_path_usable(&f->path[9], now_ns));
    lose_at(f, 9, now_ns);
    assert_int_equal(f->path[9].until_ns, now_ns + SEC_NS);
    assert_int_equal(f->path[9].wants_ev, 0);
    now_ns += SEC_NS;
    ack_at(f, 9, now_ns);
    assert_int_equal(f->path[9].state, MRD_PATH_GOOD);
    assert_int_equal(f->paths.num_out, 0);
    assert_true(f->path[9].loss_ewma < 0.05f);
}

/* A forgotten probe (its packet was cancelled) must not keep the path out for ever. */
static void mrd_path_forgot__probe_may_be_sent_again(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    lose_at(f, 0, SEC_NS);
    mrd_path_sent(&f->paths, 0);
    assert_false(mrd_path_usable(&f->path[0], UINT64_MAX - 1));
    mrd_path_forgot(&f->paths, 0);
    assert_true(mrd_path_usable(&f->path[0], SEC_NS));
    assert_int_equal(f->load[0].out_packets, 0);
    assert_int_equal(f->path[0].state, MRD_PATH_SUSPENDED);
}

static void mrd_path_order_spurious__third_switches_off(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 1);
    mrd_path_order_spurious(&f->paths, 0);
    mrd_path_order_spurious(&f->paths, 0);
    assert_int_equal(f->path[0].order_off, 0);
    mrd_path_order_spurious(&f->paths, 0);
    assert_int_equal(f->path[0].order_off, 1);
}

/* First sample half from the average, then an eighth; the average a 32nd. */
static void mrd_path_sample__smooths_queue_delay(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    mrd_path_sample(&f->paths, 0, -5000, 10000, 10000, 1);
    assert_float_equal(f->load[0].q_ns, 0, 1e-3);
    mrd_path_sample(&f->paths, 1, -5000 + 6400, 20000, 10000, 2);
    assert_float_equal(f->load[1].q_ns, 3200, 1e-3);
    assert_float_equal(f->paths.q_avg_ns, 200, 1e-3);
    mrd_path_sample(&f->paths, 1, -5000 + 6400, 20000, 10000, 3);
    assert_float_equal(f->load[1].q_ns, 3600, 1e-3);
    assert_true(f->load[2].q_ns == MRD_PATH_NO_DELAY);
    assert_int_equal(f->path[1].srtt_ns, 20000);
    assert_int_equal(f->path[0].rtt_min_ns, 10000);
}

/* The least delay leaves a window of 16 RTT, at most 24 after it was seen: clocks drift. */
static void mrd_path_sample__least_delay_is_windowed(void **state)
{
    struct path_fixture *f = *state;
    const uint64_t rtt_ns = 10000;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    mrd_path_sample(&f->paths, 0, 0, 0, rtt_ns, now_ns);
    for (int i = 0; i < 7; i++) {
        now_ns += rtt_ns;
        mrd_path_sample(&f->paths, 1, 5000, 0, rtt_ns, now_ns);
    }
    assert_true(f->load[1].q_ns > 3500); /* against the least, which path 0 saw */
    for (int i = 0; i < 60; i++) {
        now_ns += rtt_ns;
        mrd_path_sample(&f->paths, 1, 5000, 0, rtt_ns, now_ns);
    }
    assert_true(f->load[1].q_ns < 100);
}

/* A skew of 100 ppm between two clocks does not pass for a queue, not even after an idle second. */
static void mrd_path_sample__clock_skew_is_no_queue(void **state)
{
    struct path_fixture *f = *state;
    const uint64_t rtt_ns = 100000;

    begin(f, 4);
    for (int burst = 0; burst < 3; burst++) {
        for (int i = 0; i < 1000; i++) {
            uint64_t now_ns = (uint64_t)(burst + 1) * SEC_NS + (uint64_t)i * rtt_ns / 4;

            mrd_path_sample(&f->paths, (uint32_t)i % 4, (int64_t)(now_ns / 10000), 0, rtt_ns,
                            now_ns);
            assert_true(f->load[i % 4].q_ns < 300);
        }
    }
}

/* Stamps are the peer's: extremes must not overflow. */
static void mrd_path_sample__hostile_stamps(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 2);
    mrd_path_sample(&f->paths, 0, INT64_MIN, 1, 1000, 1);
    mrd_path_sample(&f->paths, 0, INT64_MAX, 1, 1000, 2);
    mrd_path_sample(&f->paths, 1, INT64_MAX, 1, 1000, 3);
    assert_true(f->load[0].q_ns >= 0 && f->load[1].q_ns >= 0);
}

/* A new id whose remainder is the index, nothing measured, and PSEQs that do not start again. */
static void mrd_path_replace__fresh_path_under_new_id(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    mrd_path_sample(&f->paths, 9, 100, 1000, 1000, 1);
    fail_until_dead(f, 9, &now_ns);
    f->path[9].rx_count = 7;
    uint32_t pseq = f->path[9].pseq_next;

    mrd_path_replace(&f->paths, 9, 77, now_ns);
    assert_int_equal(f->path[9].state, MRD_PATH_GOOD);
    assert_int_equal(f->path[9].ev, 77);
    assert_int_equal(f->path[9].id, 9 + PATHS);
    assert_int_equal(f->path[9].rx_count, 0);
    assert_int_equal(f->path[9].packets, 0);
    assert_true(f->load[9].q_ns == MRD_PATH_NO_DELAY);
    assert_int_equal(f->path[9].wants_ev, 0);
    assert_int_equal(f->paths.num_out, 0);
    assert_int_equal(mrd_path_sent(&f->paths, 9), pseq);
}

/* 16 bits of id run out: it starts again at the index, also where num does not divide 65536. */
static void mrd_path_replace__id_wraps_to_index(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 24);
    for (int i = 0; i < 3000; i++) {
        mrd_path_replace(&f->paths, 5, 5, SEC_NS);
        assert_int_equal(f->path[5].id % 24, 5);
    }
}

/* Where two paths do not keep order, none does. */
static void mrd_path_order_spurious__on_two_paths_for_all(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 4);
    mrd_path_order_spurious(&f->paths, 0);
    mrd_path_order_spurious(&f->paths, 0);
    assert_false(f->path[0].order_off || f->path[3].order_off);
    mrd_path_order_spurious(&f->paths, 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(f->path[i].order_off);
}

/* The clocks differ by 1 us; the way there takes 4 us, the way back 6. */
static uint64_t sample(struct path_fixture *f, uint32_t index, int64_t more_ns, uint64_t late_ns,
                       uint64_t now_ns)
{
    uint64_t rtt_ns = BASE_NS + (uint64_t)more_ns + late_ns;
    int64_t delay_ns = 5000 + more_ns;

    mrd_path_sample(&f->paths, index, delay_ns, rtt_ns, BASE_NS, now_ns);
    return mrd_path_queue_ns(&f->paths, index, delay_ns, rtt_ns, BASE_NS);
}

static void mrd_path_queue_ns__late_ack_is_no_queue(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 2);
    assert_int_equal(sample(f, 0, 0, 0, 10), 0);
    assert_int_equal(sample(f, 0, 0, 7000, 20), 0);
    assert_int_equal(sample(f, 0, 3000, 7000, 30), 3000);
    assert_int_equal(sample(f, 1, 3000, 0, 40), 3000);
}

static const struct mrd_path_lesson lesson = {.rtt_min_ns = BASE_NS, .most_ns = UINT64_MAX};

/* A path that is longer has no queue, and holds more packets at the same rate. */
static void mrd_path_learn__longer_path(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 2);
    sample(f, 0, 0, 0, 10);
    mrd_path_watch(&f->paths);
    sample(f, 0, 500, 0, 20);
    sample(f, 0, 0, 0, 30);
    sample(f, 1, 31000, 0, 40);
    sample(f, 1, 30000, 0, 50);
    mrd_path_learn(&f->paths, &lesson, 60);
    assert_int_equal((int)f->path[0].far_ns, 0);
    assert_int_equal((int)f->path[1].far_ns, 30000);
    assert_int_equal(sample(f, 1, 32000, 0, 70), 2000);
    /* Four times as long: a quarter of the weight. */
    assert_true(f->load[0].weight > 3.99f * f->load[1].weight);
    assert_true(f->load[0].weight < 4.01f * f->load[1].weight);
}

static void mrd_path_learn__what_fell_or_was_marked_is_a_queue(void **state)
{
    struct path_fixture *f = *state;
    struct mrd_path_lesson fell = lesson;

    fell.fall_ns = 20000;
    begin(f, 3);
    mrd_path_watch(&f->paths);
    for (uint32_t i = 0; i < 3; i++)
        sample(f, i, i < 2 ? 30000 : 0, 0, 10);
    mrd_path_watch(&f->paths);
    sample(f, 0, 20000, 0, 20); /* fell by half of what our queue would fall */
    sample(f, 1, 29000, 0, 20);
    sample(f, 2, 0, 0, 20);
    mrd_path_learn(&f->paths, &fell, 30);
    assert_int_equal((int)f->path[0].far_ns, 0);
    assert_int_equal((int)f->path[1].far_ns, 29000);
    mrd_path_watch(&f->paths);
    sample(f, 0, 20000, 0, 40);
    f->path[0].rx_ce++;
    mrd_path_learn(&f->paths, &lesson, 50);
    assert_int_equal((int)f->path[0].far_ns, 0);
}

static void mrd_path_learn__shorter_again(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 2);
    sample(f, 0, 0, 0, 10);
    mrd_path_watch(&f->paths);
    sample(f, 1, 30000, 0, 20);
    mrd_path_learn(&f->paths, &lesson, 30);
    assert_int_equal(sample(f, 1, 5000, 0, 40), 0);
    assert_int_equal((int)f->path[1].far_ns, 5000);
    assert_int_equal(sample(f, 1, 8000, 0, 50), 3000);
}

/* A loss that was none leaves nothing behind. */
static void mrd_path_found__takes_the_loss_back(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 4);
    ack_at(f, 0, 10);
    lose_at(f, 0, 20);
    assert_int_equal(f->path[0].state, MRD_PATH_SUSPENDED);
    mrd_path_found(&f->paths, 0);
    assert_int_equal(f->path[0].state, MRD_PATH_GOOD);
    assert_int_equal(f->path[0].losses_row, 0);
    assert_int_equal(f->path[0].lost, 0);
    assert_int_equal(f->paths.num_out, 0);
    assert_true(f->path[0].loss_ewma < 1e-6f && f->paths.loss_avg < 1e-6f);
}

static void mrd_path_age__falls_slowly(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 1);
    mrd_path_age(&f->path[0], 8000);
    mrd_path_age(&f->path[0], 16000);
    assert_int_equal(f->path[0].age_ns, 16000);
    mrd_path_age(&f->path[0], 8000);
    assert_int_equal(f->path[0].age_ns, 15000);
}

static int setup(void **state)
{
    static struct path_fixture fixture;

    *state = &fixture;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_paths_init__numbers_paths),
        cmocka_unit_test(mrd_path_sent__counts_pseq_per_path),
        cmocka_unit_test(mrd_path_pseq_acked__keeps_two_highest),
        cmocka_unit_test(mrd_path_pseq_acked__wraps),
        cmocka_unit_test(mrd_path_lost__suspends_for_doubling_time),
        cmocka_unit_test(mrd_path_lost__burst_counts_once),
        cmocka_unit_test(mrd_path_lost__outage_of_all_blames_none),
        cmocka_unit_test(mrd_path_usable__first_packet_after_expiry_is_probe),
        cmocka_unit_test(mrd_path_acked__ends_suspension),
        cmocka_unit_test(mrd_path_lost__at_most_half_out),
        cmocka_unit_test(mrd_path_lost__served_suspension_makes_room),
        cmocka_unit_test(mrd_path_lost__takes_turns),
        cmocka_unit_test(mrd_path_lost__most_paths_die),
        cmocka_unit_test(mrd_path_lost__uniform_loss_kills_no_path),
        cmocka_unit_test(mrd_path_lost__black_hole_dies_after_eight),
        cmocka_unit_test(mrd_path_lost__half_of_paths_dies_at_once),
        cmocka_unit_test(mrd_path_lost__lossy_path_dies_in_the_end),
        cmocka_unit_test(mrd_path_lost__only_path_in_use_never_dies),
        cmocka_unit_test(mrd_path_acked__dead_path_revived_by_probe_only),
        cmocka_unit_test(mrd_path_forgot__probe_may_be_sent_again),
        cmocka_unit_test(mrd_path_order_spurious__third_switches_off),
        cmocka_unit_test(mrd_path_order_spurious__on_two_paths_for_all),
        cmocka_unit_test(mrd_path_sample__smooths_queue_delay),
        cmocka_unit_test(mrd_path_sample__least_delay_is_windowed),
        cmocka_unit_test(mrd_path_sample__clock_skew_is_no_queue),
        cmocka_unit_test(mrd_path_sample__hostile_stamps),
        cmocka_unit_test(mrd_path_queue_ns__late_ack_is_no_queue),
        cmocka_unit_test(mrd_path_learn__longer_path),
        cmocka_unit_test(mrd_path_learn__what_fell_or_was_marked_is_a_queue),
        cmocka_unit_test(mrd_path_learn__shorter_again),
        cmocka_unit_test(mrd_path_found__takes_the_loss_back),
        cmocka_unit_test(mrd_path_age__falls_slowly),
        cmocka_unit_test(mrd_path_replace__fresh_path_under_new_id),
        cmocka_unit_test(mrd_path_replace__id_wraps_to_index),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
