/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line of a picture, made of the points of an experiment: one of their values over another.
 *
 * simx_curve_fill() from the results of the points, then simx_curve_series() for a struct simx_plot, which borrows the
 * curve. In between a value that the picture shows in another place may be moved.
 */
#ifndef SIMX_CURVE_H
#define SIMX_CURVE_H

#include "tools/sim/experiment.h"
#include "tools/sim/plot.h"

/* A value of the results, and what it is multiplied by for the unit of the picture. */
struct simx_curve_value {
    const char *path;
    double factor;
};

struct simx_curve {
    double x[SIMX_POINTS_MAX], y[SIMX_POINTS_MAX];
    double low[SIMX_POINTS_MAX], high[SIMX_POINTS_MAX]; /* the ends of the error bars */
    size_t n;
};

/*
 * From runs or summaries of seeds, of which only a summary has error bars: its confidence interval. What is more than
 * SIMX_POINTS_MAX is left out.
 */
void simx_curve_fill(struct simx_curve *curve, struct json_object *const *runs, size_t num_runs,
                     struct simx_curve_value x, struct simx_curve_value y);
/* With its error bars; `curve` and `title` must live as long as the series. */
struct simx_series simx_curve_series(const struct simx_curve *curve, const char *title);
/* Without, for what is the same with each seed. */
struct simx_series simx_curve_series_exact(const struct simx_curve *curve, const char *title);

#endif
