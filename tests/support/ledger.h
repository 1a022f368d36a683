/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion contract, kept by double entry: every work request posted is written down, every
 * completion crosses one out. Exactly one for a signaled or failed request, none for an unsignaled
 * success, none for what was not posted.
 *
 * ledger_post() for the wr_id; ledger_withdraw() if the post failed; ledger_complete() for each
 * completion; ledger_abandon() for what a destroyed QP or a closed context takes along;
 * ledger_open() at the end.
 */
#ifndef MRD_TESTS_SUPPORT_LEDGER_H
#define MRD_TESTS_SUPPORT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "mrd/mrd.h"

enum ledger_queue { LEDGER_SEND = 0, LEDGER_RECV };

/* OPEN -> DONE | WITHDRAWN | ABANDONED */
enum ledger_state { LEDGER_OPEN = 0, LEDGER_DONE, LEDGER_WITHDRAWN, LEDGER_ABANDONED };

struct ledger_wr {
    uint32_t host, life; /* whose context, and the how manieth on that host */
    uint32_t qp_num;
    uint32_t object; /* the test's: which message or buffer */
    enum ledger_queue queue;
    enum ledger_state state;
    enum mrd_wc_status status; /* once DONE */
    enum mrd_wr_opcode opcode; /* of a send */
    bool signaled;
};

struct ledger {
    struct ledger_wr *wrs; /* owned; wr_id is index + tag */
    uint32_t num, cap;
    uint32_t open[2][2]; /* by queue and whether signaled: how many are OPEN */
    uint64_t seed;
};

void ledger_init(struct ledger *ledger, uint64_t seed);
void ledger_fini(struct ledger *ledger);
/* The wr_id to post it under. `state` and `status` are set here. */
uint64_t ledger_post(struct ledger *ledger, const struct ledger_wr *wr);
void ledger_withdraw(struct ledger *ledger, uint64_t wr_id);
/* Fails the test if the completion breaks the contract; the request that it crosses out. */
const struct ledger_wr *ledger_complete(struct ledger *ledger, uint32_t host, uint32_t life,
                                        const struct mrd_wc *wc);
/* The open requests of a QP (qp_num 0: of all of that life) end without completions. */
void ledger_abandon(struct ledger *ledger, uint32_t host, uint32_t life, uint32_t qp_num);
/* Requests that still owe a completion; the first of them goes to *first if there is one. */
uint32_t ledger_open(const struct ledger *ledger, enum ledger_queue queue, bool unsignaled_too,
                     const struct ledger_wr **first);
const struct ledger_wr *ledger_get(const struct ledger *ledger, uint64_t wr_id);

#endif
