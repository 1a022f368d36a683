/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rc and raw-ud: the tests over queue pairs of an RDMA device.
 *
 * rc.c: reliable connections, which perftest measures by default. They deliver in order, over one
 * path. raw_ud.c: what unreliable datagrams give with the same sizes and no protocol at all, which
 * is the ceiling for mrd-ibv. verbs.c has what rc and raw-ud share.
 */
#ifndef MRD_PERF_VERBS_VERBS_H
#define MRD_PERF_VERBS_VERBS_H

#include <infiniband/verbs.h>
#include <json-c/json.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/transport.h"

/*
 * ibv_common.c: an RDMA device, opened at one port with one GID, and sentences for what may be
 * wrong. perf_ibv_open(); perf_ibv_tell() and perf_ibv_hear() exchange where the ends are;
 * perf_ibv_ah() then addresses the other one. perf_ibv_close() last, after what was created on it.
 * All return 0 or -errno with a sentence in `error`, unless it says otherwise.
 */
/* Where an end is. */
struct perf_ibv_place {
    uint16_t lid; /* 0 on Ethernet */
    union ibv_gid gid;
};

struct perf_ibv {
    struct perf_ibv_port port;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr limits;
    uint32_t gid_index;
    bool global; /* packets carry GIDs: always so on Ethernet */
    struct perf_ibv_place here, there;
    uint32_t mtu; /* of the path; from perf_ibv_hear() on */
};

int perf_ibv_open(struct perf_ibv *v, const struct perf_options *options, uint32_t mtu,
                  char *error);
void perf_ibv_close(struct perf_ibv *v);

void perf_ibv_tell(const struct perf_ibv *v, struct json_object *info);
int perf_ibv_hear(struct perf_run *run, struct perf_ibv *v, struct json_object *info);
/* How to address `place` from here. */
struct ibv_ah_attr perf_ibv_ah(const struct perf_ibv *v, const struct perf_ibv_place *place);
/* "::ffff:10.0.0.1", or the LID of an InfiniBand port */
void perf_ibv_format(const struct perf_ibv_place *place, char *text, size_t len);
enum ibv_mtu perf_ibv_mtu_value(uint32_t bytes);

/*
 * Write the sentence for a verb that failed with `rc` (-errno), and return that. ENOMEM and EPERM
 * often mean that too little memory may be locked: then the limit is told.
 */
int perf_ibv_failed(int rc, const char *what, char *error);
/*
 * Returns the entry of a port's GID table that packets come from: the `wanted` one, if it is not
 * -1, else a RoCEv2 one of an IPv4 address, else any RoCEv2 one, else on InfiniBand the first. NULL
 * with a sentence.
 */
const struct ibv_gid_entry *perf_ibv_gid_pick(const struct ibv_gid_entry *entries, size_t count,
                                              const struct perf_ibv_port *port, bool ethernet,
                                              int wanted, char *error);

enum { VERBS_QKEY = 0x6d7264 };

/* What a completion is of: the upper byte of wr_id. Below are the QP and the receive's index. */
enum verbs_kind { VERBS_MESSAGE = 1, VERBS_FLUSH, VERBS_CREDIT, VERBS_RECV };
static inline uint64_t verbs_wr_id(enum verbs_kind kind, uint32_t qp, uint32_t index)
{
    return (uint64_t)kind << 56 | (uint64_t)qp << 32 | index;
}
static inline enum verbs_kind verbs_kind_of(uint64_t wr_id)
{
    return (enum verbs_kind)(wr_id >> 56);
}
static inline uint32_t verbs_qp_of(uint64_t wr_id)
{
    return (uint32_t)(wr_id >> 32) & 0xffffff;
}

/* What the ends of a connection tell each other. */
struct verbs_end {
    uint32_t qpn, psn;
};

struct verbs_recv {
    struct ibv_recv_wr wr;
    struct ibv_sge sge;
};

struct verbs_qp {
    struct ibv_qp *qp;
    struct verbs_end here, there;
    struct verbs_recv *recvs;         /* one for each receive, in a chain */
    uint32_t datagrams, since_signal; /* raw-ud: outstanding; posted after a signaled one */
};

struct verbs_run {
    struct perf_ibv v;
    struct ibv_cq *cq, *send_cq;      /* rc has one for both, raw-ud two */
    struct ibv_comp_channel *channel; /* of rc, -e */
    bool armed;                       /* the next completion raises an event */
    struct ibv_mr *tx_mr, *rx_mr;
    struct ibv_ah *ah; /* raw-ud */
    struct verbs_qp qps[PERF_QPS_MAX + 1];
    uint32_t send_depth;
    uint32_t inline_bytes; /* messages up to this size go inline */
    struct ibv_send_wr wrs[PERF_POST_LIST_MAX];
    struct ibv_sge sges[PERF_POST_LIST_MAX];

    /* rc */
    uint32_t credits_sent; /* on their way */
    uint64_t heard_ns;     /* the client: last completion */

    /* raw-ud */
    uint32_t signal_every; /* datagrams */
    uint64_t packets, bytes_sent;
};

/* Queue pairs: 0 or -errno with a sentence. */
/* The attributes are adapted: less inline data if the device has less. `qp` is in INIT. */
struct ibv_qp *verbs_qp_create(struct perf_ibv *v, struct ibv_qp_init_attr *attr, char *error);
/* From INIT to RTS: a datagram queue pair... */
int verbs_qp_start(struct ibv_qp *qp, char *error);
/*
 * ...or one that is connected to QP `there` of `place`. `outs`: reads and atomics that either end
 * may have outstanding; a device keeps memory for each.
 */
int verbs_qp_connect(struct perf_ibv *v, struct ibv_qp *qp, const struct verbs_end *here,
                     const struct verbs_end *there, const struct perf_ibv_place *place,
                     uint32_t mtu, uint8_t outs, char *error);

/* 0 or a count, or -errno with run->error. */
/* A verb failed with the positive errno that it returned. */
int verbs_failed(struct perf_run *run, int error, const char *what);
/* Register the endpoint's memory. */
int verbs_reg_mr(struct perf_run *run, int rx_access);
/* Create m->cq, with -e on a channel. */
int verbs_open_cq(struct perf_run *run, uint64_t cqes);
/* -e: a poll found nothing. Ask for an event, or if that is done sleep until one comes. */
int verbs_sleep(struct perf_run *run);
/* Create the queue pairs and their receives on m->cq and m->send_cq. */
int verbs_open_qps(struct perf_run *run, enum ibv_qp_type type);
/* Tell the numbers of the queue pairs; hear those of the other end. */
void verbs_get_info(struct perf_run *run, struct json_object *info);
int verbs_take_qps(struct perf_run *run, struct json_object *info);
int verbs_post_recv(struct perf_run *run, uint32_t qp, uint32_t first, uint32_t count);
/* Poll `cq`: none of the completions has failed. */
int verbs_poll(struct perf_run *run, struct ibv_cq *cq, int max, struct ibv_wc *wcs);
/* Keys that rc and raw-ud have in common. */
void verbs_stats(const struct perf_run *run, struct json_object *report);
void verbs_close(struct perf_run *run);

#endif
