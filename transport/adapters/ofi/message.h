/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to peers: wire.h says which. They wait in mrd_ofi_tx.unsent for room.
 */
#ifndef MRD_OFI_MESSAGE_H
#define MRD_OFI_MESSAGE_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_op;
struct mrd_ofi_peer;

/*
 * Posts a message: head, then payload, from op->local.iov, or op->local.copy. The operation ends
 * when it is complete, or cannot be posted, and its answer, if it waits for one, came.
 */
void mrd_ofi_message_send(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op,
                          struct mrd_ofi_wire_head *head, const void *more, uint32_t more_bytes);
/*
 * Posts a message of at most MRD_INLINE_BYTES_MAX without an operation: `what` is MRD_OFI_INTERNAL
 * or _INJECTED_. -FI_EAGAIN: no room now.
 */
int mrd_ofi_message_inject(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           struct mrd_ofi_wire_head *head, const struct iovec *more, uint32_t num,
                           uint64_t what);
/* A message of the provider's own, whose fate nobody waits for. */
void mrd_ofi_message_internal(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                              struct mrd_ofi_wire_head *head, const void *more,
                              uint32_t more_bytes);

#endif
