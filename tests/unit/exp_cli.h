/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experiments as the command line asks for them, run in the test's own process.
 *
 * exp_measure("failure --size 1M", 0) is the result of the first point; it fails the test if there is none.
 */
#ifndef EXP_CLI_H
#define EXP_CLI_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tools/sim/options.h"

enum { EXP_WORDS_MAX = 32, EXP_LINE_BYTES = 512 };

/* The experiment of a command line, and its configuration for a point; the number of points is returned. */
static inline unsigned exp_configure(const char *line, unsigned index,
                                     const struct simx_experiment **experiment,
                                     struct simx_config *config)
{
    char text[EXP_LINE_BYTES], *argv[EXP_WORDS_MAX + 1] = {(char *)"mrd_sim"}, *rest = text;
    char error[SIMX_ERROR_BYTES] = "";
    int argc = 1;

    snprintf(text, sizeof(text), "%s", line);
    while (argc < EXP_WORDS_MAX && (argv[argc] = strtok_r(rest, " ", &rest)))
        argc++;
    argv[argc] = NULL;
    if (simx_options_parse(config, experiment, argc, argv, error, sizeof(error)) != SIMX_PARSE_RUN)
        fail_msg("%s: %s", line, error);

    unsigned num = (*experiment)->points ? (*experiment)->points(config) : 1;

    if ((*experiment)->point)
        (*experiment)->point(config, index);
    return num;
}

/* One run of a point; the caller's to put. */
static inline struct json_object *exp_measure(const char *line, unsigned index)
{
    static struct simx_progress progress;
    const struct simx_experiment *experiment;
    struct simx_config config;

    exp_configure(line, index, &experiment, &config);
    progress.error[0] = '\0';

    struct json_object *result = experiment->measure(&config, &progress);

    if (!result)
        fail_msg("%s: %s", line, progress.error);
    return result;
}

/* The sentence with which a run fails. */
static inline const char *exp_refusal(const char *line)
{
    static struct simx_progress progress;
    const struct simx_experiment *experiment;
    struct simx_config config;

    exp_configure(line, 0, &experiment, &config);
    progress.error[0] = '\0';
    assert_null(experiment->measure(&config, &progress));
    return progress.error;
}

/* Two runs of the same seed differ only by what the machine does. */
static inline void exp_assert_same(const char *line, unsigned index)
{
    static const char *const of_machine[] = {"wall_s", "packets_per_wall_s", "rss_mb"};
    struct json_object *run[2];

    for (int i = 0; i < 2; i++) {
        run[i] = exp_measure(line, index);
        for (size_t j = 0; j < sizeof(of_machine) / sizeof(of_machine[0]); j++)
            json_object_object_del(run[i], of_machine[j]);
    }
    assert_string_equal(json_object_to_json_string(run[0]), json_object_to_json_string(run[1]));
    json_object_put(run[0]);
    json_object_put(run[1]);
}

static inline double exp_number(struct json_object *run, const char *path)
{
    double value = simx_json_get_number(run, path);

    if (value != value)
        fail_msg("'%s' is not a number in %s", path, json_object_to_json_string(run));
    return value;
}

/* All columns of the table are keys of the run, null or not. */
static inline void exp_assert_columns(const struct simx_experiment *experiment,
                                      struct json_object *run)
{
    for (unsigned i = 0; i < experiment->num_columns; i++) {
        char key[64];

        snprintf(key, sizeof(key), "%s", experiment->columns[i].key);
        key[strcspn(key, ".")] = '\0';
        if (!json_object_object_get_ex(run, key, NULL))
            fail_msg("%s has no '%s'", experiment->name, key);
    }
}

#endif
