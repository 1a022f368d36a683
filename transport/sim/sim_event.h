/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event queue of the simulator: a 4-ary heap ordered by (time, order of insertion), so that
 * runs repeat exactly.
 *
 * mrd_sim_events_push() when something will happen; mrd_sim_events_next_ns() and
 * mrd_sim_events_pop() in the run loop. The array grows by doubling and never shrinks: no
 * allocation per event once a run is warm.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_EVENT_H
#define MRD_TRANSPORT_SIM_SIM_EVENT_H

#include <stddef.h>
#include <stdint.h>

#define MRD_SIM_NEVER UINT64_MAX

enum mrd_sim_event_kind {
    MRD_SIM_EVENT_ARRIVE = 0, /* object: the packet that comes out of its last link */
    MRD_SIM_EVENT_TIMER, /* object: the host; tag: which of its timers, stale unless the latest */
};

struct mrd_sim_event {
    uint64_t at_ns;
    uint64_t order; /* of insertion: breaks ties */
    void *object;   /* borrowed */
    uint32_t kind;  /* enum mrd_sim_event_kind */
    uint32_t tag;
};

struct mrd_sim_events {
    struct mrd_sim_event *heap; /* owned */
    size_t len, cap;
    uint64_t order_next;
};

void mrd_sim_events_init(struct mrd_sim_events *events);
void mrd_sim_events_fini(struct mrd_sim_events *events);
/* 0 or -ENOMEM; `order` is set here. */
int mrd_sim_events_push(struct mrd_sim_events *events, uint64_t at_ns, enum mrd_sim_event_kind kind,
                        void *object, uint32_t tag);
/* When the first event is due; MRD_SIM_NEVER: there is none. */
uint64_t mrd_sim_events_next_ns(const struct mrd_sim_events *events);
/* Take the first event; there must be one. */
struct mrd_sim_event mrd_sim_events_pop(struct mrd_sim_events *events);

#endif
