/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/schedule.h"

#include <errno.h>
#include <event2/event.h>

int schedule_init(struct schedule *schedule, struct event_base *base,
                  void (*fn)(int fd, short what, void *arg), void *arg)
{
    *schedule = (struct schedule){.sweep = evtimer_new(base, fn, arg)};
    mrd_list_init(&schedule->due);
    mrd_list_init(&schedule->ended);
    return schedule->sweep ? 0 : -ENOMEM;
}

void schedule_fini(struct schedule *schedule)
{
    if (schedule->sweep)
        event_free(schedule->sweep);
}

/* -------------------------------------------------------------------------------------- the lists */

void schedule_entry_init(struct schedule_entry *e)
{
    mrd_list_init(&e->due);
    mrd_list_init(&e->waiting);
}

void schedule_end(struct schedule *schedule, struct schedule_entry *e)
{
    mrd_list_remove(&e->due);
    mrd_list_remove(&e->waiting);
    mrd_list_append(&schedule->ended, &e->due);
    link_progress_soon(schedule->link);
}

void schedule_make_due(struct schedule *schedule, struct schedule_entry *e)
{
    if (!mrd_list_empty(&e->due))
        return;
    mrd_list_append(&schedule->due, &e->due);
    link_progress_soon(schedule->link);
}

void schedule_wait_for_buffer(struct schedule_entry *e, struct link_peer *peer)
{
    if (mrd_list_empty(&e->waiting))
        mrd_list_append(&peer->waiting, &e->waiting);
}

bool schedule_is_waiting(const struct schedule_entry *e)
{
    return !mrd_list_empty(&e->waiting);
}

static struct schedule_entry *pop_due(struct mrd_node *list)
{
    struct mrd_node *n = mrd_list_pop(list);

    return n ? mrd_container_of(n, struct schedule_entry, due) : NULL;
}

struct schedule_entry *schedule_next_due(struct schedule *schedule)
{
    return pop_due(&schedule->due);
}

struct schedule_entry *schedule_next_ended(struct schedule *schedule)
{
    return pop_due(&schedule->ended);
}

struct schedule_entry *schedule_next_waiting(struct schedule *schedule,
                                             const struct link_peer *peer, struct mrd_node *list)
{
    uint8_t *buffer = mrd_list_empty(list) ? NULL : link_tx(schedule->link, peer);

    if (!buffer)
        return NULL;
    link_tx_unused(schedule->link, buffer);
    return mrd_container_of(mrd_list_pop(list), struct schedule_entry, waiting);
}

/* -------------------------------------------------------------------------------------- the sweep */

void schedule_sweep(struct schedule *schedule)
{
    struct timeval second = {.tv_sec = 1};

    if (!evtimer_pending(schedule->sweep, NULL))
        (void)evtimer_add(schedule->sweep, &second);
}

/* Windows grow while a quarter is free. */
bool schedule_is_scarce(const struct schedule *schedule)
{
    return link_buffers_free(schedule->link) < link_buffers(schedule->link) / 2;
}

void schedule_sweep_if_scarce(struct schedule *schedule)
{
    if (schedule_is_scarce(schedule))
        schedule_sweep(schedule);
}
