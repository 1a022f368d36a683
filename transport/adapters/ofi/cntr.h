/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: of completions and of errors. They may be read without the lock. */
#ifndef MRD_OFI_CNTR_H
#define MRD_OFI_CNTR_H

#include <stdatomic.h>

#include "transport/adapters/ofi/ofi.h"
#include "transport/adapters/ofi/wait.h"

struct mrd_ofi_domain;

struct mrd_ofi_cntr {
    struct fid_cntr fid;
    struct mrd_ofi_domain *domain;
    atomic_ullong value, errors;      /* read without the lock, too */
    uint64_t seen_value, seen_errors; /* what the application was told last, for fi_trywait() */
    struct mrd_ofi_wait wait;
    struct mrd_ofi_sources sources;
    uint32_t users; /* endpoints and regions */
};

int mrd_ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
                      void *context);
/* NULL: does nothing. */
void mrd_ofi_cntr_add(struct mrd_ofi_cntr *cntr, uint64_t value);
void mrd_ofi_cntr_add_error(struct mrd_ofi_cntr *cntr, uint64_t value);

#endif
