/* SPDX-License-Identifier: BSD-2-Clause */
/* What is destroyed while other threads use it or what belongs to it: mrd(7), Threads. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/context_fixture.h"
#include "transport/context.h"
#include "transport/thread.h"

enum { ROUNDS = 100, POSTERS = 2, POSTS = 200, PATIENCE_S = 600 };

FIXTURE(world)
{
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_comp_channel *channel;
    struct mrd_ah *self;
    atomic_uint count; /* of what a test counts */
};

static struct mrd_context *open_context(void)
{
    struct mrd_context *context =
        mrd_open_device(NULL, &(struct mrd_context_attr){.comp_mask = MRD_CONTEXT_ATTR_CHALLENGE,
                                                         .address = "127.0.0.1",
                                                         .paths = 2,
                                                         .max_peers = 16});

    assert_non_null(context);
    return context;
}

int kit_before_all(void)
{
    alarm(PATIENCE_S);
    return 0;
}

FIXTURE_SETUP(world)
{
    self->context = open_context();
    self->pd = mrd_alloc_pd(self->context);
    self->channel = mrd_create_comp_channel(self->context);
    assert_non_null(self->channel);
    self->self = ah_to(self->pd, self->context);
}

FIXTURE_TEARDOWN(world)
{
    assert_int_equal(mrd_destroy_ah(self->self), 0);
    if (self->channel)
        assert_int_equal(mrd_destroy_comp_channel(self->channel), 0);
    assert_int_equal(mrd_dealloc_pd(self->pd), 0);
    assert_int_equal(mrd_close_device(self->context), 0);
}

static struct mrd_cq *make_cq(struct world *w, int cqe)
{
    struct mrd_cq *cq = mrd_create_cq_ex(
        w->context, &(struct mrd_cq_init_attr){.cqe = cqe, .cq_context = w, .channel = w->channel});

    assert_non_null(cq);
    return cq;
}

static struct mrd_qp *make_qp(struct world *w, struct mrd_cq *cq, uint32_t depth)
{
    struct mrd_qp *qp = mrd_create_qp(
        w->pd, &(struct mrd_qp_init_attr){
                   .send_cq = cq,
                   .recv_cq = cq,
                   .sq_sig_all = 1,
                   .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_inline_data = 8}});

    assert_non_null(qp);
    return qp;
}

static void fail_qp(struct mrd_qp *qp)
{
    struct mrd_qp_attr error = {.qp_state = MRD_QPS_ERR};

    assert_int_equal(mrd_modify_qp(qp, &error, MRD_QP_STATE), 0);
}

/* Completes at once, in error: the queue pair is. */
static void complete_one(struct mrd_qp *qp)
{
    struct mrd_recv_wr recv = {0}, *bad;

    assert_int_equal(mrd_post_recv(qp, &recv, &bad), 0);
}

/* ------------------------------------------------------------------------------------- channels */

static void *take_cq_event(void *arg)
{
    struct world *w = arg;
    struct mrd_cq *cq;
    void *context;

    assert_int_equal(mrd_get_cq_event(w->channel, &cq, &context), 0);
    assert_ptr_equal(context, w);
    mrd_ack_cq_events(cq, 1);
    atomic_fetch_add(&w->count, 1);
    return NULL;
}

/* Until mrd_destroy_comp_channel() says that so many wait, who never sleep if it does not say so. */
static void await_waiters(struct world *w, const char *sentence)
{
    do {
        sched_yield();
        assert_int_equal(mrd_destroy_comp_channel(w->channel), -EBUSY);
    } while (!strstr(mrd_last_error(), sentence));
}

/* A channel with threads that sleep on it stays; so does its context. */
TEST_F(world, mrd_destroy_comp_channel__while_a_thread_waits)
{
    struct mrd_cq *cq = make_cq(self, 4);
    struct mrd_qp *qp = make_qp(self, cq, 4);
    pthread_t thread;

    fail_qp(qp);
    assert_int_equal(pthread_create(&thread, NULL, take_cq_event, self), 0);
    await_waiters(self, "1 threads wait");
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0); /* not the channel's last user: the thread sleeps */
    assert_int_equal(mrd_destroy_comp_channel(self->channel), -EBUSY);
    assert_int_equal(mrd_close_device(self->context), -EBUSY);

    cq = make_cq(self, 4);
    qp = make_qp(self, cq, 4);
    fail_qp(qp);
    assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
    complete_one(qp);
    pthread_join(thread, NULL);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_destroy_comp_channel(self->channel), 0);
    self->channel = NULL;
}

/* Two threads wait while queues with events go: each event that is left is one's. */
TEST_F(world, mrd_destroy_cq__while_threads_wait)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mrd_cq *cq[2] = {make_cq(self, 4), make_cq(self, 4)};
        struct mrd_qp *qp[2] = {make_qp(self, cq[0], 4), make_qp(self, cq[1], 4)};
        pthread_t threads[2];
        int error;

        for (unsigned i = 0; i < 2; i++) {
            fail_qp(qp[i]);
            assert_int_equal(pthread_create(&threads[i], NULL, take_cq_event, self), 0);
        }
        if (round % 2)
            await_waiters(self, "2 threads wait");
        assert_int_equal(mrd_req_notify_cq(cq[0], 0), 0);
        complete_one(qp[0]); /* one of them may get it, or it goes with its queue */
        assert_int_equal(mrd_destroy_qp(qp[0]), 0);
        while ((error = mrd_destroy_cq(cq[0])) == -EBUSY)
            sched_yield(); /* taken, and not acked yet */
        assert_int_equal(error, 0);
        while (atomic_load(&self->count) < 2 * (round + 1)) {
            struct mrd_wc wc;

            assert_int_equal(mrd_req_notify_cq(cq[1], 0), 0);
            complete_one(qp[1]);
            assert_int_equal(mrd_poll_cq(cq[1], 1, &wc), 1);
            sched_yield();
        }
        for (unsigned i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(mrd_destroy_qp(qp[1]), 0);
        assert_int_equal(mrd_destroy_cq(cq[1]), 0);
    }
}

/* --------------------------------------------------------------------------------------- events */

static void *take_async_event(void *arg)
{
    struct world *w = arg;
    struct mrd_async_event event;

    while (mrd_get_async_event(w->context, &event))
        sched_yield();
    atomic_fetch_add(&w->count, 1);
    mrd_ack_async_event(&event);
    return NULL;
}

/* The queue goes as soon as its event is given back, though that call may not have returned. */
TEST_F(world, mrd_destroy_srq__races_with_the_ack)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mrd_srq *srq = mrd_create_srq(
            self->pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 4, .srq_limit = 1}});
        pthread_t thread;
        int error;

        assert_non_null(srq);
        assert_int_equal(pthread_create(&thread, NULL, take_async_event, self), 0);
        while (atomic_load(&self->count) == round)
            sched_yield();
        while ((error = mrd_destroy_srq(srq)) == -EBUSY)
            sched_yield();
        assert_int_equal(error, 0);
        pthread_join(thread, NULL);
    }
}

/* ---------------------------------------------------------------------------------- queue pairs */

struct poster {
    struct world *world;
    struct mrd_qp *qp;
    pthread_t thread;
};

static void *post(void *arg)
{
    struct poster *p = arg;

    for (unsigned i = 0; i < POSTS; i++) {
        struct mrd_send_wr *bad, wr = {.wr_id = i,
                                       .opcode = MRD_WR_SEND,
                                       .ud = {.ah = p->world->self, .remote_qpn = p->qp->qp_num}};

        assert_int_equal(mrd_post_send(p->qp, &wr, &bad), 0);
        atomic_fetch_add(&p->world->count, 1);
    }
    return NULL;
}

/* Whatever was posted completes once, before or after the queue pair goes to the error state. */
TEST_F(world, mrd_modify_qp__races_with_posts)
{
    for (unsigned round = 0; round < ROUNDS / 5; round++) {
        struct mrd_cq *cq = make_cq(self, 2 * POSTERS * POSTS);
        struct mrd_qp *qp = make_qp(self, cq, POSTERS * POSTS);
        struct poster posters[POSTERS];
        unsigned done = 0, received = 0;
        struct mrd_wc wc;

        for (unsigned i = 0; i < POSTERS * POSTS; i++)
            complete_one(qp); /* receives: in error only later */
        atomic_store(&self->count, 0);
        for (unsigned i = 0; i < POSTERS; i++) {
            posters[i] = (struct poster){.world = self, .qp = qp};
            assert_int_equal(pthread_create(&posters[i].thread, NULL, post, &posters[i]), 0);
        }
        while (atomic_load(&self->count) < round * 10)
            sched_yield();
        fail_qp(qp);
        for (unsigned i = 0; i < POSTERS; i++)
            pthread_join(posters[i].thread, NULL);
        while (done < POSTERS * POSTS || received < POSTERS * POSTS) {
            int n = mrd_poll_cq(cq, 1, &wc);

            assert_in_range(n, 0, 1);
            if (!n)
                continue;
            /* A send may come too late for its receive. */
            assert_true(wc.status == MRD_WC_SUCCESS || wc.status == MRD_WC_WR_FLUSH_ERR ||
                        wc.status == MRD_WC_REM_INV_REQ_ERR || wc.status == MRD_WC_REM_OP_ERR);
            if (wc.opcode == MRD_WC_RECV)
                received++;
            else
                done++;
        }
        for (unsigned i = 0; i < 100; i++)
            assert_int_equal(mrd_poll_cq(cq, 1, &wc), 0);
        assert_int_equal(done, POSTERS * POSTS);
        assert_int_equal(received, POSTERS * POSTS);
        assert_int_equal(mrd_destroy_qp(qp), 0);
        assert_int_equal(mrd_destroy_cq(cq), 0);
    }
}

static void *poll_until(void *arg)
{
    struct poster *p = arg;
    struct mrd_wc wc;

    while (!atomic_load(&p->world->count))
        assert_true(mrd_poll_cq(p->qp->send_cq, 1, &wc) >= 0);
    return NULL;
}

/* A queue is polled while queue pairs that use it come and go. */
TEST_F(world, mrd_destroy_qp__while_its_queue_is_polled)
{
    struct mrd_cq *cq = make_cq(self, 64);
    struct mrd_qp *stays = make_qp(self, cq, 1);
    struct poster poller = {.world = self, .qp = stays};

    assert_int_equal(pthread_create(&poller.thread, NULL, poll_until, &poller), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mrd_qp *qp = make_qp(self, cq, 4);
        struct mrd_recv_wr recv = {0}, *bad_recv;
        struct mrd_send_wr *bad,
            wr = {.opcode = MRD_WR_SEND, .ud = {.ah = self->self, .remote_qpn = qp->qp_num}};

        /* There is room when the other thread has polled. */
        while (mrd_post_recv(qp, &recv, &bad_recv))
            sched_yield();
        while (mrd_post_send(qp, &wr, &bad))
            sched_yield();
        if (round % 2)
            fail_qp(qp);
        assert_int_equal(mrd_destroy_qp(qp), 0);
    }
    atomic_store(&self->count, 1);
    pthread_join(poller.thread, NULL);
    assert_int_equal(mrd_destroy_qp(stays), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
}

/* ------------------------------------------------------------------------------------- contexts */

static void *destroy_last(void *arg)
{
    assert_int_equal(mrd_dealloc_pd(arg), 0);
    return NULL;
}

/* Close it until that succeeds, while another thread destroys what is left. */
TEST(mrd_close_device__races_with_the_last_destroy)
{
    for (unsigned round = 0; round < ROUNDS / 4; round++) {
        struct mrd_context *context = open_context();
        struct mrd_pd *pd = mrd_alloc_pd(context);
        pthread_t thread;
        int error;

        assert_int_equal(pthread_create(&thread, NULL, destroy_last, pd), 0);
        while ((error = mrd_close_device(context)) == -EBUSY)
            sched_yield();
        assert_int_equal(error, 0);
        pthread_join(thread, NULL);
    }
}

static atomic_bool deregistering, may_go_on;

static void slow_dereg(struct mrd_backend *b, struct mrd_mover_mr mr)
{
    (void)b;
    (void)mr;
    atomic_store(&deregistering, true);
    while (!atomic_load(&may_go_on))
        sched_yield();
}

static void *dereg(void *arg)
{
    assert_int_equal(mrd_dereg_mr(arg), 0);
    return NULL;
}

/* A device that deregisters memory, which is done without the lock, is not closed meanwhile. */
TEST(mrd_close_device__while_memory_is_deregistered)
{
    static char memory[64];
    struct mrd_context *context = open_context();
    struct mrd_context_impl *c = mrd_context_impl(context);
    const struct mrd_backend_ops *real = c->ops;
    struct mrd_backend_ops ops = *real;
    struct mrd_pd *pd = mrd_alloc_pd(context);
    struct mrd_mr *mr = mrd_reg_mr(pd, memory, sizeof(memory), 0);
    pthread_t thread;

    assert_non_null(mr);
    mrd_thread_stop(c); /* it reads c->ops */
    ops.dereg_mr = slow_dereg;
    c->ops = &ops;
    assert_int_equal(pthread_create(&thread, NULL, dereg, mr), 0);
    while (!atomic_load(&deregistering))
        sched_yield();
    assert_int_equal(mrd_dealloc_pd(pd), 0);
    assert_int_equal(mrd_close_device(context), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "deregistered"));
    atomic_store(&may_go_on, true);
    pthread_join(thread, NULL);
    c->ops = real;
    assert_int_equal(mrd_close_device(context), 0);
}
