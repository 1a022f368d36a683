/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two contexts over the loopback that make every object, exchange every kind of message and part.
 *
 * scene_play() does that under a plan of failures: each call that fails must say so, with an error of
 * `allowed` and a sentence of its own, and is made again. All data are compared, each completion
 * must be a success, and afterwards no memory and no descriptor may be left.
 */
#ifndef MRD_TESTS_FAILING_SCENE_H
#define MRD_TESTS_FAILING_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "mrd/mrd.h"
#include "tests/failing/fail.h"

struct scene_rules {
    const struct fail_plan *plan;
    const int *allowed; /* errors that calls may return, up to 0 */
    /* What fails goes on failing: the first call that fails ends the scene, which is cleared away
     * meanwhile. While messages are under way, the failures end after a while. */
    bool gives_up;
    bool threads;    /* contexts with progress threads */
    uint32_t rounds; /* of messages beyond the first */
    bool *over;      /* is set if the scene gave up; NULL: nobody asks */
};

/* Returns the number of calls that failed. */
uint32_t scene_play(const struct scene_rules *rules);

#endif
