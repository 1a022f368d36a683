/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages being sent: the state of a posted work request, and how its bytes get into packets.
 *
 * A message of one packet is staged: it is copied into the packet, which it may share with others,
 * and is chained to that packet's record. A longer one is cut into segments that gather straight
 * from the user's buffers; its records name it by id, through the peer's table of ids, so that a
 * record may outlive the message. Each attempt has an id of its own, which it gives back when its
 * packets are acked.
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
    /* On its queue, something is left to be sent for the first time in this attempt. */
    MRD_MSG_QUEUED,
    MRD_MSG_SENDING, /* all sent, not all acked */
    /* Refused for want of a receive: waits for the delay and for its old packets' acks. */
    MRD_MSG_RNR_WAIT,
    MRD_MSG_DONE,     /* acked; in ordered mode its completion waits for earlier ones */
    MRD_MSG_CANCELLED /* waits for its packets' acks and its ABORT's */
};

struct mrd_msg {
    /* QUEUED: on its queue; RNR_WAIT: likewise, once its packets are acked; FREE: the QP's list. */
    struct mrd_node node;
    struct mrd_node flow_node;   /* ordered: on the flow, in MSN order, until completed */
    struct mrd_node peer_node;   /* all live messages to a peer */
    struct mrd_msg *chain;       /* next message in the same packet's record */
    struct mrd_msg *abort_chain; /* next one in the same ABORT's record */
    struct mrd_qp_impl *qp;
    struct mrd_peer *peer;
    struct mrd_flow_tx *flow; /* ordered mode */
    struct mrd_txq *txq;      /* QUEUED, or waiting there */
    uint32_t peer_id;
    /* Packets whose bytes the mover still reads: it completes when there are none. */
    uint32_t reading;
    uint64_t wr_id;
    uint64_t remote_addr;
    uint32_t rkey, qkey, dst_qpn, imm;
    uint32_t length;
    uint32_t next_offset; /* bytes cut so far in this attempt */
    uint32_t acked_bytes; /* in this attempt */
    uint32_t id;          /* with `multi` once it began */
    uint32_t msn, rsn;
    uint32_t psn;           /* SENDING and not multi: its packet */
    uint8_t op, part_flags; /* as on the wire */
    uint32_t rnr_usec;      /* RNR_WAIT: the target's delay */
    uint64_t refused_ns;    /* and when it was refused */
    uint32_t post_seq;      /* order of posting, context-wide */
    uint8_t attempt;        /* counts attempts, modulo 256 */
    uint8_t state;
    uint8_t status; /* enum mrd_wc_status that it will complete with */
    uint8_t vendor_err;
    uint8_t rnr_doublings; /* of the target's delay, when it is refused next */
    uint8_t rnr_left;      /* retries left; 7: no limit */
    uint8_t num_sge;
    uint8_t part_index; /* in its packet's chain */
    bool multi, has_id, signaled, is_inline, in_chain;
    bool abort_pending, aborted; /* an ABORT waits to be sent; was sent and is not acked yet */
    bool hinted;                 /* this attempt was let go by a hint: failing costs no retry */
    bool settled;                /* ordered: it is over, and so are all before it */
    bool started;                /* a packet of it was sent once: the target may know it */
    struct mrd_sge *sge;         /* num_sge entries, owned by the queue pair */
    uint8_t *inline_data;        /* likewise */
};

/* Does it take a receive at its target? */
static inline bool mrd_msg_consumes(const struct mrd_msg *msg)
{
    return msg->op == MRD_OP_SEND || msg->part_flags & MRD_PART_IMM;
}

/* Copy bytes [offset, offset + len) of the message. */
void mrd_msg_copy(const struct mrd_msg *msg, uint32_t offset, uint32_t len, uint8_t *to);
/*
 * Fill the part for [offset, offset + len); what the flow and the queue pair say is the caller's.
 */
void mrd_msg_part(const struct mrd_msg *msg, uint32_t offset, uint32_t len,
                  struct mrd_wire_part *part);
/*
 * The message with that index in a packet's chain; or NULL. Indices are those of the first
 * transmission: a message that leaves the chain leaves a gap, which retransmissions fill with a
 * void part, so that a refusal names the right one.
 */
struct mrd_msg *mrd_msg_in_chain(struct mrd_msg *head, unsigned index);
/* It leaves the chain of its packet's record. */
void mrd_msg_unchain(struct mrd_msg **head, struct mrd_msg *msg);

#endif
