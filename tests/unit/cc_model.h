/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closed loop for congestion control, in virtual time: senders with endless data, one bottleneck
 * queue that serves in order, drops at its tail and marks by its length, and acks that come back a
 * base RTT later.
 *
 * model_init(); model_add_flow() for each sender; model_run() up to a time; then read
 * `delivered_bytes` and the rest; model_fini().
 */
#ifndef MRD_TESTS_UNIT_CC_MODEL_H
#define MRD_TESTS_UNIT_CC_MODEL_H

#include <assert.h>
#include <string.h>

#include "core/cc.h"
#include "core/rng.h"

enum { MODEL_FLOWS = 64, MODEL_EVENTS = 1 << 15, MODEL_PACKET = 4160 };

#define USEC_NS UINT64_C(1000)
#define MSEC_NS UINT64_C(1000000)

struct model_options {
    double rate_bps;
    uint64_t base_ns;
    double queue_bytes;                  /* 0: no limit */
    double ecn_min_bytes, ecn_max_bytes; /* 0, 0: never marks */
    uint32_t loss_ppm;
    uint64_t jitter_ns;                /* acks come up to so much late, in order */
    uint64_t stall_every_ns, stall_ns; /* the receiver stands still now and then */
    uint32_t ack_every;
    uint64_t seed;
};

struct model_flow {
    struct mrd_cc cc;
    uint64_t start_ns, last_send_ns, srtt_ns, rtt_min_ns;
    uint32_t inflight; /* packets */
    uint32_t ack_packets, ack_ce, ack_inflight;
    uint64_t delivered_bytes, lost, sent;
    double cwnd_least_bytes; /* since model_mark() */
};

struct model_event {
    uint64_t at_ns, sent_ns;
    uint32_t flow;
    bool ce, lost;
};

struct model {
    struct model_options o;
    struct mrd_rng rng;
    struct model_flow flow[MODEL_FLOWS];
    uint32_t flows;
    struct model_event event[MODEL_EVENTS]; /* in order of time: the queue is */
    uint32_t head, tail;
    uint64_t now_ns, busy_until_ns, next_stall_ns;
};

static inline void model_init(struct model *m, const struct model_options *options)
{
    memset(m, 0, sizeof(*m));
    m->o = *options;
    m->next_stall_ns = options->stall_every_ns ? options->stall_every_ns : UINT64_MAX;
    mrd_rng_init(&m->rng, options->seed);
}

static inline struct model_flow *model_add_flow(struct model *m, const char *cc,
                                                const struct mrd_cc_config *config,
                                                uint64_t start_ns)
{
    struct model_flow *f = &m->flow[m->flows++];

    assert(m->flows <= MODEL_FLOWS);
    mrd_cc_init(&f->cc, mrd_cc_find(cc), config, MODEL_PACKET);
    f->start_ns = start_ns;
    f->cwnd_least_bytes = f->cc.cwnd_bytes;
    return f;
}

static inline void model_fini(struct model *m)
{
    for (uint32_t i = 0; i < m->flows; i++)
        mrd_cc_fini(&m->flow[i].cc);
}

/* Forget what was counted: the steady state begins. */
static inline void model_mark(struct model *m)
{
    for (uint32_t i = 0; i < m->flows; i++) {
        m->flow[i].delivered_bytes = m->flow[i].lost = m->flow[i].sent = 0;
        m->flow[i].cwnd_least_bytes = m->flow[i].cc.cwnd_bytes;
    }
}

static inline bool model_chance(struct model *m, double p)
{
    return (double)(mrd_rng_u64(&m->rng) >> 11) < p * 0x1p53;
}

static inline void model_send(struct model *m, uint32_t flow)
{
    struct model_flow *f = &m->flow[flow];
    struct model_event *e = &m->event[m->tail++ % MODEL_EVENTS];
    uint64_t start_ns = m->busy_until_ns > m->now_ns ? m->busy_until_ns : m->now_ns;
    double backlog = (double)(start_ns - m->now_ns) * m->o.rate_bps / 8e9;
    uint64_t last_ns = m->tail - m->head > 1 ? m->event[(m->tail - 2) % MODEL_EVENTS].at_ns : 0;

    assert(m->tail - m->head <= MODEL_EVENTS);
    *e = (struct model_event){.sent_ns = m->now_ns, .flow = flow};
    e->lost = (m->o.queue_bytes > 0 && backlog + MODEL_PACKET > m->o.queue_bytes) ||
              model_chance(m, m->o.loss_ppm / 1e6);
    if (m->o.ecn_max_bytes > 0)
        e->ce = model_chance(m, (backlog - m->o.ecn_min_bytes) /
                                    (m->o.ecn_max_bytes - m->o.ecn_min_bytes));
    if (!e->lost) {
        start_ns += (uint64_t)(MODEL_PACKET * 8e9 / m->o.rate_bps);
        m->busy_until_ns = start_ns;
    }
    e->at_ns = start_ns + m->o.base_ns;
    if (m->o.jitter_ns)
        e->at_ns += mrd_rng_below(&m->rng, (uint32_t)m->o.jitter_ns);
    if (e->at_ns < last_ns)
        e->at_ns = last_ns;
    f->inflight++;
    f->sent++;
    f->last_send_ns = m->now_ns;
}

/* When this flow may send next: now, later (paced below one packet), or not before an ack. */
static inline uint64_t model_next_send(const struct model *m, const struct model_flow *f)
{
    double inflight_bytes = (double)f->inflight * MODEL_PACKET;

    if (m->now_ns < f->start_ns)
        return f->start_ns;
    if (f->cc.cwnd_bytes <= inflight_bytes)
        return UINT64_MAX;
    if (f->cc.cwnd_bytes >= MODEL_PACKET || f->last_send_ns == 0)
        return m->now_ns;
    uint64_t at_ns =
        f->last_send_ns + (uint64_t)((double)f->srtt_ns * MODEL_PACKET / f->cc.cwnd_bytes);
    return at_ns > m->now_ns ? at_ns : m->now_ns;
}

static inline void model_ack(struct model *m, struct model_flow *f, uint64_t rtt_ns)
{
    struct mrd_cc_ack ack = {
        .now_ns = m->now_ns,
        .acked_packets = f->ack_packets,
        .acked_bytes = f->ack_packets * MODEL_PACKET,
        .counted_packets = f->ack_packets,
        .ce_packets = f->ack_ce,
        .rtt_ns = rtt_ns,
        .inflight_bytes = (uint64_t)f->ack_inflight * MODEL_PACKET,
        .limited = true,
    };

    f->srtt_ns = f->srtt_ns ? f->srtt_ns - f->srtt_ns / 8 + rtt_ns / 8 : rtt_ns;
    if (f->rtt_min_ns == 0 || rtt_ns < f->rtt_min_ns)
        f->rtt_min_ns = rtt_ns;
    ack.srtt_ns = f->srtt_ns;
    ack.rtt_min_ns = f->rtt_min_ns;
    f->ack_packets = f->ack_ce = 0;
    f->cc.ops->ack(&f->cc, &ack);
}

static inline void model_receive(struct model *m)
{
    struct model_event e = m->event[m->head++ % MODEL_EVENTS];
    struct model_flow *f = &m->flow[e.flow];

    if (f->ack_packets == 0)
        f->ack_inflight = f->inflight;
    f->inflight--;
    if (e.lost) {
        f->lost++;
        f->cc.ops->lost(&f->cc, 1, m->now_ns, f->srtt_ns, f->rtt_min_ns);
    } else {
        f->delivered_bytes += MODEL_PACKET;
        f->ack_packets++;
        f->ack_ce += e.ce;
    }
    /* The sender asks for an ack with the last packet that its window allows. */
    if (f->ack_packets >= m->o.ack_every || (f->ack_packets > 0 && f->inflight == 0))
        model_ack(m, f, m->now_ns - e.sent_ns);
    if (f->cc.cwnd_bytes < f->cwnd_least_bytes)
        f->cwnd_least_bytes = f->cc.cwnd_bytes;
}

static inline void model_run(struct model *m, uint64_t end_ns)
{
    for (;;) {
        uint64_t next_ns = m->head != m->tail ? m->event[m->head % MODEL_EVENTS].at_ns : UINT64_MAX;
        uint32_t sender = m->flows;

        for (uint32_t i = 0; i < m->flows; i++) {
            uint64_t at_ns = model_next_send(m, &m->flow[i]);
            if (at_ns < next_ns) {
                next_ns = at_ns;
                sender = i;
            }
        }
        if (next_ns >= end_ns)
            return;
        m->now_ns = next_ns > m->now_ns ? next_ns : m->now_ns;
        if (m->now_ns >= m->next_stall_ns) {
            m->busy_until_ns =
                (m->busy_until_ns > m->now_ns ? m->busy_until_ns : m->now_ns) + m->o.stall_ns;
            m->next_stall_ns = m->now_ns + m->o.stall_every_ns / 2 +
                               mrd_rng_below(&m->rng, (uint32_t)m->o.stall_every_ns);
        }
        if (sender < m->flows)
            model_send(m, sender);
        else
            model_receive(m);
    }
}

#endif
