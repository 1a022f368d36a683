/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of queue pairs: taken for messages, given back, completed. */
#include "core/engine/complete.h"

#include "core/engine/query.h"
#include "core/engine/rnr.h"

struct mrd_recv *mrd_rx_take_recv(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_recv *recv = mrd_recvq_take(qp->recvq);
    struct mrd_srq_impl *srq = qp->srq;

    /* For a receive of its own, the queue pair reserved the place when it was posted. */
    if (srq) {
        mrd_cq_reserve(mrd_cq_impl(qp->pub.recv_cq));
        mrd_event_check_srq(e, srq);
    }
    return recv;
}

void mrd_rx_return_recv(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv)
{
    mrd_recvq_return(qp->recvq, recv);
    if (qp->srq)
        mrd_rnr_unreserve(e, mrd_cq_impl(qp->pub.recv_cq));
    mrd_rnr_notify(e, &qp->recvq->rnr_waiters, 1);
}

void mrd_rx_complete(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv,
                     const struct mrd_wc *wc)
{
    struct mrd_wc full = *wc;

    if (qp->destroyed && qp->srq) { /* nobody would learn that the shared receive is used up */
        mrd_rx_return_recv(e, qp, recv);
        return;
    }
    full.wr_id = recv->wr_id;
    full.qp_num = qp->pub.qp_num;
    if (full.status == MRD_WC_SUCCESS)
        e->stats.rx_messages++;
    mrd_recvq_free(qp->recvq, recv);
    if (qp->destroyed)
        mrd_rnr_unreserve(e, mrd_cq_impl(qp->pub.recv_cq));
    else
        mrd_cq_push(mrd_cq_impl(qp->pub.recv_cq), &full);
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
