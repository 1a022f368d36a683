/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experiments: each a table of points to measure, what it prints of them, and a picture.
 *
 * simx_check() when the options are known; simx_measure() for each run of each point. An experiment
 * is a const struct simx_experiment, whose hooks are called in the order of their lines.
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

enum { SIMX_COLUMNS_MAX = 24 };

/* Replaces the common default of an option in one experiment. */
struct simx_default {
    const char *option;
    const char *value; /* as on a command line; NULL: none, 0 or SIMX_UNSET */
    const char *note;  /* what --help says then */
};

enum { SIMX_UNSET = -1 /* of a real number */ };

/* An option that has each of these values in turn if it is not given. */
struct simx_sweep {
    size_t offset; /* in struct simx_config, of a double, SIMX_UNSET if it is not given; or... */
    bool is_bytes; /* ...of a uint64_t, 0 if it is not given */
    unsigned num;  /* 0: no sweep */
    const double *values;
};
enum { SIMX_SWEEPS_MAX = 2 };

struct simx_experiment {
    const char *name;
    const char *summary;         /* a line for --help */
    const char *about;           /* more of that */
    struct simx_default own[12]; /* the last has no option */
    bool takes_matrix;           /* besides its own traffic; without `traffic` it needs one */
    bool needs_two_leaves;       /* hosts below two leaves */

    struct simx_sweep sweeps[SIMX_SWEEPS_MAX]; /* the points; the last one changes first */
    /* How many points there are, if no sweeps tell it. NULL: these do. */
    unsigned (*points)(const struct simx_config *config);
    /*
     * Make `config`, a copy of what was asked for with the values of sweeps, the configuration of a
     * point; NULL: it is.
     */
    void (*point)(struct simx_config *config, unsigned index);
    /*
     * What is wrong with what was asked for, on the fabric of the first point: 0, or -EINVAL with a
     * sentence. NULL: nothing can be.
     */
    int (*check)(const struct simx_config *config, const struct simx_net *net);

    /* Its traffic. 0 or -errno; -EINVAL: it is not `traffic_expected`. NULL: that of -tm. */
    int (*traffic)(const struct simx_config *config, const struct simx_net *net,
                   struct simx_cm *cm);
    const char *traffic_expected;
    /* Bytes of simx_run.memo, zero at first: what a run is to remember for `figures`. */
    size_t memo_bytes;
    /* Run to the end, and look on the way. 0, or -errno with a sentence. NULL: simx_run_all(). */
    int (*go)(struct simx_run *run);
    /* Add to the keys that every run has. */
    void (*figures)(const struct simx_run *run, struct json_object *result);

    struct simx_column columns[SIMX_COLUMNS_MAX]; /* of the table; keys as in one run */
    struct simx_picture picture;
};

/* Their places in simx_experiments. */
enum simx_experiment_index {
    SIMX_RUN,
    SIMX_LOSS,
    SIMX_COLLISION,
    SIMX_INCAST,
    SIMX_SKEW,
    SIMX_FAILURE,
    SIMX_SCALE,
    SIMX_ALLREDUCE,
    SIMX_ALLTOALL,
    SIMX_FAIRNESS,
    SIMX_WAN,
    SIMX_NUM_EXPERIMENTS,
};

/* NULL: there is no such. */
const struct simx_experiment *simx_experiment_find(const char *name);
/* All; the last is NULL. */
extern const struct simx_experiment *const simx_experiments[];

/* -------------------------------------------------------------------- columns that tables share */

/* clang-format off */
/* What carries the flows. */
#define SIMX_COLUMNS_TRANSPORT \
    {"transport", "transport", NULL, 0}, \
    {"spray", "spray", NULL, 0}, \
    {"cc", "cc", NULL, 0}
/* Completion times, and how far the longest is from the least possible. */
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

/* ------------------------------------------------------------------------------ what they share */

/* How many points there are, and the configuration of one from a copy of what was asked for. */
unsigned simx_points(const struct simx_experiment *experiment, const struct simx_config *config);
void simx_point(const struct simx_experiment *experiment, struct simx_config *config,
                unsigned index);
/* 0, or -EINVAL with a sentence: the options and the fabrics of all points. */
int simx_check(const struct simx_experiment *experiment, const struct simx_config *config);
/* One run of a point, to its end. NULL with a sentence. */
struct json_object *simx_measure(const struct simx_experiment *experiment,
                                 const struct simx_config *config, struct simx_progress *progress);
/* The keys that every run has, of a run that is over. */
struct json_object *simx_result(const struct simx_run *run);
/*
 * When the last flow ended, which those of a matrix with triggers have, and how near to the bound
 * that is.
 */
void simx_add_completion(const struct simx_run *run, const struct simx_bounds *bounds,
                         struct json_object *result);
/* Completion times of all flows in ascending order, infinite for those that did not end. */
double *simx_sorted_fct_us(const struct simx_run *run) __attribute__((malloc));
/* The value below which that share of the times lies, by the nearest rank. */
double simx_percentile(const double *sorted, uint64_t num, double share);

extern const struct simx_experiment simx_exp_run;
extern const struct simx_experiment simx_exp_loss;
extern const struct simx_experiment simx_exp_collision;
extern const struct simx_experiment simx_exp_incast;
extern const struct simx_experiment simx_exp_skew;
extern const struct simx_experiment simx_exp_failure;
extern const struct simx_experiment simx_exp_scale;
extern const struct simx_experiment simx_exp_allreduce;
extern const struct simx_experiment simx_exp_alltoall;
extern const struct simx_experiment simx_exp_fairness;
extern const struct simx_experiment simx_exp_wan;

#endif
