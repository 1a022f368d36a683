/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that move data: post, poll, progress. */
#include <errno.h>

#include "transport/call.h"
#include "transport/channel.h"
#include "transport/context.h"
#include "transport/error.h"
#include "transport/progress.h"
#include "transport/thread.h"

enum {
    /* While completions wait, polls hand them out without a step: so many polls, for so long. */
    POLLS_PER_STEP_MAX = 16,
    STEP_INTERVAL_NS = 20000,

    /*
     * Does the application call again soon after a poll? A late call adds 2, a prompt one takes 1.
     */
    ANSWER_LATE_NS = 100000,
    SLOW_MAX = 8,
    SLOW_ENOUGH = 4,
};

/*
 * The application gets completions. The engine holds back the ack of a whole message, so that it
 * can ride on an answer, and waits for the application's next call. An application that first works
 * on what it polled makes no call, and its lease keeps the progress thread out: the ack would wait
 * for the end of the lease, and the peer would probe. So if the application was slow to call again
 * of late, held-back acks leave at once.
 */
static void note_handed_out(struct mrd_context_impl *c)
{
    if (!c->backend->threaded)
        return;
    c->handed_out_ns = c->last_step_ns;
    if (c->slow_answers < SLOW_ENOUGH)
        return;
    mrd_progress_flush(c, c->last_step_ns);
    /* The application's time to answer begins after the sending, which may take longer. */
    c->handed_out_ns = mrd_context_now(c);
}

/* The application makes its next call after a poll that handed out completions. */
static void note_call(struct mrd_context_impl *c, uint64_t now_ns)
{
    if (!c->handed_out_ns)
        return;
    if (now_ns - c->handed_out_ns > ANSWER_LATE_NS)
        c->slow_answers = c->slow_answers + 2 < SLOW_MAX ? c->slow_answers + 2 : SLOW_MAX;
    else if (c->slow_answers)
        c->slow_answers--;
    c->handed_out_ns = 0;
}

int mrd_post_send(struct mrd_qp *qp, struct mrd_send_wr *wr, struct mrd_send_wr **bad_wr)
{
    struct mrd_context_impl *c = mrd_context_impl(qp->context);
    int error = mrd_call_enter(c);

    if (error) {
        *bad_wr = wr;
        return error;
    }

    uint64_t now_ns = mrd_progress_begin_call(c);

    note_call(c, now_ns);
    error = mrd_engine_post_send(c->engine, qp, wr, bad_wr, now_ns);
    if (error)
        mrd_error_copy(mrd_engine_error(c->engine), error);
    /* Requests before the bad one are posted. */
    mrd_progress_send(c, now_ns);
    mrd_call_leave(c);
    /* Whoever posts until there is room waits for those who poll, and may hold their core. */
    if (error && mrd_lock_is_shared(&c->lock))
        mrd_context_yield_to_all(c);
    return error;
}

/* Peers that were refused for want of a receive are told at once that there are some. */
static void tell_ready(struct mrd_context_impl *c)
{
    uint64_t now_ns;

    if (!mrd_engine_says_ready(c->engine))
        return;
    now_ns = mrd_progress_begin_call(c);
    mrd_progress_send(c, now_ns);
}

/* Ends a call that posted receives: those before the bad one are posted. */
static int finish_recv(struct mrd_context_impl *c, int error)
{
    if (error)
        mrd_error_copy(mrd_engine_error(c->engine), error);
    tell_ready(c);
    mrd_call_leave(c);
    return error;
}

int mrd_post_recv(struct mrd_qp *qp, struct mrd_recv_wr *wr, struct mrd_recv_wr **bad_wr)
{
    struct mrd_context_impl *c = mrd_context_impl(qp->context);
    int error = mrd_call_enter(c);

    if (error) {
        *bad_wr = wr;
        return error;
    }
    return finish_recv(c, mrd_engine_post_recv(c->engine, qp, wr, bad_wr));
}

int mrd_post_srq_recv(struct mrd_srq *srq, struct mrd_recv_wr *wr, struct mrd_recv_wr **bad_wr)
{
    struct mrd_context_impl *c = mrd_context_impl(srq->context);
    int error = mrd_call_enter(c);

    if (error) {
        *bad_wr = wr;
        return error;
    }
    return finish_recv(c, mrd_engine_post_srq_recv(c->engine, srq, wr, bad_wr));
}

/*
 * Completions wait: may a later poll make progress in place of this one? Not while the progress
 * thread sleeps on the descriptors. Each packet would wake it, and its steps would keep the queue
 * filled. So no poll would step and renew the lease that keeps the thread out.
 */
static bool postpone_step(struct mrd_context_impl *c)
{
    return !c->thread.asleep && !c->half_turn && ++c->polls_since_step < POLLS_PER_STEP_MAX &&
           mrd_context_now(c) - c->last_step_ns < STEP_INTERVAL_NS;
}

/*
 * Makes one turn of the loop. `cq`: the caller polls it, half a turn may do; NULL: a whole turn.
 * Returns the number of packets received and sent.
 */
static unsigned step(struct mrd_context_impl *c, const struct mrd_cq *cq)
{
    uint64_t now_ns = mrd_context_now(c);

    note_call(c, now_ns);

    /*
     * After half a turn a thread that sleeps on the descriptors would have to wake for the
     * other half.
     */
    unsigned handled = cq && !c->thread.asleep ? mrd_progress_step_for(c, cq, now_ns)
                                               : mrd_progress_step(c, now_ns);

    mrd_thread_lease(c, now_ns);
    /*
     * Packets flow and the application handles them. Take the thread off the descriptors: else the
     * kernel would wake it for each packet.
     */
    if (handled && c->thread.asleep)
        mrd_thread_kick(c);
    return handled;
}

/* The application looked once more, and goes to sleep. */
static void end_looks(struct mrd_context_impl *c, const struct mrd_cq *cq)
{
    mrd_progress_flush(c, c->last_step_ns);
    if (c->thread.started && mrd_channel_has_events_only(cq))
        mrd_thread_take_over(c);
}

/* Begins a call that takes completions. */
static int enter_poll(struct mrd_context_impl *c, int num_entries)
{
    if (num_entries < 0) {
        mrd_error_set("poll for %d completions", num_entries);
        return -EINVAL;
    }
    if (mrd_lock_sleepers(&c->lock))
        mrd_context_yield_to_sleepers(c);
    return mrd_call_enter(c);
}

int mrd_take_cq(struct mrd_cq *cq, int num_entries, struct mrd_wc *wc)
{
    struct mrd_context_impl *c = mrd_context_impl(cq->context);
    int n = enter_poll(c, num_entries);

    if (n)
        return n;
    n = mrd_engine_poll_cq(c->engine, cq, num_entries, wc);
    tell_ready(c); /* receives of a shared queue may have waited for room in this one */
    mrd_call_leave(c);
    return n;
}

int mrd_poll_cq(struct mrd_cq *cq, int num_entries, struct mrd_wc *wc)
{
    struct mrd_context_impl *c = mrd_context_impl(cq->context);
    int error = enter_poll(c, num_entries);

    if (error)
        return error;

    int n = mrd_engine_poll_cq(c->engine, cq, num_entries, wc);

    if (n < 0)
        return mrd_call_fail(c, n);
    if (!n || !postpone_step(c)) {
        /* Who polls a queue that was armed looks once more before sleeping: no call follows. */
        bool last = mrd_engine_cq_armed(cq);

        step(c, n || last ? NULL : cq);
        if (n < num_entries) {
            int more = mrd_engine_poll_cq(c->engine, cq, num_entries - n, wc + n);

            n += more > 0 ? more : 0;
        }
        if (n)
            note_handed_out(c);
        else if (last)
            end_looks(c, cq);
    }
    tell_ready(c); /* receives of a shared queue may have waited for room in this one */
    mrd_call_leave(c);
    return n;
}

int mrd_progress(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);

    if (mrd_lock_sleepers(&c->lock))
        mrd_context_yield_to_sleepers(c);

    int error = mrd_call_enter(c);

    if (error)
        return error;

    unsigned handled = step(c, NULL);

    mrd_call_leave(c);
    return (int)handled;
}

int mrd_context_fd(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);

    if (c->thread.started) {
        mrd_error_set("the progress thread takes the packets, so the descriptor would not tell of "
                      "them: wait on a completion channel, or open with MRD_PROGRESS_MANUAL");
        return -EOPNOTSUPP;
    }
    return c->ops->fd(c->backend);
}

uint64_t mrd_next_timeout_ns(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);

    if (mrd_call_enter(c))
        return UINT64_MAX;

    uint64_t deadline_ns = mrd_progress_deadline(c);
    uint64_t now_ns = mrd_context_now(c);

    mrd_call_leave(c);
    if (deadline_ns == UINT64_MAX)
        return UINT64_MAX;
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}
