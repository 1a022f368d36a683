/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/perf/bw.h"
#include "tools/perf/message.h"
#include "tools/perf/report.h"
#include "tools/perf/threads.h"

/* 0: it is missing, because nothing arrived. */
static uint64_t number_at(struct json_object *counts, const char *key)
{
    return json_object_get_uint64(json_object_object_get(counts, key));
}

/* What a meter counted, or the sum of two. */
struct rates {
    double seconds, gbps, mps, bytes;
    uint64_t received;
};

/*
 * Rates are measured from the first arrival to the last, without the bytes that had come when the
 * first was noticed. If all came at once, the client's time is used.
 */
static struct rates rates_of(const struct perf_run *run, struct json_object *counts)
{
    uint64_t first_ns = number_at(counts, "first_ns"), last_ns = number_at(counts, "last_ns");
    uint64_t first = number_at(counts, "first_bytes"), total = number_at(counts, "total_bytes");
    double size = (double)run->params.size_bytes;
    double seconds = (double)(last_ns - first_ns) / 1e9;
    double bytes = (double)(total - first);
    struct rates r = {.bytes = (double)total, .received = number_at(counts, "received")};

    if (last_ns <= first_ns) {
        seconds = (double)(run->end_ns - run->start_ns) / 1e9;
        bytes = (double)total;
    }
    r.seconds = seconds;
    r.gbps = bytes * 8e-9 / seconds;
    r.mps = (size > 0 ? bytes / seconds / size : (double)r.received / seconds) / 1e6;
    return r;
}

static void add_direction(struct json_object *directions, const struct rates *r, uint64_t sent)
{
    struct json_object *direction = json_object_new_object();

    json_object_array_add(directions, direction);
    json_add_u64(direction, "messages_sent", sent);
    json_add_u64(direction, "messages_received", r->received);
    json_add_rounded(direction, "seconds", r->seconds);
    json_add_rounded(direction, "bw_gbps", r->gbps);
    json_add_rounded(direction, "msg_rate_mps", r->mps);
}

/* -b: each direction by its own meter: its receiver's, or its sender's (`at_sender`). */
static struct rates add_directions(const struct perf_run *run, bool at_sender,
                                   struct json_object *report)
{
    struct json_object *directions = json_object_new_array();
    struct rates mine = rates_of(run, json_object_object_get(run->findings, "mine"));
    struct rates theirs = rates_of(run, run->findings);

    json_object_object_add(report, "directions", directions);
    add_direction(directions, at_sender ? &mine : &theirs, run->sent);
    add_direction(directions, at_sender ? &theirs : &mine, number_at(run->findings, "sent"));
    return (struct rates){fmax(mine.seconds, theirs.seconds), mine.gbps + theirs.gbps,
                          mine.mps + theirs.mps, mine.bytes + theirs.bytes, 0};
}

static void add_rates(const struct perf_run *run, struct json_object *report)
{
    double cpu_s = json_object_get_double(json_object_object_get(run->findings, "cpu_s"));
    struct rates r = run->params.bidirectional
                         ? add_directions(run, perf_bw_counts_at_sender(run), report)
                         : rates_of(run, run->findings);

    json_add_rounded(report, "seconds", r.seconds);
    json_add_rounded(report, "bw_gbps", r.gbps);
    json_add_rounded(report, "msg_rate_mps", r.mps);
    json_add_rounded(report, "cpu_s_per_gb",
                     r.bytes > 0 ? (run->cpu.used_s + cpu_s) / (r.bytes / 1e9) : NAN);
}

/* All that were kept, in their order at present. */
static void add_latencies(const struct perf_latency *latency, bool half, struct json_object *report)
{
    struct json_object *all = json_object_new_array_ext((int)latency->count);

    for (size_t i = 0; i < latency->count; i++)
        json_object_array_add(all, json_rounded((half ? 0.5e-3 : 1e-3) * latency->rtt_ns[i]));
    json_object_object_add(report, "latencies_us", all);
}

static void add_latency(const struct perf_run *run, struct json_object *report)
{
    struct perf_latency latency = run->latency; /* sorting leaves the set as it is */
    struct perf_latency_summary s;
    bool half = !perf_test_is_request(run->params.test);

    json_add_rounded(report, "seconds", (double)(run->end_ns - run->start_ns) / 1e9);
    if (run->params.unsorted)
        add_latencies(&latency, half, report);
    if (!perf_latency_summary(&latency, half, &s))
        return;
    if (run->params.histogram)
        add_latencies(&latency, half, report);
    struct json_object *lat = json_object_new_object();
    json_add_rounded(lat, "min", s.min_us);
    json_add_rounded(lat, "p50", s.p50_us);
    json_add_rounded(lat, "p99", s.p99_us);
    json_add_rounded(lat, "p999", s.p999_us);
    json_add_rounded(lat, "max", s.max_us);
    json_object_object_add(report, "lat_us", lat);
}

/* -e: how often each end was woken by completions. */
static void add_events(const struct perf_run *run, struct json_object *report)
{
    struct json_object *events = json_object_new_object();

    json_add_u64(events, "client", run->events);
    json_add_u64(events, "server", number_at(run->findings, "events"));
    json_object_object_add(report, "events", events);
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

/* What this end's meter had counted at a time of the server's clock: with -b it counts, too. */
static uint64_t total_here(const struct perf_run *run, uint64_t t_ns)
{
    uint64_t here_ns = t_ns - (uint64_t)run->control->clock_offset_ns;

    return run->params.bidirectional ? perf_sampler_at(&run->meter.sampler, here_ns) : 0;
}

/* Add a sample for each interval: what arrived, and what the sender retransmitted meanwhile. */
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
        uint64_t bytes =
            s.total - last.total + total_here(run, s.t_ns) - total_here(run, last.t_ns);
        json_add_rounded(sample, "t_ms", (double)(s.t_ns - first.t_ns) / 1e6);
        json_add_rounded(sample, "bw_gbps", (double)bytes * 8 / dt_ns);
        uint64_t resent = perf_sampler_at(&run->resent, s.t_ns - (uint64_t)offset_ns) -
                          perf_sampler_at(&run->resent, last.t_ns - (uint64_t)offset_ns);
        json_object_object_add(sample, "packets_retransmitted",
                               run->resent.count ? json_object_new_uint64(resent) : NULL);
        json_object_array_add(samples, sample);
        last = s;
    }
}

/*
 * Of reads and atomics the packets that count are the responses, which the server sends. With -b
 * those of both ends count, and the paths are the client's.
 */
static void take_server_stats(const struct perf_run *run, struct json_object *report)
{
    static const char *const keys[] = {"packets_sent", "packets_retransmitted", "packets_spurious",
                                       "bytes_sent", "paths_used"};
    struct json_object *stats = json_object_object_get(run->findings, "stats");

    for (size_t i = 0; stats && i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct json_object *there = json_object_object_get(stats, keys[i]);
        struct json_object *here = json_object_object_get(report, keys[i]);
        if (!run->params.bidirectional)
            json_object_object_add(report, keys[i], json_object_get(there));
        else if (json_object_is_type(there, json_type_int))
            json_add_u64(report, keys[i],
                         json_object_get_uint64(here) + json_object_get_uint64(there));
    }
}

struct json_object *perf_report_make(const struct perf_run *run)
{
    static const char *const keys[] = {"seconds",
                                       "packet_bytes",
                                       "paths",
                                       "spray",
                                       "cc",
                                       "order",
                                       "drop",
                                       "cipher",
                                       "bw_gbps",
                                       "msg_rate_mps",
                                       "directions",
                                       "threads",
                                       "lat_us",
                                       "latencies_us",
                                       "events",
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
                                       "cpu_stolen"};
    struct json_object *report = json_object_new_object();

    json_add_string(report, "test", perf_test_name(run->params.test));
    json_add_string(report, "transport", run->params.transport);
    json_add_bool(report, "takes_receives", run->e.takes_recvs);
    json_object_object_add(report, "device", NULL);
    json_add_u64(report, "size_bytes", run->params.size_bytes);
    json_add_u64(report, "iterations", run->sent);
    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        json_object_object_add(report, keys[i], NULL); /* in this order, null unless set below */
    if (perf_test_is_lat(run->params.test)) {
        add_latency(run, report);
    } else {
        add_rates(run, report);
        add_samples(run, report);
        perf_threads_report(run, report);
    }
    if (run->params.events)
        add_events(run, report);
    /* An end that checks nothing has no verdict; where both have one, both count. */
    struct json_object *theirs = json_object_object_get(run->findings, "verified");
    if (theirs || run->verdict.verified >= 0)
        json_add_bool(report, "verified",
                      run->verdict.verified != 0 && (!theirs || json_object_get_boolean(theirs)));
    if (run->cpu.load.known) {
        json_add_bool(report, "disturbed", run->cpu.load.busy);
        json_add_rounded(report, "cpu_others", run->cpu.load.others);
        json_add_rounded(report, "cpu_stolen", run->cpu.load.stolen);
    }
    run->ops->stats(run, report);
    take_server_stats(run, report);
    return report;
}

bool perf_report_passed(struct json_object *report)
{
    struct json_object *verified = json_object_object_get(report, "verified");

    return !verified || json_object_get_boolean(verified);
}

/* Write to a file, or if `path` is empty to standard output. */
static int write_text(const char *path, const char *text, char *error)
{
    FILE *f = path[0] ? fopen(path, "w") : stdout;
    bool written = f && fprintf(f, "%s\n", text) >= 0;

    if (f && (path[0] ? fclose(f) : fflush(f)))
        written = false;
    if (written)
        return 0;
    return perf_fail(error, -errno, "cannot write %.400s: %s", path[0] ? path : "to stdout",
                     strerror(errno));
}

int perf_report_write(const struct perf_options *options, struct json_object *reports, char *error)
{
    bool single = !options->compare && !options->state && !options->scale && !options->all_sizes &&
                  json_object_array_length(reports) == 1;
    const char *text =
        json_object_to_json_string_ext(single ? json_object_array_get_idx(reports, 0) : reports,
                                       JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
    int rc = 0;

    if (options->out_json)
        rc = write_text("", text, error);
    if (options->out_json_file[0] && write_text(options->out_json_file, text, error))
        rc = -EIO;
    if (rc == 0 && (fflush(stdout) || ferror(stdout)))
        rc = perf_fail(error, -EIO, "cannot write the table to stdout");
    return rc;
}

#define MIB_PER_GBIT (1e9 / (8 << 20))

#define BW_COLUMNS(unit, width, scale)                                                             \
    {"#bytes", 10, 0, "size_bytes", 1}, {"#iterations", 11, 0, "iterations", 1},                   \
        {" BW peak[" unit "]", width, 2, "samples", scale},                                        \
        {" BW average[" unit "]", width + 3, 2, "bw_gbps", scale},                                 \
        {"MsgRate[Mpps]", 14, 6, "msg_rate_mps", 1}, {"CPU[s/GB]", 11, 4, "cpu_s_per_gb", 1},      \
        {"#resent", 9, 0, "packets_retransmitted", 1}, {"#spurious", 9, 0, "packets_spurious", 1}, \
        {0},
static const struct perf_column bw_columns[2][9] = {
    {BW_COLUMNS("MiB/sec", 16, MIB_PER_GBIT)},
    {BW_COLUMNS("Gb/sec", 15, 1)},
};

static const struct perf_column lat_columns[] = {
    {"#bytes", 10, 0, "size_bytes", 1},
    {"#iterations", 11, 0, "iterations", 1},
    {"t_min[usec]", 12, 2, "lat_us.min", 1},
    {"t_max[usec]", 12, 2, "lat_us.max", 1},
    {"t_typical[usec]", 15, 2, "lat_us.p50", 1},
    {"99%[usec]", 10, 2, "lat_us.p99", 1},
    {"99.9%[usec]", 12, 2, "lat_us.p999", 1},
    {"#resent", 9, 0, "packets_retransmitted", 1},
    {0},
};

void perf_columns_head(FILE *out, const struct perf_column *columns, const char *rest)
{
    fprintf(out, " #%-9s", "transport");
    for (const struct perf_column *c = columns; c->title; c++)
        fprintf(out, " %*s", c->width, c->title);
    fprintf(out, "%s\n", rest);
}

static double peak_gbps(struct json_object *report, struct json_object *samples)
{
    double peak = json_get_number(report, "bw_gbps"); /* of a run too short for samples */

    if (!json_object_is_type(samples, json_type_array))
        return peak;
    for (size_t i = 0; i < json_object_array_length(samples); i++)
        peak = fmax(peak, json_get_number(json_object_array_get_idx(samples, i), "bw_gbps"));
    return peak;
}

void perf_columns_row(FILE *out, const struct perf_column *columns, struct json_object *report,
                      const char *rest)
{
    fprintf(out, "  %-9s", json_get_string(report, "transport"));
    for (const struct perf_column *c = columns; c->title; c++) {
        double value = strcmp(c->path, "samples") == 0
                           ? peak_gbps(report, json_object_object_get(report, "samples"))
                           : json_get_number(report, c->path);
        if (isnan(value))
            fprintf(out, " %*s", c->width, "-");
        else
            fprintf(out, " %*.*f", c->width, c->digits, c->scale * value);
    }
    fprintf(out, "%s\n", rest);
}

static void print_latencies(FILE *out, struct json_object *all)
{
    if (!json_object_is_type(all, json_type_array))
        return;
    fprintf(out, " #%-9s %12s\n", "number", "t[usec]");
    for (size_t i = 0; i < json_object_array_length(all); i++)
        fprintf(out, "  %-9zu %12.2f\n", i + 1,
                json_object_get_double(json_object_array_get_idx(all, i)));
}

static const struct perf_column *columns_of(enum perf_test test, bool gbits)
{
    return perf_test_is_lat(test) ? lat_columns : bw_columns[gbits];
}

void perf_table_head(FILE *out, enum perf_test test, bool gbits)
{
    perf_columns_head(out, columns_of(test, gbits), "  verified");
}

void perf_table_row(FILE *out, struct json_object *report, bool gbits)
{
    const char *name = json_get_string(report, "test");
    struct json_object *verified = json_object_object_get(report, "verified");
    const char *cipher = json_get_string(report, "cipher");
    enum perf_test test;
    char rest[128];

    if (!name || perf_test_find(name, &test) || !json_get_string(report, "transport"))
        return;
    snprintf(rest, sizeof(rest), "  %s%s%s",
             !verified                           ? "-"
             : json_object_get_boolean(verified) ? "yes"
                                                 : "NO",
             cipher ? "  sealed: " : "", cipher ? cipher : "");
    perf_columns_row(out, columns_of(test, gbits), report, rest);
    print_latencies(out, json_object_object_get(report, "latencies_us"));
    fflush(out);
}
