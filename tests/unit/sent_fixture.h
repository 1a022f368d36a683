/* SPDX-License-Identifier: BSD-2-Clause */
/* Sent packets by hand: records in pages, on a few paths; begin() and end(), where tests need two. */
#ifndef MRD_TESTS_UNIT_SENT_FIXTURE_H
#define MRD_TESTS_UNIT_SENT_FIXTURE_H

#include <string.h>

#include "core/sent.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum { TRACKER = 256, PATHS = 4, BYTES = 100, PAGES = 64 };

FIXTURE(sent_fixture)
{
    uint32_t num_pages, first; /* PSN; no pages: PAGES */
    struct unit_alloc alloc;
    struct mrd_pool pages;
    struct mrd_path path[PATHS];
    struct mrd_path_load load[PATHS];
    struct mrd_paths paths;
    struct mrd_sents s;
    uint64_t now_ns; /* of those tests that keep it */
};

static inline void begin(struct sent_fixture *f)
{
    const uint32_t num = f->num_pages ? f->num_pages : PAGES;

    unit_alloc_init(&f->alloc);
    assert_true(mrd_pool_init(&f->pages, &f->alloc.ops, sizeof(struct mrd_sent_page), num));
    mrd_paths_init(&f->paths, f->path, f->load, PATHS, PATHS, NULL, 0);
    mrd_sent_init(&f->s, &f->pages, TRACKER, 0);
    f->s.next = f->s.una = f->first;
}

static inline void end(struct sent_fixture *f)
{
    mrd_sent_fini(&f->s);
    assert_int_equal(f->pages.used, 0);
    mrd_pool_fini(&f->pages);
    assert_int_equal(f->alloc.live_bytes, 0);
}

FIXTURE_FROM(sent_fixture, begin, end);

#endif
