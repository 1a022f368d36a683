/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a peer and its space are remembered. */
#include <errno.h>

#include "core/engine/peer_state.h"
#include "tests/unit/engine_pair.h"

enum { BYTES = 64 };

/* A first contact is executed; the frame, of which a copy may come late. */
static struct pair_frame first_contact(struct pair *p)
{
    pair_begin(p);
    pair_post_recv(p, 1, 0, BYTES);
    pair_post_recv(p, 1, BYTES, BYTES);
    pair_post(p, 0, MRD_WR_SEND, 0, BYTES);
    pair_turn(p, 0);
    struct pair_frame first = p->end[1].inbox[0];
    pair_settle(p, p->now + MRD_SEC);
    pair_expect(p, 1, MRD_WC_SUCCESS);
    pair_expect(p, 0, MRD_WC_SUCCESS);
    return first;
}

/* Post a write by the handle as it is; what the call says. */
static int try_post(struct pair *p)
{
    struct mrd_send_wr wr = {.opcode = MRD_WR_RDMA_WRITE,
                             .ud = {.ah = p->end[0].ah, .remote_qpn = p->end[1].qp->qp_num}};
    struct mrd_send_wr *bad;

    mrd_engine_begin(p->end[0].e, p->now);
    return mrd_engine_post_send(p->end[0].e, p->end[0].qp, &wr, &bad, p->now);
}

/* After this all that was sent is dead. */
static uint64_t dead_ns(const struct pair *p)
{
    return MRD_SEND_IDLE_LIFE_NS + p->config.peer_timeout_ns + 2 * MRD_PACKET_LIFE_NS + MRD_SEC;
}

/* The copy waited in the receive queue while we were stopped: our absence makes no space older. */
TEST_F(pair, mrd_contact_identify__a_stall_expires_no_space)
{
    struct pair_frame first = first_contact(self);

    pair_pass(self, 1, 2 * dead_ns(self));
    pair_rx_one(self, 1, &first);
    pair_expect_nothing(self, 1);
    assert_int_equal(self->end[1].e->stats.rx_duplicates, 1);
}

/* While we listen it is held for as long as a copy of its packets may live, and no longer. */
TEST_F(pair, mrd_contact_identify__silence_expires_a_space)
{
    struct pair_frame first = first_contact(self);

    self->now += dead_ns(self) - 2 * MRD_SEC;
    mrd_engine_drained(self->end[1].e, self->now);
    pair_rx_one(self, 1, &first);
    pair_expect_nothing(self, 1);
    self->now += dead_ns(self);
    mrd_engine_drained(self->end[1].e, self->now);
    pair_rx_one(self, 1, &first);
    pair_expect(self, 1, MRD_WC_SUCCESS);
}

/* A full table: who has work, or did until lately, keeps its place; others go. */
TEST_F(pair, mrd_peer_open__a_peer_with_work_keeps_its_place)
{
    pair_config(self);
    self->config.max_peers = 1;
    pair_open(self);
    struct mrd_ah *known = self->end[0].ah;
    struct mrd_ah *stranger = pair_ah(self, 0, &(struct mrd_addr){.port = 102});
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    self->end[0].ah = stranger;
    assert_int_equal(try_post(self), -EAGAIN);
    pair_turn(self, 0);
    assert_int_equal(try_post(self), -EAGAIN);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
    assert_int_equal(try_post(self), -EAGAIN);
    self->now += 2 * dead_ns(self);
    mrd_engine_drained(self->end[0].e, self->now);
    assert_int_equal(try_post(self), 0);
    mrd_send_state_end(self->end[0].e, pair_peer(self, 0), MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(mrd_engine_destroy_ah(self->end[0].e, stranger), 0);
    self->end[0].ah = known;
}

static struct mrd_wire_head first_head(const struct pair *p, unsigned at)
{
    assert_true(p->end[at].num_inbox > 0);
    return pair_head(&p->end[at].inbox[0]);
}

/* A peer that was given up may be another life by now: what is sent to it next names nobody. */
TEST_F(pair, mrd_send_state_open__is_bound_to_no_tombstone)
{
    struct mrd_addr addr;

    for (unsigned i = 0; i < 2; i++)
        pair_post(self, i, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_turn(self, 0);
    assert_int_equal(first_head(self, 1).dst_inc,
                     pair_inc(self, 1)); /* one that is held is named */
    while (!self->end[0].e->stats.peers_unreachable)
        pair_turn_in_vain(self, 0);
    struct mrd_wc wc = pair_expect(self, 0, MRD_WC_RETRY_EXC_ERR);
    /* The failed completion leads to who did not answer. */
    assert_int_equal(mrd_engine_peer_addr(self->end[0].e, wc.peer_id, &addr), 0);
    assert_memory_equal(&addr, &self->end[1].addr, sizeof(addr));
    assert_int_equal(wc.byte_len, BYTES);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_turn(self, 0);
    assert_int_equal(first_head(self, 1).dst_inc, 0);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
}

/* Copies of an old ack come again and again: the half is not used for that. */
TEST_F(pair, mrd_send_state_open__after_old_acks)
{
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_turn(self, 0);
    pair_turn(self, 1);
    self->now += MRD_MSEC;
    pair_turn(self, 1);
    assert_int_equal(first_head(self, 0).type, MRD_WIRE_ACK);
    struct pair_frame ack = self->end[0].inbox[0];
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
    uint32_t epoch = pair_peer(self, 0)->tx->contact.epoch;
    for (uint64_t end_ns = self->now + MRD_SEND_IDLE_LIFE_NS; self->now < end_ns;
         self->now += MRD_SEC)
        pair_rx_one(self, 0, &ack);
    mrd_engine_begin(self->end[0].e, self->now);
    assert_int_not_equal(mrd_send_state_open(self->end[0].e, pair_peer(self, 0))->contact.epoch,
                         epoch);
}
