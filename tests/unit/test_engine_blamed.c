/* SPDX-License-Identifier: BSD-2-Clause */
/* A path that tail probes blame, and that brings its packet after all. */
#include "tests/unit/engine_pair.h"

/* A packet on a path that is in doubt comes later than its tail probe. */
static void be_late(struct pair *p, struct mrd_send_state *tx)
{
    uint64_t tail = p->end[0].e->stats.retx_tail;

    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, 64);
    assert_int_equal(pair_tx(p, 0), 1);
    struct pair_frame late = p->end[1].inbox[0];
    p->end[1].num_inbox = 0;
    mrd_path_suspect(&tx->paths, late.path);
    tx->paths.acks++; /* other paths work */
    while (p->end[0].e->stats.retx_tail == tail) {
        p->now = mrd_engine_deadline(p->end[0].e);
        pair_turn(p, 0);
    }
    pair_rx_one(p, 1, &late);
    pair_settle(p, p->now + MRD_MSEC);
    pair_expect(p, 0, MRD_WC_SUCCESS);
}

/*
 * Another packet was lost, which cut the window. What became of the late one, for which the window
 * was never cut, says nothing of it.
 */
TEST_F(pair, blame_path__gives_back_no_cut_of_others)
{
    for (unsigned i = 0; i < 8; i++)
        pair_write(self, 0, 0, 64);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    double before = tx->cc.cwnd_bytes;

    mrd_cc_cut_lost(&tx->cc, before / 2, 1);
    be_late(self, tx);
    assert_int_equal(self->end[0].e->stats.retx_spurious, 1);
    assert_true(tx->cc.cwnd_bytes < before * 0.9);
}
