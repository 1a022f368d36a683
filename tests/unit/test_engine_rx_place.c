/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of whole messages and of control: what is malformed, taken, refused or without room. */
#include "core/engine/receive.h"
#include "core/engine/rx_place.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, BYTES = 64, POOL_MAX = 10000 };

static struct mrd_peer *begin(struct pair *p)
{
    pair_begin(p);
    return hand_rx_peer(p, AT);
}

static struct hand_placed place_one(struct pair *p, struct mrd_peer *peer,
                                    struct mrd_wire_part part)
{
    return hand_place(p, AT, peer, 0, &part, 1);
}

static bool is_untouched(const struct pair *p)
{
    for (unsigned i = 0; i < PAIR_MEMORY; i++) {
        if (p->end[AT].memory[i])
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------- malformed */

/* The whole packet, encoded, as the first one of its space. */
static void rx_encoded(struct pair *p, const struct mrd_wire_part *part, unsigned num)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);
    uint32_t len = 0;
    struct pair_frame f;

    for (unsigned i = 0; i < num; i++)
        len += part[i].len;
    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.payload_check = mrd_wire_payload_check(p->end[0].memory, len);
    uint8_t *at = mrd_wire_put_head(f.data, &head);
    for (unsigned i = 0; i < num; i++)
        at = mrd_wire_put_part(at, &part[i]);
    mrd_wire_seal(f.data, at);
    memcpy(at, p->end[0].memory, len);
    f.len = (uint32_t)(at - f.data) + len;
    pair_rx_one(p, AT, &f);
}

/* A segment is alone in its packet. Beside another part it is dropped and counted. */
TEST_F(pair, mrd_rx_place__segment_beside_another_part)
{
    const struct mrd_stats *s;

    for (unsigned last = 0; last < 2; last++) {
        struct mrd_wire_part part[2];

        pair_begin(self);
        s = &self->end[AT].e->stats;
        pair_post_recv(self, AT, 0, BYTES);
        part[last] = hand_piece(hand_write(self, AT, 0), 1, 0, BYTES, 2 * BYTES);
        part[1 - last] = hand_send(self, AT, BYTES);
        rx_encoded(self, part, 2);
        assert_int_equal(s->rx_drop_malformed, 1);
        assert_int_equal(s->rx_packets + s->rx_messages + s->tx_refusals, 0);
        assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 1);
        assert_int_equal(self->end[AT].e->peers.slots.used, 0);
        assert_true(is_untouched(self));
        rx_encoded(self, &part[last], 1); /* the same PSN: nothing of it had been taken */
        assert_int_equal(s->rx_packets, 1);
        assert_int_equal(s->rx_drop_malformed, 1);
    }
}

/* ABORTs travel among themselves. */
TEST_F(pair, mrd_rx_place__abort_beside_data)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_part part[2] = {{.op = MRD_OP_ABORT, .flags = MRD_PART_MULTI, .id = 1},
                                    hand_write(self, AT, BYTES)};

    assert_int_equal(hand_place(self, AT, peer, 0, part, 2).verdict, MRD_PLACE_MALFORMED);
    assert_true(is_untouched(self));
    part[1] = part[0];
    assert_int_equal(hand_place(self, AT, peer, 0, part, 2).verdict, MRD_PLACED);
}

/* A packet has 64 parts at most. */
TEST_F(pair, mrd_rx_place__too_many_parts)
{
    static struct mrd_wire_part part[MRD_PARTS_MAX + 1];
    const struct mrd_stats *s = &self->end[AT].e->stats;

    for (unsigned i = 0; i <= MRD_PARTS_MAX; i++)
        part[i] = (struct mrd_wire_part){.op = MRD_OP_VOID};
    rx_encoded(self, part, MRD_PARTS_MAX + 1);
    assert_int_equal(s->rx_drop_malformed, 1);
    rx_encoded(self, part, MRD_PARTS_MAX);
    assert_int_equal(s->rx_packets, 1);
}

/* ------------------------------------------------------------------------------- whole messages */

/* A void part only keeps a place: nothing ends, and no queue pair is asked. */
TEST_F(pair, mrd_rx_place__void)
{
    struct mrd_peer *peer = begin(self);
    struct hand_placed got = place_one(self, peer, (struct mrd_wire_part){.op = MRD_OP_VOID});

    assert_int_equal(got.verdict, MRD_PLACED);
    assert_int_equal(got.end, MRD_PLACE_END_NONE);
}

/* ------------------------------------------------------------------------------------- refusals */

/* What is wrong with a part, the code that its sender learns, and the counter. */
TEST_F(pair, mrd_rx_place__codes_and_counters)
{
    struct mrd_peer *peer = begin(self);
    const struct mrd_stats *s = &self->end[AT].e->stats;
    struct mrd_wire_part send = hand_send(self, AT, BYTES), write = hand_write(self, AT, BYTES);
    const struct {
        struct mrd_wire_part part;
        uint8_t code;
        const uint64_t *counter;
    } rows[] = {
        {send, MRD_REFUSE_RNR, &s->rx_refuse_rnr},
        {{.op = MRD_OP_SEND, .len = 1, .total = 1, .dst_qpn = 1},
         MRD_REFUSE_QPN,
         &s->rx_refuse_qpn},
        {{.op = MRD_OP_SEND, .dst_qpn = send.dst_qpn, .qkey = 1},
         MRD_REFUSE_QKEY,
         &s->rx_refuse_qkey},
        {{.op = MRD_OP_WRITE,
          .len = 1,
          .total = 1,
          .dst_qpn = write.dst_qpn,
          .addr = write.addr,
          .rkey = write.rkey ^ 1},
         MRD_REFUSE_ACCESS,
         &s->rx_refuse_access},
        {hand_piece(write, 1, 0, 0, BYTES), MRD_REFUSE_INVALID, &s->rx_refuse_invalid},
        {hand_piece(write, 2, BYTES, 1, BYTES), MRD_REFUSE_INVALID, &s->rx_refuse_invalid},
        {hand_piece(write, 3, BYTES + 1, 1, BYTES), MRD_REFUSE_INVALID, &s->rx_refuse_invalid},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t before = *rows[i].counter;
        struct hand_placed got = place_one(self, peer, rows[i].part);

        assert_int_equal(got.verdict, MRD_PLACE_REFUSED);
        assert_int_equal(got.code, rows[i].code);
        assert_int_equal(*rows[i].counter, before + 1);
        assert_int_equal(s->tx_refusals, i + 1);
    }
    assert_true(is_untouched(self));
}

/* For want of a receive: when to try again, the longest of all parts; and who is to be told. */
TEST_F(pair, mrd_rx_place__not_ready_says_when)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_qp *kept = hand_swap_qp(self, AT, MRD_ORDER_NONE);
    struct mrd_wire_part part[2] = {hand_send(self, AT, BYTES), hand_send(self, AT, BYTES)};

    part[1].dst_qpn = kept->qp_num;
    hand_qp(self, AT)->rnr_timer_ns = 700 * MRD_USEC;
    struct hand_placed got = hand_place(self, AT, peer, 0, part, 2);
    assert_int_equal(got.num_refused, 2);
    assert_int_equal(got.rnr_usec, 700);
    assert_int_equal(hand_length(&peer->rnr_waiters), 2);
    hand_restore_qp(self, AT, kept);
}

/* --------------------------------------------------------------------------- no room to refuse */

static struct hand_placed place_without_room(struct pair *p, struct mrd_peer *peer,
                                             const struct mrd_wire_part *part, unsigned num)
{
    static void *taken[POOL_MAX];

    hand_exhaust(&p->end[AT].e->refusals, taken);
    struct hand_placed got = hand_place(p, AT, peer, 0, part, num);
    hand_refill(&p->end[AT].e->refusals, taken);
    return got;
}

/* If no refusal can be kept, a packet that may need one does nothing at all. */
TEST_F(pair, mrd_rx_place__no_room_does_nothing)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_part part[2] = {hand_send(self, AT, BYTES), hand_send(self, AT, BYTES)};

    pair_post_recv(self, AT, 0, BYTES);
    assert_int_equal(place_without_room(self, peer, part, 2).verdict, MRD_PLACE_NO_ROOM);
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 1);
    assert_true(is_untouched(self));
    assert_int_equal(place_without_room(self, peer, part, 1).verdict, MRD_PLACED);
    pair_post_recv(self, AT, 0, BYTES - 1); /* too short */
    assert_int_equal(place_without_room(self, peer, part, 1).verdict, MRD_PLACE_NO_ROOM);
}

/* What can be told to be taken for sure goes on without room for a refusal. */
TEST_F(pair, mrd_rx_place__no_room_is_needed)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_part write = hand_write(self, AT, BYTES), bad = write, ordered = write;
    uint32_t qpn = write.dst_qpn;
    const struct {
        struct mrd_wire_part part;
        enum mrd_place_verdict verdict;
    } rows[] = {
        {write, MRD_PLACED},
        {{.op = MRD_OP_VOID}, MRD_PLACED},
        {{.op = MRD_OP_ABORT, .flags = MRD_PART_MULTI, .id = 9}, MRD_PLACED},
        {{.op = MRD_OP_ABORT, .flags = MRD_PART_ORDERED, .dst_qpn = qpn}, MRD_PLACED},
        {{.op = MRD_OP_ABORT, .flags = MRD_PART_ORDERED, .dst_qpn = 1}, MRD_PLACE_NO_ROOM},
        {hand_piece(write, 9, 0, BYTES, 2 * BYTES), MRD_PLACED}, /* of a message that is over */
        {hand_piece(write, 1, 0, BYTES, 2 * BYTES), MRD_PLACED}, /* it begins */
        {hand_piece(write, 1, BYTES, BYTES, 3 * BYTES), MRD_PLACE_NO_ROOM}, /* disagrees */
        {hand_piece(write, 1, BYTES, 0, 2 * BYTES), MRD_PLACE_NO_ROOM},
        {hand_piece(write, 1, BYTES, BYTES, 2 * BYTES), MRD_PLACED}, /* goes on */
        {hand_piece(write, 2, 0, 0, BYTES), MRD_PLACE_NO_ROOM},
        {hand_piece(write, 2, BYTES, 1, BYTES), MRD_PLACE_NO_ROOM},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(place_without_room(self, peer, &rows[i].part, 1).verdict, rows[i].verdict);
    bad.rkey ^= 1;
    assert_int_equal(place_without_room(self, peer, &bad, 1).verdict, MRD_PLACE_NO_ROOM);
    ordered.flags = MRD_PART_ORDERED;
    ordered.msn = 1;
    assert_int_equal(place_without_room(self, peer, &ordered, 1).verdict, MRD_PLACE_NO_ROOM);
}

/* -------------------------------------------------------------------------------------- control */

/* A refusal of a space that is over tells nothing of the one that follows it. */
TEST_F(pair, mrd_rx_place__refusal_of_another_epoch)
{
    struct mrd_wire_refusal_entry entry = {.code = MRD_REFUSE_ACCESS};
    struct mrd_wire_part part = {.op = MRD_OP_REFUSAL, .num_entries = 1};
    uint8_t bytes[MRD_WIRE_REFUSAL_ENTRY_BYTES];

    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_tx(self, AT);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    mrd_wire_put_refusal_entry(bytes, &entry);
    part.entries = bytes;
    part.epoch = peer->tx->contact.epoch + 1;
    assert_int_equal(place_one(self, peer, part).verdict, MRD_PLACED);
    assert_int_equal(self->end[AT].e->stats.rx_refusals, 0);
    part.epoch--;
    assert_int_equal(place_one(self, peer, part).verdict, MRD_PLACED);
    assert_int_equal(self->end[AT].e->stats.rx_refusals, 1);
}

/* READY with nothing to send to the peer, CLOSE of a flow that is not known: nothing to do. */
TEST_F(pair, mrd_rx_place__control_about_nothing)
{
    struct mrd_peer *peer = begin(self);
    uint32_t qpn = self->end[AT].qp->qp_num;
    struct mrd_wire_part part[3] = {
        {.op = MRD_OP_READY, .receives = 3, .src_qpn = 16},
        {.op = MRD_OP_CLOSE, .flags = MRD_PART_ORDERED, .dst_qpn = qpn, .src_qpn = 16},
        {.op = MRD_OP_CLOSE, .flags = MRD_PART_ORDERED, .dst_qpn = 1}};
    struct hand_placed got = hand_place(self, AT, peer, 0, part, 3);

    assert_int_equal(got.verdict, MRD_PLACED);
    assert_int_equal(got.end, MRD_PLACE_END_NONE);
    assert_null(peer->tx);
}
