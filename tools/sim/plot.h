/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pictures of experiments: an SVG file, drawn by gnuplot.
 *
 * Fill a struct simx_plot and call simx_plot_write(). The same data makes the same bytes. Texts are UTF-8 and appear as
 * they are: nothing in them is a command of gnuplot's. Values that are not finite are left out.
 */
#ifndef SIMX_PLOT_H
#define SIMX_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What is drawn. */
enum simx_plot_kind {
    SIMX_PLOT_LINES,   /* y over x: lines, and points if there are few */
    SIMX_PLOT_STEPS,   /* y over x, where y stays until the next x: a distribution function */
    SIMX_PLOT_BARS,    /* a group of bars for each category, a bar for each series */
    SIMX_PLOT_HEATMAP, /* a colour for each cell of a matrix */
};

/* A line, or the bars of one colour. */
struct simx_series {
    const char *title; /* in the legend; NULL is not in it */
    const double *x;   /* n of them, ascending; not used by bars, whose i-th is of category i */
    const double *y;   /* n of them */
    /*
     * The ends of the error bars, n of each, or both NULL. Where one is not finite, as of a mean of one seed, or not
     * positive on a logarithmic axis, the bar ends at y. Not used by steps.
     */
    const double *y_low, *y_high;
    size_t n;
};

/* Cells of a heat map. */
struct simx_matrix {
    const double *values;       /* row after row; row 0 is the lowest */
    const char *const *rows;    /* their names, or NULL: they are numbered from 0 */
    const char *const *columns; /* likewise */
    size_t num_rows, num_columns;
};

/* A picture; all of it is the caller's. */
struct simx_plot {
    enum simx_plot_kind kind;
    const char *title;        /* above the picture, or NULL */
    const char *x_label;      /* with the unit; NULL: none */
    const char *y_label;      /* likewise */
    const char *z_label;      /* of a heat map's colours */
    bool x_log, y_log, z_log; /* logarithmic axes; what is not positive is left out there */
    bool y_from_zero; /* the y axis begins at 0, as it does for bars, unless it is logarithmic */
    const struct simx_series *series; /* num_series of them, but not for a heat map */
    size_t num_series;
    const char *const *categories; /* num_categories names, for bars only */
    size_t num_categories;
    struct simx_matrix matrix; /* for a heat map only */
};

/*
 * Draw into a file, which is only touched if all went well before. 0, or -errno with a sentence in `error`: -EINVAL if
 * there is nothing to draw, -ENOENT if gnuplot is not installed, -EPROTO if it fails (what it says is in the sentence),
 * or that of the file.
 */
int simx_plot_write(const struct simx_plot *plot, const char *svg_path, char *error, size_t len)
    __attribute__((warn_unused_result));

/* The commands that simx_plot_write() gives to gnuplot, which writes the picture to its standard output. */
void simx_plot_script(const struct simx_plot *plot, FILE *out);

#endif
