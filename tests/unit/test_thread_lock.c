/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock of a context: who takes it, who waits, and that MRD_THREADING_SINGLE does without. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/context_fixture.h"
#include "transport/context.h"
#include "transport/lock.h"

enum { THREADS = 8, TURNS = 20000, PATIENCE_S = 600 };

static struct mrd_lock lock;
static unsigned inside, total;
static atomic_bool over;

static void *count(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < TURNS; i++) {
        mrd_lock_take(&lock);
        inside++;
        assert_int_equal(inside, 1);
        total++;
        inside--;
        mrd_lock_release(&lock);
    }
    return NULL;
}

/* One thread at a time; and when all are gone nobody is counted any more. */
TEST(mrd_lock_take__one_at_a_time)
{
    pthread_t threads[THREADS];

    total = 0;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(total, THREADS * TURNS);
    assert_int_equal(atomic_load(&lock.word) & (MRD_LOCK_WAKE - 1) & ~MRD_LOCK_WOKEN, 0);
}

static void *take_always(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        mrd_lock_take(&lock);
        mrd_lock_release(&lock);
    }
    return NULL;
}

/* Threads that take the lock again and again do not keep another one out. */
TEST(mrd_lock_take__nobody_starves)
{
    pthread_t threads[THREADS];

    atomic_store(&over, false);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_always, NULL), 0);
    for (unsigned i = 0; i < 200; i++) {
        mrd_lock_take(&lock);
        mrd_lock_release(&lock);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *take_once(void *arg)
{
    atomic_uint *taken = arg;

    mrd_lock_take(&lock);
    atomic_fetch_add(taken, 1);
    mrd_lock_release(&lock);
    return NULL;
}

static void await_sleepers(const struct mrd_lock *of, unsigned n)
{
    while (mrd_lock_sleepers(of) != n)
        sched_yield();
}

/* All who sleep are woken, also if the lock is released only once for all of them. */
TEST(mrd_lock_release__wakes_all_in_turn)
{
    pthread_t threads[THREADS];
    atomic_uint taken = 0;

    for (unsigned round = 0; round < 100; round++) {
        mrd_lock_take(&lock);
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_once, &taken), 0);
        await_sleepers(&lock, THREADS);
        assert_int_equal(atomic_load(&taken), round * THREADS);
        mrd_lock_release(&lock);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&taken), 100 * THREADS);
}

/* Once a sleeper lost patience, who comes later waits for it. */
TEST(mrd_lock_take__not_ahead_of_who_lost_patience)
{
    pthread_t thread;
    atomic_uint taken = 0;

    mrd_lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take_once, &taken), 0);
    await_sleepers(&lock, 1);
    atomic_fetch_or(&lock.word, MRD_LOCK_IN_TURN);
    mrd_lock_release(&lock);
    mrd_lock_take(&lock);
    assert_int_equal(atomic_load(&taken), 1);
    mrd_lock_release(&lock);
    pthread_join(thread, NULL);
}

/* ------------------------------------------------------------------------------------- contexts */

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_comp_channel *channel;
    struct mrd_qp *qp;
    struct mrd_ah *self;
};

static void open_end(struct end *e, enum mrd_threading threading)
{
    struct mrd_context_attr attr = {.comp_mask = MRD_CONTEXT_ATTR_CHALLENGE,
                                    .address = "127.0.0.1",
                                    .paths = 4,
                                    .max_peers = 16,
                                    .progress = MRD_PROGRESS_MANUAL,
                                    .threading = threading};

    if (threading == MRD_THREADING_SINGLE)
        attr.progress = MRD_PROGRESS_THREAD; /* is not there */
    e->context = mrd_open_device(NULL, &attr);
    assert_non_null(e->context);
    e->pd = mrd_alloc_pd(e->context);
    e->channel = mrd_create_comp_channel(e->context);
    assert_non_null(e->channel);
    e->cq =
        mrd_create_cq_ex(e->context, &(struct mrd_cq_init_attr){.cqe = 8, .channel = e->channel});
    e->qp =
        mrd_create_qp(e->pd, &(struct mrd_qp_init_attr){
                                 .send_cq = e->cq,
                                 .recv_cq = e->cq,
                                 .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_inline_data = 8},
                             });
    assert_non_null(e->qp);
    e->self = ah_to(e->pd, e->context);
}

static void close_end(struct end *e)
{
    assert_int_equal(mrd_destroy_ah(e->self), 0);
    assert_int_equal(mrd_destroy_qp(e->qp), 0);
    assert_int_equal(mrd_destroy_cq(e->cq), 0);
    assert_int_equal(mrd_destroy_comp_channel(e->channel), 0);
    assert_int_equal(mrd_dealloc_pd(e->pd), 0);
    assert_int_equal(mrd_close_device(e->context), 0);
}

/* An empty message to oneself, and its two completions. */
static void *exchange(void *arg)
{
    struct end *e = arg;
    struct mrd_recv_wr recv = {.wr_id = 1}, *bad_recv;
    struct mrd_send_wr send = {.wr_id = 2,
                               .opcode = MRD_WR_SEND,
                               .send_flags = MRD_SEND_SIGNALED,
                               .ud = {.ah = e->self, .remote_qpn = e->qp->qp_num}},
                       *bad_send;
    struct mrd_wc wc;

    assert_int_equal(mrd_post_recv(e->qp, &recv, &bad_recv), 0);
    assert_int_equal(mrd_post_send(e->qp, &send, &bad_send), 0);
    for (int done = 0; done < 2;) {
        int n = mrd_poll_cq(e->cq, 1, &wc);

        assert_true(n >= 0);
        if (n)
            assert_int_equal(wc.status, MRD_WC_SUCCESS);
        done += n;
    }
    assert_true(mrd_progress(e->context) >= 0);
    return NULL;
}

/* Somebody holds the lock all the time: calls on such a context do not look at it. */
TEST(single__takes_no_lock)
{
    struct end e;

    open_end(&e, MRD_THREADING_SINGLE);
    assert_false(mrd_context_impl(e.context)->thread.started);
    struct mrd_lock *held = &mrd_context_impl(e.context)->lock;
    mrd_lock_take(held);
    exchange(&e);
    assert_int_equal(atomic_load(&held->word), MRD_LOCK_HELD);
    mrd_lock_release(held);
    close_end(&e);
}

/* With locks the same calls wait. */
TEST(multi__takes_the_lock)
{
    struct end e;
    pthread_t thread;

    open_end(&e, MRD_THREADING_MULTI);
    struct mrd_lock *held = &mrd_context_impl(e.context)->lock;
    mrd_lock_take(held);
    assert_int_equal(pthread_create(&thread, NULL, exchange, &e), 0);
    await_sleepers(held, 1);
    mrd_lock_release(held);
    pthread_join(thread, NULL);
    close_end(&e);
}

/* Its one thread may sleep on a channel: what makes progress is the call itself. */
TEST(single__sleeps_on_a_channel)
{
    struct end e;
    struct mrd_cq *cq;
    void *context;

    open_end(&e, MRD_THREADING_SINGLE);
    for (unsigned i = 0; i < 100; i++) {
        struct mrd_recv_wr recv = {0}, *bad_recv;
        struct mrd_send_wr send = {.opcode = MRD_WR_SEND,
                                   .ud = {.ah = e.self, .remote_qpn = e.qp->qp_num}},
                           *bad_send;
        struct mrd_wc wc;

        assert_int_equal(mrd_req_notify_cq(e.cq, 0), 0);
        assert_int_equal(mrd_post_recv(e.qp, &recv, &bad_recv), 0);
        assert_int_equal(mrd_post_send(e.qp, &send, &bad_send), 0);
        assert_int_equal(mrd_get_cq_event(e.channel, &cq, &context), 0);
        mrd_ack_cq_events(cq, 1);
        assert_int_equal(mrd_poll_cq(cq, 1, &wc), 1);
    }
    close_end(&e);
}

int kit_before_all(void)
{
    alarm(PATIENCE_S);
    return 0;
}
