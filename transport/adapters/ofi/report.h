/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application is told of its operations: entries of completion queues, counters, and
 * errors of what it does not wait for.
 */
#ifndef MRD_OFI_REPORT_H
#define MRD_OFI_REPORT_H

struct mrd_ofi_ep;
struct mrd_ofi_op;
struct mrd_ofi_peer;

/* The operation has ended: adds its entry, and counts it. */
void mrd_ofi_report_op(struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op);
/* mrd_ofi_op.done of a message of the application's. */
void mrd_ofi_report_sent(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);
/*
 * What was injected to the peer failed; NULL: it is forgotten. No entry without a context tells, as
 * applications take one for an operation of theirs. Receives for a peer that was never heard of end,
 * as those for others do by the event; without any the endpoint's EQ tells, and without one a call
 * that reads its CQ.
 */
void mrd_ofi_report_injected(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, int error,
                             int status);

#endif
