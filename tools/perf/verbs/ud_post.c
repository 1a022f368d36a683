/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/raw_ud.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static int post_failed(struct perf_run *run, int rc, const char *what)
{
    return perf_run_fail(run, -rc, "%s: %s", what, strerror(rc));
}

static int wc_failed(struct perf_run *run, const struct ibv_wc *wc, const char *direction)
{
    return perf_run_fail(run, -EIO, "a datagram %s %s failed: %s (status %d)", direction,
                         run->control->peer, ibv_wc_status_str(wc->status), wc->status);
}

int ud_post_recvs(struct perf_run *run)
{
    struct raw_ud *r = run->state;

    for (uint32_t i = 0; i < r->num_qps; i++) {
        struct ud_qp *q = &r->qps[i];
        struct ibv_recv_wr *bad;
        q->repost_tail = &q->repost_head;
        for (uint32_t k = 0; k < r->recv_depth; k++)
            q->recvs[k] = (struct ibv_recv_wr){
                .wr_id = (uint64_t)i << 32 | k,
                .sg_list = &r->slots[k % UD_SLOTS],
                .num_sge = 1,
                .next = k + 1 < r->recv_depth ? &q->recvs[k + 1] : NULL,
            };
        int rc = ibv_post_recv(q->qp, q->recvs, &bad);
        if (rc)
            return post_failed(run, rc, "ibv_post_recv");
    }
    return 0;
}

/* The receive may be used again; posted in batches. */
static int recycle(struct perf_run *run, uint64_t wr_id)
{
    struct raw_ud *r = run->state;
    struct ud_qp *q = &r->qps[wr_id >> 32];
    struct ibv_recv_wr *wr = &q->recvs[(uint32_t)wr_id], *bad;

    *q->repost_tail = wr;
    q->repost_tail = &wr->next;
    if (++q->num_repost < UD_BATCH && 2 * q->num_repost < r->recv_depth)
        return 0;
    *q->repost_tail = NULL;
    int rc = ibv_post_recv(q->qp, q->repost_head, &bad);
    q->repost_tail = &q->repost_head;
    q->num_repost = 0;
    return rc ? post_failed(run, rc, "ibv_post_recv") : 0;
}

int ud_receive(struct perf_run *run, int max, uint64_t *bytes, uint32_t *tag)
{
    struct raw_ud *r = run->state;
    struct ibv_wc wcs[UD_POLL];
    int n = ibv_poll_cq(r->recv_cq, max < UD_POLL ? max : UD_POLL, wcs);
    int rc = 0;

    if (n < 0)
        return perf_run_fail(run, -EIO, "ibv_poll_cq failed");
    for (int i = 0; i < n && rc == 0; i++) {
        if (wcs[i].status != IBV_WC_SUCCESS)
            return wc_failed(run, &wcs[i], "from");
        *bytes += wcs[i].byte_len - UD_GRH;
        *tag = ntohl(wcs[i].imm_data);
        rc = recycle(run, wcs[i].wr_id);
    }
    return rc ? rc : n;
}

static int reap(struct perf_run *run)
{
    struct raw_ud *r = run->state;
    struct ibv_wc wcs[UD_POLL];
    int n = ibv_poll_cq(r->send_cq, UD_POLL, wcs);

    if (n < 0)
        return perf_run_fail(run, -EIO, "ibv_poll_cq failed");
    for (int i = 0; i < n; i++) {
        if (wcs[i].status != IBV_WC_SUCCESS)
            return wc_failed(run, &wcs[i], "to");
        r->qps[wcs[i].wr_id].outstanding -= r->signal_every;
    }
    return 0;
}

static int wait_for_room(struct perf_run *run, const struct ud_qp *q, uint32_t count)
{
    const struct raw_ud *r = run->state;
    int rc = 0;

    while (rc == 0 && q->outstanding + count > r->send_depth) {
        rc = reap(run);
        if (rc == 0)
            rc = perf_run_tick(run, perf_now_ns(), run->sent);
    }
    return rc;
}

int ud_send(struct perf_run *run, uint32_t qp, size_t len, size_t segment, uint32_t tag)
{
    struct raw_ud *r = run->state;
    struct ud_qp *q = &r->qps[qp];
    struct ibv_send_wr wrs[UD_BATCH], *bad;
    struct ibv_sge sges[UD_BATCH];
    uint32_t count = (uint32_t)((len + segment - 1) / segment);
    size_t left = len;
    int rc = wait_for_room(run, q, count);

    if (rc)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        size_t part = left < segment ? left : segment;
        sges[i] = (struct ibv_sge){
            .addr = (uintptr_t)r->tx_mr->addr, .length = (uint32_t)part, .lkey = r->tx_mr->lkey};
        wrs[i] = (struct ibv_send_wr){
            .wr_id = qp,
            .next = i + 1 < count ? &wrs[i + 1] : NULL,
            .sg_list = &sges[i],
            .num_sge = 1,
            .opcode = IBV_WR_SEND_WITH_IMM,
            .send_flags = part <= r->inline_bytes ? IBV_SEND_INLINE : 0,
            .imm_data = htonl(tag),
            .wr.ud = {.ah = r->ah, .remote_qpn = q->remote_qpn, .remote_qkey = UD_QKEY},
        };
        if (++q->since_signal == r->signal_every) {
            wrs[i].send_flags |= IBV_SEND_SIGNALED;
            q->since_signal = 0;
        }
        left -= part;
    }
    q->outstanding += count;
    r->packets += count;
    r->bytes_sent += len;
    rc = ibv_post_send(q->qp, wrs, &bad);
    return rc ? post_failed(run, rc, "ibv_post_send") : 0;
}
