/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/engine_pair.h"

/*
 * Straight receive: where the payloads of a burst should be put before its packets were looked at,
 * and what becomes of them. The message is a write of 16 packets; its first came already, the
 * others lie in the inbox.
 */

enum { SEGMENTS = 16, BURST = SEGMENTS - 1 };

static struct pair_frame burst[BURST];
static unsigned head_len, segment_len;
static struct mrd_rx_plan out;

/* Of `bytes` in all, of which the first `peeked` are here. */
static unsigned plan_sizes(struct pair *p, unsigned peeked, unsigned segments, unsigned segment,
                           unsigned bytes)
{
    return mrd_engine_rx_plan(p->end[1].e, burst[0].data, peeked, segments, segment, bytes,
                              &p->end[0].addr, &out);
}

static unsigned plan(struct pair *p, unsigned first, unsigned segments)
{
    return mrd_engine_rx_plan(p->end[1].e, burst[first].data, head_len, segments, segment_len,
                              segments * segment_len, &p->end[0].addr, &out);
}

/* The first packet arrived. */
static void begin_at(struct pair *p, uint32_t len)
{
    pair_begin(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, len);
    assert_int_equal(pair_tx(p, 0), SEGMENTS);
    memcpy(burst, &p->end[1].inbox[1], sizeof(burst));
    p->end[1].num_inbox = 1;
    pair_hop(p, 1);
    head_len = pair_head(&burst[0]).head_len;
    segment_len = burst[0].len;
    assert_int_equal(segment_len, head_len + PAIR_PAYLOAD);
}

static void begin(struct pair *p)
{
    begin_at(p, SEGMENTS * PAIR_PAYLOAD);
}

/* What the mover does: burst[which] comes as segment `index`, its payload where the plan says. */
static void receive(struct pair *p, unsigned which, unsigned index)
{
    struct mrd_rx_packet packet = pair_packet(p, 1, &burst[which]);

    memcpy(out.iov[out.first[index]].iov_base, burst[which].data + head_len, PAIR_PAYLOAD);
    packet.len = head_len;
    packet.placed = 1;
    packet.placed_len = PAIR_PAYLOAD;
    packet.plan_index = (uint16_t)index;
    mrd_engine_rx(p->end[1].e, &packet, 1, p->now);
}

/* The rest of the message comes by retransmission, if it has to, and every byte is in its place. */
static void finish(struct pair *p)
{
    pair_settle(p, p->now + MRD_SEC);
    pair_expect(p, 0, MRD_WC_SUCCESS);
    assert_memory_equal(p->end[1].memory, p->end[0].memory, SEGMENTS * PAIR_PAYLOAD);
    pair_end(p);
}

FIXTURE_OF(half_a_write, pair);
FIXTURE_FROM(half_a_write, begin, finish);

/* A change to a packet's header, sealed again: what an attacker or a confused peer could send. */
static void reseal(unsigned which)
{
    mrd_wire_seal(burst[which].data, burst[which].data + head_len);
}

/* Bits of a header. */
struct flip {
    unsigned at;
    uint8_t bits;
};

/* A plan begins with burst[2], but with none of these flips in it. */
static void refuses_each(struct pair *p, const struct flip *flip, size_t num)
{
    const struct pair_frame whole = burst[2];

    for (size_t i = 0; i < num; i++) {
        burst[2].data[flip[i].at] ^= flip[i].bits;
        reseal(2);
        assert_int_equal(plan(p, 2, 4), 0);
        burst[2] = whole;
        assert_int_equal(plan(p, 2, 4), 4);
    }
}

TEST_F(half_a_write, mrd_engine_rx_plan__in_place_one_after_the_other)
{
    assert_int_equal(plan(self, 0, BURST), BURST);
    assert_int_equal(out.head_len, head_len);
    assert_int_equal(out.num_segments, BURST);
    for (unsigned i = 0; i < BURST; i++) {
        assert_int_equal(out.first[i + 1] - out.first[i], 1);
        assert_ptr_equal(out.iov[i].iov_base, self->end[1].memory + (i + 1) * PAIR_PAYLOAD);
        assert_int_equal(out.iov[i].iov_len, PAIR_PAYLOAD);
    }
    for (unsigned i = 0; i < BURST; i++)
        receive(self, i, i);
    assert_int_equal(self->end[1].e->stats.rx_straight, BURST);
    assert_int_equal(self->end[1].e->stats.rx_straight_moved, 0);
}

/* The last segment may be shorter. */
TEST_F(half_a_write, mrd_engine_rx_plan__short_last_segment)
{
    assert_int_equal(plan_sizes(self, head_len, 3, segment_len, 2 * segment_len + head_len + 100),
                     3);
    assert_int_equal(out.iov[2].iov_len, 100);
}

TEST_F(pair, mrd_engine_rx_plan__not_beyond_the_message)
{
    begin(self);
    assert_int_equal(plan(self, 10, 20), 5);
    finish(self);

    /* The last segment would reach over the end. */
    begin_at(self, SEGMENTS * PAIR_PAYLOAD - 100);
    assert_int_equal(plan(self, 10, 20), 4);
    assert_int_equal(plan(self, 10, 4), 4);
    memcpy(self->end[1].memory + SEGMENTS * PAIR_PAYLOAD - 100,
           self->end[0].memory + SEGMENTS * PAIR_PAYLOAD - 100, 100);
    finish(self);
}

TEST_F(half_a_write, mrd_engine_rx_plan__refuses_a_message_that_is_over)
{
    uint32_t *word = &pair_peer(self, 1)->rx->slots.word[0];
    uint32_t open = *word;
    *word = MRD_SLOT_CLOSED;
    assert_int_equal(plan(self, 0, BURST), 0);
    *word = open;
    assert_int_equal(plan(self, 0, BURST), BURST);
}

/* Every predicted PSN must be new: a late duplicate would overwrite newer data. */
TEST_F(half_a_write, mrd_engine_rx_plan__stops_at_a_psn_that_came)
{
    pair_rx_one(self, 1, &burst[4]);
    assert_int_equal(plan(self, 0, BURST), 4);
    assert_int_equal(plan(self, 4, 5), 0);
    assert_int_equal(plan(self, 5, 5), 5);
}

TEST_F(half_a_write, mrd_engine_rx_plan__stops_at_the_grant)
{
    pair_peer(self, 1)->rx->rcv.limit = 6; /* PSNs 1..5 */
    assert_int_equal(plan(self, 0, BURST), 5);
    pair_peer(self, 1)->rx->rcv.limit = 1024;
}

/* The message that is half here. */
static struct mrd_slot *open_slot(struct pair *p)
{
    return mrd_container_of(pair_peer(p, 1)->rx->slots.open.next, struct mrd_slot, node);
}

/* Nothing came of the message: its first packet is lost. The ends know each other. */
static void begin_new(struct pair *p, enum mrd_wr_opcode opcode)
{
    pair_begin(p);
    pair_write(p, 0, 0, 64);
    pair_post(p, 0, opcode, 0, SEGMENTS * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), SEGMENTS);
    memcpy(burst, &p->end[1].inbox[1], sizeof(burst));
    p->end[1].num_inbox = 0;
    p->now += PAIR_HOP_NS;
    head_len = pair_head(&burst[0]).head_len;
    segment_len = burst[0].len;
}

/* A write says by itself where its bytes belong: what begins it goes there, too. */
TEST_F(pair, mrd_engine_rx_plan__begins_a_write)
{
    begin_new(self, MRD_WR_RDMA_WRITE);
    assert_int_equal(plan(self, 1, 4), 4);
    for (unsigned i = 0; i < 4; i++)
        receive(self, 1 + i, i);
    assert_int_equal(self->end[1].e->stats.rx_straight, 4);
    assert_int_equal(self->end[1].e->stats.rx_straight_moved, 0);
    assert_int_equal(open_slot(self)->got, 4 * PAIR_PAYLOAD);
    finish(self);
}

/* The first of them was damaged: the others begin the message. */
TEST_F(pair, mrd_engine_rx_plan__begins_a_write_with_a_bad_packet)
{
    begin_new(self, MRD_WR_RDMA_WRITE);
    assert_int_equal(plan(self, 1, 4), 4);
    burst[1].data[segment_len - 1] ^= 1;
    for (unsigned i = 0; i < 4; i++)
        receive(self, 1 + i, i);
    assert_int_equal(self->end[1].e->stats.rx_drop_checksum, 1);
    assert_int_equal(open_slot(self)->got, 3 * PAIR_PAYLOAD);
    finish(self);
}

/* Not what may be refused, or has no place yet: nothing is written then. */
TEST_F(pair, mrd_engine_rx_plan__begins_nothing_else)
{
    static const struct flip table[] = {
        {47, 1},    /* target queue pair */
        {62, 0x80}, /* offset: beyond the message */
        {56, 0x80}, /* total: beyond the memory */
        {67, 1},    /* rkey */
        {71, 0x80}, /* address */
    };

    for (unsigned i = 0; i < 2; i++) { /* of a receive: there is none */
        begin_new(self, i ? MRD_WR_SEND : MRD_WR_RDMA_WRITE_WITH_IMM);
        assert_int_equal(plan(self, 0, BURST), 0);
    }
    begin_new(self, MRD_WR_RDMA_WRITE);
    refuses_each(self, table, sizeof(table) / sizeof(table[0]));
    struct mrd_qp_impl *qp = mrd_qp_impl(self->end[1].qp);
    for (unsigned i = 0; i < 2; i++) {
        qp->pub.state = i ? MRD_QPS_INIT : MRD_QPS_ERR;
        assert_int_equal(plan(self, 0, BURST), 0);
    }
    qp->pub.state = MRD_QPS_RTS;
    uint32_t *num_open = &pair_peer(self, 1)->rx->slots.num_open;
    *num_open = UINT32_MAX / 2; /* more than its share of the records */
    assert_int_equal(plan(self, 0, BURST), 0);
    *num_open = 0;
    assert_int_equal(plan(self, 0, BURST), BURST);
    finish(self);
}

/* A corrupt address must not write: no bit of the header may be wrong. */
TEST_F(half_a_write, mrd_engine_rx_plan__refuses_a_broken_header)
{
    for (unsigned bit = 0; bit < 8 * head_len; bit++) {
        burst[0].data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(plan(self, 0, BURST), 0);
        burst[0].data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (unsigned peeked = 0; peeked < head_len; peeked++)
        assert_int_equal(plan_sizes(self, peeked, 2, segment_len, 2 * segment_len), 0);
    self->end[1].e->config.mover.reply_max = self->end[0].addr.port - 1; /* less than it names */
    assert_int_equal(plan(self, 0, BURST), 0);
    self->end[1].e->config.mover.reply_max++;
    assert_int_equal(plan(self, 0, BURST), BURST);
}

/* Headers whose check holds and that are not of this message, this space or this peer. */
TEST_F(half_a_write, mrd_engine_rx_plan__refuses_what_is_not_of_the_message)
{
    static const struct flip table[] = {
        {0, 3},                           /* an ACK */
        {7, 1},                           /* source incarnation */
        {11, 1},                          /* destination incarnation */
        {15, 1},                          /* epoch */
        {31, 1},                          /* sender's receive port */
        {40, MRD_PART_MULTI},             /* a message of one packet */
        {40, MRD_OP_SEND ^ MRD_OP_WRITE}, /* another operation */
        {40, MRD_OP_VOID ^ MRD_OP_WRITE},
        {40, MRD_PART_SOLICITED},
        {43, 4},    /* length: not what the segment holds */
        {47, 1},    /* target queue pair */
        {51, 1},    /* source queue pair */
        {59, 1},    /* total */
        {62, 0x80}, /* offset: beyond the message */
        {63, 1},    /* offset: not where this PSN's bytes belong */
        {62, 4},    /* offset: another packet's place */
        {67, 1},    /* rkey */
        {75, 1},    /* address */
        {19, 1},    /* PSN */
    };

    open_slot(self)->top = UINT32_MAX; /* as if something came behind the burst */
    refuses_each(self, table, sizeof(table) / sizeof(table[0]));
}

TEST_F(half_a_write, mrd_engine_rx_plan__refuses_other_sizes)
{
    assert_int_equal(plan_sizes(self, head_len, 2, head_len, 2 * head_len), 0);
    assert_int_equal(plan_sizes(self, head_len, 2, segment_len - 1, 2 * segment_len - 2), 0);
    assert_int_equal(plan_sizes(self, head_len, 2, segment_len + 1, 2 * segment_len + 2), 0);
    assert_int_equal(plan_sizes(self, head_len, 2, segment_len, segment_len - 1), 0);
    assert_int_equal(plan(self, 0, 1), 1);
}

/* Only where a PSN tells the place: else a new PSN may be of bytes that were received. */
TEST_F(half_a_write, mrd_engine_rx_plan__refuses_an_uneven_message)
{
    open_slot(self)->top = open_slot(self)->low = UINT32_MAX;
    assert_int_equal(plan(self, 0, BURST), 0);
}

TEST_F(pair, mrd_engine_rx_plan__refuses_deregistered_memory)
{
    begin(self);
    mrd_engine_dereg_mr(self->end[1].e, self->end[1].mr, self->now);
    self->end[1].mr = NULL;
    assert_int_equal(plan(self, 0, BURST), 0);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_REM_ACCESS_ERR);
    assert_int_equal(self->end[1].memory[2 * PAIR_PAYLOAD], 0);
}

/* The right bytes under another number than predicted. */
TEST_F(pair, mrd_engine_rx__moves_what_has_another_psn)
{
    begin(self);
    assert_int_equal(plan(self, 0, 2), 2);
    burst[1].data[19] += 100;
    reseal(1);
    receive(self, 0, 0);
    receive(self, 1, 1);
    assert_int_equal(self->end[1].e->stats.rx_straight, 1);
    assert_int_equal(self->end[1].e->stats.rx_straight_moved, 1);
    /* A peer that numbers a segment twice spoils its own message only. */
}

/* Its part's id or its offset becomes another. */
static void change_part(unsigned which, bool id)
{
    uint8_t *data = burst[which].data;
    struct mrd_wire_part before, after;
    struct mrd_wire_head head;

    assert_int_equal(mrd_wire_get(data, burst[which].len, &head), MRD_WIRE_OK);
    uint32_t at = head.parts_at;
    assert_true(mrd_wire_get_part(data, &at, head_len, &before));
    for (uint32_t i = head.parts_at; i < head_len; i++) {
        data[i] ^= 1;
        at = head.parts_at;
        if (mrd_wire_get_part(data, &at, head_len, &after) && at == head_len &&
            (after.id != before.id) == id && (after.offset != before.offset) == !id &&
            after.len == before.len && after.op == before.op && after.flags == before.flags) {
            reseal(which);
            return;
        }
        data[i] ^= 1;
    }
    fail_msg("no byte of the header changes that");
}

/* The predicted number on a segment of another message, or of another place. */
TEST_F(pair, mrd_engine_rx__moves_what_is_of_another_place)
{
    for (unsigned id = 0; id < 2; id++) {
        begin(self);
        assert_int_equal(plan(self, 0, 2), 2);
        change_part(1, id);
        receive(self, 0, 0);
        receive(self, 1, 1);
        assert_int_equal(self->end[1].e->stats.rx_straight, 1);
        assert_int_equal(self->end[1].e->stats.rx_straight_moved, 1);
        pair_settle(self, self->now + MRD_SEC);
    }
}

/* In place, and broken on its way: not received, so that its retransmission is. */
TEST_F(half_a_write, mrd_engine_rx__placed_payload_is_checked)
{
    assert_int_equal(plan(self, 0, 2), 2);
    burst[0].data[head_len + 500] ^= 1;
    receive(self, 0, 0);
    receive(self, 1, 1);
    assert_int_equal(self->end[1].e->stats.rx_drop_checksum, 1);
    assert_int_equal(self->end[1].e->stats.rx_straight, 1);
}

/* Segments beyond the plan, or after it, have no place. */
TEST_F(half_a_write, mrd_engine_rx__placed_without_a_plan)
{
    assert_int_equal(plan(self, 0, 3), 3);
    out.first[3] = 2;
    receive(self, 3, 3);
    assert_int_equal(self->end[1].e->stats.rx_drop_length, 1);
    self->end[1].e->stats.rx_packets = 0;
    burst[5].data[60] ^= 1;
    struct mrd_rx_plan kept = out;
    assert_int_equal(plan(self, 5, 3), 0); /* a refusal ends the plan before it */
    out = kept;
    receive(self, 0, 0);
    assert_int_equal(self->end[1].e->stats.rx_drop_length, 2);
    assert_int_equal(self->end[1].e->stats.rx_packets, 0);
}
