/* SPDX-License-Identifier: BSD-2-Clause */
/* The points of an experiment. */
#include "tools/sim/experiment.h"

static bool is_given(const struct simx_sweep *sweep, const struct simx_config *config)
{
    const void *field = (const char *)config + sweep->offset;

    return sweep->is_bytes ? *(const uint64_t *)field != 0 : *(const double *)field != SIMX_UNSET;
}

unsigned simx_points(const struct simx_experiment *experiment, const struct simx_config *config)
{
    unsigned num = 1;

    if (experiment->points)
        return experiment->points(config);
    for (unsigned i = 0; i < SIMX_SWEEPS_MAX; i++) {
        const struct simx_sweep *sweep = &experiment->sweeps[i];

        num *= sweep->num && !is_given(sweep, config) ? sweep->num : 1;
    }
    return num;
}

void simx_point(const struct simx_experiment *experiment, struct simx_config *config,
                unsigned index)
{
    for (unsigned i = SIMX_SWEEPS_MAX; i-- > 0;) {
        const struct simx_sweep *sweep = &experiment->sweeps[i];
        void *field = (char *)config + sweep->offset;

        if (sweep->num == 0 || is_given(sweep, config))
            continue;
        if (sweep->is_bytes)
            *(uint64_t *)field = (uint64_t)sweep->values[index % sweep->num];
        else
            *(double *)field = sweep->values[index % sweep->num];
        index /= sweep->num;
    }
    if (experiment->point)
        experiment->point(config, index);
}
