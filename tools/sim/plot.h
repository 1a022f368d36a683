/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pictures of results: an SVG file, drawn by gnuplot.
 *
 * An experiment describes its picture by a const struct simx_picture, and simx_plot_write() draws
 * it from the results of all points. gnuplot is all that it needs. tools/experiments-plot.sh
 * compares transports in one picture.
 */
#ifndef SIMX_PLOT_H
#define SIMX_PLOT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { SIMX_PICTURE_VALUES = 3 };

/* A value of a result; its unit is that of the picture. */
struct simx_picture_value {
    const char *key; /* NULL: the place among the points; "": the element of the array itself */
    double factor;
    const char *title; /* in the legend; not used where `group` alone names lines */
};

struct simx_picture {
    const char *title, *x_label, *y_label;
    /*
     * Without `array` each result is a point of a line, and those with the same value of `group`
     * are one line. With it each result is a line, named by its `group`, and the elements of that
     * array are its points. `group` NULL: a line for each value.
     */
    const char *array, *group;
    bool all_values; /* with `group`: a line for each group and value */
    /*
     * With `array`: an array of names in the first result, which alone is drawn. The first value is
     * an array in each point, and each of its elements is a line, 16 at most.
     */
    const char *names;
    struct simx_picture_value x; /* key NULL: points are sorted by y */
    struct simx_picture_value y[SIMX_PICTURE_VALUES];
    bool x_log, y_log;
    double x_zero;      /* where x = 0 stands on a logarithmic axis; 0: nowhere */
    unsigned mean_of;   /* y is the mean of so many points; 0: of one */
    const char *x_mark; /* a vertical line stands at this value of the first result; NULL: none */
};

/*
 * Draw from runs, or summaries of seeds: these have error bars, and the arrays of their first seed.
 * 0; -EINVAL with a sentence: no point has a value, or gnuplot is missing or fails.
 */
int simx_plot_write(const struct simx_picture *picture, struct json_object *const *runs,
                    size_t num_runs, const char *svg_path) __attribute__((warn_unused_result));
/* The commands for gnuplot, which writes to `svg_path`; the number of lines that have points. */
unsigned simx_plot_script(const struct simx_picture *picture, struct json_object *const *runs,
                          size_t num_runs, const char *svg_path, FILE *out);

#endif
