/* SPDX-License-Identifier: BSD-2-Clause */
/* MRD_ORDER_DATA: what becomes of an end that waits when the writes before it never come. */
#include "tests/unit/engine_hand.h"

enum { TO = 0, FROM = 1, BYTES = 64, LONG = 3 * PAIR_PAYLOAD, STALE = 0xee };

static struct pair pair; /* large, and begun anew by each test */
static struct mrd_qp *kept[2];

/* The two know each other; the sender is ordered, the target wants ends in order. */
static void begin(void)
{
    struct mrd_wc wc;

    pair_begin(&pair);
    pair_post(&pair, FROM, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_settle(&pair, pair.now + MRD_SEC);
    assert_int_equal(pair_poll(&pair, FROM, &wc), 1);
    kept[FROM] = hand_swap_qp(&pair, FROM, MRD_ORDER_MSG);
    kept[TO] = hand_swap_qp(&pair, TO, MRD_ORDER_DATA);
    memset(pair.end[TO].memory, STALE, sizeof(pair.end[TO].memory));
}

/* The first packet of those in the inbox is lost; the others come. */
static void lose_first(void)
{
    struct pair_end *to = &pair.end[TO];

    mrd_engine_begin(pair.end[FROM].e, pair.now);
    assert_true(pair_tx(&pair, FROM) > 1);
    memmove(to->inbox, to->inbox + 1, --to->num_inbox * sizeof(to->inbox[0]));
    pair.now += PAIR_HOP_NS;
    mrd_engine_begin(to->e, pair.now);
    for (unsigned i = 0; i < to->num_inbox; i++)
        pair_rx_one(&pair, TO, &to->inbox[i]);
    to->num_inbox = 0;
}

/* Did anything of the end of the second write land, or the begin of the first one? */
static bool has_landed(void)
{
    for (uint32_t i = LONG + BYTES - MRD_LAST_BYTES; i < LONG + BYTES; i++) {
        if (pair.end[TO].memory[i] != STALE)
            return true;
    }
    return pair.end[TO].memory[0] != STALE;
}

static void end(void)
{
    for (unsigned i = 0; i < 2; i++) {
        hand_restore_qp(&pair, i, kept[i]);
        pair_settle(&pair, pair.now + 60 * MRD_SEC);
    }
    pair_end(&pair);
}

/* A write of three packets lacks its first one; one of a packet behind it is here. */
static void half_and_whole(void)
{
    begin();
    pair_post(&pair, FROM, MRD_WR_RDMA_WRITE, 0, LONG);
    pair_post(&pair, FROM, MRD_WR_RDMA_WRITE, LONG, BYTES);
    lose_first();
    /* It is here, but for its end. */
    assert_int_equal(pair.end[TO].memory[LONG], pair.end[FROM].memory[LONG]);
    assert_false(has_landed());
}

TEST(data_order__target_fails)
{
    const struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};
    struct pair_end *to = &pair.end[TO];

    half_and_whole();
    assert_int_equal(mrd_engine_modify_qp(to->e, to->qp, &attr, MRD_QP_STATE, pair.now), 0);
    assert_false(has_landed());
    end();
}

TEST(data_order__target_is_destroyed)
{
    half_and_whole();
    hand_restore_qp(&pair, TO, kept[TO]);
    assert_false(has_landed());
    kept[TO] = hand_swap_qp(&pair, TO, MRD_ORDER_DATA);
    end();
}

/* Nothing comes any more. */
TEST(data_order__sender_dies)
{
    half_and_whole();
    for (unsigned i = 0; i < 600; i++) {
        pair.now += 50 * MRD_MSEC;
        pair_turn(&pair, TO);
        pair.end[FROM].num_inbox = 0;
    }
    assert_int_equal(pair.end[TO].e->reorder_entries.used, 0);
    assert_false(has_landed());
    end();
}
