/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender without an engine, whose every packet is the test's: it speaks to the context of host 1,
 * which has a bare queue pair of its own (outside the world's ledger) to be sent to.
 *
 * puppet_create(); puppet_recv(); puppet_part(), puppet_segment(), puppet_abort() each deliver one
 * packet and let the target answer; puppet_acked(), puppet_refused(), puppet_poll() tell what it
 * did; puppet_destroy().
 */
#ifndef MRD_TESTS_SUPPORT_PUPPET_H
#define MRD_TESTS_SUPPORT_PUPPET_H

#include "tests/support/wiretap.h"

enum {
    PUPPET_SEGMENT_BYTES = 256,
    PUPPET_MESSAGE_BYTES = 2 * PUPPET_SEGMENT_BYTES,
    PUPPET_RECVS_MAX = 16,
};

struct puppet {
    struct sim_world *w;
    struct wiretap *tap; /* of what the target answers */
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    uint32_t incarnation, epoch;              /* of the puppet */
    uint8_t (*buf)[2 * PUPPET_MESSAGE_BYTES]; /* of receive i; in the target's memory */
    uint32_t num_recvs, num_done;
    uint32_t ack_serial;
    struct mrd_wc wc[PUPPET_RECVS_MAX]; /* by receive, once done */
    bool done[PUPPET_RECVS_MAX];
};

struct puppet *puppet_create(void);
void puppet_destroy(struct puppet *p);
/* One more receive of a message's length: its number. */
uint32_t puppet_recv(struct puppet *p);
/* A DATA packet with these parts, and the payloads of all of them. */
void puppet_parts(struct puppet *p, uint32_t psn, const struct mrd_wire_part *parts, unsigned num,
                  const uint8_t *payload);
/* With this one. */
void puppet_part(struct puppet *p, uint32_t psn, const struct mrd_wire_part *part,
                 const uint8_t *payload);
/* Segment `index` (0 or 1) of a SEND of PUPPET_MESSAGE_BYTES; every byte of it is `fill`. */
void puppet_segment(struct puppet *p, uint32_t psn, uint32_t id, uint8_t attempt, uint32_t index,
                    uint8_t fill);
void puppet_abort(struct puppet *p, uint32_t psn, uint32_t id);
/* It acks all that the target sent up to now, refusals for one. */
void puppet_ack(struct puppet *p);
/* Did the target report the PSN as received? */
bool puppet_acked(const struct puppet *p, uint32_t psn);
/* The code that the target refused the PSN with; 0: not refused. */
uint8_t puppet_refused(const struct puppet *p, uint32_t psn);
/* Take completions; how many receives are done by now. */
uint32_t puppet_poll(struct puppet *p);

#endif
