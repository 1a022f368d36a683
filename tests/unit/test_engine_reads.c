/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics between two engines: what they do, when they wait, and how they fail. */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_pair.h"

enum { ASKER = 0, TARGET = 1, HERE = 8 * PAIR_PAYLOAD, LONG_BYTES = 5 * PAIR_PAYLOAD + 100 };

#define ALL_ACCESS                                                                                 \
    (MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |                   \
     MRD_ACCESS_REMOTE_ATOMIC)

static void register_again(struct pair *p, unsigned at, int access)
{
    struct pair_end *end = &p->end[at];
    int error;

    if (end->mr)
        mrd_engine_dereg_mr(end->e, end->mr, p->now);
    end->mr = mrd_engine_reg_mr(end->e, end->pd, end->memory, sizeof(end->memory), access,
                                &(struct mrd_mover_mr){0}, &error);
    assert_non_null(end->mr);
}

FIXTURE_OF(reads, pair);

FIXTURE_SETUP(reads)
{
    pair_begin(self);
    for (unsigned at = 0; at < 2; at++)
        register_again(self, at, ALL_ACCESS);
    for (unsigned i = 0; i < PAIR_MEMORY; i++)
        self->end[TARGET].memory[i] = (uint8_t)(i * 7 + i / 256);
}

FIXTURE_TEARDOWN(reads)
{
    pair_end(self);
}

static uint64_t *word(struct pair *p, unsigned at, uint32_t offset)
{
    return (uint64_t *)(void *)(p->end[at].memory + offset);
}

/* A request for the target's memory at `from`, into the asker's at HERE + `from`. */
static int try_ask(struct pair *p, enum mrd_wr_opcode opcode, uint32_t from, uint32_t len,
                   uint64_t compare_add, uint64_t swap, unsigned flags)
{
    struct pair_end *a = &p->end[ASKER], *b = &p->end[TARGET];
    struct mrd_sge sge = {
        .addr = (uint64_t)(uintptr_t)(a->memory + HERE + from), .length = len, .lkey = a->mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = 500 + from,
        .sg_list = &sge,
        .num_sge = len ? 1 : 0,
        .opcode = opcode,
        .send_flags = MRD_SEND_SIGNALED | flags,
        .ud = {.ah = a->ah, .remote_qpn = b->qp->qp_num, .remote_qkey = PAIR_QKEY}};
    struct mrd_send_wr *bad;

    if (opcode == MRD_WR_RDMA_READ || opcode == MRD_WR_RDMA_WRITE) {
        wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)(b->memory + from);
        wr.wr.rdma.rkey = b->mr->rkey;
    } else {
        wr.wr.atomic.remote_addr = (uint64_t)(uintptr_t)(b->memory + from);
        wr.wr.atomic.rkey = b->mr->rkey;
        wr.wr.atomic.compare_add = compare_add;
        wr.wr.atomic.swap = swap;
    }
    mrd_engine_begin(a->e, p->now);
    return mrd_engine_post_send(a->e, a->qp, &wr, &bad, p->now);
}

static void ask(struct pair *p, enum mrd_wr_opcode opcode, uint32_t from, uint32_t len,
                uint64_t compare_add, uint64_t swap)
{
    assert_int_equal(try_ask(p, opcode, from, len, compare_add, swap, 0), 0);
}

static void read_at(struct pair *p, uint32_t from, uint32_t len)
{
    ask(p, MRD_WR_RDMA_READ, from, len, 0, 0);
}

static void settle(struct pair *p)
{
    pair_settle(p, p->now + 20 * MRD_SEC);
}

static struct mrd_wc take(struct pair *p)
{
    struct mrd_wc wc;

    assert_int_equal(pair_poll(p, ASKER, &wc), 1);
    return wc;
}

static void assert_read(struct pair *p, uint32_t from, uint32_t len)
{
    struct mrd_wc wc = take(p);

    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_int_equal(wc.opcode, MRD_WC_RDMA_READ);
    assert_int_equal(wc.byte_len, len);
    assert_int_equal(wc.wr_id, 500 + from);
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
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 64, 8, 3, 0);
    settle(self);
    assert_int_equal(take(self).opcode, MRD_WC_FETCH_ADD);
    assert_int_equal(*word(self, ASKER, HERE + 64), first);
    assert_int_equal(*word(self, TARGET, 64), first + 3);

    ask(self, MRD_WR_ATOMIC_CMP_AND_SWP, 64, 8, first, 1); /* differs: nothing is written */
    settle(self);
    assert_int_equal(take(self).opcode, MRD_WC_COMP_SWAP);
    assert_int_equal(*word(self, ASKER, HERE + 64), first + 3);
    assert_int_equal(*word(self, TARGET, 64), first + 3);

    ask(self, MRD_WR_ATOMIC_CMP_AND_SWP, 64, 8, first + 3, 1);
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(self, ASKER, HERE + 64), first + 3);
    assert_int_equal(*word(self, TARGET, 64), 1);
}

/* All packets of the first try are lost, each way; then each comes twice. */
TEST_F(reads, reads__once_under_loss_and_copies)
{
    *word(self, TARGET, 64) = 0;
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 64, 8, 1, 0);
    read_at(self, 128, LONG_BYTES);
    for (unsigned i = 0; i < 40; i++) {
        for (unsigned at = 0; at < 2; at++) {
            struct pair_end *end = &self->end[at];

            if (i % 3 == 0)
                end->num_inbox = 0;
            for (unsigned k = 0; i % 3 == 1 && k < end->num_inbox; k++)
                pair_rx_one(self, at, &end->inbox[k]);
            pair_turn(self, at);
            self->now += 50 * MRD_USEC;
        }
    }
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_SUCCESS);
    assert_int_equal(take(self).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(self, TARGET, 64), 1);
    assert_int_equal(*word(self, ASKER, HERE + 64), 0);
    assert_memory_equal(self->end[ASKER].memory + HERE + 128, self->end[TARGET].memory + 128,
                        LONG_BYTES);
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
        *word(self, TARGET, 64) = 5;
        ask(self, table[i].opcode, 64, 8, 5, 6);
        settle(self);
        assert_int_equal(take(self).status, MRD_WC_REM_ACCESS_ERR);
        assert_int_equal(*word(self, TARGET, 64), 5);
    }
    register_again(self, TARGET, ALL_ACCESS);
    self->end[TARGET].mr->length = 71;
    read_at(self, 64, 8); /* one byte beyond the region */
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_REM_ACCESS_ERR);
    read_at(self, 64, 7);
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_SUCCESS);
}

/* The memory goes while the response is on its way: the asker is told. */
TEST_F(reads, reads__memory_that_goes_half_way)
{
    read_at(self, 0, LONG_BYTES);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    self->end[ASKER].num_inbox = 1; /* the others are lost, and cannot be sent again */
    register_again(self, TARGET, ALL_ACCESS);
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_REM_OP_ERR);
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

/* Where the answer goes was deregistered: nothing is written there. */
TEST_F(reads, reads__own_memory_that_goes)
{
    memset(self->end[ASKER].memory + HERE, 0xee, LONG_BYTES);
    read_at(self, 0, LONG_BYTES);
    pair_turn(self, ASKER);
    register_again(self, ASKER, ALL_ACCESS);
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_LOC_PROT_ERR);
    for (unsigned i = 0; i < LONG_BYTES; i++)
        assert_int_equal(self->end[ASKER].memory[HERE + i], 0xee);
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
}

/* A queue pair in error gives its requests back; what comes for them later is refused. */
TEST_F(reads, reads__flushed)
{
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    read_at(self, 0, LONG_BYTES);
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 8192 - 8, 8, 1, 0);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    pair_rx_one(self, ASKER, &self->end[ASKER].inbox[0]);
    assert_int_equal(mrd_engine_modify_qp(self->end[ASKER].e, self->end[ASKER].qp, &attr,
                                          MRD_QP_STATE, self->now),
                     0);
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
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    read_at(self, 0, LONG_BYTES);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    self->end[ASKER].num_inbox = 1;
    assert_int_equal(mrd_engine_modify_qp(self->end[TARGET].e, self->end[TARGET].qp, &attr,
                                          MRD_QP_STATE, self->now),
                     0);
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_REM_OP_ERR);
}

/* The target is gone after it acked the request: probes find that out. */
TEST_F(reads, reads__dead_target)
{
    uint64_t began;
    struct mrd_wc wc;

    read_at(self, 0, LONG_BYTES);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    self->now += 100 * MRD_USEC;
    pair_turn(self, TARGET);
    pair_rx_acks(self, ASKER);
    began = self->now;
    for (unsigned i = 0; i < 1000 && !pair_poll(self, ASKER, &wc); i++) {
        uint64_t at = mrd_engine_deadline(self->end[ASKER].e);

        assert_true(at != MRD_NEVER); /* or it would wait for ever */
        self->now = at > self->now ? at : self->now;
        pair_turn(self, ASKER);
        self->end[TARGET].num_inbox = 0;
    }
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_in_range(self->now - began, MRD_SEC, 12 * MRD_SEC);
    self->end[TARGET].num_inbox = self->end[ASKER].num_inbox = 0;
    settle(self);
}

/* The target gives the asker up with responses in hand: its next packet is reset. */
TEST_F(reads, reads__target_that_forgot)
{
    read_at(self, 0, LONG_BYTES);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    pair_rx_acks(self, ASKER);
    for (unsigned i = 0; i < 1000 && self->end[TARGET].e->responses.used; i++) {
        uint64_t at = mrd_engine_deadline(self->end[TARGET].e);

        self->now = at > self->now ? at : self->now;
        pair_turn(self, TARGET);
        self->end[ASKER].num_inbox = 0;
    }
    assert_int_equal(self->end[TARGET].e->responses.used, 0);
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_RETRY_EXC_ERR);
}

/* The target's send state ends with the response in it, and it still holds the asker's space. */
TEST_F(reads, reads__send_half_that_ends)
{
    read_at(self, 0, LONG_BYTES);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    self->now += 100 * MRD_USEC;
    pair_turn(self, TARGET);
    pair_rx_acks(self, ASKER);
    mrd_send_state_end(self->end[TARGET].e, pair_peer(self, TARGET), MRD_WC_RETRY_EXC_ERR);
    settle(self);
    assert_int_equal(take(self).status, MRD_WC_RETRY_EXC_ERR);
}

/* At most max_rd_atomic are outstanding; the others follow. */
TEST_F(reads, reads__bounded)
{
    mrd_qp_impl(self->end[ASKER].qp)->requests.max_rd_atomic = 3;
    for (unsigned i = 0; i < 10; i++)
        read_at(self, 64 * i, 64);
    assert_int_equal(mrd_qp_impl(self->end[ASKER].qp)->requests.num, 3);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
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
    assert_int_equal(try_ask(self, MRD_WR_RDMA_WRITE, 0, 1, 0, 0, MRD_SEND_FENCE), 0);
    assert_int_equal(try_ask(self, MRD_WR_RDMA_WRITE, 1, 1, 0, 0, 0), 0);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    assert_int_not_equal(self->end[TARGET].memory[0], 0x55);
    assert_int_not_equal(self->end[TARGET].memory[1], 0x55);
    settle(self);
    assert_int_equal(self->end[TARGET].memory[0], 0x55);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(take(self).status, MRD_WC_SUCCESS);
}

/* Without a record for the response a request is refused, and tried again. */
TEST_F(reads, reads__too_many_for_the_target)
{
    struct mrd_pool *pool = &self->end[TARGET].e->responses;
    uint32_t num = pool->num;

    *word(self, TARGET, 0) = 0;
    pool->num = 0;
    for (unsigned i = 0; i < 4; i++)
        ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 1, 0);
    pair_settle(self, self->now + 2 * MRD_MSEC);
    assert_int_equal(self->end[TARGET].e->stats.rx_requests, 0);
    assert_true(self->end[TARGET].e->stats.rx_refuse_resources >= 4);
    pool->num = 2; /* one at a time */
    settle(self);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(take(self).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(self, TARGET, 0), 4);
    pool->num = num;
}

/* In ordered mode a read sees the write before it, which is repeated, and completes behind it. */
TEST_F(reads, reads__in_order)
{
    struct mrd_wc wc;

    for (unsigned at = 0; at < 2; at++)
        self->end[at].qp->order = MRD_ORDER_MSG;
    self->end[ASKER].memory[HERE + 16] = 0x77;
    pair_turn(self, ASKER);
    assert_int_equal(try_ask(self, MRD_WR_RDMA_WRITE, 16, 1, 0, 0, 0), 0);
    pair_turn(self, ASKER);
    self->end[TARGET].num_inbox = 0; /* the write is lost, and sent again later */
    read_at(self, 16, 1);
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 24, 8, 1, 0);
    pair_turn(self, ASKER);
    self->end[ASKER].memory[HERE + 16] = 0x77;
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    assert_int_equal(self->end[TARGET].e->stats.rx_requests, 2);
    assert_int_equal(self->end[TARGET].e->peers.active.next == &self->end[TARGET].e->peers.active,
                     0);
    assert_int_equal(self->end[ASKER].num_inbox > 0 &&
                         pair_head(&self->end[ASKER].inbox[0]).type == MRD_WIRE_DATA,
                     0); /* nothing is answered yet */
    settle(self);
    wc = take(self);
    assert_int_equal(wc.opcode, MRD_WC_RDMA_WRITE);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_read(self, 16, 1);
    assert_int_equal(self->end[ASKER].memory[HERE + 16], 0x77);
    assert_int_equal(take(self).opcode, MRD_WC_FETCH_ADD);
}

/* The target's queue pair goes while ordered requests wait for their turn. */
TEST_F(reads, reads__turn_that_never_comes)
{
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    for (unsigned at = 0; at < 2; at++)
        self->end[at].qp->order = MRD_ORDER_MSG;
    *word(self, TARGET, 24) = 9;
    assert_int_equal(try_ask(self, MRD_WR_RDMA_WRITE, 16, 1, 0, 0, 0), 0);
    pair_turn(self, ASKER);
    self->end[TARGET].num_inbox = 0;
    ask(self, MRD_WR_ATOMIC_FETCH_AND_ADD, 24, 8, 1, 0);
    pair_turn(self, ASKER);
    self->now += PAIR_HOP_NS;
    pair_turn(self, TARGET);
    assert_int_equal(mrd_engine_modify_qp(self->end[TARGET].e, self->end[TARGET].qp, &attr,
                                          MRD_QP_STATE, self->now),
                     0);
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

/*
 * The target has no address handle of the asker: the mover is asked once what the route takes, for a
 * response that would take several packets else.
 */
TEST_F(pair, reads__the_route_is_asked_for)
{
    struct mrd_engine *e;
    struct mrd_addr to;
    uint32_t id;

    begin_without_routes(self);
    e = self->end[TARGET].e;
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
TEST_F(pair, reads__patient_with_a_dead_asker)
{
    struct mrd_engine *e;
    uint64_t end_ns;

    pair_config(self);
    pair_open(self);
    for (unsigned at = 0; at < 2; at++)
        register_again(self, at, ALL_ACCESS);
    e = self->end[TARGET].e;
    e->config.peer_timeout_ns = MRD_MSEC;
    read_at(self, 0, PAIR_PAYLOAD);
    pair_turn(self, ASKER);
    end_ns = self->now + 4 * MRD_SEC;
    while (self->now < end_ns) {
        uint64_t at;

        pair_turn(self, TARGET);
        self->end[ASKER].num_inbox = 0;
        at = mrd_engine_deadline(e);
        self->now = at > self->now ? at : self->now;
    }
    assert_true(e->stats.tx_packets < 1000);
    settle(self);
}

/* Two begin to read in one turn: the route to each is asked for. */
TEST_F(pair, reads__routes_of_two)
{
    struct mrd_addr to[2];
    struct mrd_rx_packet packet;
    struct mrd_engine *e;
    struct mrd_peer *other;
    uint32_t id[2];
    bool asked;

    begin_without_routes(self);
    e = self->end[TARGET].e;
    read_at(self, 0, LARGE);
    pair_tx(self, ASKER);
    packet = pair_packet(self, TARGET, &self->end[TARGET].inbox[0]);
    packet.from = pair_addr_of(7);
    mrd_engine_begin(e, self->now);
    mrd_engine_rx(e, &packet, 1, self->now);
    other = pair_peer(self, TARGET);
    pair_rx_one(self, TARGET, &self->end[TARGET].inbox[0]);
    self->end[TARGET].num_inbox = 0;
    assert_true(mrd_engine_wants_route(e, &id[0], &to[0]));
    asked = mrd_engine_wants_route(e, &id[1], &to[1]);
    assert_true(!asked || id[0] != id[1]);
    mrd_peer_unreachable(e, other);
    settle(self);
    assert_read(self, 0, LARGE);
    assert_true(asked);
}
