/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping-pong. A SEND, or a WRITE_WITH_IMM, is noticed by its completion; a plain WRITE of one packet, which is placed
 * at once, by its last byte.
 *
 * Verified: each end fills its next message and checks the last one while it is the other's turn, so that little of
 * it is in the figures. A message's slot is used again four exchanges later; by then it was checked, because the
 * answer to message n follows the check of message n - 1.
 */
#include "tools/perf/mrd_run.h"

#include <arpa/inet.h>
#include <errno.h>

enum {
    LOOK_EVERY = 256, /* polls that found nothing between two looks at the clock */
    REPLY_SEED = 1,   /* answers are other bytes than questions */
};

/* The client's message n, or the server's. */
static uint64_t seed_of(const struct perf_run *run, bool servers)
{
    return run->params.seed + (servers ? REPLY_SEED : 0);
}

static uint8_t mark_of(uint64_t n)
{
    return (uint8_t)(n % 255 + 1);
}

static bool polls_memory(const struct perf_run *run)
{
    const struct mrd_run *m = run->state;

    return !m->takes_recvs;
}

/* Fill message n ahead of time: its slot was last used long enough ago. */
static void prepare(struct perf_run *run, uint64_t n)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;

    if (p->verify)
        perf_verify_fill(seed_of(run, run->server), n,
                         m->tx_buf + perf_layout_offset(&m->tx, 0, (uint32_t)(n % m->tx.slots)),
                         p->size_bytes);
}

static int post(struct perf_run *run, uint64_t n)
{
    struct mrd_run *m = run->state;
    struct mrd_send_wr *wr = &m->wrs[0], *bad;
    size_t offset = perf_layout_offset(&m->tx, 0, (uint32_t)(n % m->tx.slots));

    m->sges[0].addr = (uintptr_t)m->tx_buf + offset;
    wr->wr.rdma.remote_addr = m->remote_addr + offset;
    wr->imm_data = htonl((uint32_t)n);
    /* Not earlier: only what has just arrived proves that message n - 1 left the one place there is. */
    if (polls_memory(run))
        m->tx_buf[run->params.size_bytes - 1] = mark_of(n);
    int rc = mrd_post_send(m->qps[0].qp, wr, &bad);
    /* Full: earlier ones still wait for their acks. They come by polling. */
    while (rc == -ENOMEM || rc == -EAGAIN) {
        struct mrd_wc wc;
        int polled = mrd_poll_cq(m->cq, 0, &wc);
        if (polled < 0)
            return mrd_call_failed(run, polled, "mrd_poll_cq");
        rc = perf_run_tick(run, perf_now_ns(), run->sent);
        if (rc)
            return rc;
        rc = mrd_post_send(m->qps[0].qp, wr, &bad);
    }
    return rc ? mrd_call_failed(run, rc, "mrd_post_send") : 0;
}

/* Sends are not signaled, so a completion is a message, or something failed. 1, 0, or -errno. */
static int poll_once(struct perf_run *run, struct mrd_wc *wc)
{
    struct mrd_run *m = run->state;
    int n = mrd_poll_cq(m->cq, 1, wc);

    if (n < 0)
        return mrd_call_failed(run, n, "mrd_poll_cq");
    if (n && wc->status != MRD_WC_SUCCESS)
        return mrd_wc_failed(run, wc);
    return n;
}

/*
 * 1: message n is here, and `wc` is its completion if it has one; 0: the client is done; or -errno.
 */
static int wait_message(struct perf_run *run, uint64_t n, struct mrd_wc *wc)
{
    struct mrd_run *m = run->state;
    const uint8_t *last = NULL;

    if (polls_memory(run))
        last = m->rx_buf + run->params.size_bytes - 1;
    for (unsigned idle = 1;; idle++) {
        int rc = poll_once(run, wc);
        if (rc < 0)
            return rc;
        if (rc || (last && __atomic_load_n(last, __ATOMIC_ACQUIRE) == mark_of(n)))
            return 1;
        if (idle % LOOK_EVERY)
            continue;
        rc = perf_run_tick(run, perf_now_ns(), run->sent);
        if (rc)
            return rc;
        if (run->peer_done)
            return 0;
    }
}

static void check(struct perf_run *run, uint64_t n, const struct mrd_wc *wc)
{
    struct mrd_run *m = run->state;
    uint32_t slot =
        perf_test_is_write(run->params.test) ? (uint32_t)(n % m->rx.slots) : (uint32_t)wc->wr_id;
    const uint8_t *message = m->rx_buf + perf_layout_offset(&m->rx, 0, slot);

    if (run->params.verify)
        perf_verifier_check(&m->verifier, perf_verifier_number(&m->verifier, ntohl(wc->imm_data)),
                            0, message, wc->byte_len);
}

/* What is left to do with message n while the other end has its turn. */
static int digest(struct perf_run *run, uint64_t n, const struct mrd_wc *wc)
{
    struct mrd_run *m = run->state;

    check(run, n, wc);
    run->received++;
    /* Verified ones have few receives: posted at once, as each exchange needs one. */
    return m->takes_recvs
               ? mrd_recycle(run, wc,
                             run->params.verify || run->params.rx_depth < 2 * MRD_RUN_BATCH)
               : 0;
}

static int exchange(struct perf_run *run, uint64_t n, bool measured)
{
    struct mrd_wc wc;
    uint64_t begin_ns = perf_now_ns();
    int rc = post(run, n);

    if (rc == 0)
        rc = wait_message(run, n, &wc);
    if (rc < 0)
        return rc;
    if (measured) {
        perf_latency_add(&run->latency, perf_now_ns() - begin_ns);
        run->sent++;
    }
    rc = digest(run, n, &wc);
    if (rc == 0)
        prepare(run, n + 1);
    return rc;
}

/* Both ends must have seen the same number of exchanges. */
static void conclude(struct perf_run *run, uint64_t exchanges)
{
    struct mrd_run *m = run->state;

    if (!run->params.verify)
        return;
    run->verified = perf_verifier_ok(&m->verifier, exchanges);
    snprintf(run->verify_error, sizeof(run->verify_error), "%s", m->verifier.error);
}

int mrd_lat_client(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    uint64_t n = 0;

    prepare(run, 0);
    for (;; n++) {
        uint64_t now_ns = perf_now_ns();
        if (n == p->warmup)
            run->start_ns = now_ns;
        if (n >= p->warmup && perf_run_over(run, run->sent, now_ns))
            break;
        int rc = exchange(run, n, n >= p->warmup);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->sent);
        if (rc)
            return rc;
    }
    conclude(run, n);
    return 0;
}

int mrd_lat_server(struct perf_run *run)
{
    struct mrd_wc wc;
    uint64_t n = 0;

    prepare(run, 0);
    for (;; n++) {
        int rc = wait_message(run, n, &wc);
        if (rc == 0)
            break;
        if (rc > 0)
            rc = post(run, n);
        if (rc == 0)
            rc = digest(run, n, &wc);
        if (rc)
            return rc;
        prepare(run, n + 1);
    }
    conclude(run, run->peer_sent + run->params.warmup);
    return 0;
}
