/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping-pong. A message is noticed by its completion. Plain writes have none: their last byte is
 * polled, which rc places last, and mrd as well if the message is one packet. Of reads and atomics
 * the client waits for its own completion.
 *
 * Lossy transports: a tag in each packet names the exchange, so that a late packet of a lost
 * exchange is not taken for an answer. A lost exchange is begun again; its time does not count.
 *
 * Verified: each end fills its next message and checks the last one during the other's turn, so
 * that little of it is in the figures. A slot is used again four exchanges later. By then it was
 * checked, because the answer to message n follows the check of message n - 1.
 */
#include <errno.h>

#include "tools/perf/transport.h"

enum {
    LOOK_EVERY = 256, /* polls that found nothing between two looks at the clock */
    POLL_EVERY = 16,  /* looks at the last byte between two polls, where the device receives */
    SIGNALS_MAX = 2,  /* outstanding: fewer than fill the send queue */
    LOST_AFTER_MS = 50,
};

struct pingpong {
    uint64_t n;          /* number of the exchange */
    uint64_t part_bytes; /* of a message of several packets... */
    uint32_t part_imm;   /* ...with this tag */
    bool arrived;        /* `wc` is of a message that nobody has waited for yet */
    struct perf_wc wc;
};

static uint8_t mark_of(uint64_t n)
{
    return (uint8_t)(n % 255 + 1);
}

/* The byte that a plain write ends with, in `buf`; NULL: messages have completions. */
static uint8_t *polled_byte(const struct perf_run *run, uint8_t *buf)
{
    return run->e.takes_recvs || perf_test_is_request(run->params.test)
               ? NULL
               : buf + run->params.size_bytes - 1;
}

/* Take a completion of a receive: is the message whole? */
static bool is_whole(const struct perf_run *run, struct pingpong *pp)
{
    if (!run->ops->raw)
        return true;
    if (pp->wc.imm != pp->part_imm) {
        pp->part_imm = pp->wc.imm;
        pp->part_bytes = 0;
    }
    pp->part_bytes += pp->wc.bytes;
    if (pp->part_bytes < run->params.size_bytes)
        return false;
    pp->part_bytes = 0;
    return true;
}

/* Poll for one completion. 0 or -errno. */
static int poll_once(struct perf_run *run, struct pingpong *pp)
{
    struct perf_wc wc;
    int n = run->ops->poll_cq(run, &wc, 1);

    if (n <= 0)
        return n;
    if (wc.kind != PERF_WC_RECV)
        perf_endpoint_take_sent(&run->e, &wc);
    if (wc.kind != PERF_WC_RECV && !perf_test_is_request(run->params.test))
        return 0;
    pp->wc = wc;
    pp->arrived = is_whole(run, pp);
    /* The parts of a raw message are never looked at again. */
    return run->ops->raw && run->ops->post_recv ? perf_endpoint_repost(run, &wc) : 0;
}

/* Watch the run while nothing comes. `began`: this is the first look of the wait. */
static int watch_run(struct perf_run *run, uint64_t now_ns, bool began)
{
    int rc = perf_run_tick(run, now_ns, run->sent);

    return rc == 0 && run->ops->wait ? run->ops->wait(run, now_ns, began) : rc;
}

static int post_message(struct perf_run *run, struct pingpong *pp)
{
    uint8_t *last = polled_byte(run, run->e.tx_buf);
    int n = 0;

    /* Not earlier: only what has just arrived proves that the last message left the one slot. */
    if (last)
        *last = mark_of(pp->n);
    for (bool began = true;; began = false) {
        if (!run->e.signal_every || run->e.qps[0].outstanding < SIGNALS_MAX * run->e.signal_every)
            n = run->ops->post_send(run, 0, pp->n, 1);
        if (n)
            break;
        /* Full: earlier messages still wait for their acks, which come by polling. */
        int rc = poll_once(run, pp);
        if (rc == 0)
            rc = watch_run(run, clock_now_ns(), began);
        if (rc)
            return rc;
    }
    if (n > 0 && run->e.signal_every)
        run->e.qps[0].outstanding++;
    return n < 0 ? n : 0;
}

/* Has the message come that this end waits for? */
static bool has_come(const struct perf_run *run, struct pingpong *pp, const uint8_t *last)
{
    if (last && __atomic_load_n(last, __ATOMIC_ACQUIRE) == mark_of(pp->n))
        return true;
    if (!pp->arrived)
        return false;
    pp->arrived = false;
    return run->server || !run->ops->lossy || (uint8_t)pp->wc.imm == (uint8_t)pp->n;
}

/* Returns 1 if the message came, 0 if it is lost or the client is done, or -errno. */
static int wait_message(struct perf_run *run, struct pingpong *pp, uint64_t begin_ns)
{
    const uint8_t *last = polled_byte(run, run->e.rx_buf);
    unsigned poll_every = last && !run->ops->manual_progress ? POLL_EVERY : 1;
    unsigned look_every = run->params.events ? 1 : LOOK_EVERY; /* looking up, it sleeps */

    for (unsigned idle = 1;; idle++) {
        int rc = idle % poll_every == 0 ? poll_once(run, pp) : 0;
        if (rc < 0)
            return rc;
        if (has_come(run, pp, last))
            return 1;
        if (idle % look_every)
            continue;
        uint64_t now_ns = clock_now_ns();
        rc = watch_run(run, now_ns, idle == look_every);
        if (rc)
            return rc;
        if (run->peer.done)
            return 0;
        if (!run->server && run->ops->lossy && now_ns - begin_ns > LOST_AFTER_MS * PERF_MSEC_NS)
            return 0;
    }
}

/* Check the message and fill the next one, while it is the other end's turn. */
static int digest_message(struct perf_run *run, struct pingpong *pp)
{
    int rc = 0;

    run->received++;
    if (perf_test_is_request(run->params.test))
        perf_endpoint_take_answer(run, &pp->wc);
    if (!run->ops->raw && run->e.takes_recvs) {
        if (run->params.verify)
            perf_endpoint_check(run, &pp->wc);
        rc = perf_endpoint_repost(run, &pp->wc);
    }
    perf_endpoint_fill(run, 0, pp->n + 1);
    return rc;
}

static int exchange_messages(struct perf_run *run, struct pingpong *pp, uint64_t *done)
{
    uint64_t begin_ns = clock_now_ns();
    int rc = post_message(run, pp);

    if (rc == 0)
        rc = wait_message(run, pp, begin_ns);
    if (rc <= 0)
        return rc;
    if (++*done > run->params.warmup) {
        uint64_t rtt_ns = clock_now_ns() - begin_ns;

        perf_latency_add(&run->latency, rtt_ns);
        if (run->params.run_infinitely)
            perf_latency_add(&run->last_second.latency, rtt_ns);
        run->sent++;
    }
    return digest_message(run, pp);
}

int perf_lat_client(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    struct pingpong pp = {0};
    uint64_t done = 0;
    int rc = 0;

    perf_endpoint_fill(run, 0, 0);
    for (; rc == 0; pp.n++) {
        uint64_t now_ns = clock_now_ns();
        if (done == p->warmup && run->sent == 0)
            run->start_ns = now_ns;
        if (done >= p->warmup && perf_run_over(run, run->sent, now_ns))
            break;
        rc = exchange_messages(run, &pp, &done);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->sent);
    }
    perf_endpoint_conclude(run, done);
    return rc;
}

int perf_lat_server(struct perf_run *run)
{
    struct pingpong pp = {0};
    int rc = 0;

    perf_endpoint_fill(run, 0, 0);
    for (; rc == 0; pp.n++) {
        rc = wait_message(run, &pp, 0);
        if (rc <= 0)
            break;
        if (run->ops->lossy)
            pp.n = pp.wc.imm; /* the answer has the question's tag */
        rc = post_message(run, &pp);
        if (rc == 0)
            rc = digest_message(run, &pp);
    }
    /* Both ends must have seen the same number of exchanges. */
    perf_endpoint_conclude(run, run->peer.sent + run->params.warmup);
    return rc;
}
