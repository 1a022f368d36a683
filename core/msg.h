/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages being sent: the state of a posted work request, and how its bytes get into packets.
 *
 * A message of one packet is staged: its bytes are copied into the packet, which other messages may
 * share, and it is chained to the packet's record. A longer one is cut into segments, which the
 * mover gathers from the user's buffers. Their records name it by id (ids.h), so that a record may
 * outlive the message. Each attempt has its own id, released when its packets are acked.
 *
 * A message completes when its outcome is known and the mover has stopped reading its buffers.
 *
 * A read or atomic is a request: a message of one packet without payload. The target answers it by
 * a RESPONSE, a message of its own that names the request by its token. The request completes when
 * it is acked and answered.
 *
 * Legal states: FREE -> [HELD ->] QUEUED -> SENDING -> (DONE | RNR_WAIT -> QUEUED | CANCELLED) ->
 * FREE; of a request also SENDING -> ANSWERING -> DONE | CANCELLED.
 */
#ifndef MRD_CORE_MSG_H
#define MRD_CORE_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"
#include "core/limits.h"
#include "core/list.h"
#include "core/packet.h"
#include "core/wire.h"
#include "mrd/mrd.h"

struct mrd_peer;
struct mrd_qp_impl;
struct mrd_flow_tx;
struct mrd_txq;
struct mrd_slot;

enum mrd_msg_state {
    MRD_MSG_FREE = 0,
    /* Kept back by its queue pair, until earlier reads and atomics end; a RESPONSE: by its order. */
    MRD_MSG_HELD,
    /* On its queue: not all bytes were sent in this attempt. */
    MRD_MSG_QUEUED,
    MRD_MSG_SENDING,   /* all bytes sent, not all acked */
    MRD_MSG_ANSWERING, /* a request that was acked and not answered */
    /* Refused for want of a receive: waits for the RNR delay and for the acks of its packets. */
    MRD_MSG_RNR_WAIT,
    MRD_MSG_DONE,     /* acked; in ordered mode it completes after earlier messages */
    MRD_MSG_CANCELLED /* waits for the acks of its packets and of its ABORT */
};

/* What was posted: the work request, as packets and the completion say it. */
struct mrd_msg_wr {
    uint64_t id, remote_addr;
    uint32_t rkey, qkey, dst_qpn, imm;
    uint32_t length;
    uint8_t op, part_flags; /* as on the wire */
    uint8_t num_sge;
    bool is_inline, signaled, fenced;
    uint64_t compare_add, swap; /* atomics */
    struct mrd_sge *sge;        /* num_sge entries, owned by the queue pair */
    uint8_t *inline_data;       /* likewise */
};

/* Its place in the order of its flow. */
struct mrd_msg_order {
    struct mrd_flow_tx *flow; /* NULL: it is not ordered */
    struct mrd_node node;     /* on the flow by MSN, until it completes */
    uint32_t msn, rsn;
    bool settled; /* it and all earlier messages ended */
};

/* A message that fits into one packet: where it is. */
struct mrd_msg_packet {
    struct mrd_msg *next; /* next message in the same packet's record */
    uint32_t psn;         /* SENDING: of the packet */
    uint8_t index;        /* in the packet, as first sent */
    bool chained;         /* it hangs on the packet's record */
};

/* Attempts that found no receive. */
struct mrd_msg_rnr {
    uint32_t usec;       /* RNR_WAIT: RNR delay of the target */
    uint64_t refused_ns; /* RNR_WAIT: when it was refused */
    uint8_t doublings;   /* doublings of usec when it is next refused */
    uint8_t left;        /* retries left, or MRD_RNR_RETRY_FOREVER */
    bool hinted;         /* begun early, as there may be receives: a refusal costs no retry */
};

/* A request, or the response to one. */
struct mrd_msg_request {
    struct mrd_hash_node by_token; /* of a request that is not answered */
    uint32_t token;
    bool live;             /* it has a token, and its queue pair counts it */
    bool answered;         /* the whole response is here */
    struct mrd_slot *slot; /* the response, if it has several packets and some came; or NULL */
};

/* The ABORT that tells the target of its end. */
struct mrd_msg_abort {
    struct mrd_msg *next; /* next message in the same ABORT's record */
    bool pending;         /* it waits to be sent */
    bool sent;            /* and is not acked */
};

struct mrd_msg {
    /*
     * QUEUED: on its mrd_txq; RNR_WAIT: the same, when its packets are acked; FREE, HELD: on the
     * QP; a HELD response: on mrd_turns.responses.
     */
    struct mrd_node node;
    struct mrd_node peer_node; /* all live messages to a peer */
    struct mrd_qp_impl *qp;
    struct mrd_peer *peer;
    struct mrd_txq *txq; /* queue that it is or waits on */
    struct mrd_msg_wr wr;
    struct mrd_msg_order order;
    struct mrd_msg_packet packet;
    struct mrd_msg_rnr rnr;
    struct mrd_msg_abort abort;
    struct mrd_msg_request request;
    uint64_t memory_seen; /* of mrd_mr_list_stays() */
    uint32_t peer_id;
    /* Packets whose payload the mover still reads from its buffers; it completes at 0. */
    uint32_t reading;
    uint32_t next_offset; /* bytes cut into segments in this attempt */
    uint32_t acked_bytes; /* in this attempt */
    uint32_t id;          /* with has_id: of this attempt */
    bool multi;           /* it needs several packets */
    bool has_id;
    bool started;      /* a packet of it was sent: the target may know it */
    uint32_t post_seq; /* number in the order of posting, over the context */
    uint8_t attempt;   /* counts attempts, modulo 256 */
    uint8_t state;     /* enum mrd_msg_state */
    uint8_t status;    /* enum mrd_wc_status of its completion */
    uint8_t vendor_err;
};

/* Does it consume a receive at its target? */
static inline bool mrd_msg_consumes(const struct mrd_msg *msg)
{
    return msg->wr.op == MRD_OP_SEND || msg->wr.part_flags & MRD_PART_IMM;
}

static inline bool mrd_msg_is_request(const struct mrd_msg *msg)
{
    return mrd_wire_is_request(msg->wr.op);
}

static inline bool mrd_msg_is_response(const struct mrd_msg *msg)
{
    return msg->wr.op == MRD_OP_RESPONSE;
}

/* Payload bytes of all its packets. */
static inline uint32_t mrd_msg_payload(const struct mrd_msg *msg)
{
    return mrd_msg_is_request(msg) ? 0 : msg->wr.length;
}

/* Bytes of its part in a header. */
static inline uint32_t mrd_msg_part_bytes(const struct mrd_msg *msg)
{
    return mrd_wire_part_bytes(msg->wr.op, msg->wr.part_flags);
}

/* Returns the opcode of its completion. */
enum mrd_wc_opcode mrd_msg_wc_opcode(uint8_t op);
/* Copies bytes [offset, offset + len) of the message to `to`. */
void mrd_msg_copy(const struct mrd_msg *msg, uint32_t offset, uint32_t len, uint8_t *to);
/*
 * Fills the part for bytes [offset, offset + len), except src_qpn and the fields of ordered mode.
 */
void mrd_msg_part(const struct mrd_msg *msg, uint32_t offset, uint32_t len,
                  struct mrd_wire_part *part);
/*
 * Returns the message with that index in a packet's chain; NULL: none. Indices are those of the
 * first transmission. A message that leaves the chain leaves a gap, which retransmissions fill with
 * a void part, so that the indices in a refusal stay right.
 */
struct mrd_msg *mrd_msg_in_chain(struct mrd_msg *head, unsigned index);
/* Removes the message from the chain of its packet's record. */
void mrd_msg_unchain(struct mrd_msg **head, struct mrd_msg *msg);

#endif
