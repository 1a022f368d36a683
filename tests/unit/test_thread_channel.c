/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: threads that sleep until completions come. Two contexts in one process, over
 * the loopback; the one that waits with and without a progress thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "mrd/mrd.h"
#include "transport/channel.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { EVENTS = 20 * 1000, ECHOES = 200 };
#else
enum { EVENTS = 1000 * 1000, ECHOES = 2000 };
#endif

enum {
    QUEUES = 4,
    DEPTH = 64,
    BYTES = 64,
    EVENTS_S = 60,
    PATIENCE_S = 600, /* until a test that hangs is ended */
};

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_mr *mr;
    struct mrd_ah *peer;
    struct {
        struct mrd_comp_channel *channel;
        struct mrd_cq *cq;
        struct mrd_qp *qp;
    } q[QUEUES];
    uint8_t memory[QUEUES * DEPTH * BYTES];
};

struct fixture {
    struct end a, b;
    atomic_bool over;
};

static void open_queue(struct end *e, unsigned i)
{
    e->q[i].channel = mrd_create_comp_channel(e->context);
    assert_non_null(e->q[i].channel);
    e->q[i].cq = mrd_create_cq_ex(
        e->context, &(struct mrd_cq_init_attr){
                        .cqe = 2 * DEPTH, .cq_context = &e->q[i], .channel = e->q[i].channel});
    assert_non_null(e->q[i].cq);
    e->q[i].qp = mrd_create_qp(
        e->pd, &(struct mrd_qp_init_attr){
                   .send_cq = e->q[i].cq,
                   .recv_cq = e->q[i].cq,
                   .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_inline_data = BYTES},
               });
    assert_non_null(e->q[i].qp);
}

static void open_end(struct end *e, enum mrd_progress progress)
{
    e->context = mrd_open_device(
        NULL, &(struct mrd_context_attr){.address = "127.0.0.1", .paths = 4, .progress = progress});
    assert_non_null(e->context);
    e->pd = mrd_alloc_pd(e->context);
    e->mr = mrd_reg_mr(e->pd, e->memory, sizeof(e->memory), MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(e->mr);
    for (unsigned i = 0; i < QUEUES; i++)
        open_queue(e, i);
}

static void meet(struct end *e, const struct end *other)
{
    char address[MRD_ADDRESS_MAX];

    assert_int_equal(mrd_query_address(other->context, address, sizeof(address)), 0);
    e->peer = mrd_create_ah(e->pd, address);
    assert_non_null(e->peer);
}

static void close_end(struct end *e)
{
    assert_int_equal(mrd_destroy_ah(e->peer), 0);
    for (unsigned i = 0; i < QUEUES; i++) {
        assert_int_equal(mrd_destroy_qp(e->q[i].qp), 0);
        assert_int_equal(mrd_destroy_comp_channel(e->q[i].channel), -EBUSY);
        assert_int_equal(mrd_destroy_cq(e->q[i].cq), 0);
        assert_int_equal(mrd_close_device(e->context), -EBUSY);
        assert_int_equal(mrd_destroy_comp_channel(e->q[i].channel), 0);
    }
    assert_int_equal(mrd_dereg_mr(e->mr), 0);
    assert_int_equal(mrd_dealloc_pd(e->pd), 0);
    assert_int_equal(mrd_close_device(e->context), 0);
}

static int setup_with(void **state, enum mrd_progress progress)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    open_end(&f->a, MRD_PROGRESS_THREAD);
    open_end(&f->b, progress);
    meet(&f->a, &f->b);
    meet(&f->b, &f->a);
    *state = f;
    alarm(PATIENCE_S);
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, MRD_PROGRESS_THREAD);
}

static int setup_manual(void **state)
{
    return setup_with(state, MRD_PROGRESS_MANUAL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close_end(&f->a);
    close_end(&f->b);
    free(f);
    alarm(0);
    return 0;
}

static void post_receive(struct end *e, unsigned queue, uint64_t slot)
{
    struct mrd_sge sge = {(uintptr_t)&e->memory[(queue * DEPTH + slot) * BYTES], BYTES,
                          e->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_recv(e->q[queue].qp, &wr, &bad), 0);
}

static void post_send(struct end *e, const struct end *to, unsigned queue, unsigned flags)
{
    uint8_t bytes[BYTES] = {0};
    struct mrd_sge sge = {(uintptr_t)bytes, BYTES, 0};
    struct mrd_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_INLINE | flags,
        .ud = {.ah = e->peer, .remote_qpn = to->q[queue].qp->qp_num},
    };
    struct mrd_send_wr *bad;

    assert_int_equal(mrd_post_send(e->q[queue].qp, &wr, &bad), 0);
}

static void never_block(const struct mrd_comp_channel *channel)
{
    int flags = fcntl(channel->fd, F_GETFL);

    assert_int_equal(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
}

/* Sleeps for the event of a queue, and acks it. */
static void await_event(struct end *e, unsigned queue)
{
    struct mrd_cq *cq = NULL;
    void *context = NULL;

    assert_int_equal(mrd_get_cq_event(e->q[queue].channel, &cq, &context), 0);
    assert_ptr_equal(cq, e->q[queue].cq);
    assert_ptr_equal(context, &e->q[queue]);
    mrd_ack_cq_events(cq, 1);
}

/* ------------------------------------------------------------------------------------ each rule */

static void mrd_req_notify_cq__without_channel(void **state)
{
    struct fixture *f = *state;
    struct mrd_cq *cq = mrd_create_cq(f->a.context, 1, NULL);

    assert_int_equal(mrd_req_notify_cq(cq, 0), -EINVAL);
    assert_non_null(strstr(mrd_last_error(), "no completion channel"));
    assert_int_equal(mrd_destroy_cq(cq), 0);
    errno = 0;
    assert_null(mrd_create_cq_ex(
        f->a.context, &(struct mrd_cq_init_attr){.cqe = 1, .channel = f->b.q[0].channel}));
    assert_int_equal(errno, EINVAL);
    assert_non_null(strstr(mrd_last_error(), "another context"));
    assert_null(
        mrd_create_cq_ex(f->a.context, &(struct mrd_cq_init_attr){.comp_mask = 1, .cqe = 1}));
    assert_non_null(strstr(mrd_last_error(), "comp_mask"));
}

/* One event for each request, at the next completion; none without one. */
static void mrd_req_notify_cq__one_event(void **state)
{
    struct fixture *f = *state;
    struct mrd_cq *cq;
    struct mrd_wc wc[4];
    void *context;

    never_block(f->b.q[0].channel);
    for (unsigned i = 0; i < 4; i++)
        post_receive(&f->b, 0, i);
    post_send(&f->a, &f->b, 0, 0);
    while (mrd_poll_cq(f->b.q[0].cq, 1, wc) == 0)
        ;
    assert_int_equal(mrd_get_cq_event(f->b.q[0].channel, &cq, &context), -EAGAIN);

    assert_int_equal(mrd_req_notify_cq(f->b.q[0].cq, 0), 0);
    post_send(&f->a, &f->b, 0, 0);
    post_send(&f->a, &f->b, 0, 0);
    post_send(&f->a, &f->b, 0, 0);
    for (int got = 0; got < 3;)
        got += mrd_poll_cq(f->b.q[0].cq, 4, wc);
    assert_int_equal(mrd_get_cq_event(f->b.q[0].channel, &cq, &context), 0);
    assert_int_equal(mrd_get_cq_event(f->b.q[0].channel, &cq, &context), -EAGAIN);
    mrd_ack_cq_events(cq, 2); /* one too many: refused, with a line in the log */
    mrd_ack_cq_events(cq, 1);
}

/* A sender sleeps until its message is acked, which takes the target's thread. */
static void mrd_req_notify_cq__of_sends(void **state)
{
    struct fixture *f = *state;

    post_receive(&f->b, 0, 0);
    assert_int_equal(mrd_req_notify_cq(f->a.q[0].cq, 0), 0);
    post_send(&f->a, &f->b, 0, MRD_SEND_SIGNALED);
    await_event(&f->a, 0);
}

/* The receiver of a solicited send wakes up, and of others not. */
static void mrd_req_notify_cq__solicited_only(void **state)
{
    struct fixture *f = *state;
    struct mrd_cq *cq;
    struct mrd_wc wc;
    void *context;

    never_block(f->b.q[0].channel);
    for (unsigned i = 0; i < 4; i++)
        post_receive(&f->b, 0, i);
    assert_int_equal(mrd_req_notify_cq(f->b.q[0].cq, 1), 0);
    post_send(&f->a, &f->b, 0, 0);
    while (mrd_poll_cq(f->b.q[0].cq, 1, &wc) == 0)
        ;
    assert_int_equal(wc.wc_flags & MRD_WC_SOLICITED, 0);
    assert_int_equal(mrd_get_cq_event(f->b.q[0].channel, &cq, &context), -EAGAIN);
    post_send(&f->a, &f->b, 0, MRD_SEND_SOLICITED);
    while (mrd_poll_cq(f->b.q[0].cq, 1, &wc) == 0)
        ;
    assert_int_equal(wc.wc_flags & MRD_WC_SOLICITED, MRD_WC_SOLICITED);
    assert_int_equal(mrd_get_cq_event(f->b.q[0].channel, &cq, &context), 0);
    mrd_ack_cq_events(cq, 1);

    /* What fails is worth waking up for, too. */
    assert_int_equal(mrd_req_notify_cq(f->b.q[0].cq, 1), 0);
    assert_int_equal(
        mrd_modify_qp(f->b.q[0].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR}, MRD_QP_STATE),
        0);
    assert_int_equal(mrd_get_cq_event(f->b.q[0].channel, &cq, &context), 0);
    assert_int_equal(mrd_destroy_qp(f->b.q[0].qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "not acked"));
    mrd_ack_cq_events(cq, 1);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_destroy_comp_channel(f->b.q[0].channel), 0);
    open_queue(&f->b, 0);
}

/* Events that nobody took go with their queue. */
static void mrd_destroy_cq__with_events(void **state)
{
    struct fixture *f = *state;
    struct mrd_comp_channel *channel = mrd_create_comp_channel(f->b.context);
    struct mrd_cq *cq =
        mrd_create_cq_ex(f->b.context, &(struct mrd_cq_init_attr){.cqe = 4, .channel = channel});
    struct mrd_qp *qp = mrd_create_qp(
        f->b.pd, &(struct mrd_qp_init_attr){
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

static void mrd_get_cq_event__ends_with_a_signal(void **state)
{
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = on_signal}, before;
    pthread_t thread, self = pthread_self();
    struct mrd_cq *cq;
    void *context;

    sigaction(SIGUSR1, &action, &before);
    pthread_create(&thread, NULL, interrupt, &self);
    assert_int_equal(mrd_get_cq_event(f->b.q[0].channel, &cq, &context), -EINTR);
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
}

static void mrd_context_fd__not_with_a_thread(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mrd_context_fd(f->a.context), -EOPNOTSUPP);
    assert_non_null(strstr(mrd_last_error(), "completion channel"));
}

/*
 * Who armed a queue and then works on something else does not hold up the others: the thread makes
 * progress for it.
 */
static void channel__thread_for_who_does_not_come(void **state)
{
    enum { LONG_BYTES = 8 << 20 };
    struct fixture *f = *state;
    uint8_t *from = calloc(1, LONG_BYTES), *to = calloc(1, LONG_BYTES);
    struct mrd_mr *source = mrd_reg_mr(f->a.pd, from, LONG_BYTES, 0);
    struct mrd_mr *target =
        mrd_reg_mr(f->b.pd, to, LONG_BYTES, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    struct mrd_sge sge = {(uintptr_t)from, LONG_BYTES, source->lkey};
    struct mrd_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = MRD_WR_RDMA_WRITE_WITH_IMM,
                                 .send_flags = MRD_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)to, target->rkey},
                                 .ud = {f->a.peer, f->b.q[0].qp->qp_num, 0},
                             };
    struct pollfd event = {.events = POLLIN};

    for (size_t i = 0; i < LONG_BYTES; i++)
        from[i] = (uint8_t)(i * 7 + (i >> 9));
    post_receive(&f->b, 0, 0);
    assert_int_equal(mrd_req_notify_cq(f->a.q[0].cq, 0), 0);
    assert_int_equal(mrd_req_notify_cq(f->b.q[0].cq, 0), 0);
    assert_int_equal(mrd_post_send(f->a.q[0].qp, &wr, &bad), 0);
    /* Nobody calls until both have their events: these descriptors are not for users. */
    event.fd = mrd_channel_event_fd(f->b.q[0].channel);
    assert_int_equal(poll(&event, 1, -1), 1);
    event.fd = mrd_channel_event_fd(f->a.q[0].channel);
    assert_int_equal(poll(&event, 1, -1), 1);
    await_event(&f->b, 0);
    await_event(&f->a, 0);
    assert_memory_equal(from, to, LONG_BYTES);
    assert_int_equal(mrd_dereg_mr(source), 0);
    assert_int_equal(mrd_dereg_mr(target), 0);
    free(from);
    free(to);
}

/* ---------------------------------------------------------------------------- no lost wake-up */

/* Posts receives to a queue pair in error, each of which completes at once. */
static void *complete_all_the_time(void *arg)
{
    struct fixture *f = arg;
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
static void channel__a_million_events(void **state)
{
    struct fixture *f = *state;
    time_t end = time(NULL) + EVENTS_S;
    struct mrd_cq *cq = f->b.q[0].cq;
    struct mrd_wc wc[DEPTH];
    pthread_t thread;

    assert_int_equal(
        mrd_modify_qp(f->b.q[0].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR}, MRD_QP_STATE),
        0);
    assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, complete_all_the_time, f), 0);
    for (unsigned i = 0; i < EVENTS && time(NULL) < end; i++) {
        await_event(&f->b, 0);
        assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
        while (mrd_poll_cq(cq, DEPTH, wc) > 0)
            ;
    }
    atomic_store(&f->over, true);
    pthread_join(thread, NULL);
}

static void *take_its_share(void *arg)
{
    struct fixture *f = arg;
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
static void channel__several_threads(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[3], poster;

    assert_int_equal(
        mrd_modify_qp(f->b.q[0].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR}, MRD_QP_STATE),
        0);
    assert_int_equal(mrd_req_notify_cq(f->b.q[0].cq, 0), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_its_share, f), 0);
    assert_int_equal(pthread_create(&poster, NULL, complete_all_the_time, f), 0);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&f->over, true);
    pthread_join(poster, NULL);
    /* A queue with an event that was not acked would not go: close_end(). */
}

/* ------------------------------------------------------------------------------ several sleepers */

struct sleeper {
    struct end *end;
    const struct end *other;
    unsigned queue;
    bool asks; /* it sends first */
    bool epolls;
    unsigned received;
    pthread_t thread;
};

/* Sleeps until the channel's descriptor is readable, and takes an event if there is one. */
static bool epoll_event(struct sleeper *s, int set)
{
    struct epoll_event event;
    struct mrd_cq *cq;
    void *context;

    while (epoll_wait(set, &event, 1, -1) < 0)
        assert_int_equal(errno, EINTR);
    int error = mrd_get_cq_event(s->end->q[s->queue].channel, &cq, &context);
    assert_true(error == 0 || error == -EAGAIN);
    if (error == 0)
        mrd_ack_cq_events(cq, 1);
    return error == 0;
}

static void sleep_once(struct sleeper *s, int set)
{
    if (s->epolls) {
        while (!epoll_event(s, set))
            ;
    } else {
        await_event(s->end, s->queue);
    }
}

/* What came: each message is answered, and its receive posted again. */
static void answer(struct sleeper *s)
{
    struct mrd_wc wc[DEPTH];
    int n;

    while ((n = mrd_poll_cq(s->end->q[s->queue].cq, DEPTH, wc)) > 0) {
        for (int i = 0; i < n; i++) {
            assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
            post_receive(s->end, s->queue, wc[i].wr_id);
            if (++s->received < ECHOES || !s->asks)
                post_send(s->end, s->other, s->queue, 0);
        }
    }
}

static void *echo(void *arg)
{
    struct sleeper *s = arg;
    int set = epoll_create1(0);

    if (s->epolls) {
        struct epoll_event event = {.events = EPOLLIN};

        never_block(s->end->q[s->queue].channel);
        assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, s->end->q[s->queue].channel->fd, &event), 0);
    }
    assert_int_equal(mrd_req_notify_cq(s->end->q[s->queue].cq, 0), 0);
    if (s->asks)
        post_send(s->end, s->other, s->queue, 0);
    answer(s); /* the first one may have come before */
    while (s->received < ECHOES) {
        sleep_once(s, set);
        assert_int_equal(mrd_req_notify_cq(s->end->q[s->queue].cq, 0), 0);
        answer(s);
    }
    close(set);
    return NULL;
}

/*
 * A thread and a completion queue for each queue pair, at both ends. One message is under way
 * between two of them: a wake-up that is lost would end the game.
 */
static void channel__several_queues_and_threads(void **state)
{
    struct fixture *f = *state;
    struct sleeper sleepers[2 * QUEUES];

    for (unsigned i = 0; i < 2 * QUEUES; i++) {
        bool asks = i < QUEUES;

        sleepers[i] = (struct sleeper){.end = asks ? &f->a : &f->b,
                                       .other = asks ? &f->b : &f->a,
                                       .queue = i % QUEUES,
                                       .asks = asks,
                                       .epolls = i % 2};
        for (unsigned slot = 0; slot < 4; slot++)
            post_receive(sleepers[i].end, sleepers[i].queue, slot);
    }
    for (unsigned i = 2 * QUEUES; i-- > 0;)
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, echo, &sleepers[i]), 0);
    for (unsigned i = 0; i < 2 * QUEUES; i++) {
        pthread_join(sleepers[i].thread, NULL);
        assert_true(sleepers[i].received == ECHOES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mrd_req_notify_cq__without_channel, setup, teardown),
        cmocka_unit_test_setup_teardown(mrd_req_notify_cq__one_event, setup, teardown),
        {"mrd_req_notify_cq__one_event, manual progress", mrd_req_notify_cq__one_event,
         setup_manual, teardown, NULL},
        cmocka_unit_test_setup_teardown(mrd_req_notify_cq__of_sends, setup, teardown),
        cmocka_unit_test_setup_teardown(mrd_req_notify_cq__solicited_only, setup, teardown),
        {"mrd_req_notify_cq__solicited_only, manual progress", mrd_req_notify_cq__solicited_only,
         setup_manual, teardown, NULL},
        cmocka_unit_test_setup_teardown(mrd_destroy_cq__with_events, setup, teardown),
        cmocka_unit_test_setup_teardown(mrd_get_cq_event__ends_with_a_signal, setup, teardown),
        {"mrd_get_cq_event__ends_with_a_signal, manual progress",
         mrd_get_cq_event__ends_with_a_signal, setup_manual, teardown, NULL},
        cmocka_unit_test_setup_teardown(mrd_context_fd__not_with_a_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(channel__thread_for_who_does_not_come, setup, teardown),
        cmocka_unit_test_setup_teardown(channel__a_million_events, setup, teardown),
        cmocka_unit_test_setup_teardown(channel__several_threads, setup, teardown),
        {"channel__several_threads, manual progress", channel__several_threads, setup_manual,
         teardown, NULL},
        cmocka_unit_test_setup_teardown(channel__several_queues_and_threads, setup, teardown),
        {"channel__several_queues_and_threads, manual progress",
         channel__several_queues_and_threads, setup_manual, teardown, NULL},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
