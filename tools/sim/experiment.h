/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experiments: each a table of points to measure, what it prints of them, and a picture.
 *
 * Adding one: a file exp_NAME.c with a `const struct simx_experiment simx_exp_NAME`, a line in the table of
 * experiment.c, its lines in help.c, and its section in the man page and in EXPERIMENTS.md.
 */
#ifndef SIMX_EXPERIMENT_H
#define SIMX_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/sim/config.h"
#include "tools/sim/jobs.h"
#include "tools/sim/plot.h"
#include "tools/sim/report.h"
#include "tools/sim/run.h"

enum { SIMX_POINTS_MAX = 256, SIMX_COLUMNS_MAX = 32 };

struct simx_experiment {
    const char *name;
    const char *summary; /* a line for --help */
    /* What differs from the defaults of all; NULL: nothing. */
    void (*defaults)(struct simx_config *config);
    /* What is wrong with what was asked for: 0, or -EINVAL with a sentence. NULL: nothing can be. */
    int (*check)(const struct simx_config *config, char *error, size_t len);
    /* Points of a sweep; NULL: one. Called before check(). */
    unsigned (*points)(const struct simx_config *config);
    /* Make `config`, a copy of what was asked for, the configuration of a point. */
    void (*point)(struct simx_config *config, unsigned index);
    /* One run of a point. NULL with a sentence in progress->error. */
    struct json_object *(*measure)(const struct simx_config *config,
                                   struct simx_progress *progress);
    const struct simx_column *columns; /* of the table; keys as in one run */
    unsigned num_columns;
    const struct simx_picture *picture;
};

/* NULL: there is no such. */
const struct simx_experiment *simx_experiment_find(const char *name);
/* By number; NULL: there are no more. */
const struct simx_experiment *simx_experiment_at(unsigned index);

/* -------------------------------------------------------------------- columns that tables share */

/* clang-format off */
/* What carries the flows. */
#define SIMX_COLUMNS_TRANSPORT \
    {"transport", "transport", NULL, 0}, \
    {"spray", "spray", NULL, 0}, \
    {"cc", "cc", NULL, 0}
/* Completion times, and how far the last is from the least possible. */
#define SIMX_COLUMNS_FCT \
    {"fct_us.min", "FCT min", "us", 2}, \
    {"fct_us.p50", "p50", "us", 2}, \
    {"fct_us.mean", "mean", "us", 2}, \
    {"fct_us.p99", "p99", "us", 2}, \
    {"fct_us.max", "max", "us", 2}, \
    {"ideal_us", "ideal", "us", 2}, \
    {"max_over_ideal", "max/ideal", NULL, 3}
/* What the senders sent. */
#define SIMX_COLUMNS_PACKETS \
    {"packets", "packets", NULL, 0}, \
    {"retransmitted", "retx", NULL, 0}, \
    {"spurious", "spurious", NULL, 0}
/* What the fabric did to it, and, as the end of a table, how long the run took. */
#define SIMX_COLUMNS_END \
    {"ce", "CE", NULL, 0}, \
    {"drops", "drops", NULL, 0}, \
    {"wall_s", "wall", "s", 3}
/* clang-format on */

/* ------------------------------------------------------------------------------- what they share */

/* The traffic of the configuration's file; 0 or -errno with a sentence. */
int simx_traffic_read(const struct simx_config *config, struct simx_cm *cm, char *error,
                      size_t len);
/* Of an experiment that makes its own: -EINVAL with a sentence if there is a file. */
int simx_traffic_own(const struct simx_config *config, char *error, size_t len);
/* 0; -EINVAL with a sentence if there are no hosts below a second leaf, or no such fabric. */
int simx_leaves_check(const struct simx_config *config, char *error, size_t len);
/*
 * All of `cm` to its end, and what came of it: the keys that every run has. `more`, if not NULL, may add to the result
 * while the run still stands. NULL with a sentence in progress->error.
 */
struct json_object *simx_measure(
    const struct simx_config *config, const struct simx_cm *cm, struct simx_progress *progress,
    void (*more)(const struct simx_run *run, struct json_object *result, void *arg), void *arg);
/* What simx_measure() sets as a run's `progress`; `arg` is a struct simx_progress. */
void simx_run_show(void *arg, const struct simx_run *run);
/* The keys that every run has, of a run that is over. */
struct json_object *simx_result(const struct simx_run *run);
/* A value of a run, or its mean if it is a summary of seeds. */
double simx_value(struct json_object *run, const char *path);
/* Half the confidence interval of a summary's value; NAN if there is none. */
double simx_interval(struct json_object *run, const char *path);

extern const struct simx_experiment simx_exp_run;
extern const struct simx_experiment simx_exp_loss;
extern const struct simx_experiment simx_exp_collision;
extern const struct simx_experiment simx_exp_incast;
extern const struct simx_experiment simx_exp_skew;
extern const struct simx_experiment simx_exp_failure;
extern const struct simx_experiment simx_exp_scale;
extern const struct simx_experiment simx_exp_allreduce;
extern const struct simx_experiment simx_exp_alltoall;

#endif
