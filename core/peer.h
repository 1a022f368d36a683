/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer table: entries of remote contexts, by address.
 *
 * A peer is active or idle. What is to be known of an idle one lies in a short record
 * (struct mrd_idle_peer). An active one has an entry (struct mrd_peer); if data goes to it a send
 * state, if data came from it lately a receive state. mrd_peer_find() finds those active by address,
 * mrd_peer_activate() makes an idle one active, mrd_peer_add() makes a new one. mrd_peer_tx_begin() and
 * mrd_peer_rx_begin() make the two states, mrd_peer_tx_end() and mrd_peer_rx_end() end them; the engine
 * deals with their messages.
 *
 * A state belongs to a PSN space: (incarnation, epoch) of its sender. States of the space of
 * received packets: NONE -> KNOWN -> TOMB -> NONE. Only a KNOWN one has a receive state; packets of
 * a TOMB are answered with resets.
 */
#ifndef MRD_CORE_PEER_H
#define MRD_CORE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cc.h"
#include "core/ect.h"
#include "core/flow.h"
#include "core/hash.h"
#include "core/heap.h"
#include "core/ids.h"
#include "core/list.h"
#include "core/loss.h"
#include "core/packet.h"
#include "core/path.h"
#include "core/pmtu.h"
#include "core/pool.h"
#include "core/rcv.h"
#include "core/sent.h"
#include "core/slot.h"
#include "core/spray.h"
#include "core/table.h"

/*
 * A send queue: messages from one queue pair to one of a peer that have bytes to send, or wait for
 * receives there.
 */
struct mrd_txq {
    struct mrd_hash_node by_key;
    struct mrd_node peer_node; /* with bytes to send: on mrd_send_state.txqs, served round robin */
    struct mrd_node rnr_node;  /* with messages in `waiting`: on mrd_tx_rnr.txqs */
    struct mrd_node msgs;      /* not sent yet, or only in part */
    struct mrd_node retries;   /* next attempts of refused messages; sent before msgs */
    /* Messages that wait for receives, in the order posted; they hold no id and no packet. */
    struct mrd_node waiting;
    struct mrd_peer *peer;
    uint32_t qpn, remote_qpn;
    bool responses;        /* of responses: requests that wait are not in their way */
    bool common;           /* of messages without a queue of their own: mrd_tx_rnr.common */
    uint64_t rnr_at_ns;    /* when the first of `waiting` is sent again */
    uint32_t rnr_usec;     /* RNR delay of the target between attempts */
    uint8_t rnr_doublings; /* doublings of rnr_usec */
    /* The remote queue pair takes nothing yet, not even what needs no receive: that waits, too. */
    bool shut;
};

/*
 * A queue pair here refused a message of the peer for want of a receive: send the peer a READY when
 * there are some.
 */
struct mrd_rnr_waiter {
    struct mrd_hash_node by_key;
    struct mrd_node queue_node; /* on `rnr_waiters` of what it waits for */
    struct mrd_node qp_node;    /* on mrd_qp_impl.rnr_waiters */
    struct mrd_node peer_node;  /* on mrd_peer.rnr_waiters, or on mrd_peer.readies: to be told */
    struct mrd_peer *peer;
    struct mrd_qp_impl *qp;
    uint32_t receives; /* how many it is to be told of; 0: none yet */
    bool admitted;     /* `qp` took no messages until now: it is told of that, receives or not */
};

/* A refusal to be delivered, of up to MRD_PARTS_MAX parts of one received packet. */
struct mrd_refusal {
    struct mrd_node node; /* on mrd_send_state.refusals; on no list while in flight */
    uint32_t epoch, psn;  /* the refused packet's space and PSN */
    uint32_t rnr_usec;
    uint8_t num;
    uint8_t rx_life; /* space.life of the receive state that the PSN belongs to */
    struct mrd_wire_refusal_entry entry[MRD_PARTS_MAX];
};

/*
 * Which incarnation the send state sends to, and whether that one knows our space. Owned by peer_state.c
 * and contact.c.
 */
struct mrd_tx_contact {
    uint32_t epoch;
    uint32_t inc;      /* incarnation of the peer that it sends to; 0: not known yet */
    uint64_t epoch_ns; /* when the epoch's first packet left; MRD_NEVER: none did */
    bool knew_inc;     /* inc was known when the epoch began: that life is older */
    bool acked_once;   /* a packet was acked: no first-contact flag any more */
    /* Only an empty packet goes before the first answer: no work is lost if the epoch ends. */
    bool hello;
    uint8_t renewals; /* epochs that ended during `hello` */
    /* Reports that nobody listens there, up to MRD_REFUSED_MIN; they count until it is heard. */
    uint8_t refused;
    bool busy;           /* the peer had no room for us */
    bool has_cookie;     /* packets carry `cookie`, a challenge's */
    bool proves;         /* the next empty packet does, to show where we are */
    uint64_t refused_ns; /* the first of the reports */
    uint64_t cookie;
};

/* What the peer's newest ack said. Owned by rx_ack.c; grant_ask_ns by timer.c. */
struct mrd_tx_told {
    bool valid;     /* an ack arrived: `serial` is valid */
    bool unchecked; /* the peer takes payloads without a check */
    bool delay_base_valid;
    uint32_t stamp;        /* of the newest packet that acked */
    uint64_t stamp_ns;     /* when the last one that acked came */
    uint32_t serial;       /* of the newest ack */
    uint32_t psn_limit;    /* the peer grants PSNs below it */
    uint32_t tracker;      /* PSNs that it surely tracks: as many as it once granted, or ours */
    uint32_t delay_base;   /* first rx stamp - tx stamp; differences from it do not wrap */
    uint64_t grant_ask_ns; /* when to ask for a grant if there is none */
};

/*
 * The current quantum: packets in a row on one path. Owned by tx_new.c; losses and single_until_ns
 * by rx_ack.c.
 */
struct mrd_tx_run {
    uint32_t path;            /* index of the path chosen last */
    uint32_t left;            /* packets of the quantum that are left */
    uint64_t picked_ns;       /* when it was chosen */
    bool path_probed : 1;     /* a path that is not GOOD was probed since data was sent */
    bool limited : 1;         /* the window, or its pace, stopped the last attempt to send */
    bool full : 1;            /* it was full when an ack came, since data was sent; by rx_ack.c */
    bool wants_more : 1;      /* the grant stopped an attempt to send that the window did not */
    uint16_t quantum;         /* packets in a burst, at most: it follows from pmtu.payload */
    uint32_t losses;          /* packets of bursts lost since a packet of a burst was acked */
    uint64_t single_until_ns; /* until then packets go alone, not in bursts */
};

/* Acks asked for. Owned by tx_emit.c. */
struct mrd_tx_request {
    uint32_t packets; /* packets sent since one last requested an ack */
    uint32_t psn;     /* PSN of that packet */
};

/* Tail loss probes, RTOs and silence probes. Owned by timer.c and tx.c. */
struct mrd_tx_probes {
    uint32_t due;        /* copies of a tail loss probe to be sent */
    bool silence_due;    /* a silence probe, an empty packet, is to be sent */
    bool timeout_start;  /* slow start was on before the RTO of timeout_ns */
    bool copy_due;       /* a second copy of copy_psn is to be sent on another path */
    uint8_t of_pieces;   /* tail probes in a row, after the first, of copy_psn in pieces */
    uint32_t copy_psn;   /* of the last retransmission */
    uint32_t unanswered; /* probes since the peer was last heard from */
    /* Start of the silence, stalls not counted: last answer, or first packet in flight. */
    uint64_t silent_since_ns;
    uint64_t timeout_ns;      /* first RTO in a row, while it may be spurious; 0: none */
    uint64_t last_timeout_ns; /* last RTO */
    double timeout_cwnd;      /* window before that RTO */
    uint64_t stall_seen_ns;   /* mrd_clock.absent_long_ns when `unanswered` was counted */
    uint64_t answer_ns;       /* silence before the next probe of a peer that owes responses */
};

/* Messages that wait for receives. Owned by txq.c. */
struct mrd_tx_rnr {
    struct mrd_node txqs; /* mrd_txq.rnr_node: queues with such messages */
    uint64_t next_ns;     /* lower bound of the txqs' rnr_at_ns; MRD_NEVER: none */
    uint32_t ready_qpn;   /* queue pair of the last READY received */
    uint64_t ready_ns;    /* when it was received; 0: none, or it was used */
    /* Refused messages wait here if no mrd_txq is free, responses in [1]; NULL: none did. */
    struct mrd_txq *common[2];
};

struct mrd_send_state {
    struct mrd_tx_contact contact;
    struct mrd_tx_told told;
    struct mrd_tx_run run;
    struct mrd_tx_request request;
    struct mrd_tx_probes probes;
    struct mrd_tx_rnr rnr;
    struct mrd_pmtu pmtu; /* most payload of a packet to this peer */
    uint64_t active_ns;   /* time of the last packet sent or ack received */
    uint64_t sent_ns;     /* when the window last let a packet out; if paced: was to let it out */
    /* Bytes of messages on txqs, part headers included: do they fill a packet? */
    uint64_t queued_bytes;

    struct mrd_sents sent;
    struct mrd_paths paths;
    struct mrd_spray spray;
    struct mrd_cc cc;
    struct mrd_loss loss;
    struct mrd_ids ids;

    struct mrd_node txqs;     /* send queues with bytes to send, round robin */
    struct mrd_node refusals; /* to be sent */
    struct mrd_node aborts;   /* mrd_msg.node: messages whose ABORT is to be sent */
    struct mrd_node idle;   /* mrd_flow_tx.idle_node: flows without messages, longest idle first */
    struct mrd_node closes; /* mrd_flow_tx.idle_node: flows whose CLOSE is to be sent */

    /*
     * mrd_paths.path at first: min(num_paths, MRD_PATHS_FIRST) of them; behind them as many struct
     * mrd_path_load, then mrd_spray.cache.
     */
    struct mrd_path path[];
};

struct mrd_recv_state {
    uint64_t silence_ns;  /* current interval between silence probes */
    uint64_t probe_at_ns; /* time of the next silence probe; MRD_NEVER: the peer owes nothing */
    uint32_t call_seq;    /* API call in which wait_for_reply was set */
    uint32_t share_seen;  /* argument of mrd_share_grant() */
    uint16_t ack_path;    /* entropy value that the last ack left by */
    /* What the peer is granted beyond its share. Owned by grant.c. */
    uint8_t doublings;  /* of the share */
    bool wants_more;    /* it said so since the last ack */
    uint32_t asks_from; /* new packets below this PSN left before it heard of its grant */
    struct mrd_rcv rcv;
    struct mrd_slots slots;
};

enum mrd_space_state { MRD_SPACE_NONE = 0, MRD_SPACE_KNOWN, MRD_SPACE_TOMB };

/* The space of packets from a peer. */
struct mrd_peer_space {
    uint8_t state;     /* enum mrd_space_state */
    uint8_t life;      /* number of receive states so far, modulo 256 */
    uint32_t replaced; /* the number of the last life that took another one's place; 0: none did */
    uint32_t inc, epoch;     /* of the peer as sender */
    uint64_t max_unacked_ns; /* how long the peer waits for our acks before it gives up */
};

/* Records of shared pools in use for a peer. */
struct mrd_peer_uses {
    uint32_t reorder_entries, refusals, flows;
    uint32_t requests;  /* reads and atomics to it that are not answered */
    uint32_t held;      /* messages to it that their queue pairs keep back */
    uint32_t responses; /* to requests of it */
    uint32_t turns;     /* of these: to requests that wait for their turn in the order */
    uint32_t gone;      /* sum of num_gone of its mrd_flow_rx */
};

/* The user is to be told when the peer goes away, or comes back as another. Owned by peer_state.c. */
struct mrd_peer_watch {
    uint32_t users; /* 0: it is not watched */
    uint32_t inc;   /* incarnation that answered; 0: none did yet */
};

struct mrd_peer_count {
    uint64_t packets_sent, packets_retransmitted, packets_spurious, packets_received;
    uint64_t bytes_sent, bytes_received;
    uint64_t lost_by_order, lost_by_rack, probes_tail, timeouts;
};

/*
 * What the two contexts of a pair know each other by, here: our names for ourselves. No third one is
 * told them. They follow from the address that the entry was made for, and stay when the peer moves.
 */
struct mrd_pair {
    uint32_t own_inc;    /* our incarnation, as the peer is told it */
    uint32_t epoch_base; /* added to the context's count of epochs */
};

/* Where a peer is whose address changes. Owned by address.c. */
struct mrd_peer_place {
    uint32_t stamp;     /* newest that came from mrd_peer.addr; 0: none */
    uint32_t inc;       /* the life that it is of: another one has another clock */
    uint64_t heard_ns;  /* when a packet came from mrd_peer.addr last */
    uint64_t asked_ns;  /* when it was last asked if it is elsewhere, or showed that; 0: never */
    uint64_t tried_ns;  /* when another address of ours was last tried; 0: never */
    uint8_t own_ip[16]; /* our address that the peer's packets come to; 0: it is not known */
};

struct mrd_peer {
    struct mrd_hash_node by_addr;
    struct mrd_hash_node by_own; /* by pair.own_inc */
    struct mrd_node node;        /* on mrd_peers.active */
    struct mrd_node ready;       /* on the list of peers with something to send */
    struct mrd_node suspect; /* on the list of peers with acks since losses were last looked for */
    struct mrd_node touched; /* on the list of peers whose timer is to be set */
    struct mrd_timer timer;
    struct mrd_addr addr;  /* where it receives */
    struct mrd_addr local; /* our address that it sends to; packets to it leave from there */
    struct mrd_pair pair;
    struct mrd_peer_place place;
    uint32_t id;            /* number in mrd_peers, with a generation in the upper bits */
    uint16_t payload_bytes; /* of a packet to it, at most; 0: the usual one */
    uint8_t dscp;           /* of packets to it: of the address handle last posted with */
    bool one_way : 1;       /* likewise: they all take one way, whatever their path */
    bool given_up : 1;      /* it was unreachable, or restarted, and was not heard from since */
    bool route_asked : 1;   /* the mover was asked what its route takes */
    bool own_way : 1;   /* somebody answered it since it gave way: handles do not follow its heir */
    struct mrd_ect ect; /* owned by timer.c, tx_emit.c, rx_ack.c and rx.c */
    uint64_t heard_ns;
    /*
     * When a space was given up in which ordered messages had been sent: for a packet's life, copies of them
     * may come to their target. 0: never. Owned by peer_state.c.
     */
    uint64_t failed_ns;
    uint64_t guesses_ns;       /* when the refusals of its wrong keys so far are within the rate */
    struct mrd_send_state *tx; /* NULL: nothing is sent to it */
    struct mrd_recv_state *rx; /* only if space.state is KNOWN */
    struct mrd_peer_space space;
    struct mrd_peer_uses uses;
    struct mrd_peer_watch watch;
    uint32_t heir;       /* id of the entry that this one gave way to last; 0: to none */
    uint32_t failed_inc; /* of the peer in that space */
    struct mrd_peer_count count;
    struct mrd_node msgs; /* all live messages to it, by mrd_msg.peer_node */
    struct mrd_node flows_tx, flows_rx;
    /* mrd_rnr_waiter.peer_node: waiting for receives here; READY to be sent. */
    struct mrd_node rnr_waiters, readies;
};

/* Was anything received from the peer that shows that it is there? It has a send state. */
static inline bool mrd_peer_was_heard(const struct mrd_peer *peer)
{
    return peer->tx->contact.inc || peer->space.state != MRD_SPACE_NONE;
}

/* An idle peer: no send or receive state, no message, no space of its packets. */
struct mrd_idle_peer {
    struct mrd_addr addr, local;
    struct mrd_pair pair;
    struct mrd_peer_count count;
    uint64_t heard_ns;
    uint32_t id; /* 0: the peer of this number is not idle */
    /* In its buckets, by address and by pair.own_inc: number + 1 of the next one; 0: none. */
    uint32_t next, next_own;
    uint16_t payload_bytes;
    uint8_t dscp : 6, given_up : 1, one_way : 1;
    /* Of tests that failed, 63 at most are told. */
    uint8_t ect_failed : 6, ect_off : 1, ect_acks_off : 1;
};

/* A host with active peers. */
struct mrd_host {
    struct mrd_hash_node by_key;
    uint64_t prefix[2];
    uint32_t peers;
};

struct mrd_peers {
    struct mrd_pool entries, send_states, recv_states, pages, slots;
    /* A peer has a number for life: the index of its item here, untouched before it is idle. */
    struct mrd_pool idle;
    struct mrd_peer **by_number; /* NULL: it is idle, or there is none */
    uint32_t *idle_bucket;       /* of idle ones, by address: number + 1; 0: none */
    uint32_t rest_mask;          /* number of buckets - 1 */
    uint32_t num_idle, hand;     /* hand: where mrd_peer_forget() looks next */
    struct mrd_rcv_maps maps;
    struct mrd_pool words;   /* mrd_slots.words */
    struct mrd_pool commons; /* mrd_tx_rnr.common */
    struct mrd_hash by_addr, by_own;
    struct mrd_table hosts; /* of struct mrd_host: how many of those active each host has */
    struct mrd_node active; /* those looked at longest ago first: mrd_peers_sweep() */
    uint64_t swept_ns;      /* when some were looked at; peer_state.c */
    const struct mrd_allocator *allocator;
    uint32_t max, index_bits; /* most peers; low bits of an id that are its index */
    uint32_t tracker;         /* PSNs in flight from a peer, at first */
    uint32_t generation;
    uint64_t full_ns; /* nobody can be evicted before this time; peer_state.c */
};

/* Returns mrd_tx_rnr.common[responses], which it makes if there is none. Never fails. */
struct mrd_txq *mrd_peer_common(struct mrd_peers *peers, struct mrd_peer *peer, bool responses);
/* Initializes an empty send queue on no list. */
void mrd_txq_init(struct mrd_txq *q, struct mrd_peer *peer, uint32_t qpn, uint32_t remote_qpn);

/* cache: send states need mrd_spray.cache. */
bool mrd_peers_init(struct mrd_peers *peers, const struct mrd_allocator *allocator,
                    uint32_t max_peers, uint32_t max_paths, uint32_t tracker, bool cache);
void mrd_peers_fini(struct mrd_peers *peers);

static inline bool mrd_peer_has_state(const struct mrd_peer *peer)
{
    return peer->tx || peer->space.state == MRD_SPACE_KNOWN;
}
/*
 * Those that are active; NULL: none. Of several at one address, which reach us at different addresses
 * of ours, the newest that has a send or receive state.
 */
struct mrd_peer *mrd_peer_find(const struct mrd_peers *peers, const struct mrd_addr *addr);
/* All of them, one after the other. */
struct mrd_peer *mrd_peer_first(const struct mrd_peers *peers, const struct mrd_addr *addr);
struct mrd_peer *mrd_peer_next(const struct mrd_peer *peer);
/* Returns the same for all addresses of a host: of an IPv6 prefix of 64 bits. */
uint64_t mrd_peer_hash_host(const struct mrd_addr *addr);
/* Does the peer call itself so in its space, or in what it answered to our send state? */
bool mrd_peer_speaks_as(const struct mrd_peer *peer, uint32_t inc);
/*
 * The peer that speaks as `inc` to us, whom it knows as `own_inc`: at that address if there is one,
 * else wherever it was when it was last heard. If there is none, the peer at that address. `own_inc`
 * 0: it says no name, and is looked for at that address only.
 */
struct mrd_peer *mrd_peer_find_pair(const struct mrd_peers *peers, const struct mrd_addr *addr,
                                    uint32_t own_inc, uint32_t inc);
/* How many entries call us by that name. */
uint32_t mrd_peers_named(const struct mrd_peers *peers, uint32_t own_inc);
/*
 * For cookies: a value that differs, and does not come back, after each life that takes another one's place
 * among the entries that call us by that name. `other`: the life whose place is to be taken now; 0: none.
 */
uint32_t mrd_peer_lives(const struct mrd_peers *peers, uint32_t own_inc, uint32_t other);
/* Another entry that speaks as `inc` to whom it knows by the name that `peer` does; NULL: none. */
struct mrd_peer *mrd_peer_namesake(const struct mrd_peers *peers, const struct mrd_peer *peer,
                                   uint32_t inc);
struct mrd_peer *mrd_peer_by_id(const struct mrd_peers *peers, uint32_t id);
/* Adds a peer that is not known yet; NULL: the table is full. */
struct mrd_peer *mrd_peer_add(struct mrd_peers *peers, const struct mrd_addr *addr);
/* The peer that we sent to in that epoch, as `own_inc`, and that did not answer yet; NULL: none. */
struct mrd_peer *mrd_peer_find_asked(const struct mrd_peers *peers, uint32_t own_inc,
                                     uint32_t epoch);
/* Do we call ourselves so to a peer that is active? */
bool mrd_peer_has_name(const struct mrd_peers *peers, uint32_t own_inc);
/* Gives an entry its names. */
void mrd_peer_name(struct mrd_peers *peers, struct mrd_peer *peer, struct mrd_pair pair);
/* The peer is at another address from now on. */
void mrd_peer_move(struct mrd_peers *peers, struct mrd_peer *peer, const struct mrd_addr *addr);
/* Returns how many peers that are active have this host's address; for IPv6, its first 64 bits. */
uint32_t mrd_peers_of_host(const struct mrd_peers *peers, const struct mrd_addr *addr);
/* The peer is idle from now on: its states have ended, and nothing of it is left. */
void mrd_peer_make_idle(struct mrd_peers *peers, struct mrd_peer *peer);
/* Returns the record of an idle peer, valid while it is idle; NULL: none of that address is. */
const struct mrd_idle_peer *mrd_peer_find_idle(const struct mrd_peers *peers,
                                               const struct mrd_addr *addr);
/*
 * Is it what a peer at another address, active or idle, knows us as? It moved there, or the name came
 * out the same by chance.
 */
bool mrd_peer_is_named_elsewhere(const struct mrd_peers *peers, uint32_t own_inc,
                                 const struct mrd_addr *addr);
/* The same by id. */
const struct mrd_idle_peer *mrd_peer_idle_by_id(const struct mrd_peers *peers, uint32_t id);
/* Makes the idle peer of an address active, with its id; NULL: none is idle. */
struct mrd_peer *mrd_peer_activate(struct mrd_peers *peers, const struct mrd_addr *addr);
/* Forgets an idle peer, to make room. Returns false if there is none. */
bool mrd_peer_forget(struct mrd_peers *peers);
/* Returns how many peers there may be beside those that are active: others can be forgotten. */
static inline uint32_t mrd_peers_room(const struct mrd_peers *peers)
{
    return mrd_pool_free(&peers->entries);
}
/* Removes an entry whose states have ended. */
void mrd_peer_remove(struct mrd_peers *peers, struct mrd_peer *peer);
/* Makes the send state with its paths, records and lists. Never fails: each entry has one. */
struct mrd_send_state *mrd_peer_tx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                         uint32_t num_paths, const struct mrd_tune *tune,
                                         uint64_t now_ns);
void mrd_peer_tx_end(struct mrd_peers *peers, struct mrd_peer *peer);
/* limit: see mrd_rcv_init(). */
struct mrd_recv_state *mrd_peer_rx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                         uint32_t limit);
/* Returns the bytes that the peer's states take, with what they allocated and took from pools. */
uint64_t mrd_peer_bytes(const struct mrd_peers *peers, const struct mrd_peer *peer);
/* Ends the receive state if there is one; `state` is NONE or TOMB. */
void mrd_peer_rx_end(struct mrd_peers *peers, struct mrd_peer *peer, enum mrd_space_state state);

#endif
