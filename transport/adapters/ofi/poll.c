/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll sets, and fi_trywait(): has one of several queues and counters something for its reader? */
#include "transport/adapters/ofi/poll.h"

#include <stdlib.h>

#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/eq.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/nosys.h"
#include "transport/adapters/ofi/wait.h"

enum {
    ITEMS_FIRST = 8, /* room of a set at first */
};

struct item {
    struct fid *fid;
    uint64_t value, errors; /* of a counter: as the set told last */
};

struct mrd_ofi_poll {
    struct fid_poll fid;
    struct mrd_ofi_domain *domain;
    struct item *item;
    uint32_t num, room;
};

static struct mrd_ofi_cq *cq_of(struct fid *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_cq, fid.fid);
}

static struct mrd_ofi_cntr *cntr_of(struct fid *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_cntr, fid.fid);
}

static struct mrd_ofi_eq *eq_of(struct fid *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_eq, fid.fid);
}

static struct mrd_ofi_poll *poll_of(struct fid_poll *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_poll, fid);
}

static bool cq_has(const struct mrd_ofi_cq *cq)
{
    return !mrd_ofi_cq_empty(cq) || cq->overrun;
}

static bool eq_has(struct mrd_ofi_eq *eq)
{
    bool has;

    pthread_mutex_lock(&eq->mutex);
    has = !mrd_list_empty(&eq->events);
    pthread_mutex_unlock(&eq->mutex);
    return has;
}

/* -------------------------------------------------------------------------------------- members */

/* An object in a set cannot be closed: counts it as used. `by` is 1 or -1. 0 or -FI_EINVAL. */
static int use(const struct mrd_ofi_poll *set, struct fid *fid, int by)
{
    switch (fid->fclass) {
    case FI_CLASS_CQ:
        if (cq_of(fid)->domain != set->domain)
            return -FI_EINVAL;
        cq_of(fid)->users += (uint32_t)by;
        return 0;
    case FI_CLASS_CNTR:
        if (cntr_of(fid)->domain != set->domain)
            return -FI_EINVAL;
        cntr_of(fid)->users += (uint32_t)by;
        return 0;
    case FI_CLASS_EQ:
        atomic_fetch_add(&eq_of(fid)->users, (unsigned)by);
        return 0;
    default:
        return -FI_EINVAL;
    }
}

static uint32_t find(const struct mrd_ofi_poll *set, const struct fid *fid)
{
    uint32_t i = 0;

    while (i < set->num && set->item[i].fid != fid)
        i++;
    return i;
}

static int add(struct mrd_ofi_poll *set, struct fid *fid)
{
    uint32_t room = set->room ? 2 * set->room : ITEMS_FIRST;
    struct item *grown;
    int error;

    if (find(set, fid) < set->num)
        return 0;
    if (set->num == set->room) {
        grown = realloc(set->item, room * sizeof(*grown));
        if (!grown)
            return -FI_ENOMEM;
        set->item = grown;
        set->room = room;
    }
    error = use(set, fid, 1);
    if (!error)
        set->item[set->num++] = (struct item){.fid = fid};
    return error;
}

static int poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
    struct mrd_ofi_poll *set = poll_of(fid);
    int error;

    if (flags)
        return -FI_EBADFLAGS;
    mrd_ofi_lock(set->domain);
    error = add(set, event_fid);
    mrd_ofi_unlock(set->domain);
    return error;
}

static int poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
    struct mrd_ofi_poll *set = poll_of(fid);
    uint32_t at;
    bool found;

    if (flags)
        return -FI_EBADFLAGS;
    mrd_ofi_lock(set->domain);
    at = find(set, event_fid);
    found = at < set->num;
    if (found) {
        (void)use(set, event_fid, -1);
        set->item[at] = set->item[--set->num];
    }
    mrd_ofi_unlock(set->domain);
    return found ? 0 : -FI_EINVAL;
}

/* ----------------------------------------------------------------------------------------- poll */

static void progress(const struct item *item)
{
    if (item->fid->fclass == FI_CLASS_CQ)
        mrd_ofi_sources_progress(&cq_of(item->fid)->sources);
    else if (item->fid->fclass == FI_CLASS_CNTR)
        mrd_ofi_sources_progress(&cntr_of(item->fid)->sources);
}

/* A counter is told of once for each change. */
static bool cntr_changed(struct item *item)
{
    uint64_t value = atomic_load(&cntr_of(item->fid)->value);
    uint64_t errors = atomic_load(&cntr_of(item->fid)->errors);
    bool changed = value != item->value || errors != item->errors;

    item->value = value;
    item->errors = errors;
    return changed;
}

static bool has_something(struct item *item)
{
    switch (item->fid->fclass) {
    case FI_CLASS_CQ:
        return cq_has(cq_of(item->fid));
    case FI_CLASS_CNTR:
        return cntr_changed(item);
    default:
        return eq_has(eq_of(item->fid));
    }
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
    struct mrd_ofi_poll *set = poll_of(fid);
    int n = 0;

    mrd_ofi_lock(set->domain);
    /* First all of them: progress of one adds entries to others. */
    for (uint32_t i = 0; i < set->num; i++)
        progress(&set->item[i]);
    for (uint32_t i = 0; i < set->num && n < count; i++)
        if (has_something(&set->item[i]))
            context[n++] = set->item[i].fid->context;
    mrd_ofi_unlock(set->domain);
    return n;
}

/* ---------------------------------------------------------------------------------- open, close */

static int poll_close(struct fid *fid)
{
    struct mrd_ofi_poll *set = mrd_container_of(fid, struct mrd_ofi_poll, fid.fid);

    mrd_ofi_lock(set->domain);
    for (uint32_t i = 0; i < set->num; i++)
        (void)use(set, set->item[i].fid, -1);
    set->domain->users--;
    mrd_ofi_unlock(set->domain);
    free(set->item);
    free(set);
    return 0;
}

static struct fi_ops poll_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = poll_close,
    .bind = mrd_ofi_no_bind,
    .control = mrd_ofi_no_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static struct fi_ops_poll poll_ops = {
    .size = sizeof(struct fi_ops_poll),
    .poll = poll_poll,
    .poll_add = poll_add,
    .poll_del = poll_del,
};

int mrd_ofi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **fid)
{
    struct mrd_ofi_domain *d = mrd_container_of(domain, struct mrd_ofi_domain, fid);
    struct mrd_ofi_poll *set;

    if (attr && attr->flags)
        return -FI_EINVAL;
    set = calloc(1, sizeof(*set));
    if (!set)
        return -FI_ENOMEM;
    set->fid.fid = (struct fid){.fclass = FI_CLASS_POLL, .ops = &poll_fid_ops};
    set->fid.ops = &poll_ops;
    set->domain = d;
    mrd_ofi_domain_join(d);
    *fid = &set->fid;
    return 0;
}

/* -------------------------------------------------------------------------------------- trywait */

static bool try_cq(struct mrd_ofi_cq *cq)
{
    bool has;

    mrd_ofi_lock(cq->domain);
    if (!cq_has(cq))
        mrd_ofi_sources_progress(&cq->sources);
    has = cq_has(cq);
    if (!has) {
        mrd_ofi_sources_arm(&cq->sources, &cq->wait);
        mrd_ofi_sources_progress(&cq->sources);
        has = cq_has(cq);
    }
    mrd_ofi_unlock(cq->domain);
    return has;
}

/* Does it count what the application was not told? */
static bool cntr_is_new(const struct mrd_ofi_cntr *cntr)
{
    return atomic_load(&cntr->value) != cntr->seen_value ||
           atomic_load(&cntr->errors) != cntr->seen_errors;
}

static bool try_cntr(struct mrd_ofi_cntr *cntr)
{
    bool has;

    mrd_ofi_lock(cntr->domain);
    mrd_ofi_sources_progress(&cntr->sources);
    has = cntr_is_new(cntr);
    if (!has) {
        mrd_ofi_sources_arm(&cntr->sources, &cntr->wait);
        mrd_ofi_sources_progress(&cntr->sources);
        has = cntr_is_new(cntr);
    }
    /* Told once: an application that looks at one of the two values only would never sleep. */
    cntr->seen_value = atomic_load(&cntr->value);
    cntr->seen_errors = atomic_load(&cntr->errors);
    mrd_ofi_unlock(cntr->domain);
    return has;
}

static bool try_eq(struct mrd_ofi_eq *eq)
{
    bool has;

    pthread_mutex_lock(&eq->mutex);
    has = !mrd_list_empty(&eq->events);
    if (!has)
        mrd_ofi_wait_arm(&eq->wait);
    pthread_mutex_unlock(&eq->mutex);
    return has;
}

/* 0, -FI_EAGAIN, or -FI_EINVAL: there is nothing to wait on. */
static int try_one(struct fid *fid)
{
    switch (fid->fclass) {
    case FI_CLASS_CQ:
        if (cq_of(fid)->wait.obj == FI_WAIT_NONE)
            return -FI_EINVAL;
        return try_cq(cq_of(fid)) ? -FI_EAGAIN : 0;
    case FI_CLASS_CNTR:
        if (cntr_of(fid)->wait.obj == FI_WAIT_NONE)
            return -FI_EINVAL;
        return try_cntr(cntr_of(fid)) ? -FI_EAGAIN : 0;
    case FI_CLASS_EQ:
        if (eq_of(fid)->wait.obj == FI_WAIT_NONE)
            return -FI_EINVAL;
        return try_eq(eq_of(fid)) ? -FI_EAGAIN : 0;
    default:
        return -FI_EINVAL;
    }
}

int mrd_ofi_trywait(struct fid_fabric *fabric, struct fid **fids, int num)
{
    int result = 0;

    (void)fabric;
    for (int i = 0; i < num && !result; i++)
        result = try_one(fids[i]);
    return result;
}
