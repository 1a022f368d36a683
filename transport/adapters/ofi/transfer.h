/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers: reads and writes between a list of local buffers and a list of ranges of a peer's
 * memory, whose borders need not be alike. Each work request is of one range.
 */
#ifndef MRD_OFI_TRANSFER_H
#define MRD_OFI_TRANSFER_H

struct mrd_ofi_ep;
struct mrd_ofi_op;

/*
 * Posts the work requests of a transfer: op->local.iov, op->transfer.range, op->len and
 * op->transfer.opcode are set. Waits in mrd_ofi_tx.unsent for room. The operation ends when they
 * are complete, or the rest of them cannot be posted.
 */
void mrd_ofi_transfer(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);

#endif
