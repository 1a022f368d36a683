/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/cm.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/ep.h"

static struct mrd_ofi_ep *impl(struct fid *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_ep, fid.fid);
}

static int getname(fid_t fid, void *addr, size_t *len)
{
    struct mrd_ofi_ep *ep = impl(fid);
    char text[MRD_ADDRESS_MAX];
    union mrd_ofi_addr own;
    size_t bytes, room = *len;
    int error;

    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    error = mrd_query_address(ep->dev.context, text, sizeof(text));
    if (!error)
        error = mrd_ofi_addr_parse(text, &own);
    if (error)
        return error;
    bytes = mrd_ofi_addr_bytes(&own);
    *len = bytes;
    if (room)
        memcpy(addr, &own, bytes < room ? bytes : room);
    return room < bytes ? -FI_ETOOSMALL : 0;
}

/* Before it is enabled: the address to bind to. */
static int setname(fid_t fid, void *addr, size_t len)
{
    struct mrd_ofi_ep *ep = impl(fid);
    const union mrd_ofi_addr *asked = addr;
    void *copy;

    if (ep->enabled)
        return -FI_EOPBADSTATE;
    if (len < sizeof(asked->in) || mrd_ofi_addr_bytes(asked) > len || !mrd_ofi_addr_bytes(asked))
        return -FI_EINVAL;
    copy = calloc(1, sizeof(*asked));
    if (!copy)
        return -FI_ENOMEM;
    memcpy(copy, addr, mrd_ofi_addr_bytes(asked));
    free(ep->info->src_addr);
    ep->info->src_addr = copy;
    ep->info->src_addrlen = mrd_ofi_addr_bytes(asked);
    return 0;
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
    .setname = setname,
    .getname = getname,
    .getpeer = no_getpeer,
    .connect = no_connect,
    .listen = no_listen,
    .accept = no_accept,
    .reject = no_reject,
    .shutdown = no_shutdown,
    .join = no_join,
};
