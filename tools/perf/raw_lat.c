/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping-pong over one connected socket at each end, both polling.
 *
 * The first byte of each packet names the exchange, so that a late packet of a lost exchange is not taken for an
 * answer. A lost exchange is begun again; its time is not counted.
 */
#include "tools/perf/raw_udp.h"

#include <errno.h>

enum {
    LOOK_EVERY = 1024, /* polls that found nothing between two looks at the clock */
    LOST_AFTER_MS = 50,
};

struct pong {
    uint64_t bytes; /* of the exchange `tag` that have come */
    uint8_t tag;
};

/* The message, each of its packets marked. */
static int send_message(struct perf_run *run, uint8_t tag)
{
    struct raw_udp *r = run->state;
    uint64_t left = run->params.size_bytes;
    size_t segment = left < r->payload_bytes ? (size_t)left : r->payload_bytes;
    size_t segments =
        RAW_BURST_BYTES / segment < RAW_SEGMENTS_MAX ? RAW_BURST_BYTES / segment : RAW_SEGMENTS_MAX;
    size_t burst = (segments ? segments : 1) * segment;

    for (size_t at = 0; at < burst && at < left; at += segment)
        r->buf[at] = tag;
    while (left) {
        size_t len = left < burst ? (size_t)left : burst;
        int rc = raw_udp_send(run, 0, len, segment);
        if (rc)
            return rc;
        left -= len;
    }
    return 0;
}

/* Take what has come: true once a whole message with one tag is here. */
static bool take(struct perf_run *run, struct pong *pong, uint8_t *buf)
{
    struct raw_udp *r = run->state;
    ssize_t n = recv(r->fds[0], buf, RAW_BUFFER_BYTES, MSG_DONTWAIT);

    if (n <= 0)
        return false;
    if (buf[0] != pong->tag) {
        pong->tag = buf[0];
        pong->bytes = 0;
    }
    pong->bytes += (uint64_t)n;
    if (pong->bytes < run->params.size_bytes)
        return false;
    pong->bytes = 0;
    return true;
}

/* 1: the answer is here; 0: it is lost; or -errno. */
static int wait_answer(struct perf_run *run, uint8_t tag, uint64_t begin_ns)
{
    static uint8_t buf[RAW_BUFFER_BYTES]; /* not the one that is sent from */
    struct pong pong = {.tag = tag};

    for (unsigned idle = 0;; idle++) {
        if (take(run, &pong, buf) && pong.tag == tag)
            return 1;
        if (idle % LOOK_EVERY != LOOK_EVERY - 1)
            continue;
        uint64_t now_ns = perf_now_ns();
        int rc = perf_run_tick(run, now_ns, run->sent);
        if (rc)
            return rc;
        if (now_ns - begin_ns > LOST_AFTER_MS * PERF_MSEC_NS)
            return 0;
    }
}

int raw_lat_client(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    uint64_t warm = 0;
    uint8_t tag = 0;

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

int raw_lat_server(struct perf_run *run)
{
    static uint8_t buf[RAW_BUFFER_BYTES];
    struct pong pong = {0};
    unsigned idle = 0;

    while (!run->peer_done) {
        int rc = 0;
        if (take(run, &pong, buf)) {
            rc = send_message(run, pong.tag);
            idle = 0;
        } else if (++idle % LOOK_EVERY == 0) {
            rc = perf_run_tick(run, perf_now_ns(), 0);
        }
        if (rc)
            return rc;
    }
    return 0;
}
