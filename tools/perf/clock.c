/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/resource.h>
#include <time.h>

#include "tools/perf/perf.h"

uint64_t perf_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * PERF_SEC_NS + (uint64_t)ts.tv_nsec;
}

double perf_cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
