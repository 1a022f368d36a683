/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that goes while its peer writes to it: those writes fail, and nothing else of the peer does. */
#include "tests/support/world.h"
#include "transport/movers/sim/sim_host.h"

enum { QPS = 17, WRITES = 512, BYTES = 8 };

/* Writes of all queue pairs but the first, to memory that is there no more. */
static void post_writes(struct sim_world *w)
{
    for (uint32_t i = 0; i < WRITES; i++)
        for (uint32_t qp = 1; qp < QPS; qp++)
            sim_post_on(w, HOST_0, HOST_1, qp, BYTES, MRD_WR_RDMA_WRITE);
}

/* While they are refused, a message on another queue pair takes no longer than ever. */
TEST(sim_stale_keys__hold_up_nobody)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.qps = QPS, .send_wr = WRITES, .cqe = QPS * WRITES * 2});
    struct mrd_mr *kept = w->node[HOST_1].mr;

    sim_send_complete(w, HOST_0, HOST_1, BYTES, SEC_NS);
    /* The writes name a region of the same memory that goes, before their packets come. */
    w->node[HOST_1].mr =
        mrd_reg_mr(w->node[HOST_1].pd, kept->addr, kept->length,
                   MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ);
    assert_non_null(w->node[HOST_1].mr);
    post_writes(w);
    assert_int_equal(mrd_dereg_mr(w->node[HOST_1].mr), 0);
    w->node[HOST_1].mr = kept;
    sim_run(w, 2 * MSEC_NS);
    uint32_t good = sim_send(w, HOST_0, HOST_1, BYTES);
    for (uint32_t i = 0; i < 100 && !w->messages[good].sent; i++)
        sim_run(w, MSEC_NS);
    sim_expect_sent(w, good, MRD_WC_SUCCESS);
    sim_run_until_complete(w, SEC_NS);
    uint32_t bad = 0;
    for (uint32_t i = 0; i < w->num_messages; i++)
        bad += w->messages[i].status == MRD_WC_REM_ACCESS_ERR;
    assert_in_range(bad, (QPS - 1) * WRITES / 2, (QPS - 1) * WRITES);
}
