/* SPDX-License-Identifier: BSD-2-Clause */
/* What may go now: windows, PSNs, grants, bursts, company, and probes of paths. */
#include "core/engine/peer_state.h"
#include "core/engine/tx_emit.h"
#include "core/engine/tx_gate.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, TRACKER = 1024, QUANTUM = 8 };

/* A send state whose figures a test changes. */
FIXTURE(gate)
{
    struct pair pair;
    uint32_t quantum, paths; /* 0: as they are else */
    const char *spray;
    struct mrd_engine *e;
    struct mrd_peer *peer;
    struct mrd_send_state *tx;
    double packet; /* bytes of a packet, in the window's measure */
};

static void begin(struct gate *t)
{
    struct pair *p = &t->pair;

    pair_config(p);
    p->config.mover.quantum = t->quantum ? t->quantum : 1;
    p->config.mover.tracker = TRACKER;
    p->config.spray = t->spray;
    if (t->paths)
        p->config.paths = p->config.mover.paths = t->paths;
    pair_open(p);
    t->e = p->end[AT].e;
    t->peer = hand_tx_peer(p, AT);
    t->tx = t->peer->tx;
    t->packet = t->tx->cc.packet_bytes;
}

static void set_inflight(struct gate *t, uint32_t num, double packets)
{
    t->tx->sent.inflight.num = num;
    t->tx->sent.inflight_bytes = (uint64_t)(packets * t->packet);
}

/* The send state, where there is still one, is given back as it was. */
static void end(struct gate *t)
{
    if (t->peer->tx) {
        set_inflight(t, 0, 0);
        t->tx->sent.una = t->tx->sent.next = 0;
    }
    pair_end(&t->pair);
}

FIXTURE_FROM(gate, begin, end);

/* -------------------------------------------------------------------------------------- windows */

/* Open as long as less is in flight than the window holds. */
TEST_F(gate, mrd_tx_window_open__below_the_window)
{
    self->tx->cc.cwnd_bytes = 3 * self->packet;
    set_inflight(self, 3, 2.9);
    assert_true(mrd_tx_window_open(self->e, self->tx));
    set_inflight(self, 3, 3);
    assert_false(mrd_tx_window_open(self->e, self->tx));
}

/*
 * Where a queue dropped packets they leave evenly over the SRTT, large ones after more time than small ones. A
 * host that is late makes up for little of that.
 */
TEST_F(gate, mrd_tx_window_open__paced)
{
    enum { SRTT_NS = 64000, GAP_NS = SRTT_NS / 16 };

    self->pair.now += 1000 * SRTT_NS;
    uint64_t now_ns = self->e->clock.now_ns = self->pair.now;
    self->tx->cc.cwnd_bytes = 16 * self->packet;
    self->tx->loss.srtt_ns = SRTT_NS;
    self->tx->cc.nscc.queue_losses.gentle = 1;
    self->tx->sent_ns = now_ns - GAP_NS; /* just in time */
    assert_true(mrd_tx_window_open(self->e, self->tx));
    mrd_tx_left(self->e, self->tx, (uint32_t)self->packet);
    assert_int_equal(mrd_tx_pace_ns(self->tx), now_ns + GAP_NS);
    assert_false(mrd_tx_window_open(self->e, self->tx));
    self->e->clock.now_ns = now_ns + GAP_NS;
    assert_true(mrd_tx_window_open(self->e, self->tx));
    mrd_tx_left(self->e, self->tx, (uint32_t)self->packet / 4);
    assert_in_range(mrd_tx_pace_ns(self->tx), now_ns + GAP_NS + GAP_NS / 4 - 2,
                    now_ns + GAP_NS + GAP_NS / 4 + 2);
    /* Two gaps late, then very late: what an SRTT carries may go at once. */
    for (unsigned late = 2; late <= 100; late += 98) {
        unsigned n = 0;

        self->tx->sent_ns = now_ns;
        self->e->clock.now_ns = now_ns + (1 + late) * GAP_NS;
        for (; n < 100 && mrd_tx_window_open(self->e, self->tx); n++)
            mrd_tx_left(self->e, self->tx, (uint32_t)self->packet);
        assert_int_equal(n, late == 2 ? 3 : 17);
    }
    /* Not paced: the window alone counts. */
    self->tx->cc.nscc.queue_losses.gentle = 0;
    mrd_tx_left(self->e, self->tx, (uint32_t)self->packet);
    assert_true(self->tx->sent_ns == self->e->clock.now_ns &&
                mrd_tx_window_open(self->e, self->tx));
    /* Where the network marks: at 1.25 windows an SRTT, but below a packet at one. */
    self->tx->cc.ce_seen = true;
    self->tx->cc.cwnd_bytes = 1.6 * self->packet;
    assert_int_equal(mrd_tx_pace_ns(self->tx), self->tx->sent_ns + SRTT_NS / 2);
    self->tx->cc.cwnd_bytes = 0.5 * self->packet;
    assert_int_equal(mrd_tx_pace_ns(self->tx), self->tx->sent_ns + 2 * SRTT_NS);
}

/* What a full window held back, not the host, goes no sooner than in its time: a quarter of an SRTT is left. */
TEST_F(gate, mrd_tx_left__after_a_full_window)
{
    enum { SRTT_NS = 64000, GAP_NS = SRTT_NS / 16 };

    self->pair.now += 1000 * SRTT_NS;
    for (unsigned full = 0; full <= 1; full++) {
        unsigned n = 0;

        self->e->clock.now_ns = self->pair.now;
        self->tx->cc.cwnd_bytes = 16 * self->packet;
        self->tx->loss.srtt_ns = SRTT_NS;
        self->tx->cc.nscc.queue_losses.gentle = 1;
        self->tx->sent_ns = self->pair.now - 10 * SRTT_NS;
        self->tx->run.full = full;
        for (; n < 100 && mrd_tx_window_open(self->e, self->tx); n++)
            mrd_tx_left(self->e, self->tx, (uint32_t)self->packet);
        assert_int_equal(n, full ? (self->e->config.mover.link_bps ? 5 : 3) : 17);
    }
}

/* A run of paced packets is 1/64 of the window, 1/8 where the network marks, and a packet at least. */
TEST_F(gate, mrd_tx_paced_run__of_the_window)
{
    static const struct {
        double window;
        uint32_t run, marked_run;
    } table[] = {{0.5, 1, 1}, {20, 1, 2}, {64, 1, 8}, {129, 2, 16}, {6400, 100, 800}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        self->tx->cc.cwnd_bytes = table[i].window * self->packet;
        self->tx->cc.ce_seen = false;
        assert_int_equal(mrd_tx_paced_run(self->tx), table[i].run);
        self->tx->cc.ce_seen = true;
        assert_int_equal(mrd_tx_paced_run(self->tx), table[i].marked_run);
    }
}

/* Below one packet it is a rate: the next packet goes alone, and in its time. */
TEST_F(gate, mrd_tx_window_open__below_one_packet)
{
    self->tx->cc.cwnd_bytes = self->packet / 4;
    self->tx->loss.srtt_ns = 1000;
    self->tx->sent_ns = self->pair.now - 4000;
    assert_true(mrd_tx_window_open(self->e, self->tx));
    set_inflight(self, 1, 0);
    assert_false(mrd_tx_window_open(self->e, self->tx));
    set_inflight(self, 0, 0);
    self->tx->sent_ns++;
    assert_false(mrd_tx_window_open(self->e, self->tx));
}

/* An estimate far above the latest sample is one of the past. */
TEST_F(gate, mrd_tx_pace_ns__after_stalls)
{
    self->tx->cc.cwnd_bytes = self->packet / 10;
    self->tx->sent_ns = self->pair.now;
    self->tx->loss.srtt_ns = 200000000;
    self->tx->loss.latest_ns = 100000;
    assert_int_equal(mrd_tx_pace_ns(self->tx), self->pair.now + 1000000);
    self->tx->loss.srtt_ns = 400000; /* within what samples vary by */
    assert_int_equal(mrd_tx_pace_ns(self->tx), self->pair.now + 4000000);
    self->tx->loss.latest_ns = 0; /* none yet */
    assert_int_equal(mrd_tx_pace_ns(self->tx), self->pair.now + 4000000);
}

/* Each share of the tracker has its bound, wherever the PSNs are. */
TEST_F(gate, mrd_tx_psn_room__shares)
{
    static const struct {
        uint32_t sixteenths, room;
    } rows[] = {{MRD_PSN_DATA, 320}, {MRD_PSN_CONTROL, 384}, {MRD_PSN_REFUSALS, 1024}};

    for (uint32_t times = 1; times <= 64; times *= 8) { /* the peer's may grow */
        self->tx->told.tracker = times * TRACKER;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            self->tx->sent.una = UINT32_MAX - 5;
            self->tx->sent.next = self->tx->sent.una + times * rows[i].room - 1;
            assert_true(mrd_tx_psn_room(self->tx, rows[i].sixteenths));
            self->tx->sent.next++;
            assert_false(mrd_tx_psn_room(self->tx, rows[i].sixteenths));
        }
    }
}

/* The number of packets that may leave is where stepping through the checks ends. */
TEST_F_WITH(gate, mrd_tx_room__where_the_checks_say_no, self->quantum = 4)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, 1);
    for (unsigned i = 0; i < 3000; i++) {
        uint32_t una = 0u - mrd_rng_below(&rng, 3), inflight = mrd_rng_below(&rng, 100);
        uint32_t bytes = 1000 + mrd_rng_below(&rng, 4000), room, n;

        self->tx->cc.cwnd_bytes =
            mrd_rng_below(&rng, 20) * self->packet / 2 + mrd_rng_below(&rng, 2) / 3.0;
        self->tx->sent.una = una;
        self->tx->sent.next = una + inflight;
        self->tx->told.psn_limit = una + mrd_rng_below(&rng, 250);
        self->tx->sent.inflight.num = 1;
        self->tx->sent.inflight_bytes = mrd_rng_below(&rng, 8) * bytes;
        room = mrd_tx_room(self->tx, bytes);
        for (n = 0; mrd_tx_window_open(self->e, self->tx) && mrd_tx_is_granted(self->tx) &&
                    mrd_tx_psn_room(self->tx, MRD_PSN_DATA);
             n++) {
            self->tx->sent.next++;
            self->tx->sent.inflight_bytes += bytes;
        }
        assert_int_equal(room, n);
    }
}

/* A control packet needs a PSN of its share and memory for its record. */
TEST_F(gate, mrd_tx_add_control__room_and_memory)
{
    struct mrd_sent *rec = NULL;
    uint32_t added = 0;

    while (mrd_tx_add_control(self->peer, MRD_SENT_EMPTY, 1, &rec)) {
        assert_int_equal(rec->kind, MRD_SENT_EMPTY);
        assert_ptr_equal(mrd_sent_get(&self->tx->sent, added++), rec);
    }
    assert_int_equal(added, TRACKER / 16);
    assert_int_equal(self->tx->sent.next, added);
    /* That is one page of records. Of a second one only what is never refused has the use. */
    self->tx->sent.keep_free = UINT32_MAX;
    assert_false(mrd_tx_add_control(self->peer, MRD_SENT_ABORT, 2, &rec));
    assert_true(mrd_tx_add_control(self->peer, MRD_SENT_READY, 2, &rec));
    mrd_send_state_end(self->e, self->peer, MRD_WC_RETRY_EXC_ERR);
}

/* A path that is out is probed when its time has come, by one empty packet. */
TEST_F(gate, mrd_tx_probe_path__when_its_time_has_come)
{
    enum { OUT = 3 };
    struct mrd_tx_packet packet = {.head = self->pair.head[0], .head_cap = MRD_TX_HEAD_BYTES};
    struct mrd_tx_out o = {.packets = &packet, .max = 1};
    const struct mrd_path *path = &self->tx->paths.path[OUT];

    assert_false(mrd_tx_probe_path(self->e, self->peer, &o));
    mrd_path_sent(&self->tx->paths, OUT);
    mrd_path_lost(&self->tx->paths, OUT, 10000, self->pair.now);
    assert_int_equal(path->state, MRD_PATH_SUSPENDED);
    mrd_engine_begin(self->e, path->until_ns - 1);
    assert_false(mrd_tx_probe_path(self->e, self->peer, &o));
    mrd_engine_begin(self->e, path->until_ns);
    self->tx->sent.next = TRACKER / 16 * MRD_PSN_CONTROL;
    assert_false(mrd_tx_probe_path(self->e, self->peer, &o)); /* no PSN */
    self->tx->sent.next = 0;
    assert_true(mrd_tx_probe_path(self->e, self->peer, &o));
    mrd_tx_seal(&o);
    assert_int_equal(o.num, 1);
    assert_int_equal(packet.path, path->ev);
    assert_int_equal(mrd_sent_get(&self->tx->sent, 0)->kind, MRD_SENT_EMPTY);
    assert_int_equal(self->e->stats.probes_path, 1);
    assert_false(mrd_tx_probe_path(self->e, self->peer, &o)); /* the probe is on its way */
    mrd_send_state_end(self->e, self->peer, MRD_WC_RETRY_EXC_ERR);
}

/* -------------------------------------------------------------------------------------- waiting */

/* A segment waits for the room of a burst: a part of the window, of what is left, of a quantum. */
TEST_F_WITH(gate, mrd_tx_waits_for_burst__room, self->quantum = QUANTUM)
{
    static const struct {
        double window, inflight, rest; /* packets */
        bool waits;
    } rows[] = {
        {16, 12, 100, false},                        /* a burst is a quarter of the window */
        {16, 12.1, 100, true},                       /* less than that is left */
        {16, 14, 2, false},                          /* the message ends with less */
        {16, 14.1, 2, true},   {64, 56, 100, false}, /* a quantum is all that the mover takes */
        {64, 56.1, 100, true},
    };
    struct mrd_msg msg = {.multi = true};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        self->tx->cc.cwnd_bytes = rows[i].window * self->packet;
        set_inflight(self, 1, rows[i].inflight);
        msg.next_offset = 77;
        msg.wr.length = 77 + (uint32_t)(rows[i].rest * self->packet);
        assert_int_equal(mrd_tx_waits_for_burst(self->e, self->tx, &msg), rows[i].waits);
    }
}

/* Not where nothing is in flight, for short messages, within a burst, or for movers without any. */
TEST_F(gate, mrd_tx_waits_for_burst__never)
{
    for (unsigned i = 0; i < 6; i++) {
        struct mrd_msg msg = {.multi = i != 2, .wr.length = 1 << 20};

        end(self);
        self->quantum = i == 1 ? 1 : QUANTUM;
        begin(self);
        self->tx->cc.cwnd_bytes = 16 * self->packet;
        set_inflight(self, i == 3 ? 0 : 1, 15);
        self->tx->run.left = i >= 4;
        self->tx->run.picked_ns = self->pair.now - (i == 5);
        assert_int_equal(mrd_tx_waits_for_burst(self->e, self->tx, &msg), i == 0 || i == 5);
    }
}

/* A packet that is not full waits within a post, while more is in flight than waits. */
TEST_F(gate, mrd_tx_coalesces__all_of_it)
{
    for (unsigned missing = 0; missing <= 5; missing++) {
        struct mrd_node queue;

        end(self);
        begin(self);
        mrd_list_init(&queue);
        if (missing != 1)
            mrd_list_append(&self->tx->txqs, &queue);
        self->e->calls.post_seq = self->e->calls.seq - (missing == 2);
        set_inflight(self, missing != 3, missing != 3);
        self->tx->queued_bytes = self->tx->pmtu.payload - (missing != 4);
        if (missing == 5)
            self->tx->sent.inflight_bytes = self->tx->queued_bytes;
        assert_int_equal(mrd_tx_coalesces(self->e, self->tx), missing == 0);
        mrd_list_remove(&queue);
    }
}

/* Data fills half of a grant, also of one that shrank to less than what is in flight. */
TEST_F(gate, mrd_tx_is_granted__half)
{
    static const struct {
        int32_t limit, sent; /* from the oldest packet in flight */
        bool granted;
    } rows[] = {{20, 9, true}, {20, 10, false}, {1, 0, false}, {2, 0, true}, {-4, 0, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        self->tx->sent.una = UINT32_MAX - 3;
        self->tx->sent.next = self->tx->sent.una + (uint32_t)rows[i].sent;
        self->tx->told.psn_limit = self->tx->sent.una + (uint32_t)rows[i].limit;
        assert_int_equal(mrd_tx_is_granted(self->tx), rows[i].granted);
    }
}

/* Half of what the link holds, or more. */
TEST_F(gate, mrd_tx_full_window__half_a_bdp)
{
    double half = mrd_cc_bdp_bytes(&self->tx->cc, mrd_loss_rtt_min_ns(&self->tx->loss)) / 2;

    assert_true(half > self->packet);
    self->tx->cc.cwnd_bytes = half;
    assert_true(mrd_tx_full_window(self->tx));
    self->tx->cc.cwnd_bytes = half - 1;
    assert_false(mrd_tx_full_window(self->tx));
}

/* --------------------------------------------------------------------------------- more paths */

/* Twice as many paths as packets in flight: a peer of few messages needs few, and little memory. */
TEST_F_WITH(gate, mrd_tx_pick_path__paths_follow_the_packets, self->paths = 64)
{
    static const struct {
        const char *spray;
        uint32_t inflight, paths;
    } table[] = {{"adaptive", 3, 8},   {"adaptive", 4, 16}, {"rr", 20, 64},
                 {"random", 1000, 64}, {"reps", 64, 64},    {"single", 1000, 8}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        end(self);
        self->spray = table[i].spray;
        begin(self);
        assert_int_equal(self->tx->paths.num, MRD_PATHS_FIRST);
        self->tx->sent.inflight.num = table[i].inflight;
        assert_in_range(mrd_tx_pick_path(self->e, self->tx, -1), 0, table[i].paths - 1);
        assert_int_equal(self->tx->paths.num, table[i].paths);
    }
}
