/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/channel.h"
#include "transport/error.h"
#include "transport/progress.h"

static void signal_wake(struct mrd_progress_thread *t)
{
    uint64_t one = 1;
    ssize_t bytes = write(t->wake_fd, &one, sizeof(one));

    (void)bytes; /* fails only if the descriptor is readable already */
}

void mrd_thread_kick(struct mrd_context_impl *c)
{
    struct mrd_progress_thread *t = &c->thread;

    if (!t->asleep || t->kicked)
        return;
    t->kicked = true;
    signal_wake(t);
}

void mrd_thread_take_over(struct mrd_context_impl *c)
{
    struct mrd_progress_thread *t = &c->thread;

    atomic_store_explicit(&t->lease_until_ns, 0, memory_order_relaxed);
    t->app_came = false;
    if (t->asleep || t->kicked)
        return;
    t->kicked = true; /* it naps, or is on its way */
    signal_wake(t);
}

void mrd_thread_check(struct mrd_context_impl *c)
{
    if (mrd_progress_deadline(c) < c->thread.asleep_until_ns)
        mrd_thread_kick(c);
}

static void count_wakeup(struct mrd_progress_thread *t)
{
    atomic_fetch_add_explicit(&t->wakeups, 1, memory_order_relaxed);
}

static bool leased(const struct mrd_context_impl *c)
{
    return mrd_context_now(c) <
           atomic_load_explicit(&c->thread.lease_until_ns, memory_order_relaxed);
}

/* Under the lock. */
static void forget_kick(struct mrd_progress_thread *t)
{
    uint64_t count;
    ssize_t bytes;

    if (!t->kicked)
        return;
    bytes = read(t->wake_fd, &count, sizeof(count));
    (void)bytes; /* succeeds: the descriptor was made readable under this lock */
    t->kicked = false;
}

/* Sleeps for `ns`, or until the thread is to take over or to end. */
static void nap(struct mrd_context_impl *c, uint64_t ns)
{
    struct pollfd fd = {.fd = c->thread.wake_fd, .events = POLLIN};
    struct timespec timeout = {.tv_nsec = (long)ns};
    int ready = ppoll(&fd, 1, &timeout, NULL);

    count_wakeup(&c->thread);
    if (ready <= 0)
        return;
    mrd_lock_take(&c->lock);
    forget_kick(&c->thread);
    mrd_lock_release(&c->lock);
}

/*
 * Makes a turn, then sleeps until there is more to do. `asleep` is set under the same lock as the
 * deadline is read: so no call can make work that is due earlier unnoticed.
 */
static void step_and_sleep(struct mrd_context_impl *c)
{
    struct mrd_progress_thread *t = &c->thread;

    mrd_lock_take(&c->lock);
    mrd_progress_step(c, mrd_context_now(c));
    mrd_progress_flush(c, c->last_step_ns);
    if (c->channels.num)
        mrd_channels_check(c);

    uint64_t deadline_ns = mrd_progress_deadline(c);
    uint64_t now_ns = mrd_context_now(c);

    t->asleep = deadline_ns > now_ns;
    t->asleep_until_ns = deadline_ns;

    bool sleeps = t->asleep;

    mrd_lock_release(&c->lock);
    if (!sleeps)
        return;

    c->ops->wait(c->backend, t->wake_fd,
                 deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns - now_ns);
    count_wakeup(t);

    mrd_lock_take(&c->lock);
    t->asleep = false;
    if (t->app_came && c->channels.alarm_fd >= 0 && mrd_engine_is_awaited(c->engine)) {
        mrd_thread_lease(c, mrd_context_now(c));
        t->app_came = false;
    }
    forget_kick(t);
    mrd_lock_release(&c->lock);
}

static void *progress_thread(void *arg)
{
    struct mrd_context_impl *c = arg;
    struct mrd_progress_thread *t = &c->thread;
    uint64_t nap_ns = MRD_LEASE_NS;

    while (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
        if (!leased(c)) {
            nap_ns = MRD_LEASE_NS;
            step_and_sleep(c);
            continue;
        }
        /* Naps grow longer while the application polls: it may need this core itself. */
        nap(c, nap_ns);
        nap_ns = nap_ns * 2 < MRD_LEASE_NAP_NS ? nap_ns * 2 : MRD_LEASE_NAP_NS;
    }
    return NULL;
}

int mrd_thread_start(struct mrd_context_impl *c)
{
    struct mrd_progress_thread *t = &c->thread;
    sigset_t all, before;

    t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (t->wake_fd < 0) {
        int error = -errno;

        mrd_error_set("no descriptor for the progress thread: %s", strerror(-error));
        return error;
    }

    /* Block all signals in the new thread: the application's are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = -pthread_create(&t->thread, NULL, progress_thread, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        mrd_error_set("no progress thread: %s", strerror(-error));
        close(t->wake_fd);
        t->wake_fd = -1;
        return error;
    }
    pthread_setname_np(t->thread, "mrd-progress");
    t->started = true;
    return 0;
}

void mrd_thread_stop(struct mrd_context_impl *c)
{
    struct mrd_progress_thread *t = &c->thread;

    if (!t->started)
        return;
    atomic_store_explicit(&t->stop, true, memory_order_release);
    signal_wake(t);
    pthread_join(t->thread, NULL);
    close(t->wake_fd);
    t->wake_fd = -1;
    t->started = false;
}
