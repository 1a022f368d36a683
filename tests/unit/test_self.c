/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls whose effect a queue pair shows that sends to itself, over the loopback. */
#include <errno.h>
#include <poll.h>

#include "tests/unit/context_fixture.h"

/* The request goes to the queue pair itself; its handle is to be destroyed. */
static void aim_at_self(struct mrd_qp *qp, struct mrd_send_wr *wr, char address[MRD_ADDRESS_MAX])
{
    assert_int_equal(mrd_query_address(qp->context, address, MRD_ADDRESS_MAX), 0);
    wr->ud.ah = mrd_create_ah(qp->pd, address);
    assert_non_null(wr->ud.ah);
    wr->ud.remote_qpn = qp->qp_num;
}

/* A queue pair that is connected with itself, as some programs do, bound to one address and to all. */
TEST(mrd_modify_qp__connects_with_itself)
{
    for (unsigned bound = 0; bound < 2; bound++) {
        struct mrd_context *context = bound ? open_local(NULL) : mrd_open_device(NULL, NULL);
        struct mrd_pd *pd = mrd_alloc_pd(context);
        struct mrd_cq *cq = mrd_create_cq(context, 2, NULL);
        struct mrd_qp_init_attr init = {.comp_mask = MRD_QP_INIT_ATTR_STATE,
                                        .qp_state = MRD_QPS_INIT,
                                        .send_cq = cq,
                                        .recv_cq = cq,
                                        .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
        struct mrd_qp *qp = mrd_create_qp(pd, &init);
        struct mrd_recv_wr recv = {.wr_id = 1}, *bad_recv;
        struct mrd_send_wr *bad, send = {.opcode = MRD_WR_SEND, .send_flags = MRD_SEND_SIGNALED};
        char address[MRD_ADDRESS_MAX];
        struct mrd_wc wc[2];

        assert_non_null(qp);
        aim_at_self(qp, &send, address);
        assert_int_equal(mrd_post_recv(qp, &recv, &bad_recv), 0);
        assert_int_equal(mrd_post_send(qp, &send, &bad), -EINVAL);
        assert_int_equal(mrd_modify_qp(qp,
                                       &(struct mrd_qp_attr){.qp_state = MRD_QPS_RTS,
                                                             .dest_ah = send.ud.ah,
                                                             .dest_qp_num = qp->qp_num},
                                       MRD_QP_STATE | MRD_QP_DEST),
                         0);
        assert_int_equal(mrd_post_send(qp, &send, &bad), 0);
        for (int n = 0; n < 2; n += mrd_poll_cq(cq, 2 - n, wc + n))
            ;
        assert_int_equal(wc[0].status, MRD_WC_SUCCESS);
        assert_int_equal(wc[1].status, MRD_WC_SUCCESS);
        assert_int_equal(mrd_destroy_ah(send.ud.ah), 0);
        assert_int_equal(mrd_destroy_qp(qp), 0);
        assert_int_equal(mrd_destroy_cq(cq), 0);
        assert_int_equal(mrd_dealloc_pd(pd), 0);
        assert_int_equal(mrd_close_device(context), 0);
    }
}

/* What was refused is told with the address of who asked, here the context's own. */
TEST_F(local, mrd_get_async_event__refused)
{
    struct mrd_cq *cq = mrd_create_cq(self->context, 2, NULL);
    struct mrd_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1}, .events = MRD_QP_TELL_REFUSED};
    struct mrd_qp *qp = mrd_create_qp(self->pd, &init);
    struct mrd_send_wr *bad, send = {.opcode = MRD_WR_SEND, .send_flags = MRD_SEND_SIGNALED};
    char address[MRD_ADDRESS_MAX];
    struct mrd_async_event event;
    struct pollfd fd = {.fd = self->context->async_fd, .events = POLLIN};
    struct mrd_wc wc;

    assert_non_null(qp);
    aim_at_self(qp, &send, address);
    send.ud.remote_qkey = 1;
    assert_int_equal(mrd_post_send(qp, &send, &bad), 0);
    while (!mrd_poll_cq(cq, 1, &wc))
        ;
    assert_int_equal(wc.status, MRD_WC_REM_INV_REQ_ERR);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(mrd_get_async_event(self->context, &event), 0);
    assert_int_equal(event.event_type, MRD_EVENT_QP_REFUSED);
    assert_ptr_equal(event.element.qp, qp);
    assert_int_equal(event.peer_id, wc.peer_id);
    assert_string_equal(event.address, address);
    assert_int_equal(mrd_destroy_qp(qp), -EBUSY);
    mrd_ack_async_event(&event);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_get_async_event(self->context, &event), -EAGAIN);
    assert_int_equal(mrd_destroy_ah(send.ud.ah), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
}

/* What waits and what is reserved stays, and keeps its order; less than that is refused. */
TEST_F(local, mrd_resize_cq__keeps_what_waits)
{
    enum { RECEIVES = 20, FEW = 3 };
    struct mrd_cq *send_cq = mrd_create_cq(self->context, 1, NULL),
                  *cq = mrd_create_cq(self->context, FEW, NULL);
    struct mrd_qp_init_attr init = {.send_cq = send_cq,
                                    .recv_cq = cq,
                                    .order = MRD_ORDER_MSG,
                                    .cap = {.max_send_wr = RECEIVES, .max_recv_wr = RECEIVES}};
    struct mrd_qp *qp = mrd_create_qp(self->pd, &init);
    struct mrd_recv_wr recv = {0}, *bad_recv;
    struct mrd_send_wr *bad, send = {.opcode = MRD_WR_SEND};
    char address[MRD_ADDRESS_MAX];
    struct mrd_wc wc;

    assert_non_null(qp);
    aim_at_self(qp, &send, address);
    for (; recv.wr_id < FEW; recv.wr_id++)
        assert_int_equal(mrd_post_recv(qp, &recv, &bad_recv), 0);
    assert_int_equal(mrd_post_recv(qp, &recv, &bad_recv), -ENOMEM);
    assert_int_equal(mrd_resize_cq(cq, FEW - 1), -EINVAL);
    assert_int_equal(cq->cqe, FEW);
    assert_int_equal(mrd_resize_cq(cq, RECEIVES), 0);
    assert_int_equal(cq->cqe, RECEIVES);
    for (; recv.wr_id < RECEIVES; recv.wr_id++)
        assert_int_equal(mrd_post_recv(qp, &recv, &bad_recv), 0);
    assert_int_equal(mrd_post_recv(qp, &recv, &bad_recv), -ENOMEM);
    for (unsigned i = 0; i < RECEIVES; i++) {
        while (mrd_post_send(qp, &send, &bad)) /* no room until the last one is acked */
            mrd_poll_cq(send_cq, 1, &wc);
        if (i == RECEIVES / 2) {
            while (!mrd_poll_cq(cq, 1, &wc))
                ;
            assert_int_equal(wc.wr_id, 0);
        }
        /* Some wait, others are still reserved for. */
        assert_int_equal(mrd_resize_cq(cq, i % 2 ? 1000 : RECEIVES), 0);
    }
    for (unsigned i = 1; i < RECEIVES; i++) {
        while (!mrd_poll_cq(cq, 1, &wc))
            ;
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, MRD_WC_SUCCESS);
        assert_int_equal(mrd_resize_cq(cq, i < RECEIVES - 1 ? (int)(RECEIVES - 1 - i) : 1), 0);
    }
    assert_int_equal(mrd_resize_cq(cq, 0), -EINVAL);
    assert_int_equal(mrd_resize_cq(cq, (1 << 24) + 1), -EINVAL);
    assert_int_equal(cq->cqe, 1);
    assert_int_equal(mrd_destroy_ah(send.ud.ah), 0);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_destroy_cq(send_cq), 0);
}

/* Who only takes completions handles no packet: the progress thread does, or who calls mrd_progress(). */
TEST(mrd_take_cq__leaves_progress_to_others)
{
    for (unsigned manual = 0; manual < 2; manual++) {
        struct mrd_context *context = open_local(&(struct mrd_context_attr){
            .progress = manual ? MRD_PROGRESS_MANUAL : MRD_PROGRESS_THREAD});
        struct mrd_pd *pd = mrd_alloc_pd(context);
        struct mrd_cq *cq = mrd_create_cq(context, 2, NULL);
        struct mrd_qp_init_attr init = {
            .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
        struct mrd_qp *qp = mrd_create_qp(pd, &init);
        struct mrd_recv_wr recv = {.wr_id = 1}, *bad_recv;
        struct mrd_send_wr *bad, send = {.opcode = MRD_WR_SEND, .send_flags = MRD_SEND_SIGNALED};
        char address[MRD_ADDRESS_MAX];
        struct mrd_wc wc[2];

        aim_at_self(qp, &send, address);
        assert_int_equal(mrd_post_recv(qp, &recv, &bad_recv), 0);
        assert_int_equal(mrd_post_send(qp, &send, &bad), 0);
        assert_int_equal(mrd_take_cq(cq, -1, wc), -EINVAL);
        for (int i = 0; manual && i < 10000; i++)
            assert_int_equal(mrd_take_cq(cq, 2, wc), 0);
        for (int n = 0; n < 2; n += mrd_take_cq(cq, 2 - n, wc + n))
            if (manual)
                assert_true(mrd_progress(context) >= 0);
        assert_int_equal(wc[0].status, MRD_WC_SUCCESS);
        assert_int_equal(wc[1].status, MRD_WC_SUCCESS);
        assert_int_equal(mrd_destroy_ah(send.ud.ah), 0);
        assert_int_equal(mrd_destroy_qp(qp), 0);
        assert_int_equal(mrd_destroy_cq(cq), 0);
        assert_int_equal(mrd_dealloc_pd(pd), 0);
        assert_int_equal(mrd_close_device(context), 0);
    }
}

/* Work goes on without the handle that it was posted with. */
TEST_F(local, mrd_destroy_ah__work_goes_on)
{
    struct mrd_cq *cq = mrd_create_cq(self->context, 2, NULL);
    struct mrd_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
    struct mrd_qp *qp = mrd_create_qp(self->pd, &init);
    struct mrd_recv_wr recv = {.wr_id = 1}, *bad_recv;
    struct mrd_send_wr *bad, send = {.wr_id = 2, .opcode = MRD_WR_SEND};
    struct mrd_wc wc[2];
    char address[MRD_ADDRESS_MAX];

    assert_non_null(qp);
    send.send_flags = MRD_SEND_SIGNALED;
    aim_at_self(qp, &send, address);
    assert_int_equal(mrd_post_recv(qp, &recv, &bad_recv), 0);
    assert_int_equal(mrd_post_send(qp, &send, &bad), 0);
    assert_int_equal(mrd_destroy_ah(send.ud.ah), 0);
    for (int n = 0; n < 2; n += mrd_poll_cq(cq, 2 - n, wc + n))
        ;
    assert_int_equal(wc[0].status, MRD_WC_SUCCESS);
    assert_int_equal(wc[1].status, MRD_WC_SUCCESS);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
}
