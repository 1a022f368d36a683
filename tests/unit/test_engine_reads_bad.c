/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics: peers that break the rules, and what waits when others end. */
#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "core/engine/rx_bind.h"
#include "core/engine/timer.h"
#include "tests/unit/engine_reads.h"

enum {
    LONG_BYTES = 3 * PAIR_PAYLOAD,
    REFUSALS_MAX = 8192,
    STRANGER_PORT = 999,
};

static void begin(struct pair *p)
{
    begin_in(p, MRD_ORDER_NONE);
}

FIXTURE_OF(reads, pair);
FIXTURE_FROM(reads, begin, pair_end);

static void begin_ordered(struct pair *p)
{
    begin_in(p, MRD_ORDER_MSG);
}

FIXTURE_OF(ordered_reads, pair);
FIXTURE_FROM(ordered_reads, begin_ordered, pair_end);

/* The peer that asks, as the target knows it. */
static struct mrd_peer *asker(struct pair *p)
{
    return mrd_peer_find(&p->end[TARGET].e->peers, &p->end[ASKER].addr);
}

/* The target, as the asker knows it, with a receive state as if it had sent something. */
static struct mrd_peer *answerer(struct pair *p)
{
    struct mrd_peer *peer = hand_rx_peer(p, ASKER);

    peer->heard_ns = p->now;
    return peer;
}

static struct mrd_ah *stranger_ah(struct pair *p)
{
    struct mrd_addr addr = {.port = STRANGER_PORT};
    struct mrd_ah *ah = pair_ah(p, ASKER, &addr);

    assert_non_null(ah);
    return ah;
}

static struct mrd_peer *stranger(struct pair *p)
{
    struct mrd_addr addr = {.port = STRANGER_PORT};

    return mrd_peer_find(&p->end[ASKER].e->peers, &addr);
}

static void forget_stranger(struct pair *p, struct mrd_ah *ah)
{
    if (stranger(p)->tx)
        mrd_send_state_end(p->end[ASKER].e, stranger(p), MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(mrd_engine_destroy_ah(p->end[ASKER].e, ah), 0);
}

/* The answer to the request posted last. */
static struct mrd_wire_part answer(const struct pair *p, uint16_t len)
{
    return (struct mrd_wire_part){.op = MRD_OP_RESPONSE,
                                  .len = len,
                                  .total = len,
                                  .dst_qpn = p->end[ASKER].qp->qp_num,
                                  .src_qpn = p->end[TARGET].qp->qp_num,
                                  .token = p->end[ASKER].e->requests.token_next - 1};
}

/* A request takes no receive, so it has no immediate data. */
TEST_F(reads, reads_bad__request_with_immediate)
{
    static const uint8_t ops[] = {MRD_OP_READ, MRD_OP_CMP_SWAP, MRD_OP_FETCH_ADD};
    struct mrd_peer *peer = hand_rx_peer(self, TARGET);
    struct mrd_wire_part part = hand_write(self, TARGET, 0);

    pair_post_recv(self, TARGET, 0, 64);
    part.flags = MRD_PART_IMM;
    part.total = MRD_WIRE_ATOMIC_BYTES;
    for (unsigned i = 0; i < 3; i++) {
        part.op = ops[i];
        assert_int_equal(hand_place(self, TARGET, peer, i, &part, 1).verdict, MRD_PLACE_MALFORMED);
    }
    assert_int_equal(hand_qp(self, TARGET)->recvq->num_posted, 1);
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

/* What no requester of ours sends: more than 1 GiB, and an atomic between two words. */
TEST_F(reads, reads_bad__out_of_bounds)
{
    struct mrd_qp_impl *qp = hand_qp(self, TARGET);
    struct mrd_wire_part part = hand_write(self, TARGET, 0);

    self->end[TARGET].mr->length = UINT32_MAX;
    part.op = MRD_OP_READ;
    part.total = MRD_MESSAGE_BYTES_MAX;
    assert_int_equal(mrd_rx_check_target(self->end[TARGET].e, &part, qp), MRD_RX_TAKEN);
    part.total++;
    assert_int_equal(mrd_rx_check_target(self->end[TARGET].e, &part, qp), MRD_REFUSE_INVALID);
    part.op = MRD_OP_FETCH_ADD;
    part.total = MRD_WIRE_ATOMIC_BYTES;
    part.addr += 4;
    assert_int_equal(mrd_rx_check_target(self->end[TARGET].e, &part, qp), MRD_REFUSE_INVALID);
    self->end[TARGET].mr->length = PAIR_MEMORY;
}

/* One request has one answer: a second one fails it, and nothing of the first is placed later. */
TEST_F(pair, reads_bad__two_answers)
{
    for (unsigned small = 0; small < 2; small++) {
        begin_in(self, MRD_ORDER_NONE);
        ask(self, MRD_WR_RDMA_READ, 0, LONG_BYTES);
        struct mrd_peer *peer = answerer(self);
        struct mrd_wire_part part = answer(self, LONG_BYTES);
        memset(self->end[TARGET].memory, 0x11, LONG_BYTES);
        struct mrd_wire_part first = hand_piece(part, 1, 0, PAIR_PAYLOAD, LONG_BYTES);
        struct mrd_wire_part second =
            small ? part : hand_piece(part, 2, PAIR_PAYLOAD, PAIR_PAYLOAD, LONG_BYTES);

        assert_int_equal(hand_place(self, ASKER, peer, 0, &first, 1).verdict, MRD_PLACED);
        struct hand_placed got = hand_place(self, ASKER, peer, 1, &second, 1);
        assert_int_equal(got.verdict, MRD_PLACE_REFUSED);
        assert_int_equal(got.code, MRD_REFUSE_INVALID);
        assert_int_equal(peer->rx->slots.num_open, 0);
        memset(self->end[ASKER].memory + HERE, 0xee, LONG_BYTES);
        first.offset = 2 * PAIR_PAYLOAD;
        hand_place(self, ASKER, peer, 2, &first, 1);
        assert_int_equal(self->end[ASKER].memory[HERE + 2 * PAIR_PAYLOAD], 0xee);
        mrd_recv_state_end(self->end[ASKER].e, peer, MRD_SPACE_NONE);
        expect_ends(self, 1, MRD_WC_REM_OP_ERR);
    }
}

/* The answer to an atomic is a number, which cannot come in pieces. */
TEST_F(reads, reads_bad__atomic_answered_in_pieces)
{
    memset(self->end[ASKER].memory + HERE, 0xee, 8);
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
    struct mrd_peer *peer = answerer(self);
    struct mrd_wire_part part = hand_piece(answer(self, 8), 1, 0, 8, 8);
    struct hand_placed got = hand_place(self, ASKER, peer, 0, &part, 1);
    assert_int_equal(got.verdict, MRD_PLACE_REFUSED);
    assert_int_equal(got.code, MRD_REFUSE_INVALID);
    assert_int_equal(self->end[ASKER].memory[HERE], 0xee);
    mrd_recv_state_end(self->end[ASKER].e, peer, MRD_SPACE_NONE);
    expect_ends(self, 1, MRD_WC_REM_OP_ERR);
}

/* Without room for a refusal, a packet that would answer a request twice is not taken. */
TEST_F(reads, reads_bad__answered_twice_in_a_packet)
{
    static void *taken[REFUSALS_MAX + 1];
    struct mrd_wire_part part[2];

    ask(self, MRD_WR_RDMA_READ, 0, 64);
    struct mrd_peer *peer = answerer(self);
    part[0] = part[1] = answer(self, 64);
    hand_exhaust(&self->end[ASKER].e->refusals, taken);
    assert_int_equal(hand_place(self, ASKER, peer, 0, part, 2).verdict, MRD_PLACE_NO_ROOM);
    assert_int_equal(hand_place(self, ASKER, peer, 0, part, 1).verdict, MRD_PLACED);
    hand_refill(&self->end[ASKER].e->refusals, taken);
    mrd_recv_state_end(self->end[ASKER].e, peer, MRD_SPACE_NONE);
    expect_ends(self, 1, MRD_WC_SUCCESS);
}

/* The counter of tokens came round, and an old request is not answered yet. */
TEST_F(reads, reads_bad__token_in_use)
{
    struct mrd_engine *e = self->end[ASKER].e;

    e->requests.token_next = UINT32_MAX;
    memset(self->end[TARGET].memory, 0x11, 64);
    memset(self->end[TARGET].memory + 64, 0x22, 64);
    ask(self, MRD_WR_RDMA_READ, 0, 64);
    e->requests.token_next = UINT32_MAX;
    ask(self, MRD_WR_RDMA_READ, 64, 64);
    assert_int_equal(e->requests.token_next, 1);
    expect_ends(self, 2, MRD_WC_SUCCESS);
    assert_memory_equal(self->end[ASKER].memory + HERE, self->end[TARGET].memory, 128);
}

/* What is held back holds no queue, and its peer is asked now and then. */
TEST_F(reads, reads_bad__held_holds_nothing)
{
    struct mrd_engine *e = self->end[ASKER].e;
    struct mrd_ah *ah = stranger_ah(self);

    hand_qp(self, ASKER)->requests.max_rd_atomic = 1;
    ask(self, MRD_WR_RDMA_READ, 0, 64);
    ask_by(self, ah, MRD_WR_RDMA_READ, 64, 64, 0);
    pair_turn(self, ASKER);
    assert_int_equal(e->txqs.pool.used, 0);
    mrd_timer_next_ns(e); /* sets the timers */
    assert_in_range(stranger(self)->timer.at_ns, self->now, self->now + MRD_WAITING_NS);
    hand_flush(self, ASKER);
    expect_ends(self, 2, MRD_WC_WR_FLUSH_ERR);
    forget_stranger(self, ah);
}

/* A fenced message ends with its peer: those behind it go, though the read goes on. */
TEST_F(reads, reads_bad__fence_that_ends)
{
    struct mrd_ah *ah = stranger_ah(self);

    ask(self, MRD_WR_RDMA_READ, 0, 64);
    ask_by(self, ah, MRD_WR_RDMA_WRITE, 64, 64, MRD_SEND_FENCE);
    ask(self, MRD_WR_RDMA_WRITE, 128, 64);
    assert_int_equal(hand_length(&hand_qp(self, ASKER)->requests.held), 2);
    forget_stranger(self, ah);
    assert_int_equal(take(self).status, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(hand_qp(self, ASKER)->requests.num, 1);
    assert_true(mrd_list_empty(&hand_qp(self, ASKER)->requests.held));
    expect_ends(self, 2, MRD_WC_SUCCESS);
}

/* The first of the five requests has this send slot; the others go round the end of them. */
static void flush_from_slot(struct pair *p, unsigned slot)
{
    begin_in(p, MRD_ORDER_MSG);
    for (unsigned i = 0; i < slot; i++)
        ask(p, MRD_WR_RDMA_WRITE, 32, 8);
    expect_ends(p, slot, MRD_WC_SUCCESS);
    ask(p, MRD_WR_RDMA_WRITE, 0, 8);
    ask(p, MRD_WR_RDMA_READ, 8, 8);
    ask_by(p, p->end[ASKER].ah, MRD_WR_RDMA_WRITE, 16, 8, MRD_SEND_FENCE);
    ask(p, MRD_WR_RDMA_READ, 24, 8);
    ask(p, MRD_WR_RDMA_WRITE, 32, 8);
    pair_turn(p, ASKER);
    hand_flush(p, ASKER);
    settle(p);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(take(p).wr_id, 8 * i);
}

/* Ordered: what is held back completes behind what was posted before it, also in error. */
TEST_F(pair, reads_bad__flushed_in_order)
{
    for (unsigned slot = 0; slot < 16; slot++)
        flush_from_slot(self, slot);
}

/* The same when the peer is given up, while a read from another one goes on. */
TEST_F(ordered_reads, reads_bad__given_up_in_order)
{
    struct mrd_ah *ah = stranger_ah(self);

    ask_by(self, ah, MRD_WR_RDMA_WRITE, 0, 8, 0);
    ask(self, MRD_WR_RDMA_READ, 8, 8);
    ask_by(self, ah, MRD_WR_RDMA_WRITE, 16, 8, MRD_SEND_FENCE);
    forget_stranger(self, ah);
    assert_int_equal(take(self).wr_id, 0);
    assert_int_equal(take(self).wr_id, 16);
    settle(self);
    assert_int_equal(take(self).wr_id, 8);
}

/*
 * The asker's life ended while we wait for a first answer: what it asked for is not sent to the
 * next life, which may use the same tokens. If the life goes on, its answers do.
 */
TEST_F(pair, reads_bad__answers_to_a_dead_life)
{
    for (unsigned alive = 0; alive < 2; alive++) {
        begin_in(self, MRD_ORDER_NONE);
        struct mrd_engine *e = self->end[TARGET].e;
        struct mrd_peer *peer = hand_tx_peer(self, TARGET);
        struct mrd_wire_part part = hand_write(self, TARGET, 0);
        struct mrd_wire_head reset = hand_head(self, TARGET, MRD_WIRE_RESET);
        pair_post(self, TARGET, MRD_WR_RDMA_WRITE, 0, 8);
        hand_rx_peer(self, TARGET);
        peer->tx->contact.hello = true;
        peer->tx->contact.inc = pair_inc(self, ASKER);
        part.op = MRD_OP_READ;
        part.total = 64;
        assert_int_equal(hand_place(self, TARGET, peer, 0, &part, 1).verdict, MRD_PLACED);
        reset.epoch = peer->tx->contact.epoch;
        reset.live_epoch = alive ? HAND_EPOCH : UINT32_MAX;
        mrd_contact_reset(e, &reset, &self->end[ASKER].addr);
        assert_int_equal(e->responses.used, alive);
        assert_int_equal(peer->tx->contact.inc, alive ? pair_inc(self, ASKER) : 0);
        assert_int_equal(hand_length(&peer->msgs), 1 + alive); /* our own work goes on */
        mrd_peer_unreachable(e, peer);
    }
}

/* The asker gave its space up: ordered requests whose turn never comes leave no record. */
TEST_F(ordered_reads, reads_bad__turn_in_a_space_that_ended)
{
    struct mrd_engine *e = self->end[TARGET].e;

    ask(self, MRD_WR_RDMA_WRITE, 0, 8);
    pair_turn(self, ASKER);
    self->end[TARGET].num_inbox = 0;
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 24, 8);
    arrive(self);
    assert_int_equal(e->responses.used, 1);
    mrd_recv_state_end(e, asker(self), MRD_SPACE_TOMB);
    settle(self);
    assert_int_equal(e->responses.used, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_not_equal(take(self).status, MRD_WC_SUCCESS);
}

/*
 * The target gave the asker up while that one was stopped, and goes on to write to it: what it
 * writes is no sign that it still owes the answer. Its first contact says that it does not.
 */
TEST_F(reads, reads_bad__target_forgot_and_writes_on)
{
    struct mrd_wc wc;
    bool done = false;

    ask(self, MRD_WR_RDMA_READ, 0, LONG_BYTES);
    arrive_unanswered(self);
    forget_asker(self);
    for (unsigned i = 0; i < 4000 && !done; i++) {
        pair_post(self, TARGET, MRD_WR_RDMA_WRITE, 0, 64);
        for (unsigned k = 0; k < 5; k++) {
            pair_turn(self, TARGET);
            self->now += MRD_MSEC / 2;
            pair_turn(self, ASKER);
            self->now += MRD_MSEC / 2;
        }
        done = pair_poll(self, ASKER, &wc);
        while (pair_poll(self, TARGET, &wc))
            ;
    }
    assert_true(done);
    settle(self);
}

/* The asker asks 10 ms after its request was acked, also if the target writes each millisecond. */
TEST_F(reads, reads_bad__asked_while_the_target_writes)
{
    enum { PACKETS = 16, AT = MRD_SILENCE_MIN_NS / MRD_MSEC };
    static struct pair_frame frame[PACKETS];
    struct mrd_engine *e = self->end[ASKER].e;

    ask(self, MRD_WR_RDMA_WRITE, 0, 8);
    expect_ends(self, 1, MRD_WC_SUCCESS);
    pair_post(self, TARGET, MRD_WR_RDMA_WRITE, 0, PACKETS * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(self, TARGET), PACKETS);
    memcpy(frame, self->end[ASKER].inbox, sizeof(frame));
    self->end[ASKER].num_inbox = 0;
    ask(self, MRD_WR_RDMA_READ, 0, LONG_BYTES);
    arrive_unanswered(self);
    assert_false(mrd_sent_any(&pair_peer(self, ASKER)->tx->sent));
    assert_int_equal(pair_peer(self, ASKER)->uses.requests, 1);
    for (unsigned i = 1; i <= PACKETS; i++) {
        self->now += MRD_MSEC;
        pair_rx_one(self, ASKER, &frame[i - 1]);
        pair_turn(self, ASKER);
        assert_int_equal(e->stats.probes, i >= AT);
    }
    expect_ends(self, 1, MRD_WC_SUCCESS);
}

/* A read that is refused for its key says nothing about receives: a send keeps its retries. */
TEST_F(reads, reads_bad__refused_beside_a_send)
{
    struct mrd_engine *e = self->end[TARGET].e;

    mrd_qp_impl(self->end[ASKER].qp)->rnr_retry = 3;
    ask(self, MRD_WR_SEND, 0, 8);
    arrive(self);
    pair_hop(self, ASKER);
    assert_int_equal(e->stats.rx_refuse_rnr, 1);
    self->end[TARGET].mr->rkey++; /* the asker names a key that does not exist */
    ask(self, MRD_WR_RDMA_READ, 8, 8);
    self->end[TARGET].mr->rkey--;
    expect_ends(self, 1, MRD_WC_REM_ACCESS_ERR);
    assert_int_equal(take(self).status, MRD_WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(e->stats.rx_refuse_rnr, 1 + 3);
}
