/* SPDX-License-Identifier: BSD-2-Clause */
/* What waits for the congestion window: all that carries data, new or lost. */
#include "tests/unit/engine_pair.h"

enum { PACKETS = 16, WINDOW = 3 };

static struct pair pair; /* large, and begun anew by each test */

/* A row of packets is lost, and what left later comes: no more of them are sent again than the window holds. */
static void mrd_engine_tx__retransmissions_wait_for_the_window(void **state)
{
    struct pair *p = &pair;
    struct mrd_tx_half *tx;
    struct mrd_wc wc;
    unsigned sent;

    (void)state;
    pair_begin(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, 64);
    pair_settle(p, p->now + MRD_SEC);
    assert_int_equal(pair_poll(p, 0, &wc), 1);
    tx = mrd_container_of(p->end[0].e->peers.all.next, struct mrd_peer, node)->tx;

    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, PACKETS * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), PACKETS);
    p->end[1].num_inbox = 0; /* all lost */
    p->now += PAIR_HOP_NS;
    pair_post(p, 0, MRD_WR_RDMA_WRITE, PACKETS * PAIR_PAYLOAD, 2 * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), 2);
    p->now += PAIR_HOP_NS;
    pair_turn(p, 1);
    p->now += MRD_MSEC - PAIR_HOP_NS; /* overtaken for long enough, and that is no stall of ours */
    pair_turn(p, 1);
    assert_true(p->end[0].num_inbox > 0);
    mrd_engine_begin(p->end[0].e, p->now);
    for (unsigned i = 0; i < p->end[0].num_inbox; i++)
        pair_rx_one(p, 0, &p->end[0].inbox[i]);
    p->end[0].num_inbox = 0;
    mrd_engine_drained(p->end[0].e, p->now);
    assert_int_equal(tx->sent.lost.num, PACKETS);

    tx->cc.cwnd_bytes = WINDOW * tx->cc.config.packet_bytes;
    sent = pair_tx(p, 0);
    assert_true(sent > 0 && sent <= WINDOW + 1);
    assert_true(tx->sent.lost.num >= PACKETS - WINDOW - 1);
    pair_settle(p, p->now + MRD_SEC);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pair_poll(p, 0, &wc), 1);
        assert_int_equal(wc.status, MRD_WC_SUCCESS);
    }
    pair_end(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_engine_tx__retransmissions_wait_for_the_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
