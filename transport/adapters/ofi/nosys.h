/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that there are not: libfabric calls most slots of its tables without looking, so none
 * may be NULL.
 */
#ifndef MRD_OFI_NOSYS_H
#define MRD_OFI_NOSYS_H

#include "transport/adapters/ofi/ofi.h"

/* Each slot of struct fi_ops: -FI_ENOSYS. */
int mrd_ofi_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int mrd_ofi_no_control(struct fid *fid, int command, void *arg);
int mrd_ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
                        void *context);

#endif
