/* SPDX-License-Identifier: BSD-2-Clause */
/* The nscc policy: what losses mean. */
#include "tests/kit/kit.h"
#include "tests/unit/cc_fixture.h"

/* Losses of 1/4 of the window in an RTT: x 0.7; fewer: nothing, it may be one path of many. */
TEST_F(cc_fixture, nscc_lost__quarter_of_window)
{
    static const struct {
        double window;
        uint32_t lost;
        double expect;
    } table[] = {{40, 9, 40},    {40, 10, 28},  {40, 40, 28}, {4, 1, 2.8},
                 {0.5, 1, 0.35}, {0.1, 1, 0.1}, {8, 1, 8}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_with(self, "nscc", &fabric, table[i].window);
        lose(self, table[i].lost);
        assert_near(packets(self), table[i].expect, 1e-9);
    }
}

/* The whole first flight lost: cut, but there is no RTT yet to pace less than a packet by. */
TEST_F(cc_fixture, nscc_lost__first_flight)
{
    for (int k = 0; k < 2; k++) {
        begin(self, k ? "dctcp" : "nscc", &(struct mrd_cc_config){0});
        self->ack.srtt_ns = self->ack.rtt_min_ns = 0;
        for (int i = 0; i < 100; i++)
            lose(self, 1);
        assert_near(packets(self), 1, 1e-9);
    }
}

/* All packets are late by this queue. */
static void stand_in_queue(struct cc_fixture *f, uint64_t base_ns, uint64_t queue_ns)
{
    f->ack.queue_valid = true;
    f->ack.queue_ns = queue_ns;
    f->ack.rtt_ns = f->ack.srtt_ns = base_ns + queue_ns;
}

/* A few losses while there is a queue cut where nothing marks; without a queue they do not. */
TEST_F(cc_fixture, nscc_ack__cuts_for_a_queue_s_losses)
{
    static const struct {
        uint64_t queue_ns;
        bool marks, cut;
    } table[] = {{BASE_NS, false, true}, {0, false, false}, {BASE_NS, true, false}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_with(self, "nscc", &far_fabric, 40);
        self->cc.ce_seen = table[i].marks;
        hold_back(self);
        stand_in_queue(self, BASE_NS, table[i].queue_ns);
        acks(self, 20, 0.5);
        lose(self, 6);
        acks(self, 1, 1);
        assert_true(table[i].cut ? packets(self) < 39 : packets(self) >= 40);
    }
}

/*
 * A window of 60 packets, `in_flight` of them an RTT (0: not measured yet), at a queue of `queue` base RTTs, which
 * drops 4; `beside` of them are not that queue's.
 */
static void lose_in_flight(struct cc_fixture *f, const struct mrd_cc_config *config, double queue,
                           uint32_t beside, unsigned in_flight, bool limited)
{
    uint64_t base_ns = config->base_rtt_ns;
    unsigned sent = in_flight ? in_flight : 60;

    begin_with(f, "nscc", config, 60);
    hold_back(f);
    f->ack.rtt_min_ns = base_ns;
    stand_in_queue(f, base_ns, (uint64_t)(queue * (double)base_ns));
    ack_each(f);
    acks(f, 40, 2);
    acks(f, 2 * sent, 2);
    f->cc.rate.cur_bps = in_flight * PACKET * 8e9 / (double)f->ack.srtt_ns;
    if (in_flight == 0) {
        f->cc.rate.prev_bps = f->cc.measured_bps = 0;
        f->cc.rate.started = false;
    }
    f->ack.limited = limited;
    for (unsigned i = 0; i < 4; i++)
        mrd_cc_lost(&f->cc, i >= beside);
    lose(f, 4);
    acks(f, in_flight ? 66 * in_flight / 60 : 1, 1.1);
}

/* 60 packets at a queue of `queue` base RTTs, which drops some of them. */
static void lose_at_queue(struct cc_fixture *f, const struct mrd_cc_config *config, double queue,
                          uint32_t beside)
{
    lose_in_flight(f, config, queue, beside, 60, false);
}

/* The cut empties the queue: of W the part that is in it, of 10 to 35%. */
TEST_F(cc_fixture, nscc_ack__cuts_by_what_empties_the_queue)
{
    static const struct {
        double queue, left; /* base RTTs; of the window */
    } table[] = {{0.3, 1 / 1.3}, {0.35, 1 / 1.35}, {0.4, 1 / 1.4}, {2, 0.65}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        lose_at_queue(self, &far_fabric, table[i].queue, 0);
        assert_near(packets(self), 60 * table[i].left, 0.5);
    }
}

/*
 * Where the link's rate is unknown a delay is a queue's if it is more than 6 packets take at the measured rate, and
 * than 5 times what RTTs change by; at most 0.2 base RTTs, or 0.05 and 100 us, at least 0.05.
 */
TEST_F(cc_fixture, nscc_ack__queues_that_sockets_see)
{
    static const struct {
        uint64_t base_ns;
        double queue; /* base RTTs */
        unsigned in_flight;
        uint64_t jump_ns;
        bool cut;
    } table[] = {
        {100000, 0.14, 60, 0, true},     {100000, 0.14, 60, 1500, true},
        {100000, 0.14, 60, 4000, false}, {100000, 0.14, 30, 0, false},
        {100000, 0.24, 15, 0, true},     {100000, 0.24, 60, 20000, true},
        {1000000, 0.14, 15, 0, false},   {1000000, 0.18, 15, 0, true},
        {100000, 0.04, 4000, 0, false},  {100000, 0.07, 4000, 0, true},
    };
    struct mrd_cc_config config = sockets;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        unsigned sent = table[i].in_flight;

        config.base_rtt_ns = table[i].base_ns;
        begin_with(self, "nscc", &config, 120);
        hold_back(self);
        self->ack.rtt_min_ns = table[i].base_ns;
        self->ack.queue_valid = true;
        ack_each(self);
        mrd_cc_examine(&self->cc);
        for (unsigned k = 0; k < 20 * sent; k++) {
            self->ack.queue_ns =
                (uint64_t)(table[i].queue * (double)table[i].base_ns) + k % 2 * table[i].jump_ns;
            self->ack.rtt_ns = table[i].base_ns + self->ack.queue_ns;
            self->ack.srtt_ns = self->ack.rtt_ns - table[i].jump_ns / 2 * (k % 2);
            acks(self, 1, 1.0 / sent);
            if (k == 18 * sent) {
                for (unsigned n = 0; n < 2; n++)
                    mrd_cc_lost(&self->cc, true);
                lose(self, 2);
            }
        }
        assert_int_equal(self->cc.nscc.queue_losses.gentle != 0, table[i].cut);
        end(self);
    }
}

/* Of a flow that its own link bounds, not the window, the cut is of what is in flight. */
TEST_F(cc_fixture, nscc_ack__cuts_what_is_in_flight)
{
    static const unsigned in_flight[] = {60, 40, 20, 10};

    for (unsigned i = 0; i < 2 * 4; i++) {
        bool limited = i % 2;

        lose_in_flight(self, &far_fabric, 0.4, 0, in_flight[i / 2], limited);
        assert_near(packets(self), (limited ? 60 : in_flight[i / 2]) / 1.4, 1);
    }
}

/*
 * Of an application that sends little the cut leaves a share of the BDP, or where the rate is unknown the start
 * window; before anything is measured it is of the window.
 */
TEST_F(cc_fixture, nscc_ack__cuts_no_trickle)
{
    static const double bdp = (double)BDP_BYTES / PACKET, start = (double)START / PACKET;
    static const struct {
        const struct mrd_cc_config *config;
        unsigned in_flight; /* 0: not measured */
        double cut;         /* packets */
    } table[] = {{&far_fabric, 1, bdp / 16}, {&far_fabric, 2, 2},   {&far_fabric, 0, 60},
                 {&sockets, 1, start},       {&sockets, 10, start}, {&sockets, 20, 20},
                 {&sockets, 0, 60},          {&sockets, 60, 60}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        lose_in_flight(self, table[i].config, 0.4, 0, table[i].in_flight, false);
        assert_near(packets(self), table[i].cut / 1.4, 1);
        end(self);
    }
}

/* Where the link's rate is unknown packets leave faster than the window in an SRTT, for TCP's sake. */
TEST_F(cc_fixture, nscc_ack__pace_beside_tcp)
{
    static const struct mrd_cc_config hosts = {.base_rtt_ns = 100000, .allocator = &cc_alloc.ops};

    for (unsigned known = 0; known < 2; known++) {
        struct mrd_cc_config config = hosts;

        config.link_bps = known ? LINK_BPS : 0;
        begin_with(self, "nscc", &config, 60);
        assert_near(self->cc.ops->pace(&self->cc), 0, 1e-9);
        self->cc.nscc.queue_losses.gentle = 1;
        assert_near(self->cc.ops->pace(&self->cc), known ? 1 : 1.25, 1e-9);
        end(self);
    }
}

/* What was lost on paths without the queue does not cut. */
TEST_F(cc_fixture, nscc_ack__lost_beside_the_queue)
{
    for (unsigned beside = 0; beside <= 4; beside++) {
        lose_at_queue(self, &far_fabric, 0.5, beside);
        assert_true(beside == 4 ? packets(self) >= 60 : packets(self) < 42);
    }
}

/*
 * After such a cut the window grows by a packet an RTT of 200 us, in proportion to it, whatever the delay is.
 * After 64 RTTs without another one it grows ever faster.
 */
TEST_F(cc_fixture, nscc_ack__grows_gently_after_it)
{
    static const uint64_t bases_ns[] = {12500, 50000, 70000};

    for (size_t i = 0; i < sizeof(bases_ns) / sizeof(bases_ns[0]); i++) {
        struct mrd_cc_config config = {.link_bps = LINK_BPS, .base_rtt_ns = bases_ns[i]};
        double before, an_rtt = 4 * (double)bases_ns[i] / 200000;

        lose_at_queue(self, &config, 3, 0); /* beyond the target */
        self->ack.limited = true;
        acks(self, 120, 3);
        before = packets(self);
        assert_near(self->cc.ops->pace(&self->cc), 1, 1e-9);
        acks(self, 10 * (unsigned)before, 10);
        assert_near(packets(self) - before, 10 * an_rtt, 1.5 * an_rtt);
        self->ack.queue_ns = 0;
        self->ack.rtt_ns = self->ack.srtt_ns = bases_ns[i];
        acks(self, 6000, 120);
        assert_near(self->cc.ops->pace(&self->cc), 0, 1e-9);
        assert_true(packets(self) > 90);
        end(self);
    }
}

/* Acks whose round trips differ by `jump_ns` from one to the next; at each `every` ones `lost` are lost. */
static void acks_that_jump(struct cc_fixture *f, unsigned num, double rtts, uint64_t least_ns,
                           uint64_t jump_ns, unsigned every, uint32_t lost)
{
    for (unsigned i = 0; i < num; i++) {
        f->ack.rtt_ns = least_ns + i % 2 * jump_ns;
        acks(f, 1, rtts / num);
        if (i % every == 0)
            lose(f, lost);
    }
}

/* RTTs that jump and are at times as short as the least: late hosts lose at random, and do not cut. */
TEST_F(cc_fixture, nscc_ack__jumping_rtts_are_no_queue)
{
    static const struct {
        uint64_t least_ns, jump_ns;
        bool cut;
    } table[] = {{BASE_NS, 6000, false}, {BASE_NS + 4000, 6000, true}, {BASE_NS + 4000, 200, true}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        static const struct mrd_cc_config config = {
            .link_bps = LINK_BPS, .base_rtt_ns = BASE_NS, .allocator = &cc_alloc.ops};

        begin_with(self, "nscc", &config, 60);
        hold_back(self);
        ack_each(self);
        self->ack.srtt_ns = table[i].least_ns + table[i].jump_ns / 2;
        acks_that_jump(self, 600, 10, table[i].least_ns, table[i].jump_ns, 120, 1);
        assert_true(table[i].cut ? packets(self) < 56 : packets(self) >= 58);
    }
    end(self);
}

/* Much is lost. The same jumps, at 1/10 of the link's rate: a queue of a few packets makes them. */
TEST_F(cc_fixture, nscc_ack__jumps_of_a_short_queue)
{
    static const uint64_t base_ns = 100000, least_ns = 110000, jump_ns = 20000;
    static const struct mrd_cc_config config = {
        .link_bps = 10000000000, .base_rtt_ns = 100000, .allocator = &cc_alloc.ops};

    for (int slow = 0; slow < 2; slow++) {
        begin_with(self, "nscc", &config, 12);
        self->ack.limited = false;
        self->ack.rtt_min_ns = base_ns;
        self->ack.acked_packets = self->ack.counted_packets = 1;
        self->ack.acked_bytes = slow ? PACKET / 3 : 3 * PACKET; /* 1 Gb/s or 10 */
        self->ack.srtt_ns = least_ns + jump_ns / 2;
        acks_that_jump(self, 600, 50, least_ns, jump_ns, 2, 1);
        assert_int_equal(self->cc.nscc.queue_losses.gentle != 0, slow);
    }
    end(self);
}

/*
 * Half is lost, but there is no delay: the least RTT contains the queue. With little of the link's rate that is
 * a queue of many; with more of it, or if the application holds back, losses are random.
 */
TEST_F(cc_fixture, nscc_ack__much_loss_at_a_trickle)
{
    static const struct {
        uint32_t acked; /* packets an RTT; the BDP is 24 */
        bool limited, cut;
    } table[] = {{1, true, true}, {6, true, false}, {1, false, false}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_with(self, "nscc", &far_fabric, 8);
        self->ack.limited = table[i].limited;
        self->ack.inflight_bytes = 0;
        self->ack.acked_packets = self->ack.counted_packets = table[i].acked;
        self->ack.acked_bytes = table[i].acked * PACKET;
        for (unsigned round = 0; round < 20; round++) {
            self->cc.round_lost += table[i].acked;
            acks(self, 1, 1.01);
        }
        assert_int_equal(self->cc.nscc.queue_losses.gentle != 0, table[i].cut);
    }
}

/* A queue of up to an RTT ago dropped what is declared lost now, though it is gone; not later. */
TEST_F(cc_fixture, nscc_ack__lost_in_the_queue_of_an_rtt_ago)
{
    for (unsigned rounds = 1; rounds <= 2; rounds++) {
        begin_with(self, "nscc", &far_fabric, 40);
        hold_back(self);
        stand_in_queue(self, BASE_NS, BASE_NS);
        acks(self, 20, 2);
        self->ack.queue_ns = 0;
        self->ack.rtt_ns = BASE_NS;
        acks(self, 40 * rounds, 0.9 * rounds); /* the mean falls to nothing */
        lose(self, 9);
        acks(self, 20, 1);
        assert_true(rounds == 1 ? packets(self) < 40 : packets(self) >= 40);
    }
}

/* Much is lost. Delay that jumps and is at times none is the hosts'; else it is a queue's. */
TEST_F(cc_fixture, nscc_ack__late_hosts_are_no_queue)
{
    static const struct {
        uint64_t least_ns, jump_ns;
        bool hosts;
    } table[] = {{140000, 1000, false},
                 {58000, 1000, false},
                 {160000, 180000, false},
                 {60000, 180000, true}};

    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        begin(self, "nscc", &sockets);
        self->ack.srtt_ns = 150000;
        self->ack.rtt_min_ns = 50000;
        leave_slow_start(self, 4);
        acks_that_jump(self, 400, 100, table[k].least_ns, table[k].jump_ns, 8, 4);
        assert_int_equal(self->cc.losses->jitter.hosts, table[k].hosts);
        if (table[k].hosts)
            assert_true(mrd_cc_tests_losses(&self->cc) || mrd_cc_is_elastic(&self->cc));
    }
    /* From now on it does not jump: a queue may have come. */
    self->ack.rtt_ns = 150000;
    acks(self, 400, 100);
    assert_false(self->cc.losses->jitter.hosts);
}

/* Whether hosts are late, by round trips that differ by `jump_ns`, while much is lost. */
static bool hosts_after(struct cc_fixture *f, uint64_t jump_ns)
{
    acks_that_jump(f, 400, 100, 58000, jump_ns, 8, 4);
    return f->cc.losses->jitter.hosts;
}

/* Once hosts are found to be late, round trips that differ by half as much prove it still. */
TEST_F(cc_fixture, nscc_ack__late_hosts_by_half_the_jump)
{
    /* Of a round trip of about 60 us: more than 0.15, more than half of that, and less. */
    static const uint64_t much_ns = 20000, some_ns = 7000, little_ns = 3000;

    begin(self, "nscc", &sockets);
    self->ack.srtt_ns = 65000;
    self->ack.rtt_min_ns = 50000;
    leave_slow_start(self, 4);
    assert_false(hosts_after(self, some_ns));
    assert_true(hosts_after(self, much_ns));
    assert_true(hosts_after(self, some_ns));
    assert_false(hosts_after(self, little_ns));
    assert_false(hosts_after(self, some_ns));
}

/* While it is tested whether losses follow it, the window is held. A mark ends the test. */
TEST_F(cc_fixture, nscc_ack__a_mark_ends_the_test_of_losses)
{
    begin(self, "nscc", &sockets);
    self->ack.srtt_ns = self->ack.rtt_ns = self->ack.rtt_min_ns = 50000;
    leave_slow_start(self, 40);
    for (unsigned i = 0; i < 50 && !mrd_cc_tests_losses(&self->cc); i++) {
        acks(self, 10, 1.1);
        lose(self, 3);
    }
    assert_true(mrd_cc_tests_losses(&self->cc));
    double held = packets(self);
    self->ack.ce_packets = 1;
    acks(self, 1, 0.1);
    self->ack.ce_packets = 0;
    acks(self, 50, 5);
    assert_false(mrd_cc_tests_losses(&self->cc));
    assert_true(packets(self) > 1.1 * held);
}

/*
 * On a long way slow start that ends by losses leaves what was measured. That an application sent little before
 * says nothing of the way: the start window stays.
 */
TEST_F(cc_fixture, nscc_lost__little_was_sent_before)
{
    begin(self, "nscc", &sockets);
    double start_bytes = self->cc.cwnd_bytes;
    self->ack.rtt_ns = self->ack.srtt_ns = self->ack.rtt_min_ns = 80 * MSEC_NS;
    self->ack.queue_valid = true;
    self->ack.acked_packets = self->ack.counted_packets = 1;
    self->ack.acked_bytes = 200;
    self->ack.inflight_bytes = 200;
    self->ack.limited = false;
    for (int i = 0; i < 10; i++) { /* a small message each second */
        self->ack.now_ns += 1000 * MSEC_NS;
        self->cc.ops->ack(&self->cc, &self->ack);
    }
    assert_true(self->cc.slow_start);
    self->ack.now_ns += 1000 * MSEC_NS;
    self->ack.limited = true;
    self->ack.inflight_bytes = (uint64_t)self->cc.cwnd_bytes;
    self->ack.acked_bytes = PACKET;
    for (int i = 0; i < 2; i++) {
        acks(self, 4, 0.01);
        lose(self, 1);
    }
    assert_false(self->cc.slow_start);
    assert_true(self->cc.cwnd_bytes >= start_bytes);
}
