/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered mode: SUCCESS means delivered. A message is acked when it came, but the target may hold
 * it back for an earlier one; when that one can never be delivered, neither can this.
 *
 * In each scene the first of three messages is lost on its way, the others arrive and are acked.
 */
#include "tests/support/wiretap.h"

enum { TIMEOUT_MS = 20, LATER = 2 };

struct scene {
    struct sim_world *w;
    struct wiretap *tap;
    uint32_t message[1 + LATER];
};

static bool is_first(void *arg, const struct wire_packet *p)
{
    const bool *lose = arg;

    return *lose && p->kind == WIRE_MESSAGE && p->from == HOST_0 &&
           p->part.flags & MRD_PART_ORDERED && p->part.msn == 0;
}

static bool lose_first;

static struct scene begin(enum mrd_wr_opcode later)
{
    struct scene s = {
        .w = sim_fabric_world(&(struct sim_options){
            .order = MRD_ORDER_MSG, .qps = 2, .peer_timeout_ns = TIMEOUT_MS * MSEC_NS})};

    /* QP 1 makes the peers known to each other: first contact is not what this is about. */
    sim_post_on(s.w, HOST_0, HOST_1, 1, 8, MRD_WR_RDMA_WRITE);
    sim_run_until_complete(s.w, 10 * MSEC_NS);
    s.tap = wiretap_open(s.w);
    lose_first = true;
    s.tap->rule = is_first;
    s.tap->arg = &lose_first;
    s.message[0] = sim_send(s.w, HOST_0, HOST_1, 100);
    sim_run(s.w, 2 * USEC_NS); /* in a packet of its own */
    for (uint32_t i = 1; i <= LATER; i++)
        s.message[i] = sim_post_on(s.w, HOST_0, HOST_1, 0, 100, later);
    sim_run(s.w, 300 * USEC_NS);
    for (uint32_t i = 0; i <= LATER; i++)
        assert_false(s.w->messages[s.message[i]].sent || s.w->messages[s.message[i]].received);
    return s;
}

/* All have failed, and no receive completed with success. */
static void expect_failed(struct scene *s, enum mrd_wc_status status)
{
    for (uint32_t i = 0; i <= LATER; i++) {
        const struct sim_message *m = &s->w->messages[s->message[i]];

        test_check(s->w->options.seed, m->sent, "message %u is not complete", i);
        test_check(s->w->options.seed, m->status == status, "message %u: %s", i,
                   mrd_wc_status_str(m->status));
        assert_false(m->received);
    }
}

static const enum mrd_wr_opcode opcodes[] = {MRD_WR_SEND, MRD_WR_RDMA_WRITE,
                                             MRD_WR_RDMA_WRITE_WITH_IMM};

/* The peer is given up. */
TEST(sim_delivered__peer_given_up)
{
    for (unsigned i = 0; i < 3; i++) {
        struct scene s = begin(opcodes[i]);

        s.tap->drop[HOST_1][WIRE_ACK] = s.tap->drop[HOST_1][WIRE_EMPTY] = WIRE_ALL;
        sim_run(s.w, 4 * TIMEOUT_MS * MSEC_NS);
        expect_failed(&s, MRD_WC_RETRY_EXC_ERR);
    }
}

/* The peer restarts. */
TEST(sim_delivered__peer_restarted)
{
    for (unsigned i = 0; i < 3; i++) {
        struct scene s = begin(opcodes[i]);

        sim_restart(s.w, HOST_1);
        lose_first = false;
        sim_run(s.w, 10 * MSEC_NS);
        expect_failed(&s, MRD_WC_RETRY_EXC_ERR);
    }
}

/* The peer's queue pair goes to error: the refusal of the first message speaks for the others. */
TEST(sim_delivered__queue_pair_in_error)
{
    for (unsigned i = 0; i < 3; i++) {
        struct scene s = begin(opcodes[i]);
        sim_fail_qp(s.w, HOST_1, 0);
        lose_first = false;
        sim_run(s.w, 10 * MSEC_NS);
        expect_failed(&s, MRD_WC_REM_INV_REQ_ERR);
    }
}

/* The same, while the acks of the others are still on their way when the refusal comes. */
TEST(sim_delivered__refusal_overtakes_the_acks)
{
    struct scene s = begin(MRD_WR_RDMA_WRITE);
    s.message[1] = sim_write(s.w, HOST_0, HOST_1, 100);
    s.tap->drop[HOST_1][WIRE_ACK] = 3;
    sim_run(s.w, 6 * USEC_NS); /* it is there, its ack is not */
    sim_fail_qp(s.w, HOST_1, 0);
    lose_first = false;
    sim_run(s.w, 10 * MSEC_NS);
    expect_failed(&s, MRD_WC_REM_INV_REQ_ERR);
}

/* The first is flushed here, so only its ABORT tells that the queue pair there is gone. */
TEST(sim_delivered__abort_finds_no_queue_pair)
{
    struct scene s = begin(MRD_WR_RDMA_WRITE);
    sim_fail_qp(s.w, HOST_1, 0);
    sim_fail_qp(s.w, HOST_0, 0);
    sim_run(s.w, 10 * MSEC_NS);
    assert_int_equal(s.w->messages[s.message[0]].status, MRD_WC_WR_FLUSH_ERR);
    for (uint32_t i = 1; i <= LATER; i++) {
        assert_true(s.w->messages[s.message[i]].sent);
        assert_int_not_equal(s.w->messages[s.message[i]].status, MRD_WC_SUCCESS);
    }
}

/* A first message refused for its own sake leaves its place: those behind it succeed. */
TEST(sim_delivered__a_refused_message_leaves_its_place)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.order = MRD_ORDER_MSG});
    uint32_t bad = sim_post(w, &(struct sim_post){.to = HOST_1, .len = 100, .rkey_add = 1});
    uint32_t good = sim_send(w, HOST_0, HOST_1, 100);
    sim_run_until_complete(w, 10 * MSEC_NS);
    assert_int_equal(w->messages[bad].status, MRD_WC_REM_ACCESS_ERR);
    assert_int_equal(w->messages[good].status, MRD_WC_SUCCESS);
    assert_true(w->messages[good].received);
}
