/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets are lost, and which losses were none. */
#include "tests/unit/loss_fixture.h"

TEST_F(loss_fixture, mrd_loss_acked__is_progress)
{
    send_at(self, 0, PATH_A, 100);
    self->loss.probes = 3;
    assert_true(ack_at(self, 0, 100 + RTT));
    assert_int_equal(self->loss.probes, 0);
    assert_int_equal(self->loss.progress_ns, 100 + RTT);
    assert_int_equal(self->loss.rack_tx_ns, 100);
}

/*
 * A repeated packet's ack may be for any of its copies. Unless the echo names the last one it says
 * nothing of when that left, and must not make what was sent in between look late.
 */
TEST_F(loss_fixture, mrd_loss_acked__of_a_copy_that_is_not_known)
{
    for (uint32_t i = 0; i < 3; i++)
        send_at(self, i, PATH_A, i);
    send_at(self, 0, PATH_B, 20000);
    send_at(self, 1, PATH_B, 30000);
    assert_false(ack_echoed_at(self, 0, false, 90000));
    assert_int_equal(self->loss.rack_tx_ns, 0);
    assert_int_equal(self->loss.progress_ns, 90000);
    assert_true(ack_echoed_at(self, 1, true, 90000));
    assert_int_equal(self->loss.rack_tx_ns, 30000);
}

/* The lateness of a packet that arrives after a later-sent one is what the window must forgive. */
TEST_F(loss_fixture, mrd_loss_acked__measures_skew)
{
    for (uint32_t i = 0; i < 4; i++)
        send_at(self, i, (uint16_t)i, 1000 * i);
    ack_at(self, 3, RTT);
    assert_int_equal(self->loss.skew_ns, 0);
    ack_at(self, 2, RTT + 1);
    assert_int_equal(self->loss.skew_ns, 1000);
    ack_at(self, 0, RTT + 2);
    assert_int_equal(self->loss.skew_ns, 3000);
    ack_at(self, 1, RTT + 3);
    assert_int_equal(self->loss.skew_ns, 3000);
}

/* After eight RTTs a smaller one counts. */
TEST_F(loss_fixture, mrd_loss_acked__skew_decays)
{
    send_at(self, 0, PATH_A, 0);
    send_at(self, 1, PATH_B, 5000);
    ack_at(self, 1, 15000);
    ack_at(self, 0, 15000);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t now = 15000 + 8 * RTT + i;

        send_at(self, 2 + 2 * i, PATH_A, now - 100);
        send_at(self, 3 + 2 * i, PATH_B, now - 90);
        ack_at(self, 3 + 2 * i, now);
        ack_at(self, 2 + 2 * i, now);
        assert_int_equal(self->loss.skew_ns, i ? 10 : 5000);
    }
}

/* A retransmission is late by design. */
TEST_F(loss_fixture, mrd_loss_acked__retransmissions_have_no_skew)
{
    send_at(self, 0, PATH_A, 0);
    send_at(self, 0, PATH_A, 1000);
    send_at(self, 1, PATH_B, 9000);
    ack_at(self, 1, 9000 + RTT);
    assert_true(ack_echoed_at(self, 0, true, 9000 + RTT));
    assert_int_equal(self->loss.skew_ns, 0);
}

TEST(mrd_loss_window_ns__table)
{
    static const struct {
        uint64_t srtt, least, skew;
        uint32_t steps;
        uint64_t window;
    } table[] = {
        {10000, 4000, 0, 0, 5000},     /* 1.25 minRTT */
        {10000, 4000, 2000, 0, 5000},  /* 2 x skew is less */
        {10000, 4000, 3000, 0, 6000},  /* 2 x skew is more */
        {10000, 4000, 9000, 0, 10000}, /* at most SRTT */
        {10000, 10000, 0, 0, 10000},
        {10000, 4000, 0, 3, 12500}, /* and SRTT / 4 for each spurious retransmission */
        {10000, 4000, 9000, 16, 50000},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_loss l;

        mrd_loss_init(&l, NULL, 0);
        l.srtt_ns = table[i].srtt;
        l.min_cur_ns = table[i].least;
        l.skew_ns = table[i].skew;
        l.steps = table[i].steps;
        assert_int_equal(mrd_loss_window_ns(&l), table[i].window);
    }
}

/* Two later packets of the same path are acked: lost, and only that packet. */
TEST_F(loss_fixture, mrd_loss_next__gap_on_same_path)
{
    send_at(self, 0, PATH_A, 0);
    send_at(self, 1, PATH_B, 5);
    send_at(self, 2, PATH_A, 10);
    send_at(self, 3, PATH_A, 15);
    ack_at(self, 2, 1000);
    assert_int_equal(detect(self, 1000), 0); /* one may have overtaken it in a NIC queue */
    ack_at(self, 3, 1005);
    assert_int_equal(detect(self, 1005), 1);
    assert_int_equal(self->lost[0], 0);
    assert_int_equal(self->cause[0], MRD_LOSS_BY_ORDER);
}

/* Spraying reorders across paths: any number of later packets of other paths prove nothing. */
TEST_F(loss_fixture, mrd_loss_next__other_paths_prove_nothing)
{
    send_at(self, 0, PATH_A, 0);
    for (uint32_t i = 1; i < 100; i++)
        send_at(self, i, (uint16_t)(1 + i % 3), i);
    for (uint32_t i = 1; i < 100; i++)
        ack_at(self, i, RTT + i);
    assert_int_equal(detect(self, RTT + 100), 0);
}

TEST_F(loss_fixture, mrd_loss_next__order_is_off_where_it_was_wrong)
{
    self->path[PATH_A].order_off = 1;
    for (uint32_t i = 0; i < 5; i++)
        send_at(self, i, PATH_A, i);
    for (uint32_t i = 1; i < 4; i++)
        ack_at(self, i, 1000);
    assert_int_equal(detect(self, 1000), 0);
    self->path[PATH_A].order_off = 0;
    ack_at(self, 4, 1000);
    assert_int_equal(detect(self, 1000), 1);
}

/* Per-path numbers wrap. */
TEST_F(loss_fixture, mrd_loss_next__order_across_the_wrap_of_pseq)
{
    self->path[PATH_A].pseq_next = UINT32_MAX - 1;
    self->path[PATH_A].pseq_acked[0] = self->path[PATH_A].pseq_acked[1] = UINT32_MAX - 2;
    for (uint32_t i = 0; i < 4; i++)
        send_at(self, i, PATH_A, i);
    assert_int_equal(detect(self, 1000), 0);
    ack_at(self, 2, 1000);
    ack_at(self, 3, 1000);
    assert_int_equal(detect(self, 1000), 2);
}

/* Across paths: lost when a later one is acked, its RTT and the window after it was sent. */
TEST_F(loss_fixture, mrd_loss_next__by_time_after_a_window)
{
    const uint64_t window = RTT; /* min(SRTT, 1.25 minRTT) */

    send_at(self, 0, PATH_A, 100);
    send_at(self, 1, PATH_B, 200);
    ack_at(self, 1, 200 + RTT);
    assert_int_equal(detect(self, 200 + RTT), 0);
    assert_int_equal(self->loss.rack_ns, 100 + RTT + window);
    assert_int_equal(detect(self, self->loss.rack_ns - 1), 0);
    assert_int_equal(detect(self, self->loss.rack_ns), 1);
    assert_int_equal(self->lost[0], 0);
    assert_int_equal(self->cause[0], MRD_LOSS_BY_RACK);
}

/* However old: without an ack of something sent later it is the tail's business. */
TEST_F(loss_fixture, mrd_loss_next__never_without_a_later_ack)
{
    send_at(self, 0, PATH_A, 0);
    send_at(self, 1, PATH_B, 100);
    send_at(self, 2, PATH_B, 200);
    ack_at(self, 0, RTT);
    assert_int_equal(detect(self, 1000 * RTT), 0);
    assert_true(self->loss.rack_ns == MRD_NEVER);
}

/* A retransmission counts from its own departure. */
TEST_F(loss_fixture, mrd_loss_next__retransmission_starts_anew)
{
    send_at(self, 0, PATH_A, 0);
    send_at(self, 1, PATH_B, 10);
    ack_at(self, 1, RTT + 10);
    assert_int_equal(detect(self, 3 * RTT), 1);
    send_at(self, 0, PATH_B, 3 * RTT);
    assert_int_equal(detect(self, 100 * RTT), 0);
    send_at(self, 2, PATH_A, 3 * RTT + 10);
    ack_at(self, 2, 4 * RTT + 10);
    assert_int_equal(detect(self, 5 * RTT - 1), 0);
    assert_int_equal(detect(self, 5 * RTT), 1);
}

/* A packet of a path whose packets take longer is not lost when others would be. */
TEST(mrd_loss_next__longer_path_has_longer)
{
    static struct loss_fixture fixture;
    struct loss_fixture *f = &fixture;

    begin_with_rtt(f);
    mrd_path_age(&f->path[PATH_B], 10 * RTT);
    send_at(f, 0, PATH_A, 0);
    send_at(f, 1, PATH_B, 0);
    send_at(f, 2, PATH_A, 10);
    ack_at(f, 2, RTT);
    assert_int_equal(detect(f, 3 * RTT), 1);
    assert_int_equal(f->lost[0], 0);
    assert_int_equal(f->loss.rack_ns, 12 * RTT + RTT / 2);
    assert_int_equal(detect(f, 12 * RTT), 0);
    assert_int_equal(detect(f, 12 * RTT + RTT / 2), 1);
    assert_int_equal(f->lost[0], 1);
    end(f);
}

TEST(mrd_loss_log__keeps_the_newest)
{
    struct mrd_sent rec = {0};
    struct mrd_loss l;
    struct unit_alloc alloc;
    unsigned known = 0;

    unit_alloc_init(&alloc);
    mrd_loss_init(&l, NULL, 0);
    assert_null(mrd_loss_spurious(&l, 0, 0));
    for (rec.psn = 0; rec.psn < MRD_RETX_LOG + 5; rec.psn++)
        mrd_loss_log(&l, &alloc.ops, &rec, 0);
    for (uint32_t psn = 0; psn < 5; psn++)
        assert_null(mrd_loss_spurious(&l, psn, 0));
    for (uint32_t psn = 5; psn < MRD_RETX_LOG + 5; psn++)
        known += mrd_loss_spurious(&l, psn, 0) != NULL;
    assert_int_equal(known, MRD_RETX_LOG);
    assert_int_equal(l.steps, 16); /* the window's growth has an end */
    mrd_loss_fini(&l, &alloc.ops);
    assert_int_equal(alloc.live_bytes, 0);
}

TEST_F(loss_fixture, mrd_loss_spurious__widens_the_window_once)
{
    send_at(self, 0, PATH_A, 0);
    mrd_sent_get(&self->s, 0)->by_order = 1;
    mrd_loss_log(&self->loss, &self->alloc.ops, mrd_sent_get(&self->s, 0), PATH_B);
    struct mrd_retx *r = mrd_loss_spurious(&self->loss, 0, 1);
    assert_non_null(r);
    assert_true(r->by_order);
    assert_int_equal(r->old_path, PATH_B);
    assert_int_equal(self->loss.steps, 1);
    assert_null(mrd_loss_spurious(&self->loss, 0, 2)); /* the same report again */
    assert_int_equal(self->loss.steps, 1);
}

/* Probes and second copies are meant to arrive twice. */
TEST_F(loss_fixture, mrd_loss_spurious__not_of_deliberate_copies)
{
    send_at(self, 0, PATH_A, 0);
    mrd_sent_get(&self->s, 0)->deliberate = 1;
    mrd_loss_log(&self->loss, &self->alloc.ops, mrd_sent_get(&self->s, 0), PATH_A);
    assert_null(mrd_loss_spurious(&self->loss, 0, 1));
    assert_int_equal(self->loss.steps, 0);
}

/* A duplicate made by the network: nobody retransmitted it. */
TEST_F(loss_fixture, mrd_loss_spurious__not_of_what_was_never_resent)
{
    assert_null(mrd_loss_spurious(&self->loss, 0, 1));
    assert_int_equal(self->loss.steps, 0);
}
