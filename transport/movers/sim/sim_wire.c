/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_wire.h"

#include <errno.h>
#include <stddef.h>

#define NS_PER_S 1000000000u
#define ONE_NS   (UINT64_C(1) << 32) /* unit of fractions */
/* The time of a byte is rounded: a fraction this close to a whole nanosecond counts as one. */
#define ALMOST_ONE (ONE_NS - (UINT64_C(1) << 20))

int mrd_sim_link_validate(const struct mrd_sim_link *attr)
{
    if (attr->loss_ppm > MRD_SIM_PPM || attr->duplicate_ppm > MRD_SIM_PPM ||
        attr->corrupt_ppm > MRD_SIM_PPM || attr->burst_enter_ppm > MRD_SIM_PPM ||
        attr->burst_leave_ppm > MRD_SIM_PPM || attr->burst_loss_ppm > MRD_SIM_PPM ||
        attr->ecn_min_bytes > attr->ecn_max_bytes || attr->flap_down_ns > attr->flap_period_ns)
        return -EINVAL;
    return 0;
}

void mrd_sim_wire_init(struct mrd_sim_wire *wire, const struct mrd_sim_link *attr, uint64_t seed)
{
    *wire = (struct mrd_sim_wire){0};
    mrd_rng_init(&wire->rng, seed);
    mrd_sim_wire_set(wire, attr, 0);
}

/* In 2^-32 ns. That of a few bits a second does not fit in 64 bits. */
static uint64_t byte_time(uint64_t rate_bps)
{
    if (rate_bps == 0)
        return 0;

    unsigned __int128 time = ((unsigned __int128)8 * NS_PER_S * ONE_NS + rate_bps / 2) / rate_bps;

    return time > UINT64_MAX ? UINT64_MAX : (uint64_t)time;
}

/* The link changes: note until when, and at what rate, the packets leave that are queued. */
static void keep_queue(struct mrd_sim_wire *wire, uint64_t now_ns)
{
    uint64_t backlog = mrd_sim_wire_backlog(wire, now_ns);

    wire->was_queued = backlog > 0;
    if (backlog == 0)
        return;
    wire->old_idle_at_ns = wire->idle_at_ns;
    wire->old_bytes_per_ns = (double)backlog / (double)(wire->idle_at_ns - now_ns);
}

void mrd_sim_wire_set(struct mrd_sim_wire *wire, const struct mrd_sim_link *attr, uint64_t now_ns)
{
    if (attr->flap_period_ns != wire->attr.flap_period_ns)
        wire->flap_from_ns = now_ns;
    keep_queue(wire, now_ns);
    wire->attr = *attr;
    wire->delay_ns = attr->delay_ns;
    wire->byte_time = byte_time(attr->rate_bps);
    wire->bytes_per_ns = (double)attr->rate_bps / (8.0 * NS_PER_S);
    wire->queue_bytes = attr->queue_bytes ? attr->queue_bytes : UINT64_MAX;
    wire->ecn_min_bytes = attr->ecn_max_bytes ? attr->ecn_min_bytes : UINT64_MAX;
    wire->is_faulty = attr->loss_ppm || attr->duplicate_ppm || attr->corrupt_ppm ||
                      attr->jitter_ns || attr->burst_enter_ppm || attr->blackhole || attr->down ||
                      attr->flap_period_ns;
    wire->in_burst = wire->in_burst && attr->burst_enter_ppm;
}

uint64_t mrd_sim_wire_backlog(const struct mrd_sim_wire *wire, uint64_t now_ns)
{
    uint64_t from_ns = now_ns;
    double old_bytes = 0;

    if (wire->idle_at_ns <= now_ns)
        return 0;
    if (wire->was_queued && wire->old_idle_at_ns > now_ns) {
        old_bytes = (double)(wire->old_idle_at_ns - now_ns) * wire->old_bytes_per_ns;
        from_ns = wire->old_idle_at_ns;
    }
    return (uint64_t)(old_bytes + (double)(wire->idle_at_ns - from_ns) * wire->bytes_per_ns);
}

bool mrd_sim_wire_is_down(const struct mrd_sim_wire *wire, uint64_t now_ns)
{
    const struct mrd_sim_link *attr = &wire->attr;

    if (!wire->is_faulty)
        return false;
    return attr->down ||
           (attr->flap_period_ns &&
            (now_ns - wire->flap_from_ns) % attr->flap_period_ns < attr->flap_down_ns);
}

/* A share of 0 draws nothing: faults that are off do not move the random sequence. */
static bool draw(struct mrd_rng *rng, uint32_t ppm)
{
    return ppm > 0 && mrd_rng_below(rng, MRD_SIM_PPM) < ppm;
}

static bool draw_mark(struct mrd_sim_wire *wire, uint64_t backlog)
{
    uint64_t min = wire->attr.ecn_min_bytes, max = wire->attr.ecn_max_bytes;

    if (backlog >= max)
        return true;
    return draw(&wire->rng, (uint32_t)((backlog - min) * MRD_SIM_PPM / (max - min)));
}

/*
 * Advance a clock by the serialisation time of wire_bytes and return the time in nanoseconds. The
 * fraction is carried, so that rates are exact.
 */
static uint64_t serialise(const struct mrd_sim_wire *wire, uint32_t wire_bytes, uint64_t *at_ns,
                          uint64_t *fraction)
{
    unsigned __int128 work = (unsigned __int128)wire->byte_time * wire_bytes + *fraction;

    *at_ns += (uint64_t)(work / ONE_NS);
    *fraction = (uint64_t)work % ONE_NS;
    return *at_ns + (*fraction > ALMOST_ONE);
}

/* Queue a packet behind all others. Returns when its last bit leaves. */
static uint64_t transmit(struct mrd_sim_wire *wire, uint32_t wire_bytes, uint64_t now_ns)
{
    if (wire->idle_at_ns < now_ns) {
        wire->idle_at_ns = now_ns;
        wire->idle_fraction = 0;
    }
    return serialise(wire, wire_bytes, &wire->idle_at_ns, &wire->idle_fraction);
}

/*
 * Queue a packet before those that are not urgent. Returns when its last bit leaves. If no urgent
 * packet is in service, another may be, and nobody knows how much of it has left: the packet waits
 * for bytes_max, or for the whole queue if that is less.
 */
static uint64_t transmit_urgent(struct mrd_sim_wire *wire, uint32_t wire_bytes, uint32_t bytes_max,
                                uint64_t now_ns)
{
    if (wire->urgent_at_ns <= now_ns) {
        uint64_t service_ns = 0, fraction = 0;

        (void)serialise(wire, bytes_max, &service_ns, &fraction);
        if (wire->idle_at_ns <= now_ns)
            service_ns = 0;
        else if (wire->idle_at_ns - now_ns < service_ns)
            service_ns = wire->idle_at_ns - now_ns;
        wire->urgent_at_ns = now_ns + service_ns;
        wire->urgent_fraction = 0;
    }
    (void)transmit(wire, wire_bytes, now_ns);
    return serialise(wire, wire_bytes, &wire->urgent_at_ns, &wire->urgent_fraction);
}

static uint64_t draw_jitter(struct mrd_sim_wire *wire)
{
    if (wire->attr.jitter_ns == 0)
        return 0;
    return mrd_rng_u64(&wire->rng) % (wire->attr.jitter_ns + 1);
}

/*
 * Loss in bursts: a Markov chain of two states, good and bad, that takes a step with each packet
 * (Gilbert 1960; Elliott 1963, "Estimates of error rates for codes on burst-noise channels").
 */
static bool draw_burst_loss(struct mrd_sim_wire *wire)
{
    const struct mrd_sim_link *attr = &wire->attr;

    if (!attr->burst_enter_ppm)
        return false;
    if (wire->in_burst)
        wire->in_burst = !draw(&wire->rng, attr->burst_leave_ppm);
    else
        wire->in_burst = draw(&wire->rng, attr->burst_enter_ppm);
    return wire->in_burst && draw(&wire->rng, attr->burst_loss_ppm);
}

/* Apply the faults of the link to a packet that left at leave_ns. */
static void damage(struct mrd_sim_wire *wire, uint64_t leave_ns, struct mrd_sim_passage *passage)
{
    const struct mrd_sim_link *attr = &wire->attr;

    if (draw(&wire->rng, attr->loss_ppm) || draw_burst_loss(wire)) {
        wire->stats.lost++;
        passage->copies = 0;
        return;
    }
    if (draw(&wire->rng, attr->duplicate_ppm)) {
        wire->stats.duplicated++;
        passage->copies = 2;
    }
    for (unsigned i = 0; i < passage->copies; i++) {
        passage->arrive_ns[i] = leave_ns + attr->delay_ns + draw_jitter(wire);
        passage->corrupt[i] = draw(&wire->rng, attr->corrupt_ppm);
        wire->stats.corrupted += passage->corrupt[i];
    }
}

static uint64_t urgent_backlog(const struct mrd_sim_wire *wire, uint64_t now_ns)
{
    if (wire->urgent_at_ns <= now_ns)
        return 0;
    return (uint64_t)((double)(wire->urgent_at_ns - now_ns) * wire->bytes_per_ns);
}

static bool swallows(const struct mrd_sim_wire *wire, bool ect, uint64_t now_ns)
{
    int blackhole = wire->attr.blackhole;

    return (blackhole && (blackhole != MRD_SIM_BLACKHOLE_ECT || ect)) ||
           mrd_sim_wire_is_down(wire, now_ns);
}

struct mrd_sim_passage mrd_sim_wire_offer(struct mrd_sim_wire *wire, uint32_t wire_bytes, bool ect,
                                          uint32_t urgent_bytes_max, uint64_t now_ns)
{
    struct mrd_sim_passage passage = {0};

    wire->stats.packets++;
    if (wire->is_faulty && swallows(wire, ect, now_ns)) {
        wire->stats.blackholed++;
        return passage;
    }

    uint64_t backlog =
        urgent_bytes_max ? urgent_backlog(wire, now_ns) : mrd_sim_wire_backlog(wire, now_ns);

    /* An idle transmitter takes any packet: a queue shorter than a packet must not cut the link. */
    if (backlog > 0 && backlog + wire_bytes > wire->queue_bytes) {
        wire->stats.queue_drops++;
        return passage;
    }

    uint64_t leave_ns = urgent_bytes_max
                            ? transmit_urgent(wire, wire_bytes, urgent_bytes_max, now_ns)
                            : transmit(wire, wire_bytes, now_ns);

    wire->stats.bytes += wire_bytes;
    if (ect && backlog >= wire->ecn_min_bytes && draw_mark(wire, backlog)) {
        wire->stats.ce++;
        passage.ce = true;
    }
    passage.copies = 1;
    passage.arrive_ns[0] = leave_ns + wire->delay_ns;
    if (wire->is_faulty)
        damage(wire, leave_ns, &passage);
    return passage;
}

void mrd_sim_wire_corrupt(struct mrd_sim_wire *wire, uint8_t *data, uint32_t len)
{
    if (len == 0)
        return;

    uint32_t bit = mrd_rng_below(&wire->rng, len * 8);

    data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}
