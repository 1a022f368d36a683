/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tables of all versions have in common. */
#ifndef MRD_NCCL_PLUGIN_H
#define MRD_NCCL_PLUGIN_H

#include <stdbool.h>

#include "transport/adapters/nccl/nccl_net.h"

extern const char plugin_name[];

/* `hints`: NCCL says which receives it looks into before their end. */
ncclResult_t plugin_init(ncclDebugLogger_t log, bool hints);
ncclResult_t plugin_finalize(void);
ncclResult_t plugin_devices(int *ndev);
ncclResult_t plugin_properties(int dev, ncclNetProperties_v11_t *props);
ncclResult_t plugin_listen(int dev, void *handle, void **listen_comm);
ncclResult_t plugin_connect(int dev, void *handle, void **send_comm);
ncclResult_t plugin_accept(void *listen_comm, void **recv_comm, void **device_comm);
ncclResult_t plugin_register(void *comm, void *data, size_t size, int type, void **mhandle);
ncclResult_t plugin_deregister(void *comm, void *mhandle);
ncclResult_t plugin_send(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                         void **request);
ncclResult_t plugin_receive(void *recv_comm, int n, void **data, const size_t *sizes,
                            const int *tags, void **mhandles, void **request);
ncclResult_t plugin_flush(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
                          void **request);
ncclResult_t plugin_test(void *request, int *done, int *sizes);
ncclResult_t plugin_close_send(void *send_comm);
ncclResult_t plugin_close_receive(void *recv_comm);
ncclResult_t plugin_close_listen(void *listen_comm);

#endif
