/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints with link-local addresses, which are addresses only together with the interface that
 * they belong to. Both ends of a cable are in a network namespace of the test's own.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>

#include "log.h"
#include "pair.h"
#include "space.h"
#include "traffic.h"

enum { PORT = 4793 };

static const struct end_options left = {.node = "fe80::1%left"};
static const struct end_options right = {.node = "fe80::2%right", .format = FI_SOCKADDR_IN6};

static const struct sockaddr_in6 *in6_of(const void *addr)
{
    return addr;
}

/* As `interface` knows it. */
static fi_addr_t meet(struct end *e, const struct end *other, const char *interface)
{
    struct sockaddr_in6 name = end_name6(other->ep);
    fi_addr_t addr;

    name.sin6_scope_id = if_nametoindex(interface);
    assert_int_equal(fi_av_insert(e->av, &name, 1, &addr, 0, NULL), 1);
    return addr;
}

/* Says why there is nothing. */
static void not_offered(const char *node, uint64_t flags, const char *why)
{
    struct fi_info *info;

    log_keep();
    int result = fi_getinfo(end_version, node, "4793", flags, end_hints(&left), &info);
    log_says(why);
    assert_int_equal(result, -FI_ENODATA);
}

TEST(ofi_link__offered_by_name_only)
{
    struct fi_info *hints = end_hints(&left);
    const struct fi_info *info = end_offered("fe80::2%right", "4793", FI_SOURCE, hints);

    assert_null(info->next);
    assert_int_equal(in6_of(info->src_addr)->sin6_scope_id, if_nametoindex("right"));
    assert_int_equal(ntohs(in6_of(info->src_addr)->sin6_port), PORT);
    assert_string_equal(info->domain_attr->name, "right");

    /* Of a destination, it tells from which interface on. */
    info = end_offered("fe80::2%left", "4793", 0, hints);
    assert_int_equal(in6_of(info->src_addr)->sin6_scope_id, if_nametoindex("left"));
    assert_true(IN6_IS_ADDR_LINKLOCAL(&in6_of(info->src_addr)->sin6_addr));
    assert_int_equal(in6_of(info->dest_addr)->sin6_scope_id, if_nametoindex("left"));
    assert_string_equal(info->domain_attr->name, "left");
    info = end_offered("[fe80::1%right]:4793", NULL, 0, hints);
    assert_int_equal(in6_of(info->src_addr)->sin6_scope_id, if_nametoindex("right"));

    hints->addr_format = FI_SOCKADDR_IN6;
    for (info = end_offered(NULL, NULL, 0, hints); info; info = info->next)
        assert_false(IN6_IS_ADDR_LINKLOCAL(&in6_of(info->src_addr)->sin6_addr));

    not_offered("fe80::1", FI_SOURCE, "fe80::1 is link-local and needs its interface");
    not_offered("fe80::1", 0, "fe80::1 is link-local and needs its interface");
    not_offered("fe80::1%right", FI_SOURCE, "no address of this machine");
}

/* Of IPv4, all of 127.0.0.0/8 is this machine. */
TEST(ofi_link__network_of_the_loopback_interface)
{
    struct fi_info *hints = end_hints(&left);

    assert_string_equal(end_offered("2001:db8::1", "4793", FI_SOURCE, hints)->domain_attr->name,
                        "lo");
    not_offered("2001:db8::7", FI_SOURCE, "no address of this machine");
    end_offered("127.0.0.7", "4793", FI_SOURCE, hints);
}

TEST_F(end, ofi_link__addresses_and_their_text)
{
    struct sockaddr_in6 back;
    size_t bytes = sizeof(back), len;
    fi_addr_t addr[3];
    char text[64], expected[64];

    end_open(self, &left, NULL);
    struct sockaddr_in6 name = end_name6(self->ep);
    assert_int_equal(name.sin6_scope_id, if_nametoindex("left"));
    snprintf(expected, sizeof(expected), "[fe80::1%%left]:%u", ntohs(name.sin6_port));
    len = sizeof(text);
    assert_string_equal(fi_av_straddr(self->av, &name, text, &len), expected);
    assert_int_equal(fi_av_insertsvc(self->av, text, NULL, &addr[0], 0, NULL), 1);
    assert_int_equal(fi_av_insertsvc(self->av, "fe80::1%right", "9", &addr[1], 0, NULL), 1);
    assert_int_equal(fi_av_insertsvc(self->av, "fe80::1%nowhere", "9", &addr[2], 0, NULL), 0);
    assert_int_equal(fi_av_lookup(self->av, addr[0], &back, &bytes), 0);
    assert_memory_equal(&back, &name, sizeof(name));
    assert_int_equal(fi_av_lookup(self->av, addr[1], &back, &bytes), 0);
    assert_int_equal(back.sin6_scope_id, if_nametoindex("right"));

    /* Without its interface it is nobody's. */
    name.sin6_scope_id = 0;
    assert_int_equal(fi_av_insert(self->av, &name, 1, &addr[2], 0, NULL), 1);
    log_keep();
    ssize_t result = fi_send(self->ep, "x", 1, NULL, addr[2], NULL);
    log_says("is link-local and needs its interface");
    assert_int_equal(result, -FI_EINVAL);
}

/* Each knows the other by its own end of the cable. */
TEST_F(pair, ofi_link__over_the_cable)
{
    end_open(&self->a, &left, NULL);
    end_open(&self->b, &right, NULL);
    self->a.to = meet(&self->a, &self->b, "left");
    self->b.to = meet(&self->b, &self->a, "right");
    pair_exercise(self);
}

/* Of one interface, and with themselves. */
TEST(ofi_link__at_one_interface)
{
    struct pair p;

    pair_open(&p, &left);
    pair_exercise(&p);
    pair_close(&p);
    end_open(&p.a, &right, NULL);
    p.a.to = end_meet(&p.a, &p.a);
    p.b = p.a;
    pair_exercise(&p);
    end_close(&p.a);
}

/* The same address and port at both ends of the cable: two peers. */
TEST_F(end, ofi_link__scopes_tell_peers_apart)
{
    struct end_options here = {.node = "fe80::9%left", .port = PORT};
    struct end_options there = {.node = "fe80::9%right", .port = PORT};
    struct end *a = end_new(&here, NULL), *b = end_new(&there, NULL);
    fi_addr_t to[2];
    char in[8];

    end_open(self, &left, NULL);
    to[0] = end_meet(self, a); /* by left, to itself */
    to[1] = end_meet(self, b);
    assert_true(to[0] != to[1]);
    a->to = end_meet(a, self);
    for (unsigned i = 0; i < 10; i++) {
        POST(fi_recv(self->ep, in, sizeof(in), NULL, to[0], in));
        POST(fi_send(a->ep, "a", 1, NULL, a->to, a));
        end_ok(a->tx, a);
        assert_int_equal(end_ok(self->rx, in).src, to[0]);
    }
}

/* ------------------------------------------------------------------------------------ namespace */

/* Addresses are there at once: none is looked for at the other end first. */
static bool lay_cable(void)
{
    return space_run("ip link set lo up && "
                     "ip link add left type veth peer name right && "
                     "ip link set left addrgenmode none && ip link set right addrgenmode none && "
                     "ip link set left up && ip link set right up && "
                     "ip addr add 2001:db8::1/64 dev lo nodad && "
                     "ip addr add fe80::1/64 dev left nodad && "
                     "ip addr add fe80::9/64 dev left nodad && "
                     "ip addr add fe80::2/64 dev right nodad && "
                     "ip addr add fe80::9/64 dev right nodad");
}

int kit_before_all(void)
{
    if (!space_enter())
        return KIT_SKIPPED;
    if (lay_cable())
        return 0;
    fprintf(stderr, "skipped: ip(8) makes no veth interfaces with addresses of IPv6 here\n");
    return KIT_SKIPPED;
}
