/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the completion contract by double entry: every work request posted is recorded, and every
 * completion must belong to one. A signaled or failed request has exactly one completion, an
 * unsignaled one that succeeds has none, and nothing else has any.
 *
 * ledger_post() for the wr_id; ledger_withdraw() if the post failed; ledger_complete() for each
 * completion; ledger_abandon() for requests that end without completions, because their QP is
 * destroyed or their context closed; ledger_open() at the end.
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
    uint32_t host, life; /* the context: its host, and how many that host had before it */
    uint32_t qp_num;
    uint32_t object; /* the test's own number of a message or buffer */
    enum ledger_queue queue;
    enum ledger_state state;
    enum mrd_wc_status status; /* once DONE */
    enum mrd_wr_opcode opcode; /* of a send */
    bool signaled;
    bool shared; /* of a shared receive queue: any QP of the context may complete it */
};

struct ledger {
    struct ledger_wr *wrs; /* owned; wr_id is index + tag */
    uint32_t num, cap;
    uint32_t open[2][2]; /* number of OPEN requests, by queue and whether signaled */
    uint64_t seed;
};

void ledger_init(struct ledger *ledger, uint64_t seed);
void ledger_fini(struct ledger *ledger);
/* Records a request and returns its wr_id. `state` and `status` are set here. */
uint64_t ledger_post(struct ledger *ledger, const struct ledger_wr *wr);
void ledger_withdraw(struct ledger *ledger, uint64_t wr_id);
/* Fails the test if the completion breaks the contract. Returns the request that it belongs to. */
const struct ledger_wr *ledger_complete(struct ledger *ledger, uint32_t host, uint32_t life,
                                        const struct mrd_wc *wc);
/* Ends the open requests of a QP without completions; qp_num 0: of all QPs of that context. */
void ledger_abandon(struct ledger *ledger, uint32_t host, uint32_t life, uint32_t qp_num);
/*
 * Number of requests whose completions are still to come; the first of them goes to *first, if any.
 */
uint32_t ledger_open(const struct ledger *ledger, enum ledger_queue queue, bool unsignaled_too,
                     const struct ledger_wr **first);
const struct ledger_wr *ledger_get(const struct ledger *ledger, uint64_t wr_id);

#endif
