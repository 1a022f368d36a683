/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/sim/sim_wire.h"

#include <errno.h>

#define NS_PER_S 1000000000u

int mrd_sim_link_validate(const struct mrd_sim_link *attr)
{
    if (attr->loss_ppm > MRD_SIM_PPM || attr->duplicate_ppm > MRD_SIM_PPM ||
        attr->corrupt_ppm > MRD_SIM_PPM || attr->ecn_min_bytes > attr->ecn_max_bytes)
        return -EINVAL;
    return 0;
}

void mrd_sim_wire_init(struct mrd_sim_wire *wire, const struct mrd_sim_link *attr, uint64_t seed)
{
    *wire = (struct mrd_sim_wire){.attr = *attr};
    mrd_rng_init(&wire->rng, seed);
}

uint64_t mrd_sim_wire_backlog(const struct mrd_sim_wire *wire, uint64_t now_ns)
{
    if (wire->idle_at_ns <= now_ns)
        return 0;
    return (uint64_t)((double)(wire->idle_at_ns - now_ns) * (double)wire->attr.rate_bps /
                      (8.0 * NS_PER_S));
}

/* A share of 0 draws nothing, so that a clean link costs no random numbers. */
static bool happens(struct mrd_rng *rng, uint32_t ppm)
{
    return ppm > 0 && mrd_rng_below(rng, MRD_SIM_PPM) < ppm;
}

static bool marks(struct mrd_sim_wire *wire, uint64_t backlog)
{
    uint64_t min = wire->attr.ecn_min_bytes, max = wire->attr.ecn_max_bytes;

    if (max == 0 || backlog < min)
        return false;
    if (backlog >= max)
        return true;
    return happens(&wire->rng, (uint32_t)((backlog - min) * MRD_SIM_PPM / (max - min)));
}

/*
 * Put a packet behind what is queued: when its last bit leaves. The fraction is carried, so rates
 * hold exactly.
 */
static uint64_t transmit(struct mrd_sim_wire *wire, uint32_t wire_bytes, uint64_t now_ns)
{
    uint64_t rate_bps = wire->attr.rate_bps;

    if (wire->idle_at_ns < now_ns) {
        wire->idle_at_ns = now_ns;
        wire->idle_remainder = 0;
    }
    if (rate_bps > 0) {
        uint64_t work = (uint64_t)wire_bytes * 8 * NS_PER_S + wire->idle_remainder;

        wire->idle_at_ns += work / rate_bps;
        wire->idle_remainder = work % rate_bps;
    }
    return wire->idle_at_ns;
}

static uint64_t jitter(struct mrd_sim_wire *wire)
{
    if (wire->attr.jitter_ns == 0)
        return 0;
    return mrd_rng_u64(&wire->rng) % (wire->attr.jitter_ns + 1);
}

struct mrd_sim_passage mrd_sim_wire_pass(struct mrd_sim_wire *wire, uint32_t wire_bytes, bool ect,
                                         uint64_t now_ns)
{
    const struct mrd_sim_link *attr = &wire->attr;
    struct mrd_sim_passage passage = {0};

    wire->stats.packets++;
    if (attr->blackhole) {
        wire->stats.blackholed++;
        return passage;
    }

    uint64_t backlog = mrd_sim_wire_backlog(wire, now_ns);

    /* An idle transmitter takes any packet: a limit below one packet must not cut the link. */
    if (attr->queue_bytes > 0 && backlog > 0 && backlog + wire_bytes > attr->queue_bytes) {
        wire->stats.queue_drops++;
        return passage;
    }

    uint64_t leave_ns = transmit(wire, wire_bytes, now_ns);

    wire->stats.bytes += wire_bytes;
    if (ect && marks(wire, backlog)) {
        wire->stats.ce++;
        passage.ce = true;
    }
    if (happens(&wire->rng, attr->loss_ppm)) {
        wire->stats.lost++;
        return passage;
    }
    passage.copies = 1;
    if (happens(&wire->rng, attr->duplicate_ppm)) {
        wire->stats.duplicated++;
        passage.copies = 2;
    }
    for (unsigned i = 0; i < passage.copies; i++) {
        passage.arrive_ns[i] = leave_ns + attr->delay_ns + jitter(wire);
        passage.corrupt[i] = happens(&wire->rng, attr->corrupt_ppm);
        wire->stats.corrupted += passage.corrupt[i];
    }
    return passage;
}

void mrd_sim_wire_corrupt(struct mrd_sim_wire *wire, uint8_t *data, uint32_t len)
{
    if (len == 0)
        return;

    uint32_t bit = mrd_rng_below(&wire->rng, len * 8);

    data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}
