/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations. One is what the application, or the provider for itself, has under way: it is taken from a
 * pool, posts one or more work requests, and ends when their completions and, if it waits for one, the
 * peer's answer have come.
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

#endif
