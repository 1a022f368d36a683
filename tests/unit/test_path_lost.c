/* SPDX-License-Identifier: BSD-2-Clause */
/* Losses on a path: when it is suspended, when it dies, and how many at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/path_fixture.h"

static void count_states(const struct path_fixture *f, uint32_t *out, uint32_t *dead)
{
    *out = *dead = 0;
    for (uint32_t i = 0; i < f->paths.num; i++) {
        *out += f->path[i].state != MRD_PATH_GOOD;
        *dead += f->path[i].state == MRD_PATH_DEAD;
    }
}

/* 4 base RTTs, doubling to 64. */
static void mrd_path_lost__suspends_for_doubling_time(void **state)
{
    static const uint64_t rtts[] = {4, 8, 16, 32, 64, 64, 64};
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    for (size_t i = 0; i < sizeof(rtts) / sizeof(rtts[0]); i++) {
        ack(f, 1); /* others work */
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
        ack(f, 1);
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

/* All paths have carried packets, and lost this share of them. */
static void begin_lossy(struct path_fixture *f, uint32_t num, float share)
{
    begin(f, num);
    for (uint32_t i = 0; i < num; i++) {
        ack(f, i);
        f->path[i].loss_ewma = share;
    }
}

/* Where all paths lose alike, a lone loss leaves a path where it is; two in a row do not. */
static void mrd_path_lost__usual(void **state)
{
    struct path_fixture *f = *state;

    begin_lossy(f, PATHS, 0.03f);
    for (uint32_t i = 0; i < PATHS; i++) {
        lose_at(f, i, SEC_NS);
        assert_int_equal(f->path[i].state, MRD_PATH_GOOD);
        ack(f, i);
    }
    assert_int_equal(f->paths.num_out, 0);

    begin_lossy(f, PATHS, 0.03f);
    lose_at(f, 7, 2 * SEC_NS);
    ack(f, 8);
    lose_at(f, 7, 2 * SEC_NS);
    assert_int_equal(f->path[7].state, MRD_PATH_SUSPENDED);
    assert_int_equal(f->path[7].until_ns, 2 * SEC_NS + 8 * BASE_NS);
    assert_int_equal(f->paths.num_out, 1);

    begin_lossy(f, PATHS, 0.3f); /* one loss more does not make this path worse than the others */
    lose_at(f, 7, 3 * SEC_NS);
    assert_int_equal(f->path[7].state, MRD_PATH_GOOD);
    ack(f, 8);
    lose_at(f, 7, 3 * SEC_NS);
    assert_int_equal(f->path[7].state, MRD_PATH_SUSPENDED);
    assert_int_equal(f->paths.num_out, 1);
}

/* Losses are not usual where the others have hardly any, nor on a path that has more than they. */
static void mrd_path_lost__unusual(void **state)
{
    struct path_fixture *f = *state;

    begin_lossy(f, PATHS, 0.002f); /* less than usual_share */
    lose_at(f, 3, SEC_NS);
    assert_int_equal(f->path[3].state, MRD_PATH_SUSPENDED);

    begin_lossy(f, PATHS, 0.03f);
    f->path[3].loss_ewma = 0.037f;
    lose_at(f, 3, SEC_NS);
    assert_int_equal(f->path[3].state, MRD_PATH_SUSPENDED);
    assert_int_equal(f->path[3].until_ns, SEC_NS + 4 * BASE_NS);

    begin_lossy(f, PATHS, 0.03f); /* others whose last packet was lost say nothing */
    for (uint32_t i = 0; i < PATHS; i++) {
        if (i != 3)
            f->path[i].losses_row = 1;
    }
    lose_at(f, 3, SEC_NS);
    assert_int_equal(f->path[3].state, MRD_PATH_SUSPENDED);
}

/* A black hole among paths that lose some packets dies as fast as among those that lose none. */
static void mrd_path_lost__dies_among_lossy(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;
    unsigned lost;

    begin(f, PATHS);
    lost = fail_until_dead(f, 5, &now_ns);
    begin_lossy(f, PATHS, 0.01f);
    now_ns = SEC_NS;
    assert_in_range(fail_until_dead(f, 5, &now_ns), lost, lost + 1);
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
            ack(f, index);
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
                ack(f, index);
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
        ack(f, i % PATHS);
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
            ack(f, index);
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
            ack(f, index);
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
            ack(f, 0);
        else
            lose_at(f, 0, now_ns);
        assert_int_not_equal(f->path[0].state, MRD_PATH_DEAD);
    }
}

/* One tail probe says nothing; the second does, if others worked in between and this path did not. */
static void mrd_path_doubt__from_the_second_on(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    assert_false(mrd_path_doubt(&f->paths, 0));
    assert_false(mrd_path_doubt(&f->paths, 0)); /* the peer is silent */
    ack(f, 1);
    assert_true(mrd_path_doubt(&f->paths, 0));
    assert_false(mrd_path_doubt(&f->paths, 2));
    ack(f, 1);
    mrd_path_came(&f->path[0]);
    assert_false(mrd_path_doubt(&f->paths, 0));
    ack(f, 0);
    assert_false(mrd_path_doubt(&f->paths, 0));
    ack(f, 1);
    mrd_path_replace(&f->paths, 0, 9);
    assert_false(mrd_path_doubt(&f->paths, 0));
}

/* Losses in a row: how many of them are of a failing path follows from what others lose. */
static void mrd_path_fails__by_the_row(void **state)
{
    static const struct {
        uint32_t others_percent, row; /* from that row on the path fails */
    } table[] = {{0, 2}, {5, 2}, {15, 3}, {25, 4}, {50, 4}};
    struct path_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, PATHS);
        for (uint32_t p = 0; p < PATHS; p++) {
            ack(f, p);
            f->path[p].loss_ewma = (float)table[i].others_percent / 100;
        }
        for (uint32_t row = 1; row <= 5; row++) {
            f->path[0].losses_row = (uint8_t)row;
            assert_int_equal(mrd_path_fails(&f->paths, 0, SEC_NS), row >= table[i].row);
        }
    }
}

/* A path that lost more than one of its last packets, and far more than others do, fails. */
static void mrd_path_fails__by_its_share(void **state)
{
    static const struct {
        double own, others;
        bool fails;
    } table[] = {{0.03, 0, false},    {0.06, 0, true},   {0.06, 0.01, true},
                 {0.06, 0.02, false}, {0.2, 0.04, true}, {0.2, 0.06, false}};
    struct path_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, PATHS);
        for (uint32_t p = 0; p < PATHS; p++) {
            ack(f, p);
            f->path[p].loss_ewma = (float)table[i].others;
        }
        f->path[0].loss_ewma = (float)table[i].own;
        f->path[0].losses_row = 1;
        assert_int_equal(mrd_path_fails(&f->paths, 0, SEC_NS), table[i].fails);
    }
}

/* Nobody to compare with: only many losses in a row tell. */
static void mrd_path_fails__alone(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 1);
    for (uint32_t row = 1; row <= 5; row++) {
        f->path[0].losses_row = (uint8_t)row;
        f->path[0].loss_ewma = 0.5f;
        assert_int_equal(mrd_path_fails(&f->paths, 0, SEC_NS), row >= 4);
    }
}

static void sample(struct path_fixture *f, uint32_t index, float q_ns, uint64_t at_ns)
{
    f->load[index].q_ns = q_ns;
    f->load[index].q_at_ns = at_ns;
}

/* A queue that all paths share dropped the packet, whichever path it took, or one that it did not take. */
static void mrd_path_in_queue__of_its_own_or_of_most(void **state)
{
    enum { NOW_NS = 100 * BASE_NS, SRTT_NS = 2 * BASE_NS };
    static const struct {
        float own_ns;  /* negative: no sample of late */
        uint32_t with; /* of the others have the delay */
        bool in;
    } table[] = {{2000, 63, true}, {2000, 0, true}, {100, 63, false},
                 {-1, 63, true},   {-1, 40, true},  {-1, 20, false}};
    struct path_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, PATHS);
        f->paths.q_avg_ns = 2000;
        for (uint32_t p = 1; p < PATHS; p++)
            sample(f, p, p <= table[i].with ? 2000 : 100, NOW_NS - BASE_NS);
        if (table[i].own_ns >= 0)
            sample(f, 0, table[i].own_ns, NOW_NS - BASE_NS);
        else
            sample(f, 0, 100, NOW_NS - 3 * SRTT_NS);
        assert_int_equal(mrd_path_in_queue(&f->paths, 0, 2000, SRTT_NS, NOW_NS), table[i].in);
        /* A delay that is in the least RTT of all paths does not tell them apart. */
        assert_true(mrd_path_in_queue(&f->paths, 0, 10000, SRTT_NS, NOW_NS));
    }
}

/* Once a path failed for sure, what is lost on a path of which nothing is known may be a failure. */
static void mrd_path_in_queue__not_while_paths_fail(void **state)
{
    enum { NOW_NS = 1000 * BASE_NS };
    struct path_fixture *f = *state;

    begin(f, PATHS);
    f->paths.q_avg_ns = 2000;
    for (uint32_t p = 1; p < PATHS; p++) {
        ack(f, p);
        sample(f, p, 2000, NOW_NS);
    }
    assert_true(mrd_path_in_queue(&f->paths, 0, 2000, BASE_NS, NOW_NS));
    f->path[1].losses_row = 4;
    assert_true(mrd_path_fails(&f->paths, 1, NOW_NS));
    assert_false(mrd_path_in_queue(&f->paths, 0, 2000, BASE_NS, NOW_NS));
    assert_true(mrd_path_in_queue(&f->paths, 2, 2000, BASE_NS, NOW_NS));
    for (uint32_t p = 1; p < PATHS; p++)
        sample(f, p, 2000, NOW_NS + 101 * BASE_NS);
    assert_true(mrd_path_in_queue(&f->paths, 0, 2000, BASE_NS, NOW_NS + 101 * BASE_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_path_lost__suspends_for_doubling_time),
        cmocka_unit_test(mrd_path_lost__burst_counts_once),
        cmocka_unit_test(mrd_path_lost__outage_of_all_blames_none),
        cmocka_unit_test(mrd_path_lost__usual),
        cmocka_unit_test(mrd_path_lost__unusual),
        cmocka_unit_test(mrd_path_lost__dies_among_lossy),
        cmocka_unit_test(mrd_path_lost__at_most_half_out),
        cmocka_unit_test(mrd_path_lost__served_suspension_makes_room),
        cmocka_unit_test(mrd_path_lost__takes_turns),
        cmocka_unit_test(mrd_path_lost__most_paths_die),
        cmocka_unit_test(mrd_path_lost__uniform_loss_kills_no_path),
        cmocka_unit_test(mrd_path_lost__black_hole_dies_after_eight),
        cmocka_unit_test(mrd_path_lost__half_of_paths_dies_at_once),
        cmocka_unit_test(mrd_path_lost__lossy_path_dies_in_the_end),
        cmocka_unit_test(mrd_path_lost__only_path_in_use_never_dies),
        cmocka_unit_test(mrd_path_doubt__from_the_second_on),
        cmocka_unit_test(mrd_path_fails__by_the_row),
        cmocka_unit_test(mrd_path_fails__by_its_share),
        cmocka_unit_test(mrd_path_fails__alone),
        cmocka_unit_test(mrd_path_in_queue__of_its_own_or_of_most),
        cmocka_unit_test(mrd_path_in_queue__not_while_paths_fail),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
