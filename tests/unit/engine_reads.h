/* SPDX-License-Identifier: BSD-2-Clause */
/* A pair whose one end reads from the other's memory, and asks it for atomics. */
#ifndef MRD_TESTS_UNIT_ENGINE_READS_H
#define MRD_TESTS_UNIT_ENGINE_READS_H

#include "tests/unit/engine_hand.h"

enum { ASKER = 0, TARGET = 1, HERE = 8 * PAIR_PAYLOAD };

#define ALL_ACCESS                                                                                 \
    (MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |                   \
     MRD_ACCESS_REMOTE_ATOMIC)

static inline void register_again(struct pair *p, unsigned at, int access)
{
    hand_dereg(p, at);
    p->end[at].mr = pair_register(p, at, access);
}

static inline void begin_in(struct pair *p, enum mrd_order order)
{
    pair_begin(p);
    for (unsigned at = 0; at < 2; at++) {
        p->end[at].qp->order = order;
        register_again(p, at, ALL_ACCESS);
    }
}

/* Of `len` bytes at `at` of the target's memory and at HERE + `at` of the asker's. */
static inline void ask_wr(const struct pair *p, enum mrd_wr_opcode opcode, uint32_t at,
                          uint32_t len, struct hand_wr *w)
{
    const struct pair_end *b = &p->end[TARGET];
    const uint64_t remote_addr = (uint64_t)(uintptr_t)(b->memory + at);

    hand_wr(p, ASKER, opcode, len, w);
    w->sge.addr = (uint64_t)(uintptr_t)(p->end[ASKER].memory + HERE + at);
    w->wr.num_sge = len > 0;
    w->wr.wr_id = at;
    if (opcode == MRD_WR_ATOMIC_FETCH_AND_ADD || opcode == MRD_WR_ATOMIC_CMP_AND_SWP) {
        w->wr.wr.atomic.remote_addr = remote_addr;
        w->wr.wr.atomic.rkey = b->mr->rkey;
        w->wr.wr.atomic.compare_add = 1;
    } else {
        w->wr.wr.rdma.remote_addr = remote_addr;
    }
}

static inline void ask_by(struct pair *p, struct mrd_ah *ah, enum mrd_wr_opcode opcode, uint32_t at,
                          uint32_t len, unsigned flags)
{
    struct hand_wr w;

    ask_wr(p, opcode, at, len, &w);
    w.wr.send_flags |= flags;
    w.wr.ud.ah = ah;
    assert_int_equal(hand_post(p, ASKER, &w.wr), 0);
}

/* An atomic adds 1. */
static inline void ask(struct pair *p, enum mrd_wr_opcode opcode, uint32_t at, uint32_t len)
{
    ask_by(p, p->end[ASKER].ah, opcode, at, len, 0);
}

static inline void settle(struct pair *p)
{
    pair_settle(p, p->now + 30 * MRD_SEC);
}

static inline struct mrd_wc take(struct pair *p)
{
    struct mrd_wc wc;

    assert_int_equal(pair_poll(p, ASKER, &wc), 1);
    return wc;
}

/* All that was asked ends, the next `num` requests with that status. */
static inline void expect_ends(struct pair *p, unsigned num, enum mrd_wc_status status)
{
    settle(p);
    for (unsigned i = 0; i < num; i++)
        assert_int_equal(take(p).status, status);
}

/* What was asked arrives; what the target sends then is in the asker's inbox. */
static inline void arrive(struct pair *p)
{
    pair_turn(p, ASKER);
    p->now += PAIR_HOP_NS;
    pair_turn(p, TARGET);
}

/* What was asked arrives and is acked, and the responses are lost. */
static inline void arrive_unanswered(struct pair *p)
{
    arrive(p);
    p->now += 100 * MRD_USEC;
    pair_turn(p, TARGET);
    pair_rx_acks(p, ASKER);
}

/* The target gives the asker up, with its responses. */
static inline void forget_asker(struct pair *p)
{
    const struct mrd_pool *responses = &p->end[TARGET].e->responses;

    for (unsigned i = 0; i < 1000 && responses->used; i++)
        pair_turn_in_vain(p, TARGET);
    assert_int_equal(responses->used, 0);
}

#endif
