/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/perf/cost_end.h"

#include <assert.h>
#include <string.h>

#include <valgrind/callgrind.h>

enum {
    /* As in transport/progress.c, api_data.c and udp_rx.c. */
    RX_BURSTS_MAX = 4,
    TX_BATCHES_MAX = 16,
    POLLS_PER_STEP_MAX = 16,
    STEP_INTERVAL_NS = 20000,
    LONG_BYTES = 2048,
};

/* The engine's calls stand between two of these. */
static inline void toggle(const struct cost_end *end)
{
    if (end->counted)
        CALLGRIND_TOGGLE_COLLECT;
}

/* ------------------------------------------------------------- receiving, as udp_rx.c does it */

static uint32_t segment_bytes(const struct cost_burst *b, unsigned i)
{
    return i + 1 < b->segments ? b->segment_len : b->total_len - i * b->segment_len;
}

/* Asks where the payloads of the burst belong, and puts those there that have a place. */
static unsigned receive_straight(struct cost_end *end, const struct cost_burst *b)
{
    struct mrd_rx_plan *plan = &end->plan;
    uint32_t head = b->total_len < MRD_HEAD_PEEK_BYTES ? b->total_len : MRD_HEAD_PEEK_BYTES;

    if (head > b->segment_len)
        head = b->segment_len;
    toggle(end);
    unsigned planned = mrd_engine_rx_plan(end->engine, b->bytes, head, b->segments, b->segment_len,
                                          b->total_len, &b->from, plan);
    toggle(end);
    for (unsigned i = 0; i < planned; i++) {
        const uint8_t *at = b->bytes + i * b->segment_len;

        memcpy(end->heads[i], at, plan->head_len);
        at += plan->head_len;
        for (unsigned p = plan->first[i]; p < plan->first[i + 1]; p++) {
            memcpy(plan->iov[p].iov_base, at, plan->iov[p].iov_len);
            at += plan->iov[p].iov_len;
        }
        assert(at == b->bytes + i * b->segment_len + segment_bytes(b, i));
    }
    return planned;
}

static unsigned report(struct cost_end *end, const struct cost_burst *b, unsigned planned,
                       struct mrd_rx_packet *packets)
{
    unsigned n = 0;

    for (unsigned i = 0; i < b->segments; i++) {
        struct mrd_rx_packet *p = &packets[n];

        if (end->drop_ppm && mrd_rng_below(&end->rng, 1000000) < end->drop_ppm)
            continue;
        *p = (struct mrd_rx_packet){.data = b->bytes + i * b->segment_len,
                                    .len = segment_bytes(b, i),
                                    .plan_index = (uint16_t)i,
                                    .from = b->from,
                                    .to = end->addr};
        if (i < planned) {
            p->placed = 1;
            p->placed_len = (uint16_t)(p->len - end->plan.head_len);
            p->data = end->heads[i];
            p->len = end->plan.head_len;
        }
        n++;
    }
    return n;
}

static unsigned rx_burst(struct cost_end *end, bool *more, uint64_t now_ns)
{
    struct cost_link *link = &end->links[end->number];
    unsigned n = 0;

    *more = true;
    while (cost_wire_arrival_ns(link) <= now_ns) {
        bool is_long = link->first->total_len >= LONG_BYTES;
        unsigned planned = 0;

        /* A plan must know all that was received before. */
        if (n && (is_long || n + link->first->segments > MRD_RX_BATCH_MAX))
            return n;
        struct cost_burst *b = cost_wire_take(link);
        if (is_long)
            planned = receive_straight(end, b);
        n += report(end, b, planned, end->rx + n);
        b->next = end->lent;
        end->lent = b;
        if (n && planned)
            return n;
    }
    *more = false;
    return n;
}

static void rx_return(struct cost_end *end)
{
    while (end->lent) {
        struct cost_burst *b = end->lent;

        end->lent = b->next;
        cost_wire_give(b);
    }
}

/* ------------------------------------------------------ the turn, as progress.c makes it */

static unsigned send_all(struct cost_end *end, uint64_t now_ns)
{
    unsigned total = 0;
    bool more = true;

    for (unsigned i = 0; i < TX_BATCHES_MAX && more; i++) {
        toggle(end);
        unsigned n = mrd_engine_tx(end->engine, end->tx, MRD_TX_BATCH_MAX, now_ns);

        more = n == MRD_TX_BATCH_MAX || mrd_engine_tx_cut_short(end->engine);
        toggle(end);
        cost_wire_send(end->links, &end->addr, end->tx, n, now_ns);
        total += n;
    }
    end->sent_packets += total;
    return total;
}

static void begin_and_send(struct cost_end *end, uint64_t now_ns)
{
    toggle(end);
    mrd_engine_begin(end->engine, now_ns);
    toggle(end);
    send_all(end, now_ns);
}

static unsigned begin(struct cost_end *end, uint64_t now_ns)
{
    unsigned total = 0;

    toggle(end);
    mrd_engine_begin(end->engine, now_ns);
    toggle(end);
    end->rx_more = true;
    for (unsigned i = 0; i < RX_BURSTS_MAX && end->rx_more; i++) {
        unsigned n = rx_burst(end, &end->rx_more, now_ns);

        if (n) {
            toggle(end);
            mrd_engine_rx(end->engine, end->rx, n, now_ns);
            toggle(end);
        }
        rx_return(end);
        total += n;
    }
    return total;
}

static void end_turn(struct cost_end *end, uint64_t now_ns, bool whole)
{
    end->half_turn = !whole;
    end->last_step_ns = now_ns;
    end->polls_since_step = 0;
}

static unsigned finish(struct cost_end *end, uint64_t now_ns)
{
    uint32_t peer_id, index;
    unsigned sent = 0;

    toggle(end);
    if (!end->rx_more)
        mrd_engine_drained(end->engine, now_ns);
    bool is_due = mrd_engine_deadline(end->engine) <= now_ns;
    if (is_due) {
        mrd_engine_expire(end->engine, now_ns);
        while (mrd_engine_wants_path(end->engine, &peer_id, &index))
            mrd_engine_give_path(end->engine, peer_id, index, -1, now_ns);
    }
    toggle(end);
    if (is_due)
        sent = send_all(end, now_ns);
    end_turn(end, now_ns, true);
    return sent;
}

/* `may_halve`: somebody polls the completion queue, and half a turn may do. */
static unsigned step(struct cost_end *end, bool may_halve, uint64_t now_ns)
{
    bool owed = end->half_turn, is_quiet = false;
    unsigned received = begin(end, now_ns);

    if (may_halve && !owed && received && !end->rx_more) {
        toggle(end);
        is_quiet = mrd_engine_cq_waits(end->cq) && mrd_engine_quiet(end->engine);
        toggle(end);
    }
    if (!is_quiet)
        return received + finish(end, now_ns);
    end_turn(end, now_ns, false);
    return received;
}

/* ---------------------------------------------------------- calls, as api_data.c makes them */

static void tell_ready(struct cost_end *end, uint64_t now_ns)
{
    toggle(end);
    bool says_ready = mrd_engine_says_ready(end->engine);
    toggle(end);
    if (says_ready)
        begin_and_send(end, now_ns);
}

void cost_end_post_send(struct cost_end *end, struct mrd_send_wr *list, uint64_t now_ns)
{
    struct mrd_send_wr *bad;

    toggle(end);
    mrd_engine_begin(end->engine, now_ns);
    int error = mrd_engine_post_send(end->engine, end->qp, list, &bad, now_ns);
    toggle(end);
    cost_check(!error, "mrd_engine_post_send");
    send_all(end, now_ns);
}

void cost_end_post_recv(struct cost_end *end, struct mrd_recv_wr *list, uint64_t now_ns)
{
    struct mrd_recv_wr *bad;

    toggle(end);
    int error = mrd_engine_post_recv(end->engine, end->qp, list, &bad);
    toggle(end);
    cost_check(!error, "mrd_engine_post_recv");
    tell_ready(end, now_ns);
}

static int poll_cq(struct cost_end *end, struct mrd_wc *wc, int max)
{
    toggle(end);
    int n = mrd_engine_poll_cq(end->engine, end->cq, max, wc);
    toggle(end);
    cost_check(n >= 0, "mrd_engine_poll_cq");
    return n;
}

static bool postpone_step(struct cost_end *end, uint64_t now_ns)
{
    return !end->half_turn && ++end->polls_since_step < POLLS_PER_STEP_MAX &&
           now_ns - end->last_step_ns < STEP_INTERVAL_NS;
}

int cost_end_poll(struct cost_end *end, struct mrd_wc *wc, int max, bool *handled, uint64_t now_ns)
{
    int n = poll_cq(end, wc, max);

    *handled = false;
    if (!n || !postpone_step(end, now_ns)) {
        *handled = step(end, n == 0, now_ns) > 0;
        if (n < max)
            n += poll_cq(end, wc + n, max - n);
    }
    tell_ready(end, now_ns);
    return n;
}

uint64_t cost_end_sleep(struct cost_end *end)
{
    if (end->rx_more || end->half_turn) {
        end->deadline_ns = 0;
    } else {
        toggle(end);
        end->deadline_ns = mrd_engine_deadline(end->engine);
        toggle(end);
    }
    return end->deadline_ns;
}
