/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that there are not: libfabric calls most slots of its tables without looking, so none
 * may be NULL.
 */
#include "transport/adapters/ofi/ofi.h"

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

/* ---------------------------------------------------------------------------------- connections */

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
    (void)ep, (void)addr, (void)addrlen;
    return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
    (void)ep, (void)addr, (void)param, (void)paramlen;
    return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
    (void)pep;
    return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
    (void)ep, (void)param, (void)paramlen;
    return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
    (void)pep, (void)handle, (void)param, (void)paramlen;
    return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
    (void)ep, (void)flags;
    return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
                   void *context)
{
    (void)ep, (void)addr, (void)flags, (void)mc, (void)context;
    return -FI_ENOSYS;
}

struct fi_ops_cm mrd_ofi_cm_ops = {
    .size = sizeof(struct fi_ops_cm),
    .setname = mrd_ofi_ep_setname,
    .getname = mrd_ofi_ep_getname,
    .getpeer = no_getpeer,
    .connect = no_connect,
    .listen = no_listen,
    .accept = no_accept,
    .reject = no_reject,
    .shutdown = no_shutdown,
    .join = no_join,
};
