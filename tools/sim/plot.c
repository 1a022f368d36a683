/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/plot.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "plot_style.h"
#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"

enum { LINES_MAX = 16, NAME_BYTES = 32, EXIT_NO_COMMAND = 127 };

/* Those that have a colour in tools/plot-style.gp; other lines have these in this order. */
static const char *const colours[] = {"adaptive", "rr",     "rc",   "irn",
                                      "dcqcn",    "single", "reps", "random"};

enum { NUM_COLOURS = sizeof(colours) / sizeof(colours[0]) };

struct point {
    double x, y, half; /* half the confidence interval; NAN: none */
};

/* What a line is made of. */
struct line {
    char name[NAME_BYTES];
    const struct simx_picture_value *value;
    struct json_object *const *runs;
    size_t num_runs;
    int element;           /* of the array that is the value; below 0: it is a number */
    unsigned colour, dash; /* colour: if none is that of the name */
};

/* Between single quotes only that quote is special. */
static void put_text(FILE *out, const char *before, const char *text)
{
    fprintf(out, "%s '", before);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', out);
        fputc(*text, out);
    }
    fputs("'\n", out);
}

/* --------------------------------------------------------------------------------------- points */

static double element_of(struct json_object *object, const char *key, int element)
{
    struct json_object *array = json_get(object, key);

    return array ? json_object_get_double(json_object_array_get_idx(array, (size_t)element)) : NAN;
}

static double value_of(struct json_object *object, const struct simx_picture_value *value, size_t i)
{
    if (!value->key)
        return value->factor * (double)i;
    return value->factor *
           (value->key[0] ? json_mean(object, value->key) : json_object_get_double(object));
}

static int compare_y(const void *a, const void *b)
{
    const struct point *p = a, *q = b;

    return (p->y > q->y) - (p->y < q->y);
}

static struct json_object *array_of(const struct simx_picture *p, const struct line *line)
{
    return p->array ? json_get(line->runs[0], p->array) : NULL;
}

static struct point make_point(const struct simx_picture *p, const struct line *line, size_t i)
{
    struct json_object *array = array_of(p, line);
    struct json_object *object = array ? json_object_array_get_idx(array, i) : line->runs[i];
    struct point point = {NAN, NAN, 0};

    if (!object) /* null in the array */
        return point;
    point.x = value_of(object, &p->x, i);
    point.y = line->element < 0
                  ? value_of(object, line->value, i)
                  : line->value->factor * element_of(object, line->value->key, line->element);
    if (!array)
        point.half = line->value->factor * json_interval(object, line->value->key);
    if (point.x == 0 && p->x_zero > 0)
        point.x = p->x_zero;
    return point;
}

/* All that have values, in memory that the caller frees; NULL: no memory. */
static struct point *collect(const struct simx_picture *p, const struct line *line, size_t *num)
{
    struct json_object *array = array_of(p, line);
    size_t most = array ? json_object_array_length(array) : p->array ? 0 : line->num_runs;
    struct point *points = calloc(most + 1, sizeof(*points));

    *num = 0;
    for (size_t i = 0; points && i < most; i++) {
        points[*num] = make_point(p, line, i);
        *num += isfinite(points[*num].x) && isfinite(points[*num].y);
    }
    if (p->x.key || !points)
        return points;
    qsort(points, *num, sizeof(*points), compare_y);
    for (size_t i = 0; i < *num; i++)
        points[i].x = p->x.factor * (double)i;
    return points;
}

/*
 * A named block of data: x, y, and the ends of the error bar. False: it would be empty, and there
 * is none.
 */
static bool put_data(FILE *out, const struct simx_picture *p, const struct line *line,
                     unsigned index)
{
    size_t num, window = p->mean_of ? p->mean_of : 1;
    struct point *points = collect(p, line, &num);

    if (num < window) {
        free(points);
        return false;
    }
    fprintf(out, "$data%u << EOD\n", index);
    for (size_t i = window - 1; i < num; i++) {
        double y = 0, half = isfinite(points[i].half) ? points[i].half : 0;

        for (size_t j = 0; j < window; j++)
            y += points[i - j].y / (double)window;
        fprintf(out, "%.9g %.9g %.9g %.9g\n", points[i].x, y, y - half, y + half);
    }
    fputs("EOD\n", out);
    free(points);
    return true;
}

/* ---------------------------------------------------------------------------------------- lines */

static struct line make_line(const struct simx_picture_value *value,
                             struct json_object *const *runs, size_t num_runs, const char *name,
                             unsigned colour)
{
    struct line line = {
        .value = value, .runs = runs, .num_runs = num_runs, .element = -1, .colour = colour};

    snprintf(line.name, sizeof(line.name), "%s", name);
    return line;
}

/* A line for each name. */
static unsigned find_names(const struct simx_picture *p, struct json_object *const *runs,
                           struct line *lines)
{
    struct json_object *names = json_get(runs[0], p->names);
    unsigned num = 0, all = names ? (unsigned)json_object_array_length(names) : 0;

    for (; num < all && num < LINES_MAX; num++) {
        const char *name = json_object_get_string(json_object_array_get_idx(names, num));

        lines[num] = make_line(&p->y[0], runs, 1, name, num);
        lines[num].element = (int)num;
        lines[num].dash = num / NUM_COLOURS;
    }
    return num;
}

/* How many of the results from the first on are of its group. */
static size_t group_size(const struct simx_picture *p, struct json_object *const *runs,
                         size_t num_runs)
{
    char first[NAME_BYTES];
    size_t num = 1;

    snprintf(first, sizeof(first), "%s", json_object_get_string(json_get(runs[0], p->group)));
    while (!p->array && num < num_runs &&
           strcmp(json_object_get_string(json_get(runs[num], p->group)), first) == 0)
        num++;
    return num;
}

static unsigned values_of(const struct simx_picture *p)
{
    unsigned num = 0;

    while (num < SIMX_PICTURE_VALUES && p->y[num].title)
        num++;
    return num;
}

static unsigned find_groups(const struct simx_picture *p, struct json_object *const *runs,
                            size_t num_runs, struct line *lines)
{
    unsigned num = 0, group = 0;

    for (size_t i = 0, size; i < num_runs; i += size, group++) {
        const char *name = json_object_get_string(json_get(runs[i], p->group));

        size = group_size(p, &runs[i], num_runs - i);
        if (!p->all_values && num < LINES_MAX)
            lines[num++] = make_line(&p->y[0], &runs[i], size, name, group);
        for (unsigned j = 0; p->all_values && j < values_of(p) && num < LINES_MAX; j++) {
            char both[NAME_BYTES];

            snprintf(both, sizeof(both), "%s %s", name, p->y[j].title);
            lines[num] = make_line(&p->y[j], &runs[i], size, both, group);
            lines[num++].dash = j;
        }
    }
    return num;
}

static unsigned find_lines(const struct simx_picture *p, struct json_object *const *runs,
                           size_t num_runs, struct line *lines)
{
    if (p->names)
        return find_names(p, runs, lines);
    if (p->group)
        return find_groups(p, runs, num_runs, lines);
    for (unsigned i = 0; i < values_of(p); i++)
        lines[i] = make_line(&p->y[i], runs, num_runs, p->y[i].title, i);
    return values_of(p);
}

static const char *colour_of(const char *name, unsigned index)
{
    for (unsigned i = 0; i < NUM_COLOURS; i++) {
        if (strcmp(colours[i], name) == 0)
            return name;
    }
    return colours[index % NUM_COLOURS];
}

static void put_axes(FILE *out, const struct simx_picture *p, struct json_object *run,
                     const char *svg_path)
{
    fputs(simx_plot_style, out);
    fputs("set terminal svg size 800,420 @terminal_look\n"
          "set grid xtics\n"
          "set key outside right top vertical Left reverse samplen 2\n",
          out);
    put_text(out, "set output", svg_path);
    put_text(out, "set title", p->title);
    put_text(out, "set xlabel", p->x_label);
    put_text(out, "set ylabel", p->y_label);
    fputs(p->x_log ? "set logscale x\n" : "", out);
    fputs(p->y_log ? "set logscale y\n" : "set yrange [0:*]\n", out);
    if (p->x_mark)
        fprintf(out, "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead dt 2\n",
                json_mean(run, p->x_mark), json_mean(run, p->x_mark));
}

unsigned simx_plot_script(const struct simx_picture *p, struct json_object *const *runs,
                          size_t num_runs, const char *svg_path, FILE *out)
{
    struct line lines[LINES_MAX];
    unsigned num = find_lines(p, runs, num_runs, lines), drawn = 0;
    bool is_drawn[LINES_MAX];

    put_axes(out, p, runs[0], svg_path);
    for (unsigned i = 0; i < num; i++)
        is_drawn[i] = put_data(out, p, &lines[i], i);
    for (unsigned i = 0; i < num; i++) {
        const char *colour = colour_of(lines[i].name, lines[i].colour);

        if (!is_drawn[i])
            continue;
        fprintf(out,
                "%s$data%u with %s lw 2 dt %u lc rgb %s_colour title '%s', $data%u using "
                "1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb %s_colour "
                "notitle",
                drawn++ ? ", " : "plot ", i, p->array ? "lines" : "linespoints pt 7 ps 0.6",
                lines[i].dash + 1, colour, lines[i].name, i, colour);
    }
    fputc('\n', out);
    return drawn;
}

/* Was the picture cut short? gnuplot does not tell when the disk is full. */
static bool is_cut(const char *svg_path)
{
    enum { TAIL_BYTES = 32 };
    char tail[TAIL_BYTES + 1] = {0};
    FILE *file = fopen(svg_path, "rb");
    struct stat info;
    bool whole;

    if (!file)
        return true;
    whole = fstat(fileno(file), &info) == 0 && !S_ISREG(info.st_mode); /* not known */
    if (!whole && fseek(file, -TAIL_BYTES, SEEK_END) == 0)
        whole = fread(tail, 1, TAIL_BYTES, file) == TAIL_BYTES && strstr(tail, "</svg>");
    fclose(file);
    return !whole;
}

int simx_plot_write(const struct simx_picture *p, struct json_object *const *runs, size_t num_runs,
                    const char *svg_path)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* a gnuplot that ends early is an error */
    FILE *out = popen("gnuplot -d", "w");
    unsigned drawn = out ? simx_plot_script(p, runs, num_runs, svg_path, out) : 0;
    int status = out ? pclose(out) : -1;

    signal(SIGPIPE, before);
    if (drawn > 0 && status == 0)
        return is_cut(svg_path) ? simx_fail(-EIO, "%s could not be written whole", svg_path) : 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_COMMAND)
        return simx_fail(-EINVAL, "gnuplot is not installed: apt-get install gnuplot-nox");
    if (out && drawn == 0)
        return simx_fail(-EINVAL, "there is nothing to draw in %s", svg_path);
    return simx_fail(-EINVAL, "gnuplot cannot draw %s", svg_path);
}
