/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations. One is what the application, or the provider for itself, has under way: it is taken
 * from a pool, posts one or more work requests, and ends when their completions and, if it waits
 * for one, the peer's answer have come.
 */
#ifndef MRD_OFI_OP_H
#define MRD_OFI_OP_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_peer;
struct mrd_ofi_rx;

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

/* What the application is told of it. */
struct mrd_ofi_entry {
    void *context;
    uint64_t flags; /* FI_SEND | FI_MSG ..., of the completion */
    uint64_t tag, data;
    bool wanted; /* also if it succeeds */
};

/* The local buffer. */
struct mrd_ofi_local {
    void *copy; /* of the buffer, of malloc() */
    uint32_t num_iov, num_mrs;
    struct iovec iov[MRD_OFI_IOV_MAX];
    struct mrd_mr *mr[2 * MRD_OFI_IOV_MAX]; /* registered for this operation */
};

/* Where the old values go that an atomic fetches. */
struct mrd_ofi_results {
    uint32_t num;
    struct iovec iov[MRD_OFI_IOV_MAX];
};

/* A message: of the application's, an atomic for the peer's program, or the provider's own. */
struct mrd_ofi_send {
    uint32_t head_bytes, payload_bytes;
    uint64_t key; /* of an ASK: what it asks for */
    uint8_t head[MRD_OFI_OP_HEAD];
};

/* Between the local buffer and the peer's memory; or an atomic of mrd's on that. */
struct mrd_ofi_transfer {
    enum mrd_wr_opcode opcode;
    uint32_t num_ranges;
    uint64_t offset;            /* where the next work request begins; from 0 to len */
    uint64_t compare_add, swap; /* arguments of the atomic */
    struct mrd_ofi_wire_range range[MRD_OFI_RMA_IOV_MAX];
};

/* RMA, and atomics of mrd's: the memory as the application named it. */
struct mrd_ofi_rma {
    uint32_t num;
    uint16_t notes;   /* flags of the NOTE that follows; 0: none */
    bool asked_again; /* keys were asked for a second time */
    uint64_t word;    /* what was there before the atomic */
    struct fi_rma_iov iov[MRD_OFI_RMA_IOV_MAX];
};

/* A pull: the receive that it fills, from where on, and the message's head. */
struct mrd_ofi_pull {
    struct mrd_ofi_rx *rx;
    uint64_t at;
    struct mrd_ofi_wire_head head;
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
    bool goes_on;      /* on mrd_ofi_turn.ended, to be resumed */
    bool injected;     /* the application waits for nothing: a closing endpoint does */
    bool offers;       /* its registrations are for the peer to read: they end with the answer */
    int error;         /* first FI_ error number; 0: none */
    int status;        /* enum mrd_wc_status of it */
    uint64_t len;
    struct mrd_ofi_entry entry;
    struct mrd_ofi_local local;
    struct mrd_ofi_results results;
    union {
        struct mrd_ofi_send send;
        struct {
            struct mrd_ofi_transfer transfer;
            union {
                struct mrd_ofi_rma rma;
                struct mrd_ofi_pull pull;
            };
        };
    };
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
/* Is there memory for another one? Then the next mrd_ofi_op_alloc() succeeds. */
bool mrd_ofi_op_is_spare(struct mrd_ofi_ep *ep);
/* Zeroed, but for lists and what is of a transfer. NULL: no memory. */
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
 * Something of it is complete, or failed: puts it on mrd_ofi_turn.ended if nothing more is to come
 * of it, and ends its registrations. mrd_ofi_op.done is called at the end of the turn.
 */
void mrd_ofi_op_settle(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/* Posts what waits for room. */
void mrd_ofi_op_flush(struct mrd_ofi_ep *ep);
/* DONE came. */
void mrd_ofi_op_on_done(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                        const struct mrd_ofi_wire_head *head, const uint8_t *more, uint32_t bytes);

#endif
