/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/mrd.h"

int perf_mrd_fail(char *error, int rc, const char *what)
{
    const char *why = mrd_last_error();

    rc = rc ? rc : -EIO;
    return perf_fail(error, rc, "%s: %s", what, why[0] ? why : strerror(-rc));
}

int perf_mrd_call_failed(struct perf_run *run, int rc, const char *what)
{
    char text[PERF_ERROR_BYTES];

    return perf_run_fail(run, perf_mrd_fail(text, rc, what), "%s", text);
}

int perf_mrd_wc_failed(struct perf_run *run, const struct mrd_wc *wc)
{
    struct perf_mrd *m = run->state;
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

int perf_mrd_open_recvs(struct perf_run *run, uint32_t qp)
{
    struct perf_mrd *m = run->state;
    uint32_t count = run->e.qps[qp].num_recvs;
    struct perf_mrd_recv *recvs = calloc(count + 1, sizeof(recvs[0]));

    m->qps[qp].recvs = recvs;
    if (!recvs)
        return perf_run_fail(run, -ENOMEM, "no memory for %u receives", count);
    for (uint32_t i = 0; i < count; i++) {
        struct perf_place place = perf_endpoint_recv(run, qp, i);
        recvs[i].sge = (struct mrd_sge){(uintptr_t)place.at, place.bytes, m->rx_mr->lkey};
        recvs[i].wr = (struct mrd_recv_wr){
            .wr_id = (uint64_t)qp << 32 | i,
            .sg_list = &recvs[i].sge,
            .num_sge = place.bytes ? 1 : 0,
            .next = &recvs[i + 1].wr,
        };
    }
    return 0;
}

int perf_mrd_post_recv(struct perf_run *run, uint32_t qp, uint32_t first, uint32_t count)
{
    struct perf_mrd *m = run->state;
    struct perf_mrd_qp *q = &m->qps[qp];
    struct mrd_recv_wr *last = &q->recvs[first + count - 1].wr, *next = last->next, *bad;

    last->next = NULL;
    int rc = mrd_post_recv(q->qp, &q->recvs[first].wr, &bad);
    last->next = next;
    return rc ? perf_mrd_call_failed(run, rc, "mrd_post_recv") : 0;
}

static enum mrd_wr_opcode opcode_of(const struct perf_run *run)
{
    if (perf_test_is_atomic(run->params.test))
        return MRD_WR_ATOMIC_FETCH_AND_ADD;
    if (perf_test_is_request(run->params.test))
        return MRD_WR_RDMA_READ;
    if (perf_test_is_write(run->params.test))
        return run->e.with_imm ? MRD_WR_RDMA_WRITE_WITH_IMM : MRD_WR_RDMA_WRITE;
    return run->params.verify ? MRD_WR_SEND_WITH_IMM : MRD_WR_SEND;
}

void perf_mrd_prepare_sends(struct perf_run *run)
{
    struct perf_mrd *m = run->state;
    const struct perf_params *p = &run->params;
    bool is_inline = !perf_test_is_request(p->test) && p->size_bytes <= (uint64_t)p->inline_bytes;

    for (unsigned i = 0; i < PERF_POST_LIST_MAX; i++) {
        m->sges[i] = (struct mrd_sge){.length = (uint32_t)p->size_bytes, .lkey = m->tx_mr->lkey};
        m->wrs[i] = (struct mrd_send_wr){
            .sg_list = &m->sges[i],
            .num_sge = p->size_bytes ? 1 : 0,
            .opcode = opcode_of(run),
            .send_flags = is_inline ? MRD_SEND_INLINE : 0,
            .ud = {.ah = m->ah, .remote_qkey = PERF_MRD_QKEY},
            .wr.rdma.rkey = run->e.remote_rkey,
        };
        if (perf_test_is_atomic(p->test)) {
            m->wrs[i].wr.atomic.remote_addr = run->e.remote_addr;
            m->wrs[i].wr.atomic.compare_add = 1;
            m->wrs[i].wr.atomic.rkey = run->e.remote_rkey;
        }
    }
}

static void set_wr(struct perf_run *run, unsigned i, uint32_t qp, uint64_t n)
{
    struct perf_mrd *m = run->state;
    struct mrd_send_wr *wr = &m->wrs[i];
    size_t place = perf_endpoint_place(&run->e, qp, n);

    m->sges[i].addr = (uintptr_t)run->e.tx_buf + place;
    wr->wr_id = (uint64_t)qp << 32 | (uint32_t)n;
    wr->ud.remote_qpn = m->qps[qp].remote_qpn;
    wr->imm_data = htonl((uint32_t)n);
    if (!perf_test_is_atomic(run->params.test))
        wr->wr.rdma.remote_addr = run->e.remote_addr + place;
    wr->send_flags &= (unsigned)~MRD_SEND_SIGNALED;
    if (perf_endpoint_count_signal(&run->e, &run->e.qps[qp]))
        wr->send_flags |= MRD_SEND_SIGNALED;
}

int perf_mrd_post_send(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count)
{
    struct perf_mrd *m = run->state;
    struct perf_qp *q = &run->e.qps[qp];
    struct mrd_send_wr *bad = NULL;
    uint32_t since_signal = q->since_signal;

    for (uint32_t i = 0; i < count; i++) {
        set_wr(run, i, qp, n + i);
        m->wrs[i].next = i + 1 < count ? &m->wrs[i + 1] : NULL;
    }
    int rc = mrd_post_send(m->qps[qp].qp, m->wrs, &bad);
    if (rc == 0)
        return (int)count;
    if (rc != -ENOMEM && rc != -EAGAIN)
        return perf_mrd_call_failed(run, rc, "mrd_post_send");
    count = (uint32_t)(bad - m->wrs);
    q->since_signal = run->e.signal_every ? (since_signal + count) % run->e.signal_every : 0;
    return (int)count;
}

int perf_mrd_post_credit(struct perf_run *run, uint64_t credit)
{
    struct perf_mrd *m = run->state;
    struct perf_mrd_qp *q = &m->qps[run->e.credit_qp];
    struct mrd_send_wr *bad;
    struct mrd_send_wr wr = {
        .opcode = MRD_WR_SEND_WITH_IMM,
        .imm_data = htonl((uint32_t)credit),
        .ud = {.ah = m->ah, .remote_qpn = q->remote_qpn, .remote_qkey = PERF_MRD_QKEY},
    };
    int rc = mrd_post_send(q->qp, &wr, &bad);

    if (rc == -ENOMEM || rc == -EAGAIN)
        return 0;
    return rc ? perf_mrd_call_failed(run, rc, "mrd_post_send") : 1;
}

int perf_mrd_poll_cq(struct perf_run *run, struct perf_wc *wcs, int max)
{
    struct perf_mrd *m = run->state;
    struct mrd_wc got[PERF_POLL];
    int n = mrd_poll_cq(m->cq, max, got);

    if (n < 0)
        return perf_mrd_call_failed(run, n, "mrd_poll_cq");
    for (int i = 0; i < n; i++) {
        if (got[i].status != MRD_WC_SUCCESS)
            return perf_mrd_wc_failed(run, &got[i]);
        uint32_t qp = (uint32_t)(got[i].wr_id >> 32);
        wcs[i] = (struct perf_wc){
            .kind =
                got[i].opcode >= MRD_WC_RECV ? perf_endpoint_recv_kind(&run->e, qp) : PERF_WC_SENT,
            .qp = qp,
            .index = (uint32_t)got[i].wr_id,
            .imm = ntohl(got[i].imm_data),
            .bytes = got[i].byte_len,
        };
    }
    return n;
}
