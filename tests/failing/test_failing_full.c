/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues that are full. Posting reserves room: a post that finds none is refused, and a
 * message of a shared receive waits at its sender. No completion is lost, and none comes twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mrd/mrd.h"
#include "tests/kit/kit.h"

enum { DEPTH = 64, BYTES = 64, MESSAGES = 500, PATIENCE_S = 30 };

/* Two ends in one process. */
FIXTURE(full)
{
    struct mrd_context *context[2];
    struct mrd_pd *pd[2];
    struct mrd_cq *send_cq, *recv_cq;
    struct mrd_srq *srq;
    struct mrd_qp *from, *to, *to_shared;
    struct mrd_mr *mr[2];
    struct mrd_ah *ah;
    uint8_t out[BYTES], in[DEPTH][BYTES];
    bool seen[MESSAGES];
    uint32_t num_seen;
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct mrd_qp *make_qp(struct mrd_pd *pd, struct mrd_cq *cq, struct mrd_srq *srq)
{
    struct mrd_qp *qp = mrd_create_qp(
        pd,
        &(struct mrd_qp_init_attr){.send_cq = cq,
                                   .recv_cq = cq,
                                   .srq = srq,
                                   .cap = {.max_send_wr = DEPTH, .max_recv_wr = srq ? 0 : DEPTH}});

    assert_non_null(qp);
    return qp;
}

FIXTURE_SETUP(full)
{
    char address[MRD_ADDRESS_MAX];

    for (unsigned i = 0; i < 2; i++) {
        self->context[i] =
            mrd_open_device(NULL, &(struct mrd_context_attr){.address = "127.0.0.1",
                                                             .progress = MRD_PROGRESS_MANUAL});
        assert_non_null(self->context[i]);
        self->pd[i] = mrd_alloc_pd(self->context[i]);
        assert_non_null(self->pd[i]);
    }
    self->send_cq = mrd_create_cq(self->context[0], 4, NULL);
    self->recv_cq = mrd_create_cq(self->context[1], 4, NULL);
    assert_true(self->send_cq && self->recv_cq);
    self->srq = mrd_create_srq(self->pd[1], &(struct mrd_srq_init_attr){.attr = {.max_wr = DEPTH}});
    assert_non_null(self->srq);
    self->from = make_qp(self->pd[0], self->send_cq, NULL);
    self->to = make_qp(self->pd[1], self->recv_cq, NULL);
    self->to_shared = make_qp(self->pd[1], self->recv_cq, self->srq);
    self->mr[0] = mrd_reg_mr(self->pd[0], self->out, sizeof(self->out), 0);
    self->mr[1] = mrd_reg_mr(self->pd[1], self->in, sizeof(self->in), MRD_ACCESS_LOCAL_WRITE);
    assert_true(self->mr[0] && self->mr[1]);
    assert_int_equal(mrd_query_address(self->context[1], address, sizeof(address)), 0);
    self->ah = mrd_create_ah(self->pd[0], address);
    assert_non_null(self->ah);
}

FIXTURE_TEARDOWN(full)
{
    assert_int_equal(mrd_destroy_qp(self->from), 0);
    assert_int_equal(mrd_destroy_qp(self->to), 0);
    assert_int_equal(mrd_destroy_qp(self->to_shared), 0);
    assert_int_equal(mrd_destroy_srq(self->srq), 0);
    assert_int_equal(mrd_destroy_cq(self->send_cq), 0);
    assert_int_equal(mrd_destroy_cq(self->recv_cq), 0);
    assert_int_equal(mrd_destroy_ah(self->ah), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mrd_dereg_mr(self->mr[i]), 0);
        assert_int_equal(mrd_dealloc_pd(self->pd[i]), 0);
        assert_int_equal(mrd_close_device(self->context[i]), 0);
    }
}

static int post_send(struct full *self, struct mrd_qp *to, uint32_t number, unsigned flags)
{
    struct mrd_sge sge = {(uintptr_t)self->out, BYTES, self->mr[0]->lkey};
    struct mrd_send_wr wr = {.wr_id = number,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND_WITH_IMM,
                             .imm_data = number,
                             .send_flags = flags,
                             .ud = {.ah = self->ah, .remote_qpn = to->qp_num}},
                       *bad = NULL;
    int error = mrd_post_send(self->from, &wr, &bad);

    assert_true(!error == !bad);
    return error;
}

static int post_receive(struct full *self, bool shared, uint32_t slot)
{
    struct mrd_sge sge = {(uintptr_t)self->in[slot], BYTES, self->mr[1]->lkey};
    struct mrd_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    return shared ? mrd_post_srq_recv(self->srq, &wr, &bad) : mrd_post_recv(self->to, &wr, &bad);
}

static void patience(uint64_t since_ns)
{
    if (now_ns() - since_ns > PATIENCE_S * 1000000000ull)
        fail_msg("nothing comes in %d s", PATIENCE_S);
}

/* Takes a message that came; its receive is posted again. */
static void take_received(struct full *self, bool shared)
{
    struct mrd_wc wc;
    int num = mrd_poll_cq(self->recv_cq, 1, &wc);

    assert_true(num >= 0);
    if (!num)
        return;
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_true(wc.imm_data < MESSAGES && !self->seen[wc.imm_data]);
    self->seen[wc.imm_data] = true;
    self->num_seen++;
    assert_int_equal(post_receive(self, shared, (uint32_t)wc.wr_id), 0);
}

/* As many sends as there is room for completions; the next one is refused until one is taken. */
TEST_F(full, failing_full__posts_are_refused)
{
    uint64_t since_ns = now_ns();
    struct mrd_wc wc;

    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(post_receive(self, false, i), 0);
        assert_int_equal(post_send(self, self->to, i, MRD_SEND_SIGNALED), 0);
    }
    assert_int_equal(post_receive(self, false, 4), -ENOMEM);
    assert_non_null(strstr(mrd_last_error(), "completion queue"));
    assert_int_equal(post_send(self, self->to, 4, MRD_SEND_SIGNALED), -ENOMEM);
    assert_non_null(strstr(mrd_last_error(), "completion queue"));
    /* An unsignaled one may fail, and reserves as well. */
    assert_int_equal(post_send(self, self->to, 4, 0), -ENOMEM);
    for (int num = 0; !num; patience(since_ns)) {
        (void)mrd_progress(self->context[1]);
        num = mrd_poll_cq(self->send_cq, 1, &wc);
    }
    assert_int_equal(post_send(self, self->to, 4, MRD_SEND_SIGNALED), 0);
    assert_int_equal(post_send(self, self->to, 5, MRD_SEND_SIGNALED), -ENOMEM);
}

/* Sends as fast as there is room, to who takes completions one by one, late, or both ways. */
static void pour(struct full *self, struct mrd_qp *to, bool shared, unsigned late)
{
    uint64_t since_ns = now_ns();
    uint32_t posted = 0, sent = 0, turn = 0;
    struct mrd_wc wc[2];

    while (sent < MESSAGES || self->num_seen < MESSAGES) {
        int num;

        while (posted < MESSAGES && !post_send(self, to, posted, MRD_SEND_SIGNALED))
            posted++;
        num = mrd_poll_cq(self->send_cq, 2, wc);
        assert_true(num >= 0);
        for (int i = 0; i < num; i++)
            assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
        sent += (uint32_t)num;
        if (++turn % late == 0)
            take_received(self, shared);
        else
            (void)mrd_progress(self->context[1]);
        patience(since_ns);
    }
    assert_int_equal(mrd_poll_cq(self->send_cq, 2, wc), 0);
    assert_int_equal(mrd_poll_cq(self->recv_cq, 2, wc), 0);
}

TEST_F(full, failing_full__slow_receiver)
{
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(post_receive(self, false, i), 0);
    pour(self, self->to, false, 5);
}

/* More receives than the queue has room: messages beyond it wait at their sender. */
TEST_F(full, failing_full__shared_receives)
{
    for (uint32_t i = 0; i < DEPTH; i++)
        assert_int_equal(post_receive(self, true, i), 0);
    pour(self, self->to_shared, true, 5);
}

/* Nobody takes anything for a while: what came stays, and the others wait. A larger queue takes more. */
TEST_F(full, failing_full__nobody_polls)
{
    uint64_t since_ns = now_ns();
    struct mrd_wc wc[DEPTH];
    uint32_t posted = 0;

    assert_int_equal(mrd_resize_cq(self->send_cq, DEPTH), 0);
    for (uint32_t i = 0; i < DEPTH; i++)
        assert_int_equal(post_receive(self, true, i), 0);
    while (posted < DEPTH && !post_send(self, self->to_shared, posted, MRD_SEND_SIGNALED))
        posted++;
    assert_int_equal(posted, DEPTH);
    while (now_ns() - since_ns < 100000000) {
        (void)mrd_progress(self->context[0]);
        (void)mrd_progress(self->context[1]);
    }
    assert_int_equal(mrd_resize_cq(self->recv_cq, 3), -EINVAL); /* four wait */
    assert_int_equal(mrd_resize_cq(self->recv_cq, DEPTH), 0);
    for (uint32_t num = 0; num < DEPTH; patience(since_ns)) {
        int got = mrd_take_cq(self->recv_cq, DEPTH, wc);

        assert_true(got >= 0);
        for (int i = 0; i < got; i++) {
            assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
            assert_false(self->seen[wc[i].imm_data]);
            self->seen[wc[i].imm_data] = true;
        }
        num += (uint32_t)got;
        (void)mrd_progress(self->context[0]);
        (void)mrd_progress(self->context[1]);
    }
}
