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
 * Legal states: FREE -> QUEUED -> SENDING -> (DONE | RNR_WAIT -> QUEUED | CANCELLED) -> FREE.
 */
#ifndef MRD_CORE_MSG_H
#define MRD_CORE_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/limits.h"
#include "core/list.h"
#include "core/packet.h"
#include "core/wire.h"
#include "mrd/mrd.h"

struct mrd_peer;
struct mrd_qp_impl;
struct mrd_flow_tx;
struct mrd_txq;

enum mrd_msg_state {
    MRD_MSG_FREE = 0,
    /* On its queue: not all bytes were sent in this attempt. */
    MRD_MSG_QUEUED,
    MRD_MSG_SENDING, /* all bytes sent, not all acked */
    /* Refused for want of a receive: waits for the RNR delay and for the acks of its packets. */
    MRD_MSG_RNR_WAIT,
    MRD_MSG_DONE,     /* acked; in ordered mode it completes after earlier messages */
    MRD_MSG_CANCELLED /* waits for the acks of its packets and of its ABORT */
};

struct mrd_msg {
    /* QUEUED: on its mrd_txq; RNR_WAIT: the same, when its packets are acked; FREE: on the QP. */
    struct mrd_node node;
    struct mrd_node flow_node;   /* ordered: on the flow by MSN, until it completes */
    struct mrd_node peer_node;   /* all live messages to a peer */
    struct mrd_msg *chain;       /* next message in the same packet's record */
    struct mrd_msg *abort_chain; /* next one in the same ABORT's record */
    struct mrd_qp_impl *qp;
    struct mrd_peer *peer;
    struct mrd_flow_tx *flow; /* ordered mode */
    struct mrd_txq *txq;      /* queue that it is or waits on */
    uint32_t peer_id;
    /* Packets whose payload the mover still reads from its buffers; it completes at 0. */
    uint32_t reading;
    uint64_t wr_id;
    uint64_t remote_addr;
    uint32_t rkey, qkey, dst_qpn, imm;
    uint32_t length;
    uint32_t next_offset; /* bytes cut into segments in this attempt */
    uint32_t acked_bytes; /* in this attempt */
    uint32_t id;          /* with has_id: of this attempt */
    uint32_t msn, rsn;
    uint32_t psn;           /* SENDING and not multi: of its packet */
    uint8_t op, part_flags; /* as on the wire */
    uint32_t rnr_usec;      /* RNR_WAIT: RNR delay of the target */
    uint64_t refused_ns;    /* RNR_WAIT: when it was refused */
    uint32_t post_seq;      /* number in the order of posting, over the context */
    uint8_t attempt;        /* counts attempts, modulo 256 */
    uint8_t state;
    uint8_t status; /* enum mrd_wc_status of its completion */
    uint8_t vendor_err;
    uint8_t rnr_doublings; /* doublings of rnr_usec when it is next refused */
    uint8_t rnr_left;      /* retries left, or MRD_RNR_RETRY_FOREVER */
    uint8_t num_sge;
    uint8_t part_index; /* index in its packet, as first sent */
    bool multi, has_id, signaled, is_inline, in_chain;
    bool abort_pending, aborted; /* its ABORT waits to be sent; is sent but not acked */
    /* Begun early, as there may be receives: a refusal costs no retry. */
    bool hinted;
    bool settled;         /* ordered: it and all earlier messages ended */
    bool started;         /* a packet of it was sent: the target may know it */
    struct mrd_sge *sge;  /* num_sge entries, owned by the queue pair */
    uint8_t *inline_data; /* likewise */
};

/* Does it consume a receive at its target? */
static inline bool mrd_msg_consumes(const struct mrd_msg *msg)
{
    return msg->op == MRD_OP_SEND || msg->part_flags & MRD_PART_IMM;
}

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
