/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong at an RDMA device while it is used: queue pairs in error, a port or device that
 * goes, failing calls.
 */
#include "tests/ibv/ibv_fixture.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/context.h"

#define MSEC_NS 1000000ull

static struct fixture *open_with(enum fake_ibv_kind kind, const struct mrd_context_attr *attr,
                                 bool srq)
{
    struct fixture *f = calloc(1, sizeof(*f));

    fake_ibv_begin(1);
    for (unsigned i = 0; i < 2; i++) {
        f->device[i] = fake_ibv_add(kind, NULL);
        if (!srq)
            f->device[i]->attr.max_srq = 0;
        fixture_open(i ? &f->b : &f->a, f->device[i]->name, attr);
    }
    f->a.ah = fixture_ah(&f->a, &f->b);
    f->b.ah = fixture_ah(&f->b, &f->a);
    return f;
}

static struct fixture *open_pair(enum fake_ibv_kind kind, const char *entropy, bool srq)
{
    return open_with(kind, &(struct mrd_context_attr){.entropy = entropy}, srq);
}

/* One that soon gives up a peer that does not answer. */
static struct fixture *open_impatient(void)
{
    return open_with(FAKE_IBV_MLX5, &(struct mrd_context_attr){.peer_timeout_ns = 500 * MSEC_NS},
                     true);
}

/* Messages under way from a to b, none of them complete: `n` writes. */
static void start_writes(struct fixture *f, unsigned n, uint32_t len)
{
    f->a.num_wc = f->b.num_wc = 0;
    memset(f->b.memory, 0, FIXTURE_BYTES);
    for (unsigned i = 0; i < n; i++) {
        fixture_fill(&f->a, i * len, len, i);
        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, i, i * len, len, 0), 0);
    }
}

static void finish_writes(struct fixture *f, unsigned n, uint32_t len)
{
    assert_true(fixture_run(f, n, 0));
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(f->a.wc[i].status, MRD_WC_SUCCESS);
        assert_true(fixture_holds(&f->b, i * len, len, i));
    }
}

/* ------------------------------------------------------------------------- queue pairs in error */

/* A queue pair that fails at either end is brought back, and what it held is sent again. */
static void mrd_ibv_qp_revive__any_of_them(void **state)
{
    static const struct {
        enum fake_ibv_kind kind;
        const char *entropy;
        bool srq;
    } rows[] = {
        {FAKE_IBV_MLX5, "ah", true},    {FAKE_IBV_MLX5, "ah", false},
        {FAKE_IBV_RXE, "qp", true},     {FAKE_IBV_RXE, "qp", false},
        {FAKE_IBV_MLX5, "qpair", true}, {FAKE_IBV_MLX5, "qpair", false},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct fixture *f = open_pair(rows[r].kind, rows[r].entropy, rows[r].srq);

        fixture_transfer(f, MRD_WR_SEND, 1000, 4);
        for (unsigned round = 0; round < 12; round++) {
            struct fake_ibv_device *device = f->device[round % 2];
            uint32_t qpn = fake_ibv_qpn(device, round / 2);

            start_writes(f, 30, 50000);
            for (unsigned i = 0; i < 3; i++)
                fixture_turn(f);
            if (!qpn)
                qpn = fake_ibv_qpn(device, 0);
            assert_true(fake_ibv_break_qp(device, qpn));
            finish_writes(f, 30, 50000);
        }
        assert_int_equal(fixture_counter(f->a.context, "peers_unreachable"), 0);
        fixture_end(f);
    }
}

/*
 * A queue pair that cannot be brought back, the only one: the peer is unreachable, and closing
 * still works.
 */
static void mrd_ibv_qp_revive__fails(void **state)
{
    struct fixture *f = open_impatient();

    (void)state;
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    start_writes(f, 4, 50000);
    fake_ibv_fail("ibv_modify_qp", 0, EIO);
    assert_true(fake_ibv_break_qp(f->device[0], fake_ibv_qpn(f->device[0], 0)));
    assert_true(fixture_run(f, 4, 0));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(f->a.wc[i].status, MRD_WC_RETRY_EXC_ERR);
    fixture_end(f);
}

/* --------------------------------------------------------------------------------------- events */

static bool next_event(struct fixture *f, struct mrd_async_event *event)
{
    for (unsigned i = 0; i < 5000; i++) {
        fixture_turn(f);
        if (!mrd_get_async_event(f->a.context, event)) {
            mrd_ack_async_event(event);
            return true;
        }
    }
    return false;
}

/* The application is told, with our own address; traffic goes on when the port is back. */
static void mrd_get_async_event__port(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct mrd_async_event event;
    struct pollfd fd = {.fd = f->a.context->async_fd, .events = POLLIN};
    char own[MRD_ADDRESS_MAX];

    (void)state;
    assert_int_equal(mrd_query_address(f->a.context, own, sizeof(own)), 0);
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ERR, 1);
    start_writes(f, 4, 50000);
    assert_true(next_event(f, &event));
    assert_int_equal(event.event_type, MRD_EVENT_PORT_ERR);
    assert_string_equal(event.address, own);
    assert_int_equal(poll(&fd, 1, 0), 0);
    fixture_pass(f, 20 * MSEC_NS);
    assert_int_equal(f->a.num_wc, 0);
    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ACTIVE, 1);
    assert_true(next_event(f, &event));
    assert_int_equal(event.event_type, MRD_EVENT_PORT_ACTIVE);
    finish_writes(f, 4, 50000);
    fixture_end(f);
}

/* Events that mean nothing to the application are not shown to it; nor those of another port. */
static void mrd_get_async_event__others(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct mrd_async_event event;

    (void)state;
    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ERR, 2);
    fake_ibv_raise(f->device[0], IBV_EVENT_GID_CHANGE, 1);
    fake_ibv_raise(f->device[0], IBV_EVENT_CLIENT_REREGISTER, 1);
    fake_ibv_raise(f->device[0], IBV_EVENT_SRQ_LIMIT_REACHED, 0);
    assert_false(next_event(f, &event));
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    fixture_end(f);
}

/* A device that is gone says so once; work ends in errors; closing works. */
static void mrd_get_async_event__device_fatal(void **state)
{
    struct fixture *f = open_impatient();
    struct mrd_async_event event;

    (void)state;
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
    fixture_end(f);
}

/* Nobody takes events: the ring is full when the device goes. Work must end all the same. */
static void fatal__with_full_ring(void **state)
{
    struct fixture *f = open_impatient();
    struct mrd_async_event event;

    (void)state;
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    for (unsigned i = 0; i < 64; i++) {
        fake_ibv_raise(f->device[0], i % 2 ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, 1);
        fixture_pass(f, MSEC_NS / 2);
    }
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    start_writes(f, 4, 50000);
    fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
    fixture_pass(f, 200 * MSEC_NS);
    print_message("after 200 ms: state %d, %u completions, the first %s\n", f->a.qp->state,
                  f->a.num_wc, f->a.num_wc ? mrd_wc_status_str(f->a.wc[0].status) : "-");
    assert_int_equal(f->a.qp->state, MRD_QPS_ERR);
    while (!mrd_get_async_event(f->a.context, &event))
        mrd_ack_async_event(&event);
    fixture_end(f);
}

/* A queue pair made after the device is gone. */
static void fatal__queue_pair_made_after_device_fatal(void **state)
{
    struct fixture *f = open_impatient();
    struct mrd_qp_init_attr attr;
    struct mrd_async_event event;
    struct mrd_qp *qp, *kept = f->a.qp;

    (void)state;
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
    fixture_pass(f, 100 * MSEC_NS);
    print_message("new queue pair: state %d; %u completions after 100 ms\n", qp->state,
                  f->a.num_wc);
    fixture_pass(f, 2000 * MSEC_NS);
    print_message("%u completions after 2.1 s: %s\n", f->a.num_wc,
                  f->a.num_wc ? mrd_wc_status_str(f->a.wc[0].status) : "-");
    assert_int_equal(f->a.num_wc, 1);
    assert_int_equal(f->a.wc[0].status, MRD_WC_WR_FLUSH_ERR);
    while (!mrd_get_async_event(f->a.context, &event))
        mrd_ack_async_event(&event);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    f->a.qp = kept;
    fixture_end(f);
}

/* Sends, writes, reads, more than max_rd_atomic; each completes once, at once. */
static void fatal__with_reads(void **state)
{
    for (unsigned ordered = 0; ordered < 2; ordered++) {
        struct fixture *f = open_impatient();
        struct mrd_qp_init_attr attr;
        struct mrd_async_event event;
        struct mrd_qp *kept = f->a.qp;
        bool seen[90] = {false};

        (void)state;
        fixture_transfer(f, MRD_WR_SEND, 1000, 4);
        assert_int_equal(mrd_query_qp(f->a.qp, &attr, sizeof(attr)), 0);
        assert_int_equal(mrd_dereg_mr(f->b.mr), 0);
        f->b.mr =
            mrd_reg_mr(f->b.pd, f->b.memory, FIXTURE_BYTES,
                       MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ);
        assert_non_null(f->b.mr);
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
        for (unsigned i = 0; i < 5; i++)
            fixture_turn(f);
        fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
        fixture_pass(f, 20 * MSEC_NS);
        print_message("%u completions\n", f->a.num_wc);
        for (unsigned i = 0; i < f->a.num_wc; i++)
            if (f->a.wc[i].status != MRD_WC_SUCCESS && f->a.wc[i].status != MRD_WC_WR_FLUSH_ERR)
                print_message("%u: opcode %d %s\n", (unsigned)f->a.wc[i].wr_id, f->a.wc[i].opcode,
                              mrd_wc_status_str(f->a.wc[i].status));
        assert_int_equal(f->a.num_wc, 90);
        for (unsigned i = 0; i < 90; i++) {
            assert_false(seen[f->a.wc[i].wr_id]);
            seen[f->a.wc[i].wr_id] = true;
            if (ordered)
                assert_int_equal(f->a.wc[i].wr_id, i);
            assert_true(f->a.wc[i].status == MRD_WC_SUCCESS ||
                        f->a.wc[i].status == MRD_WC_WR_FLUSH_ERR);
        }
        while (!mrd_get_async_event(f->a.context, &event))
            mrd_ack_async_event(&event);
        assert_int_equal(mrd_destroy_qp(f->a.qp), 0);
        f->a.qp = kept;
        fixture_end(f);
    }
}

#include "core/cq.h"

/* Any work, at any time: each request completes once, nothing stays reserved. */
static void fatal__anytime(void **state)
{
    enum { NQP = 4, WRS = 2000 };

    (void)state;
    for (unsigned seed = 1; seed <= 80; seed++) {
        struct fixture *f =
            open_with(seed % 2 ? FAKE_IBV_MLX5 : FAKE_IBV_RXE,
                      &(struct mrd_context_attr){.peer_timeout_ns = 500 * MSEC_NS}, true);
        struct mrd_srq *srq =
            mrd_create_srq(f->a.pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 64}});
        struct mrd_qp *qp[NQP], *kept = f->a.qp, *kept_b = f->b.qp;
        struct mrd_async_event event;
        struct mrd_qp_init_attr attr;
        static unsigned char done[WRS], of[WRS];
        unsigned posted = 0, dead = NQP, told = 0, fatal = 0;

        srand(seed);
        memset(done, 0, sizeof(done));
        assert_int_equal(mrd_dereg_mr(f->b.mr), 0);
        f->b.mr =
            mrd_reg_mr(f->b.pd, f->b.memory, FIXTURE_BYTES,
                       MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ);
        assert_int_equal(mrd_query_qp(f->a.qp, &attr, sizeof(attr)), 0);
        attr.max_rd_atomic = 2;
        attr.cap.max_send_wr = 64;
        for (unsigned i = 0; i < NQP; i++) {
            attr.order = i % 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE;
            attr.srq = i < 2 ? srq : NULL;
            qp[i] = mrd_create_qp(f->a.pd, &attr);
            assert_non_null(qp[i]);
        }
        for (unsigned i = 0; i < 20; i++) {
            struct mrd_sge sge = {(uintptr_t)f->a.memory + i * 60000, 60000, f->a.mr->lkey};
            struct mrd_recv_wr wr = {.wr_id = 5000 + i, .sg_list = &sge, .num_sge = 1}, *bad;

            assert_int_equal(mrd_post_srq_recv(srq, &wr, &bad), 0);
        }
        for (unsigned i = 0; i < 20; i++)
            fixture_recv(&f->b, 6000 + i, i * 60000, 60000);
        if (seed % 3 == 0)
            fake_ibv_set(&(struct fake_ibv_knobs){.post_takes = 2, .post_error = ENOMEM});
        if (seed % 5 == 0)
            fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
        for (unsigned step = 0; step < 40u + seed; step++) {
            unsigned q = (unsigned)rand() % NQP, r = (unsigned)rand() % 12;
            static const enum mrd_wr_opcode op[] = {MRD_WR_SEND, MRD_WR_RDMA_READ,
                                                    MRD_WR_RDMA_WRITE, MRD_WR_RDMA_WRITE_WITH_IMM};

            f->a.qp = qp[q];
            if (r < 7 && q != dead) {
                of[posted] = (unsigned char)q;
                if (!fixture_post(&f->a, &f->b, op[rand() % 4], posted,
                                  ((unsigned)rand() % 20) * 60000, 1 + (unsigned)rand() % 60000,
                                  rand() % 5 ? 0 : MRD_SEND_FENCE))
                    posted++;
            } else if (r < 9 && q != dead) {
                (void)!fixture_post(&f->b, &f->a, MRD_WR_SEND, 9000,
                                    ((unsigned)rand() % 20) * 60000, 1 + (unsigned)rand() % 60000,
                                    0);
            } else if (r == 9 && dead == NQP && step > 30 && seed % 5) {
                assert_int_equal(mrd_destroy_qp(qp[dead = q]), 0);
            } else {
                fixture_turn(f);
            }
        }
        fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
        fixture_pass(f, 10 * MSEC_NS);
        for (unsigned i = 0; i < f->a.num_wc; i++)
            if (f->a.wc[i].wr_id < 5000) {
                done[f->a.wc[i].wr_id]++;
                if (f->a.wc[i].status != MRD_WC_SUCCESS && f->a.wc[i].status != MRD_WC_WR_FLUSH_ERR)
                    print_message("seed %u: %s\n", seed, mrd_wc_status_str(f->a.wc[i].status));
            }
        for (unsigned i = 0; i < posted; i++)
            if (done[i] != 1 && of[i] != dead)
                fail_msg("seed %u: request %u of QP %u: %u completions", seed, i, of[i], done[i]);
        while (!mrd_get_async_event(f->a.context, &event)) {
            fatal += event.event_type == MRD_EVENT_DEVICE_FATAL;
            told += event.event_type == MRD_EVENT_QP_FATAL;
            if (event.event_type < 2)
                print_message("seed %u: event %s\n", seed, mrd_event_type_str(event.event_type));
            mrd_ack_async_event(&event);
        }
        assert_int_equal(fatal, 1);
        assert_int_equal(told, NQP + 1 - (dead < NQP));
        for (unsigned i = 0; i < NQP; i++)
            if (i != dead)
                assert_int_equal(mrd_destroy_qp(qp[i]), 0);
        assert_int_equal(mrd_destroy_qp(kept), 0);
        f->a.qp = NULL;
        assert_int_equal(((struct mrd_cq_impl *)(void *)f->a.cq)->reserved, 0);
        assert_int_equal(mrd_destroy_srq(srq), 0);
        f->b.qp = kept_b;
        fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
        fixture_end(f);
    }
}

/* The progress thread alone; the application sleeps on a channel, or on async_fd. */
static void fatal__wakes_sleepers(void **state)
{
    for (unsigned async = 0; async < 2; async++) {
        struct fixture *f;
        struct mrd_comp_channel *channel;
        struct mrd_qp_init_attr attr;
        struct mrd_async_event event;
        struct mrd_cq *cq;
        struct mrd_qp *qp, *kept;
        struct pollfd fd = {.events = POLLIN};

        (void)state;
        fixture_progress = MRD_PROGRESS_THREAD;
        f = open_impatient();
        fixture_progress = MRD_PROGRESS_MANUAL;
        fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_EAGER});
        kept = f->a.qp;
        channel = mrd_create_comp_channel(f->a.context);
        assert_non_null(channel);
        cq = mrd_create_cq_ex(f->a.context,
                              &(struct mrd_cq_init_attr){.cqe = 64, .channel = channel});
        assert_non_null(cq);
        assert_int_equal(mrd_query_qp(kept, &attr, sizeof(attr)), 0);
        attr.send_cq = attr.recv_cq = cq;
        attr.cap.max_recv_wr = 4;
        attr.cap.max_send_wr = 4;
        qp = f->a.qp = mrd_create_qp(f->a.pd, &attr);
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
        while (!mrd_get_async_event(f->a.context, &event))
            mrd_ack_async_event(&event);
        assert_int_equal(mrd_destroy_qp(qp), 0);
        assert_int_equal(mrd_destroy_cq(cq), 0);
        assert_int_equal(mrd_destroy_comp_channel(channel), 0);
        f->a.qp = kept;
        fixture_end(f);
    }
}

/* ------------------------------------------------------------------------------ calls that fail */

/*
 * A post that the device will never take loses its packets; those before it in the list were
 * posted.
 */
static void mrd_ibv_tx_burst__post_fails(void **state)
{
    static const int errors[] = {EINVAL, EIO, EAGAIN, ENOMEM};

    (void)state;
    for (unsigned takes = 1; takes < 9; takes++) {
        for (unsigned e = 0; e < 4; e++) {
            struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

            fixture_transfer(f, MRD_WR_SEND, 1000, 4);
            start_writes(f, 10, 50000);
            fake_ibv_set(&(struct fake_ibv_knobs){.post_takes = takes, .post_error = errors[e]});
            fixture_pass(f, 2 * MSEC_NS);
            fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
            finish_writes(f, 10, 50000);
            fixture_end(f);
        }
    }
}

/*
 * What a failed post left without a completion of its own: nothing is sent after it on that queue
 * pair, and still it completes.
 */
static void mrd_ibv_tx_burst__last_of_a_list_fails(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_RXE, "qp", true);
    const uint32_t payload = 3968;

    (void)state;
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    for (unsigned takes = 1; takes < 8; takes++) {
        start_writes(f, 1, payload * 32);
        fake_ibv_set(&(struct fake_ibv_knobs){.post_takes = takes, .post_error = EINVAL});
        finish_writes(f, 1, payload * 32);
    }
    fixture_end(f);
}

static void mrd_ibv_tx_burst__no_handle(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        fake_ibv_fail("ibv_create_ah", 1 + i % 3, ETIMEDOUT);
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 50000, 4);
    }
    (void)fake_ibv_fail_none();
    fixture_end(f);
}

static void mrd_ibv__polls_and_receives_fail(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        fake_ibv_fail("ibv_poll_cq", 1 + i, EIO);
        fake_ibv_fail("ibv_post_srq_recv", 1 + i % 3, ENOMEM);
        fixture_transfer(f, MRD_WR_SEND, 50000, 4);
        (void)fake_ibv_fail_none();
    }
    fixture_end(f);
}

/* --------------------------------------------------------------------------------------- memory */

struct dereg {
    struct fixture *f;
    int result;
};

static void *dereg_thread(void *arg)
{
    struct dereg *d = arg;

    d->result = mrd_dereg_mr(d->f->a.mr);
    return NULL;
}

/* Deregistering waits until the device has let go of the memory. */
static void mrd_dereg_mr__waits_for_the_device(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct dereg d = {.f = f, .result = 1};
    pthread_t thread;

    (void)state;
    fixture_transfer(f, MRD_WR_RDMA_WRITE, 100, 1);
    start_writes(f, 1, 50000);
    fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
    for (unsigned i = 0; i < 3; i++)
        fixture_turn(f);
    assert_int_equal(pthread_create(&thread, NULL, dereg_thread, &d), 0);
    usleep(50000);
    assert_int_equal(fake_ibv_calls("ibv_dereg_mr"), 0);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    pthread_join(thread, NULL);
    assert_int_equal(d.result, 0);
    f->a.mr = NULL;
    assert_int_equal(fake_ibv_calls("ibv_dereg_mr"), 1);
    assert_true(fixture_run(f, 1, 0));
    fixture_end(f);
}

/* Only so long: then it is busy, and can be tried again. */
static void mrd_dereg_mr__device_never_lets_go(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    (void)state;
    fixture_transfer(f, MRD_WR_RDMA_WRITE, 100, 1);
    start_writes(f, 1, 50000);
    fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
    fixture_turn(f);
    assert_int_equal(mrd_dereg_mr(f->a.mr), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "still reads"));
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    finish_writes(f, 1, 50000);
    fixture_end(f);
}

/*
 * A post that failed half-way leaves packets without a completion of their own: deregistering ends
 * all the same.
 */
static void mrd_dereg_mr__after_a_partial_post(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    (void)state;
    fixture_transfer(f, MRD_WR_RDMA_WRITE, 300000, 4);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_MANUAL});
    start_writes(f, 1, 40000);
    (void)mrd_progress(f->a.context);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_MANUAL, .post_total = 3});
    assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, 1, 0, 40000, 0), 0);
    (void)mrd_progress(f->a.context);
    assert_true(mrd_context_impl(f->a.context)->outbox.partial > 0);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    assert_int_equal(mrd_dereg_mr(f->a.mr), 0);
    f->a.mr = NULL;
    assert_true(fixture_run(f, 2, 0));
    fixture_end(f);
}

/* --------------------------------------------------------------------------------- close, sleep */

/* Whatever is under way: closing leaves nothing behind. */
static void mrd_close_device__in_the_middle(void **state)
{
    static const char *const entropies[] = {"ah", "qp", "qpair"};

    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        struct fixture *f =
            open_pair(i % 2 ? FAKE_IBV_MLX5 : FAKE_IBV_RXE, entropies[i % 3], i % 4);
        struct fake_ibv_knobs knobs = {.drop_ppm = i % 5 == 0 ? 1000000 : 10000};

        fixture_transfer(f, MRD_WR_SEND, 1000, 4);
        fake_ibv_set(&knobs);
        start_writes(f, 30, 50000);
        for (unsigned turn = 0; turn < i; turn++)
            fixture_turn(f);
        if (i % 7 == 3)
            fake_ibv_break_qp(f->device[0], fake_ibv_qpn(f->device[0], 0));
        fixture_end(f);
    }
}

/* The descriptor is readable when a packet came, and no packet is slept through. */
static void mrd_context_fd__tells_of_packets(void **state)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};

    (void)state;
    fds[0].fd = mrd_context_fd(f->a.context);
    fds[1].fd = mrd_context_fd(f->b.context);
    fixture_transfer(f, MRD_WR_RDMA_WRITE, 1000, 4);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_EAGER});
    for (unsigned i = 0; i < 50; i++) {
        unsigned slept = 0;

        fixture_pass(f, MSEC_NS);
        assert_int_equal(poll(fds, 2, 0), 0);
        f->a.num_wc = 0;
        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, 0, 0, 1000, 0), 0);
        while (!f->a.num_wc) {
            uint64_t a = mrd_next_timeout_ns(f->a.context), b = mrd_next_timeout_ns(f->b.context);
            uint64_t least = a < b ? a : b;

            if (poll(fds, 2, least == UINT64_MAX ? 1000 : (int)(least / MSEC_NS)) == 0)
                slept++;
            fixture_turn(f);
        }
        assert_true(slept < 100);
    }
    fixture_end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_ibv_qp_revive__any_of_them),
        cmocka_unit_test(mrd_ibv_qp_revive__fails),
        cmocka_unit_test(mrd_get_async_event__port),
        cmocka_unit_test(mrd_get_async_event__others),
        cmocka_unit_test(mrd_get_async_event__device_fatal),
        cmocka_unit_test(fatal__with_full_ring),
        cmocka_unit_test(fatal__queue_pair_made_after_device_fatal),
        cmocka_unit_test(fatal__with_reads),
        cmocka_unit_test(fatal__anytime),
        cmocka_unit_test(fatal__wakes_sleepers),
        cmocka_unit_test(mrd_ibv_tx_burst__post_fails),
        cmocka_unit_test(mrd_ibv_tx_burst__last_of_a_list_fails),
        cmocka_unit_test(mrd_ibv_tx_burst__no_handle),
        cmocka_unit_test(mrd_ibv__polls_and_receives_fail),
        cmocka_unit_test(mrd_dereg_mr__waits_for_the_device),
        cmocka_unit_test(mrd_dereg_mr__device_never_lets_go),
        cmocka_unit_test(mrd_dereg_mr__after_a_partial_post),
        cmocka_unit_test(mrd_close_device__in_the_middle),
        cmocka_unit_test(mrd_context_fd__tells_of_packets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
