/* SPDX-License-Identifier: BSD-2-Clause */
/* The network plugin, called as NCCL calls it: a comm to the right, another one from the left. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/net/ring_wire.h"
#include "transport/adapters/nccl/nccl_net.h"

enum { REGIONS = 4, TAG = 7 };

/* A comm, and its requests in the order in which they were posted. */
struct way {
    void *comm;
    void *request[RING_OUTSTANDING];
    uint64_t posted, ended;
    void *mhandle[REGIONS];
};

struct plugin {
    const ncclNet_v11_t *net;
    void *context;
    struct way out, in;
    struct {
        uint8_t *data;
        size_t bytes;
    } region[REGIONS];
    unsigned num_regions;
};

static void check(ncclResult_t result, const char *what)
{
    if (result != ncclSuccess)
        ring_die("%s: result %d", what, (int)result);
}

static void write_log(int level, unsigned long flags, const char *file, int line,
                      const char *format, ...)
{
    va_list arguments;

    (void)level, (void)flags, (void)file, (void)line;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static void connect_neighbours(struct plugin *p, const struct ring_place *place)
{
    char self[NCCL_NET_HANDLE_MAXSIZE], right[NCCL_NET_HANDLE_MAXSIZE];
    void *listener, *device = NULL;

    check(p->net->listen(p->context, 0, self, &listener), "listen");
    ring_publish(place, self, sizeof(self));
    ring_look_up(place, (place->rank + 1) % place->ranks, right, sizeof(right));
    while (!p->out.comm || !p->in.comm) {
        if (!p->out.comm)
            check(p->net->connect(p->context, 0, right, &p->out.comm, &device), "connect");
        if (!p->in.comm)
            check(p->net->accept(listener, &p->in.comm, &device), "accept");
        ring_pause();
    }
    check(p->net->closeListen(listener), "closeListen");
}

static void *open_plugin(const struct ring_place *place)
{
    struct plugin *p = calloc(1, sizeof(*p));
    void *library = dlopen(place->via, RTLD_NOW);
    int devices = 0;

    if (!p || !library || !(p->net = dlsym(library, "ncclNetPlugin_v11")))
        ring_die("%s: %s", place->via, dlerror());
    check(p->net->init(&p->context, 0, &(ncclNetCommConfig_t){0}, write_log, NULL), "init");
    check(p->net->devices(&devices), "devices");
    if (!devices)
        ring_die("the plugin has no device");
    connect_neighbours(p, place);
    return p;
}

static void add_memory(void *wire, void *data, size_t bytes)
{
    struct plugin *p = wire;
    unsigned i = p->num_regions++;

    if (i == REGIONS)
        ring_die("too many regions of memory");
    p->region[i].data = data;
    p->region[i].bytes = bytes;
    check(p->net->regMr(p->out.comm, data, bytes, NCCL_PTR_HOST, &p->out.mhandle[i]), "regMr");
    check(p->net->regMr(p->in.comm, data, bytes, NCCL_PTR_HOST, &p->in.mhandle[i]), "regMr");
}

static unsigned region_of(const struct plugin *p, const void *data)
{
    for (unsigned i = 0; i < p->num_regions; i++)
        if ((const uint8_t *)data >= p->region[i].data &&
            (const uint8_t *)data < p->region[i].data + p->region[i].bytes)
            return i;
    ring_die("memory that was not added");
}

static bool is_full(const struct way *way)
{
    return way->posted - way->ended == RING_OUTSTANDING;
}

/* A request of NULL says: not now. */
static bool add_request(struct way *way, void *request)
{
    if (!request)
        return false;
    way->request[way->posted++ % RING_OUTSTANDING] = request;
    return true;
}

static bool send_plugin(void *wire, void *data, size_t bytes)
{
    struct plugin *p = wire;
    void *request = NULL;

    if (is_full(&p->out))
        return false;
    check(p->net->isend(p->out.comm, data, bytes, TAG, p->out.mhandle[region_of(p, data)], NULL,
                        &request),
          "isend");
    return add_request(&p->out, request);
}

static bool receive_plugin(void *wire, void *data, size_t bytes)
{
    struct plugin *p = wire;
    void *request = NULL, *mhandle = p->in.mhandle[region_of(p, data)];

    if (is_full(&p->in))
        return false;
    check(p->net->irecv(p->in.comm, 1, &data, &bytes, &(int){TAG}, &mhandle, NULL, &request),
          "irecv");
    return add_request(&p->in, request);
}

static unsigned test(struct plugin *p, struct way *way)
{
    unsigned n = 0;

    for (; way->ended < way->posted; way->ended++, n++) {
        int done = 0, size;

        check(p->net->test(way->request[way->ended % RING_OUTSTANDING], &done, &size), "test");
        if (!done)
            break;
    }
    return n;
}

static unsigned sent(void *wire)
{
    return test(wire, &((struct plugin *)wire)->out);
}

static unsigned received(void *wire)
{
    return test(wire, &((struct plugin *)wire)->in);
}

static void close_plugin(void *wire)
{
    struct plugin *p = wire;

    for (unsigned i = 0; i < p->num_regions; i++) {
        check(p->net->deregMr(p->out.comm, p->out.mhandle[i]), "deregMr");
        check(p->net->deregMr(p->in.comm, p->in.mhandle[i]), "deregMr");
    }
    check(p->net->closeSend(p->out.comm), "closeSend");
    check(p->net->closeRecv(p->in.comm), "closeRecv");
    check(p->net->finalize(p->context), "finalize");
    free(p);
}

const struct ring_wire ring_plugin = {
    .open = open_plugin,
    .add_memory = add_memory,
    .send = send_plugin,
    .receive = receive_plugin,
    .sent = sent,
    .received = received,
    .close = close_plugin,
};
