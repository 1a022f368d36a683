/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/raw_udp.h"

#include <errno.h>
#include <unistd.h>

enum {
    TICK_EVERY = 16, /* bursts between two looks at the clock */
    QUIET_MS = 20,   /* after the client's last word: what is still on its way has come */
};

/*
 * The stream is cut into bursts. Messages that are a whole number of packets need not end a burst, as none of the
 * packets is short.
 */
struct cutter {
    uint64_t size, left_in_message;
    size_t segment, burst;
    bool aligned;
};

static struct cutter make_cutter(const struct perf_run *run)
{
    const struct raw_udp *r = run->state;
    uint64_t size = run->params.size_bytes;
    size_t segment = size < r->payload_bytes ? (size_t)size : r->payload_bytes;
    size_t segments = RAW_BURST_BYTES / segment;

    if (segments > RAW_SEGMENTS_MAX)
        segments = RAW_SEGMENTS_MAX;
    if (segments == 0)
        segments = 1;
    return (struct cutter){size, size, segment, segments * segment, size % segment == 0};
}

/* Bytes of the next burst; total_left 0: no limit but the message. */
static size_t next_burst(struct cutter *c, uint64_t total_left)
{
    uint64_t left = c->aligned ? (total_left ? total_left : UINT64_MAX) : c->left_in_message;
    size_t len = left < c->burst ? (size_t)left : c->burst;

    if (!c->aligned) {
        c->left_in_message -= len;
        if (c->left_in_message == 0)
            c->left_in_message = c->size;
    }
    return len;
}

int raw_bw_client(struct perf_run *run)
{
    struct raw_udp *r = run->state;
    struct cutter cutter = make_cutter(run);
    uint64_t total = run->params.iterations * run->params.size_bytes; /* 0 with -D */

    for (unsigned turn = 0;; turn++) {
        if (turn % TICK_EVERY == 0) {
            uint64_t now_ns = perf_now_ns();
            int rc = perf_run_tick(run, now_ns, r->bytes_sent / run->params.size_bytes);
            if (rc)
                return rc;
            if (total == 0 && perf_run_over(run, 0, now_ns))
                break;
        }
        if (total && r->bytes_sent >= total)
            break;
        size_t len = next_burst(&cutter, total ? total - r->bytes_sent : 0);
        int rc = raw_udp_send(run, turn % r->num_fds, len, cutter.segment);
        if (rc)
            return rc;
    }
    run->sent = r->bytes_sent / run->params.size_bytes;
    return 0;
}

int raw_bw_server(struct perf_run *run)
{
    struct raw_udp *r = run->state;
    uint64_t bytes = 0, quiet_since_ns = 0;

    for (;;) {
        unsigned n = 0;
        while (n < TICK_EVERY) {
            ssize_t got = recv(r->fds[0], r->buf, RAW_BUFFER_BYTES, MSG_DONTWAIT);
            if (got < 0)
                break;
            bytes += (uint64_t)got;
            n++;
        }
        uint64_t now_ns = perf_now_ns();
        perf_meter_update(&run->meter, now_ns, bytes);
        int rc = perf_run_tick(run, now_ns, 0);
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
