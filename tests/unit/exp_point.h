/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Points of experiments, made from a command line and measured in this process.
 *
 * point_config() for what a command line asks for; point_measure() or point_measure_at() for a
 * result, which the caller puts; number() for a value of it.
 */
#ifndef EXP_POINT_H
#define EXP_POINT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "tools/sim/options.h"

enum { POINT_WORDS_MAX = 48, POINT_LINE_BYTES = 512 };

/* `line` as it follows mrd_sim on a command line, words apart by one blank. */
static inline const struct simx_experiment *point_config(struct simx_config *config,
                                                         const char *line)
{
    char copy[POINT_LINE_BYTES], error[SIMX_ERROR_BYTES] = "";
    char *argv[POINT_WORDS_MAX] = {"mrd_sim"}, *rest = copy;
    const struct simx_experiment *experiment;
    int argc = 1;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word; (word = strsep(&rest, " "));) {
        assert_true(argc + 1 < POINT_WORDS_MAX);
        argv[argc++] = word;
    }
    if (simx_options_parse(config, &experiment, argc, argv, error, sizeof(error)) != SIMX_PARSE_RUN)
        fail_msg("%s: %s", line, error);
    return experiment;
}

/* The result of point `index`, which all must have reached their end in. */
static inline struct json_object *point_measure_at(const char *line, unsigned index)
{
    struct simx_config config;
    const struct simx_experiment *experiment = point_config(&config, line);
    struct simx_progress progress = {0};
    struct json_object *result;

    assert_true(index < (experiment->points ? experiment->points(&config) : 1));
    if (experiment->point)
        experiment->point(&config, index);
    result = experiment->measure(&config, &progress);
    if (!result)
        fail_msg("%s: %s", line, progress.error);
    assert_int_equal(simx_json_get_number(result, "unfinished"), 0);
    return result;
}

/* That of a command line with one point. */
static inline struct json_object *point_measure(const char *line)
{
    struct simx_config config;
    const struct simx_experiment *experiment = point_config(&config, line);

    assert_int_equal(experiment->points ? experiment->points(&config) : 1, 1);
    return point_measure_at(line, 0);
}

static inline double number(struct json_object *result, const char *path)
{
    double value = simx_json_get_number(result, path);

    if (!isfinite(value))
        fail_msg("%s is no number", path);
    return value;
}

/* The same point gives the same result, but for what the machine's clock says. */
static inline void assert_repeats(const char *line, unsigned index)
{
    struct json_object *runs[2];

    for (int i = 0; i < 2; i++) {
        runs[i] = point_measure_at(line, index);
        json_object_object_del(runs[i], "wall_s");
        json_object_object_del(runs[i], "packets_per_wall_s");
    }
    assert_string_equal(json_object_to_json_string(runs[0]), json_object_to_json_string(runs[1]));
    json_object_put(runs[0]);
    json_object_put(runs[1]);
}

/* The experiment refuses the line, with a sentence that has `words` in it. */
static inline void assert_refused(const char *line, const char *words)
{
    struct simx_config config;
    char error[SIMX_ERROR_BYTES] = "";
    const struct simx_experiment *experiment = point_config(&config, line);

    assert_non_null(experiment->check);
    assert_true(experiment->check(&config, error, sizeof(error)) < 0);
    if (!strstr(error, words))
        fail_msg("%s: '%s' does not say '%s'", line, error, words);
}

/* Every column of the table has a value in the result. */
static inline void assert_columns(const struct simx_experiment *experiment,
                                  struct json_object *result)
{
    assert_true(experiment->num_columns <= SIMX_COLUMNS_MAX);
    for (unsigned i = 0; i < experiment->num_columns; i++) {
        if (!simx_json_get(result, experiment->columns[i].key))
            fail_msg("the column %s is empty", experiment->columns[i].key);
    }
}

#endif
