/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw-ud: what unreliable datagram queue pairs give with the same sizes and no protocol at all. It is the ceiling
 * that mrd-ibv, which sends such datagrams, can be held against. UD has no writes: all tests send.
 *
 * run_raw_ud.c opens and exchanges; ud_post.c sends and receives; ud_tests.c has the tests.
 */
#ifndef MRD_PERF_VERBS_RAW_UD_H
#define MRD_PERF_VERBS_RAW_UD_H

#include "tools/perf/verbs/ibv_common.h"

enum {
    UD_BATCH = 16, /* datagrams posted at once */
    UD_POLL = 64,  /* completions polled at once */
    UD_SLOTS = 16, /* places where datagrams land, hot and never looked at */
    UD_QKEY = 0x6d7264,
    UD_GRH = 40,    /* bytes in front of each received datagram */
    UD_DEPTH = 512, /* datagrams outstanding at most, each way and QP, unless -t or -r says more */
};

struct ud_qp {
    struct ibv_qp *qp;
    uint32_t remote_qpn;
    uint32_t outstanding, since_signal; /* datagrams */
    struct ibv_recv_wr *recvs;
    struct ibv_recv_wr *repost_head, **repost_tail; /* taken, to be posted again */
    uint32_t num_repost;
};

struct raw_ud {
    struct perf_ibv v;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_ah *ah;
    struct ibv_mr *tx_mr, *rx_mr;
    struct ibv_sge slots[UD_SLOTS];
    struct ud_qp *qps;
    uint32_t num_qps;
    uint32_t send_depth, recv_depth, signal_every;
    uint32_t inline_bytes;
    uint64_t packets, bytes_sent;
};

/* ud_post.c: 0 or a count, or -errno with run->error. */
int ud_post_recvs(struct perf_run *run);
/*
 * Send `len` bytes in datagrams of `segment`, at most UD_BATCH, each with `tag`, as soon as there is room for them.
 * Lost counts as sent.
 */
int ud_send(struct perf_run *run, uint32_t qp, size_t len, size_t segment, uint32_t tag);
/* Take up to `max` datagrams: how many; *bytes grows by what came, *tag is the last one's. */
int ud_receive(struct perf_run *run, int max, uint64_t *bytes, uint32_t *tag);

/* ud_tests.c */
int ud_bw_client(struct perf_run *run);
int ud_bw_server(struct perf_run *run);
int ud_lat_client(struct perf_run *run);
int ud_lat_server(struct perf_run *run);

#endif
