/* SPDX-License-Identifier: BSD-2-Clause */
/* The context of mrd of an endpoint, with all that it needs there. */
#ifndef MRD_OFI_CONTEXT_H
#define MRD_OFI_CONTEXT_H

struct mrd_ofi_ep;

/* Opens the endpoint's context. -FI_ error number: what was made is to be closed. */
int mrd_ofi_context_open(struct mrd_ofi_ep *ep);
/* Also of what was made in part. */
void mrd_ofi_context_close(struct mrd_ofi_ep *ep);

#endif
