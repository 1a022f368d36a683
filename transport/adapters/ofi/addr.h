/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of endpoints, as libfabric has them and as mrd does. */
#ifndef MRD_OFI_ADDR_H
#define MRD_OFI_ADDR_H

#include <netinet/in.h>

#include "transport/adapters/ofi/ofi.h"

/* struct sockaddr_in or sockaddr_in6. Of an RDMA device: the GID, sin6_flowinfo its QP number. */
union mrd_ofi_addr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* Bytes of an address; 0: neither family. */
size_t mrd_ofi_addr_bytes(const union mrd_ofi_addr *addr);
/* Compares family, address, port and scope or QP number, and nothing that is padding. */
bool mrd_ofi_addr_equal(const union mrd_ofi_addr *a, const union mrd_ofi_addr *b);
uint32_t mrd_ofi_addr_hash(const union mrd_ofi_addr *addr);
/* Is it of the family that the format has? Formats but FI_SOCKADDR_IN and _IN6 have either. */
bool mrd_ofi_addr_fits(uint32_t format, const union mrd_ofi_addr *addr);
/* v4-mapped IPv6 becomes IPv4. GIDs of RDMA devices are not to be changed. */
void mrd_ofi_addr_unmap(union mrd_ofi_addr *addr);
/* Writes the address without its port, with its scope: as struct mrd_context_attr has it. */
void mrd_ofi_addr_host_text(const union mrd_ofi_addr *addr, char *text, size_t len);
/* Writes it as mrd_create_ah() takes it: text of MRD_ADDRESS_MAX. */
void mrd_ofi_addr_text(const union mrd_ofi_addr *addr, char *text);
/* Parses what mrd_query_address() and so on tell. v4-mapped IPv6 becomes IPv4, but of RDMA devices.
 */
int mrd_ofi_addr_parse(const char *text, union mrd_ofi_addr *addr);
/*
 * Looks up a host, by name or number, and a port (service NULL: MRD_DEFAULT_PORT, or what `node` as
 * an address of mrd's has). format: FI_SOCKADDR_IN, FI_SOCKADDR_IN6, or another one: either. Waits
 * for the answer: without any lock. 0, -FI_EADDRNOTAVAIL, -FI_ENOMEM.
 */
int mrd_ofi_addr_look_up(uint32_t format, const char *node, const char *service,
                         union mrd_ofi_addr *addr);

#endif
