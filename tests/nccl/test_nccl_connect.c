/* SPDX-License-Identifier: BSD-2-Clause */
/* How comms begin and end, and what the plugin makes of its environment. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/rng.h"
#include "tests/kit/kit.h"
#include "tests/nccl/net.h"

enum { BYTES = 4096, VERSIONS = 3, PROMPT_S = 4 /* what waits for no timeout */ };

static const int versions[VERSIONS] = {8, 10, 11};
static unsigned char memory[2][BYTES];

/* A message by the comms of one process or of two, as far as this one has them. */
static void carry(struct net *net, void *send, void *receive)
{
    void *out = send ? net_register(net, send, memory[0], BYTES) : NULL;
    void *in = receive ? net_register(net, receive, memory[1], BYTES) : NULL;
    void *posted = receive ? net_receive_one(net, receive, memory[1], BYTES, 1, in, false) : NULL;
    void *sent = NULL;
    int size = 0;

    if (send) {
        memset(memory[0], 0x5a, BYTES);
        sent = net_send_one(net, send, memory[0], BYTES, 1, out);
    }
    if (receive) {
        net_wait(net, posted, &size);
        NEED(size == BYTES && memory[1][0] == 0x5a && memory[1][BYTES - 1] == 0x5a);
        NEED(net->dereg_mr(receive, in) == ncclSuccess);
    }
    if (send) {
        net_wait(net, sent, NULL);
        NEED(net->dereg_mr(send, out) == ncclSuccess);
    }
}

/* One comm to this process itself. */
static struct net_link link_to_self(struct net *from, struct net *to)
{
    struct net_link link = {NULL, NULL, ""};
    union net_handle handle;
    void *listen_comm, *device_comm = NULL;

    NEED(net_listen(to, &handle, &listen_comm) == ncclSuccess);
    while (!link.send || !link.receive) {
        if (!link.send)
            NEED(net_connect(from, &handle, &link.send) == ncclSuccess);
        if (!link.receive)
            NEED(to->accept(listen_comm, &link.receive, &device_comm) == ncclSuccess);
        sched_yield();
    }
    NEED(to->close_listen(listen_comm) == ncclSuccess);
    return link;
}

/* What connect() ends in, if not in a comm. */
static ncclResult_t connect_end(struct net *net, union net_handle *handle)
{
    uint64_t begin_ns = rank_now_ns();
    ncclResult_t result = ncclSuccess;
    void *comm = NULL;

    while (result == ncclSuccess && !comm && rank_now_ns() - begin_ns < PROMPT_S * 1000000000ull) {
        result = net_connect(net, handle, &comm);
        sched_yield();
    }
    NEED(!comm);
    return result;
}

/* --------------------------------------------------------------------------- handles, refusals */

static void connect_badly(int rank, const void *argument)
{
    union net_handle handle, good;
    struct mrd_rng rng;
    struct net net;
    void *listen_comm;

    (void)rank;
    (void)argument;
    mrd_rng_init(&rng, 5);
    net_start(&net, 11);
    NEED(net_listen(&net, &good, &listen_comm) == ncclSuccess);
    memset(&handle, 0, sizeof(handle));
    NEED(connect_end(&net, &handle) == ncclInvalidArgument);
    NEED(net_said("a handle is not of this plugin"));
    for (int i = 0; i < 1000; i++) {
        for (size_t j = 0; j < sizeof(handle); j++)
            handle.bytes[j] = (unsigned char)mrd_rng_u64(&rng);
        NEED(connect_end(&net, &handle) == ncclInvalidArgument);
    }
    handle = good;
    handle.is.version++;
    NEED(connect_end(&net, &handle) == ncclInvalidArgument);
    handle = good;
    memset(handle.is.address, '1', sizeof(handle.is.address));
    NEED(connect_end(&net, &handle) == ncclInvalidArgument);
    handle = good;
    strcpy(handle.is.address, "nobody at home");
    NEED(connect_end(&net, &handle) == ncclRemoteError);
    NEED(net_said("nobody at home"));
    handle = good;
    handle.is.qp_num ^= 0x5555; /* no listener has it */
    NEED(connect_end(&net, &handle) == ncclRemoteError);
    handle = good;
    handle.is.qkey ^= 1;
    NEED(connect_end(&net, &handle) == ncclRemoteError);
    NEED(net.close_listen(listen_comm) == ncclSuccess);
    handle = good;
    NEED(connect_end(&net, &handle) == ncclRemoteError);
    NEED(net_said(good.is.address));
    struct net_link link = link_to_self(&net, &net);
    carry(&net, link.send, link.receive);
    net_unlink(&net, &link, 1);
    NEED(net_finalize(&net) == ncclSuccess);
}

TEST(nccl_connect__bad_handles)
{
    ranks_run(1, connect_badly, NULL);
}

/* Rank 0 connects to a listener whose process has ended. */
static void connect_to_dead(int rank, const void *argument)
{
    union net_handle handle;
    struct net net;
    void *listen_comm;

    (void)argument;
    (void)setenv("MRD_NCCL_TIMEOUT", "1", 1);
    if (rank) {
        net_start(&net, 11);
        NEED(net_listen(&net, &handle, &listen_comm) == ncclSuccess);
        rank_tell(0, &handle, sizeof(handle));
        exit(0);
    }
    rank_hear(1, &handle, sizeof(handle));
    rank_await_death(1);
    net_start(&net, 11);
    NEED(connect_end(&net, &handle) == ncclRemoteError);
    NEED(net_said(handle.is.address));
    NEED(net_finalize(&net) == ncclSuccess);
}

TEST(nccl_connect__listener_is_dead)
{
    ranks_run(2, connect_to_dead, NULL);
}

static void connect_in_vain(int rank, const void *argument)
{
    union net_handle handle;
    struct net net;
    void *listen_comm, *comm = NULL, *device_comm = NULL;

    (void)rank;
    (void)argument;
    net_start(&net, 10);
    NEED(net_listen(&net, &handle, &listen_comm) == ncclSuccess);
    NEED(net.accept(listen_comm, &comm, &device_comm) == ncclSuccess);
    NEED(!comm); /* nobody has asked */
    for (int i = 0; i < 1000; i++) {
        NEED(net_connect(&net, &handle, &comm) == ncclSuccess);
        NEED(!comm);
        sched_yield();
    }
    NEED(net.close_listen(listen_comm) == ncclSuccess);
    uint64_t begin_ns = rank_now_ns();
    ncclResult_t result = ncclSuccess;
    while (result == ncclSuccess && rank_now_ns() - begin_ns < PROMPT_S * 1000000000ull) {
        if (!comm)
            result = net_connect(&net, &handle, &comm);
        else
            result = net_send(&net, comm, NULL, 0, 1, NULL, &device_comm);
        sched_yield();
    }
    NEED(result == ncclRemoteError);
    if (comm)
        NEED(net.close_send(comm) == ncclSuccess);
}

/* Neither call waits. Who is not accepted is told when the listener closes, at the latest by its first send. */
TEST(nccl_connect__never_accepted)
{
    ranks_run(1, connect_in_vain, NULL);
}

/* ---------------------------------------------------------------------------------- closes */

/* Rank 0 sends and receives; what is outstanding, and what it closes first, are bits of `order`. */
enum { RECEIVE_FIRST = 1, OUTSTANDING = 2, ONE_AFTER_ANOTHER = 4, ORDERS = 8 };

static void close_in_order(int rank, const void *argument)
{
    struct net net;

    (void)argument;
    net_start(&net, 11);
    for (int order = 0; order < ORDERS; order++) {
        struct net_link link;

        net_link(&net, !rank, &link, 1);
        carry(&net, link.send, link.receive);
        if (order & OUTSTANDING) { /* memory outlives the comms */
            void *out = net_register(&net, link.send, memory[0], BYTES);
            void *in = net_register(&net, link.receive, memory[1], BYTES);

            NEED(net_receive_one(&net, link.receive, memory[1], BYTES, 7, in, order & 1));
            NEED(net_send_one(&net, link.send, memory[0], BYTES, 8, out));
            NEED(net.dereg_mr(link.send, out) == ncclSuccess);
            NEED(net.dereg_mr(link.receive, in) == ncclSuccess);
        }
        rank_meet(!rank);
        if (order & ONE_AFTER_ANOTHER && rank)
            rank_meet(!rank);
        if (order & RECEIVE_FIRST)
            NEED(net.close_receive(link.receive) == ncclSuccess);
        NEED(net.close_send(link.send) == ncclSuccess);
        if (!(order & RECEIVE_FIRST))
            NEED(net.close_receive(link.receive) == ncclSuccess);
        if (order & ONE_AFTER_ANOTHER && !rank)
            rank_meet(!rank);
    }
    struct net_link link;
    net_link(&net, !rank, &link, 1);
    carry(&net, link.send, link.receive);
    net_unlink(&net, &link, 1);
    NEED(net_finalize(&net) == ncclSuccess);
}

TEST(nccl_connect__closes_in_any_order)
{
    ranks_run(2, close_in_order, NULL);
}

enum { MANY = 500 };

static void open_many(int rank, const void *argument)
{
    static struct net_link links[MANY];
    struct net net;

    (void)argument;
    (void)setenv("MRD_NCCL_EAGER_KB", "4", 1);
    net_start(&net, 11);
    net_link(&net, !rank, links, MANY);
    for (int i = 0; i < MANY; i++)
        carry(&net, links[i].send, links[i].receive);
    rank_meet(!rank);
    net_unlink(&net, links, MANY);
    NEED(net_finalize(&net) == ncclSuccess);
}

/* 500 comms each way are open at once. */
TEST(nccl_connect__a_thousand_comms)
{
    ranks_run(2, open_many, NULL);
}

static long resident_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");

    NEED(file);
    while (fgets(line, sizeof(line), file) && sscanf(line, "VmRSS: %ld", &kib) != 1)
        ;
    fclose(file);
    return kib;
}

#ifdef __SANITIZE_ADDRESS__ /* keeps what is freed, and looks for leaks itself */
enum { GROWTH_KIB = 256 << 10 };
#else
enum { GROWTH_KIB = 2 << 10 };
#endif
enum { ROUNDS = 200, WARM = 50 };

/* A round opens and closes all: contexts, too. */
static void open_and_close(int rank, const void *argument)
{
    const bool finalizes = *(const bool *)argument;
    struct net net;
    long before_kib = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct net_link link;

        if (i == WARM)
            before_kib = resident_kib();
        if (!i || finalizes)
            net_start(&net, 11);
        net_link(&net, !rank, &link, 1);
        carry(&net, link.send, link.receive);
        rank_meet(!rank);
        net_unlink(&net, &link, 1);
        if (finalizes)
            NEED(net_finalize(&net) == ncclSuccess);
        net_forget_said();
    }
    long grown_kib = resident_kib() - before_kib;
    printf("grown by %ld KiB\n", grown_kib);
    if (grown_kib > GROWTH_KIB)
        rank_fail(__FILE__, __LINE__, "%ld KiB more after %d rounds", grown_kib, ROUNDS - WARM);
}

TEST(nccl_connect__again_and_again)
{
    ranks_run(2, open_and_close, &(bool){false});
}

TEST(nccl_connect__begins_and_ends_again_and_again)
{
    ranks_run(2, open_and_close, &(bool){true});
}

/* ------------------------------------------------------------------------------ environment */

struct setting {
    const char *name, *value;
    ncclResult_t result;
    const char *sentence; /* of the log, or the names of all devices */
};

static void begin_with(int rank, const void *argument)
{
    const struct setting *s = argument;
    char names[256] = "";
    struct net net;

    (void)rank;
    (void)setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    (void)setenv(s->name, s->value, 1);
    net_load(&net, MRD_NCCL_PLUGIN, 11);
    NEED(net_init(&net) == s->result);
    if (s->result != ncclSuccess) {
        NEED(net_said(s->sentence));
        return;
    }
    int n = 0;
    NEED(net.devices(&n) == ncclSuccess);
    for (int i = 0; i < n; i++) {
        ncclNetProperties_v11_t props;

        NEED(net_properties(&net, i, &props) == ncclSuccess);
        strncat(strncat(names, " ", 2), props.name, 32);
    }
    if (strcmp(names, s->sentence))
        rank_fail(__FILE__, __LINE__, "%s=%s: devices are%s", s->name, s->value, names);
    NEED(net_finalize(&net) == ncclSuccess);
}

static void check_settings(const struct setting *settings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ranks_run(1, begin_with, &settings[i]);
}

/* The sentence names the variable. */
TEST(nccl_connect__malformed_variables)
{
    static const struct setting settings[] = {
        {"MRD_NCCL_CONTEXTS", "0", ncclInvalidUsage, "MRD_NCCL_CONTEXTS=0: not a number from 1 to"},
        {"MRD_NCCL_CONTEXTS", "33", ncclInvalidUsage, "MRD_NCCL_CONTEXTS=33"},
        {"MRD_NCCL_MAX_RECVS", "9", ncclInvalidUsage, "MRD_NCCL_MAX_RECVS=9"},
        {"MRD_NCCL_EAGER_KB", "many", ncclInvalidUsage, "MRD_NCCL_EAGER_KB=many"},
        {"MRD_NCCL_SPIN_US", "-1", ncclInvalidUsage, "MRD_NCCL_SPIN_US=-1"},
        {"MRD_NCCL_SPIN_US", " -1", ncclInvalidUsage, "MRD_NCCL_SPIN_US= -1"},
        {"MRD_NCCL_TIMEOUT", "8s", ncclInvalidUsage, "MRD_NCCL_TIMEOUT=8s"},
        {"MRD_NCCL_SPEED", "99999999999999999999", ncclInvalidUsage, "MRD_NCCL_SPEED="},
        {"MRD_NCCL_DROP_PPM", "1000001", ncclInvalidUsage, "MRD_NCCL_DROP_PPM=1000001"},
        {"MRD_NCCL_TIMEOUT", "", ncclSuccess, " lo"},
    };

    check_settings(settings, sizeof(settings) / sizeof(*settings));
}

TEST(nccl_connect__interfaces)
{
    static const struct setting settings[] = {
        {"NCCL_SOCKET_IFNAME", "l", ncclSuccess, " lo"},
        {"NCCL_SOCKET_IFNAME", "=lo", ncclSuccess, " lo"},
        {"NCCL_SOCKET_IFNAME", "nothing,lo", ncclSuccess, " lo"},
        {"NCCL_SOCKET_IFNAME", "=nothing,lo", ncclSuccess, " lo"},
        {"NCCL_SOCKET_IFNAME", "^e,b,d,v,w,t,s,p,u,i,a,c,f,g,h,k,m,n,o,r", ncclSuccess, " lo"},
        {"NCCL_SOCKET_IFNAME", "=l", ncclSystemError, "NCCL_SOCKET_IFNAME allows"},
        {"NCCL_SOCKET_IFNAME", "nothing", ncclSystemError, "NCCL_SOCKET_IFNAME allows"},
    };

    check_settings(settings, sizeof(settings) / sizeof(*settings));
}

static void look_at_properties(int rank, const void *argument)
{
    (void)rank;
    (void)argument;
    (void)setenv("MRD_NCCL_SPEED", "25000", 1);
    (void)setenv("MRD_NCCL_MAX_RECVS", "3", 1);
    for (int i = 0; i < VERSIONS; i++) {
        ncclNetProperties_v11_t props;
        struct net net;
        void *mhandle = &mhandle;

        net_start(&net, versions[i]);
        NEED(net_properties(&net, 0, &props) == ncclSuccess);
        NEED(!strcmp(props.name, "lo") && !props.pciPath && props.speed == 25000);
        NEED(props.ptrSupport == NCCL_PTR_HOST && props.maxRecvs == 3 && props.maxComms >= 1000);
        if (net.version > 8)
            NEED(props.maxP2pBytes == 1 << 30 && props.vProps.ndevs == 1);
        NEED(net_properties(&net, 1, &props) == ncclInvalidArgument);
        NEED(net_properties(&net, -1, &props) == ncclInvalidArgument);
        struct net_link link = link_to_self(&net, &net);
        NEED(net.reg_mr(link.send, memory, BYTES, 2 /* NCCL_PTR_CUDA */, &mhandle) ==
             ncclInvalidUsage);
        NEED(!mhandle);
        net_unlink(&net, &link, 1);
        NEED(net_finalize(&net) == ncclSuccess);
    }
}

TEST(nccl_connect__properties)
{
    ranks_run(1, look_at_properties, NULL);
}

/* ------------------------------------------------------------------------- process and plugin */

/* Of a child: calls fail, and none waits. */
static void try_all(struct net *net, struct net_link *link, union net_handle *begun,
                    void *listen_comm, void *mhandle)
{
    void *comm = NULL, *request = NULL, *data = memory[0];
    size_t size = BYTES;
    union net_handle handle;
    int tag = 1;

    NEED(net_listen(net, &handle, &comm) != ncclSuccess);
    NEED(net_connect(net, begun, &comm) != ncclSuccess && !comm);
    NEED(net->accept(listen_comm, &comm, &comm) != ncclSuccess && !comm);
    NEED(net->reg_mr(link->send, memory[0], BYTES, NCCL_PTR_HOST, &comm) != ncclSuccess);
    NEED(net_send(net, link->send, data, size, tag, mhandle, &request) != ncclSuccess);
    NEED(net_receive(net, link->receive, 1, &data, &size, &tag, &mhandle, &request) != ncclSuccess);
    NEED(net_init(net) != ncclSuccess);
    NEED(net_said("before fork()"));
    (void)net->dereg_mr(link->send, mhandle);
    net_unlink(net, link, 1);
    NEED(net->close_listen(listen_comm) == ncclSuccess);
    (void)net_finalize(net);
}

/* As a program ends. A sanitizer that looks for leaks then would look for the parent's threads. */
_Noreturn static void end_child(void)
{
#ifdef __SANITIZE_ADDRESS__
    _exit(0);
#else
    exit(0);
#endif
}

static void fork_after_init(int rank, const void *argument)
{
    union net_handle handle, other;
    struct net_link link;
    struct net net;
    void *listen_comm, *comm = NULL;
    int status, done;

    (void)rank;
    (void)argument;
    net_start(&net, 11);
    link = link_to_self(&net, &net);
    NEED(net_listen(&net, &handle, &listen_comm) == ncclSuccess);
    other = handle;
    NEED(net_connect(&net, &other, &comm) == ncclSuccess && !comm);
    void *mhandle = net_register(&net, link.receive, memory[1], BYTES);
    void *pending = net_receive_one(&net, link.receive, memory[1], BYTES, 9, mhandle, false);
    pid_t child = fork();
    if (!child) {
        alarm(10);
        NEED(net.test(pending, &done, NULL) != ncclSuccess);
        try_all(&net, &link, &other, listen_comm, mhandle);
        end_child();
    }
    NEED(waitpid(child, &status, 0) == child);
    NEED(WIFEXITED(status) && !WEXITSTATUS(status));
    void *out = net_register(&net, link.send, memory[0], BYTES);
    net_wait(&net, net_send_one(&net, link.send, memory[0], BYTES, 9, out), NULL);
    net_wait(&net, pending, NULL);
    NEED(net.dereg_mr(link.send, out) == ncclSuccess);
    NEED(net.dereg_mr(link.receive, mhandle) == ncclSuccess);
    net_unlink(&net, &link, 1);
    NEED(net.close_listen(listen_comm) == ncclSuccess);
}

/* The child has none of the threads: it is told, and its end does not disturb the parent. */
TEST(nccl_connect__fork)
{
    ranks_run(1, fork_after_init, NULL);
}

static struct net *net_of_log;
static pid_t child_of_log;

static void *fork_and_try(void *argument)
{
    child_of_log = fork();
    if (!child_of_log) {
        alarm(10);
        NEED(net_init(net_of_log) != ncclSuccess);
        NEED(net_finalize(net_of_log) == ncclSuccess);
        _exit(0);
    }
    return argument;
}

/* What init() says; another thread forks meanwhile. */
static void fork_once(int level, unsigned long flags, const char *file, int line,
                      const char *format, ...)
{
    pthread_t thread;

    (void)level, (void)flags, (void)file, (void)line, (void)format;
    if (child_of_log)
        return;
    NEED(!pthread_create(&thread, NULL, fork_and_try, NULL));
    NEED(!pthread_join(thread, NULL));
}

static void fork_in_init(int rank, const void *argument)
{
    ncclNetCommConfig_t config = {.trafficClass = -1};
    struct net net;
    int status;

    (void)rank;
    (void)argument;
    (void)setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    net_load(&net, MRD_NCCL_PLUGIN, 11);
    net_of_log = &net;
    NEED(net.v11->init(&net.context, 1, &config, fork_once, NULL) == ncclSuccess);
    NEED(child_of_log > 0 && waitpid(child_of_log, &status, 0) == child_of_log);
    NEED(WIFEXITED(status) && !WEXITSTATUS(status));
    NEED(net_finalize(&net) == ncclSuccess);
}

/* The child is told even if the plugin was at work, with its lock, when it was made. */
TEST(nccl_connect__fork_during_init)
{
    ranks_run(1, fork_in_init, NULL);
}

static void copy_file(const char *from, const char *to)
{
    char buf[65536];
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

    NEED(in >= 0 && out >= 0);
    while ((n = read(in, buf, sizeof(buf))) > 0)
        NEED(write(out, buf, (size_t)n) == n);
    NEED(!n);
    close(in);
    close(out);
}

static void use_two_plugins(int rank, const void *argument)
{
    char name[] = "/tmp/nccl-net-XXXXXX";
    struct net first, second;
    int fd = mkstemp(name);

    (void)rank;
    (void)argument;
    NEED(fd >= 0);
    close(fd);
    copy_file(MRD_NCCL_PLUGIN, name);
    net_start(&first, 11);
    net_load(&second, name, 8);
    unlink(name);
    NEED((const void *)first.test != (const void *)second.test);
    NEED(net_init(&second) == ncclSuccess);
    struct net_link there = link_to_self(&first, &second), back = link_to_self(&second, &first);
    for (int i = 0; i < 100; i++) {
        void *out = net_register(&first, there.send, memory[0], BYTES);
        void *in = net_register(&second, there.receive, memory[1], BYTES);
        void *posted = net_receive_one(&second, there.receive, memory[1], BYTES, i, in, false);
        void *sent;

        memset(memory[0], i, BYTES);
        NEED(sent = net_send_one(&first, there.send, memory[0], BYTES, i, out));
        net_wait(&second, posted, NULL);
        NEED(memory[1][BYTES - 1] == i);
        net_wait(&first, sent, NULL);
        NEED(first.dereg_mr(there.send, out) == ncclSuccess);
        NEED(second.dereg_mr(there.receive, in) == ncclSuccess);
    }
    NEED(first.close_send(there.send) == ncclSuccess);
    NEED(second.close_receive(there.receive) == ncclSuccess);
    NEED(second.close_send(back.send) == ncclSuccess);
    NEED(first.close_receive(back.receive) == ncclSuccess);
    NEED(net_finalize(&first) == ncclSuccess);
}

/* The same file under another name is another plugin, over the same library. */
TEST(nccl_connect__two_plugins_in_a_process)
{
    ranks_run(1, use_two_plugins, NULL);
}
