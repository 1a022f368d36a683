/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd-udp and mrd-ibv: the tests over the library, by its public API only.
 *
 * From the ground up: mrd_device.c opens the device; mrd_post.c posts and polls; mrd_wait.c waits
 * for packets and completions; mrd_connect.c makes first contact; state_mrd.c makes peers to
 * measure their memory; mrd.c opens, exchanges and reports.
 */
#ifndef MRD_PERF_MRD_H
#define MRD_PERF_MRD_H

#include <mrd/mrd.h>

#include "tools/perf/endpoint.h"
#include "tools/perf/ibv_device.h"
#include "tools/perf/transport.h"

enum { PERF_MRD_QKEY = 0x6d7264 }; /* of all QPs: a stray sender of another test is refused */

struct perf_mrd_recv {
    struct mrd_recv_wr wr; /* wr_id: qp << 32 | index */
    struct mrd_sge sge;
};

struct perf_mrd_qp {
    struct mrd_qp *qp;
    uint32_t remote_qpn;
    struct perf_mrd_recv *recvs; /* one for each receive, in a chain */
};

/* How packets are waited for: by polling, or asleep. */
struct perf_mrd_wait {
    uint64_t busy_ns;   /* when a packet or a completion came last */
    uint64_t looked_ns; /* when it was last asked whether others want this core */
    uint64_t waited_ns; /* for the core, until then */
    bool shared;        /* they do */
};

struct perf_mrd {
    struct mrd_context *ctx;
    struct mrd_pd *pd;
    struct mrd_cq *cq;                /* of sends and receives; told apart by the opcode */
    struct mrd_comp_channel *channel; /* -e */
    bool armed;                       /* the next completion raises an event */
    struct mrd_ah *ah;
    struct mrd_mr *tx_mr, *rx_mr;
    struct perf_mrd_qp qps[PERF_QPS_MAX + 1];
    struct mrd_context_info info;
    struct perf_ibv_port port; /* of an RDMA device */
    char peer_address[MRD_ADDRESS_MAX];
    uint32_t packet_bytes; /* payload a packet, the lesser of both ends */

    /* Templates of a batch: what changes from message to message is set when posting. */
    struct mrd_send_wr wrs[PERF_POST_LIST_MAX];
    struct mrd_sge sges[PERF_POST_LIST_MAX];

    int rx_bytes_place, retx_place; /* of two counters among all */
    struct perf_mrd_wait wait;
};

/*
 * Peers that do not answer: send one a message, signaled, that is all of `mr`; wait until `count`
 * of them have failed. 0, or -errno with a sentence. `idle` is called after each poll, if it is not
 * NULL.
 */
int perf_mrd_send_silent(struct mrd_qp *qp, struct mrd_mr *mr, struct mrd_ah *ah, char *error);
int perf_mrd_wait_failures(struct mrd_qp *qp, uint32_t count, void (*idle)(void *arg, bool busy),
                           void *arg, char *error);
/* Take all asynchronous events of a context, and do nothing about them. */
void perf_mrd_forget_events(struct mrd_context *ctx);
/* A library call failed: -errno with a sentence. */
int perf_mrd_fail(char *error, int rc, const char *what);
/* The same with run->error. */
int perf_mrd_call_failed(struct perf_run *run, int rc, const char *what);
/* A completion failed: -EIO with run->error. */
int perf_mrd_wc_failed(struct perf_run *run, const struct mrd_wc *wc);

/* Prepare the templates of sends, and the chains of receives. */
void perf_mrd_prepare_sends(struct perf_run *run);
int perf_mrd_open_recvs(struct perf_run *run, uint32_t qp);

/* Create the completion queue, with -e on a channel. */
int perf_mrd_open_cq(struct perf_run *run, uint64_t cqes);

/* Operations of the transports. */
int perf_mrd_post_send(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count);
int perf_mrd_post_recv(struct perf_run *run, uint32_t qp, uint32_t first, uint32_t count);
int perf_mrd_post_credit(struct perf_run *run, uint64_t credit);
int perf_mrd_poll_cq(struct perf_run *run, struct perf_wc *wcs, int max);
int perf_mrd_connect_qps(struct perf_run *run);
/*
 * Polls on where the core is ours alone. Where others want it, polling takes it from them, perhaps
 * from the other end of the transfer, until the scheduler takes it from us for milliseconds. There
 * it sleeps when no packet has come for a while. With -e it sleeps until there are completions.
 */
int perf_mrd_wait(struct perf_run *run, uint64_t now_ns, bool busy);

/*
 * Open the device for mrd-udp, or if `port` is not NULL that one of an RDMA device: -m, -x, -i and
 * --entropy are added to `attr` then. 0 and *ctx, or -errno with a sentence.
 */
int perf_mrd_open_device(const struct perf_options *options, const struct perf_params *params,
                         const struct perf_ibv_port *port, struct mrd_context_attr *attr,
                         struct mrd_context **ctx, char *error);

#endif
