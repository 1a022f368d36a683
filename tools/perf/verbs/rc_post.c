/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/rc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

int rc_wc_failed(struct perf_run *run, const struct ibv_wc *wc)
{
    struct rc_run *m = run->state;
    const struct rc_qp *q = &m->qps[rc_qp_of(wc->wr_id)];
    bool recv = rc_kind_of(wc->wr_id) == RC_RECV;
    bool silent = wc->status == IBV_WC_RETRY_EXC_ERR;
    char name[64];

    perf_ibv_format(&m->v.there, name, sizeof(name));
    return perf_run_fail(
        run, -EIO, "an RC message %s %s (%s, QPN 0x%x) failed: %s (status %d)%s",
        recv ? "from" : "to", run->control->peer, name, q->there.qpn, ibv_wc_status_str(wc->status),
        wc->status, silent ? "; the peer does not answer: is its port up, is there a route?" : "");
}

static int post_failed(struct perf_run *run, int rc, const char *what)
{
    return perf_run_fail(run, -rc, "%s: %s", what, strerror(rc));
}

int rc_poll(struct perf_run *run, int max, struct ibv_wc *wcs)
{
    struct rc_run *m = run->state;
    int n = ibv_poll_cq(m->cq, max, wcs);

    if (n < 0)
        return perf_run_fail(run, -EIO, "ibv_poll_cq failed");
    for (int i = 0; i < n; i++) {
        if (wcs[i].status != IBV_WC_SUCCESS)
            return rc_wc_failed(run, &wcs[i]);
    }
    return n;
}

int rc_check_silence(struct perf_run *run, uint64_t now_ns)
{
    struct rc_run *m = run->state;
    char name[64];

    if (now_ns < m->heard_ns + RC_SILENT_S * PERF_SEC_NS)
        return 0;
    perf_ibv_format(&m->v.there, name, sizeof(name));
    return perf_run_fail(run, -ETIMEDOUT,
                         "nothing was acknowledged by %s (%s, QPN 0x%x) for %d s, and the device "
                         "does not give up: is the peer's port up, is there a route?",
                         run->control->peer, name, m->qps[0].there.qpn, RC_SILENT_S);
}

uint32_t rc_recvs_per_qp(const struct perf_run *run)
{
    const struct perf_params *p = &run->params;

    if (!p->verify)
        return p->rx_depth;
    /* The sender never has more messages than slots in flight, spread over the QPs. */
    return (p->slots + p->qps - 1) / p->qps;
}

static void put_recv(struct perf_run *run, uint32_t qp, uint32_t i, bool credits)
{
    struct rc_run *m = run->state;
    struct rc_qp *q = &m->qps[qp];
    struct ibv_recv_wr *wr = &q->recvs[i];
    struct ibv_sge *sge = &q->recv_sges[i];
    uint32_t slot = run->params.verify ? qp * q->num_recvs + i : i;

    *sge = (struct ibv_sge){.lkey = m->rx_mr->lkey};
    if (credits) {
        sge->addr = (uintptr_t)m->rx_buf + i * RC_CREDIT_BYTES;
        sge->length = RC_CREDIT_BYTES;
    } else {
        sge->addr = (uintptr_t)m->rx_buf + perf_layout_offset(&m->rx, qp, slot % m->rx.slots);
        sge->length = (uint32_t)run->params.size_bytes;
    }
    *wr = (struct ibv_recv_wr){
        .wr_id = rc_wr_id(RC_RECV, qp, i),
        .sg_list = sge,
        /* Writes carry their own address: the receive behind an immediate is empty. */
        .num_sge = !credits && (perf_test_is_write(run->params.test) || sge->length == 0) ? 0 : 1,
        .next = i + 1 < q->num_recvs ? wr + 1 : NULL,
    };
}

int rc_post_recvs(struct perf_run *run)
{
    struct rc_run *m = run->state;
    bool credits = !run->server && !perf_test_is_lat(run->params.test);

    for (uint32_t qp = 0; qp < m->num_qps; qp++) {
        struct rc_qp *q = &m->qps[qp];
        struct ibv_recv_wr *bad;
        q->repost_tail = &q->repost_head;
        for (uint32_t i = 0; i < q->num_recvs; i++)
            put_recv(run, qp, i, credits);
        int rc = q->num_recvs ? ibv_post_recv(q->qp, q->recvs, &bad) : 0;
        if (rc)
            return post_failed(run, rc, "ibv_post_recv");
    }
    return 0;
}

int rc_recycle_flush(struct perf_run *run, struct rc_qp *q)
{
    struct ibv_recv_wr *bad;

    if (q->num_repost == 0)
        return 0;
    *q->repost_tail = NULL;
    int rc = ibv_post_recv(q->qp, q->repost_head, &bad);
    q->repost_tail = &q->repost_head;
    q->num_repost = 0;
    return rc ? post_failed(run, rc, "ibv_post_recv") : 0;
}

int rc_recycle(struct perf_run *run, uint64_t wr_id, bool flush_now)
{
    struct rc_run *m = run->state;
    struct rc_qp *q = &m->qps[rc_qp_of(wr_id)];
    struct ibv_recv_wr *wr = &q->recvs[(uint32_t)wr_id];

    *q->repost_tail = wr;
    q->repost_tail = &wr->next;
    q->num_repost++;
    if (flush_now || q->num_repost >= RC_BATCH || 2 * q->num_repost >= q->num_recvs)
        return rc_recycle_flush(run, q);
    return 0;
}

static enum ibv_wr_opcode opcode_of(const struct perf_run *run)
{
    const struct rc_run *m = run->state;

    if (perf_test_is_write(run->params.test))
        return m->with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    return run->params.verify ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

void rc_post_prepare(struct perf_run *run)
{
    struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;

    for (unsigned i = 0; i < RC_BATCH; i++) {
        m->sges[i] = (struct ibv_sge){.length = (uint32_t)p->size_bytes, .lkey = m->tx_mr->lkey};
        m->wrs[i] = (struct ibv_send_wr){
            .sg_list = &m->sges[i],
            .num_sge = p->size_bytes ? 1 : 0,
            .opcode = opcode_of(run),
            .send_flags = p->size_bytes <= m->inline_bytes ? IBV_SEND_INLINE : 0,
            .wr.rdma.rkey = m->remote_rkey,
        };
    }
}

static void set_wr(struct perf_run *run, unsigned i, uint32_t qp, uint64_t n)
{
    struct rc_run *m = run->state;
    struct rc_qp *q = &m->qps[qp];
    struct ibv_send_wr *wr = &m->wrs[i];
    uint32_t slot = (uint32_t)(n % m->tx.slots);
    size_t offset = perf_layout_offset(&m->tx, qp, slot);

    m->sges[i].addr = (uintptr_t)m->tx_buf + offset;
    wr->wr_id = rc_wr_id(RC_MESSAGE, qp, 0);
    wr->imm_data = htonl((uint32_t)n);
    wr->wr.rdma.remote_addr =
        m->remote_addr + offset; /* a target of writes has the sender's layout */
    wr->send_flags &= (unsigned)~IBV_SEND_SIGNALED;
    if (++q->since_signal == run->params.cq_mod) {
        wr->send_flags |= IBV_SEND_SIGNALED;
        q->since_signal = 0;
    }
    if (run->params.verify)
        perf_verify_fill(run->params.seed, n, m->tx_buf + offset, run->params.size_bytes);
}

int rc_post_batch(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count)
{
    struct rc_run *m = run->state;
    struct rc_qp *q = &m->qps[qp];
    struct ibv_send_wr *bad;

    for (uint32_t i = 0; i < count; i++) {
        set_wr(run, i, qp, n + i);
        m->wrs[i].next = i + 1 < count ? &m->wrs[i + 1] : NULL;
    }
    q->outstanding += count;
    int rc = ibv_post_send(q->qp, m->wrs, &bad);
    return rc ? post_failed(run, rc, "ibv_post_send") : 0;
}

int rc_post_flush(struct perf_run *run, uint32_t qp)
{
    struct rc_run *m = run->state;
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = rc_wr_id(RC_FLUSH, qp, 0),
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = m->remote_addr, .rkey = m->remote_rkey},
                             };
    int rc = ibv_post_send(m->qps[qp].qp, &wr, &bad);

    return rc ? post_failed(run, rc, "ibv_post_send") : 0;
}

/* Each credit has a place of its own while it is on its way. */
int rc_post_credit(struct perf_run *run)
{
    struct rc_run *m = run->state;
    struct rc_qp *q = &m->qps[0];
    struct ibv_send_wr *bad;

    if (m->credits_sent >= RC_CREDITS / 2)
        return 0;
    uint8_t *place = m->tx_buf + m->credit_slot++ % RC_CREDITS * RC_CREDIT_BYTES;
    memcpy(place, &m->verifier.credit, RC_CREDIT_BYTES);
    struct ibv_sge sge = {
        .addr = (uintptr_t)place, .length = RC_CREDIT_BYTES, .lkey = m->tx_mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = rc_wr_id(RC_CREDIT, 0, 0),
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };
    int rc = ibv_post_send(q->qp, &wr, &bad);
    if (rc)
        return post_failed(run, rc, "ibv_post_send");
    m->credits_sent++;
    m->credit = m->verifier.credit;
    return 0;
}
