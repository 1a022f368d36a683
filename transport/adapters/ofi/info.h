/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What getinfo is made of: check.c says whether hints can be met, ends.c finds out which addresses
 * are meant, iface.c which ones this machine has, and info.c fills in what is returned.
 */
#ifndef MRD_OFI_INFO_H
#define MRD_OFI_INFO_H

#include <net/if.h>

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
    MRD_OFI_OBJECTS = 1 << 16,      /* CQs, endpoints, counters of a domain; memory is the limit */
    MRD_OFI_REGIONS = 1 << 20,      /* memory regions of a domain; likewise */
    MRD_OFI_KEY_BYTES = 8,          /* of a region's key */
    MRD_OFI_CQ_DATA_BYTES = 8,      /* of what a message carries to the other end's CQ */
    MRD_OFI_NETWORK_BYTES_MAX = 64, /* text of a network, such as 192.0.2.0/24 */
};

/* -------------------------------------------------------------------------------------- check.c */

/* Can all that is asked for be had? 0, or -FI_ENODATA: a line in the log says what cannot. */
int mrd_ofi_check_hints(uint32_t version, const struct fi_info *hints);
/* With what is implied: messages are sent and received, memory is read and written both ways. */
uint64_t mrd_ofi_caps_implied(uint64_t caps);

/* --------------------------------------------------------------------------------------- ends.c */

/*
 * The addresses that are asked for. A source of address 0 is any of this machine, of its family, at
 * that port; of family AF_UNSPEC, any of either.
 */
struct mrd_ofi_ends {
    bool has_src, has_dest;
    union mrd_ofi_addr src, dest;
};

/*
 * From what fi_getinfo() is called with. `rdma`: addresses are those of an RDMA device. 0, or
 * -FI_ENODATA with a line in the log.
 */
int mrd_ofi_ends_find(const char *node, const char *service, uint64_t flags,
                      const struct fi_info *hints, bool rdma, struct mrd_ofi_ends *ends);
bool mrd_ofi_addr_is_any(const union mrd_ofi_addr *addr);

/* -------------------------------------------------------------------------------------- iface.c */

/* An address of a network interface. */
struct mrd_ofi_iface {
    char name[IF_NAMESIZE];
    char network[MRD_OFI_NETWORK_BYTES_MAX]; /* for example "192.0.2.0/24" */
    union mrd_ofi_addr addr, mask;           /* port 0 */
    bool loopback;
    bool link_local; /* of IPv6: it is that of an endpoint only together with its scope */
    bool host_only;  /* leads to no other machine, as a bridge of containers */
    bool guest_nat;  /* other virtual machines have the same address, and none is reached by it */
};

/*
 * Lists the addresses of interfaces that are up. First those of the interface of the default route;
 * last, one after the other, guest_nat, host_only and those of loopback; IPv4 before IPv6. Returns
 * their number, and the list, which the caller frees; or -FI_ENOMEM, or another negative number.
 */
int mrd_ofi_ifaces_list(struct mrd_ofi_iface **list);
/* Is it the interface's, or any of IPv4 of a loopback interface's network? Ports are ignored. */
bool mrd_ofi_iface_has(const struct mrd_ofi_iface *iface, const union mrd_ofi_addr *addr);
/* links.c: fills in host_only and guest_nat. */
void mrd_ofi_links_mark(struct mrd_ofi_iface *list, int num);
/* The local address, of port 0, that packets to `to` are sent from. false: there is no route. */
bool mrd_ofi_route(const union mrd_ofi_addr *to, union mrd_ofi_addr *from);

#endif
