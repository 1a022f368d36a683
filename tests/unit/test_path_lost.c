/* SPDX-License-Identifier: BSD-2-Clause */
/* Losses on a path: when it is suspended, when it dies, and how many at once. */
#include "tests/kit/kit.h"
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
TEST_F(path_fixture, mrd_path_lost__suspends_for_doubling_time)
{
    static const uint64_t rtts[] = {4, 8, 16, 32, 64, 64, 64};
    uint64_t now_ns = SEC_NS;

    for (size_t i = 0; i < sizeof(rtts) / sizeof(rtts[0]); i++) {
        ack(self, 1); /* others work */
        lose_at(self, 0, now_ns + 1);
        assert_int_equal(self->path[0].state, MRD_PATH_SUSPENDED);
        assert_int_equal(self->path[0].until_ns, now_ns + 1 + rtts[i] * BASE_NS);
        assert_false(mrd_path_usable(&self->path[0], self->path[0].until_ns - 1));
        assert_true(mrd_path_usable(&self->path[0], self->path[0].until_ns));
        now_ns = self->path[0].until_ns;
    }
    assert_int_equal(self->paths.num_out, 1);
}

/* All that was in flight on it when it broke counts as one failure. */
TEST_F(path_fixture, mrd_path_lost__burst_counts_once)
{
    for (int i = 0; i < 15; i++)
        mrd_path_sent(&self->paths, 0);
    for (int i = 0; i < 15; i++) {
        ack(self, 1);
        mrd_path_lost(&self->paths, 0, BASE_NS, SEC_NS + i);
    }
    assert_int_equal(self->path[0].losses_row, 1);
    assert_int_equal(self->path[0].until_ns, SEC_NS + 4 * BASE_NS);
    assert_int_equal(self->path[0].lost, 15);
    assert_int_equal(self->load[0].out_packets, 0);
}

/* While nothing gets through on any path, none of them is to blame. */
TEST_F(path_fixture, mrd_path_lost__outage_of_all_blames_none)
{
    uint64_t now_ns = SEC_NS;
    uint32_t out, dead;

    for (int round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < PATHS; i++)
            lose_at(self, i, now_ns);
        now_ns += 64 * BASE_NS;
    }
    count_states(self, &out, &dead);
    assert_int_equal(out, PATHS / 2);
    assert_int_equal(dead, 0);
    for (uint32_t i = 0; i < PATHS; i++)
        assert_true(self->path[i].losses_row <= 1);
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
TEST_F(path_fixture, mrd_path_lost__usual)
{
    begin_lossy(self, PATHS, 0.03f);
    for (uint32_t i = 0; i < PATHS; i++) {
        lose_at(self, i, SEC_NS);
        assert_int_equal(self->path[i].state, MRD_PATH_GOOD);
        ack(self, i);
    }
    assert_int_equal(self->paths.num_out, 0);

    begin_lossy(self, PATHS, 0.03f);
    lose_at(self, 7, 2 * SEC_NS);
    ack(self, 8);
    lose_at(self, 7, 2 * SEC_NS);
    assert_int_equal(self->path[7].state, MRD_PATH_SUSPENDED);
    assert_int_equal(self->path[7].until_ns, 2 * SEC_NS + 8 * BASE_NS);
    assert_int_equal(self->paths.num_out, 1);

    begin_lossy(self, PATHS, 0.3f); /* one loss more makes this path no worse than the others */
    lose_at(self, 7, 3 * SEC_NS);
    assert_int_equal(self->path[7].state, MRD_PATH_GOOD);
    ack(self, 8);
    lose_at(self, 7, 3 * SEC_NS);
    assert_int_equal(self->path[7].state, MRD_PATH_SUSPENDED);
    assert_int_equal(self->paths.num_out, 1);
}

/* Losses are not usual where the others have hardly any, nor on a path that has more than they. */
TEST_F(path_fixture, mrd_path_lost__unusual)
{
    begin_lossy(self, PATHS, 0.002f); /* less than usual_share */
    lose_at(self, 3, SEC_NS);
    assert_int_equal(self->path[3].state, MRD_PATH_SUSPENDED);

    begin_lossy(self, PATHS, 0.03f);
    self->path[3].loss_ewma = 0.037f;
    lose_at(self, 3, SEC_NS);
    assert_int_equal(self->path[3].state, MRD_PATH_SUSPENDED);
    assert_int_equal(self->path[3].until_ns, SEC_NS + 4 * BASE_NS);

    begin_lossy(self, PATHS, 0.03f); /* others whose last packet was lost say nothing */
    for (uint32_t i = 0; i < PATHS; i++)
        self->path[i].losses_row = i != 3;
    lose_at(self, 3, SEC_NS);
    assert_int_equal(self->path[3].state, MRD_PATH_SUSPENDED);
}

/* A black hole among paths that lose some packets dies as fast as among those that lose none. */
TEST_F(path_fixture, mrd_path_lost__dies_among_lossy)
{
    uint64_t now_ns = SEC_NS;
    unsigned lost = fail_until_dead(self, 5, &now_ns);

    begin_lossy(self, PATHS, 0.01f);
    now_ns = SEC_NS;
    assert_in_range(fail_until_dead(self, 5, &now_ns), lost, lost + 1);
}

TEST_F(path_fixture, mrd_path_lost__at_most_half_out)
{
    static const uint32_t nums[] = {1, 2, 3, 4, 7, 64};

    for (size_t k = 0; k < sizeof(nums) / sizeof(nums[0]); k++) {
        begin(self, nums[k]);
        for (int round = 0; round < 10; round++)
            for (uint32_t i = 0; i < nums[k]; i++)
                lose_at(self, i, SEC_NS + round);
        assert_int_equal(self->paths.num_out, nums[k] / 2);
    }
}

/* A suspension that is over but that nobody tested makes room for a path that fails now. */
TEST_F(path_fixture, mrd_path_lost__served_suspension_makes_room)
{
    begin(self, 4);
    lose_at(self, 0, SEC_NS);
    lose_at(self, 1, SEC_NS);
    lose_at(self, 2, 2 * SEC_NS);
    assert_int_equal(self->path[2].state, MRD_PATH_SUSPENDED);
    assert_int_equal(self->paths.num_out, 2);
    assert_int_equal(
        (self->path[0].state == MRD_PATH_GOOD) + (self->path[1].state == MRD_PATH_GOOD), 1);
}

/* The one that is out for longest comes back: in a fixed order those behind it never would. */
TEST_F(path_fixture, mrd_path_lost__takes_turns)
{
    bool back[8] = {false};

    begin(self, 8);
    for (uint32_t i = 0; i < 4; i++)
        lose_at(self, i, SEC_NS + i);
    for (unsigned round = 1; round <= 8; round++) {
        for (uint32_t i = 0; i < 8; i++)
            back[i] |= self->path[i].state == MRD_PATH_GOOD;
        for (uint32_t i = 0; i < 8; i++) {
            if (self->path[i].state == MRD_PATH_GOOD) {
                lose_at(self, i, SEC_NS + round * SEC_NS);
                break;
            }
        }
    }
    for (uint32_t i = 0; i < 8; i++)
        assert_true(back[i]);
    assert_int_equal(self->paths.num_out, 4);
}

/* The path has a packet, which it may lose, if it takes any. Returns whether it does. */
static bool carry(struct path_fixture *f, uint32_t index, bool lost, uint64_t now_ns)
{
    if (!mrd_path_usable(&f->path[index], now_ns))
        return false;
    if (lost)
        lose_at(f, index, now_ns);
    else
        ack(f, index);
    return true;
}

/* Most paths are black holes: they die all the same, which makes room. Those that work are left. */
TEST_F(path_fixture, mrd_path_lost__most_paths_die)
{
    uint64_t now_ns = SEC_NS;
    uint32_t out, dead;

    begin(self, 16);
    for (int i = 0; i < 40000; i++) {
        uint32_t index = mrd_rng_below(&self->rng, 16);

        carry(self, index, index < 12, now_ns += 1000);
    }
    count_states(self, &out, &dead);
    assert_int_equal(dead, 12);
    assert_int_equal(out, 12);
    assert_int_equal(self->paths.num_dead, 12);
    lose_at(self, 15, now_ns);
    assert_int_equal(self->path[15].state, MRD_PATH_SUSPENDED);
}

/*
 * Uniform loss of up to 20%: no path ever dies, and never more than half are out (trap: all paths
 * judged dead). A path that is not GOOD is offered a packet whenever it is usable.
 */
TEST_F(path_fixture, mrd_path_lost__uniform_loss_kills_no_path)
{
    static const uint32_t percents[] = {1, 5, 10, 20};

    for (size_t k = 0; k < sizeof(percents) / sizeof(percents[0]); k++) {
        uint64_t now_ns = SEC_NS;

        begin(self, PATHS);
        for (int i = 0; i < 1000000; i++) {
            uint32_t index = mrd_rng_below(&self->rng, PATHS);

            carry(self, index, mrd_rng_below(&self->rng, 100) < percents[k], now_ns += 300);
            assert_int_not_equal(self->path[index].state, MRD_PATH_DEAD);
            assert_true(self->paths.num_out <= PATHS / 2);
        }
        uint32_t out, dead;
        count_states(self, &out, &dead);
        assert_int_equal(out, self->paths.num_out);
    }
}

/* The first loss, then seven failed probes. */
TEST_F(path_fixture, mrd_path_lost__black_hole_dies_after_eight)
{
    uint64_t now_ns = SEC_NS;

    for (int i = 0; i < 100 * PATHS; i++)
        ack(self, i % PATHS);
    assert_int_equal(fail_until_dead(self, 9, &now_ns), 8);
    assert_int_equal(self->path[9].wants_ev, 1);
    assert_true(now_ns - SEC_NS < 300 * BASE_NS);
    assert_int_equal(self->path[9].until_ns, now_ns + SEC_NS);
    assert_int_equal(self->paths.num_out, 1);
}

/* Half of the paths black-holed at once, as by two of four spines: all of these die, no other. */
TEST_F(path_fixture, mrd_path_lost__half_of_paths_dies_at_once)
{
    uint64_t now_ns = SEC_NS;
    uint32_t out, dead;

    for (int i = 0; i < 20000; i++) {
        uint32_t index = mrd_rng_below(&self->rng, PATHS);

        carry(self, index, index % 2, now_ns += 1000);
    }
    count_states(self, &out, &dead);
    assert_int_equal(dead, PATHS / 2);
    assert_int_equal(out, PATHS / 2);
}

/* A bad cable: a third of its packets lost, with acks in between, while the others lose 1%. */
TEST_F(path_fixture, mrd_path_lost__lossy_path_dies_in_the_end)
{
    uint64_t now_ns = SEC_NS;
    unsigned packets = 0;

    begin(self, 8);
    while (self->path[3].state != MRD_PATH_DEAD && packets < 100000) {
        uint32_t index = mrd_rng_below(&self->rng, 8);

        bool lost = mrd_rng_below(&self->rng, 300) < (index == 3 ? 100 : 3);

        packets += carry(self, index, lost, now_ns += 1000) && index == 3;
    }
    assert_in_range(packets, 128, 2000);
    assert_true(self->paths.num_out >= 1);
}

/* With no other path in use there is nothing to compare with. */
TEST_F(path_fixture, mrd_path_lost__only_path_in_use_never_dies)
{
    for (int i = 0; i < 1000; i++) {
        uint64_t now_ns = SEC_NS + (uint64_t)i * 100 * BASE_NS;

        if (i % 3 == 0)
            ack(self, 0);
        else
            lose_at(self, 0, now_ns);
        assert_int_not_equal(self->path[0].state, MRD_PATH_DEAD);
    }
}

/* One tail probe says nothing; the second does, if others worked in between and this path did not. */
TEST_F(path_fixture, mrd_path_suspect__from_the_second_on)
{
    assert_false(mrd_path_suspect(&self->paths, 0));
    assert_false(mrd_path_suspect(&self->paths, 0)); /* the peer is silent */
    ack(self, 1);
    assert_true(mrd_path_suspect(&self->paths, 0));
    assert_false(mrd_path_suspect(&self->paths, 2));
    ack(self, 1);
    mrd_path_came(&self->path[0]);
    assert_false(mrd_path_suspect(&self->paths, 0));
    ack(self, 0);
    assert_false(mrd_path_suspect(&self->paths, 0));
    ack(self, 1);
    mrd_path_replace(&self->paths, 0, 9);
    assert_false(mrd_path_suspect(&self->paths, 0));
}

/* Losses in a row: how many of them are of a failing path follows from what others lose. */
TEST_F(path_fixture, mrd_path_fails__by_the_row)
{
    static const struct {
        uint32_t others_percent, row; /* from that row on the path fails */
    } table[] = {{0, 2}, {5, 2}, {15, 3}, {25, 4}, {50, 4}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_lossy(self, PATHS, (float)table[i].others_percent / 100);
        for (uint32_t row = 1; row <= 5; row++) {
            self->path[0].losses_row = (uint8_t)row;
            assert_int_equal(mrd_path_fails(&self->paths, 0, SEC_NS), row >= table[i].row);
        }
    }
}

/* A path that lost more than one of its last packets, and far more than others do, fails. */
TEST_F(path_fixture, mrd_path_fails__by_its_share)
{
    static const struct {
        double own, others;
        bool fails;
    } table[] = {{0.03, 0, false},    {0.06, 0, true},   {0.06, 0.01, true},
                 {0.06, 0.02, false}, {0.2, 0.04, true}, {0.2, 0.06, false}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_lossy(self, PATHS, (float)table[i].others);
        self->path[0].loss_ewma = (float)table[i].own;
        self->path[0].losses_row = 1;
        assert_int_equal(mrd_path_fails(&self->paths, 0, SEC_NS), table[i].fails);
    }
}

/* Nobody to compare with: only many losses in a row tell. */
TEST_F(path_fixture, mrd_path_fails__alone)
{
    begin(self, 1);
    for (uint32_t row = 1; row <= 5; row++) {
        self->path[0].losses_row = (uint8_t)row;
        self->path[0].loss_ewma = 0.5f;
        assert_int_equal(mrd_path_fails(&self->paths, 0, SEC_NS), row >= 4);
    }
}

static void sample(struct path_fixture *f, uint32_t index, float q_ns, uint64_t at_ns)
{
    f->load[index].q_ns = q_ns;
    f->load[index].q_at_ns = at_ns;
}

/* A queue that all paths share dropped the packet, whichever path it took, or one that it did not take. */
TEST_F(path_fixture, mrd_path_in_queue__of_its_own_or_of_most)
{
    enum { NOW_NS = 100 * BASE_NS, SRTT_NS = 2 * BASE_NS };
    static const struct {
        float own_ns;  /* negative: no sample of late */
        uint32_t with; /* of the others have the delay */
        bool in;
    } table[] = {{2000, 63, true}, {2000, 0, true}, {100, 63, false},
                 {-1, 63, true},   {-1, 40, true},  {-1, 20, false}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(self, PATHS);
        self->paths.q_avg_ns = 2000;
        for (uint32_t p = 1; p < PATHS; p++)
            sample(self, p, p <= table[i].with ? 2000 : 100, NOW_NS - BASE_NS);
        if (table[i].own_ns >= 0)
            sample(self, 0, table[i].own_ns, NOW_NS - BASE_NS);
        else
            sample(self, 0, 100, NOW_NS - 3 * SRTT_NS);
        assert_int_equal(mrd_path_in_queue(&self->paths, 0, 2000, SRTT_NS, NOW_NS), table[i].in);
        /* A delay that is in the least RTT of all paths does not tell them apart. */
        assert_true(mrd_path_in_queue(&self->paths, 0, 10000, SRTT_NS, NOW_NS));
    }
}

/* Once a path failed for sure, what is lost on a path of which nothing is known may be a failure. */
TEST_F(path_fixture, mrd_path_in_queue__not_while_paths_fail)
{
    enum { NOW_NS = 1000 * BASE_NS };

    self->paths.q_avg_ns = 2000;
    for (uint32_t p = 1; p < PATHS; p++) {
        ack(self, p);
        sample(self, p, 2000, NOW_NS);
    }
    assert_true(mrd_path_in_queue(&self->paths, 0, 2000, BASE_NS, NOW_NS));
    self->path[1].losses_row = 4;
    assert_true(mrd_path_fails(&self->paths, 1, NOW_NS));
    assert_false(mrd_path_in_queue(&self->paths, 0, 2000, BASE_NS, NOW_NS));
    assert_true(mrd_path_in_queue(&self->paths, 2, 2000, BASE_NS, NOW_NS));
    for (uint32_t p = 1; p < PATHS; p++)
        sample(self, p, 2000, NOW_NS + 101 * BASE_NS);
    assert_true(mrd_path_in_queue(&self->paths, 0, 2000, BASE_NS, NOW_NS + 101 * BASE_NS));
}
