/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/perf/json.h"

enum { MIB_PER_GBIT_NUM = 1000000000, MIB_BITS = 8 << 20 };

void perf_table_head(FILE *out, enum perf_test test, bool gbits)
{
    const char *unit = gbits ? "Gb/sec" : "MiB/sec";

    if (perf_test_is_lat(test))
        fprintf(out, " #%-9s %10s %11s %12s %12s %15s %10s %12s %9s  %s\n", "transport", "#bytes",
                "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]", "99%[usec]",
                "99.9%[usec]", "#resent", "verified");
    else
        fprintf(out, " #%-9s %10s %11s  BW peak[%s]  BW average[%s] %14s %11s %9s %9s  %s\n",
                "transport", "#bytes", "#iterations", unit, unit, "MsgRate[Mpps]", "CPU[s/GB]",
                "#resent", "#spurious", "verified");
}

void perf_table_cell(FILE *out, int width, int digits, double value)
{
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, digits, value);
}

static double peak_gbps(struct json_object *report)
{
    struct json_object *samples;
    double peak = perf_report_number(report, "bw_gbps"); /* of a run too short for samples */

    if (!json_object_object_get_ex(report, "samples", &samples) ||
        !json_object_is_type(samples, json_type_array))
        return peak;
    for (size_t i = 0; i < json_object_array_length(samples); i++)
        peak = fmax(peak, perf_report_number(json_object_array_get_idx(samples, i), "bw_gbps"));
    return peak;
}

static const char *verdict(struct json_object *report)
{
    struct json_object *verified;

    if (!json_object_object_get_ex(report, "verified", &verified) || !verified)
        return "-";
    return json_object_get_boolean(verified) ? "yes" : "NO";
}

static void lat_cells(FILE *out, struct json_object *report)
{
    perf_table_cell(out, 12, 2, perf_report_number(report, "lat_us.min"));
    perf_table_cell(out, 12, 2, perf_report_number(report, "lat_us.max"));
    perf_table_cell(out, 15, 2, perf_report_number(report, "lat_us.p50"));
    perf_table_cell(out, 10, 2, perf_report_number(report, "lat_us.p99"));
    perf_table_cell(out, 12, 2, perf_report_number(report, "lat_us.p999"));
    perf_table_cell(out, 9, 0, perf_report_number(report, "packets_retransmitted"));
}

static void bw_cells(FILE *out, struct json_object *report, bool gbits)
{
    double scale = gbits ? 1 : (double)MIB_PER_GBIT_NUM / MIB_BITS;
    int width = gbits ? 15 : 16;

    perf_table_cell(out, width, 2, scale * peak_gbps(report));
    perf_table_cell(out, width + 3, 2, scale * perf_report_number(report, "bw_gbps"));
    perf_table_cell(out, 14, 6, perf_report_number(report, "msg_rate_mps"));
    perf_table_cell(out, 11, 4, perf_report_number(report, "cpu_s_per_gb"));
    perf_table_cell(out, 9, 0, perf_report_number(report, "packets_retransmitted"));
    perf_table_cell(out, 9, 0, perf_report_number(report, "packets_spurious"));
}

void perf_table_row(FILE *out, struct json_object *report, bool gbits)
{
    const char *test = perf_json_get_string(report, "test");
    const char *transport = perf_json_get_string(report, "transport");
    uint64_t size = 0, iterations = 0;

    if (!test || !transport || perf_json_get_u64(report, "size_bytes", &size))
        return;
    (void)perf_json_get_u64(report, "iterations", &iterations); /* a median may have none: 0 */
    fprintf(out, "  %-9s %10" PRIu64 " %11" PRIu64, transport, size, iterations);
    if (strstr(test, "_lat"))
        lat_cells(out, report);
    else
        bw_cells(out, report, gbits);
    fprintf(out, "  %s\n", verdict(report));
    fflush(out);
}
