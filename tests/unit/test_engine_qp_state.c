/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that take no messages yet, and those that take them from one queue pair only. */
#include <errno.h>

#include "tests/unit/engine_hand.h"

enum { TO = 0, FROM = 1, BYTES = 64, LONG = 3 * PAIR_PAYLOAD };

static struct pair pair; /* large, and begun anew by each test */

FIXTURE(test)
{
    enum mrd_order order; /* of the sender's queue pair */
    struct pair *p;
    struct mrd_qp *kept[2];
};

/* The two know each other. The target's queue pair is in INIT; the sender's has `order`. */
static struct test begin(enum mrd_order order)
{
    struct test t = {.order = order, .p = &pair};
    struct mrd_qp_init_attr attr;
    struct mrd_wc wc;
    int error;

    pair_begin(t.p);
    pair_post(t.p, FROM, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_settle(t.p, t.p->now + MRD_SEC);
    assert_int_equal(pair_poll(t.p, FROM, &wc), 1);
    t.kept[FROM] = hand_swap_qp(t.p, FROM, order);
    t.kept[TO] = t.p->end[TO].qp;
    mrd_engine_query_qp(t.kept[TO], &attr);
    assert_false(attr.comp_mask & MRD_QP_INIT_ATTR_STATE);
    attr.comp_mask |= MRD_QP_INIT_ATTR_STATE;
    attr.qp_state = MRD_QPS_INIT;
    t.p->end[TO].qp = mrd_engine_create_qp(t.p->end[TO].e, t.p->end[TO].pd, &attr, &error);
    assert_non_null(t.p->end[TO].qp);
    assert_int_equal(t.p->end[TO].qp->state, MRD_QPS_INIT);
    mrd_engine_query_qp(t.p->end[TO].qp, &attr);
    assert_true(attr.comp_mask & MRD_QP_INIT_ATTR_STATE && attr.qp_state == MRD_QPS_INIT);
    return t;
}

static void end(struct test *t)
{
    for (unsigned i = 0; i < 2; i++) {
        hand_restore_qp(t->p, i, t->kept[i]);
        pair_settle(t->p, t->p->now + 20 * MRD_SEC);
    }
    assert_int_equal(t->p->end[TO].e->rnr_waiters.pool.used, 0);
    pair_end(t->p);
}

FIXTURE_SETUP(test)
{
    *self = begin(self->order);
}

FIXTURE_TEARDOWN(test)
{
    end(self);
}

static int modify(struct test *t, struct mrd_qp_attr attr, int mask)
{
    return mrd_engine_modify_qp(t->p->end[TO].e, t->p->end[TO].qp, &attr, mask, t->p->now);
}

static int set_ready(struct test *t)
{
    return modify(t, (struct mrd_qp_attr){.qp_state = MRD_QPS_RTS}, MRD_QP_STATE);
}

static void expect(struct test *t, unsigned at, uint64_t wr_id, enum mrd_wc_status status)
{
    assert_int_equal(pair_expect(t->p, at, status).wr_id, wr_id);
}

/* Whatever comes early waits, and goes on as soon as the queue pair takes messages. */
TEST(qp_init__messages_wait)
{
    static const uint32_t lens[] = {BYTES, LONG};

    for (enum mrd_order order = MRD_ORDER_NONE; order <= MRD_ORDER_DATA; order++) {
        for (unsigned k = 0; k < 2; k++) {
            struct test t = begin(order);

            for (uint32_t i = 0; i < 3; i++)
                pair_post_recv(t.p, TO, LONG * i, LONG);
            pair_post(t.p, FROM, MRD_WR_SEND, 0, lens[k]);
            pair_settle(t.p, t.p->now + 100 * MRD_MSEC);
            pair_post(t.p, FROM, MRD_WR_SEND, 1, lens[k]);
            pair_post(t.p, FROM, MRD_WR_RDMA_WRITE_WITH_IMM, 2, lens[k]);
            pair_settle(t.p, t.p->now + MRD_SEC);
            pair_expect_nothing(t.p, TO);
            pair_expect_nothing(t.p, FROM);
            uint64_t begun_ns = t.p->now;
            assert_int_equal(set_ready(&t), 0);
            for (unsigned i = 0;
                 i < 100 &&
                 mrd_cq_impl(t.p->end[FROM].cq)->tail - mrd_cq_impl(t.p->end[FROM].cq)->head < 3;
                 i++) {
                for (unsigned at = 0; at < 2; at++) {
                    pair_turn(t.p, at);
                    t.p->now += PAIR_HOP_NS;
                }
            }
            /* Nobody waits for a timer, of which the shortest is 100 us. */
            assert_true(t.p->now - begun_ns < 100 * MRD_USEC);
            if (order != MRD_ORDER_NONE) {
                for (uint32_t i = 0; i < 3; i++) {
                    expect(&t, TO, 900 + LONG * i, MRD_WC_SUCCESS);
                    expect(&t, FROM, 500 + i, MRD_WC_SUCCESS);
                }
                assert_memory_equal(t.p->end[TO].memory, t.p->end[FROM].memory, 1);
            }
            end(&t);
        }
    }
}

/* A write consumes no receive, and waits all the same; so does a read. */
TEST_F_WITH(test, qp_init__writes_and_reads_wait, self->order = MRD_ORDER_MSG)
{
    pair_post(self->p, FROM, MRD_WR_RDMA_WRITE, 0, LONG);
    pair_post(self->p, FROM, MRD_WR_RDMA_READ, BYTES, BYTES);
    memset(self->p->end[TO].memory, 0xee, LONG);
    pair_settle(self->p, self->p->now + MRD_SEC);
    pair_expect_nothing(self->p, FROM);
    for (unsigned i = 0; i < LONG; i++)
        assert_int_equal(self->p->end[TO].memory[i], 0xee);
    assert_int_equal(set_ready(self), 0);
    pair_settle(self->p, self->p->now + 50 * MRD_USEC);
    expect(self, FROM, 500, MRD_WC_SUCCESS);
    expect(self, FROM, 500 + BYTES, MRD_WC_REM_ACCESS_ERR); /* the region may not be read */
}

/* The packets that the sender sends in a second of waiting, with requests that wait. */
static unsigned count_tries(enum mrd_wr_opcode opcode)
{
    struct test t = begin(MRD_ORDER_MSG);
    const uint64_t *sent = &pair_peer(t.p, FROM)->count.packets_sent;

    for (uint32_t i = 0; i < 8; i++)
        pair_post(t.p, FROM, opcode, LONG * i, LONG);
    pair_settle(t.p, t.p->now + MRD_SEC);
    uint64_t before = *sent;
    for (uint32_t i = 8; i < 12; i++) /* what is posted meanwhile waits behind them */
        pair_post(t.p, FROM, opcode, LONG * i, LONG);
    pair_settle(t.p, t.p->now + 20 * MRD_USEC);
    assert_true(*sent - before < 4 * LONG / PAIR_PAYLOAD);
    before = *sent;
    pair_settle(t.p, t.p->now + MRD_SEC);
    before = *sent - before;
    for (uint32_t i = 0; i < 12; i++)
        pair_post_recv(t.p, TO, LONG * i, LONG);
    assert_int_equal(set_ready(&t), 0);
    pair_settle(t.p, t.p->now + MRD_SEC);
    for (uint32_t i = 0; i < 12; i++)
        expect(&t, FROM, 500 + LONG * i, MRD_WC_SUCCESS);
    end(&t);
    return (unsigned)before;
}

/* Writes wait as sends do: one is tried at a time, and not all of them again and again. */
TEST(qp_init__writes_do_not_flood)
{
    unsigned sends = count_tries(MRD_WR_SEND), writes = count_tries(MRD_WR_RDMA_WRITE);

    assert_true(sends > 100);
    assert_true(writes <= sends + sends / 8);
}

/* Whoever does not try for ever fails; what was posted behind goes on in order. */
TEST_F_WITH(test, qp_init__who_gives_up_is_skipped, self->order = MRD_ORDER_MSG)
{
    struct pair_frame late[PAIR_INBOX];

    pair_post_recv(self->p, TO, 0, BYTES);
    hand_qp(self->p, FROM)->rnr_retry = 0;
    pair_post(self->p, FROM, MRD_WR_SEND, 0, BYTES);
    pair_settle(self->p, self->p->now + MRD_SEC);
    expect(self, FROM, 500, MRD_WC_RNR_RETRY_EXC_ERR);
    hand_qp(self->p, FROM)->rnr_retry = 7;
    /* Of the next message a copy stays under way until the queue pair takes messages. */
    pair_post(self->p, FROM, MRD_WR_SEND, 1, BYTES);
    mrd_engine_begin(self->p->end[FROM].e, self->p->now);
    unsigned num_late = pair_tx(self->p, FROM);
    memcpy(late, self->p->end[TO].inbox, num_late * sizeof(late[0]));
    pair_settle(self->p, self->p->now + MRD_SEC);
    assert_int_equal(set_ready(self), 0);
    for (unsigned i = 0; i < num_late; i++)
        pair_rx_one(self->p, TO, &late[i]);
    pair_settle(self->p, self->p->now + MRD_SEC);
    expect(self, TO, 900, MRD_WC_SUCCESS);
    expect(self, FROM, 501, MRD_WC_SUCCESS);
}

/* From INIT to the error state: receives are flushed, and senders are told. */
TEST_F(test, qp_init__error)
{
    pair_post_recv(self->p, TO, 0, BYTES);
    pair_post(self->p, FROM, MRD_WR_SEND, 0, BYTES);
    pair_settle(self->p, self->p->now + MRD_SEC);
    assert_int_equal(modify(self, (struct mrd_qp_attr){.qp_state = MRD_QPS_ERR}, MRD_QP_STATE), 0);
    pair_settle(self->p, self->p->now + MRD_SEC);
    expect(self, TO, 900, MRD_WC_WR_FLUSH_ERR);
    expect(self, FROM, 500, MRD_WC_REM_INV_REQ_ERR);
    assert_int_equal(set_ready(self), -EINVAL);
}

TEST_F(test, qp_init__is_checked)
{
    struct mrd_qp_init_attr attr;
    struct hand_wr w;
    int error;

    hand_wr(self->p, TO, MRD_WR_SEND, BYTES, &w);
    assert_int_equal(hand_post(self->p, TO, &w.wr), -EINVAL);
    assert_int_equal(modify(self, (struct mrd_qp_attr){.qp_state = MRD_QPS_INIT}, MRD_QP_STATE),
                     -EINVAL);
    assert_int_equal(set_ready(self), 0);
    assert_int_equal(set_ready(self), 0);
    assert_int_equal(modify(self, (struct mrd_qp_attr){.qp_state = MRD_QPS_INIT}, MRD_QP_STATE),
                     -EINVAL);
    mrd_engine_query_qp(self->p->end[TO].qp, &attr);
    assert_false(attr.comp_mask & MRD_QP_INIT_ATTR_STATE);
    attr.comp_mask = MRD_QP_INIT_ATTR_STATE;
    attr.qp_state = MRD_QPS_ERR;
    assert_null(mrd_engine_create_qp(self->p->end[TO].e, self->p->end[TO].pd, &attr, &error));
    assert_int_equal(error, -EINVAL);
}

/* -------------------------------------------------------------------------------- one source only */

/* Only the queue pair and the address that were named get through; the others are told. */
TEST(qp_dest__takes_from_one)
{
    enum { RIGHT, OTHER_QP, OTHER_PORT, ALL, CASES };
    static const enum mrd_wr_opcode opcodes[] = {MRD_WR_SEND, MRD_WR_RDMA_WRITE};

    for (enum mrd_order order = MRD_ORDER_NONE; order <= MRD_ORDER_MSG; order++) {
        for (unsigned i = 0; i < CASES; i++) {
            struct test t = begin(order);
            struct mrd_addr addr = t.p->end[FROM].addr;
            struct mrd_qp_attr attr = {.qp_state = MRD_QPS_RTS,
                                       .dest_qp_num = t.p->end[FROM].qp->qp_num + (i == OTHER_QP)};
            enum mrd_wc_status status =
                i == RIGHT || i == ALL ? MRD_WC_SUCCESS : MRD_WC_REM_INV_REQ_ERR;
            struct mrd_ah *ah;
            int error;

            addr.port += i == OTHER_PORT;
            ah = mrd_engine_create_ah(t.p->end[TO].e, t.p->end[TO].pd, &addr, 0, &error);
            attr.dest_ah = i == ALL ? NULL : ah;
            assert_int_equal(modify(&t, attr, MRD_QP_STATE | MRD_QP_DEST), 0);
            assert_int_equal(mrd_engine_destroy_ah(t.p->end[TO].e, ah), 0);
            memset(t.p->end[TO].memory, 0, 2 * BYTES);
            pair_post_recv(t.p, TO, 0, BYTES);
            for (unsigned k = 0; k < 2; k++)
                pair_post(t.p, FROM, opcodes[k], k * BYTES, BYTES);
            pair_settle(t.p, t.p->now + MRD_SEC);
            for (unsigned k = 0; k < 2; k++)
                expect(&t, FROM, 500 + k * BYTES, status);
            assert_int_equal(modify(&t, attr, MRD_QP_DEST), -EINVAL); /* it takes messages */
            if (status == MRD_WC_SUCCESS)
                expect(&t, TO, 900, MRD_WC_SUCCESS);
            pair_expect_nothing(t.p, TO);
            for (unsigned k = 0; k < 2 * BYTES; k++)
                assert_int_equal(t.p->end[TO].memory[k],
                                 status == MRD_WC_SUCCESS ? t.p->end[FROM].memory[k] : 0);
            end(&t);
        }
    }
}
