/* SPDX-License-Identifier: BSD-2-Clause */
/* run: a connection matrix over a topology, both from files. */
#include <math.h>
#include <stdlib.h>

#include "tools/sim/experiment.h"

enum { PERCENT = 100 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * The distribution of completion times, by its percentiles 0 .. 100 of nearest rank: a picture needs no more, however
 * many flows there are. Null: so many did not end.
 */
static void add_percentiles(const struct simx_run *run, struct json_object *result, void *arg)
{
    uint32_t num = run->cm->num_flows;
    double *us = malloc((num + 1) * sizeof(*us));
    struct json_object *percentiles = json_object_new_array();

    (void)arg;
    for (uint32_t i = 0; us && i < num; i++) {
        const struct simx_run_flow *flow = &run->flows[i];

        us[i] =
            flow->done_ns == UINT64_MAX ? INFINITY : (double)(flow->done_ns - flow->start_ns) / 1e3;
    }
    if (us)
        qsort(us, num, sizeof(*us), compare);
    for (uint64_t p = 0; us && p <= PERCENT; p++) {
        uint64_t rank = (p * num + PERCENT - 1) / PERCENT;

        json_object_array_add(percentiles, simx_json_number(us[rank ? rank - 1 : 0]));
    }
    json_object_object_add(result, "fct_us_percentiles", percentiles);
    free(us);
}

static struct json_object *measure(const struct simx_config *config, struct simx_progress *progress)
{
    struct json_object *result;
    struct simx_cm cm;

    if (simx_traffic_read(config, &cm, progress->error, sizeof(progress->error)) != 0)
        return NULL;
    result = simx_measure(config, &cm, progress, add_percentiles, NULL);
    simx_cm_fini(&cm);
    return result;
}

static const struct simx_column columns[] = {
    SIMX_COLUMNS_TRANSPORT, {"flows", "flows", NULL, 0}, SIMX_COLUMNS_FCT, SIMX_COLUMNS_PACKETS,
    SIMX_COLUMNS_END,
};

static const struct simx_picture picture = {
    .title = "Flow completion times",
    .x_label = "flow completion time [us]",
    .y_label = "flows that have ended [%]",
    .array = "fct_us_percentiles",
    .x = {"", 1, NULL},
    .y = {{NULL, 1, "flows"}},
};

const struct simx_experiment simx_exp_run = {
    .name = "run",
    .summary = "flow completion times of a connection matrix over a topology",
    .measure = measure,
    .columns = columns,
    .num_columns = sizeof(columns) / sizeof(columns[0]),
    .picture = &picture,
};
