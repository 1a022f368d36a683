/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of receives. */
#include "core/engine/rx.h"

void mrd_rx_complete(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv,
                     const struct mrd_wc *wc)
{
    struct mrd_cq_impl *cq = mrd_cq_impl(qp->pub.recv_cq);
    struct mrd_wc full = *wc;

    full.wr_id = recv->wr_id;
    full.qp_num = qp->pub.qp_num;
    if (full.status == MRD_WC_SUCCESS)
        e->stats.rx_messages++;
    mrd_qp_recv_free(qp, recv);
    if (qp->destroyed)
        mrd_cq_unreserve(cq);
    else
        mrd_cq_push(cq, &full);
}

struct mrd_wc mrd_rx_wc(const struct mrd_peer *peer, uint8_t op, uint8_t flags, uint32_t len,
                        uint32_t imm, uint32_t src_qpn)
{
    return (struct mrd_wc){.status = MRD_WC_SUCCESS,
                           .opcode = op == MRD_OP_SEND ? MRD_WC_RECV : MRD_WC_RECV_RDMA_WITH_IMM,
                           .byte_len = len,
                           .imm_data = imm,
                           .src_qp = src_qpn,
                           .peer_id = peer->id,
                           .wc_flags = (flags & MRD_PART_IMM ? MRD_WC_WITH_IMM : 0u) |
                                       (flags & MRD_PART_SOLICITED ? MRD_WC_SOLICITED : 0u)};
}
