/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which streams have work, and which wait for what.
 *
 * schedule_init(). A stream that can go on is due: schedule_make_due(), and the hub takes it with
 * schedule_next_due() before this turn of the loop ends. One that has to send and has no buffer waits
 * in the list of its peer: schedule_wait_for_buffer(), until schedule_next_waiting(). One that ended
 * leaves these lists, schedule_end(), and stays in memory until schedule_next_ended(): so whoever walks
 * streams or peers need not care which of them end meanwhile. What no event tells of is looked at by
 * the sweep, a second later: schedule_sweep().
 */
#ifndef FORWARD_SCHEDULE_H
#define FORWARD_SCHEDULE_H

#include <stdbool.h>

#include "core/list.h"
#include "tools/forward/link.h"

struct event;

/* A stream's place in the lists. */
struct schedule_entry {
    struct mrd_node due; /* in schedule.due or schedule.ended */
    struct mrd_node waiting;
};

struct schedule {
    struct link *link;
    struct mrd_node due, ended;
    struct event *sweep; /* owned */
};

/* Nothing is in it, and it has no link yet. `fn` is the sweep. 0, or -ENOMEM. */
int schedule_init(struct schedule *schedule, struct event_base *base,
                  void (*fn)(int fd, short what, void *arg), void *arg);
void schedule_fini(struct schedule *schedule);

void schedule_entry_init(struct schedule_entry *e);
/* The stream ended: it leaves its lists, and schedule_next_ended() returns it. */
void schedule_end(struct schedule *schedule, struct schedule_entry *e);

void schedule_make_due(struct schedule *schedule, struct schedule_entry *e);
void schedule_wait_for_buffer(struct schedule_entry *e, struct link_peer *peer);
bool schedule_is_waiting(const struct schedule_entry *e);

/* Each takes one out of its list; NULL: there is none. */
struct schedule_entry *schedule_next_due(struct schedule *schedule);
struct schedule_entry *schedule_next_ended(struct schedule *schedule);
/* Of a list that was peer->waiting. NULL, too: there is no buffer for the peer. */
struct schedule_entry *schedule_next_waiting(struct schedule *schedule,
                                             const struct link_peer *peer, struct mrd_node *list);

/* Runs the sweep in a second, if it is not going to run anyway. */
void schedule_sweep(struct schedule *schedule);
/* The same if receive buffers are scarce: then windows that lie idle are to shrink. */
void schedule_sweep_if_scarce(struct schedule *schedule);
bool schedule_is_scarce(const struct schedule *schedule);

#endif
