/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/session.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/perf/control.h"
#include "tools/perf/infinite.h"
#include "tools/perf/message.h"

int perf_local_pin(int cpu, char *error)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) == 0)
        return 0;
    return perf_fail(error, -errno, "cannot run on CPU %d: %s", cpu,
                     errno == EINVAL ? "there is no such CPU, or it is not ours" : strerror(errno));
}

/*
 * Each end its own core, as far as there are two; -1: leave it to the scheduler, as with several
 * threads an end.
 */
static void choose_cpus(const struct perf_options *o, int cpus[2])
{
    cpu_set_t set;
    int found = 0;

    cpus[0] = cpus[1] = -1;
    if (o->num_cpus) {
        cpus[0] = o->cpus[0];
        cpus[1] = o->num_cpus == 2 ? o->cpus[1] : o->cpus[0];
        return;
    }
    if (o->params.threads > 1 || sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, &set))
            cpus[found++] = cpu;
    }
}

/* In a child: it does not outlive its parent. */
static void settle_child(int cpu, pid_t parent)
{
    char error[PERF_ERROR_BYTES];

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may ignore others */
    if (getppid() != parent)
        exit(PERF_EXIT_FAILED);
    if (cpu >= 0 && perf_local_pin(cpu, error))
        exit(perf_complain(PERF_EXIT_FAILED, "%s", error));
}

/* Try --bind before anything starts. */
static int try_cpus(const struct perf_options *o, char *error)
{
    cpu_set_t before;
    int rc = 0;

    if (o->num_cpus == 0 || sched_getaffinity(0, sizeof(before), &before))
        return 0;
    for (unsigned i = 0; i < o->num_cpus && rc == 0; i++)
        rc = perf_local_pin(o->cpus[i], error);
    sched_setaffinity(0, sizeof(before), &before);
    return rc;
}

/* Wait for a child's end and return its exit code; report a signal, unless we sent it. */
static int reap_child(pid_t pid, const char *who, int sent_signal)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return PERF_EXIT_FAILED;
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    if (WTERMSIG(status) == sent_signal)
        return PERF_EXIT_FAILED;
    return perf_complain(PERF_EXIT_FAILED, "the %s was ended by signal %d (%s)", who,
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
}

/* The client's exit code counts; if only the server failed, the server's. */
static int reap_both(pid_t client, pid_t server)
{
    int client_code = reap_child(client, "client", 0);

    if (client_code == PERF_EXIT_OK)
        return reap_child(server, "server", 0);
    kill(server, SIGKILL); /* it may still be waiting for a client that never spoke */
    reap_child(server, "server", SIGKILL);
    return client_code;
}

/* The server's end differs in its device only. */
static const struct perf_options *server_options(const struct perf_options *o)
{
    static struct perf_options server; /* large, and needed to the end */

    server = *o;
    strcpy(server.device, o->server_device);
    return &server;
}

int perf_local_run(const struct perf_options *o)
{
    const char *loopback = o->ipv6 ? "::1" : "127.0.0.1";
    const char *host = o->bind_address[0] ? o->bind_address : loopback;
    char error[PERF_ERROR_BYTES];
    uint16_t port = 0;
    int cpus[2];
    pid_t parent = getpid();

    if (try_cpus(o, error))
        return perf_complain(PERF_EXIT_USAGE, "--bind: %s", error);
    int listener = perf_control_listen(host, &port, o->ipv6, error);
    if (listener < 0)
        return perf_complain(PERF_EXIT_FAILED, "%s", error);
    choose_cpus(o, cpus);
    /* The server keeps it so: it is the client that ends the run. */
    if (o->params.run_infinitely)
        perf_infinite_forward_signals(0);
    fflush(NULL); /* or the children write it again */
    pid_t server = fork();
    if (server == 0) {
        settle_child(cpus[1], parent);
        exit(perf_server_session(server_options(o), listener));
    }
    close(listener);
    pid_t client = server < 0 ? -1 : fork();
    if (client == 0) {
        settle_child(cpus[0], parent);
        exit(perf_client_session(o, host, port));
    }
    if (client < 0) {
        int rc = errno;
        if (server > 0)
            kill(server, SIGKILL);
        return perf_complain(PERF_EXIT_FAILED, "cannot start a process: %s", strerror(rc));
    }
    if (o->params.run_infinitely)
        perf_infinite_forward_signals(client);
    return reap_both(client, server);
}
