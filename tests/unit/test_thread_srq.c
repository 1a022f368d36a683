/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues that several threads use, and their events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "mrd/mrd.h"

enum { BYTES = 100, RECEIVES = 4, TURNS = 100000 };

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_mr *mr;
    char memory[RECEIVES * BYTES];
};

struct world {
    struct end from, to;
    struct mrd_srq *srq;
    struct mrd_qp *sender, *qp[2]; /* the latter share srq */
    struct mrd_ah *ah;
};

static void open_end(struct end *end)
{
    struct mrd_context_attr attr = {.address = "127.0.0.1", .progress = MRD_PROGRESS_MANUAL};

    end->context = mrd_open_device(NULL, &attr);
    assert_non_null(end->context);
    end->pd = mrd_alloc_pd(end->context);
    end->cq = mrd_create_cq(end->context, 16, NULL);
    end->mr = mrd_reg_mr(end->pd, end->memory, sizeof(end->memory), MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(end->mr);
}

static void close_end(struct end *end)
{
    assert_int_equal(mrd_dereg_mr(end->mr), 0);
    assert_int_equal(mrd_destroy_cq(end->cq), 0);
    assert_int_equal(mrd_dealloc_pd(end->pd), 0);
    assert_int_equal(mrd_close_device(end->context), 0);
}

static struct mrd_qp *make_qp(struct end *end, struct mrd_srq *srq)
{
    struct mrd_qp_init_attr attr = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4},
                                    .srq = srq};
    struct mrd_qp *qp = mrd_create_qp(end->pd, &attr);

    assert_non_null(qp);
    assert_int_equal(attr.cap.max_recv_wr, srq ? 0 : 4);
    return qp;
}

static void begin(struct world *w)
{
    char address[MRD_ADDRESS_MAX];

    memset(w, 0, sizeof(*w));
    open_end(&w->from);
    open_end(&w->to);
    w->srq = mrd_create_srq(
        w->to.pd, &(struct mrd_srq_init_attr){.srq_context = w, .attr = {.max_wr = RECEIVES}});
    assert_non_null(w->srq);
    assert_ptr_equal(w->srq->srq_context, w);
    w->sender = make_qp(&w->from, NULL);
    for (unsigned i = 0; i < 2; i++)
        w->qp[i] = make_qp(&w->to, w->srq);
    assert_int_equal(mrd_query_address(w->to.context, address, sizeof(address)), 0);
    w->ah = mrd_create_ah(w->from.pd, address);
    assert_non_null(w->ah);
}

static void end(struct world *w)
{
    assert_int_equal(mrd_destroy_srq(w->srq), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "queue pair"));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(mrd_destroy_qp(w->qp[i]), 0);
    assert_int_equal(mrd_destroy_srq(w->srq), 0);
    assert_int_equal(mrd_destroy_ah(w->ah), 0);
    assert_int_equal(mrd_destroy_qp(w->sender), 0);
    close_end(&w->from);
    close_end(&w->to);
}

static void post_recv(struct world *w, uint64_t id)
{
    struct mrd_sge sge = {(uintptr_t)w->to.memory + id * BYTES, BYTES, w->to.mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_srq_recv(w->srq, &wr, &bad), 0);
}

/* A message arrives at queue pair i, in that receive. */
static __attribute__((unused)) void send(struct world *w, unsigned i, uint64_t id)
{
    struct mrd_sge sge = {(uintptr_t)w->from.memory, BYTES, w->from.mr->lkey};
    struct mrd_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND,
                             .ud = {.ah = w->ah, .remote_qpn = w->qp[i]->qp_num}},
                       *bad;
    struct mrd_wc wc;
    int n = 0;

    memset(w->from.memory, 'a' + (int)id, BYTES);
    assert_int_equal(mrd_post_send(w->sender, &wr, &bad), 0);
    for (unsigned turn = 0; turn < TURNS && !n; turn++) {
        assert_true(mrd_progress(w->from.context) >= 0);
        n = mrd_poll_cq(w->to.cq, 1, &wc);
    }
    assert_int_equal(n, 1);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.qp_num, w->qp[i]->qp_num);
    assert_memory_equal(w->to.memory + id * BYTES, w->from.memory, BYTES);
}

static bool readable(const struct mrd_context *context)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/*
 * Events whose queues were destroyed take no room: there is none to be told, and the next one is
 * told at once.
 */
static void mrd_get_async_event__behind_forgotten_ones(void **state)
{
    struct mrd_srq_attr attr = {.srq_limit = 1};
    struct mrd_async_event event;
    struct world w;
    int error;

    (void)state;
    begin(&w);
    for (unsigned i = 0; i < 64; i++) {
        struct mrd_srq *srq =
            mrd_create_srq(w.to.pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 1}});

        assert_int_equal(mrd_modify_srq(srq, &attr, MRD_SRQ_LIMIT), 0);
        assert_int_equal(mrd_destroy_srq(srq), 0);
    }
    assert_false(readable(w.to.context));
    assert_int_equal(mrd_modify_srq(w.srq, &attr, MRD_SRQ_LIMIT), 0);
    assert_true(readable(w.to.context));
    error = mrd_get_async_event(w.to.context, &event);
    assert_int_equal(error, 0);
    mrd_ack_async_event(&event);
    end(&w);
}

/* ----------------------------------------------------------------------------- several threads */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { MSGS = 20000, DEPTH = 64, LIMIT = 16, RQPS = 3 };

struct crowd {
    struct mrd_context *from, *to;
    struct mrd_pd *from_pd, *to_pd;
    struct mrd_cq *from_cq, *to_cq[RQPS];
    struct mrd_qp *sender[RQPS], *qp[RQPS];
    struct mrd_srq *srq;
    struct mrd_ah *ah;
    struct mrd_mr *mr;
    char memory[4096];
    atomic_uint received, sent, failed, events, stop, posted;
};

static void fill(struct crowd *c, unsigned n)
{
    struct mrd_sge sge = {(uintptr_t)c->memory, 4096, c->mr->lkey};
    struct mrd_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    while (n-- && !mrd_post_srq_recv(c->srq, &wr, &bad))
        c->posted++;
}

/* Posts receives when there are few, and only then. */
static void *refill(void *arg)
{
    struct crowd *c = arg;
    struct mrd_async_event event;
    struct mrd_srq_attr attr = {.srq_limit = LIMIT};
    struct pollfd fd = {.fd = c->to->async_fd, .events = POLLIN};

    while (!c->stop) {
        if (poll(&fd, 1, 50) != 1)
            continue;
        while (!mrd_get_async_event(c->to, &event)) {
            if (event.event_type == MRD_EVENT_SRQ_LIMIT_REACHED) {
                c->events++;
                fill(c, DEPTH);
                mrd_ack_async_event(&event);
                mrd_modify_srq(c->srq, &attr, MRD_SRQ_LIMIT);
            }
        }
    }
    return NULL;
}

static void *take(void *arg)
{
    struct crowd *c = arg;
    struct mrd_wc wc[3];

    while (!c->stop)
        for (unsigned i = 0; i < RQPS; i++) {
            int n = mrd_poll_cq(c->to_cq[i], 1 + (int)i, wc);

            for (int k = 0; k < n; k++)
                if (wc[k].status == MRD_WC_SUCCESS)
                    c->received++;
        }
    return NULL;
}

static void *feed(void *arg)
{
    struct crowd *c = arg;
    static const char source[100];
    struct mrd_wc wc[16];
    unsigned posted = 0;

    while (!c->stop) {
        struct mrd_sge sge = {(uintptr_t)source, sizeof(source), 0};
        struct mrd_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = MRD_WR_SEND,
                                 .send_flags = MRD_SEND_SIGNALED | MRD_SEND_INLINE,
                                 .ud = {.ah = c->ah, .remote_qpn = c->qp[posted % RQPS]->qp_num}},
                           *bad;

        if (posted < MSGS && !mrd_post_send(c->sender[posted % RQPS], &wr, &bad))
            posted++;
        int n = mrd_poll_cq(c->from_cq, 16, wc);

        for (int k = 0; k < n; k++) {
            c->sent++;
            c->failed += wc[k].status != MRD_WC_SUCCESS;
        }
    }
    return NULL;
}

static void srq__refilled_by_the_limit(void **state)
{
    static struct crowd crowd;
    struct crowd *c = &crowd;
    struct mrd_context_attr attr = {.address = "127.0.0.1", .progress = MRD_PROGRESS_THREAD};
    char address[MRD_ADDRESS_MAX];
    pthread_t t[3];

    (void)state;
    c->from = mrd_open_device(NULL, &attr);
    c->to = mrd_open_device(NULL, &attr);
    c->from_pd = mrd_alloc_pd(c->from);
    c->to_pd = mrd_alloc_pd(c->to);
    c->mr = mrd_reg_mr(c->to_pd, c->memory, sizeof(c->memory), MRD_ACCESS_LOCAL_WRITE);
    c->from_cq = mrd_create_cq(c->from, 256, NULL);
    c->srq = mrd_create_srq(c->to_pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 4 * DEPTH}});
    for (unsigned i = 0; i < RQPS; i++) {
        struct mrd_qp_init_attr a = {.send_cq = c->from_cq,
                                     .recv_cq = c->from_cq,
                                     .order = i ? MRD_ORDER_MSG : MRD_ORDER_NONE,
                                     .cap = {.max_send_wr = 32, .max_inline_data = 128}};

        c->sender[i] = mrd_create_qp(c->from_pd, &a);
        c->to_cq[i] = mrd_create_cq(c->to, 1 + 3 * (int)i, NULL);
        a.send_cq = a.recv_cq = c->to_cq[i];
        a.srq = c->srq;
        c->qp[i] = mrd_create_qp(c->to_pd, &a);
        assert_non_null(c->qp[i]);
    }
    assert_int_equal(mrd_query_address(c->to, address, sizeof(address)), 0);
    c->ah = mrd_create_ah(c->from_pd, address);
    assert_int_equal(
        mrd_modify_srq(c->srq, &(struct mrd_srq_attr){.srq_limit = LIMIT}, MRD_SRQ_LIMIT), 0);
    pthread_create(&t[0], NULL, refill, c);
    pthread_create(&t[1], NULL, take, c);
    pthread_create(&t[2], NULL, feed, c);
    for (unsigned i = 0; i < 300 && (c->received < MSGS || c->sent < MSGS); i++)
        usleep(50000);
    c->stop = 1;
    for (unsigned i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    print_message("sent %u (failed %u), received %u, posted %u, events %u\n", c->sent, c->failed,
                  c->received, c->posted, c->events);
    assert_int_equal(c->received, MSGS);
    assert_int_equal(c->sent, MSGS);
    assert_int_equal(c->failed, 0);
    for (unsigned i = 0; i < RQPS; i++) {
        assert_int_equal(mrd_destroy_qp(c->sender[i]), 0);
        assert_int_equal(mrd_destroy_qp(c->qp[i]), 0);
        assert_int_equal(mrd_destroy_cq(c->to_cq[i]), 0);
    }
    assert_int_equal(mrd_destroy_srq(c->srq), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(srq__refilled_by_the_limit),
        cmocka_unit_test(mrd_get_async_event__behind_forgotten_ones),
    };

    (void)post_recv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
