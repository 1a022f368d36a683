/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/curve.h"

void simx_curve_fill(struct simx_curve *curve, struct json_object *const *runs, size_t num_runs,
                     struct simx_curve_value x, struct simx_curve_value y)
{
    curve->n = num_runs < SIMX_POINTS_MAX ? num_runs : SIMX_POINTS_MAX;
    for (size_t i = 0; i < curve->n; i++) {
        double half = y.factor * simx_interval(runs[i], y.path);

        curve->x[i] = x.factor * simx_value(runs[i], x.path);
        curve->y[i] = y.factor * simx_value(runs[i], y.path);
        curve->low[i] = curve->y[i] - half;
        curve->high[i] = curve->y[i] + half;
    }
}

struct simx_series simx_curve_series_exact(const struct simx_curve *curve, const char *title)
{
    return (struct simx_series){.title = title, .x = curve->x, .y = curve->y, .n = curve->n};
}

struct simx_series simx_curve_series(const struct simx_curve *curve, const char *title)
{
    struct simx_series series = simx_curve_series_exact(curve, title);

    series.y_low = curve->low;
    series.y_high = curve->high;
    return series;
}
