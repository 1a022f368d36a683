/* SPDX-License-Identifier: BSD-2-Clause */
/* A path: its numbers, its states but for losses, and how it is replaced. */
#include "tests/kit/kit.h"
#include "tests/unit/path_fixture.h"

TEST_F(path_fixture, mrd_paths_init__numbers_paths)
{
    for (uint32_t i = 0; i < PATHS; i++) {
        assert_int_equal(self->path[i].ev, i);
        assert_int_equal(self->path[i].id, i);
        assert_true(mrd_path_usable(&self->path[i], 0));
    }
    assert_int_equal(self->paths.num_out, 0);
}

TEST_F(path_fixture, mrd_path_sent__counts_pseq_per_path)
{
    assert_int_equal(mrd_path_sent(&self->paths, 3), 1);
    assert_int_equal(mrd_path_sent(&self->paths, 3), 2);
    assert_int_equal(mrd_path_sent(&self->paths, 4), 1);
    assert_int_equal(self->load[3].out_packets, 2);
    assert_int_equal(self->path[3].packets, 2);
}

TEST_F(path_fixture, mrd_path_acked__ends_suspension)
{
    mrd_path_sent(&self->paths, 2);
    lose_at(self, 2, SEC_NS);
    assert_int_equal(self->path[2].state, MRD_PATH_SUSPENDED);
    mrd_path_acked(&self->paths, 2);
    assert_int_equal(self->path[2].state, MRD_PATH_GOOD);
}

/* A DEAD path is probed each second; an old packet's ack does not revive it, the probe's does. */
TEST_F(path_fixture, mrd_path_acked__dead_path_revived_by_probe_only)
{
    uint64_t now_ns = SEC_NS;

    mrd_path_sent(&self->paths, 9);
    fail_until_dead(self, 9, &now_ns);
    mrd_path_acked(&self->paths, 9);
    assert_int_equal(self->path[9].state, MRD_PATH_DEAD);

    mrd_path_keep(&self->paths, 9, now_ns);
    assert_int_equal(self->path[9].wants_ev, 0);
    now_ns += SEC_NS;
    assert_false(mrd_path_usable(&self->path[9], now_ns - 1));
    assert_true(mrd_path_usable(&self->path[9], now_ns));
    lose_at(self, 9, now_ns);
    assert_int_equal(self->path[9].until_ns, now_ns + SEC_NS);
    assert_int_equal(self->path[9].wants_ev, 0);
    now_ns += SEC_NS;
    ack(self, 9);
    assert_int_equal(self->path[9].state, MRD_PATH_GOOD);
    assert_int_equal(self->paths.num_out, 0);
    assert_true(self->path[9].loss_ewma < 0.05f);
}

TEST_F(path_fixture, mrd_path_pseq_acked__keeps_two_highest)
{
    static const struct {
        uint32_t ack[4];
        uint32_t highest, second;
    } table[] = {
        {{1, 2, 3, 4}, 4, 3}, {{4, 3, 2, 1}, 4, 3}, {{2, 2, 2, 1}, 2, 1}, {{5, 1, 7, 6}, 7, 6}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(self, 1);
        for (int k = 0; k < 4; k++)
            mrd_path_pseq_acked(&self->path[0], table[i].ack[k]);
        assert_int_equal(self->path[0].pseq_acked[0], table[i].highest);
        assert_int_equal(self->path[0].pseq_acked[1], table[i].second);
    }
}

/* 32 bits of PSEQ wrap. */
TEST_F(path_fixture, mrd_path_pseq_acked__wraps)
{
    begin(self, 1);
    self->path[0].pseq_acked[0] = UINT32_MAX - 1;
    self->path[0].pseq_acked[1] = UINT32_MAX - 2;
    mrd_path_pseq_acked(&self->path[0], 1);
    mrd_path_pseq_acked(&self->path[0], UINT32_MAX);
    assert_int_equal(self->path[0].pseq_acked[0], 1);
    assert_int_equal(self->path[0].pseq_acked[1], UINT32_MAX);
}

/* A forgotten probe (its packet was cancelled) must not keep the path out for ever. */
TEST_F(path_fixture, mrd_path_forgot__probe_may_be_sent_again)
{
    lose_at(self, 0, SEC_NS);
    mrd_path_sent(&self->paths, 0);
    assert_false(mrd_path_usable(&self->path[0], UINT64_MAX - 1));
    mrd_path_forgot(&self->paths, 0);
    assert_true(mrd_path_usable(&self->path[0], SEC_NS));
    assert_int_equal(self->load[0].out_packets, 0);
    assert_int_equal(self->path[0].state, MRD_PATH_SUSPENDED);
}

TEST_F(path_fixture, mrd_path_order_spurious__third_switches_off)
{
    begin(self, 1);
    mrd_path_order_spurious(&self->paths, 0);
    mrd_path_order_spurious(&self->paths, 0);
    assert_int_equal(self->path[0].order_off, 0);
    mrd_path_order_spurious(&self->paths, 0);
    assert_int_equal(self->path[0].order_off, 1);
}

/* Where two paths do not keep order, none does. */
TEST_F(path_fixture, mrd_path_order_spurious__on_two_paths_for_all)
{
    begin(self, 4);
    mrd_path_order_spurious(&self->paths, 0);
    mrd_path_order_spurious(&self->paths, 0);
    assert_false(self->path[0].order_off || self->path[3].order_off);
    mrd_path_order_spurious(&self->paths, 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(self->path[i].order_off);
}

TEST_F(path_fixture, mrd_path_age__falls_slowly)
{
    begin(self, 1);
    mrd_path_age(&self->path[0], 8000);
    mrd_path_age(&self->path[0], 16000);
    assert_int_equal(self->path[0].age_ns, 16000);
    mrd_path_age(&self->path[0], 8000);
    assert_int_equal(self->path[0].age_ns, 15000);
}

/* A loss that was none leaves nothing behind. */
TEST_F(path_fixture, mrd_path_found__takes_the_loss_back)
{
    begin(self, 4);
    ack(self, 0);
    lose_at(self, 0, 20);
    assert_int_equal(self->path[0].state, MRD_PATH_SUSPENDED);
    mrd_path_found(&self->paths, 0);
    assert_int_equal(self->path[0].state, MRD_PATH_GOOD);
    assert_int_equal(self->path[0].losses_row, 0);
    assert_int_equal(self->path[0].lost, 0);
    assert_int_equal(self->paths.num_out, 0);
    assert_true(self->path[0].loss_ewma < 1e-6f && self->paths.loss_avg < 1e-6f);
}

/* One packet is let through after a suspension; the path is back with its ack. */
TEST_F(path_fixture, mrd_path_usable__first_packet_after_expiry_is_probe)
{
    lose_at(self, 5, SEC_NS);
    uint64_t end_ns = self->path[5].until_ns;
    assert_true(mrd_path_usable(&self->path[5], end_ns));
    assert_false(mrd_path_is_good(&self->path[5])); /* not for data */
    mrd_path_sent(&self->paths, 5);
    assert_false(mrd_path_usable(&self->path[5], end_ns + SEC_NS));
    mrd_path_acked(&self->paths, 5);
    assert_true(mrd_path_is_good(&self->path[5]));
    assert_int_equal(self->path[5].losses_row, 0);
    assert_int_equal(self->paths.num_out, 0);
    assert_true(mrd_path_usable(&self->path[5], 0));
}

/* A new id whose remainder is the index, nothing measured, and PSEQs that do not start again. */
TEST_F(path_fixture, mrd_path_replace__fresh_path_under_new_id)
{
    uint64_t now_ns = SEC_NS;

    mrd_path_sample(&self->paths, 9, 100, 1000, 1000, 1);
    fail_until_dead(self, 9, &now_ns);
    self->path[9].rx_count = 7;
    uint32_t pseq = self->path[9].pseq_next;

    mrd_path_replace(&self->paths, 9, 77);
    assert_int_equal(self->path[9].state, MRD_PATH_GOOD);
    assert_int_equal(self->path[9].ev, 77);
    assert_int_equal(self->path[9].id, 9 + PATHS);
    assert_int_equal(self->path[9].rx_count, 0);
    assert_int_equal(self->path[9].packets, 0);
    assert_true(self->load[9].q_ns == MRD_PATH_NO_DELAY);
    assert_int_equal(self->path[9].wants_ev, 0);
    assert_int_equal(self->paths.num_out, 0);
    assert_int_equal(mrd_path_sent(&self->paths, 9), pseq);
}

/* 16 bits of id run out: it starts again at the index, also where num does not divide 65536. */
TEST_F(path_fixture, mrd_path_replace__id_wraps_to_index)
{
    begin(self, 24);
    for (int i = 0; i < 3000; i++) {
        mrd_path_replace(&self->paths, 5, 5);
        assert_int_equal(self->path[5].id % 24, 5);
    }
}

/* ------------------------------------------------------------------------------------ more paths */

/* Eight of sixty-four, as a send state begins. */
static void begin_few(struct path_fixture *f)
{
    begin(f, PATHS);
    mrd_paths_init(&f->paths, f->path, f->load, 8, PATHS, NULL, 1);
}

/* They double up to the most; what is known of the first ones stays. */
TEST_F(path_fixture, mrd_paths_add__doubles)
{
    uint32_t num;

    begin_few(self);
    lose_at(self, 5, SEC_NS);
    mrd_path_sent(&self->paths, 3);
    mrd_path_watch(&self->paths, &self->alloc.ops);
    for (num = 8; mrd_paths_add(&self->paths, &self->alloc.ops); num *= 2)
        assert_int_equal(self->paths.num, 2 * num);
    assert_int_equal(self->paths.num, PATHS);
    assert_int_equal(self->paths.path[3].packets, 1);
    assert_int_equal(self->paths.load[3].out_packets, 1);
    assert_int_equal(self->paths.path[5].state, MRD_PATH_SUSPENDED);
    assert_int_equal(self->paths.num_out, 1);
    for (uint32_t i = 8; i < PATHS; i++) {
        assert_int_equal(self->paths.path[i].ev, i);
        assert_true(mrd_path_of_id(&self->paths, i) == &self->paths.path[i]);
        assert_true(mrd_path_is_good(&self->paths.path[i]));
        assert_true(self->paths.load[i].q_ns == MRD_PATH_NO_DELAY);
        assert_true(self->paths.path[i].watch != self->paths.watch); /* it was not watched */
    }
    mrd_path_watch(&self->paths, &self->alloc.ops); /* there is a note for each of them */
}

/* Ids of paths to come, and of those that were replaced, are nobody's. */
TEST_F(path_fixture, mrd_path_of_id__whose_it_is)
{
    begin_few(self);
    assert_null(mrd_path_of_id(&self->paths, 8));
    assert_null(mrd_path_of_id(&self->paths, PATHS + 2));
    mrd_path_replace(&self->paths, 2, 1000);
    assert_null(mrd_path_of_id(&self->paths, 2));
    assert_true(mrd_path_of_id(&self->paths, PATHS + 2) == &self->path[2]);
    assert_true(mrd_paths_add(&self->paths, &self->alloc.ops));
    assert_true(mrd_path_of_id(&self->paths, PATHS + 2) == &self->paths.path[2]);
}

/* Without memory those that are there go on, whichever of the blocks is wanting. */
TEST_F(path_fixture, mrd_paths_add__no_memory)
{
    for (uint32_t nth = 1; nth <= 2; nth++) {
        begin_few(self);
        mrd_path_watch(&self->paths, &self->alloc.ops);
        self->alloc.fail_at = self->alloc.requests + nth;
        assert_false(mrd_paths_add(&self->paths, &self->alloc.ops));
        assert_int_equal(self->paths.num, 8);
        assert_int_equal(mrd_path_sent(&self->paths, 7), 1);
        assert_true(mrd_paths_add(&self->paths, &self->alloc.ops));
        assert_int_equal(mrd_path_sent(&self->paths, 7), 2);
    }
}

/* Where no path may be relied on for its order, no new one is; a new one is as long as the rest. */
TEST_F(path_fixture, mrd_paths_add__as_the_others)
{
    begin_few(self);
    mrd_path_order_spurious(&self->paths, 0);
    mrd_path_order_spurious(&self->paths, 1);
    for (uint32_t i = 0; i < 8; i++) {
        self->path[i].excess_ns = i == 4 ? 20000 : 30000;
        self->load[i].weight = i == 4 ? 3 : 2;
    }
    assert_true(mrd_paths_add(&self->paths, &self->alloc.ops));
    assert_true(self->paths.path[9].order_off);
    assert_float_equal(self->paths.path[9].excess_ns, 20000, 0.1);
    assert_float_equal(self->paths.load[9].weight, 3, 0.01);
}
