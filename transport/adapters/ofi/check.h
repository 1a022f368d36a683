/* SPDX-License-Identifier: BSD-2-Clause */
/* What endpoints can do, against what an application asks for. */
#ifndef MRD_OFI_CHECK_H
#define MRD_OFI_CHECK_H

#include "transport/adapters/ofi/ofi.h"

/* Can all that is asked for be had? 0, or -FI_ENODATA: a line in the log says what cannot. */
int mrd_ofi_check_hints(uint32_t version, const struct fi_info *hints);
/* With what is implied: messages are sent and received, memory is read and written both ways. */
uint64_t mrd_ofi_caps_implied(uint64_t caps);
/*
 * Is an endpoint, a domain or a fabric to be made with these attributes one that getinfo could have
 * returned? 0 or -FI_EINVAL with a line in the log.
 */
int mrd_ofi_check_ep_info(const struct fi_info *info);

#endif
