/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/fabric.h"

#include <stdlib.h>

#include "transport/adapters/ofi/atomic.h"
#include "transport/adapters/ofi/av.h"
#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/eq.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/nosys.h"
#include "transport/adapters/ofi/params.h"
#include "transport/adapters/ofi/poll.h"
#include "transport/adapters/ofi/thread.h"

/* -------------------------------------------------------------------------------------- domains */

static struct mrd_ofi_domain *domain_of(struct fid *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_domain, fid.fid);
}

static int domain_close(struct fid *fid)
{
    struct mrd_ofi_domain *d = domain_of(fid);
    uint32_t users;

    mrd_ofi_lock(d);
    users = d->users;
    mrd_ofi_unlock(d);
    if (users)
        return -FI_EBUSY;
    mrd_ofi_thread_stop(d);
    mrd_ofi_mrs_fini(d);
    if (d->eq)
        atomic_fetch_sub(&d->eq->users, 1);
    atomic_fetch_sub(&d->fabric->users, 1);
    pthread_mutex_destroy(&d->mutex);
    fi_freeinfo(d->info);
    free(d);
    return 0;
}

/* With FI_REG_MR, registrations are reported to the EQ. Without, a domain has nothing to report. */
static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct mrd_ofi_domain *d = domain_of(fid);

    if (other->fclass != FI_CLASS_EQ || flags & ~FI_REG_MR)
        return -FI_EINVAL;
    if (!(flags & FI_REG_MR))
        return 0;
    if (d->eq)
        return -FI_EINVAL;
    d->eq = mrd_container_of(other, struct mrd_ofi_eq, fid.fid);
    atomic_fetch_add(&d->eq->users, 1);
    return 0;
}

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
                          void *context)
{
    (void)domain, (void)info, (void)sep, (void)context;
    return -FI_ENOSYS;
}

static int no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
                      void *context)
{
    (void)domain, (void)attr, (void)stx, (void)context;
    return -FI_ENOSYS;
}

static int no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
                      void *context)
{
    (void)domain, (void)attr, (void)rx_ep, (void)context;
    return -FI_ENOSYS;
}

static int no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
                               struct fi_collective_attr *attr, uint64_t flags)
{
    (void)domain, (void)coll, (void)attr, (void)flags;
    return -FI_ENOSYS;
}

static struct fi_ops domain_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = domain_close,
    .bind = domain_bind,
    .control = mrd_ofi_no_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain),
    .av_open = mrd_ofi_av_open,
    .cq_open = mrd_ofi_cq_open,
    .endpoint = mrd_ofi_ep_open,
    .scalable_ep = no_scalable_ep,
    .cntr_open = mrd_ofi_cntr_open,
    .poll_open = mrd_ofi_poll_open,
    .stx_ctx = no_stx_ctx,
    .srx_ctx = no_srx_ctx,
    .query_atomic = mrd_ofi_query_atomic,
    .query_collective = no_query_collective,
};

int mrd_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                        void *context)
{
    struct mrd_ofi_domain *d;
    int error;

    if (!info || !info->domain_attr) {
        MRD_OFI_WARN(DOMAIN, "fi_domain() needs the attributes of a domain\n");
        return -FI_EINVAL;
    }
    d = calloc(1, sizeof(*d));
    if (!d)
        return -FI_ENOMEM;
    d->info = fi_dupinfo(info);
    error = d->info ? mrd_ofi_mrs_init(d) : -FI_ENOMEM;
    if (error) {
        if (d->info)
            fi_freeinfo(d->info);
        free(d);
        return error;
    }
    d->fid.fid =
        (struct fid){.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &domain_fid_ops};
    d->fid.ops = &domain_ops;
    d->fid.mr = &mrd_ofi_mr_ops;
    d->fabric = mrd_container_of(fabric, struct mrd_ofi_fabric, fid);
    d->automatic = info->domain_attr->data_progress == FI_PROGRESS_AUTO ||
                   info->domain_attr->control_progress == FI_PROGRESS_AUTO;
    d->locks = d->automatic || info->domain_attr->threading != FI_THREAD_DOMAIN;
    pthread_mutex_init(&d->mutex, NULL);
    mrd_list_init(&d->eps);
    atomic_fetch_add(&d->fabric->users, 1);
    *domain = &d->fid;
    return 0;
}

/* -------------------------------------------------------------------------------------- fabrics */

static int fabric_close(struct fid *fid)
{
    struct mrd_ofi_fabric *fabric = mrd_container_of(fid, struct mrd_ofi_fabric, fid.fid);

    if (atomic_load(&fabric->users))
        return -FI_EBUSY;
    free(fabric);
    return 0;
}

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
                         void *context)
{
    (void)fabric, (void)info, (void)pep, (void)context;
    return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
                        struct fid_wait **waitset)
{
    (void)fabric, (void)attr, (void)waitset;
    return -FI_ENOSYS;
}

static struct fi_ops fabric_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = fabric_close,
    .bind = mrd_ofi_no_bind,
    .control = mrd_ofi_no_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
    .size = sizeof(struct fi_ops_fabric),
    .domain = mrd_ofi_domain_open,
    .passive_ep = no_passive_ep,
    .eq_open = mrd_ofi_eq_open,
    .wait_open = no_wait_open,
    .trywait = mrd_ofi_trywait,
};

int mrd_ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
    struct mrd_ofi_fabric *fabric = calloc(1, sizeof(*fabric));

    (void)attr;
    if (!fabric)
        return -FI_ENOMEM;
    mrd_ofi_params_read(); /* getinfo may have run in another process, that sent us its info */
    fabric->fid.fid =
        (struct fid){.fclass = FI_CLASS_FABRIC, .context = context, .ops = &fabric_fid_ops};
    fabric->fid.ops = &fabric_ops;
    *fid = &fabric->fid;
    return 0;
}
