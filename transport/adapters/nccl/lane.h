/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane is a context with its completion queue, and the one thread that calls the library for it.
 * NCCL's threads hand it work, and look at what it writes into their requests.
 */
#ifndef MRD_NCCL_LANE_H
#define MRD_NCCL_LANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mrd/mrd.h"
#include "transport/adapters/nccl/settings.h"

struct lane;
struct lane_user;

/* Something for the lane's thread to do. */
struct lane_work {
    struct lane_work *next;
    void (*run)(struct lane_work *work);
};

/* What the wr_id of a work request points to. */
struct lane_op {
    void (*done)(struct lane_op *op, const struct mrd_wc *wc);
};

/* Another context that users of the lane talk to. It is watched. */
struct lane_peer {
    struct lane_peer *next;
    struct lane *lane;
    struct mrd_ah *ah;
    uint32_t id; /* for the library, when it was seen last */
    char address[MRD_ADDRESS_MAX];
    struct lane_user *users;
    bool gone; /* new users take another one */
};

/* Who wants to hear that a peer is gone. */
struct lane_user {
    struct lane_user *next;
    struct lane_peer *peer;
    void (*gone)(struct lane_user *user, const char *why);
};

/* What ends by itself, and at the latest with its lane. */
struct lane_last {
    struct lane_last *next;
    void (*finish)(struct lane_last *last);
};

struct lane {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    char address[MRD_ADDRESS_MAX];
    int on_demand; /* MRD_ACCESS_ON_DEMAND where the device has it */
    int cqe_used;
    uint64_t spin_ns;
    struct lane_peer *peers;
    struct lane_last *lasts;
    int fd, wake_fd;
    pthread_t thread;
    _Alignas(64) _Atomic(struct lane_work *) todo;
    atomic_int asleep, stop;
};

/* NULL, and *error says why. */
struct lane *lane_open(const struct settings_device *device, const struct settings *settings,
                       char *error, size_t len);
/*
 * Nobody uses it any more. What peers have sent is acknowledged first, and lasts may end, for a
 * moment.
 */
void lane_close(struct lane *lane);

/* From any thread. The work is the lane's until it runs. */
void lane_push(struct lane *lane, struct lane_work *work);
/* Runs it on the lane's thread, and waits for that. */
void lane_call(struct lane *lane, void (*function)(struct lane *lane, void *argument),
               void *argument);

/* The rest is for the lane's thread. */

/* Room for so many more completions; a negative number gives it back. */
bool lane_reserve(struct lane *lane, int completions);
/* Handles all completions that wait, so that none names what is freed next. */
void lane_drain(struct lane *lane);
/* Makes progress until the count is 0, or for a moment. */
void lane_await(struct lane *lane, const unsigned *count);
/* Tells users which peers are gone. Before a new user joins: it is not one of what was there before. */
void lane_take_events(struct lane *lane);
/* NULL, or why not. */
const char *lane_join(struct lane *lane, struct lane_user *user, const char *address);
void lane_leave(struct lane_user *user);
/* Its finish() is called when the lane closes, unless it was taken back. */
void lane_add_last(struct lane *lane, struct lane_last *last);
void lane_remove_last(struct lane *lane, struct lane_last *last);

#endif
