/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every bound and protocol constant of the engine, in one place. Those of the policies are
 * in tune.h.
 */
#ifndef MRD_CORE_LIMITS_H
#define MRD_CORE_LIMITS_H

#include <stdint.h>

enum {
    MRD_PEERS_MAX = 1 << 20, /* of a context */
    MRD_FLOWS_MAX = 1 << 24, /* of a context, ordered flows and send queues with work */
    MRD_PATHS_MAX = 256,
    MRD_TRACKER_MIN = 256,
    MRD_TRACKER_MAX = 4096,
    MRD_PARTS_MAX = 64,   /* messages that share a packet; a refusal names them by index */
    MRD_MSG_SLOTS = 1024, /* messages of several packets in flight to a peer: power of two */
    /* Ordered messages of a flow between the oldest incomplete one and the newest. */
    MRD_MSN_WINDOW = 1024,
    MRD_SENT_PAGE = 64,     /* records of sent packets that are allocated together */
    MRD_STATELESS_MAX = 64, /* resets and challenges waiting to be sent; more are dropped */
    MRD_EVENTS_MAX = 256,   /* asynchronous events not yet taken; more are counted and dropped */
    MRD_ACK_DUPS_MAX = 4,   /* duplicates told in an ack */
    MRD_QPN_FIRST = 16,     /* smaller numbers are kept for later use */
    MRD_RNR_DOUBLINGS = 6,  /* of the delay between attempts while no receive is posted */
    MRD_FAREWELL_ACKS = 4,  /* of a context that closes, to each peer, on different paths */
    MRD_RENEWALS_MAX = 8,   /* epochs that end before a first contact comes about */
    MRD_PROBES_MIN = 5,     /* unanswered probes before a peer counts as unreachable */
    MRD_RETX_LOG = 64,      /* retransmissions remembered to tell spurious ones */
};

#define MRD_USEC  1000ull
#define MRD_MSEC  1000000ull
#define MRD_SEC   1000000000ull
#define MRD_NEVER UINT64_MAX

/*
 * Lives of packets and halves; their relations are what makes the identity rules safe
 * (see WIRE.md).
 */
#define MRD_PACKET_LIFE_NS        (2 * MRD_SEC) /* L */
#define MRD_FIRST_CONTACT_LIFE_NS (2 * MRD_SEC) /* F */
#define MRD_SEND_IDLE_LIFE_NS     (8 * MRD_SEC) /* S */

/*
 * Messages that only wait for receives: the peer is asked after so much silence of ours, before it
 * forgets the space.
 */
#define MRD_WAITING_NS (MRD_SEND_IDLE_LIFE_NS / 4)
/* An ordered flow without messages for so long is closed. */
#define MRD_FLOW_IDLE_NS (1 * MRD_SEC)
/* Where a pool is empty, what can be had back is looked for no more often. */
#define MRD_RECLAIM_NS (10 * MRD_MSEC)
/* Longest wait of an end-of-message ack for an answer to ride on. */
#define MRD_ACK_WITH_REPLY_NS (20 * MRD_USEC)
/* So much later than the next deadline, a look at the receive queue is a stall. */
#define MRD_STALL_NS      (1 * MRD_MSEC)
#define MRD_STALL_LONG_NS (100 * MRD_MSEC) /* a peer's probes may have been answered unheard */
/* Least and most silence of a peer that owes us before it is probed. */
#define MRD_SILENCE_MIN_NS (10 * MRD_MSEC)
#define MRD_SILENCE_MAX_NS (1 * MRD_SEC)
/* Who was not heard for so long knows what we received: else it would have asked. */
#define MRD_FAREWELL_NS (1 * MRD_SEC)

#endif
