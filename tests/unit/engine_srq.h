/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of engines by hand, in which the queue pairs of TO share a receive queue.
 *
 * begin(); post_recv() and send(), then settle(); expect() or expect_nothing(); end(), which wants
 * all queue pairs that begin() made.
 */
#ifndef MRD_TESTS_UNIT_ENGINE_SRQ_H
#define MRD_TESTS_UNIT_ENGINE_SRQ_H

#include <errno.h>

#include "tests/unit/engine_hand.h"

enum { FROM, TO, SHORT = 64, LONG = 5 * PAIR_PAYLOAD, QPS = 2, RECEIVES = 8, ROOM = 4 };

/* Long enough that only a READY brings a refused message back within a test's patience. */
#define RNR_NS      (100 * MRD_MSEC)
#define PATIENCE_NS (10 * MRD_MSEC)

static struct pair pair;

FIXTURE(shared)
{
    struct pair *p; /* the one above */
    struct mrd_engine *e;
    struct mrd_srq *srq;
    struct mrd_cq *cq[QPS]; /* each of a queue pair, with room for ROOM completions */
    struct mrd_qp *qp[QPS];
    struct mrd_pd *pd; /* of the shared queue; the queue pairs have another */
    struct mrd_mr *mr;
};

static inline struct mrd_qp *make_qp(struct shared *s, unsigned i)
{
    struct mrd_qp_init_attr attr = {
        .send_cq = s->p->end[TO].cq,
        .recv_cq = s->cq[i],
        .qkey = PAIR_QKEY,
        .rnr_timer_ns = RNR_NS,
        .cap = {.max_send_wr = 4, .max_recv_wr = UINT32_MAX}, /* no matter */
        .srq = s->srq};
    int error;
    struct mrd_qp *qp = mrd_engine_create_qp(s->e, s->p->end[TO].pd, &attr, &error);

    assert_non_null(qp);
    return qp;
}

static inline void begin(struct shared *s)
{
    struct mrd_srq_init_attr attr = {.attr = {.max_wr = RECEIVES, .max_sge = 2}};
    int error;

    pair_begin(&pair);
    *s = (struct shared){.p = &pair, .e = pair.end[TO].e};
    s->pd = mrd_engine_alloc_pd(s->e, NULL);
    s->mr = mrd_engine_reg_mr(s->e, s->pd, pair.end[TO].memory, PAIR_MEMORY, MRD_ACCESS_LOCAL_WRITE,
                              &(struct mrd_mover_mr){0}, &error);
    s->srq = mrd_engine_create_srq(s->e, s->pd, &attr, &error);
    assert_non_null(s->srq);
    for (unsigned i = 0; i < QPS; i++) {
        s->cq[i] = mrd_engine_create_cq(s->e, NULL, ROOM, NULL, &error);
        s->qp[i] = make_qp(s, i);
    }
}

static inline void end(struct shared *s)
{
    for (unsigned i = 0; i < QPS; i++) {
        assert_int_equal(mrd_engine_destroy_srq(s->e, s->srq), -EBUSY);
        assert_int_equal(mrd_engine_destroy_qp(s->e, s->qp[i], s->p->now), 0);
        assert_int_equal(mrd_cq_impl(s->cq[i])->reserved, 0);
        assert_int_equal(mrd_engine_destroy_cq(s->e, s->cq[i]), 0);
    }
    assert_int_equal(mrd_engine_dealloc_pd(s->e, s->pd), -EBUSY);
    assert_int_equal(mrd_engine_destroy_srq(s->e, s->srq), 0);
    assert_int_equal(mrd_engine_dereg_mr(s->e, s->mr, s->p->now), 0);
    assert_int_equal(mrd_engine_dealloc_pd(s->e, s->pd), 0);
    pair_end(s->p);
}

FIXTURE_FROM(shared, begin, end);

static inline uint32_t num_posted(const struct shared *s)
{
    return mrd_srq_impl(s->srq)->recvq.num_posted;
}

static inline void post_recv(struct shared *s, uint64_t wr_id)
{
    struct mrd_sge sge = {(uintptr_t)s->p->end[TO].memory + wr_id % RECEIVES * LONG, LONG,
                          s->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;

    mrd_engine_begin(s->e, s->p->now);
    assert_int_equal(mrd_engine_post_srq_recv(s->e, s->srq, &wr, &bad), 0);
}

static inline void send(struct shared *s, unsigned to, uint32_t len)
{
    struct hand_wr w;

    hand_wr(s->p, FROM, MRD_WR_SEND, len, &w);
    w.wr.ud.remote_qpn = s->qp[to]->qp_num;
    assert_int_equal(hand_post(s->p, FROM, &w.wr), 0);
}

/* The next completion of queue pair i's queue. */
static inline void expect(struct shared *s, unsigned i, uint64_t wr_id, enum mrd_wc_status status)
{
    struct mrd_wc wc;

    assert_int_equal(mrd_engine_poll_cq(s->e, s->cq[i], 1, &wc), 1);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.qp_num, s->qp[i]->qp_num);
}

static inline void expect_nothing(struct shared *s)
{
    struct mrd_wc wc;

    for (unsigned i = 0; i < QPS; i++)
        assert_int_equal(mrd_engine_poll_cq(s->e, s->cq[i], 1, &wc), 0);
}

static inline void set_limit(struct shared *s, uint32_t limit)
{
    assert_int_equal(mrd_engine_modify_srq(s->e, s->srq, &(struct mrd_srq_attr){.srq_limit = limit},
                                           MRD_SRQ_LIMIT),
                     0);
}

static inline void settle(struct shared *s)
{
    pair_settle(s->p, s->p->now + PATIENCE_NS);
}

/* As send(), and what can be done for it is done. */
static inline void deliver(struct shared *s, unsigned to, uint32_t len)
{
    send(s, to, len);
    settle(s);
}

#endif
