/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/engine/grant.h"

#include "core/seq.h"

/* Data of one before the peer heard of the raised grant lies below this PSN: grants halve it. */
static uint32_t answered(const struct mrd_recv_state *rx, uint32_t psns)
{
    return rx->rcv.cum + psns / 2;
}

void mrd_grant_wanted(struct mrd_recv_state *rx, uint32_t psn)
{
    /* What left before it heard of its grant asks for what it has. */
    if (!rx->doublings || !mrd_seq_before(psn, rx->asks_from))
        rx->wants_more = true;
}

static uint32_t times(uint32_t psns, unsigned doublings)
{
    uint64_t n = (uint64_t)psns << doublings;

    return n < MRD_TRACKER_WIDEST ? (uint32_t)n : MRD_TRACKER_WIDEST;
}

/* Are so many PSNs tracked? If not yet, they are from now on, if there is memory for it. */
static bool tracks(struct mrd_rcv *r, uint32_t psns)
{
    while (r->tracker < psns && mrd_rcv_widen(r))
        ;
    return r->tracker >= psns;
}

uint32_t mrd_grant_limit(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_recv_state *rx = peer->rx;
    uint32_t share = mrd_share_grant(&e->share, &rx->share_seen, peer->id, e->clock.now_ns);
    uint32_t psns = times(share, rx->doublings);

    if (mrd_seq_before(rx->asks_from, rx->rcv.cum))
        rx->asks_from = rx->rcv.cum; /* so that it never seems to lie ahead */
    if (mrd_share_is_full(&e->share)) {
        rx->doublings = 0;
        psns = share;
    } else if (rx->wants_more && psns < MRD_TRACKER_WIDEST && mrd_share_is_low(&e->share) &&
               tracks(&rx->rcv, times(psns, 1))) {
        rx->asks_from = answered(rx, psns);
        psns = times(psns, 1);
        rx->doublings++;
    }
    rx->wants_more = false;
    return rx->rcv.cum + (psns < rx->rcv.tracker ? psns : rx->rcv.tracker);
}
