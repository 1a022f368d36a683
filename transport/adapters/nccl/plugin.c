/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "transport/adapters/nccl/log.h"
#include "transport/adapters/nccl/receiver.h"
#include "transport/adapters/nccl/sender.h"

const char plugin_name[] = "MRD";

enum { SPEED_UNKNOWN_MBPS = 10000, COUNTERS_MAX = 256 };

/* The lanes of a network device, opened when it is first used. */
struct device {
    struct settings_device is;
    struct lane *lane[SETTINGS_LANES_MAX];
    unsigned next_listener, next_sender; /* lanes are dealt in turn */
};

static struct {
    pthread_mutex_t lock;
    bool ready;
    bool forked; /* the lanes' threads are the parent's */
    unsigned users, comms;
    atomic_bool copy_all; /* any receive may be looked into before it ends: one user has no hints */
    struct settings settings;
    struct device device[SETTINGS_DEVICES_MAX];
    int num_devices;
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ----------------------------------------------------------------------------------- begin, end */

static void after_fork(void)
{
    plugin.forked = true;
}

/* Which receives may be looked into before their end? NCCL says so, but old ones, and if told not to. */
static bool must_copy_all(bool hints)
{
    const char *proto = getenv("NCCL_PROTO"), *hint = getenv("NCCL_NET_OPTIONAL_RECV_COMPLETION");

    if (proto && !strcasecmp(proto, "simple"))
        return false;
    return !hints || (hint && !strcmp(hint, "0"));
}

static ncclResult_t begin(void)
{
    char error[256];

    if (!settings_read(&plugin.settings, error, sizeof(error))) {
        log_warn("%s", error);
        return ncclInvalidUsage;
    }
    struct settings_device found[SETTINGS_DEVICES_MAX];
    plugin.num_devices = settings_devices(found, SETTINGS_DEVICES_MAX);
    for (int i = 0; i < plugin.num_devices; i++)
        plugin.device[i] = (struct device){.is = found[i]};
    if (!plugin.num_devices) {
        log_warn("no interface is up and has an address that NCCL_SOCKET_IFNAME allows");
        return ncclSystemError;
    }
    (void)pthread_atfork(NULL, NULL, after_fork);
    plugin.ready = true;
    return ncclSuccess;
}

ncclResult_t plugin_init(ncclDebugLogger_t log, bool hints)
{
    ncclResult_t result = ncclSuccess;

    if (plugin.forked) { /* maybe a thread of the parent's had the lock */
        log_begin(log);
        log_warn("NCCL was used before fork(): the child cannot use it");
        return ncclSystemError;
    }
    pthread_mutex_lock(&plugin.lock);
    log_begin(log);
    if (!plugin.ready)
        result = begin();
    if (result == ncclSuccess && must_copy_all(hints))
        atomic_store(&plugin.copy_all, true);
    if (result == ncclSuccess && !plugin.users++) {
        char names[SETTINGS_DEVICES_MAX * sizeof(plugin.device[0].is.name)] = "";

        for (int i = 0; i < plugin.num_devices; i++) {
            strcat(names, i ? " " : "");
            strcat(names, plugin.device[i].is.name);
        }
        log_info("libmrd %s over %s; %u contexts each; eager sends up to %u bytes", mrd_version(),
                 names, plugin.settings.lanes, plugin.settings.eager_bytes);
    }
    pthread_mutex_unlock(&plugin.lock);
    return result;
}

/* --------------------------------------------------------------------------------------- figures */

struct figures {
    uint64_t value[COUNTERS_MAX];
    struct mrd_counter counter[COUNTERS_MAX];
    int num;
};

static void add_figures(struct lane *lane, void *argument)
{
    struct figures *f = argument;

    f->num = mrd_query_counters(lane->context, f->counter, COUNTERS_MAX);
    f->num = f->num > COUNTERS_MAX ? COUNTERS_MAX : f->num;
    for (int i = 0; i < f->num; i++)
        f->value[i] += f->counter[i].value;
}

static uint64_t figure(const struct figures *f, const char *name)
{
    for (int i = 0; i < f->num; i++)
        if (!strcmp(f->counter[i].name, name))
            return f->value[i];
    return 0;
}

static void report(struct device *device)
{
    struct figures *f = calloc(1, sizeof(*f));
    struct mrd_context_info info = {0};

    if (!f || !device->lane[0]) {
        free(f);
        return;
    }
    for (unsigned i = 0; i < SETTINGS_LANES_MAX && device->lane[i]; i++)
        lane_call(device->lane[i], add_figures, f);
    (void)mrd_query_context(device->lane[0]->context, &info, sizeof(info));
    log_info(
        "%s: sent %llu bytes in %llu messages, %llu packets, %llu of them again, over %u paths "
        "to each peer; received %llu bytes",
        device->is.name, (unsigned long long)figure(f, "tx_bytes"),
        (unsigned long long)figure(f, "tx_messages"), (unsigned long long)figure(f, "tx_packets"),
        (unsigned long long)figure(f, "retx_packets"), info.paths,
        (unsigned long long)figure(f, "rx_bytes"));
    free(f);
}

static void close_lanes(void)
{
    for (int d = 0; d < plugin.num_devices; d++)
        for (unsigned i = 0; i < SETTINGS_LANES_MAX && plugin.device[d].lane[i]; i++) {
            lane_close(plugin.device[d].lane[i]);
            plugin.device[d].lane[i] = NULL;
        }
}

/* The last user's end ends all, unless comms are left: NCCL may have aborted. */
ncclResult_t plugin_finalize(void)
{
    if (plugin.forked)
        return ncclSuccess;
    pthread_mutex_lock(&plugin.lock);
    if (plugin.users && !--plugin.users) {
        for (int d = 0; d < plugin.num_devices; d++)
            report(&plugin.device[d]);
        if (!plugin.comms)
            close_lanes();
    }
    pthread_mutex_unlock(&plugin.lock);
    return ncclSuccess;
}

/* Tables before v11 have no finalize(). */
__attribute__((destructor)) static void at_exit(void)
{
    if (pthread_mutex_trylock(&plugin.lock))
        return;
    if (!plugin.forked && !plugin.comms)
        close_lanes();
    pthread_mutex_unlock(&plugin.lock);
}

/* --------------------------------------------------------------------------------------- devices */

ncclResult_t plugin_devices(int *ndev)
{
    *ndev = plugin.num_devices;
    return ncclSuccess;
}

ncclResult_t plugin_properties(int dev, ncclNetProperties_v11_t *props)
{
    if (dev < 0 || dev >= plugin.num_devices)
        return ncclInvalidArgument;
    struct settings_device *device = &plugin.device[dev].is;
    const struct settings *settings = &plugin.settings;
    int speed = settings->speed_mbps ? (int)settings->speed_mbps : device->speed_mbps;

    *props = (ncclNetProperties_v11_t){
        .name = device->name,
        .pciPath = device->pci[0] ? device->pci : NULL,
        .guid = (uint64_t)dev,
        .ptrSupport = NCCL_PTR_HOST,
        .speed = speed ? speed : SPEED_UNKNOWN_MBPS,
        .port = 1,
        .latency = 15,
        .maxComms = 65536,
        .maxRecvs = (int)settings->group_max,
        .vProps = {.ndevs = 1, .devs = {dev}},
        .maxP2pBytes = MRD_MESSAGE_BYTES_MAX,
        .maxCollBytes = MRD_MESSAGE_BYTES_MAX,
        .maxMultiRequestSize = 1,
    };
    return ncclSuccess;
}

/* The next lane in turn, counted as used. NULL: it is in the log why. */
static struct lane *use_lane(int dev, bool sends)
{
    char error[256];

    if (dev < 0 || dev >= plugin.num_devices || plugin.forked) {
        log_warn(plugin.forked ? "NCCL was used before fork(): the child cannot use it"
                               : "there is no such device");
        return NULL;
    }
    struct device *device = &plugin.device[dev];
    pthread_mutex_lock(&plugin.lock);
    unsigned n = sends ? device->next_sender++ : device->next_listener++;
    struct lane **lane = &device->lane[n % plugin.settings.lanes];
    for (unsigned i = 0; i <= n % plugin.settings.lanes; i++) /* those before it are there */
        if (!device->lane[i])
            device->lane[i] = lane_open(&device->is, &plugin.settings, error, sizeof(error));
    if (!*lane)
        log_warn("%s", error);
    plugin.comms += *lane != NULL;
    pthread_mutex_unlock(&plugin.lock);
    return *lane;
}

static void unuse_lane(void)
{
    pthread_mutex_lock(&plugin.lock);
    plugin.comms--;
    pthread_mutex_unlock(&plugin.lock);
}

/* ----------------------------------------------------------------------------------- connections */

ncclResult_t plugin_listen(int dev, void *handle, void **listen_comm)
{
    struct comm_handle told = {0};
    struct lane *lane = use_lane(dev, false);

    _Static_assert(sizeof(told) <= NCCL_NET_HANDLE_MAXSIZE, "handle");
    if (!lane)
        return ncclSystemError;
    *listen_comm = listener_open(lane, plugin.settings.eager_bytes, &told);
    if (!*listen_comm) {
        unuse_lane();
        return ncclSystemError;
    }
    memset(handle, 0, NCCL_NET_HANDLE_MAXSIZE);
    memcpy(handle, &told, sizeof(told));
    return ncclSuccess;
}

static void say_broken(struct comm *comm)
{
    if (atomic_load(&comm->broken) && !atomic_exchange(&comm->told, true))
        log_warn("%s: %s", comm->peer, comm->why);
}

ncclResult_t plugin_connect(int dev, void *handle, void **send_comm)
{
    struct comm_handle asked;

    *send_comm = NULL;
    if (plugin.forked)
        return ncclSystemError;
    memcpy(&asked, handle, sizeof(asked));
    if (asked.magic != COMM_HANDLE || asked.version != COMM_VERSION ||
        !memchr(asked.address, 0, sizeof(asked.address))) {
        log_warn("a handle is not of this plugin, or of another version");
        return ncclInvalidArgument;
    }
    struct sender *sender = (struct sender *)(uintptr_t)asked.connecting;
    if (!sender) {
        struct lane *lane = use_lane(dev, true);

        if (!lane)
            return ncclSystemError;
        sender = sender_connect(lane, &asked, plugin.settings.eager_bytes);
        if (!sender) {
            unuse_lane();
            return ncclSystemError;
        }
        asked.connecting = (uintptr_t)sender;
        memcpy(handle, &asked, sizeof(asked));
    }
    if (atomic_load(&sender->ready)) {
        *send_comm = sender;
    } else if (atomic_load(&sender->comm.broken)) {
        say_broken(&sender->comm);
        asked.connecting = 0;
        memcpy(handle, &asked, sizeof(asked));
        sender_close(sender);
        unuse_lane();
        return ncclRemoteError;
    }
    return ncclSuccess;
}

ncclResult_t plugin_accept(void *listen_comm, void **recv_comm, void **device_comm)
{
    bool failed;

    (void)device_comm;
    *recv_comm = NULL;
    if (plugin.forked)
        return ncclSystemError;
    *recv_comm = listener_accept(listen_comm, &failed);
    if (*recv_comm) {
        pthread_mutex_lock(&plugin.lock);
        plugin.comms++;
        pthread_mutex_unlock(&plugin.lock);
    }
    return failed ? ncclSystemError : ncclSuccess;
}

ncclResult_t plugin_close_send(void *send_comm)
{
    if (send_comm && !plugin.forked) {
        sender_close(send_comm);
        unuse_lane();
    }
    return ncclSuccess;
}

ncclResult_t plugin_close_receive(void *recv_comm)
{
    if (recv_comm && !plugin.forked) {
        receiver_close(recv_comm);
        unuse_lane();
    }
    return ncclSuccess;
}

ncclResult_t plugin_close_listen(void *listen_comm)
{
    if (listen_comm && !plugin.forked) {
        listener_close(listen_comm);
        unuse_lane();
    }
    return ncclSuccess;
}

/* ---------------------------------------------------------------------------------------- memory */

struct registration {
    void *data;
    size_t size;
    struct mrd_mr *mr;
};

static void register_memory(struct lane *lane, void *argument)
{
    struct registration *r = argument;

    r->mr = mrd_reg_mr(lane->pd, r->data, r->size,
                       MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | lane->on_demand);
    if (!r->mr)
        log_warn("registering %zu bytes at %p: %s", r->size, r->data, mrd_last_error());
}

struct deregistration {
    struct comm *comm;
    struct mrd_mr *mr;
};

static void deregister_memory(struct lane *lane, void *argument)
{
    struct deregistration *d = argument;

    (void)lane;
    if (!d->comm->sends)
        receiver_forget((struct receiver *)d->comm, d->mr->lkey);
    mrd_dereg_mr(d->mr);
}

ncclResult_t plugin_register(void *comm, void *data, size_t size, int type, void **mhandle)
{
    struct registration r = {.data = data, .size = size};

    *mhandle = NULL;
    if (plugin.forked)
        return ncclSystemError;
    if (type != NCCL_PTR_HOST) {
        log_warn("only memory of the host can be registered");
        return ncclInvalidUsage;
    }
    lane_call(((struct comm *)comm)->lane, register_memory, &r);
    *mhandle = r.mr;
    return r.mr ? ncclSuccess : ncclSystemError;
}

ncclResult_t plugin_deregister(void *comm, void *mhandle)
{
    struct deregistration d = {.comm = comm, .mr = mhandle};

    if (mhandle && !plugin.forked)
        lane_call(d.comm->lane, deregister_memory, &d);
    return ncclSuccess;
}

/* ------------------------------------------------------------------------------------------ data */

/* What cannot end well need not begin. */
static bool is_over(struct comm *comm)
{
    if (plugin.forked)
        return true;
    if (!atomic_load_explicit(&comm->broken, memory_order_acquire))
        return false;
    say_broken(comm);
    return true;
}

ncclResult_t plugin_send(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                         void **request)
{
    struct sender *sender = send_comm;

    *request = NULL;
    if (is_over(&sender->comm))
        return ncclRemoteError;
    if (size > MRD_MESSAGE_BYTES_MAX || (size && !mhandle)) {
        log_warn("a send of %zu bytes: at most %u, from registered memory", size,
                 (unsigned)MRD_MESSAGE_BYTES_MAX);
        return ncclInvalidArgument;
    }
    *request = sender_send(sender, data, size, tag, mhandle ? ((struct mrd_mr *)mhandle)->lkey : 0);
    return ncclSuccess;
}

ncclResult_t plugin_receive(void *recv_comm, int n, void **data, const size_t *sizes,
                            const int *tags, void **mhandles, void **request)
{
    struct receiver *receiver = recv_comm;
    struct comm_buffer buffer[SETTINGS_GROUP_MAX] = {{0}};
    bool hinted = *request == NCCL_NET_OPTIONAL_RECV_COMPLETION;

    *request = NULL;
    if (n < 1 || n > SETTINGS_GROUP_MAX)
        return ncclInvalidArgument;
    if (is_over(&receiver->comm))
        return ncclRemoteError;
    for (int i = 0; i < n; i++) {
        const struct mrd_mr *mr = mhandles ? mhandles[i] : NULL;

        buffer[i] = (struct comm_buffer){.data = data[i],
                                         .bytes = sizes[i],
                                         .lkey = mr ? mr->lkey : 0,
                                         .rkey = mr ? mr->rkey : 0,
                                         .tag = tags ? tags[i] : 0};
        if (sizes[i] > MRD_MESSAGE_BYTES_MAX || (sizes[i] && !mr)) {
            log_warn("a receive of %zu bytes: at most %u, into registered memory", sizes[i],
                     (unsigned)MRD_MESSAGE_BYTES_MAX);
            return ncclInvalidArgument;
        }
    }
    /* NCCL gives its hint for single receives only. */
    *request = receiver_post(receiver, (unsigned)n, buffer,
                             hinted || n > 1 || atomic_load(&plugin.copy_all));
    return ncclSuccess;
}

/* Memory of the host needs none. */
ncclResult_t plugin_flush(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
                          void **request)
{
    (void)recv_comm, (void)n, (void)data, (void)sizes, (void)mhandles;
    *request = NULL;
    return ncclSuccess;
}

ncclResult_t plugin_test(void *request, int *done, int *sizes)
{
    struct comm_request *r = request;
    bool broken = atomic_load(&r->comm->broken);
    int end = atomic_load_explicit(&r->end, memory_order_acquire);

    *done = 0;
    if (end == COMM_PENDING && !broken)
        return plugin.forked ? ncclSystemError : ncclSuccess;
    if (end != COMM_DONE) {
        say_broken(r->comm);
        return end == COMM_TOO_LONG ? ncclInvalidUsage
               : end == COMM_FAILED ? ncclSystemError
                                    : ncclRemoteError;
    }
    *done = 1;
    if (sizes)
        memcpy(sizes, r->sizes, r->n * sizeof(*sizes));
    r->used = false;
    return ncclSuccess;
}
