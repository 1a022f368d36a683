/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's state. Each part of it is owned by one file, which alone changes it; others read it.
 *
 * The files stand in floors, and each calls only those below: tests/unit/floors.txt has the floors, and
 * core/ARCHITECTURE.md what each file is for.
 */
#ifndef MRD_CORE_ENGINE_STATE_H
#define MRD_CORE_ENGINE_STATE_H

#include "core/alloc.h"
#include "core/clock.h"
#include "core/cq.h"
#include "core/engine/engine.h"
#include "core/frag.h"
#include "core/heap.h"
#include "core/limits.h"
#include "core/mr.h"
#include "core/peer.h"
#include "core/qp.h"
#include "core/rng.h"
#include "core/secret.h"
#include "core/share.h"
#include "core/stats.h"
#include "core/table.h"
#include "core/wire.h"

/* Deadlines of peers. Owned by timer.c. */
struct mrd_timers {
    struct mrd_heap heap;    /* mrd_peer.timer */
    struct mrd_node touched; /* peers whose timers are still to be set, as of touched_ns */
    uint64_t touched_ns;
};

/*
 * API calls and turns of the progress thread, counted by mrd_engine_begin(). Owned by loop.c;
 * post_seq by post.c; peer_id by handle.c.
 */
struct mrd_calls {
    uint32_t seq;
    uint32_t post_seq; /* seq of the last post */
    uint32_t msg_seq;  /* of the next message posted: their order, context-wide */
    uint32_t peer_id;  /* of the last post: what is known of that peer is in the caches */
};

/* Objects of the user. Owned by api.c; error by query.c. */
struct mrd_objects {
    struct mrd_hash qps;
    struct mrd_node qp_list; /* live queue pairs, and destroyed ones that wait for their messages */
    struct mrd_mrs mrs;
    uint32_t qpn_next;
    uint32_t num_pds, num_mrs, num_cqs, num_qps, num_srqs, num_ahs, num_channels;
    bool failed;     /* the device is gone: a queue pair begins in the error state */
    char error[160]; /* a sentence about the last call that failed */
};

/* A reset or a challenge to be sent: no peer entry is needed for it. */
struct mrd_answer {
    struct mrd_addr to, from;
    uint64_t life;
    struct mrd_wire_head head;
};

/* Answers that wait to be sent. Owned by answer.c, which fills the ring; tx_emit.c empties it. */
struct mrd_answers {
    /* [0]: to those who do not call us by our name, [1]: to those who do. */
    uint64_t credit_ns[2];   /* how many may be given, in time: each takes MRD_ANSWER_NS of it */
    uint64_t counted_ns[2];  /* when it was added to last */
    uint32_t head, tail;     /* free-running; head: next to be sent */
    uint64_t since_ns;       /* when the first one that waits was queued */
    uint64_t window_ns;      /* of `lately`: when this window of MRD_ANSWERS_NS began */
    uint32_t lately, before; /* answers in this window, and in the one before */
    struct mrd_answer ring[MRD_STATELESS_MAX];
};

/* Events that the user has not taken yet. Owned by query.c. */
struct mrd_events {
    uint32_t head, tail;     /* free-running; head: next to be taken */
    struct mrd_node objects; /* mrd_event_source.node: of objects, which tell one at a time */
    struct mrd_engine_event ring[MRD_EVENTS_MAX];
};

/* Lives of send and receive states, and of the context. Owned by peer_state.c; closing by loop.c. */
struct mrd_lives {
    uint32_t epoch_next;   /* of the next send state */
    uint32_t replaced;     /* so many lives of peers took another one's place */
    uint64_t reclaimed_ns; /* when mrd_peers_reclaim() last looked; 0: never */
    uint64_t keys_told_ns; /* when the user was told of a peer that guesses keys; 0: never */
    uint64_t full_told_ns; /* when the user was told of peers turned away; 0: never */
    uint64_t failed_ns;    /* the latest mrd_peer.failed_ns */
    uint64_t evicted_ns;   /* the latest of the entries that went */
    bool closing;          /* nothing follows but the last acks */
};

/* Run queues: peers, responses and completion channels with work. Every file may add to them. */
struct mrd_turns {
    struct mrd_node ready;    /* peers that may have something to send; tx.c takes them off */
    struct mrd_node suspects; /* peers whose losses loop.c judges once the receive queue is empty */
    struct mrd_node responses;    /* whose turn in the order came, or never will; respond.c's */
    struct mrd_channel_news news; /* of completion channels; channel.c takes them off */
    bool says_ready;              /* some peer is to be told of receives */
    bool wants_path;              /* some path is DEAD and needs a fresh entropy value */
    uint32_t sourceless[MRD_ROUTES_WANTED]; /* ids of peers that nothing gets to from our source */
    uint32_t wants_source;                  /* how many */
    uint32_t route_of[MRD_ROUTES_WANTED];   /* ids of peers whose route nobody has asked for */
    uint32_t wants_route;                   /* how many */
    bool cut_short; /* mrd_engine_tx() ended where a burst would have been split */
};

/*
 * The last straight-receive plan: segment i is PSN head.psn + i, at part.offset + i * len. Owned
 * by rx_plan.c.
 */
struct mrd_plan {
    uint16_t num, len;
    uint32_t bytes;      /* of all payloads */
    const uint8_t *base; /* of the first segment's payload; the others follow it */
    /* What was received from segment `moved_from` on, once one is not what was predicted. */
    uint8_t *moved;
    uint32_t moved_size;       /* bytes allocated */
    uint16_t moved_from;       /* num: nothing was moved */
    struct mrd_wire_head head; /* of the first segment, */
    struct mrd_wire_part part;
    uint8_t head_bytes[MRD_HEAD_PEEK_BYTES]; /* and what they were decoded from */
    /* A segment that came where another one was predicted; or a packet that is cut to fragments. */
    uint8_t scratch[MRD_PAYLOAD_BYTES_MAX + MRD_WIRE_HEAD_BYTES_MAX];
};

/* Reads and atomics of ours that are not answered. Owned by request.c. */
struct mrd_requests {
    struct mrd_hash by_token;
    uint32_t token_next; /* never used again before it wraps: an old response finds nothing */
};

/* The answer to a peer's request: a message that no work request is behind. */
struct mrd_response {
    struct mrd_msg msg;   /* first; remote_addr, rkey, compare_add and swap are the request's */
    struct mrd_node node; /* on mrd_qp_impl.responses */
    struct mrd_sge sge;   /* READ: what is read */
    uint8_t result[MRD_WIRE_ATOMIC_BYTES]; /* atomics: what was there, big-endian */
    struct mrd_reorder_entry *entry;       /* its turn in the order did not come yet */
    uint8_t request_op;
    bool failed; /* it was never its turn: its queue pair is gone */
};

struct mrd_engine {
    struct mrd_allocator allocator;
    struct mrd_engine_config config;
    const struct mrd_spray_ops *spray;
    const struct mrd_cc_ops *cc;
    struct mrd_cc_config cc_config; /* the mover's figures, for all windows; peer_state.c */
    struct mrd_rng rng;
    struct mrd_secret secret;
    uint64_t *sealed_lives; /* NULL: packets are in the clear; see mrd_peer_life() */
    struct mrd_stats stats;
    struct mrd_clock clock;
    struct mrd_timers timers;
    struct mrd_calls calls;
    struct mrd_objects objects;
    struct mrd_share share;
    struct mrd_lives lives;

    struct mrd_turns turns;
    struct mrd_peers peers;
    struct mrd_table txqs;           /* of struct mrd_txq; txq.c */
    struct mrd_table rnr_waiters;    /* of struct mrd_rnr_waiter; rnr.c */
    struct mrd_table flows_tx;       /* of struct mrd_flow_tx; tx_flow.c */
    struct mrd_table flows_rx;       /* of struct mrd_flow_rx; rx_flow.c */
    struct mrd_pool reorder_entries; /* of struct mrd_reorder_entry; rx_flow.c */
    struct mrd_pool refusals;        /* of struct mrd_refusal; rx_place.c */
    struct mrd_pool responses;       /* of struct mrd_response; respond.c */
    struct mrd_requests requests;

    /* What is large comes last: what each turn reads lies together. */
    struct mrd_answers answers;
    struct mrd_events events;
    struct mrd_plan plan;
    struct mrd_frags frags;
};

struct mrd_pd_impl {
    struct mrd_pd pub;
    uint32_t users; /* MRs, QPs, AHs */
};

struct mrd_ah_impl {
    struct mrd_ah pub;
    struct mrd_addr addr;
    uint32_t payload_bytes;
    uint8_t dscp;
    bool one_way;
    /* The peer posted to last, wherever it is now: its id, and our name for ourselves to it. */
    uint32_t peer_id, own_inc;
    uint64_t start_ns; /* ordered messages are not sent earlier: see mrd_handle_await() */
};

/* The peer may have something to send: it gets a turn. */
static inline void mrd_tx_ready(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (mrd_list_empty(&peer->ready))
        mrd_list_append(&e->turns.ready, &peer->ready);
}

static inline void mrd_refusal_release(struct mrd_engine *e, struct mrd_peer *peer,
                                       struct mrd_refusal *refusal)
{
    peer->uses.refusals--;
    mrd_pool_release(&e->refusals, refusal);
}

/*
 * Of the context that the peer's packets are sealed by; 0: not known. They have a place for each number of
 * a peer, and not in its entry, which is as large as without them.
 */
static inline uint64_t mrd_peer_life(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    return e->sealed_lives ? e->sealed_lives[peer->id & ((1u << e->peers.index_bits) - 1)] : 0;
}

static inline void mrd_peer_set_life(struct mrd_engine *e, const struct mrd_peer *peer,
                                     uint64_t life)
{
    if (e->sealed_lives)
        e->sealed_lives[peer->id & ((1u << e->peers.index_bits) - 1)] = life;
}

#endif
