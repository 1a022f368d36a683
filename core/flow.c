/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/flow.h"

#include <string.h>

#include "core/bitmap.h"
#include "core/seq.h"

#define GONE_MASK (MRD_MSN_WINDOW - 1)

static struct mrd_reorder_entry *pend_of(struct mrd_node *n)
{
    return mrd_container_of(n, struct mrd_reorder_entry, node);
}

void mrd_flow_tx_init(struct mrd_flow_tx *flow, struct mrd_peer *peer, uint32_t qpn,
                      uint32_t remote_qpn)
{
    memset(flow, 0, sizeof(*flow));
    flow->peer = peer;
    flow->qpn = qpn;
    flow->remote_qpn = remote_qpn;
    mrd_list_init(&flow->msgs);
    mrd_list_init(&flow->idle_node);
    mrd_list_init(&flow->qp_node);
    mrd_list_init(&flow->peer_node);
}

void mrd_flow_rx_init(struct mrd_flow_rx *flow, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                      uint32_t remote_qpn, uint32_t msn_next, uint32_t rsn_next,
                      uint32_t *peer_gone)
{
    memset(flow, 0, sizeof(*flow));
    flow->peer = peer;
    flow->qp = qp;
    flow->msn_next = msn_next;
    flow->rsn_next = rsn_next;
    flow->peer_gone = peer_gone;
    flow->remote_qpn = remote_qpn;
    mrd_list_init(&flow->pending);
    mrd_list_init(&flow->reserved);
    mrd_list_init(&flow->peer_node);
}

static void set_gone(struct mrd_flow_rx *flow, uint64_t *gone, uint32_t number)
{
    if (mrd_bit_test(gone, GONE_MASK, number))
        return;
    mrd_bit_set(gone, GONE_MASK, number);
    flow->num_gone++;
    ++*flow->peer_gone;
}

static void clear_gone(struct mrd_flow_rx *flow, uint64_t *gone, uint32_t number)
{
    if (!mrd_bit_test(gone, GONE_MASK, number))
        return;
    mrd_bit_clear(gone, GONE_MASK, number);
    flow->num_gone--;
    --*flow->peer_gone;
}

/* Moves *next past numbers that are gone. */
static void pass_gone(struct mrd_flow_rx *flow, uint64_t *gone, uint32_t *next)
{
    while (mrd_bit_test(gone, GONE_MASK, *next))
        clear_gone(flow, gone, (*next)++);
}

static void move_to(struct mrd_flow_rx *flow, uint64_t *gone, uint32_t *next, uint32_t to)
{
    uint32_t num = to - *next;

    for (uint32_t i = 0; i < num && i < MRD_MSN_WINDOW; i++)
        clear_gone(flow, gone, *next + i);
    *next = to;
    pass_gone(flow, gone, next);
}

enum mrd_msn_verdict mrd_flow_rx_judge(const struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn,
                                       uint32_t rsn)
{
    if (mrd_seq_before(msn, flow->msn_next))
        return MRD_MSN_OLD;
    if (msn - flow->msn_next >= MRD_MSN_WINDOW)
        return MRD_MSN_BEYOND;
    if (has_rsn && (int32_t)(rsn - flow->rsn_next) >= MRD_MSN_WINDOW)
        return MRD_MSN_BEYOND;
    return mrd_bit_test(flow->gone_msn, GONE_MASK, msn) || mrd_flow_rx_find(flow, msn)
               ? MRD_MSN_OLD
               : MRD_MSN_NEW;
}

uint32_t mrd_flow_rx_needs(const struct mrd_flow_rx *flow, uint32_t rsn)
{
    uint32_t need;

    if (mrd_seq_before(rsn, flow->rsn_next))
        return 0;
    need = rsn - flow->rsn_next + 1;
    for (uint32_t r = flow->rsn_next; r != rsn && flow->num_gone; r++)
        need -= mrd_bit_test(flow->gone_rsn, GONE_MASK, r);
    return need;
}

void mrd_flow_rx_reserve(struct mrd_flow_rx *flow, struct mrd_reorder_entry *entry,
                         struct mrd_recv *recv)
{
    entry->rsn = flow->rsn_next++;
    entry->recv = recv;
    mrd_list_append(&flow->reserved, &entry->node);
    pass_gone(flow, flow->gone_rsn, &flow->rsn_next);
}

struct mrd_reorder_entry *mrd_flow_rx_claim(struct mrd_flow_rx *flow, uint32_t rsn)
{
    for (struct mrd_node *n = flow->reserved.next; n != &flow->reserved; n = n->next) {
        struct mrd_reorder_entry *p = pend_of(n);

        if (p->rsn != rsn)
            continue;
        mrd_list_remove(&p->node);
        return p;
    }
    return NULL;
}

void mrd_flow_rx_insert(struct mrd_flow_rx *flow, struct mrd_reorder_entry *entry)
{
    struct mrd_node *at = flow->pending.prev; /* mostly it belongs at the end */

    while (at != &flow->pending && mrd_seq_before(entry->msn, pend_of(at)->msn))
        at = at->prev;
    mrd_list_insert_before(at->next, &entry->node);
}

struct mrd_reorder_entry *mrd_flow_rx_find(const struct mrd_flow_rx *flow, uint32_t msn)
{
    for (struct mrd_node *n = flow->pending.prev; n != &flow->pending; n = n->prev) {
        struct mrd_reorder_entry *p = pend_of(n);

        if (p->msn == msn)
            return p;
        if (mrd_seq_before(p->msn, msn))
            return NULL;
    }
    return NULL;
}

void mrd_flow_rx_gone(struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn, uint32_t rsn)
{
    if (has_rsn && !mrd_seq_before(rsn, flow->rsn_next))
        set_gone(flow, flow->gone_rsn, rsn);
    set_gone(flow, flow->gone_msn, msn);
    pass_gone(flow, flow->gone_rsn, &flow->rsn_next);
    pass_gone(flow, flow->gone_msn, &flow->msn_next);
}

void mrd_flow_rx_pass_rsn(struct mrd_flow_rx *flow, uint32_t rsn, struct mrd_node *done)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&flow->reserved)) && mrd_seq_before(pend_of(n)->rsn, rsn)) {
        mrd_list_remove(n);
        mrd_list_prepend(done, n);
    }
    if (mrd_seq_before(flow->rsn_next, rsn))
        move_to(flow, flow->gone_rsn, &flow->rsn_next, rsn);
}

void mrd_flow_rx_skip(struct mrd_flow_rx *flow, uint32_t msn)
{
    struct mrd_node *n = mrd_list_first(&flow->pending);

    if (n && mrd_seq_before(pend_of(n)->msn, msn))
        msn = pend_of(n)->msn;
    if (mrd_seq_before(flow->msn_next, msn))
        move_to(flow, flow->gone_msn, &flow->msn_next, msn);
}

bool mrd_flow_rx_idle(const struct mrd_flow_rx *flow)
{
    return flow->pending.next == &flow->pending && flow->reserved.next == &flow->reserved &&
           !flow->num_gone;
}

struct mrd_reorder_entry *mrd_flow_rx_deliver(struct mrd_flow_rx *flow)
{
    struct mrd_node *n = mrd_list_first(&flow->pending);
    struct mrd_reorder_entry *p = n ? pend_of(n) : NULL;

    if (!p || p->msn != flow->msn_next || p->state == MRD_REORDER_OPEN)
        return NULL;
    flow->msn_next++;
    pass_gone(flow, flow->gone_msn, &flow->msn_next);
    mrd_list_remove(n);
    return p;
}
