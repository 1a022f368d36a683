/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths by hand, without records of packets.
 *
 * PATHS paths, or begin(), which ends what was before; lose_at() and ack() are a packet each, sent and judged at
 * once.
 */
#ifndef MRD_TESTS_UNIT_PATH_FIXTURE_H
#define MRD_TESTS_UNIT_PATH_FIXTURE_H

#include <string.h>

#include "core/path.h"
#include "core/rng.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum { PATHS = 64, BASE_NS = 10000 };

#define SEC_NS UINT64_C(1000000000)

FIXTURE(path_fixture)
{
    struct mrd_path path[PATHS];
    struct mrd_path_load load[PATHS];
    struct mrd_paths paths;
    struct mrd_rng rng;
    struct unit_alloc alloc;
};

/* What the paths took comes back whole. */
static inline void end(struct path_fixture *f)
{
    mrd_paths_fini(&f->paths, &f->alloc.ops);
    assert_int_equal(f->alloc.live_bytes, 0);
}

static inline void begin(struct path_fixture *f, uint32_t num)
{
    end(f);
    memset(f, 0, sizeof(*f));
    unit_alloc_init(&f->alloc);
    mrd_paths_init(&f->paths, f->path, f->load, num, num, NULL, 1);
    mrd_rng_init(&f->rng, 7);
}

static inline void lose_at(struct path_fixture *f, uint32_t index, uint64_t now_ns)
{
    mrd_path_sent(&f->paths, index);
    mrd_path_lost(&f->paths, index, BASE_NS, now_ns);
}

static inline void ack(struct path_fixture *f, uint32_t index)
{
    mrd_path_sent(&f->paths, index);
    mrd_path_acked(&f->paths, index);
}

/* Probes of path `index` fail while all others work, until it is DEAD; how many were lost. */
static inline unsigned fail_until_dead(struct path_fixture *f, uint32_t index, uint64_t *now_ns)
{
    unsigned lost = 0;

    while (f->path[index].state != MRD_PATH_DEAD && lost < 1000) {
        *now_ns = f->path[index].until_ns > *now_ns ? f->path[index].until_ns : *now_ns + 1;
        for (uint32_t i = 0; i < f->paths.num; i++) {
            if (i != index)
                ack(f, i);
        }
        *now_ns += BASE_NS;
        lose_at(f, index, *now_ns);
        lost++;
    }
    return lost;
}

FIXTURE_SETUP(path_fixture)
{
    begin(self, PATHS);
}

FIXTURE_TEARDOWN(path_fixture)
{
    end(self);
}

#endif
