/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/qp.h"

#include <stdlib.h>
#include <string.h>

#include "core/packet.h"
#include "core/rng.h"

enum { QPS_FIRST = 64, PS_PER_NS = 1000 };

struct model_qp *model_qp_alloc(struct model_flows *flows)
{
    struct mrd_node *free_node = mrd_list_pop(&flows->free);

    if (free_node)
        return mrd_container_of(free_node, struct model_qp, node);
    if (flows->num_qps == flows->cap_qps) {
        uint32_t cap = flows->cap_qps ? 2 * flows->cap_qps : QPS_FIRST;
        struct model_qp **qps = realloc(flows->qps, cap * sizeof(*qps));

        if (!qps)
            return NULL;
        flows->qps = qps;
        flows->cap_qps = cap;
    }

    size_t words = flows->ops->has_bits ? 2 * (flows->range_mask / 64 + 1) : 0;
    struct model_qp *qp = malloc(sizeof(*qp) + words * sizeof(qp->bits[0]));

    if (!qp)
        return NULL;
    qp->index = flows->num_qps;
    qp->generation = 0;
    flows->qps[flows->num_qps++] = qp;
    return qp;
}

void model_qp_free(struct model_qp *qp)
{
    mrd_list_prepend(&qp->flows->free, &qp->node);
}

/* Ports depend on the seed and the flow's number alone: they are the same for each transport. */
static void choose_paths(struct model_qp *qp)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, qp->flows->config.seed);
    mrd_rng_init(&rng, mrd_rng_u64(&rng) ^ qp->flow);
    qp->path = (uint16_t)mrd_rng_u64(&rng);
    qp->ack_path = (uint16_t)mrd_rng_u64(&rng);
}

void model_qp_open(struct model_qp *qp)
{
    struct model_flows *flows = qp->flows;
    uint64_t payload = flows->config.payload_bytes;
    uint32_t words = flows->range_mask / 64 + 1;

    mrd_timer_init(&qp->timer);
    mrd_list_init(&qp->node);
    qp->is_open = true;
    qp->requester = (struct model_requester){
        .num_packets = qp->bytes ? (uint32_t)((qp->bytes + payload - 1) / payload) : 1,
        .rto_from_ns = MRD_SIM_NEVER,
    };
    qp->responder = (struct model_responder){0};
    if (flows->ops->has_bits) {
        memset(qp->bits, 0, 2 * words * sizeof(qp->bits[0]));
        qp->requester.sacked = qp->bits;
        qp->responder.received = qp->bits + words;
    }
    if (flows->config.dcqcn)
        model_dcqcn_init(&qp->requester.dcqcn, &flows->dcqcn);
    choose_paths(qp);
}

struct model_qp *model_qp_find(const struct model_flows *flows, const struct model_header *header)
{
    struct model_qp *qp = header->qp < flows->num_qps ? flows->qps[header->qp] : NULL;

    return qp && qp->is_open && qp->generation == header->generation ? qp : NULL;
}

/* ------------------------------------------------------------------------------------- packets */

uint32_t model_qp_wire_bytes(const struct model_flows *flows, uint64_t bytes, uint32_t psn)
{
    uint64_t payload = flows->config.payload_bytes, at = psn * payload;
    uint64_t left = bytes > at ? bytes - at : 0;

    return (uint32_t)(left < payload ? left : payload) + flows->wire_data +
           (psn == 0 ? flows->wire_first : 0);
}

/* Send a packet. Returns when its first link will have sent it. */
static uint64_t post(struct model_qp *qp, bool is_data, uint32_t wire_bytes,
                     struct model_header header)
{
    struct mrd_sim *sim = qp->flows->sim;
    struct mrd_sim_packet *packet = mrd_sim_stack_alloc(sim, sizeof(header));

    if (!packet) /* no memory: the packet is lost */
        return mrd_sim_now(sim);
    header.qp = qp->index;
    header.generation = qp->generation;
    memcpy(packet->data, &header, sizeof(header));
    packet->to = is_data ? qp->dst : qp->src;
    packet->path = is_data ? qp->path : qp->ack_path;
    packet->ecn = is_data && qp->flows->config.dcqcn ? MRD_ECN_ECT0 : MRD_ECN_NOT_ECT;
    packet->wire_bytes = wire_bytes;
    packet->urgent = !is_data;
    return mrd_sim_stack_send(sim, is_data ? qp->src : qp->dst, packet);
}

/*
 * Set when the next packet may leave. A flow that was late, for its turn or an ack, catches up by
 * one packet.
 */
static void pace(struct model_qp *qp, uint32_t wire_bytes)
{
    struct model_requester *r = &qp->requester;
    uint64_t now_ns = mrd_sim_now(qp->flows->sim), now_ps = now_ns * PS_PER_NS;
    uint64_t gap_ps = model_dcqcn_pace(&r->dcqcn, &qp->flows->dcqcn, wire_bytes, now_ns);

    if (gap_ps == 0)
        return;
    if (r->pace_ps + gap_ps > now_ps)
        r->pace_ps += gap_ps;
    else
        r->pace_ps = now_ps;
}

uint64_t model_qp_send(struct model_qp *qp, uint32_t psn)
{
    struct model_flows *flows = qp->flows;
    struct model_requester *r = &qp->requester;
    uint32_t wire_bytes = model_qp_wire_bytes(flows, qp->bytes, psn);

    flows->stats.packets++;
    if (psn < r->sent)
        flows->stats.retransmitted++;
    else
        r->sent = psn + 1;
    if (psn == r->una)
        r->rto_from_ns = mrd_sim_now(flows->sim);
    if (flows->config.dcqcn)
        pace(qp, wire_bytes);
    return post(qp, true, wire_bytes,
                (struct model_header){
                    .kind = MODEL_DATA,
                    .psn = psn,
                    .ack_request =
                        psn + 1 == r->num_packets || model_qp_inflight(qp) == flows->window_packets,
                });
}

void model_qp_respond(struct model_qp *qp, enum model_packet_kind kind, uint32_t sack)
{
    struct model_flows_stats *stats = &qp->flows->stats;

    stats->acks += kind == MODEL_ACK;
    stats->naks += kind == MODEL_NAK;
    stats->cnps += kind == MODEL_CNP;
    post(qp, false, qp->flows->wire_control[kind],
         (struct model_header){.kind = (uint8_t)kind, .psn = qp->responder.expected, .sack = sack});
}

void model_qp_deliver(struct model_qp *qp, uint32_t packets)
{
    const struct model_flows *flows = qp->flows;
    uint64_t payload = flows->config.payload_bytes, at = qp->responder.expected * payload;
    uint64_t bytes = packets * payload;

    qp->responder.expected += packets;
    if (!flows->config.received || packets == 0)
        return;
    if (bytes > qp->bytes - at)
        bytes = qp->bytes - at;
    flows->config.received(flows->config.arg, qp->flow, bytes, mrd_sim_now(flows->sim));
}
