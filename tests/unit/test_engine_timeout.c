/* SPDX-License-Identifier: BSD-2-Clause */
/* Timeouts that were needless, and when a silent peer is given up. */
#include "tests/unit/engine_pair.h"

enum { PACKETS = 12, LEAD_NS = 1000 * 1000 };

static struct pair_frame sent[PACKETS];

static uint64_t deadline_ns(const struct pair *p)
{
    uint64_t at_ns = mrd_engine_deadline(p->end[0].e);

    return at_ns > p->now ? at_ns : p->now; /* 0: it has something to do now */
}

/* To the sender's next deadline; what it sends is lost. */
static void next_deadline(struct pair *p)
{
    p->now = deadline_ns(p);
    pair_turn(p, 0);
    p->end[1].num_inbox = 0;
}

/* PACKETS packets leave and are held up, in sent[], until the sender timed out. */
static void time_out(struct pair *p)
{
    pair_begin(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, 64);
    pair_settle(p, p->now + MRD_SEC);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, PACKETS * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), PACKETS);
    memcpy(sent, p->end[1].inbox, sizeof(sent));
    p->end[1].num_inbox = 0;
    struct mrd_peer *peer = pair_peer(p, 0);
    while (!peer->count.timeouts)
        next_deadline(p);
}

/* One of the packets that were held up comes, and its ack. */
static void arrives(struct pair *p, unsigned packet)
{
    pair_rx_one(p, 1, &sent[packet]);
    p->now += LEAD_NS; /* its ack need not wait for another packet */
    pair_turn(p, 1);
    assert_true(p->end[0].num_inbox > 0);
    mrd_engine_begin(p->end[0].e, p->now);
    pair_rx_one(p, 0, &p->end[0].inbox[0]);
    p->end[0].num_inbox = 0;
}

/* The first ack after an RTO is of a packet sent once, before it: nothing was lost or is cut. */
TEST_F(pair, mrd_rx_ack__needless_timeout_is_undone)
{
    time_out(self);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    double before = tx->probes.timeout_cwnd;
    assert_true(tx->cc.cwnd_bytes < before);
    arrives(self, PACKETS - 1);
    assert_true(tx->cc.cwnd_bytes >= before);
}

/* That it took so long, across our timeout, was a stall of the peer's, and is no RTT. */
TEST_F(pair, mrd_rx_ack__stall_is_no_rtt)
{
    time_out(self);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    uint64_t srtt_ns = tx->loss.srtt_ns;
    pair_rx_one(self, 1, &sent[PACKETS - 1]);
    pair_peer(self, 1)->rx->rcv.now = true; /* the ack is not held back */
    mrd_tx_ready(self->end[1].e, pair_peer(self, 1));
    pair_turn(self, 1);
    assert_true(self->end[0].num_inbox > 0);
    pair_rx_one(self, 0, &self->end[0].inbox[0]);
    self->end[0].num_inbox = 0;
    assert_int_equal(tx->loss.srtt_ns, srtt_ns);
}

/* It is of one that was sent again: which copy came is not known, so the next ack tells. */
TEST_F(pair, mrd_rx_ack__timeout_of_a_repeated_packet_waits)
{
    time_out(self);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    double before = tx->probes.timeout_cwnd;
    assert_true(tx->cc.cwnd_bytes < before);
    arrives(self, 0);
    assert_true(tx->cc.cwnd_bytes < before);
    assert_true(tx->probes.timeout_ns != 0); /* not judged yet */
}

/* It is of the copy that a timeout sent: the first was lost, and the cut stays. */
TEST_F(pair, mrd_rx_ack__timeout_that_was_needed_stays)
{
    time_out(self);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    double before = tx->probes.timeout_cwnd;
    double cut = tx->cc.cwnd_bytes;
    assert_true(cut < before);
    self->now = deadline_ns(self);
    pair_turn(self, 0);
    assert_true(self->end[1].num_inbox > 0);
    sent[0] = self->end[1].inbox[0];
    self->end[1].num_inbox = 0;
    arrives(self, 0);
    assert_true(tx->cc.cwnd_bytes < before);
    assert_true(tx->probes.timeout_ns == 0); /* judged */
}

/*
 * The RTO doubled often while acks came that told nothing new, and now nothing comes any more: the
 * peer is given up when its timeout is over, not when five of the longest RTOs are.
 */
TEST_F(pair, mrd_engine_expire__long_rtos_fit_into_the_timeout)
{
    struct mrd_wc wc;

    pair_config(self);
    self->config.peer_timeout_ns = 300 * MRD_MSEC;
    self->config.mover.rto_floor_ns = 10 * MRD_MSEC;
    pair_open(self);
    pair_write(self, 0, 0, 64);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, PACKETS * PAIR_PAYLOAD);
    pair_tx_lost(self, 0);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    tx->loss.probes = 40;
    tx->probes.unanswered = 0;
    uint64_t start_ns = self->now;
    while (!pair_poll(self, 0, &wc)) {
        assert_true(self->now < start_ns + 10 * self->config.peer_timeout_ns);
        next_deadline(self);
    }
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_true(self->now >= start_ns + self->config.peer_timeout_ns);
    assert_true(self->now < start_ns + 3 * self->config.peer_timeout_ns / 2);
}

/* Nothing else tells of a path that swallows all: the one of the last try is out. */
TEST_F(pair, mrd_engine_expire__timeout_suspects_the_path)
{
    time_out(self);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    assert_true(tx->paths.num_out > 0);
}

static uint64_t probes(const struct pair *p)
{
    return p->end[0].e->stats.retx_tail + p->end[0].e->stats.retx_timeout;
}

static void end_unreachable(struct pair *p)
{
    pair_expect(p, 0, MRD_WC_RETRY_EXC_ERR);
    pair_end(p);
}

/* However short the timeout: only five unanswered probes tell that nobody is there. */
TEST_F(pair, mrd_engine_expire__five_probes_before_giving_up)
{
    pair_config(self);
    self->config.peer_timeout_ns = MRD_USEC;
    pair_open(self);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 64);
    pair_turn(self, 0);
    while (!self->end[0].e->stats.peers_unreachable) {
        assert_true(probes(self) <= MRD_PROBES_MIN);
        next_deadline(self);
    }
    assert_int_equal(probes(self), MRD_PROBES_MIN);
    self->end[1].num_inbox = 0;
    end_unreachable(self);
}

/* After a long stall of our own the five are counted anew: earlier answers may be lost. */
TEST_F(pair, mrd_engine_expire__five_probes_after_a_stall)
{
    uint64_t before, end_ns, gap_ns = 0;

    pair_write(self, 0, 0, 64);
    end_ns = self->now + self->config.peer_timeout_ns;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 64);
    pair_turn(self, 0);
    while (self->now + 2 * gap_ns < end_ns) { /* two more probes, and the timeout is over */
        gap_ns = deadline_ns(self) - self->now;
        next_deadline(self);
    }
    before = probes(self);
    assert_true(before > MRD_PROBES_MIN && !self->end[0].e->stats.peers_unreachable);
    self->now = deadline_ns(self) + MRD_SEC;
    pair_turn(self, 0);
    while (!self->end[0].e->stats.peers_unreachable)
        next_deadline(self);
    assert_true(probes(self) >= before + MRD_PROBES_MIN);
    self->end[1].num_inbox = 0;
    end_unreachable(self);
}
