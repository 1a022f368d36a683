/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues through the public calls: what is refused, and events that wake sleepers. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "tests/unit/context_fixture.h"

enum { BYTES = 100, RECEIVES = 4, TURNS = 100000 };

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_mr *mr;
    char memory[RECEIVES * BYTES];
};

FIXTURE(world)
{
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

FIXTURE_SETUP(world)
{
    open_end(&self->from);
    open_end(&self->to);
    self->srq = mrd_create_srq(self->to.pd, &(struct mrd_srq_init_attr){
                                                .srq_context = self, .attr = {.max_wr = RECEIVES}});
    assert_non_null(self->srq);
    assert_ptr_equal(self->srq->srq_context, self);
    self->sender = make_qp(&self->from, NULL);
    for (unsigned i = 0; i < 2; i++)
        self->qp[i] = make_qp(&self->to, self->srq);
    self->ah = ah_to(self->from.pd, self->to.context);
}

FIXTURE_TEARDOWN(world)
{
    assert_int_equal(mrd_destroy_srq(self->srq), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "queue pair"));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(mrd_destroy_qp(self->qp[i]), 0);
    assert_int_equal(mrd_destroy_srq(self->srq), 0);
    assert_int_equal(mrd_destroy_ah(self->ah), 0);
    assert_int_equal(mrd_destroy_qp(self->sender), 0);
    close_end(&self->from);
    close_end(&self->to);
}

static void post_recv(struct world *w, uint64_t id)
{
    struct mrd_sge sge = {(uintptr_t)w->to.memory + id * BYTES, BYTES, w->to.mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_srq_recv(w->srq, &wr, &bad), 0);
}

/* A message arrives at queue pair i, in that receive. */
static void send(struct world *w, unsigned i, uint64_t id)
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

TEST_F(world, mrd_post_srq_recv__for_any_of_its_queue_pairs)
{
    struct mrd_recv_wr wr = {0}, *bad = NULL;
    struct mrd_qp_init_attr attr;

    assert_int_equal(mrd_post_recv(self->qp[0], &wr, &bad), -EINVAL);
    assert_ptr_equal(bad, &wr);
    assert_non_null(strstr(mrd_last_error(), "shared receive queue"));
    assert_int_equal(mrd_query_qp(self->qp[0], &attr, sizeof(attr)), 0);
    assert_ptr_equal(attr.srq, self->srq);
    for (uint64_t id = 0; id < RECEIVES; id++)
        post_recv(self, id);
    for (uint64_t id = 0; id < RECEIVES; id++)
        send(self, id % 2, id);
}

TEST_F(world, mrd_create_srq__refuses)
{
    static const struct {
        struct mrd_srq_init_attr attr;
        const char *said;
    } table[] = {{{.comp_mask = 4, .attr = {.max_wr = 1}}, "comp_mask"},
                 {{.attr = {.max_wr = 0}}, "1 to 1048576"},
                 {{.attr = {.max_wr = (1 << 20) + 1}}, "1 to 1048576"},
                 {{.attr = {.max_wr = 1, .max_sge = 17}}, "16 entries"}};
    struct mrd_qp_init_attr attr = {0};
    struct mrd_srq *other;

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        refused(mrd_create_srq(self->to.pd, &table[i].attr), EINVAL, table[i].said);
    other = (mrd_create_srq)(self->from.pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 1}});
    assert_non_null(other);
    attr.send_cq = attr.recv_cq = self->to.cq;
    attr.srq = other;
    refused(mrd_create_qp(self->to.pd, &attr), EINVAL, "another context");
    assert_int_equal(mrd_close_device(self->from.context), -EBUSY);
    assert_int_equal(mrd_destroy_srq(other), 0);
}

static bool readable(const struct mrd_context *context)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* The event can be slept for, names the queue, and must be given back. */
TEST_F(world, mrd_modify_srq__limit)
{
    struct mrd_srq_attr attr = {.srq_limit = 2};
    struct mrd_async_event event;

    for (uint64_t id = 0; id < 3; id++)
        post_recv(self, id);
    assert_int_equal(mrd_modify_srq(self->srq, &attr, 1 << 5), -EINVAL);
    assert_int_equal(mrd_modify_srq(self->srq, &attr, MRD_SRQ_LIMIT), 0);
    send(self, 0, 0);
    assert_false(readable(self->to.context));
    send(self, 1, 1);
    mrd_progress(self->to.context);
    assert_true(readable(self->to.context));
    assert_int_equal(mrd_query_srq(self->srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 0);
    assert_int_equal(attr.max_wr, RECEIVES);
    assert_int_equal(attr.max_sge, 1);
    assert_int_equal(mrd_get_async_event(self->to.context, &event), 0);
    assert_int_equal(event.event_type, MRD_EVENT_SRQ_LIMIT_REACHED);
    assert_string_equal(mrd_event_type_str(event.event_type), "shared receive queue limit reached");
    assert_ptr_equal(event.element.srq, self->srq);
    assert_int_equal(event.peer_id, 0);
    assert_non_null(strstr(event.address, "127.0.0.1:"));
    assert_false(readable(self->to.context));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mrd_destroy_qp(self->qp[i]), 0);
        self->qp[i] = make_qp(&self->to, NULL);
    }
    assert_int_equal(mrd_destroy_srq(self->srq), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "not acked"));
    mrd_ack_async_event(&event);
    /* There is one receive: a limit of 3 is reached at once. The event goes with its queue. */
    attr.srq_limit = 3;
    assert_int_equal(mrd_modify_srq(self->srq, &attr, MRD_SRQ_LIMIT), 0);
    assert_true(readable(self->to.context));
    assert_int_equal(mrd_destroy_srq(self->srq), 0);
    assert_int_equal(mrd_get_async_event(self->to.context, &event), -EAGAIN);
    assert_false(readable(self->to.context));
    self->srq = mrd_create_srq(self->to.pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 1}});
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mrd_destroy_qp(self->qp[i]), 0);
        self->qp[i] = make_qp(&self->to, self->srq);
    }
}
