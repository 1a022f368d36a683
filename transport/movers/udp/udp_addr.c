/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool mrd_udp_addr_is_v4(const struct mrd_addr *addr)
{
    return memcmp(addr->ip, v4_prefix, sizeof(v4_prefix)) == 0;
}

bool mrd_udp_addr_is_any(const struct mrd_addr *addr)
{
    static const uint8_t any[16];

    return memcmp(addr->ip, any, sizeof(any)) == 0;
}

bool mrd_udp_addr_is_loopback(const struct mrd_addr *addr)
{
    static const uint8_t v6[16] = {[15] = 1};

    return (mrd_udp_addr_is_v4(addr) && addr->ip[12] == 127) ||
           memcmp(addr->ip, v6, sizeof(v6)) == 0;
}

bool mrd_udp_addr_is_link_local(const struct mrd_addr *addr)
{
    return addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

bool mrd_udp_addr_same_ip(const struct mrd_addr *a, const struct mrd_addr *b)
{
    return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0 && a->scope == b->scope;
}

socklen_t mrd_udp_to_sockaddr(int family, const struct mrd_addr *addr, union mrd_udp_sockaddr *sa)
{
    if (family == AF_INET) {
        sa->in =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)addr->port)};
        memcpy(&sa->in.sin_addr, addr->ip + 12, 4);
        return sizeof(sa->in);
    }
    sa->in6 = (struct sockaddr_in6){
        .sin6_family = AF_INET6,
        .sin6_port = htons((uint16_t)addr->port),
        .sin6_scope_id = addr->scope,
    };
    memcpy(&sa->in6.sin6_addr, addr->ip, 16);
    return sizeof(sa->in6);
}

void mrd_udp_from_v4(struct in_addr in, struct mrd_addr *addr)
{
    memcpy(addr->ip, v4_prefix, sizeof(v4_prefix));
    memcpy(addr->ip + 12, &in, 4);
}

void mrd_udp_from_sockaddr(const union mrd_udp_sockaddr *sa, struct mrd_addr *addr)
{
    if (sa->sa.sa_family == AF_INET) {
        mrd_udp_from_v4(sa->in.sin_addr, addr);
        addr->scope = 0;
        addr->port = ntohs(sa->in.sin_port);
        return;
    }
    memcpy(addr->ip, &sa->in6.sin6_addr, 16);
    addr->port = ntohs(sa->in6.sin6_port);
    /* Addresses are compared as bytes: where the scope has no meaning it must be 0. */
    addr->scope = mrd_udp_addr_is_link_local(addr) ? sa->in6.sin6_scope_id : 0;
}

/* The index of an interface, given by name or number; 0: there is none. */
static uint32_t parse_scope(const char *text)
{
    uint32_t number = 0;
    char name[IF_NAMESIZE];

    if (text[0] < '0' || text[0] > '9')
        return if_nametoindex(text);
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || number > 100000000)
            return if_nametoindex(text); /* a name may begin with digits: 6in4 */
        number = number * 10 + (uint32_t)(*c - '0');
    }
    return if_indextoname(number, name) ? number : 0;
}

int mrd_udp_parse_ip(const char *text, struct mrd_addr *addr)
{
    char ip[INET6_ADDRSTRLEN];
    const char *percent = strchr(text, '%');
    size_t len = percent ? (size_t)(percent - text) : strlen(text);
    struct mrd_addr parsed = {.scope = 0};
    struct in_addr in;

    if (len == 0 || len >= sizeof(ip)) {
        mrd_error_set("\"%s\" is not a numeric IPv4 or IPv6 address", text);
        return -EINVAL;
    }
    memcpy(ip, text, len);
    ip[len] = '\0';
    if (!percent && inet_pton(AF_INET, ip, &in) == 1) {
        mrd_udp_from_v4(in, &parsed);
    } else if (inet_pton(AF_INET6, ip, parsed.ip) != 1) {
        mrd_error_set("\"%s\" is not a numeric IPv4 or IPv6 address", text);
        return -EINVAL;
    }
    if (percent) {
        uint32_t scope = parse_scope(percent + 1);

        if (scope == 0) {
            mrd_error_set("\"%s\" names an interface that does not exist", text);
            return -EINVAL;
        }
        if (mrd_udp_addr_is_link_local(&parsed))
            parsed.scope = scope;
    } else if (mrd_udp_addr_is_link_local(&parsed)) {
        mrd_error_set("\"%s\" is link-local and needs its interface, as in %s%%eth0", text, ip);
        return -EINVAL;
    }
    *addr = parsed;
    return 0;
}

/* Parses a port: digits only, 1 to 65535. 0: it is none. */
static uint32_t parse_port(const char *text)
{
    uint32_t port = 0;

    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9')
            return 0;
        port = port * 10 + (uint32_t)(*c - '0');
        if (port > UINT16_MAX)
            return 0;
    }
    return port;
}

/* Finds IP address and port in `text`; *port is NULL if there is none. false: malformed. */
static bool split_address(const char *text, const char **ip, size_t *ip_len, const char **port)
{
    const char *colon = strchr(text, ':');
    const char *end;

    *ip = text;
    *port = NULL;
    if (text[0] == '[') {
        end = strchr(text, ']');
        if (!end || (end[1] != '\0' && end[1] != ':'))
            return false;
        /* Brackets enclose an IPv6 address only: it has a colon. */
        if (!memchr(text, ':', (size_t)(end - text)))
            return false;
        *ip = text + 1;
        *ip_len = (size_t)(end - text) - 1;
        *port = end[1] == ':' ? end + 2 : NULL;
        return true;
    }
    if (!colon || strchr(colon + 1, ':')) { /* no port, or an IPv6 address without brackets */
        *ip_len = strlen(text);
        return true;
    }
    *ip_len = (size_t)(colon - text);
    *port = colon + 1;
    return true;
}

/* false for multicast, broadcast and "any" addresses: they name no host. */
static bool is_unicast(const struct mrd_addr *addr)
{
    if (mrd_udp_addr_is_v4(addr))
        return addr->ip[12] != 0 && addr->ip[12] < 224;
    return !mrd_udp_addr_is_any(addr) && addr->ip[0] != 0xff;
}

int mrd_udp_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr)
{
    const struct mrd_udp *udp = mrd_udp_of(b);
    struct mrd_addr parsed;
    const char *ip, *port;
    size_t ip_len;
    char buf[MRD_ADDRESS_MAX];
    int error;

    if (!split_address(text, &ip, &ip_len, &port) || ip_len >= sizeof(buf)) {
        mrd_error_set("\"%s\" is not an address like 192.0.2.7:4793 or [2001:db8::7]:4793", text);
        return -EINVAL;
    }
    memcpy(buf, ip, ip_len);
    buf[ip_len] = '\0';
    error = mrd_udp_parse_ip(buf, &parsed);
    if (error)
        return error;
    parsed.port = port ? parse_port(port) : MRD_DEFAULT_PORT;
    if (parsed.port == 0) {
        mrd_error_set("\"%s\" has no port of 1 to 65535", text);
        return -EINVAL;
    }
    if (!is_unicast(&parsed)) {
        mrd_error_set("\"%s\" is not the address of one host", text);
        return -EINVAL;
    }
    if (udp->family == AF_INET && !mrd_udp_addr_is_v4(&parsed)) {
        mrd_error_set("\"%s\" is an IPv6 address, and this context has IPv4 only", text);
        return -EAFNOSUPPORT;
    }
    if (udp->family == AF_INET6 && !mrd_udp_addr_is_any(&udp->bound) &&
        mrd_udp_addr_is_v4(&parsed)) {
        mrd_error_set("\"%s\" is an IPv4 address, and this context is bound to an IPv6 one", text);
        return -EAFNOSUPPORT;
    }
    *addr = parsed;
    return 0;
}

int mrd_udp_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len)
{
    char ip[INET6_ADDRSTRLEN], scope[IF_NAMESIZE + 1] = "", name[IF_NAMESIZE];
    int n;

    (void)b;
    if (mrd_udp_addr_is_v4(addr)) {
        inet_ntop(AF_INET, addr->ip + 12, ip, sizeof(ip));
        n = snprintf(text, len, "%s:%u", ip, addr->port);
    } else {
        inet_ntop(AF_INET6, addr->ip, ip, sizeof(ip));
        if (addr->scope && if_indextoname(addr->scope, name))
            snprintf(scope, sizeof(scope), "%%%s", name);
        else if (addr->scope)
            snprintf(scope, sizeof(scope), "%%%u", addr->scope);
        n = snprintf(text, len, "[%s%s]:%u", ip, scope, addr->port);
    }
    assert(n > 0);
    return (size_t)n < len ? 0 : -ENOSPC;
}

/*
 * Gets an address of the interface `i` that other hosts can use: not loopback, and without a scope.
 * false: it is none.
 */
static bool usable_address(const struct mrd_udp *udp, const struct ifaddrs *i,
                           struct mrd_addr *addr)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family != AF_INET &&
        (i->ifa_addr->sa_family != AF_INET6 || udp->family != AF_INET6))
        return false;
    mrd_udp_from_sockaddr((const union mrd_udp_sockaddr *)(const void *)i->ifa_addr, addr);
    return !mrd_udp_addr_is_link_local(addr);
}

void mrd_udp_disconnect(const struct mrd_udp *udp, int fd)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    int device = (int)udp->bound_device;

    (void)connect(fd, &none, sizeof(none)); /* does not fail */
    /* The kernel forgets the device as well, which may have come with a link-local peer. */
    if (device)
        (void)setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, sizeof(device));
}

/*
 * Gets the address that packets to the rest of the world would come from. Connecting a socket sends
 * nothing. The socket is there already: a process without a free descriptor has the same address.
 * false: there is no default route, or no address for it.
 */
static bool route_address(const struct mrd_udp *udp, const char *world, struct mrd_addr *addr)
{
    struct mrd_addr there;
    union mrd_udp_sockaddr to, from;
    socklen_t len, from_len = sizeof(from);
    bool found = false;

    if (mrd_udp_parse_ip(world, &there))
        return false;
    there.port = MRD_DEFAULT_PORT;
    len = mrd_udp_to_sockaddr(udp->family, &there, &to);
    if (!connect(udp->ask_fd, &to.sa, len) && !getsockname(udp->ask_fd, &from.sa, &from_len)) {
        mrd_udp_from_sockaddr(&from, addr);
        found = is_unicast(addr) && !mrd_udp_addr_is_link_local(addr);
    }
    mrd_udp_disconnect(udp, udp->ask_fd); /* a connection would keep its source */
    return found;
}

/* The first interface's address that other hosts can use; else 127.0.0.1. 0 or -errno. */
static int interface_address(const struct mrd_udp *udp, struct mrd_addr *addr)
{
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list)) {
        mrd_error_set("the addresses of this machine cannot be read: %s", strerror(errno));
        return -errno;
    }
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
        found = usable_address(udp, i, addr);
    freeifaddrs(list);
    if (!found)
        mrd_udp_from_v4((struct in_addr){htonl(INADDR_LOOPBACK)}, addr);
    return 0;
}

int mrd_udp_self_address(struct mrd_backend *b, struct mrd_addr *addr)
{
    struct mrd_udp *udp = mrd_udp_of(b);
    struct mrd_addr self = udp->bound;
    int error = 0;

    /* A bridge of containers may be listed first: the default route tells what others reach. */
    if (mrd_udp_addr_is_any(&self) && !route_address(udp, "203.0.113.1", &self) &&
        !(udp->family == AF_INET6 && route_address(udp, "2001:db8::1", &self)))
        error = interface_address(udp, &self);
    if (error)
        return error;
    self.port = udp->rx.port;
    *addr = self;
    return 0;
}
