/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake libibverbs moves datagrams as devices do, and misbehaves as told. */
#include "tests/ibv/fake_ibv_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void fill(uint8_t *at, uint32_t len, uint8_t with)
{
    for (uint32_t i = 0; i < len; i++)
        at[i] = (uint8_t)(with + i);
}

static void send_one(struct pair *p, uint32_t len)
{
    fill(p->a.memory, len, 3);
    assert_int_equal(pair_post(&p->a, &p->b, 77, 0, len, 0), 0);
}

/* ---------------------------------------------------------------------------------------- delivery */

static void fake_ibv__datagram_with_grh_of_ipv4(void **state)
{
    struct pair *p = *state;
    const uint8_t *grh = p->b.memory;
    const struct fake_ibv_packet *sent;
    struct ibv_wc wc;

    pair_recv(&p->b, 5, 0);
    send_one(p, 1000);
    assert_true(pair_poll(p->b.recv_cq, &wc));
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.byte_len, 1040);
    assert_int_equal(wc.src_qp, p->a.qp->qp_num);
    assert_int_equal(wc.wc_flags, IBV_WC_GRH);
    assert_memory_equal(p->b.memory + 40, p->a.memory, 1000);
    assert_int_equal(grh[20], 0x45);
    assert_int_equal(grh[21], 2); /* ECT(0) */
    assert_memory_equal(grh + 32, pair_gid(&p->a)->raw + 12, 4);
    assert_memory_equal(grh + 36, pair_gid(&p->b)->raw + 12, 4);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.wr_id, 77);
    assert_int_equal(fake_ibv_num_packets(), 1);
    sent = fake_ibv_packet(0);
    assert_int_equal(sent->fate, FAKE_IBV_DELIVERED);
    assert_int_equal(sent->source_port, fake_ibv_port_of_label(7));
    assert_int_equal(sent->dst_qpn, p->b.qp->qp_num);
    assert_int_equal(sent->len, 1000);
    assert_int_equal(sent->sge[0].lkey, p->a.mr->lkey);
    assert_memory_equal(sent->head, p->a.memory, FAKE_IBV_HEAD_BYTES);
}

static void fake_ibv__grh_of_ipv6(void **state)
{
    struct pair *p = *state;
    const uint8_t *grh = p->b.memory;
    uint32_t first;
    struct ibv_wc wc;

    fake_ibv_gid(p->a.device, 3, IBV_GID_TYPE_ROCE_V2, "2001:db8::1");
    fake_ibv_gid(p->b.device, 3, IBV_GID_TYPE_ROCE_V2, "2001:db8::2");
    assert_int_equal(ibv_destroy_ah(p->a.ah), 0);
    p->a.ah = pair_ah(&p->a, pair_gid(&p->b), 0x12345);
    pair_recv(&p->b, 5, 0);
    send_one(p, 100);
    assert_true(pair_poll(p->b.recv_cq, &wc));
    memcpy(&first, grh, 4);
    assert_int_equal(ntohl(first), 6u << 28 | 2u << 20 | 0x12345);
    assert_int_equal(grh[6], 17);
    assert_memory_equal(grh + 8, pair_gid(&p->a), 16);
    assert_memory_equal(grh + 24, pair_gid(&p->b), 16);
}

/* What is not taken in is counted, and disturbs nobody. */
static void fake_ibv__fates(void **state)
{
    struct pair *p = *state;
    struct ibv_wc wc;
    union ibv_gid nobody = *pair_gid(&p->b);
    struct ibv_ah *right = p->a.ah;
    struct ibv_qp unknown = {.qp_num = 0x999}, *right_qp = p->b.qp;
    struct ibv_qp_attr attr = {.qkey = PAIR_QKEY + 1};

    send_one(p, 10); /* no receive */
    p->b.qp = &unknown;
    send_one(p, 10); /* no QP */
    p->b.qp = right_qp;
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_true(pair_poll(p->a.send_cq, &wc));
    nobody.raw[15] = 99;
    p->a.ah = pair_ah(&p->a, &nobody, 1);
    send_one(p, 10); /* no host */
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(ibv_destroy_ah(p->a.ah), 0);
    p->a.ah = right;
    assert_int_equal(ibv_modify_qp(p->b.qp, &attr, IBV_QP_QKEY), 0);
    send_one(p, 10); /* wrong qkey */
    assert_true(pair_poll(p->a.send_cq, &wc));
    fake_ibv_port(p->a.device, 1, IBV_PORT_DOWN);
    send_one(p, 10);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(fake_ibv_packet(0)->fate, FAKE_IBV_NO_BUFFER);
    assert_int_equal(fake_ibv_packet(1)->fate, FAKE_IBV_NO_QP);
    assert_int_equal(fake_ibv_packet(2)->fate, FAKE_IBV_NO_HOST);
    assert_int_equal(fake_ibv_packet(3)->fate, FAKE_IBV_BAD_QKEY);
    assert_int_equal(fake_ibv_packet(4)->fate, FAKE_IBV_LOST);
    assert_int_equal(fake_ibv_fate_count(FAKE_IBV_BAD_QKEY), 1);
    assert_false(pair_poll(p->b.recv_cq, &wc));
}

static void fake_ibv__source_ports(void **state)
{
    struct pair *p = *state;
    struct ibv_ah *labelled = p->a.ah;
    struct ibv_wc wc;

    p->a.ah = pair_ah(&p->a, pair_gid(&p->b), 0);
    for (unsigned i = 0; i < 2; i++) { /* label 0: any port */
        send_one(p, 10);
        assert_true(pair_poll(p->a.send_cq, &wc));
    }
    assert_int_not_equal(fake_ibv_packet(0)->source_port, fake_ibv_packet(1)->source_port);
    assert_in_range(fake_ibv_packet(0)->source_port, 0xc000, 0xffff);
    p->a.device->port_rule = FAKE_IBV_PORT_QPN;
    send_one(p, 10);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(fake_ibv_packet(2)->source_port, fake_ibv_port_of_qpn(p->a.qp->qp_num));
    assert_int_equal(fake_ibv_port_of_label(0x4001), 0xc000);
    assert_int_equal(ibv_destroy_ah(p->a.ah), 0);
    p->a.ah = labelled;
}

/* ---------------------------------------------------------------------------------------- buffers */

/* Buffers are read late, unless the send is inline. */
static void fake_ibv__buffer_reused_early(void **state)
{
    struct pair *p = *state;
    struct ibv_wc wc;

    pair_recv(&p->b, 1, 0);
    pair_recv(&p->b, 2, 8192);
    fill(p->a.memory, 64, 3);
    assert_int_equal(pair_post(&p->a, &p->b, 1, 0, 64, 0), 0);
    assert_int_equal(pair_post(&p->a, &p->b, 2, 0, 64, IBV_SEND_INLINE), 0);
    memset(p->a.memory, 0xff, 64);
    assert_true(pair_poll(p->b.recv_cq, &wc));
    assert_int_equal(p->b.memory[40], 0xff);
    assert_int_equal(p->b.memory[8192 + 40], 3);
    assert_true(fake_ibv_packet(1)->is_inline);
    assert_int_equal(pair_post(&p->a, &p->b, 2, 0, 65, IBV_SEND_INLINE), EINVAL);
}

/* A key that does not cover the buffer breaks the queue pair, and what is behind is flushed. */
static void fake_ibv__bad_key(void **state)
{
    struct pair *p = *state;
    struct ibv_wc wc;

    assert_int_equal(pair_post(&p->a, &p->b, 1, PAIR_BYTES - 10, 11, 0), 0);
    assert_int_equal(pair_post(&p->a, &p->b, 2, 0, 10, 0), 0);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(p->a.qp->state, IBV_QPS_ERR);
    assert_int_equal(pair_post(&p->a, &p->b, 3, 0, 10, 0), 0);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(fake_ibv_num_packets(), 0);
}

static void fake_ibv__deregistered_too_early(void **state)
{
    struct pair *p = *state;
    struct ibv_wc wc;

    send_one(p, 10);
    assert_int_equal(ibv_dereg_mr(p->a.mr), 0);
    p->a.mr = NULL;
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
}

static void fake_ibv__longer_than_mtu_or_receive(void **state)
{
    struct pair *p = *state;
    struct ibv_sge sge = pair_sge(&p->b, 0, 100 + 39);
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;

    assert_int_equal(ibv_post_srq_recv(p->b.srq, &wr, &bad), 0);
    send_one(p, 100);
    assert_true(pair_poll(p->b.recv_cq, &wc));
    assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
    assert_int_equal(p->b.qp->state, IBV_QPS_ERR);
    assert_true(pair_poll(p->a.send_cq, &wc));
    send_one(p, 4097);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
}

/* An address handle must outlive what was posted with it. */
static void fake_ibv__handle_destroyed_early(void **state)
{
    struct pair *p = *state;
    struct ibv_wc wc;

    send_one(p, 10);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(fake_ibv_problems(), 0);
    send_one(p, 10);
    assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
    p->a.qp = NULL;
}

/* ---------------------------------------------------------------------------------------- queues */

/* A slot is free when its completion, or that of a later signaled one, was polled. */
static void fake_ibv__send_queue_full(void **state)
{
    struct pair *p = *state;
    struct ibv_wc wc;

    for (unsigned i = 0; i < PAIR_DEPTH; i++)
        assert_int_equal(pair_post(&p->a, &p->b, i, 0, 10, 0), 0);
    assert_int_equal(pair_post(&p->a, &p->b, 99, 0, 10, 0), ENOMEM);
    fake_ibv_transmit(UINT32_MAX);
    assert_int_equal(pair_post(&p->a, &p->b, 99, 0, 10, 0), ENOMEM);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(pair_post(&p->a, &p->b, 99, 0, 10, 0), 0);
}

static void fake_ibv__partial_posts(void **state)
{
    struct pair *p = *state;
    struct ibv_sge sge = pair_sge(&p->a, 0, 10);
    struct ibv_send_wr wr[3], *bad;

    fake_ibv_set(&(struct fake_ibv_knobs){.post_takes = 2});
    for (unsigned i = 0; i < 3; i++) {
        wr[i] = (struct ibv_send_wr){.next = i < 2 ? &wr[i + 1] : NULL,
                                     .sg_list = &sge,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND};
        wr[i].wr.ud.ah = p->a.ah;
        wr[i].wr.ud.remote_qpn = p->b.qp->qp_num;
    }
    assert_int_equal(ibv_post_send(p->a.qp, wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr[2]);
    assert_int_equal(fake_ibv_transmit(UINT32_MAX), 2);
}

static void fake_ibv__only_signaled_ones_complete(void **state)
{
    struct pair *p = *state;
    struct ibv_sge sge = pair_sge(&p->a, 0, 10);
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
                       *bad;
    struct ibv_wc wc;

    wr.wr.ud.ah = p->a.ah;
    assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
    assert_int_equal(pair_post(&p->a, &p->b, 2, 0, 10, 0), 0);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.wr_id, 2);
    assert_false(pair_poll(p->a.send_cq, &wc));
}

static void fake_ibv__held_completions(void **state)
{
    struct pair *p = *state;
    struct ibv_qp *first = p->a.qp, *second = pair_qp(&p->a, true);
    struct ibv_wc wc;

    pair_qp_ready(second);
    fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
    assert_int_equal(pair_post(&p->a, &p->b, 1, 0, 10, 0), 0);
    p->a.qp = second;
    assert_int_equal(pair_post(&p->a, &p->b, 2, 0, 10, 0), 0);
    p->a.qp = first;
    assert_int_equal(pair_post(&p->a, &p->b, 3, 0, 10, 0), 0);
    assert_false(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(fake_ibv_num_packets(), 3);
    assert_int_equal(fake_ibv_release_cqes(1, true), 1);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(fake_ibv_release_cqes(9, false), 2);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_true(pair_poll(p->a.send_cq, &wc));
    assert_int_equal(wc.wr_id, 3);
    assert_int_equal(ibv_destroy_qp(second), 0);
}

static void fake_ibv__overrun(void **state)
{
    struct pair *p = *state;
    struct ibv_cq *small = ibv_create_cq(p->a.context, 2, NULL, NULL, 0), *right = p->a.send_cq;
    struct ibv_qp *qp = p->a.qp;

    p->a.send_cq = small;
    p->a.qp = pair_qp(&p->a, true);
    pair_qp_ready(p->a.qp);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pair_post(&p->a, &p->b, i, 0, 10, 0), 0);
    fake_ibv_transmit(2);
    assert_int_equal(fake_ibv_problems(), 0);
    fake_ibv_transmit(1);
    assert_int_equal(fake_ibv_problems(), 1);
    fake_ibv_clear_problems();
    assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
    assert_int_equal(ibv_destroy_cq(small), 0);
    p->a.send_cq = right;
    p->a.qp = qp;
}

/* ---------------------------------------------------------------------------------------- the wire misbehaves */

struct script {
    enum fake_ibv_verdict verdict[8];
    uint8_t traffic_class;
    unsigned n;
};

static enum fake_ibv_verdict judge(void *arg, struct fake_ibv_packet *packet)
{
    struct script *s = arg;

    if (s->traffic_class)
        packet->traffic_class = s->traffic_class;
    return s->verdict[s->n++];
}

static void fake_ibv_set_filter__verdicts(void **state)
{
    struct pair *p = *state;
    struct script s = {
        .verdict = {FAKE_IBV_HOLD, FAKE_IBV_DROP, FAKE_IBV_DUPLICATE, FAKE_IBV_HOLD}};
    const uint8_t order[] = {30, 30, 40, 10};
    struct ibv_wc wc;

    fake_ibv_set_filter(judge, &s);
    for (uint8_t i = 0; i < 4; i++) {
        pair_recv(&p->b, i, i * 8192u);
        p->a.memory[i] = (uint8_t)(10 * (i + 1));
        assert_int_equal(pair_post(&p->a, &p->b, i, i, 1, 0), 0);
    }
    fake_ibv_transmit(UINT32_MAX);
    assert_int_equal(fake_ibv_packet(3)->fate, FAKE_IBV_HELD);
    assert_int_equal(fake_ibv_release_packets(1, true), 1);
    assert_int_equal(fake_ibv_release_packets(UINT32_MAX, false), 1);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(pair_poll(p->b.recv_cq, &wc));
        assert_int_equal(p->b.memory[wc.wr_id * 8192 + 40], order[i]);
    }
    assert_int_equal(fake_ibv_fate_count(FAKE_IBV_LOST), 1);
}

static void fake_ibv_set_filter__marks(void **state)
{
    struct pair *p = *state;
    struct script s = {.traffic_class = 3};
    struct ibv_wc wc;

    fake_ibv_set_filter(judge, &s);
    pair_recv(&p->b, 1, 0);
    send_one(p, 10);
    assert_true(pair_poll(p->b.recv_cq, &wc));
    assert_int_equal(p->b.memory[21], 3);
}

static void fake_ibv__own_receive_queue(void **state)
{
    struct pair *p = *state;
    struct ibv_qp *shared = p->b.qp;
    struct ibv_sge sge = pair_sge(&p->b, 0, 4136);
    struct ibv_recv_wr wr = {.wr_id = 4, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;

    p->b.qp = pair_qp(&p->b, false);
    assert_int_equal(ibv_post_recv(p->b.qp, &wr, &bad), EINVAL); /* not yet */
    assert_int_equal(ibv_post_recv(shared, &wr, &bad), EINVAL);
    pair_qp_ready(p->b.qp);
    assert_int_equal(ibv_post_recv(p->b.qp, &wr, &bad), 0);
    send_one(p, 10);
    assert_true(pair_poll(p->b.recv_cq, &wc));
    assert_int_equal(wc.wr_id, 4);
    assert_int_equal(wc.qp_num, p->b.qp->qp_num);
    for (unsigned i = 0; i < PAIR_DEPTH; i++)
        assert_int_equal(ibv_post_recv(p->b.qp, &wr, &bad), 0);
    assert_int_equal(ibv_post_recv(p->b.qp, &wr, &bad), ENOMEM);
    assert_int_equal(ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE), 0);
    for (unsigned i = 0; i < PAIR_DEPTH; i++) {
        assert_true(pair_poll(p->b.recv_cq, &wc));
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
    p->b.qp = shared;
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(fake_ibv__datagram_with_grh_of_ipv4),
        PAIR_TEST(fake_ibv__grh_of_ipv6),
        PAIR_TEST(fake_ibv__fates),
        PAIR_TEST(fake_ibv__source_ports),
        PAIR_TEST(fake_ibv__buffer_reused_early),
        PAIR_TEST(fake_ibv__bad_key),
        PAIR_TEST(fake_ibv__deregistered_too_early),
        PAIR_TEST(fake_ibv__longer_than_mtu_or_receive),
        PAIR_TEST(fake_ibv__handle_destroyed_early),
        PAIR_TEST(fake_ibv__send_queue_full),
        PAIR_TEST(fake_ibv__partial_posts),
        PAIR_TEST(fake_ibv__only_signaled_ones_complete),
        PAIR_TEST(fake_ibv__held_completions),
        PAIR_TEST(fake_ibv__overrun),
        PAIR_TEST(fake_ibv_set_filter__verdicts),
        PAIR_TEST(fake_ibv_set_filter__marks),
        PAIR_TEST(fake_ibv__own_receive_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
