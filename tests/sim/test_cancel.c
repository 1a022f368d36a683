/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of messages: cancelled work leaves no hole, and ends when nothing of it can be placed. */
#include <string.h>

#include "tests/support/payload.h"
#include "tests/support/wiretap.h"

enum { MESSAGE_BYTES = 64 << 10 };

static uint32_t post_small(struct sim_world *w, uint32_t qp)
{
    return sim_post_on(w, HOST_0, HOST_1, qp, 200, MRD_WR_SEND_WITH_IMM);
}

/*
 * A packet carries messages of two queue pairs and is lost; one of them is cancelled. Resent, the
 * packet leaves out its part, in its place, and carries the other.
 */
TEST(sim_cancel__one_of_two_queue_pairs_in_a_packet)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){.qps = 2});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_0][WIRE_MESSAGE] = WIRE_ALL;

    uint32_t alone = post_small(w, 0); /* leaves at once; the next two wait for it and share */
    uint32_t cancelled = post_small(w, 1), kept = post_small(w, 0);

    sim_run(w, 5 * USEC_NS);

    const struct wire_packet *shared = &tap->packets[1];

    assert_int_equal(shared->num_parts, 2);
    sim_fail_qp(w, HOST_0, 1);
    tap->drop[HOST_0][WIRE_MESSAGE] = 0;
    sim_run_until_complete(w, 1 * MSEC_NS);

    assert_int_equal(w->messages[cancelled].status, MRD_WC_WR_FLUSH_ERR);
    assert_true(w->messages[alone].received && w->messages[kept].equal);
    assert_false(w->messages[cancelled].received);

    uint32_t i = 2;

    while (tap->packets[i].from != HOST_0 || tap->packets[i].head.psn != tap->packets[1].head.psn)
        i++;
    assert_int_equal(tap->packets[i].num_parts, 2);
    assert_int_equal(tap->packets[i].num_void, 1);
}

/* All that lost packets carried is cancelled: empty packets fill their PSNs, and others go on. */
TEST(sim_cancel__leaves_no_hole_in_the_psns)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){.qps = 2});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_0][WIRE_MESSAGE] = WIRE_ALL;
    post_small(w, 1);
    sim_post_on(w, HOST_0, HOST_1, 1, MESSAGE_BYTES, MRD_WR_RDMA_WRITE);
    sim_run(w, 5 * USEC_NS);
    sim_fail_qp(w, HOST_0, 1);
    tap->drop[HOST_0][WIRE_MESSAGE] = 0;

    uint32_t after = sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);

    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_true(w->messages[after].equal);
    assert_true(wiretap_count(tap, HOST_0, WIRE_EMPTY) >= MESSAGE_BYTES / 4096 + 1);
    assert_int_equal(sim_counter(w, HOST_1, "rx_bytes"), 64 + MESSAGE_BYTES);
}

/*
 * Flushed work completes when its packets and its ABORT are acked, whichever is last: until then
 * something of it may still be placed.
 */
static void flush_waits(enum wire_kind lost)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);

    if (lost == WIRE_EMPTY)
        tap->drop[HOST_0][WIRE_MESSAGE] = WIRE_ALL;

    uint32_t i = sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);

    sim_run(w, 7 * USEC_NS);
    tap->drop[HOST_0][WIRE_ABORT] = lost == WIRE_ABORT ? WIRE_ALL : 0;
    tap->drop[HOST_0][WIRE_EMPTY] = lost == WIRE_EMPTY ? WIRE_ALL : 0;
    tap->drop[HOST_1][WIRE_ACK] = lost == WIRE_ACK ? WIRE_ALL : 0;
    sim_fail_qp(w, HOST_0, 0);
    sim_run(w, 500 * USEC_NS);
    assert_false(w->messages[i].sent);

    tap->drop[HOST_0][WIRE_ABORT] = tap->drop[HOST_0][WIRE_EMPTY] = 0;
    tap->drop[HOST_1][WIRE_ACK] = 0;
    sim_run_until_complete(w, 2 * MSEC_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_WR_FLUSH_ERR);

    /* Nothing is placed afterwards: all its packets arrive once more, and the memory stays. */
    uint8_t *at = w->messages[i].target;

    memset(at, 0x77, MESSAGE_BYTES);
    wiretap_replay_messages(tap, HOST_0);
    sim_run(w, 200 * USEC_NS);
    assert_true(payload_is_blank(at, MESSAGE_BYTES, 0x77));
}

TEST(sim_flush__waits_for_the_abort)
{
    flush_waits(WIRE_ABORT);
}

TEST(sim_flush__waits_for_its_packets)
{
    flush_waits(WIRE_EMPTY);
}

TEST(sim_flush__waits_for_the_acks)
{
    flush_waits(WIRE_ACK);
}

/* Flushed small messages need no ABORT, but their packets' acks. */
TEST(sim_flush__of_small_messages_waits_for_their_packets)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_0][WIRE_MESSAGE] = tap->drop[HOST_0][WIRE_EMPTY] = WIRE_ALL;

    uint32_t i = post_small(w, 0);

    sim_run(w, 5 * USEC_NS);
    sim_fail_qp(w, HOST_0, 0);
    sim_run(w, 500 * USEC_NS);
    assert_false(w->messages[i].sent);
    wiretap_replay(tap, &tap->packets[0]); /* it was only late: placed, before it completes */
    sim_run(w, 3 * USEC_NS);
    assert_true(w->messages[i].received && w->messages[i].equal);
    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_WR_FLUSH_ERR);
}

/* Nobody answers: flushed work ends when the peer is given up, not before. */
TEST(sim_flush__ends_with_an_unreachable_peer)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){.peer_timeout_ns = 50 * MSEC_NS});
    struct wiretap *tap = wiretap_open(w);

    for (enum wire_kind kind = WIRE_MESSAGE; kind <= WIRE_CHALLENGE; kind++)
        tap->drop[HOST_1][kind] = WIRE_ALL;

    uint32_t i = sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);

    sim_run(w, 20 * USEC_NS);
    sim_fail_qp(w, HOST_0, 0);
    sim_run(w, 49 * MSEC_NS);
    assert_false(w->messages[i].sent);
    sim_run_until_complete(w, 50 * MSEC_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_WR_FLUSH_ERR);
    assert_int_equal(w->node[HOST_0].unreachable, 1);
}

/* None of the message arrived when its ABORT does: late packets find the slot filled. */
TEST(sim_abort__overtakes_all_of_its_message)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){.qps = 2});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_0][WIRE_MESSAGE] = tap->drop[HOST_0][WIRE_EMPTY] = WIRE_ALL;

    uint32_t i = sim_post_on(w, HOST_0, HOST_1, 1, MESSAGE_BYTES, MRD_WR_SEND);

    sim_run(w, 5 * USEC_NS);
    sim_fail_qp(w, HOST_0, 1);
    sim_run(w, 50 * USEC_NS);
    assert_true(wiretap_count(tap, HOST_0, WIRE_ABORT) > 0);
    wiretap_replay_messages(tap, HOST_0);
    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_WR_FLUSH_ERR);
    assert_false(w->receives[w->num_receives - 1].done);
    assert_true(payload_is_blank(w->receives[w->num_receives - 1].buf, MESSAGE_BYTES, 0));
}

/* The half-received message's receive ends in error, once, and others are not disturbed. */
TEST(sim_abort__ends_the_receive)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){.qps = 2});

    uint32_t i = sim_post_on(w, HOST_0, HOST_1, 1, 4 << 20, MRD_WR_SEND);
    uint32_t receive = w->num_receives - 1, other = sim_send(w, HOST_0, HOST_1, 4 << 20);

    sim_run(w, 50 * USEC_NS);
    sim_fail_qp(w, HOST_0, 1);
    sim_run_until_complete(w, 2 * MSEC_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_WR_FLUSH_ERR);
    sim_expect_received(w, receive, MRD_WC_REM_ABORT_ERR);
    assert_true(w->messages[other].equal);
}

/* The window is full and no ack comes; the ABORT of what was cancelled leaves at once. */
static void abort_finds_room(const char *cc)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.cc = cc, .qps = 2});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_1][WIRE_ACK] = WIRE_ALL;

    uint32_t cancelled = sim_post_on(w, HOST_0, HOST_1, 1, MESSAGE_BYTES, MRD_WR_RDMA_WRITE);
    uint32_t kept = sim_write(w, HOST_0, HOST_1, 4 << 20);

    sim_run(w, 60 * USEC_NS);

    uint64_t at_ns = mrd_sim_now(w->sim);

    sim_fail_qp(w, HOST_0, 1);
    sim_run(w, 10 * USEC_NS);
    assert_true(wiretap_find(tap, 0, HOST_0, WIRE_ABORT)->at_ns == at_ns);
    tap->drop[HOST_1][WIRE_ACK] = 0;
    sim_run_until_complete(w, 20 * MSEC_NS);
    assert_true(w->messages[kept].equal);
    assert_int_equal(w->messages[cancelled].status, MRD_WC_WR_FLUSH_ERR);
}

TEST(sim_abort__ignores_the_congestion_window)
{
    abort_finds_room("nscc");
}

TEST(sim_abort__has_psns_beyond_those_of_data)
{
    abort_finds_room("none");
}

/* Memory deregistered under a message: that one fails, its queue pair's others go on. */
TEST(sim_cancel__deregistered_memory)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){0});
    struct sim_node *node = &w->node[HOST_0];
    struct mrd_mr *whole = node->mr;

    node->mr = mrd_reg_mr(node->pd, whole->addr, whole->length, MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(node->mr);

    uint32_t small = post_small(w, 0), failed = sim_send(w, HOST_0, HOST_1, 4 << 20);
    struct mrd_mr *brief = node->mr;

    node->mr = whole;

    uint32_t kept = sim_send(w, HOST_0, HOST_1, 1 << 20);

    sim_run(w, 20 * USEC_NS);
    assert_int_equal(mrd_dereg_mr(brief), 0);
    sim_run_until_complete(w, 2 * MSEC_NS);
    assert_int_equal(w->messages[failed].status, MRD_WC_LOC_PROT_ERR);
    assert_int_equal(w->messages[small].status, MRD_WC_SUCCESS); /* it had been sent */
    assert_true(w->messages[kept].equal);
}

/* The target's queue pair fails half-way: refused, receives flushed, other queue pairs go on. */
TEST(sim_cancel__target_queue_pair_fails)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){.qps = 2});

    uint32_t i = sim_post_on(w, HOST_0, HOST_1, 1, 4 << 20, MRD_WR_SEND);
    uint32_t other = sim_send(w, HOST_0, HOST_1, 4 << 20);

    sim_run(w, 50 * USEC_NS);
    sim_fail_qp(w, HOST_1, 1);
    sim_run_until_complete(w, 2 * MSEC_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_REM_INV_REQ_ERR);
    assert_int_equal(w->receives[0].status, MRD_WC_WR_FLUSH_ERR);
    assert_true(w->messages[other].equal);
}
