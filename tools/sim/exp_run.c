/* SPDX-License-Identifier: BSD-2-Clause */
/* run: a connection matrix over a topology, both from files. */
#include "tools/sim/experiment.h"

static struct json_object *measure(const struct simx_config *config, struct simx_progress *progress)
{
    struct json_object *result;
    struct simx_cm cm;

    if (simx_traffic_read(config, &cm, progress->error, sizeof(progress->error)) != 0)
        return NULL;
    result = simx_measure(config, &cm, progress, NULL, NULL);
    simx_cm_fini(&cm);
    return result;
}

static const struct simx_column columns[] = {
    {"transport", "transport", NULL, 0},
    {"spray", "spray", NULL, 0},
    {"cc", "cc", NULL, 0},
    {"flows", "flows", NULL, 0},
    {"fct_us.min", "FCT min", "us", 2},
    {"fct_us.p50", "p50", "us", 2},
    {"fct_us.mean", "mean", "us", 2},
    {"fct_us.p99", "p99", "us", 2},
    {"fct_us.max", "max", "us", 2},
    {"ideal_us", "ideal", "us", 2},
    {"max_over_ideal", "max/ideal", NULL, 3},
    {"packets", "packets", NULL, 0},
    {"retransmitted", "retx", NULL, 0},
    {"spurious", "spurious", NULL, 0},
    {"ce", "CE", NULL, 0},
    {"drops", "drops", NULL, 0},
    {"wall_s", "wall", "s", 3},
};

const struct simx_experiment simx_exp_run = {
    .name = "run",
    .summary = "flow completion times of a connection matrix over a topology",
    .measure = measure,
    .columns = columns,
    .num_columns = sizeof(columns) / sizeof(columns[0]),
};
