/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/iface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/adapters/ofi/links.h"
#include "transport/adapters/ofi/log.h"

/* An address without its port. Returns its bytes. */
static size_t ip_of(const union mrd_ofi_addr *addr, const uint8_t **ip)
{
    if (addr->sa.sa_family == AF_INET) {
        *ip = (const uint8_t *)&addr->in.sin_addr;
        return sizeof(addr->in.sin_addr);
    }
    *ip = addr->in6.sin6_addr.s6_addr;
    return sizeof(addr->in6.sin6_addr);
}

bool mrd_ofi_addr_is_any(const union mrd_ofi_addr *addr)
{
    const uint8_t *ip;
    size_t bytes = ip_of(addr, &ip);

    for (size_t i = 0; i < bytes; i++)
        if (ip[i])
            return false;
    return true;
}

/* --------------------------------------------------------------------------------------- routes */

bool mrd_ofi_route(const union mrd_ofi_addr *to, union mrd_ofi_addr *from)
{
    union mrd_ofi_addr there = *to, here = {0};
    socklen_t bytes = sizeof(here);
    int fd = socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found;

    if (fd < 0)
        return false;
    there.in.sin_port = htons(MRD_DEFAULT_PORT); /* at the same place in both kinds; not 0 */
    /* Connecting a UDP socket sends nothing. */
    found = !connect(fd, &there.sa, (socklen_t)mrd_ofi_addr_bytes(&there)) &&
            !getsockname(fd, &here.sa, &bytes);
    close(fd);
    if (!found)
        return false;
    here.in.sin_port = 0;
    *from = here;
    return true;
}

/* The address that packets to the rest of the world come from: `world` is an address there. */
static bool default_route(const char *world, union mrd_ofi_addr *from)
{
    union mrd_ofi_addr to;

    return !mrd_ofi_addr_parse(world, &to) && mrd_ofi_route(&to, from);
}

/* ----------------------------------------------------------------------------------- interfaces */

bool mrd_ofi_iface_has(const struct mrd_ofi_iface *iface, const union mrd_ofi_addr *addr)
{
    const uint8_t *own, *other, *mask;
    size_t bytes = ip_of(&iface->addr, &own);

    if (iface->addr.sa.sa_family != addr->sa.sa_family)
        return false;
    ip_of(addr, &other);
    ip_of(&iface->mask, &mask);
    if (iface->link_local && iface->addr.in6.sin6_scope_id != addr->in6.sin6_scope_id)
        return false;
    /* All of 127.0.0.0/8 is this machine; of a network of IPv6, only the address itself. */
    if (!iface->loopback || addr->sa.sa_family == AF_INET6)
        return !memcmp(own, other, bytes);
    for (size_t i = 0; i < bytes; i++)
        if ((own[i] ^ other[i]) & mask[i])
            return false;
    return true;
}

static bool usable(const struct ifaddrs *i)
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    const union mrd_ofi_addr *addr = (const void *)i->ifa_addr;

    return addr && i->ifa_netmask && (i->ifa_flags & up) == up && mrd_ofi_addr_bytes(addr);
}

/* Writes the network's address and the length of its prefix. */
static void name_network(struct mrd_ofi_iface *iface)
{
    const uint8_t *ip, *mask;
    size_t bytes = ip_of(&iface->addr, &ip);
    uint8_t network[sizeof(struct in6_addr)];
    char text[INET6_ADDRSTRLEN] = "";
    unsigned bits = 0;

    ip_of(&iface->mask, &mask);
    for (size_t i = 0; i < bytes; i++) {
        network[i] = ip[i] & mask[i];
        bits += (unsigned)__builtin_popcount(mask[i]);
    }
    inet_ntop(iface->addr.sa.sa_family, network, text, sizeof(text));
    snprintf(iface->network, sizeof(iface->network), "%s/%u", text, bits);
}

static void fill(struct mrd_ofi_iface *iface, const struct ifaddrs *i)
{
    size_t bytes = mrd_ofi_addr_bytes((const void *)i->ifa_addr);

    *iface = (struct mrd_ofi_iface){.loopback = i->ifa_flags & IFF_LOOPBACK};
    snprintf(iface->name, sizeof(iface->name), "%s", i->ifa_name);
    memcpy(&iface->addr, i->ifa_addr, bytes);
    memcpy(&iface->mask, i->ifa_netmask, bytes);
    iface->link_local =
        iface->addr.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&iface->addr.in6.sin6_addr);
    name_network(iface);
}

/* Does the default route of its family, or of the other one, go through it? */
static void find_default(const struct mrd_ofi_iface *list, int num, char *name)
{
    static const char *const worlds[] = {"203.0.113.1", "[2001:db8::1]"};
    union mrd_ofi_addr from;

    name[0] = '\0';
    for (size_t w = 0; w < sizeof(worlds) / sizeof(worlds[0]); w++) {
        if (!default_route(worlds[w], &from))
            continue;
        for (int i = 0; i < num; i++) {
            if (!list[i].loopback && mrd_ofi_iface_has(&list[i], &from)) {
                memcpy(name, list[i].name, sizeof(list[i].name));
                return;
            }
        }
    }
}

/* The smaller, the earlier in the list. */
static int rank(const struct mrd_ofi_iface *iface, const char *default_name)
{
    bool is_default = !strcmp(iface->name, default_name);
    int place = iface->loopback                   ? 4
                : iface->host_only && !is_default ? 3
                : iface->guest_nat                ? 2
                : is_default                      ? 0
                                                  : 1;

    return 2 * place + (iface->addr.sa.sa_family == AF_INET6);
}

/* Those of the same rank stay in the order of the system. */
static void sort(struct mrd_ofi_iface *list, int num)
{
    char default_name[IF_NAMESIZE];

    find_default(list, num, default_name);
    mrd_ofi_links_mark(list, num);
    for (int i = 1; i < num; i++) {
        struct mrd_ofi_iface moved = list[i];
        int at = i;

        for (; at > 0 && rank(&list[at - 1], default_name) > rank(&moved, default_name); at--)
            list[at] = list[at - 1];
        list[at] = moved;
    }
}

int mrd_ofi_ifaces_list(struct mrd_ofi_iface **out)
{
    struct ifaddrs *all;
    struct mrd_ofi_iface *list;
    int room = 1, num = 0;

    if (getifaddrs(&all)) {
        MRD_OFI_WARN(CORE, "the network interfaces cannot be listed: %s\n", strerror(errno));
        return -errno;
    }
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        room++;
    list = calloc((size_t)room, sizeof(*list));
    for (const struct ifaddrs *i = all; i && list; i = i->ifa_next)
        if (usable(i))
            fill(&list[num++], i);
    freeifaddrs(all);
    if (!list)
        return -FI_ENOMEM;
    sort(list, num);
    *out = list;
    return num;
}
