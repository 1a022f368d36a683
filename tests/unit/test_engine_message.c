/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a sent message: how it completes, waits, is given up. */
#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/engine/tx_flow.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64, RNR_USEC = 80 };

static struct mrd_peer *peer_of(const struct pair *p)
{
    return mrd_peer_find(&p->end[AT].e->peers, &p->end[1].addr);
}

/* The `i`th message that is posted. */
static struct mrd_msg *post(struct pair *p, unsigned i, enum mrd_wr_opcode opcode, uint32_t len)
{
    pair_post(p, AT, opcode, 0, len);
    return &hand_qp(p, AT)->msgs[i];
}

static struct mrd_sent *record(const struct pair *p, uint32_t psn)
{
    return mrd_sent_get(&peer_of(p)->tx->sent, psn);
}

static void refuse(struct pair *p, uint32_t psn, uint8_t index, uint8_t code)
{
    struct mrd_wire_refusal_entry entry = {.index = index, .code = code};

    mrd_msg_apply_refusal(p->end[AT].e, peer_of(p), record(p, psn), &entry, RNR_USEC);
}

/* The record's packet got there. */
static void acked(struct pair *p, uint32_t psn)
{
    struct mrd_sent *rec = record(p, psn);
    struct mrd_send_state *tx = peer_of(p)->tx;

    mrd_path_forgot(&tx->paths, rec->path);
    mrd_sent_ack(&tx->sent, rec, &tx->paths);
    mrd_msg_record_acked(p->end[AT].e, peer_of(p), rec);
}

/* The messages that were posted as those, from 0 on, end with that status, in that order. */
static void expect_ends(struct pair *p, unsigned first, unsigned last, enum mrd_wc_status status)
{
    for (unsigned i = first; i <= last; i++)
        assert_int_equal(pair_expect(p, AT, status).wr_id, 500 + i);
}

static struct mrd_qp *unordered; /* while an ordered one is in its place */

/* Three ordered writes, each in a packet of its own. */
static void begin_ordered(struct pair *p)
{
    pair_begin(p);
    unordered = hand_swap_qp(p, AT, MRD_ORDER_MSG);
    for (unsigned i = 0; i < 3; i++) {
        pair_post(p, AT, MRD_WR_RDMA_WRITE, i, BYTES);
        mrd_engine_begin(p->end[AT].e, p->now); /* the next one is another post */
        pair_tx(p, AT);
    }
    assert_int_equal(peer_of(p)->tx->sent.next, 3);
}

static void end_ordered(struct pair *p)
{
    pair_expect_nothing(p, AT);
    hand_restore_qp(p, AT, unordered);
    pair_end(p);
}

FIXTURE_OF(ordered, pair);
FIXTURE_FROM(ordered, begin_ordered, end_ordered);

/* The mover still reads an abandoned message: it completes after that, and those behind it, too. */
TEST_F(ordered, mrd_msg_end_read__after_the_end_of_its_flow)
{
    struct mrd_msg *msg = &hand_qp(self, AT)->msgs[1];

    msg->reading = 2;
    mrd_send_state_end(self->end[AT].e, peer_of(self), MRD_WC_RETRY_EXC_ERR);
    expect_ends(self, 0, 0, MRD_WC_RETRY_EXC_ERR);
    mrd_msg_end_read(self->end[AT].e, msg);
    pair_expect_nothing(self, AT);
    assert_int_equal(self->end[AT].e->flows_tx.pool.used, 1);
    mrd_msg_end_read(self->end[AT].e, msg);
    expect_ends(self, 1, 2, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(self->end[AT].e->flows_tx.pool.used, 0);
}

/* That message, in whichever slot is free. */
static struct mrd_msg *post_write(struct pair *p, unsigned i)
{
    struct mrd_msg *msg = hand_qp(p, AT)->msgs;

    pair_post(p, AT, MRD_WR_RDMA_WRITE, i, BYTES);
    while (msg->state == MRD_MSG_FREE || msg->wr.id != 500 + i)
        msg++;
    return msg;
}

/*
 * Its space ended twice while the mover read: what is posted after that and is acked first completes
 * behind it all the same, in the order posted.
 */
TEST_F(ordered, mrd_msg_end_read__later_flows_wait)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_msg *first = &hand_qp(self, AT)->msgs[1], *second, *last;

    first->reading = 1;
    mrd_send_state_end(e, peer_of(self), MRD_WC_RETRY_EXC_ERR);
    expect_ends(self, 0, 0, MRD_WC_RETRY_EXC_ERR);
    second = post_write(self, 3);
    pair_tx(self, AT);
    second->reading = 1;
    mrd_send_state_end(e, peer_of(self), MRD_WC_RETRY_EXC_ERR);
    last = post_write(self, 4);
    pair_settle(self, self->now + MRD_SEC);
    assert_int_equal(last->state, MRD_MSG_DONE);
    mrd_msg_end_read(e, second);
    pair_expect_nothing(self, AT);
    mrd_msg_end_read(e, first);
    expect_ends(self, 1, 3, MRD_WC_RETRY_EXC_ERR);
    expect_ends(self, 4, 4, MRD_WC_SUCCESS);
}

/* What never left is over at once; what the target may half hold is over when it was told. */
TEST_F(pair, mrd_msg_cancel__tells_where_it_matters)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_msg *sent = post(self, 0, MRD_WR_RDMA_WRITE, 3 * PAIR_PAYLOAD);

    pair_tx(self, AT);
    mrd_msg_cancel(e, post(self, 1, MRD_WR_RDMA_WRITE, 3 * PAIR_PAYLOAD), MRD_WC_WR_FLUSH_ERR);
    pair_expect(self, AT, MRD_WC_WR_FLUSH_ERR);
    mrd_msg_cancel(e, sent, MRD_WC_WR_FLUSH_ERR);
    mrd_msg_cancel(e, sent, MRD_WC_LOC_PROT_ERR); /* the first word counts */
    assert_true(sent->abort.pending);
    for (uint32_t psn = 0; psn < 3; psn++)
        acked(self, psn);
    pair_expect_nothing(self, AT);
    assert_int_equal(pair_tx(self, AT), 1);
    assert_int_equal(record(self, 3)->kind, MRD_SENT_ABORT);
    acked(self, 3);
    pair_expect(self, AT, MRD_WC_WR_FLUSH_ERR);
}

/* A success is told if that was asked for, a failure always; the reserved room goes either way. */
TEST_F(pair, mrd_msg_record_acked__unsignaled)
{
    for (unsigned i = 0; i < 2; i++) {
        post(self, i, MRD_WR_RDMA_WRITE, BYTES)->wr.signaled = false;
        mrd_engine_begin(self->end[AT].e, self->now); /* the next one is another post */
        pair_tx(self, AT);
    }
    acked(self, 0);
    pair_expect_nothing(self, AT);
    assert_int_equal(self->end[AT].e->stats.tx_messages, 1);
    refuse(self, 1, 0, MRD_REFUSE_ACCESS);
    pair_expect(self, AT, MRD_WC_REM_ACCESS_ERR);
    assert_int_equal(self->end[AT].e->stats.tx_messages_failed, 1);
    assert_int_equal(mrd_cq_impl(self->end[AT].cq)->reserved, 0);
}

/* A message of several packets completes with the last of them, and its id is free. */
TEST_F(pair, mrd_msg_record_acked__last_segment)
{
    const struct mrd_msg *msg = post(self, 0, MRD_WR_RDMA_WRITE, 3 * PAIR_PAYLOAD);

    pair_tx(self, AT);
    uint32_t id = msg->id;
    acked(self, 2);
    acked(self, 0);
    pair_expect_nothing(self, AT);
    assert_ptr_equal(mrd_ids_find(&peer_of(self)->tx->ids, id)->msg, msg);
    acked(self, 1);
    pair_expect(self, AT, MRD_WC_SUCCESS);
    assert_true(!mrd_ids_find(&peer_of(self)->tx->ids, id) ||
                !mrd_ids_find(&peer_of(self)->tx->ids, id)->msg);
}

/* Ordered messages complete in the order in which they were posted. */
TEST_F(ordered, mrd_msg_record_acked__in_order)
{
    acked(self, 2);
    acked(self, 1);
    pair_expect_nothing(self, AT);
    acked(self, 0);
    expect_ends(self, 0, 2, MRD_WC_SUCCESS);
}

/* What the sender is told of each refusal that is for good. */
TEST_F(pair, mrd_msg_apply_refusal__for_good)
{
    static const struct {
        uint8_t code;
        enum mrd_wc_status status;
    } rows[] = {{MRD_REFUSE_QPN, MRD_WC_REM_INV_REQ_ERR},
                {MRD_REFUSE_QKEY, MRD_WC_REM_INV_REQ_ERR},
                {MRD_REFUSE_TOO_LONG, MRD_WC_REM_INV_REQ_ERR},
                {MRD_REFUSE_INVALID, MRD_WC_REM_INV_REQ_ERR},
                {MRD_REFUSE_ACCESS, MRD_WC_REM_ACCESS_ERR},
                {MRD_REFUSE_OPERATION, MRD_WC_REM_OP_ERR},
                {99, MRD_WC_REM_OP_ERR}}; /* of a later version */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pair_begin(self);
        post(self, 0, MRD_WR_SEND, BYTES);
        pair_tx(self, AT);
        refuse(self, 0, 0, rows[i].code);
        assert_int_equal(pair_expect(self, AT, rows[i].status).vendor_err, rows[i].code);
    }
}

/* For want of a receive: each attempt costs a retry, unless a hint let it go, or they are endless. */
TEST_F(pair, mrd_msg_apply_refusal__retries)
{
    static const struct {
        uint8_t left;
        bool hinted;
        uint8_t after;
        enum mrd_msg_state state;
    } rows[] = {{1, false, 0, MRD_MSG_RNR_WAIT},
                {0, true, 0, MRD_MSG_RNR_WAIT},
                {3, true, 3, MRD_MSG_RNR_WAIT},
                {MRD_RNR_RETRY_FOREVER, false, MRD_RNR_RETRY_FOREVER, MRD_MSG_RNR_WAIT},
                {0, false, 0, MRD_MSG_FREE}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pair_begin(self);
        struct mrd_msg *msg = post(self, 0, MRD_WR_SEND, BYTES);
        msg->rnr.left = rows[i].left;
        msg->rnr.hinted = rows[i].hinted;
        pair_tx(self, AT);
        refuse(self, 0, 0, MRD_REFUSE_RNR);
        assert_int_equal(msg->state, rows[i].state);
        if (rows[i].state == MRD_MSG_RNR_WAIT) {
            assert_int_equal(msg->rnr.left, rows[i].after);
            continue;
        }
        struct mrd_wc wc = pair_expect(self, AT, MRD_WC_RNR_RETRY_EXC_ERR);
        assert_int_equal(wc.vendor_err, MRD_REFUSE_RNR);
    }
}

/* The target has no memory: what we hold there in idle flows, and do not use, is given back. */
TEST_F(pair, mrd_msg_apply_refusal__closes_idle_flows)
{
    static const uint8_t codes[] = {MRD_REFUSE_RNR, MRD_REFUSE_RESOURCES};

    for (unsigned i = 0; i < 2; i++) {
        pair_begin(self);
        post(self, 0, MRD_WR_SEND, BYTES);
        pair_tx(self, AT);
        struct mrd_engine *e = self->end[AT].e;
        struct mrd_peer *peer = peer_of(self);
        mrd_tx_flow_rest(e, mrd_tx_flow_open(e, peer, hand_qp(self, AT), 500));
        refuse(self, 0, 0, codes[i]);
        assert_int_equal(hand_length(&peer->tx->closes), i);
    }
}

/* Of a message whose memory was deregistered no byte is touched: it is given up. */
TEST_F(pair, mrd_msg_check_memory__deregistered)
{
    struct mrd_msg *msg = post(self, 0, MRD_WR_RDMA_WRITE, BYTES);

    assert_true(mrd_msg_check_memory(self->end[AT].e, msg));
    hand_dereg(self, AT);
    msg->wr.is_inline = true; /* it would have been copied */
    assert_true(mrd_msg_check_memory(self->end[AT].e, msg));
    msg->wr.is_inline = false;
    assert_false(mrd_msg_check_memory(self->end[AT].e, msg));
    pair_expect(self, AT, MRD_WC_LOC_PROT_ERR);
    assert_false(mrd_msg_check_memory(self->end[AT].e, msg)); /* it is over */
}
