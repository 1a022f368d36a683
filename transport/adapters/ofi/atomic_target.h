/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics that peers ask for by messages are applied to regions here.
 */
#ifndef MRD_OFI_ATOMIC_TARGET_H
#define MRD_OFI_ATOMIC_TARGET_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_peer;

/* Most bytes of operands in a message, with as many to compare with. */
size_t mrd_ofi_atomic_bytes_max(void);
/* ATOMIC came. */
void mrd_ofi_atomic_on_ask(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           const struct mrd_ofi_wire_head *head, const uint8_t *more,
                           uint32_t bytes);

#endif
