/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_port.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "transport/movers/udp/udp_addr.h"

/* The address of an entry, if other hosts can use it: it is up, and needs no scope. */
static bool address_of(const struct ifaddrs *i, struct mrd_addr *addr)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
        return false;
    memset(addr, 0, sizeof(*addr));
    mrd_udp_from_sockaddr((const union mrd_udp_sockaddr *)(const void *)i->ifa_addr, addr);
    addr->port = 0;
    return !mrd_udp_addr_is_link_local(addr);
}

static bool is_listed(const struct mrd_device *list, unsigned num, const char *name)
{
    for (unsigned i = 0; i < num; i++)
        if (!strcmp(list[i].name, name))
            return true;
    return false;
}

unsigned mrd_udp_devices(struct mrd_device *list, unsigned max)
{
    struct ifaddrs *all = NULL;
    struct mrd_addr addr;
    unsigned num = 0;

    if (!max)
        return 0;
    list[num++] = (struct mrd_device){.name = MRD_UDP_ANY, .transport = "udp"};
    if (getifaddrs(&all))
        return num;
    for (const struct ifaddrs *i = all; i && num < max; i = i->ifa_next) {
        if (!address_of(i, &addr) || is_listed(list, num, i->ifa_name))
            continue;
        list[num] = (struct mrd_device){.transport = "udp"};
        snprintf(list[num++].name, sizeof(list->name), "%s", i->ifa_name);
    }
    freeifaddrs(all);
    return num;
}

int mrd_udp_interface_address(const char *name, struct mrd_addr *addr)
{
    struct ifaddrs *all = NULL;
    struct mrd_addr found;
    bool any = false;

    if (getifaddrs(&all)) {
        mrd_error_set("the addresses of %s cannot be read: %s", name, strerror(errno));
        return -errno;
    }
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (strcmp(i->ifa_name, name) || !address_of(i, &found))
            continue;
        /* The first one, but IPv4 before IPv6, as in the addresses that contexts tell. */
        if (!any || (!mrd_udp_addr_is_v4(addr) && mrd_udp_addr_is_v4(&found)))
            *addr = found;
        any = true;
    }
    freeifaddrs(all);
    if (any)
        return 0;
    mrd_error_set(if_nametoindex(name) ? "the interface %s is down, or has no address"
                                       : "no interface %s",
                  name);
    return if_nametoindex(name) ? -EADDRNOTAVAIL : -ENODEV;
}

/* The interface that has an address. false: none has it. */
static bool find_interface(const struct mrd_addr *addr, struct mrd_port_facts *facts)
{
    struct ifaddrs *all = NULL;
    struct mrd_addr own;
    bool found = false;

    if (getifaddrs(&all))
        return false;
    for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        if (!address_of(i, &own) || !mrd_udp_addr_same_ip(&own, addr))
            continue;
        found = true;
        snprintf(facts->interface, sizeof(facts->interface), "%s", i->ifa_name);
        facts->state = i->ifa_flags & IFF_RUNNING ? MRD_PORT_ACTIVE : MRD_PORT_DOWN;
    }
    freeifaddrs(all);
    return found;
}

/* In bytes; 0: unknown. */
static uint32_t mtu_of(const char *interface)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {0};
    bool known;

    if (fd < 0)
        return 0;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s", IF_NAMESIZE - 1, interface);
    known = ioctl(fd, SIOCGIFMTU, &request) == 0;
    close(fd);
    return known ? (uint32_t)request.ifr_mtu : 0;
}

uint32_t mrd_udp_interface_mtu(const struct mrd_addr *addr)
{
    enum { LOOPBACK_MTU = 65536, ETHERNET_MTU = 1500 };
    struct mrd_port_facts facts = {.mtu = 0};
    uint32_t mtu = find_interface(addr, &facts) ? mtu_of(facts.interface) : 0;

    if (mtu)
        return mtu;
    return mrd_udp_addr_is_loopback(addr) ? LOOPBACK_MTU : ETHERNET_MTU;
}

/* In bit/s; 0: the interface does not say, as many virtual ones. */
static uint64_t speed_of(const char *interface)
{
    char path[sizeof("/sys/class/net//speed") + IF_NAMESIZE];
    long mbps = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/net/%.*s/speed", IF_NAMESIZE, interface);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%ld", &mbps) != 1)
        mbps = 0;
    fclose(file);
    return mbps > 0 ? (uint64_t)mbps * 1000000u : 0;
}

void mrd_udp_port_facts(struct mrd_backend *b, struct mrd_port_facts *facts)
{
    struct mrd_addr self;

    if (mrd_udp_self_address(b, &self) || !find_interface(&self, facts))
        return;
    facts->mtu = mtu_of(facts->interface);
    facts->bps = speed_of(facts->interface);
}
