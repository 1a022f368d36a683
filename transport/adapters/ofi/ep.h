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

#include "transport/adapters/ofi/ofi.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/rx.h"
#include "transport/adapters/ofi/wire.h"

/* ---------------------------------------------------------------------------------------- peers */

/* A key of a peer's that was asked for. */
struct mrd_ofi_key {
    struct mrd_node node;    /* on mrd_ofi_peer.keys */
    struct mrd_node waiting; /* operations that wait for the answer: mrd_ofi_op.node */
    uint64_t key;
    uint32_t question; /* operation that asks for it */
    uint16_t flags;    /* MRD_OFI_VIRTUAL, _EVENTS */
    bool known;
    uint32_t num;
    struct mrd_ofi_wire_range range[MRD_OFI_IOV_MAX];
};

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
    struct mrd_node keys;           /* mrd_ofi_key.node: the one used last comes first */
    uint32_t num_keys;
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
/*
 * What was injected to the peer failed; NULL: it is forgotten. No entry without a context tells, as
 * applications take one for an operation of theirs. Receives for a peer that was never heard of end,
 * as those for others do by the event; without any the endpoint's EQ tells, and without one a call
 * that reads its CQ.
 */
void mrd_ofi_peer_injected_failed(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, int error,
                                  int status);
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

/* It is noted when events so far are dealt with: that nobody was there before is not its fate. */
void mrd_ofi_peer_heard_first(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
static inline void mrd_ofi_peer_heard(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (!peer->heard)
        mrd_ofi_peer_heard_first(ep, peer);
}

/* Notes of which peers something was heard. */
void mrd_ofi_peers_note_heard(struct mrd_ofi_ep *ep);

/* Peers that something waits for: calls `f` for each. */
void mrd_ofi_peers_each_awaited(struct mrd_ofi_ep *ep,
                                void (*f)(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer));
/* Its fi_addr now; FI_ADDR_NOTAVAIL: it is not in the AV. */
fi_addr_t mrd_ofi_peer_fi_addr(const struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);

/* ----------------------------------------------------------------------------------- operations */

/* What completions of messages without an operation are known by; others by the operation. */
enum { MRD_OFI_SAID = 1, MRD_OFI_INJECTED_MSG, MRD_OFI_INJECTED_TAGGED };

enum {
    MRD_OFI_SGE_MAX = MRD_OFI_IOV_MAX + 1, /* a head, and a buffer's list */
    /* The largest head that is kept in an operation: with the ranges of a list. */
    MRD_OFI_OP_HEAD =
        sizeof(struct mrd_ofi_wire_head) + MRD_OFI_IOV_MAX * sizeof(struct mrd_ofi_wire_range),
    MRD_OFI_RX_POLL = 32,  /* completions taken at a time */
    MRD_OFI_RX_SPENT = 32, /* buffers that wait to be posted again */
};

struct mrd_ofi_op {
    struct mrd_node node;        /* free; waits to be posted; or waits for a key */
    struct mrd_node answer_node; /* on mrd_ofi_peer.answers */
    /* Called once for each completion. */
    void (*done)(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct mrd_wc *wc);
    uint32_t id;      /* index in mrd_ofi_ops, and a generation in the upper bits; never 0 */
    uint32_t pending; /* work requests whose completion is to come, and 1 for an answer */
    struct mrd_ofi_peer *peer;
    bool answered;     /* waits for no answer, or has it */
    bool expects_done; /* the answer is a DONE */
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
/* The operation of that id that waits for a DONE of `peer`; NULL: none. */
struct mrd_ofi_op *mrd_ofi_op_find(struct mrd_ofi_ep *ep, uint32_t id,
                                   const struct mrd_ofi_peer *peer);
/*
 * Before operations wait for the peer: events so far are dealt with, which may end others that wait
 * for it, and forget its keys; then it is watched.
 */
void mrd_ofi_peer_watch(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* Ends that, unless something waits for it. */
void mrd_ofi_peer_watch_no_more(struct mrd_ofi_peer *peer);
/* Also if it seems to be watched already: the event that ended that may be lost. */
void mrd_ofi_peer_watch_again(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* Watches those that are to be, and from time to time no more those that nothing waits for. */
void mrd_ofi_peers_watch(struct mrd_ofi_ep *ep);
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
 * Posts a message: head, then payload, from op->iov, or op->copy. Waits in ep->unsent for room. The
 * caller's op->done() is called once, also if it cannot be posted at all.
 */
void mrd_ofi_op_send(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, struct mrd_ofi_wire_head *head,
                     const void *more, uint32_t more_bytes);
/*
 * Posts the work requests of a transfer: op->iov, op->range, op->len and op->opcode are set. Waits
 * in ep->unsent for room. op->done() is called for each completion, and once with NULL if the rest
 * cannot be posted; at the last one `pending` is 0.
 */
void mrd_ofi_transfer(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* Returns false if some of it must wait for room. */
bool mrd_ofi_transfer_post(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* Posts what waits for room. */
void mrd_ofi_op_flush(struct mrd_ofi_ep *ep);
/* May the application post one more? Makes progress if not. */
bool mrd_ofi_has_room(struct mrd_ofi_ep *ep);
/* Tells the application of its end: entry, counters. */
void mrd_ofi_op_tell(struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op);
/*
 * Posts a message of at most MRD_INLINE_BYTES_MAX without an operation: `what` is MRD_OFI_SAID or
 * _INJECTED_. -FI_EAGAIN: no room now.
 */
int mrd_ofi_send_now(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                     struct mrd_ofi_wire_head *head, const struct iovec *more, uint32_t num,
                     uint64_t what);
/* A message of the provider's own, whose fate nobody waits for. */
void mrd_ofi_say(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, struct mrd_ofi_wire_head *head,
                 const void *more, uint32_t more_bytes);
/*
 * mrd_ofi_op.done of a message of the application's: ends it when its completion, and its answer if
 * it waits for one, have come.
 */
void mrd_ofi_op_sent(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct mrd_wc *wc);
/* What to say about a failed operation, of malloc(); NULL: no memory. */
char *mrd_ofi_error_text(const struct mrd_ofi_peer *peer, int error, int status);
/* The FI_ error number of a completion's status. */
int mrd_ofi_error_of(enum mrd_wc_status status);
/* Copies between a list and memory, `offset` bytes into the list. Returns how many bytes. */
size_t mrd_ofi_iov_read(const struct iovec *iov, uint32_t num, uint64_t offset, void *to,
                        size_t len);
size_t mrd_ofi_iov_write(const struct iovec *iov, uint32_t num, uint64_t offset, const void *from,
                         size_t len);
uint64_t mrd_ofi_iov_bytes(const struct iovec *iov, size_t num);

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
    uint32_t tx_used, tx_most; /* operations of the application under way; how many may be */
    /* Not complete yet: what the provider says for itself, and what the application injected. */
    uint32_t silent;
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
    bool taking;    /* in the midst of completions */
};

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
/* Handles completions and events that are there. */
void mrd_ofi_ep_progress(struct mrd_ofi_ep *ep);
/*
 * Deals with events of mrd: what peers that are gone owe will not come. Messages that came before
 * are dealt with first. Returns whether there were any events.
 */
bool mrd_ofi_take_events(struct mrd_ofi_ep *ep);
/* Asks for an event at the next completion; events so far are forgotten. */
void mrd_ofi_ep_arm(struct mrd_ofi_ep *ep);
/* A message came. */
void mrd_ofi_progress_message(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, const uint8_t *data,
                              uint32_t bytes);
/* Automatic progress: the domain's thread runs while it has endpoints. Without the lock. */
int mrd_ofi_thread_start(struct mrd_ofi_domain *d);
void mrd_ofi_thread_stop(struct mrd_ofi_domain *d);

extern struct fi_ops_msg mrd_ofi_msg_ops;
extern struct fi_ops_tagged mrd_ofi_tagged_ops;
extern struct fi_ops_rma mrd_ofi_rma_ops;
extern struct fi_ops_atomic mrd_ofi_atomic_ops;

/* ------------------------------------------------------------------------------------- messages */

ssize_t mrd_ofi_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                     void *context);
ssize_t mrd_ofi_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                      fi_addr_t src, void *context);
ssize_t mrd_ofi_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags);
ssize_t mrd_ofi_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                      uint64_t tag, uint64_t ignore, void *context);
ssize_t mrd_ofi_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                       fi_addr_t src, uint64_t tag, uint64_t ignore, void *context);
ssize_t mrd_ofi_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags);
/* A message, in `data` with all its head says, is given to a receive, or kept: match.c. */
void mrd_ofi_match_message(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           const struct mrd_ofi_wire_head *head, const uint8_t *payload,
                           uint32_t bytes);
/* A receive is posted: it takes the first unexpected message that matches, or waits. 0; -FI_ENOMEM. */
int mrd_ofi_match_receive(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx);
/* FI_PEEK, perhaps with FI_CLAIM or FI_DISCARD. */
int mrd_ofi_match_peek(struct mrd_ofi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
/* FI_CLAIM without PEEK: `rx` NULL: FI_DISCARD. -FI_EINVAL: nothing is claimed by that context. */
int mrd_ofi_match_claimed(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, void *context);
/*
 * No message will come from that peer, or, NULL, from anybody: ends the receives for them. Returns
 * whether there were any.
 */
bool mrd_ofi_match_lost(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *from, int error, int status);
/* fi_cancel(). 0, or -FI_ENOENT. */
int mrd_ofi_match_cancel(struct mrd_ofi_ep *ep, void *context);
/*
 * `rx` has got `got` bytes of a message, from `at` in its buffer on: tells the application. error:
 * a FI_ error number, or 0. Without a message `peer` is NULL, or who it did not come from.
 */
void mrd_ofi_rx_end(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, struct mrd_ofi_peer *peer,
                    const struct mrd_ofi_wire_head *head, uint64_t at, uint64_t got, int error,
                    int status);
/* Reads a message of the peer's into the receive. */
void mrd_ofi_pull(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, struct mrd_ofi_peer *peer,
                  const struct mrd_ofi_wire_head *head, const uint8_t *ranges, uint64_t at,
                  uint64_t room);
/* Lets the sender of a message know that it is done with. */
void mrd_ofi_confirm(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                     const struct mrd_ofi_wire_head *head, int error);
/* DONE came. */
void mrd_ofi_done(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                  const struct mrd_ofi_wire_head *head, const uint8_t *more, uint32_t bytes);

/* -------------------------------------------------------------------------------- remote memory */

/* What the key of a peer's is, if it is known; else asks, and the operation waits. NULL: it waits.
 */
const struct mrd_ofi_key *mrd_ofi_key_get(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op,
                                          uint64_t key);
/* Forgets it. */
void mrd_ofi_key_drop(struct mrd_ofi_peer *peer, uint64_t key);
void mrd_ofi_keys_fini(struct mrd_ofi_peer *peer);
void mrd_ofi_key_asked(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                       const struct mrd_ofi_wire_head *head);
void mrd_ofi_key_told(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                      const struct mrd_ofi_wire_head *head, const uint8_t *ranges, uint32_t bytes);
/* Goes on with an operation whose key is known now, or that failed. */
void mrd_ofi_rma_go(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* mrd_ofi_op.done of what goes to memory that was named by keys. */
void mrd_ofi_rma_transferred(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct mrd_wc *wc);
/* NOTE came. */
void mrd_ofi_rma_noted(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                       const struct mrd_ofi_wire_head *head);
/* Most bytes of operands in a message, with as many to compare with. */
size_t mrd_ofi_atomic_bytes_max(void);
/* ATOMIC came. */
void mrd_ofi_atomic_asked(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                          const struct mrd_ofi_wire_head *head, const uint8_t *more,
                          uint32_t bytes);
int mrd_ofi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
                         struct fi_atomic_attr *attr, uint64_t flags);

#endif
