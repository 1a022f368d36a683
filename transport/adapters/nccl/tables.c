/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables, and what their versions differ in. */
#include <string.h>

#include "transport/adapters/nccl/plugin.h"
#include "transport/adapters/nccl/settings.h"

#define EXPORT __attribute__((visibility("default")))

/* -------------------------------------------------------------------------------------------- v8 */

static ncclResult_t init_v8(ncclDebugLogger_t log)
{
    return plugin_init(log, false);
}

static ncclResult_t properties_v8(int dev, ncclNetProperties_v8_t *props)
{
    ncclNetProperties_v11_t all;
    ncclResult_t result = plugin_properties(dev, &all);

    if (result == ncclSuccess)
        *props = (ncclNetProperties_v8_t){.name = all.name,
                                          .pciPath = all.pciPath,
                                          .guid = all.guid,
                                          .ptrSupport = all.ptrSupport,
                                          .speed = all.speed,
                                          .port = all.port,
                                          .latency = all.latency,
                                          .maxComms = all.maxComms,
                                          .maxRecvs = all.maxRecvs};
    return result;
}

static ncclResult_t connect_v8(int dev, void *handle, void **send_comm, void **device_comm)
{
    (void)device_comm;
    return plugin_connect(dev, handle, send_comm);
}

static ncclResult_t send_v8(void *send_comm, void *data, int size, int tag, void *mhandle,
                            void **request)
{
    return plugin_send(send_comm, data, (size_t)size, tag, mhandle, request);
}

static ncclResult_t receive_v8(void *recv_comm, int n, void **data, int *sizes, int *tags,
                               void **mhandles, void **request)
{
    size_t all[SETTINGS_GROUP_MAX] = {0};

    for (int i = 0; i < n && i < SETTINGS_GROUP_MAX; i++)
        all[i] = (size_t)sizes[i];
    *request = NULL; /* says nothing yet */
    return plugin_receive(recv_comm, n, data, all, tags, mhandles, request);
}

EXPORT const ncclNet_v8_t ncclNetPlugin_v8 = {
    .name = plugin_name,
    .init = init_v8,
    .devices = plugin_devices,
    .getProperties = properties_v8,
    .listen = plugin_listen,
    .connect = connect_v8,
    .accept = plugin_accept,
    .regMr = plugin_register,
    .deregMr = plugin_deregister,
    .isend = send_v8,
    .irecv = receive_v8,
    .iflush = plugin_flush,
    .test = plugin_test,
    .closeSend = plugin_close_send,
    .closeRecv = plugin_close_receive,
    .closeListen = plugin_close_listen,
};

/* ------------------------------------------------------------------------------------------- v10 */

static ncclResult_t init_v10(ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    (void)profiler;
    return plugin_init(log, true);
}

static ncclResult_t properties_v10(int dev, ncclNetProperties_v10_t *props)
{
    ncclNetProperties_v11_t all;
    ncclResult_t result = plugin_properties(dev, &all);

    _Static_assert(offsetof(ncclNetProperties_v11_t, maxMultiRequestSize) == sizeof(*props),
                   "v11 is v10 and one field");
    if (result == ncclSuccess)
        memcpy(props, &all, sizeof(*props));
    return result;
}

static ncclResult_t connect_v10(int dev, ncclNetCommConfig_t *config, void *handle,
                                void **send_comm, void **device_comm)
{
    (void)config, (void)device_comm;
    return plugin_connect(dev, handle, send_comm);
}

static ncclResult_t send_v10(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                             void *profiler, void **request)
{
    (void)profiler;
    return plugin_send(send_comm, data, size, tag, mhandle, request);
}

static ncclResult_t receive_v10(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
                                void **mhandles, void **profilers, void **request)
{
    (void)profilers;
    return plugin_receive(recv_comm, n, data, sizes, tags, mhandles, request);
}

EXPORT const ncclNet_v10_t ncclNetPlugin_v10 = {
    .name = plugin_name,
    .init = init_v10,
    .devices = plugin_devices,
    .getProperties = properties_v10,
    .listen = plugin_listen,
    .connect = connect_v10,
    .accept = plugin_accept,
    .regMr = plugin_register,
    .deregMr = plugin_deregister,
    .isend = send_v10,
    .irecv = receive_v10,
    .iflush = plugin_flush,
    .test = plugin_test,
    .closeSend = plugin_close_send,
    .closeRecv = plugin_close_receive,
    .closeListen = plugin_close_listen,
};

/* ------------------------------------------------------------------------------------------- v11 */

static ncclResult_t init_v11(void **context, uint64_t comm_id, ncclNetCommConfig_t *config,
                             ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    static char any; /* a context that is not NULL; all have one plugin */

    (void)comm_id, (void)config, (void)profiler;
    *context = &any;
    return plugin_init(log, true);
}

static ncclResult_t listen_v11(void *context, int dev, void *handle, void **listen_comm)
{
    (void)context;
    return plugin_listen(dev, handle, listen_comm);
}

static ncclResult_t connect_v11(void *context, int dev, void *handle, void **send_comm,
                                void **device_comm)
{
    (void)context, (void)device_comm;
    return plugin_connect(dev, handle, send_comm);
}

static ncclResult_t finalize_v11(void *context)
{
    (void)context;
    return plugin_finalize();
}

EXPORT const ncclNet_v11_t ncclNetPlugin_v11 = {
    .name = plugin_name,
    .init = init_v11,
    .devices = plugin_devices,
    .getProperties = plugin_properties,
    .listen = listen_v11,
    .connect = connect_v11,
    .accept = plugin_accept,
    .regMr = plugin_register,
    .deregMr = plugin_deregister,
    .isend = send_v10,
    .irecv = receive_v10,
    .iflush = plugin_flush,
    .test = plugin_test,
    .closeSend = plugin_close_send,
    .closeRecv = plugin_close_receive,
    .closeListen = plugin_close_listen,
    .finalize = finalize_v11,
};
