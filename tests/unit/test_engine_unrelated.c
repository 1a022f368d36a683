/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered messages to a peer that is well go on, while other hosts fail now and then. */
#include "tests/unit/engine_waits.h"

enum { AT = 0, BYTES = 64, NAME = 77, DEPTH = 1024, MOVED_IP = 9 };

static struct pair pair;

static void post(struct pair *p, struct mrd_ah *ah)
{
    struct hand_wr w;

    hand_wr(p, AT, MRD_WR_RDMA_WRITE, BYTES, &w);
    w.wr.ud.ah = ah;
    assert_int_equal(hand_post(p, AT, &w.wr), 0);
    pair_tx_lost(p, AT);
}

/* A host that has nothing to do with the peer takes a message, and is gone. */
static struct mrd_peer *another(struct pair *p, unsigned i)
{
    struct mrd_engine *e = p->end[AT].e;
    struct mrd_addr addr = {.port = p->end[1 - AT].addr.port};
    int error;

    addr.ip[12] = 1;
    addr.ip[13] = (uint8_t)(i >> 8);
    addr.ip[14] = (uint8_t)i;
    struct mrd_ah *ah = mrd_engine_create_ah(e, p->end[AT].pd, &addr, 0, &error);
    struct mrd_peer *other = mrd_peer_open(e, &addr);
    mrd_send_state_open(e, other);
    answered(other, NAME + 1 + i);
    post(p, ah);
    assert_true(last_of(other)->started);
    mrd_engine_destroy_ah(e, ah);
    return other;
}

/* It is gone; if the table is full, somebody else comes, who needs its entry. */
static void one_fails(struct pair *p, struct mrd_peer *other, bool full, unsigned i)
{
    struct mrd_addr addr = pair_addr_of(500 + i);

    mrd_peer_unreachable(p->end[AT].e, other);
    if (full)
        mrd_peer_open(p->end[AT].e, &addr)->watch.users = 1;
}

static void run(bool moved, bool full, bool fails)
{
    struct pair *p = &pair;
    struct pair_end *end = &p->end[AT];
    struct mrd_qp_init_attr attr = {
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qkey = PAIR_QKEY,
        .order = MRD_ORDER_MSG};
    uint64_t begun_ns, first_ns = 0;
    struct mrd_peer *peer, *others[16];
    struct mrd_msg *first = NULL;
    struct mrd_wc wc;
    int error;

    pair_begin(p);
    struct mrd_qp *kept = end->qp;
    struct mrd_cq *cq = mrd_engine_create_cq(end->e, NULL, 4 * DEPTH, NULL, &error);
    attr.send_cq = attr.recv_cq = cq;
    end->qp = mrd_engine_create_qp(end->e, end->pd, &attr, &error);
    assert_non_null(end->qp);
    peer = hand_tx_peer(p, AT);
    answered(peer, NAME);
    struct mrd_addr addr = peer->addr;
    if (moved) {
        addr.ip[15] = MOVED_IP;
        mrd_peer_move(&end->e->peers, peer, &addr);
    }
    if (full)
        for (uint32_t i = 0; i < p->config.max_peers - 1; i++) {
            others[i] = another(p, i);
        }
    struct mrd_ah *ah = mrd_engine_create_ah(end->e, end->pd, &addr, 0, &error);
    begun_ns = p->now;
    for (unsigned i = 0; i < (full ? 220 : 600) && !first_ns; i++) {
        mrd_engine_begin(end->e, p->now += 100 * MRD_MSEC);
        if (fails && i % 15 == 0)
            one_fails(p, full && i / 15 < 15 ? others[i / 15] : another(p, i / 15), full, i);
        post(p, ah);
        if (i == 31) { /* what was posted before is sent, or waits for good */
            first = last_of(peer);
            begun_ns = p->now;
        }
        mrd_tx_ready(end->e, peer);
        pair_tx_lost(p, AT);
        if (first && first->started)
            first_ns = p->now;
        while (mrd_engine_poll_cq(end->e, cq, 1, &wc) == 1)
            ;
    }
    assert_non_null(first);
    assert_true(first_ns && first_ns - begun_ns < 3 * MRD_SEC);
    mrd_engine_destroy_ah(end->e, ah);
    assert_int_equal(mrd_engine_destroy_qp(end->e, end->qp, p->now), 0);
    end->qp = kept;
    mrd_engine_destroy_cq(end->e, cq);
    pair_end(p);
}

TEST(wait__nobody_fails)
{
    run(true, false, false);
    run(false, true, false);
}

TEST(wait__usual)
{
    run(false, false, true);
}

TEST(wait__moved)
{
    run(true, false, true);
}

TEST(wait__full)
{
    run(false, true, true);
}
