/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/mrd_run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

int mrd_call_failed(struct perf_run *run, int rc, const char *what)
{
    const char *why = mrd_last_error();

    return perf_run_fail(run, rc, "%s: %s", what, why[0] ? why : strerror(-rc));
}

int mrd_wc_failed(struct perf_run *run, const struct mrd_wc *wc)
{
    struct mrd_run *m = run->state;
    bool recv = wc->opcode >= MRD_WC_RECV;
    struct mrd_async_event event;
    char cause[MRD_ADDRESS_MAX + 64] = "";

    if (mrd_get_async_event(m->ctx, &event) == 0) {
        snprintf(cause, sizeof(cause), "; %s: %s", event.address,
                 mrd_event_type_str(event.event_type));
        mrd_ack_async_event(&event);
    }
    return perf_run_fail(run, -EIO, "a message %s %s failed: %s (code %u)%s", recv ? "from" : "to",
                         m->peer_address, mrd_wc_status_str(wc->status), wc->vendor_err, cause);
}

uint32_t mrd_recvs_per_qp(const struct perf_run *run)
{
    const struct perf_params *p = &run->params;

    if (!p->verify)
        return p->rx_depth;
    /* The sender never has more messages than slots in flight, spread over the QPs. */
    return (p->slots + p->qps - 1) / p->qps;
}

static void put_recv(struct perf_run *run, uint32_t qp, uint32_t i, bool credits)
{
    struct mrd_run *m = run->state;
    struct mrd_run_qp *q = &m->qps[qp];
    struct mrd_recv_wr *wr = &q->recvs[i];
    struct mrd_sge *sge = &q->recv_sges[i];
    uint32_t slot = run->params.verify ? qp * q->num_recvs + i : i;

    *sge = (struct mrd_sge){.lkey = m->rx_mr->lkey};
    if (credits) {
        sge->addr = (uintptr_t)m->rx_buf + i * MRD_RUN_CREDIT_BYTES;
        sge->length = MRD_RUN_CREDIT_BYTES;
    } else {
        sge->addr = (uintptr_t)m->rx_buf + perf_layout_offset(&m->rx, qp, slot % m->rx.slots);
        sge->length = (uint32_t)run->params.size_bytes;
    }
    *wr = (struct mrd_recv_wr){
        .wr_id = (uint64_t)qp << 32 | i,
        .sg_list = sge,
        /* Writes carry their own address: the receive behind an immediate is empty. */
        .num_sge = !credits && (perf_test_is_write(run->params.test) || sge->length == 0) ? 0 : 1,
        .next = i + 1 < q->num_recvs ? wr + 1 : NULL,
    };
}

int mrd_post_recvs(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    bool credits = !run->server && !perf_test_is_lat(run->params.test);

    for (uint32_t qp = 0; qp < m->num_qps; qp++) {
        struct mrd_run_qp *q = &m->qps[qp];
        struct mrd_recv_wr *bad;
        q->repost_tail = &q->repost_head;
        for (uint32_t i = 0; i < q->num_recvs; i++)
            put_recv(run, qp, i, credits);
        int rc = q->num_recvs ? mrd_post_recv(q->qp, q->recvs, &bad) : 0;
        if (rc)
            return mrd_call_failed(run, rc, "mrd_post_recv");
    }
    return 0;
}

int mrd_recycle_flush(struct perf_run *run, struct mrd_run_qp *q)
{
    struct mrd_recv_wr *bad;

    if (q->num_repost == 0)
        return 0;
    *q->repost_tail = NULL;
    int rc = mrd_post_recv(q->qp, q->repost_head, &bad);
    q->repost_tail = &q->repost_head;
    q->num_repost = 0;
    return rc ? mrd_call_failed(run, rc, "mrd_post_recv") : 0;
}

int mrd_recycle(struct perf_run *run, const struct mrd_wc *wc, bool flush_now)
{
    struct mrd_run *m = run->state;
    struct mrd_run_qp *q = &m->qps[wc->wr_id >> 32];
    struct mrd_recv_wr *wr = &q->recvs[(uint32_t)wc->wr_id];

    *q->repost_tail = wr;
    q->repost_tail = &wr->next;
    q->num_repost++;
    if (flush_now || q->num_repost >= MRD_RUN_BATCH)
        return mrd_recycle_flush(run, q);
    return 0;
}

static enum mrd_wr_opcode opcode_of(const struct perf_run *run)
{
    const struct mrd_run *m = run->state;

    if (perf_test_is_write(run->params.test))
        return m->with_imm ? MRD_WR_RDMA_WRITE_WITH_IMM : MRD_WR_RDMA_WRITE;
    return run->params.verify ? MRD_WR_SEND_WITH_IMM : MRD_WR_SEND;
}

void mrd_post_prepare(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    bool is_inline = p->size_bytes <= (uint64_t)p->inline_bytes;

    for (unsigned i = 0; i < MRD_RUN_BATCH; i++) {
        m->sges[i] = (struct mrd_sge){.length = (uint32_t)p->size_bytes, .lkey = m->tx_mr->lkey};
        m->wrs[i] = (struct mrd_send_wr){
            .sg_list = &m->sges[i],
            .num_sge = p->size_bytes ? 1 : 0,
            .opcode = opcode_of(run),
            .send_flags = is_inline ? MRD_SEND_INLINE : 0,
            .ud = {.ah = m->ah, .remote_qpn = m->qps[0].remote_qpn, .remote_qkey = MRD_RUN_QKEY},
            .wr.rdma.rkey = m->remote_rkey,
        };
    }
}

static void set_wr(struct perf_run *run, unsigned i, uint32_t qp, uint64_t n)
{
    struct mrd_run *m = run->state;
    struct mrd_run_qp *q = &m->qps[qp];
    struct mrd_send_wr *wr = &m->wrs[i];
    uint32_t slot = (uint32_t)(n % m->tx.slots);
    size_t offset = perf_layout_offset(&m->tx, qp, slot);

    m->sges[i].addr = (uintptr_t)m->tx_buf + offset;
    wr->wr_id = (uint64_t)qp << 32;
    wr->ud.remote_qpn = q->remote_qpn;
    wr->imm_data = htonl((uint32_t)n);
    wr->wr.rdma.remote_addr =
        m->remote_addr + offset; /* a target of writes has the sender's layout */
    wr->send_flags &= (unsigned)~MRD_SEND_SIGNALED;
    if (++q->since_signal == run->params.cq_mod) {
        wr->send_flags |= MRD_SEND_SIGNALED;
        q->since_signal = 0;
    }
    if (run->params.verify)
        perf_verify_fill(run->params.seed, n, m->tx_buf + offset, run->params.size_bytes);
}

int mrd_post_batch(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count)
{
    struct mrd_run *m = run->state;
    struct mrd_run_qp *q = &m->qps[qp];
    struct mrd_send_wr *bad = NULL;
    uint32_t signaled_before[MRD_RUN_BATCH];

    for (uint32_t i = 0; i < count; i++) {
        signaled_before[i] = q->since_signal;
        set_wr(run, i, qp, n + i);
        m->wrs[i].next = i + 1 < count ? &m->wrs[i + 1] : NULL;
    }
    int rc = mrd_post_send(q->qp, m->wrs, &bad);
    if (rc) {
        count = (uint32_t)(bad - m->wrs);
        q->since_signal = signaled_before[count];
    }
    q->outstanding += count;
    if (rc && rc != -ENOMEM && rc != -EAGAIN)
        return mrd_call_failed(run, rc, "mrd_post_send");
    return (int)count;
}

int mrd_post_credit(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    struct mrd_run_qp *q = &m->qps[0];
    struct mrd_send_wr *bad;
    uint64_t credit = m->verifier.credit;
    struct mrd_sge sge = {.addr = (uintptr_t)&credit, .length = sizeof(credit)};
    struct mrd_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_INLINE,
        .ud = {.ah = m->ah, .remote_qpn = q->remote_qpn, .remote_qkey = MRD_RUN_QKEY},
    };
    int rc = mrd_post_send(q->qp, &wr, &bad);

    if (rc == -ENOMEM || rc == -EAGAIN)
        return 0;
    if (rc)
        return mrd_call_failed(run, rc, "mrd_post_send");
    m->credit = credit;
    return 0;
}
