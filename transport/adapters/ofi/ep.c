/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: they are made, bound to what they use, enabled, and closed. */
#include "transport/adapters/ofi/ep.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "transport/adapters/ofi/atomic.h"
#include "transport/adapters/ofi/av.h"
#include "transport/adapters/ofi/check.h"
#include "transport/adapters/ofi/cm.h"
#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/context.h"
#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/eq.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/match.h"
#include "transport/adapters/ofi/mr.h"
#include "transport/adapters/ofi/nosys.h"
#include "transport/adapters/ofi/params.h"
#include "transport/adapters/ofi/progress.h"
#include "transport/adapters/ofi/rma.h"
#include "transport/adapters/ofi/send.h"
#include "transport/adapters/ofi/thread.h"

/* How long a closing endpoint waits until the messages that it sent last have arrived. */
#define LINGER_NS (2 * 1000000000ull)

static struct mrd_ofi_ep *impl(struct fid *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_ep, fid.fid);
}

/* ------------------------------------------------------------------------------------- enabling */

/* What hears of the endpoint's completions looks at it, and is woken up by it. */
static int add_sources(struct mrd_ofi_ep *ep)
{
    int error = 0;

    if (ep->tx.cq)
        error = mrd_ofi_sources_add(&ep->tx.cq->sources, &ep->tx.cq->wait, &ep->source);
    if (ep->rx.cq && !error)
        error = mrd_ofi_sources_add(&ep->rx.cq->sources, &ep->rx.cq->wait, &ep->source);
    for (unsigned i = 0; i < MRD_OFI_COUNTS && !error; i++) {
        if (ep->bound.cntr[i])
            error = mrd_ofi_sources_add(&ep->bound.cntr[i]->sources, &ep->bound.cntr[i]->wait,
                                        &ep->source);
    }
    return error ? error : mrd_ofi_mrs_add_ep(ep);
}

static void del_sources(struct mrd_ofi_ep *ep)
{
    if (ep->tx.cq)
        mrd_ofi_sources_del(&ep->tx.cq->sources, &ep->tx.cq->wait, &ep->source);
    if (ep->rx.cq)
        mrd_ofi_sources_del(&ep->rx.cq->sources, &ep->rx.cq->wait, &ep->source);
    for (unsigned i = 0; i < MRD_OFI_COUNTS; i++) {
        if (ep->bound.cntr[i])
            mrd_ofi_sources_del(&ep->bound.cntr[i]->sources, &ep->bound.cntr[i]->wait, &ep->source);
    }
    mrd_ofi_mrs_del_ep(ep);
}

/* Has it all that its capabilities need? */
static int check_bound(const struct mrd_ofi_ep *ep)
{
    const uint64_t out = FI_SEND | FI_READ | FI_WRITE, in = FI_RECV;
    bool tx = ep->tx.cq, rx = ep->rx.cq || ep->bound.cntr[MRD_OFI_COUNT_RECV];

    for (unsigned i = MRD_OFI_COUNT_SEND; i <= MRD_OFI_COUNT_WRITE; i++)
        tx = tx || (i != MRD_OFI_COUNT_RECV && ep->bound.cntr[i]);
    if (!ep->bound.av)
        return -FI_ENOAV;
    if ((ep->info->caps & out && !tx) || (ep->info->caps & in && !rx))
        return -FI_ENOCQ;
    return 0;
}

static void make_progress(struct mrd_ofi_source *source)
{
    mrd_ofi_ep_progress(mrd_container_of(source, struct mrd_ofi_ep, source));
}

static void arm(struct mrd_ofi_source *source)
{
    mrd_ofi_ep_arm(mrd_container_of(source, struct mrd_ofi_ep, source));
}

static int enable(struct mrd_ofi_ep *ep)
{
    int error = check_bound(ep);

    if (ep->enabled)
        return 0;
    if (!error)
        error = mrd_ofi_context_open(ep);
    if (!error)
        error = add_sources(ep);
    if (!error)
        error = mrd_ofi_thread_start(ep->domain);
    if (!error && ep->domain->automatic)
        error = mrd_ofi_wait_add_fd(&ep->domain->wait, ep->source.fd);
    if (error) {
        MRD_OFI_WARN(EP_CTRL, "an endpoint is not enabled: %s\n",
                     ep->dev.context ? fi_strerror(-error) : mrd_last_error());
        del_sources(ep);
        mrd_ofi_context_close(ep);
        return error;
    }
    mrd_list_append(&ep->domain->eps, &ep->domain_node);
    ep->enabled = true;
    if (ep->domain->automatic) /* its thread looks at this one, too, from now on */
        mrd_ofi_wait_signal(&ep->domain->wait);
    return 0;
}

/* -------------------------------------------------------------------------------------- binding */

static int bind_cq(struct mrd_ofi_ep *ep, struct mrd_ofi_cq *cq, uint64_t flags)
{
    bool selective = flags & FI_SELECTIVE_COMPLETION;

    if (cq->domain != ep->domain || !(flags & (FI_TRANSMIT | FI_RECV)) ||
        flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
        (flags & FI_TRANSMIT && ep->tx.cq) || (flags & FI_RECV && ep->rx.cq))
        return -FI_EINVAL;
    if (flags & FI_TRANSMIT) {
        ep->tx.cq = cq;
        ep->tx.selective = selective;
        ep->tx.flags |= selective ? 0 : FI_COMPLETION;
        cq->users++;
    }
    if (flags & FI_RECV) {
        ep->rx.cq = cq;
        ep->rx.selective = selective;
        ep->rx.flags |= selective ? 0 : FI_COMPLETION;
        cq->users++;
    }
    return 0;
}

static int bind_cntr(struct mrd_ofi_ep *ep, struct mrd_ofi_cntr *cntr, uint64_t flags)
{
    static const uint64_t flag[MRD_OFI_COUNTS] = {
        [MRD_OFI_COUNT_SEND] = FI_SEND,
        [MRD_OFI_COUNT_RECV] = FI_RECV,
        [MRD_OFI_COUNT_READ] = FI_READ,
        [MRD_OFI_COUNT_WRITE] = FI_WRITE,
        [MRD_OFI_COUNT_REMOTE_READ] = FI_REMOTE_READ,
        [MRD_OFI_COUNT_REMOTE_WRITE] = FI_REMOTE_WRITE,
    };
    uint64_t known = 0;

    for (unsigned i = 0; i < MRD_OFI_COUNTS; i++)
        known |= flag[i];
    if (cntr->domain != ep->domain || !flags || flags & ~known)
        return -FI_EINVAL;
    for (unsigned i = 0; i < MRD_OFI_COUNTS; i++) {
        if (flags & flag[i] && ep->bound.cntr[i])
            return -FI_EINVAL;
    }
    for (unsigned i = 0; i < MRD_OFI_COUNTS; i++) {
        if (flags & flag[i]) {
            ep->bound.cntr[i] = cntr;
            cntr->users++;
        }
    }
    return 0;
}

static int bind_av(struct mrd_ofi_ep *ep, struct mrd_ofi_av *av)
{
    if (av->domain != ep->domain || ep->bound.av)
        return -FI_EINVAL;
    ep->bound.av = av;
    av->users++;
    return 0;
}

static int bind_eq(struct mrd_ofi_ep *ep, struct mrd_ofi_eq *eq)
{
    if (ep->bound.eq)
        return -FI_EINVAL;
    ep->bound.eq = eq;
    atomic_fetch_add(&eq->users, 1);
    return 0;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct mrd_ofi_ep *ep = impl(fid);
    int error = -FI_EINVAL;

    mrd_ofi_lock(ep->domain);
    if (ep->enabled)
        error = -FI_EOPBADSTATE;
    else if (other->fclass == FI_CLASS_CQ)
        error = bind_cq(ep, mrd_container_of(other, struct mrd_ofi_cq, fid.fid), flags);
    else if (other->fclass == FI_CLASS_CNTR)
        error = bind_cntr(ep, mrd_container_of(other, struct mrd_ofi_cntr, fid.fid), flags);
    else if (other->fclass == FI_CLASS_AV)
        error = bind_av(ep, mrd_container_of(other, struct mrd_ofi_av, fid.fid));
    else if (other->fclass == FI_CLASS_EQ)
        error = bind_eq(ep, mrd_container_of(other, struct mrd_ofi_eq, fid.fid));
    mrd_ofi_unlock(ep->domain);
    return error;
}

/* -------------------------------------------------------------------------------------- closing */

/* What was injected, and what the provider says for itself, is still on its way. */
static void linger(struct mrd_ofi_ep *ep)
{
    uint64_t start_ns = mrd_ofi_now_ns();

    while ((ep->tx.num_internal || !mrd_list_empty(&ep->tx.unsent)) &&
           mrd_ofi_now_ns() - start_ns < LINGER_NS) {
        mrd_ofi_ep_progress(ep);
        if (!ep->tx.num_internal && mrd_list_empty(&ep->tx.unsent))
            break;
        mrd_ofi_unlock(ep->domain);
        usleep(100);
        mrd_ofi_lock(ep->domain);
    }
}

static void unbind(struct mrd_ofi_ep *ep)
{
    if (ep->tx.cq)
        ep->tx.cq->users--;
    if (ep->rx.cq)
        ep->rx.cq->users--;
    for (unsigned i = 0; i < MRD_OFI_COUNTS; i++) {
        if (ep->bound.cntr[i])
            ep->bound.cntr[i]->users--;
    }
    if (ep->bound.av)
        ep->bound.av->users--;
    if (ep->bound.eq)
        atomic_fetch_sub(&ep->bound.eq->users, 1);
}

static void free_receives(struct mrd_ofi_ep *ep)
{
    mrd_ofi_match_fini(&ep->rx.msg);
    mrd_ofi_match_fini(&ep->rx.tagged);
    mrd_ofi_rxs_fini(&ep->rx.pool);
}

static int ep_close(struct fid *fid)
{
    struct mrd_ofi_ep *ep = impl(fid);
    struct mrd_ofi_domain *d = ep->domain;

    mrd_ofi_lock(d);
    if (ep->enabled) {
        linger(ep);
        mrd_list_remove(&ep->domain_node);
        if (d->automatic)
            mrd_ofi_wait_del_fd(&d->wait, ep->source.fd);
        del_sources(ep);
        mrd_ofi_context_close(ep);
    }
    unbind(ep);
    free_receives(ep);
    mrd_ofi_ops_fini(&ep->ops);
    d->users--;
    mrd_ofi_unlock(d);
    fi_freeinfo(ep->info);
    free(ep);
    return 0;
}

/* -------------------------------------------------------------------------------------- control */

static int set_flags(struct mrd_ofi_ep *ep, uint64_t flags)
{
    uint64_t way = flags & (FI_TRANSMIT | FI_RECV);

    flags &= ~way;
    if (way == FI_TRANSMIT)
        ep->tx.flags = flags | (ep->tx.selective ? 0 : FI_COMPLETION);
    else if (way == FI_RECV)
        ep->rx.flags = flags | (ep->rx.selective ? 0 : FI_COMPLETION);
    else
        return -FI_EINVAL;
    return 0;
}

static int get_flags(const struct mrd_ofi_ep *ep, uint64_t *flags)
{
    uint64_t way = *flags & (FI_TRANSMIT | FI_RECV);

    if (way != FI_TRANSMIT && way != FI_RECV)
        return -FI_EINVAL;
    *flags = way == FI_TRANSMIT ? ep->tx.flags : ep->rx.flags;
    return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
    struct mrd_ofi_ep *ep = impl(fid);
    int result = -FI_ENOSYS;

    mrd_ofi_lock(ep->domain);
    if (command == FI_ENABLE)
        result = enable(ep);
    else if (command == FI_SETOPSFLAG)
        result = set_flags(ep, *(uint64_t *)arg);
    else if (command == FI_GETOPSFLAG)
        result = get_flags(ep, arg);
    mrd_ofi_unlock(ep->domain);
    return result;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = ep_close,
    .bind = ep_bind,
    .control = ep_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static ssize_t ep_cancel(fid_t fid, void *context)
{
    struct mrd_ofi_ep *ep = impl(fid);
    int result;

    mrd_ofi_lock(ep->domain);
    result = mrd_ofi_match_cancel(ep, context);
    mrd_ofi_unlock(ep->domain);
    return result;
}

static int ep_getopt(fid_t fid, int level, int option, void *value, size_t *len)
{
    const struct mrd_ofi_ep *ep = impl(fid);

    if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (*len < sizeof(size_t))
        return -FI_ETOOSMALL;
    memcpy(value, &ep->rx.min_multi, sizeof(size_t));
    *len = sizeof(size_t);
    return 0;
}

static int ep_setopt(fid_t fid, int level, int option, const void *value, size_t len)
{
    struct mrd_ofi_ep *ep = impl(fid);

    if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (len != sizeof(size_t))
        return -FI_EINVAL;
    mrd_ofi_lock(ep->domain);
    memcpy(&ep->rx.min_multi, value, len);
    if (!ep->rx.min_multi)
        ep->rx.min_multi = 1;
    mrd_ofi_unlock(ep->domain);
    return 0;
}

static int no_context(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep,
                      void *context)
{
    (void)sep, (void)index, (void)attr, (void)ep, (void)context;
    return -FI_ENOSYS;
}

static int no_rx_context(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep,
                         void *context)
{
    (void)sep, (void)index, (void)attr, (void)ep, (void)context;
    return -FI_ENOSYS;
}

static ssize_t rx_size_left(struct fid_ep *fid)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);

    return ep->enabled ? (ssize_t)ep->info->rx_attr->size : -FI_EOPBADSTATE;
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);
    ssize_t left;

    mrd_ofi_lock(ep->domain);
    left = ep->enabled ? (ssize_t)(ep->tx.most - ep->tx.used) : -FI_EOPBADSTATE;
    mrd_ofi_unlock(ep->domain);
    return left;
}

static struct fi_ops_ep ep_ops = {
    .size = sizeof(struct fi_ops_ep),
    .cancel = ep_cancel,
    .getopt = ep_getopt,
    .setopt = ep_setopt,
    .tx_ctx = no_context,
    .rx_ctx = no_rx_context,
    .rx_size_left = rx_size_left,
    .tx_size_left = tx_size_left,
};

/* --------------------------------------------------------------------------------------- making */

/* Without one, whoever sends may make searches slow, and nothing worse. */
static uint64_t random_number(void)
{
    uint64_t n;

    return getrandom(&n, sizeof(n), 0) == sizeof(n) ? n : 0;
}

int mrd_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
                    void *context)
{
    struct mrd_ofi_domain *d = mrd_container_of(domain, struct mrd_ofi_domain, fid);
    int error = mrd_ofi_check_ep_info(info);
    struct mrd_ofi_ep *ep;

    if (error)
        return error;
    ep = calloc(1, sizeof(*ep));
    if (!ep)
        return -FI_ENOMEM;
    ep->info = fi_dupinfo(info);
    if (!ep->info) {
        free(ep);
        return -FI_ENOMEM;
    }
    ep->fid = (struct fid_ep){.fid = {FI_CLASS_EP, context, &fid_ops},
                              .ops = &ep_ops,
                              .cm = &mrd_ofi_cm_ops,
                              .msg = &mrd_ofi_msg_ops,
                              .rma = &mrd_ofi_rma_ops,
                              .tagged = &mrd_ofi_tagged_ops,
                              .atomic = &mrd_ofi_atomic_ops};
    ep->domain = d;
    ep->source = (struct mrd_ofi_source){.progress = make_progress, .arm = arm, .fd = -1};
    ep->tx.flags = ep->info->tx_attr->op_flags;
    ep->rx.flags = ep->info->rx_attr->op_flags;
    ep->tx.most = (uint32_t)ep->info->tx_attr->size;
    ep->rx.min_multi = 64;
    ep->rx.num = mrd_ofi_params.rx_buffers;
    ep->rx.bytes = (mrd_ofi_params.eager_bytes + MRD_OFI_HEAD_BYTES + 63) & ~63u;
    mrd_list_init(&ep->domain_node);
    mrd_list_init(&ep->dev.mr_regs);
    mrd_list_init(&ep->tx.unsent);
    mrd_list_init(&ep->turn.ended);
    mrd_ofi_rxs_init(&ep->rx.pool);
    mrd_ofi_match_init(&ep->rx.msg, random_number());
    mrd_ofi_match_init(&ep->rx.tagged, random_number());
    mrd_ofi_ops_init(&ep->ops);
    mrd_ofi_domain_join(d);
    *out = &ep->fid;
    return 0;
}
