/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/report.h"

#include <stdlib.h>

#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/eq.h"
#include "transport/adapters/ofi/errors.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/match.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"

void mrd_ofi_report_injected(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, int error,
                             int status)
{
    char *text = mrd_ofi_error_text(peer ? peer->text : NULL, error, status);
    fi_addr_t whose = peer ? mrd_ofi_peer_fi_addr(ep, peer) : FI_ADDR_NOTAVAIL;

    MRD_OFI_WARN(EP_DATA, "injected: %s\n", text ? text : fi_strerror(error));
    free(text);
    if (peer && status == MRD_WC_RETRY_EXC_ERR) {
        mrd_ofi_peer_lost(ep, peer);
        /* Receives for who was heard of end by the event. */
        if (!peer->heard && mrd_ofi_match_lost(ep, peer, error, status))
            peer->receives_ended = true;
        if (peer->receives_ended)
            return;
    }
    if (ep->bound.eq &&
        !mrd_ofi_eq_add_error(ep->bound.eq, &ep->fid.fid, ep->fid.fid.context, whose, error))
        return;
    if (ep->tx.cq)
        mrd_ofi_cq_fail(ep->tx.cq, error);
}

/* The counter of an operation of the application. */
static struct mrd_ofi_cntr *counter_of(const struct mrd_ofi_ep *ep, uint64_t flags)
{
    if (flags & FI_SEND)
        return ep->bound.cntr[MRD_OFI_COUNT_SEND];
    return ep->bound.cntr[flags & FI_READ ? MRD_OFI_COUNT_READ : MRD_OFI_COUNT_WRITE];
}

void mrd_ofi_report_op(struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op)
{
    struct mrd_ofi_comp comp = {.context = op->entry.context,
                                .flags = op->entry.flags,
                                .len = op->len,
                                .tag = op->entry.tag,
                                .data = op->entry.data,
                                .src = FI_ADDR_NOTAVAIL};

    ep->tx.num_internal -= op->injected;
    if (!op->error) {
        mrd_ofi_cntr_add(counter_of(ep, op->entry.flags), 1);
        if (op->entry.wanted && ep->tx.cq)
            mrd_ofi_cq_add(ep->tx.cq, &comp);
        return;
    }
    mrd_ofi_cntr_add_error(counter_of(ep, op->entry.flags), 1);
    if (op->injected && !op->entry.wanted && !op->entry.context) {
        mrd_ofi_report_injected(ep, op->peer, op->error, op->status);
        return;
    }
    comp.err = op->error;
    comp.prov_errno = op->status;
    comp.text = mrd_ofi_error_text(op->peer->text, op->error, op->status);
    if (op->status == MRD_WC_RETRY_EXC_ERR)
        mrd_ofi_peer_lost(ep, op->peer);
    MRD_OFI_WARN(EP_DATA, "%s\n", comp.text ? comp.text : "an operation failed");
    if (ep->tx.cq)
        mrd_ofi_cq_add(ep->tx.cq, &comp);
    else
        free(comp.text);
}

void mrd_ofi_report_sent(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    mrd_ofi_report_op(ep, op);
    ep->tx.used--;
    mrd_ofi_op_release(ep, op);
}
