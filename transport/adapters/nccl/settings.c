/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A number between least and most; absent or empty: the default. */
static bool number(const char *name, uint64_t least, uint64_t most, uint64_t preset,
                   uint64_t *value, char *error, size_t len)
{
    const char *text = getenv(name);
    char *end;

    *value = preset;
    if (!text || !*text)
        return true;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || *end || *text == '-' || n < least || n > most) {
        snprintf(error, len, "%s=%s: not a number from %llu to %llu", name, text,
                 (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    *value = n;
    return true;
}

/* How many processors we may run on. */
static int processors(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof(cpus), &cpus) ? 4 : CPU_COUNT(&cpus);
}

/* Half of the processors: NCCL's threads and the program need theirs. */
static unsigned default_lanes(void)
{
    int n = processors();

    return n < 4 ? 1 : n < 16 ? (unsigned)n / 2 : 8;
}

/* With few processors, a lane that looks for work keeps one from those who make it. */
static uint64_t default_spin_us(void)
{
    return processors() < 4 ? 0 : 50;
}

bool settings_read(struct settings *s, char *error, size_t len)
{
    uint64_t lanes, group, eager, spin, timeout, speed, drop;

    if (!number("MRD_NCCL_CONTEXTS", 1, SETTINGS_LANES_MAX, default_lanes(), &lanes, error, len) ||
        !number("MRD_NCCL_MAX_RECVS", 1, SETTINGS_GROUP_MAX, 1, &group, error, len) ||
        !number("MRD_NCCL_EAGER_KB", 0, 1024, 128, &eager, error, len) ||
        !number("MRD_NCCL_SPIN_US", 0, 1000000, default_spin_us(), &spin, error, len) ||
        !number("MRD_NCCL_TIMEOUT", 1, 3600, 8, &timeout, error, len) ||
        !number("MRD_NCCL_SPEED", 0, 10000000, 0, &speed, error, len) ||
        !number("MRD_NCCL_DROP_PPM", 0, 1000000, 0, &drop, error, len))
        return false;
    *s = (struct settings){
        .lanes = (unsigned)lanes,
        .group_max = (unsigned)group,
        .eager_bytes = (uint32_t)eager * 1024,
        .spin_ns = spin * 1000,
        .timeout_ns = timeout * 1000000000,
        .speed_mbps = (uint32_t)speed,
        .rx_drop_ppm = (uint32_t)drop,
    };
    return true;
}

/* Does the list name the interface? */
static bool listed(const char *list, bool whole, const char *name)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");

        if (n && !strncmp(p, name, n) && (!whole || !name[n]))
            return true;
        p += n;
        p += *p == ',';
    }
    return false;
}

static bool wanted(const char *name)
{
    const char *list = getenv("NCCL_SOCKET_IFNAME");

    if (!list || !*list)
        return strcmp(name, "lo") && strncmp(name, "docker", 6);
    bool unwanted = *list == '^';
    list += unwanted;
    bool whole = *list == '=';
    return listed(list + whole, whole, name) != unwanted;
}

static int family(void)
{
    const char *name = getenv("NCCL_SOCKET_FAMILY");

    return name && !strcmp(name, "AF_INET")    ? AF_INET
           : name && !strcmp(name, "AF_INET6") ? AF_INET6
                                               : AF_UNSPEC;
}

/* The first line of a file of the interface in /sys. */
static bool read_attribute(const char *interface, const char *attribute, char *text, size_t len)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "/sys/class/net/%s/%s", interface, attribute);
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(text, (int)len, file);
    if (file)
        fclose(file);
    return ok;
}

static void describe(struct settings_device *device, const struct ifaddrs *address)
{
    char path[PATH_MAX], real[PATH_MAX], text[32];

    *device = (struct settings_device){0};
    snprintf(device->name, sizeof(device->name), "%s", address->ifa_name);
    if (getnameinfo(address->ifa_addr,
                    address->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                            : sizeof(struct sockaddr_in6),
                    device->address, sizeof(device->address), NULL, 0, NI_NUMERICHOST))
        device->address[0] = 0;
    if (read_attribute(device->name, "speed", text, sizeof(text)))
        device->speed_mbps = atoi(text) > 0 ? atoi(text) : 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/device", device->name);
    if (realpath(path, real) && strstr(real, "/pci") && strlen(real) < sizeof(device->pci))
        strcpy(device->pci, real);
}

static bool is_link_local(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* The first address of each interface that `loopback` allows. */
static int gather(const struct ifaddrs *all, bool any, struct settings_device *devices, int max)
{
    int n = 0, known;

    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || (!any && !wanted(a->ifa_name)))
            continue;
        int of = a->ifa_addr->sa_family;
        if ((of != AF_INET && of != AF_INET6) || (family() != AF_UNSPEC && of != family()) ||
            is_link_local(a->ifa_addr))
            continue;
        for (known = 0; known < n && strcmp(devices[known].name, a->ifa_name); known++)
            ;
        if (known == n && n < max)
            describe(&devices[n++], a);
    }
    return n;
}

int settings_devices(struct settings_device *devices, int max)
{
    const char *device = getenv("MRD_DEVICE"), *list = getenv("NCCL_SOCKET_IFNAME");
    struct ifaddrs *all;

    if (device && *device) {
        devices[0] = (struct settings_device){0};
        snprintf(devices[0].name, sizeof(devices[0].name), "%s", device);
        return 1;
    }
    if (getifaddrs(&all))
        return 0;
    int n = gather(all, false, devices, max);
    if (!n && (!list || !*list))
        n = gather(all, true, devices, max);
    freeifaddrs(all);
    return n;
}
