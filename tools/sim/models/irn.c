/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IRN: Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018.
 *
 * The responder takes what comes and acks each packet, one out of order by a NAK that names both the expected PSN and
 * its own. The requester enters recovery by a NAK or a timeout: it sends the first packet that is not acked again, and
 * every other that is not and was followed by one that is, each once in a recovery; then new ones. Recovery ends when
 * all are acked that had been sent when it began. What is lost twice waits for the timeout, which is short if little is
 * in flight.
 *
 * The window, BDP-FC, is of packets in the network: what is sacked has left it. The paper counts from the first packet
 * that is not acked, so that a BDP of bits is enough at both ends; but then a loss keeps the flow from sending until
 * what was sent again is acked, a round trip, which costs about what going back costs. irn.range_windows 1 is the
 * paper's way; the default lets the baseline have the better one.
 */
#include "core/bitmap.h"
#include "tools/sim/models/qp.h"

enum {
    BTH_BYTES = 12,
    RETH_BYTES = 16, /* in each packet: it may come out of order */
    AETH_BYTES = 4,
    SACK_BYTES = 4, /* a PSN, padded */
    ICRC_BYTES = 4,
    CNP_BYTES = 16,
};

/* Is a lost packet to be sent again? requester.resend is the first of them. */
static bool finds_lost(struct model_qp *qp)
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

static bool can_send(struct model_qp *qp)
{
    const struct model_requester *r = &qp->requester;

    return finds_lost(qp) ||
           (r->next < r->num_packets && model_qp_inflight(qp) < qp->flows->window_packets &&
            r->next - r->una < qp->flows->range_packets);
}

static uint32_t take(struct model_qp *qp)
{
    return finds_lost(qp) ? qp->requester.resend++ : qp->requester.next++;
}

static void data(struct model_qp *qp, const struct model_header *header)
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
    if (r->sack_end <= r->una)
        r->sack_end = r->una + 1; /* the first counts as lost, whatever is sacked */
}

static void response(struct model_qp *qp, const struct model_header *header, uint32_t una_before)
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
    if (finds_lost(qp) && r->resend == r->una)
        r->rto_from_ns = MRD_SIM_NEVER; /* until it is sent again */
    else if (r->una != una_before)
        r->rto_from_ns = r->next > r->una ? mrd_sim_now(qp->flows->sim) : MRD_SIM_NEVER;
}

static void timeout(struct model_qp *qp)
{
    recover(&qp->requester);
}

static uint64_t rto_ns(const struct model_qp *qp)
{
    return model_qp_inflight(qp) < qp->flows->rto_low_packets ? qp->flows->rto_low_ns
                                                              : qp->flows->rto_ns;
}

const struct model_qp_ops model_irn = {
    .name = "irn",
    .has_bits = true,
    .data_bytes = BTH_BYTES + RETH_BYTES + ICRC_BYTES,
    .control_bytes =
        {
            [MODEL_ACK] = BTH_BYTES + AETH_BYTES + ICRC_BYTES,
            [MODEL_NAK] = BTH_BYTES + AETH_BYTES + SACK_BYTES + ICRC_BYTES,
            [MODEL_CNP] = BTH_BYTES + CNP_BYTES + ICRC_BYTES,
        },
    .can_send = can_send,
    .take = take,
    .data = data,
    .response = response,
    .timeout = timeout,
    .rto_ns = rto_ns,
};
