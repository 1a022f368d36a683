/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/layout.h"

enum { LINE_BYTES = 64, PAGE_BYTES = 4096 };

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

struct perf_layout perf_layout_of(const struct perf_params *p, uint32_t verify_slots)
{
    struct perf_layout l = {.slots = 1,
                            .slot_bytes = round_up(p->size_bytes ? p->size_bytes : 1, LINE_BYTES)};

    if (verify_slots) {
        l.slots = verify_slots;
        l.total_bytes = round_up(l.slots * l.slot_bytes, PAGE_BYTES);
        return l;
    }
    /* Latency tests poll one place. */
    if (!perf_test_is_lat(p->test) && l.slot_bytes < PAGE_BYTES)
        l.slots = (uint32_t)(PAGE_BYTES / l.slot_bytes);
    l.region_bytes = round_up(l.slots * l.slot_bytes, PAGE_BYTES);
    l.total_bytes = p->qps * l.region_bytes;
    return l;
}
