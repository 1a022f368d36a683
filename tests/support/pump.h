/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Senders of a simulated world that always have writes waiting, and the rates that they reach.
 *
 * pump_start() or pump_start_sized() each; pump_run() them together; pump_stop() each in the end.
 */
#ifndef MRD_TESTS_SUPPORT_PUMP_H
#define MRD_TESTS_SUPPORT_PUMP_H

#include "tests/support/world.h"

struct pump {
    struct sim_world *w;
    uint32_t from, to; /* hosts */
    uint8_t *source, *target;
    uint32_t bytes, depth; /* of each write; writes in flight at a time */
    uint32_t posted, done; /* writes */
};

/* Writes of 64 KiB, 63 at a time. */
void pump_start(struct pump *p, struct sim_world *w, uint32_t from, uint32_t to);
void pump_start_sized(struct pump *p, struct sim_world *w, uint32_t from, uint32_t to,
                      uint32_t bytes, uint32_t depth);
/*
 * Let so much time pass; gbps[i], unless NULL: what of pumps[i] was completed meanwhile, in Gb/s.
 */
void pump_run(struct pump *pumps, uint32_t num, uint64_t ns, double *gbps);
double pump_run_one(struct pump *pump, uint64_t ns);
/* What is in flight ends. */
void pump_stop(struct pump *p);

#endif
