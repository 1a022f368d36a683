/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that forgot us says so in a packet that comes in pieces. */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, FAR = 1 };

/*
 * FAR gives AT up, as after an outage, and sends again. AT answers what it got. `cut`: what FAR sent first is
 * lost and its own route takes less by then, so all goes again in pieces. Returns the status of the answer.
 */
static enum mrd_wc_status answer_after_an_outage(struct pair *p, bool cut)
{
    struct mrd_wc wc;

    struct mrd_engine *far = p->end[FAR].e;
    for (unsigned i = 0; i < 2; i++) {
        pair_write(p, i, 0, 64);
    }
    pair_settle(p, p->now + 100 * MRD_MSEC);
    pair_pass(p, FAR, 500 * MRD_MSEC);
    struct mrd_peer *peer = mrd_peer_find(&far->peers, &p->end[AT].addr);
    mrd_peer_unreachable(far, peer);
    pair_post(p, FAR, MRD_WR_RDMA_WRITE, 0, PAIR_PAYLOAD);
    pair_turn(p, FAR); /* hello */
    pair_hop(p, AT);   /* its challenge */
    pair_hop(p, FAR);  /* the data */
    if (cut) {
        p->end[AT].num_inbox = 0;
        mrd_send_state_too_big(far, peer, PAIR_PAYLOAD / 2);
    }
    uint64_t until = p->now + 500 * MRD_MSEC;
    for (int got = 0; !got && p->now < until; got = pair_poll(p, FAR, &wc))
        pair_settle(p, p->now + 100 * MRD_USEC);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_int_equal(p->end[AT].e->stats.rx_fragments != 0, cut);
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, 64); /* the answer */
    pair_settle(p, p->now + 100 * MRD_MSEC);
    assert_int_equal(pair_poll(p, AT, &wc), 1);
    return wc.status;
}

TEST_F(wary_pair, forgotten__in_one_packet)
{
    assert_int_equal(answer_after_an_outage(self, false), MRD_WC_SUCCESS);
}

TEST_F(wary_pair, forgotten__in_pieces)
{
    assert_int_equal(answer_after_an_outage(self, true), MRD_WC_SUCCESS);
}
