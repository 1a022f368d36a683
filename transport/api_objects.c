/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that create and destroy objects: each a thin shim over the engine. */
#include <errno.h>
#include <string.h>

#include "core/limits.h"
#include "transport/attr.h"
#include "transport/call.h"
#include "transport/channel.h"
#include "transport/context.h"
#include "transport/error.h"
#include "transport/memory.h"
#include "transport/progress.h"
#include "transport/sealing.h"
#include "transport/sized.h"

#define ACCESS_MASK                                                                                \
    (MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |                   \
     MRD_ACCESS_REMOTE_ATOMIC | MRD_ACCESS_ON_DEMAND | MRD_ACCESS_POLLED)
#define REMOTE_MASK (MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ | MRD_ACCESS_REMOTE_ATOMIC)
#define QP_MASK     ((uint64_t)MRD_QP_INIT_ATTR_RNR_RETRY | MRD_QP_INIT_ATTR_STATE)

_Static_assert((int)MRD_FIRST_QP_NUM == (int)MRD_QPN_FIRST, "what mrd.h promises");

/*
 * Ends a constructor: releases the lock, and without an object sets errno and the
 * engine's sentence.
 */
static void *finish_create(struct mrd_context_impl *c, void *object, int error)
{
    if (object)
        mrd_call_leave(c);
    else
        errno = -mrd_call_fail(c, error);
    return object;
}

/* Ends a constructor that fails before the engine is asked; mrd_error_set() was called. */
static void *fail_create(int error)
{
    errno = -error;
    return NULL;
}

/* Ends a destructor or modifier: releases the lock, with the engine's sentence if it failed. */
static int finish_call(struct mrd_context_impl *c, int error)
{
    if (error)
        return mrd_call_fail(c, error);
    mrd_call_leave(c);
    return 0;
}

struct mrd_pd *mrd_alloc_pd(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_call_enter(c);

    if (error)
        return fail_create(error);
    return finish_create(c, mrd_engine_alloc_pd(c->engine, context), -ENOMEM);
}

int mrd_dealloc_pd(struct mrd_pd *pd)
{
    struct mrd_context_impl *c = mrd_context_impl(pd->context);
    int error = mrd_call_enter(c);

    return error ? error : finish_call(c, mrd_engine_dealloc_pd(c->engine, pd));
}

static int check_region(const void *addr, size_t length, int access)
{
    if (access & ~ACCESS_MASK) {
        mrd_error_set("unknown access flags 0x%x", (unsigned)(access & ~ACCESS_MASK));
        return -EINVAL;
    }
    if (access & (MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_ATOMIC) &&
        !(access & MRD_ACCESS_LOCAL_WRITE)) {
        mrd_error_set("MRD_ACCESS_%s needs MRD_ACCESS_LOCAL_WRITE",
                      access & MRD_ACCESS_REMOTE_WRITE ? "REMOTE_WRITE" : "REMOTE_ATOMIC");
        return -EINVAL;
    }
    if (length > UINTPTR_MAX - (uintptr_t)addr) {
        mrd_error_set("%zu bytes at %p wrap around", length, addr);
        return -EINVAL;
    }
    if (!addr && length == SIZE_MAX && access & MRD_ACCESS_ON_DEMAND) {
        if (!(access & REMOTE_MASK))
            return 0;
        mrd_error_set("peers may not use all memory of the process");
        return -EINVAL;
    }
    if (!addr && length) {
        mrd_error_set("no memory at NULL");
        return -EINVAL;
    }
    return 0;
}

static int check_mask(uint64_t asked, uint64_t known)
{
    if (!(asked & ~known))
        return 0;
    mrd_error_set("unknown bits 0x%llx in comp_mask", (unsigned long long)(asked & ~known));
    return -EINVAL;
}

static struct mrd_mr *reg_mr(struct mrd_pd *pd, void *addr, size_t length, int access)
{
    struct mrd_context_impl *c = mrd_context_impl(pd->context);
    int error = check_region(addr, length, access);
    struct mrd_mover_mr mover = {0};

    if (!error && access & MRD_ACCESS_ON_DEMAND && c->ops->reg_mr) {
        mrd_error_set("the device pins memory: MRD_ACCESS_ON_DEMAND is for those that do not");
        error = -EOPNOTSUPP;
    }
    if (!error && !*c->alive)
        error = mrd_call_forked();
    /* A simulation registers memory for each of many messages. */
    if (!error && c->backend->threaded && !(access & MRD_ACCESS_ON_DEMAND))
        error = mrd_memory_check(c->memory_fd, addr, length, access & MRD_ACCESS_LOCAL_WRITE);
    /* Pinning memory is slow: do it without the lock, so that the context goes on meanwhile. */
    if (!error && c->ops->reg_mr)
        error = c->ops->reg_mr(c->backend, addr, length, access, &mover);
    if (error)
        return fail_create(error);
    error = mrd_call_enter(c);
    if (error)
        return fail_create(error);

    struct mrd_mr *mr = mrd_engine_reg_mr(c->engine, pd, addr, length, access, &mover, &error);

    finish_create(c, mr, error);
    if (!mr && c->ops->dereg_mr)
        c->ops->dereg_mr(c->backend, mover);
    return mr;
}

struct mrd_mr *mrd_reg_mr_ex_sized(struct mrd_pd *pd, const struct mrd_mr_init_attr *attr,
                                   size_t size)
{
    struct mrd_mr_init_attr asked;
    int error = mrd_sized_read(&mrd_sized_mr_init_attr, &asked, attr, size);

    if (!error)
        error = check_mask(asked.comp_mask, 0);
    return error ? fail_create(error) : reg_mr(pd, asked.addr, asked.length, (int)asked.access);
}

struct mrd_mr *(mrd_reg_mr_ex)(struct mrd_pd *pd, const struct mrd_mr_init_attr *attr)
{
    return mrd_reg_mr_ex_sized(pd, attr, mrd_sized_mr_init_attr.first_bytes);
}

struct mrd_mr *mrd_reg_mr(struct mrd_pd *pd, void *addr, size_t length, int access)
{
    return reg_mr(pd, addr, length, access);
}

int mrd_dereg_mr(struct mrd_mr *mr)
{
    struct mrd_context_impl *c = mrd_context_impl(mr->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    error = mrd_progress_quiesce(c);
    if (error) {
        mrd_call_leave(c);
        return error;
    }

    uint64_t now_ns = mrd_context_now(c);
    struct mrd_mover_mr mover = mrd_engine_mover_mr(mr);

    mrd_engine_begin(c->engine, now_ns);
    error = mrd_engine_dereg_mr(c->engine, mr, now_ns);
    mrd_progress_send(c, now_ns);
    if (error || !c->ops->dereg_mr)
        return finish_call(c, error);
    /* Slow, as registering it. */
    atomic_fetch_add_explicit(&c->unlocked, 1, memory_order_relaxed);
    mrd_call_leave(c);
    c->ops->dereg_mr(c->backend, mover);
    atomic_fetch_sub_explicit(&c->unlocked, 1, memory_order_release);
    return 0;
}

static int check_cq(const struct mrd_context *context, const struct mrd_cq_init_attr *attr)
{
    int error = check_mask(attr->comp_mask, 0);

    if (error)
        return error;
    if (attr->channel && attr->channel->context != context) {
        mrd_error_set("the completion channel belongs to another context");
        return -EINVAL;
    }
    return 0;
}

struct mrd_cq *mrd_create_cq_ex_sized(struct mrd_context *context,
                                      const struct mrd_cq_init_attr *attr, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    struct mrd_cq_init_attr asked;
    int error = mrd_sized_read(&mrd_sized_cq_init_attr, &asked, attr, size);

    if (!error)
        error = check_cq(context, &asked);
    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return fail_create(error);

    struct mrd_cq *cq =
        mrd_engine_create_cq(c->engine, context, asked.cqe, asked.cq_context, &error);

    if (cq && asked.channel)
        mrd_engine_set_channel(cq, (struct mrd_channel_impl *)(void *)asked.channel);
    return finish_create(c, cq, error);
}

struct mrd_cq *(mrd_create_cq_ex)(struct mrd_context *context, const struct mrd_cq_init_attr *attr)
{
    return mrd_create_cq_ex_sized(context, attr, mrd_sized_cq_init_attr.first_bytes);
}

struct mrd_cq *mrd_create_cq(struct mrd_context *context, int cqe, void *cq_context)
{
    return mrd_create_cq_ex(context,
                            &(struct mrd_cq_init_attr){.cqe = cqe, .cq_context = cq_context});
}

int mrd_resize_cq(struct mrd_cq *cq, int cqe)
{
    struct mrd_context_impl *c = mrd_context_impl(cq->context);
    int error = mrd_call_enter(c);

    return error ? error : finish_call(c, mrd_engine_resize_cq(c->engine, cq, cqe));
}

int mrd_destroy_cq(struct mrd_cq *cq)
{
    struct mrd_context_impl *c = mrd_context_impl(cq->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;

    struct mrd_comp_channel *channel = mrd_engine_cq_channel(cq);

    error = mrd_engine_destroy_cq(c->engine, cq);
    if (!error && channel)
        mrd_channel_quiet(channel);
    return finish_call(c, error);
}

/* --------------------------------------------------------------------- shared receive queues */

struct mrd_srq *mrd_create_srq_sized(struct mrd_pd *pd, const struct mrd_srq_init_attr *attr,
                                     size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(pd->context);
    struct mrd_srq_init_attr asked;
    int error = mrd_sized_read(&mrd_sized_srq_init_attr, &asked, attr, size);

    if (!error)
        error = check_mask(asked.comp_mask, 0);
    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return fail_create(error);

    struct mrd_srq *srq = mrd_engine_create_srq(c->engine, pd, &asked, &error);

    return finish_create(c, srq, error);
}

struct mrd_srq *(mrd_create_srq)(struct mrd_pd *pd, const struct mrd_srq_init_attr *attr)
{
    return mrd_create_srq_sized(pd, attr, mrd_sized_srq_init_attr.first_bytes);
}

int mrd_query_srq(struct mrd_srq *srq, struct mrd_srq_attr *attr)
{
    struct mrd_context_impl *c = mrd_context_impl(srq->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    mrd_engine_query_srq(srq, attr);
    mrd_call_leave(c);
    return 0;
}

int mrd_modify_srq(struct mrd_srq *srq, const struct mrd_srq_attr *attr, int attr_mask)
{
    struct mrd_context_impl *c = mrd_context_impl(srq->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    error = mrd_engine_modify_srq(c->engine, srq, attr, attr_mask);
    mrd_progress_collect_events(c); /* there may be fewer receives already */
    return finish_call(c, error);
}

int mrd_destroy_srq(struct mrd_srq *srq)
{
    struct mrd_context_impl *c = mrd_context_impl(srq->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    error = mrd_engine_destroy_srq(c->engine, srq);
    if (!error)
        mrd_progress_forget_events(c, srq);
    return finish_call(c, error);
}

/* --------------------------------------------------------------------------------- queue pairs */

static int check_qp(const struct mrd_pd *pd, const struct mrd_qp_init_attr *attr)
{
    int error = check_mask(attr->comp_mask, QP_MASK);

    if (error)
        return error;
    if (!attr->send_cq || !attr->recv_cq) {
        mrd_error_set("a queue pair needs a send_cq and a recv_cq");
        return -EINVAL;
    }
    if (attr->send_cq->context != pd->context || attr->recv_cq->context != pd->context) {
        mrd_error_set("the completion queues belong to another context than the protection domain");
        return -EINVAL;
    }
    if (attr->srq && attr->srq->context != pd->context) {
        mrd_error_set("the shared receive queue belongs to another context");
        return -EINVAL;
    }
    return 0;
}

struct mrd_qp *mrd_create_qp_sized(struct mrd_pd *pd, struct mrd_qp_init_attr *attr, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(pd->context);
    struct mrd_qp_init_attr asked;
    int error = mrd_sized_read(&mrd_sized_qp_init_attr, &asked, attr, size);

    if (!error)
        error = check_qp(pd, &asked);
    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return fail_create(error);

    struct mrd_qp *qp = mrd_engine_create_qp(c->engine, pd, &asked, &error);

    if (qp) {
        mrd_engine_query_qp(qp, &asked);
        attr->cap = asked.cap;
    }
    return finish_create(c, qp, error);
}

struct mrd_qp *(mrd_create_qp)(struct mrd_pd *pd, struct mrd_qp_init_attr *attr)
{
    return mrd_create_qp_sized(pd, attr, mrd_sized_qp_init_attr.first_bytes);
}

int mrd_query_qp(struct mrd_qp *qp, struct mrd_qp_init_attr *attr, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(qp->context);
    int error = mrd_sized_check(&mrd_sized_qp_init_attr, size);
    struct mrd_qp_init_attr found;

    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return error;
    mrd_engine_query_qp(qp, &found);
    mrd_call_leave(c);
    mrd_sized_write(&mrd_sized_qp_init_attr, attr, size, &found);
    return 0;
}

int mrd_modify_qp(struct mrd_qp *qp, const struct mrd_qp_attr *attr, int attr_mask)
{
    struct mrd_context_impl *c = mrd_context_impl(qp->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;

    uint64_t now_ns = mrd_context_now(c);

    mrd_engine_begin(c->engine, now_ns);
    error = mrd_engine_modify_qp(c->engine, qp, attr, attr_mask, now_ns);
    mrd_progress_send(c, now_ns);
    return finish_call(c, error);
}

int mrd_destroy_qp(struct mrd_qp *qp)
{
    struct mrd_context_impl *c = mrd_context_impl(qp->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    /*
     * The queue pair's buffers are the user's again when this returns: the device must not
     * read them.
     */
    error = mrd_progress_quiesce(c);
    if (error) {
        mrd_call_leave(c);
        return error;
    }

    uint64_t now_ns = mrd_context_now(c);

    mrd_engine_begin(c->engine, now_ns);
    error = mrd_engine_destroy_qp(c->engine, qp, now_ns);
    if (!error)
        mrd_progress_forget_events(c, qp);
    mrd_progress_send(c, now_ns);
    return finish_call(c, error);
}

/* dscp: -1: the context's. Releases the lock. */
static struct mrd_ah *create_ah(struct mrd_context_impl *c, struct mrd_pd *pd,
                                const struct mrd_addr *to, int dscp)
{
    int payload_bytes = c->ops->payload_bytes(c->backend, to);

    if (payload_bytes < 0) {
        mrd_call_leave(c);
        return fail_create(payload_bytes);
    }

    int error = 0;
    struct mrd_ah *ah = mrd_engine_create_ah(
        c->engine, pd, to, mrd_sealing_payload(c, (uint32_t)payload_bytes), &error);

    if (ah && dscp >= 0)
        mrd_engine_set_dscp(ah, (uint8_t)dscp);
    if (ah && c->ops->one_way && c->ops->one_way(c->backend, to))
        mrd_engine_set_one_way(ah);
    return finish_create(c, ah, error);
}

static int check_ah(const struct mrd_ah_init_attr *attr)
{
    int error = check_mask(attr->comp_mask, MRD_AH_INIT_ATTR_DSCP);

    if (error)
        return error;
    if (!attr->address) {
        mrd_error_set("an address handle needs an address");
        return -EINVAL;
    }
    if (attr->comp_mask & MRD_AH_INIT_ATTR_DSCP && attr->dscp > MRD_DSCP_MAX) {
        mrd_error_set("dscp %u: at most %d", attr->dscp, MRD_DSCP_MAX);
        return -EINVAL;
    }
    return 0;
}

struct mrd_ah *mrd_create_ah_ex_sized(struct mrd_pd *pd, const struct mrd_ah_init_attr *attr,
                                      size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(pd->context);
    struct mrd_ah_init_attr asked;
    int error = mrd_sized_read(&mrd_sized_ah_init_attr, &asked, attr, size);
    struct mrd_addr to;

    if (!error)
        error = check_ah(&asked);
    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return fail_create(error);
    error = c->ops->parse_address(c->backend, asked.address, &to);
    if (error) {
        mrd_call_leave(c);
        return fail_create(error);
    }
    return create_ah(c, pd, &to, asked.comp_mask & MRD_AH_INIT_ATTR_DSCP ? (int)asked.dscp : -1);
}

struct mrd_ah *(mrd_create_ah_ex)(struct mrd_pd *pd, const struct mrd_ah_init_attr *attr)
{
    return mrd_create_ah_ex_sized(pd, attr, mrd_sized_ah_init_attr.first_bytes);
}

struct mrd_ah *mrd_create_ah(struct mrd_pd *pd, const char *address)
{
    return mrd_create_ah_ex(pd, &(struct mrd_ah_init_attr){.address = address});
}

struct mrd_ah *mrd_create_ah_from_wc(struct mrd_pd *pd, const struct mrd_wc *wc)
{
    struct mrd_context_impl *c = mrd_context_impl(pd->context);
    int error = mrd_call_enter(c);
    struct mrd_addr to;

    if (error)
        return fail_create(error);
    error = mrd_engine_peer_addr(c->engine, wc->peer_id, &to);
    if (error) {
        mrd_error_set("peer %u of the completion is forgotten", wc->peer_id);
        mrd_call_leave(c);
        return fail_create(error);
    }
    return create_ah(c, pd, &to, -1);
}

int mrd_watch_peer(struct mrd_ah *ah, int on)
{
    struct mrd_context_impl *c = mrd_context_impl(ah->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;

    uint64_t now_ns = mrd_progress_begin_call(c);

    error = mrd_engine_watch_peer(c->engine, ah, on, now_ns);
    mrd_progress_send(c, now_ns);
    return finish_call(c, error);
}

int mrd_destroy_ah(struct mrd_ah *ah)
{
    struct mrd_context_impl *c = mrd_context_impl(ah->context);
    int error = mrd_call_enter(c);

    return error ? error : finish_call(c, mrd_engine_destroy_ah(c->engine, ah));
}

/* ------------------------------------------------------------------------------------------ keys */

int mrd_reload_keys(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    error = mrd_sealing_reload(c);
    mrd_call_leave(c);
    return error;
}
