/* SPDX-License-Identifier: BSD-2-Clause */
/* How a bandwidth test of mrd_perf waits for packets: asleep where others want its core. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tools/perf/mrd.h"
#include "tools/perf/transport.h"

enum { FIND_OUT_S = 60, TURNS = 200, LATER_NS = 1000000 };

static struct perf_run run;
static struct perf_mrd state_of_run;

static void begin(const char *wait)
{
    struct mrd_context_attr attr = {.threading = MRD_THREADING_SINGLE, .address = "127.0.0.1"};
    struct mrd_device device = {.name = "udp", .transport = "udp"};

    memset(&run, 0, sizeof(run));
    memset(&state_of_run, 0, sizeof(state_of_run));
    perf_params_init(&run.params);
    snprintf(run.params.wait, sizeof(run.params.wait), "%s", wait);
    run.ops = perf_transport_find("mrd-udp");
    run.state = &state_of_run;
    state_of_run.ctx = mrd_open_device(&device, &attr);
    assert_non_null(state_of_run.ctx);
}

static void end(void)
{
    assert_int_equal(mrd_close_device(state_of_run.ctx), 0);
}

static long num_sleeps;

/* In place of libc's, so that each call counts, however busy the machine is. */
int ppoll(struct pollfd *fds, nfds_t num_fds, const struct timespec *timeout, const sigset_t *mask)
{
    (void)fds, (void)num_fds, (void)timeout, (void)mask;
    num_sleeps++;
    return 0;
}

/* How often the thread goes to sleep in so many turns without a packet. */
static long sleeps(bool busy)
{
    uint64_t now_ns = clock_now_ns();

    assert_int_equal(perf_mrd_wait(&run, now_ns, true), 0);
    num_sleeps = 0;
    for (int i = 0; i < TURNS; i++)
        assert_int_equal(perf_mrd_wait(&run, now_ns + LATER_NS, busy), 0);
    return num_sleeps;
}

TEST(perf_wait__as_told)
{
    begin("spin");
    state_of_run.wait.shared = true;
    assert_int_equal(sleeps(false), 0);
    end();
    begin("sleep");
    assert_int_equal(sleeps(true), 0);
    assert_int_equal(sleeps(false), TURNS);
    end();
    begin("auto");
    assert_int_equal(sleeps(false), 0);
    state_of_run.wait.shared = true;
    assert_int_equal(sleeps(false), TURNS);
    end();
}

static pid_t start_hog(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned i = 0;; i++)
            ;
    }
    return pid;
}

/* Another process spins on the same core. */
TEST(perf_wait__finds_out_that_its_core_is_shared)
{
    FILE *f = fopen("/proc/thread-self/schedstat", "r");
    cpu_set_t before, one;
    uint64_t end_ns = clock_now_ns() + FIND_OUT_S * PERF_SEC_NS;
    int cpu = 0;

    if (!f) {
        print_message("this kernel does not tell how long a thread waited\n");
        skip();
    }
    fclose(f);
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    begin("auto");
    pid_t hog = start_hog();
    while (!state_of_run.wait.shared && clock_now_ns() < end_ns)
        assert_int_equal(perf_mrd_wait(&run, clock_now_ns(), false), 0);
    assert_true(state_of_run.wait.shared);
    kill(hog, SIGKILL);
    waitpid(hog, NULL, 0);
    end();
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}
