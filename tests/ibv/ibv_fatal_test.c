/* SPDX-License-Identifier: BSD-2-Clause */
/* An RDMA device that is gone while it is used: who is told, and how work ends. */
#include "tests/ibv/ibv_fault.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "core/cq.h"

static void permit_reads(struct fixture_end *end)
{
    assert_int_equal(mrd_dereg_mr(end->mr), 0);
    end->mr = mrd_reg_mr(end->pd, end->memory, FIXTURE_BYTES,
                         MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ);
    assert_non_null(end->mr);
}

/* As work of a device that goes may end. */
static bool ended(const struct mrd_wc *wc)
{
    return wc->status == MRD_WC_SUCCESS || wc->status == MRD_WC_WR_FLUSH_ERR;
}

/*
 * The device of a goes. Returns when a knows, and could take its completions: by turns, as a busy
 * machine may make one in any time.
 */
static void lose_device(struct fixture *f)
{
    const struct mrd_qp *qp = f->a.qp;

    fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
    for (unsigned i = 0; i < 10000 && qp->state != MRD_QPS_ERR; i++)
        fixture_pass(f, MSEC_NS);
    assert_int_equal(qp->state, MRD_QPS_ERR);
    fixture_turn_times(f, 100);
}

/* A device that is gone says so once; work ends in errors; closing works. */
TEST(mrd_get_async_event__device_fatal)
{
    struct fixture *f = open_impatient();
    struct mrd_async_event event;

    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    start_writes(f, 4, 50000);
    fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
    assert_true(next_event(f, &event));
    assert_int_equal(event.event_type, MRD_EVENT_DEVICE_FATAL);
    assert_int_equal(mrd_get_async_event(f->a.context, &event), 0);
    assert_int_equal(event.event_type, MRD_EVENT_QP_FATAL);
    assert_ptr_equal(event.element.qp, f->a.qp);
    assert_int_equal(f->a.qp->state, MRD_QPS_ERR);
    assert_int_equal(mrd_destroy_qp(f->a.qp), -EBUSY);
    mrd_ack_async_event(&event);
    fixture_turn_one(&f->a);
    assert_int_equal(f->a.num_wc, 4); /* at once */
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(f->a.wc[i].status, MRD_WC_WR_FLUSH_ERR);
    assert_false(next_event(f, &event));
}

/* Nobody takes events: the ring is full when the device goes. Work must end all the same. */
TEST(fatal__with_full_ring)
{
    struct fixture *f = open_impatient();

    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    for (unsigned i = 0; i < 64; i++) {
        fake_ibv_raise(f->device[0], i % 2 ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, 1);
        fixture_pass(f, MSEC_NS / 2);
    }
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    start_writes(f, 4, 50000);
    lose_device(f);
    assert_int_equal(f->a.num_wc, 4);
    assert_int_equal(f->a.wc[0].status, MRD_WC_WR_FLUSH_ERR);
    fixture_drain_events(f->a.context);
}

/* A queue pair made after the device is gone. */
TEST(fatal__queue_pair_made_after_device_fatal)
{
    struct fixture *f = open_impatient();
    struct mrd_qp_init_attr attr;
    struct mrd_async_event event;
    struct mrd_qp *qp, *kept = f->a.qp;

    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    f->a.num_wc = 0;
    fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
    assert_true(next_event(f, &event));
    assert_int_equal(event.event_type, MRD_EVENT_DEVICE_FATAL);
    assert_int_equal(mrd_query_qp(f->a.qp, &attr, sizeof(attr)), 0);
    qp = mrd_create_qp(f->a.pd, &attr);
    assert_non_null(qp);
    f->a.qp = qp;
    assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, 1, 0, 1000, 0), 0);
    fixture_turn_times(f, 100);
    assert_int_equal(qp->state, MRD_QPS_ERR);
    assert_int_equal(f->a.num_wc, 1);
    fixture_pass(f, 1000 * MSEC_NS); /* its timeout passes, too */
    assert_int_equal(f->a.num_wc, 1);
    assert_int_equal(f->a.wc[0].status, MRD_WC_WR_FLUSH_ERR);
    fixture_drain_events(f->a.context);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    f->a.qp = kept;
}

/* Sends, writes, reads, more than max_rd_atomic; each completes once, at once. */
TEST(fatal__with_reads)
{
    for (unsigned ordered = 0; ordered < 2; ordered++) {
        struct fixture *f = open_impatient();
        struct mrd_qp_init_attr attr;
        struct mrd_qp *kept = f->a.qp;
        bool seen[90] = {false};

        fixture_transfer(f, MRD_WR_SEND, 1000, 4);
        assert_int_equal(mrd_query_qp(f->a.qp, &attr, sizeof(attr)), 0);
        permit_reads(&f->b);
        attr.order = ordered ? MRD_ORDER_MSG : MRD_ORDER_NONE;
        attr.max_rd_atomic = 2;
        f->a.qp = mrd_create_qp(f->a.pd, &attr);
        f->a.num_wc = f->b.num_wc = 0;
        for (unsigned i = 0; i < 90; i++)
            assert_int_equal(fixture_post(&f->a, &f->b,
                                          i % 3 == 0   ? MRD_WR_RDMA_READ
                                          : i % 3 == 1 ? MRD_WR_RDMA_WRITE
                                                       : MRD_WR_SEND,
                                          i, i * 20000, 20000, i % 7 ? 0 : MRD_SEND_FENCE),
                             0);
        fixture_turn_times(f, 5);
        lose_device(f);
        assert_int_equal(f->a.num_wc, 90);
        for (unsigned i = 0; i < 90; i++) {
            assert_false(seen[f->a.wc[i].wr_id]);
            seen[f->a.wc[i].wr_id] = true;
            if (ordered)
                assert_int_equal(f->a.wc[i].wr_id, i);
            assert_true(ended(&f->a.wc[i]));
        }
        fixture_drain_events(f->a.context);
        assert_int_equal(mrd_destroy_qp(f->a.qp), 0);
        f->a.qp = kept;
        fixture_end(f);
    }
}

/* ------------------------------------------------------------------------------------ any work */

enum { OTHERS = 4, REQUESTS = 2000, SLOT = 60000, SLOTS = 20, RECEIVE_ID = 5000 };

/* Work of all kinds between a and b, on queue pairs beside those of the fixture. */
struct work {
    struct fixture *f;
    struct mrd_srq *srq; /* of the first two */
    struct mrd_qp *qp[OTHERS];
    unsigned seed, dead;                        /* the queue pair that was destroyed, or OTHERS */
    unsigned posted;                            /* requests, whose numbers are their ids */
    unsigned char of[REQUESTS], done[REQUESTS]; /* queue pair; completions */
};

static void make_others(struct work *w)
{
    struct fixture_end *a = &w->f->a;
    struct mrd_qp_init_attr attr;

    assert_int_equal(mrd_query_qp(a->qp, &attr, sizeof(attr)), 0);
    attr.max_rd_atomic = 2;
    attr.cap.max_send_wr = 64;
    for (unsigned i = 0; i < OTHERS; i++) {
        attr.order = i % 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE;
        attr.srq = i < 2 ? w->srq : NULL;
        w->qp[i] = mrd_create_qp(a->pd, &attr);
        assert_non_null(w->qp[i]);
    }
}

static void post_receives(struct work *w)
{
    struct fixture_end *a = &w->f->a;

    for (unsigned i = 0; i < SLOTS; i++) {
        struct mrd_sge sge = {(uintptr_t)a->memory + i * SLOT, SLOT, a->mr->lkey};
        struct mrd_recv_wr wr = {.wr_id = RECEIVE_ID + i, .sg_list = &sge, .num_sge = 1}, *bad;

        assert_int_equal(mrd_post_srq_recv(w->srq, &wr, &bad), 0);
        fixture_recv(&w->f->b, 6000 + i, i * SLOT, SLOT);
    }
}

static void begin_work(struct work *w, unsigned seed)
{
    memset(w, 0, sizeof(*w));
    srand(seed);
    w->seed = seed;
    w->dead = OTHERS;
    w->f = open_with(seed % 2 ? FAKE_IBV_MLX5 : FAKE_IBV_RXE,
                     &(struct mrd_context_attr){.peer_timeout_ns = 500 * MSEC_NS}, true);
    w->srq = mrd_create_srq(w->f->a.pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 64}});
    permit_reads(&w->f->b);
    make_others(w);
    post_receives(w);
    if (seed % 3 == 0)
        fake_ibv_set(&(struct fake_ibv_knobs){.post_takes = 2, .post_error = ENOMEM});
    if (seed % 5 == 0)
        fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
}

/* Anything but a write without a completion at its target; the queue may be full. */
static void post_any(struct work *w, unsigned q)
{
    static const enum mrd_wr_opcode op[] = {MRD_WR_SEND, MRD_WR_RDMA_READ, MRD_WR_RDMA_WRITE,
                                            MRD_WR_RDMA_WRITE_WITH_IMM};

    w->f->a.qp = w->qp[q];
    w->of[w->posted] = (unsigned char)q;
    if (!fixture_post(&w->f->a, &w->f->b, op[rand() % 4], w->posted,
                      ((unsigned)rand() % SLOTS) * SLOT, 1 + (unsigned)rand() % SLOT,
                      rand() % 5 ? 0 : MRD_SEND_FENCE))
        w->posted++;
}

/* From b to one of the queue pairs; b's queue may be full. */
static void answer_any(struct work *w, unsigned q)
{
    w->f->a.qp = w->qp[q];
    (void)!fixture_post(&w->f->b, &w->f->a, MRD_WR_SEND, 9000, ((unsigned)rand() % SLOTS) * SLOT,
                        1 + (unsigned)rand() % SLOT, 0);
}

static void work_step(struct work *w, unsigned step)
{
    unsigned q = (unsigned)rand() % OTHERS, r = (unsigned)rand() % 12;

    if (r < 7 && q != w->dead)
        post_any(w, q);
    else if (r < 9 && q != w->dead)
        answer_any(w, q);
    else if (r == 9 && w->dead == OTHERS && step > 30 && w->seed % 5)
        assert_int_equal(mrd_destroy_qp(w->qp[w->dead = q]), 0);
    else
        fixture_turn(w->f);
}

/* Each request has one completion, a success or flushed; those of a destroyed queue pair may. */
static void check_completions(struct work *w)
{
    const struct fixture_end *a = &w->f->a;

    for (unsigned i = 0; i < a->num_wc; i++)
        if (a->wc[i].wr_id < RECEIVE_ID) {
            w->done[a->wc[i].wr_id]++;
            assert_true(ended(&a->wc[i]));
        }
    for (unsigned i = 0; i < w->posted; i++)
        if (w->done[i] != 1 && w->of[i] != w->dead)
            fail_msg("seed %u: request %u of QP %u: %u completions", w->seed, i, w->of[i],
                     w->done[i]);
}

/* One of the device, and one of each queue pair that is there. */
static void check_events(struct work *w)
{
    unsigned told = 0, fatal = 0, num = 0;
    struct mrd_async_event event;

    for (; !mrd_get_async_event(w->f->a.context, &event); num++) {
        fatal += event.event_type == MRD_EVENT_DEVICE_FATAL;
        told += event.event_type == MRD_EVENT_QP_FATAL;
        mrd_ack_async_event(&event);
    }
    assert_int_equal(fatal, 1);
    assert_int_equal(told, OTHERS + 1 - (w->dead < OTHERS));
    assert_int_equal(num, fatal + told);
}

static void end_work(struct work *w, struct mrd_qp *kept)
{
    struct fixture_end *a = &w->f->a;

    for (unsigned i = 0; i < OTHERS; i++)
        if (i != w->dead)
            assert_int_equal(mrd_destroy_qp(w->qp[i]), 0);
    assert_int_equal(mrd_destroy_qp(kept), 0);
    a->qp = NULL;
    assert_int_equal(((struct mrd_cq_impl *)(void *)a->cq)->reserved, 0);
    assert_int_equal(mrd_destroy_srq(w->srq), 0);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    fixture_end(w->f);
}

/* At any time: each request completes once, nothing stays reserved. */
TEST(fatal__anytime)
{
    static struct work work;
    struct work *w = &work;

    for (unsigned seed = 1; seed <= 80; seed++) {
        begin_work(w, seed);
        struct mrd_qp *kept = w->f->a.qp;
        for (unsigned step = 0; step < 40u + seed; step++)
            work_step(w, step);
        w->f->a.qp = kept;
        lose_device(w->f);
        check_completions(w);
        check_events(w);
        end_work(w, kept);
    }
}

/* ------------------------------------------------------------------------------------ sleepers */

/* The progress thread alone; the application sleeps on a channel, or on async_fd. */
TEST(fatal__wakes_sleepers)
{
    for (unsigned async = 0; async < 2; async++) {
        struct mrd_qp_init_attr attr;
        struct pollfd fd = {.events = POLLIN};

        fixture_progress = MRD_PROGRESS_THREAD;
        struct fixture *f = open_impatient();
        fixture_progress = MRD_PROGRESS_MANUAL;
        fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_EAGER});
        struct mrd_qp *kept = f->a.qp;
        struct mrd_comp_channel *channel = mrd_create_comp_channel(f->a.context);
        assert_non_null(channel);
        struct mrd_cq *cq = mrd_create_cq_ex(
            f->a.context, &(struct mrd_cq_init_attr){.cqe = 64, .channel = channel});
        assert_non_null(cq);
        assert_int_equal(mrd_query_qp(kept, &attr, sizeof(attr)), 0);
        attr.send_cq = attr.recv_cq = cq;
        attr.cap.max_recv_wr = 4;
        attr.cap.max_send_wr = 4;
        struct mrd_qp *qp = f->a.qp = mrd_create_qp(f->a.pd, &attr);
        assert_non_null(qp);
        assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
        fixture_recv(&f->a, 1, 0, 1000);
        usleep(20000);
        fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
        fd.fd = async ? f->a.context->async_fd : channel->fd;
        assert_int_equal(poll(&fd, 1, 3000), 1);
        if (!async) {
            struct mrd_cq *got;
            void *ctx;

            assert_int_equal(mrd_get_cq_event(channel, &got, &ctx), 0);
            mrd_ack_cq_events(got, 1);
        }
        fixture_drain_events(f->a.context);
        assert_int_equal(mrd_destroy_qp(qp), 0);
        assert_int_equal(mrd_destroy_cq(cq), 0);
        assert_int_equal(mrd_destroy_comp_channel(channel), 0);
        f->a.qp = kept;
        fixture_end(f);
    }
}
