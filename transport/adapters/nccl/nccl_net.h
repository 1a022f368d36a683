/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables by which NCCL calls a network plugin, of the versions that this one serves. NCCL looks
 * for the symbols ncclNetPlugin_vN, from its newest version down: 2.20 to 2.25 take v8 of these,
 * 2.26 and 2.27 v10, 2.28 to 2.30 v11. Names and layouts are NCCL's; RCCL's are the same.
 */
#ifndef MRD_NCCL_NET_H
#define MRD_NCCL_NET_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    ncclSuccess = 0,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6, /* the peer is gone: NCCL aborts the communicator */
} ncclResult_t;

enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3 };
enum { NCCL_INIT = 1, NCCL_NET = 16 }; /* bits of NCCL_DEBUG_SUBSYS */

enum {
    NCCL_NET_HANDLE_MAXSIZE = 128,
    NCCL_NET_MAX_REQUESTS = 32, /* outstanding, of a comm; with groups so many groups */
    NCCL_PTR_HOST = 1,
};

/* What *request of irecv may come as: NCCL looks into the buffer, and need not hear of the end. */
#define NCCL_NET_OPTIONAL_RECV_COMPLETION ((void *)1)

typedef void (*ncclDebugLogger_t)(int level, unsigned long flags, const char *file, int line,
                                  const char *format, ...);
typedef ncclResult_t (*ncclProfilerCallback_t)(void **handle, int type, void *parent, int64_t id,
                                               void *data);

typedef struct {
    int ndevs;
    int devs[4];
} ncclNetVDeviceProps_t;

typedef struct {
    int trafficClass;
} ncclNetCommConfig_t;

typedef struct {
    char *name;
    char *pciPath;
    uint64_t guid;
    int ptrSupport;
    int regIsGlobal;
    int speed; /* Mbit/s */
    int port;
    float latency; /* us */
    int maxComms;
    int maxRecvs;
    int netDeviceType;
    int netDeviceVersion;
} ncclNetProperties_v8_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(ncclDebugLogger_t log);
    ncclResult_t (*devices)(int *ndev);
    ncclResult_t (*getProperties)(int dev, ncclNetProperties_v8_t *props);
    ncclResult_t (*listen)(int dev, void *handle, void **listen_comm);
    ncclResult_t (*connect)(int dev, void *handle, void **send_comm, void **device_comm);
    ncclResult_t (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
    ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
    ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
                                int fd, void **mhandle);
    ncclResult_t (*deregMr)(void *comm, void *mhandle);
    ncclResult_t (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
                          void **request);
    ncclResult_t (*irecv)(void *recv_comm, int n, void **data, int *sizes, int *tags,
                          void **mhandles, void **request);
    ncclResult_t (*iflush)(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
                           void **request);
    ncclResult_t (*test)(void *request, int *done, int *sizes);
    ncclResult_t (*closeSend)(void *send_comm);
    ncclResult_t (*closeRecv)(void *recv_comm);
    ncclResult_t (*closeListen)(void *listen_comm);
    ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
    ncclResult_t (*irecvConsumed)(void *recv_comm, int n, void *request);
} ncclNet_v8_t;

typedef struct {
    char *name;
    char *pciPath;
    uint64_t guid;
    int ptrSupport;
    int regIsGlobal;
    int forceFlush;
    int speed;
    int port;
    float latency;
    int maxComms;
    int maxRecvs;
    int netDeviceType;
    int netDeviceVersion;
    ncclNetVDeviceProps_t vProps;
    size_t maxP2pBytes;
    size_t maxCollBytes;
} ncclNetProperties_v10_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
    ncclResult_t (*devices)(int *ndev);
    ncclResult_t (*getProperties)(int dev, ncclNetProperties_v10_t *props);
    ncclResult_t (*listen)(int dev, void *handle, void **listen_comm);
    ncclResult_t (*connect)(int dev, ncclNetCommConfig_t *config, void *handle, void **send_comm,
                            void **device_comm);
    ncclResult_t (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
    ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
    ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
                                int fd, void **mhandle);
    ncclResult_t (*deregMr)(void *comm, void *mhandle);
    ncclResult_t (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                          void *profiler, void **request);
    ncclResult_t (*irecv)(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
                          void **mhandles, void **profilers, void **request);
    ncclResult_t (*iflush)(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
                           void **request);
    ncclResult_t (*test)(void *request, int *done, int *sizes);
    ncclResult_t (*closeSend)(void *send_comm);
    ncclResult_t (*closeRecv)(void *recv_comm);
    ncclResult_t (*closeListen)(void *listen_comm);
    ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
    ncclResult_t (*irecvConsumed)(void *recv_comm, int n, void *request);
    ncclResult_t (*makeVDevice)(int *dev, ncclNetVDeviceProps_t *props);
} ncclNet_v10_t;

typedef struct {
    char *name;
    char *pciPath;
    uint64_t guid;
    int ptrSupport;
    int regIsGlobal;
    int forceFlush;
    int speed;
    int port;
    float latency;
    int maxComms;
    int maxRecvs;
    int netDeviceType;
    int netDeviceVersion;
    ncclNetVDeviceProps_t vProps;
    size_t maxP2pBytes;
    size_t maxCollBytes;
    int maxMultiRequestSize;
} ncclNetProperties_v11_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t comm_id, ncclNetCommConfig_t *config,
                         ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
    ncclResult_t (*devices)(int *ndev);
    ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t *props);
    ncclResult_t (*listen)(void *context, int dev, void *handle, void **listen_comm);
    ncclResult_t (*connect)(void *context, int dev, void *handle, void **send_comm,
                            void **device_comm);
    ncclResult_t (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
    ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
    ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
                                int fd, void **mhandle);
    ncclResult_t (*deregMr)(void *comm, void *mhandle);
    ncclResult_t (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                          void *profiler, void **request);
    ncclResult_t (*irecv)(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
                          void **mhandles, void **profilers, void **request);
    ncclResult_t (*iflush)(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
                           void **request);
    ncclResult_t (*test)(void *request, int *done, int *sizes);
    ncclResult_t (*closeSend)(void *send_comm);
    ncclResult_t (*closeRecv)(void *recv_comm);
    ncclResult_t (*closeListen)(void *listen_comm);
    ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
    ncclResult_t (*irecvConsumed)(void *recv_comm, int n, void *request);
    ncclResult_t (*makeVDevice)(int *dev, ncclNetVDeviceProps_t *props);
    ncclResult_t (*finalize)(void *context);
    ncclResult_t (*setNetAttr)(void *context, void *attributes);
} ncclNet_v11_t;

#endif
