/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping-pong. A SEND, or a WRITE_WITH_IMM, is noticed by its completion; a plain WRITE by its last byte, as RC places
 * bytes in order. Verification is as in mrd_lat.c.
 */
#include "tools/perf/verbs/rc.h"

#include <arpa/inet.h>
#include <errno.h>

enum {
    LOOK_EVERY = 256, /* polls that found nothing between two looks at the clock */
    POLL_EVERY =
        16, /* looks at the last byte between two at the completions, which may be failures */
    SIGNAL_EVERY = 16, /* messages */
    SIGNALS_MAX = 2,   /* on their way: fewer than fill the send queue */
    REPLY_SEED = 1,    /* answers are other bytes than questions */
};

struct pingpong {
    uint32_t signals; /* on their way */
    bool arrived;     /* `wc` is a message that was not taken yet */
    struct ibv_wc wc;
};

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
    const struct rc_run *m = run->state;

    return !m->takes_recvs;
}

/* Fill message n ahead of time: its slot was last used long enough ago. */
static void prepare(struct perf_run *run, uint64_t n)
{
    struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;

    if (p->verify)
        perf_verify_fill(seed_of(run, run->server), n,
                         m->tx_buf + perf_layout_offset(&m->tx, 0, (uint32_t)(n % m->tx.slots)),
                         p->size_bytes);
}

/* One completion of either kind. At most one message is on its way to us. */
static int poll_once(struct perf_run *run, struct pingpong *pp)
{
    struct ibv_wc wc;
    int n = rc_poll(run, 1, &wc);

    if (n <= 0)
        return n;
    if (rc_kind_of(wc.wr_id) == RC_MESSAGE) {
        pp->signals--;
        return 0;
    }
    pp->wc = wc;
    pp->arrived = true;
    return 0;
}

static int post(struct perf_run *run, struct pingpong *pp, uint64_t n)
{
    struct rc_run *m = run->state;
    struct ibv_send_wr *wr = &m->wrs[0], *bad;
    size_t offset = perf_layout_offset(&m->tx, 0, (uint32_t)(n % m->tx.slots));

    while (pp->signals >= SIGNALS_MAX) {
        uint64_t now_ns = perf_now_ns();
        int rc = poll_once(run, pp);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->sent);
        if (rc == 0 && !run->server)
            rc = rc_check_silence(run, now_ns);
        if (rc)
            return rc;
    }
    m->sges[0].addr = (uintptr_t)m->tx_buf + offset;
    wr->wr_id = rc_wr_id(RC_MESSAGE, 0, 0);
    wr->wr.rdma.remote_addr = m->remote_addr + offset;
    wr->imm_data = htonl((uint32_t)n);
    wr->send_flags &= (unsigned)~IBV_SEND_SIGNALED;
    if (n % SIGNAL_EVERY == SIGNAL_EVERY - 1) {
        wr->send_flags |= IBV_SEND_SIGNALED;
        pp->signals++;
    }
    /* Not earlier: only what has just arrived proves that message n - 1 left the one place there is. */
    if (polls_memory(run))
        m->tx_buf[run->params.size_bytes - 1] = mark_of(n);
    int rc = ibv_post_send(m->qps[0].qp, wr, &bad);
    return rc ? perf_run_fail(run, -rc, "ibv_post_send failed with %d", rc) : 0;
}

/* 1: message n is here, and pp->wc is its completion if it has one; 0: the client is done; or -errno. */
static int wait_message(struct perf_run *run, struct pingpong *pp, uint64_t n)
{
    struct rc_run *m = run->state;
    const uint8_t *last = polls_memory(run) ? m->rx_buf + run->params.size_bytes - 1 : NULL;

    for (unsigned idle = 1;; idle++) {
        if (last && __atomic_load_n(last, __ATOMIC_ACQUIRE) == mark_of(n))
            return 1;
        int rc = !last || idle % POLL_EVERY == 0 ? poll_once(run, pp) : 0;
        if (rc < 0)
            return rc;
        if (pp->arrived) {
            pp->arrived = false;
            return 1;
        }
        if (idle % LOOK_EVERY)
            continue;
        uint64_t now_ns = perf_now_ns();
        rc = perf_run_tick(run, now_ns, run->sent);
        if (rc == 0 && !run->server)
            rc = rc_check_silence(run, now_ns);
        if (rc)
            return rc;
        if (run->peer_done)
            return 0;
    }
}

static void check(struct perf_run *run, uint64_t n, const struct ibv_wc *wc)
{
    struct rc_run *m = run->state;

    if (!run->params.verify)
        return;
    uint32_t slot =
        perf_test_is_write(run->params.test) ? (uint32_t)(n % m->rx.slots) : (uint32_t)wc->wr_id;
    perf_verifier_check(&m->verifier, perf_verifier_number(&m->verifier, ntohl(wc->imm_data)), 0,
                        m->rx_buf + perf_layout_offset(&m->rx, 0, slot), wc->byte_len);
}

/* What is left to do with message n while the other end has its turn. */
static int digest(struct perf_run *run, struct pingpong *pp, uint64_t n)
{
    struct rc_run *m = run->state;

    check(run, n, &pp->wc);
    run->received++;
    return m->takes_recvs ? rc_recycle(run, pp->wc.wr_id, run->params.verify) : 0;
}

static int exchange(struct perf_run *run, struct pingpong *pp, uint64_t n, bool measured)
{
    uint64_t begin_ns = perf_now_ns();
    int rc = post(run, pp, n);

    if (rc == 0)
        rc = wait_message(run, pp, n);
    if (rc < 0)
        return rc;
    if (measured) {
        perf_latency_add(&run->latency, perf_now_ns() - begin_ns);
        run->sent++;
    }
    rc = digest(run, pp, n);
    if (rc == 0)
        prepare(run, n + 1);
    return rc;
}

/* Both ends must have seen the same number of exchanges. */
static void conclude(struct perf_run *run, uint64_t exchanges)
{
    struct rc_run *m = run->state;

    if (!run->params.verify)
        return;
    run->verified = perf_verifier_ok(&m->verifier, exchanges);
    snprintf(run->verify_error, sizeof(run->verify_error), "%s", m->verifier.error);
}

int rc_lat_client(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    struct rc_run *m = run->state;
    struct pingpong pp = {0};
    uint64_t n = 0;

    prepare(run, 0);
    for (;; n++) {
        uint64_t now_ns = perf_now_ns();
        if (n == p->warmup)
            run->start_ns = now_ns;
        if (n >= p->warmup && perf_run_over(run, run->sent, now_ns))
            break;
        m->heard_ns = now_ns;
        int rc = exchange(run, &pp, n, n >= p->warmup);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->sent);
        if (rc)
            return rc;
    }
    conclude(run, n);
    return 0;
}

int rc_lat_server(struct perf_run *run)
{
    struct pingpong pp = {0};
    uint64_t n = 0;

    prepare(run, 0);
    for (;; n++) {
        int rc = wait_message(run, &pp, n);
        if (rc == 0)
            break;
        if (rc > 0)
            rc = post(run, &pp, n);
        if (rc == 0)
            rc = digest(run, &pp, n);
        if (rc)
            return rc;
        prepare(run, n + 1);
    }
    conclude(run, run->peer_sent + run->params.warmup);
    return 0;
}
