/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two contexts in one process, over the loopback, with a completion channel for each of their
 * queues; and threads that send messages to and fro between two queues, asleep in between.
 */
#ifndef MRD_UNIT_CHANNEL_FIXTURE_H
#define MRD_UNIT_CHANNEL_FIXTURE_H

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

#include "tests/unit/context_fixture.h"
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

FIXTURE(channels)
{
    struct end a, b;
    enum mrd_progress progress; /* of b */
    unsigned flags;             /* of the channels, enum mrd_comp_channel_flags */
    atomic_bool over;
};

static inline void open_queue(struct end *e, unsigned i, unsigned flags)
{
    e->q[i].channel = mrd_create_comp_channel_ex(
        e->context, &(struct mrd_comp_channel_init_attr){.flags = flags});
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

static inline void open_end(struct end *e, enum mrd_progress progress, unsigned flags)
{
    e->context = mrd_open_device(
        NULL, &(struct mrd_context_attr){.address = "127.0.0.1", .paths = 4, .progress = progress});
    assert_non_null(e->context);
    e->pd = mrd_alloc_pd(e->context);
    e->mr = mrd_reg_mr(e->pd, e->memory, sizeof(e->memory), MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(e->mr);
    for (unsigned i = 0; i < QUEUES; i++)
        open_queue(e, i, flags);
}

static inline void close_end(struct end *e)
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

FIXTURE_SETUP(channels)
{
    open_end(&self->a, MRD_PROGRESS_THREAD, self->flags);
    open_end(&self->b, self->progress, self->flags);
    self->a.peer = ah_to(self->a.pd, self->b.context);
    self->b.peer = ah_to(self->b.pd, self->a.context);
    alarm(PATIENCE_S);
}

FIXTURE_TEARDOWN(channels)
{
    close_end(&self->a);
    close_end(&self->b);
    alarm(0);
}

static inline void post_receive(struct end *e, unsigned queue, uint64_t slot)
{
    struct mrd_sge sge = {(uintptr_t)&e->memory[(queue * DEPTH + slot) * BYTES], BYTES,
                          e->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_recv(e->q[queue].qp, &wr, &bad), 0);
}

static inline void post_send(struct end *e, const struct end *to, unsigned queue, unsigned flags)
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

static inline void never_block(const struct mrd_comp_channel *channel)
{
    int flags = fcntl(channel->fd, F_GETFL);

    assert_int_equal(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
}

/* Sleeps for the event of a queue, and acks it. */
static inline void await_event(struct end *e, unsigned queue)
{
    struct mrd_cq *cq = NULL;
    void *context = NULL;

    assert_int_equal(mrd_get_cq_event(e->q[queue].channel, &cq, &context), 0);
    assert_ptr_equal(cq, e->q[queue].cq);
    assert_ptr_equal(context, &e->q[queue]);
    mrd_ack_cq_events(cq, 1);
}

/* ------------------------------------------------------------------------------------ each rule */

/* A long write from `a` to the first queue pair of `b`. */
struct long_write {
    uint8_t *from, *to;
    struct mrd_mr *source, *target;
    struct mrd_sge sge;
    struct mrd_send_wr wr;
};

static inline void long_write_begin(struct channels *f, struct long_write *w,
                                    enum mrd_wr_opcode opcode, uint32_t bytes)
{
    w->from = calloc(1, bytes);
    w->to = calloc(1, bytes);
    assert_true(w->from && w->to);
    for (size_t i = 0; i < bytes; i++)
        w->from[i] = (uint8_t)(i * 7 + (i >> 9));
    w->source = mrd_reg_mr(f->a.pd, w->from, bytes, 0);
    w->target = mrd_reg_mr(f->b.pd, w->to, bytes, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    assert_true(w->source && w->target);
    w->sge = (struct mrd_sge){(uintptr_t)w->from, bytes, w->source->lkey};
    w->wr = (struct mrd_send_wr){
        .sg_list = &w->sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = MRD_SEND_SIGNALED,
        .wr.rdma = {(uintptr_t)w->to, w->target->rkey},
        .ud = {f->a.peer, f->b.q[0].qp->qp_num, 0},
    };
}

static inline void long_write_end(struct long_write *w)
{
    assert_memory_equal(w->from, w->to, w->sge.length);
    assert_int_equal(mrd_dereg_mr(w->source), 0);
    assert_int_equal(mrd_dereg_mr(w->target), 0);
    free(w->from);
    free(w->to);
}

struct sleeper {
    struct end *end;
    const struct end *other;
    unsigned queue;
    bool asks; /* it sends first */
    bool epolls;
    unsigned received, in_vain; /* messages; wake-ups without an event */
    pthread_t thread;
};

/* Sleeps until the channel's descriptor is readable, and takes an event if there is one. */
static inline bool epoll_event(struct sleeper *s, int set)
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
    else
        s->in_vain++;
    return error == 0;
}

static inline void sleep_once(struct sleeper *s, int set)
{
    if (s->epolls) {
        while (!epoll_event(s, set))
            ;
    } else {
        await_event(s->end, s->queue);
    }
}

/* What came: each message is answered, and its receive posted again. */
static inline void answer(struct sleeper *s)
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

static inline void *echo(void *arg)
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

/* All queues of both ends at once; of each pair of them one message is under way. */
static inline void play(struct channels *f, struct sleeper *sleepers)
{
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

#endif
