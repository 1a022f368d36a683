/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/rx_end.h"

#include <stdlib.h>

#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/errors.h"
#include "transport/adapters/ofi/message.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/rx.h"

void mrd_ofi_rx_report_cancelled(struct mrd_ofi_ep *ep, const struct mrd_ofi_rx *rx)
{
    struct mrd_ofi_comp comp = {.context = rx->context,
                                .flags = FI_RECV | (rx->tagged ? FI_TAGGED : FI_MSG) |
                                         (rx->flags & FI_MULTI_RECV),
                                .tag = rx->tag,
                                .src = FI_ADDR_NOTAVAIL,
                                .err = FI_ECANCELED};

    mrd_ofi_cntr_add_error(ep->bound.cntr[MRD_OFI_COUNT_RECV], 1);
    if (ep->rx.cq)
        mrd_ofi_cq_add(ep->rx.cq, &comp);
}

void mrd_ofi_rx_end(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, struct mrd_ofi_peer *peer,
                    const struct mrd_ofi_wire_head *head, uint64_t at, uint64_t got, int error,
                    int status)
{
    bool multi = rx->flags & FI_MULTI_RECV;
    bool over = !multi || (rx->retired && rx->pulls == 0);
    struct mrd_ofi_comp comp = {.context = rx->context,
                                .flags = FI_RECV | (rx->tagged ? FI_TAGGED : FI_MSG),
                                .len = got,
                                .tag = rx->tagged ? head->tag : 0,
                                .src = peer ? mrd_ofi_peer_fi_addr(ep, peer) : FI_ADDR_NOTAVAIL,
                                .err = error,
                                .prov_errno = status};

    if (multi)
        comp.buf = (uint8_t *)rx->iov.one.iov_base + at;
    if (multi && over && !rx->cancelled)
        comp.flags |= FI_MULTI_RECV;
    if (head->flags & MRD_OFI_DATA) {
        comp.flags |= FI_REMOTE_CQ_DATA;
        comp.data = head->data;
    }
    if (error) {
        comp.olen = head->bytes - got;
        comp.text = mrd_ofi_error_text(peer ? peer->text : NULL, error, status);
        if (status == MRD_WC_RETRY_EXC_ERR)
            mrd_ofi_peer_lost(ep, peer);
        mrd_ofi_cntr_add_error(ep->bound.cntr[MRD_OFI_COUNT_RECV], 1);
    } else {
        mrd_ofi_cntr_add(ep->bound.cntr[MRD_OFI_COUNT_RECV], 1);
    }
    if (ep->rx.cq && (error || rx->flags & FI_COMPLETION || comp.flags & FI_MULTI_RECV))
        mrd_ofi_cq_add(ep->rx.cq, &comp);
    else
        free(comp.text);
    if (over && rx->cancelled)
        mrd_ofi_rx_report_cancelled(ep, rx);
    if (over)
        mrd_ofi_rx_release(&ep->rx.pool, rx);
}

void mrd_ofi_rx_confirm(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                        const struct mrd_ofi_wire_head *head, int error)
{
    struct mrd_ofi_wire_head done = {
        .what = MRD_OFI_DONE, .tag = head->answer, .answer = head->id, .num = (uint32_t)error};

    if (head->flags & (MRD_OFI_PULL | MRD_OFI_CONFIRM))
        mrd_ofi_message_internal(ep, peer, &done, NULL, 0);
}
