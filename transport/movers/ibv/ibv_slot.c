/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/ibv/ibv_slot.h"

enum { POST_MAX = 64 };

void mrd_ibv_tx_forget(struct mrd_ibv *ibv, struct mrd_ibv_qp *q)
{
    while (q->head != MRD_IBV_NONE)
        mrd_ibv_tx_slot_pop(ibv, q);
}

/*
 * The queue pair whose receive queue a slot belongs to. Without a shared receive queue, packets
 * arrive at the first queue pair only; where pairs are paths, at all.
 */
static uint32_t home_of(const struct mrd_ibv *ibv, uint32_t index)
{
    return !ibv->srq && ibv->port.entropy == MRD_IBV_BY_QPAIR ? index % ibv->num_qps : 0;
}

static int post_list(struct mrd_ibv *ibv, uint32_t home, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad)
{
    if (ibv->srq)
        return ibv_post_srq_recv(ibv->srq, wr, bad);
    return ibv_post_recv(ibv->qps[home].qp, wr, bad);
}

/*
 * Posts idle slots, from the end of rx_idle, that belong to one queue. false: the device did not
 * take all of them.
 */
static bool post_some(struct mrd_ibv *ibv)
{
    struct ibv_recv_wr wr[POST_MAX], *bad = NULL;
    struct ibv_sge sge[POST_MAX];
    uint32_t home = home_of(ibv, ibv->rx_idle[ibv->rx_num_idle - 1]);
    unsigned n = 0, posted;

    while (n < POST_MAX && n < ibv->rx_num_idle) {
        uint32_t index = ibv->rx_idle[ibv->rx_num_idle - 1 - n];

        if (home_of(ibv, index) != home)
            break;
        sge[n] = (struct ibv_sge){.addr = (uintptr_t)(ibv->memory + (size_t)ibv->rx_stride * index),
                                  .length = MRD_IBV_GRH_BYTES + ibv->port.mtu,
                                  .lkey = ibv->mr->lkey};
        wr[n] = (struct ibv_recv_wr){
            .wr_id = mrd_ibv_rx_slot_wr_id(ibv, index), .sg_list = &sge[n], .num_sge = 1};
        if (n)
            wr[n - 1].next = &wr[n];
        n++;
    }
    posted = n;
    if (post_list(ibv, home, wr, &bad))
        posted = bad ? (unsigned)(bad - wr) : 0;
    for (unsigned i = 0; i < posted; i++) {
        struct mrd_ibv_rx_slot *slot = &ibv->rx_slots[(uint32_t)wr[i].wr_id];

        slot->posted = true;
        slot->qp = (uint16_t)home;
    }
    ibv->rx_num_idle -= posted;
    return posted == n;
}

/* What the device does not take stays idle until the next call. */
void mrd_ibv_rx_post(struct mrd_ibv *ibv)
{
    while (ibv->rx_num_idle && post_some(ibv))
        ;
}

void mrd_ibv_rx_forget(struct mrd_ibv *ibv, uint32_t qp)
{
    for (uint32_t i = 0; i < ibv->port.rx_slots; i++)
        if (ibv->rx_slots[i].posted && ibv->rx_slots[i].qp == qp)
            mrd_ibv_rx_slot_retire(ibv, i);
}
