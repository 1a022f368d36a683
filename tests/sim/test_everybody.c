/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of many processes begins: each context sends a first message to each other one at once,
 * as the ranks of an MPI job do. Nobody is refused, no message is lost, and none fails.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrd/sim.h"
#include "tests/support/check.h"

enum { HOSTS = 384, LEAF_HOSTS = 16, BATCH = 64 };

struct host {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    struct mrd_ah *ah[HOSTS];
    uint32_t from;          /* sent: the sender's number */
    uint32_t inbox[HOSTS];  /* a receive each */
    uint8_t heard[HOSTS];   /* messages of each other one */
    uint32_t sent, arrived; /* completions */
};

static struct mrd_sim *make_sim(uint64_t seed)
{
    static const struct mrd_sim_topology topology = {
        .hosts = HOSTS,
        .tiers = 2,
        .tier = {{.radix_down = LEAF_HOSTS,
                  .radix_up = LEAF_HOSTS,
                  .rate_bps = 100000000000,
                  .delay_ns = 1000},
                 {.radix_down = HOSTS / LEAF_HOSTS, .rate_bps = 100000000000, .delay_ns = 1000}}};
    struct mrd_sim_attr attr = {.seed = seed,
                                .topology = &topology,
                                .link = {.queue_bytes = 1 << 20},
                                .knows = MRD_SIM_KNOWS_FABRIC};
    struct mrd_sim *sim = mrd_sim_create(&attr);

    assert_non_null(sim);
    return sim;
}

static void open_host(struct host *h, struct mrd_sim *sim, uint32_t number)
{
    struct mrd_qp_init_attr qp = {.cap = {.max_send_wr = HOSTS, .max_recv_wr = HOSTS},
                                  .order = MRD_ORDER_MSG,
                                  .sq_sig_all = 1};

    h->context = mrd_open_device(mrd_sim_device(sim, number), NULL);
    assert_non_null(h->context);
    h->pd = mrd_alloc_pd(h->context);
    h->cq = mrd_create_cq(h->context, 2 * HOSTS, NULL);
    h->mr = mrd_reg_mr(h->pd, h, sizeof(*h), MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(h->mr);
    qp.send_cq = qp.recv_cq = h->cq;
    h->qp = mrd_create_qp(h->pd, &qp);
    assert_non_null(h->qp);
    assert_int_equal(h->qp->qp_num, MRD_FIRST_QP_NUM);
    h->from = number;
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct mrd_sge sge = {(uintptr_t)&h->inbox[i], sizeof(h->inbox[i]), h->mr->lkey};
        struct mrd_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

        assert_int_equal(mrd_post_recv(h->qp, &wr, &bad), 0);
    }
}

static void greet_all(struct host *h)
{
    for (uint32_t to = 0; to < HOSTS; to++) {
        struct mrd_sge sge = {(uintptr_t)&h->from, sizeof(h->from), h->mr->lkey};
        struct mrd_send_wr wr = {.wr_id = to, .sg_list = &sge, .num_sge = 1, .opcode = MRD_WR_SEND},
                           *bad;
        char address[MRD_ADDRESS_MAX];

        if (to == h->from)
            continue;
        snprintf(address, sizeof(address), "sim:%u", to);
        h->ah[to] = mrd_create_ah(h->pd, address);
        assert_non_null(h->ah[to]);
        wr.ud.ah = h->ah[to];
        wr.ud.remote_qpn = MRD_FIRST_QP_NUM;
        assert_int_equal(mrd_post_send(h->qp, &wr, &bad), 0);
    }
}

static void poll_host(struct host *h, uint64_t seed)
{
    struct mrd_wc wc[BATCH];
    int n;

    while ((n = mrd_poll_cq(h->cq, BATCH, wc)) > 0) {
        for (int i = 0; i < n; i++) {
            test_check(seed, wc[i].status == MRD_WC_SUCCESS, "host %u: %s", h->from,
                       mrd_wc_status_str(wc[i].status));
            if (wc[i].opcode != MRD_WC_RECV) {
                h->sent++;
                continue;
            }
            h->arrived++;
            h->heard[h->inbox[wc[i].wr_id]]++;
        }
    }
}

static uint64_t counter(struct mrd_context *context, const char *name)
{
    struct mrd_counter c[128];
    int n = mrd_query_counters(context, c, 128);

    for (int i = 0; i < n; i++) {
        if (!strcmp(c[i].name, name))
            return c[i].value;
    }
    fail_msg("no counter %s", name);
    return 0;
}

static void check_host(struct host *h, uint64_t seed)
{
    static const char *const none[] = {"tx_refusals",     "rx_refuse_rnr", "peers_unreachable",
                                       "peers_restarted", "peers_evicted", "rx_busies"};
    struct mrd_async_event event;

    for (uint32_t from = 0; from < HOSTS; from++)
        test_check(seed, h->heard[from] == (from != h->from), "host %u heard %u of host %u",
                   h->from, h->heard[from], from);
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        test_check(seed, counter(h->context, none[i]) == 0, "host %u: %s", h->from, none[i]);
    test_check(seed, mrd_get_async_event(h->context, &event) == -EAGAIN, "host %u has an event",
               h->from);
}

static void close_host(struct host *h)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (h->ah[i])
            assert_int_equal(mrd_destroy_ah(h->ah[i]), 0);
    }
    assert_int_equal(mrd_destroy_qp(h->qp), 0);
    assert_int_equal(mrd_dereg_mr(h->mr), 0);
    assert_int_equal(mrd_destroy_cq(h->cq), 0);
    assert_int_equal(mrd_dealloc_pd(h->pd), 0);
    assert_int_equal(mrd_close_device(h->context), 0);
}

TEST(sim_everybody__greets_everybody)
{
    const uint32_t all = HOSTS * (HOSTS - 1);
    const uint64_t step_ns = 10000, budget_ns = 20000000;
    uint64_t seed = test_seed(), now_ns = 0;
    struct mrd_sim *sim = make_sim(seed);
    struct host *host = calloc(HOSTS, sizeof(*host));
    uint32_t sent = 0, arrived = 0;

    assert_non_null(host);
    for (uint32_t i = 0; i < HOSTS; i++)
        open_host(&host[i], sim, i);
    for (uint32_t i = 0; i < HOSTS; i++)
        greet_all(&host[i]);
    while ((sent < all || arrived < all) && now_ns < budget_ns) {
        now_ns += step_ns;
        mrd_sim_run_until(sim, now_ns);
        sent = arrived = 0;
        for (uint32_t i = 0; i < HOSTS; i++) {
            poll_host(&host[i], seed);
            sent += host[i].sent;
            arrived += host[i].arrived;
        }
    }
    test_check(seed, sent == all && arrived == all, "%u of %u sent, %u arrived after %.1f ms", sent,
               all, arrived, (double)now_ns / 1e6);
    for (uint32_t i = 0; i < HOSTS; i++)
        check_host(&host[i], seed);
    for (uint32_t i = 0; i < HOSTS; i++)
        close_host(&host[i]);
    free(host);
    mrd_sim_destroy(sim);
}
