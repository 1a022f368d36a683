/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/unit_alloc.h"

#include "core/loss.h"

enum { TRACKER = 256, PATHS = 4, PATH_A = 0, PATH_B = 1, RTT = 10000, LOST_MAX = 64 };

struct loss_fixture {
    struct unit_alloc alloc;
    struct mrd_pool pages;
    struct mrd_path path[PATHS];
    struct mrd_path_load load[PATHS];
    struct mrd_paths paths;
    struct mrd_sents s;
    struct mrd_loss loss;
    uint32_t lost[LOST_MAX];
    enum mrd_loss_cause cause[LOST_MAX];
};

static void begin(struct loss_fixture *f)
{
    memset(f, 0, sizeof(*f));
    unit_alloc_init(&f->alloc);
    assert_true(mrd_pool_init(&f->pages, &f->alloc.ops, sizeof(struct mrd_sent_page), 8));
    mrd_paths_init(&f->paths, f->path, f->load, PATHS, NULL, 0);
    mrd_sent_init(&f->s, &f->pages, TRACKER, 0);
    mrd_loss_init(&f->loss, NULL, 0);
}

static void end(struct loss_fixture *f)
{
    mrd_sent_fini(&f->s);
    mrd_pool_fini(&f->pages);
}

/* As `begin`, with an RTT that is known and does not vary. */
static void begin_with_rtt(struct loss_fixture *f)
{
    begin(f);
    for (int i = 0; i < 64; i++)
        mrd_loss_rtt(&f->loss, RTT, 0);
    assert_int_equal(f->loss.srtt_ns, RTT);
}

static void send_at(struct loss_fixture *f, uint32_t psn, uint16_t path, uint64_t now_ns)
{
    struct mrd_sent *rec =
        psn == f->s.next ? mrd_sent_add(&f->s, MRD_SENT_EMPTY) : mrd_sent_get(&f->s, psn);
    uint32_t pseq;

    assert_non_null(rec);
    rec->bytes = 100;
    f->loss.last_send_ns = now_ns;
    pseq = mrd_path_sent(&f->paths, path);
    if (rec->state == MRD_SENT_INFLIGHT)
        mrd_path_forgot(&f->paths, rec->path);
    mrd_sent_transmit(&f->s, rec, &f->paths, path, pseq, now_ns);
}

/* `echoed`: the ack's echo names the last transmission. */
static bool ack_echoed_at(struct loss_fixture *f, uint32_t psn, bool echoed, uint64_t now_ns)
{
    struct mrd_sent *rec = mrd_sent_get(&f->s, psn);
    bool last_copy = mrd_loss_acked(&f->loss, rec, echoed, now_ns);

    if (rec->state == MRD_SENT_INFLIGHT)
        mrd_path_acked(&f->paths, rec->path, now_ns);
    mrd_path_pseq_acked(&f->path[rec->path], rec->pseq);
    mrd_sent_ack(&f->s, rec, &f->paths);
    mrd_sent_release(&f->s, rec);
    return last_copy;
}

static bool ack_at(struct loss_fixture *f, uint32_t psn, uint64_t now_ns)
{
    return ack_echoed_at(f, psn, false, now_ns);
}

/* All that is lost now, into f->lost and why into f->cause; how many. */
static unsigned detect(struct loss_fixture *f, uint64_t now_ns)
{
    enum mrd_loss_cause cause;
    struct mrd_sent *rec;
    unsigned n = 0;

    while ((rec = mrd_loss_next(&f->loss, &f->s, &f->paths, now_ns, &cause))) {
        assert_true(n < LOST_MAX);
        f->cause[n] = cause;
        f->lost[n++] = rec->psn;
        mrd_path_lost(&f->paths, rec->path, RTT, now_ns);
        mrd_sent_lose(&f->s, rec, &f->paths);
    }
    return n;
}

/* ---------------------------------------------------------------------------------------- RTT */

/*
 * RFC 6298: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|, then SRTT = 7/8 SRTT + 1/8 R; the first sample R:
 * R and R/2.
 */
static void mrd_loss_rtt__follows_rfc_6298(void **state)
{
    static const struct {
        uint64_t rtt, srtt, rttvar;
    } table[] = {
        {8000, 8000, 4000},
        {8000, 8000, 3000},
        {16000, 9000, 4250},
        {1000, 8000, 5187},
    };
    struct loss_fixture f;

    (void)state;
    begin(&f);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        mrd_loss_rtt(&f.loss, table[i].rtt, 0);
        assert_int_equal(f.loss.srtt_ns, table[i].srtt);
        assert_in_range(f.loss.rttvar_ns, table[i].rttvar - 2, table[i].rttvar + 2); /* rounding */
    }
    end(&f);
}

/* A sample of nothing is one, so that 0 can mean that there was none. */
static void mrd_loss_rtt__is_never_zero(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin(&f);
    assert_int_equal(mrd_loss_rtt_min_ns(&f.loss), 0);
    mrd_loss_rtt(&f.loss, 0, 0);
    assert_int_equal(f.loss.srtt_ns, 1);
    assert_int_equal(mrd_loss_rtt_min_ns(&f.loss), 1);
    end(&f);
}

/* A least RTT is kept for five to ten seconds: routes change. */
static void mrd_loss_rtt_min_ns__forgets_after_two_windows(void **state)
{
    static const struct {
        uint64_t ms, rtt, least;
    } table[] = {
        {0, 5000, 5000},     {1000, 9000, 5000},  {4999, 7000, 5000},  {5001, 8000, 5000},
        {10000, 8000, 5000}, {10002, 9000, 8000}, {15004, 9000, 9000},
    };
    struct loss_fixture f;

    (void)state;
    begin(&f);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        mrd_loss_rtt(&f.loss, table[i].rtt, table[i].ms * MRD_MSEC);
        assert_int_equal(mrd_loss_rtt_min_ns(&f.loss), table[i].least);
    }
    end(&f);
}

/* ---------------------------------------------------------------------------------------- acked */

static void mrd_loss_acked__is_progress(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 100);
    f.loss.probes = 3;
    assert_true(ack_at(&f, 0, 100 + RTT));
    assert_int_equal(f.loss.probes, 0);
    assert_int_equal(f.loss.progress_ns, 100 + RTT);
    assert_int_equal(f.loss.rack_tx_ns, 100);
    end(&f);
}

/*
 * A repeated packet's ack may be for any of its copies. Unless the echo names the last one it says
 * nothing of when that left, and must not make what was sent in between look late.
 */
static void mrd_loss_acked__of_a_copy_that_is_not_known(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    for (uint32_t i = 0; i < 3; i++)
        send_at(&f, i, PATH_A, i);
    send_at(&f, 0, PATH_B, 20000);
    send_at(&f, 1, PATH_B, 30000);
    assert_false(ack_echoed_at(&f, 0, false, 90000));
    assert_int_equal(f.loss.rack_tx_ns, 0);
    assert_int_equal(f.loss.progress_ns, 90000);
    assert_true(ack_echoed_at(&f, 1, true, 90000));
    assert_int_equal(f.loss.rack_tx_ns, 30000);
    end(&f);
}

/* The lateness of a packet that arrives after a later-sent one is what the window must forgive. */
static void mrd_loss_acked__measures_skew(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    for (uint32_t i = 0; i < 4; i++)
        send_at(&f, i, (uint16_t)i, 1000 * i);
    ack_at(&f, 3, RTT);
    assert_int_equal(f.loss.skew_ns, 0);
    ack_at(&f, 2, RTT + 1);
    assert_int_equal(f.loss.skew_ns, 1000);
    ack_at(&f, 0, RTT + 2);
    assert_int_equal(f.loss.skew_ns, 3000);
    ack_at(&f, 1, RTT + 3);
    assert_int_equal(f.loss.skew_ns, 3000);
    end(&f);
}

/* After eight RTTs a smaller one counts. */
static void mrd_loss_acked__skew_decays(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    send_at(&f, 1, PATH_B, 5000);
    ack_at(&f, 1, 15000);
    ack_at(&f, 0, 15000);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t now = 15000 + 8 * RTT + i;

        send_at(&f, 2 + 2 * i, PATH_A, now - 100);
        send_at(&f, 3 + 2 * i, PATH_B, now - 90);
        ack_at(&f, 3 + 2 * i, now);
        ack_at(&f, 2 + 2 * i, now);
        assert_int_equal(f.loss.skew_ns, i ? 10 : 5000);
    }
    end(&f);
}

/* A retransmission is late by design. */
static void mrd_loss_acked__retransmissions_have_no_skew(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    send_at(&f, 0, PATH_A, 1000);
    send_at(&f, 1, PATH_B, 9000);
    ack_at(&f, 1, 9000 + RTT);
    assert_true(ack_echoed_at(&f, 0, true, 9000 + RTT));
    assert_int_equal(f.loss.skew_ns, 0);
    end(&f);
}

/* ------------------------------------------------------------------------------------ detection */

/* Two later packets of the same path are acked: lost, and only that packet. */
static void mrd_loss_next__gap_on_same_path(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    send_at(&f, 1, PATH_B, 5);
    send_at(&f, 2, PATH_A, 10);
    send_at(&f, 3, PATH_A, 15);
    ack_at(&f, 2, 1000);
    assert_int_equal(detect(&f, 1000), 0); /* one may have overtaken it in a NIC queue */
    ack_at(&f, 3, 1005);
    assert_int_equal(detect(&f, 1005), 1);
    assert_int_equal(f.lost[0], 0);
    assert_int_equal(f.cause[0], MRD_LOSS_BY_ORDER);
    end(&f);
}

/*
 * Spraying reorders across paths all the time: any number of later packets of other paths
 * prove nothing.
 */
static void mrd_loss_next__other_paths_prove_nothing(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    for (uint32_t i = 1; i < 100; i++)
        send_at(&f, i, (uint16_t)(1 + i % 3), i);
    for (uint32_t i = 1; i < 100; i++)
        ack_at(&f, i, RTT + i);
    assert_int_equal(detect(&f, RTT + 100), 0);
    end(&f);
}

static void mrd_loss_next__order_is_off_where_it_was_wrong(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    f.path[PATH_A].order_off = 1;
    for (uint32_t i = 0; i < 5; i++)
        send_at(&f, i, PATH_A, i);
    for (uint32_t i = 1; i < 4; i++)
        ack_at(&f, i, 1000);
    assert_int_equal(detect(&f, 1000), 0);
    f.path[PATH_A].order_off = 0;
    ack_at(&f, 4, 1000);
    assert_int_equal(detect(&f, 1000), 1);
    end(&f);
}

/* Per-path numbers wrap. */
static void mrd_loss_next__order_across_the_wrap_of_pseq(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    f.path[PATH_A].pseq_next = UINT32_MAX - 1;
    f.path[PATH_A].pseq_acked[0] = f.path[PATH_A].pseq_acked[1] = UINT32_MAX - 2;
    for (uint32_t i = 0; i < 4; i++)
        send_at(&f, i, PATH_A, i);
    assert_int_equal(detect(&f, 1000), 0);
    ack_at(&f, 2, 1000);
    ack_at(&f, 3, 1000);
    assert_int_equal(detect(&f, 1000), 2);
    end(&f);
}

/*
 * Across paths: lost when a later-sent one is acked and its RTT and the window have passed since it
 * was sent.
 */
static void mrd_loss_next__by_time_after_a_window(void **state)
{
    const uint64_t window = RTT; /* min(SRTT, 1.25 minRTT) */
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 100);
    send_at(&f, 1, PATH_B, 200);
    ack_at(&f, 1, 200 + RTT);
    assert_int_equal(detect(&f, 200 + RTT), 0);
    assert_int_equal(f.loss.rack_ns, 100 + RTT + window);
    assert_int_equal(detect(&f, f.loss.rack_ns - 1), 0);
    assert_int_equal(detect(&f, f.loss.rack_ns), 1);
    assert_int_equal(f.lost[0], 0);
    assert_int_equal(f.cause[0], MRD_LOSS_BY_RACK);
    end(&f);
}

/* However old: without an ack of something sent later it is the tail's business. */
static void mrd_loss_next__never_without_a_later_ack(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    send_at(&f, 1, PATH_B, 100);
    send_at(&f, 2, PATH_B, 200);
    ack_at(&f, 0, RTT);
    assert_int_equal(detect(&f, 1000 * RTT), 0);
    assert_true(f.loss.rack_ns == MRD_NEVER);
    end(&f);
}

/* A retransmission counts from its own departure. */
static void mrd_loss_next__retransmission_starts_anew(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    send_at(&f, 1, PATH_B, 10);
    ack_at(&f, 1, RTT + 10);
    assert_int_equal(detect(&f, 3 * RTT), 1);
    send_at(&f, 0, PATH_B, 3 * RTT);
    assert_int_equal(detect(&f, 100 * RTT), 0);
    send_at(&f, 2, PATH_A, 3 * RTT + 10);
    ack_at(&f, 2, 4 * RTT + 10);
    assert_int_equal(detect(&f, 5 * RTT - 1), 0);
    assert_int_equal(detect(&f, 5 * RTT), 1);
    end(&f);
}

static void mrd_loss_window_ns__table(void **state)
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

    (void)state;
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

/* -------------------------------------------------------------------------------- spurious ones */

static void mrd_loss_spurious__widens_the_window_once(void **state)
{
    struct loss_fixture f;
    struct mrd_retx *r;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    mrd_sent_get(&f.s, 0)->by_order = 1;
    mrd_loss_log(&f.loss, mrd_sent_get(&f.s, 0), PATH_B);
    r = mrd_loss_spurious(&f.loss, 0, 1);
    assert_non_null(r);
    assert_true(r->by_order);
    assert_int_equal(r->old_path, PATH_B);
    assert_int_equal(f.loss.steps, 1);
    assert_null(mrd_loss_spurious(&f.loss, 0, 2)); /* the same report again */
    assert_int_equal(f.loss.steps, 1);
    end(&f);
}

/* Probes and second copies are meant to arrive twice. */
static void mrd_loss_spurious__not_of_deliberate_copies(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    send_at(&f, 0, PATH_A, 0);
    mrd_sent_get(&f.s, 0)->deliberate = 1;
    mrd_loss_log(&f.loss, mrd_sent_get(&f.s, 0), PATH_A);
    assert_null(mrd_loss_spurious(&f.loss, 0, 1));
    assert_int_equal(f.loss.steps, 0);
    end(&f);
}

/* A duplicate made by the network: nobody retransmitted it. */
static void mrd_loss_spurious__not_of_what_was_never_resent(void **state)
{
    struct loss_fixture f;

    (void)state;
    begin_with_rtt(&f);
    assert_null(mrd_loss_spurious(&f.loss, 0, 1));
    assert_int_equal(f.loss.steps, 0);
    end(&f);
}

static void mrd_loss_log__keeps_the_newest(void **state)
{
    struct mrd_sent rec = {0};
    struct mrd_loss l;
    unsigned known = 0;

    (void)state;
    mrd_loss_init(&l, NULL, 0);
    for (rec.psn = 0; rec.psn < MRD_RETX_LOG + 5; rec.psn++)
        mrd_loss_log(&l, &rec, 0);
    for (uint32_t psn = 0; psn < 5; psn++)
        assert_null(mrd_loss_spurious(&l, psn, 0));
    for (uint32_t psn = 5; psn < MRD_RETX_LOG + 5; psn++)
        known += mrd_loss_spurious(&l, psn, 0) != NULL;
    assert_int_equal(known, MRD_RETX_LOG);
    assert_int_equal(l.steps, 16); /* the window's growth has an end */
}

/* ---------------------------------------------------------------------------------------- tail */

static void mrd_loss_rto_ns__table(void **state)
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

    (void)state;
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
static void mrd_loss_tail_ns__table(void **state)
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

    (void)state;
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
static void mrd_loss_tail_ns__after_progress(void **state)
{
    struct mrd_loss l;

    (void)state;
    mrd_loss_init(&l, NULL, 0);
    l.srtt_ns = 8000;
    l.last_send_ns = 100000;
    l.progress_ns = 130000;
    assert_int_equal(mrd_loss_tail_ns(&l, true, 10, 0), 132000);
}

/* A packet of a path whose packets take longer is not lost when others would be. */
static void mrd_loss_next__longer_path_has_longer(void **state)
{
    static struct loss_fixture fixture;
    struct loss_fixture *f = &fixture;
    (void)state;

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

/* A stall ends for all at the same time; on a way that is longer all packets take as long. */
static void mrd_loss_stalled__later_packets_take_as_long(void **state)
{
    static struct loss_fixture fixture;
    struct loss_fixture *f = &fixture;
    (void)state;

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_loss_rtt__follows_rfc_6298),
        cmocka_unit_test(mrd_loss_rtt__is_never_zero),
        cmocka_unit_test(mrd_loss_rtt_min_ns__forgets_after_two_windows),
        cmocka_unit_test(mrd_loss_acked__is_progress),
        cmocka_unit_test(mrd_loss_acked__of_a_copy_that_is_not_known),
        cmocka_unit_test(mrd_loss_acked__measures_skew),
        cmocka_unit_test(mrd_loss_acked__skew_decays),
        cmocka_unit_test(mrd_loss_acked__retransmissions_have_no_skew),
        cmocka_unit_test(mrd_loss_next__gap_on_same_path),
        cmocka_unit_test(mrd_loss_next__other_paths_prove_nothing),
        cmocka_unit_test(mrd_loss_next__order_is_off_where_it_was_wrong),
        cmocka_unit_test(mrd_loss_next__order_across_the_wrap_of_pseq),
        cmocka_unit_test(mrd_loss_next__by_time_after_a_window),
        cmocka_unit_test(mrd_loss_next__never_without_a_later_ack),
        cmocka_unit_test(mrd_loss_next__retransmission_starts_anew),
        cmocka_unit_test(mrd_loss_window_ns__table),
        cmocka_unit_test(mrd_loss_spurious__widens_the_window_once),
        cmocka_unit_test(mrd_loss_spurious__not_of_deliberate_copies),
        cmocka_unit_test(mrd_loss_spurious__not_of_what_was_never_resent),
        cmocka_unit_test(mrd_loss_log__keeps_the_newest),
        cmocka_unit_test(mrd_loss_rto_ns__table),
        cmocka_unit_test(mrd_loss_tail_ns__table),
        cmocka_unit_test(mrd_loss_tail_ns__after_progress),
        cmocka_unit_test(mrd_loss_next__longer_path_has_longer),
        cmocka_unit_test(mrd_loss_stalled__later_packets_take_as_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
