/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Public structs of callers that were compiled against an older or a newer header.
 *
 * A struct in the list of sized.c grows at its end. Calls that take one are told the size of the
 * caller's, and the library reads and writes no more than that. mrd_sized_read() copies a struct
 * that the caller filled; mrd_sized_check() and mrd_sized_write() fill one of the caller's. All
 * other structs of the public headers have a fixed size: sized.c asserts it.
 *
 * To add a field to a struct of the list:
 *  1. Put it at the end. Never move, widen or remove a field, and leave no padding at the end:
 *     name it `reserved`.
 *  2. Zero must mean "the default" in what callers fill, and "unknown" in what the library fills:
 *     this is what callers and libraries that do not know the field have there. If zero is a value
 *     too, add a bit of comp_mask. Where an older caller is to go on with another value than the
 *     default, the call looks at the caller's size: mrd_sim_create_sized() does.
 *  3. Leave the list of sized.c as it is: it describes the first version.
 *  4. Describe the field in the man page of the call.
 *  5. Run tests/install/abi.sh --update.
 *
 * To add a field to a fixed struct, take it from `reserved` if it has one. The library clears
 * `reserved` in what it fills; callers need not, so in a work request a flag or an opcode must say
 * that the field is set. A fixed struct without `reserved` needs a new struct and a new call.
 *
 * To add a call that takes a struct that grows: declare `call` and `call_sized`, the latter with
 * the size as its last argument, and behind both a macro `call` as in mrd.h.
 */
#ifndef MRD_TRANSPORT_SIZED_H
#define MRD_TRANSPORT_SIZED_H

#include <stddef.h>

struct mrd_sized {
    const char *name;
    size_t bytes;       /* in this version of the library */
    size_t first_bytes; /* in version 0.1: no caller's is shorter */
};

extern const struct mrd_sized mrd_sized_context_attr, mrd_sized_qp_init_attr,
    mrd_sized_cq_init_attr, mrd_sized_comp_channel_init_attr, mrd_sized_srq_init_attr,
    mrd_sized_ah_init_attr, mrd_sized_mr_init_attr, mrd_sized_device_attr, mrd_sized_counter,
    mrd_sized_peer_attr, mrd_sized_path_attr, mrd_sized_context_info, mrd_sized_sim_attr,
    mrd_sized_sim_stats;

/* 0, or -EINVAL with mrd_error_set(): no version of the struct has that size. */
int mrd_sized_check(const struct mrd_sized *kind, size_t bytes);

/*
 * Copies the caller's struct; fields that it lacks become zero. 0, or -EINVAL with mrd_error_set():
 * the size is wrong, or the caller set a field that this version does not have.
 */
int mrd_sized_read(const struct mrd_sized *kind, void *to, const void *from, size_t from_bytes);

/* Fills the caller's struct, whose size was checked; fields that this version lacks become zero. */
void mrd_sized_write(const struct mrd_sized *kind, void *to, size_t to_bytes, const void *from);

#endif
