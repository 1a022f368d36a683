/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/pump.h"

#include "tests/support/check.h"

enum {
    MESSAGE_BYTES = 64 << 10,
    MESSAGES = 63,
    POLL_NS = 1000,
    POLL_BURST = 256,
};

void pump_start_sized(struct pump *p, struct sim_world *w, uint32_t from, uint32_t to,
                      uint32_t bytes, uint32_t depth)
{
    *p = (struct pump){.w = w, .from = from, .to = to, .bytes = bytes, .depth = depth};
    p->source = w->node[from].arena + w->node[from].arena_used;
    p->target = w->node[to].arena + w->node[to].arena_used;
    w->node[from].arena_used += bytes;
    w->node[to].arena_used += bytes;
}

void pump_start(struct pump *p, struct sim_world *w, uint32_t from, uint32_t to)
{
    pump_start_sized(p, w, from, to, MESSAGE_BYTES, MESSAGES);
}

static void pump_post(struct pump *p)
{
    struct sim_node *from = &p->w->node[p->from], *to = &p->w->node[p->to];
    struct mrd_sge sge = {(uintptr_t)p->source, p->bytes, from->mr->lkey};
    struct mrd_send_wr wr = {.opcode = MRD_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = MRD_SEND_SIGNALED};
    struct mrd_send_wr *bad_wr;

    wr.wr.rdma.remote_addr = (uintptr_t)p->target;
    wr.wr.rdma.rkey = to->mr->rkey;
    wr.ud.ah = from->ah[p->to];
    wr.ud.remote_qpn = to->qp[0]->qp_num;
    wr.ud.remote_qkey = 0x1000;
    test_check(test_seed(), mrd_post_send(from->qp[0], &wr, &bad_wr) == 0, "post: %s",
               mrd_last_error());
    p->posted++;
}

static void pump_turn(struct pump *p)
{
    struct mrd_wc wc[POLL_BURST];
    int n = mrd_poll_cq(p->w->node[p->from].cq, POLL_BURST, wc);

    assert_true(n >= 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
    p->done += (uint32_t)n;
    while (p->posted - p->done < p->depth)
        pump_post(p);
}

void pump_run(struct pump *pumps, uint32_t num, uint64_t ns, double *gbps)
{
    struct sim_world *w = pumps[0].w;
    uint64_t end_ns = mrd_sim_now(w->sim) + ns;
    uint32_t done[SIM_HOSTS_MAX];

    for (uint32_t i = 0; i < num; i++)
        done[i] = pumps[i].done;
    while (mrd_sim_now(w->sim) < end_ns) {
        for (uint32_t i = 0; i < num; i++)
            pump_turn(&pumps[i]);
        for (uint32_t host = 0; host < w->options.hosts; host++) {
            struct mrd_wc wc;

            if (w->node[host].context)
                assert_true(mrd_poll_cq(w->node[host].cq, 0, &wc) == 0);
        }
        mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + POLL_NS);
    }
    for (uint32_t i = 0; i < num && gbps; i++)
        gbps[i] = (double)(pumps[i].done - done[i]) * pumps[i].bytes * 8 / (double)ns;
}

void pump_stop(struct pump *p)
{
    p->depth = 0;
    for (int i = 0; i < 10000 && p->posted != p->done; i++)
        pump_run(p, 1, 100 * USEC_NS, NULL);
    assert_int_equal(p->posted, p->done);
}

double pump_run_one(struct pump *pump, uint64_t ns)
{
    double gbps;

    pump_run(pump, 1, ns, &gbps);
    return gbps;
}
