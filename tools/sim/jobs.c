/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/jobs.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/sim/fail.h"

enum { SHOW_INTERVAL_NS = 100000000, MILLION = 1000000 };

static int stopped_by; /* the signal that came, or 0 */

/* A running job. */
struct child {
    pid_t pid;      /* 0: nobody is in this place */
    unsigned index; /* of its job */
    int result;     /* a file without a name: what the job writes, as JSON */
};

/* A call of simx_jobs_run(). */
struct crowd {
    const struct simx_jobs *jobs;
    struct simx_progress *progress; /* of each job, shared with the children */
    struct json_object **results;   /* of each job, NULL as long as it has none */
    struct child *children;         /* `places` of them */
    unsigned places;
    unsigned started, done;
    sigset_t waited; /* signals that are blocked, and waited for */
    sigset_t before; /* those that were blocked before */
};

void simx_progress_set(struct simx_progress *progress, double share, const char *text)
{
    const struct simx_jobs *jobs = progress->called_for;
    double within = share > 0 ? fmin(share, 1) : 0; /* 0 for NAN, too */

    atomic_store_explicit(&progress->millionths, (unsigned)(within * MILLION),
                          memory_order_relaxed);
    if (jobs && jobs->show)
        jobs->show(jobs->show_arg, within, text);
}

/* "run 3 of 8 exited with status 1: no memory" */
__attribute__((format(printf, 3, 4))) static void blame(struct crowd *crowd, unsigned index,
                                                        const char *format, ...)
{
    struct simx_progress *progress = &crowd->progress[index];
    char cause[128];
    va_list args;

    va_start(args, format);
    vsnprintf(cause, sizeof(cause), format, args);
    va_end(args);
    /* A crash may have left it without an end. */
    progress->error[sizeof(progress->error) - 1] = '\0';
    simx_error_set("run %u of %u %s%s%s", index + 1, crowd->jobs->count, cause,
                   progress->error[0] ? ": " : "", progress->error);
}

/* Those that stop, but for one that is ignored, and that of a child that has ended. */
static void signals_block(struct crowd *crowd)
{
    static const int stop_signals[] = {SIGINT, SIGTERM};

    stopped_by = 0;
    sigemptyset(&crowd->waited);
    sigaddset(&crowd->waited, SIGCHLD);
    for (unsigned i = 0; i < 2; i++) {
        struct sigaction action;

        sigaction(stop_signals[i], NULL, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&crowd->waited, stop_signals[i]);
    }
    sigprocmask(SIG_BLOCK, &crowd->waited, &crowd->before);
}

/* Takes signals that have come, and waits for one if there is none. */
static void signals_take(struct crowd *crowd, long wait_ns)
{
    int number;

    while ((number = sigtimedwait(&crowd->waited, NULL, &(struct timespec){0, wait_ns})) > 0) {
        if (number != SIGCHLD)
            stopped_by = number;
        wait_ns = 0;
    }
}

/* Runs the job in the child. A job that fails writes nothing: its error is in shared memory. */
static _Noreturn void child_main(struct crowd *crowd, const struct child *child)
{
    const struct simx_jobs *jobs = crowd->jobs;
    struct simx_progress *progress = &crowd->progress[child->index];
    struct json_object *result = jobs->job(jobs->arg, child->index, progress);

    if (!result || json_object_to_fd(child->result, result, JSON_C_TO_STRING_PLAIN) == 0) {
        fflush(NULL);
        _exit(EXIT_SUCCESS);
    }
    snprintf(progress->error, sizeof(progress->error), "cannot send the result: %s",
             strerror(errno));
    _exit(EXIT_FAILURE);
}

static int child_start(struct crowd *crowd, struct child *child)
{
    pid_t parent = getpid();

    *child = (struct child){.index = crowd->started,
                            .result = memfd_create("mrd_sim result", MFD_CLOEXEC)};
    fflush(NULL); /* or the child would write the buffered output again */
    child->pid = child->result >= 0 ? fork() : -1;
    if (child->pid < 0) {
        int rc = -errno;

        blame(crowd, child->index, "cannot start (%s)", strerror(-rc));
        if (child->result >= 0)
            close(child->result);
        child->pid = 0;
        return rc;
    }
    if (child->pid == 0) {
        sigprocmask(SIG_SETMASK, &crowd->before, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the parent dies first */
        if (getppid() != parent)
            _exit(EXIT_FAILURE);
        child_main(crowd, child);
    }
    crowd->started++;
    return 0;
}

/* Takes the result of a child that has ended and frees its place. */
static int child_finish(struct crowd *crowd, struct child *child, int status)
{
    bool is_empty = lseek(child->result, 0, SEEK_END) == 0;
    struct json_object *result = NULL;

    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        blame(crowd, child->index, "was ended by signal %d (%s)", number, strsignal(number));
    } else if (WEXITSTATUS(status) != EXIT_SUCCESS) {
        blame(crowd, child->index, "exited with status %d", WEXITSTATUS(status));
    } else if (is_empty) {
        blame(crowd, child->index, "failed");
    } else {
        lseek(child->result, 0, SEEK_SET);
        result = json_object_from_fd(child->result);
        if (!json_object_is_type(result, json_type_object)) {
            blame(crowd, child->index, "sent a broken result");
            json_object_put(result);
            result = NULL;
        }
    }
    close(child->result);
    child->pid = 0;
    crowd->results[child->index] = result;
    atomic_store(&crowd->progress[child->index].millionths, MILLION);
    crowd->done++;
    return result ? 0 : -ECHILD;
}

/* Starts children in free places and collects those that have ended. */
static int crowd_look(struct crowd *crowd)
{
    int rc = 0, status;

    for (unsigned i = 0; i < crowd->places && rc == 0; i++) {
        struct child *child = &crowd->children[i];

        if (child->pid != 0 && waitpid(child->pid, &status, WNOHANG) == child->pid)
            rc = child_finish(crowd, child, status);
        if (rc == 0 && child->pid == 0 && crowd->started < crowd->jobs->count)
            rc = child_start(crowd, child);
    }
    return rc;
}

static void crowd_show(struct crowd *crowd)
{
    const struct simx_jobs *jobs = crowd->jobs;
    double sum = 0;
    char text[64];

    if (!jobs->show)
        return;
    for (unsigned i = 0; i < jobs->count; i++)
        sum += atomic_load_explicit(&crowd->progress[i].millionths, memory_order_relaxed);
    snprintf(text, sizeof(text), "%u of %u runs done", crowd->done, jobs->count);
    jobs->show(jobs->show_arg, sum / MILLION / jobs->count, text);
}

static int crowd_run(struct crowd *crowd)
{
    int rc = 0;

    signals_block(crowd);
    while (rc == 0 && crowd->done < crowd->jobs->count) {
        rc = crowd_look(crowd);
        crowd_show(crowd);
        signals_take(crowd, rc == 0 && crowd->done < crowd->jobs->count ? SHOW_INTERVAL_NS : 0);
        if (stopped_by) /* which may be why a child failed */
            rc = simx_fail(-EINTR, "stopped by signal %d (%s)", stopped_by, strsignal(stopped_by));
    }
    for (unsigned i = 0; i < crowd->places; i++) {
        if (crowd->children[i].pid == 0)
            continue;
        kill(crowd->children[i].pid, SIGKILL);
        waitpid(crowd->children[i].pid, NULL, 0);
        close(crowd->children[i].result);
    }
    sigprocmask(SIG_SETMASK, &crowd->before, NULL);
    return rc;
}

/* Runs an only job in this process. */
static int run_here(struct crowd *crowd)
{
    const struct simx_jobs *jobs = crowd->jobs;

    crowd->progress[0].called_for = jobs;
    crowd->results[0] = jobs->job(jobs->arg, 0, &crowd->progress[0]);
    if (crowd->results[0])
        return 0;
    if (crowd->progress[0].error[0])
        simx_error_set("%s", crowd->progress[0].error);
    else
        blame(crowd, 0, "failed");
    return -ECHILD;
}

static unsigned places_for(const struct simx_jobs *jobs)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned places = jobs->parallel ? jobs->parallel : processors > 0 ? (unsigned)processors : 1;

    return places < jobs->count ? places : jobs->count;
}

int simx_jobs_run(const struct simx_jobs *jobs, struct json_object **results)
{
    struct crowd crowd = {.jobs = jobs, .places = places_for(jobs)};
    size_t count = jobs->count, shared_bytes = count * sizeof(*crowd.progress);
    int rc = -ENOMEM;

    if (count == 0)
        return 0;
    simx_error_set("%s", strerror(ENOMEM));
    crowd.results = calloc(count, sizeof(struct json_object *));
    crowd.children = calloc(crowd.places, sizeof(*crowd.children));
    crowd.progress =
        mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crowd.results && crowd.children && crowd.progress != MAP_FAILED)
        rc = count == 1 ? run_here(&crowd) : crowd_run(&crowd);
    if (rc == 0)
        memcpy(results, crowd.results, count * sizeof(struct json_object *));
    for (size_t i = 0; rc && crowd.results && i < count; i++)
        json_object_put(crowd.results[i]);
    if (crowd.progress != MAP_FAILED)
        munmap(crowd.progress, shared_bytes);
    free(crowd.children);
    free(crowd.results);
    return rc;
}

int simx_jobs_stopped_by(void)
{
    return stopped_by;
}
