/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A benchmark, not a test: messages a second of several threads that share a context.
 *
 * Posters post short sends to queue pairs of the same context, over the loopback; pollers take the
 * completions and post the receives again. Prints the rate, the processor time and the context
 * switches. Compare runs that were made by turns: threads_rate -p 1 -c 1, threads_rate -p 8 -c 3.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "mrd/mrd.h"

enum { THREADS_MAX = 64, DEPTH = 64, BYTES = 64, BATCH = 16 };

static struct {
    unsigned posters, pollers, messages; /* messages: of all posters */
    bool manual;                         /* no progress thread */
    bool shared;                         /* all posters post to one queue pair */
    bool queues;                         /* completion queues for each poller */
    bool verbose;                        /* counters, too */
    bool busy;                           /* posters do not yield when their queue is full */
} options = {.posters = 1, .pollers = 1, .messages = 500000};

static struct {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_mr *mr;
    struct mrd_ah *self;
    struct mrd_cq *sends[THREADS_MAX], *receives[THREADS_MAX];
    struct mrd_qp *qp[THREADS_MAX];
    uint8_t memory[THREADS_MAX * DEPTH * BYTES];
    atomic_uint sent, received, polls_empty, posts_full;
} bench;

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "threads_rate: %s: %s\n", what, mrd_last_error());
    exit(1);
}

/* wr_id: the number of the queue pair, and of the place in the memory. */
static void post_receive(uint64_t wr_id)
{
    struct mrd_sge sge = {(uintptr_t)bench.memory + wr_id * BYTES, BYTES, bench.mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    check(!mrd_post_recv(bench.qp[wr_id / DEPTH], &wr, &bad), "mrd_post_recv");
}

static void open_queues(void)
{
    unsigned queues = options.queues ? options.pollers : 1;
    unsigned pairs = options.shared ? 1 : options.posters;

    for (unsigned i = 0; i < queues; i++) {
        bench.sends[i] = mrd_create_cq(bench.context, DEPTH * (int)pairs, NULL);
        bench.receives[i] = mrd_create_cq(bench.context, DEPTH * (int)pairs, NULL);
        check(bench.sends[i] && bench.receives[i], "mrd_create_cq");
    }
    for (unsigned i = 0; i < pairs; i++) {
        struct mrd_qp_init_attr attr = {
            .send_cq = bench.sends[i % queues],
            .recv_cq = bench.receives[i % queues],
            .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_inline_data = BYTES},
        };

        bench.qp[i] = mrd_create_qp(bench.pd, &attr);
        check(bench.qp[i], "mrd_create_qp");
        for (uint64_t slot = 0; slot < DEPTH; slot++)
            post_receive(i * DEPTH + slot);
    }
}

static void open_all(void)
{
    struct mrd_context_attr attr = {
        .comp_mask = MRD_CONTEXT_ATTR_CHALLENGE,
        .address = "127.0.0.1",
        .progress = options.manual ? MRD_PROGRESS_MANUAL : MRD_PROGRESS_THREAD,
    };
    char address[MRD_ADDRESS_MAX];

    bench.context = mrd_open_device(NULL, &attr);
    check(bench.context, "mrd_open_device");
    bench.pd = mrd_alloc_pd(bench.context);
    bench.mr = mrd_reg_mr(bench.pd, bench.memory, sizeof(bench.memory), MRD_ACCESS_LOCAL_WRITE);
    check(bench.mr, "mrd_reg_mr");
    check(!mrd_query_address(bench.context, address, sizeof(address)), "mrd_query_address");
    bench.self = mrd_create_ah(bench.pd, address);
    check(bench.self, "mrd_create_ah");
    open_queues();
}

static void *post(void *arg)
{
    unsigned index = (unsigned)(uintptr_t)arg;
    struct mrd_qp *qp = bench.qp[options.shared ? 0 : index];
    uint8_t bytes[BYTES] = {0};
    struct mrd_sge sge = {(uintptr_t)bytes, BYTES, 0};
    struct mrd_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .wr_id = UINT64_MAX,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_INLINE | MRD_SEND_SIGNALED,
        .ud = {.ah = bench.self, .remote_qpn = qp->qp_num},
    };
    unsigned count = options.messages / options.posters, full = 0;
    struct mrd_send_wr *bad;

    for (unsigned i = 0; i < count;) {
        int error = mrd_post_send(qp, &wr, &bad);

        if (!error) {
            i++;
            continue;
        }
        check(error == -ENOMEM || error == -EAGAIN, "mrd_post_send");
        full++;
        if (!options.busy)
            sched_yield();
    }
    atomic_fetch_add(&bench.posts_full, full);
    return NULL;
}

/* Returns the number of completions. */
static unsigned take(struct mrd_cq *cq)
{
    struct mrd_wc wc[BATCH];
    int n = mrd_poll_cq(cq, BATCH, wc);

    check(n >= 0, "mrd_poll_cq");
    for (int i = 0; i < n; i++) {
        check(wc[i].status == MRD_WC_SUCCESS, mrd_wc_status_str(wc[i].status));
        if (wc[i].opcode == MRD_WC_RECV)
            post_receive(wc[i].wr_id);
    }
    return (unsigned)n;
}

static void *poll_both(void *arg)
{
    unsigned queue = options.queues ? (unsigned)(uintptr_t)arg : 0, empty = 0;
    unsigned want = options.messages / options.posters * options.posters;

    while (atomic_load_explicit(&bench.received, memory_order_relaxed) < want ||
           atomic_load_explicit(&bench.sent, memory_order_relaxed) < want) {
        unsigned received = take(bench.receives[queue]), sent = take(bench.sends[queue]);

        empty += received == 0;
        empty += sent == 0;
        atomic_fetch_add_explicit(&bench.received, received, memory_order_relaxed);
        atomic_fetch_add_explicit(&bench.sent, sent, memory_order_relaxed);
    }
    atomic_fetch_add(&bench.polls_empty, empty);
    return NULL;
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static double run(void)
{
    pthread_t threads[2 * THREADS_MAX];
    unsigned n = 0;
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (uintptr_t i = 0; i < options.pollers; i++)
        check(!pthread_create(&threads[n++], NULL, poll_both, (void *)i), "pthread_create");
    for (uintptr_t i = 0; i < options.posters; i++)
        check(!pthread_create(&threads[n++], NULL, post, (void *)i), "pthread_create");
    while (n)
        pthread_join(threads[--n], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

static unsigned number(const char *text, unsigned max)
{
    long value = atol(text);

    if (value >= 1 && value <= max)
        return (unsigned)value;
    fprintf(stderr, "threads_rate: %s is not a number from 1 to %u\n", text, max);
    exit(2);
}

/*
 * All completions of one queue pair are in two queues of one poller. The others would spin, which
 * measures the scheduler: two threads that spin leave a fiftieth of two cores to the rest.
 */
static void refuse_idle_pollers(void)
{
    if (!options.shared || !options.queues || options.pollers == 1)
        return;
    fprintf(stderr, "threads_rate: with -q and -k only one poller has something to poll\n");
    exit(2);
}

static void parse(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "p:c:n:mqkbv")) != -1) {
        switch (option) {
        case 'p':
            options.posters = number(optarg, THREADS_MAX);
            break;
        case 'c':
            options.pollers = number(optarg, THREADS_MAX);
            break;
        case 'n':
            options.messages = number(optarg, 1u << 30);
            break;
        case 'm':
            options.manual = true;
            break;
        case 'q':
            options.shared = true;
            break;
        case 'k':
            options.queues = true;
            break;
        case 'v':
            options.verbose = true;
            break;
        case 'b':
            options.busy = true;
            break;
        default:
            fprintf(stderr, "usage: threads_rate [-p POSTERS] [-c POLLERS] [-n MESSAGES]\n"
                            "  -m  MRD_PROGRESS_MANUAL\n"
                            "  -q  one queue pair for all posters\n"
                            "  -k  a completion queue for each poller\n"
                            "  -b  posters do not yield when their queue is full\n"
                            "  -v  counters, too\n");
            exit(2);
        }
    }
    refuse_idle_pollers();
}

static void print_counters(void)
{
    struct mrd_counter counters[256];
    int n = mrd_query_counters(bench.context, counters, 256);

    for (int i = 0; i < n && i < 256; i++)
        if (counters[i].value)
            printf("    %s %llu\n", counters[i].name, (unsigned long long)counters[i].value);
}

int main(int argc, char **argv)
{
    struct rusage usage;

    parse(argc, argv);
    open_all();
    double s = run();
    getrusage(RUSAGE_SELF, &usage);
    printf("%u posters, %u pollers: %.0f messages/s, %.2f s user, %.2f s system, %ld switches, "
           "%u polls empty, %u posts full\n",
           options.posters, options.pollers, bench.received / s, seconds(&usage.ru_utime),
           seconds(&usage.ru_stime), usage.ru_nvcsw + usage.ru_nivcsw, bench.polls_empty,
           bench.posts_full);
    if (options.verbose)
        print_counters();
    return 0;
}
