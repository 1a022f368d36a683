/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive buffer of the mover, shared among the peers that sent lately.
 *
 * mrd_share_init() once; mrd_share_grant() for each ack: it returns how far beyond the acked PSN
 * the peer may send. A peer counts as a sender in each period in which it gets an ack. The buffer
 * is divided by the senders of this period or of the previous one, whichever are more.
 *
 * Where that is less than a packet for each, senders take turns, but only if the buffer fills: many
 * peers that send a message each now and then are never there at once. mrd_share_read() and
 * mrd_share_empty() tell how full it was.
 */
#ifndef MRD_CORE_SHARE_H
#define MRD_CORE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct mrd_share {
    uint32_t buffer_bytes;   /* 0: no limit */
    uint32_t usual, cost;    /* a usual payload, and what its packet costs there; both in bytes */
    uint32_t largest;        /* payload that came in this period, or a usual one */
    uint32_t largest_before; /* in the one before */
    uint32_t room;           /* so large packets that the buffer holds; 0: no limit */
    uint32_t packets_max;    /* granted to one peer */
    uint32_t period;         /* counts periods */
    uint64_t period_at_ns;   /* when this one began */
    uint32_t senders;        /* peers counted in this period */
    uint32_t senders_prev;   /* in the one before */
    uint32_t turns;          /* one sender in so many may send; 1: all */
    uint32_t since_empty;    /* packets read since the buffer was seen empty: it held no more */
    /* The most of them in this period and in the one before, had all senders had their turn. */
    uint32_t most, most_prev;
};

/*
 * buffer_bytes 0: no limit. A packet of `usual_bytes` of payload costs so many and overhead_bytes
 * there. packets_max: granted to one peer at most.
 */
void mrd_share_init(struct mrd_share *share, uint32_t buffer_bytes, uint32_t usual_bytes,
                    uint32_t overhead_bytes, uint32_t packets_max, uint64_t now_ns);
/* A packet of more than share->largest bytes of payload came: the buffer holds fewer of these. */
void mrd_share_grow(struct mrd_share *share, uint32_t payload_bytes);
/* So many packets were read from the buffer. */
void mrd_share_read(struct mrd_share *share, uint32_t packets);
/* It was seen empty. */
static inline void mrd_share_empty(struct mrd_share *share)
{
    share->since_empty = 0;
}
/* Was it nearly empty lately, in this period and the one before? */
bool mrd_share_is_low(const struct mrd_share *share);
/* Was it more than half full? */
bool mrd_share_is_full(const struct mrd_share *share);
/*
 * Returns the number of PSNs to grant: twice the share, because a sender fills at most half of a
 * grant with data; the rest is for refusals and ABORTs, which are small. 1, of which half is no
 * packet: it is not this peer's turn, and it may ask again. *seen: the peer's own, 0 at first. id:
 * different for each peer.
 */
uint32_t mrd_share_grant(struct mrd_share *share, uint32_t *seen, uint32_t id, uint64_t now_ns);

#endif
