/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd_sim: experiments on simulated fabrics. See mrd_sim(1).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/bar.h"
#include "tools/sim/fail.h"
#include "tools/sim/options.h"

enum { EXIT_USAGE = 2 };

/* All runs of an invocation: each point with each seed. */
struct session {
    const struct simx_experiment *experiment;
    struct simx_config config;
    unsigned num_points;
    struct simx_bar bar;
};

static struct json_object *run_job(void *arg, unsigned index, struct simx_progress *progress)
{
    const struct session *s = arg;
    struct simx_config config = s->config;

    if (s->num_points * s->config.seeds > 1)
        simx_wall_start();
    simx_point(s->experiment, &config, index / config.seeds);
    config.seed += index % config.seeds;
    if (s->num_points * s->config.seeds > 1 && config.threads == 0)
        config.threads = 1; /* runs share the processors */

    struct json_object *result = simx_measure(s->experiment, &config, progress);

    if (!result)
        snprintf(progress->error, sizeof(progress->error), "%s", mrd_last_error());
    return result;
}

static void show(void *arg, double share, const char *text)
{
    struct session *s = arg;

    simx_bar_update(&s->bar, simx_wall_ns(), share, text);
}

/* Replaces the runs of each point by one summary. */
static void summarise(struct session *s, struct json_object **runs)
{
    unsigned seeds = s->config.seeds;

    for (unsigned i = 0; i < s->num_points && seeds > 1; i++) {
        struct json_object *summary = simx_seeds_summary(&runs[i * seeds], seeds);

        for (unsigned j = 0; j < seeds; j++)
            json_object_put(runs[i * seeds + j]);
        runs[i] = summary;
    }
}

static int print(const struct session *s, struct json_object *const *runs)
{
    bool is_table_only = !s->config.json && !s->config.csv;
    int ret = 0;

    for (unsigned i = 0; i < s->num_points && s->config.json && ret == 0; i++)
        ret = simx_report_json(stdout, runs[i]);
    if (s->config.csv)
        ret = simx_report_csv(stdout, runs, s->num_points);
    if (ret == 0)
        ret = simx_report_table(is_table_only ? stdout : stderr, s->experiment->columns, runs,
                                s->num_points);
    return ret;
}

/* Says why it failed. */
static int fail(int status)
{
    fprintf(stderr, "mrd_sim: %s\n", mrd_last_error());
    return status;
}

static bool is_all_done(const struct session *s, struct json_object *const *runs)
{
    for (unsigned i = 0; i < s->num_points; i++) {
        if (json_mean(runs[i], "unfinished") > 0)
            return false;
    }
    return true;
}

/* Prints the results and returns the exit code. */
static int conclude(struct session *s, struct json_object *const *runs)
{
    int ret = print(s, runs);

    if (ret != 0)
        simx_error_set("%s", strerror(-ret));
    else if (s->config.plot[0])
        ret = simx_plot_write(&s->experiment->picture, runs, s->num_points, s->config.plot);
    if (ret == 0 && !is_all_done(s, runs))
        ret = simx_fail(-EINVAL, "not all flows ended: see `unfinished` and `failure`");
    return ret ? fail(EXIT_FAILURE) : 0;
}

/*
 * Ends by the same signal, so that a shell sees an interrupt and not a failure.
 */
static int end_by_signal(void)
{
    int number = simx_jobs_stopped_by();

    fflush(NULL);
    signal(number, SIG_DFL);
    raise(number);
    return 128 + number; /* if the signal is blocked */
}

static int run(struct session *s)
{
    struct simx_jobs jobs = {.job = run_job,
                             .arg = s,
                             .count = s->num_points * s->config.seeds,
                             .parallel = s->config.jobs,
                             .show = s->config.quiet ? NULL : show,
                             .show_arg = s};
    struct json_object **runs = calloc(jobs.count, sizeof(struct json_object *));
    int status = EXIT_USAGE;

    simx_bar_init(&s->bar, s->experiment->name, simx_wall_ns());

    int ret = runs ? simx_jobs_run(&jobs, runs) : simx_fail(-ENOMEM, "no memory");

    simx_bar_clear(&s->bar);
    if (ret != 0) {
        fail(status);
        status = ret == -EINTR ? end_by_signal() : status;
    } else {
        summarise(s, runs);
        status = conclude(s, runs);
        for (unsigned i = 0; i < s->num_points; i++)
            json_object_put(runs[i]);
    }
    free(runs);
    return status;
}

/* Ends after what was printed; whether it could be counts. */
static int printed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    simx_error_set("cannot write to stdout: %s", strerror(errno));
    return fail(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    static struct session s;

    simx_wall_start();
    signal(SIGCHLD, SIG_DFL); /* if it is ignored, as some leave it, no end of a child is told */
    switch (simx_options_parse(&s.config, &s.experiment, argc, argv)) {
    case SIMX_PARSE_RUN:
        break;
    case SIMX_PARSE_HELP:
        simx_options_help(stdout, s.experiment);
        return printed();
    case SIMX_PARSE_VERSION:
        printf("mrd_sim %d.%d.%d\n", MRD_VERSION_MAJOR, MRD_VERSION_MINOR, MRD_VERSION_PATCH);
        return printed();
    case SIMX_PARSE_LIST:
        simx_options_constants(stdout);
        return printed();
    case SIMX_PARSE_ERROR:
        fail(EXIT_USAGE);
        fputs("Try 'mrd_sim --help'.\n", stderr);
        return EXIT_USAGE;
    }
    s.num_points = simx_points(s.experiment, &s.config);
    if (simx_check(s.experiment, &s.config) != 0)
        return fail(EXIT_USAGE);
    return run(&s);
}
