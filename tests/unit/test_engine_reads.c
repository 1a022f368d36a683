/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics between two engines: what they do, when they wait, and how they fail. */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_reads.h"

enum { LONG_BYTES = 5 * PAIR_PAYLOAD + 100 };

static void begin(struct pair *p)
{
    begin_in(p, MRD_ORDER_NONE);
    for (unsigned i = 0; i < PAIR_MEMORY; i++)
        p->end[TARGET].memory[i] = (uint8_t)(i * 7 + i / 256);
}

FIXTURE_OF(reads, pair);
FIXTURE_FROM(reads, begin, pair_end);

static uint64_t *word(struct pair *p, unsigned at, uint32_t offset)
{
    return (uint64_t *)(void *)(p->end[at].memory + offset);
}

static void ask_atomic(struct pair *p, enum mrd_wr_opcode opcode, uint32_t at, uint64_t compare_add,
                       uint64_t swap)
{
    struct hand_wr w;

    ask_wr(p, opcode, at, 8, &w);
    w.wr.wr.atomic.compare_add = compare_add;
    w.wr.wr.atomic.swap = swap;
    assert_int_equal(hand_post(p, ASKER, &w.wr), 0);
}

static void read_at(struct pair *p, uint32_t from, uint32_t len)
{
    ask(p, MRD_WR_RDMA_READ, from, len);
}

static void assert_read(struct pair *p, uint32_t from, uint32_t len)
{
    struct mrd_wc wc = take(p);

    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_int_equal(wc.opcode, MRD_WC_RDMA_READ);
    assert_int_equal(wc.byte_len, len);
    assert_int_equal(wc.wr_id, from);
    assert_memory_equal(p->end[ASKER].memory + HERE + from, p->end[TARGET].memory + from, len);
}

TEST_F(reads, reads__short_and_long)
{
    static const uint32_t lengths[] = {0, 1, 64, PAIR_PAYLOAD, PAIR_PAYLOAD + 1, LONG_BYTES};

    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        read_at(self, 3 * i, lengths[i]);
        settle(self);
        assert_read(self, 3 * i, lengths[i]);
    }
    assert_int_equal(self->end[TARGET].e->stats.rx_requests, 6);
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

TEST_F(reads, reads__atomics_answer_what_was_there)
{
    const uint64_t first = 0x1122334455667788;

    *word(self, TARGET, 64) = first;
    ask_atomic(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 64, 3, 0);
    settle(self);
    assert_int_equal(take(self).opcode, MRD_WC_FETCH_ADD);
    assert_int_equal(*word(self, ASKER, HERE + 64), first);
    assert_int_equal(*word(self, TARGET, 64), first + 3);

    ask_atomic(self, MRD_WR_ATOMIC_CMP_AND_SWP, 64, first, 1); /* differs: nothing is written */
    settle(self);
    assert_int_equal(take(self).opcode, MRD_WC_COMP_SWAP);
    assert_int_equal(*word(self, ASKER, HERE + 64), first + 3);
    assert_int_equal(*word(self, TARGET, 64), first + 3);

    ask_atomic(self, MRD_WR_ATOMIC_CMP_AND_SWP, 64, first + 3, 1);
    expect_ends(self, 1, MRD_WC_SUCCESS);
    assert_int_equal(*word(self, ASKER, HERE + 64), first + 3);
    assert_int_equal(*word(self, TARGET, 64), 1);
}

TEST_F(reads, reads__access_is_checked)
{
    static const struct {
        enum mrd_wr_opcode opcode;
        int access;
    } table[] = {{MRD_WR_RDMA_READ, MRD_ACCESS_REMOTE_ATOMIC},
                 {MRD_WR_ATOMIC_FETCH_AND_ADD, MRD_ACCESS_REMOTE_READ | MRD_ACCESS_REMOTE_WRITE},
                 {MRD_WR_ATOMIC_CMP_AND_SWP, MRD_ACCESS_REMOTE_READ}};

    for (unsigned i = 0; i < 3; i++) {
        register_again(self, TARGET, MRD_ACCESS_LOCAL_WRITE | table[i].access);
        *word(self, TARGET, 64) = 1; /* what a swap compares with */
        ask(self, table[i].opcode, 64, 8);
        expect_ends(self, 1, MRD_WC_REM_ACCESS_ERR);
        assert_int_equal(*word(self, TARGET, 64), 1);
    }
    register_again(self, TARGET, ALL_ACCESS);
    self->end[TARGET].mr->length = 71;
    read_at(self, 64, 8); /* one byte beyond the region */
    expect_ends(self, 1, MRD_WC_REM_ACCESS_ERR);
    read_at(self, 64, 7);
    expect_ends(self, 1, MRD_WC_SUCCESS);
}

/* The memory goes while the response is on its way: the asker is told. */
TEST_F(reads, reads__memory_that_goes_half_way)
{
    read_at(self, 0, LONG_BYTES);
    arrive(self);
    self->end[ASKER].num_inbox = 1; /* the others are lost, and cannot be sent again */
    register_again(self, TARGET, ALL_ACCESS);
    expect_ends(self, 1, MRD_WC_REM_OP_ERR);
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

/* Where the answer goes was deregistered: nothing is written there. */
TEST_F(reads, reads__own_memory_that_goes)
{
    memset(self->end[ASKER].memory + HERE, 0xee, LONG_BYTES);
    read_at(self, 0, LONG_BYTES);
    pair_turn(self, ASKER);
    register_again(self, ASKER, ALL_ACCESS);
    expect_ends(self, 1, MRD_WC_LOC_PROT_ERR);
    for (unsigned i = 0; i < LONG_BYTES; i++)
        assert_int_equal(self->end[ASKER].memory[HERE + i], 0xee);
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

/* A queue pair in error gives its requests back; what comes for them later is refused. */
TEST_F(reads, reads__flushed)
{
    read_at(self, 0, LONG_BYTES);
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 8192 - 8, 8);
    arrive(self);
    pair_rx_one(self, ASKER, &self->end[ASKER].inbox[0]);
    hand_flush(self, ASKER);
    settle(self);
    for (unsigned i = 0; i < 2; i++) {
        struct mrd_wc wc = take(self);

        /* One was answered before, perhaps. */
        assert_true(wc.status == MRD_WC_WR_FLUSH_ERR || wc.status == MRD_WC_SUCCESS);
    }
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

/* The target's queue pair goes with responses under way. */
TEST_F(reads, reads__target_in_error)
{
    read_at(self, 0, LONG_BYTES);
    arrive(self);
    self->end[ASKER].num_inbox = 1;
    hand_flush(self, TARGET);
    expect_ends(self, 1, MRD_WC_REM_OP_ERR);
}

/* The target is gone after it acked the request: probes find that out. */
TEST_F(reads, reads__dead_target)
{
    struct mrd_wc wc;

    read_at(self, 0, LONG_BYTES);
    arrive_unanswered(self);
    uint64_t began = self->now;
    for (unsigned i = 0; i < 1000 && !pair_poll(self, ASKER, &wc); i++)
        pair_turn_in_vain(self, ASKER);
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_in_range(self->now - began, MRD_SEC, 12 * MRD_SEC);
    self->end[TARGET].num_inbox = self->end[ASKER].num_inbox = 0;
    settle(self);
}

/* The target gives the asker up with responses in hand: its next packet is reset. */
TEST_F(reads, reads__target_that_forgot)
{
    read_at(self, 0, LONG_BYTES);
    arrive(self);
    pair_rx_acks(self, ASKER);
    forget_asker(self);
    expect_ends(self, 1, MRD_WC_RETRY_EXC_ERR);
}

/* The target's send state ends with the response in it, and it still holds the asker's space. */
TEST_F(reads, reads__send_half_that_ends)
{
    read_at(self, 0, LONG_BYTES);
    arrive_unanswered(self);
    mrd_send_state_end(self->end[TARGET].e, pair_peer(self, TARGET), MRD_WC_RETRY_EXC_ERR);
    expect_ends(self, 1, MRD_WC_RETRY_EXC_ERR);
}

/* At most max_rd_atomic are outstanding; the others follow. */
TEST_F(reads, reads__bounded)
{
    mrd_qp_impl(self->end[ASKER].qp)->requests.max_rd_atomic = 3;
    for (unsigned i = 0; i < 10; i++)
        read_at(self, 64 * i, 64);
    assert_int_equal(mrd_qp_impl(self->end[ASKER].qp)->requests.num, 3);
    arrive(self);
    assert_int_equal(self->end[TARGET].e->stats.rx_requests, 3);
    settle(self);
    for (unsigned i = 0; i < 10; i++)
        assert_read(self, 64 * i, 64);
    assert_int_equal(mrd_qp_impl(self->end[ASKER].qp)->requests.num, 0);
}

/* A fenced write, and all behind it, starts after the read before it. */
TEST_F(reads, reads__fence)
{
    self->end[ASKER].memory[HERE] = self->end[ASKER].memory[HERE + 1] = 0x55;
    read_at(self, 100, 1);
    ask_by(self, self->end[ASKER].ah, MRD_WR_RDMA_WRITE, 0, 1, MRD_SEND_FENCE);
    ask(self, MRD_WR_RDMA_WRITE, 1, 1);
    arrive(self);
    assert_int_not_equal(self->end[TARGET].memory[0], 0x55);
    assert_int_not_equal(self->end[TARGET].memory[1], 0x55);
    settle(self);
    assert_int_equal(self->end[TARGET].memory[0], 0x55);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(take(self).status, MRD_WC_SUCCESS);
}

/* In ordered mode a read sees the write before it, which is repeated, and completes behind it. */
TEST_F(reads, reads__in_order)
{
    for (unsigned at = 0; at < 2; at++)
        self->end[at].qp->order = MRD_ORDER_MSG;
    self->end[ASKER].memory[HERE + 16] = 0x77;
    pair_turn(self, ASKER);
    ask(self, MRD_WR_RDMA_WRITE, 16, 1);
    pair_turn(self, ASKER);
    self->end[TARGET].num_inbox = 0; /* the write is lost, and sent again later */
    read_at(self, 16, 1);
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 24, 8);
    pair_turn(self, ASKER);
    self->end[ASKER].memory[HERE + 16] = 0x77;
    pair_hop(self, TARGET);
    assert_int_equal(self->end[TARGET].e->stats.rx_requests, 2);
    assert_false(mrd_list_empty(&self->end[TARGET].e->peers.active));
    assert_false(self->end[ASKER].num_inbox && /* nothing is answered yet */
                 pair_head(&self->end[ASKER].inbox[0]).type == MRD_WIRE_DATA);
    settle(self);
    struct mrd_wc wc = take(self);
    assert_int_equal(wc.opcode, MRD_WC_RDMA_WRITE);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_read(self, 16, 1);
    assert_int_equal(self->end[ASKER].memory[HERE + 16], 0x77);
    assert_int_equal(take(self).opcode, MRD_WC_FETCH_ADD);
}

/* The target's queue pair goes while ordered requests wait for their turn. */
TEST_F(reads, reads__turn_that_never_comes)
{
    for (unsigned at = 0; at < 2; at++)
        self->end[at].qp->order = MRD_ORDER_MSG;
    *word(self, TARGET, 24) = 9;
    ask(self, MRD_WR_RDMA_WRITE, 16, 1);
    pair_turn(self, ASKER);
    self->end[TARGET].num_inbox = 0;
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 24, 8);
    arrive(self);
    hand_flush(self, TARGET);
    settle(self);
    assert_int_not_equal(take(self).status, MRD_WC_SUCCESS);
    assert_int_not_equal(take(self).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(self, TARGET, 24), 9);
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

enum { LARGE = 4 * PAIR_PAYLOAD };

/* Packets of up to LARGE bytes, and less where the route is not known. */
static void begin_without_routes(struct pair *p)
{
    pair_config(p);
    p->config.mover.payload_bytes = LARGE;
    p->config.mover.payload_usual = PAIR_PAYLOAD;
    pair_open(p);
    for (unsigned at = 0; at < 2; at++)
        register_again(p, at, ALL_ACCESS);
}

/* Without a handle of the asker the mover is asked once for the route of a long response. */
TEST_F(pair, reads__the_route_is_asked_for)
{
    struct mrd_addr to;
    uint32_t id;

    begin_without_routes(self);
    struct mrd_engine *e = self->end[TARGET].e;
    read_at(self, 0, PAIR_PAYLOAD);
    settle(self);
    assert_read(self, 0, PAIR_PAYLOAD);
    assert_false(mrd_engine_wants_route(e, &id, &to));

    read_at(self, 0, LARGE);
    pair_turn(self, ASKER);
    pair_turn(self, TARGET);
    assert_int_equal(mrd_engine_deadline(e), 0);
    assert_true(mrd_engine_wants_route(e, &id, &to));
    assert_memory_equal(&to, &self->end[ASKER].addr, sizeof(to));
    assert_false(mrd_engine_wants_route(e, &id, &to));
    mrd_engine_give_route(e, id, 100 * LARGE, true); /* no more than the mover's */
    assert_true(pair_peer(self, TARGET)->one_way);
    settle(self);
    assert_read(self, 0, LARGE);

    read_at(self, 0, LARGE);
    pair_turn(self, ASKER);
    pair_turn(self, TARGET);
    assert_int_equal(self->end[ASKER].inbox[self->end[ASKER].num_inbox - 1].len / LARGE, 1);
    settle(self);
    assert_read(self, 0, LARGE);
    assert_false(mrd_engine_wants_route(e, &id, &to));
    mrd_engine_give_route(e, 12345, LARGE, true); /* it went meanwhile */
}

/* Who waits longer for an asker than for others sends it no more packets for that. */
TEST_F(reads, reads__patient_with_a_dead_asker)
{
    struct mrd_engine *e = self->end[TARGET].e;

    e->config.peer_timeout_ns = MRD_MSEC;
    read_at(self, 0, PAIR_PAYLOAD);
    pair_turn(self, ASKER);
    uint64_t end_ns = self->now + 4 * MRD_SEC;
    while (self->now < end_ns) {
        pair_turn(self, TARGET);
        self->end[ASKER].num_inbox = 0;
        uint64_t at = mrd_engine_deadline(e);
        self->now = at > self->now ? at : self->now;
    }
    assert_true(e->stats.tx_packets < 1000);
    settle(self);
}

/* Two begin to read in one turn: the route to each is asked for. */
TEST_F(pair, reads__routes_of_two)
{
    struct mrd_addr to[2];
    uint32_t id[2];

    begin_without_routes(self);
    struct mrd_engine *e = self->end[TARGET].e;
    read_at(self, 0, LARGE);
    pair_tx(self, ASKER);
    struct mrd_rx_packet packet = pair_packet(self, TARGET, &self->end[TARGET].inbox[0]);
    packet.from = pair_addr_of(7);
    mrd_engine_begin(e, self->now);
    mrd_engine_rx(e, &packet, 1, self->now);
    struct mrd_peer *other = pair_peer(self, TARGET);
    pair_rx_one(self, TARGET, &self->end[TARGET].inbox[0]);
    self->end[TARGET].num_inbox = 0;
    assert_true(mrd_engine_wants_route(e, &id[0], &to[0]));
    bool asked = mrd_engine_wants_route(e, &id[1], &to[1]);
    assert_true(!asked || id[0] != id[1]);
    mrd_peer_unreachable(e, other);
    settle(self);
    assert_read(self, 0, LARGE);
    assert_true(asked);
}
