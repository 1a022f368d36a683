/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/live.h"

#include <stdio.h>
#include <unistd.h>

enum { LIVE_INTERVAL_MS = 200 };

static double share_done(const struct perf_run *run, double elapsed_s, uint64_t done)
{
    if (run->params.duration_s)
        return elapsed_s / run->params.duration_s;
    return (double)done / (double)run->params.iterations;
}

void perf_live_update(struct perf_run *run, uint64_t now_ns, uint64_t done)
{
    if (run->start_ns == 0 || now_ns < run->start_ns + PERF_SEC_NS || now_ns < run->next_live_ns)
        return;
    run->next_live_ns = now_ns + LIVE_INTERVAL_MS * PERF_MSEC_NS;
    if (!isatty(STDERR_FILENO))
        return;
    double elapsed_s = (double)(now_ns - run->start_ns) / 1e9;
    double share = share_done(run, elapsed_s, done);
    fprintf(stderr, "\r%s %s  %.1f s  %3.0f%%  ", run->label ? run->label : run->params.transport,
            perf_test_name(run->params.test), elapsed_s, share > 1 ? 100 : 100 * share);
    if (perf_test_is_lat(run->params.test))
        fprintf(stderr, "%llu exchanges, %.2f us half round trip\033[K", (unsigned long long)done,
                done ? 1e6 * elapsed_s / (double)done / 2 : 0);
    else
        fprintf(stderr, "%.2f Gb/s sent, %.3f M msg/s\033[K",
                8e-9 * (double)done * (double)run->params.size_bytes / elapsed_s,
                1e-6 * (double)done / elapsed_s);
    fflush(stderr);
    run->live_shown = true;
}

void perf_live_clear(struct perf_run *run)
{
    if (run->live_shown)
        fputs("\r\033[K", stderr);
    run->live_shown = false;
}
