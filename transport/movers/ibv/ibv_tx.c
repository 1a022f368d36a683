/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/ibv/ibv_tx.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "transport/movers/ibv/ibv_queue.h"
#include "transport/movers/ibv/ibv_remote.h"
#include "transport/movers/ibv/ibv_slot.h"

enum { RUN_MAX = 64, POLL_MAX = 64 };

/* -------------------------------------------------------------------- completions */

/*
 * Revives a queue pair that has packets posted but no completion to come. A post that fails
 * half-way leaves such packets at the end of the queue, if completions were asked for only of
 * later ones.
 */
static void revive_mute(struct mrd_ibv *ibv, uint32_t qp)
{
    const struct mrd_ibv_qp *q = &ibv->qps[qp];

    if (q->num_posted && !q->num_signaled)
        mrd_ibv_qp_revive(ibv, qp);
}

/*
 * Handles a completion: its packet and all that were posted before it on the queue pair are done.
 */
static void complete(struct mrd_ibv *ibv, const struct ibv_wc *wc)
{
    uint32_t index = (uint32_t)wc->wr_id;
    uint32_t qp = ibv->tx_slots[index].qp;

    if (wc->wr_id != mrd_ibv_tx_slot_wr_id(ibv, index))
        return; /* from before the queue pair was reset */
    while (mrd_ibv_tx_slot_pop(ibv, &ibv->qps[qp]) != index)
        ;
    if (wc->status == IBV_WC_SUCCESS) {
        revive_mute(ibv, qp);
        return;
    }
    mrd_log(MRD_LOG_WARN, "%s: a send on queue pair %u failed: %s", ibv->name,
            ibv->qps[qp].qp->qp_num, ibv_wc_status_str(wc->status));
    mrd_ibv_qp_revive(ibv, qp);
}

void mrd_ibv_tx_poll(struct mrd_ibv *ibv)
{
    struct ibv_wc wc[POLL_MAX];
    int n;

    do {
        n = ibv_poll_cq(ibv->send_cq, POLL_MAX, wc);
        for (int i = 0; i < n; i++)
            complete(ibv, &wc[i]);
    } while (n == POLL_MAX);
}

unsigned mrd_ibv_tx_reap(struct mrd_backend *b, uint64_t *cookies, unsigned max)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    unsigned n = 0;

    if (ibv->tx_done == MRD_IBV_NONE)
        mrd_ibv_tx_poll(ibv);
    while (n < max && ibv->tx_done != MRD_IBV_NONE) {
        uint32_t index = ibv->tx_done;

        ibv->tx_done = ibv->tx_slots[index].next;
        cookies[n++] = ibv->tx_slots[index].cookie;
        mrd_ibv_tx_slot_release(ibv, index);
    }
    if (ibv->tx_done == MRD_IBV_NONE)
        atomic_store_explicit(&ibv->done_waits, false, memory_order_relaxed);
    return n;
}

/* -------------------------------------------------------------------- posting */

/* Work requests for one queue pair, built but not posted. */
struct run {
    struct ibv_send_wr wr[RUN_MAX];
    struct ibv_sge sge[RUN_MAX][MRD_IBV_PIECES];
    unsigned num;
};

static uint32_t qp_of(const struct mrd_ibv *ibv, uint32_t path)
{
    return ibv->port.entropy == MRD_IBV_BY_AH ? 0 : path % ibv->num_qps;
}

/*
 * The QPN that a packet goes to. Where pairs of QPs are paths, those that share a queue pair here
 * go to different ones there.
 */
static uint32_t remote_qpn(const struct mrd_ibv *ibv, const struct mrd_ibv_remote *remote,
                           const struct mrd_tx_packet *p)
{
    if (ibv->port.entropy != MRD_IBV_BY_QPAIR)
        return p->to.port;
    return remote->qpn[(p->path + p->path / ibv->num_qps) % remote->num_qpns];
}

static bool goes_inline(const struct mrd_ibv_qp *q, const struct mrd_tx_packet *p)
{
    return !p->num_iov && p->head_len <= q->max_inline;
}

static void build(struct mrd_ibv *ibv, uint32_t qp, struct mrd_ibv_remote *remote,
                  struct ibv_ah *ah, const struct mrd_tx_packet *p, struct run *run)
{
    struct mrd_ibv_qp *q = &ibv->qps[qp];
    uint32_t index = mrd_ibv_tx_slot_alloc(ibv);
    struct mrd_ibv_tx_slot *slot = &ibv->tx_slots[index];
    struct ibv_send_wr *wr = &run->wr[run->num];
    struct ibv_sge *sge = run->sge[run->num];
    uint8_t *memory =
        ibv->memory + (size_t)ibv->rx_stride * ibv->port.rx_slots + (size_t)ibv->tx_stride * index;
    bool is_inline = goes_inline(q, p);

    assert(p->len <= ibv->port.mtu && p->num_iov < MRD_IBV_PIECES);
    slot->cookie = p->cookie;
    slot->remote = remote;
    slot->qp = (uint16_t)qp;
    slot->signaled = false;
    *wr = (struct ibv_send_wr){
        .wr_id = mrd_ibv_tx_slot_wr_id(ibv, index),
        .sg_list = sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = is_inline ? IBV_SEND_INLINE : 0,
        .wr.ud = {.ah = ah, .remote_qpn = remote_qpn(ibv, remote, p), .remote_qkey = MRD_IBV_QKEY},
    };
    sge[0] = (struct ibv_sge){.addr = (uintptr_t)p->head, .length = p->head_len};
    if (!is_inline) {
        memcpy(memory, p->head, p->head_len);
        sge[0].addr = (uintptr_t)memory;
        sge[0].lkey = ibv->mr->lkey;
    }
    if (p->num_iov && ibv->port.gathers) {
        sge[1] = (struct ibv_sge){.addr = (uintptr_t)p->iov[0].iov_base,
                                  .length = (uint32_t)p->iov[0].iov_len,
                                  .lkey = p->key};
        wr->num_sge = 2;
    } else if (p->num_iov) {
        memcpy(memory + p->head_len, p->iov[0].iov_base, p->iov[0].iov_len);
        sge[0].length = p->len;
    }
    if (run->num)
        run->wr[run->num - 1].next = wr;
    run->num++;
}

/*
 * Asks for completions of a few of the requests only: each costs the device a write and us a poll.
 */
static void ask_completions(struct mrd_ibv *ibv, struct run *run)
{
    for (unsigned i = 0; i < run->num; i++) {
        if (i % MRD_IBV_SIGNAL_EVERY != MRD_IBV_SIGNAL_EVERY - 1 && i != run->num - 1)
            continue;
        run->wr[i].send_flags |= IBV_SEND_SIGNALED;
        ibv->tx_slots[(uint32_t)run->wr[i].wr_id].signaled = true;
    }
}

static void log_error(struct mrd_ibv *ibv, int error)
{
    if (error == ibv->logged_error)
        return;
    ibv->logged_error = error;
    mrd_log(MRD_LOG_WARN, "%s: posting a send failed: %s", ibv->name, strerror(error));
}

/*
 * Posts a run. Returns how many of its packets were taken: posted, or dropped if the device will
 * never take them. If the queue is full, the rest is offered again.
 */
static unsigned post(struct mrd_ibv *ibv, uint32_t qp, struct run *run)
{
    struct mrd_ibv_qp *q = &ibv->qps[qp];
    struct ibv_send_wr *bad = NULL;
    unsigned posted = run->num, taken;
    int error;

    ask_completions(ibv, run);
    error = ibv_post_send(q->qp, run->wr, &bad);
    if (error)
        posted = bad ? (unsigned)(bad - run->wr) : 0;
    for (unsigned i = 0; i < posted; i++)
        mrd_ibv_tx_slot_push(ibv, q, (uint32_t)run->wr[i].wr_id);
    taken = posted;
    if (!error)
        return taken;
    if (error != ENOMEM && error != EAGAIN) {
        log_error(ibv, error);
        mrd_ibv_tx_slot_finish(ibv, (uint32_t)run->wr[taken++].wr_id);
    }
    revive_mute(ibv, qp);
    for (unsigned i = taken; i < run->num; i++)
        mrd_ibv_tx_slot_release(ibv, (uint32_t)run->wr[i].wr_id);
    return taken;
}

/* Drops a packet that cannot be sent; its cookie must be reported nevertheless. */
static void drop(struct mrd_ibv *ibv, const struct mrd_tx_packet *p)
{
    if (p->cookie == MRD_TX_COOKIE_NONE)
        return;

    uint32_t index = mrd_ibv_tx_slot_alloc(ibv);

    ibv->tx_slots[index].cookie = p->cookie;
    mrd_ibv_tx_slot_finish(ibv, index);
}

static bool has_room(const struct mrd_ibv *ibv, const struct mrd_ibv_qp *q, unsigned more)
{
    return ibv->tx_num_free > 0 && q->num_posted + more < ibv->port.qp_depth;
}

/*
 * Sends the first packets as far as they are of one queue pair. Returns the number taken; 0:
 * no room.
 */
static unsigned send_run(struct mrd_ibv *ibv, const struct mrd_tx_packet *packets, unsigned n)
{
    uint32_t qp = qp_of(ibv, packets[0].path);
    struct mrd_ibv_qp *q = &ibv->qps[qp];
    struct run run;

    run.num = 0;
    if (!has_room(ibv, q, (unsigned)(n < RUN_MAX ? n : RUN_MAX) - 1))
        mrd_ibv_tx_poll(ibv);
    for (unsigned i = 0; i < n && run.num < RUN_MAX && qp_of(ibv, packets[i].path) == qp; i++) {
        struct mrd_ibv_remote *remote = NULL;
        struct ibv_ah *ah = NULL;

        if (!has_room(ibv, q, run.num))
            break;
        if (!q->dead && !ibv->gone)
            remote = mrd_ibv_remote_get(ibv, &packets[i].to, packets[i].dscp);
        if (remote)
            ah = mrd_ibv_remote_get_ah(ibv, remote, packets[i].path);
        if (ah) {
            build(ibv, qp, remote, ah, &packets[i], &run);
            continue;
        }
        /* Post first what was built: packets must be taken in order. */
        if (run.num)
            break;
        drop(ibv, &packets[i]);
        return 1;
    }
    return run.num ? post(ibv, qp, &run) : 0;
}

unsigned mrd_ibv_tx_burst(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    unsigned taken = 0, run;

    do {
        run = send_run(ibv, packets + taken, n - taken);
        taken += run;
    } while (run && taken < n);
    return taken;
}
