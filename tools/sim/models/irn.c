/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IRN: Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018.
 *
 * The responder takes packets in any order and answers each: one out of order with a NAK that holds
 * both the expected PSN and that of the packet, others with an ack.
 *
 * A NAK or a timeout starts recovery. The requester retransmits the first packet that is not acked,
 * and each other one that is neither acked nor sacked but has a later one that is; each once in a
 * recovery. Then it sends new ones. Recovery ends when all packets are acked that had been sent
 * when it began. A packet lost twice waits for the timeout, which is short if few packets are
 * in flight.
 *
 * The window, BDP-FC in the paper, limits packets in flight: a sacked packet is not in flight any
 * more. The paper counts from the first packet that is not acked, so that bitmaps of a BDP are
 * enough. But then a loss stops the flow for the round trip until the retransmission is acked,
 * which costs about as much as going back. irn.range_windows 1 is the paper's way. The default is
 * kinder to this baseline.
 */
#include "core/bitmap.h"
#include "tools/sim/models/qp.h"

/* Move requester.resend to the next lost packet to be retransmitted. False: there is none. */
static bool find_lost(struct model_qp *qp)
{
    struct model_requester *r = &qp->requester;

    if (!r->recovering)
        return false;
    if (r->resend < r->una)
        r->resend = r->una;
    while (r->resend < r->sack_end && mrd_bit_test(r->sacked, qp->flows->range_mask, r->resend))
        r->resend++;
    return r->resend < r->sack_end;
}

static bool find_packet(struct model_qp *qp)
{
    const struct model_requester *r = &qp->requester;

    return find_lost(qp) ||
           (r->next < r->num_packets && model_qp_inflight(qp) < qp->flows->window_packets &&
            r->next - r->una < qp->flows->range_packets);
}

static uint32_t take_packet(struct model_qp *qp)
{
    return find_lost(qp) ? qp->requester.resend++ : qp->requester.next++;
}

static void take_data(struct model_qp *qp, const struct model_header *header)
{
    struct model_responder *r = &qp->responder;
    uint32_t mask = qp->flows->range_mask, packets = 0;

    if (header->psn < r->expected || mrd_bit_test(r->received, mask, header->psn))
        qp->flows->stats.spurious++;
    else
        mrd_bit_set(r->received, mask, header->psn);
    if (header->psn > r->expected) {
        qp->flows->stats.out_of_order++;
        model_qp_respond(qp, MODEL_NAK, header->psn);
        return;
    }
    while (mrd_bit_test(r->received, mask, r->expected + packets)) {
        mrd_bit_clear(r->received, mask, r->expected + packets);
        packets++;
    }
    model_qp_deliver(qp, packets);
    model_qp_respond(qp, MODEL_ACK, 0);
}

static void recover(struct model_requester *r)
{
    r->recovering = true;
    r->recovery_end = r->next;
    r->resend = r->una;
    /* The first packet counts as lost, even if no later one is sacked. */
    if (r->sack_end <= r->una)
        r->sack_end = r->una + 1;
}

static void take_response(struct model_qp *qp, const struct model_header *header,
                          uint32_t una_before)
{
    struct model_requester *r = &qp->requester;
    uint32_t mask = qp->flows->range_mask;

    for (uint32_t psn = una_before; psn < r->una; psn++) {
        r->num_sacked -= mrd_bit_test(r->sacked, mask, psn);
        mrd_bit_clear(r->sacked, mask, psn);
    }
    if (r->una >= r->recovery_end)
        r->recovering = false;
    if (header->kind == MODEL_NAK && header->sack > r->una && header->sack < r->next) {
        r->num_sacked += !mrd_bit_test(r->sacked, mask, header->sack);
        mrd_bit_set(r->sacked, mask, header->sack);
        if (r->sack_end <= header->sack)
            r->sack_end = header->sack + 1;
        if (!r->recovering)
            recover(r);
    }
    if (find_lost(qp) && r->resend == r->una)
        r->rto_from_ns = MRD_SIM_NEVER; /* until `una` is retransmitted */
    else if (r->una != una_before)
        r->rto_from_ns = r->next > r->una ? mrd_sim_now(qp->flows->sim) : MRD_SIM_NEVER;
}

static void time_out(struct model_qp *qp)
{
    recover(&qp->requester);
}

const struct model_qp_ops model_irn = {
    .name = "irn",
    .has_bits = true,
    /* Each packet has the address, as it may come out of order. */
    .data_bytes = MODEL_BTH_BYTES + MODEL_RETH_BYTES + MODEL_ICRC_BYTES,
    .sack_bytes = 4, /* a PSN, padded */
    .find_packet = find_packet,
    .take_packet = take_packet,
    .take_data = take_data,
    .take_response = take_response,
    .time_out = time_out,
};
