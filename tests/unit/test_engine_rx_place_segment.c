/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of several packets at their target: how they begin, go on, complete and fail. */
#include "core/engine/rx_place.h"
#include "tests/unit/engine_hand.h"

enum {
    AT = 1,
    BYTES = 64,     /* of a piece; a message has three, if not said otherwise */
    ID = 5,         /* of a message */
    FAR = 8 * 1024, /* where nothing is written */
    POOL_MAX = 10000,
    VERY_LONG = 256 << 10,
};

static struct mrd_peer *begin(struct pair *p)
{
    pair_begin(p);
    return hand_rx_peer(p, AT);
}

/* Piece `i` of three, of the message that `part` says as a whole. */
static struct hand_placed piece(struct pair *p, struct mrd_peer *peer, struct mrd_wire_part part,
                                uint32_t id, uint32_t i)
{
    part = hand_piece(part, id, i * BYTES, BYTES, 3 * BYTES);
    return hand_place(p, AT, peer, i, &part, 1);
}

/* ------------------------------------------------------------------------------------- segments */

/* From 256 KiB on the end of a message is worth one more ack. */
TEST_F(pair, mrd_rx_place__end_of_a_very_long_message)
{
    static uint8_t memory[VERY_LONG];
    int error;

    for (uint32_t total = VERY_LONG - 1; total <= VERY_LONG; total++) {
        struct mrd_peer *peer = begin(self);
        struct mrd_wire_part write = hand_write(self, AT, 0);
        struct hand_placed got = {0};

        struct mrd_mr *mr = mrd_engine_reg_mr(
            self->end[AT].e, self->end[AT].pd, memory, sizeof(memory),
            MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE, &(struct mrd_mover_mr){0}, &error);
        write.rkey = mr->rkey;
        write.addr = (uint64_t)(uintptr_t)memory;
        for (uint32_t at = 0, len; at < total; at += len) {
            len = total - at < PAIR_MEMORY / 2 ? total - at : PAIR_MEMORY / 2;
            struct mrd_wire_part part = hand_piece(write, ID, at, (uint16_t)len, total);
            got = hand_place(self, AT, peer, at, &part, 1);
        }
        assert_int_equal(got.end, total < VERY_LONG ? MRD_PLACE_END_LONG : MRD_PLACE_END_VERY_LONG);
        assert_int_equal(mrd_engine_dereg_mr(self->end[AT].e, mr, self->now), 0);
    }
}

/* Memory that is deregistered in the middle of a message is not written any more. */
TEST_F(pair, mrd_rx_place__memory_gone_in_the_middle)
{
    for (unsigned write = 0; write < 2; write++) {
        struct mrd_peer *peer = begin(self);
        struct pair_end *end = &self->end[AT];
        struct mrd_wire_part part = write ? hand_write(self, AT, 0) : hand_send(self, AT, 0);

        pair_post_recv(self, AT, 0, 3 * BYTES);
        part.flags = MRD_PART_IMM;
        assert_int_equal(piece(self, peer, part, ID, 0).verdict, MRD_PLACED);
        hand_dereg(self, AT);
        assert_int_equal(piece(self, peer, part, ID, 1).code,
                         write ? MRD_REFUSE_ACCESS : MRD_REFUSE_OPERATION);
        pair_expect(self, AT, MRD_WC_LOC_PROT_ERR);
        assert_int_equal(end->memory[BYTES], 0);
    }
}

/* Without a record for another open message its first piece is refused, and its id is over. */
TEST_F(pair, mrd_rx_place__no_record_for_a_message)
{
    static void *taken[POOL_MAX];
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_part write = hand_write(self, AT, 0);

    hand_exhaust(&self->end[AT].e->peers.slots, taken);
    struct hand_placed got = piece(self, peer, write, ID, 0);
    hand_refill(&self->end[AT].e->peers.slots, taken);
    assert_int_equal(got.code, MRD_REFUSE_RESOURCES);
    assert_in_range(got.rnr_usec, 1, 1000);
    assert_int_equal(piece(self, peer, write, ID, 1).verdict, MRD_PLACED);
    assert_int_equal(self->end[AT].memory[BYTES], 0);
    assert_int_equal(piece(self, peer, write, ID + MRD_MSG_SLOTS, 1).verdict, MRD_PLACED);
    assert_memory_equal(self->end[AT].memory + BYTES, self->end[0].memory, BYTES);
}

/* Of an ordered message: what waits behind it is delivered, unless its queue pair is gone. */
TEST_F(pair, mrd_rx_place__abort_in_order)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_part late = hand_send(self, AT, BYTES);
    struct mrd_wire_part abort = {.op = MRD_OP_ABORT,
                                  .flags = MRD_PART_ORDERED,
                                  .attempt = 1,
                                  .dst_qpn = late.dst_qpn,
                                  .src_qpn = late.src_qpn};

    for (unsigned i = 0; i < 2; i++)
        pair_post_recv(self, AT, FAR, BYTES);
    late.flags = MRD_PART_ORDERED;
    late.msn = late.rsn = late.msn_behind = late.rsn_behind = 1;
    assert_int_equal(hand_place(self, AT, peer, 0, &late, 1).verdict, MRD_PLACED);
    pair_expect_nothing(self, AT);
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 0); /* the one before has one */
    assert_int_equal(hand_place(self, AT, peer, 1, &abort, 1).verdict, MRD_PLACED);
    pair_expect(self, AT, MRD_WC_SUCCESS);
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 1); /* and came back */
    abort.dst_qpn = 1;
    assert_int_equal(hand_place(self, AT, peer, 2, &abort, 1).code, MRD_REFUSE_QPN);
}

/* -------------------------------------------------------------------------------- straight, end */

/* Where bytes belong: a write's in one place, a receive's along its list. */
TEST_F(pair, mrd_rx_place_at__pieces)
{
    struct mrd_peer *peer = begin(self);
    struct pair_end *end = &self->end[AT];
    struct mrd_sge sge[2];
    struct mrd_recv_wr wr = {.sg_list = sge, .num_sge = 2}, *bad;
    uint8_t *place;

    for (unsigned i = 0; i < 2; i++)
        sge[i] = (struct mrd_sge){.addr = (uint64_t)(uintptr_t)end->memory + i * FAR,
                                  .length = 3 * BYTES / 2,
                                  .lkey = end->mr->lkey};
    assert_int_equal(mrd_engine_post_recv(end->e, end->qp, &wr, &bad), 0);
    piece(self, peer, hand_send(self, AT, 0), ID, 0);
    struct mrd_slot *slot = mrd_container_of(peer->rx->slots.open.next, struct mrd_slot, node);
    assert_int_equal(mrd_rx_place_at(end->e, slot, BYTES, &place), BYTES / 2);
    assert_ptr_equal(place, end->memory + BYTES);
    assert_int_equal(mrd_rx_place_at(end->e, slot, 3 * BYTES / 2, &place),
                     slot->total - 3 * BYTES / 2);
    assert_ptr_equal(place, end->memory + FAR);
    assert_int_equal(mrd_rx_place_at(end->e, slot, slot->total, &place), 0);

    piece(self, peer, hand_write(self, AT, 0), ID + 1, 0);
    slot = mrd_container_of(peer->rx->slots.open.prev, struct mrd_slot, node);
    assert_int_equal(mrd_rx_place_at(end->e, slot, BYTES, &place), slot->total - BYTES);
    assert_ptr_equal(place, end->memory + BYTES);
    hand_dereg(self, AT);
    assert_int_equal(mrd_rx_place_at(end->e, slot, BYTES, &place), 0);
}

/* A queue pair's half messages fail, no other's. What still comes of them begins anew: refused. */
TEST_F(pair, mrd_rx_flush_qp__half_messages)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_part kept_send = hand_send(self, AT, 0), send;
    struct mrd_qp *kept = self->end[AT].qp;

    pair_post_recv(self, AT, 0, 3 * BYTES);
    hand_swap_qp(self, AT, MRD_ORDER_NONE);
    pair_post_recv(self, AT, 0, 3 * BYTES);
    send = hand_send(self, AT, 0);
    piece(self, peer, kept_send, ID, 0);
    piece(self, peer, send, ID + 1, 0);
    mrd_rx_flush_qp(self->end[AT].e, hand_qp(self, AT), MRD_WC_WR_FLUSH_ERR);
    pair_expect(self, AT, MRD_WC_WR_FLUSH_ERR);
    pair_expect_nothing(self, AT);
    assert_int_equal(piece(self, peer, send, ID + 1, 1).code, MRD_REFUSE_RNR);
    assert_int_equal(piece(self, peer, kept_send, ID, 1).verdict, MRD_PLACED);
    piece(self, peer, kept_send, ID, 2);
    pair_expect(self, AT, MRD_WC_SUCCESS);
    hand_restore_qp(self, AT, kept);
}

/* Ordered: what waits for its turn fails, and what was reserved for others goes back. */
TEST_F(pair, mrd_rx_flush_qp__what_waits_for_its_turn)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_part late = hand_send(self, AT, BYTES);

    pair_post_recv(self, AT, 0, BYTES);
    pair_post_recv(self, AT, FAR, BYTES);
    late.flags = MRD_PART_ORDERED;
    late.msn = late.rsn = late.msn_behind = late.rsn_behind = 1;
    hand_place(self, AT, peer, 0, &late, 1);
    mrd_rx_flush_qp(self->end[AT].e, hand_qp(self, AT), MRD_WC_WR_FLUSH_ERR);
    assert_int_equal(pair_expect(self, AT, MRD_WC_WR_FLUSH_ERR).wr_id, 900 + FAR);
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 1);
    assert_int_equal(peer->uses.reorder_entries + peer->uses.flows, 0);
}
