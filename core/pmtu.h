/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet to a peer may carry, found by probing (RFC 8899, packetization layer path MTU
 * discovery). Reports of routers are not asked for: they may be missing, or forged.
 *
 * A search begins with what any network carries (`base`). mrd_pmtu_next() says which size to probe
 * with, an empty packet that is padded to it; mrd_pmtu_acked() or mrd_pmtu_lost() tells what became
 * of it. First the largest size is tried, which is right in most networks, then what Ethernet
 * carries, then halves of what is left. mrd_pmtu_payload_lost() tells when packets that carry more
 * than the base do not come through any more.
 */
#ifndef MRD_CORE_PMTU_H
#define MRD_CORE_PMTU_H

#include <stdbool.h>
#include <stdint.h>

/* Payload bytes, multiples of 64, between which a size is searched; equal: there is nothing to do. */
struct mrd_pmtu_range {
    uint32_t base;  /* any network carries it */
    uint32_t limit; /* the route takes no more, says who sends there */
};

struct mrd_pmtu {
    /* When the next search begins, if this one has ended, in seconds; it wraps. */
    uint16_t search_s;
    uint16_t losses_ms; /* when the first of `losses` was, in milliseconds; it wraps, too */
    uint16_t payload;   /* packets carry at most so much now: it came through, or is the base */
    uint16_t failed;    /* the least size that did not come through; above the limit: none */
    uint16_t hint;      /* size that came through before, tried first; 0: none */
    uint16_t probed;    /* size of the probe in flight; 0: none is */
    uint16_t most;      /* size of the largest of the packets that `losses` counts */
    uint8_t searches;   /* ended in a row: each waits twice as long for the next one */
    uint8_t lost : 4;   /* probes of the size tried now that were lost in a row */
    uint8_t losses : 4; /* packets above the base lost since one as large was acked, saturated */
};

/* sure: packets carry the limit from the first one on, and the base only if it does not come through. */
void mrd_pmtu_init(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, bool sure);
/* Returns the payload bytes to probe with now; 0: no probe is due, or one is in flight. */
uint32_t mrd_pmtu_next(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint64_t now_ns);
/* A probe of that size leaves. */
void mrd_pmtu_sent(struct mrd_pmtu *m, uint32_t bytes);
/*
 * The probe came through, or was lost. One whose packet was sent again, without padding, counts as
 * lost: an ack of it does not tell which of the two came.
 */
void mrd_pmtu_acked(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint32_t bytes,
                    uint64_t now_ns);
void mrd_pmtu_lost(struct mrd_pmtu *m, uint32_t bytes, uint64_t now_ns);
/* It was lost among others, which says nothing of its size (RFC 4821, 7.6): it is tried again. */
void mrd_pmtu_inconclusive(struct mrd_pmtu *m, uint32_t bytes);
/*
 * Who sends there says that the route takes only so many, no fewer than the base, for now: packets
 * carry no more. A later search finds whether that has changed.
 */
void mrd_pmtu_too_big(struct mrd_pmtu *m, uint32_t bytes, uint64_t now_ns);
/* The range is another one now. */
void mrd_pmtu_limit(struct mrd_pmtu *m, const struct mrd_pmtu_range *r);
/*
 * A packet with so much payload was lost or acked. Returns true if so many above the base were lost,
 * and none as large as the largest of them came through for so long, that the path has become
 * smaller: from now on packets carry the base, and a search begins. Smaller ones that come through
 * say nothing of it, also where others like them are lost by chance.
 */
bool mrd_pmtu_payload_lost(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint32_t bytes,
                           uint64_t srtt_ns, uint64_t now_ns);
void mrd_pmtu_payload_acked(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint32_t bytes);

#endif
