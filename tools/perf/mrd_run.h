/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd-udp and mrd-ibv: the tests over the library, by its public API only.
 *
 * run_mrd.c opens, exchanges and reports; mrd_bufs.c says where messages lie; mrd_meet.c makes
 * contact; mrd_post.c posts; mrd_wait.c waits; mrd_bw.c and mrd_lat.c are the tests.
 */
#ifndef MRD_PERF_MRD_RUN_H
#define MRD_PERF_MRD_RUN_H

#include <mrd/mrd.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/layout.h"
#include "tools/perf/run.h"
#include "tools/perf/verify.h"

enum {
    MRD_RUN_BATCH = 16,   /* work requests posted at once */
    MRD_RUN_POLL = 64,    /* completions polled at once */
    MRD_RUN_CREDITS = 64, /* receives for credits */
    MRD_RUN_CREDIT_BYTES = 8,
    MRD_RUN_QKEY = 0x6d7264, /* of all QPs: a stray sender of another test is refused */
};

struct mrd_run_qp {
    struct mrd_qp *qp;
    uint32_t remote_qpn;
    uint32_t since_signal;     /* messages posted after the last signaled one */
    uint32_t outstanding;      /* by what the signaled completions tell */
    struct mrd_recv_wr *recvs; /* one for each posted receive, wr_id: qp << 32 | index */
    struct mrd_sge *recv_sges;
    uint32_t num_recvs;
    struct mrd_recv_wr *repost_head, **repost_tail; /* taken, to be posted again */
    uint32_t num_repost;
};

/* For packets: by polling, or asleep. */
struct mrd_run_wait {
    uint64_t busy_ns;   /* when a packet or a completion came last */
    uint64_t looked_ns; /* when it was asked last whether others want this core */
    uint64_t waited_ns; /* for the core, until the last look */
    bool shared;        /* they do */
};

struct mrd_run {
    struct mrd_context *ctx;
    struct mrd_pd *pd;
    struct mrd_cq *cq; /* of sends and receives; told apart by the opcode */
    struct mrd_ah *ah;
    struct mrd_context_info info;
    struct perf_ibv_port port; /* of an RDMA device */
    char peer_address[MRD_ADDRESS_MAX];

    uint8_t *tx_buf, *rx_buf;
    size_t tx_bytes, rx_bytes;
    struct mrd_mr *tx_mr, *rx_mr;
    struct perf_layout tx, rx; /* messages sent from here, and received here */
    uint64_t remote_addr;
    uint32_t remote_rkey;

    struct mrd_run_qp *qps;
    uint32_t num_qps;
    bool with_imm;         /* each write ends with an immediate, so that the receiver sees it */
    bool takes_recvs;      /* messages consume receives at the receiver */
    uint32_t packet_bytes; /* payload a packet, the lesser of both ends */

    /* Templates of a batch: what changes from message to message is set when posting. */
    struct mrd_send_wr wrs[MRD_RUN_BATCH];
    struct mrd_sge sges[MRD_RUN_BATCH];

    int rx_bytes_index, retx_index; /* in mrd_query_counters(), -1: not there */
    struct mrd_counter *counters;
    int num_counters;

    struct perf_verifier verifier;
    uint64_t credit; /* the client: messages below were checked; the server: told so far */
    bool verifier_ready;
    struct mrd_run_wait wait;
};

/* mrd_bufs.c */
/* Allocate and register both buffers. 0 or -errno with run->error. */
int mrd_bufs_open(struct perf_run *run);
void mrd_bufs_close(struct perf_run *run);

/* mrd_post.c */
/* Receives that a QP of this end needs. */
uint32_t mrd_recvs_per_qp(const struct perf_run *run);
/* Post all receives for the first time. 0 or -errno with run->error. */
int mrd_post_recvs(struct perf_run *run);
/* The receive of this completion may be used again: collected, and posted in batches. */
int mrd_recycle(struct perf_run *run, const struct mrd_wc *wc, bool flush_now);
int mrd_recycle_flush(struct perf_run *run, struct mrd_run_qp *q);
/* Fill the templates. */
void mrd_post_prepare(struct perf_run *run);
/*
 * Post messages n .. n + count - 1 on QP `qp`; count up to MRD_RUN_BATCH. How many were posted (fewer when a queue
 * is full), or -errno with run->error.
 */
int mrd_post_batch(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count);
/* Tell the client how far messages are checked. 0, also if the queue is full now, or -errno. */
int mrd_post_credit(struct perf_run *run);
/* A failed completion: -EIO with run->error. */
int mrd_wc_failed(struct perf_run *run, const struct mrd_wc *wc);
/* A library call failed: -errno with run->error. */
int mrd_call_failed(struct perf_run *run, int rc, const char *what);

/* run_mrd.c */
/* The counter of payload received, or of packets retransmitted. */
uint64_t mrd_counter_value(struct mrd_run *m, int index);

/* mrd_meet.c: make the peers known to each other. 0 or -errno with run->error. */
int mrd_meet(struct perf_run *run);

/* mrd_wait.c */
/*
 * Nothing is to be done until a packet comes, unless `busy`: there was a completion. Goes on polling at once where the core
 * is ours alone. Where others want it, polling takes it from them, the other end of the transfer perhaps, until the
 * scheduler takes it from us for some milliseconds: there, sleeps when no packet came for a while. 0 or -errno with
 * run->error.
 */
int mrd_run_wait(struct perf_run *run, uint64_t now_ns, bool busy);

int mrd_bw_client(struct perf_run *run);
int mrd_bw_idle(struct perf_run *run);
int mrd_bw_server(struct perf_run *run);
int mrd_lat_client(struct perf_run *run);
int mrd_lat_server(struct perf_run *run);

#endif
