/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/cpu_load.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>

#include "tools/perf/perf.h"

enum { TICKS_MIN = 10, LINE_BYTES = 256 };

#define STOLEN_MOST 0.02 /* by the host of a virtual machine */
#define OTHERS_MOST 0.05 /* by other processes... */
#define IDLE_LEAST  0.05 /* ...where less than this is left idle */

int perf_cpu_parse(const char *text, struct perf_cpu_times *times)
{
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;

    if (sscanf(text,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal) != 8)
        return -EINVAL;
    times->user = user + nice; /* guests are in it */
    times->idle = idle + iowait;
    times->steal = steal;
    times->total = times->user + system + times->idle + irq + softirq + steal;
    return 0;
}

void perf_cpu_read(struct perf_cpu_times *times)
{
    char line[LINE_BYTES];
    struct rusage own;

    getrusage(RUSAGE_SELF, &own);
    *times = (struct perf_cpu_times){.own_user_s = (double)own.ru_utime.tv_sec +
                                                   1e-6 * (double)own.ru_utime.tv_usec};
    if (perf_read_line("/proc/stat", line, sizeof(line)))
        (void)perf_cpu_parse(line, times); /* the times of an unknown format are 0 */
}

void perf_cpu_machine(char *name, size_t len)
{
    if (!perf_read_line("/proc/sys/kernel/random/boot_id", name, len))
        name[0] = '\0';
}

struct perf_cpu_load perf_cpu_load_between(const struct perf_cpu_times *before,
                                           const struct perf_cpu_times *after, double helper_user_s,
                                           double tick_hz)
{
    double total = (double)after->total - (double)before->total;
    double own_s = after->own_user_s - before->own_user_s + helper_user_s;
    double others = (double)after->user - (double)before->user - own_s * tick_hz;

    if (before->total == 0 || total < TICKS_MIN)
        return (struct perf_cpu_load){.own_user_s = own_s};
    struct perf_cpu_load load = {
        .known = true,
        .own_user_s = own_s,
        .stolen = ((double)after->steal - (double)before->steal) / total,
        .others = fmin(1, fmax(0, others / total)),
    };
    double idle = ((double)after->idle - (double)before->idle) / total;
    load.busy = load.stolen > STOLEN_MOST || (load.others > OTHERS_MOST && idle < IDLE_LEAST);
    return load;
}
