/* SPDX-License-Identifier: BSD-2-Clause */
/* Round trips, and how long is waited for the tail. */
#include "tests/unit/loss_fixture.h"

/* RFC 6298: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|, SRTT = 7/8 SRTT + 1/8 R; first R and R/2. */
TEST(mrd_loss_rtt__follows_rfc_6298)
{
    static const struct {
        uint64_t rtt, srtt, rttvar;
    } table[] = {{8000, 8000, 4000}, {8000, 8000, 3000}, {16000, 9000, 4250}, {1000, 8000, 5187}};
    struct loss_fixture f;

    begin(&f);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        mrd_loss_rtt(&f.loss, table[i].rtt, 0);
        assert_int_equal(f.loss.srtt_ns, table[i].srtt);
        assert_in_range(f.loss.rttvar_ns, table[i].rttvar - 2, table[i].rttvar + 2); /* rounding */
    }
    end(&f);
}

/* A sample of nothing is one, so that 0 can mean that there was none. */
TEST(mrd_loss_rtt__is_never_zero)
{
    struct loss_fixture f;

    begin(&f);
    assert_int_equal(mrd_loss_rtt_min_ns(&f.loss), 0);
    mrd_loss_rtt(&f.loss, 0, 0);
    assert_int_equal(f.loss.srtt_ns, 1);
    assert_int_equal(mrd_loss_rtt_min_ns(&f.loss), 1);
    end(&f);
}

/* A stall ends for all at the same time; on a way that is longer all packets take as long. */
TEST(mrd_loss_stalled__later_packets_take_as_long)
{
    static struct loss_fixture fixture;
    struct loss_fixture *f = &fixture;

    begin_with_rtt(f);
    assert_true(mrd_loss_stalled(&f->loss, 0, 40 * RTT));
    assert_true(mrd_loss_stalled(&f->loss, RTT, 39 * RTT));
    assert_true(mrd_loss_stalled(&f->loss, 20 * RTT, 20 * RTT));
    assert_int_equal(f->loss.srtt_ns, RTT);
    assert_true(mrd_loss_stalled(&f->loss, 400 * RTT, 40 * RTT));
    assert_true(mrd_loss_stalled(&f->loss, 405 * RTT, 40 * RTT));
    assert_false(mrd_loss_stalled(&f->loss, 415 * RTT, 40 * RTT));
    assert_int_equal(f->loss.srtt_ns, 40 * RTT);
    end(f);
}

/* A least RTT is kept for five to ten seconds: routes change. */
TEST(mrd_loss_rtt_min_ns__forgets_after_two_windows)
{
    static const struct {
        uint64_t ms, rtt, least;
    } table[] = {
        {0, 5000, 5000},     {1000, 9000, 5000},  {4999, 7000, 5000},  {5001, 8000, 5000},
        {10000, 8000, 5000}, {10002, 9000, 8000}, {15004, 9000, 9000},
    };
    struct loss_fixture f;

    begin(&f);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        mrd_loss_rtt(&f.loss, table[i].rtt, table[i].ms * MRD_MSEC);
        assert_int_equal(mrd_loss_rtt_min_ns(&f.loss), table[i].least);
    }
    end(&f);
}

TEST(mrd_loss_rto_ns__table)
{
    static const struct {
        uint64_t srtt, var, floor;
        uint32_t ack_delay;
        uint64_t rto;
    } table[] = {
        {10000, 0, 100000, 0, 100000},
        {10000, 30000, 100000, 0, 130000},
        {10000, 30000, 100000, 7000, 137000},
        {0, 0, 100000, 0, 1000000}, /* before the first sample: 1 ms */
        {0, 0, 2000000, 500, 2000500},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_loss l;

        mrd_loss_init(&l, NULL, 0);
        l.srtt_ns = table[i].srtt;
        l.rttvar_ns = table[i].var;
        l.peer_ack_delay_ns = table[i].ack_delay;
        assert_int_equal(mrd_loss_rto_ns(&l, table[i].floor), table[i].rto);
    }
}

/* SRTT 8000, last send at 100000, progress at 90000, RTO floor 40000, ack delay 500. */
TEST(mrd_loss_tail_ns__table)
{
    static const struct {
        uint32_t probes;
        bool full;
        double cwnd;
        uint64_t after; /* the last send */
    } table[] = {
        {0, true, 10, 10000 + 500}, /* 1.25 SRTT, three times */
        {1, true, 10, 10000 + 500},
        {2, true, 10, 10000 + 500},
        {3, true, 10, 40000 + 500}, /* then the RTO: four times, doubling, up to 256 times */
        {6, true, 10, 40000 + 500},
        {7, true, 10, 80000 + 1000},
        {10, true, 10, 80000 + 1000},
        {11, true, 10, 160000 + 2000},
        {100, true, 10, (40000 + 500) * 256},
        {0, false, 8, 17000 + 500}, /* 2 SRTT + SRTT / cwnd, doubling */
        {1, false, 8, 34000 + 500},
        {2, false, 8, 68000 + 500},
        {3, false, 8, 40000 + 500},
        {0, false, 0.05, 176000 + 500}, /* no probe in a pacing gap */
        {0, false, 0.001, 816000 + 500},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_loss l;

        mrd_loss_init(&l, NULL, 0);
        l.srtt_ns = 8000;
        l.last_send_ns = 100000;
        l.progress_ns = 90000;
        l.peer_ack_delay_ns = 500;
        l.probes = table[i].probes;
        assert_int_equal(mrd_loss_tail_ns(&l, table[i].full, table[i].cwnd, 40000),
                         100000 + table[i].after);
    }
}

/* While acks come in there is no tail: 0.25 SRTT after the last progress at the earliest. */
TEST(mrd_loss_tail_ns__after_progress)
{
    struct mrd_loss l;

    mrd_loss_init(&l, NULL, 0);
    l.srtt_ns = 8000;
    l.last_send_ns = 100000;
    l.progress_ns = 130000;
    assert_int_equal(mrd_loss_tail_ns(&l, true, 10, 0), 132000);
}
