/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an operation that failed is reported with.
 */
#ifndef MRD_OFI_ERRORS_H
#define MRD_OFI_ERRORS_H

#include "mrd/mrd.h"

/* The FI_ error number of a completion's status. */
int mrd_ofi_error_of(enum mrd_wc_status status);
/*
 * What to say about a failed operation, of malloc(); NULL: no memory. peer: its address, or NULL.
 * status: 0, if it was not mrd that it failed by.
 */
char *mrd_ofi_error_text(const char *peer, int error, int status);

#endif
