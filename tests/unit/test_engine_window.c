/* SPDX-License-Identifier: BSD-2-Clause */
/* What waits for the congestion window: all that carries data, new or lost. */
#include "tests/unit/engine_pair.h"

enum { PACKETS = 16, WINDOW = 3 };

/* All that is in flight counts as lost, however that was found out. */
static void lose_all(struct pair *p, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = peer->tx;

    while (tx->sent.inflight.num) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, tx->sent.inflight.head);

        mrd_path_forgot(&tx->paths, rec->path);
        mrd_sent_lose(&tx->sent, rec, &tx->paths);
    }
    mrd_tx_ready(p->end[0].e, peer);
}

/* A row of packets is lost: no more of them are sent again than the window holds. */
TEST_F(pair, mrd_engine_tx__retransmissions_wait_for_the_window)
{
    pair_write(self, 0, 0, 64);
    struct mrd_peer *peer = pair_peer(self, 0);
    struct mrd_send_state *tx = peer->tx;

    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, PACKETS * PAIR_PAYLOAD);
    assert_int_equal(pair_tx_lost(self, 0), PACKETS);
    lose_all(self, peer);
    assert_int_equal(tx->sent.lost.num, PACKETS);

    tx->cc.cwnd_bytes = WINDOW * tx->cc.packet_bytes;
    unsigned sent = pair_tx(self, 0);
    assert_true(sent > 0 && sent <= WINDOW + 1);
    assert_true(tx->sent.lost.num >= PACKETS - WINDOW - 1);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
}
