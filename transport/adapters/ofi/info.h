/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What getinfo is made of: check.c says whether hints can be met, ends.c finds out which addresses
 * are meant, iface.c which ones this machine has, and info.c fills in what is returned.
 */
#ifndef MRD_OFI_INFO_H
#define MRD_OFI_INFO_H

#include "transport/adapters/ofi/ofi.h"

/* What endpoints can do, and of that, what concerns the transmit and the receive side. */
#define MRD_OFI_TX_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE)
#define MRD_OFI_RX_CAPS                                                                            \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE |        \
     FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT)
#define MRD_OFI_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define MRD_OFI_CAPS        (MRD_OFI_TX_CAPS | MRD_OFI_RX_CAPS | MRD_OFI_DOMAIN_CAPS)

#define MRD_OFI_TX_FLAGS                                                                           \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define MRD_OFI_RX_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* Tags have 64 fields of one bit: an application may ignore any bits. */
#define MRD_OFI_TAG_FORMAT 0xaaaaaaaaaaaaaaaaull

/* The protocol of endpoints, which wire.h describes. Bit 31: it is a provider's own. */
#define MRD_OFI_PROTOCOL (1u << 31 | 0x6d7264u)

enum {
    MRD_OFI_OBJECTS = 1 << 16, /* CQs, endpoints, counters of a domain; memory is the limit */
    MRD_OFI_REGIONS = 1 << 20, /* memory regions of a domain; likewise */
    MRD_OFI_KEY_BYTES = 8,     /* of a region's key */
    MRD_OFI_CQ_DATA_BYTES = 8, /* of what a message carries to the other end's CQ */
};

/* Fills the list for these hints, as fi_provider.getinfo does. */
int mrd_ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                    const struct fi_info *hints, struct fi_info **info);

#endif
