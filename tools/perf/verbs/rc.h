/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rc: the tests over reliable connected queue pairs, which is what perftest measures by default.
 *
 * run_rc.c opens, exchanges and reports; rc_connect.c brings the QPs to work; rc_post.c posts; rc_bw.c and rc_lat.c
 * are the tests. A QP delivers in order, over one path; the same memory layout and credits are used as for mrd.
 */
#ifndef MRD_PERF_VERBS_RC_H
#define MRD_PERF_VERBS_RC_H

#include "tools/perf/layout.h"
#include "tools/perf/peer_state.h"
#include "tools/perf/verbs/ibv_common.h"
#include "tools/perf/verify.h"

enum {
    RC_BATCH = 16,   /* work requests posted at once */
    RC_POLL = 64,    /* completions polled at once */
    RC_CREDITS = 64, /* receives for credits, and twice as many as are on their way */
    RC_CREDIT_BYTES = 8,
    RC_SEND_DEPTH_MIN = 64, /* of latency tests, and for credits */
    RC_SILENT_S = 10, /* Soft-RoCE takes a retry count of 7 for endless: someone has to give up */
};

/* What a completion is of: the upper byte of wr_id; below are the QP and the index of the receive. */
enum rc_kind { RC_MESSAGE = 1, RC_FLUSH, RC_CREDIT, RC_RECV };
static inline uint64_t rc_wr_id(enum rc_kind kind, uint32_t qp, uint32_t index)
{
    return (uint64_t)kind << 56 | (uint64_t)qp << 32 | index;
}
static inline enum rc_kind rc_kind_of(uint64_t wr_id)
{
    return (enum rc_kind)(wr_id >> 56);
}
static inline uint32_t rc_qp_of(uint64_t wr_id)
{
    return (uint32_t)(wr_id >> 32) & 0xffffff;
}

/* What the ends of a connection tell each other. */
struct rc_end {
    uint32_t qpn, psn;
};

struct rc_qp {
    struct ibv_qp *qp;
    struct rc_end here, there;
    uint32_t since_signal; /* messages posted after the last signaled one */
    uint32_t outstanding;  /* by what the signaled completions tell */
    bool flushed;          /* all that was posted is acknowledged */
    struct ibv_recv_wr *recvs;
    struct ibv_sge *recv_sges;
    uint32_t num_recvs;
    struct ibv_recv_wr *repost_head, **repost_tail; /* taken, to be posted again */
    uint32_t num_repost;
};

struct rc_run {
    struct perf_ibv v;
    struct ibv_cq *cq; /* of sends and receives */
    struct ibv_mr *tx_mr, *rx_mr;
    uint8_t *tx_buf, *rx_buf;
    struct perf_layout tx, rx; /* messages sent from here, and received here */
    uint64_t remote_addr;
    uint32_t remote_rkey;

    struct rc_qp *qps;
    uint32_t num_qps;
    uint32_t inline_bytes; /* messages up to this size go inline */
    bool with_imm;         /* each write ends with an immediate, so that the receiver sees it */
    bool takes_recvs;      /* messages consume receives at the receiver */
    uint64_t acked;        /* the client: messages that lie at the server */
    uint64_t heard_ns;     /* the client: last completion */

    struct ibv_send_wr wrs[RC_BATCH];
    struct ibv_sge sges[RC_BATCH];

    struct perf_verifier verifier;
    bool verifier_ready;
    uint64_t credit;       /* the client: messages below were checked; the server: told so far */
    uint32_t credits_sent; /* ...on their way */
    uint64_t credit_slot;
};

/* rc_connect.c: 0 or -errno with a sentence. */
/* A QP in INIT, with at most `*inline_bytes`, which is lowered to what the device has. */
struct ibv_qp *rc_qp_create(struct perf_ibv *v, struct ibv_cq *cq, uint32_t send_depth,
                            uint32_t recv_depth, uint32_t *inline_bytes, char *error, size_t len);
/* To RTS, connected to QP `there` of `place`. */
int rc_qp_connect(struct perf_ibv *v, struct ibv_qp *qp, const struct rc_end *here,
                  const struct rc_end *there, const struct perf_ibv_place *place, uint32_t mtu,
                  char *error, size_t len);

/* rc_post.c: 0 or -errno with run->error. */
uint32_t rc_recvs_per_qp(const struct perf_run *run);
int rc_post_recvs(struct perf_run *run);
/* The receive of this completion may be used again: collected, and posted in batches. */
int rc_recycle(struct perf_run *run, uint64_t wr_id, bool flush_now);
int rc_recycle_flush(struct perf_run *run, struct rc_qp *q);
void rc_post_prepare(struct perf_run *run);
/* Messages n .. n + count - 1 on QP `qp`; count up to RC_BATCH. */
int rc_post_batch(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count);
/* A write of no byte: complete when all that was posted before is. */
int rc_post_flush(struct perf_run *run, uint32_t qp);
/* Tell the client how far messages are checked, if a credit may go out now. */
int rc_post_credit(struct perf_run *run);
/* A failed completion: -EIO with run->error. */
int rc_wc_failed(struct perf_run *run, const struct ibv_wc *wc);
/* Poll up to `max` completions, none of which has failed: how many, or -errno. */
int rc_poll(struct perf_run *run, int max, struct ibv_wc *wcs);
/* The client: 0, or -ETIMEDOUT if nothing was completed for RC_SILENT_S. */
int rc_check_silence(struct perf_run *run, uint64_t now_ns);

/* state_rc.c */
int perf_state_rc(struct perf_state *s);

int rc_bw_client(struct perf_run *run);
int rc_bw_server(struct perf_run *run);
int rc_lat_client(struct perf_run *run);
int rc_lat_server(struct perf_run *run);

#endif
