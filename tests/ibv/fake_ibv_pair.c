/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/ibv/fake_ibv_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { GID_INDEX = 3 }; /* RoCEv2 of the IPv4 address */

static void end_open(struct pair_end *end, struct ibv_device *device)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = PAIR_SRQ, .max_sge = 2}};

    end->context = ibv_open_device(device);
    assert_non_null(end->context);
    end->pd = ibv_alloc_pd(end->context);
    end->channel = ibv_create_comp_channel(end->context);
    end->send_cq = ibv_create_cq(end->context, 2 * PAIR_DEPTH, NULL, end->channel, 0);
    end->recv_cq = ibv_create_cq(end->context, 2 * PAIR_SRQ, end, end->channel, 0);
    end->srq = ibv_create_srq(end->pd, &srq);
    end->memory = calloc(1, PAIR_BYTES);
    end->mr = ibv_reg_mr(end->pd, end->memory, PAIR_BYTES, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(end->mr);
    end->qp = pair_qp(end, true);
    pair_qp_ready(end->qp);
}

static void end_close(struct pair_end *end)
{
    if (end->qp)
        assert_int_equal(ibv_destroy_qp(end->qp), 0);
    assert_int_equal(ibv_destroy_ah(end->ah), 0);
    assert_int_equal(ibv_destroy_srq(end->srq), 0);
    assert_int_equal(ibv_destroy_cq(end->send_cq), 0);
    assert_int_equal(ibv_destroy_cq(end->recv_cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(end->channel), 0);
    if (end->mr)
        assert_int_equal(ibv_dereg_mr(end->mr), 0);
    assert_int_equal(ibv_dealloc_pd(end->pd), 0);
    assert_int_equal(ibv_close_device(end->context), 0);
    free(end->memory);
}

struct ibv_qp *pair_qp(struct pair_end *end, bool srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = end->send_cq,
        .recv_cq = end->recv_cq,
        .srq = srq ? end->srq : NULL,
        .cap = {.max_send_wr = PAIR_DEPTH,
                .max_recv_wr = PAIR_DEPTH,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 64},
        .qp_type = IBV_QPT_UD,
    };
    struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

    assert_non_null(qp);
    return qp;
}

void pair_qp_ready(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = PAIR_QKEY};

    assert_int_equal(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

const union ibv_gid *pair_gid(const struct pair_end *end)
{
    return &end->device->ports[0].gids[GID_INDEX].gid;
}

struct ibv_ah *pair_ah(struct pair_end *end, const union ibv_gid *dgid, uint32_t flow_label)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = *dgid,
                .sgid_index = GID_INDEX,
                .hop_limit = 64,
                .traffic_class = 2,
                .flow_label = flow_label},
    };

    return ibv_create_ah(end->pd, &attr);
}

int pair_setup(void **state)
{
    struct pair *p = calloc(1, sizeof(*p));
    struct ibv_device **list;
    int n;

    fake_ibv_begin(1);
    p->a.device = fake_ibv_add(FAKE_IBV_MLX5, NULL);
    p->b.device = fake_ibv_add(FAKE_IBV_MLX5, NULL);
    list = ibv_get_device_list(&n);
    assert_non_null(list);
    assert_int_equal(n, 2);
    end_open(&p->a, list[0]);
    end_open(&p->b, list[1]);
    ibv_free_device_list(list);
    p->a.ah = pair_ah(&p->a, pair_gid(&p->b), 7);
    p->b.ah = pair_ah(&p->b, pair_gid(&p->a), 7);
    assert_non_null(p->a.ah);
    assert_non_null(p->b.ah);
    *state = p;
    return 0;
}

int pair_teardown(void **state)
{
    struct pair *p = *state;

    end_close(&p->a);
    end_close(&p->b);
    free(p);
    return fake_ibv_end() ? -1 : 0;
}

struct ibv_sge pair_sge(const struct pair_end *end, uint32_t offset, uint32_t len)
{
    return (struct ibv_sge){(uintptr_t)end->memory + offset, len, end->mr->lkey};
}

int pair_post(struct pair_end *from, const struct pair_end *to, uint64_t wr_id, uint32_t offset,
              uint32_t len, unsigned flags)
{
    struct ibv_sge sge = pair_sge(from, offset, len);
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED | flags,
        .wr.ud = {.ah = from->ah, .remote_qpn = to->qp->qp_num, .remote_qkey = PAIR_QKEY},
    };
    struct ibv_send_wr *bad = NULL;
    int error = ibv_post_send(from->qp, &wr, &bad);

    assert_ptr_equal(bad, error ? &wr : NULL);
    return error;
}

void pair_recv(struct pair_end *end, uint64_t wr_id, uint32_t offset)
{
    struct ibv_sge sge = pair_sge(end, offset, 4096 + FAKE_IBV_GRH_BYTES);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    assert_int_equal(ibv_post_srq_recv(end->srq, &wr, &bad), 0);
}

bool pair_poll(struct ibv_cq *cq, struct ibv_wc *wc)
{
    int n = ibv_poll_cq(cq, 1, wc);

    assert_in_range(n, 0, 1);
    return n == 1;
}
