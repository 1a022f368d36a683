/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bandwidth: the client sends as fast as its queues take it, and what arrives is counted.
 *
 * Latency: ping-pong. A tag names the exchange, so that a late datagram of a lost exchange is not taken for an
 * answer. A lost exchange is begun again; its time is not counted.
 */
#include "tools/perf/verbs/raw_ud.h"

#include <errno.h>

enum {
    QUIET_MS = 20,    /* after the client's last word: what is still on its way has come */
    LOOK_EVERY = 256, /* polls that found nothing between two looks at the clock */
    LOST_AFTER_MS = 50,
};

/* Bytes of the next batch of a message that has `left`. */
static size_t batch_of(const struct perf_run *run, uint64_t left)
{
    const struct raw_ud *r = run->state;
    size_t most = (size_t)UD_BATCH * r->v.mtu;

    return left < most ? (size_t)left : most;
}

/* Several messages of a datagram each, as they are posted in lists: how many, or -errno. */
static int send_small(struct perf_run *run, uint32_t qp)
{
    const struct perf_params *p = &run->params;
    uint64_t left = p->iterations ? p->iterations - run->sent : UD_BATCH;
    int count = left < UD_BATCH ? (int)left : UD_BATCH;
    int rc = ud_send(run, qp, (size_t)count * p->size_bytes, p->size_bytes, 0);

    return rc ? rc : count;
}

int ud_bw_client(struct perf_run *run)
{
    struct raw_ud *r = run->state;
    uint64_t size = run->params.size_bytes, left = size;

    for (uint32_t turn = 0;; turn++) {
        uint32_t qp = turn % r->num_qps;
        uint64_t now_ns = perf_now_ns();
        int rc = perf_run_tick(run, now_ns, run->sent);
        if (rc)
            return rc;
        if (perf_run_over(run, run->sent, now_ns))
            return 0;
        if (size <= r->v.mtu) {
            rc = send_small(run, qp);
            run->sent += rc > 0 ? (uint64_t)rc : 0;
        } else {
            size_t len = batch_of(run, left);
            rc = ud_send(run, qp, len, r->v.mtu, 0);
            left = left > len ? left - len : size;
            run->sent += left == size;
        }
        if (rc < 0)
            return rc;
    }
}

int ud_bw_server(struct perf_run *run)
{
    uint64_t bytes = 0, quiet_since_ns = 0;
    uint32_t tag;

    for (;;) {
        int n = ud_receive(run, UD_POLL, &bytes, &tag);
        uint64_t now_ns = perf_now_ns();
        perf_meter_update(&run->meter, now_ns, bytes);
        int rc = n < 0 ? n : perf_run_tick(run, now_ns, 0);
        if (rc)
            return rc;
        if (n || !run->peer_done)
            quiet_since_ns = now_ns;
        else if (now_ns - quiet_since_ns > QUIET_MS * PERF_MSEC_NS)
            break;
    }
    run->received = bytes / run->params.size_bytes;
    return 0;
}

struct pong {
    uint64_t bytes; /* of the exchange `tag` that have come */
    uint32_t tag;
};

static int send_message(struct perf_run *run, uint32_t tag)
{
    const struct raw_ud *r = run->state;
    int rc = 0;

    for (uint64_t left = run->params.size_bytes; left && rc == 0;) {
        size_t len = batch_of(run, left);
        rc = ud_send(run, 0, len, r->v.mtu, tag);
        left -= len;
    }
    return rc;
}

/* Take what has come: 1 once a whole message with one tag is here, 0, or -errno. */
static int take(struct perf_run *run, struct pong *pong)
{
    uint64_t bytes = 0;
    uint32_t tag;
    int n = ud_receive(run, 1, &bytes, &tag);

    if (n <= 0)
        return n;
    if (tag != pong->tag)
        *pong = (struct pong){.tag = tag};
    pong->bytes += bytes;
    if (pong->bytes < run->params.size_bytes)
        return 0;
    pong->bytes = 0;
    return 1;
}

/* 1: the answer is here; 0: it is lost; or -errno. */
static int wait_answer(struct perf_run *run, uint32_t tag, uint64_t begin_ns)
{
    struct pong pong = {.tag = tag};

    for (unsigned idle = 0;; idle++) {
        int rc = take(run, &pong);
        if (rc < 0)
            return rc;
        if (rc && pong.tag == tag)
            return 1;
        if (idle % LOOK_EVERY != LOOK_EVERY - 1)
            continue;
        uint64_t now_ns = perf_now_ns();
        rc = perf_run_tick(run, now_ns, run->sent);
        if (rc)
            return rc;
        if (now_ns - begin_ns > LOST_AFTER_MS * PERF_MSEC_NS)
            return 0;
    }
}

int ud_lat_client(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    uint64_t warm = 0;
    uint32_t tag = 0;

    for (;;) {
        uint64_t begin_ns = perf_now_ns();
        if (warm == p->warmup && run->sent == 0)
            run->start_ns = begin_ns;
        if (warm == p->warmup && perf_run_over(run, run->sent, begin_ns))
            return 0;
        tag++;
        int rc = send_message(run, tag);
        if (rc == 0)
            rc = wait_answer(run, tag, begin_ns);
        if (rc < 0)
            return rc;
        uint64_t end_ns = perf_now_ns();
        if (rc == 1 && warm == p->warmup) {
            perf_latency_add(&run->latency, end_ns - begin_ns);
            run->sent++;
        } else if (rc == 1) {
            warm++;
        }
        rc = perf_run_tick(run, end_ns, run->sent);
        if (rc)
            return rc;
    }
}

int ud_lat_server(struct perf_run *run)
{
    struct pong pong = {0};
    unsigned idle = 0;

    while (!run->peer_done) {
        int rc = take(run, &pong);
        if (rc > 0)
            rc = send_message(run, pong.tag);
        else if (rc == 0 && ++idle % LOOK_EVERY == 0)
            rc = perf_run_tick(run, perf_now_ns(), 0);
        if (rc)
            return rc;
    }
    return 0;
}
