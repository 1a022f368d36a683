/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint has a name, its address, and no connections. */
#ifndef MRD_OFI_CM_H
#define MRD_OFI_CM_H

#include "transport/adapters/ofi/ofi.h"

extern struct fi_ops_cm mrd_ofi_cm_ops;

#endif
