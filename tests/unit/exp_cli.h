/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experiments as the command line asks for them, run in the test's own process.
 *
 * exp_parse() for what a command line asks for, exp_parse_any() if it may be refused, and exp_configure() for one point of it.
 * exp_measure() is the result of a point, exp_measure_ended() the same where all flows must end,
 * exp_measure_only() that of a line with one point: it lives as long as the test. exp_number() for a value of
 * it. Each fails the test if there is none.
 */
#ifndef EXP_CLI_H
#define EXP_CLI_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "tests/unit/json_text.h"
#include "tools/sim/options.h"

enum { EXP_WORDS_MAX = 48, EXP_LINE_BYTES = 512 };

/* `line` as it follows mrd_sim on a command line, words apart by blanks. */
static inline enum simx_parsed exp_parse_any(struct simx_config *config,
                                             const struct simx_experiment **experiment,
                                             const char *line)
{
    char text[EXP_LINE_BYTES], *argv[EXP_WORDS_MAX + 1] = {(char *)"mrd_sim"}, *rest = text;
    int argc = 1;

    assert_true(strlen(line) < sizeof(text));
    snprintf(text, sizeof(text), "%s", line);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        assert_true(argc < EXP_WORDS_MAX);
        argv[argc++] = word;
    }
    return simx_options_parse(config, experiment, argc, argv);
}

static inline const struct simx_experiment *exp_parse(struct simx_config *config, const char *line)
{
    const struct simx_experiment *experiment;

    if (exp_parse_any(config, &experiment, line) != SIMX_PARSE_RUN)
        fail_msg("%s: %s", line, mrd_last_error());
    return experiment;
}

/*
 * The experiment of a command line, and its configuration for a point; the number of points is
 * returned.
 */
static inline unsigned exp_configure(const char *line, unsigned index,
                                     const struct simx_experiment **experiment,
                                     struct simx_config *config)
{
    *experiment = exp_parse(config, line);

    unsigned num = simx_points(*experiment, config);

    assert_true(index < num);
    simx_point(*experiment, config, index);
    return num;
}

/* One run of a point. Its result is freed after the test. */
static inline struct json_object *exp_measure(const char *line, unsigned index)
{
    struct simx_progress progress = {0};
    const struct simx_experiment *experiment;
    struct simx_config config;

    exp_configure(line, index, &experiment, &config);

    struct json_object *result = simx_measure(experiment, &config, &progress);

    if (!result)
        fail_msg("%s: %s", line, mrd_last_error());
    return json_text_own(result);
}

static inline struct json_object *exp_measure_ended(const char *line, unsigned index)
{
    struct json_object *result = exp_measure(line, index);

    assert_int_equal(json_get_number(result, "unfinished"), 0);
    return result;
}

static inline struct json_object *exp_measure_only(const char *line)
{
    struct simx_config config;
    const struct simx_experiment *experiment = exp_parse(&config, line);

    assert_int_equal(simx_points(experiment, &config), 1);
    return exp_measure_ended(line, 0);
}

/* The sentence with which a run fails. */
static inline const char *exp_refusal(const char *line)
{
    struct simx_progress progress = {0};
    const struct simx_experiment *experiment;
    struct simx_config config;

    exp_configure(line, 0, &experiment, &config);
    assert_null(simx_measure(experiment, &config, &progress));
    return mrd_last_error();
}

/* The experiment refuses the line before any run, with a sentence that has `words` in it. */
static inline void exp_assert_refused(const char *line, const char *words)
{
    struct simx_config config;
    const struct simx_experiment *experiment = exp_parse(&config, line);

    assert_true(simx_check(experiment, &config) < 0);
    if (!strstr(mrd_last_error(), words))
        fail_msg("%s: '%s' does not say '%s'", line, mrd_last_error(), words);
}

/* Two runs of the same seed differ only by what the machine does. */
static inline void exp_assert_same(const char *line, unsigned index)
{
    static const char *const of_machine[] = {"wall_s", "packets_per_wall_s", "rss_mb"};
    struct json_object *run[2];

    for (int i = 0; i < 2; i++) {
        run[i] = exp_measure_ended(line, index);
        for (size_t j = 0; j < sizeof(of_machine) / sizeof(of_machine[0]); j++)
            json_object_object_del(run[i], of_machine[j]);
    }
    assert_string_equal(json_object_to_json_string(run[0]), json_object_to_json_string(run[1]));
}

static inline double exp_number(struct json_object *run, const char *path)
{
    double value = json_get_number(run, path);

    if (!isfinite(value))
        fail_msg("'%s' is not a number in %s", path, json_object_to_json_string(run));
    return value;
}

static inline void exp_assert_near(double value, double expected, double error)
{
    if (!(fabs(value - expected) <= error))
        fail_msg("%.9g, not %.9g", value, expected);
}

/* All columns of the table have a value in the run. */
static inline void exp_assert_columns(const struct simx_experiment *experiment,
                                      struct json_object *run)
{
    for (const struct simx_column *column = experiment->columns; column->key; column++) {
        if (!json_get(run, column->key))
            fail_msg("%s has no '%s'", experiment->name, column->key);
    }
}

#endif
