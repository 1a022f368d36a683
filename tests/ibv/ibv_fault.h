/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs of contexts over fake RDMA devices at which something is about to fail.
 *
 * open_pair() or open_impatient(); start_writes(), the fault, finish_writes() or next_event();
 * fixture_end().
 */
#ifndef MRD_TESTS_IBV_FAULT_H
#define MRD_TESTS_IBV_FAULT_H

#include <stdlib.h>
#include <string.h>

#include "tests/ibv/ibv_fixture.h"
#include "tests/kit/kit.h"

#define MSEC_NS 1000000ull

static inline struct fixture *open_with(enum fake_ibv_kind kind,
                                        const struct mrd_context_attr *attr, bool srq)
{
    struct fixture *f = fixture_devices(kind);

    for (unsigned i = 0; i < 2 && !srq; i++)
        f->device[i]->attr.max_srq = 0;
    fixture_open_both(f, attr);
    f->b.ah = fixture_ah(&f->b, &f->a);
    return f;
}

static inline struct fixture *open_pair(enum fake_ibv_kind kind, const char *entropy, bool srq)
{
    return open_with(kind, &(struct mrd_context_attr){.entropy = entropy}, srq);
}

/* One that soon gives up a peer that does not answer. */
static inline struct fixture *open_impatient(void)
{
    return open_with(FAKE_IBV_MLX5, &(struct mrd_context_attr){.peer_timeout_ns = 500 * MSEC_NS},
                     true);
}

/* Messages under way from a to b, none of them complete: `n` writes. */
static inline void start_writes(struct fixture *f, unsigned n, uint32_t len)
{
    f->a.num_wc = f->b.num_wc = 0;
    memset(f->b.memory, 0, FIXTURE_BYTES);
    for (unsigned i = 0; i < n; i++) {
        fixture_fill(&f->a, i * len, len, i);
        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, i, i * len, len, 0), 0);
    }
}

static inline void finish_writes(struct fixture *f, unsigned n, uint32_t len)
{
    assert_true(fixture_run(f, n, 0));
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(f->a.wc[i].status, MRD_WC_SUCCESS);
        assert_true(fixture_holds(&f->b, i * len, len, i));
    }
}

/* The next event of a within five thousand turns, given back; false: there was none. */
static inline bool next_event(struct fixture *f, struct mrd_async_event *event)
{
    for (unsigned i = 0; i < 5000; i++) {
        fixture_turn(f);
        if (!mrd_get_async_event(f->a.context, event)) {
            mrd_ack_async_event(event);
            return true;
        }
    }
    return false;
}

#endif
