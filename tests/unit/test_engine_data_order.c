/* SPDX-License-Identifier: BSD-2-Clause */
/* MRD_ORDER_DATA: what becomes of an end that waits when the writes before it never come. */
#include "tests/unit/engine_hand.h"

enum { TO = 0, FROM = 1, BYTES = 64, LONG = 3 * PAIR_PAYLOAD, STALE = 0xee };

FIXTURE_OF(half_and_whole, pair);

static struct mrd_qp *kept[2];

/* Did anything of the end of the second write land, or the begin of the first one? */
static bool has_landed(const struct pair *p)
{
    for (uint32_t i = LONG + BYTES - MRD_LAST_BYTES; i < LONG + BYTES; i++) {
        if (p->end[TO].memory[i] != STALE)
            return true;
    }
    return p->end[TO].memory[0] != STALE;
}

/*
 * The two know each other; the sender is ordered, the target wants ends in order. A write of three
 * packets lacks its first one; one of a packet behind it is here.
 */
FIXTURE_SETUP(half_and_whole)
{
    struct pair_end *to = &self->end[TO];

    pair_begin(self);
    pair_write(self, FROM, 0, BYTES);
    kept[FROM] = hand_swap_qp(self, FROM, MRD_ORDER_MSG);
    kept[TO] = hand_swap_qp(self, TO, MRD_ORDER_DATA);
    memset(to->memory, STALE, sizeof(to->memory));
    pair_post(self, FROM, MRD_WR_RDMA_WRITE, 0, LONG);
    pair_post(self, FROM, MRD_WR_RDMA_WRITE, LONG, BYTES);
    mrd_engine_begin(self->end[FROM].e, self->now);
    assert_true(pair_tx(self, FROM) > 1);
    memmove(to->inbox, to->inbox + 1, --to->num_inbox * sizeof(to->inbox[0]));
    pair_rx(self, TO, PAIR_HOP_NS);
    /* It is here, but for its end. */
    assert_int_equal(to->memory[LONG], self->end[FROM].memory[LONG]);
    assert_false(has_landed(self));
}

FIXTURE_TEARDOWN(half_and_whole)
{
    for (unsigned i = 0; i < 2; i++) {
        hand_restore_qp(self, i, kept[i]);
        pair_settle(self, self->now + 60 * MRD_SEC);
    }
    pair_end(self);
}

TEST_F(half_and_whole, data_order__target_fails)
{
    hand_flush(self, TO);
    assert_false(has_landed(self));
}

TEST_F(half_and_whole, data_order__target_is_destroyed)
{
    hand_restore_qp(self, TO, kept[TO]);
    assert_false(has_landed(self));
    kept[TO] = hand_swap_qp(self, TO, MRD_ORDER_DATA);
}

/* Nothing comes any more. */
TEST_F(half_and_whole, data_order__sender_dies)
{
    for (unsigned i = 0; i < 600; i++) {
        self->now += 50 * MRD_MSEC;
        pair_turn(self, TO);
        self->end[FROM].num_inbox = 0;
    }
    assert_int_equal(self->end[TO].e->reorder_entries.used, 0);
    assert_false(has_landed(self));
}
