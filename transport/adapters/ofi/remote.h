/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on remote memory that keys name: where it lies, and what follows when they are
 * complete. A write with data for the target's completion queue, or one that the target wants to
 * hear of, is followed by a NOTE.
 *
 * mrd_ofi_remote_init(); the caller names the memory, op->rma, and the buffer, op->local; then
 * mrd_ofi_remote_try(), and mrd_ofi_remote_start() if that returns false.
 */
#ifndef MRD_OFI_REMOTE_H
#define MRD_OFI_REMOTE_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_op;
struct mrd_ofi_peer;

/* Of a new operation: its memory is not named yet. */
void mrd_ofi_remote_init(struct mrd_ofi_op *op, enum mrd_wr_opcode opcode);
/* Starts it, if its keys are known. False: they are not, and nothing was done. */
bool mrd_ofi_remote_try(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* mrd_ofi_op.resume: starts it, or waits for a key. */
void mrd_ofi_remote_start(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* mrd_ofi_op.done */
void mrd_ofi_remote_done(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* NOTE came. */
void mrd_ofi_remote_on_note(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                            const struct mrd_ofi_wire_head *head);

#endif
