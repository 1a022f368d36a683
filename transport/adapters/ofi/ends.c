/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/ends.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "transport/adapters/ofi/log.h"

/* What is known of the format that addresses must have. */
struct wanted {
    int family; /* AF_UNSPEC: either */
    bool rdma, numeric;
};

/* Is it an address that can be offered? 0, or -FI_ENODATA. v4-mapped IPv6 is IPv4. */
static int accept_address(const struct wanted *wanted, const char *what, union mrd_ofi_addr *addr)
{
    if (!wanted->rdma)
        mrd_ofi_addr_unmap(addr);
    if (!mrd_ofi_addr_bytes(addr) ||
        (wanted->family != AF_UNSPEC && addr->sa.sa_family != wanted->family)) {
        MRD_OFI_INFO(CORE, "not offered: %s is no address of the format that is asked for\n", what);
        return -FI_ENODATA;
    }
    if (!wanted->rdma && addr->sa.sa_family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr) && !addr->in6.sin6_scope_id) {
        MRD_OFI_INFO(CORE,
                     "not offered: %s is link-local and needs its interface, as in "
                     "fe80::1%%eth0\n",
                     what);
        return -FI_ENODATA;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------- by names */

/* IPv4 comes first where either is wanted, as in what is offered without any address. */
static const struct addrinfo *choose(const struct addrinfo *list)
{
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if (a->ai_family == AF_INET)
            return a;
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if (a->ai_family == AF_INET6)
            return a;
    return NULL;
}

static int look_up(const struct wanted *wanted, const char *node, const char *service,
                   struct addrinfo hints, union mrd_ofi_addr *addr)
{
    const struct addrinfo *found;
    struct addrinfo *list;
    int error;

    hints.ai_family = wanted->family;
    hints.ai_socktype = SOCK_DGRAM;
    if (wanted->numeric)
        hints.ai_flags |= AI_NUMERICHOST;
    error = getaddrinfo(node, service, &hints, &list);
    if (error) {
        MRD_OFI_INFO(CORE, "not offered: %s, port %s: %s\n", node ? node : "any address", service,
                     gai_strerror(error));
        return error == EAI_MEMORY ? -FI_ENOMEM : -FI_ENODATA;
    }
    found = choose(list);
    memset(addr, 0, sizeof(*addr));
    if (found)
        memcpy(addr, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(list);
    return accept_address(wanted, node ? node : "any address", addr);
}

/* "fi_sockaddr_in://192.0.2.7:4793", as fi_av_straddr() and applications write it, or without. */
static const char *without_format(const char *node)
{
    const char *sep = strstr(node, "://");

    return sep ? sep + strlen("://") : node;
}

/* Of a peer: a host and a port, or what mrd_query_address() told there. */
static int look_up_peer(const struct wanted *wanted, const char *node, const char *service,
                        union mrd_ofi_addr *addr)
{
    char port[8];

    if (node && !service && !mrd_ofi_addr_parse(without_format(node), addr))
        return accept_address(wanted, node, addr);
    if (wanted->rdma) {
        MRD_OFI_INFO(CORE,
                     "not offered: %s: of an RDMA device, peers are known by what "
                     "fi_getname() told there\n",
                     node ? node : service);
        return -FI_ENODATA;
    }
    snprintf(port, sizeof(port), "%d", MRD_DEFAULT_PORT);
    return look_up(wanted, node, service ? service : port, (struct addrinfo){0}, addr);
}

/*
 * Of this machine; without a node only the port is meant. An RDMA device has no ports; its GID may
 * be that of an IPv4 address.
 */
static int look_up_own(const struct wanted *wanted, const char *node, const char *service,
                       union mrd_ofi_addr *addr)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE};
    int error;

    if (wanted->rdma)
        hints.ai_flags |= AI_V4MAPPED;
    error = look_up(wanted, node, service && !wanted->rdma ? service : "0", hints, addr);
    if (!error && !node)
        addr->sa.sa_family = AF_UNSPEC;
    return error;
}

/* ------------------------------------------------------------------------------------- by hints */

static int take_address(const struct wanted *wanted, const char *what, const void *from,
                        size_t bytes, union mrd_ofi_addr *addr)
{
    union mrd_ofi_addr copy = {0};
    int error;

    memcpy(&copy, from, bytes < sizeof(copy) ? bytes : sizeof(copy));
    if (mrd_ofi_addr_bytes(&copy) > bytes)
        copy.sa.sa_family = AF_UNSPEC; /* it is cut off */
    error = accept_address(wanted, what, &copy);
    if (!error)
        *addr = copy;
    return error;
}

static int family_of(uint32_t format, bool rdma)
{
    if (rdma || format == FI_SOCKADDR_IN6)
        return AF_INET6;
    return format == FI_SOCKADDR_IN ? AF_INET : AF_UNSPEC;
}

int mrd_ofi_ends_find(const char *node, const char *service, uint64_t flags,
                      const struct fi_info *hints, bool rdma, struct mrd_ofi_ends *ends)
{
    bool named = node || service, source = flags & FI_SOURCE;
    struct wanted wanted = {.family =
                                family_of(hints ? hints->addr_format : FI_FORMAT_UNSPEC, rdma),
                            .rdma = rdma,
                            .numeric = flags & FI_NUMERICHOST};
    int error = 0;

    *ends = (struct mrd_ofi_ends){.has_src = named && source, .has_dest = named && !source};
    if (ends->has_src)
        error = look_up_own(&wanted, node, service, &ends->src);
    if (ends->has_dest)
        error = look_up_peer(&wanted, node, service, &ends->dest);
    if (!error && hints && hints->src_addr && !ends->has_src) {
        error = take_address(&wanted, "src_addr", hints->src_addr, hints->src_addrlen, &ends->src);
        ends->has_src = true;
    }
    if (!error && hints && hints->dest_addr && !ends->has_dest) {
        error =
            take_address(&wanted, "dest_addr", hints->dest_addr, hints->dest_addrlen, &ends->dest);
        ends->has_dest = true;
    }
    if (!error && ends->has_src && ends->has_dest && ends->src.sa.sa_family != AF_UNSPEC &&
        ends->src.sa.sa_family != ends->dest.sa.sa_family) {
        MRD_OFI_INFO(CORE, "not offered: a source and a destination, of IPv4 and of IPv6\n");
        error = -FI_ENODATA;
    }
    return error;
}
