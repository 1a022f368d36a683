/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake libibverbs does what the real one does: devices, objects, limits, states, events, failures. */
#include "tests/ibv/fake_ibv_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* ---------------------------------------------------------------------------------------- devices */

static void fake_ibv__devices_outlive_their_list_while_open(void **state)
{
    struct pair *p = *state;

    assert_string_equal(ibv_get_device_name(p->a.context->device), "mlx5_0");
    assert_string_equal(p->b.context->device->name, "mlx5_1");
    assert_int_equal(p->a.context->device->transport_type, IBV_TRANSPORT_IB);
    /* Numbers say nothing of whose they are. */
    assert_int_equal(p->a.qp->qp_num, p->b.qp->qp_num);
    assert_int_equal(p->a.mr->lkey, p->b.mr->lkey);
}

static void fake_ibv__queries(void **state)
{
    struct pair *p = *state;
    struct ibv_context *c = p->a.context;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct ibv_gid_entry entry, table[8];
    union ibv_gid gid;
    __be16 pkey;

    assert_int_equal(ibv_query_device(c, &attr), 0);
    assert_int_equal(attr.phys_port_cnt, 1);
    assert_int_equal(ibv_query_port(c, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.gid_tbl_len, 4);
    assert_int_equal(ibv_query_port(c, 2, &port), EINVAL);
    assert_int_equal(ibv_query_gid_ex(c, 1, 3, &entry, 0), 0);
    assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
    assert_int_equal(entry.gid.raw[15], 1);
    assert_int_equal(ibv_query_gid_ex(c, 1, 4, &entry, 0), EINVAL);
    fake_ibv_gid(p->a.device, 2, IBV_GID_TYPE_IB, NULL);
    assert_int_equal(ibv_query_gid_ex(c, 1, 2, &entry, 0), ENODATA);
    assert_int_equal(ibv_query_gid(c, 1, 2, &gid), 0);
    assert_int_equal(gid.global.interface_id, 0);
    assert_int_equal(ibv_query_gid_table(c, table, 8, 0), 3);
    assert_int_equal(table[2].gid_index, 3);
    assert_int_equal(ibv_query_pkey(c, 1, 0, &pkey), 0);
}

/* ---------------------------------------------------------------------------------------- objects */

static void fake_ibv__what_is_in_use_is_busy(void **state)
{
    struct pair *p = *state;

    assert_int_equal(ibv_destroy_cq(p->a.send_cq), EBUSY);
    assert_int_equal(ibv_destroy_cq(p->a.recv_cq), EBUSY);
    assert_int_equal(ibv_destroy_srq(p->a.srq), EBUSY);
    assert_int_equal(ibv_destroy_comp_channel(p->a.channel), EBUSY);
    assert_int_equal(ibv_dealloc_pd(p->a.pd), EBUSY);
    assert_int_equal(ibv_close_device(p->a.context), EBUSY);
    assert_int_equal(fake_ibv_problems(), 1); /* the real one would close */
    fake_ibv_clear_problems();
}

static void fake_ibv__limits(void **state)
{
    struct pair *p = *state;
    struct pair_end *a = &p->a;
    struct ibv_qp_init_attr init = {.send_cq = a->send_cq,
                                    .recv_cq = a->recv_cq,
                                    .qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = 1 << 20, .max_send_sge = 1}};
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1 << 20, .max_sge = 1}};
    struct ibv_ah_attr ah = {.port_num = 1};

    assert_null(ibv_create_qp(a->pd, &init));
    assert_int_equal(errno, EINVAL);
    a->device->attr.max_qp = 1;
    init.cap.max_send_wr = 1;
    assert_null(ibv_create_qp(a->pd, &init));
    assert_int_equal(errno, ENOMEM);
    init.qp_type = IBV_QPT_RC;
    assert_null(ibv_create_qp(a->pd, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(ibv_create_cq(a->context, a->device->attr.max_cqe + 1, NULL, NULL, 0));
    assert_null(ibv_create_cq(a->context, 1, NULL, NULL, 1));
    assert_null(ibv_create_srq(a->pd, &srq));
    a->device->attr.max_srq = 0;
    srq.attr.max_wr = 1;
    assert_null(ibv_create_srq(a->pd, &srq));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(ibv_create_ah(a->pd, &ah)); /* not global */
    assert_null(pair_ah(a, pair_gid(&p->b), 1 << 20));
    a->device->attr.max_ah = 1;
    assert_null(pair_ah(a, pair_gid(&p->b), 1));
    assert_int_equal(errno, ENOMEM);
}

static void fake_ibv__memory_limits(void **state)
{
    struct pair *p = *state;
    struct pair_end *a = &p->a;
    static uint8_t memory[8192];

    assert_null(ibv_reg_mr(a->pd, memory, 0, 0));
    assert_null(ibv_reg_mr(a->pd, memory, 64, IBV_ACCESS_REMOTE_WRITE));
    assert_int_equal(errno, EINVAL);
    a->device->memlock_bytes = PAIR_BYTES + 4096;
    assert_null(ibv_reg_mr(a->pd, memory, 4097, 0));
    assert_int_equal(errno, ENOMEM);

    struct ibv_mr *mr = ibv_reg_mr(a->pd, memory, 4096, 0);

    assert_non_null(mr);
    assert_int_not_equal(mr->lkey, a->mr->lkey);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    a->device->attr.max_mr_size = 64;
    assert_null(ibv_reg_mr(a->pd, memory, 65, 0));
}

/* Every state by its proper step, with what the step demands. */
static void fake_ibv__states(void **state)
{
    struct pair *p = *state;
    struct ibv_qp *qp = pair_qp(&p->a, false);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .port_num = 1};
    struct ibv_qp_init_attr init;
    const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
    attr.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &attr, to_init & ~IBV_QP_QKEY), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, &attr, to_init | IBV_QP_AV), EINVAL);
    attr.port_num = 2;
    assert_int_equal(ibv_modify_qp(qp, &attr, to_init), EINVAL);
    pair_qp_ready(qp);
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(attr.qkey, PAIR_QKEY);
    assert_int_equal(init.cap.max_send_wr, PAIR_DEPTH);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    pair_qp_ready(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* ---------------------------------------------------------------------------------------- events */

/* A completion raises one event after a request, and none before it. */
static void fake_ibv__completion_events(void **state)
{
    struct pair *p = *state;
    struct ibv_cq *cq;
    void *cq_context;
    struct ibv_wc wc;

    pair_recv(&p->b, 1, 0);
    pair_recv(&p->b, 2, 8192);
    pair_recv(&p->b, 3, 16384);
    assert_int_equal(pair_post(&p->a, &p->b, 1, 0, 100, 0), 0);
    assert_true(pair_poll(p->b.recv_cq, &wc));
    assert_false(readable(p->b.channel->fd));
    assert_int_equal(ibv_req_notify_cq(p->b.recv_cq, 0), 0);
    assert_int_equal(pair_post(&p->a, &p->b, 2, 0, 100, 0), 0);
    assert_int_equal(pair_post(&p->a, &p->b, 3, 0, 100, 0), 0);
    assert_true(pair_poll(p->a.send_cq, &wc)); /* lets them go */
    assert_true(readable(p->b.channel->fd));
    assert_int_equal(ibv_get_cq_event(p->b.channel, &cq, &cq_context), 0);
    assert_ptr_equal(cq, p->b.recv_cq);
    assert_ptr_equal(cq_context, &p->b);
    assert_false(readable(p->b.channel->fd));
    ibv_ack_cq_events(cq, 1);
}

/* Only what the sender marked, or an error, wakes those who asked for solicited ones. */
static void fake_ibv__solicited_events(void **state)
{
    struct pair *p = *state;
    struct ibv_cq *cq;
    void *cq_context;
    struct ibv_wc wc;

    pair_recv(&p->b, 1, 0);
    pair_recv(&p->b, 2, 8192);
    assert_int_equal(ibv_req_notify_cq(p->b.recv_cq, 1), 0);
    assert_int_equal(pair_post(&p->a, &p->b, 1, 0, 100, 0), 0);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_false(readable(p->b.channel->fd));
    assert_int_equal(pair_post(&p->a, &p->b, 1, 0, 100, IBV_SEND_SOLICITED), 0);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_true(readable(p->b.channel->fd));
    assert_int_equal(ibv_get_cq_event(p->b.channel, &cq, &cq_context), 0);
    ibv_ack_cq_events(cq, 1);
}

static void fake_ibv__device_events(void **state)
{
    struct pair *p = *state;
    struct ibv_context *c = p->a.context;
    struct ibv_async_event event;
    struct ibv_port_attr attr;

    assert_int_equal(fcntl(c->async_fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(ibv_get_async_event(c, &event), -1);
    assert_int_equal(errno, EAGAIN);
    fake_ibv_port(p->a.device, 1, IBV_PORT_DOWN);
    fake_ibv_port(p->a.device, 1, IBV_PORT_DOWN);
    assert_true(readable(c->async_fd));
    assert_false(readable(p->b.context->async_fd));
    assert_int_equal(ibv_get_async_event(c, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
    assert_int_equal(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    assert_int_equal(ibv_query_port(c, 1, &attr), 0);
    assert_int_equal(attr.state, IBV_PORT_DOWN);
    fake_ibv_port(p->a.device, 1, IBV_PORT_ACTIVE);
    fake_ibv_srq_limit(p->a.device);
    assert_int_equal(ibv_get_async_event(c, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&event);
    assert_int_equal(ibv_get_async_event(c, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(event.element.srq, p->a.srq);
    ibv_ack_async_event(&event);
    assert_false(readable(c->async_fd));
}

/* The events of an object go with it; one that was taken must be acknowledged first. */
static void fake_ibv__events_of_a_destroyed_qp(void **state)
{
    struct pair *p = *state;
    struct ibv_async_event event;
    struct ibv_qp *qp = pair_qp(&p->a, false);

    assert_int_equal(fcntl(p->a.context->async_fd, F_SETFL, O_NONBLOCK), 0);
    assert_true(fake_ibv_break_qp(p->a.device, qp->qp_num));
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_get_async_event(p->a.context, &event), -1);
    assert_true(fake_ibv_break_qp(p->a.device, p->a.qp->qp_num));
    assert_int_equal(ibv_get_async_event(p->a.context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
    ibv_ack_async_event(&event);
    assert_int_equal(fake_ibv_problems(), 0);
    assert_false(fake_ibv_break_qp(p->a.device, 0x999));
}

static void fake_ibv__a_fatal_device(void **state)
{
    struct pair *p = *state;
    struct ibv_async_event event;
    struct ibv_device_attr attr;
    struct ibv_wc wc;

    assert_int_equal(pair_post(&p->a, &p->b, 1, 0, 100, 0), 0);
    fake_ibv_fatal(p->a.device);
    assert_int_equal(pair_post(&p->a, &p->b, 1, 0, 100, 0), EIO);
    assert_int_equal(ibv_query_device(p->a.context, &attr), EIO);
    assert_false(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(ibv_get_async_event(p->a.context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&event);
}

/* ---------------------------------------------------------------------------------------- failures */

static void fake_ibv_fail__nth_call(void **state)
{
    struct pair *p = *state;
    struct ibv_pd *first, *third;
    unsigned calls = fake_ibv_calls("ibv_alloc_pd");

    fake_ibv_fail("ibv_alloc_pd", 2, EPERM);
    first = ibv_alloc_pd(p->a.context);
    assert_non_null(first);
    assert_null(ibv_alloc_pd(p->a.context));
    assert_int_equal(errno, EPERM);
    third = ibv_alloc_pd(p->a.context);
    assert_non_null(third);
    assert_int_equal(fake_ibv_calls("ibv_alloc_pd"), calls + 3);
    assert_false(fake_ibv_fail_none());
    fake_ibv_fail("ibv_alloc_pd", 1, EPERM);
    assert_true(fake_ibv_fail_none());
    assert_int_equal(ibv_dealloc_pd(first), 0);
    assert_int_equal(ibv_dealloc_pd(third), 0);
}

static void fake_ibv_end__tells_leaks(void **state)
{
    struct ibv_device **list;
    struct ibv_context *c;

    (void)state;
    fake_ibv_begin(1);
    fake_ibv_add(FAKE_IBV_RXE, "rxe0");
    list = ibv_get_device_list(NULL);
    c = ibv_open_device(list[0]);
    assert_int_equal(fake_ibv_objects(), 2);
    assert_int_equal(fake_ibv_end(), 2);
    ibv_free_device_list(list);
    assert_int_equal(ibv_close_device(c), 0);
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(fake_ibv__devices_outlive_their_list_while_open),
        PAIR_TEST(fake_ibv__queries),
        PAIR_TEST(fake_ibv__what_is_in_use_is_busy),
        PAIR_TEST(fake_ibv__limits),
        PAIR_TEST(fake_ibv__memory_limits),
        PAIR_TEST(fake_ibv__states),
        PAIR_TEST(fake_ibv__completion_events),
        PAIR_TEST(fake_ibv__solicited_events),
        PAIR_TEST(fake_ibv__device_events),
        PAIR_TEST(fake_ibv__events_of_a_destroyed_qp),
        PAIR_TEST(fake_ibv__a_fatal_device),
        PAIR_TEST(fake_ibv_fail__nth_call),
        cmocka_unit_test(fake_ibv_end__tells_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
