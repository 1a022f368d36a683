/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network interfaces that lead to no other machine: each host has them, often with the same
 * addresses.
 */
#ifndef MRD_OFI_LINKS_H
#define MRD_OFI_LINKS_H

#include "transport/adapters/ofi/iface.h"

/* Fills in host_only and guest_nat. */
void mrd_ofi_links_mark(struct mrd_ofi_iface *list, int num);

#endif
