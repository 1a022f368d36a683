/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/ledger.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/support/check.h"

/* Added to each wr_id, so that a wrong number is not taken for one. */
static const uint64_t tag = 0x1ed9e700000000;

void ledger_init(struct ledger *ledger, uint64_t seed)
{
    *ledger = (struct ledger){.seed = seed};
}

void ledger_fini(struct ledger *ledger)
{
    free(ledger->wrs);
    ledger->wrs = NULL;
}

uint64_t ledger_post(struct ledger *ledger, const struct ledger_wr *wr)
{
    if (ledger->num == ledger->cap) {
        uint32_t cap = ledger->cap ? ledger->cap * 2 : 256;
        struct ledger_wr *wrs = realloc(ledger->wrs, cap * sizeof(*wrs));

        assert_non_null(wrs);
        ledger->wrs = wrs;
        ledger->cap = cap;
    }
    ledger->wrs[ledger->num] = *wr;
    ledger->wrs[ledger->num].state = LEDGER_OPEN;
    ledger->open[wr->queue][wr->signaled]++;
    return tag + ledger->num++;
}

static void leave_open(struct ledger *ledger, struct ledger_wr *wr, enum ledger_state state)
{
    wr->state = state;
    ledger->open[wr->queue][wr->signaled]--;
}

static struct ledger_wr *find(const struct ledger *ledger, uint64_t wr_id)
{
    if (wr_id < tag || wr_id - tag >= ledger->num)
        return NULL;
    return &ledger->wrs[wr_id - tag];
}

const struct ledger_wr *ledger_get(const struct ledger *ledger, uint64_t wr_id)
{
    return find(ledger, wr_id);
}

void ledger_withdraw(struct ledger *ledger, uint64_t wr_id)
{
    struct ledger_wr *wr = find(ledger, wr_id);

    assert_non_null(wr);
    test_check(ledger->seed, wr->state == LEDGER_OPEN, "a post failed, yet its request completed");
    leave_open(ledger, wr, LEDGER_WITHDRAWN);
}

static bool opcode_fits(const struct ledger_wr *wr, enum mrd_wc_opcode opcode)
{
    if (wr->queue == LEDGER_RECV)
        return opcode == MRD_WC_RECV || opcode == MRD_WC_RECV_RDMA_WITH_IMM;
    if (wr->opcode == MRD_WR_SEND || wr->opcode == MRD_WR_SEND_WITH_IMM)
        return opcode == MRD_WC_SEND;
    if (wr->opcode == MRD_WR_RDMA_READ)
        return opcode == MRD_WC_RDMA_READ;
    if (wr->opcode == MRD_WR_ATOMIC_CMP_AND_SWP)
        return opcode == MRD_WC_COMP_SWAP;
    if (wr->opcode == MRD_WR_ATOMIC_FETCH_AND_ADD)
        return opcode == MRD_WC_FETCH_ADD;
    return opcode == MRD_WC_RDMA_WRITE;
}

const struct ledger_wr *ledger_complete(struct ledger *ledger, uint32_t host, uint32_t life,
                                        const struct mrd_wc *wc)
{
    struct ledger_wr *wr = find(ledger, wc->wr_id);
    uint64_t seed = ledger->seed;

    test_check(seed, wr, "host %u: completion of unknown wr_id %" PRIx64, host, wc->wr_id);

    uint64_t number = wc->wr_id - tag;

    test_check(seed,
               wr->host == host && wr->life == life && (wr->shared || wr->qp_num == wc->qp_num),
               "request %" PRIu64 " of host %u life %u qp %u completed at host %u life %u qp %u",
               number, wr->host, wr->life, wr->qp_num, host, life, wc->qp_num);
    test_check(seed, wr->state == LEDGER_OPEN,
               "host %u: completion (%s) of request %" PRIu64 ", which was %s", host,
               mrd_wc_status_str(wc->status), number,
               wr->state == LEDGER_DONE        ? "complete"
               : wr->state == LEDGER_WITHDRAWN ? "not posted"
                                               : "abandoned");
    test_check(seed, opcode_fits(wr, wc->opcode),
               "host %u: request %" PRIu64 " completed as opcode %d", host, number,
               (int)wc->opcode);
    test_check(seed, wr->signaled || wc->status != MRD_WC_SUCCESS,
               "host %u: success of request %" PRIu64 ", which is unsignaled", host, number);
    test_check(seed, wc->status <= MRD_WC_GENERAL_ERR, "host %u: completion status %d", host,
               (int)wc->status);
    leave_open(ledger, wr, LEDGER_DONE);
    wr->status = wc->status;
    return wr;
}

void ledger_abandon(struct ledger *ledger, uint32_t host, uint32_t life, uint32_t qp_num)
{
    for (uint32_t i = 0; i < ledger->num; i++) {
        struct ledger_wr *wr = &ledger->wrs[i];

        if (wr->state == LEDGER_OPEN && wr->host == host && wr->life == life &&
            (qp_num == 0 || (!wr->shared && wr->qp_num == qp_num)))
            leave_open(ledger, wr, LEDGER_ABANDONED);
    }
}

uint32_t ledger_open(const struct ledger *ledger, enum ledger_queue queue, bool unsignaled_too,
                     const struct ledger_wr **first)
{
    uint32_t open = ledger->open[queue][true];

    if (unsignaled_too)
        open += ledger->open[queue][false];
    for (uint32_t i = 0; open > 0 && first && i < ledger->num; i++) {
        const struct ledger_wr *wr = &ledger->wrs[i];

        if (wr->state == LEDGER_OPEN && wr->queue == queue && (wr->signaled || unsignaled_too)) {
            *first = wr;
            break;
        }
    }
    return open;
}
