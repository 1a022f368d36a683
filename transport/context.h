/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An opened context: one packet mover, one engine, one lock and perhaps a progress thread.
 *
 * Every public call is mrd_context_enter(), engine calls, mrd_context_leave(). Enter fails in a
 * forked child.
 */
#ifndef MRD_TRANSPORT_CONTEXT_H
#define MRD_TRANSPORT_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/backend.h"
#include "transport/thread.h"

enum {
    MRD_TX_BATCH_MAX = 64, /* packets asked of the engine, and offered to the mover, at once */
    MRD_RX_BATCH_MAX = 64,
    MRD_EVENT_RING = 64, /* power of two */
};

/* Packets that the engine made and the mover has not taken yet: packets[first .. count). */
struct mrd_outbox {
    struct mrd_tx_packet packets[MRD_TX_BATCH_MAX];
    unsigned first, count;
    unsigned batch;    /* a multiple of the mover's quantum, so that no run is cut in two */
    uint8_t *heads;    /* head memory of all packets */
    uint64_t retry_ns; /* when to offer what is left again; UINT64_MAX: nothing is left */
    uint64_t built_ns; /* when the engine made the packets */
    uint64_t unreaped; /* cookies that a mover that does not copy holds */
    uint64_t partial;  /* bursts that were not taken whole */
    uint64_t old;      /* packets thrown away: they waited here for too long */
};

/*
 * Events taken from the engine, for which async_fd is readable. Free-running; the lock guards them.
 */
struct mrd_event_ring {
    struct mrd_engine_event events[MRD_EVENT_RING];
    uint32_t head, tail;
};

struct mrd_context_impl {
    struct mrd_context context; /* what users see; first */
    struct mrd_device device;   /* copy: the user's list may be freed */
    struct mrd_backend *backend;
    const struct mrd_backend_ops *ops;
    struct mrd_engine *engine;
    uint32_t paths;                /* entropy values in use */
    uint64_t link_bps;             /* 0: unknown */
    const volatile uint8_t *alive; /* a page that the kernel wipes in a forked child */
    bool locks;                    /* false: the caller serialises */
    pthread_mutex_t lock;
    atomic_uint waiting; /* threads that found the lock taken */
    uint64_t last_step_ns;
    unsigned polls_since_step;
    uint64_t handed_out_ns; /* when the application last polled completions; 0: it called since */
    unsigned slow_answers;  /* grows when it does not call again soon after */
    bool rx_more;           /* the last step left packets at the mover */
    bool half_turn;         /* the last step left deadlines to the next one */
    struct mrd_outbox outbox;
    struct mrd_event_ring events;
    struct mrd_progress_thread thread;
    struct mrd_rx_packet rx_packets[MRD_RX_BATCH_MAX];
};

static inline struct mrd_context_impl *mrd_context_impl(struct mrd_context *context)
{
    return (struct mrd_context_impl *)(void *)context;
}

static inline uint64_t mrd_context_now(const struct mrd_context_impl *c)
{
    return c->ops->now_ns(c->backend);
}

/* The slow ways through enter: sets the sentence, -EPERM; waits for the lock. */
int mrd_context_forked(void);
void mrd_context_lock_slow(struct mrd_context_impl *c);
/* Let those who wait for the lock have it: a thread that polls in a loop would starve them. */
void mrd_context_give_way(struct mrd_context_impl *c);

/* Take the lock. 0, or -EPERM in a forked child (then without the lock). */
static inline int mrd_context_enter(struct mrd_context_impl *c)
{
    if (!*c->alive)
        return mrd_context_forked();
    if (c->locks && pthread_mutex_trylock(&c->lock))
        mrd_context_lock_slow(c);
    return 0;
}

/* Wake the progress thread if it sleeps past new work, and drop the lock. */
static inline void mrd_context_leave(struct mrd_context_impl *c)
{
    if (c->thread.asleep)
        mrd_thread_check(c);
    if (c->locks)
        pthread_mutex_unlock(&c->lock);
}

/* Leave with the engine's sentence for a failed call; returns error. */
int mrd_context_fail(struct mrd_context_impl *c, int error);

/* For tests. */
struct mrd_engine *mrd_context_engine(struct mrd_context *context);
struct mrd_backend *mrd_context_backend(struct mrd_context *context);

#endif
