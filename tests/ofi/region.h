/* SPDX-License-Identifier: BSD-2-Clause */
/* A pair of ends, of which one has memory that the other may read and write. */
#ifndef MRD_TESTS_OFI_REGION_H
#define MRD_TESTS_OFI_REGION_H

#include "pair.h"

enum { REGION_BYTES = 2 << 20, REGION_KEY = 0x77 };
#define REGION_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct region {
    struct pair p;
    struct fid_mr *mr;
    uint8_t *memory; /* of b's, blank */
    uint64_t base;   /* what the address of its first byte is to peers */
    uint64_t key;    /* REGION_KEY, unless the provider chose */
};

/* With mr_mode FI_MR_BASIC, peers name addresses, and the provider chooses keys. */
void region_open(struct region *r, const struct end_options *o);
void region_close(struct region *r);
/* Registers more memory. */
struct fid_mr *region_add(struct end *e, void *memory, size_t bytes, uint64_t access, uint64_t key);

#endif
