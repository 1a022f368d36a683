/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair of a model: both ends of a flow, and what a transport is to the code that all of them share.
 *
 * flows.c opens a queue pair, takes packets in and hands them to the transport's ops; nic.c asks can_send() and
 * take() when the flow's turn has come, and calls timeout(). The two ends know of each other only by packets. A PSN is
 * the packet's number in the flow, from 0.
 */
#ifndef MODELS_QP_H
#define MODELS_QP_H

#include "tools/sim/models/dcqcn.h"
#include "tools/sim/models/flows.h"
#include "transport/sim/sim_stack.h"

struct model_nic;
struct model_qp;

enum model_packet_kind { MODEL_DATA, MODEL_ACK, MODEL_NAK, MODEL_CNP, MODEL_KINDS };

/* data[] of a packet. */
struct model_header {
    uint32_t qp, generation; /* which flow, by the slot and how often it was used */
    uint32_t psn;            /* data: its own; ACK, NAK: the one expected next */
    uint32_t sack;           /* irn's NAK: the one that came out of order */
    uint8_t kind;            /* enum model_packet_kind */
    bool ack_request;
};

/* The sender's end. */
struct model_requester {
    uint32_t num_packets;
    uint32_t una;         /* first that is not acked */
    uint32_t next;        /* to be sent next, but for irn's repeated ones; rc goes back with it */
    uint32_t sent;        /* one past the last ever sent */
    uint32_t timeouts;    /* in a row */
    uint64_t rto_from_ns; /* when `una` was sent or became the first; NEVER: not in flight */
    uint64_t pace_ps;     /* DCQCN: not before */
    struct model_dcqcn dcqcn;

    /* irn's loss recovery. */
    bool recovering;
    uint32_t recovery_end; /* over when all below it are acked */
    uint32_t resend;       /* every one below was looked at */
    uint32_t sack_end;     /* below it what is not sacked is lost */
    uint32_t num_sacked;
    uint64_t *sacked; /* by PSN; inside the queue pair */
};

/* The receiver's end. */
struct model_responder {
    uint32_t expected;  /* PSN */
    uint32_t unacked;   /* rc: packets since the last ack */
    bool nak_sent;      /* rc: for this gap */
    uint64_t *received; /* irn: by PSN; inside the queue pair */
    uint64_t cnp_at_ns; /* no CNP before */
};

struct model_qp {
    struct model_flows *flows;
    struct model_nic *nic; /* of the sender */
    struct model_qp *next; /* of those that may send; of those that are free */
    uint32_t index, generation;
    uint32_t flow; /* the user's number */
    uint32_t src, dst;
    uint16_t path, ack_path; /* source ports, as path numbers */
    bool is_open, is_ready;  /* is_ready: among those that may send */
    uint64_t bytes;
    uint64_t timer_ns;    /* in the NIC's heap, not after what it stands for; NEVER: not there */
    uint32_t timer_place; /* in the heap */
    struct model_requester requester;
    struct model_responder responder;
    uint64_t bits[]; /* irn: sacked, received */
};

/* What a transport is. */
struct model_qp_ops {
    const char *name;
    bool has_bits; /* bitmaps at both ends */
    /* Bytes of headers from the UDP payload on: of a data packet, more of a flow's first; of the others. */
    uint32_t data_bytes, first_bytes, control_bytes[MODEL_KINDS];

    /* The window allows a packet that is to be sent. */
    bool (*can_send)(struct model_qp *qp);
    /* Take that packet, which can_send() has just found. */
    uint32_t (*take)(struct model_qp *qp);
    /* At the receiver: a data packet. */
    void (*data)(struct model_qp *qp, const struct model_header *header);
    /* At the sender: an ACK or NAK; `una` has moved on from una_before already. */
    void (*response)(struct model_qp *qp, const struct model_header *header, uint32_t una_before);
    /* At the sender: `una` was in flight for rto_ns(). */
    void (*timeout)(struct model_qp *qp);
    uint64_t (*rto_ns)(const struct model_qp *qp);
};

/* All flows of a model. */
struct model_flows {
    struct mrd_sim *sim; /* borrowed */
    uint32_t num_hosts;
    struct model_flows_config config;
    struct mrd_sim_tune tune;
    const struct model_qp_ops *ops;
    struct model_nic *nics; /* of each host; owned */
    struct model_qp **qps;  /* by index; owned, and so are they */
    uint32_t num_qps, cap_qps;
    struct model_qp *free;

    /* What follows from the constants and the fabric. */
    uint32_t window_packets;
    uint32_t range_packets, range_mask; /* irn: from `una` on; bits of a bitmap - 1 */
    uint32_t ack_packets, retries, rto_low_packets;
    uint32_t wire_data, wire_first, wire_control[MODEL_KINDS]; /* bytes beyond the payload */
    uint64_t base_rtt_ns, rto_ns, rto_low_ns;
    struct model_dcqcn_limits dcqcn;
    struct model_flows_stats stats;
};

extern const struct model_qp_ops model_rc, model_irn;

/* configure.c: flows->sim is set, all else is zero. 0, or -EINVAL with mrd_error_set(). */
int model_flows_configure(struct model_flows *flows, const struct model_flows_config *config);
/* At the sender: the packet goes out. When its link will have sent it. */
uint64_t model_qp_send(struct model_qp *qp, uint32_t psn);
/* At the receiver: answer. */
void model_qp_respond(struct model_qp *qp, enum model_packet_kind kind, uint32_t sack);
/* At the receiver: so many packets more are there in order. */
void model_qp_deliver(struct model_qp *qp, uint32_t packets);
/* The slot of a flow that is over may be used again. */
void model_qp_free(struct model_qp *qp);

/* Packets sent, not known to have come. */
static inline uint32_t model_qp_inflight(const struct model_qp *qp)
{
    return qp->requester.next - qp->requester.una - qp->requester.num_sacked;
}

#endif
