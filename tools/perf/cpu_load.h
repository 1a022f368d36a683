/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Was the machine too busy during a run for the figures to count?
 *
 * perf_cpu_read() before and after, then perf_cpu_load_between(). Of other processes only user time
 * counts, because the kernel may be working for mrd_perf.
 */
#ifndef MRD_PERF_CPU_LOAD_H
#define MRD_PERF_CPU_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PERF_MACHINE_BYTES = 64 };

/* Of all processors since the machine was started, in ticks; and of this process, in seconds. */
struct perf_cpu_times {
    uint64_t total, user, idle, steal; /* all 0: not known */
    double own_user_s;
};

/* Shares of all processors' time, and the user time of this process. */
struct perf_cpu_load {
    bool known;
    bool busy; /* too busy */
    double stolen, others;
    double own_user_s;
};

/* Read the first line of /proc/stat. 0, or -EINVAL if `text` is not that. */
int perf_cpu_parse(const char *text, struct perf_cpu_times *times);
/* The times now. */
void perf_cpu_read(struct perf_cpu_times *times);
/* A name that no other machine has: the kernel's boot id. Empty: not known. */
void perf_cpu_machine(char *name, size_t len);
/*
 * Returns the load from `before` to `after`. `helper_user_s`: the user time of the other end, if it
 * runs on this machine. With too few ticks the load is not known.
 */
struct perf_cpu_load perf_cpu_load_between(const struct perf_cpu_times *before,
                                           const struct perf_cpu_times *after, double helper_user_s,
                                           double tick_hz);

#endif
