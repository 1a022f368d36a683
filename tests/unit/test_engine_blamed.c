/* SPDX-License-Identifier: BSD-2-Clause */
/* A path that tail probes blame, and that brings its packet after all. */
#include "tests/unit/engine_pair.h"

static struct mrd_peer *begin(struct pair *p)
{
    pair_begin(p);
    for (unsigned i = 0; i < 8; i++) {
        pair_write(p, 0, 0, 64);
    }
    return pair_peer(p, 0);
}

/* A packet on a path that is in doubt comes later than its tail probe. */
static void be_late(struct pair *p, struct mrd_send_state *tx)
{
    uint64_t tail = p->end[0].e->stats.retx_tail;
    struct mrd_wc wc;

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
    assert_int_equal(pair_poll(p, 0, &wc), 1);
}

/*
 * Another packet was lost, which cut the window. What became of the late one, for which the window
 * was never cut, says nothing of it.
 */
TEST_F(pair, blame_path__gives_back_no_cut_of_others)
{
    struct mrd_send_state *tx = begin(self)->tx;
    double before = tx->cc.cwnd_bytes;

    mrd_cc_cut_lost(&tx->cc, before / 2, 1);
    be_late(self, tx);
    assert_int_equal(self->end[0].e->stats.retx_spurious, 1);
    assert_true(tx->cc.cwnd_bytes < before * 0.9);
}
