/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event queue of the simulator. Events come out in order of (time, rank, insertion), so that
 * runs repeat exactly.
 *
 * A calendar with a bucket for each of the next MRD_SIM_CALENDAR_NS nanoseconds holds near events,
 * mostly arrivals of packets; push and pop take constant time. Later events, mostly timers, wait in
 * a heap. An event for time T is in the heap only if it was pushed at least MRD_SIM_CALENDAR_NS
 * before T. Every event for T in the calendar was pushed after that, so of the same rank the heap's
 * go first.
 *
 * mrd_sim_events_push() takes an event of the caller, which must not move until it is popped. The
 * calendar never allocates memory. The heap grows by doubling and never shrinks.
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
    MRD_SIM_EVENT_ARRIVE = 0, /* a packet reaches the end of a link; tag: the node there */
    MRD_SIM_EVENT_TIMER,      /* object: the host; tag: which of its timers, most are stale */
};

struct mrd_sim_event {
    struct mrd_sim_event *next; /* the queue's while it is queued, else its owner's */
    uint64_t at_ns;
    void *object; /* borrowed */
    uint32_t tag;
    uint8_t kind; /* enum mrd_sim_event_kind */
    uint8_t rank; /* among the events of a nanosecond: the lowest is first */
};

enum { MRD_SIM_RANK_LAST = 16 };

/* The events of one nanosecond, in order. `last` is valid unless `first` is NULL. */
struct mrd_sim_bucket {
    struct mrd_sim_event *first, *last;
};

struct mrd_sim_far {
    uint64_t at_ns;
    uint64_t order; /* rank, and then insertion: breaks ties */
    struct mrd_sim_event *event;
};

struct mrd_sim_slab;

struct mrd_sim_events {
    /* Time of the last event popped. The calendar holds the MRD_SIM_CALENDAR_NS from then on. */
    uint64_t base_ns;
    uint64_t near_ns;              /* of the calendar's first event; NEVER: it is empty */
    uint64_t sorted_ns;            /* the bucket of that time has the order of ranks */
    struct mrd_sim_bucket *bucket; /* by time modulo MRD_SIM_CALENDAR_NS; owned */
    uint64_t *used;                /* a bit for each bucket that has events; owned */
    uint64_t used_words[MRD_SIM_CALENDAR_WORDS / 64]; /* a bit for each word of `used` */
    struct mrd_sim_far *far;                          /* 4-ary heap; owned */
    size_t num_far, cap_far;
    uint64_t order_next;
    struct mrd_sim_event *free; /* events for mrd_sim_events_alloc() */
    struct mrd_sim_slab *slabs; /* what those were cut from; owned */
};

/* 0 or -ENOMEM. */
int mrd_sim_events_init(struct mrd_sim_events *events);
void mrd_sim_events_fini(struct mrd_sim_events *events);
/*
 * Queue an event whose kind, object and tag are set. A time before that of the last event popped
 * counts as that time. 0, or -ENOMEM: the event is not queued.
 */
int mrd_sim_events_push(struct mrd_sim_events *events, struct mrd_sim_event *event, uint64_t at_ns);
/* The same before events of higher ranks. Those of mrd_sim_events_push() have the last one. */
int mrd_sim_events_push_rank(struct mrd_sim_events *events, struct mrd_sim_event *event,
                             uint64_t at_ns, uint8_t rank);
/* An event for a caller that has none; release it after it was popped. NULL: no memory. */
struct mrd_sim_event *mrd_sim_events_alloc(struct mrd_sim_events *events);
void mrd_sim_events_release(struct mrd_sim_events *events, struct mrd_sim_event *event);
/* When the first event is due; MRD_SIM_NEVER: there is none. */
uint64_t mrd_sim_events_next_ns(const struct mrd_sim_events *events);
/* Remove the first event and return it. The queue must not be empty. */
struct mrd_sim_event *mrd_sim_events_pop(struct mrd_sim_events *events);

#endif
