/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limited retries and small tables: nobody fails, or waits for ever, because of hints or of others.
 */
#include "core/engine/state.h"
#include "tests/support/wiretap.h"

/*
 * rnr_retry attempts, 100 ms between them: so long the receives may take. One comes every 50 us,
 * and what they wake must not use up the retries of messages whose turn did not come.
 */
static void limited(uint32_t hosts, uint32_t per_host, uint32_t rnr_retry)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = hosts,
                                                                 .rnr_limited = true,
                                                                 .rnr_retry = rnr_retry,
                                                                 .rnr_timer_ns = 100 * MSEC_NS,
                                                                 .recv_bytes = 100,
                                                                 .no_receives = true});
    uint32_t num = 0, failed = 0;

    for (uint32_t host = 1; host < hosts; host++)
        for (uint32_t i = 0; i < per_host; i++, num++)
            sim_send(w, host, HOST_0, 100);
    sim_run(w, MSEC_NS);
    for (uint32_t i = 0; i < num; i++) {
        sim_post_recvs(w, HOST_0, 0, 1, 100);
        sim_run(w, 50 * USEC_NS);
    }
    for (uint32_t i = 0; i < num; i++)
        failed += w->messages[i].sent && w->messages[i].status != MRD_WC_SUCCESS;
    test_check(w->options.seed, !failed,
               "%u of %u messages failed within %llu us, a retry takes 100000", failed, num,
               (unsigned long long)(mrd_sim_now(w->sim) / USEC_NS));
    sim_run_until_complete(w, 10 * SEC_NS);
    sim_world_destroy(w);
}

TEST(sim_retries__retries_used_up_by_followers)
{
    limited(2, 32, 2);
}

TEST(sim_retries__retries_used_up_by_ready)
{
    limited(9, 1, 3);
}

/*
 * Many wait for receives, and these come one by one: only one or two of them send for each, not
 * all. Nobody's own timer is near.
 */
TEST(sim_retries__one_receive_wakes_few)
{
    enum { HOSTS = 16, BYTES = 80000 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .hosts = HOSTS, .rnr_timer_ns = SEC_NS, .recv_bytes = BYTES, .no_receives = true});

    for (uint32_t host = 1; host < HOSTS; host++)
        sim_send(w, host, HOST_0, BYTES);
    sim_run(w, 100 * MSEC_NS);
    uint64_t before = sim_counter(w, HOST_0, "rx_refuse_rnr");
    for (uint32_t i = 1; i < HOSTS; i++) {
        sim_post_recvs(w, HOST_0, 0, 1, BYTES);
        sim_run(w, MSEC_NS);
    }
    uint64_t refused = sim_counter(w, HOST_0, "rx_refuse_rnr") - before;
    test_check(w->options.seed, refused <= 2 * HOSTS, "%llu refusals for %u receives",
               (unsigned long long)refused, HOSTS - 1);
    sim_run_until_complete(w, MSEC_NS);
}

/* The one that is told of a receive gave up meanwhile: the next one gets it at once. */
TEST(sim_retries__a_receive_that_is_not_used_wakes_the_next)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .hosts = 3, .rnr_timer_ns = SEC_NS, .recv_bytes = 100, .no_receives = true});

    sim_send(w, HOST_1, HOST_0, 100);
    sim_run(w, 10 * MSEC_NS);
    sim_send(w, HOST_2, HOST_0, 100);
    sim_run(w, 10 * MSEC_NS);
    sim_fail_qp(w, HOST_1, 0);
    sim_run(w, 10 * MSEC_NS);
    sim_post_recvs(w, HOST_0, 0, 1, 100);
    sim_run(w, 10 * MSEC_NS);
    sim_expect_sent(w, 1, MRD_WC_SUCCESS);
}

/* A table of flows as large as both ends need: all get through, though all are always busy. */
static void busy_flows(uint32_t max_flows, uint32_t rnr_retry)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.order = MRD_ORDER_MSG,
                                                                 .qps = max_flows,
                                                                 .max_flows = max_flows,
                                                                 .rnr_limited = true,
                                                                 .rnr_retry = rnr_retry,
                                                                 .recv_bytes = 100});
    uint32_t done[SIM_QPS_MAX] = {0}, last[SIM_QPS_MAX][2], failed = 0;

    for (uint32_t qp = 0; qp < max_flows; qp++)
        for (uint32_t i = 0; i < 2; i++)
            last[qp][i] = sim_post_on(w, HOST_0, HOST_1, qp, 20000, MRD_WR_RDMA_WRITE);
    for (uint32_t i = 0; i < 5000; i++) {
        sim_run(w, 100 * USEC_NS);
        for (uint32_t qp = 0; qp < max_flows; qp++) {
            for (uint32_t k = 0; k < 2; k++) {
                if (!w->messages[last[qp][k]].sent)
                    continue;
                done[qp] += w->messages[last[qp][k]].status == MRD_WC_SUCCESS;
                failed += w->messages[last[qp][k]].status != MRD_WC_SUCCESS;
                last[qp][k] = sim_post_on(w, HOST_0, HOST_1, qp, 20000, MRD_WR_RDMA_WRITE);
            }
        }
    }
    for (uint32_t qp = 0; qp < max_flows; qp++)
        print_message("flow %u: %u\n", qp, done[qp]);
    test_check(w->options.seed, !failed, "%u failed", failed);
    for (uint32_t qp = 0; qp < max_flows; qp++)
        test_check(w->options.seed, done[qp],
                   "flow %u got nothing through in half a second; refused %llu times", qp,
                   (unsigned long long)sim_counter(w, HOST_1, "rx_refuse_resources"));
    sim_run_until_complete(w, SEC_NS);
    sim_world_destroy(w);
}

TEST(sim_retries__all_flows_of_the_table_busy)
{
    busy_flows(8, 7);
}

TEST(sim_retries__all_flows_of_the_table_busy_limited)
{
    busy_flows(8, 6);
}

static struct mrd_txq *txq_of(struct mrd_engine *e)
{
    struct mrd_peer *peer = mrd_container_of(e->peers.active.next, struct mrd_peer, node);

    return mrd_container_of(peer->tx->rnr.txqs.next, struct mrd_txq, rnr_node);
}

/*
 * The table of send queues is used up by queues that starve: a message that was posted before,
 * refused once, and has a receive now, gets through all the same.
 */
TEST(sim_retries__no_queue_to_wait_in)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.qps = 2, .max_flows = 1, .recv_bytes = 100, .no_receives = true});
    const struct mrd_peer *peer;
    uint32_t index, late;

    sim_send(w, HOST_0, HOST_1, 100);
    for (unsigned i = 0; i < 400; i++) { /* as soon as the first has left its queue */
        struct sim_post post = {.to = HOST_1, .qp = 1, .len = 100, .opcode = MRD_WR_SEND};

        if (!sim_try_post(w, &post, &index))
            break;
        sim_run(w, USEC_NS / 2);
    }
    assert_int_equal(w->num_messages, 2);
    sim_run(w, MSEC_NS);
    peer = sim_peer(w, HOST_0);
    /* One of the two found no queue to wait in. */
    assert_false(mrd_list_empty(&peer->tx->rnr.common[0]->waiting));
    late = sim_engine(w, HOST_0)->txqs.pool.used &&
                   txq_of(sim_engine(w, HOST_0))->qpn == w->node[HOST_0].qp[0]->qp_num
               ? 1
               : 0;
    sim_post_recvs(w, HOST_1, late, 1, 100);
    sim_run(w, 10 * SEC_NS);
    test_check(w->options.seed, w->messages[late].sent, "a receive was there for 10 s");
}

/* Messages that wait for receives of a QP that goes into error end soon, not one in 64 delays. */
static void ends_soon(enum mrd_order order, bool dies, uint32_t rnr_retry)
{
    enum { MESSAGES = 1000 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.order = order,
                                                                 .send_wr = MESSAGES,
                                                                 .rnr_limited = true,
                                                                 .rnr_retry = rnr_retry,
                                                                 .recv_bytes = 100,
                                                                 .no_receives = true});
    uint32_t open = 0;

    for (uint32_t i = 0; i < 2; i++)
        sim_send(w, HOST_0, HOST_1, 100);
    sim_run(w, 20 * MSEC_NS);
    for (uint32_t i = 2; i < MESSAGES; i++)
        sim_send(w, HOST_0, HOST_1, 100);
    sim_run(w, 20 * MSEC_NS);
    if (dies)
        sim_fail_qp(w, HOST_1, 0);
    sim_run(w, SEC_NS);
    for (uint32_t i = 0; i < MESSAGES; i++)
        open += !w->messages[i].sent;
    test_check(w->options.seed, !open, "%u of %u messages still wait after a second", open,
               MESSAGES);
    sim_world_destroy(w);
}

TEST(sim_retries__those_that_wait_for_a_dead_queue_pair)
{
    ends_soon(MRD_ORDER_NONE, true, MRD_RNR_RETRY_FOREVER);
}

TEST(sim_retries__those_that_wait_for_a_dead_queue_pair_in_order)
{
    ends_soon(MRD_ORDER_MSG, true, MRD_RNR_RETRY_FOREVER);
}

/* Of limited retries (6 of up to 6.4 ms each) none waits for the ends of all before it. */
TEST(sim_retries__limited_retries_one_after_the_other)
{
    ends_soon(MRD_ORDER_NONE, false, 6);
}

/*
 * The receive is posted just after a further refusal: what it tells must not be lost on the sender.
 */
static void ready_early(uint32_t len)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .rnr_timer_ns = 10 * MSEC_NS, .recv_bytes = len, .no_receives = true});

    sim_send(w, HOST_0, HOST_1, len);
    while (sim_counter(w, HOST_1, "rx_refuse_rnr") < 8)
        sim_run(w, USEC_NS);
    sim_post_recvs(w, HOST_1, 0, 1, len);
    sim_run(w, 20 * MSEC_NS);
    test_check(w->options.seed, w->messages[0].sent,
               "%u bytes: a receive is there for twice the delay, and the next try is 640 ms away",
               len);
    sim_world_destroy(w);
}

TEST(sim_retries__ready_while_the_attempt_ends)
{
    ready_early(100);
    ready_early(5000);
}

/*
 * A write that was refused once for want of memory waits in the queue where a message starves for
 * want of a receive: the write needs none, and goes when there is memory.
 */
TEST(sim_retries__a_write_behind_one_that_starves)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.qps = 2, .recv_bytes = 100, .no_receives = true});
    uint32_t write;

    sim_send(w, HOST_0, HOST_1, 100);
    sim_run(w, 10 * MSEC_NS);
    sim_engine(w, HOST_1)->peers.slots.num = 2; /* a peer may have one message open */
    for (uint32_t i = 0; i < 2; i++)
        write = sim_post_on(w, HOST_0, HOST_1, 1 - i, 1 << 20, MRD_WR_RDMA_WRITE);
    sim_run(w, 10 * SEC_NS);
    assert_true(sim_counter(w, HOST_1, "rx_refuse_resources") > 0);
    assert_true(w->messages[1].sent);
    test_check(w->options.seed, w->messages[write].sent, "the write did not go for 10 s");
}

/*
 * A message of many packets owns the only receive. The window is below a packet, so that each time
 * there is room for one, the retry of the message that waits for that receive is due as well: it
 * must not go first.
 */
TEST(sim_retries__what_has_begun_goes_on)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .cc = "none", .rnr_timer_ns = USEC_NS, .recv_bytes = 20000, .no_receives = true});
    struct wiretap *tap = wiretap_open(w);
    struct mrd_peer *peer;

    sim_write_complete(w, HOST_0, HOST_1, 100, MSEC_NS);
    peer = sim_peer(w, HOST_0);
    sim_engine(w, HOST_0)->cc_config.cwnd_cap_bytes = 1; /* acks leave the window as it is */
    sim_post_recvs(w, HOST_1, 0, 1, 20000);
    tap->drop[HOST_0][WIRE_MESSAGE] = 1;
    uint32_t small = sim_send(w, HOST_0, HOST_1, 4000);
    sim_run(w, USEC_NS);
    peer->tx->cc.cwnd_bytes = peer->tx->cc.packet_bytes;
    uint32_t large = sim_send(w, HOST_0, HOST_1, 20000);
    sim_run(w, 10 * USEC_NS);
    peer->tx->cc.cwnd_bytes = 0.05 * peer->tx->cc.packet_bytes;
    for (uint32_t i = 0; i < 300 && !w->messages[large].sent; i++)
        sim_run(w, 10 * USEC_NS);
    assert_true(sim_counter(w, HOST_1, "rx_refuse_rnr") > 0);
    assert_false(w->messages[small].sent);
    test_check(w->options.seed, w->messages[large].sent, "it waits for the retries of another");
    sim_post_recvs(w, HOST_1, 0, 1, 4000);
    sim_run_until_complete(w, 100 * MSEC_NS);
}
