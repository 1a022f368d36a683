/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a message at its sender. */
#ifndef MRD_CORE_ENGINE_MESSAGE_H
#define MRD_CORE_ENGINE_MESSAGE_H

#include "core/engine/state.h"

/* The whole response is in place: the request completes when it is acked, too. */
void mrd_msg_end_request(struct mrd_engine *e, struct mrd_msg *msg);
/* mrd_msg_check_memory() of a message that was last looked at before some region went. */
bool mrd_msg_find_memory(struct mrd_engine *e, struct mrd_msg *msg);

/* May its bytes be touched? Of a message whose memory was deregistered not: it is given up. */
static inline bool mrd_msg_check_memory(struct mrd_engine *e, struct mrd_msg *msg)
{
    if (msg->state != MRD_MSG_SENDING && msg->state != MRD_MSG_QUEUED)
        return false;
    return msg->memory_seen == e->objects.mrs.removals || mrd_msg_find_memory(e, msg);
}

/* A record was acked: what it carried got there. Releases the record. */
void mrd_msg_record_acked(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec);
/* `n` segments with that id were acked, which carried `bytes` of the message. */
void mrd_msg_segments_acked(struct mrd_engine *e, struct mrd_peer *peer, uint32_t msg_id,
                            uint32_t n, uint32_t bytes);
/* The target refused a part of a record. Returns whether that is a message of it. */
bool mrd_msg_apply_refusal(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                           const struct mrd_wire_refusal_entry *entry, uint32_t rnr_usec);
/* The target's only refusal of the record's parts came: the messages left in it were taken. */
void mrd_msg_rest_taken(struct mrd_engine *e, struct mrd_sent *rec);
/* Give a message up: it completes with `status` when the target was told. */
void mrd_msg_cancel(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status);
/* It ends now, without telling the target. */
void mrd_msg_abandon(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status);
/*
 * All its messages are abandoned: they complete in order, as they are no longer read; then the
 * record goes.
 */
void mrd_msg_end_flow(struct mrd_engine *e, struct mrd_flow_tx *flow);
/* The mover no longer reads one packet of the message. */
void mrd_msg_end_read(struct mrd_engine *e, struct mrd_msg *msg);
/* Free a destroyed queue pair whose messages have all ended. */
void mrd_msg_reap_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);

#endif
