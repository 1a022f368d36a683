/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll sets, and fi_trywait(). */
#ifndef MRD_OFI_POLL_H
#define MRD_OFI_POLL_H

#include "transport/adapters/ofi/ofi.h"

int mrd_ofi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);
/* fi_trywait(): 0, or -FI_EAGAIN: one of the objects has something. */
int mrd_ofi_trywait(struct fid_fabric *fabric, struct fid **fids, int num);

#endif
