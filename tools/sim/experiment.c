/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/experiment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct simx_experiment *const experiments[] = {
    &simx_exp_run,
    &simx_exp_loss,
    &simx_exp_collision,
    &simx_exp_incast,
    &simx_exp_skew,
    &simx_exp_failure,
    &simx_exp_scale,
    &simx_exp_allreduce,
    &simx_exp_alltoall,
};
/* clang-format on */

enum { NUM_EXPERIMENTS = sizeof(experiments) / sizeof(experiments[0]), PATH_BYTES = 96 };

const struct simx_experiment *simx_experiment_at(unsigned index)
{
    return index < NUM_EXPERIMENTS ? experiments[index] : NULL;
}

const struct simx_experiment *simx_experiment_find(const char *name)
{
    for (unsigned i = 0; i < NUM_EXPERIMENTS; i++) {
        if (strcmp(experiments[i]->name, name) == 0)
            return experiments[i];
    }
    return NULL;
}

int simx_traffic_read(const struct simx_config *config, struct simx_cm *cm, char *error, size_t len)
{
    if (config->tm[0])
        return simx_cm_read(cm, config->tm, error, len);
    snprintf(error, len, "%s needs the traffic: -tm FILE", config->experiment);
    return -EINVAL;
}

void simx_run_show(void *arg, const struct simx_run *run)
{
    char text[64];
    double done = (double)run->num_done / run->cm->num_flows;

    snprintf(text, sizeof(text), "%u of %u flows, %.0f us simulated", run->num_done,
             run->cm->num_flows, (double)mrd_sim_now(run->sim) / 1e3);
    simx_progress_set(arg, done, text);
}

struct json_object *simx_measure(
    const struct simx_config *config, const struct simx_cm *cm, struct simx_progress *progress,
    void (*more)(const struct simx_run *run, struct json_object *result, void *arg), void *arg)
{
    struct json_object *result = NULL;
    struct simx_run run;

    if (simx_run_create(&run, config, cm, progress->error, sizeof(progress->error)) != 0)
        return NULL;
    run.progress = simx_run_show;
    run.progress_arg = progress;
    if (simx_run_all(&run, progress->error, sizeof(progress->error)) == 0) {
        result = simx_result(&run);
        if (more)
            more(&run, result, arg);
    }
    simx_run_destroy(&run);
    return result;
}

int simx_traffic_own(const struct simx_config *config, char *error, size_t len)
{
    if (!config->tm[0])
        return 0;
    snprintf(error, len, "%s makes its own traffic: it takes no -tm", config->experiment);
    return -EINVAL;
}

int simx_leaves_check(const struct simx_config *config, char *error, size_t len)
{
    struct simx_net net;
    int ret = simx_net_init(&net, config, error, len);

    if (ret != 0)
        return ret;
    if (net.topology.hosts > net.topology.tier[0].radix_down)
        return 0;
    snprintf(error, len, "%s needs hosts below two leaves, and one leaf has all %u",
             config->experiment, net.topology.hosts);
    return -EINVAL;
}

static double of_summary(struct json_object *run, const char *part, const char *path)
{
    char whole[PATH_BYTES];

    snprintf(whole, sizeof(whole), "%s.%s", part, path);
    return simx_json_get_number(run, whole);
}

double simx_value(struct json_object *run, const char *path)
{
    return simx_json_get(run, "mean") ? of_summary(run, "mean", path)
                                      : simx_json_get_number(run, path);
}

double simx_interval(struct json_object *run, const char *path)
{
    return simx_json_get(run, "ci95") ? of_summary(run, "ci95", path) : NAN;
}
