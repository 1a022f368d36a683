/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: remote contexts, by address.
 *
 * The entry (struct mrd_peer) is all that an idle peer costs. While data goes to it, it has a send half; while data
 * came from it lately, a receive half. mrd_peer_find() and mrd_peer_add() by address; mrd_peer_tx_begin()/tx_end() and
 * mrd_peer_rx_begin()/rx_end() make and drop the halves. What to do with messages of a dropped half is the engine's.
 *
 * A half names a PSN space: (incarnation, epoch) of its sender. Receive half: NONE -> HELD -> TOMB -> NONE; a TOMB
 * answers its packets with a reset.
 */
#ifndef MRD_CORE_PEER_H
#define MRD_CORE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cc.h"
#include "core/flow.h"
#include "core/hash.h"
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

/* Messages from a queue pair to one of a peer that have something to be sent, or wait for receives there. */
struct mrd_txq {
    struct mrd_hash_node by_key;
    struct mrd_node peer_node; /* with something to send: round robin among the peer's */
    struct mrd_node rnr_node;  /* with messages that wait: on the send half's list of those */
    struct mrd_node msgs;      /* not sent yet, or not all of them */
    struct mrd_node retries;   /* to be sent once more, before msgs */
    struct mrd_node
        waiting; /* for receives, in the order posted; they hold nothing that others need */
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

struct mrd_tx_half {
    uint32_t epoch;
    uint32_t bound_inc; /* incarnation that it speaks to; 0: not known yet */
    bool acked_once;    /* the first-contact flag is over */
    bool knew_inc;      /* bound_inc was known when the epoch began: its life is older than that */
    /* An empty packet went first, and all else waits for its answer: whatever becomes of the epoch, no work is lost. */
    bool hello;
    uint8_t renewals; /* epochs that ended while `hello` */
    bool ack_seen;    /* ack_serial is valid */
    bool limited;     /* the window held it back at the last try */
    uint64_t cookie;
    bool has_cookie;
    uint64_t epoch_ns;  /* first packet; MRD_NEVER: none yet */
    uint64_t active_ns; /* last packet or ack */
    uint64_t ask_ns;    /* without a grant: when to ask for one */
    uint32_t ack_serial;
    uint32_t psn_limit;
    uint32_t payload_bytes;   /* of a packet to this peer */
    uint64_t single_until_ns; /* packets go alone till then: bursts do not get through */
    uint32_t since_request;   /* packets since an ack was last asked for */
    uint32_t run_losses;      /* packets of bursts lost since one of a burst was acked */
    uint32_t request_psn;     /* of the packet that asked last */
    uint32_t quantum_left;    /* packets that may still go on path_now */
    uint32_t path_now;
    uint64_t picked_ns; /* when path_now was chosen */
    bool path_probed;   /* the probe of a path left since data did */
    bool copy_due;      /* a second copy of copy_psn follows on another path */
    uint32_t copy_psn;
    uint32_t probes_due; /* tail probes to be sent */
    bool silence_probe;  /* an empty packet is due */
    uint64_t sent_ns;    /* when the window last let a packet out */
    uint32_t unanswered; /* probes since the peer was last heard */
    /* Present time of the last answer, or of the first packet after all was acked. */
    uint64_t patience_ns;
    uint64_t timeout_ns; /* first RTO of a row, until it is known whether it was needed; 0: none */
    uint64_t last_timeout_ns; /* last RTO */
    double timeout_cwnd;      /* the window before it */
    uint64_t stall_seen_ns;   /* engine's absent_long_ns when `unanswered` was counted */
    uint64_t rnr_next_ns;     /* not later than the first attempt due; MRD_NEVER: none */
    uint64_t queued_bytes;    /* of messages on txqs, headers included: is a packet full? */

    struct mrd_sents sent;
    struct mrd_paths paths;
    struct mrd_spray spray;
    struct mrd_cc cc;
    struct mrd_loss loss;

    struct mrd_node txqs;     /* with something to send, round robin */
    struct mrd_node refusals; /* to be sent */
    struct mrd_node aborts;   /* mrd_msg.node of messages whose ABORT is to be sent */
    struct mrd_node idle;   /* mrd_flow_tx.idle_node: flows without messages, longest idle first */
    struct mrd_node closes; /* the same: whose end is to be told */
    struct mrd_node rnr;    /* mrd_txq.rnr_node: those with messages that wait for receives */
    uint32_t ready_qpn;     /* of the last READY that came, */
    uint64_t ready_ns;      /* and when */
    struct mrd_txq common;  /* where refused messages wait for which there is no queue to be had */
    struct mrd_ids ids;

    bool delay_base_valid;
    uint32_t delay_base; /* first rx stamp - tx stamp: differences to it do not wrap */

    struct mrd_path
        path[]; /* config.paths of them; behind them as many mrd_path_load; then the ids */
};

struct mrd_rx_half {
    uint64_t silence_ns;  /* current interval between silence probes */
    uint64_t probe_at_ns; /* MRD_NEVER: nothing is owed */
    uint32_t call_seq;    /* API call in which wait_for_reply was set */
    uint32_t ack_path;    /* entropy value of the last ack */
    uint64_t share_seen;  /* period in which it counted as an active sender */
    struct mrd_rcv rcv;
    struct mrd_slots slots;
};

enum mrd_rx_state { MRD_RX_NONE = 0, MRD_RX_HELD, MRD_RX_TOMB };

struct mrd_peer {
    struct mrd_hash_node by_addr;
    struct mrd_node ready;   /* may have something to send */
    struct mrd_node suspect; /* acks came since its losses were judged */
    struct mrd_node touched; /* its timer is to be set */
    struct mrd_node node;    /* on the engine's list of all */
    struct mrd_addr addr;    /* where it receives */
    struct mrd_addr local;   /* of ours that it addressed; answers leave from it */
    uint32_t id;             /* index in the pool, with a generation in the upper bits */
    uint32_t payload_bytes;  /* 0: the mover's */
    uint8_t rx_state;        /* enum mrd_rx_state */
    uint8_t rx_life;         /* counts receive halves */
    bool given_up;           /* it was unreachable, or restarted, and did not answer since */
    uint32_t rx_inc, rx_epoch;
    uint64_t rx_patience_ns; /* how long the sender of that space waits for acks */
    uint32_t num_pends, num_refusals, num_flows_rx; /* records of shared pools that are for it */
    uint32_t num_gone;                              /* num_gone of all its received flows */
    uint64_t heard_ns;
    struct mrd_tx_half *tx;
    struct mrd_rx_half *rx; /* HELD only */
    struct mrd_node msgs;   /* all live messages to it, by mrd_msg.peer_node */
    struct mrd_node flows_tx, flows_rx;
    struct mrd_node wants, readies; /* mrd_want.peer_node: waiting for receives; to be told */
    uint32_t heap_index;            /* in the timer heap; UINT32_MAX: not in it */
    uint64_t timer_ns;

    uint64_t packets_sent, packets_retransmitted, packets_spurious, packets_received;
    uint64_t bytes_sent, bytes_received;
    uint64_t lost_by_order, lost_by_rack, probes_tail, timeouts;
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
/* The send half with its paths, records and lists, nothing sent; never fails: there is one for each entry. */
struct mrd_tx_half *mrd_peer_tx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                      uint32_t num_paths, uint32_t tracker,
                                      const struct mrd_tune *tune, uint64_t now_ns);
void mrd_peer_tx_end(struct mrd_peers *peers, struct mrd_peer *peer);
struct mrd_rx_half *mrd_peer_rx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                      uint32_t tracker, uint32_t limit);
/* To NONE or TOMB. */
void mrd_peer_rx_end(struct mrd_peers *peers, struct mrd_peer *peer, enum mrd_rx_state state);

#endif
