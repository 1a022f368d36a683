/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics between two engines: what they do, when they wait, and how they fail. */
#include "core/engine/half.h"
#include "tests/unit/engine_pair.h"

enum { ASKER = 0, TARGET = 1, HERE = 8 * PAIR_PAYLOAD, LONG_BYTES = 5 * PAIR_PAYLOAD + 100 };

#define ALL_ACCESS                                                                                 \
    (MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |                   \
     MRD_ACCESS_REMOTE_ATOMIC)

static struct pair pair; /* large, and begun anew by each test */

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

static struct pair *begin(void)
{
    struct pair *p = &pair;

    pair_begin(p);
    for (unsigned at = 0; at < 2; at++)
        register_again(p, at, ALL_ACCESS);
    for (unsigned i = 0; i < PAIR_MEMORY; i++)
        p->end[TARGET].memory[i] = (uint8_t)(i * 7 + i / 256);
    return p;
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

TEST(reads__short_and_long)
{
    static const uint32_t lengths[] = {0, 1, 64, PAIR_PAYLOAD, PAIR_PAYLOAD + 1, LONG_BYTES};
    struct pair *p = begin();

    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        read_at(p, 3 * i, lengths[i]);
        settle(p);
        assert_read(p, 3 * i, lengths[i]);
    }
    assert_int_equal(p->end[TARGET].e->stats.rx_requests, 6);
    assert_int_equal(p->end[TARGET].e->responses.used, 0);
    pair_end(p);
}

TEST(reads__atomics_answer_what_was_there)
{
    struct pair *p = begin();
    const uint64_t first = 0x1122334455667788;

    *word(p, TARGET, 64) = first;
    ask(p, MRD_WR_ATOMIC_FETCH_AND_ADD, 64, 8, 3, 0);
    settle(p);
    assert_int_equal(take(p).opcode, MRD_WC_FETCH_ADD);
    assert_int_equal(*word(p, ASKER, HERE + 64), first);
    assert_int_equal(*word(p, TARGET, 64), first + 3);

    ask(p, MRD_WR_ATOMIC_CMP_AND_SWP, 64, 8, first, 1); /* differs: nothing is written */
    settle(p);
    assert_int_equal(take(p).opcode, MRD_WC_COMP_SWAP);
    assert_int_equal(*word(p, ASKER, HERE + 64), first + 3);
    assert_int_equal(*word(p, TARGET, 64), first + 3);

    ask(p, MRD_WR_ATOMIC_CMP_AND_SWP, 64, 8, first + 3, 1);
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(p, ASKER, HERE + 64), first + 3);
    assert_int_equal(*word(p, TARGET, 64), 1);
    pair_end(p);
}

/* All packets of the first try are lost, each way; then each comes twice. */
TEST(reads__once_under_loss_and_copies)
{
    struct pair *p = begin();

    *word(p, TARGET, 64) = 0;
    ask(p, MRD_WR_ATOMIC_FETCH_AND_ADD, 64, 8, 1, 0);
    read_at(p, 128, LONG_BYTES);
    for (unsigned i = 0; i < 40; i++) {
        for (unsigned at = 0; at < 2; at++) {
            struct pair_end *end = &p->end[at];

            if (i % 3 == 0)
                end->num_inbox = 0;
            for (unsigned k = 0; i % 3 == 1 && k < end->num_inbox; k++)
                pair_rx_one(p, at, &end->inbox[k]);
            pair_turn(p, at);
            p->now += 50 * MRD_USEC;
        }
    }
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_SUCCESS);
    assert_int_equal(take(p).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(p, TARGET, 64), 1);
    assert_int_equal(*word(p, ASKER, HERE + 64), 0);
    assert_memory_equal(p->end[ASKER].memory + HERE + 128, p->end[TARGET].memory + 128, LONG_BYTES);
    pair_end(p);
}

TEST(reads__access_is_checked)
{
    static const struct {
        enum mrd_wr_opcode opcode;
        int access;
    } table[] = {{MRD_WR_RDMA_READ, MRD_ACCESS_REMOTE_ATOMIC},
                 {MRD_WR_ATOMIC_FETCH_AND_ADD, MRD_ACCESS_REMOTE_READ | MRD_ACCESS_REMOTE_WRITE},
                 {MRD_WR_ATOMIC_CMP_AND_SWP, MRD_ACCESS_REMOTE_READ}};
    struct pair *p = begin();

    for (unsigned i = 0; i < 3; i++) {
        register_again(p, TARGET, MRD_ACCESS_LOCAL_WRITE | table[i].access);
        *word(p, TARGET, 64) = 5;
        ask(p, table[i].opcode, 64, 8, 5, 6);
        settle(p);
        assert_int_equal(take(p).status, MRD_WC_REM_ACCESS_ERR);
        assert_int_equal(*word(p, TARGET, 64), 5);
    }
    register_again(p, TARGET, ALL_ACCESS);
    p->end[TARGET].mr->length = 71;
    read_at(p, 64, 8); /* one byte beyond the region */
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_REM_ACCESS_ERR);
    read_at(p, 64, 7);
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_SUCCESS);
    pair_end(p);
}

/* The memory goes while the response is on its way: the asker is told. */
TEST(reads__memory_that_goes_half_way)
{
    struct pair *p = begin();

    read_at(p, 0, LONG_BYTES);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    p->end[ASKER].num_inbox = 1; /* the others are lost, and cannot be sent again */
    register_again(p, TARGET, ALL_ACCESS);
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_REM_OP_ERR);
    assert_int_equal(p->end[TARGET].e->responses.used, 0);
    pair_end(p);
}

/* Where the answer goes was deregistered: nothing is written there. */
TEST(reads__own_memory_that_goes)
{
    struct pair *p = begin();

    memset(p->end[ASKER].memory + HERE, 0xee, LONG_BYTES);
    read_at(p, 0, LONG_BYTES);
    pair_turn(p, ASKER);
    register_again(p, ASKER, ALL_ACCESS);
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_LOC_PROT_ERR);
    for (unsigned i = 0; i < LONG_BYTES; i++)
        assert_int_equal(p->end[ASKER].memory[HERE + i], 0xee);
    assert_int_equal(p->end[TARGET].e->responses.used, 0);
    pair_end(p);
}

/* A queue pair in error gives its requests back; what comes for them later is refused. */
TEST(reads__flushed)
{
    struct pair *p = begin();
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    read_at(p, 0, LONG_BYTES);
    ask(p, MRD_WR_ATOMIC_FETCH_AND_ADD, 8192 - 8, 8, 1, 0);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    pair_rx_one(p, ASKER, &p->end[ASKER].inbox[0]);
    assert_int_equal(
        mrd_engine_modify_qp(p->end[ASKER].e, p->end[ASKER].qp, &attr, MRD_QP_STATE, p->now), 0);
    settle(p);
    for (unsigned i = 0; i < 2; i++) {
        struct mrd_wc wc = take(p);

        /* One was answered before, perhaps. */
        assert_true(wc.status == MRD_WC_WR_FLUSH_ERR || wc.status == MRD_WC_SUCCESS);
    }
    assert_int_equal(p->end[TARGET].e->responses.used, 0);
    pair_end(p);
}

/* The target's queue pair goes with responses under way. */
TEST(reads__target_in_error)
{
    struct pair *p = begin();
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    read_at(p, 0, LONG_BYTES);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    p->end[ASKER].num_inbox = 1;
    assert_int_equal(
        mrd_engine_modify_qp(p->end[TARGET].e, p->end[TARGET].qp, &attr, MRD_QP_STATE, p->now), 0);
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_REM_OP_ERR);
    pair_end(p);
}

/* The target is gone after it acked the request: probes find that out. */
TEST(reads__dead_target)
{
    struct pair *p = begin();
    uint64_t began;
    struct mrd_wc wc;

    read_at(p, 0, LONG_BYTES);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    p->now += 100 * MRD_USEC;
    pair_turn(p, TARGET);
    pair_rx_acks(p, ASKER);
    began = p->now;
    for (unsigned i = 0; i < 1000 && !pair_poll(p, ASKER, &wc); i++) {
        uint64_t at = mrd_engine_deadline(p->end[ASKER].e);

        assert_true(at != MRD_NEVER); /* or it would wait for ever */
        p->now = at > p->now ? at : p->now;
        pair_turn(p, ASKER);
        p->end[TARGET].num_inbox = 0;
    }
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_in_range(p->now - began, MRD_SEC, 12 * MRD_SEC);
    p->end[TARGET].num_inbox = p->end[ASKER].num_inbox = 0;
    settle(p);
    pair_end(p);
}

/* The target gives the asker up with responses in hand: its next packet is reset. */
TEST(reads__target_that_forgot)
{
    struct pair *p = begin();

    read_at(p, 0, LONG_BYTES);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    pair_rx_acks(p, ASKER);
    for (unsigned i = 0; i < 1000 && p->end[TARGET].e->responses.used; i++) {
        uint64_t at = mrd_engine_deadline(p->end[TARGET].e);

        p->now = at > p->now ? at : p->now;
        pair_turn(p, TARGET);
        p->end[ASKER].num_inbox = 0;
    }
    assert_int_equal(p->end[TARGET].e->responses.used, 0);
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_RETRY_EXC_ERR);
    pair_end(p);
}

/* The target's send half ends with the response in it, and it still holds the asker's space. */
TEST(reads__send_half_that_ends)
{
    struct pair *p = begin();

    read_at(p, 0, LONG_BYTES);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    p->now += 100 * MRD_USEC;
    pair_turn(p, TARGET);
    pair_rx_acks(p, ASKER);
    mrd_half_end_tx(p->end[TARGET].e, pair_peer(p, TARGET), MRD_WC_RETRY_EXC_ERR);
    settle(p);
    assert_int_equal(take(p).status, MRD_WC_RETRY_EXC_ERR);
    pair_end(p);
}

/* At most max_rd_atomic are outstanding; the others follow. */
TEST(reads__bounded)
{
    struct pair *p = begin();

    mrd_qp_impl(p->end[ASKER].qp)->requests.max_rd_atomic = 3;
    for (unsigned i = 0; i < 10; i++)
        read_at(p, 64 * i, 64);
    assert_int_equal(mrd_qp_impl(p->end[ASKER].qp)->requests.num, 3);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    assert_int_equal(p->end[TARGET].e->stats.rx_requests, 3);
    settle(p);
    for (unsigned i = 0; i < 10; i++)
        assert_read(p, 64 * i, 64);
    assert_int_equal(mrd_qp_impl(p->end[ASKER].qp)->requests.num, 0);
    pair_end(p);
}

/* A fenced write, and all behind it, starts after the read before it. */
TEST(reads__fence)
{
    struct pair *p = begin();

    p->end[ASKER].memory[HERE] = p->end[ASKER].memory[HERE + 1] = 0x55;
    read_at(p, 100, 1);
    assert_int_equal(try_ask(p, MRD_WR_RDMA_WRITE, 0, 1, 0, 0, MRD_SEND_FENCE), 0);
    assert_int_equal(try_ask(p, MRD_WR_RDMA_WRITE, 1, 1, 0, 0, 0), 0);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    assert_int_not_equal(p->end[TARGET].memory[0], 0x55);
    assert_int_not_equal(p->end[TARGET].memory[1], 0x55);
    settle(p);
    assert_int_equal(p->end[TARGET].memory[0], 0x55);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(take(p).status, MRD_WC_SUCCESS);
    pair_end(p);
}

/* Without a record for the response a request is refused, and tried again. */
TEST(reads__too_many_for_the_target)
{
    struct pair *p = begin();
    struct mrd_pool *pool = &p->end[TARGET].e->responses;
    uint32_t num = pool->num;

    *word(p, TARGET, 0) = 0;
    pool->num = 0;
    for (unsigned i = 0; i < 4; i++)
        ask(p, MRD_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 1, 0);
    pair_settle(p, p->now + 2 * MRD_MSEC);
    assert_int_equal(p->end[TARGET].e->stats.rx_requests, 0);
    assert_true(p->end[TARGET].e->stats.rx_refuse_resources >= 4);
    pool->num = 2; /* one at a time */
    settle(p);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(take(p).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(p, TARGET, 0), 4);
    pool->num = num;
    pair_end(p);
}

/* In ordered mode a read sees the write before it, which is repeated, and completes behind it. */
TEST(reads__in_order)
{
    struct pair *p = begin();
    struct mrd_wc wc;

    for (unsigned at = 0; at < 2; at++)
        p->end[at].qp->order = MRD_ORDER_MSG;
    p->end[ASKER].memory[HERE + 16] = 0x77;
    pair_turn(p, ASKER);
    assert_int_equal(try_ask(p, MRD_WR_RDMA_WRITE, 16, 1, 0, 0, 0), 0);
    pair_turn(p, ASKER);
    p->end[TARGET].num_inbox = 0; /* the write is lost, and sent again later */
    read_at(p, 16, 1);
    ask(p, MRD_WR_ATOMIC_FETCH_AND_ADD, 24, 8, 1, 0);
    pair_turn(p, ASKER);
    p->end[ASKER].memory[HERE + 16] = 0x77;
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    assert_int_equal(p->end[TARGET].e->stats.rx_requests, 2);
    assert_int_equal(p->end[TARGET].e->peers.awake.next == &p->end[TARGET].e->peers.awake, 0);
    assert_int_equal(p->end[ASKER].num_inbox > 0 &&
                         pair_head(&p->end[ASKER].inbox[0]).type == MRD_WIRE_DATA,
                     0); /* nothing is answered yet */
    settle(p);
    wc = take(p);
    assert_int_equal(wc.opcode, MRD_WC_RDMA_WRITE);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_read(p, 16, 1);
    assert_int_equal(p->end[ASKER].memory[HERE + 16], 0x77);
    assert_int_equal(take(p).opcode, MRD_WC_FETCH_ADD);
    pair_end(p);
}

/* The target's queue pair goes while ordered requests wait for their turn. */
TEST(reads__turn_that_never_comes)
{
    struct pair *p = begin();
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    for (unsigned at = 0; at < 2; at++)
        p->end[at].qp->order = MRD_ORDER_MSG;
    *word(p, TARGET, 24) = 9;
    assert_int_equal(try_ask(p, MRD_WR_RDMA_WRITE, 16, 1, 0, 0, 0), 0);
    pair_turn(p, ASKER);
    p->end[TARGET].num_inbox = 0;
    ask(p, MRD_WR_ATOMIC_FETCH_AND_ADD, 24, 8, 1, 0);
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
    assert_int_equal(
        mrd_engine_modify_qp(p->end[TARGET].e, p->end[TARGET].qp, &attr, MRD_QP_STATE, p->now), 0);
    settle(p);
    assert_int_not_equal(take(p).status, MRD_WC_SUCCESS);
    assert_int_not_equal(take(p).status, MRD_WC_SUCCESS);
    assert_int_equal(*word(p, TARGET, 24), 9);
    assert_int_equal(p->end[TARGET].e->responses.used, 0);
    pair_end(p);
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
TEST(reads__the_route_is_asked_for)
{
    struct pair *p = &pair;
    struct mrd_engine *e;
    struct mrd_addr to;
    uint32_t id;

    begin_without_routes(p);
    e = p->end[TARGET].e;
    read_at(p, 0, PAIR_PAYLOAD);
    settle(p);
    assert_read(p, 0, PAIR_PAYLOAD);
    assert_false(mrd_engine_wants_route(e, &id, &to));

    read_at(p, 0, LARGE);
    pair_turn(p, ASKER);
    pair_turn(p, TARGET);
    assert_int_equal(mrd_engine_deadline(e), 0);
    assert_true(mrd_engine_wants_route(e, &id, &to));
    assert_memory_equal(&to, &p->end[ASKER].addr, sizeof(to));
    assert_false(mrd_engine_wants_route(e, &id, &to));
    mrd_engine_give_route(e, id, 100 * LARGE, true); /* no more than the mover's */
    assert_true(pair_peer(p, TARGET)->one_way);
    settle(p);
    assert_read(p, 0, LARGE);

    read_at(p, 0, LARGE);
    pair_turn(p, ASKER);
    pair_turn(p, TARGET);
    assert_int_equal(p->end[ASKER].inbox[p->end[ASKER].num_inbox - 1].len / LARGE, 1);
    settle(p);
    assert_read(p, 0, LARGE);
    assert_false(mrd_engine_wants_route(e, &id, &to));
    mrd_engine_give_route(e, 12345, LARGE, true); /* it went meanwhile */
    pair_end(p);
}

/* Who waits longer for an asker than for others sends it no more packets for that. */
TEST(reads__patient_with_a_dead_asker)
{
    struct pair *p = &pair;
    struct mrd_engine *e;
    uint64_t end_ns;

    pair_config(p);
    pair_open(p);
    for (unsigned at = 0; at < 2; at++)
        register_again(p, at, ALL_ACCESS);
    e = p->end[TARGET].e;
    e->config.peer_timeout_ns = MRD_MSEC;
    read_at(p, 0, PAIR_PAYLOAD);
    pair_turn(p, ASKER);
    end_ns = p->now + 4 * MRD_SEC;
    while (p->now < end_ns) {
        uint64_t at;

        pair_turn(p, TARGET);
        p->end[ASKER].num_inbox = 0;
        at = mrd_engine_deadline(e);
        p->now = at > p->now ? at : p->now;
    }
    assert_true(e->stats.tx_packets < 1000);
    settle(p);
    pair_end(p);
}

/* Two begin to read in one turn: the route to each is asked for. */
TEST(reads__routes_of_two)
{
    struct pair *p = &pair;
    struct mrd_addr to[2];
    struct mrd_rx_packet packet;
    struct mrd_engine *e;
    struct mrd_peer *other;
    uint32_t id[2];
    bool asked;

    begin_without_routes(p);
    e = p->end[TARGET].e;
    read_at(p, 0, LARGE);
    pair_tx(p, ASKER);
    packet = pair_packet(p, TARGET, &p->end[TARGET].inbox[0]);
    packet.from = pair_addr_of(7);
    mrd_engine_begin(e, p->now);
    mrd_engine_rx(e, &packet, 1, p->now);
    other = pair_peer(p, TARGET);
    pair_rx_one(p, TARGET, &p->end[TARGET].inbox[0]);
    p->end[TARGET].num_inbox = 0;
    assert_true(mrd_engine_wants_route(e, &id[0], &to[0]));
    asked = mrd_engine_wants_route(e, &id[1], &to[1]);
    assert_true(!asked || id[0] != id[1]);
    mrd_half_peer_unreachable(e, other);
    settle(p);
    assert_read(p, 0, LARGE);
    assert_true(asked);
    pair_end(p);
}
