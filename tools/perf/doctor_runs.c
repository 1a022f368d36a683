/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/doctor_runs.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/perf/doctor_advice.h"
#include "tools/perf/doctor_probe.h"
#include "tools/perf/message.h"
#include "tools/perf/report.h"
#include "tools/perf/run.h"
#include "tools/perf/transport.h"

enum {
    RUN_S = 1,
    HANDSHAKE_RTTS = 12, /* of a run: it is told, its ends connect, both end */
    RUN_MS = RUN_S * 1000 + 1500,
    BW_BYTES = 256 << 10,
    BW_BYTES_MIN = 4 << 10,
    DEPTH = 32,
    LAT_BYTES = 64,
    LAT_WARMUP_NS = 100 * 1000 * 1000,
    LAT_WARMUP_MAX = 200,
};

#define SLOW_GBPS   0.03 /* below, what the default depth has in flight lasts longer than a run */
#define IN_FLIGHT_S 0.5

static const uint32_t rate_paths[] = {1, 2, 4, 8, 32};

struct doctor {
    const struct perf_options *options;
    struct perf_control *control;
    struct json_object *report;
    uint64_t end_ns;
    double gbps; /* what the path is likely to carry; NAN: not known */
    char *error;
};

/*
 * Where a firewall lets only some source ports pass: from these. Returns how many of `paths` there
 * are.
 */
static uint32_t use_ports(struct perf_options *o, struct json_object *report, uint32_t paths)
{
    struct json_object *through = NULL;

    (void)json_object_object_get_ex(report, "ports_through", &through);
    o->num_source_ports = (unsigned)json_object_array_length(through);
    if (o->num_source_ports == PERF_PROBE_PORTS) {
        o->num_source_ports = 0; /* any will do */
        return paths;
    }
    if (paths && paths < o->num_source_ports)
        o->num_source_ports = paths;
    for (unsigned i = 0; i < o->num_source_ports; i++)
        o->source_ports[i] = (uint16_t)json_u32_at(through, i);
    return o->num_source_ports;
}

/* A slow path gets no more than it carries in half a second: all of it must be acked in the end. */
static void size_bw(const struct doctor *d, struct perf_params *p)
{
    double bytes = d->gbps * 1e9 / 8 * IN_FLIGHT_S / DEPTH;

    p->size_bytes = BW_BYTES;
    p->tx_depth = DEPTH;
    if (d->gbps < SLOW_GBPS)
        p->size_bytes = (uint64_t)fmin(fmax(bytes, BW_BYTES_MIN), BW_BYTES);
}

/* What each end has of a core, from the run's beginning to its end. */
static void add_cores(const struct perf_run *run, struct json_object *report)
{
    double seconds = (double)(clock_now_ns() - run->start_ns) / 1e9;
    double bytes = json_get_number(report, "bw_gbps") / 8 * json_get_number(report, "seconds");
    double both_s = json_get_number(report, "cpu_s_per_gb") * bytes;

    json_add_rounded(report, "cores_client", run->cpu.used_s / seconds);
    json_add_rounded(report, "cores_server", fmax(both_s - run->cpu.used_s, 0) / seconds);
}

/* One run; its report, or NULL with a sentence. 0 iterations: for a second. */
static struct json_object *run_test(struct doctor *d, const char *transport, enum perf_test test,
                                    uint32_t paths, uint64_t iterations)
{
    static struct perf_options own; /* large */
    uint64_t rtt_ns = d->control->rtt_ns ? d->control->rtt_ns : 1;
    struct perf_run run = {.options = &own,
                           .control = d->control,
                           .params = d->options->params,
                           .deadline_ns = d->end_ns};
    char label[32];

    own = *d->options;
    uint32_t used = use_ports(&own, d->report, paths);
    snprintf(label, sizeof(label), "doctor: %s", perf_test_name(test));
    run.label = label;
    run.params.test = test;
    snprintf(run.params.transport, sizeof(run.params.transport), "%s", transport);
    run.params.paths = strcmp(transport, "tcp") == 0 ? 0 : used;
    run.params.iterations = iterations;
    run.params.duration_s = iterations ? 0 : RUN_S;
    snprintf(run.params.wait, sizeof(run.params.wait), "sleep"); /* CPU time tells then */
    run.params.size_bytes = LAT_BYTES;
    if (!perf_test_is_lat(test))
        size_bw(d, &run.params);
    perf_params_settle(&run.params);
    if (perf_test_is_lat(test))
        run.params.warmup =
            (uint32_t)fmin(fmax((double)LAT_WARMUP_NS / (double)rtt_ns, 1), LAT_WARMUP_MAX);
    struct json_object *report = perf_run_client(&run);
    if (!report) {
        perf_fail(d->error, -EIO, "%s %s: %.400s", transport, perf_test_name(test), run.error);
        return NULL;
    }
    if (!perf_test_is_lat(test)) {
        add_cores(&run, report);
        json_add_u64(report, "source_ports", strcmp(transport, "tcp") == 0 ? 1 : used);
    }
    return report;
}

static bool has_time(const struct doctor *d)
{
    return clock_now_ns() + RUN_MS * PERF_MSEC_NS + HANDSHAKE_RTTS * d->control->rtt_ns < d->end_ns;
}

/* A run whose report goes under `name`, or if that is an array into it. 1: it is left out. */
static int add_test(struct doctor *d, const char *name, const char *transport, enum perf_test test,
                    uint32_t paths)
{
    struct json_object *place = NULL, *one;

    if (!has_time(d))
        return 1;
    one = run_test(d, transport, test, paths, 0);
    if (!one)
        return -EIO;
    if (json_object_object_get_ex(d->report, name, &place))
        json_object_array_add(place, one);
    else
        json_object_object_add(d->report, name, one);
    if (strcmp(name, "rates") == 0)
        d->gbps = json_get_number(one, "bw_gbps");
    return 0;
}

/* With how many ports is there a difference? All ways to have them, without repetition. */
static int add_rates(struct doctor *d)
{
    static struct perf_options own; /* large */
    uint32_t last = 0;
    int rc = 0;

    json_object_object_add(d->report, "rates", json_object_new_array());
    for (size_t i = 0; i < sizeof(rate_paths) / sizeof(rate_paths[0]) && rc == 0; i++) {
        uint32_t paths = use_ports(&own, d->report, rate_paths[i]);
        if (paths > last)
            rc = add_test(d, "rates", "mrd-udp", PERF_WRITE_BW, rate_paths[i]);
        last = paths;
    }
    return rc;
}

/*
 * Where one port seems to be capped it has a second try: a host that was busy meanwhile looks alike.
 * The better one counts.
 */
static int try_one_again(struct doctor *d)
{
    struct json_object *rates = NULL;

    if (!perf_doctor_seems_capped(d->report) || !has_time(d))
        return 0;
    struct json_object *again = run_test(d, "mrd-udp", PERF_WRITE_BW, 1, 0);
    if (!again)
        return -EIO;
    (void)json_object_object_get_ex(d->report, "rates", &rates);
    struct json_object *first = json_object_array_get_idx(rates, 0);
    if (json_get_number(again, "bw_gbps") > json_get_number(first, "bw_gbps"))
        json_object_array_put_idx(rates, 0, again);
    else
        json_object_put(again);
    return 0;
}

/* A few packets tell a slow path, which must not get more than it can carry. */
static int sound_out(struct doctor *d)
{
    d->gbps = 0;
    struct json_object *one = run_test(d, "mrd-udp", PERF_WRITE_BW, 1, DEPTH);

    if (!one)
        return -EIO;
    d->gbps = json_get_number(one, "bw_gbps");
    json_object_put(one);
    return 0;
}

int perf_doctor_run(const struct perf_options *o, struct perf_control *c,
                    struct json_object *report, uint64_t end_ns, char *error)
{
    struct doctor d = {o, c, report, end_ns, 0, error};
    int rc = add_test(&d, "latency", "mrd-udp", PERF_WRITE_LAT, 0);

    if (rc == 0)
        rc = sound_out(&d);
    if (rc == 0)
        rc = add_rates(&d);
    if (rc == 0)
        rc = add_test(&d, "tcp", "tcp", PERF_WRITE_BW, 1);
    if (rc == 0)
        rc = try_one_again(&d);
    bool late = rc > 0 || (rc < 0 && clock_now_ns() >= end_ns);
    if (late)
        perf_doctor_find(report, "no_time",
                         "measure by hand what is missing: 'mrd_perf write_bw -D 10'",
                         "not all could be measured in half a minute%s%s", rc < 0 ? ": " : "",
                         rc < 0 ? error : "");
    else if (rc < 0)
        perf_doctor_find(report, "run_failed",
                         "see that the server still runs, and that firewalls let TCP and UDP to "
                         "ephemeral ports pass",
                         "%s", error);
    if (late)
        error[0] = '\0';
    return rc < 0 ? rc : 0;
}
