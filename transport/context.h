/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An opened context: one packet mover, one engine, one lock and perhaps a progress thread.
 *
 * This is the state, with its lock and its memory: open.c puts it together, call.h takes the lock.
 */
#ifndef MRD_TRANSPORT_CONTEXT_H
#define MRD_TRANSPORT_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/seal.h"
#include "transport/backend.h"
#include "transport/lock.h"

enum {
    MRD_TX_BATCH_MAX = 64, /* packets that the engine makes, and the mover is offered, at once */
    MRD_RX_BATCH_MAX = 64,
    MRD_EVENT_RING = 64, /* power of two */
    MRD_SEALING_KEYS_MAX = 2,
    MRD_UNOPENED_MAX = 16,
};

/* Packets that the engine made and the mover has not taken yet: packets[first .. count). */
struct mrd_outbox {
    struct mrd_tx_packet packets[MRD_TX_BATCH_MAX];
    unsigned first, count;
    /*
     * Packets asked of the engine at once: whole quanta of the mover, so that no burst is cut
     * in two.
     */
    unsigned batch;
    uint8_t *heads;    /* head memory of all packets */
    uint64_t retry_ns; /* when to offer what is left again; UINT64_MAX: nothing is left */
    uint64_t built_ns; /* when the engine made the packets */
    uint64_t unreaped; /* cookies at the mover, not yet returned by tx_reap(); 0 if it copies */
    uint64_t partial;  /* bursts of which the mover took less than all */
    uint64_t old;      /* packets dropped because they waited here too long */
    unsigned sealed;   /* so many packets begin MRD_SEAL_HEAD_BYTES in front of their heads */
};

/*
 * Events taken from engine and device; async_fd is readable while there are any. `head` and `tail`
 * run freely and are guarded by the context's lock.
 */
struct mrd_event_ring {
    struct mrd_engine_event events[MRD_EVENT_RING];
    uint32_t head, tail;
};

/* See channel.h. Under the context's lock. */
struct mrd_channels {
    unsigned num;
    int alarm_fd;      /* timerfd; -1: a progress thread, or virtual time, needs none */
    uint64_t alarm_ns; /* when it goes off, or went off; UINT64_MAX: never */
};

/* See thread.h. */
struct mrd_progress_thread {
    pthread_t thread;
    bool started;
    int wake_fd; /* eventfd; -1 without a thread */
    atomic_bool stop;
    atomic_uint_fast64_t lease_until_ns; /* written under the lock, read without it */
    /* Sleeps of the thread that ended; any thread may read it. */
    atomic_uint_fast64_t wakeups;
    /* Under the lock: the thread is in, or on its way into, the mover's wait(). */
    bool asleep;
    bool kicked;              /* under the lock: wake_fd was made readable and not yet read */
    uint64_t asleep_until_ns; /* with `asleep`: the deadline at which wait() returns by itself */
    bool app_came;            /* under the lock: since the thread left it something to do */
};

/* A packet that was not opened, and where its sender is answered, as it claims. */
struct mrd_unopened {
    struct mrd_addr addr;
    enum mrd_seal_verdict verdict;
    uint32_t key_id;
};

/* See sealing.h. Under the context's lock. */
struct mrd_sealing {
    struct mrd_seal *seal; /* NULL: packets are not sealed */
    const struct mrd_cipher *cipher;
    char *path;                            /* of the key file */
    uint32_t key_id[MRD_SEALING_KEYS_MAX]; /* those of the file */
    unsigned num_keys;
    /* The last ones of as many addresses; those that are opened are not looked for here. */
    struct mrd_unopened unopened[MRD_UNOPENED_MAX];
    unsigned next_unopened;
};

struct mrd_context_impl {
    struct mrd_context context; /* what users see; must be first */
    struct mrd_device device;   /* copy: the user's list may be freed */
    struct mrd_backend *backend;
    const struct mrd_backend_ops *ops;
    struct mrd_engine *engine;
    uint32_t paths;                /* paths to each peer */
    uint64_t link_bps;             /* bits per second; 0: unknown */
    const volatile uint8_t *alive; /* 1; the kernel makes it 0 in a forked child */
    int memory_fd;                 /* of mrd_memory_open(), or -1 */
    /* False: the caller serialises all calls, the lock is not used. */
    bool locks;
    struct mrd_lock lock;
    /* Calls that released the lock and still use the mover: the context must not close. */
    atomic_uint unlocked;
    uint64_t last_step_ns;
    unsigned polls_since_step;
    /* When a poll last handed out completions; 0: the application made a call since. */
    uint64_t handed_out_ns;
    /* Grows with each call that comes late after such a poll, see api_data.c. */
    unsigned slow_answers;
    bool rx_more; /* the last turn left packets at the mover */
    /* The last turn received but left deadlines and sending to the next one. */
    bool half_turn;
    struct mrd_sealing sealing;
    struct mrd_outbox outbox;
    struct mrd_event_ring events;
    struct mrd_progress_thread thread;
    struct mrd_channels channels;
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

/*
 * Makes a context of the device's that has no mover, engine or thread yet: open.c adds them. NULL
 * with *error and mrd_error_set(): no memory.
 */
struct mrd_context_impl *mrd_context_create(const struct mrd_device *device,
                                            const struct mrd_backend_ops *ops, int *error);
/* What was added has ended. */
void mrd_context_destroy(struct mrd_context_impl *c);

/* Zeroed memory where the mover has it; NULL: there is none. Released with its size. */
void *mrd_context_alloc(const struct mrd_context_impl *c, size_t bytes);
void mrd_context_release(const struct mrd_context_impl *c, void *ptr, size_t bytes);

/*
 * Without the lock: gives threads that sleep on it time to take it. For calls that are repeated in a
 * loop, by threads that wait for what others do under the lock.
 */
void mrd_context_yield_to_sleepers(struct mrd_context_impl *c);
/* The same, but first any thread may have the core: nobody may sleep on the lock. */
void mrd_context_yield_to_all(struct mrd_context_impl *c);

/* For tests. */
struct mrd_engine *mrd_context_engine(struct mrd_context *context);
struct mrd_backend *mrd_context_backend(struct mrd_context *context);

#endif
