/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event queue of the simulator: what happens next, in order of (time, insertion), so that runs repeat exactly.
 *
 * A calendar of one bucket a nanosecond holds what happens within the next 131 us, all in constant time: packets on
 * their way. What is further off, mostly timers, waits in a heap. An event at time T went to the heap only if it was
 * pushed 131 us or more before T, that is before any event of T that went to the calendar: so the heap goes first.
 *
 * mrd_sim_events_push() with the caller's event, which must stay where it is until it is popped. The calendar never
 * allocates; the heap grows by doubling and never shrinks.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_EVENT_H
#define MRD_TRANSPORT_SIM_SIM_EVENT_H

#include <stddef.h>
#include <stdint.h>

#define MRD_SIM_NEVER UINT64_MAX

enum {
    MRD_SIM_CALENDAR_NS = 1 << 17, /* buckets */
    MRD_SIM_CALENDAR_WORDS = MRD_SIM_CALENDAR_NS / 64,
};

enum mrd_sim_event_kind {
    MRD_SIM_EVENT_ARRIVE = 0, /* a packet's own event: it comes out of a link; tag: at which node */
    MRD_SIM_EVENT_TIMER, /* object: the host; tag: which of its timers, stale unless the latest */
    MRD_SIM_EVENT_FAULT, /* tag: index of the scheduled change of links */
};

struct mrd_sim_event {
    struct mrd_sim_event *next; /* the queue's while queued, else the owner's */
    uint64_t at_ns;
    void *object; /* borrowed */
    uint32_t tag;
    uint8_t kind; /* enum mrd_sim_event_kind */
};

/* The events of one nanosecond, in order; last means nothing while first is NULL. */
struct mrd_sim_bucket {
    struct mrd_sim_event *first, *last;
};

struct mrd_sim_far {
    uint64_t at_ns;
    uint64_t order; /* of insertion: breaks ties */
    struct mrd_sim_event *event;
};

struct mrd_sim_slab;

struct mrd_sim_events {
    uint64_t
        base_ns; /* of the last event popped: the calendar holds base .. base + CALENDAR_NS - 1 */
    uint64_t near_ns;              /* of the calendar's first event; NEVER: it is empty */
    struct mrd_sim_bucket *bucket; /* of each nanosecond; owned */
    uint64_t *used;                /* bitmap of buckets, MRD_SIM_CALENDAR_WORDS; owned */
    uint64_t used_words[MRD_SIM_CALENDAR_WORDS / 64];
    struct mrd_sim_far *far; /* 4-ary heap; owned */
    size_t num_far, cap_far;
    uint64_t order_next;
    struct mrd_sim_event *free; /* events of the queue's own, for timers */
    struct mrd_sim_slab *slabs;
};

/* 0 or -ENOMEM. */
int mrd_sim_events_init(struct mrd_sim_events *events);
void mrd_sim_events_fini(struct mrd_sim_events *events);
/* The event's kind, object and tag are set; a time in the past stands for now. 0 or -ENOMEM: not queued. */
int mrd_sim_events_push(struct mrd_sim_events *events, struct mrd_sim_event *event, uint64_t at_ns);
/* An event of the queue's own, for what has none; mrd_sim_events_release() after it was popped. NULL: no memory. */
struct mrd_sim_event *mrd_sim_events_alloc(struct mrd_sim_events *events);
void mrd_sim_events_release(struct mrd_sim_events *events, struct mrd_sim_event *event);
/* When the first event is due; MRD_SIM_NEVER: there is none. */
uint64_t mrd_sim_events_next_ns(const struct mrd_sim_events *events);
/* Take the first event; there must be one. */
struct mrd_sim_event *mrd_sim_events_pop(struct mrd_sim_events *events);
#endif
