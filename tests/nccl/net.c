/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/nccl/net.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ NCCL's log */

static struct {
    pthread_mutex_t lock;
    char text[1 << 16];
    size_t len;
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((format(printf, 5, 6))) static void
log_line(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    va_list list;

    (void)level, (void)flags, (void)file, (void)line;
    pthread_mutex_lock(&said.lock);
    va_start(list, format);
    int n = vsnprintf(said.text + said.len, sizeof(said.text) - said.len, format, list);
    va_end(list);
    if (n > 0 && said.len + (size_t)n + 1 < sizeof(said.text)) {
        said.len += (size_t)n;
        said.text[said.len++] = '|'; /* a sentence of a failed test is one line */
    }
    said.text[said.len] = 0;
    pthread_mutex_unlock(&said.lock);
}

bool net_said(const char *sentence)
{
    pthread_mutex_lock(&said.lock);
    bool found = strstr(said.text, sentence);
    pthread_mutex_unlock(&said.lock);
    return found;
}

void net_forget_said(void)
{
    pthread_mutex_lock(&said.lock);
    said.len = 0;
    said.text[0] = 0;
    pthread_mutex_unlock(&said.lock);
}

/* A result that is no success ends the rank, with what the plugin said last. */
static void succeed(ncclResult_t result, const char *call)
{
    if (result == ncclSuccess)
        return;
    pthread_mutex_lock(&said.lock);
    size_t from = said.len > 300 ? said.len - 300 : 0;
    rank_fail(__FILE__, __LINE__, "%s returns %d: %s", call, (int)result, said.text + from);
}

/* -------------------------------------------------------------------------------------- the tables */

#define TAKE_COMMON(net_, table_)                                                                  \
    do {                                                                                           \
        (net_)->devices = (table_)->devices;                                                       \
        (net_)->accept = (table_)->accept;                                                         \
        (net_)->reg_mr = (table_)->regMr;                                                          \
        (net_)->dereg_mr = (table_)->deregMr;                                                      \
        (net_)->test = (table_)->test;                                                             \
        (net_)->close_send = (table_)->closeSend;                                                  \
        (net_)->close_receive = (table_)->closeRecv;                                               \
        (net_)->close_listen = (table_)->closeListen;                                              \
    } while (0)

void net_load(struct net *net, const char *path, int version)
{
    char symbol[32];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        rank_fail(__FILE__, __LINE__, "%s", dlerror());
    snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
    const void *table = dlsym(library, symbol);
    NEED(table);
    *net = (struct net){.version = version};
    if (version == 8) {
        net->v8 = table;
        TAKE_COMMON(net, net->v8);
    } else if (version == 10) {
        net->v10 = table;
        TAKE_COMMON(net, net->v10);
    } else {
        net->v11 = table;
        TAKE_COMMON(net, net->v11);
    }
}

ncclResult_t net_init(struct net *net)
{
    ncclNetCommConfig_t config = {.trafficClass = -1};

    return net->v8    ? net->v8->init(log_line)
           : net->v10 ? net->v10->init(log_line, NULL)
                      : net->v11->init(&net->context, 1, &config, log_line, NULL);
}

ncclResult_t net_finalize(struct net *net)
{
    return net->v11 ? net->v11->finalize(net->context) : ncclSuccess;
}

ncclResult_t net_properties(struct net *net, int dev, ncclNetProperties_v11_t *props)
{
    ncclNetProperties_v8_t old = {0};

    *props = (ncclNetProperties_v11_t){0};
    if (net->v11)
        return net->v11->getProperties(dev, props);
    if (net->v10) /* its fields are the first ones */
        return net->v10->getProperties(dev, (ncclNetProperties_v10_t *)(void *)props);
    ncclResult_t result = net->v8->getProperties(dev, &old);
    props->name = old.name;
    props->pciPath = old.pciPath;
    props->ptrSupport = old.ptrSupport;
    props->speed = old.speed;
    props->maxComms = old.maxComms;
    props->maxRecvs = old.maxRecvs;
    return result;
}

ncclResult_t net_listen(struct net *net, union net_handle *handle, void **listen_comm)
{
    return net->v8    ? net->v8->listen(0, handle, listen_comm)
           : net->v10 ? net->v10->listen(0, handle, listen_comm)
                      : net->v11->listen(net->context, 0, handle, listen_comm);
}

ncclResult_t net_connect(struct net *net, union net_handle *handle, void **send_comm)
{
    ncclNetCommConfig_t config = {.trafficClass = -1};
    void *device_comm = NULL;

    return net->v8    ? net->v8->connect(0, handle, send_comm, &device_comm)
           : net->v10 ? net->v10->connect(0, &config, handle, send_comm, &device_comm)
                      : net->v11->connect(net->context, 0, handle, send_comm, &device_comm);
}

ncclResult_t net_send(struct net *net, void *comm, void *data, size_t size, int tag, void *mhandle,
                      void **request)
{
    return net->v8    ? net->v8->isend(comm, data, (int)size, tag, mhandle, request)
           : net->v10 ? net->v10->isend(comm, data, size, tag, mhandle, NULL, request)
                      : net->v11->isend(comm, data, size, tag, mhandle, NULL, request);
}

ncclResult_t net_receive(struct net *net, void *comm, int n, void **data, const size_t *sizes,
                         const int *tags, void **mhandles, void **request)
{
    int sizes_v8[NET_GROUP_MAX], tags_of_call[NET_GROUP_MAX];
    size_t sizes_of_call[NET_GROUP_MAX];

    for (int i = 0; i < n && i < NET_GROUP_MAX; i++) {
        sizes_v8[i] = (int)sizes[i];
        sizes_of_call[i] = sizes[i];
        tags_of_call[i] = tags[i];
    }
    if (net->v8)
        *request = (void *)(uintptr_t)0xbad;
    return net->v8    ? net->v8->irecv(comm, n, data, sizes_v8, tags_of_call, mhandles, request)
           : net->v10 ? net->v10->irecv(comm, n, data, sizes_of_call, tags_of_call, mhandles, NULL,
                                        request)
                      : net->v11->irecv(comm, n, data, sizes_of_call, tags_of_call, mhandles, NULL,
                                        request);
}

/* ------------------------------------------------------------------------------- what must succeed */

void net_start(struct net *net, int version)
{
    (void)setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    net_load(net, MRD_NCCL_PLUGIN, version);
    succeed(net_init(net), "init");
}

/* Both ways at once, as no call waits. */
struct net_link net_link_ways(struct net *net, int to, int from)
{
    struct net_link link = {NULL, NULL, ""};
    union net_handle mine, theirs;
    void *listen_comm = NULL, *device_comm = NULL;

    if (from != NET_NOBODY) {
        succeed(net_listen(net, &mine, &listen_comm), "listen");
        rank_tell(from, &mine, sizeof(mine));
    }
    if (to != NET_NOBODY) {
        rank_hear(to, &theirs, sizeof(theirs));
        memcpy(link.peer, theirs.is.address, sizeof(link.peer));
    }
    while ((to != NET_NOBODY && !link.send) || (from != NET_NOBODY && !link.receive)) {
        if (to != NET_NOBODY && !link.send)
            succeed(net_connect(net, &theirs, &link.send), "connect");
        if (from != NET_NOBODY && !link.receive)
            succeed(net->accept(listen_comm, &link.receive, &device_comm), "accept");
        sched_yield();
    }
    if (listen_comm)
        succeed(net->close_listen(listen_comm), "closeListen");
    return link;
}

void net_link(struct net *net, int peer, struct net_link *links, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        links[i] = net_link_ways(net, peer, peer);
}

void net_unlink(struct net *net, const struct net_link *links, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        succeed(net->close_send(links[i].send), "closeSend");
        succeed(net->close_receive(links[i].receive), "closeRecv");
    }
}

void *net_register(struct net *net, void *comm, void *data, size_t size)
{
    void *mhandle = NULL;

    succeed(net->reg_mr(comm, data, size, NCCL_PTR_HOST, &mhandle), "regMr");
    NEED(mhandle);
    return mhandle;
}

void *net_receive_one(struct net *net, void *comm, void *data, size_t size, int tag, void *mhandle,
                      bool hinted)
{
    void *request = hinted ? NCCL_NET_OPTIONAL_RECV_COMPLETION : NULL;

    succeed(net_receive(net, comm, 1, &data, &size, &tag, &mhandle, &request), "irecv");
    return request;
}

void *net_send_one(struct net *net, void *comm, void *data, size_t size, int tag, void *mhandle)
{
    void *request = NULL;

    succeed(net_send(net, comm, data, size, tag, mhandle, &request), "isend");
    return request;
}

bool net_is_done(struct net *net, void *request, int *sizes)
{
    int done = 0;

    succeed(net->test(request, &done, sizes), "test");
    return done;
}

void net_wait(struct net *net, void *request, int *sizes)
{
    while (!net_is_done(net, request, sizes))
        sched_yield();
}

ncclResult_t net_wait_end(struct net *net, void *request)
{
    int done = 0;
    ncclResult_t result;

    while ((result = net->test(request, &done, NULL)) == ncclSuccess) {
        NEED(!done);
        sched_yield();
    }
    return result;
}
