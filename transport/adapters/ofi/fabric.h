/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabrics and domains: they hold nothing but what is opened on them. */
#ifndef MRD_OFI_FABRIC_H
#define MRD_OFI_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/adapters/ofi/mr.h"
#include "transport/adapters/ofi/ofi.h"
#include "transport/adapters/ofi/wait.h"

struct mrd_ofi_eq;

struct mrd_ofi_fabric {
    struct fid_fabric fid;
    atomic_uint users; /* domains and EQs */
};

struct mrd_ofi_domain {
    struct fid_domain fid;
    struct mrd_ofi_fabric *fabric;
    struct mrd_ofi_eq *eq; /* bound with FI_REG_MR; NULL: none */
    struct fi_info *info;  /* as it was opened */
    pthread_mutex_t mutex;
    bool locks; /* the application does not serialize its calls itself, or a thread of ours runs */
    uint32_t users; /* objects */
    struct mrd_ofi_mrs mrs;
    struct mrd_node eps; /* mrd_ofi_ep.domain_node: those that are enabled */
    /* Automatic progress: a thread that sleeps on `wait`; started with the first endpoint. */
    bool automatic, running, stopping;
    pthread_t thread;
    struct mrd_ofi_wait wait;
};

int mrd_ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int mrd_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                        void *context);

static inline void mrd_ofi_lock(struct mrd_ofi_domain *d)
{
    if (d->locks)
        pthread_mutex_lock(&d->mutex);
}

static inline void mrd_ofi_unlock(struct mrd_ofi_domain *d)
{
    if (d->locks)
        pthread_mutex_unlock(&d->mutex);
}

/* An object of the domain is opened. */
static inline void mrd_ofi_domain_join(struct mrd_ofi_domain *d)
{
    mrd_ofi_lock(d);
    d->users++;
    mrd_ofi_unlock(d);
}

/* One is closed, if nobody uses it: 0 or -FI_EBUSY. */
static inline int mrd_ofi_domain_leave(struct mrd_ofi_domain *d, const uint32_t *object_users)
{
    bool busy;

    mrd_ofi_lock(d);
    busy = *object_users;
    if (!busy)
        d->users--;
    mrd_ofi_unlock(d);
    return busy ? -FI_EBUSY : 0;
}

#endif
