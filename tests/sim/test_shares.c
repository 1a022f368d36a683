/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer takes of what all peers share only while it holds no more than is free. */
#include "core/engine/state.h"
#include "tests/support/puppet.h"

enum { PENDS = 512, FLOWS = 16, FLOW_QPN = 100, TRIES = PENDS, ABORTS_MOST = 16 };

/* An empty ordered WRITE: done in order, and without a receive. What it was refused with. */
static uint8_t ordered_write(struct puppet *p, uint32_t psn, uint32_t src_qpn, uint16_t msn)
{
    puppet_part(p, psn,
                &(struct mrd_wire_part){.op = MRD_OP_WRITE,
                                        .flags = MRD_PART_ORDERED,
                                        .dst_qpn = p->qp->qp_num,
                                        .src_qpn = src_qpn,
                                        .msn = msn,
                                        .msn_behind = msn},
                NULL);
    return puppet_refused(p, psn);
}

/*
 * A first message that does not come holds all others back: half of the records, and then they are
 * refused. When it comes it is taken, and gives them all back.
 */
TEST(sim_share__of_pending_records)
{
    struct puppet *p = puppet_create();
    struct mrd_engine *e = sim_engine(p->w, HOST_1);
    uint16_t msn = 1;
    uint8_t code;

    assert_int_equal(e->reorder_entries.used, 0);
    e->reorder_entries.num = PENDS;
    while (!(code = ordered_write(p, msn - 1, FLOW_QPN, msn)) && msn < TRIES)
        msn++;
    assert_int_equal(code, MRD_REFUSE_RESOURCES);
    assert_in_range(e->reorder_entries.used, PENDS / 2 - 2, PENDS / 2);
    assert_int_equal(ordered_write(p, msn, FLOW_QPN, 0), 0);
    assert_int_equal(e->reorder_entries.used, 0);
}

/* ABORTs of these messages of a flow, in this order: were they all taken? */
static bool aborts(struct puppet *p, uint32_t psn, const uint16_t *msns, unsigned num)
{
    struct mrd_wire_part part[ABORTS_MOST];

    assert_true(num <= ABORTS_MOST);
    for (unsigned i = 0; i < num; i++)
        part[i] = (struct mrd_wire_part){.op = MRD_OP_ABORT,
                                         .flags = MRD_PART_ORDERED,
                                         .dst_qpn = p->qp->qp_num,
                                         .src_qpn = FLOW_QPN,
                                         .msn = msns[i],
                                         .msn_behind = msns[i]};
    puppet_parts(p, psn, part, num, NULL);
    return puppet_acked(p, psn);
}

/*
 * Others hold all records. What will never come takes none, in whatever order that is told: it may
 * be what those others wait for.
 */
TEST(sim_share__aborts_need_no_records)
{
    struct puppet *p = puppet_create();
    struct mrd_engine *e = sim_engine(p->w, HOST_1);
    static const uint16_t middle[] = {3, 4, 5, 6}, ends[] = {7, 0, 1, 2};

    e->reorder_entries.num = 0;
    assert_true(aborts(p, 0, middle, 4));
    assert_true(aborts(p, 1, ends, 4));
    assert_int_equal(ordered_write(p, 2, FLOW_QPN, 8), MRD_REFUSE_RESOURCES);
    e->reorder_entries.num = 1;
    assert_int_equal(ordered_write(p, 3, FLOW_QPN, 8), 0);
}

/* A message refused for good, next in order but not by RSN: no sender sends it; nothing breaks. */
TEST(sim_share__refused_with_an_rsn_ahead)
{
    struct puppet *p = puppet_create();
    struct mrd_engine *e = sim_engine(p->w, HOST_1);

    e->reorder_entries.num = 0;
    puppet_part(p, 0,
                &(struct mrd_wire_part){.op = MRD_OP_SEND,
                                        .flags = MRD_PART_ORDERED,
                                        .dst_qpn = p->qp->qp_num,
                                        .src_qpn = FLOW_QPN,
                                        .qkey = ~0u,
                                        .rsn = 5,
                                        .rsn_behind = 5},
                NULL);
    assert_int_equal(puppet_refused(p, 0), MRD_REFUSE_QKEY);
    assert_int_equal(ordered_write(p, 1, FLOW_QPN, 1), MRD_REFUSE_RESOURCES);
}

/* Each message begins another flow: as many as max_flows says. */
TEST(sim_share__of_flows)
{
    struct puppet *p = puppet_create();
    struct mrd_engine *e = sim_engine(p->w, HOST_1);
    uint32_t num = 0;
    uint8_t code;

    e->config.max_flows = FLOWS;
    while (!(code = ordered_write(p, num, FLOW_QPN + num, 0)) && num < TRIES)
        num++;
    assert_int_equal(code, MRD_REFUSE_RESOURCES);
    assert_int_equal(num, FLOWS);
    assert_int_equal(e->flows_rx.pool.used, FLOWS);
}
