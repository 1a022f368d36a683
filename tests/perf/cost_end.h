/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end: an engine, and around it what transport/progress.c and transport/api_data.c do around an
 * engine over the UDP mover. Only the engine's calls are counted, and only while `counted` is set.
 *
 * cost_end_open(); cost_end_post_send(), cost_end_post_recv(), cost_end_poll(); when an end has
 * nothing more to do cost_end_sleep(), which tells until when.
 */
#ifndef MRD_PERF_COST_END_H
#define MRD_PERF_COST_END_H

#include <stdbool.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "core/rng.h"
#include "tests/perf/cost_wire.h"
#include "transport/context.h"

enum { COST_DEPTH = 256, COST_QKEY = 0x77 };

struct cost_end {
    struct mrd_engine *engine;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    uint8_t *memory;
    struct mrd_addr addr;
    struct cost_link *links; /* of all ends */
    unsigned number;         /* of this one */
    bool counted;
    uint32_t drop_ppm; /* of the data packets that arrive */
    struct mrd_rng rng;
    uint64_t sent_packets;
    uint64_t deadline_ns; /* as of the last cost_end_sleep() */
    /* As in struct mrd_context_impl. */
    bool rx_more, half_turn;
    unsigned polls_since_step;
    uint64_t last_step_ns;
    struct mrd_tx_packet tx[MRD_TX_BATCH_MAX];
    struct mrd_rx_packet rx[MRD_RX_BATCH_MAX];
    struct mrd_rx_plan plan;
    uint8_t heads[MRD_PLAN_SEGMENTS_MAX][MRD_HEAD_PEEK_BYTES];
    struct cost_burst *lent; /* bursts that rx[] points into */
};

struct cost_end_options {
    unsigned number;
    uint32_t payload_bytes; /* of a packet */
    uint32_t drop_ppm;
    uint64_t now_ns;
    size_t memory_bytes;
};

/* Whatever fails ends the program. */
void cost_end_open(struct cost_end *end, struct cost_link *links,
                   const struct cost_end_options *options);
struct mrd_ah *cost_end_ah(struct cost_end *end, const struct cost_end *to);

void cost_end_post_send(struct cost_end *end, struct mrd_send_wr *list, uint64_t now_ns);
void cost_end_post_recv(struct cost_end *end, struct mrd_recv_wr *list, uint64_t now_ns);

/* As mrd_poll_cq(). Sets *handled where packets came or went. Returns the number of completions. */
int cost_end_poll(struct cost_end *end, struct mrd_wc *wc, int max, bool *handled, uint64_t now_ns);

/* Nothing comes of polls now. Returns when something will, if no packet comes. */
uint64_t cost_end_sleep(struct cost_end *end);

/* Ends the program where `good` is not. */
void cost_check(bool good, const char *what);

#endif
