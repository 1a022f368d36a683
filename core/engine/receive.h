/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files that receive share. Receiving changes state and marks peers as ready; it sends
 * nothing.
 */
#ifndef MRD_CORE_ENGINE_RECEIVE_H
#define MRD_CORE_ENGINE_RECEIVE_H

#include "core/engine/state.h"

/* A received packet, decoded: once, and handed on. */
struct mrd_rx_in {
    const struct mrd_rx_packet *packet;
    struct mrd_wire_head head;
    const uint8_t *payload; /* where it is; with packet->placed, where it belongs */
    uint32_t payload_len;
    unsigned num_parts; /* 0: they were not decoded yet */
    struct mrd_wire_part part[MRD_PARTS_MAX];
    struct mrd_rx_packet whole; /* mrd_rx_check_plan() */
};

enum { MRD_RX_TAKEN = 0 }; /* what became of a part: this, or an enum mrd_refusal_code */

/* Returns the access that an op needs to the memory that it names. */
static inline int mrd_rx_access(uint8_t op)
{
    if (op == MRD_OP_READ)
        return MRD_ACCESS_REMOTE_READ;
    return op == MRD_OP_WRITE ? MRD_ACCESS_REMOTE_WRITE : MRD_ACCESS_REMOTE_ATOMIC;
}

/* Is it of nobody, as the network has no such port? By it one peer would have many names. */
static inline bool mrd_rx_names_no_port(const struct mrd_engine *e,
                                        const struct mrd_wire_head *head)
{
    uint32_t max = e->config.mover.reply_max;

    return max && (head->reply == 0 || head->reply > max);
}

/* Packets that came as they were planned, one behind the other. */
struct mrd_run {
    struct mrd_peer *peer;
    struct mrd_slot *slot;
    struct mrd_wire_head head; /* of the first one */
    struct mrd_wire_part part;
};

#endif
