/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/doctor_advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "tools/perf/message.h"
#include "tools/perf/report.h"

enum {
    RATES_MIN = 3, /* as many tell whether more ports have more */
};

#define CAP_GROWTH 1.6 /* times the rate with more ports: flows are what bounds it */
#define CAP_STEADY 0.8 /* times the rate with fewer ports: a cap leaves no less to more of them */
#define CORE_SHARE 0.85

void perf_doctor_find(struct json_object *report, const char *name, const char *advice,
                      const char *format, ...)
{
    struct json_object *findings = NULL, *one = json_object_new_object();
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!json_object_object_get_ex(report, "findings", &findings)) {
        findings = json_object_new_array();
        json_object_object_add(report, "findings", findings);
    }
    json_add_string(one, "name", name);
    json_add_string(one, "text", text);
    json_add_string(one, "advice", advice);
    json_object_array_add(findings, one);
}

/* ------------------------------------------------------------------------------------------ runs */

static struct json_object *member(struct json_object *object, const char *name)
{
    struct json_object *m = NULL;

    (void)json_object_object_get_ex(object, name, &m);
    return m;
}

static size_t num_rates(struct json_object *report)
{
    struct json_object *rates = member(report, "rates");

    return rates ? json_object_array_length(rates) : 0;
}

static double figure_at(struct json_object *report, size_t i, const char *name)
{
    return json_get_number(json_object_array_get_idx(member(report, "rates"), i), name);
}

static double rate_at(struct json_object *report, size_t i)
{
    return figure_at(report, i, "bw_gbps");
}

bool perf_doctor_seems_capped(struct json_object *report)
{
    size_t num = num_rates(report);

    for (size_t i = 1; i < num; i++) {
        if (!(rate_at(report, i) >= CAP_STEADY * rate_at(report, i - 1)))
            return false;
    }
    return num >= RATES_MIN &&
           rate_at(report, num - 1) >= CAP_GROWTH * CAP_GROWTH * rate_at(report, 0) &&
           rate_at(report, num - 1) >= CAP_GROWTH * rate_at(report, 1);
}

/*
 * Is a flow slower than the network? One port's rate is not the cap itself: of what a policer drops
 * much is sent again.
 */
static void judge_rates(struct json_object *report)
{
    double flow = 0;
    char rates[200] = "";

    if (!perf_doctor_seems_capped(report))
        return;
    for (size_t i = 0; i < num_rates(report); i++) {
        double ports = figure_at(report, i, "source_ports");

        flow = fmax(flow, rate_at(report, i) / ports);
        snprintf(rates + strlen(rates), sizeof(rates) - strlen(rates), "%s%.0f %.2f", i ? ", " : "",
                 ports, rate_at(report, i));
    }
    perf_doctor_find(
        report, "flow_cap", "spray: mrd does so by itself; for TCP programs there is mrd_forward",
        "a flow is capped, or tied to one of several paths, at about %.2f Gb/s: by source ports "
        "%s Gb/s; one TCP connection %.2f",
        flow, rates, json_get_number(member(report, "tcp"), "bw_gbps"));
}

/* An end has one thread for its packets. */
static void judge_cores(struct json_object *report, const char *end, const char *figure)
{
    size_t num = num_rates(report);

    if (num == 0 || !(figure_at(report, num - 1, figure) >= CORE_SHARE))
        return;
    perf_doctor_find(
        report, "core_bound",
        "more threads or contexts, larger packets, or the link is not the limit",
        "the %s uses %.2f cores at %.2f Gb/s, and has one thread: the processor is the "
        "limit",
        end, figure_at(report, num - 1, figure), rate_at(report, num - 1));
}

/* Figures of a machine that others used meanwhile are none of the network. */
static void judge_disturbance(struct json_object *report)
{
    size_t num = num_rates(report), disturbed = 0;

    for (size_t i = 0; i < num; i++)
        disturbed += (size_t)json_object_get_boolean(
            member(json_object_array_get_idx(member(report, "rates"), i), "disturbed"));
    if (disturbed)
        perf_doctor_find(report, "disturbed", "measure again when the hosts are idle",
                         "in %zu of %zu runs others had much of a host's processors: rates may be "
                         "higher",
                         disturbed, num);
}

static void judge_host(struct json_object *report, const char *end)
{
    struct json_object *facts = member(member(report, "facts"), end);
    uint64_t wanted = 0, granted = 0;

    if (!facts)
        return;
    (void)json_get_u64(facts, "rcvbuf_wanted", &wanted);
    (void)json_get_u64(facts, "rcvbuf_granted", &granted);
    if (granted < wanted)
        perf_doctor_find(report, "rcvbuf", "sysctl -w net.core.rmem_max=4194304",
                         "the %s grants %llu bytes of receive buffer, %llu are wanted", end,
                         (unsigned long long)granted, (unsigned long long)wanted);
    if (!json_object_get_boolean(member(facts, "gso")))
        perf_doctor_find(report, "no_gso", "a kernel from 4.18 on",
                         "the %s has no UDP segmentation (GSO): more system calls", end);
    if (!json_object_get_boolean(member(facts, "gro")))
        perf_doctor_find(report, "no_gro", "a kernel from 5.0 on",
                         "the %s has no UDP receive coalescing (GRO)", end);
}

/* Counters of the cloud's own that grew meanwhile. */
static void judge_allowances(struct json_object *report, const char *end)
{
    struct json_object *before = member(member(member(report, "facts"), end), "allowances");
    struct json_object *after = member(member(member(report, "facts_after"), end), "allowances");

    if (!before || !after)
        return;
    json_object_object_foreach(after, name, value)
    {
        int64_t grown = json_object_get_int64(value) - json_object_get_int64(member(before, name));

        if (grown > 0)
            perf_doctor_find(report, "allowance", "the instance's own limit: a larger one has more",
                             "%s: %s grew by %lld meanwhile", end, name, (long long)grown);
    }
}

void perf_doctor_judge_runs(struct json_object *report)
{
    judge_rates(report);
    judge_cores(report, "client", "cores_client");
    judge_cores(report, "server", "cores_server");
    judge_disturbance(report);
    judge_host(report, "client");
    judge_host(report, "server");
    judge_allowances(report, "client");
    judge_allowances(report, "server");
    if (!member(report, "findings"))
        json_object_object_add(report, "findings", json_object_new_array());
}

/* ----------------------------------------------------------------------------------------- print */

/* A rate, in digits that tell something of a slow one, too. */
static const char *rate_text(double gbps, char text[32])
{
    bool slow = gbps < 0.1;

    snprintf(text, 32, "%.2f %s", slow ? 1000 * gbps : gbps, slow ? "Mb/s" : "Gb/s");
    return text;
}

static void print_runs(FILE *table, struct json_object *report)
{
    struct json_object *latency = member(report, "latency");
    char text[32];

    if (latency)
        fprintf(table, " latency, half a round trip of 64 bytes: %.1f us, 99%% %.1f us\n",
                json_get_number(latency, "lat_us.p50"), json_get_number(latency, "lat_us.p99"));
    for (size_t i = 0; i < num_rates(report); i++)
        fprintf(table, " %2.0f source ports: %12s, %.2f%% sent again, %.2f CPU s a GB\n",
                figure_at(report, i, "source_ports"), rate_text(rate_at(report, i), text),
                100 * figure_at(report, i, "packets_retransmitted") /
                    figure_at(report, i, "packets_sent"),
                figure_at(report, i, "cpu_s_per_gb"));
    if (member(report, "tcp"))
        fprintf(table, " one TCP connection: %s\n",
                rate_text(json_get_number(member(report, "tcp"), "bw_gbps"), text));
}

void perf_doctor_print(FILE *table, struct json_object *report)
{
    struct json_object *findings = member(report, "findings");

    fprintf(table, "\n %s to %s\n", json_get_string(report, "client"),
            json_get_string(report, "server"));
    print_runs(table, report);
    fprintf(table, " largest MTU that came through: %lld bytes\n",
            (long long)json_object_get_int64(member(report, "mtu_through")));
    if (json_object_array_length(findings) == 0)
        fprintf(table, " nothing is in the way\n");
    for (size_t i = 0; i < json_object_array_length(findings); i++) {
        struct json_object *one = json_object_array_get_idx(findings, i);

        fprintf(table, " %s: %s\n   %s\n", json_get_string(one, "name"),
                json_get_string(one, "text"), json_get_string(one, "advice"));
    }
}
