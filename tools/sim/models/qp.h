/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair of a model, which holds both ends of a flow, the ops that make a transport, and the
 * state of adapters and of a model.
 *
 * flows.c opens a queue pair and hands received packets to take_data() and take_response(). nic.c
 * calls find_packet() and take_packet() when the flow's turn has come, and time_out(). The two ends
 * know of each other only by packets. A PSN is the number of a packet in its flow, from 0.
 */
#ifndef MODELS_QP_H
#define MODELS_QP_H

#include "core/heap.h"
#include "core/list.h"
#include "tools/sim/models/dcqcn.h"
#include "tools/sim/models/flows.h"
#include "transport/movers/sim/sim_stack.h"

struct model_nic;
struct model_qp;

/* Headers of RoCEv2, and its check sequence. */
enum {
    MODEL_BTH_BYTES = 12,
    MODEL_RETH_BYTES = 16,
    MODEL_AETH_BYTES = 4,
    MODEL_ICRC_BYTES = 4,
    MODEL_ACK_BYTES = MODEL_BTH_BYTES + MODEL_AETH_BYTES + MODEL_ICRC_BYTES,
    MODEL_CNP_BYTES = MODEL_BTH_BYTES + 16 + MODEL_ICRC_BYTES, /* annex 17.9.3: 16 reserved */
};

enum model_packet_kind { MODEL_DATA, MODEL_ACK, MODEL_NAK, MODEL_CNP, MODEL_KINDS };

/* What a packet carries in data[]. */
struct model_header {
    uint32_t qp, generation; /* index of the queue pair, and which of its flows */
    uint32_t psn;            /* data: its own; ACK, NAK: the next one expected */
    uint32_t sack;           /* NAK of irn: the one that came out of order */
    uint8_t kind;            /* enum model_packet_kind */
    bool ack_request;
};

/* The sender's end. */
struct model_requester {
    uint32_t num_packets;
    uint32_t una;         /* first PSN that is not acked */
    uint32_t next;        /* PSN sent next, except irn's retransmissions; rc moves it back */
    uint32_t sent;        /* one past the greatest PSN ever sent */
    uint32_t timeouts;    /* in a row */
    uint64_t rto_from_ns; /* the timeout of `una` counts from here; NEVER: it is not in flight */
    uint64_t pace_ps;     /* DCQCN: send nothing before */
    struct model_dcqcn dcqcn;

    /* irn's loss recovery. */
    bool recovering;
    uint32_t recovery_end; /* recovery ends when all PSNs below are acked */
    uint32_t resend;       /* all PSNs below are retransmitted or sacked */
    uint32_t sack_end;     /* PSNs below that are not sacked are lost */
    uint32_t num_sacked;
    uint64_t *sacked; /* bitmap by PSN, in bits[] of the queue pair */
};

/* The receiver's end. */
struct model_responder {
    uint32_t expected;  /* next PSN in order */
    uint32_t unacked;   /* rc: packets since the last ack */
    bool nak_sent;      /* rc: a NAK was sent for the present gap */
    uint64_t *received; /* irn: bitmap by PSN, in bits[] of the queue pair */
    uint64_t cnp_at_ns; /* DCQCN: send no CNP before */
};

struct model_qp {
    struct model_flows *flows;
    struct model_nic *nic; /* of the sender */
    struct mrd_node node;  /* in the list of those that may send, or that are free */
    uint32_t index;        /* in flows->qps */
    uint32_t generation;   /* number of flows that used it and are over */
    uint32_t flow;         /* the caller's number */
    uint32_t src, dst;
    uint16_t path, ack_path; /* source ports, as path numbers */
    bool is_open;            /* it has a flow */
    uint64_t bytes;
    struct mrd_timer timer; /* in the NIC's heap: nothing is due before */
    struct model_requester requester;
    struct model_responder responder;
    uint64_t bits[]; /* irn: two bitmaps, sacked and received */
};

/* What differs between transports. */
struct model_qp_ops {
    const char *name;
    bool has_bits; /* both ends need bitmaps */
    /* Bytes after the UDP header: of each data packet, of the first one also. */
    uint32_t data_bytes, first_bytes;
    uint32_t sack_bytes; /* of a NAK, besides what an ack has */

    /* Is there a packet to send that the window allows? */
    bool (*find_packet)(struct model_qp *qp);
    /* Returns the PSN of the packet that find_packet() has just found: it is being sent. */
    uint32_t (*take_packet)(struct model_qp *qp);
    /* The receiver got a data packet. */
    void (*take_data)(struct model_qp *qp, const struct model_header *header);
    /* The sender got an ACK or NAK. `una` has moved already, from una_before, if it acks more. */
    void (*take_response)(struct model_qp *qp, const struct model_header *header,
                          uint32_t una_before);
    /* The sender waited for an ack of `una` as long as the timeout is. */
    void (*time_out)(struct model_qp *qp);
};

extern const struct model_qp_ops model_rc, model_irn;

/*
 * The adapter of a host. Queue pairs that may send take turns in a list. Those that wait for a
 * time, which is a timeout or that of the next paced packet, are in a heap by that time. A queue
 * pair whose time moves later stays where it is in the heap, and is looked at again when the old
 * time has come.
 */
struct model_nic {
    struct model_flows *flows;
    uint32_t host;          /* number of the host */
    struct mrd_node ready;  /* list of those that may send */
    struct mrd_heap timers; /* the array is owned */
    uint32_t num_qps, cap_timers;
    uint64_t link_idle_ns; /* when the first link of the last data packet will have sent it */
};

/* All flows of a model. */
struct model_flows {
    struct mrd_sim *sim; /* borrowed */
    uint32_t num_hosts, num_attached;
    struct model_flows_config config;
    struct model_tune tune;
    const struct model_qp_ops *ops;
    struct model_nic *nics; /* by host; owned */
    struct model_qp **qps;  /* by index; both the array and the queue pairs are owned */
    uint32_t num_qps, cap_qps;
    struct mrd_node free; /* list of queue pairs without a flow */

    /* What follows from the constants and the fabric. */
    uint32_t window_packets;
    uint32_t range_packets; /* irn: PSNs from `una` to the last that may be sent */
    uint32_t range_mask;    /* irn: bits of a bitmap - 1 */
    uint32_t ack_packets, retries, rto_low_packets;
    /* Bytes on the wire, without payload. */
    uint32_t wire_data, wire_first, wire_control[MODEL_KINDS];
    uint64_t base_rtt_ns;
    uint64_t rto_ns,
        rto_low_ns; /* the second if less than rto_low_packets are in flight; rc: none */
    struct model_dcqcn_limits dcqcn;
    struct model_flows_stats stats;
};

/* A queue pair without a flow; NULL: no memory. Set what its flow is, then open it. */
struct model_qp *model_qp_alloc(struct model_flows *flows);
void model_qp_open(struct model_qp *qp);
/* The flow is over: let another use the queue pair. */
void model_qp_free(struct model_qp *qp);
/* The queue pair of a packet; NULL: its flow is over. */
struct model_qp *model_qp_find(const struct model_flows *flows, const struct model_header *header);
/* Bytes on the wire of packet `psn` of a flow of `bytes` bytes. */
uint32_t model_qp_wire_bytes(const struct model_flows *flows, uint64_t bytes, uint32_t psn);
/* Send a data packet. Returns when its first link will have sent it. */
uint64_t model_qp_send(struct model_qp *qp, uint32_t psn);
/* Send a packet from receiver to sender; `sack` is for NAKs of irn. */
void model_qp_respond(struct model_qp *qp, enum model_packet_kind kind, uint32_t sack);
/* The receiver has `packets` more packets in order. */
void model_qp_deliver(struct model_qp *qp, uint32_t packets);

/* Packets sent and neither acked nor sacked. */
static inline uint32_t model_qp_inflight(const struct model_qp *qp)
{
    return qp->requester.next - qp->requester.una - qp->requester.num_sacked;
}

#endif
