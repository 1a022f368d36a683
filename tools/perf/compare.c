/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/json.h"
#include "tools/perf/run.h"
#include "tools/perf/state.h"

enum { STATE_PEERS = 200 }; /* peers made to measure the memory of one */

static const char *const median_keys[] = {
    "iterations",
    "seconds",
    "bw_gbps",
    "msg_rate_mps",
    "cpu_s_per_gb",
    "packets_sent",
    "packets_retransmitted",
    "packets_spurious",
    "bytes_sent",
    "cpu_others",
    "cpu_stolen",
};
static const char *const latency_keys[] = {"min", "p50", "p99", "p999", "max"};
enum {
    NUM_MEDIAN_KEYS = sizeof(median_keys) / sizeof(median_keys[0]),
    NUM_LATENCY_KEYS = sizeof(latency_keys) / sizeof(latency_keys[0]),
};

/* The median of a key over the reports that have it: NULL, which is JSON's null, if none has. */
static struct json_object *median_of(struct json_object **reports, size_t count, const char *key)
{
    double *values = calloc(count, sizeof(values[0]));
    struct json_object *member, *result = NULL;
    size_t n = 0;
    bool whole = true;

    for (size_t i = 0; values && i < count; i++) {
        double value = perf_report_number(reports[i], key);
        if (isnan(value))
            continue;
        values[n++] = value;
        whole = whole && json_object_object_get_ex(reports[i], key, &member) &&
                json_object_is_type(member, json_type_int);
    }
    if (n) {
        double median = perf_median(values, n);
        result =
            whole ? json_object_new_uint64((uint64_t)llround(median)) : perf_json_number(median);
    }
    free(values);
    return result;
}

/* Find the report with the median of `key`. */
static size_t middle_by(struct json_object **reports, size_t count, const char *key)
{
    size_t best = 0;

    for (size_t i = 0; i < count; i++) {
        double value = perf_report_number(reports[i], key);
        size_t below = 0, equal_before = 0;
        for (size_t j = 0; j < count; j++) {
            double other = perf_report_number(reports[j], key);
            below += other < value;
            equal_before += j < i && other == value;
        }
        if (below + equal_before == count / 2)
            best = i;
    }
    return best;
}

struct json_object *perf_compare_median(struct json_object **reports, size_t count, const char *key)
{
    struct json_object *result = json_object_get(reports[middle_by(reports, count, key)]);
    struct json_object *numbers[NUM_MEDIAN_KEYS];
    struct json_object *member, *lat = NULL;
    bool passed = true, disturbed = false;

    for (size_t k = 0; k < NUM_MEDIAN_KEYS; k++)
        numbers[k] = median_of(reports, count, median_keys[k]);
    if (json_object_object_get_ex(result, "lat_us", &lat) && lat) {
        lat = json_object_new_object();
        for (size_t k = 0; k < NUM_LATENCY_KEYS; k++) {
            char path[16];
            snprintf(path, sizeof(path), "lat_us.%s", latency_keys[k]);
            json_object_object_add(lat, latency_keys[k], median_of(reports, count, path));
        }
    }
    for (size_t i = 0; i < count; i++) {
        passed = passed && perf_report_passed(reports[i]);
        disturbed = disturbed || (json_object_object_get_ex(reports[i], "disturbed", &member) &&
                                  json_object_get_boolean(member));
    }
    /* Last, because `result` is one of the reports. */
    for (size_t k = 0; k < NUM_MEDIAN_KEYS; k++)
        json_object_object_add(result, median_keys[k], numbers[k]);
    json_object_object_add(result, "lat_us", lat);
    if (json_object_object_get_ex(result, "verified", &member) && member)
        perf_json_add_bool(result, "verified", passed);
    if (numbers[NUM_MEDIAN_KEYS - 1])
        perf_json_add_bool(result, "disturbed", disturbed);
    for (size_t i = 0; i < count; i++)
        json_object_put(reports[i]);
    return result;
}

static struct json_object *ratio(struct json_object *median, struct json_object *first,
                                 const char *key)
{
    return perf_json_number(perf_report_number(median, key) / perf_report_number(first, key));
}

void perf_compare_ratio(struct json_object *median, struct json_object *first)
{
    struct json_object *ratios = json_object_new_object();

    json_object_object_add(ratios, "bw_gbps", ratio(median, first, "bw_gbps"));
    json_object_object_add(ratios, "msg_rate_mps", ratio(median, first, "msg_rate_mps"));
    json_object_object_add(ratios, "lat_p50", ratio(median, first, "lat_us.p50"));
    json_object_object_add(median, "ratio_to_first", ratios);
}

void perf_compare_print(FILE *table, struct json_object *medians, bool lat)
{
    struct json_object *first = json_object_array_get_idx(medians, 0);
    const char *key = lat ? "ratio_to_first.lat_p50" : "ratio_to_first.bw_gbps";

    fprintf(table, "\n %s, ratio to %s; CPU of both ends; memory a peer:\n",
            lat ? "t_typical" : "BW average", perf_json_get_string(first, "transport"));
    fprintf(table, " #%-9s %8s %11s %12s %12s %12s %12s\n", "transport", "ratio", "CPU[s/GB]",
            "peer[bytes]", "user", "kernel", "idle");
    for (size_t i = 0; i < json_object_array_length(medians); i++) {
        struct json_object *median = json_object_array_get_idx(medians, i);
        fprintf(table, "  %-9s", perf_json_get_string(median, "transport"));
        perf_table_cell(table, 8, 3, perf_report_number(median, key));
        perf_table_cell(table, 11, 4, perf_report_number(median, "cpu_s_per_gb"));
        perf_table_cell(table, 12, 0, perf_report_number(median, "peer_bytes"));
        perf_table_cell(table, 12, 0, perf_report_number(median, "peer_bytes_user"));
        perf_table_cell(table, 12, 0, perf_report_number(median, "peer_bytes_kernel"));
        perf_table_cell(table, 12, 0, perf_report_number(median, "peer_bytes_idle"));
        fprintf(table, "\n");
    }
}

/* Run number `turn` of transport t; its report, or NULL. */
static struct json_object *run_once(const struct perf_options *o, struct perf_control *control,
                                    unsigned t, unsigned turn, char *error)
{
    char label[PERF_NAME_BYTES + 32];
    struct perf_run run = {.options = o, .params = o->params, .control = control, .label = label};

    snprintf(label, sizeof(label), "%s (%u of %u)", o->transports[t], turn + 1, o->repeat);
    strcpy(run.params.transport, o->transports[t]);
    perf_params_settle(&run.params);
    struct json_object *report = perf_run_client(&run);
    if (!report)
        snprintf(error, PERF_ERROR_BYTES, "%s: %.480s", o->transports[t], run.error);
    else if (!perf_report_passed(report))
        perf_complain(PERF_EXIT_FAILED, "%s, run %u: not verified: %s", o->transports[t], turn + 1,
                      run.verify_error);
    return report;
}

/*
 * Before the runs, because it would disturb them. A failure is reported and does not end the
 * comparison.
 */
static void measure_state(const struct perf_options *o, struct perf_state_figures *figures)
{
    char error[PERF_ERROR_BYTES];

    for (unsigned t = 0; t < o->num_transports; t++) {
        int rc = perf_state_measure(o, o->transports[t], STATE_PEERS, &figures[t], error);
        if (rc && rc != -ENOTSUP)
            perf_complain(PERF_EXIT_FAILED, "%s: memory a peer is not known: %s", o->transports[t],
                          error);
    }
}

static struct json_object *medians_of(const struct perf_options *o, struct json_object **reports,
                                      const struct perf_state_figures *figures, FILE *table)
{
    bool lat = perf_test_is_lat(o->params.test);
    struct json_object *medians = json_object_new_array();

    fprintf(table, " %s, medians of %u\n", perf_test_name(o->params.test), o->repeat);
    perf_table_head(table, o->params.test, o->gbits);
    for (unsigned t = 0; t < o->num_transports; t++) {
        struct json_object *median = perf_compare_median(&reports[(size_t)t * o->repeat], o->repeat,
                                                         lat ? "lat_us.p50" : "bw_gbps");
        json_object_array_add(medians, median);
        perf_state_to_json(&figures[t], median);
        perf_compare_ratio(median, json_object_array_get_idx(medians, 0));
        perf_table_row(table, median, o->gbits);
    }
    perf_compare_print(table, medians, lat);
    return medians;
}

struct json_object *perf_compare(const struct perf_options *o, struct perf_control *control,
                                 FILE *table, char *error)
{
    size_t count = (size_t)o->num_transports * o->repeat;
    struct json_object **reports = calloc(count, sizeof(struct json_object *));
    struct perf_state_figures figures[PERF_TRANSPORTS_MAX];
    struct json_object *medians = NULL;
    bool failed = !reports;

    measure_state(o, figures);

    for (unsigned turn = 0; turn < o->repeat && !failed; turn++) {
        for (unsigned t = 0; t < o->num_transports && !failed; t++) {
            struct json_object *report = run_once(o, control, t, turn, error);
            reports[(size_t)t * o->repeat + turn] = report;
            failed = !report;
        }
    }
    if (!failed)
        medians = medians_of(o, reports, figures, table);
    for (size_t i = 0; failed && reports && i < count; i++)
        json_object_put(reports[i]);
    free(reports);
    return medians;
}
