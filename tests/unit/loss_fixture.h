/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection by hand: records of packets on a few paths, and what is declared lost.
 *
 * begin() or begin_with_rtt(); send_at(), ack_at(); detect() and look at f->lost; end().
 */
#ifndef MRD_TESTS_UNIT_LOSS_FIXTURE_H
#define MRD_TESTS_UNIT_LOSS_FIXTURE_H

#include <string.h>

#include "core/loss.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum { TRACKER = 256, PATHS = 4, PATH_A = 0, PATH_B = 1, RTT = 10000, LOST_MAX = 64 };

FIXTURE(loss_fixture)
{
    struct unit_alloc alloc;
    struct mrd_pool pages;
    struct mrd_path path[PATHS];
    struct mrd_path_load load[PATHS];
    struct mrd_paths paths;
    struct mrd_sents s;
    struct mrd_loss loss;
    uint32_t lost[LOST_MAX];
    enum mrd_loss_cause cause[LOST_MAX];
};

static inline void begin(struct loss_fixture *f)
{
    memset(f, 0, sizeof(*f));
    unit_alloc_init(&f->alloc);
    assert_true(mrd_pool_init(&f->pages, &f->alloc.ops, sizeof(struct mrd_sent_page), 32));
    mrd_paths_init(&f->paths, f->path, f->load, PATHS, PATHS, NULL, 0);
    mrd_sent_init(&f->s, &f->pages, TRACKER, 0);
    mrd_loss_init(&f->loss, NULL, 0);
}

static inline void end(struct loss_fixture *f)
{
    mrd_loss_fini(&f->loss, &f->alloc.ops);
    mrd_sent_fini(&f->s);
    mrd_pool_fini(&f->pages);
}

/* As `begin`, with an RTT that is known and does not vary. */
static inline void begin_with_rtt(struct loss_fixture *f)
{
    begin(f);
    for (int i = 0; i < 64; i++)
        mrd_loss_rtt(&f->loss, RTT, 0);
    assert_int_equal(f->loss.srtt_ns, RTT);
}

FIXTURE_FROM(loss_fixture, begin_with_rtt, end);

static inline void send_at(struct loss_fixture *f, uint32_t psn, uint16_t path, uint64_t now_ns)
{
    struct mrd_sent *rec =
        psn == f->s.next ? mrd_sent_add(&f->s, MRD_SENT_EMPTY) : mrd_sent_get(&f->s, psn);
    uint32_t pseq;

    assert_non_null(rec);
    rec->bytes = 100;
    f->loss.last_send_ns = now_ns;
    pseq = mrd_path_sent(&f->paths, path);
    if (rec->state == MRD_SENT_INFLIGHT)
        mrd_path_forgot(&f->paths, rec->path);
    mrd_sent_transmit(&f->s, rec, &f->paths, path, pseq, now_ns);
}

/* `echoed`: the ack's echo names the last transmission. */
static inline bool ack_echoed_at(struct loss_fixture *f, uint32_t psn, bool echoed, uint64_t now_ns)
{
    struct mrd_sent *rec = mrd_sent_get(&f->s, psn);
    bool last_copy = mrd_loss_acked(&f->loss, rec, echoed, now_ns);

    if (rec->state == MRD_SENT_INFLIGHT)
        mrd_path_acked(&f->paths, rec->path);
    mrd_path_pseq_acked(&f->path[rec->path], rec->pseq);
    mrd_sent_ack(&f->s, rec, &f->paths);
    mrd_sent_release(&f->s, rec);
    return last_copy;
}

static inline bool ack_at(struct loss_fixture *f, uint32_t psn, uint64_t now_ns)
{
    return ack_echoed_at(f, psn, false, now_ns);
}

/* All that is lost now, into f->lost and why into f->cause; how many. */
static inline unsigned detect(struct loss_fixture *f, uint64_t now_ns)
{
    enum mrd_loss_cause cause;
    struct mrd_sent *rec;
    unsigned n = 0;

    while ((rec = mrd_loss_next(&f->loss, &f->s, &f->paths, now_ns, &cause))) {
        assert_true(n < LOST_MAX);
        f->cause[n] = cause;
        f->lost[n++] = rec->psn;
        mrd_path_lost(&f->paths, rec->path, RTT, now_ns);
        mrd_sent_lose(&f->s, rec, &f->paths);
    }
    return n;
}

#endif
