/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/doctor_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/perf/message.h"
#include "tools/perf/perf.h"

enum {
    RCVBUF_WANTED = 4 << 20, /* what the library asks for: mrd(7) */
    STATS_MAX = 4096,
};

static bool has_address(const struct ifaddrs *i, const char *address)
{
    char text[INET6_ADDRSTRLEN] = "";

    if (!i->ifa_addr)
        return false;
    if (i->ifa_addr->sa_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text, sizeof(text));
    else if (i->ifa_addr->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, text, sizeof(text));
    return strncmp(text, address, strlen(text)) == 0 &&
           (address[strlen(text)] == '\0' || address[strlen(text)] == '%') && text[0];
}

/* The name of the interface that has the address; empty: none has. */
static void find_interface(const char *address, char name[IF_NAMESIZE])
{
    struct ifaddrs *all = NULL;

    name[0] = '\0';
    if (getifaddrs(&all) != 0)
        return;
    for (struct ifaddrs *i = all; i && !name[0]; i = i->ifa_next) {
        if (has_address(i, address))
            snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
    }
    freeifaddrs(all);
}

/* A number of the interface in sysfs; null if there is none, or it is negative. */
static struct json_object *interface_number(const char *name, const char *what)
{
    char path[128], line[64];

    snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, what);
    if (!name[0] || !perf_read_line(path, line, sizeof(line)) || line[0] == '-')
        return NULL;
    return json_object_new_int64(strtoll(line, NULL, 10));
}

static bool socket_takes(int level, int option, int value)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool takes = fd >= 0 && setsockopt(fd, level, option, &value, sizeof(value)) == 0;

    if (fd >= 0)
        close(fd);
    return takes;
}

/* What a context of the library gets; 0: none can be opened. */
static uint32_t granted_rcvbuf(void)
{
    struct mrd_context *context = mrd_open_device(NULL, NULL);
    struct mrd_context_info info = {0};

    if (!context)
        return 0;
    (void)mrd_query_context(context, &info, sizeof(info));
    (void)mrd_close_device(context);
    return info.receive_buffer_bytes / 2; /* the kernel counts twice what it grants: socket(7) */
}

static int ethtool(int fd, const char *name, void *data)
{
    struct ifreq request = {.ifr_data = data};

    memcpy(request.ifr_name, name, strnlen(name, IF_NAMESIZE - 1));
    return ioctl(fd, SIOCETHTOOL, &request);
}

/* The counters whose names end so, as `ethtool -S` prints them, into `to`. */
static void add_stats(int fd, const char *name, uint32_t num, struct json_object *to)
{
    static const char suffix[] = "allowance_exceeded";
    struct ethtool_gstrings *names = calloc(1, sizeof(*names) + (size_t)num * ETH_GSTRING_LEN);
    struct ethtool_stats *stats = calloc(1, sizeof(*stats) + num * sizeof(stats->data[0]));

    if (names && stats) {
        *names = (struct ethtool_gstrings){ETHTOOL_GSTRINGS, ETH_SS_STATS, num};
        *stats = (struct ethtool_stats){ETHTOOL_GSTATS, num};
        if (ethtool(fd, name, names) != 0 || ethtool(fd, name, stats) != 0)
            num = 0;
        for (uint32_t i = 0; i < num; i++) {
            char text[ETH_GSTRING_LEN + 1] = "";

            memcpy(text, names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
            if (strlen(text) >= strlen(suffix) &&
                strcmp(text + strlen(text) - strlen(suffix), suffix) == 0)
                json_add_u64(to, text, stats->data[i]);
        }
    }
    free(names);
    free(stats);
}

static struct json_object *allowances(const char *name)
{
    struct json_object *all = json_object_new_object();
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && name[0] && ethtool(fd, name, &driver) == 0 && driver.n_stats <= STATS_MAX)
        add_stats(fd, name, driver.n_stats, all);
    if (fd >= 0)
        close(fd);
    return all;
}

struct json_object *perf_facts(const char *address)
{
    struct json_object *facts = json_object_new_object();
    char name[IF_NAMESIZE];

    find_interface(address, name);
    json_add_u64(facts, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    json_object_object_add(facts, "interface", name[0] ? json_object_new_string(name) : NULL);
    json_object_object_add(facts, "mtu", interface_number(name, "mtu"));
    json_object_object_add(facts, "link_mbps", interface_number(name, "speed"));
    json_add_bool(facts, "gso", socket_takes(IPPROTO_UDP, UDP_SEGMENT, 1400));
    json_add_bool(facts, "gro", socket_takes(IPPROTO_UDP, UDP_GRO, 1));
    json_add_u64(facts, "rcvbuf_wanted", RCVBUF_WANTED);
    json_add_u64(facts, "rcvbuf_granted", granted_rcvbuf());
    json_object_object_add(facts, "allowances", allowances(name));
    return facts;
}
