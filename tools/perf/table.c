/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/report.h"

#include <math.h>
#include <string.h>

#include "tools/perf/json.h"

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
    {"t_min[usec]", 12, 2, "lat_us/min", 1},
    {"t_max[usec]", 12, 2, "lat_us/max", 1},
    {"t_typical[usec]", 15, 2, "lat_us/p50", 1},
    {"99%[usec]", 10, 2, "lat_us/p99", 1},
    {"99.9%[usec]", 12, 2, "lat_us/p999", 1},
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
    double peak = perf_report_number(report, "bw_gbps"); /* of a run too short for samples */

    if (!json_object_is_type(samples, json_type_array))
        return peak;
    for (size_t i = 0; i < json_object_array_length(samples); i++)
        peak = fmax(peak, perf_report_number(json_object_array_get_idx(samples, i), "bw_gbps"));
    return peak;
}

void perf_columns_row(FILE *out, const struct perf_column *columns, struct json_object *report,
                      const char *rest)
{
    fprintf(out, "  %-9s", perf_json_get_string(report, "transport"));
    for (const struct perf_column *c = columns; c->title; c++) {
        double value = strcmp(c->path, "samples") == 0
                           ? peak_gbps(report, json_object_object_get(report, "samples"))
                           : perf_report_number(report, c->path);
        if (isnan(value))
            fprintf(out, " %*s", c->width, "-");
        else
            fprintf(out, " %*.*f", c->width, c->digits, c->scale * value);
    }
    fprintf(out, "%s\n", rest);
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
    const char *name = perf_json_get_string(report, "test");
    struct json_object *verified = json_object_object_get(report, "verified");
    enum perf_test test;

    if (!name || perf_test_find(name, &test) || !perf_json_get_string(report, "transport"))
        return;
    perf_columns_row(out, columns_of(test, gbits), report,
                     !verified                           ? "  -"
                     : json_object_get_boolean(verified) ? "  yes"
                                                         : "  NO");
    fflush(out);
}
