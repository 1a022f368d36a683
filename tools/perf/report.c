/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/perf/json.h"
#include "tools/perf/transport.h"

static uint64_t finding(const struct perf_run *run, const char *key)
{
    uint64_t value = 0;

    (void)perf_json_get_u64(run->findings, key, &value); /* a missing one is 0: nothing arrived */
    return value;
}

/*
 * From the first arrival to the last; what had come when the first was noticed is not counted. If all came at once,
 * the client's time is the best there is.
 */
static void add_rates(const struct perf_run *run, struct json_object *report)
{
    uint64_t first_ns = finding(run, "first_ns"), last_ns = finding(run, "last_ns");
    uint64_t first = finding(run, "first_bytes"), total = finding(run, "total_bytes");
    uint64_t received = finding(run, "received");
    double size = (double)run->params.size_bytes;
    double seconds = (double)(last_ns - first_ns) / 1e9;
    double bytes = (double)(total - first);
    double cpu_s = 0;

    if (last_ns <= first_ns) {
        seconds = (double)(run->end_ns - run->start_ns) / 1e9;
        bytes = (double)total;
    }
    double rate = size > 0 ? bytes / seconds / size : (double)received / seconds;
    (void)perf_json_get_double(run->findings, "cpu_s", &cpu_s);
    json_object_object_add(report, "seconds", perf_json_number(seconds));
    json_object_object_add(report, "bw_gbps", perf_json_number(bytes * 8e-9 / seconds));
    json_object_object_add(report, "msg_rate_mps", perf_json_number(rate / 1e6));
    json_object_object_add(
        report, "cpu_s_per_gb",
        perf_json_number(total ? (run->cpu_s + cpu_s) / ((double)total / 1e9) : NAN));
}

static void add_latency(const struct perf_run *run, struct json_object *report)
{
    struct perf_latency latency = run->latency; /* sorting leaves the set as it is */
    struct perf_latency_summary s;

    json_object_object_add(report, "seconds",
                           perf_json_number((double)(run->end_ns - run->start_ns) / 1e9));
    if (!perf_latency_summary(&latency, &s))
        return;
    struct json_object *lat = json_object_new_object();
    json_object_object_add(lat, "min", perf_json_number(s.min_us));
    json_object_object_add(lat, "p50", perf_json_number(s.p50_us));
    json_object_object_add(lat, "p99", perf_json_number(s.p99_us));
    json_object_object_add(lat, "p999", perf_json_number(s.p999_us));
    json_object_object_add(lat, "max", perf_json_number(s.max_us));
    json_object_object_add(report, "lat_us", lat);
}

static struct perf_sample sample_at(struct json_object *samples, size_t i)
{
    struct json_object *pair = json_object_array_get_idx(samples, i);

    if (!json_object_is_type(pair, json_type_array) || json_object_array_length(pair) != 2)
        return (struct perf_sample){0};
    return (struct perf_sample){
        json_object_get_uint64(json_object_array_get_idx(pair, 0)),
        json_object_get_uint64(json_object_array_get_idx(pair, 1)),
    };
}

/* The receiver's arrivals an interval, and beside each what the sender repeated meanwhile. */
static void add_samples(const struct perf_run *run, struct json_object *report)
{
    struct json_object *raw, *samples = json_object_new_array();
    int64_t offset_ns = run->control->clock_offset_ns;

    json_object_object_add(report, "samples", samples);
    if (!json_object_object_get_ex(run->findings, "samples", &raw) ||
        !json_object_is_type(raw, json_type_array))
        return;
    struct perf_sample first = sample_at(raw, 0), last = first;
    for (size_t i = 1; i < json_object_array_length(raw); i++) {
        struct perf_sample s = sample_at(raw, i);
        struct json_object *sample = json_object_new_object();
        double dt_ns = (double)(s.t_ns - last.t_ns);
        json_object_object_add(sample, "t_ms",
                               perf_json_number((double)(s.t_ns - first.t_ns) / 1e6));
        json_object_object_add(sample, "bw_gbps",
                               perf_json_number((double)(s.total - last.total) * 8 / dt_ns));
        uint64_t resent = perf_sampler_at(&run->resent, s.t_ns - (uint64_t)offset_ns) -
                          perf_sampler_at(&run->resent, last.t_ns - (uint64_t)offset_ns);
        json_object_object_add(sample, "packets_retransmitted",
                               run->resent.count ? json_object_new_uint64(resent) : NULL);
        json_object_array_add(samples, sample);
        last = s;
    }
}

struct json_object *perf_report_make(const struct perf_run *run)
{
    static const char *const keys[] = {
        "seconds",
        "packet_bytes",
        "paths",
        "spray",
        "cc",
        "order",
        "drop",
        "bw_gbps",
        "msg_rate_mps",
        "lat_us",
        "cpu_s_per_gb",
        "packets_sent",
        "packets_retransmitted",
        "packets_spurious",
        "bytes_sent",
        "verified",
        "paths_used",
        "samples",
        "disturbed",
        "cpu_others",
        "cpu_stolen",
    };
    struct json_object *report = json_object_new_object(), *verified;

    json_object_object_add(report, "test",
                           json_object_new_string(perf_test_name(run->params.test)));
    json_object_object_add(report, "transport", json_object_new_string(run->params.transport));
    json_object_object_add(report, "device", NULL);
    json_object_object_add(report, "size_bytes", json_object_new_uint64(run->params.size_bytes));
    json_object_object_add(report, "iterations", json_object_new_uint64(run->sent));
    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        json_object_object_add(report, keys[i], NULL); /* in this order, null unless set below */
    if (perf_test_is_lat(run->params.test)) {
        add_latency(run, report);
    } else {
        add_rates(run, report);
        add_samples(run, report);
    }
    /* Both ends have a say: the client's own findings count in latency tests, where it receives, too. */
    if (json_object_object_get_ex(run->findings, "verified", &verified))
        json_object_object_add(
            report, "verified",
            json_object_new_boolean(json_object_get_boolean(verified) && run->verified != 0));
    if (run->load.known) {
        json_object_object_add(report, "disturbed", json_object_new_boolean(run->load.busy));
        json_object_object_add(report, "cpu_others", perf_json_number(run->load.others));
        json_object_object_add(report, "cpu_stolen", perf_json_number(run->load.stolen));
    }
    run->ops->stats(run, report);
    return report;
}

bool perf_report_passed(struct json_object *report)
{
    struct json_object *verified;

    return !json_object_object_get_ex(report, "verified", &verified) || !verified ||
           json_object_get_boolean(verified);
}

double perf_report_number(struct json_object *report, const char *key)
{
    const char *dot = strchr(key, '.');
    char outer[32];
    double value = NAN;

    if (dot) {
        snprintf(outer, sizeof(outer), "%.*s", (int)(dot - key), key);
        if (!json_object_object_get_ex(report, outer, &report) || !report)
            return NAN;
        key = dot + 1;
    }
    return perf_json_get_double(report, key, &value) ? NAN : value;
}

int perf_report_write(const struct perf_options *options, struct json_object *json, char *error,
                      size_t len)
{
    const char *text =
        json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
    int rc = 0;

    if (options->out_json && (puts(text) == EOF || fflush(stdout) == EOF)) {
        rc = -errno;
        snprintf(error, len, "cannot write to stdout: %s", strerror(-rc));
    }
    if (options->out_json_file[0]) {
        FILE *f = fopen(options->out_json_file, "w");
        if (!f || fprintf(f, "%s\n", text) < 0) {
            rc = -errno;
            snprintf(error, len, "cannot write %s: %s", options->out_json_file, strerror(-rc));
        }
        if (f && fclose(f) && rc == 0) {
            rc = -errno;
            snprintf(error, len, "cannot write %s: %s", options->out_json_file, strerror(-rc));
        }
    }
    json_object_put(json);
    return rc;
}
