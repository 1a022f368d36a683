/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/perf/message.h"
#include "tools/perf/run.h"
#include "tools/perf/state.h"

enum { STATE_PEERS = 200 }; /* peers made to measure the memory of one */

static const char *const median_paths[] = {"iterations",
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
                                           "lat_us.min",
                                           "lat_us.p50",
                                           "lat_us.p99",
                                           "lat_us.p999",
                                           "lat_us.max"};
enum { NUM_MEDIANS = sizeof(median_paths) / sizeof(median_paths[0]) };

/* For qsort_r(): by the number at a path, those that have none last. */
static int compare_reports(const void *a, const void *b, void *path)
{
    double x = json_get_number(*(struct json_object *const *)a, path);
    double y = json_get_number(*(struct json_object *const *)b, path);

    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

static void sort_reports(struct json_object **reports, size_t count, const char *path)
{
    qsort_r(reports, count, sizeof(struct json_object *), compare_reports, (void *)path);
}

/*
 * The median over the reports that have the number: NULL, which is JSON's null, if none has. The
 * mean of the middle two if their number is even. Sorts the reports.
 */
static struct json_object *median_of(struct json_object **reports, size_t count, const char *path)
{
    sort_reports(reports, count, path);
    while (count && isnan(json_get_number(reports[count - 1], path)))
        count--;
    if (count == 0)
        return NULL;
    double median = (json_get_number(reports[(count - 1) / 2], path) +
                     json_get_number(reports[count / 2], path)) /
                    2;
    return json_object_is_type(json_get(reports[count / 2], path), json_type_int)
               ? json_object_new_uint64((uint64_t)llround(median))
               : json_rounded(median);
}

struct json_object *perf_compare_median(struct json_object **reports, size_t count, const char *key)
{
    struct json_object *numbers[NUM_MEDIANS];
    bool passed = true, disturbed = false;

    sort_reports(reports, count, key);
    struct json_object *result = json_object_get(reports[count / 2]);
    for (size_t k = 0; k < NUM_MEDIANS; k++)
        numbers[k] = median_of(reports, count, median_paths[k]);
    for (size_t i = 0; i < count; i++) {
        passed = passed && perf_report_passed(reports[i]);
        disturbed =
            disturbed || json_object_get_boolean(json_object_object_get(reports[i], "disturbed"));
    }
    /* Last, because `result` is one of the reports. Without latencies it has no place for them. */
    for (size_t k = 0; k < NUM_MEDIANS; k++) {
        if (!json_set(result, median_paths[k], numbers[k]))
            json_object_put(numbers[k]);
    }
    if (json_object_object_get(result, "verified"))
        json_add_bool(result, "verified", passed);
    if (json_object_object_get(result, "cpu_stolen"))
        json_add_bool(result, "disturbed", disturbed);
    for (size_t i = 0; i < count; i++)
        json_object_put(reports[i]);
    return result;
}

static struct json_object *ratio(struct json_object *median, struct json_object *first,
                                 const char *key)
{
    return json_rounded(json_get_number(median, key) / json_get_number(first, key));
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
    const struct perf_column columns[] = {
        {"ratio", 8, 3, lat ? "ratio_to_first.lat_p50" : "ratio_to_first.bw_gbps", 1},
        {"CPU[s/GB]", 11, 4, "cpu_s_per_gb", 1},
        {"peer[bytes]", 12, 0, "peer_bytes", 1},
        {"user", 12, 0, "peer_bytes_user", 1},
        {"kernel", 12, 0, "peer_bytes_kernel", 1},
        {"idle", 12, 0, "peer_bytes_idle", 1},
        {0},
    };
    struct json_object *first = json_object_array_get_idx(medians, 0);

    fprintf(table, "\n %s, ratio to %s; CPU of both ends; memory a peer:\n",
            lat ? "t_typical" : "BW average", json_get_string(first, "transport"));
    perf_columns_head(table, columns, "");
    for (size_t i = 0; i < json_object_array_length(medians); i++)
        perf_columns_row(table, columns, json_object_array_get_idx(medians, i), "");
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
                      run.verdict.error);
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

static struct json_object *medians_of(const struct perf_options *o,
                                      struct json_object *(*reports)[PERF_REPEAT_MAX],
                                      const struct perf_state_figures *figures, FILE *table)
{
    bool lat = perf_test_is_lat(o->params.test);
    struct json_object *medians = json_object_new_array();

    fprintf(table, " %s, medians of %u\n", perf_test_name(o->params.test), o->repeat);
    perf_table_head(table, o->params.test, o->gbits);
    for (unsigned t = 0; t < o->num_transports; t++) {
        struct json_object *median =
            perf_compare_median(reports[t], o->repeat, lat ? "lat_us.p50" : "bw_gbps");
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
    static struct json_object *reports[PERF_TRANSPORTS_MAX][PERF_REPEAT_MAX];
    struct perf_state_figures figures[PERF_TRANSPORTS_MAX];

    measure_state(o, figures);
    for (unsigned turn = 0; turn < o->repeat; turn++) {
        for (unsigned t = 0; t < o->num_transports; t++) {
            reports[t][turn] = run_once(o, control, t, turn, error);
            if (!reports[t][turn])
                return NULL; /* the reports until now go with the process, which ends */
        }
    }
    return medians_of(o, reports, figures, table);
}
