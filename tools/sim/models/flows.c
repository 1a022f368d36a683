/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/flows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/packet.h"
#include "tools/sim/models/configure.h"
#include "tools/sim/models/nic.h"
#include "tools/sim/models/qp.h"
#include "transport/backend.h"

enum { PACKETS_MAX = 1 << 30 }; /* of a flow: PSNs do not wrap */

/* --------------------------------------------------------------------------------------- start */

int model_flows_start(struct model_flows *flows, uint32_t flow, uint32_t src, uint32_t dst,
                      uint64_t bytes)
{
    uint32_t hosts = flows->num_hosts;

    if (src >= hosts || dst >= hosts || src == dst ||
        bytes / flows->config.payload_bytes >= PACKETS_MAX)
        return -EINVAL;

    struct model_nic *nic = &flows->nics[src];
    struct model_qp *qp = model_qp_alloc(flows);

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
    model_qp_open(qp);
    model_nic_update(nic, qp);
    model_nic_run(nic);
    return 0;
}

uint32_t model_flows_wire_bytes(const struct model_flows *flows, uint64_t bytes, uint32_t psn)
{
    return model_qp_wire_bytes(flows, bytes, psn);
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

    struct model_qp *qp = broken ? NULL : model_qp_find(flows, &header);

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
