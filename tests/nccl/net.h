/* SPDX-License-Identifier: BSD-2-Clause */
/* The plugin as NCCL has it: loaded by dlopen(), called through the table of one version. */
#ifndef MRD_TESTS_NCCL_NET_H
#define MRD_TESTS_NCCL_NET_H

#include <stdbool.h>

#include "tests/nccl/ranks.h"
#include "transport/adapters/nccl/comm.h"
#include "transport/adapters/nccl/nccl_net.h"

enum { NET_GROUP_MAX = 8, NET_NOBODY = -1 };

struct net {
    int version;
    const ncclNet_v8_t *v8; /* of these, the one of that version */
    const ncclNet_v10_t *v10;
    const ncclNet_v11_t *v11;
    void *context;
    /* Alike in all versions. */
    ncclResult_t (*devices)(int *ndev);
    ncclResult_t (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
    ncclResult_t (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    ncclResult_t (*dereg_mr)(void *comm, void *mhandle);
    ncclResult_t (*test)(void *request, int *done, int *sizes);
    ncclResult_t (*close_send)(void *send_comm);
    ncclResult_t (*close_receive)(void *recv_comm);
    ncclResult_t (*close_listen)(void *listen_comm);
};

/* What NCCL carries from rank to rank. */
union net_handle {
    unsigned char bytes[NCCL_NET_HANDLE_MAXSIZE];
    struct comm_handle is;
};

void net_load(struct net *net, const char *path, int version);
ncclResult_t net_init(struct net *net);
ncclResult_t net_finalize(struct net *net); /* nothing before v11 */
ncclResult_t net_properties(struct net *net, int dev, ncclNetProperties_v11_t *props);
ncclResult_t net_listen(struct net *net, union net_handle *handle, void **listen_comm);
ncclResult_t net_connect(struct net *net, union net_handle *handle, void **send_comm);
ncclResult_t net_send(struct net *net, void *comm, void *data, size_t size, int tag, void *mhandle,
                      void **request);
/* *request comes in as NCCL's hint, or NULL. v8 knows none, and gets garbage. */
ncclResult_t net_receive(struct net *net, void *comm, int n, void **data, const size_t *sizes,
                         const int *tags, void **mhandles, void **request);

/* What follows fails the rank if anything but success comes back. */

/* The plugin under test, over the loopback unless NCCL_SOCKET_IFNAME is set. */
void net_start(struct net *net, int version);
/* A comm each way. */
struct net_link {
    void *send, *receive;
    char peer[96]; /* address of whom it sends to */
};
/* Sends to one rank and receives from one, which link at the same time; or NET_NOBODY. */
struct net_link net_link_ways(struct net *net, int to, int from);
void net_link(struct net *net, int peer, struct net_link *links, unsigned n);
void net_unlink(struct net *net, const struct net_link *links, unsigned n);
void *net_register(struct net *net, void *comm, void *data, size_t size);
/* Posts a receive of one buffer; `hinted`: it is looked into. NULL: not now. */
void *net_receive_one(struct net *net, void *comm, void *data, size_t size, int tag, void *mhandle,
                      bool hinted);
void *net_send_one(struct net *net, void *comm, void *data, size_t size, int tag, void *mhandle);
bool net_is_done(struct net *net, void *request, int *sizes);
void net_wait(struct net *net, void *request, int *sizes);
/* Tests until that ends in something but success, which it returns. */
ncclResult_t net_wait_end(struct net *net, void *request);

/* Has the plugin said this, or a line with it? */
bool net_said(const char *sentence);
void net_forget_said(void);

#endif
