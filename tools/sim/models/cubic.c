/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/cubic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/packet.h"
#include "transport/movers/sim/sim_stack.h"

enum {
    RING = 1 << 16, /* transmissions that are remembered: a bound of the window */
    OVERTAKEN = 3,
    ACK_BYTES = MODEL_CUBIC_HEADER_BYTES,
};
#define INITIAL_WINDOW 10.0
#define C              0.4
#define BETA           0.7
#define RENO_ALPHA     (3 * (1 - BETA) / (1 + BETA))
#define RTO_NS         200000000.0

/*
 * Transmissions are numbered; an ack names the one that it answers. What was lost goes again under
 * the next number.
 */
struct packet {
    uint64_t number;
    bool is_ack;
};

struct model_cubic {
    struct mrd_sim *sim;
    uint32_t from, to, mss;
    uint64_t delivered_packets;

    uint64_t first;      /* oldest in flight */
    uint64_t next;       /* number of the next transmission */
    uint64_t acked_next; /* one after the highest acked */
    uint32_t inflight;
    bool acked[RING];
    uint64_t sent_ns[RING];

    double window, threshold, max_window, reno_window;
    double k_s; /* from the epoch's begin until the window is max_window again */
    uint64_t epoch_ns, recover, rto_at_ns;
    double srtt_ns;
};

static void send_packet(struct model_cubic *c, bool is_ack, uint64_t number)
{
    struct packet content = {number, is_ack};
    struct mrd_sim_packet *packet = mrd_sim_stack_alloc(c->sim, sizeof(content));

    if (!packet)
        return; /* as if it were lost */
    memcpy(packet->data, &content, sizeof(content));
    packet->to = is_ack ? c->from : c->to;
    packet->path = 0;
    packet->ecn = MRD_ECN_NOT_ECT;
    packet->wire_bytes = is_ack ? ACK_BYTES : c->mss + MODEL_CUBIC_HEADER_BYTES;
    mrd_sim_stack_send(c->sim, is_ack ? c->to : c->from, packet);
}

static void arm(struct model_cubic *c)
{
    c->rto_at_ns = mrd_sim_now(c->sim) + (uint64_t)(RTO_NS + c->srtt_ns);
    mrd_sim_stack_wake(c->sim, c->from, c->rto_at_ns);
}

static void fill(struct model_cubic *c)
{
    while (c->inflight + 1 <= c->window && c->next - c->first < RING) {
        c->acked[c->next % RING] = false;
        c->sent_ns[c->next % RING] = mrd_sim_now(c->sim);
        send_packet(c, false, c->next++);
        c->inflight++;
    }
    arm(c);
}

/* ------------------------------------------------------------------------------------ the window */

static void grow(struct model_cubic *c)
{
    double t, target;

    if (c->window < c->threshold) {
        c->window++;
        return;
    }
    t = ((double)(mrd_sim_now(c->sim) - c->epoch_ns) + c->srtt_ns) / 1e9;
    target = C * pow(t - c->k_s, 3) + c->max_window;
    target = target > 1.5 * c->window ? 1.5 * c->window : target;
    c->reno_window += (c->reno_window < c->max_window ? RENO_ALPHA : 1) / c->window;
    if (target > c->window)
        c->window += (target - c->window) / c->window;
    if (c->reno_window > c->window)
        c->window = c->reno_window;
}

static void begin_epoch(struct model_cubic *c)
{
    c->epoch_ns = mrd_sim_now(c->sim);
    c->k_s = cbrt((c->max_window - c->window) / C);
    c->reno_window = c->window;
}

/* Once a window. */
static void reduce(struct model_cubic *c, uint64_t lost)
{
    if (lost < c->recover)
        return;
    c->recover = c->next;
    c->max_window = c->window < c->max_window ? c->window * (1 + BETA) / 2 : c->window;
    c->window = fmax(c->window * BETA, 2);
    c->threshold = c->window;
    begin_epoch(c);
}

/* ------------------------------------------------------------------------------------- both ends */

static void lose_overtaken(struct model_cubic *c)
{
    for (; c->first < c->next; c->first++) {
        if (c->acked[c->first % RING])
            continue;
        if (c->first + OVERTAKEN >= c->acked_next)
            return;
        c->inflight--;
        reduce(c, c->first);
    }
}

static void on_ack(struct model_cubic *c, uint64_t number)
{
    double rtt_ns;

    if (number < c->first || c->acked[number % RING])
        return; /* of what a timeout gave up */
    rtt_ns = (double)(mrd_sim_now(c->sim) - c->sent_ns[number % RING]);
    c->srtt_ns = c->srtt_ns > 0 ? c->srtt_ns + (rtt_ns - c->srtt_ns) / 8 : rtt_ns;
    c->acked[number % RING] = true;
    c->inflight--;
    if (number >= c->acked_next)
        c->acked_next = number + 1;
    if (number >= c->recover)
        grow(c);
    lose_overtaken(c);
    fill(c);
}

static void source_receive(void *arg, struct mrd_sim_packet *packet)
{
    struct model_cubic *c = arg;
    struct packet content;

    memcpy(&content, packet->data, sizeof(content));
    mrd_sim_stack_release(c->sim, packet);
    on_ack(c, content.number);
}

static void sink_receive(void *arg, struct mrd_sim_packet *packet)
{
    struct model_cubic *c = arg;
    struct packet content;

    memcpy(&content, packet->data, sizeof(content));
    mrd_sim_stack_release(c->sim, packet);
    c->delivered_packets++;
    send_packet(c, true, content.number);
}

static void source_timer(void *arg)
{
    struct model_cubic *c = arg;

    if (mrd_sim_now(c->sim) < c->rto_at_ns)
        return;
    reduce(c, c->next);
    c->first = c->next;
    c->inflight = 0;
    c->window = 1;
    fill(c);
}

static void sink_timer(void *arg)
{
    (void)arg;
}

static const struct mrd_sim_stack_ops source_ops = {source_receive, source_timer};
static const struct mrd_sim_stack_ops sink_ops = {sink_receive, sink_timer};

struct model_cubic *model_cubic_start(struct mrd_sim *sim, uint32_t from, uint32_t to, uint32_t mss)
{
    struct model_cubic *c = calloc(1, sizeof(*c));
    int ret;

    if (!c)
        return NULL;
    c->sim = sim;
    c->from = from;
    c->to = to;
    c->mss = mss;
    c->window = INITIAL_WINDOW;
    c->threshold = INFINITY;
    ret = mrd_sim_stack_attach(sim, from, &source_ops, c);
    if (ret != 0)
        goto fail;
    ret = mrd_sim_stack_attach(sim, to, &sink_ops, c);
    if (ret != 0)
        goto detach;
    fill(c);
    return c;

detach:
    mrd_sim_stack_detach(sim, from);
fail:
    free(c);
    errno = -ret;
    return NULL;
}

void model_cubic_stop(struct model_cubic *c)
{
    if (!c)
        return;
    mrd_sim_stack_detach(c->sim, c->from);
    mrd_sim_stack_detach(c->sim, c->to);
    free(c);
}

uint64_t model_cubic_delivered_bytes(const struct model_cubic *c)
{
    return c->delivered_packets * c->mss;
}
