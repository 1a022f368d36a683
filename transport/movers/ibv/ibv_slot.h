/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots: the datagrams that are, or may be, at the device, to be sent or received into.
 *
 * A send slot: mrd_ibv_tx_slot_alloc(), mrd_ibv_tx_slot_push() when it was posted,
 * mrd_ibv_tx_slot_pop() when it is done, and mrd_ibv_tx_slot_release() once its cookie was reported.
 * A receive slot: mrd_ibv_rx_post(), then mrd_ibv_rx_slot_retire().
 */
#ifndef MRD_TRANSPORT_IBV_SLOT_H
#define MRD_TRANSPORT_IBV_SLOT_H

#include "transport/movers/ibv/ibv_state.h"

/* There is a free one. */
static inline uint32_t mrd_ibv_tx_slot_alloc(struct mrd_ibv *ibv)
{
    uint32_t index = ibv->tx_free;

    ibv->tx_free = ibv->tx_slots[index].next;
    ibv->tx_num_free--;
    return index;
}

static inline void mrd_ibv_tx_slot_release(struct mrd_ibv *ibv, uint32_t index)
{
    ibv->tx_slots[index].next = ibv->tx_free;
    ibv->tx_free = index;
    ibv->tx_num_free++;
}

/*
 * The device no longer reads the packet: frees its slot or, if it has a cookie, queues it
 * for tx_reap().
 */
static inline void mrd_ibv_tx_slot_finish(struct mrd_ibv *ibv, uint32_t index)
{
    struct mrd_ibv_tx_slot *slot = &ibv->tx_slots[index];

    slot->generation++;
    if (slot->cookie == MRD_TX_COOKIE_NONE) {
        mrd_ibv_tx_slot_release(ibv, index);
        return;
    }
    slot->next = ibv->tx_done;
    ibv->tx_done = index;
    atomic_store_explicit(&ibv->done_waits, true, memory_order_relaxed);
}

/* The oldest packet posted on a queue pair is done: there is one. Returns its slot. */
static inline uint32_t mrd_ibv_tx_slot_pop(struct mrd_ibv *ibv, struct mrd_ibv_qp *q)
{
    uint32_t index = q->head;
    struct mrd_ibv_tx_slot *slot = &ibv->tx_slots[index];

    q->head = slot->next;
    q->num_posted--;
    q->num_signaled -= slot->signaled;
    slot->remote->num_posted--;
    mrd_ibv_tx_slot_finish(ibv, index);
    return index;
}

/* The packet was posted on the queue pair. */
static inline void mrd_ibv_tx_slot_push(struct mrd_ibv *ibv, struct mrd_ibv_qp *q, uint32_t index)
{
    struct mrd_ibv_tx_slot *slot = &ibv->tx_slots[index];

    slot->next = MRD_IBV_NONE;
    if (q->head == MRD_IBV_NONE)
        q->head = index;
    else
        ibv->tx_slots[q->tail].next = index;
    q->tail = index;
    q->num_posted++;
    q->num_signaled += slot->signaled;
    slot->remote->num_posted++;
}

/* Tells a completion of the slot from one of an earlier use. */
static inline uint64_t mrd_ibv_tx_slot_wr_id(const struct mrd_ibv *ibv, uint32_t index)
{
    return (uint64_t)ibv->tx_slots[index].generation << 32 | index;
}

static inline uint64_t mrd_ibv_rx_slot_wr_id(const struct mrd_ibv *ibv, uint32_t index)
{
    return (uint64_t)ibv->rx_slots[index].generation << 32 | index;
}

/* Its receive has ended: it may be posted again. */
static inline void mrd_ibv_rx_slot_retire(struct mrd_ibv *ibv, uint32_t index)
{
    ibv->rx_slots[index].posted = false;
    ibv->rx_slots[index].generation++;
    ibv->rx_idle[ibv->rx_num_idle++] = index;
}

/* Counts all that is posted on a QP as done: call it when the QP was reset. */
void mrd_ibv_tx_forget(struct mrd_ibv *ibv, struct mrd_ibv_qp *qp);
/* Posts the idle receive slots. */
void mrd_ibv_rx_post(struct mrd_ibv *ibv);
/* Counts all receives posted on a QP as ended: call it when the QP was reset; not with an SRQ. */
void mrd_ibv_rx_forget(struct mrd_ibv *ibv, uint32_t qp);

#endif
