/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/nosys.h"

int mrd_ofi_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid, (void)other, (void)flags;
    return -FI_ENOSYS;
}

int mrd_ofi_no_control(struct fid *fid, int command, void *arg)
{
    (void)fid, (void)command, (void)arg;
    return -FI_ENOSYS;
}

int mrd_ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
                        void *context)
{
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -FI_ENOSYS;
}
