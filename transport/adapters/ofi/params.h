/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment variables FI_MRD_*.
 *
 * mrd_ofi_params_define() tells libfabric of them, so that `fi_info -e` lists them;
 * mrd_ofi_params_parse() reads them. A value that makes no sense is reported to the log, and the
 * default is used.
 */
#ifndef MRD_OFI_PARAMS_H
#define MRD_OFI_PARAMS_H

#include "transport/adapters/ofi/ofi.h"

void mrd_ofi_params_define(void);
/* Fills in all of it. */
void mrd_ofi_params_parse(struct mrd_ofi_params *params);
void mrd_ofi_params_free(struct mrd_ofi_params *params);

#endif
