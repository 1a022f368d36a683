/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/plot.h"

#include <math.h>
#include <string.h>

enum {
    POINTS_MAX = 60,  /* of a line with more, single points could not be told */
    NAMES_MAX = 24,   /* along an axis */
    NAMES_CHARS = 80, /* side by side below the picture */
    KEY_LINE_MAX = 4, /* entries of a legend below the picture */
    NUM_COLOURS = 8,
};

/*
 * The colour-blind, too, can tell them apart. Source: M. Okabe and K. Ito, Color Universal Design, 2008; their
 * yellow, which is too pale for a line on white, is grey here.
 */
static const char *const colours[NUM_COLOURS] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#888888",
};
static const int point_types[NUM_COLOURS] = {7, 5, 9, 11, 13, 6, 4, 8};

/*
 * As a string of gnuplot's between single quotes, in which only that quote is special. What enhanced text would take
 * for markup gets a backslash; control characters, which could end the line, become spaces.
 */
static void put_text(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; text && *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (strchr("\\^_{}@&~", c))
            fputc('\\', out);
        if (c == '\'')
            fputc('\'', out);
        fputc(c < ' ' || c == 0x7f ? ' ' : c, out);
    }
    fputc('\'', out);
}

static void put_setting(FILE *out, const char *name, const char *text)
{
    if (!text)
        return;
    fprintf(out, "set %s ", name);
    put_text(out, text);
    fputc('\n', out);
}

static void put_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, " %.9g", value);
    else
        fputs(" NaN", out);
}

/* Names instead of numbers; of very many, each so-and-so-manieth. Those that would touch each other lean. */
static void put_names(FILE *out, char axis, const char *const *names, size_t n)
{
    size_t step = (n + NAMES_MAX - 1) / NAMES_MAX, chars = 0;

    if (!names)
        return;
    fprintf(out, "set %ctics (", axis);
    for (size_t i = 0; i < n; i += step) {
        fputs(i ? ", " : "", out);
        put_text(out, names[i]);
        fprintf(out, " %zu", i);
        chars += strlen(names[i]) + 2;
    }
    fputs(")\n", out);
    if (axis == 'x' && chars > NAMES_CHARS)
        fputs("set xtics rotate by 35 right\n", out);
}

static size_t count_titles(const struct simx_plot *plot)
{
    size_t count = 0;

    for (size_t i = 0; i < plot->num_series; i++)
        count += plot->series[i].title != NULL;
    return count;
}

static void put_axes(FILE *out, const struct simx_plot *plot)
{
    put_setting(out, "title", plot->title);
    put_setting(out, "xlabel", plot->x_label);
    put_setting(out, "ylabel", plot->y_label);
    put_setting(out, "cblabel", plot->z_label);
    if (plot->x_log)
        fputs("set logscale x\n", out);
    if (plot->y_log)
        fputs("set logscale y\n", out);
    if (plot->z_log)
        fputs("set logscale cb\n", out);
    if ((plot->y_from_zero || plot->kind == SIMX_PLOT_BARS) && !plot->y_log)
        fputs("set yrange [*<0:*]\n", out); /* lower only for what is negative */
}

static void put_style(FILE *out, const struct simx_plot *plot)
{
    fputs(
        "set encoding utf8\n"
        "set terminal svg size 800,480 dynamic enhanced font 'sans-serif,13' background '#ffffff'\n"
        "set border 3 lc rgb '#444444'\n"
        "set tics nomirror\n"
        "set grid lc rgb '#dddddd' lt 1 lw 1\n",
        out);
    /* Outside, where it hides no data: in a line below, or as a list if it is long. */
    size_t titles = count_titles(plot);
    if (titles > KEY_LINE_MAX)
        fputs("set key outside right top vertical Left reverse samplen 2\n", out);
    else if (titles > 0)
        fputs("set key below center horizontal Left reverse samplen 2 spacing 1.4\n", out);
    else
        fputs("unset key\n", out);
}

/* The end of an error bar, or y where there is none. */
static double end_of(const struct simx_plot *plot, const double *ends, const double *y, size_t i)
{
    return ends && isfinite(ends[i]) && (ends[i] > 0 || !plot->y_log) ? ends[i] : y[i];
}

/* x, y, and the ends of the error bar. Of a bar, x is where it stands: around the index of its category. */
static void put_data(FILE *out, const struct simx_plot *plot, size_t index)
{
    const struct simx_series *s = &plot->series[index];
    double width = 0.8 / (double)plot->num_series;

    fprintf(out, "$data%zu << EOD\n", index);
    for (size_t i = 0; i < s->n; i++) {
        double low = end_of(plot, s->y_low, s->y, i), high = end_of(plot, s->y_high, s->y, i);
        put_number(out, plot->kind == SIMX_PLOT_BARS
                            ? (double)i - 0.4 + ((double)index + 0.5) * width
                            : s->x[i]);
        put_number(out, s->y[i]);
        put_number(out, low < high ? low : NAN);
        put_number(out, low < high ? high : NAN);
        fputc('\n', out);
    }
    fputs("EOD\n", out);
}

static void put_title(FILE *out, const struct simx_series *s)
{
    if (!s->title) {
        fputs(" notitle", out);
        return;
    }
    fputs(" title ", out);
    put_text(out, s->title);
}

/* As arrows with flat heads: gnuplot's own error bars blot out what is around their middle. */
static void plot_errors(FILE *out, const struct simx_series *s, size_t index, const char *colour)
{
    if (s->y_low && s->y_high)
        fprintf(out,
                ", $data%zu using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 "
                "lc rgb '%s' lw 1 notitle",
                index, colour);
}

static void plot_line(FILE *out, const struct simx_plot *plot, size_t index)
{
    const struct simx_series *s = &plot->series[index];
    const char *colour = colours[index % NUM_COLOURS];
    size_t dashes = 1 + index / NUM_COLOURS; /* colours used up: another kind of line */
    bool steps = plot->kind == SIMX_PLOT_STEPS, points = !steps && s->n <= POINTS_MAX;

    fprintf(out, "$data%zu using 1:2 with %s lc rgb '%s' lw 2 dt %zu", index,
            steps    ? "steps"
            : points ? "linespoints"
                     : "lines",
            colour, dashes);
    if (points)
        fprintf(out, " pt %d ps 0.6", point_types[index % NUM_COLOURS]);
    put_title(out, s);
    if (!steps)
        plot_errors(out, s, index, colour);
}

static void plot_bar(FILE *out, const struct simx_plot *plot, size_t index)
{
    const struct simx_series *s = &plot->series[index];

    fprintf(out, "$data%zu using 1:2 with boxes fill solid 1 noborder lc rgb '%s'", index,
            colours[index % NUM_COLOURS]);
    put_title(out, s);
    plot_errors(out, s, index, "#444444");
}

static void script_series(FILE *out, const struct simx_plot *plot)
{
    bool bars = plot->kind == SIMX_PLOT_BARS;
    const char *separator = "plot ";

    if (bars) {
        put_names(out, 'x', plot->categories, plot->num_categories);
        fprintf(out, "set xrange [-0.6:%.9g]\nset boxwidth %.9g\nset grid noxtics\n",
                (double)plot->num_categories - 0.4, 0.72 / (double)plot->num_series);
    }
    for (size_t i = 0; i < plot->num_series; i++) {
        if (plot->series[i].n > 0)
            put_data(out, plot, i);
    }
    for (size_t i = 0; i < plot->num_series; i++) {
        if (plot->series[i].n == 0)
            continue;
        fputs(separator, out);
        separator = ", \\\n     ";
        if (bars)
            plot_bar(out, plot, i);
        else
            plot_line(out, plot, i);
    }
    fputc('\n', out);
}

static void script_heatmap(FILE *out, const struct simx_plot *plot)
{
    const struct simx_matrix *m = &plot->matrix;

    /* Viridis, by S. van der Walt and N. Smith: even steps to the eye, also to the colour-blind and in print. */
    fputs("set palette defined (0 '#440154', 1 '#472d7b', 2 '#3b528b', 3 '#2c728e', 4 '#21918c', "
          "5 '#28ae80', 6 '#5ec962', 7 '#addc30', 8 '#fde725')\n"
          "unset grid\n",
          out);
    put_names(out, 'x', m->columns, m->num_columns);
    put_names(out, 'y', m->rows, m->num_rows);
    fprintf(out, "set xrange [-0.5:%.9g]\nset yrange [-0.5:%.9g]\n$data << EOD\n",
            (double)m->num_columns - 0.5, (double)m->num_rows - 0.5);
    for (size_t i = 0; i < m->num_rows * m->num_columns; i++) {
        put_number(out, m->values[i]);
        if ((i + 1) % m->num_columns == 0)
            fputc('\n', out);
    }
    /* In rectangles: otherwise the picture would hold an embedded bitmap. */
    fputs("EOD\nplot $data matrix with image pixels notitle\n", out);
}

void simx_plot_script(const struct simx_plot *plot, FILE *out)
{
    put_style(out, plot);
    put_axes(out, plot);
    if (plot->kind == SIMX_PLOT_HEATMAP)
        script_heatmap(out, plot);
    else
        script_series(out, plot);
}
