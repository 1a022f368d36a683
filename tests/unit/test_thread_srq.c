/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared receive queue that several threads use, and its events. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/context_fixture.h"

enum {
    MSGS = 20000,
    DEPTH = 64,
    LIMIT = 16,
    RQPS = 3,
    PATIENCE = 1200, /* looks, of 50 ms each, at which nothing has moved */
};

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

static void open_crowd(struct crowd *c)
{
    struct mrd_context_attr attr = {.address = "127.0.0.1", .progress = MRD_PROGRESS_THREAD};

    c->from = mrd_open_device(NULL, &attr);
    c->to = mrd_open_device(NULL, &attr);
    assert_true(c->from && c->to);
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
        assert_true(c->sender[i] && c->qp[i]);
    }
    c->ah = ah_to(c->from_pd, c->to);
}

static void close_crowd(struct crowd *c)
{
    for (unsigned i = 0; i < RQPS; i++) {
        assert_int_equal(mrd_destroy_qp(c->sender[i]), 0);
        assert_int_equal(mrd_destroy_qp(c->qp[i]), 0);
        assert_int_equal(mrd_destroy_cq(c->to_cq[i]), 0);
    }
    assert_int_equal(mrd_destroy_srq(c->srq), 0);
    assert_int_equal(mrd_destroy_cq(c->from_cq), 0);
    assert_int_equal(mrd_destroy_ah(c->ah), 0);
    assert_int_equal(mrd_dereg_mr(c->mr), 0);
    assert_int_equal(mrd_dealloc_pd(c->from_pd), 0);
    assert_int_equal(mrd_dealloc_pd(c->to_pd), 0);
    assert_int_equal(mrd_close_device(c->from), 0);
    assert_int_equal(mrd_close_device(c->to), 0);
}

/* Who refills when the event tells so never runs dry, nor loses an event. */
TEST(srq__refilled_by_the_limit)
{
    static struct crowd crowd;
    struct crowd *c = &crowd;
    pthread_t t[3];

    open_crowd(c);
    assert_int_equal(
        mrd_modify_srq(c->srq, &(struct mrd_srq_attr){.srq_limit = LIMIT}, MRD_SRQ_LIMIT), 0);
    pthread_create(&t[0], NULL, refill, c);
    pthread_create(&t[1], NULL, take, c);
    pthread_create(&t[2], NULL, feed, c);
    for (unsigned idle = 0; idle < PATIENCE && (c->received < MSGS || c->sent < MSGS); idle++) {
        unsigned before = c->received + c->sent;

        usleep(50000);
        if (c->received + c->sent != before)
            idle = 0;
    }
    c->stop = 1;
    for (unsigned i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    print_message("sent %u (failed %u), received %u, posted %u, events %u\n", c->sent, c->failed,
                  c->received, c->posted, c->events);
    assert_int_equal(c->received, MSGS);
    assert_int_equal(c->sent, MSGS);
    assert_int_equal(c->failed, 0);
    close_crowd(c);
}
