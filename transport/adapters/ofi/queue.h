/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives that wait for a message, and messages that wait for a receive: match.c has one such pair
 * of queues for tagged messages and one for others.
 *
 * A message is for the first receive that takes it, in the order posted; a receive gets the first
 * message that it takes, in the order of arrival. A receive takes messages of one peer or of any,
 * whose tag is its own but for bits that it ignores. Both are found in a number of steps that does
 * not grow with the queues, but with the number of shapes: which bits are ignored, and whether one
 * peer is named. There are as many hash tables of receives as shapes among them. Messages are in one
 * for each shape that was searched for since the queue was empty last, up to a bound.
 *
 * Nothing here is told to anybody, and no peer is looked at.
 */
#ifndef MRD_OFI_QUEUE_H
#define MRD_OFI_QUEUE_H

#include <stdbool.h>
#include <sys/uio.h>

#include "transport/adapters/ofi/index.h"
#include "transport/adapters/ofi/wire.h"

struct mrd_ofi_peer;

/*
 * A posted receive. Many are posted at times: what it takes in memory is what posting it costs. What
 * a message looks at comes first.
 */
struct mrd_ofi_rx {
    struct mrd_node node;       /* posted, on its queue; or free */
    struct mrd_ofi_item by_tag; /* while it is posted, in the shape's table */
    struct mrd_ofi_shape *shape;
    uint64_t turn;             /* while it is posted: the smaller, the earlier */
    struct mrd_ofi_peer *from; /* NULL: any */
    void *context;
    uint64_t flags; /* FI_COMPLETION, FI_MULTI_RECV, FI_CLAIM... as posted */
    union {
        struct iovec one;   /* its buffer; */
        struct iovec *many; /* if it is a list, of malloc() */
    } iov;
    uint8_t num_iov;
    bool tagged;
    /* FI_MULTI_RECV: it takes no more; pulls under way; bytes used up. */
    bool retired, cancelled;
    uint32_t pulls;
    uint64_t used;

    uint64_t tag, ignore;
    struct mrd_ofi_item by_context; /* while it is posted, if receives are cancelled */
    struct mrd_node from_node;      /* on mrd_ofi_peer.receives */
};

/* A message that no receive was posted for. */
struct mrd_ofi_unexpected {
    struct mrd_node node; /* on its queue, or claimed */
    struct mrd_ofi_peer *peer;
    struct mrd_ofi_wire_head head;
    struct mrd_ofi_seen *seen;      /* its places in tables */
    struct mrd_ofi_item by_claimer; /* once it is claimed: by the context of the PEEK */
    uint32_t bytes;
    uint8_t payload[]; /* bytes, or ranges */
};

struct mrd_ofi_match {
    uint64_t seed, turn;
    uint64_t steps;         /* things looked at, ever: tests count them */
    struct mrd_node posted; /* mrd_ofi_rx.node */
    struct mrd_node shapes; /* of posted receives: mrd_ofi_shape.node */
    struct mrd_node unexpected;
    struct mrd_node searched; /* of unexpected messages: the shape searched for last comes first */
    struct mrd_node claimed;  /* tagged messages: mrd_ofi_unexpected.node */
    bool cancels;             /* receives that are posted are in by_context, too */
    struct mrd_ofi_index by_context, by_claimer;
    uint32_t num_shapes, num_searched;
};

/* seed: a random number. */
void mrd_ofi_match_init(struct mrd_ofi_match *m, uint64_t seed);
/* Frees messages that are on the queues. Receives are the caller's. */
void mrd_ofi_match_fini(struct mrd_ofi_match *m);

/* Appends it. 0, or -FI_ENOMEM. */
int mrd_ofi_posted_add(struct mrd_ofi_match *m, struct mrd_ofi_rx *rx);
void mrd_ofi_posted_remove(struct mrd_ofi_match *m, struct mrd_ofi_rx *rx);
/* The first one that takes a message of that peer and tag; NULL: none. */
struct mrd_ofi_rx *mrd_ofi_posted_find(const struct mrd_ofi_match *m,
                                       const struct mrd_ofi_peer *peer, uint64_t tag);
/* The first one of that context. */
struct mrd_ofi_rx *mrd_ofi_posted_of(struct mrd_ofi_match *m, const void *context);

/* Appends it. */
void mrd_ofi_unexpected_add(struct mrd_ofi_match *m, struct mrd_ofi_unexpected *u);
void mrd_ofi_unexpected_remove(struct mrd_ofi_match *m, struct mrd_ofi_unexpected *u);
/* The first one that the receive takes, which need not be posted. */
struct mrd_ofi_unexpected *mrd_ofi_unexpected_find(struct mrd_ofi_match *m,
                                                   const struct mrd_ofi_rx *rx);
/* It is for receives of that context only from now on. 0, or -FI_ENOMEM. */
int mrd_ofi_unexpected_claim(struct mrd_ofi_match *m, struct mrd_ofi_unexpected *u,
                             const void *context);
/* Takes the first one that is claimed for the context off; NULL: none. */
struct mrd_ofi_unexpected *mrd_ofi_claimed_take(struct mrd_ofi_match *m, const void *context);

#endif
