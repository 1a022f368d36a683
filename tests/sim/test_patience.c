/* SPDX-License-Identifier: BSD-2-Clause */
/* How far a sender may go, whom silence condemns, and our own absence does not. One test a rule. */
#include "core/engine/state.h"
#include "tests/support/forge.h"
#include "transport/movers/sim/sim_host.h"

enum { UNIT = 4096, BYTES = 100 };

/* ------------------------------------------------------------------------------------ psn_limit */

/* What each sender to host 0 was told, and what it did. */
struct limits {
    uint32_t told[SIM_HOSTS_MAX], cum[SIM_HOSTS_MAX];
    uint32_t beyond, widest, checked;
};

static enum mrd_sim_verdict watch_limits(void *arg, struct mrd_sim_datagram *d)
{
    struct limits *l = arg;
    struct mrd_wire_head head;

    if (mrd_wire_get(d->data, d->len, &head) != MRD_WIRE_OK)
        return MRD_SIM_PASS;
    if (head.type == MRD_WIRE_ACK && d->from == HOST_0) {
        struct mrd_wire_ack ack;

        assert_true(mrd_wire_get_ack(d->data, &head, &ack));
        if (ack.psn_limit > l->told[d->to])
            l->told[d->to] = ack.psn_limit;
        if (ack.cum > l->cum[d->to])
            l->cum[d->to] = ack.cum;
    }
    if (head.type == MRD_WIRE_DATA && d->to == HOST_0) {
        uint32_t limit = l->told[d->from] ? l->told[d->from] : 256;
        int32_t ahead = (int32_t)(head.psn - l->cum[d->from]);

        l->beyond += head.psn >= limit;
        l->checked++;
        /* The first window may be of the time before anything was told. */
        if (head.psn >= 300 && ahead >= 0 && (uint32_t)ahead + 1 > l->widest)
            l->widest = (uint32_t)ahead + 1;
    }
    return MRD_SIM_PASS;
}

/*
 * The receive buffer is small and shared: no sender goes beyond what it was told. Where the receiver
 * comes late, and the buffer fills, it holds all of them; where it is nearly empty they get more.
 */
static void limited(uint32_t senders, uint32_t loss_ppm, bool late)
{
    enum { ROOM = 16 };
    struct forge_tape tape;
    struct sim_world *w = forge_begin(
        &tape, &(struct sim_options){.hosts = 4, .loss_ppm = loss_ppm, .recv_bytes = 8 << 20});
    struct limits limits = {0};

    sim_engine(w, HOST_0)->share.room = ROOM * senders;
    mrd_sim_set_rx_delay(w->sim, late ? 20 * USEC_NS : 0);
    tape.edit = watch_limits;
    tape.arg = &limits;
    for (uint32_t from = HOST_1; from <= senders; from++)
        sim_send(w, from, HOST_0, 4 << 20);
    sim_all_arrive(w, 100 * MSEC_NS);

    assert_true(limits.checked >= 1024 * senders);
    assert_int_equal(limits.beyond, 0);
    if (late)
        assert_in_range(limits.widest, ROOM / 2, ROOM);
    else
        assert_true(limits.widest > 2 * ROOM);
    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_window"), 0);
    forge_end(&tape);
}

TEST(sim_psn_limit__is_never_exceeded)
{
    for (unsigned late = 0; late < 2; late++) {
        limited(1, 0, late);
        limited(1, 50000, late);
        limited(3, 0, late);
        limited(3, 20000, late);
    }
}

/* Beyond the limit nothing is taken: dropped and counted. */
TEST_F(forge_tape, sim_psn_limit__beyond_the_tracker_is_dropped)
{
    struct sim_world *w = forge_begin(self, &(struct sim_options){0});
    uint32_t tracker = sim_engine(w, HOST_1)->config.mover.tracker;

    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    sim_post_recvs(w, HOST_1, 0, 1, BYTES);
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
    forge_look(self, HOST_1);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t beyond[] = {tracker, 100000, 0x7ffffffe};
        struct mrd_wire_head far = head;

        far.psn = head.psn + beyond[i];
        forge_send(w, HOST_0, HOST_1, &far, &part);
    }
    sim_run(w, 1 * MSEC_NS);
    forge_expect(self, HOST_1, "rx_drop_window 3");
}

static uint32_t last_limit(const struct forge_tape *tape)
{
    const struct forge_packet *packet = forge_find(tape, HOST_1, HOST_0, MRD_WIRE_ACK, -1);
    struct mrd_wire_head head = forge_head(packet);
    struct mrd_wire_ack ack;

    assert_true(mrd_wire_get_ack(packet->data, &head, &ack));
    return ack.psn_limit;
}

/* The limit binds below the tracker, too: the buffer shrinks, the sender stops where told. */
TEST_F(forge_tape, sim_psn_limit__granted_less_than_the_tracker)
{
    struct sim_world *w = forge_begin(self, &(struct sim_options){.recv_bytes = BYTES});
    struct mrd_engine *e = sim_engine(w, HOST_1);

    e->share.room = 8;
    /* A space begins with a tracker's worth. */
    for (uint32_t i = 0; i < e->config.mover.tracker + 30; i++)
        forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
    uint32_t limit = last_limit(self);
    assert_true(limit - head.psn <= 16);
    forge_look(self, HOST_1);
    head.psn = limit;
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    forge_send(w, HOST_0, HOST_1, &head, &part);
    sim_run(w, 1 * MSEC_NS);
    forge_expect(self, HOST_1, "rx_drop_window 1");
}

/* -------------------------------------------------------------------------------------- silence */

/* A message is half here and its sender dies; we sent it nothing. The receive must end. */
TEST_F(forge_tape, sim_silence__a_dead_sender_is_detected)
{
    struct sim_world *w = forge_begin(
        self, &(struct sim_options){.rate_bps = 10000000000, .peer_timeout_ns = SEC_NS});

    sim_send(w, HOST_1, HOST_0, 4 << 20);
    sim_run(w, 300 * USEC_NS); /* about a third */
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    sim_run(w, 900 * MSEC_NS);
    assert_false(w->receives[0].done);
    assert_true(sim_counter(w, HOST_0, "probes") > 0);
    sim_run(w, 600 * MSEC_NS);

    sim_expect_received(w, 0, MRD_WC_REM_ABORT_ERR);
    assert_int_equal(w->node[HOST_0].unreachable, 1);
}

static enum mrd_sim_verdict lose_segments(void *arg, struct mrd_sim_datagram *d)
{
    struct forge_packet packet = {.len = d->len, .data = d->data};
    struct mrd_wire_part part;
    (void)arg;

    return d->from == HOST_1 && forge_part(&packet, &part) && part.flags & MRD_PART_MULTI
               ? MRD_SIM_DROP
               : MRD_SIM_PASS;
}

/* Segments are lost for almost the timeout, and probes are answered meanwhile: both sides wait. */
TEST_F(forge_tape, sim_silence__answered_probes_keep_the_peer)
{
    struct sim_world *w = forge_begin(
        self, &(struct sim_options){.rate_bps = 10000000000, .peer_timeout_ns = SEC_NS});
    uint32_t message = sim_send(w, HOST_1, HOST_0, 4 << 20);

    sim_run(w, 300 * USEC_NS); /* about a third */
    self->edit = lose_segments;
    sim_run(w, 900 * MSEC_NS);
    assert_false(w->messages[message].sent);
    assert_in_range(sim_counter(w, HOST_0, "probes"), 3, 400); /* 10 ms and up */
    self->edit = NULL;
    sim_all_arrive(w, 1 * SEC_NS);

    assert_int_equal(w->node[HOST_0].unreachable + w->node[HOST_1].unreachable, 0);
}

/* ------------------------------------------------------------------------------------ own stops */

/* A process that slept longer than the timeout finds acks waiting: it reads before it judges. */
TEST_F(forge_tape, sim_stop__judges_nobody_before_it_has_read)
{
    struct sim_world *w = forge_begin(
        self, &(struct sim_options){.rate_bps = 10000000000, .peer_timeout_ns = 60 * SEC_NS});

    sim_restart_with(w, HOST_0, SEC_NS);
    sim_send(w, HOST_0, HOST_1, 1 << 20);
    sim_send(w, HOST_1, HOST_0, 1 << 20);
    sim_run(w, 100 * USEC_NS);
    sim_stop_for(w, HOST_0,
                 30 * SEC_NS); /* longer than its receive state of the other would live */
    sim_run(w, 2 * SEC_NS);

    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        assert_int_equal(w->node[host].unreachable + w->node[host].restarted, 0);
        assert_int_equal(sim_counter(w, host, "tx_messages_failed"), 0);
        assert_int_equal(sim_counter(w, host, "tx_resets"), 0);
    }
    assert_int_equal(w->messages[0].status, MRD_WC_SUCCESS);
    assert_true(w->messages[0].sent && w->messages[0].equal);
}

/* More waits than a turn of the loop reads, acks last: nothing is repeated before they are read. */
TEST_F(forge_tape, sim_stop__unread_acks_are_no_losses)
{
    struct sim_world *w = forge_begin(self, &(struct sim_options){0});
    uint8_t garbage[8] = {0};

    forge_exchange(w, HOST_0, HOST_1);
    sim_send(w, HOST_0, HOST_1, 16 * UNIT);
    sim_run(w, 2 * USEC_NS);
    mrd_sim_stop_host(w->sim, HOST_0, 1);
    for (uint32_t i = 0; i < 1000; i++)
        forge_inject(w, HOST_1, HOST_0, garbage, sizeof(garbage));
    sim_run(w, 100 * MSEC_NS);
    mrd_sim_stop_host(w->sim, HOST_0, 0);
    sim_run_until_complete(w, 1 * MSEC_NS);

    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_truncated"), 1000);
    assert_int_equal(sim_counter(w, HOST_0, "retx_packets"), 0);
}

/* The time that packets lay unread at a stopped peer is no RTT: the rest flows at once. */
TEST_F(forge_tape, sim_stop__does_not_slow_what_follows)
{
    struct sim_world *w = forge_begin(
        self, &(struct sim_options){.rate_bps = 10000000000, .peer_timeout_ns = 60 * SEC_NS});

    sim_send(w, HOST_0, HOST_1, 1 << 20);
    sim_send(w, HOST_1, HOST_0, 1 << 20);
    sim_run(w, 100 * USEC_NS);
    sim_stop_for(w, HOST_0, 30 * SEC_NS);
    sim_all_arrive(w, 10 * SEC_NS); /* and one RTO at its longest */
}

/* As above with an empty queue: the peer gets its full time, and probes, from the wake-up on. */
TEST_F(forge_tape, sim_stop__time_away_is_not_the_peers_silence)
{
    struct sim_world *w =
        forge_begin(self, &(struct sim_options){.peer_timeout_ns = 500 * MSEC_NS});

    forge_exchange(w, HOST_0, HOST_1);
    forge_cut(self, HOST_0, HOST_1, true);
    uint32_t message = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 100 * MSEC_NS);
    sim_stop_for(w, HOST_0, 5 * SEC_NS);
    sim_run(w, 300 * MSEC_NS);
    assert_false(w->messages[message].sent);
    forge_cut(self, HOST_0, HOST_1, false);
    sim_run_until_complete(w, 150 * MSEC_NS);

    assert_int_equal(w->messages[message].status, MRD_WC_SUCCESS);
    assert_int_equal(w->node[HOST_0].unreachable, 0);
}

/*
 * Work posted at the end of a stall, before the queue was read: the stall is counted only after the
 * asking, and must not count as a silence longer than any timeout.
 */
TEST_F(forge_tape, sim_stop__posting_before_reading_condemns_nobody)
{
    struct sim_world *w =
        forge_begin(self, &(struct sim_options){.hosts = 3, .peer_timeout_ns = 500 * MSEC_NS});

    forge_exchange(w, HOST_0, HOST_1);
    forge_exchange(w, HOST_0, HOST_2);
    sim_run(w, 1 * MSEC_NS);
    forge_cut(self, HOST_0, HOST_1, true);
    forge_cut(self, HOST_0, HOST_2, true);
    sim_send(w, HOST_0, HOST_2, BYTES); /* something is due: there is a stall to be seen */
    sim_run(w, 1 * MSEC_NS);
    sim_stop_for(w, HOST_0, 200 * MSEC_NS);
    sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 300 * MSEC_NS);
    assert_int_equal(w->node[HOST_0].unreachable, 0);
    forge_cut(self, HOST_0, HOST_1, false);
    forge_cut(self, HOST_0, HOST_2, false);
    sim_run_until_complete(w, 500 * MSEC_NS);

    assert_int_equal(w->node[HOST_0].unreachable, 0);
}

/* SIGSTOP of 2 s on either side, in mid-message both ways. */
TEST_F(forge_tape, sim_stop__two_seconds_on_either_side)
{
    struct sim_world *w = forge_begin(self, &(struct sim_options){.rate_bps = 10000000000});

    for (uint32_t stopped = HOST_0; stopped <= HOST_1; stopped++) {
        sim_send(w, HOST_0, HOST_1, 2 << 20);
        sim_write_imm(w, HOST_1, HOST_0, 2 << 20);
        sim_run(w, 200 * USEC_NS);
        mrd_sim_stop_host(w->sim, stopped, 1);
        sim_run(w, 2 * SEC_NS);
        assert_false(sim_is_complete(w));
        mrd_sim_stop_host(w->sim, stopped, 0);
        sim_run_until_complete(w, 2 * SEC_NS);
    }

    assert_true(sim_payload_equal(w, HOST_0));
    assert_true(sim_payload_equal(w, HOST_1));
    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        assert_int_equal(w->node[host].unreachable + w->node[host].restarted, 0);
        assert_int_equal(sim_counter(w, host, "tx_messages_failed"), 0);
    }
}
