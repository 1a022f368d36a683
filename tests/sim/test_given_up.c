/* SPDX-License-Identifier: BSD-2-Clause */
/* What a target does about ordered messages that their sender gave up and that it never saw. */
#include "tests/support/puppet.h"

enum { FLOW_QPN = 99 };

/* A small ordered SEND; the oldest message that its sender still owes is `behind` before it. */
static void ordered(struct puppet *p, uint32_t psn, uint16_t msn, uint16_t behind)
{
    uint8_t payload[16] = {0};

    payload[0] = (uint8_t)msn;
    puppet_part(p, psn,
                &(struct mrd_wire_part){.op = MRD_OP_SEND,
                                        .flags = MRD_PART_ORDERED,
                                        .len = sizeof(payload),
                                        .dst_qpn = p->qp->qp_num,
                                        .src_qpn = FLOW_QPN,
                                        .msn = msn,
                                        .rsn = msn,
                                        .msn_behind = behind,
                                        .rsn_behind = behind},
                payload);
}

/*
 * Messages 1 and 2 were given up and never came, nor did their ABORTs. Message 3 waits for them,
 * until message 4 says that nothing is owed before it: both are delivered, and 4 takes the first of
 * the receives kept for 1 and 2.
 */
TEST(sim_order__goes_on_over_what_is_not_owed)
{
    struct puppet *p = puppet_create();

    for (unsigned i = 0; i < 5; i++)
        puppet_recv(p);
    ordered(p, 0, 0, 0);
    assert_int_equal(puppet_poll(p), 1);
    ordered(p, 1, 3, 2);
    assert_int_equal(puppet_poll(p), 1);
    ordered(p, 2, 4, 0);
    assert_int_equal(puppet_poll(p), 3);
    assert_true(p->done[0] && p->done[3] && p->done[1]);
    assert_int_equal(p->buf[3][0], 3);
    assert_int_equal(p->buf[1][0], 4);
}
