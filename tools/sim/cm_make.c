/* SPDX-License-Identifier: BSD-2-Clause */
/* Generated connection matrices. */
#include <errno.h>
#include <stdlib.h>

#include "core/rng.h"
#include "tools/sim/cm.h"

/*
 * Room for so many flows and oneshot triggers, numbered from 1; the flows start at 0 and carry
 * `bytes`.
 */
static int make(struct simx_cm *cm, uint32_t hosts, uint64_t flows, uint64_t triggers,
                uint64_t bytes)
{
    if (hosts < 2 || hosts > SIMX_NODES_MAX || bytes == 0 || flows > SIMX_FLOWS_MAX ||
        triggers > SIMX_TRIGGERS_MAX)
        return -EINVAL;
    struct simx_cm made = {hosts, NULL, (uint32_t)flows, NULL, (uint32_t)triggers};
    made.flows = calloc(flows, sizeof(*made.flows));
    made.triggers = calloc(triggers + 1, sizeof(*made.triggers));
    if (!made.flows || !made.triggers) {
        simx_cm_fini(&made);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < made.num_flows; i++)
        made.flows[i] = (struct simx_flow){
            .id = i + 1, .has_id = true, .send_done = -1, .recv_done = -1, .bytes = bytes};
    for (uint32_t i = 0; i < made.num_triggers; i++)
        made.triggers[i] = (struct simx_trigger){.id = i + 1, .kind = SIMX_ONESHOT, .count = 1};
    *cm = made;
    return 0;
}

static void await(struct simx_flow *flow, uint32_t trigger)
{
    flow->triggered = true;
    flow->trigger = (int32_t)trigger;
}

int simx_cm_permutation(struct simx_cm *cm, uint32_t hosts, uint64_t bytes, uint64_t seed)
{
    struct mrd_rng rng;
    int rc = make(cm, hosts, hosts, 0, bytes);

    if (rc)
        return rc;
    for (uint32_t i = 0; i < hosts; i++)
        cm->flows[i].src = cm->flows[i].dst = i;
    /*
     * Swapping only with those below makes one circle of all (Sattolo, 1986): no host keeps its own
     * number.
     */
    mrd_rng_init(&rng, seed);
    for (uint32_t i = hosts - 1; i > 0; i--) {
        uint32_t other = mrd_rng_below(&rng, i);
        uint32_t dst = cm->flows[i].dst;

        cm->flows[i].dst = cm->flows[other].dst;
        cm->flows[other].dst = dst;
    }
    return 0;
}

int simx_cm_incast(struct simx_cm *cm, uint32_t hosts, uint32_t target, uint32_t senders,
                   uint64_t bytes, uint64_t seed)
{
    struct mrd_rng rng;
    struct simx_cm all;

    if (target >= hosts || senders == 0 || senders >= hosts)
        return -EINVAL;
    int rc = make(&all, hosts, hosts - 1, 0, bytes);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < all.num_flows; i++) {
        all.flows[i].src = i < target ? i : i + 1;
        all.flows[i].dst = target;
    }
    mrd_rng_init(&rng, seed);
    for (uint32_t i = 0; i < senders; i++) {
        uint32_t other = i + mrd_rng_below(&rng, all.num_flows - i);
        uint32_t src = all.flows[i].src;

        all.flows[i].src = all.flows[other].src;
        all.flows[other].src = src;
    }
    all.num_flows = senders;
    *cm = all;
    return 0;
}

int simx_cm_pairs(struct simx_cm *cm, uint32_t hosts, uint32_t target, uint32_t pairs,
                  uint64_t bytes)
{
    if (pairs == 0 || target < pairs || target >= hosts || pairs > hosts - target)
        return -EINVAL;
    int rc = make(cm, hosts, pairs, 0, bytes);
    for (uint32_t i = 0; rc == 0 && i < pairs; i++) {
        cm->flows[i].src = i;
        cm->flows[i].dst = target + i;
    }
    return rc;
}

int simx_cm_fan_out(struct simx_cm *cm, uint32_t hosts, uint32_t peers, uint32_t messages,
                    uint64_t bytes)
{
    if (peers == 0 || peers >= hosts || messages == 0)
        return -EINVAL;
    int rc = make(cm, hosts, messages, 0, bytes);
    for (uint32_t i = 0; rc == 0 && i < messages; i++)
        cm->flows[i].dst = 1 + i % peers;
    return rc;
}

int simx_cm_spread(struct simx_cm *cm, uint32_t hosts, uint32_t peers, uint64_t bytes)
{
    if (peers == 0 || peers >= hosts)
        return -EINVAL;
    int rc = make(cm, hosts, (uint64_t)hosts * peers, 0, bytes);
    for (uint64_t i = 0; rc == 0 && i < cm->num_flows; i++) {
        cm->flows[i].src = (uint32_t)(i % hosts);
        cm->flows[i].dst = (uint32_t)((i + (i / hosts + 1) * hosts / (peers + 1)) % hosts);
    }
    return rc;
}

int simx_cm_alltoall(struct simx_cm *cm, uint32_t hosts, uint64_t bytes, bool serial)
{
    if (hosts < 2)
        return -EINVAL;
    uint32_t sends = hosts - 1; /* of each host; if serial all but the last with a trigger */
    uint32_t triggers = serial ? sends - 1 : 0;
    int rc = make(cm, hosts, (uint64_t)hosts * sends, (uint64_t)hosts * triggers, bytes);
    for (uint32_t i = 0; rc == 0 && i < cm->num_flows; i++) {
        struct simx_flow *flow = &cm->flows[i];
        uint32_t host = i / sends, nth = i % sends;

        flow->src = host;
        flow->dst = (host + 1 + nth) % hosts;
        if (serial && nth > 0)
            await(flow, host * triggers + nth - 1);
        if (nth < triggers)
            flow->send_done = (int32_t)(host * triggers + nth);
    }
    return rc;
}

int simx_cm_loop(struct simx_cm *cm, uint32_t hosts, uint32_t messages, uint32_t outstanding,
                 uint64_t bytes)
{
    if (outstanding == 0 || outstanding > messages)
        return -EINVAL;
    uint32_t waiting = messages - outstanding;
    int rc = make(cm, hosts, messages, waiting, bytes);
    for (uint32_t i = 0; rc == 0 && i < messages; i++) {
        cm->flows[i].dst = hosts - 1;
        if (i < waiting)
            cm->flows[i].send_done = (int32_t)i;
        if (i >= outstanding)
            await(&cm->flows[i], i - outstanding);
    }
    return rc;
}

/*
 * Where piece `piece` of `hosts` nearly equal ones begins. Two terms, as bytes * piece may not fit.
 */
static uint64_t piece_begin(uint64_t bytes, uint32_t hosts, uint32_t piece)
{
    return bytes / hosts * piece + bytes % hosts * piece / hosts;
}

int simx_cm_ring_allreduce(struct simx_cm *cm, uint32_t hosts, uint64_t bytes)
{
    if (hosts < 2 || bytes < hosts)
        return -EINVAL;
    uint32_t steps = 2 * (hosts - 1);
    int rc = make(cm, hosts, (uint64_t)hosts * steps, (uint64_t)hosts * (steps - 1), bytes);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        struct simx_flow *flow = &cm->flows[i];
        uint32_t step = i / hosts, host = i % hosts;
        uint32_t piece = (host + 2 * hosts - step) % hosts;

        flow->src = host;
        flow->dst = (host + 1) % hosts;
        flow->bytes = piece_begin(bytes, hosts, piece + 1) - piece_begin(bytes, hosts, piece);
        /* Trigger step * hosts + h: that step has arrived at host h. */
        if (step > 0)
            await(flow, (step - 1) * hosts + host);
        if (step + 1 < steps)
            flow->recv_done = (int32_t)(step * hosts + flow->dst);
    }
    return 0;
}
