/* SPDX-License-Identifier: BSD-2-Clause */
/* run: a connection matrix over a topology, both from files. */
#include <stdlib.h>

#include "tools/sim/experiment.h"

enum { PERCENT = 100 };

/*
 * The distribution of completion times by its percentiles 0 .. 100 of nearest rank: a picture needs
 * no more, however many flows there are. Null: so many did not end.
 */
static void add_percentiles(const struct simx_run *run, struct json_object *result)
{
    double *us = simx_sorted_fct_us(run);
    struct json_object *percentiles = json_object_new_array();

    for (unsigned p = 0; us && p <= PERCENT; p++)
        json_object_array_add(
            percentiles, json_number(simx_percentile(us, run->cm->num_flows, p / (double)PERCENT)));
    json_object_object_add(result, "fct_us_percentiles", percentiles);
    free(us);
}

const struct simx_experiment simx_exp_run = {
    .name = "run",
    .summary = "flow completion times of a connection matrix over a topology",
    .about = "The flows of a connection matrix (-tm) over a fabric, from the first start to the "
             "last completion.",
    .takes_matrix = true,
    .figures = add_percentiles,
    .columns =
        {
            SIMX_COLUMNS_TRANSPORT,
            {"flows", "flows", NULL, 0},
            SIMX_COLUMNS_FCT,
            {"completion_us", "last end", "us", 2},
            {"completion_over_ideal", "end/ideal", NULL, 3},
            SIMX_COLUMNS_PACKETS,
            SIMX_COLUMNS_END,
        },
    .picture =
        {
            .title = "Flow completion times",
            .x_label = "flow completion time [us]",
            .y_label = "flows that have ended [%]",
            .array = "fct_us_percentiles",
            .x = {"", 1, NULL},
            .y = {{NULL, 1, "flows"}},
        },
};
