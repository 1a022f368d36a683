/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many runs at once, each in a process of its own: one that crashes leaves the others' results
 * trustworthy.
 *
 * simx_jobs_run() calls a job for each index, at most so many at a time, and returns when all
 * results are there or one job has failed. A job calls simx_progress_set() now and then; if it
 * fails it leaves a sentence in progress->error and returns NULL.
 */
#ifndef SIMX_JOBS_H
#define SIMX_JOBS_H

#include <json-c/json.h>
#include <stdatomic.h>
#include <stddef.h>

enum { SIMX_ERROR_BYTES = 256 };

struct simx_jobs;

/*
 * State that a job shares with its parent, in shared memory: the parent reads it however the job
 * ends.
 */
struct simx_progress {
    char error[SIMX_ERROR_BYTES];       /* why the job failed; empty while it has not */
    atomic_uint millionths;             /* how much of it is done */
    const struct simx_jobs *called_for; /* whose show() to call; NULL in a child: the parent does */
};

/* What to run. */
struct simx_jobs {
    /*
     * Do the job of this index; the result, an object, is the caller's. NULL: it failed, and
     * progress->error may say why. Of several jobs each runs in a child, so it may crash, exit, or
     * leave memory behind; an only one runs in the caller.
     */
    struct json_object *(*job)(void *arg, unsigned index, struct simx_progress *progress);
    void *arg;         /* job's first argument */
    unsigned count;    /* of jobs: indices 0 to count - 1 */
    unsigned parallel; /* at most so many at once; 0: as many as there are processors online */
    /*
     * How much of all jobs is done, 0 to 1, at least ten times a second (of one job: whenever it
     * says). `text` is the job's own if there is one job, otherwise how many are done. NULL: nobody
     * wants to know.
     */
    void (*show)(void *arg, double share, const char *text);
    void *show_arg; /* show's first argument */
};

/*
 * Run all jobs; results[i] is that of job i, the caller's to put. 0, or -errno with a sentence
 * that names the job (counted from 1) and the cause, no child left and `results` as they were:
 * -EINTR when SIGINT or SIGTERM came, -ECHILD when a job failed (the sentence of an only job stands
 * alone), otherwise what kept them from starting.
 *
 * While children run, SIGINT and SIGTERM end them instead of the caller; should the caller die, the
 * kernel ends them. SIGCHLD is taken meanwhile.
 */
int simx_jobs_run(const struct simx_jobs *jobs, struct json_object **results)
    __attribute__((warn_unused_result));
/* The signal that ended the last simx_jobs_run(), or 0. */
int simx_jobs_stopped_by(void);

/*
 * How much of the job is done, 0 to 1, and a few words to show beside it. In a child only a store.
 */
void simx_progress_set(struct simx_progress *progress, double share, const char *text);

#endif
