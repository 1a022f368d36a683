/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traps that other transports fell into, one test each; those that concern the choice of paths are
 * in test_path_signals.c and test_superpackets.c. Of receive queues that a device fills by hashing
 * the 5-tuple there is nothing to test: a context has one receive socket, because a peer that
 * sprays over source ports would be spread over all queues of a sharded one, and each shard would
 * see a part of every message; so nothing here depends on a 5-tuple.
 */
#include <string.h>

#include "core/wire.h"
#include "tests/support/payload.h"
#include "tests/support/wiretap.h"
#include "transport/movers/sim/sim_host.h"

/* ------------------------------------------------------------------------------- coalesced acks */

/* The window is smaller than what an ack waits for: the last packet that fits asks for its ack. */
TEST(sim_ack_request__window_smaller_than_the_ack_interval)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.rate_bps = 2000000000, .links = 1});

    sim_write(w, HOST_0, HOST_1, 256 << 10); /* 1.1 ms at the link's rate */
    sim_run_until_complete(w, 1120 * USEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "retx_packets"), 0);
}

/*
 * The packet that asks for the ack is lost: a timer acks those before it, not the sender's probe.
 */
TEST(sim_ack_request__lost)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});

    sim_write_complete(w, HOST_0, HOST_1, 64, 1 * MSEC_NS);
    sim_run(w, 50 * USEC_NS);
    struct wiretap *tap = wiretap_open(w);
    mrd_sim_set_loss_mask(w->sim, HOST_0, HOST_1, 1 << 2);
    uint64_t at_ns = mrd_sim_now(w->sim);
    sim_write_complete(w, HOST_0, HOST_1, 3 * 4096, 1 * MSEC_NS);
    assert_true(tap->packets[2].head.flags & MRD_WIRE_ACK_REQUEST);
    assert_true(wiretap_acked_ns(tap, HOST_1, tap->packets[1].head.psn) < at_ns + 8 * USEC_NS);
}

/* ------------------------------------------------------------------------------ bytes in flight */

struct dice {
    uint32_t state, ppm; /* of acks that are lost */
};

static bool loses_acks(void *arg, const struct wire_packet *p)
{
    struct dice *d = arg;

    if (p->kind != WIRE_ACK)
        return false;
    d->state = d->state * 1664525 + 1013904223;
    return (d->state >> 8) % 1000000 < d->ppm;
}

static uint64_t inflight_bytes(struct sim_world *w, uint32_t from, uint32_t to)
{
    struct mrd_peer_attr attr;

    assert_int_equal(mrd_query_peer(w->node[from].ah[to], &attr, sizeof(attr)), 0);
    return attr.inflight_bytes;
}

/* Acks and data are lost: at each moment the figure is the sum of the records, and 0 at the end. */
TEST(sim_inflight_bytes__after_lost_acks)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.loss_ppm = 20000});
    struct wiretap *tap = wiretap_open(w);
    struct dice dice = {.state = 1, .ppm = 500000};
    uint64_t most = 0;

    tap->rule = loses_acks;
    tap->arg = &dice;
    for (uint32_t i = 0; i < 8; i++) {
        sim_write(w, HOST_0, HOST_1, 512 << 10);
        sim_send(w, HOST_1, HOST_0, 10000 * i);
    }
    for (uint32_t i = 0; !sim_is_complete(w) && i < 2000; i++) {
        sim_run(w, 5 * USEC_NS);
        for (uint32_t host = HOST_0; host <= HOST_1; host++)
            assert_null(mrd_engine_audit(sim_engine(w, host)));
        most = inflight_bytes(w, HOST_0, HOST_1) > most ? inflight_bytes(w, HOST_0, HOST_1) : most;
    }
    assert_true(sim_is_complete(w));
    dice.ppm = 0;
    sim_run(w, 1 * MSEC_NS);
    assert_true(most > 10 * 4096);
    assert_int_equal(inflight_bytes(w, HOST_0, HOST_1), 0);
    assert_int_equal(inflight_bytes(w, HOST_1, HOST_0), 0);
}

/* ------------------------------------------------------------------------------ late duplicates */

/* After a write completed, its packets come once more: newer bytes in its place stay. */
static void late_duplicate_write(uint32_t len, bool straight)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.straight = straight});
    struct wiretap *tap = wiretap_open(w);
    uint32_t older = sim_write(w, HOST_0, HOST_1, len);
    uint8_t *at = w->messages[older].target;

    sim_run_until_complete(w, 1 * MSEC_NS);
    memset(at, 0x77, len);
    uint32_t copies = wiretap_replay_messages(tap, HOST_0);
    sim_run(w, 100 * USEC_NS);
    assert_true(payload_is_blank(at, len, 0x77));
    assert_true(copies >= (len + 4095) / 4096);
    assert_int_equal(sim_counter(w, HOST_1, "rx_duplicates"), copies);
}

TEST(sim_write__late_duplicates_change_nothing)
{
    late_duplicate_write(100, false);
    late_duplicate_write(100000, false);
    late_duplicate_write(100000, true);
}

/* ------------------------------------------------------------------------------ wrapping stamps */

struct outcome {
    uint64_t time_ns, retx, ce, packets;
};

static bool loses_every_150th(void *arg, const struct wire_packet *p)
{
    uint32_t *seen = arg;

    return p->kind == WIRE_MESSAGE && ++*seen % 150 == 0;
}

/*
 * A transfer with marks and losses, none of them by chance (a context's random numbers come from
 * its clock, too), on clocks that read `offset_ns` at its start.
 */
static struct outcome transfer_at(uint64_t offset_ns)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.links = 1,
                                                                 .rate_bps = 10000000000,
                                                                 .ecn_min_bytes = 20000,
                                                                 .ecn_max_bytes = 20000,
                                                                 .spray = "rr"});
    struct wiretap *tap = wiretap_open(w);
    uint32_t seen = 0;
    struct outcome o;

    tap->rule = loses_every_150th;
    tap->arg = &seen;

    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        sim_close(w, host);
        mrd_sim_set_clock_offset(w->sim, host, offset_ns);
        sim_open(w, host);
    }
    sim_write(w, HOST_0, HOST_1, 4 << 20);
    o.time_ns = sim_run_until_complete(w, 20 * MSEC_NS);
    o.retx = sim_counter(w, HOST_0, "retx_packets");
    o.ce = sim_counter(w, HOST_1, "rx_ce");
    o.packets = sim_counter(w, HOST_0, "tx_packets");
    assert_true(sim_payload_equal(w, HOST_1));
    return o;
}

/* Nothing depends on what the clock reads: not where 32 bits of any unit wrap around midway. */
TEST(sim_clock__wraps_change_nothing)
{
    static const uint64_t wraps_ns[] = {
        (uint64_t)MRD_WIRE_STAMP_NS << 32, /* stamps of 32 bits */
        (uint64_t)MRD_WIRE_STAMP_NS << 31, /* as signed ones */
        1ull << 32,                        /* nanoseconds */
        1000ull << 32,                     /* microseconds */
    };
    struct outcome plain = transfer_at(SEC_NS);

    assert_true(plain.ce > 50 && plain.retx > 2);
    for (unsigned i = 0; i < sizeof(wraps_ns) / sizeof(wraps_ns[0]); i++) {
        struct outcome o = transfer_at(wraps_ns[i] - plain.time_ns / 32000 * 16000);

        assert_int_equal(o.time_ns, plain.time_ns);
        assert_int_equal(o.retx, plain.retx);
        assert_int_equal(o.packets, plain.packets);
    }
}

/* ------------------------------------------------------------------------------ the slow device */

/* A resent copy is still being read when its ack comes: the buffer is ours until it was read. */
TEST(sim_completion__waits_for_the_device)
{
    enum { READING_NS = 300 * 1000 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.tx_done_delay_ns = READING_NS});
    struct wiretap *tap = wiretap_open(w);
    uint64_t left_ns = 0;

    sim_write_complete(w, HOST_0, HOST_1, 64, 1 * MSEC_NS);
    mrd_sim_set_loss_mask(w->sim, HOST_0, HOST_1, 1 << 3);

    uint32_t i = sim_write(w, HOST_0, HOST_1, 16 * 4096);

    sim_run_until_complete(w, 1 * MSEC_NS);
    for (uint32_t n = 0; n < tap->num; n++) {
        if (tap->packets[n].kind == WIRE_MESSAGE)
            left_ns = tap->packets[n].at_ns;
    }
    assert_true(sim_counter(w, HOST_0, "retx_packets") > 0);
    assert_true(w->messages[i].sent_ns >= left_ns + READING_NS);
    assert_true(w->messages[i].sent_ns < left_ns + READING_NS + 50 * USEC_NS);
}

/* The device takes a few packets a call: the others leave later, in order, and none is resent. */
TEST(sim_tx_burst__partial_ones_leave_in_order)
{
    for (uint32_t most = 1; most <= 5; most += 2) {
        struct sim_world *w = sim_fabric_world(
            &(struct sim_options){.tx_burst_max = most, .tx_done_delay_ns = 20 * USEC_NS});

        for (uint32_t i = 0; i < 8; i++)
            sim_send(w, HOST_0, HOST_1, 40000 * i);
        sim_all_arrive(w, 1 * MSEC_NS);
        assert_true(mrd_sim_get_host_stats(w->sim, HOST_0).partial_bursts > 0);
        assert_int_equal(sim_counter(w, HOST_0, "retx_order"), 0);
        assert_int_equal(sim_counter(w, HOST_0, "retx_rack"), 0);
    }
}

/* ---------------------------------------------------------------------- the blocked application */

/*
 * The target's application makes no call at all, and its completion queue is full: writes and
 * their acks go on. (With threads: tests/unit/test_thread_progress.c.)
 */
TEST(sim_progress__application_makes_no_call)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});

    sim_send(w, HOST_0, HOST_1, 100);

    uint32_t i = sim_write(w, HOST_0, HOST_1, 1 << 20);
    struct mrd_peer_attr attr;
    uint64_t end_ns = mrd_sim_now(w->sim) + 200 * USEC_NS;

    mrd_sim_run_until(w->sim, end_ns); /* no call on host 1 */
    assert_int_equal(mrd_query_peer(w->node[HOST_0].ah[HOST_1], &attr, sizeof(attr)), 0);
    assert_int_equal(attr.inflight_bytes, 0);
    assert_int_equal(attr.packets_retransmitted, 0);
    assert_true(payload_mismatch(w->messages[i].target, 1 << 20, test_seed(), i) == 1 << 20);
    sim_poll(w);
    assert_true(w->messages[i].sent);
}

/* --------------------------------------------------------------------- packets of a former life */

/*
 * The whole traffic of a sender's former life comes once more after its restart: nothing happens.
 */
static void old_packets(uint32_t restarted, uint64_t challenge_ns)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.challenge_ns = challenge_ns});
    struct wiretap *tap = wiretap_open(w);
    uint32_t len = 20000, num;

    sim_run(w, challenge_ns + MSEC_NS);
    sim_write(w, HOST_0, HOST_1, len);
    uint8_t *at = w->messages[0].target;
    sim_send(w, HOST_0, HOST_1, 100);
    sim_send_complete(w, HOST_0, HOST_1, len, 5 * MSEC_NS);
    num = tap->num;
    sim_restart(w, restarted);
    sim_run(w, MSEC_NS);
    if (restarted == HOST_0) { /* its new life speaks first */
        sim_send_complete(w, HOST_0, HOST_1, 64, 5 * MSEC_NS);
    }
    memset(at, 0x77, len);
    sim_post_recvs(w, HOST_1, 0, 2, len);
    for (uint32_t i = 0; i < num; i++) {
        if (tap->packets[i].from == HOST_0)
            wiretap_replay(tap, &tap->packets[i]);
    }
    sim_run(w, 50 * MSEC_NS);
    assert_true(payload_is_blank(at, len, 0x77));
    assert_false(w->receives[w->num_receives - 1].done || w->receives[w->num_receives - 2].done);

    if (restarted == HOST_0) { /* and the new life is none the worse for it */
        assert_int_equal(w->node[HOST_0].restarted + w->node[HOST_0].unreachable, 0);
        sim_write_complete(w, HOST_0, HOST_1, len, 5 * MSEC_NS);
    }
}

TEST(sim_restart__packets_of_the_senders_former_life)
{
    old_packets(HOST_0, 0);
}

TEST(sim_restart__packets_for_the_targets_former_life)
{
    old_packets(HOST_1, 4 * SEC_NS);
}

/* ----------------------------------------------------------------- a receiver that is not ready */

/* One queue pair has no receives, for long: the others of the same peer go on as without it. */
TEST(sim_rnr__blocks_its_own_queue_pair_only)
{
    enum { MESSAGES = 40, LEN = 50000 };
    uint64_t time_ns[2];

    for (uint32_t starved = 0; starved < 2; starved++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.qps = 3});
        uint32_t done = 0;

        for (uint32_t i = 0; i < MESSAGES; i++) {
            for (uint32_t qp = 0; qp < 3; qp++)
                sim_post(w, &(struct sim_post){.from = HOST_0,
                                               .to = HOST_1,
                                               .qp = qp,
                                               .len = qp ? LEN : 64 + i,
                                               .opcode = MRD_WR_SEND,
                                               .no_receive = starved && !qp});
        }
        for (time_ns[starved] = 0; done < 2 * MESSAGES; time_ns[starved] += 10 * USEC_NS) {
            assert_true(time_ns[starved] < 5 * MSEC_NS);
            sim_run(w, 10 * USEC_NS);
            done = 0;
            for (uint32_t i = 0; i < w->num_messages; i++)
                done += w->messages[i].qp && w->messages[i].sent;
        }
        sim_run(w, 5 * MSEC_NS);
        if (starved)
            sim_post_recvs(w, HOST_1, 0, MESSAGES, LEN);
        sim_all_arrive(w, 1 * MSEC_NS);
    }
    assert_true(time_ns[1] < time_ns[0] + time_ns[0] / 10 + 20 * USEC_NS);
}
