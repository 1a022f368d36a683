/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an atomic does to memory: each element by itself. Those of up to 8 bytes are atomic also
 * against what uses the compiler's atomics on the same word, as mrd's own do, or on a part of it;
 * longer ones against each other, under the lock of their domain.
 */
#ifndef MRD_OFI_APPLY_H
#define MRD_OFI_APPLY_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fi_domain.h>

enum mrd_ofi_atomic_kind {
    MRD_OFI_ATOMIC_WRITE = 0, /* changes the target */
    MRD_OFI_ATOMIC_FETCH,     /* and returns what was there */
    MRD_OFI_ATOMIC_COMPARE,   /* changes it if a comparison holds, and returns what was there */
    MRD_OFI_ATOMIC_KINDS,
};

/* Bytes of an element; 0: no such type. */
size_t mrd_ofi_type_bytes(enum fi_datatype type);
bool mrd_ofi_atomic_is_valid(enum mrd_ofi_atomic_kind kind, enum fi_datatype type, enum fi_op op);
/*
 * Applies a valid operation to `count` elements at `target`. operand: NULL for FI_ATOMIC_READ.
 * compare: NULL but for comparisons. old: what was there is written to it, NULL: nowhere. The
 * target is aligned as its type needs; the other lists need not be.
 */
void mrd_ofi_apply(enum fi_datatype type, enum fi_op op, void *target, const void *operand,
                   const void *compare, void *old, size_t count);

#endif
