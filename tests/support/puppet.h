/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender without an engine: the test makes each of its packets. It sends to the context of host
 * 1, to a queue pair that is outside of the world's ledger.
 *
 * puppet_create(); puppet_recv(); puppet_part(), puppet_segment(), puppet_abort() each deliver one
 * packet and give the target time to answer; puppet_acked(), puppet_refused(), puppet_poll() read
 * its answers.
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
    struct wiretap *tap; /* records the target's answers */
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    uint32_t incarnation, epoch;              /* of the puppet */
    uint8_t (*buf)[2 * PUPPET_MESSAGE_BYTES]; /* buffer of each receive, in the target's memory */
    uint32_t num_recvs, num_done;
    uint32_t ack_serial;
    struct mrd_wc wc[PUPPET_RECVS_MAX]; /* completion of each receive, where done[] */
    bool done[PUPPET_RECVS_MAX];
};

struct puppet *puppet_create(void);
/* Posts one more receive of PUPPET_MESSAGE_BYTES. Returns its number. */
uint32_t puppet_recv(struct puppet *p);
/* Delivers a DATA packet with these parts; `payload` is those of all parts in a row. */
void puppet_parts(struct puppet *p, uint32_t psn, const struct mrd_wire_part *parts, unsigned num,
                  const uint8_t *payload);
/* The same with one part. */
void puppet_part(struct puppet *p, uint32_t psn, const struct mrd_wire_part *part,
                 const uint8_t *payload);
/*
 * Delivers segment `index` (0 or 1) of a SEND of PUPPET_MESSAGE_BYTES, whose every byte is `fill`.
 */
void puppet_segment(struct puppet *p, uint32_t psn, uint32_t id, uint8_t attempt, uint32_t index,
                    uint8_t fill);
void puppet_abort(struct puppet *p, uint32_t psn, uint32_t id);
/* Delivers an ack of all that the target has sent up to now, its refusals included. */
void puppet_ack(struct puppet *p);
/* Did the target report the PSN as received? */
bool puppet_acked(const struct puppet *p, uint32_t psn);
/* The code that the target refused the PSN with; 0: not refused. */
uint8_t puppet_refused(const struct puppet *p, uint32_t psn);
/* Takes completions. Returns how many receives are done by now. */
uint32_t puppet_poll(struct puppet *p);

#endif
