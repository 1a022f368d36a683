/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of remote memory. An application chooses keys of 64 bits, and addresses that are offsets;
 * mrd has keys of its own. So a peer is asked once what a key of its stands for. If mrd's key is
 * refused later, the region was closed, and the peer is asked again: the key may be that of another
 * one.
 */
#ifndef MRD_OFI_KEY_H
#define MRD_OFI_KEY_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_op;
struct mrd_ofi_peer;

/*
 * The operation waits until the key, which is not known, is: then it goes on. It
 * fails if there is no memory.
 */
void mrd_ofi_key_await(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, uint64_t key);
/* ASK came. */
void mrd_ofi_key_on_ask(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                        const struct mrd_ofi_wire_head *head);
/* TELL came. */
void mrd_ofi_key_on_tell(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                         const struct mrd_ofi_wire_head *head, const uint8_t *ranges,
                         uint32_t bytes);

#endif
