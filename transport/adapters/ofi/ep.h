/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints. Each is a context of mrd with two queue pairs: one for messages (wire.h), in order if
 * the application asks for that, and one for reads and writes, which have none.
 *
 * An operation (struct mrd_ofi_op) is what the application, or the provider for itself, has under
 * way: it is taken from a pool, posts one or more work requests, and ends when their completions
 * and, if it waits for one, the peer's answer have come.
 */
#ifndef MRD_OFI_EP_H
#define MRD_OFI_EP_H

#include "transport/adapters/ofi/keys.h"
#include "transport/adapters/ofi/ofi.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/rx.h"
#include "transport/adapters/ofi/wire.h"

/* ---------------------------------------------------------------------------------------- peers */

/* A context that messages go to or come from. */
struct mrd_ofi_peer {
    struct mrd_node by_addr; /* on a bucket of mrd_ofi_peers */
    union mrd_ofi_addr addr;
    struct mrd_ah *ah;
    char text[MRD_ADDRESS_MAX];
    fi_addr_t fi_addr;   /* as of... */
    uint32_t av_version; /* ...that state of the AV */
    /* While operations wait for an answer, mrd_ofi_op.answer_node, or receives for its messages, it
     * is watched. */
    struct mrd_node answers;
    struct mrd_node expected_node; /* on mrd_ofi_peers.expected */
    struct mrd_node receives;      /* for its messages only: mrd_ofi_rx.from_node, as posted */
    struct mrd_node heard_node;    /* on mrd_ofi_peers.heard */
    bool heard;                    /* a message came, or was acked */
    bool receives_ended;           /* when it was lost last: the application knows of that */
    bool watched;
    bool lost;                      /* and the user was told */
    struct mrd_node unwatched_node; /* on mrd_ofi_peers.unwatched: it could not be watched yet */
    struct mrd_ofi_keys keys;
};

/* What is remembered of a number that completions name a peer by. */
struct mrd_ofi_peer_id {
    uint32_t id;
    struct mrd_ofi_peer *peer;
};

struct mrd_ofi_peers {
    struct mrd_node *bucket;
    uint32_t num, num_buckets;
    struct mrd_ofi_peer **by_fi_addr; /* as of av_version; NULL: look it up */
    uint32_t num_by_fi_addr, av_version;
    struct mrd_ofi_peer_id *by_id; /* a power of two of slots; a newer one takes the place */
    uint32_t num_by_id;
    struct mrd_node unwatched; /* mrd_ofi_peer.unwatched_node */
    struct mrd_node expected;  /* mrd_ofi_peer.expected_node: receives wait for it, or did lately */
    struct mrd_node heard;     /* mrd_ofi_peer.heard_node: for the first time, and not noted yet */
    uint64_t swept_ns;         /* when those were looked through that did */
    uint32_t num_lost;         /* that the user was told of */
    bool hinted;               /* the user was told how to choose another interface */
};

int mrd_ofi_peers_init(struct mrd_ofi_ep *ep);
void mrd_ofi_peers_fini(struct mrd_ofi_ep *ep);
/* The peer of an fi_addr. NULL: there is no such address, or it cannot be reached. */
struct mrd_ofi_peer *mrd_ofi_peer_get(struct mrd_ofi_ep *ep, fi_addr_t fi_addr);
/* The sender of a received message. NULL: it is forgotten already. */
struct mrd_ofi_peer *mrd_ofi_peer_of(struct mrd_ofi_ep *ep, uint32_t peer_id);
struct mrd_ofi_peer *mrd_ofi_peer_by_text(struct mrd_ofi_ep *ep, const char *text);
/* It does not answer: tells the user, once for each of a few peers. */
void mrd_ofi_peer_lost(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* hint.c: it was never heard of. Tells the user, once, if another network interface may lead to it. */
void mrd_ofi_peer_hint(struct mrd_ofi_ep *ep, const struct mrd_ofi_peer *peer);
/* Does anything wait for it? */
static inline bool mrd_ofi_peer_is_awaited(const struct mrd_ofi_peer *peer)
{
    return !mrd_list_empty(&peer->answers) || !mrd_list_empty(&peer->expected_node);
}

/*
 * A receive is posted that takes messages of this peer only. A peer that was heard of is watched
 * from then on: one that never was may have yet to start.
 */
void mrd_ofi_peer_expect(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx);

/* Before operations wait for the peer, and after events so far are dealt with. */
void mrd_ofi_peer_watch(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* Ends that, unless something waits for it. */
void mrd_ofi_peer_watch_no_more(struct mrd_ofi_peer *peer);
/* Also if it seems to be watched already: the event that ended that may be lost. */
void mrd_ofi_peer_watch_again(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* Watches those that are to be, and from time to time no more those that nothing waits for. */
void mrd_ofi_peers_watch(struct mrd_ofi_ep *ep);

/* A message of it came, or it acked one: mrd_ofi_peers_note_heard() notes that, later. */
void mrd_ofi_peer_heard_first(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
static inline void mrd_ofi_peer_heard(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (!peer->heard)
        mrd_ofi_peer_heard_first(ep, peer);
}

/* Notes of which peers something was heard. Events so far are dealt with. */
void mrd_ofi_peers_note_heard(struct mrd_ofi_ep *ep);

/* Peers that something waits for: calls `f` for each. */
void mrd_ofi_peers_each_awaited(struct mrd_ofi_ep *ep,
                                void (*f)(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer));
/* Its fi_addr now; FI_ADDR_NOTAVAIL: it is not in the AV. */
fi_addr_t mrd_ofi_peer_fi_addr(const struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);

/* ----------------------------------------------------------------------------------- operations */

/* What completions of messages without an operation are known by; others by the operation. */
enum { MRD_OFI_INTERNAL = 1, MRD_OFI_INJECTED_MSG, MRD_OFI_INJECTED_TAGGED };

enum {
    MRD_OFI_SGE_MAX = MRD_OFI_IOV_MAX + 1, /* a head, and a buffer's list */
    /* The largest head that is kept in an operation: with the ranges of a list. */
    MRD_OFI_OP_HEAD =
        sizeof(struct mrd_ofi_wire_head) + MRD_OFI_IOV_MAX * sizeof(struct mrd_ofi_wire_range),
    MRD_OFI_RX_POLL = 32,  /* completions taken at a time */
    MRD_OFI_RX_SPENT = 32, /* buffers that wait to be posted again */
};

struct mrd_ofi_op {
    struct mrd_node node;        /* free; unposted; waits for a key; or ended */
    struct mrd_node answer_node; /* on mrd_ofi_peer.answers */
    /* Posts it, or more of it. Returns false if it must wait for room. */
    bool (*post)(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
    /* The key that it waited for is known. */
    void (*resume)(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
    /* It has ended, by `error` or well: releases it, or begins it again. */
    void (*done)(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
    uint32_t id;      /* index in mrd_ofi_ops, and a generation in the upper bits; never 0 */
    uint32_t pending; /* work requests whose completion is to come, and 1 for an unposted message */
    struct mrd_ofi_peer *peer;
    bool answered;     /* waits for no answer, or has it */
    bool expects_done; /* the answer is a DONE */
    bool unposted;     /* a transfer: some of it waits for room */
    bool injected;     /* the application waits for nothing: a closing endpoint does */
    bool asked_again;  /* RMA: keys were asked for a second time */
    bool offers;       /* its registrations are for the peer to read: they end with the answer */
    uint16_t notes;    /* RMA: flags of the NOTE that follows; 0: none */
    int error;         /* first FI_ error number; 0: none */
    int status;        /* enum mrd_wc_status of it */

    /* What the application is told. */
    void *context;
    uint64_t flags; /* FI_SEND | FI_MSG ..., of the completion */
    bool tells;     /* adds an entry to the completion queue if it succeeds */
    uint64_t len, tag, data;

    /* Memory: the local buffer; where results of atomics go. */
    struct iovec iov[MRD_OFI_IOV_MAX];
    uint32_t num_iov;
    struct mrd_mr *mr[2 * MRD_OFI_IOV_MAX]; /* registered for this operation */
    uint32_t num_mrs;
    void *copy; /* of the buffer, of malloc() */

    /* RMA and atomics: as the application named the memory. */
    struct fi_rma_iov rma[MRD_OFI_RMA_IOV_MAX];
    uint32_t num_rma;

    /* A transfer, between the local buffer and the peer's memory; or an atomic of mrd's on that. */
    enum mrd_wr_opcode opcode;
    uint64_t word, compare_add, swap; /* of the atomic: what was there, its arguments */
    struct mrd_ofi_wire_range range[MRD_OFI_RMA_IOV_MAX];
    uint32_t num_ranges;
    uint64_t offset; /* where the next work request begins; from 0 to len */

    /* A pull: the receive that it fills, from where on, and the message's head. */
    struct mrd_ofi_rx *rx;
    uint64_t rx_at;
    struct mrd_ofi_wire_head of;

    /* An atomic: where the old values go. */
    struct iovec result[MRD_OFI_IOV_MAX];
    uint32_t num_results;

    /* A message to be posted; 0: a transfer. */
    uint32_t head_bytes;
    uint32_t payload_bytes;
    uint8_t head[MRD_OFI_OP_HEAD];
};

struct mrd_ofi_ops {
    struct mrd_ofi_op **chunk; /* of OPS_CHUNK each */
    uint32_t num_chunks;
    struct mrd_node free;
};

void mrd_ofi_ops_init(struct mrd_ofi_ops *ops);
void mrd_ofi_ops_fini(struct mrd_ofi_ops *ops);
/* The endpoint closes: what is under way ends without a word. */
void mrd_ofi_ops_abandon(struct mrd_ofi_ep *ep);
/* Zeroed; NULL: no memory. */
struct mrd_ofi_op *mrd_ofi_op_alloc(struct mrd_ofi_ep *ep);
/* Ends its registrations, but the first `from` of them. */
void mrd_ofi_op_unregister(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, uint32_t from);
/* As mrd_post_send(), of one request; -FI_EAGAIN: the queue is full. */
int mrd_ofi_op_post(struct mrd_qp *qp, struct mrd_send_wr *wr);
/* Is the error one that passes when other operations end: queues, or memory to register? */
bool mrd_ofi_op_waits(const struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op, int error);
/* Frees its registrations and its copy, too. */
void mrd_ofi_op_release(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* It waits for an answer of its peer, which is watched. */
void mrd_ofi_op_await(struct mrd_ofi_op *op);
/* Its answer came, or will not come. */
void mrd_ofi_op_answered(struct mrd_ofi_op *op);
/* Notes an error, the first one of the operation. */
void mrd_ofi_op_fail(struct mrd_ofi_op *op, int error, int status);
/*
 * The local key that covers a buffer, registered for this operation if need be. 0 or -FI_ error
 * number.
 */
int mrd_ofi_op_key(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct iovec *iov,
                   int access, uint32_t *lkey);
/*
 * Something of it is complete, or failed: puts it on mrd_ofi_ep.ended if nothing more is to come of
 * it. mrd_ofi_op.done is called at the end of the turn.
 */
void mrd_ofi_op_settle(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* Posts what waits for room. */
void mrd_ofi_op_flush(struct mrd_ofi_ep *ep);
/* DONE came. */
void mrd_ofi_op_on_done(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                        const struct mrd_ofi_wire_head *head, const uint8_t *more, uint32_t bytes);

/* ------------------------------------------------------------------------------------ endpoints */

/* What an endpoint counts on counters that are bound to it. */
enum mrd_ofi_counts {
    MRD_OFI_COUNT_SEND,
    MRD_OFI_COUNT_RECV,
    MRD_OFI_COUNT_READ,
    MRD_OFI_COUNT_WRITE,
    MRD_OFI_COUNT_REMOTE_READ,
    MRD_OFI_COUNT_REMOTE_WRITE,
    MRD_OFI_COUNTS,
};

struct mrd_ofi_ep {
    struct fid_ep fid;
    struct mrd_ofi_domain *domain;
    struct mrd_node domain_node; /* on mrd_ofi_domain.eps */
    struct fi_info *info;
    struct mrd_ofi_av *av;
    struct mrd_ofi_eq *eq;
    struct mrd_ofi_cq *tx_cq, *rx_cq;
    struct mrd_ofi_cntr *cntr[MRD_OFI_COUNTS];
    bool tx_selective, rx_selective;
    uint64_t tx_flags, rx_flags; /* default op flags */
    size_t min_multi_recv;
    bool enabled;

    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_comp_channel *channel;
    struct mrd_ofi_source
        source; /* its fd: an epoll set of the channel and of the context's events */
    struct mrd_cq *cq;
    struct mrd_qp *messages, *memory; /* queue pairs */
    struct mrd_mr *all;               /* all memory; NULL: the device pins what it uses */
    bool on_demand;                   /* mrd_reg_mr() with MRD_ACCESS_ON_DEMAND */
    struct mrd_node mr_regs;          /* mrd_ofi_mr_reg.ep_node */

    struct mrd_ofi_peers peers;
    struct mrd_ofi_ops ops;
    uint32_t cookie; /* random: answers to an earlier life at this address name another one */
    struct mrd_node unsent;    /* operations that wait for room in a send queue */
    struct mrd_node ended;     /* operations whose end is to be reported */
    struct mrd_node answered;  /* operations that waited for a key, which is known now */
    uint32_t tx_used, tx_most; /* operations of the application under way; how many may be */
    /* Not complete yet: what the provider sends for itself, and what the application injected. */
    uint32_t num_internal;
    bool device_gone;
    uint32_t op_mrs; /* registrations of operations that end without the peer's program */

    /* Receive side. */
    uint8_t *rx_memory;
    struct mrd_mr *rx_mr;
    uint32_t rx_bytes, num_rx; /* of a buffer; how many there are */
    uint32_t spent[MRD_OFI_RX_SPENT], num_spent;
    struct mrd_ofi_match msg, tagged;
    struct mrd_ofi_rxs rxs;

    uint32_t calls; /* of mrd_ofi_ep_progress() */
};

static inline bool mrd_ofi_ep_has_room(const struct mrd_ofi_ep *ep)
{
    return mrd_list_empty(&ep->unsent) && ep->tx_used < ep->tx_most;
}

/* Opens the endpoint's context. -FI_ error number: what was made is to be closed. */
int mrd_ofi_context_open(struct mrd_ofi_ep *ep);
/* Also of what was made in part. */
void mrd_ofi_context_close(struct mrd_ofi_ep *ep);
/* The flags of a transmit call that names none. */
static inline uint64_t mrd_ofi_tx_flags(struct fid_ep *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_ep, fid)->tx_flags;
}

/* Those of one that names some: without selective completion all are told. */
static inline uint64_t mrd_ofi_tx_flags_named(struct fid_ep *fid, uint64_t flags)
{
    return flags |
           (mrd_container_of(fid, struct mrd_ofi_ep, fid)->tx_selective ? 0 : FI_COMPLETION);
}

int mrd_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                    void *context);
/* Automatic progress: the domain's thread runs while it has endpoints. Without the lock. */
int mrd_ofi_thread_start(struct mrd_ofi_domain *d);
void mrd_ofi_thread_stop(struct mrd_ofi_domain *d);

#endif
