/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects: protection domains, memory regions, completion queues, queue pairs, address handles. */
#include <errno.h>

#include "core/engine/answer.h"
#include "core/engine/complete.h"
#include "core/engine/handle.h"
#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/engine/query.h"
#include "core/engine/respond.h"
#include "core/engine/rnr.h"
#include "core/engine/rx_place.h"

enum { RD_ATOMIC_DEFAULT = 16 }; /* as many RDMA adapters have */

static struct mrd_pd_impl *pd_impl(struct mrd_pd *pd)
{
    return (struct mrd_pd_impl *)(void *)pd;
}

struct mrd_pd *mrd_engine_alloc_pd(struct mrd_engine *e, struct mrd_context *context)
{
    struct mrd_pd_impl *pd = mrd_alloc(&e->allocator, sizeof(*pd));

    if (!pd)
        return NULL;
    pd->pub.context = context;
    e->objects.num_pds++;
    return &pd->pub;
}

int mrd_engine_dealloc_pd(struct mrd_engine *e, struct mrd_pd *pd)
{
    if (pd_impl(pd)->users)
        return mrd_error_keep(
            e, -EBUSY,
            "the protection domain still has memory regions, queue pairs, shared receive queues or "
            "address handles");
    mrd_free(&e->allocator, pd, sizeof(struct mrd_pd_impl));
    e->objects.num_pds--;
    return 0;
}

struct mrd_mr *mrd_engine_reg_mr(struct mrd_engine *e, struct mrd_pd *pd, void *addr, size_t length,
                                 int access, const struct mrd_mover_mr *mover, int *error)
{
    const int known = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |
                      MRD_ACCESS_REMOTE_ATOMIC | MRD_ACCESS_ON_DEMAND | MRD_ACCESS_POLLED;
    const int writes = MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_ATOMIC;
    struct mrd_mr pub = {.context = pd->context, .pd = pd, .addr = addr, .length = length};
    struct mrd_mr_impl *mr;

    *error = -EINVAL;
    if (access & ~known) {
        mrd_error_keep(e, 0, "unknown access flag");
        return NULL;
    }
    if (access & writes && !(access & MRD_ACCESS_LOCAL_WRITE)) {
        mrd_error_keep(e, 0,
                       "MRD_ACCESS_REMOTE_WRITE and _REMOTE_ATOMIC need MRD_ACCESS_LOCAL_WRITE");
        return NULL;
    }
    if ((uintptr_t)addr + length < (uintptr_t)addr) {
        mrd_error_keep(e, 0, "the region wraps around the end of memory");
        return NULL;
    }
    *error = -ENOMEM;
    mr = mrd_mr_add(&e->objects.mrs, &e->secret, &pub, access, mover);
    if (!mr) {
        mrd_error_keep(e, 0, "no memory for another region");
        return NULL;
    }
    pd_impl(pd)->users++;
    e->objects.num_mrs++;
    *error = 0;
    return &mr->pub;
}

struct mrd_mover_mr mrd_engine_mover_mr(const struct mrd_mr *mr)
{
    return ((const struct mrd_mr_impl *)(const void *)mr)->mover;
}

/* Nothing is searched: each later touch of the memory looks its key up, and finds it gone. */
int mrd_engine_dereg_mr(struct mrd_engine *e, struct mrd_mr *mr, uint64_t now_ns)
{
    mrd_clock_set(&e->clock, now_ns);
    pd_impl(mr->pd)->users--;
    mrd_mr_del(&e->objects.mrs, (struct mrd_mr_impl *)(void *)mr);
    e->objects.num_mrs--;
    return 0;
}

/* Returns the size of a ring of so many entries: a power of two; 0 with a sentence: too many. */
static uint32_t ring_size(struct mrd_engine *e, int cqe)
{
    uint32_t size = 1;

    if (cqe < 1 || cqe > MRD_CQE_MAX) {
        mrd_error_keep(e, 0, "a completion queue holds 1 to 16777216 entries");
        return 0;
    }
    while (size < (uint32_t)cqe)
        size <<= 1;
    return size;
}

struct mrd_cq *mrd_engine_create_cq(struct mrd_engine *e, struct mrd_context *context, int cqe,
                                    void *cq_context, int *error)
{
    struct mrd_cq_impl *cq;
    uint32_t size = ring_size(e, cqe);

    *error = size ? -ENOMEM : -EINVAL;
    if (!size)
        return NULL;
    cq = mrd_alloc(&e->allocator, sizeof(*cq));
    if (!cq)
        return NULL;
    cq->ring = mrd_alloc(&e->allocator, size * sizeof(*cq->ring));
    if (!cq->ring) {
        mrd_free(&e->allocator, cq, sizeof(*cq));
        return NULL;
    }
    cq->mask = size - 1;
    mrd_list_init(&cq->rnr_waiters);
    cq->pub = (struct mrd_cq){.context = context, .cq_context = cq_context, .cqe = cqe};
    e->objects.num_cqs++;
    *error = 0;
    return &cq->pub;
}

int mrd_engine_resize_cq(struct mrd_engine *e, struct mrd_cq *cq_pub, int cqe)
{
    struct mrd_cq_impl *cq = mrd_cq_impl(cq_pub);
    uint32_t size = ring_size(e, cqe), room = mrd_cq_room(cq);
    struct mrd_wc *ring;

    if (!size)
        return -EINVAL;
    if ((uint32_t)cqe < (uint32_t)cq->pub.cqe - room)
        return mrd_error_keep(e, -EINVAL,
                              "completions that wait and work that is posted need more entries");
    if (size != cq->mask + 1) {
        ring = mrd_alloc(&e->allocator, size * sizeof(*ring));
        if (!ring)
            return mrd_error_keep(e, -ENOMEM, "no memory for so many entries");
        for (uint32_t i = cq->head; i != cq->tail; i++)
            ring[i & (size - 1)] = cq->ring[i & cq->mask];
        mrd_free(&e->allocator, cq->ring, (cq->mask + 1) * sizeof(*cq->ring));
        cq->ring = ring;
        cq->mask = size - 1;
    }
    cq->pub.cqe = cqe;
    if (mrd_cq_room(cq) > room)
        mrd_rnr_notify_all(e, &cq->rnr_waiters);
    return 0;
}

int mrd_engine_destroy_cq(struct mrd_engine *e, struct mrd_cq *cq_pub)
{
    struct mrd_cq_impl *cq = mrd_cq_impl(cq_pub);

    if (cq->users)
        return mrd_error_keep(e, -EBUSY, "the completion queue is still used by a queue pair");
    if (cq->notify.taken)
        return mrd_error_keep(e, -EBUSY, "events of the completion queue were not acked");
    mrd_cq_leave_channel(cq);
    mrd_free(&e->allocator, cq->ring, (cq->mask + 1) * sizeof(*cq->ring));
    mrd_free(&e->allocator, cq, sizeof(*cq));
    e->objects.num_cqs--;
    return 0;
}

int mrd_engine_poll_cq(struct mrd_engine *e, struct mrd_cq *cq, int n, struct mrd_wc *wc)
{
    int taken = mrd_cq_take(mrd_cq_impl(cq), n, wc);

    mrd_rnr_notify(e, &mrd_cq_impl(cq)->rnr_waiters, (uint32_t)taken);
    return taken;
}

bool mrd_engine_cq_waits(const struct mrd_cq *cq)
{
    const struct mrd_cq_impl *impl = (const struct mrd_cq_impl *)(const void *)cq;

    return impl->head != impl->tail;
}

static const char *check_qp_attr(const struct mrd_qp_init_attr *attr)
{
    if (attr->comp_mask & ~(uint64_t)(MRD_QP_INIT_ATTR_RNR_RETRY | MRD_QP_INIT_ATTR_STATE))
        return "unknown bit in comp_mask";
    if (!attr->send_cq || !attr->recv_cq)
        return "a queue pair needs a send_cq and a recv_cq";
    if (attr->order != MRD_ORDER_NONE && attr->order != MRD_ORDER_MSG &&
        attr->order != MRD_ORDER_DATA)
        return "unknown order";
    if (attr->comp_mask & MRD_QP_INIT_ATTR_RNR_RETRY && attr->rnr_retry > MRD_RNR_RETRY_FOREVER)
        return "rnr_retry is 0 to 7";
    if (attr->comp_mask & MRD_QP_INIT_ATTR_STATE && attr->qp_state != MRD_QPS_RTS &&
        attr->qp_state != MRD_QPS_INIT)
        return "a queue pair begins in MRD_QPS_RTS or MRD_QPS_INIT";
    if (attr->events & ~(uint64_t)MRD_QP_TELL_REFUSED)
        return "unknown bit in events";
    if (!mrd_qp_bytes(&attr->cap))
        return "a cap is out of range: 1048576 work requests, 16 entries a list, 1024 inline bytes "
               "at most";
    return NULL;
}

struct mrd_qp *mrd_engine_create_qp(struct mrd_engine *e, struct mrd_pd *pd,
                                    const struct mrd_qp_init_attr *asked, int *error)
{
    struct mrd_qp_init_attr attr = *asked;
    struct mrd_qp_impl *qp;
    const char *why;
    size_t bytes;

    if (attr.srq)
        attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    *error = -EINVAL;
    why = check_qp_attr(&attr);
    if (why) {
        mrd_error_keep(e, 0, why);
        return NULL;
    }
    *error = -ENOSPC;
    if (e->objects.qpn_next == UINT32_MAX) { /* a number is never used twice in a context's life */
        mrd_error_keep(e, 0, "the context's queue pair numbers are used up");
        return NULL;
    }
    *error = -ENOMEM;
    bytes = mrd_qp_bytes(&attr.cap);
    qp = mrd_alloc(&e->allocator, bytes);
    if (!qp) {
        mrd_error_keep(e, 0, "no memory for the queue pair");
        return NULL;
    }
    mrd_qp_init(qp, pd, &attr, bytes);
    qp->pub = (struct mrd_qp){.context = pd->context,
                              .qp_context = attr.qp_context,
                              .pd = pd,
                              .send_cq = attr.send_cq,
                              .recv_cq = attr.recv_cq,
                              .qp_num = e->objects.qpn_next++,
                              .state = e->objects.failed ? MRD_QPS_ERR : MRD_QPS_RTS,
                              .order = attr.order};
    if (attr.comp_mask & MRD_QP_INIT_ATTR_STATE && !e->objects.failed)
        qp->pub.state = attr.qp_state;
    qp->rnr_retry =
        attr.comp_mask & MRD_QP_INIT_ATTR_RNR_RETRY ? attr.rnr_retry : MRD_RNR_RETRY_FOREVER;
    qp->rnr_timer_ns = attr.rnr_timer_ns ? attr.rnr_timer_ns : 100 * MRD_USEC;
    qp->requests.max_rd_atomic = attr.max_rd_atomic ? attr.max_rd_atomic : RD_ATOMIC_DEFAULT;
    mrd_hash_add(&e->objects.qps, &qp->by_num, mrd_hash_mix(qp->pub.qp_num));
    mrd_list_append(&e->objects.qp_list, &qp->node);
    mrd_cq_impl(attr.send_cq)->users++;
    mrd_cq_impl(attr.recv_cq)->users++;
    if (qp->srq)
        qp->srq->users++;
    pd_impl(pd)->users++;
    e->objects.num_qps++;
    *error = 0;
    return &qp->pub;
}

/* All that the queue pair sends, for its user or in answer to peers, is flushed. */
static void flush_sends(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_node *n;

    mrd_rnr_forget_qp(e, qp);
    /* In the order posted, in which they complete behind the others of their flows. */
    while ((n = mrd_list_first(&qp->requests.held)))
        mrd_msg_cancel(e, mrd_container_of(n, struct mrd_msg, node), MRD_WC_WR_FLUSH_ERR);
    for (uint32_t i = 0; i < qp->cap.max_send_wr; i++)
        if (qp->msgs[i].state != MRD_MSG_FREE)
            mrd_msg_cancel(e, &qp->msgs[i], MRD_WC_WR_FLUSH_ERR);
    mrd_respond_flush_qp(e, qp);
}

/* Its own receives that no message took; those that were reserved must be back. */
static void flush_receives(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_recv *recv;

    while ((recv = mrd_recvq_take(&qp->own)))
        mrd_rx_complete(e, qp, recv,
                        &(struct mrd_wc){.status = MRD_WC_WR_FLUSH_ERR, .opcode = MRD_WC_RECV});
}

static void flush_qp(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    flush_sends(e, qp);
    mrd_rx_flush_qp(e, qp, MRD_WC_WR_FLUSH_ERR);
    flush_receives(e, qp);
}

void mrd_engine_query_qp(const struct mrd_qp *qp_pub, struct mrd_qp_init_attr *attr)
{
    const struct mrd_qp_impl *qp = (const struct mrd_qp_impl *)(const void *)qp_pub;

    *attr = (struct mrd_qp_init_attr){.comp_mask = MRD_QP_INIT_ATTR_RNR_RETRY,
                                      .qp_context = qp->pub.qp_context,
                                      .send_cq = qp->pub.send_cq,
                                      .recv_cq = qp->pub.recv_cq,
                                      .srq = qp->srq ? &qp->srq->pub : NULL,
                                      .cap = qp->cap,
                                      .sq_sig_all = qp->sig_all,
                                      .order = qp->pub.order,
                                      .qkey = qp->qkey,
                                      .rnr_retry = qp->rnr_retry,
                                      .rnr_timer_ns = qp->rnr_timer_ns,
                                      .max_rd_atomic = qp->requests.max_rd_atomic,
                                      .events = qp->tells_refused ? MRD_QP_TELL_REFUSED : 0};
    if (qp->pub.state == MRD_QPS_INIT) {
        attr->comp_mask |= MRD_QP_INIT_ATTR_STATE;
        attr->qp_state = MRD_QPS_INIT;
    }
}

static const char *check_modify(const struct mrd_qp *qp, const struct mrd_qp_attr *attr, int mask)
{
    const int known =
        MRD_QP_STATE | MRD_QP_QKEY | MRD_QP_RNR_RETRY | MRD_QP_RNR_TIMER | MRD_QP_DEST;

    if (mask & ~known)
        return "unknown bit in attr_mask";
    if (mask & MRD_QP_STATE && attr->qp_state != MRD_QPS_ERR && attr->qp_state != MRD_QPS_RTS)
        return "a queue pair can only be moved to MRD_QPS_RTS and MRD_QPS_ERR";
    if (mask & MRD_QP_STATE && attr->qp_state == MRD_QPS_RTS && qp->state == MRD_QPS_ERR)
        return "MRD_QPS_ERR is final";
    if (mask & MRD_QP_RNR_RETRY && attr->rnr_retry > MRD_RNR_RETRY_FOREVER)
        return "rnr_retry is 0 to 7";
    if (mask & MRD_QP_DEST && qp->state != MRD_QPS_INIT)
        return "MRD_QP_DEST is for queue pairs in MRD_QPS_INIT: others may have begun with "
               "messages";
    if (mask & MRD_QP_DEST && attr->dest_ah && attr->dest_ah->context != qp->context)
        return "the address handle belongs to another context";
    return NULL;
}

static void set_dest(const struct mrd_engine *e, struct mrd_qp_impl *qp,
                     const struct mrd_qp_attr *attr)
{
    qp->dest.only = attr->dest_ah != NULL;
    if (!attr->dest_ah)
        return;
    qp->dest.addr = *mrd_engine_ah_addr(attr->dest_ah);
    qp->dest.own_inc = ((const struct mrd_ah_impl *)attr->dest_ah)->own_inc;
    if (!qp->dest.own_inc)
        qp->dest.own_inc = mrd_answer_pair(e, &qp->dest.addr).own_inc;
    qp->dest.qpn = attr->dest_qp_num;
}

int mrd_engine_modify_qp(struct mrd_engine *e, struct mrd_qp *qp_pub,
                         const struct mrd_qp_attr *attr, int mask, uint64_t now_ns)
{
    struct mrd_qp_impl *qp = mrd_qp_impl(qp_pub);
    const char *why = check_modify(qp_pub, attr, mask);

    mrd_clock_set(&e->clock, now_ns);
    if (why)
        return mrd_error_keep(e, -EINVAL, why);
    if (mask & MRD_QP_DEST)
        set_dest(e, qp, attr);
    if (mask & MRD_QP_QKEY)
        qp->qkey = attr->qkey;
    if (mask & MRD_QP_RNR_RETRY)
        qp->rnr_retry = attr->rnr_retry;
    if (mask & MRD_QP_RNR_TIMER)
        qp->rnr_timer_ns = attr->rnr_timer_ns ? attr->rnr_timer_ns : 100 * MRD_USEC;
    if (mask & MRD_QP_STATE && attr->qp_state != qp->pub.state) {
        qp->pub.state = attr->qp_state;
        if (attr->qp_state == MRD_QPS_ERR)
            flush_qp(e, qp);
        else
            mrd_rnr_admit(e, qp);
    }
    return 0;
}

void mrd_engine_fail_qps(struct mrd_engine *e, uint64_t now_ns)
{
    struct mrd_node *n;

    mrd_clock_set(&e->clock, now_ns);
    e->objects.failed = true;
    for (n = e->objects.qp_list.next; n != &e->objects.qp_list; n = n->next) {
        struct mrd_qp_impl *qp = mrd_container_of(n, struct mrd_qp_impl, node);

        if (qp->pub.state == MRD_QPS_ERR)
            continue;
        qp->pub.state = MRD_QPS_ERR;
        mrd_event_raise(e, &qp->event);
        flush_sends(e, qp);
    }
    mrd_rx_flush_qp(e, NULL, MRD_WC_WR_FLUSH_ERR);
    for (n = e->objects.qp_list.next; n != &e->objects.qp_list; n = n->next)
        flush_receives(e, mrd_container_of(n, struct mrd_qp_impl, node));
    /* Those that were under way wait for an answer, which will not come. */
    for (n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        peer->watch.users = 0;
        if (peer->tx)
            mrd_send_state_end(e, peer, MRD_WC_WR_FLUSH_ERR);
    }
}

int mrd_engine_destroy_qp(struct mrd_engine *e, struct mrd_qp *qp_pub, uint64_t now_ns)
{
    struct mrd_qp_impl *qp = mrd_qp_impl(qp_pub);

    if (qp->event.taken || qp->refused.taken)
        return mrd_error_keep(e, -EBUSY, "events of the queue pair were not acked");
    mrd_list_remove(&qp->event.node); /* if nobody took it, nobody is told */
    mrd_list_remove(&qp->refused.node);
    mrd_clock_set(&e->clock, now_ns);
    qp->tells_refused = false;
    qp->destroyed = true; /* from here on its completions are not told */
    qp->pub.state = MRD_QPS_ERR;
    mrd_hash_del(&e->objects.qps, &qp->by_num);
    flush_qp(e, qp);
    /*
     * What was reserved for work that still waits for its peer goes back now: the queues may be
     * destroyed next.
     */
    for (uint32_t i = 0; i < qp->cap.max_send_wr; i++)
        if (qp->msgs[i].state != MRD_MSG_FREE)
            mrd_rnr_unreserve(e, mrd_cq_impl(qp->pub.send_cq));
    mrd_cq_impl(qp->pub.send_cq)->users--;
    mrd_cq_impl(qp->pub.recv_cq)->users--;
    pd_impl(qp->pub.pd)->users--;
    if (qp->srq)
        qp->srq->users--;
    qp->srq = NULL;
    qp->recvq = &qp->own;
    qp->pub.send_cq = qp->pub.recv_cq = NULL;
    e->objects.num_qps--;
    mrd_msg_reap_qp(e, qp);
    return 0;
}

struct mrd_ah *mrd_engine_create_ah(struct mrd_engine *e, struct mrd_pd *pd,
                                    const struct mrd_addr *to, uint32_t payload_bytes, int *error)
{
    struct mrd_ah_impl *ah = mrd_alloc(&e->allocator, sizeof(*ah));

    *error = -ENOMEM;
    if (!ah)
        return NULL;
    *error = 0;
    ah->pub = (struct mrd_ah){.context = pd->context, .pd = pd};
    ah->addr = *to;
    ah->dscp = e->config.dscp;
    ah->payload_bytes = payload_bytes ? payload_bytes : e->config.mover.payload_bytes;
    if (ah->payload_bytes > e->config.mover.payload_bytes)
        ah->payload_bytes = e->config.mover.payload_bytes;
    pd_impl(pd)->users++;
    e->objects.num_ahs++;
    return &ah->pub;
}

void mrd_engine_set_one_way(struct mrd_ah *ah)
{
    ((struct mrd_ah_impl *)(void *)ah)->one_way = true;
}

void mrd_engine_set_dscp(struct mrd_ah *ah, uint8_t dscp)
{
    ((struct mrd_ah_impl *)(void *)ah)->dscp = dscp;
}

int mrd_engine_destroy_ah(struct mrd_engine *e, struct mrd_ah *ah)
{
    pd_impl(ah->pd)->users--;
    e->objects.num_ahs--;
    mrd_free(&e->allocator, ah, sizeof(struct mrd_ah_impl));
    return 0;
}

int mrd_engine_watch_peer(struct mrd_engine *e, struct mrd_ah *ah, bool on, uint64_t now_ns)
{
    struct mrd_ah_impl *impl = (struct mrd_ah_impl *)(void *)ah;
    struct mrd_peer *peer;

    mrd_clock_set(&e->clock, now_ns);
    peer = on ? mrd_handle_open(e, impl) : mrd_handle_watched(e, impl);
    if (on && !peer)
        return mrd_error_keep(e, -EAGAIN, "the context's peer table is full (max_peers)");
    if (on && !peer->watch.users++) {
        peer->watch.inc = 0;
        mrd_send_state_keepalive(e, peer);
    } else if (!on && peer && peer->watch.users) {
        peer->watch.users--;
    }
    return 0;
}

const struct mrd_addr *mrd_engine_ah_now(const struct mrd_engine *e, const struct mrd_ah *ah)
{
    const struct mrd_ah_impl *impl = (const struct mrd_ah_impl *)(const void *)ah;
    const struct mrd_peer *peer = mrd_handle_known(e, impl);

    return peer ? &peer->addr : &impl->addr;
}

const struct mrd_addr *mrd_engine_ah_addr(const struct mrd_ah *ah)
{
    return &((const struct mrd_ah_impl *)(const void *)ah)->addr;
}
