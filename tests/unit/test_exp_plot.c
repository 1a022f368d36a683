/* SPDX-License-Identifier: BSD-2-Clause */
/* Pictures: what gnuplot makes of them, and what it must not take for its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/sim/plot.h"

static const double x[] = {1, 2, 3, 4}, y[] = {10, 20, 15, 30};
static const double low[] = {9, 18, NAN, 28}, high[] = {11, 22, NAN, 33};
static const char *const names[] = {"ecmp", "reps", "round_robin", "it's {odd}"};
static const struct simx_series two_series[] = {
    {"mrd", x, y, low, high, 4},
    {"tcp", x, low, NULL, NULL, 4},
};

static char directory[] = "/tmp/mrd_test_exp_plot.XXXXXX";
static char svg_path[sizeof(directory) + 32];
static char error[256];

static struct simx_plot lines(void)
{
    return (struct simx_plot){
        .kind = SIMX_PLOT_LINES,
        .title = "Incast",
        .x_label = "senders",
        .y_label = "FCT max [us]",
        .series = two_series,
        .num_series = 2,
    };
}

static struct simx_plot bars(void)
{
    struct simx_plot plot = lines();

    plot.kind = SIMX_PLOT_BARS;
    plot.categories = names;
    plot.num_categories = 4;
    return plot;
}

static struct simx_plot heatmap(void)
{
    static const double values[] = {1, 2, 3, 10, NAN, 30};

    return (struct simx_plot){
        .kind = SIMX_PLOT_HEATMAP,
        .title = "Load",
        .x_label = "spine",
        .y_label = "leaf",
        .z_label = "load [%]",
        .matrix = {values, names, NULL, 2, 3},
    };
}

static void script_of(const struct simx_plot *plot, char *script, size_t len)
{
    FILE *out = fmemopen(script, len, "w");

    simx_plot_script(plot, out);
    fclose(out);
}

static void expect_in(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void expect_not_in(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in:\n%s", part, text);
}

static void simx_plot_script__escapes(void **state)
{
    static const struct {
        const char *title, *line;
    } cases[] = {
        {"plain 100% \"q\" `ls` $d", "set title 'plain 100% \"q\" `ls` $d'\n"},
        {"it's", "set title 'it''s'\n"},
        {"'; system('id') #", "set title '''; system(''id'') #'\n"},
        {"a_b^c{d}@e&f~g\\h", "set title 'a\\_b\\^c\\{d\\}\\@e\\&f\\~g\\\\h'\n"},
        {"two\nlines\t\x7f", "set title 'two lines  '\n"},
        {"\xc2\xb5s", "set title '\xc2\xb5s'\n"},
        {"", "set title ''\n"},
    };
    char script[8192];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct simx_plot plot = lines();
        plot.title = cases[i].title;
        script_of(&plot, script, sizeof(script));
        expect_in(script, cases[i].line);
    }
}

static void simx_plot_script__settings(void **state)
{
    struct simx_plot plot = lines();
    char script[8192];

    (void)state;
    script_of(&plot, script, sizeof(script));
    expect_not_in(script, "logscale");
    expect_not_in(script, "yrange");
    expect_in(script, "$data0 << EOD\n 1 10 9 11\n 2 20 18 22\n 3 15 NaN NaN\n 4 30 28 33\nEOD\n");
    expect_in(script,
              "$data1 << EOD\n 1 9 NaN NaN\n 2 18 NaN NaN\n 3 NaN NaN NaN\n 4 28 NaN NaN\nEOD\n");
    plot.y_from_zero = true;
    script_of(&plot, script, sizeof(script));
    expect_in(script, "set yrange [*<0:*]\n");
    plot.x_log = plot.y_log = true;
    script_of(&plot, script, sizeof(script));
    expect_in(script, "set logscale x\nset logscale y\n");
    expect_not_in(script, "yrange");
}

/* An interval wider than its mean reaches below what a logarithmic axis has. */
static void simx_plot_script__log_error_bars(void **state)
{
    static const double wide[] = {-1, 0, 14, 29};
    struct simx_series one = {"mrd", x, y, wide, high, 4};
    struct simx_plot plot = lines();
    char script[8192];

    (void)state;
    plot.series = &one;
    plot.num_series = 1;
    script_of(&plot, script, sizeof(script));
    expect_in(script, "\n 1 10 -1 11\n 2 20 0 22\n 3 15 14 15\n 4 30 29 33\n");
    plot.y_log = true;
    script_of(&plot, script, sizeof(script));
    expect_in(script, "\n 1 10 10 11\n 2 20 20 22\n 3 15 14 15\n 4 30 29 33\n");
}

/* Two bars of 0.36 in each group, whose middle is the category's tic. */
static void simx_plot_script__bars(void **state)
{
    struct simx_plot plot = bars();
    char script[8192];

    (void)state;
    script_of(&plot, script, sizeof(script));
    expect_in(script, "set xtics ('ecmp' 0, 'reps' 1, 'round\\_robin' 2, 'it''s \\{odd\\}' 3)\n");
    expect_in(script, "set boxwidth 0.36\n");
    expect_in(script, "$data0 << EOD\n -0.2 10 9 11\n 0.8 20 18 22\n");
    expect_in(script, "$data1 << EOD\n 0.2 9 NaN NaN\n");
    expect_in(script, "set yrange [*<0:*]\n");
}

static void simx_plot_script__heatmap(void **state)
{
    struct simx_plot plot = heatmap();
    char script[8192];

    (void)state;
    script_of(&plot, script, sizeof(script));
    expect_in(script, "$data << EOD\n 1 2 3\n 10 NaN 30\nEOD\n");
    expect_in(script, "set ytics ('ecmp' 0, 'reps' 1)\n");
    expect_not_in(script, "set xtics (");
}

static void simx_plot_write__nothing(void **state)
{
    struct simx_plot plot = lines();
    struct simx_plot empty_map = {.kind = SIMX_PLOT_HEATMAP};

    (void)state;
    plot.num_series = 0;
    assert_int_equal(simx_plot_write(&plot, svg_path, error, sizeof(error)), -EINVAL);
    expect_in(error, "there is nothing to draw");
    assert_int_equal(simx_plot_write(&empty_map, svg_path, error, sizeof(error)), -EINVAL);
    assert_int_equal(access(svg_path, F_OK), -1);
}

static void simx_plot_write__no_gnuplot(void **state)
{
    struct simx_plot plot = lines();
    char *path = strdup(getenv("PATH"));

    (void)state;
    setenv("PATH", directory, 1);
    int rc = simx_plot_write(&plot, svg_path, error, sizeof(error));
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(rc, -ENOENT);
    assert_string_equal(error, "gnuplot is not installed: apt-get install gnuplot-nox");
    assert_int_equal(access(svg_path, F_OK), -1);
}

/* Draw, and read the picture; the caller frees it. */
static char *draw(const struct simx_plot *plot)
{
    struct stat stat;

    error[0] = '\0';
    if (simx_plot_write(plot, svg_path, error, sizeof(error)))
        fail_msg("%s", error);
    FILE *in = fopen(svg_path, "r");
    assert_non_null(in);
    assert_int_equal(fstat(fileno(in), &stat), 0);
    char *svg = calloc(1, (size_t)stat.st_size + 1);
    assert_int_equal(fread(svg, 1, (size_t)stat.st_size, in), stat.st_size);
    fclose(in);
    unlink(svg_path);
    return svg;
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void expect_picture(const struct simx_plot *plot, const char *const *parts)
{
    char *svg = draw(plot), *again = draw(plot);

    assert_int_equal(strncmp(svg, "<?xml ", 6), 0);
    assert_non_null(strstr(svg, "</svg>"));
    assert_true(count(svg, "<path ") > 0);
    for (; *parts; parts++)
        expect_in(svg, *parts);
    assert_string_equal(svg, again);
    free(svg);
    free(again);
}

static void simx_plot_write__lines(void **state)
{
    static const char *const parts[] = {
        ">Incast<", ">senders<",          ">FCT max [us]<",     ">mrd<",
        ">tcp<",    "rgb(  0, 114, 178)", "rgb(213,  94,   0)", NULL};
    struct simx_plot plot = lines();

    (void)state;
    expect_picture(&plot, parts);
    plot.x_log = plot.y_log = true;
    expect_picture(&plot, parts);
}

/* Each value is a mark of its own more. */
static void simx_plot_write__all_points(void **state)
{
    struct simx_series one = {"mrd", x, y, NULL, NULL, 3};
    struct simx_plot plot = lines();

    (void)state;
    plot.series = &one;
    plot.num_series = 1;
    char *three = draw(&plot);
    one.n = 4;
    char *four = draw(&plot);
    assert_int_equal(count(four, "xlink:href='#gpPt6'"), count(three, "xlink:href='#gpPt6'") + 1);
    free(three);
    free(four);
}

static void simx_plot_write__steps(void **state)
{
    static const char *const parts[] = {">senders<", ">FCT max [us]<", ">mrd<", NULL};
    struct simx_plot plot = lines();

    (void)state;
    plot.kind = SIMX_PLOT_STEPS;
    expect_picture(&plot, parts);
}

static void simx_plot_write__bars(void **state)
{
    static const char *const parts[] = {
        ">ecmp<", ">reps<", ">round_robin<", ">it's {odd}<", ">mrd<", ">FCT max [us]<", NULL};
    struct simx_plot plot = bars();

    (void)state;
    expect_picture(&plot, parts);
}

static void simx_plot_write__heatmap(void **state)
{
    static const char *const parts[] = {">Load<", ">spine<", ">leaf<", ">load [%]<",
                                        ">ecmp<", ">reps<",  NULL};
    struct simx_plot plot = heatmap();

    (void)state;
    expect_picture(&plot, parts);
}

/* What gnuplot and XML take for markup is there as it was. */
static void simx_plot_write__odd_text(void **state)
{
    static const char *const parts[] = {
        ">a_b^c{d}@e &amp;f~g\\h &lt;i> 'j' \"k\" 100% \xc2\xb5s<",
        NULL,
    };
    struct simx_plot plot = lines();

    (void)state;
    plot.title = "a_b^c{d}@e &f~g\\h <i> 'j' \"k\" 100% \xc2\xb5s";
    expect_picture(&plot, parts);
}

static void simx_plot_write__fails(void **state)
{
    static const double nans[] = {NAN, NAN};
    struct simx_series none = {"mrd", x, nans, NULL, NULL, 2};
    struct simx_plot plot = lines();

    (void)state;
    assert_int_equal(simx_plot_write(&plot, "/nonexistent/a.svg", error, sizeof(error)), -ENOENT);
    assert_string_equal(error, "cannot write /nonexistent/a.svg: No such file or directory");
    plot.series = &none;
    plot.num_series = 1;
    assert_int_equal(simx_plot_write(&plot, svg_path, error, sizeof(error)), -EPROTO);
    expect_in(error, "gnuplot cannot draw /tmp/");
    expect_in(error, "out.svg: all points y value undefined!");
    assert_int_equal(access(svg_path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simx_plot_script__escapes),
        cmocka_unit_test(simx_plot_script__settings),
        cmocka_unit_test(simx_plot_script__log_error_bars),
        cmocka_unit_test(simx_plot_script__bars),
        cmocka_unit_test(simx_plot_script__heatmap),
        cmocka_unit_test(simx_plot_write__nothing),
        cmocka_unit_test(simx_plot_write__no_gnuplot),
    };
    const struct CMUnitTest with_gnuplot[] = {
        cmocka_unit_test(simx_plot_write__lines),   cmocka_unit_test(simx_plot_write__all_points),
        cmocka_unit_test(simx_plot_write__steps),   cmocka_unit_test(simx_plot_write__bars),
        cmocka_unit_test(simx_plot_write__heatmap), cmocka_unit_test(simx_plot_write__odd_text),
        cmocka_unit_test(simx_plot_write__fails),
    };

    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    snprintf(svg_path, sizeof(svg_path), "%s/out.svg", directory);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    if (rc == 0 && system("gnuplot --version >/dev/null 2>&1") != 0) {
        puts("skipped: gnuplot is not installed (Debian: gnuplot-nox)");
        rc = 77;
    } else if (rc == 0) {
        rc = cmocka_run_group_tests(with_gnuplot, NULL, NULL);
    }
    unlink(svg_path);
    rmdir(directory);
    return rc;
}
