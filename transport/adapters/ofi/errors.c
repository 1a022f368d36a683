/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/errors.h"

#include <rdma/fi_errno.h>
#include <stdio.h>

int mrd_ofi_error_of(enum mrd_wc_status status)
{
    switch (status) {
    case MRD_WC_SUCCESS:
        return 0;
    case MRD_WC_LOC_LEN_ERR:
        return FI_ETRUNC;
    case MRD_WC_LOC_PROT_ERR:
    case MRD_WC_REM_ACCESS_ERR:
        return FI_EACCES;
    case MRD_WC_WR_FLUSH_ERR:
    case MRD_WC_REM_ABORT_ERR:
        return FI_ECANCELED;
    case MRD_WC_REM_INV_REQ_ERR:
        return FI_ECONNREFUSED;
    case MRD_WC_RETRY_EXC_ERR:
        return FI_EHOSTUNREACH;
    case MRD_WC_RNR_RETRY_EXC_ERR:
        return FI_ENORX;
    default:
        return FI_EIO;
    }
}

char *mrd_ofi_error_text(const char *peer, int error, int status)
{
    const char *why = status ? mrd_wc_status_str((enum mrd_wc_status)status) : fi_strerror(error);
    char *text;

    return asprintf(&text, "%s%s%s", peer ? peer : "", peer ? ": " : "", why) < 0 ? NULL : text;
}
