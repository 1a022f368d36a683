/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sent packets in flight: one record a PSN from its first transmission until it is acked.
 *
 * mrd_sent_add() makes the record of the next PSN; mrd_sent_transmit() each time it leaves;
 * mrd_sent_lose() when it is given up (it then waits to be retransmitted); mrd_sent_ack() and, when
 * what it carried was dealt with, mrd_sent_release() once. Records in flight are kept oldest
 * transmission first, for the peer and for each path.
 *
 * Legal states: NEW -> INFLIGHT -> LOST -> INFLIGHT ... -> ACKED -> free. inflight_bytes changes
 * only here, with the state.
 */
#ifndef MRD_CORE_SENT_H
#define MRD_CORE_SENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/limits.h"
#include "core/path.h"
#include "core/pool.h"

#define MRD_PSN_NONE                                                                               \
    UINT32_MAX /* end of a chain; as a PSN it is told apart by the chain's length */

enum mrd_sent_state {
    MRD_SENT_FREE = 0,
    MRD_SENT_NEW, /* has a PSN, was never sent */
    MRD_SENT_INFLIGHT,
    MRD_SENT_LOST,
    MRD_SENT_ACKED,
};
enum mrd_sent_kind {
    MRD_SENT_EMPTY = 0, /* carries nothing: a probe, or everything in it was cancelled */
    MRD_SENT_SEGMENT,   /* a piece of the message with id `id` */
    MRD_SENT_SMALL,     /* whole messages, chained from `small` */
    /* Control: never waits for the congestion window. */
    MRD_SENT_REFUSAL,
    MRD_SENT_ABORT,
    MRD_SENT_READY, /* a queue pair, `id`, has receives again */
    MRD_SENT_CLOSE, /* the end of an idle flow */
};

static inline bool mrd_sent_is_control(uint8_t kind)
{
    return kind >= MRD_SENT_REFUSAL;
}

struct mrd_sent {
    uint64_t tx_ns; /* last transmission */
    uint32_t psn;
    uint32_t pseq;       /* of the last transmission */
    uint32_t next, prev; /* in one of the three chains below */
    uint32_t path_next, path_prev;
    uint16_t bytes;      /* datagram */
    uint16_t path;       /* index of the last transmission's */
    uint8_t tx_count;    /* transmissions, saturated */
    uint8_t state, kind; /* enums above */
    uint8_t deliberate;  /* the last retransmission was a probe or a second copy, not a loss */
    uint8_t in_run;      /* it left right behind another on the same path: part of a burst */
    uint8_t by_order;    /* declared lost by order on its path */
    /* In flight, and sent again as a tail probe: if only that copy comes, the other was lost. */
    uint8_t probed;
    uint16_t len;        /* SEGMENT: payload bytes */
    uint32_t id, offset; /* SEGMENT; READY: id is a queue pair's number */
    union {
        struct mrd_msg *small; /* SMALL, ABORT: chain of messages */
        struct mrd_refusal *refusal;
        struct mrd_flow_tx *flow; /* CLOSE */
    } u;
};

struct mrd_sent_page {
    struct mrd_sent rec[MRD_SENT_PAGE];
    uint32_t used;
};

struct mrd_sent_chain {
    uint32_t head, tail, num; /* num 0: head and tail mean nothing */
};

struct mrd_sents {
    struct mrd_pool *pages; /* shared by all peers */
    uint32_t num_pages;     /* of these, ours */
    uint32_t keep_free; /* so many are kept: for one that each peer may take for control packets, */
    struct mrd_sent_page *spare; /* this one, while it is taken */
    struct mrd_sent_page *page[MRD_TRACKER_MAX / MRD_SENT_PAGE];
    uint32_t mask;      /* tracker - 1 */
    uint32_t una, next; /* oldest PSN not acked; next PSN to be used */
    struct mrd_sent_chain inflight;
    struct mrd_sent_chain lost, lost_control; /* to be sent again; `lost` waits for the window */
    uint64_t inflight_bytes;
    uint64_t acked[MRD_TRACKER_MAX / 64];
};

/* keep_free: as many as there may be users of the pool. */
void mrd_sent_init(struct mrd_sents *s, struct mrd_pool *pages, uint32_t tracker,
                   uint32_t keep_free);
void mrd_sent_fini(struct mrd_sents *s);
/*
 * The record of PSN s->next, zeroed but for its kind, not in flight; NULL: our share of the pool of
 * pages is exhausted, for control packets our spare page as well.
 */
struct mrd_sent *mrd_sent_add(struct mrd_sents *s, enum mrd_sent_kind kind);
/* The live record of a PSN, or NULL. */
struct mrd_sent *mrd_sent_get(const struct mrd_sents *s, uint32_t psn);
/* It leaves (again), on a path of which mrd_path_sent() gave the PSEQ. */
void mrd_sent_transmit(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths,
                       uint16_t path, uint32_t pseq, uint64_t now_ns);
/*
 * It is declared lost, and waits to be sent again. path.c was told before: mrd_path_lost()
 * or mrd_path_forgot().
 */
void mrd_sent_lose(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths);
/*
 * Mark acked and advance una. path.c was told before, if it was in flight. The record stays, in
 * state ACKED, until mrd_sent_release().
 */
void mrd_sent_ack(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths);
void mrd_sent_release(struct mrd_sents *s, struct mrd_sent *rec);
/*
 * The PSNs of una + first .. that `bits` (64 from `base`) says acked and that were not known
 * as acked.
 */
uint64_t mrd_sent_new_bits(const struct mrd_sents *s, uint32_t base, uint64_t bits);
/* The record that was not sent for longest, in flight or lost; NULL: there is none. */
struct mrd_sent *mrd_sent_oldest(const struct mrd_sents *s);
/* For tests: figures agree with the records. */
bool mrd_sent_audit(const struct mrd_sents *s, const struct mrd_paths *paths);

#endif
