/* SPDX-License-Identifier: BSD-2-Clause */
/* Pictures: the points that a description takes from results, and what gnuplot makes of them. */
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <unistd.h>

#include "tests/unit/exp_runs.h"
#include "tools/sim/fail.h"
#include "tools/sim/plot.h"

enum { RUNS_MAX = 4, SCRIPT_BYTES = 8192 };

static char directory[] = "/tmp/mrd_test_exp_plot.XXXXXX";
static char svg_path[sizeof(directory) + 32];

static struct simx_picture lines(void)
{
    return (struct simx_picture){.title = "it's {odd}_text",
                                 .x_label = "x",
                                 .y_label = "y",
                                 .x = {"x", 1, NULL},
                                 .y = {{"a", 100, "first"}, {"b", 1, "second"}}};
}

/* The commands for results that are given as JSON with ' for ", and how many lines they draw. */
static unsigned script_of(const struct simx_picture *picture, const char *const *texts,
                          char *script)
{
    struct json_object *runs[RUNS_MAX];
    size_t num = exp_runs_make(runs, texts);
    FILE *out = fmemopen(script, SCRIPT_BYTES, "w");
    unsigned drawn = simx_plot_script(picture, runs, num, "it's.svg", out);

    fclose(out);
    return drawn;
}

static void expect_in(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

/* A line for each value; one that no result has is not drawn. */
TEST(simx_plot_script__a_line_a_value)
{
    static const char *const both[] = {"{'x':1,'a':0.5,'b':7}", "{'x':2,'a':0.25,'b':null}", NULL};
    static const char *const one[] = {"{'x':1,'a':0.5}", NULL};
    struct simx_picture picture = lines();
    char script[SCRIPT_BYTES];

    assert_int_equal(script_of(&picture, both, script), 2);
    expect_in(script, "set output 'it''s.svg'\n");
    expect_in(script, "set title 'it''s {odd}_text'\n");
    expect_in(script, "$data0 << EOD\n1 50 50 50\n2 25 25 25\nEOD\n");
    expect_in(script, "$data1 << EOD\n1 7 7 7\nEOD\n");
    assert_int_equal(script_of(&picture, one, script), 1);
    assert_null(strstr(script, "$data1"));
}

/* Summaries have intervals; results of one group follow each other and are one line. */
TEST(simx_plot_script__a_line_a_group)
{
    static const char *const texts[] = {"{'g':4096,'mean':{'x':0,'a':3},'ci95':{'x':0,'a':1}}",
                                        "{'g':4096,'mean':{'x':2,'a':4},'ci95':{'x':0,'a':null}}",
                                        "{'g':'rc','x':1,'a':5}", NULL};
    struct simx_picture picture = lines();
    char script[SCRIPT_BYTES];

    picture.group = "g";
    picture.y[0].factor = 1;
    picture.x_log = true;
    picture.x_zero = 0.5;
    assert_int_equal(script_of(&picture, texts, script), 2);
    expect_in(script, "set logscale x\n");
    expect_in(script, "$data0 << EOD\n0.5 3 2 4\n2 4 4 4\nEOD\n$data1 << EOD\n1 5 5 5\nEOD\n");
    expect_in(script, "lc rgb adaptive_colour title '4096'");
    expect_in(script, "lc rgb rc_colour title 'rc'"); /* its own colour, wherever it stands */
}

/* A line for each group and value: a colour a group, dashes a value. */
TEST(simx_plot_script__a_line_a_group_and_value)
{
    static const char *const texts[] = {"{'g':0.01,'x':1,'a':3,'b':6}",
                                        "{'g':0.01,'x':2,'a':4,'b':7}",
                                        "{'g':0.1,'x':1,'a':5,'b':null}", NULL};
    struct simx_picture picture = lines();
    char script[SCRIPT_BYTES];

    picture.group = "g";
    picture.all_values = true;
    picture.y[0].factor = 1;
    picture.y_log = true;
    assert_int_equal(script_of(&picture, texts, script), 3);
    expect_in(script, "set logscale y\n");
    assert_null(strstr(script, "set yrange [0:*]"));
    expect_in(script, "$data0 << EOD\n1 3 3 3\n2 4 4 4\nEOD\n");
    expect_in(script, "$data1 << EOD\n1 6 6 6\n2 7 7 7\nEOD\n");
    expect_in(script, "dt 1 lc rgb adaptive_colour title '0.01 first'");
    expect_in(script, "dt 2 lc rgb adaptive_colour title '0.01 second'");
    expect_in(script, "dt 1 lc rgb rr_colour title '0.1 first'");
    assert_null(strstr(script, "'0.1 second'")); /* it has no value */
}

/* A line for each name: the elements of an array in each point. */
TEST(simx_plot_script__a_line_a_name)
{
    static const char *const texts[] = {"{'who':['1 mrd','2 TCP'],"
                                        "'o':[{'t':1,'v':[0.5,0]},{'t':2,'v':[0.25,0.75]}]}",
                                        NULL};
    static const char *const nobody[] = {"{'o':[{'t':1,'v':[0.5,0]}]}", NULL};
    struct simx_picture picture = lines();
    char script[SCRIPT_BYTES];

    picture.array = "o";
    picture.names = "who";
    picture.x.key = "t";
    picture.y[0] = (struct simx_picture_value){"v", 100, NULL};
    assert_int_equal(script_of(&picture, texts, script), 2);
    expect_in(script, "$data0 << EOD\n1 50 50 50\n2 25 25 25\nEOD\n");
    expect_in(script, "$data1 << EOD\n1 0 0 0\n2 75 75 75\nEOD\n");
    expect_in(script, "title '1 mrd'");
    expect_in(script, "title '2 TCP'");
    assert_int_equal(script_of(&picture, nobody, script), 0);
}

/* Elements of an array: numbers or objects, null ones left out, sorted or averaged. */
TEST(simx_plot_script__arrays)
{
    static const char *const texts[] = {
        "{'g':'k','at':9,'n':[10,20,null],'o':[{'t':1,'v':8},{'t':2,'v':2},"
        "{'t':3,'v':4}]}",
        NULL};
    struct simx_picture picture = lines();
    char script[SCRIPT_BYTES];

    picture.array = "n";
    picture.x.key = "";
    picture.y[0] = (struct simx_picture_value){NULL, 1, "flows"};
    picture.y[1].title = NULL;
    assert_int_equal(script_of(&picture, texts, script), 1);
    expect_in(script, "EOD\n10 0 0 0\n20 1 1 1\nEOD\n");

    picture.array = "o";
    picture.group = "g";
    picture.x.key = NULL;
    picture.y[0].key = "v";
    assert_int_equal(script_of(&picture, texts, script), 1);
    expect_in(script, "EOD\n0 2 2 2\n1 4 4 4\n2 8 8 8\nEOD\n");

    picture.x.key = "t";
    picture.mean_of = 2;
    picture.x_mark = "at";
    assert_int_equal(script_of(&picture, texts, script), 1);
    expect_in(script, "EOD\n2 5 5 5\n3 3 3 3\nEOD\n");
    expect_in(script, "set arrow from 9, graph 0 to 9, graph 1");
}

/* ---------------------------------------------------------------------------------------- files */

static int write_picture(const struct simx_picture *picture, const char *text, const char *path)
{
    struct json_object *run = json_text(text);

    return simx_plot_write(picture, &run, 1, path);
}

TEST(simx_plot_write__no_gnuplot)
{
    struct simx_picture picture = lines();
    char *path = strdup(getenv("PATH"));

    setenv("PATH", directory, 1);
    int ret = write_picture(&picture, "{'x':1,'a':1}", svg_path);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(ret, -EINVAL);
    assert_string_equal(mrd_last_error(), "gnuplot is not installed: apt-get install gnuplot-nox");
    assert_int_equal(access(svg_path, F_OK), -1);
}

static bool has_gnuplot(void)
{
    return system("gnuplot --version >/dev/null 2>&1") == 0;
}

static void skip_without_gnuplot(void)
{
    if (!has_gnuplot()) {
        puts("skipped: gnuplot is not installed (Debian: gnuplot-nox)");
        skip();
    }
}

TEST(simx_plot_write__fails)
{
    struct simx_picture picture = lines();

    skip_without_gnuplot();
    assert_int_equal(write_picture(&picture, "{'x':1,'a':null}", svg_path), -EINVAL);
    expect_in(mrd_last_error(), "there is nothing to draw");
    assert_int_equal(write_picture(&picture, "{'x':1,'a':1}", "/nonexistent/a.svg"), -EINVAL);
    assert_string_equal(mrd_last_error(), "gnuplot cannot draw /nonexistent/a.svg");
}

/* Texts appear as they are, and the same results make the same bytes. */
TEST(simx_plot_write__picture)
{
    static char svg[2][1 << 16];
    struct simx_picture picture = lines();

    skip_without_gnuplot();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(write_picture(&picture, "{'x':1,'a':1,'b':2}", svg_path), 0);

        FILE *in = fopen(svg_path, "r");

        assert_non_null(in);
        assert_true(fread(svg[i], 1, sizeof(svg[i]) - 1, in) > 0);
        fclose(in);
        unlink(svg_path);
    }
    expect_in(svg[0], "it's {odd}_text<");
    expect_in(svg[0], ">second<");
    expect_in(svg[0], "</svg>");
    assert_string_equal(svg[0], svg[1]);
}

int kit_before_all(void)
{
    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    snprintf(svg_path, sizeof(svg_path), "%s/out.svg", directory);
    return 0;
}

int kit_after_all(void)
{
    unlink(svg_path);
    rmdir(directory);
    return has_gnuplot() ? 0 : KIT_SKIPPED;
}
