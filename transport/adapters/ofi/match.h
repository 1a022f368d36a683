/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages meet receives: those posted, in the order posted, or else the message is unexpected and
 * waits for one. All 64 bits of a tag count, but those that the receive ignores.
 */
#ifndef MRD_OFI_MATCH_H
#define MRD_OFI_MATCH_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_peer;
struct mrd_ofi_rx;
struct mrd_ofi_unexpected;

/*
 * A message, in `payload` with all its head says, is given to a receive, or kept. There is a spare
 * operation. false: no memory, and nothing was done.
 */
bool mrd_ofi_match_message(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           const struct mrd_ofi_wire_head *head, const uint8_t *payload,
                           uint32_t bytes);
/* The first unexpected message that the receive takes; NULL: none. */
struct mrd_ofi_unexpected *mrd_ofi_match_unexpected(struct mrd_ofi_ep *ep,
                                                    const struct mrd_ofi_rx *rx);
/* A receive is posted: it takes that message, or, NULL, waits. 0; -FI_ENOMEM. */
int mrd_ofi_match_receive(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx,
                          struct mrd_ofi_unexpected *u);
/* FI_PEEK, perhaps with FI_CLAIM or FI_DISCARD. */
int mrd_ofi_match_peek(struct mrd_ofi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
/* FI_CLAIM without PEEK: `rx` NULL: FI_DISCARD. -FI_EINVAL: nothing is claimed by that context. */
int mrd_ofi_match_claimed(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, void *context);
/*
 * No message will come from that peer, or, NULL, from anybody: ends the receives for them. Returns
 * whether there were any.
 */
bool mrd_ofi_match_lost(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *from, int error, int status);
/* fi_cancel(). 0, or -FI_ENOENT. */
int mrd_ofi_match_cancel(struct mrd_ofi_ep *ep, void *context);

#endif
