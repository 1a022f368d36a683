/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: threads that sleep until completions come. Two contexts in one process, over
 * the loopback; the one that waits with and without a progress thread.
 */
#include "tests/unit/channel_fixture.h"

TEST_F(channels, mrd_req_notify_cq__without_channel)
{
    struct mrd_cq *cq = mrd_create_cq(self->a.context, 1, NULL);

    assert_int_equal(mrd_req_notify_cq(cq, 0), -EINVAL);
    assert_non_null(strstr(mrd_last_error(), "no completion channel"));
    assert_int_equal(mrd_destroy_cq(cq), 0);
    struct mrd_cq_init_attr attr = {.cqe = 1, .channel = self->b.q[0].channel};
    refused(mrd_create_cq_ex(self->a.context, &attr), EINVAL, "another context");
    attr = (struct mrd_cq_init_attr){.comp_mask = 1, .cqe = 1};
    refused(mrd_create_cq_ex(self->a.context, &attr), EINVAL, "comp_mask");
}

/* One event for each request, at the next completion; none without one. */
TEST_F(channels, mrd_req_notify_cq__one_event)
{
    struct mrd_cq *cq;
    struct mrd_wc wc[4];
    void *context;

    never_block(self->b.q[0].channel);
    for (unsigned i = 0; i < 4; i++)
        post_receive(&self->b, 0, i);
    post_send(&self->a, &self->b, 0, 0);
    while (mrd_poll_cq(self->b.q[0].cq, 1, wc) == 0)
        ;
    assert_int_equal(mrd_get_cq_event(self->b.q[0].channel, &cq, &context), -EAGAIN);

    assert_int_equal(mrd_req_notify_cq(self->b.q[0].cq, 0), 0);
    post_send(&self->a, &self->b, 0, 0);
    post_send(&self->a, &self->b, 0, 0);
    post_send(&self->a, &self->b, 0, 0);
    for (int got = 0; got < 3;)
        got += mrd_poll_cq(self->b.q[0].cq, 4, wc);
    assert_int_equal(mrd_get_cq_event(self->b.q[0].channel, &cq, &context), 0);
    assert_int_equal(mrd_get_cq_event(self->b.q[0].channel, &cq, &context), -EAGAIN);
    mrd_ack_cq_events(cq, 2); /* one too many: refused, with a line in the log */
    mrd_ack_cq_events(cq, 1);
}

TEST_F_AGAIN(channels, mrd_req_notify_cq__one_event, "manual progress",
             self->progress = MRD_PROGRESS_MANUAL);

/* A sender sleeps until its message is acked, which takes the target's thread. */
TEST_F(channels, mrd_req_notify_cq__of_sends)
{
    post_receive(&self->b, 0, 0);
    assert_int_equal(mrd_req_notify_cq(self->a.q[0].cq, 0), 0);
    post_send(&self->a, &self->b, 0, MRD_SEND_SIGNALED);
    await_event(&self->a, 0);
}

/* The receiver of a solicited send wakes up, and of others not. */
TEST_F(channels, mrd_req_notify_cq__solicited_only)
{
    struct mrd_cq *cq;
    struct mrd_wc wc;
    void *context;

    never_block(self->b.q[0].channel);
    for (unsigned i = 0; i < 4; i++)
        post_receive(&self->b, 0, i);
    assert_int_equal(mrd_req_notify_cq(self->b.q[0].cq, 1), 0);
    post_send(&self->a, &self->b, 0, 0);
    while (mrd_poll_cq(self->b.q[0].cq, 1, &wc) == 0)
        ;
    assert_int_equal(wc.wc_flags & MRD_WC_SOLICITED, 0);
    assert_int_equal(mrd_get_cq_event(self->b.q[0].channel, &cq, &context), -EAGAIN);
    post_send(&self->a, &self->b, 0, MRD_SEND_SOLICITED);
    while (mrd_poll_cq(self->b.q[0].cq, 1, &wc) == 0)
        ;
    assert_int_equal(wc.wc_flags & MRD_WC_SOLICITED, MRD_WC_SOLICITED);
    assert_int_equal(mrd_get_cq_event(self->b.q[0].channel, &cq, &context), 0);
    mrd_ack_cq_events(cq, 1);

    /* What fails is worth waking up for, too. */
    assert_int_equal(mrd_req_notify_cq(self->b.q[0].cq, 1), 0);
    assert_int_equal(mrd_modify_qp(self->b.q[0].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                   MRD_QP_STATE),
                     0);
    assert_int_equal(mrd_get_cq_event(self->b.q[0].channel, &cq, &context), 0);
    assert_int_equal(mrd_destroy_qp(self->b.q[0].qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "not acked"));
    mrd_ack_cq_events(cq, 1);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_destroy_comp_channel(self->b.q[0].channel), 0);
    open_queue(&self->b, 0, 0);
}

TEST_F_AGAIN(channels, mrd_req_notify_cq__solicited_only, "manual progress",
             self->progress = MRD_PROGRESS_MANUAL);

/* Events that nobody took go with their queue. */
TEST_F(channels, mrd_destroy_cq__with_events)
{
    struct mrd_comp_channel *channel = mrd_create_comp_channel(self->b.context);
    struct mrd_cq *cq =
        mrd_create_cq_ex(self->b.context, &(struct mrd_cq_init_attr){.cqe = 4, .channel = channel});
    struct mrd_qp *qp = mrd_create_qp(
        self->b.pd, &(struct mrd_qp_init_attr){
                        .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1, .max_recv_wr = 2}});
    struct mrd_recv_wr wr = {0}, *bad;
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    void *context;

    assert_non_null(qp);
    assert_int_equal(
        mrd_modify_qp(qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR}, MRD_QP_STATE), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
        assert_int_equal(mrd_post_recv(qp, &wr, &bad), 0);
    }
    assert_int_equal(poll(&fd, 1, -1), 1);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    never_block(channel);
    assert_int_equal(mrd_get_cq_event(channel, &cq, &context), -EAGAIN);
    assert_int_equal(mrd_destroy_comp_channel(channel), 0);
}

static void on_signal(int number)
{
    (void)number;
}

static void *interrupt(void *arg)
{
    pthread_t *sleeper = arg;

    for (unsigned i = 0; i < 20; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        pthread_kill(*sleeper, SIGUSR1);
    }
    return NULL;
}

TEST_F(channels, mrd_get_cq_event__ends_with_a_signal)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    pthread_t thread, me = pthread_self();
    struct mrd_cq *cq;
    void *context;

    sigaction(SIGUSR1, &action, &before);
    pthread_create(&thread, NULL, interrupt, &me);
    assert_int_equal(mrd_get_cq_event(self->b.q[0].channel, &cq, &context), -EINTR);
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
}

TEST_F_AGAIN(channels, mrd_get_cq_event__ends_with_a_signal, "manual progress",
             self->progress = MRD_PROGRESS_MANUAL);

TEST_F(channels, mrd_context_fd__not_with_a_thread)
{
    assert_int_equal(mrd_context_fd(self->a.context), -EOPNOTSUPP);
    assert_non_null(strstr(mrd_last_error(), "completion channel"));
}

/* Who armed a queue and works on something else holds nobody up: the thread makes progress. */
TEST_F(channels, channel__thread_for_who_does_not_come)
{
    enum { LONG_BYTES = 8 << 20 };
    struct mrd_send_wr *bad;
    struct long_write w;
    struct pollfd event = {.events = POLLIN};

    long_write_begin(self, &w, MRD_WR_RDMA_WRITE_WITH_IMM, LONG_BYTES);
    post_receive(&self->b, 0, 0);
    assert_int_equal(mrd_req_notify_cq(self->a.q[0].cq, 0), 0);
    assert_int_equal(mrd_req_notify_cq(self->b.q[0].cq, 0), 0);
    assert_int_equal(mrd_post_send(self->a.q[0].qp, &w.wr, &bad), 0);
    /* Nobody calls until both have their events: these descriptors are not for users. */
    event.fd = mrd_channel_event_fd(self->b.q[0].channel);
    assert_int_equal(poll(&event, 1, -1), 1);
    event.fd = mrd_channel_event_fd(self->a.q[0].channel);
    assert_int_equal(poll(&event, 1, -1), 1);
    await_event(&self->b, 0);
    await_event(&self->a, 0);
    long_write_end(&w);
}

/* ---------------------------------------------------------------------------- no lost wake-up */

/* Posts receives to a queue pair in error, each of which completes at once. */
static void *complete_all_the_time(void *arg)
{
    struct channels *f = arg;
    uint32_t rng = 1;

    while (!atomic_load(&f->over)) {
        struct mrd_recv_wr wr = {0}, *bad;

        if (mrd_post_recv(f->b.q[0].qp, &wr, &bad))
            sched_yield(); /* the completion queue is full */
        rng = rng * 1664525 + 1013904223;
        for (volatile uint32_t i = rng >> 22; i > 0; i--)
            ;
    }
    return NULL;
}

/* Fewer where others want the cores: a wake-up then takes long. */
TEST_F(channels, channel__a_million_events)
{
    time_t end = time(NULL) + EVENTS_S;
    struct mrd_cq *cq = self->b.q[0].cq;
    struct mrd_wc wc[DEPTH];
    pthread_t thread;

    assert_int_equal(mrd_modify_qp(self->b.q[0].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                   MRD_QP_STATE),
                     0);
    assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, complete_all_the_time, self), 0);
    for (unsigned i = 0; i < EVENTS && time(NULL) < end; i++) {
        await_event(&self->b, 0);
        assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
        while (mrd_poll_cq(cq, DEPTH, wc) > 0)
            ;
    }
    atomic_store(&self->over, true);
    pthread_join(thread, NULL);
}

static void *take_its_share(void *arg)
{
    struct channels *f = arg;
    struct mrd_wc wc[DEPTH];

    for (unsigned i = 0; i < ECHOES; i++) {
        await_event(&f->b, 0);
        assert_int_equal(mrd_req_notify_cq(f->b.q[0].cq, 0), 0);
        while (mrd_poll_cq(f->b.q[0].cq, DEPTH, wc) > 0)
            ;
    }
    return NULL;
}

/* Any number of threads may wait for the events of one channel: each event is one's. */
TEST_F(channels, channel__several_threads)
{
    pthread_t threads[3], poster;

    assert_int_equal(mrd_modify_qp(self->b.q[0].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                   MRD_QP_STATE),
                     0);
    assert_int_equal(mrd_req_notify_cq(self->b.q[0].cq, 0), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_its_share, self), 0);
    assert_int_equal(pthread_create(&poster, NULL, complete_all_the_time, self), 0);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&self->over, true);
    pthread_join(poster, NULL);
    /* A queue with an event that was not acked would not go: close_end(). */
}

TEST_F_AGAIN(channels, channel__several_threads, "manual progress",
             self->progress = MRD_PROGRESS_MANUAL);

/* ------------------------------------------------------------------------------ several sleepers */

/* One message is under way between each two queues: a lost wake-up would end the game. */
TEST_F(channels, channel__several_queues_and_threads)
{
    struct sleeper sleepers[2 * QUEUES];

    play(self, sleepers);
}

TEST_F_AGAIN(channels, channel__several_queues_and_threads, "manual progress",
             self->progress = MRD_PROGRESS_MANUAL);
