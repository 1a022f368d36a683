/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a peer and its space are remembered. */
#include <errno.h>

#include "core/engine/half.h"
#include "tests/unit/engine_pair.h"

enum { BYTES = 64 };

static struct pair pair; /* large, and begun anew by each test */

/* A first contact is executed; the frame, of which a copy may come late. */
static struct pair_frame first_contact(struct pair *p)
{
    struct pair_frame first;
    struct mrd_wc wc;

    pair_begin(p);
    pair_post_recv(p, 1, 0, BYTES);
    pair_post_recv(p, 1, BYTES, BYTES);
    pair_post(p, 0, MRD_WR_SEND, 0, BYTES);
    pair_turn(p, 0);
    first = p->end[1].inbox[0];
    pair_settle(p, p->now + MRD_SEC);
    assert_int_equal(pair_poll(p, 1, &wc), 1);
    assert_int_equal(pair_poll(p, 0, &wc), 1);
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
TEST(mrd_contact_identify__a_stall_expires_no_space)
{
    struct pair *p = &pair;
    struct pair_frame first = first_contact(p);
    struct mrd_wc wc;

    p->now += 2 * dead_ns(p);
    mrd_engine_begin(p->end[1].e, p->now);
    pair_rx_one(p, 1, &first);
    assert_int_equal(pair_poll(p, 1, &wc), 0);
    assert_int_equal(p->end[1].e->stats.rx_duplicates, 1);
    pair_settle(p, p->now + MRD_SEC);
    pair_end(p);
}

/* While we listen it is held for as long as a copy of its packets may live, and no longer. */
TEST(mrd_contact_identify__silence_expires_a_space)
{
    struct pair *p = &pair;
    struct pair_frame first = first_contact(p);
    uint64_t heard_ns = p->now;
    struct mrd_wc wc;

    p->now = heard_ns + dead_ns(p) - 2 * MRD_SEC;
    mrd_engine_drained(p->end[1].e, p->now);
    pair_rx_one(p, 1, &first);
    assert_int_equal(pair_poll(p, 1, &wc), 0);
    p->now += dead_ns(p);
    mrd_engine_drained(p->end[1].e, p->now);
    pair_rx_one(p, 1, &first);
    assert_int_equal(pair_poll(p, 1, &wc), 1);
    pair_settle(p, p->now + MRD_SEC);
    pair_end(p);
}

/* A full table: who has work, or did until lately, keeps its place; others go. */
TEST(mrd_half_open_peer__a_peer_with_work_keeps_its_place)
{
    struct pair *p = &pair;
    struct mrd_addr address = {.port = 102};
    struct mrd_ah *known, *stranger;
    struct mrd_wc wc;
    int error;

    pair_config(p);
    p->config.max_peers = 1;
    pair_open(p);
    known = p->end[0].ah;
    stranger = mrd_engine_create_ah(p->end[0].e, p->end[0].pd, &address, 0, &error);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    p->end[0].ah = stranger;
    assert_int_equal(try_post(p), -EAGAIN);
    pair_turn(p, 0);
    assert_int_equal(try_post(p), -EAGAIN);
    pair_settle(p, p->now + MRD_SEC);
    assert_int_equal(pair_poll(p, 0, &wc), 1);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_int_equal(try_post(p), -EAGAIN);
    p->now += 2 * dead_ns(p);
    mrd_engine_drained(p->end[0].e, p->now);
    assert_int_equal(try_post(p), 0);
    assert_int_equal(mrd_engine_destroy_ah(p->end[0].e, stranger), 0);
    p->end[0].ah = known;
    pair_end(p);
}

static struct mrd_wire_head first_head(const struct pair *p, unsigned at)
{
    assert_true(p->end[at].num_inbox > 0);
    return pair_head(&p->end[at].inbox[0]);
}

/* A peer that was given up may be another life by now: what is sent to it next names nobody. */
TEST(mrd_half_open_tx__is_bound_to_no_tombstone)
{
    struct pair *p = &pair;
    struct mrd_addr addr;
    struct mrd_wc wc;

    pair_begin(p);
    for (unsigned i = 0; i < 2; i++)
        pair_post(p, i, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_settle(p, p->now + MRD_SEC);
    assert_int_equal(pair_poll(p, 0, &wc), 1);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_turn(p, 0);
    assert_int_equal(first_head(p, 1).dst_inc, pair_inc(p, 1)); /* one that is held is named */
    while (!p->end[0].e->stats.peers_unreachable) {
        p->end[1].num_inbox = 0;
        p->now =
            mrd_engine_deadline(p->end[0].e) > p->now ? mrd_engine_deadline(p->end[0].e) : p->now;
        pair_turn(p, 0);
    }
    assert_int_equal(pair_poll(p, 0, &wc), 1);
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    /* The failed completion leads to who did not answer. */
    assert_int_equal(mrd_engine_peer_addr(p->end[0].e, wc.peer_id, &addr), 0);
    assert_memory_equal(&addr, &p->end[1].addr, sizeof(addr));
    assert_int_equal(wc.byte_len, BYTES);
    p->end[1].num_inbox = 0;
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_turn(p, 0);
    assert_int_equal(first_head(p, 1).dst_inc, 0);
    pair_settle(p, p->now + MRD_SEC);
    assert_int_equal(pair_poll(p, 0, &wc), 1);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    pair_end(p);
}

/* Copies of an old ack come again and again: the half is not used for that. */
TEST(mrd_half_open_tx__after_old_acks)
{
    struct pair *p = &pair;
    struct pair_frame ack;
    struct mrd_wc wc;
    uint32_t epoch;

    pair_begin(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_turn(p, 0);
    pair_turn(p, 1);
    p->now += MRD_MSEC;
    pair_turn(p, 1);
    assert_true(p->end[0].num_inbox > 0);
    ack = p->end[0].inbox[0];
    assert_int_equal(pair_head(&ack).type, MRD_WIRE_ACK);
    pair_settle(p, p->now + MRD_SEC);
    assert_int_equal(pair_poll(p, 0, &wc), 1);
    epoch = pair_peer(p, 0)->tx->contact.epoch;
    for (uint64_t end_ns = p->now + MRD_SEND_IDLE_LIFE_NS; p->now < end_ns; p->now += MRD_SEC)
        pair_rx_one(p, 0, &ack);
    mrd_engine_begin(p->end[0].e, p->now);
    assert_int_not_equal(mrd_half_open_tx(p->end[0].e, pair_peer(p, 0))->contact.epoch, epoch);
    pair_settle(p, p->now + MRD_SEC);
    pair_end(p);
}
