/* SPDX-License-Identifier: BSD-2-Clause */
/* What of a peer is an answer: acks that tell something of packets of ours, and nothing else. */
#include "tests/unit/engine_hand.h"

enum { BYTES = 64, STEP_NS = 50 * 1000 };

#define TIMEOUT_NS (20 * MRD_MSEC) /* of the asking end; the other's is long */

/* The two have met, and no timer runs. */
static void begin(struct pair *p)
{
    pair_begin(p);
    p->end[0].e->config.peer_timeout_ns = TIMEOUT_NS;
    pair_write(p, 0, 0, BYTES);
}

/* What lies in the inbox is lost, but for packets of that type. */
static void lose_all_but(struct pair *p, unsigned at, uint8_t type)
{
    struct pair_end *end = &p->end[at];
    unsigned kept = 0;

    for (unsigned i = 0; i < end->num_inbox; i++) {
        if (pair_head(&end->inbox[i]).type == type)
            end->inbox[kept++] = end->inbox[i];
    }
    end->num_inbox = kept;
}

/*
 * The peer refused a message, and its refusals get lost: the PSN stays unacked. But each time that
 * we repeat it, an ack tells of the duplicate: the peer is there.
 */
TEST_F(pair, mrd_rx_ack__of_duplicates_is_an_answer)
{

    begin(self);
    uint32_t rkey = self->end[1].mr->rkey;
    self->end[1].mr->rkey ^= 1;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    self->end[1].mr->rkey = rkey;
    for (uint64_t end_ns = self->now + 5 * TIMEOUT_NS; self->now < end_ns; self->now += STEP_NS) {
        pair_turn(self, 0);
        pair_turn(self, 1);
        lose_all_but(self, 0, MRD_WIRE_ACK);
    }
    assert_true(self->end[1].e->stats.rx_duplicates > MRD_PROBES_MIN);
    assert_int_equal(self->end[0].e->stats.peers_unreachable, 0);
    pair_expect_nothing(self, 0);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_REM_ACCESS_ERR);
}

/* A new ack that tells nothing: no packet of ours, no duplicate, no echo. */
static struct pair_frame empty_ack(const struct pair *p, const struct mrd_send_state *tx,
                                   uint32_t serial)
{
    struct mrd_wire_head head = hand_head(p, 0, MRD_WIRE_ACK);
    struct mrd_wire_ack ack = {
        .serial = serial, .cum = tx->sent.una, .psn_limit = tx->sent.una + 512};
    struct pair_frame f;

    head.epoch = tx->contact.epoch;
    head.psn = tx->sent.una;
    uint8_t *end = mrd_wire_put_ack(mrd_wire_put_head(f.data, &head), &ack);

    mrd_wire_seal(f.data, end);
    f.len = (uint32_t)(end - f.data);
    return f;
}

/* Our packets get nowhere, and such acks come all the time: the peer is given up as a silent one. */
TEST_F(pair, mrd_rx_ack__that_tells_nothing_is_no_answer)
{
    uint32_t serial = 1000;

    begin(self);
    struct mrd_peer *peer = pair_peer(self, 0);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    for (uint64_t end_ns = self->now + 3 * TIMEOUT_NS; self->now < end_ns && peer->tx;
         self->now += STEP_NS) {
        self->end[0].inbox[0] = empty_ack(self, peer->tx, serial++);
        self->end[0].num_inbox = 1;
        pair_turn(self, 0);
        self->end[1].num_inbox = 0;
    }
    assert_int_equal(self->end[0].e->stats.rx_drop_ack, 0);
    assert_int_equal(self->end[0].e->stats.peers_unreachable, 1);
    pair_expect(self, 0, MRD_WC_RETRY_EXC_ERR);
}
