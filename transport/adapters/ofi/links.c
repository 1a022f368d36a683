/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network interfaces that lead to no other machine: each host has them, often with the same
 * addresses. Rtnetlink tells what kind they are, in any network namespace; /sys is of one.
 */
#include "transport/adapters/ofi/links.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1 << 16, LINKS_MAX = 1 << 16 };

enum kind {
    KIND_OTHER,   /* devices, and what is on top of them: packets leave the machine */
    KIND_BRIDGE,  /* leads where its ports do */
    KIND_GUEST,   /* veth, tun: as a port of a bridge, of a container or a virtual machine */
    KIND_NOWHERE, /* dummy */
};

struct link {
    int index, master; /* master: of which it is a port; 0: none */
    enum kind kind;
};

struct links {
    struct link *link;
    size_t num;
};

/* ----------------------------------------------------------------------------------- attributes */

static enum kind kind_of(const char *name, size_t bytes)
{
    static const struct {
        const char *name;
        enum kind kind;
    } known[] = {{"bridge", KIND_BRIDGE},
                 {"veth", KIND_GUEST},
                 {"tun", KIND_GUEST},
                 {"dummy", KIND_NOWHERE}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strnlen(name, bytes) == strlen(known[i].name) &&
            !strncmp(name, known[i].name, strlen(known[i].name)))
            return known[i].kind;
    return KIND_OTHER;
}

/* The attribute of that type; NULL: there is none. */
static const struct rtattr *find_attr(const struct rtattr *a, int bytes, unsigned short type)
{
    for (; RTA_OK(a, bytes); a = RTA_NEXT(a, bytes))
        if ((a->rta_type & NLA_TYPE_MASK) == type)
            return a;
    return NULL;
}

/* false: no memory. */
static bool add(struct links *l, const struct nlmsghdr *m)
{
    const struct ifinfomsg *info = NLMSG_DATA(m);
    const struct rtattr *first = IFLA_RTA(info), *a;
    int bytes = (int)IFLA_PAYLOAD(m);
    struct link link = {.index = info->ifi_index};
    struct link *larger;

    a = find_attr(first, bytes, IFLA_MASTER);
    if (a && RTA_PAYLOAD(a) >= sizeof(link.master))
        memcpy(&link.master, RTA_DATA(a), sizeof(link.master));
    a = find_attr(first, bytes, IFLA_LINKINFO);
    if (a)
        a = find_attr(RTA_DATA(a), (int)RTA_PAYLOAD(a), IFLA_INFO_KIND);
    if (a)
        link.kind = kind_of(RTA_DATA(a), RTA_PAYLOAD(a));
    if (!(l->num & (l->num + 1))) { /* it grows at 0, 1, 3, 7... */
        larger = realloc(l->link, 2 * (l->num + 1) * sizeof(*larger));
        if (!larger)
            return false;
        l->link = larger;
    }
    l->link[l->num++] = link;
    return true;
}

/* ---------------------------------------------------------------------------------------- links */

/* Takes what one answer tells. 1: more will come; 0: that was all; -1: it cannot be had. */
static int take_answer(struct links *l, const struct nlmsghdr *m, size_t bytes)
{
    for (; NLMSG_OK(m, bytes); m = NLMSG_NEXT(m, bytes)) {
        if (m->nlmsg_type == NLMSG_DONE)
            return 0;
        if (m->nlmsg_type == NLMSG_ERROR)
            return -1;
        if (m->nlmsg_type == RTM_NEWLINK && (l->num == LINKS_MAX || !add(l, m)))
            return -1;
    }
    return 1;
}

static bool ask(int fd)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg info;
    } question = {.head = {.nlmsg_len = sizeof(question),
                           .nlmsg_type = RTM_GETLINK,
                           .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                  .info = {.ifi_family = AF_UNSPEC}};

    return send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question);
}

/* What the kernel does not tell, or a sandbox forbids, is left out. */
static struct links links_list(void)
{
    struct links l = {0};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), more = 1;
    void *answer = malloc(ANSWER_BYTES);

    if (fd >= 0 && answer && ask(fd)) {
        while (more > 0) {
            ssize_t bytes = recv(fd, answer, ANSWER_BYTES, 0);

            if (bytes >= 0)
                more = take_answer(&l, answer, (size_t)bytes);
            else if (errno != EINTR)
                more = -1;
        }
    }
    if (fd >= 0)
        close(fd);
    free(answer);
    return l;
}

static bool leads_nowhere(const struct links *l, int index)
{
    enum kind kind = KIND_OTHER;

    for (size_t i = 0; i < l->num; i++)
        if (l->link[i].index == index)
            kind = l->link[i].kind;
    if (kind != KIND_BRIDGE)
        return kind == KIND_NOWHERE;
    for (size_t i = 0; i < l->num; i++)
        if (l->link[i].master == index && l->link[i].kind == KIND_OTHER)
            return false;
    return true;
}

/* ----------------------------------------------------------------------------------- interfaces */

/* What tells itself by its name only: host-only networks of VirtualBox and VMware. */
static bool is_named_so(const char *name)
{
    return !strncmp(name, "vboxnet", strlen("vboxnet")) || !strncmp(name, "vmnet", strlen("vmnet"));
}

/* 169.254.0.0/16: of a service processor or a cache of names; each host has the same. */
static bool is_link_local_v4(const struct mrd_ofi_iface *iface)
{
    return iface->addr.sa.sa_family == AF_INET &&
           ntohl(iface->addr.in.sin_addr.s_addr) >> 16 == (169u << 8 | 254);
}

/* 10.0.2.15/24: VirtualBox and QEMU give it to every machine behind the NAT of its own. */
static bool is_guest_nat(const struct mrd_ofi_iface *iface)
{
    return iface->addr.sa.sa_family == AF_INET &&
           ntohl(iface->addr.in.sin_addr.s_addr) == (10u << 24 | 2u << 8 | 15) &&
           ntohl(iface->mask.in.sin_addr.s_addr) == 0xffffff00;
}

void mrd_ofi_links_mark(struct mrd_ofi_iface *list, int num)
{
    struct links l = links_list();

    for (int i = 0; i < num; i++) {
        struct mrd_ofi_iface *iface = &list[i];

        iface->guest_nat = is_guest_nat(iface);
        iface->host_only =
            !iface->loopback && (is_named_so(iface->name) || is_link_local_v4(iface) ||
                                 leads_nowhere(&l, (int)if_nametoindex(iface->name)));
    }
    free(l.link);
}
