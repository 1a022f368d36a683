/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver learns of messages by completions, or of mrd's plain writes by a counter. Plain
 * writes of rc it does not see at all: as in perftest, what was acknowledged is taken for what
 * arrived. So it is with reads and atomics.
 */
#include <errno.h>

#include "tools/perf/bw.h"

enum {
    COUNT_EVERY_NS = 50 * 1000, /* between two looks at a counter of the device */
    QUIET_MS = 20,              /* after the sender's last message, of what may be lost */
    STALL_MS = 15 * 1000,       /* ...of what may not: longer than a peer's timeout */
};

bool perf_bw_counts_at_sender(const struct perf_run *run)
{
    return perf_test_is_request(run->params.test) ||
           (!run->e.takes_recvs && !run->ops->count_received_bytes);
}

/* A credit is due when a quarter of the slots is free again, or when nothing else is to do. */
static int give_credit(struct perf_run *run, bool idle)
{
    uint64_t credit = run->e.verifier.credit, fresh = credit - run->e.credit_told;

    if (fresh == 0 || (!idle && fresh < (run->params.slots + 3) / 4))
        return 0;
    int n = run->ops->post_credit(run, credit);
    if (n > 0)
        run->e.credit_told = credit;
    return n < 0 ? n : 0;
}

int perf_bw_take_message(struct perf_run *run, const struct perf_wc *wc)
{
    run->received++;
    run->e.arrived_bytes += run->ops->raw ? wc->bytes : run->params.size_bytes;
    if (!run->ops->post_recv)
        return 0;
    if (run->params.verify)
        perf_endpoint_check(run, wc);
    /* Before the credit, which lets the sender use it. */
    int rc = perf_endpoint_repost(run, wc);
    return rc == 0 && run->params.verify ? give_credit(run, false) : rc;
}

int perf_bw_polled(struct perf_run *run, int n)
{
    int rc = 0;

    if (run->ops->raw) /* a completion is of a packet */
        run->received = run->e.arrived_bytes / run->params.size_bytes;
    for (uint32_t qp = 0; n < PERF_POLL && qp < run->e.num_qps && rc == 0; qp++)
        rc = perf_endpoint_repost_rest(run, qp);
    return run->params.verify && rc == 0 && n < PERF_POLL ? give_credit(run, true) : rc;
}

/*
 * Returns the payload that has arrived, in whole messages or not. The device counts for all threads:
 * only the main one asks it, and only if completions do not tell.
 */
static uint64_t count_arrived(struct perf_run *run)
{
    bool ask = run->ops->count_received_bytes &&
               !(run->thread.all && (run->thread.main || run->e.takes_recvs));
    uint64_t counted = ask ? run->ops->count_received_bytes(run) : 0;

    return counted > run->e.arrived_bytes ? counted : run->e.arrived_bytes;
}

bool perf_bw_is_complete(const struct perf_run *run)
{
    if (!run->peer.done || run->ops->lossy)
        return false;
    if (perf_bw_counts_at_sender(run))
        return true;
    if (run->thread.main && !run->e.takes_recvs)
        return run->peer.finished;
    return run->e.takes_recvs ? run->received >= run->peer.sent
                              : run->meter.total_bytes >= run->peer.sent * run->params.size_bytes;
}

int perf_bw_check_silence(struct perf_run *run, uint64_t silent_ns)
{
    if (silent_ns <= (run->ops->lossy ? QUIET_MS : STALL_MS) * PERF_MSEC_NS)
        return 0;
    if (run->ops->lossy)
        return 1;
    return perf_run_fail(run, -ETIMEDOUT,
                         "%llu messages were sent, but only %llu (%llu bytes) arrived",
                         (unsigned long long)run->peer.sent, (unsigned long long)run->received,
                         (unsigned long long)run->meter.total_bytes);
}

void perf_bw_measure(struct perf_run *run, uint64_t now_ns, bool busy, uint64_t *count_ns)
{
    if (now_ns < *count_ns && (!busy || run->meter.first_ns))
        return;
    perf_meter_update(&run->meter, now_ns, count_arrived(run));
    if (run->ops->count_received_bytes && run->meter.first_ns)
        *count_ns = now_ns + COUNT_EVERY_NS;
}

void perf_bw_conclude(struct perf_run *run)
{
    if (perf_bw_counts_at_sender(run)) {
        run->received = run->e.acked;
        return;
    }
    perf_meter_update(&run->meter, clock_now_ns(), count_arrived(run));
    if (!run->e.takes_recvs && run->params.size_bytes)
        run->received = run->meter.total_bytes / run->params.size_bytes;
    perf_endpoint_conclude(run, run->peer.sent);
}
