/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The halves of a bandwidth test: bw_send.c posts, bw_recv.c takes what arrives. bw.c has the loops,
 * in which an end does one of the two, or with -b both.
 */
#ifndef MRD_PERF_BW_H
#define MRD_PERF_BW_H

#include "tools/perf/transport.h"

/*
 * Does the receiving host not notice the messages? Then what the sender has acknowledged counts as
 * arrived.
 */
bool perf_bw_counts_at_sender(const struct perf_run *run);
static inline bool perf_bw_sends(const struct perf_run *run)
{
    return !run->server || run->params.bidirectional;
}
static inline bool perf_bw_receives(const struct perf_run *run)
{
    return (run->server || run->params.bidirectional) && !perf_bw_counts_at_sender(run);
}

/* Post what there is room for: the number of messages, or -errno. */
int perf_bw_post(struct perf_run *run);
int perf_bw_take_credit(struct perf_run *run, const struct perf_wc *wc);
/* After the last message: 1 when it is at its target, as far as one can know; 0: not yet; -errno. */
int perf_bw_flush(struct perf_run *run);

int perf_bw_take_message(struct perf_run *run, const struct perf_wc *wc);
/* After a poll that found `n` completions: credits, and receives that were taken. 0 or -errno. */
int perf_bw_polled(struct perf_run *run, int n);
/* Has all arrived that the other end sent? */
bool perf_bw_is_complete(const struct perf_run *run);
/* Nothing came for silent_ns. 1: this ends a lossy test; 0: wait on; or -errno. */
int perf_bw_check_silence(struct perf_run *run, uint64_t silent_ns);
/* Count what has arrived, if it is time to: at *count_ns, or when a poll found something. */
void perf_bw_measure(struct perf_run *run, uint64_t now_ns, bool busy, uint64_t *count_ns);
/* No more will arrive: the last count, and the verdict. */
void perf_bw_conclude(struct perf_run *run);

#endif
