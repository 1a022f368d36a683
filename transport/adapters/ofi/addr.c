/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses: libfabric's are structs of sockets, mrd's are text.
 *
 *   192.0.2.7:4793           struct sockaddr_in
 *   [fe80::1%eth0]:4793      struct sockaddr_in6
 *   ::ffff:10.0.0.7/17       struct sockaddr_in6 of a GID: port 0, and the QP number as flow label
 */
#include "transport/adapters/ofi/addr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/log.h"

enum {
    HOST_BYTES = INET6_ADDRSTRLEN + 1 + IF_NAMESIZE, /* an address with its scope */
    QPN_MAX = (1 << 24) - 1,
};

size_t mrd_ofi_addr_bytes(const union mrd_ofi_addr *addr)
{
    switch (addr->sa.sa_family) {
    case AF_INET:
        return sizeof(addr->in);
    case AF_INET6:
        return sizeof(addr->in6);
    default:
        return 0;
    }
}

bool mrd_ofi_addr_fits(uint32_t format, const union mrd_ofi_addr *addr)
{
    switch (format) {
    case FI_SOCKADDR_IN:
        return addr->sa.sa_family == AF_INET;
    case FI_SOCKADDR_IN6:
        return addr->sa.sa_family == AF_INET6;
    default:
        return mrd_ofi_addr_bytes(addr) > 0;
    }
}

void mrd_ofi_addr_unmap(union mrd_ofi_addr *addr)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = addr->in6.sin6_port};

    if (addr->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr))
        return;
    memcpy(&in.sin_addr, &addr->in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
    memset(addr, 0, sizeof(*addr));
    addr->in = in;
}

/* An address of IPv6 without a port and without a queue pair is that of a host. */
static bool is_gid(const union mrd_ofi_addr *addr)
{
    return addr->sa.sa_family == AF_INET6 && !addr->in6.sin6_port && addr->in6.sin6_flowinfo;
}

/* The same address with one value only: fields without a meaning are 0, and IPv4 is IPv4. */
static union mrd_ofi_addr plain(const union mrd_ofi_addr *addr)
{
    const struct sockaddr_in6 *in6 = &addr->in6;
    union mrd_ofi_addr p;

    memset(&p, 0, sizeof(p));
    if (addr->sa.sa_family == AF_INET) {
        p.in.sin_family = AF_INET;
        p.in.sin_port = addr->in.sin_port;
        p.in.sin_addr = addr->in.sin_addr;
    } else {
        p.in6.sin6_family = AF_INET6;
        p.in6.sin6_port = in6->sin6_port;
        p.in6.sin6_addr = in6->sin6_addr;
        if (is_gid(addr))
            p.in6.sin6_flowinfo = in6->sin6_flowinfo;
        else if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
            p.in6.sin6_scope_id = in6->sin6_scope_id;
        if (!is_gid(addr))
            mrd_ofi_addr_unmap(&p);
    }
    return p;
}

bool mrd_ofi_addr_equal(const union mrd_ofi_addr *a, const union mrd_ofi_addr *b)
{
    union mrd_ofi_addr x = plain(a), y = plain(b);

    /* No bytes of theirs are undefined. */
    return memcmp((const uint8_t *)&x, (const uint8_t *)&y, sizeof(x)) == 0;
}

/* FNV-1a. */
uint32_t mrd_ofi_addr_hash(const union mrd_ofi_addr *addr)
{
    union mrd_ofi_addr p = plain(addr);
    const uint8_t *bytes = (const uint8_t *)&p;
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof(p); i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash ^ hash >> 16; /* tables take the low bits */
}

/* ----------------------------------------------------------------------------------------- text */

static void scope_text(const struct sockaddr_in6 *in6, char *text, size_t len)
{
    char name[IF_NAMESIZE];

    if (!in6->sin6_scope_id || !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
        text[0] = '\0';
    else if (if_indextoname(in6->sin6_scope_id, name))
        snprintf(text, len, "%%%s", name);
    else
        snprintf(text, len, "%%%u", in6->sin6_scope_id);
}

void mrd_ofi_addr_host_text(const union mrd_ofi_addr *addr, char *text, size_t len)
{
    char ip[INET6_ADDRSTRLEN] = "", scope[IF_NAMESIZE + 1] = "";

    if (addr->sa.sa_family == AF_INET) {
        inet_ntop(AF_INET, &addr->in.sin_addr, ip, sizeof(ip));
    } else {
        inet_ntop(AF_INET6, &addr->in6.sin6_addr, ip, sizeof(ip));
        scope_text(&addr->in6, scope, sizeof(scope));
    }
    snprintf(text, len, "%s%s", ip, scope);
}

void mrd_ofi_addr_text(const union mrd_ofi_addr *addr, char *text)
{
    union mrd_ofi_addr p = plain(addr);
    char host[HOST_BYTES];

    mrd_ofi_addr_host_text(&p, host, sizeof(host));
    if (p.sa.sa_family == AF_INET)
        snprintf(text, MRD_ADDRESS_MAX, "%s:%u", host, ntohs(p.in.sin_port));
    else if (is_gid(&p))
        snprintf(text, MRD_ADDRESS_MAX, "%s/%u", host, ntohl(p.in6.sin6_flowinfo));
    else
        snprintf(text, MRD_ADDRESS_MAX, "[%s]:%u", host, ntohs(p.in6.sin6_port));
}

/* Copies `len` bytes and a NUL. false: there is no room for them. */
static bool copy_text(char *to, size_t room, const char *from, size_t len)
{
    if (!len || len >= room)
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

/* "<gid>/<qpn>", perhaps with further QP numbers, which name no other peer. */
static int parse_gid(const char *text, const char *slash, union mrd_ofi_addr *addr)
{
    char host[HOST_BYTES], *end;
    unsigned long qpn = strtoul(slash + 1, &end, 10);
    struct in6_addr *gid = &addr->in6.sin6_addr;

    if (!copy_text(host, sizeof(host), text, (size_t)(slash - text)))
        return -FI_EINVAL;
    if (end == slash + 1 || (*end && *end != ',') || !qpn || qpn > QPN_MAX)
        return -FI_EINVAL;
    memset(addr, 0, sizeof(*addr));
    addr->in6.sin6_family = AF_INET6;
    addr->in6.sin6_flowinfo = htonl((uint32_t)qpn);
    if (inet_pton(AF_INET6, host, gid) == 1)
        return 0;
    gid->s6_addr[10] = gid->s6_addr[11] = 0xff;
    return inet_pton(AF_INET, host, &gid->s6_addr[12]) == 1 ? 0 : -FI_EINVAL;
}

/* Finds host and port of "host:port", "[host]:port" or "host"; *port is NULL if there is none. */
static bool split(const char *text, char *host, size_t room, const char **port)
{
    const char *colon = strchr(text, ':'), *end;

    *port = NULL;
    if (text[0] == '[') {
        end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':'))
            return false;
        *port = end[1] ? end + 2 : NULL;
        return copy_text(host, room, text + 1, (size_t)(end - text) - 1);
    }
    if (!colon || strchr(colon + 1, ':')) /* no port: IPv4, or IPv6 without brackets */
        return copy_text(host, room, text, strlen(text));
    *port = colon + 1;
    return copy_text(host, room, text, (size_t)(colon - text));
}

/* Digits only, 1 to 65535. 0: it is no port. */
static uint16_t parse_port(const char *text)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);

    return text[0] < '0' || text[0] > '9' || *end || port > UINT16_MAX ? 0 : (uint16_t)port;
}

static int parse_ip(const char *text, union mrd_ofi_addr *addr)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST};
    uint16_t number = MRD_DEFAULT_PORT;
    struct addrinfo *list;
    char host[HOST_BYTES];
    const char *port;

    if (!split(text, host, sizeof(host), &port))
        return -FI_EINVAL;
    if (port)
        number = parse_port(port);
    /* It knows names of interfaces, too. */
    if (!number || getaddrinfo(host, NULL, &hints, &list))
        return -FI_EINVAL;
    memcpy(addr, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    if (addr->sa.sa_family == AF_INET)
        addr->in.sin_port = htons(number);
    else
        addr->in6.sin6_port = htons(number);
    *addr = plain(addr);
    return 0;
}

int mrd_ofi_addr_parse(const char *text, union mrd_ofi_addr *addr)
{
    const char *slash = strchr(text, '/');
    union mrd_ofi_addr found;
    int error = slash ? parse_gid(text, slash, &found) : parse_ip(text, &found);

    if (!error)
        *addr = found;
    return error;
}

int mrd_ofi_addr_look_up(uint32_t format, const char *node, const char *service,
                         union mrd_ofi_addr *addr)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM}, *list;
    union mrd_ofi_addr parsed;
    char default_port[8];
    int error;

    /* An address of mrd's has its port or QP number in it. */
    if (!service && !mrd_ofi_addr_parse(node, &parsed)) {
        if (!mrd_ofi_addr_fits(format, &parsed)) {
            MRD_OFI_WARN(AV, "%s is no address of the domain's format\n", node);
            return -FI_EADDRNOTAVAIL;
        }
        *addr = parsed;
        return 0;
    }
    if (format == FI_SOCKADDR_IN)
        hints.ai_family = AF_INET;
    if (format == FI_SOCKADDR_IN6)
        hints.ai_family = AF_INET6;
    snprintf(default_port, sizeof(default_port), "%d", MRD_DEFAULT_PORT);
    error = getaddrinfo(node, service ? service : default_port, &hints, &list);
    if (error) {
        MRD_OFI_WARN(AV, "%s: %s\n", node, gai_strerror(error));
        return error == EAI_MEMORY ? -FI_ENOMEM : -FI_EADDRNOTAVAIL;
    }
    memset(addr, 0, sizeof(*addr));
    memcpy(addr, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return 0;
}
