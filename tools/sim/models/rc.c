/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2's reliable connection: InfiniBand Architecture Specification, volume 1, 9.7, and annex 17.
 *
 * The responder takes the expected PSN, acks older ones as duplicates, and drops later ones. It
 * answers the first packet after a gap with a NAK, and the following ones not at all until the
 * expected one has come. The requester goes back to the PSN of a NAK, or after a timeout to the
 * first PSN that is not acked, and sends all from there again. So each loss costs the window: with
 * W packets in flight and loss p, a share of (1 - p) / (1 - p + p W) of the packets sent
 * is delivered.
 */
#include "tools/sim/models/qp.h"

static bool find_packet(struct model_qp *qp)
{
    return qp->requester.next < qp->requester.num_packets &&
           model_qp_inflight(qp) < qp->flows->window_packets;
}

static uint32_t take_packet(struct model_qp *qp)
{
    return qp->requester.next++;
}

/* Send an ack if the packet asks for one, or if it is the ack_packets-th since the last. */
static void acknowledge(struct model_qp *qp, bool ack_request)
{
    struct model_responder *r = &qp->responder;

    if (++r->unacked < qp->flows->ack_packets && !ack_request)
        return;
    r->unacked = 0;
    model_qp_respond(qp, MODEL_ACK, 0);
}

static void take_data(struct model_qp *qp, const struct model_header *header)
{
    struct model_responder *r = &qp->responder;

    if (header->psn > r->expected) {
        qp->flows->stats.out_of_order++;
        if (r->nak_sent)
            return;
        r->nak_sent = true;
        r->unacked = 0;
        model_qp_respond(qp, MODEL_NAK, 0);
        return;
    }
    if (header->psn == r->expected) {
        r->nak_sent = false;
        model_qp_deliver(qp, 1);
    } else {
        qp->flows->stats.spurious++;
    }
    acknowledge(qp, header->ack_request);
}

static void take_response(struct model_qp *qp, const struct model_header *header,
                          uint32_t una_before)
{
    struct model_requester *r = &qp->requester;

    if (r->next < r->una)
        r->next = r->una;
    if (header->kind == MODEL_NAK && header->psn == r->una)
        r->next = r->una;
    else if (r->una == una_before)
        return;
    r->rto_from_ns = r->next > r->una ? mrd_sim_now(qp->flows->sim) : MRD_SIM_NEVER;
}

static void time_out(struct model_qp *qp)
{
    qp->requester.next = qp->requester.una;
}

const struct model_qp_ops model_rc = {
    .name = "rc",
    .data_bytes = MODEL_BTH_BYTES + MODEL_ICRC_BYTES,
    .first_bytes = MODEL_RETH_BYTES,
    .find_packet = find_packet,
    .take_packet = take_packet,
    .take_data = take_data,
    .take_response = take_response,
    .time_out = time_out,
};
