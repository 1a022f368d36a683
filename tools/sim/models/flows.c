/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/flows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/packet.h"
#include "core/rng.h"
#include "tools/sim/models/qp.h"
#include "transport/backend.h"

enum {
    QPS_FIRST = 64,
    PACKETS_MAX = 1 << 30, /* of a flow: PSNs do not wrap */
    PS_PER_NS = 1000,
};

/* --------------------------------------------------------------------------------- queue pairs */

static struct model_qp *alloc_qp(struct model_flows *flows)
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

static void init_qp(struct model_qp *qp)
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

int model_flows_start(struct model_flows *flows, uint32_t flow, uint32_t src, uint32_t dst,
                      uint64_t bytes)
{
    uint32_t hosts = flows->num_hosts;

    if (src >= hosts || dst >= hosts || src == dst ||
        bytes / flows->config.payload_bytes >= PACKETS_MAX)
        return -EINVAL;

    struct model_nic *nic = &flows->nics[src];
    struct model_qp *qp = alloc_qp(flows);

    if (!qp)
        return -ENOMEM;
    qp->flows = flows;
    if (model_nic_add(nic) != 0) {
        model_qp_free(qp);
        return -ENOMEM;
    }
    qp->nic = nic;
    qp->flow = flow;
    qp->src = src;
    qp->dst = dst;
    qp->bytes = bytes;
    init_qp(qp);
    model_nic_update(nic, qp);
    model_nic_run(nic);
    return 0;
}

/* ------------------------------------------------------------------------------------- packets */

uint32_t model_flows_wire_bytes(const struct model_flows *flows, uint64_t bytes, uint32_t psn)
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
    uint32_t wire_bytes = model_flows_wire_bytes(flows, qp->bytes, psn);

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

/* ----------------------------------------------------------------------------------- receiving */

/* The receiver got a data packet: answer its mark, even if the transport drops the packet. */
static void take_data(struct model_qp *qp, const struct model_header *header, bool marked)
{
    struct model_flows *flows = qp->flows;
    struct model_responder *r = &qp->responder;
    uint64_t now_ns = mrd_sim_now(flows->sim);

    if (marked && flows->config.dcqcn && now_ns >= r->cnp_at_ns) {
        r->cnp_at_ns = now_ns + flows->dcqcn.cnp_ns;
        model_qp_respond(qp, MODEL_CNP, 0);
    }
    flows->ops->take_data(qp, header);
}

static void end_flow(struct model_qp *qp)
{
    struct model_flows *flows = qp->flows;
    uint32_t flow = qp->flow;

    qp->generation++; /* so that packets still under way belong to no flow */
    model_nic_remove(qp->nic, qp);
    if (flows->config.done)
        flows->config.done(flows->config.arg, flow, mrd_sim_now(flows->sim));
}

/* The sender got an ACK or NAK. */
static void take_response(struct model_qp *qp, const struct model_header *header)
{
    struct model_requester *r = &qp->requester;
    struct model_nic *nic = qp->nic;
    uint32_t una_before = r->una;

    if (header->psn > r->una) {
        assert(header->psn <= r->sent);
        r->una = header->psn;
        r->timeouts = 0;
    }
    qp->flows->ops->take_response(qp, header, una_before);
    if (r->una == r->num_packets)
        end_flow(qp);
    else
        model_nic_update(nic, qp);
    model_nic_run(nic);
}

/* The queue pair of a packet; NULL: its flow is over. */
static struct model_qp *find_qp(const struct model_flows *flows, const struct model_header *header)
{
    struct model_qp *qp = header->qp < flows->num_qps ? flows->qps[header->qp] : NULL;

    return qp && qp->is_open && qp->generation == header->generation ? qp : NULL;
}

static void receive(void *arg, struct mrd_sim_packet *packet)
{
    struct model_nic *nic = arg;
    struct model_flows *flows = nic->flows;
    bool broken = packet->broken || packet->len != sizeof(struct model_header);
    bool marked = packet->ecn == MRD_ECN_CE;
    struct model_header header = {0};

    if (!broken)
        memcpy(&header, packet->data, sizeof(header));
    mrd_sim_stack_release(flows->sim, packet);
    flows->stats.broken += broken; /* seen by the ICRC; it may not even be ours */

    struct model_qp *qp = broken ? NULL : find_qp(flows, &header);

    if (!qp)
        return;
    switch ((enum model_packet_kind)header.kind) {
    case MODEL_DATA:
        take_data(qp, &header, marked);
        break;
    case MODEL_ACK:
    case MODEL_NAK:
        take_response(qp, &header);
        break;
    case MODEL_CNP:
        model_dcqcn_cut(&qp->requester.dcqcn, &flows->dcqcn, mrd_sim_now(flows->sim));
        break;
    case MODEL_KINDS:
        break;
    }
}

static void expire(void *arg)
{
    model_nic_expire(arg);
}

/* --------------------------------------------------------------------------------------- create */

static int attach_hosts(struct model_flows *flows)
{
    static const struct mrd_sim_stack_ops ops = {.receive = receive, .timer = expire};

    flows->nics = calloc(flows->num_hosts, sizeof(flows->nics[0]));
    if (!flows->nics)
        return -ENOMEM;
    for (uint32_t i = 0; i < flows->num_hosts; i++) {
        struct model_nic *nic = &flows->nics[i];

        *nic = (struct model_nic){.flows = flows, .host = i};
        mrd_list_init(&nic->ready);
        if (mrd_sim_stack_attach(flows->sim, i, &ops, nic) != 0) {
            mrd_error_set("model of a transport: a host is in use");
            return -EINVAL;
        }
        flows->num_attached++;
    }
    return 0;
}

struct model_flows *model_flows_create(struct mrd_sim *sim, const struct model_flows_config *config)
{
    struct model_flows *flows = calloc(1, sizeof(*flows));
    int ret = -ENOMEM;

    if (flows) {
        flows->sim = sim;
        mrd_list_init(&flows->free);
        flows->num_hosts = mrd_sim_stack_attr(sim)->hosts;
        ret = model_flows_configure(flows, config);
    }
    if (ret == 0)
        ret = attach_hosts(flows);
    if (ret == 0)
        return flows;
    if (ret == -ENOMEM)
        mrd_error_set("model of a transport: no memory");
    model_flows_destroy(flows);
    errno = -ret;
    return NULL;
}

void model_flows_destroy(struct model_flows *flows)
{
    if (!flows)
        return;
    for (uint32_t i = 0; i < flows->num_attached; i++) {
        mrd_sim_stack_detach(flows->sim, i);
        free(flows->nics[i].timers.timer);
    }
    for (uint32_t i = 0; i < flows->num_qps; i++)
        free(flows->qps[i]);
    free(flows->qps);
    free(flows->nics);
    free(flows);
}

struct model_flows_stats model_flows_get_stats(const struct model_flows *flows)
{
    return flows->stats;
}
