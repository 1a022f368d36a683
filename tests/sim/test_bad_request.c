/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that are refused or never arrive: each ends with its status and disturbs no other. */
#include "tests/support/world.h"

enum { OTHERS = 12 };

/* Messages of all kinds beside a bad one: on its QP and another, before and after, both ways. */
struct beside {
    struct sim_world *w;
    uint32_t message[OTHERS], num;
};

static void some_beside(struct beside *b)
{
    for (uint32_t i = 0; i < OTHERS / 2; i++)
        b->message[b->num++] =
            sim_post_on(b->w, i % 3 == 2, i % 3 != 2, 1, i & 1 ? 100 : 50000,
                        i & 2 ? MRD_WR_RDMA_WRITE_WITH_IMM : MRD_WR_SEND_WITH_IMM);
}

static struct sim_world *create(enum mrd_order order, uint32_t rnr_retry)
{
    return sim_fabric_world(&(struct sim_options){.qps = 2,
                                                  .recv_bytes = 1 << 20,
                                                  .order = order,
                                                  .rnr_limited = true,
                                                  .rnr_retry = rnr_retry});
}

struct bad_request {
    struct sim_post post;
    uint32_t receive_bytes; /* of a receive that it finds; 0: none */
    enum mrd_wc_status status, receive_status;
    const char *counter;
};

/*
 * In the midst of other messages: its status, its counter once, all else right, and the QP goes on.
 */
static void one_request(enum mrd_order order, const struct bad_request *bad)
{
    struct sim_world *w = create(order, 0);
    struct beside b = {.w = w};
    struct sim_post post = bad->post;
    uint32_t index, receive = UINT32_MAX;

    post.to = HOST_1;
    post.no_receive = true;
    some_beside(&b);
    if (bad->receive_bytes) {
        sim_post_recvs(w, HOST_1, 0, 1, bad->receive_bytes);
        receive = w->num_receives - 1;
    }
    index = sim_post(w, &post);
    some_beside(&b);
    sim_run_until_complete(w, 20 * MSEC_NS);

    assert_true(w->messages[index].sent);
    assert_int_equal(w->messages[index].status, bad->status);
    assert_false(w->messages[index].received);
    assert_int_equal(sim_counter(w, HOST_1, bad->counter), 1);
    assert_int_equal(sim_counter(w, HOST_0, "tx_messages_failed"), 1);
    if (receive != UINT32_MAX) {
        assert_int_equal(w->receives[receive].done, bad->receive_status != MRD_WC_SUCCESS);
        if (w->receives[receive].done)
            assert_int_equal(w->receives[receive].status, bad->receive_status);
    }
    for (uint32_t i = 0; i < OTHERS; i++) {
        assert_true(w->messages[b.message[i]].equal);
        assert_int_equal(w->messages[b.message[i]].status, MRD_WC_SUCCESS);
    }
    index =
        sim_write_imm(w, HOST_0, HOST_1, 60000); /* takes a receive that was left, of any length */
    sim_run_until_complete(w, 20 * MSEC_NS);
    assert_true(w->messages[index].equal);
    assert_int_equal(w->node[HOST_0].unreachable + w->node[HOST_0].restarted, 0);
}

/* Both order modes, a message of one packet and one of many. */
static void each_way(const struct bad_request *bad)
{
    for (unsigned i = 0; i < 4; i++) {
        struct bad_request b = *bad;

        b.post.len = i & 1 ? 30000 : 300;
        b.receive_bytes = bad->receive_bytes ? b.post.len + bad->receive_bytes - 300 : 0;
        one_request(i & 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE, &b);
    }
}

TEST(bad_request__qkey)
{
    each_way(&(struct bad_request){.post = {.opcode = MRD_WR_SEND, .qkey_add = 1},
                                   .receive_bytes = 300,
                                   .status = MRD_WC_REM_INV_REQ_ERR,
                                   .counter = "rx_refuse_qkey"});
}

TEST(bad_request__qpn)
{
    for (enum mrd_wr_opcode op = MRD_WR_RDMA_WRITE; op <= MRD_WR_SEND_WITH_IMM; op++)
        each_way(&(struct bad_request){.post = {.opcode = op, .qpn_add = 1000},
                                       .receive_bytes = 300,
                                       .status = MRD_WC_REM_INV_REQ_ERR,
                                       .counter = "rx_refuse_qpn"});
}

/* A receive one byte too small ends in error on both sides; one that fits to the byte does not. */
TEST(bad_request__too_small_receive)
{
    each_way(&(struct bad_request){.post = {.opcode = MRD_WR_SEND},
                                   .receive_bytes = 299,
                                   .status = MRD_WC_REM_INV_REQ_ERR,
                                   .receive_status = MRD_WC_LOC_LEN_ERR,
                                   .counter = "rx_refuse_too_long"});
}

TEST(bad_request__no_receive)
{
    each_way(&(struct bad_request){.post = {.opcode = MRD_WR_SEND},
                                   .status = MRD_WC_RNR_RETRY_EXC_ERR,
                                   .counter = "rx_refuse_rnr"});
    each_way(&(struct bad_request){.post = {.opcode = MRD_WR_RDMA_WRITE_WITH_IMM},
                                   .status = MRD_WC_RNR_RETRY_EXC_ERR,
                                   .counter = "rx_refuse_rnr"});
}

/* Denied access: a wrong key, a range outside of the region on either side. */
TEST(bad_request__access)
{
    static const uint64_t add[] = {0, 1ull << 40, 0ull - (1ull << 40), 4ull << 30};

    for (unsigned i = 0; i < sizeof(add) / sizeof(add[0]); i++) {
        struct bad_request bad = {
            .post = {.opcode = MRD_WR_RDMA_WRITE, .rkey_add = i == 0, .remote_add = add[i]},
            .status = MRD_WC_REM_ACCESS_ERR,
            .counter = "rx_refuse_access"};

        each_way(&bad);
        bad.post.opcode = MRD_WR_RDMA_WRITE_WITH_IMM;
        bad.receive_bytes = 300; /* not taken */
        each_way(&bad);
    }
}

/* A region that may not be written remotely, one of another PD, and one deregistered. */
TEST(bad_request__access_by_region)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct sim_world *w = create(MRD_ORDER_NONE, 0);
        struct sim_node *node = &w->node[HOST_1];
        struct mrd_pd *pd = i == 1 ? mrd_alloc_pd(node->context) : node->pd;
        int access =
            MRD_ACCESS_LOCAL_WRITE | (i == 0 ? MRD_ACCESS_REMOTE_READ : MRD_ACCESS_REMOTE_WRITE);
        struct mrd_mr *mr = mrd_reg_mr(pd, node->arena, node->mr->length, access);
        struct beside b = {.w = w};

        assert_non_null(mr);
        uint32_t rkey_add = mr->rkey - node->mr->rkey;
        if (i == 2)
            assert_int_equal(mrd_dereg_mr(mr), 0);
        some_beside(&b);
        uint32_t index =
            sim_post(w, &(struct sim_post){.to = HOST_1, .len = 9000, .rkey_add = rkey_add});
        sim_run_until_complete(w, 20 * MSEC_NS);
        assert_int_equal(w->messages[index].status, MRD_WC_REM_ACCESS_ERR);
        for (uint32_t at = 0; at < 9000; at++)
            assert_int_equal(w->messages[index].target[at], 0);
        for (uint32_t k = 0; k < b.num; k++)
            assert_true(w->messages[b.message[k]].equal);
        if (i != 2)
            assert_int_equal(mrd_dereg_mr(mr), 0);
        if (i == 1)
            assert_int_equal(mrd_dealloc_pd(pd), 0);
    }
}

/* rnr_retry 0 to 6 tries so many times again, after a delay that doubles, and no more. */
TEST(bad_request__rnr_retry_exhausts)
{
    for (uint32_t retry = 0; retry < MRD_RNR_RETRY_FOREVER; retry++) {
        for (uint32_t len = 100; len <= 30000; len += 29900) {
            struct sim_world *w = create(MRD_ORDER_NONE, retry);
            uint32_t index = sim_post(
                w, &(struct sim_post){
                       .to = HOST_1, .len = len, .opcode = MRD_WR_SEND, .no_receive = true});
            uint64_t took_ns = sim_run_until_complete(w, 20 * MSEC_NS);
            uint64_t delays_ns = ((1u << retry) - 1) * 100 * USEC_NS;

            assert_int_equal(w->messages[index].status, MRD_WC_RNR_RETRY_EXC_ERR);
            assert_int_equal(sim_counter(w, HOST_1, "rx_refuse_rnr"), retry + 1);
            assert_in_range(took_ns, delays_ns, delays_ns * 9 / 8 + (retry + 1) * 50 * USEC_NS);
            /* One that comes later is not taken by it any more. */
            index = sim_send(w, HOST_0, HOST_1, len);
            sim_run_until_complete(w, 1 * MSEC_NS);
            assert_true(w->messages[index].equal);
        }
    }
}

/* 7 is for ever: a receive that comes much later is found. */
TEST(bad_request__rnr_retry_for_ever)
{
    struct sim_world *w = create(MRD_ORDER_NONE, MRD_RNR_RETRY_FOREVER);
    uint32_t index = sim_post(
        w,
        &(struct sim_post){.to = HOST_1, .len = 30000, .opcode = MRD_WR_SEND, .no_receive = true});

    sim_run(w, 100 * MSEC_NS);
    assert_false(w->messages[index].sent);
    assert_in_range(sim_counter(w, HOST_1, "rx_refuse_rnr"), 6 + 10,
                    7 + 16); /* 6.4 ms apart in the end */
    sim_post_recvs(w, HOST_1, 0, 1, 30000);
    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_true(w->messages[index].equal);
}

/* ----------------------------------------------------------------------------------- dead peers */

/* A peer that dies, amid a message or before: in its time, an error and an event with its name. */
static void dead_peer(uint64_t timeout_ns, bool known)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .hosts = 3, .rate_bps = 10000000000, .recv_bytes = 1 << 20, .peer_timeout_ns = timeout_ns});
    uint32_t lost[2], alive;
    struct mrd_async_event event;

    if (known) {
        sim_send_complete(w, HOST_0, HOST_1, 100, 1 * MSEC_NS);
        lost[0] = sim_send(w, HOST_0, HOST_1, 1 << 20);
        sim_run(w, 100 * USEC_NS);
    }
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    if (!known)
        lost[0] = sim_send(w, HOST_0, HOST_1, 1 << 20);
    lost[1] = sim_write(w, HOST_0, HOST_1, 64);
    sim_run(w, timeout_ns / 2);
    alive = sim_send(w, HOST_0, HOST_2, 100000);
    sim_run(w, timeout_ns / 2 - 10 * MSEC_NS);
    assert_false(w->messages[lost[0]].sent || w->messages[lost[1]].sent);
    assert_true(w->messages[alive].equal);

    uint64_t least_ns = mrd_sim_now(w->sim);
    uint64_t most_ns = least_ns + timeout_ns / 2 + 300 * MSEC_NS;
    while (mrd_get_async_event(w->node[HOST_0].context, &event) != 0) {
        assert_true(mrd_sim_now(w->sim) < most_ns);
        mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + MSEC_NS);
    }
    assert_int_equal(event.event_type, MRD_EVENT_PEER_UNREACHABLE);
    assert_string_equal(event.address, "sim:1");
    mrd_ack_async_event(&event);
    sim_poll(w);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(w->messages[lost[i]].sent);
        assert_int_equal(w->messages[lost[i]].status, MRD_WC_RETRY_EXC_ERR);
    }
    sim_run(w, timeout_ns);
    assert_int_equal(w->node[HOST_0].unreachable, 0); /* one event, taken above */
    assert_int_equal(sim_counter(w, HOST_0, "peers_unreachable"), 1);
}

TEST(dead_peer__within_its_timeout)
{
    static const uint64_t timeouts_ns[] = {50 * MSEC_NS, 500 * MSEC_NS, 3 * SEC_NS, 0};

    for (unsigned i = 0; timeouts_ns[i]; i++) {
        dead_peer(timeouts_ns[i], true);
        dead_peer(timeouts_ns[i], false);
    }
    dead_peer(8 * SEC_NS, true);
}

/* What is posted to a dead peer later gets its own time, and its own event. */
TEST(dead_peer__posted_again)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.peer_timeout_ns = 200 * MSEC_NS});

    mrd_sim_stop_host(w->sim, HOST_1, 1);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t index = sim_send(w, HOST_0, HOST_1, 100);
        uint64_t took_ns = sim_run_until_complete(w, SEC_NS);

        assert_int_equal(w->messages[index].status, MRD_WC_RETRY_EXC_ERR);
        assert_in_range(took_ns, 200 * MSEC_NS, 500 * MSEC_NS);
        assert_int_equal(w->node[HOST_0].unreachable, i + 1);
    }
}
