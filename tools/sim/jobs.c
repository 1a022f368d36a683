/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHOW_INTERVAL_MS = 100, MILLION = 1000000, READ_BYTES = 1 << 16 };

static const int stop_signals[] = {SIGINT, SIGTERM};
enum { NUM_STOP_SIGNALS = sizeof(stop_signals) / sizeof(stop_signals[0]) };
static volatile sig_atomic_t stopped_by; /* the one that came, or 0 */

/* A running job. */
struct child {
    pid_t pid;      /* 0: nobody is in this place */
    int fd;         /* where its result comes from */
    unsigned index; /* of its job */
    FILE *stream;   /* collects what came, in text */
    char *text;
    size_t len;
};

/* A call of simx_jobs_run(). */
struct crowd {
    const struct simx_jobs *jobs;
    struct simx_progress *progress; /* of each job, shared with the children */
    struct json_object **results;   /* of each job, NULL as long as it has none */
    struct child *children;         /* `places` of them */
    struct pollfd *polls;           /* one a place */
    unsigned places;
    unsigned started, done;
    struct sigaction before[NUM_STOP_SIGNALS]; /* what was to be done at each */
    char *error;
    size_t error_len;
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
    const struct simx_jobs *jobs = crowd->jobs;
    struct simx_progress *progress = &crowd->progress[index];
    char cause[128];
    va_list args;

    va_start(args, format);
    vsnprintf(cause, sizeof(cause), format, args);
    va_end(args);
    progress->error[sizeof(progress->error) - 1] = '\0'; /* who knows what a crash left there */
    snprintf(crowd->error, crowd->error_len, "%s %u of %u %s%s%s", jobs->noun ? jobs->noun : "run",
             index + 1, jobs->count, cause, progress->error[0] ? ": " : "", progress->error);
}

static void on_stop_signal(int number)
{
    stopped_by = number;
}

/* A signal that our own parent has us ignore stays ignored. */
static void signals_catch(struct crowd *crowd)
{
    struct sigaction catch = {.sa_handler = on_stop_signal};

    stopped_by = 0;
    for (int i = 0; i < NUM_STOP_SIGNALS; i++) {
        sigaction(stop_signals[i], NULL, &crowd->before[i]);
        if (crowd->before[i].sa_handler != SIG_IGN)
            sigaction(stop_signals[i], &catch, NULL);
    }
}

static void signals_restore(struct crowd *crowd)
{
    for (int i = 0; i < NUM_STOP_SIGNALS; i++)
        sigaction(stop_signals[i], &crowd->before[i], NULL);
}

static void signals_in_child(struct crowd *crowd, pid_t parent)
{
    for (int i = 0; i < NUM_STOP_SIGNALS; i++) {
        if (crowd->before[i].sa_handler != SIG_IGN)
            signal(stop_signals[i], SIG_DFL);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* for a parent that cannot end us any more */
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
}

static bool write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return true;
}

/* A job that fails sends nothing: its sentence is in the shared memory. */
static _Noreturn void child_main(struct crowd *crowd, unsigned index, int fd)
{
    const struct simx_jobs *jobs = crowd->jobs;
    struct simx_progress *progress = &crowd->progress[index];
    struct json_object *result = jobs->job(jobs->arg, index, progress);
    size_t len = 0;
    const char *text =
        result ? json_object_to_json_string_length(result, JSON_C_TO_STRING_PLAIN, &len) : "";

    fflush(NULL);
    if (text && write_all(fd, text, len))
        _exit(EXIT_SUCCESS);
    snprintf(progress->error, sizeof(progress->error), "cannot send the result: %s",
             strerror(errno));
    _exit(EXIT_FAILURE);
}

static int child_start(struct crowd *crowd, struct child *child)
{
    pid_t parent = getpid();
    int fds[2], rc;

    *child = (struct child){.index = crowd->started};
    child->stream = open_memstream(&child->text, &child->len);
    if (!child->stream)
        goto no_stream;
    if (pipe2(fds, O_CLOEXEC))
        goto no_pipe;
    fflush(NULL); /* or the child, too, would write what is in the buffers */
    child->pid = fork();
    if (child->pid < 0)
        goto no_child;
    if (child->pid == 0) {
        signals_in_child(crowd, parent);
        child_main(crowd, child->index, fds[1]);
    }
    close(fds[1]);
    child->fd = fds[0];
    crowd->started++;
    return 0;

no_child:
    rc = -errno;
    close(fds[0]);
    close(fds[1]);
    errno = -rc;
no_pipe:
    rc = -errno;
    fclose(child->stream);
    free(child->text);
    errno = -rc;
no_stream:
    rc = -errno;
    child->pid = 0;
    blame(crowd, child->index, "cannot start (%s)", strerror(-rc));
    return rc;
}

/* Wait for the child, which is to end by itself unless we are told to stop, and leave its place. */
static int child_reap(struct child *child)
{
    int status = 0;

    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
        if (stopped_by)
            kill(child->pid, SIGKILL);
    }
    close(child->fd);
    fclose(child->stream);
    child->pid = 0;
    return status;
}

/* The whole text as one object; NULL and why not. */
static struct json_object *parse(const char *text, size_t len, const char **why)
{
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *object = NULL;

    *why = "too long";
    if (tokener && len < INT_MAX) {
        object = json_tokener_parse_ex(tokener, text, (int)len);
        *why = json_tokener_error_desc(json_tokener_get_error(tokener));
        if (object && (json_tokener_get_parse_end(tokener) != len ||
                       !json_object_is_type(object, json_type_object))) {
            *why = "not one object";
            json_object_put(object);
            object = NULL;
        }
    }
    if (tokener)
        json_tokener_free(tokener);
    return object;
}

/* The child has closed its end of the pipe. */
static int child_finish(struct crowd *crowd, struct child *child)
{
    int status = child_reap(child);
    const char *why;
    struct json_object *result = NULL;

    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        blame(crowd, child->index, "was ended by signal %d (%s)", number, strsignal(number));
    } else if (WEXITSTATUS(status) != EXIT_SUCCESS) {
        blame(crowd, child->index, "exited with status %d", WEXITSTATUS(status));
    } else if (child->len == 0) {
        blame(crowd, child->index, "failed");
    } else {
        result = parse(child->text, child->len, &why);
        if (!result)
            blame(crowd, child->index, "sent a broken result (%s)", why);
    }
    free(child->text);
    crowd->results[child->index] = result;
    atomic_store(&crowd->progress[child->index].millionths, MILLION);
    crowd->done++;
    return result ? 0 : -ECHILD;
}

static int child_read(struct crowd *crowd, struct child *child)
{
    static char buffer[READ_BYTES];
    ssize_t n = read(child->fd, buffer, sizeof(buffer));

    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0) { /* does not happen to a pipe */
        int rc = -errno;
        blame(crowd, child->index, "cannot be read (%s)", strerror(-rc));
        return rc;
    }
    if (n == 0)
        return child_finish(crowd, child);
    fwrite(buffer, 1, (size_t)n, child->stream);
    return 0;
}

/* Read what comes within the time after which progress is to be shown. */
static int crowd_collect(struct crowd *crowd)
{
    int rc = 0;

    for (unsigned i = 0; i < crowd->places; i++)
        crowd->polls[i] = (struct pollfd){
            .fd = crowd->children[i].pid ? crowd->children[i].fd : -1,
            .events = POLLIN,
        };
    if (poll(crowd->polls, crowd->places, SHOW_INTERVAL_MS) <= 0)
        return 0; /* a signal is looked at by the caller */
    for (unsigned i = 0; i < crowd->places && rc == 0; i++) {
        if (crowd->polls[i].revents)
            rc = child_read(crowd, &crowd->children[i]);
    }
    return rc;
}

static int crowd_start(struct crowd *crowd)
{
    int rc = 0;

    for (unsigned i = 0; i < crowd->places && rc == 0; i++) {
        if (crowd->children[i].pid == 0 && crowd->started < crowd->jobs->count)
            rc = child_start(crowd, &crowd->children[i]);
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
    snprintf(text, sizeof(text), "%u of %u %ss done", crowd->done, jobs->count,
             jobs->noun ? jobs->noun : "run");
    jobs->show(jobs->show_arg, sum / MILLION / jobs->count, text);
}

static int crowd_run(struct crowd *crowd)
{
    int rc = 0;

    signals_catch(crowd);
    while (rc == 0 && crowd->done < crowd->jobs->count) {
        rc = crowd_start(crowd);
        if (rc == 0)
            rc = crowd_collect(crowd);
        crowd_show(crowd);
        if (stopped_by) { /* which may be why a child failed */
            snprintf(crowd->error, crowd->error_len, "stopped by signal %d (%s)", (int)stopped_by,
                     strsignal(stopped_by));
            rc = -EINTR;
        }
    }
    for (unsigned i = 0; i < crowd->places; i++) {
        if (crowd->children[i].pid == 0)
            continue;
        kill(crowd->children[i].pid, SIGKILL);
        child_reap(&crowd->children[i]);
        free(crowd->children[i].text);
    }
    signals_restore(crowd);
    return rc;
}

/* No other process: nothing else could go on meanwhile. */
static int run_here(struct crowd *crowd)
{
    const struct simx_jobs *jobs = crowd->jobs;

    crowd->progress[0].called_for = jobs;
    crowd->results[0] = jobs->job(jobs->arg, 0, &crowd->progress[0]);
    if (crowd->results[0])
        return 0;
    if (crowd->progress[0].error[0])
        snprintf(crowd->error, crowd->error_len, "%s", crowd->progress[0].error);
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

int simx_jobs_run(const struct simx_jobs *jobs, struct json_object **results, char *error,
                  size_t len)
{
    struct crowd crowd = {
        .jobs = jobs, .places = places_for(jobs), .error = error, .error_len = len};
    size_t count = jobs->count, shared_bytes = count * sizeof(*crowd.progress);
    int rc = -ENOMEM;

    if (count == 0)
        return 0;
    snprintf(error, len, "%s", strerror(ENOMEM));
    crowd.results = calloc(count, sizeof(struct json_object *));
    crowd.children = calloc(crowd.places, sizeof(*crowd.children));
    crowd.polls = calloc(crowd.places, sizeof(*crowd.polls));
    crowd.progress =
        mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crowd.results && crowd.children && crowd.polls && crowd.progress != MAP_FAILED)
        rc = count == 1 ? run_here(&crowd) : crowd_run(&crowd);
    if (rc == 0)
        memcpy(results, crowd.results, count * sizeof(struct json_object *));
    for (size_t i = 0; rc && crowd.results && i < count; i++)
        json_object_put(crowd.results[i]);
    if (crowd.progress != MAP_FAILED)
        munmap(crowd.progress, shared_bytes);
    free(crowd.polls);
    free(crowd.children);
    free(crowd.results);
    return rc;
}

int simx_jobs_stopped_by(void)
{
    return stopped_by;
}
