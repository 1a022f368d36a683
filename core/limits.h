/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every bound and protocol constant of the engine. Constants of the policies are in tune.h.
 */
#ifndef MRD_CORE_LIMITS_H
#define MRD_CORE_LIMITS_H

#include <stdint.h>

enum {
    MRD_PEERS_MAX = 1 << 20, /* of a context */
    MRD_FLOWS_MAX = 1 << 24, /* of a context, ordered flows and send queues with work */
    MRD_PATHS_MAX = 256,
    MRD_PATHS_FIRST = 8,        /* of a peer with few packets in flight */
    MRD_WR_MAX = 1 << 20,       /* of a queue of a queue pair */
    MRD_MRS_MAX = 1 << 20,      /* of a context */
    MRD_CQE_MAX = 1 << 24,      /* of a completion queue */
    MRD_RESPONSES = 4096,       /* reads and atomics of peers that are executed at a time */
    MRD_TRACKER_MIN = 512,      /* its share of data goes before the first ack: peer_state.c */
    MRD_TRACKER_MAX = 4096,     /* of a peer at first */
    MRD_TRACKER_WIDEST = 65536, /* of one whose packets in flight are many */
    MRD_ROUTES_WANTED = 64,     /* peers whose route is asked for at a time; others ask again */
    MRD_PARTS_MAX = 64,         /* parts of a packet; a refusal names them by index */
    MRD_MSG_SLOTS = 1024,       /* messages of several packets in flight to a peer: power of two */
    /* Messages of an ordered flow, from the oldest incomplete one to the newest. */
    MRD_MSN_WINDOW = 1024,
    MRD_SENT_PAGE = 16,     /* records of sent packets that are allocated together */
    MRD_STATELESS_MAX = 64, /* answers to strangers waiting to be sent; more are dropped */
    /* Answers to strangers that may leave in a burst, at least; a table of more peers allows more. */
    MRD_ANSWERS_LEAST = 1024,
    MRD_ANSWERS_BATCH = 16, /* answers that leave by one system call where strangers ask a lot */
    MRD_EVENTS_MAX = 256,   /* asynchronous events not yet taken; more are counted and dropped */
    MRD_ACK_DUPS_MAX = 4,   /* duplicates reported by an ack */
    MRD_QPN_FIRST = 16,     /* smaller numbers are reserved */
    MRD_RNR_DOUBLINGS = 6,  /* doublings of the RNR delay between attempts */
    MRD_FAREWELL_ACKS = 4,  /* acks from a closing context to each peer, on different paths */
    MRD_RENEWALS_MAX = 8,   /* epochs that may end during one first contact */
    MRD_NAMESAKES_MAX = 64, /* peers that call us by one name: one for each of our addresses */
    MRD_REFUSED_MIN = 3,    /* reports that nobody listens at an address, before they count */
    MRD_PROBES_MIN = 5,     /* unanswered probes before a peer counts as unreachable */
    MRD_SOURCE_PROBES = 2,  /* unanswered probes before another source address is tried */
    MRD_PMTU_PROBES = 3,    /* of a size, all lost: it does not come through (RFC 8899, 5.1.2) */
    MRD_PMTU_NEIGHBORS = 2, /* packets before a probe, and behind: none of them lost with it */
    MRD_PMTU_LOSSES =
        4, /* packets above the base payload lost in a row: is the path smaller now? */
    MRD_PMTU_LOSSES_SRTTS = 4,
    MRD_RETX_LOG = 64, /* retransmissions logged to find spurious ones */
};

/*
 * Shares of the tracker, in sixteenths. With C for what the peer may refuse, E for all that is no
 * refusal, and T for the tracker, E + 2 (C - 1) < T: behind our oldest PSN there may be refusals of
 * as many of the peer's packets from before its oldest one as from after it, and still its next
 * refusal needs a PSN.
 */
enum {
    MRD_PSN_DATA = 5,    /* C: data and ABORTs */
    MRD_PSN_CONTROL = 6, /* E: and empty packets, READY, CLOSE */
    MRD_PSN_REFUSALS = 16,
};

/* Memory of a context for trackers that are wider than at first. */
#define MRD_WIDE_BYTES (16u << 20)

#define MRD_USEC  1000ull
#define MRD_MSEC  1000000ull
#define MRD_SEC   1000000000ull
#define MRD_NEVER UINT64_MAX

/*
 * Requests of a peer that name memory by a key that never was are refused as fast as this in the long
 * run, and so many at once. Beyond that all that names memory is dropped, and comes again.
 */
#define MRD_KEY_GUESS_NS   MRD_MSEC
#define MRD_KEY_GUESSES_NS (1024 * MRD_KEY_GUESS_NS)
/* The user is told of such peers at most so often. */
#define MRD_KEY_EVENT_NS MRD_SEC

/* Answers to strangers are as far apart as that, in the long run. */
#define MRD_ANSWER_NS (20 * MRD_USEC)
/* Where MRD_ANSWERS_BATCH came within such a time, the next ones wait for as many, for so long. */
#define MRD_ANSWERS_NS      (1 * MRD_MSEC)
#define MRD_ANSWERS_WAIT_NS (250 * MRD_USEC)
/* A cookie holds for so long at least, and at most for twice as long. */
#define MRD_COOKIE_NS (4 * MRD_SEC)
/* When nothing came from a peer's address for so long, another one that it sends from may be its. */
#define MRD_MOVED_NS (100 * MRD_MSEC)
/*
 * A peer that was silent for this share of the peer timeout, within these bounds, may not be reached
 * from our address: another one is tried, and one more each time that this goes on for as long.
 */
#define MRD_SOURCE_SHARE  8
#define MRD_SOURCE_MIN_NS (100 * MRD_MSEC)
#define MRD_SOURCE_MAX_NS (1 * MRD_SEC)

/* Such reports, about a peer that was never heard of, must span so long. */
#define MRD_REFUSED_NS MRD_SEC

/* And these losses must span so long, and so many SRTTs (above), that no burst explains them. */
#define MRD_PMTU_LOSSES_NS (10 * MRD_MSEC)
/* From the end of a search for the path's MTU to the next one: at first, and at most. */
#define MRD_PMTU_PAUSE_NS     (60 * MRD_SEC)
#define MRD_PMTU_PAUSE_MAX_NS (600 * MRD_SEC)

/* A packet of which no piece came for so long loses its room to another one. */
#define MRD_FRAG_LIFE_NS (10 * MRD_MSEC)

/* After nobody could be evicted from a full peer table, nobody looks again for so long. */
#define MRD_FULL_NS (10 * MRD_MSEC)
/* The user is told that peers are turned away, at most so often. */
#define MRD_FULL_EVENT_NS MRD_SEC

/* Lives of packets, send and receive states; the identity rules rely on their relations (see WIRE.md). */
#define MRD_PACKET_LIFE_NS        (2 * MRD_SEC) /* L */
#define MRD_FIRST_CONTACT_LIFE_NS (2 * MRD_SEC) /* F */
#define MRD_SEND_IDLE_LIFE_NS     (8 * MRD_SEC) /* S */

/*
 * If messages only wait for receives, or the peer is watched, it is probed when nothing was sent
 * for this time, before it forgets the space; or for this share of the timeout, if that is less.
 */
#define MRD_WAITING_NS    (MRD_SEND_IDLE_LIFE_NS / 4)
#define MRD_WAITING_SHARE 4
/*
 * Send states that stay for MRD_SEND_IDLE_LIFE_NS unused. With more of them all go sooner, but never
 * before MRD_SEND_IDLE_LEAST_NS.
 */
#define MRD_SEND_STATES_KEPT   1024
#define MRD_SEND_IDLE_LEAST_NS (100 * MRD_MSEC)
/* Each peer that is active is looked at once in this time, some of them each step. */
#define MRD_SWEEP_NS      (1 * MRD_SEC)
#define MRD_SWEEP_STEP_NS (1 * MRD_MSEC)
/* Most of them in one call. */
#define MRD_SWEEP_MOST 256
/* An ordered flow without messages for this time is closed. */
#define MRD_FLOW_IDLE_NS (1 * MRD_SEC)
/* Least time between two searches for items to reclaim for an empty pool. */
#define MRD_RECLAIM_NS (10 * MRD_MSEC)
/* Longest time that the ack of a message's end waits for a reply to ride on. */
#define MRD_ACK_WITH_REPLY_NS (20 * MRD_USEC)
/* A look at the receive queue that is later than the next deadline by this is a stall. */
#define MRD_STALL_NS (1 * MRD_MSEC)
/* After a longer stall, answers to probes may have been missed. */
#define MRD_STALL_LONG_NS (100 * MRD_MSEC)
/* Least and most silence of a peer that owes us something before it is probed. */
#define MRD_SILENCE_MIN_NS (10 * MRD_MSEC)
#define MRD_SILENCE_MAX_NS (1 * MRD_SEC)
/* A peer silent for this time knows what we received: else it would have probed us. */
#define MRD_FAREWELL_NS (1 * MRD_SEC)

#endif
