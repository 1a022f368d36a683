/* SPDX-License-Identifier: BSD-2-Clause */
/* What a target does about messages that their sender gave up and that it never saw. */
#include "core/limits.h"
#include "tests/support/puppet.h"

enum { SLOT = 5, NEXT = SLOT + MRD_MSG_SLOTS, FLOW_QPN = 99 };

static void both_segments(struct puppet *p, uint32_t psn, uint32_t id)
{
    for (uint32_t i = 0; i < 2; i++)
        puppet_segment(p, psn + i, id, 0, i, 'x');
}

/* An ABORT comes first: what still comes of its message takes no receive. The next id does. */
TEST(sim_abort__of_an_unknown_id_shuts_an_empty_slot)
{
    struct puppet *p = puppet_create();

    puppet_recv(p);
    puppet_abort(p, 0, SLOT);
    both_segments(p, 1, SLOT);
    assert_int_equal(puppet_poll(p), 0);
    assert_true(puppet_acked(p, 1) && puppet_acked(p, 2));
    both_segments(p, 3, NEXT);
    assert_int_equal(puppet_poll(p), 1);
}

/* The same where a message was before. */
TEST(sim_abort__of_an_unknown_id_shuts_a_used_slot)
{
    struct puppet *p = puppet_create();

    puppet_recv(p);
    puppet_recv(p);
    both_segments(p, 0, SLOT);
    assert_int_equal(puppet_poll(p), 1);
    puppet_abort(p, 2, NEXT);
    both_segments(p, 3, NEXT);
    assert_int_equal(puppet_poll(p), 1);
    both_segments(p, 5, NEXT + MRD_MSG_SLOTS);
    assert_int_equal(puppet_poll(p), 2);
}

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

/* As long as they are owed, it waits. */
TEST(sim_order__waits_for_what_is_owed)
{
    struct puppet *p = puppet_create();

    for (unsigned i = 0; i < 3; i++)
        puppet_recv(p);
    ordered(p, 0, 1, 1);
    ordered(p, 1, 2, 2);
    assert_int_equal(puppet_poll(p), 0);
    ordered(p, 2, 0, 0);
    assert_int_equal(puppet_poll(p), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(p->buf[i][0], i);
}
