/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is measured: bytes over time with samples, latencies, and how busy the machine was.
 *
 * Meter: perf_meter_init(), perf_meter_update() as often as one looks, perf_meter_stop(). Sampler:
 * perf_sampler_add() when perf_sampler_due(). Latency: perf_latency_add() for each exchange, then
 * perf_latency_summary().
 */
#ifndef MRD_PERF_MEASURE_H
#define MRD_PERF_MEASURE_H

#include "tools/perf/perf.h"

/* A running total as it stood at a time. */
struct perf_sample {
    uint64_t t_ns;
    uint64_t total;
};

struct perf_sampler {
    uint64_t interval_ns;
    uint64_t due_ns; /* UINT64_MAX: no memory for more */
    struct perf_sample *samples;
    size_t count, cap;
};

/* The first sample is taken now. */
void perf_sampler_start(struct perf_sampler *s, uint32_t interval_ms, uint64_t now_ns,
                        uint64_t total);
void perf_sampler_fini(struct perf_sampler *s);
static inline bool perf_sampler_due(const struct perf_sampler *s, uint64_t now_ns)
{
    return now_ns >= s->due_ns;
}
void perf_sampler_add(struct perf_sampler *s, uint64_t now_ns, uint64_t total);
/* The total as it stood at t_ns: that of the last sample until then. 0 before the first. */
uint64_t perf_sampler_at(const struct perf_sampler *s, uint64_t t_ns);

/* Arrivals at the receiver, from the first to the last. */
struct perf_meter {
    uint32_t interval_ms;
    uint64_t first_ns, last_ns; /* 0: nothing yet */
    uint64_t first_bytes,
        total_bytes; /* of the total, what had arrived when the first arrival was noticed */
    double cpu_start_s, cpu_s;
    struct perf_sampler sampler;
};

void perf_meter_init(struct perf_meter *m, uint32_t interval_ms);
void perf_meter_fini(struct perf_meter *m);
/* Now total_bytes have arrived. */
void perf_meter_update(struct perf_meter *m, uint64_t now_ns, uint64_t total_bytes);
/* No more will arrive. */
void perf_meter_stop(struct perf_meter *m);

/* Round trips. From PERF_LATENCY_SAMPLES on, a random choice of them is kept. */
struct perf_latency {
    uint32_t *rtt_ns; /* longer than 4 s counts as that much */
    size_t count, cap;
    uint64_t seen;
    uint64_t rng;
    uint64_t min_ns, max_ns;
};

enum { PERF_LATENCY_SAMPLES = 16 << 20 };

struct perf_latency_summary {
    double min_us, p50_us, p99_us, p999_us, max_us;
};

/* Room for `expected` samples at once, so that the test does not wait for memory. 0 or -ENOMEM. */
int perf_latency_init(struct perf_latency *l, uint64_t expected);
void perf_latency_fini(struct perf_latency *l);
/* Forget all samples. */
void perf_latency_reset(struct perf_latency *l);
void perf_latency_add(struct perf_latency *l, uint64_t rtt_ns);
/* Of round trips, or with `half` of half ones. Sorts. False if there is no sample. */
bool perf_latency_summary(struct perf_latency *l, bool half, struct perf_latency_summary *summary);

/*
 * Was the machine too busy during a run for the figures to count? perf_cpu_read() before and after,
 * then perf_cpu_load_between(). Of other processes only user time counts, because the kernel may be
 * working for mrd_perf.
 */
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
