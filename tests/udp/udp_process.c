/* SPDX-License-Identifier: BSD-2-Clause */
#include "udp_process.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/kit/kit.h"

enum { PROCESSES_MAX = 16 };

static bool is_child;
static pid_t alive[PROCESSES_MAX]; /* children that nobody has waited for; 0: none */

void must_be(bool ok, const char *what, const char *file, int line)
{
    if (ok)
        return;
    if (!is_child)
        fail_msg("%s:%d: not so: %s (last error: %s)", file, line, what, mrd_last_error());
    fprintf(stderr, "%s:%d: child: not so: %s (last error: %s)\n", file, line, what,
            mrd_last_error());
    _exit(1);
}

uint64_t clock_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SEC_NS + (uint64_t)now.tv_nsec;
}

void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

/* ------------------------------------------------------------------------------------ processes */

static void replace(pid_t pid, pid_t by)
{
    unsigned i = 0;

    while (i < PROCESSES_MAX && alive[i] != pid)
        i++;
    must(i < PROCESSES_MAX);
    alive[i] = by;
}

static void end_children(void)
{
    for (unsigned i = 0; i < PROCESSES_MAX; i++) {
        if (!alive[i])
            continue;
        kill(alive[i], SIGKILL);
        waitpid(alive[i], NULL, 0);
        alive[i] = 0;
    }
}

void process_start(struct process *p, void (*body)(int channel))
{
    int ends[2];

    kit_after_test(end_children);
    must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    fflush(NULL);
    p->pid = fork();
    must(p->pid >= 0);
    if (!p->pid) {
        is_child = true;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(PATIENCE_S + 1);
        close(ends[0]);
        body(ends[1]);
        _exit(0);
    }
    replace(0, p->pid);
    close(ends[1]);
    p->channel = ends[0];
}

static int await(struct process *p)
{
    int status = 0;

    must(waitpid(p->pid, &status, 0) == p->pid);
    replace(p->pid, 0);
    close(p->channel);
    return status;
}

void process_join(struct process *p)
{
    int status = await(p);

    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void process_kill(struct process *p)
{
    must(kill(p->pid, SIGKILL) == 0);
    must(WIFSIGNALED(await(p)));
}

void process_stop(const struct process *p)
{
    int status;

    must(kill(p->pid, SIGSTOP) == 0);
    must(waitpid(p->pid, &status, WUNTRACED) == p->pid && WIFSTOPPED(status));
}

void process_continue(const struct process *p)
{
    must(kill(p->pid, SIGCONT) == 0);
}

void process_tell(int channel, const void *words, size_t bytes)
{
    must(send(channel, words, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}

bool process_hear(int channel, void *words, size_t bytes, uint64_t until_ns)
{
    struct pollfd fd = {.fd = channel, .events = POLLIN};
    uint64_t now_ns = clock_now_ns();
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;

    if (poll(&fd, 1, (int)((left_ns + MSEC_NS - 1) / MSEC_NS)) == 0)
        return false;
    must(recv(channel, words, bytes, 0) == (ssize_t)bytes);
    return true;
}

/* ---------------------------------------------------------------------------------------- nodes */

void node_open(struct node *n, const struct mrd_context_attr *attr, unsigned num_qps,
               uint32_t depth, size_t memory_bytes)
{
    struct mrd_context_attr local = *attr;

    if (!local.address)
        local.address = "127.0.0.1";
    n->context = mrd_open_device(NULL, &local);
    must(n->context);
    n->pd = mrd_alloc_pd(n->context);
    n->cq = mrd_create_cq(n->context, (int)(2 * num_qps * depth), NULL);
    must(n->pd && n->cq);
    n->num_qps = num_qps;
    for (unsigned i = 0; i < num_qps; i++) {
        n->qp[i] = mrd_create_qp(n->pd, &(struct mrd_qp_init_attr){
                                            .send_cq = n->cq,
                                            .recv_cq = n->cq,
                                            .cap = {.max_send_wr = depth, .max_recv_wr = depth},
                                        });
        must(n->qp[i]);
    }
    n->memory = malloc(memory_bytes);
    must(n->memory);
    memset(n->memory, 0, memory_bytes); /* the pages are there before somebody waits for them */
    n->mr = mrd_reg_mr(n->pd, n->memory, memory_bytes, MRD_ACCESS_LOCAL_WRITE);
    must(n->mr);
}

void node_close(struct node *n)
{
    for (unsigned i = 0; i < n->num_qps; i++)
        must(mrd_destroy_qp(n->qp[i]) == 0);
    must(mrd_destroy_cq(n->cq) == 0);
    must(mrd_dereg_mr(n->mr) == 0);
    must(mrd_dealloc_pd(n->pd) == 0);
    must(mrd_close_device(n->context) == 0);
    free(n->memory);
}

struct node_name node_name(const struct node *n)
{
    struct node_name name = {0};

    must(mrd_query_address(n->context, name.address, sizeof(name.address)) == 0);
    for (unsigned i = 0; i < n->num_qps; i++)
        name.qpn[i] = n->qp[i]->qp_num;
    return name;
}

struct mrd_ah *node_ah(struct node *n, const char *address)
{
    struct mrd_ah *ah = mrd_create_ah(n->pd, address);

    must(ah);
    return ah;
}

uint64_t node_counter(const struct node *n, const char *name)
{
    struct mrd_counter counters[COUNTERS_MAX];
    int num = mrd_query_counters(n->context, counters, COUNTERS_MAX);

    for (int i = 0; i < num && i < COUNTERS_MAX; i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    fprintf(stderr, "no counter %s\n", name);
    must(false);
    return 0;
}

void node_receive(struct node *n, unsigned qp, uint64_t wr_id, size_t offset, uint32_t bytes)
{
    struct mrd_sge sge = {(uintptr_t)(n->memory + offset), bytes, n->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    must(mrd_post_recv(n->qp[qp], &wr, &bad) == 0);
}

void node_send(struct node *n, unsigned qp, struct mrd_ah *to, uint32_t qpn, uint64_t wr_id,
               size_t offset, uint32_t bytes)
{
    struct mrd_sge sge = {(uintptr_t)(n->memory + offset), bytes, n->mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_SIGNALED,
        .ud = {.ah = to, .remote_qpn = qpn},
    };
    struct mrd_send_wr *bad;

    must(mrd_post_send(n->qp[qp], &wr, &bad) == 0);
}

bool node_poll(struct node *n, struct mrd_wc *wc, uint64_t until_ns)
{
    for (;;) {
        int got = mrd_poll_cq(n->cq, 1, wc);

        must(got >= 0);
        if (got)
            return true;
        if (clock_now_ns() >= until_ns)
            return false;
        sched_yield(); /* both ends poll, and may have to share a core */
    }
}

static uint8_t pattern(size_t i, unsigned seed)
{
    return (uint8_t)(seed * 37 + i * 11 + (i >> 8));
}

void node_fill(struct node *n, size_t offset, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        n->memory[offset + i] = pattern(i, seed);
}

bool node_is_filled(const struct node *n, size_t offset, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (n->memory[offset + i] != pattern(i, seed))
            return false;
    return true;
}
