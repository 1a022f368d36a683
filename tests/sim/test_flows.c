/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of ordered flows come and go: an idle flow is closed, at both ends, and nothing is
 * skipped or delivered twice by that. And pools that peers share: whoever holds much leaves
 * something for the others.
 */
#include <errno.h>

#include "core/engine/state.h"
#include "tests/support/wiretap.h"

static struct mrd_qp *create_qp(struct sim_world *w, uint32_t host)
{
    struct sim_node *node = &w->node[host];
    struct mrd_qp_init_attr attr = {.send_cq = node->cq,
                                    .recv_cq = node->cq,
                                    .cap = {.max_send_wr = 16, .max_recv_wr = 16},
                                    .order = MRD_ORDER_MSG,
                                    .qkey = 0x1000};
    struct mrd_qp *qp = mrd_create_qp(node->pd, &attr);

    assert_non_null(qp);
    return qp;
}

/* A new ordered queue pair sends a few messages and goes. The last may still be on its way. */
static void use_once(struct sim_world *w, uint32_t host, bool wait)
{
    struct mrd_qp *old = w->node[host].qp[0];

    w->node[host].qp[0] = create_qp(w, host);
    for (unsigned i = 0; i < 3; i++)
        sim_send(w, host, 1 - host, 100);
    if (wait)
        sim_run_until_complete(w, 100 * MSEC_NS);
    else
        sim_run(w, 3 * USEC_NS);
    assert_int_equal(mrd_destroy_qp(w->node[host].qp[0]), 0);
    if (!wait)
        ledger_abandon(&w->ledger, host, w->node[host].life, w->node[host].qp[0]->qp_num);
    w->node[host].qp[0] = old;
}

/*
 * One queue pair after the other, many more than there may be flows: each finds room, at both ends.
 */
TEST(sim_flow__of_queue_pairs_that_come_and_go)
{
    for (unsigned remote = 0; remote < 2; remote++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){
            .order = MRD_ORDER_MSG, .loss_ppm = 20000, .recv_bytes = 100, .max_flows = 8});

        for (unsigned i = 0; i < 100; i++) {
            if (!remote) {
                use_once(w, HOST_0, true);
            } else { /* the queue pairs of the target come and go */
                struct mrd_qp *old = w->node[HOST_1].qp[0];

                w->node[HOST_1].qp[0] = create_qp(w, HOST_1);
                sim_send_complete(w, HOST_0, HOST_1, 100, 100 * MSEC_NS);
                assert_int_equal(mrd_destroy_qp(w->node[HOST_1].qp[0]), 0);
                w->node[HOST_1].qp[0] = old;
                /* More than 8 within the second that flows may idle are refused for now. */
                sim_run(w, 300 * MSEC_NS);
            }
        }
        assert_int_equal(sim_counter(w, HOST_1, "rx_refuse_resources"), 0);
        sim_run(w, 2 * SEC_NS);
        assert_int_equal(sim_engine(w, HOST_0)->flows_tx.pool.used, 0);
        assert_int_equal(sim_engine(w, HOST_1)->flows_rx.pool.used, 0);
        sim_world_destroy(w);
    }
}

/* When tables are full of idle flows, at either end, room is made in milliseconds. */
TEST(sim_flow__room_is_made_for_the_next)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.order = MRD_ORDER_MSG, .max_flows = 4, .qps = 8, .recv_bytes = 100});
    uint32_t index;

    for (uint32_t qp = 0; qp < 8; qp++) {
        struct sim_post post = {.to = HOST_1, .qp = qp, .len = 100, .opcode = MRD_WR_RDMA_WRITE};

        for (unsigned tries = 0; sim_try_post(w, &post, &index); tries++) {
            assert_true(tries < 20);
            sim_run(w, MSEC_NS);
        }
        sim_run_until_complete(w, 10 * MSEC_NS);
    }
}

/*
 * Messages are posted at all times around the end of idleness, with losses and reordering: none is
 * skipped, delivered twice or out of order, and the records go in the end.
 */
TEST(sim_flow__posted_while_it_is_closed)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.order = MRD_ORDER_MSG,
                                                                 .jitter_ns = 20000,
                                                                 .loss_ppm = 100000,
                                                                 .duplicate_ppm = 100000,
                                                                 .recv_bytes = 100,
                                                                 .send_wr = 2000});

    for (unsigned i = 0; i < 200; i++) {
        sim_run(w, SEC_NS - 100 * USEC_NS + (i * 7919 % 200) * USEC_NS);
        for (unsigned k = 0; k <= i % 3; k++)
            sim_send(w, HOST_0, HOST_1, 100);
        if (i % 2)
            sim_run_until_complete(w, SEC_NS);
    }
    sim_all_arrive(w, SEC_NS);
    assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
    assert_true(sim_counter(w, HOST_0, "tx_closes") > 50);
    sim_run(w, 3 * SEC_NS);
    assert_int_equal(sim_engine(w, HOST_0)->flows_tx.pool.used, 0);
    assert_int_equal(sim_engine(w, HOST_1)->flows_rx.pool.used, 0);
}

/* The end of a flow says "5", and 5 is lost while 6 is here: the record must stay, for 6. */
static bool lose_late(void *arg, const struct wire_packet *p)
{
    const bool *lose = arg;

    return *lose && p->kind == WIRE_MESSAGE && p->from == HOST_0 && p->part.msn == 1;
}

TEST(sim_flow__close_does_not_forget_what_waits)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.order = MRD_ORDER_MSG, .recv_bytes = 100});
    bool lose = true;

    sim_send_complete(w, HOST_0, HOST_1, 100, 10 * MSEC_NS);
    struct wiretap *tap = wiretap_open(w);
    tap->rule = lose_late;
    tap->arg = &lose;
    tap->drop[HOST_0][WIRE_CLOSE] = 1;
    sim_run(w, SEC_NS + 10 * USEC_NS); /* the CLOSE left, and is lost */
    while (!wiretap_count(tap, HOST_0, WIRE_CLOSE))
        sim_run(w, USEC_NS);
    sim_send(w, HOST_0, HOST_1, 100);
    sim_run(w, 2 * USEC_NS);
    sim_send(w, HOST_0, HOST_1, 100);
    sim_run(w, 50 * MSEC_NS); /* the CLOSE came again */
    assert_true(wiretap_count(tap, HOST_0, WIRE_CLOSE) > 1);
    lose = false;
    sim_all_arrive(w, 100 * MSEC_NS);
    assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
    assert_int_equal(w->node[HOST_1].deliveries, 3);
}

/* ----------------------------------------------------------------------------------- shares */

static bool to_the_dead(void *arg, const struct wire_packet *p)
{
    (void)arg;
    return p->from == HOST_0 && p->to != 15;
}

/*
 * 14 peers whose way back is dead send what has to be refused: the refusals for them are stuck. A
 * healthy peer is served as if they were not there, whether it has to be refused or not.
 */
TEST(sim_share__of_refusals)
{
    enum { DEAD = 14, HEALTHY = 15, EACH = 200, REFUSALS = 128 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = 16,
                                                                 .qps = 2,
                                                                 .send_wr = EACH,
                                                                 .cqe = 2 * EACH,
                                                                 .recv_bytes = 100,
                                                                 .peer_timeout_ns = 2 * SEC_NS});
    uint32_t bad;

    for (uint32_t host = 1; host < 16; host++)
        sim_write(w, host, HOST_0, 64);
    sim_run_until_complete(w, 10 * MSEC_NS);
    sim_engine(w, HOST_0)->refusals.num = REFUSALS;
    struct wiretap *tap = wiretap_open(w);
    tap->rule = to_the_dead;
    for (uint32_t i = 0; i < EACH; i++) {
        for (uint32_t host = 1; host <= DEAD; host++) /* each in a packet of its own */
            sim_post(w,
                     &(struct sim_post){.from = host, .to = HOST_0, .len = 4000, .qpn_add = 1000});
    }
    sim_run(w, 100 * MSEC_NS);
    assert_true(sim_engine(w, HOST_0)->refusals.used > REFUSALS / 2);
    for (unsigned i = 0; i < 100; i++) {
        sim_send(w, HEALTHY, HOST_0, 100);
        sim_post_on(w, HEALTHY, HOST_0, 1, 9000, MRD_WR_RDMA_WRITE);
        bad = sim_post(
            w, &(struct sim_post){.from = HEALTHY, .to = HOST_0, .len = 100, .qpn_add = 1000});
        sim_run(w, MSEC_NS);
        assert_true(w->messages[bad].sent && w->messages[bad - 1].sent &&
                    w->messages[bad - 2].sent);
        assert_int_equal(w->messages[bad].status, MRD_WC_REM_INV_REQ_ERR);
        assert_int_equal(w->messages[bad - 1].status, MRD_WC_SUCCESS);
        assert_int_equal(w->messages[bad - 2].status, MRD_WC_SUCCESS);
    }
    wiretap_close(tap);
    sim_run(w, 5 * SEC_NS);
}

/* With no refusal to be had, what needs none is taken, and only what needs one is dropped. */
TEST(sim_share__only_what_needs_a_refusal_is_dropped)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.recv_bytes = 20000});
    struct mrd_engine *e = sim_engine(w, HOST_1);
    uint32_t bad, num;

    sim_write_complete(w, HOST_0, HOST_1, 64, 10 * MSEC_NS);
    num = e->refusals.num;
    e->refusals.num = 0;
    bad = sim_post(w, &(struct sim_post){.to = HOST_1, .len = 100, .rkey_add = 1});
    sim_run(w, MSEC_NS);
    for (unsigned i = 0; i < 10; i++) {
        sim_send(w, HOST_0, HOST_1, 100);
        sim_send(w, HOST_0, HOST_1, 20000);
        sim_write_imm(w, HOST_0, HOST_1, 100);
        sim_write(w, HOST_0, HOST_1, 20000);
        sim_run(w, MSEC_NS);
    }
    for (uint32_t i = 0; i < w->num_messages; i++)
        assert_true(w->messages[i].sent == (i != bad));
    assert_true(sim_counter(w, HOST_1, "rx_drop_resources") > 0);
    e->refusals.num = num;
    sim_run_until_complete(w, SEC_NS);
    assert_int_equal(w->messages[bad].status, MRD_WC_REM_ACCESS_ERR);
}
