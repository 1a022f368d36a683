/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that move data: post, poll, progress. */
#include <errno.h>

#include "transport/context.h"
#include "transport/error.h"
#include "transport/progress.h"

enum {
    /* Completions that wait are handed out without a step, but not for longer than this. */
    POLLS_PER_STEP_MAX = 16,
    STEP_INTERVAL_NS = 20000,

    /* Whether the application answers what it polled. A slow answer counts 2, a prompt one -1. */
    ANSWER_LATE_NS = 100000,
    SLOW_MAX = 8,
    SLOW_ENOUGH = 4,
};

/*
 * The engine holds the ack of a whole message back for an answer to ride on, and takes the next
 * call for the end of that wait. An application that works on what it polled, with the progress
 * thread kept out by the lease, would delay the ack until the lease ends and make the peer probe.
 * So acks to such applications' peers go at once.
 */
static void handed_out(struct mrd_context_impl *c)
{
    if (!c->backend->threaded)
        return;
    c->handed_out_ns = c->last_step_ns;
    if (c->slow_answers < SLOW_ENOUGH)
        return;
    mrd_progress_flush(c, c->last_step_ns);
    /* Sending may take longer than a prompt answer: that is not the application's time. */
    c->handed_out_ns = mrd_context_now(c);
}

/* The application calls again. */
static void called_again(struct mrd_context_impl *c, uint64_t now_ns)
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
    int error = mrd_context_enter(c);

    if (error) {
        *bad_wr = wr;
        return error;
    }

    uint64_t now_ns = mrd_context_now(c);

    called_again(c, now_ns);
    mrd_engine_begin(c->engine, now_ns);
    error = mrd_engine_post_send(c->engine, qp, wr, bad_wr, now_ns);
    if (error)
        mrd_error_copy(mrd_engine_error(c->engine), error);
    /* Requests before the bad one are posted. */
    mrd_progress_send(c, now_ns);
    mrd_context_leave(c);
    return error;
}

int mrd_post_recv(struct mrd_qp *qp, struct mrd_recv_wr *wr, struct mrd_recv_wr **bad_wr)
{
    struct mrd_context_impl *c = mrd_context_impl(qp->context);
    int error = mrd_context_enter(c);

    if (error) {
        *bad_wr = wr;
        return error;
    }
    error = mrd_engine_post_recv(c->engine, qp, wr, bad_wr);
    if (error)
        mrd_error_copy(mrd_engine_error(c->engine), error);
    /* Requests before the bad one are posted. */
    if (mrd_engine_says_ready(c->engine)) {
        uint64_t now_ns = mrd_context_now(c);

        mrd_engine_begin(c->engine, now_ns);
        mrd_progress_send(c, now_ns);
    }
    mrd_context_leave(c);
    return error;
}

/*
 * There are completions already: is it soon enough to make progress with a later poll? Not while
 * the thread sleeps on the descriptors: it would wake up for each packet, do all the steps and so
 * keep the queue filled, and only a step renews the lease that lets it rest.
 */
static bool may_step_later(struct mrd_context_impl *c)
{
    return !c->thread.asleep && !c->half_turn && ++c->polls_since_step < POLLS_PER_STEP_MAX &&
           mrd_context_now(c) - c->last_step_ns < STEP_INTERVAL_NS;
}

/* A turn; `cq`: where the caller looks for completions, or NULL. */
static unsigned step(struct mrd_context_impl *c, const struct mrd_cq *cq)
{
    uint64_t now_ns = mrd_context_now(c);

    called_again(c, now_ns);

    /* A thread that sleeps on the descriptors would have to wake for the rest of a turn. */
    unsigned handled = cq && !c->thread.asleep ? mrd_progress_step_for(c, cq, now_ns)
                                               : mrd_progress_step(c, now_ns);

    mrd_progress_lease(c, now_ns);
    /*
     * Packets flow and the application handles them: else each would wake the thread inside the
     * kernel as well.
     */
    if (handled && c->thread.asleep)
        mrd_thread_kick(c);
    return handled;
}

int mrd_poll_cq(struct mrd_cq *cq, int num_entries, struct mrd_wc *wc)
{
    struct mrd_context_impl *c = mrd_context_impl(cq->context);

    if (num_entries < 0) {
        mrd_error_set("poll for %d completions", num_entries);
        return -EINVAL;
    }
    if (atomic_load_explicit(&c->waiting, memory_order_relaxed))
        mrd_context_give_way(c);

    int error = mrd_context_enter(c);

    if (error)
        return error;

    int n = mrd_engine_poll_cq(c->engine, cq, num_entries, wc);

    if (n < 0)
        return mrd_context_fail(c, n);
    if (!n || !may_step_later(c)) {
        step(c, n ? NULL : cq);
        if (n < num_entries) {
            int more = mrd_engine_poll_cq(c->engine, cq, num_entries - n, wc + n);

            n += more > 0 ? more : 0;
        }
        if (n)
            handed_out(c);
    }
    mrd_context_leave(c);
    return n;
}

int mrd_progress(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);

    if (atomic_load_explicit(&c->waiting, memory_order_relaxed))
        mrd_context_give_way(c);

    int error = mrd_context_enter(c);

    if (error)
        return error;

    unsigned handled = step(c, NULL);

    mrd_context_leave(c);
    return (int)handled;
}

int mrd_context_fd(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);

    return c->ops->fd(c->backend);
}

uint64_t mrd_next_timeout_ns(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);

    if (mrd_context_enter(c))
        return UINT64_MAX;

    uint64_t deadline_ns = mrd_progress_deadline(c);
    uint64_t now_ns = mrd_context_now(c);

    mrd_context_leave(c);
    if (deadline_ns == UINT64_MAX)
        return UINT64_MAX;
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}
