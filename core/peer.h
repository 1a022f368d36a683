/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: remote contexts, by address.
 *
 * The entry (struct mrd_peer) is all that an idle peer costs. While data goes to it, it has a send
 * half; while data came from it lately, a receive half. mrd_peer_find() and mrd_peer_add() by
 * address; mrd_peer_tx_begin()/tx_end() and mrd_peer_rx_begin()/rx_end() make and drop the halves.
 * What to do with messages of a dropped half is the engine's.
 *
 * A half names a PSN space: (incarnation, epoch) of its sender. What comes from the peer: NONE ->
 * KNOWN -> TOMB -> NONE; only KNOWN has a receive half. A TOMB's packets are answered with resets.
 */
#ifndef MRD_CORE_PEER_H
#define MRD_CORE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cc.h"
#include "core/flow.h"
#include "core/hash.h"
#include "core/heap.h"
#include "core/ids.h"
#include "core/list.h"
#include "core/loss.h"
#include "core/packet.h"
#include "core/path.h"
#include "core/pool.h"
#include "core/rcv.h"
#include "core/sent.h"
#include "core/slot.h"
#include "core/spray.h"

/*
 * Messages from a queue pair to one of a peer that have something to be sent, or wait for
 * receives there.
 */
struct mrd_txq {
    struct mrd_hash_node by_key;
    struct mrd_node peer_node; /* with something to send: round robin among the peer's */
    struct mrd_node rnr_node;  /* with messages that wait: on the send half's list of those */
    struct mrd_node msgs;      /* not sent yet, or not all of them */
    struct mrd_node retries;   /* to be sent once more, before msgs */
    /* For receives, in the order posted; they hold nothing that others need. */
    struct mrd_node waiting;
    struct mrd_peer *peer;
    uint32_t qpn, remote_qpn;
    uint64_t rnr_at_ns;    /* when the next of those that wait is tried */
    uint32_t rnr_usec;     /* the target's delay between attempts */
    uint8_t rnr_doublings; /* of it */
};

/* A queue pair here refused the peer for want of a receive: tell it when there are some. */
struct mrd_want {
    struct mrd_hash_node by_key;
    struct mrd_node qp_node;   /* on the queue pair's list; those that are due at its end */
    struct mrd_node peer_node; /* on the peer's list of all, or of those to be told */
    struct mrd_peer *peer;
    struct mrd_qp_impl *qp;
    bool due; /* there are receives: the peer is to be told */
};

/* A refusal to be delivered: of up to MRD_PARTS_MAX parts of one received packet. */
struct mrd_refusal {
    struct mrd_node node; /* waits to be sent; on no list while in flight */
    uint32_t epoch, psn;  /* the refused packet's space and PSN */
    uint32_t rnr_usec;
    uint8_t num;
    uint8_t rx_life; /* of the receive half that holds the PSN */
    struct mrd_wire_refusal_entry entry[MRD_PARTS_MAX];
};

/*
 * Whose answer the send half speaks to, and whether the space has begun there. Owned by half.c
 * and contact.c.
 */
struct mrd_tx_contact {
    uint32_t epoch;
    uint64_t epoch_ns; /* when its first packet left; MRD_NEVER: none did */
    uint32_t inc;      /* incarnation that it speaks to; 0: not known yet */
    bool knew_inc;     /* that was known when the epoch began: its life is older than the epoch */
    bool acked_once;   /* the first-contact flag is over */
    /*
     * An empty packet goes first, and all else waits for its answer: so no work is lost if the
     * epoch ends.
     */
    bool hello;
    uint8_t renewals; /* epochs that ended while `hello` */
    bool has_cookie;  /* a challenge was answered with: */
    uint64_t cookie;
};

/* What the peer's acks told last. Owned by rx_ack.c; ask_ns by timer.c. */
struct mrd_tx_told {
    bool valid;         /* an ack came: serial counts */
    uint32_t serial;    /* of the newest ack */
    uint32_t psn_limit; /* granted: PSNs below it */
    uint64_t ask_ns;    /* without a grant: when to ask for one */
    bool delay_base_valid;
    uint32_t delay_base; /* first rx stamp - tx stamp: differences to it do not wrap */
};

/* Packets in a row on one path. Owned by tx_new.c; losses and single_until_ns by rx_ack.c. */
struct mrd_tx_run {
    uint32_t path;            /* index of the path chosen last */
    uint32_t left;            /* packets that may still go on it */
    uint64_t picked_ns;       /* when it was chosen */
    bool path_probed;         /* a path that is out was probed since data was sent */
    uint32_t losses;          /* packets of bursts lost since one of a burst was acked */
    uint64_t single_until_ns; /* packets go alone until then: bursts do not get through */
};

/* Acks asked for. Owned by tx_emit.c. */
struct mrd_tx_request {
    uint32_t packets; /* sent since an ack was last asked for */
    uint32_t psn;     /* of the packet that asked last */
};

/* Packets sent again, or empty, to hear from a silent peer. Owned by timer.c and tx.c. */
struct mrd_tx_probes {
    uint32_t due;     /* tail probes to be sent */
    bool silence_due; /* an empty packet is to be sent */
    bool copy_due;    /* a second copy of copy_psn follows on another path */
    uint32_t copy_psn;
    uint32_t unanswered; /* probes since the peer was last heard */
    /* Present time of the last answer, or of the first packet after all was acked. */
    uint64_t patience_ns;
    uint64_t timeout_ns; /* first RTO of a row, until it is known whether it was needed; 0: none */
    uint64_t last_timeout_ns; /* last RTO */
    double timeout_cwnd;      /* the window before timeout_ns */
    uint64_t stall_seen_ns;   /* the clock's absent_long_ns when `unanswered` was counted */
};

/* Messages that wait for receives. Owned by txq.c. */
struct mrd_tx_rnr {
    struct mrd_node txqs;  /* mrd_txq.rnr_node: queues with such messages */
    uint64_t next_ns;      /* not later than the first attempt due; MRD_NEVER: none */
    uint32_t ready_qpn;    /* of the last READY that came, */
    uint64_t ready_ns;     /* and when it came; 0: none, or it was used */
    struct mrd_txq common; /* where refused messages wait for which there is no queue to be had */
};

struct mrd_tx_half {
    struct mrd_tx_contact contact;
    struct mrd_tx_told told;
    struct mrd_tx_run run;
    struct mrd_tx_request request;
    struct mrd_tx_probes probes;
    struct mrd_tx_rnr rnr;
    bool limited;           /* the window held it back at the last try */
    uint32_t payload_bytes; /* of a packet to this peer, at most */
    uint64_t active_ns;     /* last packet or ack */
    uint64_t sent_ns;       /* when the window last let a packet out */
    uint64_t queued_bytes;  /* of messages on txqs, headers included: is a packet full? */

    struct mrd_sents sent;
    struct mrd_paths paths;
    struct mrd_spray spray;
    struct mrd_cc cc;
    struct mrd_loss loss;
    struct mrd_ids ids;

    struct mrd_node txqs;     /* with something to send, round robin */
    struct mrd_node refusals; /* to be sent */
    struct mrd_node aborts;   /* mrd_msg.node of messages whose ABORT is to be sent */
    struct mrd_node idle;   /* mrd_flow_tx.idle_node: flows without messages, longest idle first */
    struct mrd_node closes; /* the same: whose end is to be told */

    /* config.paths of them; behind them as many mrd_path_load; then the ids. */
    struct mrd_path path[];
};

struct mrd_rx_half {
    uint64_t silence_ns;  /* current interval between silence probes */
    uint64_t probe_at_ns; /* MRD_NEVER: nothing is owed */
    uint32_t call_seq;    /* API call in which wait_for_reply was set */
    uint32_t ack_path;    /* entropy value of the last ack */
    uint64_t share_seen;  /* mrd_share_grant()'s */
    struct mrd_rcv rcv;
    struct mrd_slots slots;
};

enum mrd_space_state { MRD_SPACE_NONE = 0, MRD_SPACE_KNOWN, MRD_SPACE_TOMB };

/* The space of what comes from a peer. */
struct mrd_peer_space {
    uint8_t state;        /* enum mrd_space_state */
    uint8_t life;         /* counts receive halves */
    uint32_t inc, epoch;  /* of the peer, as sender */
    uint64_t patience_ns; /* how long it waits for our acks */
};

/* Records of shared pools that are for a peer. */
struct mrd_peer_uses {
    uint32_t pends, refusals, flows;
    uint32_t gone; /* sum of num_gone of its received flows */
};

struct mrd_peer_count {
    uint64_t packets_sent, packets_retransmitted, packets_spurious, packets_received;
    uint64_t bytes_sent, bytes_received;
    uint64_t lost_by_order, lost_by_rack, probes_tail, timeouts;
};

struct mrd_peer {
    struct mrd_hash_node by_addr;
    struct mrd_node node;    /* on the list of all */
    struct mrd_node ready;   /* may have something to send */
    struct mrd_node suspect; /* acks came since its losses were judged */
    struct mrd_node touched; /* its timer is to be set */
    struct mrd_timer timer;
    struct mrd_addr addr;   /* where it receives */
    struct mrd_addr local;  /* of ours that it addressed; answers leave from it */
    uint32_t id;            /* index in the pool, with a generation in the upper bits */
    uint32_t payload_bytes; /* of a packet to it, at most; 0: the mover's */
    bool given_up;          /* it was unreachable, or restarted, and did not answer since */
    uint64_t heard_ns;
    struct mrd_tx_half *tx; /* NULL: nothing goes to it */
    struct mrd_rx_half *rx; /* with a space that is KNOWN only */
    struct mrd_peer_space space;
    struct mrd_peer_uses uses;
    struct mrd_peer_count count;
    struct mrd_node msgs; /* all live messages to it, by mrd_msg.peer_node */
    struct mrd_node flows_tx, flows_rx;
    struct mrd_node wants, readies; /* mrd_want.peer_node: waiting for receives; to be told */
};

struct mrd_peers {
    struct mrd_pool entries, tx_halves, rx_halves, pages, slots;
    struct mrd_hash by_addr;
    struct mrd_node all;
    const struct mrd_allocator *allocator;
    uint32_t max, index_bits; /* of an id; the upper bits are a generation */
    uint32_t generation;
};

/* An empty queue, on no list. */
void mrd_txq_init(struct mrd_txq *q, struct mrd_peer *peer, uint32_t qpn, uint32_t remote_qpn);

bool mrd_peers_init(struct mrd_peers *peers, const struct mrd_allocator *allocator,
                    uint32_t max_peers, uint32_t max_paths);
void mrd_peers_fini(struct mrd_peers *peers);

struct mrd_peer *mrd_peer_find(const struct mrd_peers *peers, const struct mrd_addr *addr);
struct mrd_peer *mrd_peer_by_id(const struct mrd_peers *peers, uint32_t id);
/* NULL: the table is full. */
struct mrd_peer *mrd_peer_add(struct mrd_peers *peers, const struct mrd_addr *addr);
/* Its halves must be gone. */
void mrd_peer_remove(struct mrd_peers *peers, struct mrd_peer *peer);
/*
 * The send half with its paths, records and lists, nothing sent; never fails: there is one for
 * each entry.
 */
struct mrd_tx_half *mrd_peer_tx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                      uint32_t num_paths, uint32_t tracker,
                                      const struct mrd_tune *tune, uint64_t now_ns);
void mrd_peer_tx_end(struct mrd_peers *peers, struct mrd_peer *peer);
struct mrd_rx_half *mrd_peer_rx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                      uint32_t tracker, uint32_t limit);
/* To NONE or TOMB. */
void mrd_peer_rx_end(struct mrd_peers *peers, struct mrd_peer *peer, enum mrd_space_state state);

#endif
