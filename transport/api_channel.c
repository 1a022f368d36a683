/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls of completion channels: create, destroy, arm a queue, take and ack events. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "transport/call.h"
#include "transport/channel.h"
#include "transport/context.h"
#include "transport/error.h"
#include "transport/progress.h"
#include "transport/sized.h"
#include "transport/thread.h"

/* ------------------------------------------------------------------------------ create, destroy */

struct mrd_comp_channel *
mrd_create_comp_channel_ex_sized(struct mrd_context *context,
                                 const struct mrd_comp_channel_init_attr *attr, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    struct mrd_comp_channel_init_attr asked;
    struct mrd_channel *ch = NULL;
    int error = mrd_sized_read(&mrd_sized_comp_channel_init_attr, &asked, attr, size);

    if (!error && (asked.comp_mask || asked.flags & ~(unsigned)MRD_COMP_CHANNEL_EVENTS_ONLY)) {
        mrd_error_set("unknown bits in comp_mask or flags of a completion channel");
        error = -EINVAL;
    }
    if (error)
        goto fail;
    ch = calloc(1, sizeof(*ch));
    if (!ch)
        mrd_error_set("no memory for a completion channel");
    error = ch ? mrd_call_enter(c) : -ENOMEM;
    if (error)
        goto fail;
    ch->events_only = asked.flags & MRD_COMP_CHANNEL_EVENTS_ONLY;
    ch->impl.pub.context = context;
    ch->impl.pub.fd = ch->event_fd = -1;
    error = mrd_channel_open(c, ch);
    if (!error) {
        mrd_engine_open_channel(c->engine, &ch->impl);
        c->channels.num++;
    }
    mrd_call_leave(c);
    if (!error)
        return &ch->impl.pub;
    mrd_channel_close(ch);
fail:
    free(ch);
    errno = -error;
    return NULL;
}

struct mrd_comp_channel *(mrd_create_comp_channel_ex)(struct mrd_context *context,
                                                      const struct mrd_comp_channel_init_attr *attr)
{
    return mrd_create_comp_channel_ex_sized(context, attr,
                                            mrd_sized_comp_channel_init_attr.first_bytes);
}

struct mrd_comp_channel *mrd_create_comp_channel(struct mrd_context *context)
{
    return mrd_create_comp_channel_ex(context, &(struct mrd_comp_channel_init_attr){0});
}

int mrd_destroy_comp_channel(struct mrd_comp_channel *channel)
{
    struct mrd_context_impl *c = mrd_context_impl(channel->context);
    int error = mrd_call_enter(c);
    unsigned waiting;

    if (error)
        return error;
    waiting = atomic_load_explicit(&mrd_channel_of(channel)->waiting, memory_order_acquire);
    if (waiting) {
        mrd_error_set("%u threads wait for events of the channel", waiting);
        mrd_call_leave(c);
        return -EBUSY;
    }
    error = mrd_engine_close_channel(c->engine, &mrd_channel_of(channel)->impl);
    if (error)
        return mrd_call_fail(c, error);
    c->channels.num--;
    mrd_call_leave(c);
    mrd_channel_close(mrd_channel_of(channel));
    free(mrd_channel_of(channel));
    return 0;
}

/* --------------------------------------------------------------------------------------- events */

int mrd_req_notify_cq(struct mrd_cq *cq, int solicited_only)
{
    struct mrd_context_impl *c = mrd_context_impl(cq->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    error = mrd_engine_arm_cq(c->engine, cq, solicited_only != 0);
    if (error)
        return mrd_call_fail(c, error);
    mrd_call_leave(c);
    return 0;
}

/* Makes a turn, unless the progress thread does, and takes an event; NULL: there is none. */
static struct mrd_cq *take_event(struct mrd_context_impl *c, struct mrd_channel *ch)
{
    bool drives = c->channels.alarm_fd >= 0 && !ch->events_only;
    struct mrd_cq *cq;

    /* Before the event is taken: others sleep that wait for what lies there. */
    if (drives) {
        uint64_t now_ns = mrd_context_now(c);

        mrd_progress_step(c, now_ns);
        mrd_thread_lease(c, now_ns);
    }
    cq = mrd_engine_take_cq_event(&ch->impl);
    if (!cq && drives) {
        mrd_progress_flush(c,
                           c->last_step_ns); /* no answer of ours follows that acks could ride on */
        mrd_channels_set_alarm(c, mrd_progress_deadline(c));
    }
    mrd_channels_check(c);
    mrd_channel_quiet(&ch->impl.pub);
    return cq;
}

/* 0: the descriptor is readable; -EAGAIN: the caller does not want to wait; -EINTR. */
static int wait_for_event(const struct mrd_comp_channel *channel)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    int flags = channel->fd < 0 ? -1 : fcntl(channel->fd, F_GETFL);

    if (flags < 0 || flags & O_NONBLOCK) {
        mrd_error_set("no event");
        return -EAGAIN;
    }
    if (poll(&fd, 1, -1) >= 0)
        return 0;
    mrd_error_set("interrupted by a signal");
    return -errno;
}

/* The thread that waited is cancelled. From here on it does not use the channel. */
static void stop_waiting(void *arg)
{
    struct mrd_channel *ch = arg;

    atomic_fetch_sub_explicit(&ch->waiting, 1, memory_order_release);
}

/* wait_for_event() where the thread may be cancelled, if it may be at all. */
static int wait_cancellable(struct mrd_comp_channel *channel, int cancelstate)
{
    int waited;

    pthread_cleanup_push(stop_waiting, mrd_channel_of(channel));
    pthread_setcancelstate(cancelstate, NULL);
    waited = wait_for_event(channel);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    return waited;
}

static int get_cq_event(struct mrd_comp_channel *channel, struct mrd_cq **cq, void **cq_context,
                        int cancelstate)
{
    struct mrd_context_impl *c = mrd_context_impl(channel->context);
    int waited = 0, error = mrd_call_enter(c);

    if (error)
        return error;
    for (;;) {
        struct mrd_cq *found = waited ? NULL : take_event(c, mrd_channel_of(channel));

        if (found || waited) {
            mrd_call_leave(c);
            if (!found)
                return waited;
            *cq = found;
            *cq_context = found->cq_context;
            return 0;
        }
        /* Counted, the thread keeps the channel from being destroyed. */
        atomic_fetch_add_explicit(&mrd_channel_of(channel)->waiting, 1, memory_order_relaxed);
        mrd_call_leave(c);
        waited = wait_cancellable(channel, cancelstate);
        error = mrd_call_enter(c);
        if (error)
            return error;
        atomic_fetch_sub_explicit(&mrd_channel_of(channel)->waiting, 1, memory_order_relaxed);
    }
}

/*
 * Programs end the thread that waits for events by pthread_cancel(): it ends while it sleeps, and
 * not with the lock, or with an event that nobody gives back.
 */
int mrd_get_cq_event(struct mrd_comp_channel *channel, struct mrd_cq **cq, void **cq_context)
{
    int cancelstate, error;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelstate);
    error = get_cq_event(channel, cq, cq_context, cancelstate);
    pthread_setcancelstate(cancelstate, NULL);
    return error;
}

void mrd_ack_cq_events(struct mrd_cq *cq, unsigned n)
{
    struct mrd_context_impl *c = mrd_context_impl(cq->context);

    if (mrd_call_enter(c))
        return;
    if (mrd_engine_ack_cq_events(c->engine, cq, n))
        mrd_log(MRD_LOG_ERROR, "ack of %u events: %s", n, mrd_engine_error(c->engine));
    mrd_call_leave(c);
}
