/* SPDX-License-Identifier: BSD-2-Clause */
/* What sleeps: descriptors of queues and counters, and the sources that these hear of. */
#ifndef MRD_OFI_WAIT_H
#define MRD_OFI_WAIT_H

#include <pthread.h>

#include "transport/adapters/ofi/ofi.h"

/*
 * What a CQ, counter or EQ is waited on by. The descriptor is an epoll set of the endpoints'
 * channels and of an eventfd for entries that no packet makes.
 */
struct mrd_ofi_wait {
    enum fi_wait_obj obj; /* FI_WAIT_NONE: there is no descriptor */
    int epoll_fd, event_fd;
    bool armed; /* write event_fd at the next entry */
    /*
     * Threads in mrd_ofi_wait_block(); those of them that a signal came for and that have yet to
     * see it.
     */
    uint32_t sleepers, to_wake;
    uint32_t signals; /* counts them */
};

/* obj: FI_WAIT_NONE, UNSPEC, FD, or YIELD. -FI_ENOSYS: another one. */
int mrd_ofi_wait_init(struct mrd_ofi_wait *w, enum fi_wait_obj obj);
void mrd_ofi_wait_fini(struct mrd_ofi_wait *w);
/* Also wakes up when `fd` is readable; forgets it. */
int mrd_ofi_wait_add_fd(struct mrd_ofi_wait *w, int fd);
void mrd_ofi_wait_del_fd(struct mrd_ofi_wait *w, int fd);
/* There is an entry: wakes those up who armed. */
void mrd_ofi_wait_signal(struct mrd_ofi_wait *w);
/* From now on signal() wakes up; earlier signals are forgotten. */
void mrd_ofi_wait_arm(struct mrd_ofi_wait *w);
/*
 * Without any lock: sleeps until something is readable or timeout_ms are over (-1: for ever; 0:
 * not). 0; -FI_EINTR.
 */
int mrd_ofi_wait_sleep(struct mrd_ofi_wait *w, int timeout_ms);
/*
 * As sleep(), with `mutex`, which is held, released meanwhile (NULL: there is none). Several
 * threads may sleep on the same wait: a signal wakes them all.
 */
int mrd_ofi_wait_block(struct mrd_ofi_wait *w, pthread_mutex_t *mutex, int timeout_ms);
/* fi_control() FI_GETWAIT and FI_GETWAITOBJ of an object with such a wait. -FI_ENOSYS: others. */
int mrd_ofi_wait_control(struct mrd_ofi_wait *w, int command, void *arg);
/* Milliseconds left of timeout_ms since start_ns, at least 0; -1 stays -1. */
int mrd_ofi_time_left(int timeout_ms, uint64_t start_ns);
uint64_t mrd_ofi_now_ns(void);

/* What entries come from: an endpoint. */
struct mrd_ofi_source {
    void (*progress)(struct mrd_ofi_source *source);
    void (*arm)(struct mrd_ofi_source *source); /* `fd` is readable at the next completion */
    int fd;
};

/* Those that a CQ or counter hears of. */
struct mrd_ofi_sources {
    struct mrd_ofi_source **source;
    uint32_t num, room;
};

/* A source counts once however often it is added; it goes with the last del(). */
int mrd_ofi_sources_add(struct mrd_ofi_sources *s, struct mrd_ofi_wait *w,
                        struct mrd_ofi_source *source);
void mrd_ofi_sources_del(struct mrd_ofi_sources *s, struct mrd_ofi_wait *w,
                         struct mrd_ofi_source *source);
/* Makes progress on all of them. */
void mrd_ofi_sources_progress(const struct mrd_ofi_sources *s);
/* Arms the wait, and asks all of them for an event at their next completion. */
void mrd_ofi_sources_arm(const struct mrd_ofi_sources *s, struct mrd_ofi_wait *w);

#endif
