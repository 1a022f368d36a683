/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How receives end: the application is told, and the sender, if it waits for that.
 */
#ifndef MRD_OFI_RX_END_H
#define MRD_OFI_RX_END_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_peer;
struct mrd_ofi_rx;

/*
 * `rx` has got `got` bytes of a message, from `at` in its buffer on: tells the application. error:
 * a FI_ error number, or 0. Without a message `peer` is NULL, or who it did not come from.
 */
void mrd_ofi_rx_end(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, struct mrd_ofi_peer *peer,
                    const struct mrd_ofi_wire_head *head, uint64_t at, uint64_t got, int error,
                    int status);
/* The receive takes no more, and its buffer is the application's again. */
void mrd_ofi_rx_report_cancelled(struct mrd_ofi_ep *ep, const struct mrd_ofi_rx *rx);
/* Lets the sender of a message know that it is done with. */
void mrd_ofi_rx_confirm(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                        const struct mrd_ofi_wire_head *head, int error);

#endif
