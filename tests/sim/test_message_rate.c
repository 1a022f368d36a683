/* SPDX-License-Identifier: BSD-2-Clause */
/* Many short messages of a few packets, to one peer, go as fast as few long ones. */
#include "core/engine/state.h"
#include "tests/support/check.h"
#include "tests/support/world.h"
#include "transport/context.h"

enum {
    LINKS = 16,
    LINK_DELAY_NS = 15000,
    LONG_BYTES = 1 << 20,
    LONG_OUTSTANDING = 16,
    SHORT_OUTSTANDING = 1024,
    POLL_NS = 1000,
    POLL_BURST = 256,
    WARM_UP_NS = 2 * MSEC_NS,
    MEASURE_NS = 4 * MSEC_NS,
    SETTLE_NS = 100 * MSEC_NS,
};
#define LINK_BPS 25000000000
#define ALL_BPS  (LINKS * LINK_BPS)

struct pump {
    struct sim_world *w;
    uint32_t bytes, outstanding, posted, done;
};

static void post(struct pump *p)
{
    struct sim_node *from = &p->w->node[HOST_0], *to = &p->w->node[HOST_1];
    struct mrd_sge sge = {(uintptr_t)from->arena, p->bytes, from->mr->lkey};
    struct mrd_send_wr wr = {.opcode = MRD_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = MRD_SEND_SIGNALED};
    struct mrd_send_wr *bad_wr;

    wr.wr.rdma.remote_addr = (uintptr_t)to->arena;
    wr.wr.rdma.rkey = to->mr->rkey;
    wr.ud.ah = from->ah[HOST_1];
    wr.ud.remote_qpn = to->qp[0]->qp_num;
    wr.ud.remote_qkey = 0x1000;
    test_check(test_seed(), mrd_post_send(from->qp[0], &wr, &bad_wr) == 0, "post: %s",
               mrd_last_error());
    p->posted++;
}

static void poll(struct pump *p)
{
    struct mrd_wc wc[POLL_BURST];
    int n = mrd_poll_cq(p->w->node[HOST_0].cq, POLL_BURST, wc);

    assert_true(n >= 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
    p->done += (uint32_t)n;
    assert_int_equal(mrd_poll_cq(p->w->node[HOST_1].cq, 1, wc), 0);
}

/* Gb/s of what was completed in that time. */
static double run(struct pump *p, uint64_t ns)
{
    uint64_t end_ns = mrd_sim_now(p->w->sim) + ns;
    uint32_t done = p->done;

    while (mrd_sim_now(p->w->sim) < end_ns) {
        poll(p);
        while (p->posted - p->done < p->outstanding)
            post(p);
        mrd_sim_run_until(p->w->sim, mrd_sim_now(p->w->sim) + POLL_NS);
    }
    return (double)(p->done - done) * p->bytes * 8 / (double)ns;
}

/* link_bps: what the sender takes the rate of its way for. */
static double rate(uint64_t link_bps, uint32_t bytes, uint32_t outstanding, uint32_t loss_ppm)
{
    struct sim_world *w = sim_world_create(&(struct sim_options){.seed = test_seed(),
                                                                 .links = LINKS,
                                                                 .paths = LINKS,
                                                                 .rate_bps = LINK_BPS,
                                                                 .delay_ns = LINK_DELAY_NS,
                                                                 .loss_ppm = loss_ppm,
                                                                 .send_wr = SHORT_OUTSTANDING});
    struct pump p = {.w = w, .bytes = bytes, .outstanding = outstanding};

    mrd_context_engine(w->node[HOST_0].context)->config.mover.link_bps = link_bps;
    run(&p, WARM_UP_NS);

    double gbps = run(&p, MEASURE_NS);

    p.outstanding = 0;
    run(&p, SETTLE_NS);
    assert_int_equal(p.posted, p.done);
    sim_world_destroy(w);
    return gbps;
}

static void check_rate(uint64_t link_bps, uint32_t bytes, uint32_t loss_ppm, double least)
{
    double whole = rate(link_bps, LONG_BYTES, LONG_OUTSTANDING, loss_ppm);
    double gbps = rate(link_bps, bytes, SHORT_OUTSTANDING, loss_ppm);

    test_check(test_seed(), gbps >= least * whole,
               "%u bytes, loss %u ppm: %.2f Gb/s, of 1 MiB %.2f", bytes, loss_ppm, gbps, whole);
}

static void sim_message_rate__without_loss(void **state)
{
    (void)state;
    check_rate(LINK_BPS, 8 << 10, 0, 0.85);
    check_rate(LINK_BPS, 5 << 10, 0, 0.85);
    check_rate(ALL_BPS, 8 << 10, 0, 0.85);
    check_rate(ALL_BPS, 5 << 10, 0, 0.85);
}

/* Packets that are half full fill the space of PSNs before they fill the window: not at the rate of all links. */
static void sim_message_rate__with_loss(void **state)
{
    (void)state;
    check_rate(LINK_BPS, 8 << 10, 10000, 0.75);
    check_rate(LINK_BPS, 5 << 10, 10000, 0.75);
    check_rate(ALL_BPS, 8 << 10, 10000, 0.75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_message_rate__without_loss),
        cmocka_unit_test(sim_message_rate__with_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
