/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/experiment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/fail.h"

const struct simx_experiment *const simx_experiments[] = {
    [SIMX_RUN] = &simx_exp_run,
    [SIMX_LOSS] = &simx_exp_loss,
    [SIMX_COLLISION] = &simx_exp_collision,
    [SIMX_INCAST] = &simx_exp_incast,
    [SIMX_SKEW] = &simx_exp_skew,
    [SIMX_FAILURE] = &simx_exp_failure,
    [SIMX_SCALE] = &simx_exp_scale,
    [SIMX_ALLREDUCE] = &simx_exp_allreduce,
    [SIMX_ALLTOALL] = &simx_exp_alltoall,
    [SIMX_FAIRNESS] = &simx_exp_fairness,
    [SIMX_WAN] = &simx_exp_wan,
    [SIMX_NUM_EXPERIMENTS] = NULL,
};

const struct simx_experiment *simx_experiment_find(const char *name)
{
    const struct simx_experiment *const *experiment = simx_experiments;

    while (*experiment && strcmp((*experiment)->name, name) != 0)
        experiment++;
    return *experiment;
}

/* Refuses a fabric with one leaf if the experiment needs two. */
static int check_leaves(const struct simx_experiment *experiment, const struct simx_net *net)
{
    if (!experiment->needs_two_leaves || net->topology.hosts > net->topology.tier[0].radix_down)
        return 0;
    return simx_fail(-EINVAL, "%s needs hosts below two leaves, and one leaf has all %u",
                     experiment->name, net->topology.hosts);
}

static int check_matrix(const struct simx_experiment *experiment, const struct simx_config *config)
{
    if (config->tm[0] && !experiment->takes_matrix)
        return simx_fail(-EINVAL, "%s makes its own traffic: it takes no -tm", experiment->name);
    if (!config->tm[0] && !experiment->traffic)
        return simx_fail(-EINVAL, "%s needs the traffic: -tm FILE", experiment->name);
    return 0;
}

int simx_check(const struct simx_experiment *experiment, const struct simx_config *asked)
{
    unsigned num = simx_points(experiment, asked);
    int ret = check_matrix(experiment, asked);

    for (unsigned i = 0; ret == 0 && i < num; i++) {
        struct simx_config config = *asked;
        struct simx_net net;

        simx_point(experiment, &config, i);
        ret = simx_net_init(&net, &config);
        if (ret == 0)
            ret = check_leaves(experiment, &net);
        if (ret == 0 && i == 0 && experiment->check)
            ret = experiment->check(asked, &net);
    }
    return ret;
}

static int make_traffic(const struct simx_experiment *experiment, const struct simx_config *config,
                        const struct simx_net *net, struct simx_cm *cm)
{
    if (config->tm[0])
        return simx_cm_read(cm, config->tm);

    int ret = experiment->traffic(config, net, cm);

    if (ret == -ENOMEM)
        return simx_fail(ret, "%s: no memory for the traffic", experiment->name);
    return ret ? simx_fail(ret, "%s: expected %s", experiment->name, experiment->traffic_expected)
               : 0;
}

static struct json_object *measure_run(const struct simx_experiment *experiment,
                                       struct simx_run *run)
{
    struct json_object *result;

    run->memo = calloc(1, experiment->memo_bytes + 1);
    if (!run->memo) {
        simx_error_set("%s: no memory", experiment->name);
        return NULL;
    }
    if ((experiment->go ? experiment->go(run) : simx_run_all(run)) != 0)
        return NULL;
    result = simx_result(run);
    if (experiment->figures)
        experiment->figures(run, result);
    return result;
}

struct json_object *simx_measure(const struct simx_experiment *experiment,
                                 const struct simx_config *config, struct simx_progress *progress)
{
    struct json_object *result = NULL;
    struct simx_net net;
    struct simx_run run;
    struct simx_cm cm;

    if (simx_net_init(&net, config) != 0 || make_traffic(experiment, config, &net, &cm) != 0)
        return NULL;
    if (simx_run_create(&run, config, &net, &cm) == 0) {
        run.progress = progress;
        result = measure_run(experiment, &run);
        simx_run_destroy(&run);
    }
    simx_cm_fini(&cm);
    return result;
}
