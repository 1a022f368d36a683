/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs in processes: their results, in order, and what becomes of those that fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tools/sim/fail.h"
#include "tools/sim/jobs.h"
#include "tools/sim/report.h"

enum { JOBS_MAX = 16, LARGE_BYTES = 3 << 20, PATIENCE_MS = 20000 };

/* What a test and its jobs, in processes of their own, tell each other. */
struct shared {
    atomic_uint running, running_max, begun;
    atomic_bool shown_half;
    pid_t pids[JOBS_MAX];
};

static struct shared *shared;
static struct json_object *results[JOBS_MAX];

int kit_before_all(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? EXIT_FAILURE : 0;
}

FIXTURE(jobs){};

FIXTURE_SETUP(jobs)
{
    memset(shared, 0, sizeof(*shared));
    memset(results, 0, sizeof(results));
}

/* No process is left behind, whatever happened. */
FIXTURE_TEARDOWN(jobs)
{
    for (int i = 0; i < JOBS_MAX; i++)
        json_object_put(results[i]);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* In a job, where an assertion of cmocka would go on with the tests. */
static void wait_until(const atomic_uint *counter, unsigned at_least)
{
    for (uint64_t end = now_ms() + PATIENCE_MS; atomic_load(counter) < at_least;) {
        if (now_ms() > end)
            _exit(99);
        usleep(1000);
    }
}

static struct json_object *index_result(unsigned index)
{
    struct json_object *result = json_object_new_object();

    json_add_numbers(result, {"index", index});
    return result;
}

/* The first jobs end last. */
static struct json_object *job_backwards(void *arg, unsigned index, struct simx_progress *progress)
{
    (void)progress;
    usleep((*(unsigned *)arg - index) * 5000);
    return index_result(index);
}

TEST_F(jobs, simx_jobs_run__order)
{
    unsigned count = 8;
    struct simx_jobs jobs = {.job = job_backwards, .arg = &count, .count = count};

    for (jobs.parallel = 0; jobs.parallel <= count + 1; jobs.parallel += 3) {
        assert_int_equal(simx_jobs_run(&jobs, results), 0);
        for (unsigned i = 0; i < count; i++) {
            assert_true(json_get_number(results[i], "index") == i);
            json_object_put(results[i]);
            results[i] = NULL;
        }
    }
}

static struct json_object *job_counted(void *arg, unsigned index, struct simx_progress *progress)
{
    unsigned running = atomic_fetch_add(&shared->running, 1) + 1;
    unsigned max = atomic_load(&shared->running_max);

    (void)arg;
    (void)progress;
    while (running > max && !atomic_compare_exchange_weak(&shared->running_max, &max, running))
        ;
    atomic_fetch_add(&shared->begun, 1);
    wait_until(&shared->begun, index < 3 ? 3 : 0); /* the first three have to be there at once */
    usleep(2000);
    atomic_fetch_sub(&shared->running, 1);
    return index_result(index);
}

TEST_F(jobs, simx_jobs_run__at_most_three)
{
    struct simx_jobs jobs = {.job = job_counted, .count = 9, .parallel = 3};

    if (simx_jobs_run(&jobs, results))
        fail_msg("%s", mrd_last_error());
    assert_int_equal(shared->begun, 9);
    assert_int_equal(shared->running_max, 3);
}

static struct json_object *job_pid(void *arg, unsigned index, struct simx_progress *progress)
{
    (void)arg;
    (void)progress;
    shared->pids[index] = getpid();
    return index_result(index);
}

/* An only job runs in the caller; several never do, even one after the other. */
TEST_F(jobs, simx_jobs_run__where)
{
    struct simx_jobs jobs = {.job = job_pid, .count = 1};

    assert_int_equal(simx_jobs_run(&jobs, results), 0);
    assert_int_equal(shared->pids[0], getpid());
    json_object_put(results[0]);
    jobs.count = 2;
    jobs.parallel = 1;
    assert_int_equal(simx_jobs_run(&jobs, results), 0);
    assert_int_not_equal(shared->pids[0], getpid());
    assert_int_not_equal(shared->pids[0], shared->pids[1]);
    jobs.count = 0;
    assert_int_equal(simx_jobs_run(&jobs, NULL), 0);
}

static struct json_object *job_large(void *arg, unsigned index, struct simx_progress *progress)
{
    struct json_object *result = index_result(index);
    char *text = malloc(LARGE_BYTES + 1);

    (void)arg;
    (void)progress;
    memset(text, 'a' + (int)index, LARGE_BYTES);
    text[LARGE_BYTES] = '\0';
    json_add_string(result, "text", text);
    free(text);
    return result;
}

TEST_F(jobs, simx_jobs_run__large_results)
{
    struct simx_jobs jobs = {.job = job_large, .count = 3, .parallel = 3};

    assert_int_equal(simx_jobs_run(&jobs, results), 0);
    for (unsigned i = 0; i < jobs.count; i++) {
        char all[2] = {(char)('a' + i), '\0'};
        struct json_object *text = json_get(results[i], "text");
        assert_int_equal(json_object_get_string_len(text), LARGE_BYTES);
        assert_int_equal(strspn(json_object_get_string(text), all), LARGE_BYTES);
    }
}

/* Job 2 does what *arg says; the others would never end. */
static struct json_object *job_fails(void *arg, unsigned index, struct simx_progress *progress)
{
    char how = *(const char *)arg;
    struct json_object *result = json_object_new_object();

    if (index != 2)
        pause();
    if (how >= 'A' && how <= 'Z')
        strcpy(progress->error, "the spine is on fire");
    if (how == 'k' || how == 'K')
        raise(SIGKILL);
    if (how == 'a')
        abort();
    if (how == 'e' || how == 'E')
        _exit(5);
    if (how == 'z')
        _exit(0);
    if (how == 'b') /* text that is none */
        json_object_object_add(result, "x", json_object_new_double_s(1, "1,\"y"));
    if (how == 'l') {
        json_object_put(result);
        result = json_object_new_array();
    }
    if (how == 'r')
        memset(progress->error, 'x', sizeof(progress->error)); /* without an end */
    if (how == 'n' || how == 'N' || how == 'r') {
        json_object_put(result);
        return NULL;
    }
    return result;
}

TEST_F(jobs, simx_jobs_run__failures)
{
    static const struct {
        char how;
        const char *error;
    } cases[] = {
        {'k', "run 3 of 4 was ended by signal 9 (Killed)"},
        {'K', "run 3 of 4 was ended by signal 9 (Killed): the spine is on fire"},
        {'a', "run 3 of 4 was ended by signal 6 (Aborted)"},
        {'e', "run 3 of 4 exited with status 5"},
        {'E', "run 3 of 4 exited with status 5: the spine is on fire"},
        {'z', "run 3 of 4 failed"},
        {'n', "run 3 of 4 failed"},
        {'N', "run 3 of 4 failed: the spine is on fire"},
        {'b', "run 3 of 4 sent a broken result"},
        {'l', "run 3 of 4 sent a broken result"},
        {'r', "run 3 of 4 failed: xxxxxxxxxxx"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char how = cases[i].how;
        struct simx_jobs jobs = {.job = job_fails, .arg = &how, .count = 4, .parallel = 3};
        assert_int_equal(simx_jobs_run(&jobs, results), -ECHILD);
        if (how == 'r')
            assert_memory_equal(mrd_last_error(), cases[i].error, strlen(cases[i].error));
        else
            assert_string_equal(mrd_last_error(), cases[i].error);
        assert_null(results[0]);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* the others are gone, too */
    }
}

static struct json_object *job_sentence(void *arg, unsigned index, struct simx_progress *progress)
{
    (void)index;
    snprintf(progress->error, sizeof(progress->error), "%s", (const char *)arg);
    return NULL;
}

TEST_F(jobs, simx_jobs_run__only_job_fails)
{
    struct simx_jobs jobs = {.job = job_sentence, .arg = "no such spray", .count = 1};

    assert_int_equal(simx_jobs_run(&jobs, results), -ECHILD);
    assert_string_equal(mrd_last_error(), "no such spray");
    jobs.arg = "";
    assert_int_equal(simx_jobs_run(&jobs, results), -ECHILD);
    assert_string_equal(mrd_last_error(), "run 1 of 1 failed");
    assert_null(results[0]);
}

static struct json_object *job_signals(void *arg, unsigned index, struct simx_progress *progress)
{
    (void)progress;
    if (index == 1)
        kill(getppid(), *(int *)arg);
    for (;;)
        pause();
    return NULL;
}

TEST_F(jobs, simx_jobs_run__signals)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    static const char *const errors[] = {"stopped by signal 2 (Interrupt)",
                                         "stopped by signal 15 (Terminated)"};

    for (int i = 0; i < 2; i++) {
        int number = numbers[i];
        struct sigaction after;
        struct simx_jobs jobs = {.job = job_signals, .arg = &number, .count = 3, .parallel = 2};
        assert_int_equal(simx_jobs_run(&jobs, results), -EINTR);
        assert_string_equal(mrd_last_error(), errors[i]);
        assert_int_equal(simx_jobs_stopped_by(), number);
        sigaction(number, NULL, &after);
        assert_true(after.sa_handler == SIG_DFL);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
}

static struct json_object *job_endless(void *arg, unsigned index, struct simx_progress *progress)
{
    (void)arg;
    (void)progress;
    shared->pids[index] = getpid();
    atomic_fetch_add(&shared->begun, 1);
    for (;;)
        pause();
    return NULL;
}

/* Nobody can catch SIGKILL; the kernel ends the children then, and we inherit them. */
TEST_F(jobs, simx_jobs_run__caller_killed)
{
    struct simx_jobs jobs = {.job = job_endless, .count = 2, .parallel = 2};
    int ended = 0, status;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t caller = fork();
    if (caller == 0)
        _exit(simx_jobs_run(&jobs, results));
    for (uint64_t end = now_ms() + PATIENCE_MS; shared->begun < 2 && now_ms() < end;)
        usleep(1000);
    kill(caller, SIGKILL);
    for (uint64_t end = now_ms() + PATIENCE_MS; ended < 3 && now_ms() < end; usleep(1000)) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        ended += pid > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    assert_int_equal(shared->begun, 2);
    assert_int_equal(ended, 3);
}

/* What show() was told. */
struct shown {
    unsigned calls;
    double last;
    bool backwards;
    char text[64];
};

static void show(void *arg, double share, const char *text)
{
    struct shown *shown = arg;

    shown->calls++;
    shown->backwards |= share < shown->last;
    shown->last = share;
    snprintf(shown->text, sizeof(shown->text), "%s", text);
    if (share >= 0.5 && share < 1)
        shared->shown_half = true;
}

/* Each waits at the half until the parent has shown it. */
static struct json_object *job_halves(void *arg, unsigned index, struct simx_progress *progress)
{
    uint64_t end = now_ms() + PATIENCE_MS;

    (void)arg;
    simx_progress_set(progress, 0.5, "not of many");
    while (!shared->shown_half) {
        if (now_ms() > end)
            return NULL;
        usleep(1000);
    }
    return index_result(index);
}

TEST_F(jobs, simx_jobs_run__progress)
{
    struct shown shown = {0};
    struct simx_jobs jobs = {
        .job = job_halves, .count = 4, .parallel = 4, .show = show, .show_arg = &shown};

    if (simx_jobs_run(&jobs, results))
        fail_msg("%s", mrd_last_error());
    assert_true(shared->shown_half);
    assert_false(shown.backwards);
    assert_true(shown.last == 1);
    assert_string_equal(shown.text, "4 of 4 runs done");
}

static struct json_object *job_shares(void *arg, unsigned index, struct simx_progress *progress)
{
    struct shown *shown = arg;
    static const double shares[][2] = {{0, 0}, {0.25, 0.25}, {1, 1}, {1.5, 1}, {-1, 0}, {NAN, 0}};

    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        simx_progress_set(progress, shares[i][0], "12 packets");
        if (shown->calls != i + 1 || shown->last != shares[i][1])
            return NULL;
    }
    return index_result(index);
}

TEST_F(jobs, simx_progress_set__only_job)
{
    struct shown shown = {0};
    struct simx_jobs jobs = {
        .job = job_shares, .arg = &shown, .count = 1, .show = show, .show_arg = &shown};

    assert_int_equal(simx_jobs_run(&jobs, results), 0);
    assert_string_equal(shown.text, "12 packets");
}
