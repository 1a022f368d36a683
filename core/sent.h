/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sent packets: one record for each PSN, from its first transmission until it is acked.
 *
 * mrd_sent_add() makes the record of the next PSN; mrd_sent_transmit() each time the packet leaves;
 * mrd_sent_lose() when it is declared lost (it then waits to be retransmitted); mrd_sent_ack() when
 * it is acked, and mrd_sent_release() when its contents were dealt with. Records in flight are
 * chained oldest transmission first, for the peer and for each path.
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

enum { MRD_SENT_FEW = 4 }; /* pages that need no ring of their own */

#define MRD_PSN_NONE                                                                               \
    UINT32_MAX /* end of a path's chain; it may be a PSN too, so counters tell the lengths */

enum mrd_sent_state {
    MRD_SENT_FREE = 0,
    MRD_SENT_NEW, /* has a PSN, was not sent yet */
    MRD_SENT_INFLIGHT,
    MRD_SENT_LOST,
    MRD_SENT_ACKED,
};
enum mrd_sent_kind {
    MRD_SENT_EMPTY = 0, /* carries nothing: a probe, or all its messages were cancelled */
    MRD_SENT_SEGMENT,   /* a piece of the message with id `id` */
    MRD_SENT_SMALL,     /* whole messages, chained from `small` */
    /* Control packets from here on: they do not wait for the congestion window. */
    MRD_SENT_REFUSAL,
    MRD_SENT_ABORT,
    MRD_SENT_READY, /* tells that queue pair `id` has receives again */
    MRD_SENT_CLOSE, /* closes an idle flow */
};

static inline bool mrd_sent_is_control(uint8_t kind)
{
    return kind >= MRD_SENT_REFUSAL;
}

struct mrd_sent {
    uint64_t tx_ns; /* last transmission */
    uint32_t psn;
    uint32_t pseq;       /* of the last transmission */
    uint32_t next, prev; /* in one of the three chains of struct mrd_sents */
    uint32_t path_next, path_prev;
    uint16_t bytes;      /* of the whole datagram */
    uint16_t path;       /* index of the path of the last transmission */
    uint8_t tx_count;    /* transmissions, saturated */
    uint8_t state, kind; /* enums above */
    uint8_t deliberate;  /* sent again as a probe or second copy, not for a loss */
    uint8_t in_run;      /* left right behind another on its path: in a burst */
    uint8_t by_order;    /* declared lost by order, not by time */
    /* Sent again as a tail loss probe: if only that copy arrives, the first one was lost. */
    uint8_t probed;
    /* Its path was path_penalized for a tail probe: a loss that the window knows not of. */
    uint8_t path_penalized : 1;
    /* The last transmission was a header alone, as its message was refused or ended: `bytes` stays. */
    uint8_t bare : 1;
    uint16_t len;   /* SEGMENT: payload bytes; EMPTY: those that it stands for, to probe the MTU */
    uint16_t piece; /* bytes of each piece that the last transmission was cut to; 0: it was whole */
    /*
     * SEGMENT; READY: a QP number, and how many receives it offers; EMPTY: offset is the payload
     * that it stands for, to probe a path.
     */
    uint32_t id, offset;
    union {
        struct mrd_msg *small; /* SMALL: linked by mrd_msg.chain; ABORT: by mrd_msg.abort.next */
        struct mrd_refusal *refusal;
        struct mrd_flow_tx *flow; /* CLOSE */
    } u;
};

/* Is it an empty packet that is padded, to find out what its path takes? `len`: how much. */
static inline bool mrd_sent_is_mtu_probe(const struct mrd_sent *rec)
{
    return rec->kind == MRD_SENT_EMPTY && rec->len;
}

struct mrd_sent_page {
    struct mrd_sent rec[MRD_SENT_PAGE];
    uint32_t number; /* PSN / MRD_SENT_PAGE of its records */
    uint16_t used;
    uint16_t acked; /* bit i: rec[i] is acked */
};

_Static_assert(MRD_SENT_PAGE == 16, "a bit of mrd_sent_page.acked for each record");

struct mrd_sent_chain {
    uint32_t head, tail, num; /* num 0: head and tail are undefined */
};

struct mrd_sents {
    struct mrd_pool *pages;      /* of struct mrd_sent_page, shared by all peers */
    uint32_t num_pages;          /* pages in use here */
    uint32_t keep_free;          /* free pages left for a first and a spare one of each peer */
    struct mrd_sent_page *spare; /* our page beyond our share, for control packets; NULL: none */
    /*
     * A ring of pages, indexed by their numbers: `few`, or allocated. It grows with the PSNs from
     * una to next, up to the tracker. One that is missing there is acked whole.
     */
    struct mrd_sent_page **page, *few[MRD_SENT_FEW];
    uint32_t ring;      /* its length, a power of two */
    uint32_t tracker;   /* most PSNs from una to next */
    uint32_t una, next; /* oldest PSN not acked; PSN of the next new packet */
    struct mrd_sent_chain inflight;
    struct mrd_sent_chain lost, lost_control; /* to be retransmitted; `lost` waits for the window */
    uint64_t inflight_bytes;
};

/*
 * `pages` is borrowed, and its allocator is used for the ring. peers: how many share it, at most;
 * it has two pages for each, and more.
 */
void mrd_sent_init(struct mrd_sents *s, struct mrd_pool *pages, uint32_t tracker, uint32_t peers);
void mrd_sent_fini(struct mrd_sents *s);
/*
 * Returns a NEW record for PSN s->next, zeroed but for PSN, state and kind. NULL: our share of the
 * pages is used up, and for control packets the spare page too.
 */
struct mrd_sent *mrd_sent_add(struct mrd_sents *s, enum mrd_sent_kind kind);
/* Returns the record of a PSN, or NULL if it has none. */
struct mrd_sent *mrd_sent_get(const struct mrd_sents *s, uint32_t psn);
/* The packet leaves, for the first time or again; `pseq` is from mrd_path_sent() of that path. */
void mrd_sent_transmit(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths,
                       uint16_t path, uint32_t pseq, uint64_t now_ns);
/*
 * A packet leaves for the first time, with the bytes behind those of `last`, a segment that left
 * just now for the first time, and on its path. `rec` is new, of the next PSN.
 */
void mrd_sent_follow(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_sent *last,
                     struct mrd_paths *paths, uint32_t pseq);
/* The packet is declared lost. Call mrd_path_lost() or mrd_path_forgot() first. */
void mrd_sent_lose(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths);
/*
 * Marks the PSN acked and advances una. If it is in flight, call mrd_path_acked() or
 * mrd_path_forgot() first. The record stays until mrd_sent_release().
 */
void mrd_sent_ack(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths);
void mrd_sent_release(struct mrd_sents *s, struct mrd_sent *rec);
/*
 * Returns how many packets from `first`'s on, below PSN `end`, are alike for an ack: segments of one
 * message that left once, at one time, one right behind the other on one path, and are in flight.
 */
uint32_t mrd_sent_run(const struct mrd_sents *s, const struct mrd_sent *first, uint32_t end);
/*
 * Acks the `n` packets of such a run and releases their records; mrd_path_run_acked() comes first.
 * Adds up their bytes, and those of their payloads.
 */
void mrd_sent_ack_run(struct mrd_sents *s, const struct mrd_sent *first, uint32_t n,
                      struct mrd_paths *paths, uint32_t *bytes, uint32_t *payload);
/*
 * Returns those of `bits` (an ack's, for 64 PSNs from `base`) that are newly acked: PSNs below
 * `next` that were not acked before.
 */
uint64_t mrd_sent_new_bits(const struct mrd_sents *s, uint32_t base, uint64_t bits);
/* Returns the record with the oldest last transmission, in flight or lost; NULL: there is none. */
struct mrd_sent *mrd_sent_oldest(const struct mrd_sents *s);
/* Returns whether there is one. */
static inline bool mrd_sent_any(const struct mrd_sents *s)
{
    return s->inflight.num || s->lost.num || s->lost_control.num;
}
/* For tests: returns whether counters and chains agree with the records. */
bool mrd_sent_audit(const struct mrd_sents *s, const struct mrd_paths *paths);

#endif
