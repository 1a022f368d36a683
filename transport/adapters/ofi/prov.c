/* SPDX-License-Identifier: BSD-2-Clause */
/* Where libfabric enters. */
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/info.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/params.h"

/* libfabric goes away. */
static void cleanup(void)
{
    mrd_set_log(NULL, NULL, MRD_LOG_ERROR);
    mrd_ofi_params_free(&mrd_ofi_params);
}

FI_EXT_INI;
FI_EXT_INI
{
    mrd_ofi_provider.getinfo = mrd_ofi_getinfo;
    mrd_ofi_provider.fabric = mrd_ofi_fabric_open;
    mrd_ofi_provider.cleanup = cleanup;
    mrd_ofi_params_define();
    return &mrd_ofi_provider;
}
