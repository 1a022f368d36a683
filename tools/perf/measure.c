/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    SAMPLES_MAX = 1 << 20, /* hours at the default interval */
    SAMPLES_FIRST = 1024,
    LATENCIES_FIRST = 1 << 20,
    TICKS_MIN = 10,
    LINE_BYTES = 256,
};

void perf_sampler_start(struct perf_sampler *s, uint32_t interval_ms, uint64_t now_ns,
                        uint64_t total)
{
    *s = (struct perf_sampler){.interval_ns = interval_ms * PERF_MSEC_NS};
    perf_sampler_add(s, now_ns, total);
}

void perf_sampler_fini(struct perf_sampler *s)
{
    free(s->samples);
    *s = (struct perf_sampler){.due_ns = UINT64_MAX};
}

void perf_sampler_add(struct perf_sampler *s, uint64_t now_ns, uint64_t total)
{
    if (s->count == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : SAMPLES_FIRST;
        struct perf_sample *samples =
            cap > SAMPLES_MAX ? NULL : realloc(s->samples, cap * sizeof(samples[0]));
        if (!samples) {
            s->due_ns = UINT64_MAX;
            return;
        }
        s->samples = samples;
        s->cap = cap;
    }
    s->samples[s->count++] = (struct perf_sample){now_ns, total};
    /* Due times are multiples of the interval: a late look does not shift those that follow. */
    uint64_t start_ns = s->samples[0].t_ns;
    s->due_ns = start_ns + ((now_ns - start_ns) / s->interval_ns + 1) * s->interval_ns;
}

uint64_t perf_sampler_at(const struct perf_sampler *s, uint64_t t_ns)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->samples[middle].t_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? s->samples[low - 1].total : 0;
}

void perf_meter_init(struct perf_meter *m, uint32_t interval_ms)
{
    *m = (struct perf_meter){.interval_ms = interval_ms, .sampler.due_ns = UINT64_MAX};
}

void perf_meter_fini(struct perf_meter *m)
{
    perf_sampler_fini(&m->sampler);
}

void perf_meter_update(struct perf_meter *m, uint64_t now_ns, uint64_t total_bytes)
{
    if (total_bytes > m->total_bytes) {
        if (m->first_ns == 0) {
            m->first_ns = now_ns;
            m->first_bytes = total_bytes;
            m->cpu_start_s = perf_cpu_s();
            perf_sampler_start(&m->sampler, m->interval_ms, now_ns, total_bytes);
        }
        m->last_ns = now_ns;
        m->total_bytes = total_bytes;
    }
    if (perf_sampler_due(&m->sampler, now_ns))
        perf_sampler_add(&m->sampler, now_ns, m->total_bytes);
}

void perf_meter_stop(struct perf_meter *m)
{
    if (m->first_ns)
        m->cpu_s = perf_cpu_s() - m->cpu_start_s;
}

int perf_latency_init(struct perf_latency *l, uint64_t expected)
{
    size_t cap = expected && expected < PERF_LATENCY_SAMPLES ? (size_t)expected : LATENCIES_FIRST;

    *l = (struct perf_latency){.cap = cap, .rng = 0x9e3779b97f4a7c15ull, .min_ns = UINT64_MAX};
    l->rtt_ns = malloc(cap * sizeof(l->rtt_ns[0]));
    return l->rtt_ns ? 0 : -ENOMEM;
}

void perf_latency_fini(struct perf_latency *l)
{
    free(l->rtt_ns);
    l->rtt_ns = NULL;
}

void perf_latency_reset(struct perf_latency *l)
{
    l->count = 0;
    l->seen = l->max_ns = 0;
    l->min_ns = UINT64_MAX;
}

/*
 * Returns the index for a new sample. Memory doubles up to a limit; after that the sample replaces
 * a random one, or none (Vitter's algorithm R).
 */
static size_t place_for(struct perf_latency *l)
{
    if (l->count == l->cap && l->cap < PERF_LATENCY_SAMPLES) {
        size_t cap = 2 * l->cap < PERF_LATENCY_SAMPLES ? 2 * l->cap : PERF_LATENCY_SAMPLES;
        uint32_t *rtt_ns = realloc(l->rtt_ns, cap * sizeof(rtt_ns[0]));
        if (rtt_ns) {
            l->rtt_ns = rtt_ns;
            l->cap = cap;
        }
    }
    if (l->count < l->cap)
        return l->count++;
    l->rng ^= l->rng << 13;
    l->rng ^= l->rng >> 7;
    l->rng ^= l->rng << 17;
    return (size_t)(l->rng % l->seen);
}

void perf_latency_add(struct perf_latency *l, uint64_t rtt_ns)
{
    uint32_t value = rtt_ns < UINT32_MAX ? (uint32_t)rtt_ns : UINT32_MAX;

    l->seen++;
    size_t place = place_for(l);
    if (place < l->count)
        l->rtt_ns[place] = value;
    if (rtt_ns < l->min_ns)
        l->min_ns = rtt_ns;
    if (rtt_ns > l->max_ns)
        l->max_ns = rtt_ns;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Nearest rank. */
static double at_share(const struct perf_latency *l, double share)
{
    size_t rank = (size_t)(share * (double)l->count);

    return l->rtt_ns[rank < l->count ? rank : l->count - 1];
}

bool perf_latency_summary(struct perf_latency *l, bool half, struct perf_latency_summary *summary)
{
    double scale = half ? 0.5e-3 : 1e-3;

    if (l->count == 0)
        return false;
    qsort(l->rtt_ns, l->count, sizeof(l->rtt_ns[0]), compare_u32);
    *summary = (struct perf_latency_summary){
        .min_us = scale * (double)l->min_ns,
        .p50_us = scale * at_share(l, 0.5),
        .p99_us = scale * at_share(l, 0.99),
        .p999_us = scale * at_share(l, 0.999),
        .max_us = scale * (double)l->max_ns,
    };
    return true;
}

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
