/* SPDX-License-Identifier: BSD-2-Clause */
/* What to try where a peer is not reached and the machine has several network interfaces. */
#ifndef MRD_OFI_HINT_H
#define MRD_OFI_HINT_H

struct mrd_ofi_ep;
struct mrd_ofi_peer;

/* The peer was never heard of. Tells the user, once, if another network interface may lead to it. */
void mrd_ofi_peer_hint(struct mrd_ofi_ep *ep, const struct mrd_ofi_peer *peer);

#endif
