/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which network interface an endpoint is at that names none: hosts have some in common, often with
 * the same address. In a network namespace of the test's own.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "pair.h"
#include "space.h"

/* A bridge with the port of a container; the cable to other hosts comes later in the list. */
#define BRIDGE                                                                                     \
    "ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0 && "                 \
    "ip link add port type veth peer name guest && ip link set port master docker0 && "            \
    "ip link set docker0 up && ip link set port up && ip link set guest up && "
#define CABLE                                                                                      \
    "ip link add eth1 type veth peer name far && ip addr add 10.81.0.1/24 dev eth1 && "            \
    "ip link set eth1 up && ip link set far up && "
/* eth0 of a virtual machine, with the default route. */
#define NAT                                                                                        \
    "ip link add eth0 type veth peer name out && ip addr add 10.0.2.15/24 dev eth0 && "            \
    "ip link set eth0 up && ip link set out up && ip route add default via 10.0.2.2 && "
#define CLEAR "for i in docker0 port eth0 eth1 uplink card bmc vboxnet0; do ip link del $i; done; "

void kit_before_each(void)
{
    (void)space_run(CLEAR "true");
}

/* Whether each interface that is up has its link: the kernel tells of bridges up to 1 s later. */
static bool all_run(void)
{
    struct ifaddrs *list;
    bool all = true;

    assert_int_equal(getifaddrs(&list), 0);
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        all = all && (!(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_RUNNING);
    freeifaddrs(list);
    return all;
}

static void lay(const char *commands)
{
    if (!space_run(commands))
        fail_msg("ip(8) cannot: %s", commands);
    for (int ms = 0; !all_run(); ms += 10) {
        if (ms >= 10000)
            fail_msg("an interface stays without its link after: %s", commands);
        usleep(10000);
    }
}

/* The names of the interfaces that are offered to who asks as Open MPI does, in order. */
static void offered(const char *expected)
{
    struct fi_info *hints = end_hints(&(struct end_options){.format = FI_SOCKADDR_IN});
    char names[256] = "";

    hints->caps |= FI_REMOTE_COMM;
    const struct fi_info *info = end_offered(NULL, NULL, 0, hints);
    for (const struct fi_info *i = info; i; i = i->next) {
        strncat(names, i == info ? "" : " ", sizeof(names) - strlen(names) - 1);
        strncat(names, i->domain_attr->name, sizeof(names) - strlen(names) - 1);
    }
    assert_string_equal(names, expected);
}

/* --------------------------------------------------------------------------------------- the order */

TEST(ofi_iface__bridge_of_containers)
{
    lay(BRIDGE "true");
    offered("docker0");
    lay(CABLE "true");
    offered("eth1 docker0");
    lay("ip route add default via 10.81.0.9");
    offered("eth1 docker0");
    lay("ip route del default && ip route add default via 172.17.0.9");
    offered("docker0 eth1");
}

/* The uplink of the machine is a port of the bridge: others are reached by it. */
TEST(ofi_iface__bridge_with_an_uplink)
{
    lay(BRIDGE CABLE "true");
    if (!space_run("ip link add uplink type vxlan id 7 dstport 4788 && "
                   "ip link set uplink master docker0 && ip link set uplink up"))
        skip(); /* nothing like it here */
    offered("docker0 eth1");
}

/* Each machine behind a NAT of its own has this address, and the default route over it. */
TEST(ofi_iface__nat_of_a_virtual_machine)
{
    lay(NAT "true");
    offered("eth0");
    lay(BRIDGE "true");
    offered("eth0 docker0");
    lay(CABLE "true");
    offered("eth1 eth0 docker0");
    lay("ip addr del 10.0.2.15/24 dev eth0 && ip addr add 10.0.2.16/24 dev eth0 && "
        "ip route add default via 10.0.2.2");
    offered("eth0 eth1 docker0");
}

TEST(ofi_iface__others_that_each_host_has)
{
    lay("ip link add bmc type veth peer name bmc2 && ip addr add 169.254.3.1/24 dev bmc && "
        "ip link set bmc up && ip link set bmc2 up && "
        "ip link add vboxnet0 type veth peer name vbox2 && ip addr add 192.168.56.1/24 dev "
        "vboxnet0 "
        "&& ip link set vboxnet0 up && ip link set vbox2 up && " CABLE "true");
    offered("eth1 bmc vboxnet0");
    if (!space_run("ip link add card type dummy && ip addr add 192.0.2.1/24 dev card && "
                   "ip link set card up"))
        skip(); /* no such interfaces here */
    offered("eth1 bmc vboxnet0 card");
}

/* --------------------------------------------------------------------------------------- endpoints */

static void assert_host(struct fid_ep *ep, const char *host)
{
    assert_string_equal(inet_ntoa(end_name(ep).sin_addr), host);
}

/* An endpoint beside `e`, without a source address or with that of any. */
static void expect_at(struct end *e, const struct sockaddr_in *any, const char *host)
{
    struct fi_info *info = fi_dupinfo(e->info);

    free(info->src_addr);
    info->src_addr = NULL;
    info->src_addrlen = 0;
    struct fid_ep *ep = end_beside(e, info);
    if (any)
        assert_int_equal(fi_setname(&ep->fid, (void *)(uintptr_t)any, sizeof(*any)), 0);
    assert_int_equal(fi_enable(ep), 0);
    assert_host(ep, host);
    assert_int_equal(fi_close(&ep->fid), 0);
    fi_freeinfo(info);
}

TEST_F(end, ofi_iface__endpoint_without_a_source)
{
    struct sockaddr_in any = {.sin_family = AF_INET};

    lay(BRIDGE CABLE "true");
    end_open(self, &(struct end_options){.node = "172.17.0.1", .format = FI_SOCKADDR_IN}, NULL);
    assert_host(self->ep, "172.17.0.1"); /* whoever names it, has it */
    expect_at(self, NULL, "10.81.0.1");
    expect_at(self, &any, "10.81.0.1");
}

/* ------------------------------------------------------------------------------------------- hints */

/* A message to that host fails, and the user is told that. */
static void expect_hint(const char *from, const char *to, const char *hint)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(9)};
    fi_addr_t addr;
    struct end e;

    end_open(&e, &(struct end_options){.node = from, .format = FI_SOCKADDR_IN}, NULL);
    assert_int_equal(inet_pton(AF_INET, to, &name.sin_addr), 1);
    assert_int_equal(fi_av_insert(e.av, &name, 1, &addr, 0, NULL), 1);
    log_keep();
    POST(fi_send(e.ep, "a", 1, NULL, addr, &e));
    end_fails(e.tx, &e, FI_EHOSTUNREACH);
    log_says(hint);
    end_close(&e);
}

TEST(ofi_iface__hint_of_an_own_address)
{
    lay(BRIDGE CABLE "true");
    expect_hint("172.17.0.1", "172.17.0.1",
                "172.17.0.1:9 is an address of this machine, too, of docker0: if another one is "
                "meant, set FI_MRD_IFACE to the interface that leads there: eth1\n");
    expect_hint("10.81.0.1", "172.17.0.1",
                "FI_MRD_IFACE to the interface that leads there: docker0");
}

TEST(ofi_iface__hint_of_other_interfaces)
{
    lay(BRIDGE CABLE NAT "true");
    expect_hint("10.81.0.1", "10.81.0.77",
                "10.81.0.77:9 is sent to from eth1: if another interface leads there, set "
                "FI_MRD_IFACE to it: eth0, docker0\n");
}

int kit_before_all(void)
{
    if (!space_enter())
        return KIT_SKIPPED;
    if (space_run("ip link set lo up && " BRIDGE CLEAR "true"))
        return 0;
    fprintf(stderr, "skipped: ip(8) makes no bridges and veth interfaces here\n");
    return KIT_SKIPPED;
}
