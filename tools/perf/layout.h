/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where messages lie in memory, the same at both ends, for mrd and rc.
 */
#ifndef MRD_PERF_LAYOUT_H
#define MRD_PERF_LAYOUT_H

#include "tools/perf/perf.h"

/*
 * Messages lie at base + qp * region_bytes + slot * slot_bytes. Small ones go round within a page, large ones share
 * one place, as in perftest; verified ones each have a slot, which the QPs share.
 */
struct perf_layout {
    uint32_t slots;
    size_t slot_bytes;
    size_t region_bytes; /* 0: the QPs share the slots */
    size_t total_bytes;
};

/* `verify_slots`: slots of verified messages, 0: nothing is verified. */
struct perf_layout perf_layout_of(const struct perf_params *params, uint32_t verify_slots);
static inline size_t perf_layout_offset(const struct perf_layout *l, uint32_t qp, uint32_t slot)
{
    return qp * l->region_bytes + slot * l->slot_bytes;
}

#endif
