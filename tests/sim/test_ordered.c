/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered mode: message and receive numbers, what takes their places, and the bounded flow table.
 */
#include <errno.h>

#include "core/limits.h"
#include "tests/support/payload.h"
#include "tests/support/wiretap.h"

enum { SMALL = 3000, MULTI = 20000 };

/* Ordered, receives posted by the test, round trip times known. */
static struct sim_world *ordered_world(struct sim_options options)
{
    options.order = MRD_ORDER_MSG;
    options.no_receives = true;
    struct sim_world *w = sim_fabric_world(&options);
    for (uint32_t from = 0; from < w->options.hosts; from++) {
        if (from != HOST_1)
            sim_write(w, from, HOST_1, 64);
    }
    sim_write_complete(w, HOST_1, HOST_0, 64, 20 * MSEC_NS);
    sim_run(w, 50 * USEC_NS);
    return w;
}

/* Message packets of this length are lost while it is not 0. */
static bool has_length(void *arg, const struct wire_packet *p)
{
    const uint32_t *len = arg;

    return *len && p->kind == WIRE_MESSAGE && p->part.total == *len;
}

static bool received(const struct sim_world *w, uint32_t index)
{
    return w->messages[index].received && w->messages[index].equal;
}

/* ----------------------------------------------------------------------------- binding receives */

/*
 * Messages arrive before their predecessors; the receives there are belong to the lowest numbers.
 */
TEST(sim_rsn__a_later_message_takes_no_earlier_ones_receive)
{
    enum { MESSAGES = 8, RECEIVES = 4 };
    static const uint32_t lens[] = {SMALL, MULTI};

    for (uint32_t k = 0; k < 2; k++) {
        struct sim_world *w = ordered_world((struct sim_options){0});
        struct wiretap *tap = wiretap_open(w);
        uint32_t index[MESSAGES];

        sim_post_recvs(w, HOST_1, 0, RECEIVES, MULTI);
        tap->drop[HOST_0][WIRE_MESSAGE] = WIRE_ALL;
        for (uint32_t i = 0; i < MESSAGES; i++) {
            if (i == MESSAGES - 1)
                tap->drop[HOST_0][WIRE_MESSAGE] = 0;
            index[i] = sim_send(w, HOST_0, HOST_1, lens[k]);
            sim_run(w, USEC_NS);
        }
        sim_run(w, 1 * MSEC_NS);
        for (uint32_t i = 0; i < MESSAGES; i++)
            assert_int_equal(received(w, index[i]), i < RECEIVES);

        sim_post_recvs(w, HOST_1, 0, MESSAGES - RECEIVES, MULTI);
        sim_all_arrive(w, 1 * MSEC_NS);
        assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
    }
}

/*
 * A retry keeps MSN and RSN, takes a new id, raises the attempt and sends all of the message again.
 */
TEST(sim_rsn__a_retry_keeps_its_numbers)
{
    struct sim_world *w = ordered_world((struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);
    uint32_t bytes[2] = {0, 0};

    sim_send(w, HOST_0, HOST_1, MULTI);
    sim_run(w, 90 * USEC_NS);
    sim_post_recvs(w, HOST_1, 0, 1, MULTI);
    sim_run_until_complete(w, 1 * MSEC_NS);

    const struct wire_packet *first = wiretap_find(tap, 0, HOST_0, WIRE_MESSAGE);

    for (uint32_t i = 0; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (p->kind != WIRE_MESSAGE)
            continue;
        assert_int_equal(p->part.id == first->part.id, p->part.attempt == 0);
        assert_int_equal(p->part.msn, first->part.msn);
        assert_int_equal(p->part.rsn, first->part.rsn);
        assert_in_range(p->part.attempt, 0, 1);
        bytes[p->part.attempt] += p->part.len;
    }
    assert_int_equal(bytes[0], MULTI);
    assert_int_equal(bytes[1], MULTI);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* ------------------------------------------------------------------- places of what never comes */

/*
 * A message is given up after later ones arrived: its ABORT gives its place in MSN to those that
 * wait, and the receive kept for it to the next.
 */
static void abort_frees_places(uint32_t len)
{
    struct sim_world *w = ordered_world((struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);
    struct sim_node *node = &w->node[HOST_0];
    struct mrd_mr *whole = node->mr;
    struct mrd_mr *brief = mrd_reg_mr(node->pd, whole->addr, whole->length, MRD_ACCESS_LOCAL_WRITE);

    assert_non_null(brief);
    sim_post_recvs(w, HOST_1, 0, 2, MULTI);
    tap->rule = has_length;
    tap->arg = &len;
    node->mr = brief;

    uint32_t lost = sim_send(w, HOST_0, HOST_1, len);

    node->mr = whole;

    uint32_t waits = sim_send(w, HOST_0, HOST_1, SMALL + 1);
    uint32_t next = sim_send(w, HOST_0, HOST_1, MULTI + 1);

    sim_run(w, 500 * USEC_NS);
    assert_false(w->messages[waits].received);
    assert_int_equal(mrd_dereg_mr(brief), 0);
    for (uint32_t i = 0; i < 300 && !w->messages[lost].sent; i++)
        sim_run(w, 10 * USEC_NS);
    assert_int_equal(w->messages[lost].status, MRD_WC_LOC_PROT_ERR);
    assert_true(received(w, waits));
    sim_post_recvs(w, HOST_1, 0, 1, MULTI + 1); /* behind the one that was kept */
    sim_run(w, 500 * USEC_NS);

    /* The kept receive went back to the front: it is too short by one byte for the next. */
    assert_int_equal(w->messages[next].status, MRD_WC_REM_INV_REQ_ERR);
    assert_int_equal(w->receives[0].status, MRD_WC_LOC_LEN_ERR);
}

TEST(sim_abort__takes_the_messages_places)
{
    abort_frees_places(SMALL);
    abort_frees_places(MULTI);
}

/*
 * A receive kept for a message that was given up is any sender's again, without a further packet.
 */
TEST(sim_abort__returns_the_kept_receive)
{
    struct sim_world *w = ordered_world((struct sim_options){.hosts = 3});
    struct wiretap *tap = wiretap_open(w);
    struct sim_node *node = &w->node[HOST_0];
    struct mrd_mr *whole = node->mr;
    uint32_t len = MULTI;

    sim_post_recvs(w, HOST_1, 0, 2, MULTI);
    tap->rule = has_length;
    tap->arg = &len;
    node->mr = mrd_reg_mr(node->pd, whole->addr, whole->length, MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(node->mr);
    sim_send(w, HOST_0, HOST_1, len);
    assert_int_equal(mrd_dereg_mr(node->mr), 0);
    node->mr = whole;

    uint32_t waits = sim_send(w, HOST_0, HOST_1, SMALL);

    sim_run_until_complete(w, 5 * MSEC_NS);
    assert_true(received(w, waits));

    uint32_t other = sim_send(w, HOST_2, HOST_1, SMALL);

    sim_run_until_complete(w, 5 * MSEC_NS);
    assert_true(received(w, other));
}

/* A hard refusal takes the message's places: whoever is behind goes on, with the receives there. */
static void hard_refusal(const struct sim_post *post, bool late, enum mrd_wc_status status)
{
    struct sim_world *w = ordered_world((struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);

    sim_post_recvs(w, HOST_1, 0, 2, MULTI);
    tap->drop[HOST_0][WIRE_MESSAGE] = late ? (post->len + 4095) / 4096 : 0;
    tap->drop[HOST_1][WIRE_REFUSAL] = 2;

    uint32_t refused = sim_post(w, post);

    tap->drop[HOST_0][WIRE_MESSAGE] = 0;

    uint32_t second = sim_send(w, HOST_0, HOST_1, SMALL + 1);
    uint32_t third = sim_send(w, HOST_0, HOST_1, MULTI);

    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_int_equal(w->messages[refused].status, status);
    assert_true(received(w, second) && received(w, third));
    assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
}

TEST(sim_hard_refusal__takes_the_messages_places)
{
    static const uint32_t lens[] = {SMALL, MULTI};

    for (uint32_t i = 0; i < 4; i++) {
        struct sim_post post = {.from = HOST_0, .to = HOST_1, .len = lens[i & 1]};

        post.opcode = MRD_WR_SEND;
        post.qkey_add = 1;
        hard_refusal(&post, i & 2, MRD_WC_REM_INV_REQ_ERR);
        post.opcode = MRD_WR_RDMA_WRITE_WITH_IMM;
        post.rkey_add = 1;
        hard_refusal(&post, i & 2, MRD_WC_REM_ACCESS_ERR);
        post.opcode = MRD_WR_RDMA_WRITE; /* a place in MSN, none in RSN */
        hard_refusal(&post, i & 2, MRD_WC_REM_ACCESS_ERR);
    }
}

/* Longer than its receive: that one is used up in error, and those behind get theirs. */
TEST(sim_too_long__takes_its_receive_and_places)
{
    struct sim_world *w = ordered_world((struct sim_options){0});

    sim_post_recvs(w, HOST_1, 0, 1, SMALL);
    sim_post_recvs(w, HOST_1, 0, 1, MULTI);

    uint32_t longer = sim_send(w, HOST_0, HOST_1, MULTI);
    uint32_t next = sim_send(w, HOST_0, HOST_1, MULTI);

    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_int_equal(w->messages[longer].status, MRD_WC_REM_INV_REQ_ERR);
    assert_int_equal(w->receives[0].status, MRD_WC_LOC_LEN_ERR);
    assert_true(received(w, next));
}

/*
 * A message was refused for want of a receive; by the time its sender hears that and gives up, the
 * next one has arrived, with a receive kept for the first. Giving up tells the target.
 */
static void gives_up_after_rnr(uint32_t len)
{
    struct sim_world *w = ordered_world((struct sim_options){.rnr_limited = true, .rnr_retry = 0});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_1][WIRE_REFUSAL] = WIRE_ALL;

    uint32_t given_up = sim_send(w, HOST_0, HOST_1, len);

    sim_run(w, 20 * USEC_NS);
    sim_post_recvs(w, HOST_1, 0, 2, MULTI);

    uint32_t next = sim_send(w, HOST_0, HOST_1, SMALL + 1);

    sim_run(w, 100 * USEC_NS);
    assert_true(wiretap_count(tap, HOST_1, WIRE_REFUSAL) > 0);
    assert_false(w->messages[next].received);
    tap->drop[HOST_1][WIRE_REFUSAL] = 0;
    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_int_equal(w->messages[given_up].status, MRD_WC_RNR_RETRY_EXC_ERR);
    assert_true(received(w, next));

    uint32_t last = sim_send(w, HOST_0, HOST_1, MULTI); /* takes the receive that was kept */

    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_true(received(w, last));
}

TEST(sim_giving_up_after_rnr__takes_the_messages_places)
{
    gives_up_after_rnr(SMALL);
    gives_up_after_rnr(MULTI);
}

/* ------------------------------------------------------------------------------------- order */

/* What waits for an earlier message completes on neither side, and other flows do not wait. */
TEST(sim_order__both_sides_wait_other_flows_do_not)
{
    struct sim_world *w = ordered_world((struct sim_options){.qps = 2});
    struct wiretap *tap = wiretap_open(w);
    uint32_t len = MULTI, index[4];

    tap->rule = has_length;
    tap->arg = &len;
    for (uint32_t qp = 0; qp < 2; qp++)
        sim_post_recvs(w, HOST_1, qp, 3, MULTI);
    sim_write(w, HOST_0, HOST_1, MULTI);
    for (uint32_t i = 0; i < 4; i++)
        index[i] = sim_post_on(w, HOST_0, HOST_1, i / 3, SMALL + i, MRD_WR_SEND);
    sim_run(w, 300 * USEC_NS);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(w->messages[index[i]].received, i == 3);
        assert_int_equal(w->messages[index[i]].sent, i == 3);
    }
    len = 0;
    sim_all_arrive(w, 1 * MSEC_NS);
    assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
}

/* A SEND says that the WRITE before it lies in memory, whatever was lost. */
TEST(sim_order__write_then_send)
{
    enum { PAIRS = 40 };
    struct sim_world *w = ordered_world((struct sim_options){.loss_ppm = 50000});
    uint32_t seen = 0, first = w->num_messages;

    sim_post_recvs(w, HOST_1, 0, PAIRS, 64);
    for (uint32_t i = 0; i < PAIRS; i++) {
        sim_write(w, HOST_0, HOST_1, 8 * 4096);
        sim_send(w, HOST_0, HOST_1, 64);
    }
    for (uint32_t step = 0; step < 5000 && seen < PAIRS; step++) {
        sim_run(w, USEC_NS);
        for (; seen < PAIRS && w->messages[first + 2 * seen + 1].received; seen++) {
            const struct sim_message *write = &w->messages[first + 2 * seen];

            assert_int_equal(
                payload_mismatch(write->target, write->len, test_seed(), first + 2 * seen),
                write->len);
        }
    }
    assert_int_equal(seen, PAIRS);
    assert_true(sim_counter(w, HOST_0, "retx_packets") > 5);
}

/* ------------------------------------------------------------------------------------- numbers */

static bool is_first_of_flow(void *arg, const struct wire_packet *p)
{
    const bool *held = arg;

    return *held && p->kind == WIRE_MESSAGE && p->part.offset == 0 && p->part.len == 4096;
}

/* One message is missing: the sender goes no further than the target can keep numbers apart. */
TEST(sim_msn__the_sender_stays_in_the_window)
{
    enum { MESSAGES = 1500 };
    struct sim_world *w = ordered_world((struct sim_options){.send_wr = 2048});
    struct wiretap *tap = wiretap_open(w);
    bool held = true;
    uint32_t ahead = 0;

    tap->rule = is_first_of_flow;
    tap->arg = &held;
    sim_write(w, HOST_0, HOST_1, 2 * 4096);
    for (uint32_t i = 0; i < MESSAGES; i++)
        sim_write(w, HOST_0, HOST_1, 100);
    sim_run(w, 1 * MSEC_NS);
    for (uint32_t i = 0; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];
        struct mrd_wire_part part;

        for (uint32_t at = p->head.parts_at; p->kind == WIRE_MESSAGE && at < p->head.head_len;) {
            (void)mrd_wire_get_part(p->data, &at, p->head.head_len, &part);
            ahead = part.msn_behind > ahead ? part.msn_behind : ahead;
        }
    }
    assert_int_equal(ahead, MRD_MSN_WINDOW - 1);
    held = false;
    sim_all_arrive(w, 1 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_1, "tx_refusals"), 0);
}

/* The wire tells 16 bits of MSN and RSN: a flow goes on beyond them, in order, with losses. */
TEST(sim_msn__wraps_on_the_wire)
{
    enum { BATCHES = 280, BATCH = 250 };
    struct sim_world *w = ordered_world((struct sim_options){.loss_ppm = 10000});

    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        sim_post_recvs(w, HOST_1, 0, BATCH, 16);
        for (uint32_t i = 0; i < BATCH; i++)
            sim_post_on(w, HOST_0, HOST_1, 0, 16, MRD_WR_SEND_WITH_IMM);
        while (!w->messages[w->num_messages - 1].sent)
            sim_run(w, 10 * USEC_NS);
    }
    sim_all_arrive(w, 1 * MSEC_NS);
    assert_true(w->num_messages > UINT16_MAX);
    assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
}

/* ----------------------------------------------------------------------------------- flow table */

static uint32_t send_qp(struct sim_world *w, uint32_t from, uint32_t qp)
{
    return sim_post_on(w, from, HOST_1, qp, 100, MRD_WR_SEND_WITH_IMM);
}

/* The sender's own table is full: told at post. */
TEST(sim_flows__sender_full_is_eagain)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.order = MRD_ORDER_MSG, .max_flows = 1, .qps = 2});
    uint32_t index;

    sim_send(w, HOST_0, HOST_1, 100);
    assert_int_equal(
        sim_try_post(w, &(struct sim_post){.from = HOST_0, .to = HOST_1, .qp = 1}, &index),
        -EAGAIN);
    sim_run_until_complete(w, 5 * MSEC_NS);
}

/* The target's table is full: in-window packets are taken and refused, none is dropped. */
TEST(sim_flows__target_full_is_a_refusal)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.hosts = 4, .qps = 2, .order = MRD_ORDER_MSG, .max_flows = 1});

    uint32_t first = send_qp(w, HOST_0, 0);

    send_qp(w, HOST_3, 0); /* all peers together may have twice max_flows */

    sim_run_until_complete(w, 5 * MSEC_NS);

    uint32_t waits = send_qp(w, HOST_2, 1);

    sim_run(w, 20 * MSEC_NS);
    assert_true(received(w, first));
    assert_false(w->messages[waits].received);
    assert_true(sim_counter(w, HOST_1, "rx_refuse_resources") > 5);
    assert_int_equal(sim_counter(w, HOST_1, "rx_drop_resources"), 0);
    assert_int_equal(sim_counter(w, HOST_2, "retx_timeout"), 0);

    sim_fail_qp(w, HOST_1, 0);              /* its flows make room */
    sim_run_until_complete(w, 8 * MSEC_NS); /* the longest delay, and a round trip */
    assert_true(received(w, waits));
}

/*
 * A flow whose first messages were given up while the target could not even note that: the next
 * message tells that its sender owes nothing older, and is delivered when there is room.
 */
TEST(sim_flows__begin_with_the_oldest_message_owed)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = 4,
                                                                 .qps = 2,
                                                                 .order = MRD_ORDER_MSG,
                                                                 .max_flows = 1,
                                                                 .rnr_limited = true,
                                                                 .rnr_retry = 0});

    send_qp(w, HOST_0, 0); /* takes the one record for messages */
    sim_run_until_complete(w, 5 * MSEC_NS);
    send_qp(w, HOST_2, 0); /* its ABORT takes the record beyond */
    sim_run_until_complete(w, 5 * MSEC_NS);

    uint32_t given_up[2] = {send_qp(w, HOST_3, 1), send_qp(w, HOST_3, 1)};

    sim_run_until_complete(w, 5 * MSEC_NS);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(w->messages[given_up[i]].status, MRD_WC_RNR_RETRY_EXC_ERR);

    sim_fail_qp(w, HOST_1, 0);

    uint32_t next = send_qp(w, HOST_3, 1), after = send_qp(w, HOST_3, 1);

    sim_run_until_complete(w, 5 * MSEC_NS);
    assert_true(received(w, next) && received(w, after));
    assert_true(sim_in_order(w, HOST_3, HOST_1, 1));
}
