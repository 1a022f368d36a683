/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/cntr.h"

#include <sched.h>
#include <stdlib.h>

#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/nosys.h"

static struct mrd_ofi_cntr *cntr_of(struct fid_cntr *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_cntr, fid);
}

/* -------------------------------------------------------------------------- what completions do */

void mrd_ofi_cntr_add(struct mrd_ofi_cntr *cntr, uint64_t value)
{
    if (!cntr)
        return;
    atomic_fetch_add(&cntr->value, value);
    mrd_ofi_wait_signal(&cntr->wait);
}

void mrd_ofi_cntr_add_error(struct mrd_ofi_cntr *cntr, uint64_t value)
{
    if (!cntr)
        return;
    atomic_fetch_add(&cntr->errors, value);
    mrd_ofi_wait_signal(&cntr->wait);
}

/* ------------------------------------------------------------------------------- read and write */

static uint64_t cntr_read(struct fid_cntr *fid)
{
    struct mrd_ofi_cntr *cntr = cntr_of(fid);
    uint64_t value;

    mrd_ofi_lock(cntr->domain);
    mrd_ofi_sources_progress(&cntr->sources);
    value = cntr->seen_value = atomic_load(&cntr->value);
    mrd_ofi_unlock(cntr->domain);
    return value;
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
    struct mrd_ofi_cntr *cntr = cntr_of(fid);
    uint64_t errors;

    mrd_ofi_lock(cntr->domain);
    mrd_ofi_sources_progress(&cntr->sources);
    errors = cntr->seen_errors = atomic_load(&cntr->errors);
    mrd_ofi_unlock(cntr->domain);
    return errors;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
    struct mrd_ofi_cntr *cntr = cntr_of(fid);

    mrd_ofi_lock(cntr->domain);
    mrd_ofi_cntr_add(cntr, value);
    mrd_ofi_unlock(cntr->domain);
    return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
    struct mrd_ofi_cntr *cntr = cntr_of(fid);

    mrd_ofi_lock(cntr->domain);
    mrd_ofi_cntr_add_error(cntr, value);
    mrd_ofi_unlock(cntr->domain);
    return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
    struct mrd_ofi_cntr *cntr = cntr_of(fid);

    mrd_ofi_lock(cntr->domain);
    atomic_store(&cntr->value, value);
    mrd_ofi_wait_signal(&cntr->wait);
    mrd_ofi_unlock(cntr->domain);
    return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
    struct mrd_ofi_cntr *cntr = cntr_of(fid);

    mrd_ofi_lock(cntr->domain);
    atomic_store(&cntr->errors, value);
    mrd_ofi_wait_signal(&cntr->wait);
    mrd_ofi_unlock(cntr->domain);
    return 0;
}

/* -------------------------------------------------------------------------------------- waiting */

/* How a wait ends: 0: at the threshold; -FI_EAVAIL: errors were added. -FI_EAGAIN: not yet. */
static int state(const struct mrd_ofi_cntr *cntr, uint64_t threshold, uint64_t errors)
{
    if (atomic_load(&cntr->value) >= threshold)
        return 0;
    return atomic_load(&cntr->errors) == errors ? -FI_EAGAIN : -FI_EAVAIL;
}

/* Makes progress; if that does not do, again when the next completion is sure to raise an event. */
static int look_for_end(struct mrd_ofi_cntr *cntr, uint64_t threshold, uint64_t errors)
{
    int result;

    mrd_ofi_sources_progress(&cntr->sources);
    result = state(cntr, threshold, errors);
    if (result != -FI_EAGAIN || cntr->wait.obj == FI_WAIT_NONE)
        return result;
    mrd_ofi_sources_arm(&cntr->sources, &cntr->wait);
    mrd_ofi_sources_progress(&cntr->sources);
    return state(cntr, threshold, errors);
}

static int wait_for(struct mrd_ofi_cntr *cntr, uint64_t threshold, int timeout_ms)
{
    pthread_mutex_t *mutex = cntr->domain->locks ? &cntr->domain->mutex : NULL;
    uint64_t start_ns = mrd_ofi_now_ns(), errors = atomic_load(&cntr->errors);

    for (;;) {
        int result = look_for_end(cntr, threshold, errors), left_ms;

        if (result != -FI_EAGAIN)
            return result;
        left_ms = mrd_ofi_time_left(timeout_ms, start_ns);
        if (!left_ms)
            return -FI_ETIMEDOUT;
        if (cntr->wait.obj == FI_WAIT_NONE) { /* it cannot sleep: others get their turn */
            mrd_ofi_unlock(cntr->domain);
            sched_yield();
            mrd_ofi_lock(cntr->domain);
            continue;
        }
        result = mrd_ofi_wait_block(&cntr->wait, mutex, left_ms);
        if (result)
            return result;
    }
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout_ms)
{
    struct mrd_ofi_cntr *cntr = cntr_of(fid);
    int result;

    mrd_ofi_lock(cntr->domain);
    result = wait_for(cntr, threshold, timeout_ms);
    mrd_ofi_unlock(cntr->domain);
    return result;
}

/* ---------------------------------------------------------------------------------- open, close */

static int cntr_control(struct fid *fid, int command, void *arg)
{
    struct mrd_ofi_cntr *cntr = mrd_container_of(fid, struct mrd_ofi_cntr, fid.fid);

    return mrd_ofi_wait_control(&cntr->wait, command, arg);
}

static int cntr_close(struct fid *fid)
{
    struct mrd_ofi_cntr *cntr = mrd_container_of(fid, struct mrd_ofi_cntr, fid.fid);
    int error = mrd_ofi_domain_leave(cntr->domain, &cntr->users);

    if (error)
        return error;
    mrd_ofi_wait_fini(&cntr->wait);
    free(cntr);
    return 0;
}

static struct fi_ops cntr_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cntr_close,
    .bind = mrd_ofi_no_bind,
    .control = cntr_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static struct fi_ops_cntr cntr_ops = {
    .size = sizeof(struct fi_ops_cntr),
    .read = cntr_read,
    .readerr = cntr_readerr,
    .add = cntr_add,
    .set = cntr_set,
    .wait = cntr_wait,
    .adderr = cntr_adderr,
    .seterr = cntr_seterr,
};

int mrd_ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **fid,
                      void *context)
{
    struct mrd_ofi_domain *d = mrd_container_of(domain, struct mrd_ofi_domain, fid);
    struct mrd_ofi_cntr *cntr;
    int error;

    if (attr && attr->events != FI_CNTR_EVENTS_COMP)
        return -FI_ENOSYS;
    if (attr && attr->flags)
        return -FI_EINVAL;
    cntr = calloc(1, sizeof(*cntr));
    if (!cntr)
        return -FI_ENOMEM;
    error = mrd_ofi_wait_init(&cntr->wait, attr ? attr->wait_obj : FI_WAIT_NONE);
    if (error) {
        free(cntr);
        return error;
    }
    cntr->fid.fid = (struct fid){.fclass = FI_CLASS_CNTR, .context = context, .ops = &cntr_fid_ops};
    cntr->fid.ops = &cntr_ops;
    cntr->domain = d;
    mrd_ofi_domain_join(d);
    *fid = &cntr->fid;
    return 0;
}
