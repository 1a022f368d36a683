/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/spray.h"
#include "mrd/mrd.h"
#include "tests/kit/kit.h"

enum { PATHS = 64, BASE_NS = 10000 };

static const char *const names[] = {"single", "rr", "random", "reps", "adaptive"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

FIXTURE(spray_fixture)
{
    struct mrd_path path[PATHS];
    struct mrd_path_load load[PATHS];
    struct mrd_paths paths;
    struct mrd_spray spray;
    struct mrd_spray_args args;
    struct mrd_rng rng;
    uint32_t picked[PATHS];
    uint16_t cache[MRD_SPRAY_CACHE];
};

FIXTURE_FROM(spray_fixture, kit_nothing, kit_nothing);

static void begin(struct spray_fixture *f, const char *name, uint32_t num)
{
    const struct mrd_spray_ops *ops = mrd_spray_find(name);

    memset(f, 0, sizeof(*f));
    mrd_paths_init(&f->paths, f->path, f->load, num, num, NULL, 1);
    mrd_rng_init(&f->rng, 11);
    f->args = (struct mrd_spray_args){.now_ns = 1000,
                                      .base_rtt_ns = BASE_NS,
                                      .avoid = -1,
                                      .rng = &f->rng,
                                      .tune = &mrd_tune_default};
    f->spray.cache = f->cache;
    ops->init(&f->spray, &f->paths, &f->rng);
    assert_ptr_equal(f->spray.ops, ops);
}

static uint32_t pick(struct spray_fixture *f)
{
    uint32_t index = f->spray.ops->pick(&f->spray, &f->paths, &f->args);

    assert_true(index < f->paths.num);
    f->picked[index]++;
    return index;
}

static void suspend_until(struct spray_fixture *f, uint32_t index, uint64_t until_ns)
{
    f->path[index].state = MRD_PATH_SUSPENDED;
    f->path[index].until_ns = until_ns;
    f->paths.num_out++;
}

static void declare_dead(struct spray_fixture *f, uint32_t index)
{
    f->path[index].state = MRD_PATH_DEAD;
    f->paths.num_dead++;
}

TEST_F(spray_fixture, mrd_spray_find__by_name)
{
    for (size_t i = 0; i < NAMES; i++)
        assert_string_equal(mrd_spray_find(names[i])->name, names[i]);
    assert_ptr_equal(mrd_spray_find(NULL), &mrd_spray_adaptive);
    assert_null(mrd_spray_find("ecmp"));
    assert_null(mrd_spray_find(""));
}

/* The library names all policies, the default first; and all are in the tests of this file. */
TEST(mrd_spray_names__each_is_found)
{
    const char *const *known = mrd_spray_names();
    unsigned num = 0;

    assert_string_equal(known[0], mrd_spray_find(NULL)->name);
    for (; known[num]; num++)
        assert_string_equal(mrd_spray_find(known[num])->name, known[num]);
    assert_int_equal(num, NAMES);
}

/* All but the baseline take only what is GOOD. */
TEST_F(spray_fixture, mrd_spray_pick__skips_suspended)
{
    for (size_t k = 1; k < NAMES; k++) {
        begin(self, names[k], PATHS);
        for (uint32_t i = 0; i < PATHS; i += 2)
            suspend_until(self, i, 5000);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(pick(self) % 2, 1);
        for (uint32_t i = 1; i < PATHS; i += 2)
            assert_true(self->picked[i] > 0);
    }
}

/* Also not one whose suspension is over: the engine probes it with an empty packet first. */
TEST_F(spray_fixture, mrd_spray_pick__leaves_probes_to_the_engine)
{
    for (size_t k = 1; k < NAMES; k++) {
        begin(self, names[k], 4);
        suspend_until(self, 0, 500);
        suspend_until(self, 2, 500);
        declare_dead(self, 2);
        for (int avoid = -1; avoid < 3; avoid++) {
            self->args.avoid = avoid;
            for (int i = 0; i < 100; i++) {
                if (self->spray.ops->acked)
                    self->spray.ops->acked(&self->spray, 2 * (i & 1), false);
                assert_int_equal(pick(self) % 2, 1);
            }
        }
    }
}

/* A retransmission leaves the path that it was lost on, if there is another. */
TEST_F(spray_fixture, mrd_spray_pick__avoids)
{
    for (size_t k = 1; k < NAMES; k++) {
        begin(self, names[k], 4);
        self->args.avoid = 2;
        suspend_until(self, 0, 5000);
        for (int i = 0; i < 100; i++) {
            uint32_t index = pick(self);
            assert_true(index == 1 || index == 3);
            if (self->spray.ops->acked)
                self->spray.ops->acked(&self->spray, 2, false);
        }
        suspend_until(self, 1, 5000);
        suspend_until(self, 3, 5000);
        assert_int_equal(pick(self), 2);
    }
}

TEST_F(spray_fixture, mrd_spray_pick__one_path)
{
    for (size_t k = 0; k < NAMES; k++) {
        begin(self, names[k], 1);
        self->args.avoid = 0;
        assert_int_equal(pick(self), 0);
        suspend_until(self, 0, UINT64_MAX);
        assert_int_equal(pick(self), 0);
    }
}

/* None usable: a suspended one before a dead one, the first due, the one to avoid last. */
TEST_F(spray_fixture, mrd_spray_pick__none_usable)
{
    for (size_t k = 1; k < NAMES; k++) {
        begin(self, names[k], 4);
        suspend_until(self, 0, 9000);
        suspend_until(self, 1, 4000);
        suspend_until(self, 2, 6000);
        suspend_until(self, 3, 2000);
        declare_dead(self, 3);
        assert_int_equal(pick(self), 1);
        self->args.avoid = 1;
        assert_int_equal(pick(self), 2);
        self->args.now_ns = 10000; /* all have served their time: that makes none good */
        assert_int_equal(pick(self), 2);
    }
}

TEST_F(spray_fixture, single_pick__never_moves)
{
    begin(self, "single", PATHS);
    uint32_t first = pick(self);
    suspend_until(self, first, 5000);
    self->args.avoid = (int)first;
    for (int i = 0; i < 100; i++)
        assert_int_equal(pick(self), first);
}

TEST_F(spray_fixture, single_init__differs_by_seed)
{
    uint64_t seen = 0;

    begin(self, "single", PATHS);
    for (int i = 0; i < 200; i++) {
        self->spray.ops->init(&self->spray, &self->paths, &self->rng);
        seen |= UINT64_C(1) << pick(self);
    }
    assert_true(__builtin_popcountll(seen) > PATHS / 2);
}

TEST_F(spray_fixture, rr_pick__takes_turns)
{
    begin(self, "rr", 5);
    uint32_t first = pick(self);
    for (uint32_t i = 1; i < 20; i++)
        assert_int_equal(pick(self), (first + i) % 5);
}

TEST_F(spray_fixture, random_pick__is_even)
{
    begin(self, "random", 8);
    for (int i = 0; i < 8000; i++)
        pick(self);
    for (uint32_t i = 0; i < 8; i++)
        assert_in_range(self->picked[i], 850, 1150);
}

/* Nothing cached: every path once before any twice. */
TEST_F(spray_fixture, reps_pick__explores_in_turn)
{
    begin(self, "reps", PATHS);
    for (int i = 0; i < 2 * PATHS; i++)
        pick(self);
    for (uint32_t i = 0; i < PATHS; i++)
        assert_int_equal(self->picked[i], 2);
}

TEST_F(spray_fixture, reps_pick__recycles_unmarked_in_order)
{
    begin(self, "reps", PATHS);
    self->spray.ops->acked(&self->spray, 7, false);
    self->spray.ops->acked(&self->spray, 3, false);
    self->spray.ops->acked(&self->spray, 3, false); /* the same quantum */
    self->spray.ops->acked(&self->spray, 9, false);
    self->spray.ops->acked(&self->spray, 5, true);
    assert_int_equal(pick(self), 7);
    assert_int_equal(pick(self), 3);
    assert_int_equal(pick(self), 9);
    uint32_t explored = pick(self);
    assert_int_equal(pick(self), (explored + 1) % PATHS);
}

TEST_F(spray_fixture, reps_lost__forgets_path)
{
    begin(self, "reps", PATHS);
    for (int i = 0; i < 3; i++) {
        self->spray.ops->acked(&self->spray, 7, false);
        self->spray.ops->acked(&self->spray, 3, false);
        self->spray.ops->acked(&self->spray, 8, false);
    }
    self->spray.ops->lost(&self->spray, 7);
    self->spray.ops->acked(&self->spray, 3, true);
    assert_int_equal(pick(self), 8);
    assert_int_equal(pick(self), 8);
    assert_int_equal(pick(self), 8);
    assert_int_equal(self->spray.cache_head, self->spray.cache_tail);
}

/* A full cache loses its oldest. */
TEST_F(spray_fixture, reps_acked__bounded)
{
    begin(self, "reps", PATHS);
    for (uint32_t i = 0; i < 10 * MRD_SPRAY_CACHE + 2; i++)
        self->spray.ops->acked(&self->spray, i % PATHS, false);
    assert_int_equal((uint16_t)(self->spray.cache_tail - self->spray.cache_head), MRD_SPRAY_CACHE);
    assert_int_equal(pick(self), 2);
}

TEST_F(spray_fixture, adaptive_pick__least_out_then_delay)
{
    /* U is 6000 ns here, the noise 2000 ns; q_ns below 0: no sample, so the average of 10000. */
    static const struct {
        uint32_t out[4];
        float q_ns[4];
        uint32_t expect;
    } table[] = {
        {{3, 2, 1, 2}, {0, 0, 0, 0}, 2},
        {{1, 1, 1, 1}, {5000, 3000, 1000, 7000}, 2},
        {{0, 1, 1, 1}, {5900, 0, 0, 0}, 0},
        {{0, 1, 1, 1}, {8100, 50, 2100, 4100}, 1},
        {{1, 1, 1, 1}, {13000, 14000, 15000, -1}, 3},
        {{1, 1, 1, 1}, {11000, 9000, 13000, -1}, 1},
    };

    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        begin(self, "adaptive", 4);
        self->paths.q_avg_ns = 10000;
        for (uint32_t i = 0; i < 4; i++) {
            self->load[i].out_packets = table[k].out[i];
            self->load[i].q_ns = table[k].q_ns[i];
        }
        for (int i = 0; i < 10; i++)
            assert_int_equal(pick(self), table[k].expect);
    }
}

TEST_F(spray_fixture, adaptive_pick__ties_in_turn)
{
    begin(self, "adaptive", 8);
    for (uint32_t i = 0; i < 8; i += 2)
        self->load[i].out_packets = 1;
    self->load[5].q_ns = 0.09f * BASE_NS; /* as good as nothing */
    for (int i = 0; i < 4000; i++)
        pick(self);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(self->picked[i], i % 2 ? 1000 : 0);
}

/* Behind a queue that all paths share, those seen empty do not get all of a window's packets. */
TEST_F(spray_fixture, adaptive_pick__shared_queue)
{
    begin(self, "adaptive", 8);
    self->paths.q_avg_ns = 30 * BASE_NS;
    for (uint32_t i = 0; i < 8; i++)
        self->load[i].q_ns = i ? 31 * BASE_NS : 0;
    for (int i = 0; i < 24; i++)
        mrd_path_sent(&self->paths, pick(self));
    assert_in_range(self->picked[0], 4, 7); /* of U = 0.3 RTTs it is ahead by 3 or 4 packets */
}

/* The score of a path, as spray_adaptive.c has it at its top. */
static float adaptive_score(const struct spray_fixture *f, uint32_t index)
{
    const struct mrd_tune_adaptive *tune = &f->args.tune->adaptive;
    const struct mrd_path_load *load = &f->load[index];
    float base_ns = BASE_NS, average_ns = f->paths.q_avg_ns, q_ns = load->q_ns;
    float rtt_ns = base_ns + average_ns;
    float noise_ns = (float)tune->noise_rtts * rtt_ns;
    float fade = 1 / ((float)tune->fade_rtts * base_ns);
    float weight = 1 - (float)(int64_t)(f->args.now_ns - load->q_at_ns) * fade;

    if (q_ns < 0 || (q_ns > average_ns && weight <= 0))
        q_ns = average_ns;
    else if (q_ns > average_ns)
        q_ns = average_ns + (q_ns - average_ns) * weight;
    if (noise_ns > 0 && q_ns < 1e9f)
        q_ns = (float)(int64_t)(q_ns / noise_ns) * noise_ns;
    return (float)(int32_t)load->out_packets * ((float)tune->unit_rtts * rtt_ns) * load->weight +
           q_ns;
}

/* The path that the scores of all name: of those that tie the next in turn. */
static uint32_t adaptive_choice(const struct spray_fixture *f)
{
    uint32_t best = PATHS;

    for (uint32_t k = 0; k < f->paths.num; k++) {
        uint32_t i = (f->spray.next + k) % f->paths.num;

        if ((int)i != f->args.avoid && mrd_path_is_good(&f->path[i]) &&
            (best == PATHS || adaptive_score(f, i) < adaptive_score(f, best)))
            best = i;
    }
    return best;
}

/* What a pick leaves out, as it cannot be the least, changes no choice: delays of all sizes. */
TEST_F(spray_fixture, adaptive_pick__least_score)
{
    static const double noises_rtts[] = {0, 1e-9, 1e-4, 0.1, 0.5};
    static const uint32_t delays_ns[] = {1, 100, 1000, 20000, 2000000000};
    struct mrd_tune tune = mrd_tune_default;
    struct mrd_rng rng;

    mrd_rng_init(&rng, 5);
    begin(self, "adaptive", PATHS);
    self->args.tune = &tune;
    self->args.now_ns = 1000000;
    suspend_until(self, 9, 10 * self->args.now_ns);
    for (unsigned k = 0; k < 10000; k++) {
        uint32_t delay_ns = delays_ns[mrd_rng_below(&rng, 5)];
        uint32_t out_packets = 1 + mrd_rng_below(&rng, 4);

        tune.adaptive.noise_rtts = noises_rtts[mrd_rng_below(&rng, 5)];
        self->paths.q_avg_ns = (float)mrd_rng_below(&rng, delay_ns);
        self->args.avoid = (int)mrd_rng_below(&rng, PATHS);
        for (uint32_t i = 0; i < PATHS; i++) {
            self->load[i].out_packets = mrd_rng_below(&rng, out_packets);
            self->load[i].q_ns = (float)mrd_rng_below(&rng, delay_ns);
            self->load[i].q_at_ns = self->args.now_ns - mrd_rng_below(&rng, 40 * BASE_NS);
            self->load[i].weight = k % 2 ? 1 : (float)(1 + mrd_rng_below(&rng, 8)) / 4;
            if (mrd_rng_below(&rng, 4) == 0)
                self->load[i].q_ns = MRD_PATH_NO_DELAY;
        }

        uint32_t choice = adaptive_choice(self);

        assert_int_equal(pick(self), choice);
    }
}

/* While nothing is acked, what is outstanding says nothing: the emptiest path may be a dead one. */
TEST_F(spray_fixture, adaptive_pick__blind_tries_all)
{
    begin(self, "adaptive", 8);
    self->args.blind = true;
    self->args.avoid = 7;
    for (uint32_t i = 0; i < 8; i++) {
        self->load[i].out_packets = i;
        self->load[i].q_ns = (float)(1000 * i);
    }
    suspend_until(self, 0, 10 * self->args.now_ns);
    for (int i = 0; i < 6000; i++)
        pick(self);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(self->picked[i], i == 0 || i == 7 ? 0 : 1000);
}

/* Before the first RTT sample the paths still fill evenly. */
TEST_F(spray_fixture, adaptive_pick__no_base_rtt)
{
    begin(self, "adaptive", PATHS);
    self->args.base_rtt_ns = 0;
    for (int i = 0; i < 3 * PATHS; i++)
        mrd_path_sent(&self->paths, pick(self));
    for (uint32_t i = 0; i < PATHS; i++)
        assert_int_equal(self->picked[i], 3);
}

/* A slow path takes its share and no more: one of eight has a fifth of the others' speed. */
TEST_F(spray_fixture, adaptive_pick__load_follows_speed)
{
    begin(self, "adaptive", 8);
    for (int t = 0; t < 20000; t++) {
        self->args.now_ns += 100;
        if (t % 2 == 0)
            mrd_path_sent(&self->paths, pick(self));
        for (uint32_t i = 0; i < 8; i++) {
            if (self->load[i].out_packets && t % (i == 3 ? 50 : 10) == 0)
                mrd_path_acked(&self->paths, i);
        }
    }
    assert_in_range(self->picked[3], 300, 600); /* an even share would be 1250 */
}
