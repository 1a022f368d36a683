/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of this machine, and its routes. */
#ifndef MRD_OFI_IFACE_H
#define MRD_OFI_IFACE_H

#include <net/if.h>

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/ofi.h"

enum { MRD_OFI_NETWORK_BYTES_MAX = 64 }; /* text of a network, such as 192.0.2.0/24 */

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
/* Is it the address 0, of either family? */
bool mrd_ofi_addr_is_any(const union mrd_ofi_addr *addr);
/* The local address, of port 0, that packets to `to` are sent from. false: there is no route. */
bool mrd_ofi_route(const union mrd_ofi_addr *to, union mrd_ofi_addr *from);

#endif
