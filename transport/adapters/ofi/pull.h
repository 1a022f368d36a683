/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages stay at their sender until a receive matches. Then the receiver reads them into its
 * buffer, and tells the sender that it is done.
 */
#ifndef MRD_OFI_PULL_H
#define MRD_OFI_PULL_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_peer;
struct mrd_ofi_rx;

/* Reads a message of the peer's into the receive, which ends with it, or takes more. */
void mrd_ofi_pull(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, struct mrd_ofi_peer *peer,
                  const struct mrd_ofi_wire_head *head, const uint8_t *ranges, uint64_t at,
                  uint64_t room);

#endif
