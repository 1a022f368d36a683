/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application reads and writes remote memory by.
 */
#ifndef MRD_OFI_RMA_H
#define MRD_OFI_RMA_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_op;

extern struct fi_ops_rma mrd_ofi_rma_ops;
/* Of an operation that is filled in: starts it, or waits for a key. */
void mrd_ofi_rma_post(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op);

#endif
