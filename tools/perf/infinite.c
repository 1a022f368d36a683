/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/infinite.h"

#include <signal.h>
#include <stdio.h>

#include "tools/perf/run.h"

static volatile sig_atomic_t ended;
static volatile sig_atomic_t client_pid;

static void end_run(int sig)
{
    (void)sig;
    ended = 1;
}

static void forward_signal(int sig)
{
    if (client_pid)
        kill((pid_t)client_pid, sig);
}

static void on_signals(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void perf_infinite_catch_signals(void)
{
    on_signals(end_run);
}

bool perf_infinite_is_over(void)
{
    return ended;
}

void perf_infinite_forward_signals(pid_t client)
{
    client_pid = client;
    on_signals(forward_signal);
}

static void print_latency(FILE *f, struct perf_run *run)
{
    bool half = !perf_test_is_request(run->params.test);
    struct perf_latency_summary s;

    if (perf_latency_summary(&run->last_second.latency, half, &s))
        fprintf(f, ", us: p50 %.2f, p99 %.2f, max %.2f", s.p50_us, s.p99_us, s.max_us);
    perf_latency_reset(&run->last_second.latency);
}

void perf_infinite_print(struct perf_run *run, uint64_t now_ns, uint64_t done)
{
    FILE *f = run->options->out_json ? stderr : stdout;
    uint64_t begin_ns = run->last_second.end_ns ? run->last_second.end_ns : run->start_ns;
    uint64_t messages = done - run->last_second.done;
    double seconds = (double)(now_ns - begin_ns) / 1e9;

    if (run->start_ns == 0 || now_ns < begin_ns + PERF_SEC_NS)
        return;
    fprintf(f, "%.0f s: %llu %s", (double)(now_ns - run->start_ns) / 1e9,
            (unsigned long long)messages,
            perf_test_is_lat(run->params.test) ? "exchanges" : "messages");
    if (perf_test_is_lat(run->params.test))
        print_latency(f, run);
    else
        fprintf(f, ", %.2f Gb/s, %.3f M msg/s",
                8e-9 * (double)messages * (double)run->params.size_bytes / seconds,
                1e-6 * (double)messages / seconds);
    fputc('\n', f);
    if (fflush(f) || ferror(f))
        ended = 1; /* nobody listens; the table that cannot be written either makes it a failure */
    run->last_second.end_ns = now_ns;
    run->last_second.done = done;
}
