/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of a peer's that are known, or asked for.
 */
#ifndef MRD_OFI_KEYS_H
#define MRD_OFI_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/list.h"
#include "transport/adapters/ofi/wire.h"

/* A key of a peer's that was asked for. */
struct mrd_ofi_key {
    struct mrd_node node;    /* on mrd_ofi_keys.list */
    struct mrd_node waiting; /* operations that wait for the answer: mrd_ofi_op.node */
    uint64_t key;
    uint32_t question; /* operation that asks for it */
    uint16_t flags;    /* MRD_OFI_VIRTUAL, _EVENTS */
    bool known;
    uint32_t num;
    struct mrd_ofi_wire_range range[MRD_OFI_IOV_MAX];
};

struct mrd_ofi_keys {
    struct mrd_node list;    /* mrd_ofi_key.node: the one used last comes first */
    uint32_t num, num_asked; /* all of them; those that are not known yet */
};

void mrd_ofi_keys_init(struct mrd_ofi_keys *keys);
/* Operations that wait for one are on no list then. */
void mrd_ofi_keys_fini(struct mrd_ofi_keys *keys);
/* Known or not. NULL: there is none. */
struct mrd_ofi_key *mrd_ofi_keys_find(struct mrd_ofi_keys *keys, uint64_t key);
/* One that is not known yet; others may be forgotten for it. NULL: no memory. */
struct mrd_ofi_key *mrd_ofi_keys_add(struct mrd_ofi_keys *keys, uint64_t key);
/* From now on it is known. */
void mrd_ofi_keys_know(struct mrd_ofi_keys *keys, struct mrd_ofi_key *k);
/* Nothing waits for it. */
void mrd_ofi_keys_drop(struct mrd_ofi_keys *keys, struct mrd_ofi_key *k);
/* Drops the key, if it is known. */
void mrd_ofi_keys_forget(struct mrd_ofi_keys *keys, uint64_t key);

#endif
