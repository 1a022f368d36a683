/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of IPv6, on ::1: what is offered, addresses and their text, all kinds of traffic. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "pair.h"
#include "traffic.h"

enum { PORT = 47990 };

static const struct end_options v6 = {.node = "::1"};
static const struct end_options v6_format = {.node = "::1", .format = FI_SOCKADDR_IN6};
static const struct end_options v4_format = {.format = FI_SOCKADDR_IN};

static const struct sockaddr_in6 *in6_of(const void *addr)
{
    return addr;
}

static struct sockaddr_in6 address(const char *ip, uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    assert_int_equal(inet_pton(AF_INET6, ip, &a.sin6_addr), 1);
    return a;
}

static void assert_is(const void *addr, size_t bytes, const char *ip, uint16_t port)
{
    struct sockaddr_in6 expected = address(ip, port);

    assert_int_equal(bytes, sizeof(expected));
    assert_int_equal(in6_of(addr)->sin6_family, AF_INET6);
    assert_memory_equal(&in6_of(addr)->sin6_addr, &expected.sin6_addr, sizeof(struct in6_addr));
    assert_int_equal(ntohs(in6_of(addr)->sin6_port), port);
}

/* Both are ::1, at those ports. */
static void assert_ends(const struct fi_info *info, uint16_t src, uint16_t dest)
{
    assert_is(info->src_addr, info->src_addrlen, "::1", src);
    assert_is(info->dest_addr, info->dest_addrlen, "::1", dest);
}

/* Names the peer; NULL: nobody. */
static void set_dest(struct fi_info *hints, const struct sockaddr_in6 *dest)
{
    free(hints->dest_addr);
    hints->dest_addr = dest ? malloc(sizeof(*dest)) : NULL;
    hints->dest_addrlen = dest ? sizeof(*dest) : 0;
    if (dest)
        memcpy(hints->dest_addr, dest, sizeof(*dest));
}

/* -------------------------------------------------------------------------------------- offered */

TEST(ofi_v6__source)
{
    static const uint32_t formats[] = {FI_FORMAT_UNSPEC, FI_SOCKADDR, FI_SOCKADDR_IN6};
    struct fi_info *hints = end_hints(&v6);
    const struct fi_info *info;

    for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        hints->addr_format = formats[i];
        info = end_offered("::1", "47990", FI_SOURCE, hints);
        assert_null(info->next);
        assert_is(info->src_addr, info->src_addrlen, "::1", PORT);
        assert_null(info->dest_addr);
        assert_int_equal(info->addr_format, formats[i] ? formats[i] : FI_SOCKADDR_IN6);
        assert_string_equal(info->fabric_attr->name, "::1/128");
        info = end_offered("::1", NULL, FI_SOURCE | FI_NUMERICHOST, hints);
        assert_is(info->src_addr, info->src_addrlen, "::1", 0);
    }
    /* Any of this machine, at that port; and none of IPv4 among them. */
    for (info = end_offered(NULL, "47990", FI_SOURCE, hints); info; info = info->next) {
        assert_int_equal(info->addr_format, FI_SOCKADDR_IN6);
        assert_int_equal(in6_of(info->src_addr)->sin6_family, AF_INET6);
        assert_int_equal(ntohs(in6_of(info->src_addr)->sin6_port), PORT);
        assert_false(IN6_IS_ADDR_LINKLOCAL(&in6_of(info->src_addr)->sin6_addr));
    }
    info = end_offered("::", "47990", FI_SOURCE, hints);
    assert_int_equal(in6_of(info->src_addr)->sin6_family, AF_INET6);
    assert_int_equal(ntohs(in6_of(info->src_addr)->sin6_port), PORT);
    end_not_offered("2001:db8::7", NULL, FI_SOURCE, hints);
}

/* In all the ways that name a peer. */
TEST(ofi_v6__destination)
{
    static const char *const texts[] = {"[::1]:47990", "fi_sockaddr_in6://[::1]:47990"};
    struct fi_info *hints = end_hints(&v6);
    struct sockaddr_in6 dest = address("::1", PORT);

    for (unsigned format = 0; format < 2; format++) {
        hints->addr_format = format ? FI_SOCKADDR_IN6 : FI_FORMAT_UNSPEC;
        assert_ends(end_offered("::1", "47990", 0, hints), 0, PORT);
        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            const struct fi_info *info = end_offered(texts[i], NULL, 0, hints);

            assert_is(info->dest_addr, info->dest_addrlen, "::1", PORT);
        }
        set_dest(hints, &dest);
        assert_ends(end_offered(NULL, NULL, 0, hints), 0, PORT);
        /* With its source, as fabtests' clients ask. */
        assert_ends(end_offered("::1", "47991", FI_SOURCE, hints), PORT + 1, PORT);
        set_dest(hints, NULL);
    }
}

/* Says why there is nothing. */
static void not_offered(const char *node, const char *service, uint64_t flags,
                        const struct fi_info *hints, const char *why)
{
    struct fi_info *info;

    log_keep();
    int result = fi_getinfo(end_version, node, service, flags, hints, &info);
    log_says(why);
    assert_int_equal(result, -FI_ENODATA);
}

TEST(ofi_v6__families_do_not_mix)
{
    struct fi_info *hints = end_hints(&v6);
    struct sockaddr_in6 dest = address("::1", PORT);

    hints->addr_format = FI_SOCKADDR_IN;
    not_offered("::1", "47990", FI_SOURCE, hints, "not offered: ::1, port 47990");
    not_offered("::1", "47990", 0, hints, "not offered: ::1, port 47990");
    not_offered("[::1]:47990", NULL, 0, hints, "not offered: [::1]:47990 is no address of the for");
    hints->addr_format = FI_SOCKADDR_IN6;
    not_offered("127.0.0.1", "47990", FI_SOURCE, hints, "not offered: 127.0.0.1, port 47990");
    not_offered("127.0.0.1:1", NULL, 0, hints, "not offered: 127.0.0.1:1 is no address of the for");
    hints->addr_format = FI_FORMAT_UNSPEC;
    set_dest(hints, &dest);
    not_offered("127.0.0.1", NULL, FI_SOURCE, hints, "of IPv4 and of IPv6");
    hints->dest_addrlen = sizeof(struct sockaddr_in); /* it is cut off */
    not_offered(NULL, NULL, 0, hints, "not offered: dest_addr is no address");
}

/* It is IPv4, however it is written; and where IPv6 is asked for, it is not offered. */
TEST(ofi_v6__v4_mapped)
{
    static const char node[] = "::ffff:127.0.0.1";
    struct fi_info *hints = end_hints(&v6);
    struct sockaddr_in6 mapped = address(node, PORT);
    const struct fi_info *info;

    for (unsigned source = 0; source < 2; source++) {
        for (unsigned port = 0; port < 2; port++) {
            info = end_offered(node, port ? "47990" : NULL, source ? FI_SOURCE : 0, hints);
            assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
            const struct sockaddr_in *got = source ? info->src_addr : info->dest_addr;
            assert_int_equal(source ? info->src_addrlen : info->dest_addrlen, sizeof(*got));
            assert_int_equal(got->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        }
    }
    set_dest(hints, &mapped);
    info = end_offered(NULL, NULL, 0, hints);
    assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
    assert_int_equal(info->dest_addrlen, sizeof(struct sockaddr_in));
    hints->addr_format = FI_SOCKADDR_IN6;
    not_offered(NULL, NULL, 0, hints, "not offered: dest_addr is no address of the format");
    set_dest(hints, NULL);
    not_offered(node, "47990", 0, hints, "not offered: ::ffff:127.0.0.1 is no address of the for");
    not_offered(node, NULL, FI_SOURCE, hints, "not offered: ::ffff:127.0.0.1 is no address of the");
}

/* ------------------------------------------------------------------------------------ addresses */

TEST(ofi_v6__name_of_an_endpoint)
{
    struct end_options o = v6;
    size_t bytes = sizeof(struct sockaddr_in);
    struct end e;

    end_open(&e, &o, NULL);
    struct sockaddr_in6 name = end_name6(e.ep);
    uint16_t port = ntohs(name.sin6_port);
    assert_true(port);
    assert_is(&name, sizeof(name), "::1", port);
    assert_int_equal(fi_getname(&e.ep->fid, &name, &bytes), -FI_ETOOSMALL);
    assert_int_equal(bytes, sizeof(name));
    end_close(&e);
    o.port = port; /* it is free again */
    end_open(&e, &o, NULL);
    name = end_name6(e.ep);
    assert_is(&name, sizeof(name), "::1", port);
    end_close(&e);
}

/* It has one of this machine, also where that has others of IPv4. */
TEST_F(end, ofi_v6__any_name_of_an_endpoint)
{
    struct sockaddr_in6 any = address("::", 0);

    end_open(self, &v6_format, NULL);
    struct fid_ep *ep = end_beside(self, self->info);
    assert_int_equal(fi_setname(&ep->fid, &any, sizeof(any)), 0);
    assert_int_equal(fi_enable(ep), 0);
    struct sockaddr_in6 name = end_name6(ep);
    assert_int_equal(name.sin6_family, AF_INET6);
    assert_false(IN6_IS_ADDR_UNSPECIFIED(&name.sin6_addr));
    assert_false(IN6_IS_ADDR_V4MAPPED(&name.sin6_addr));
    assert_true(name.sin6_port);
    assert_int_equal(fi_close(&ep->fid), 0);
}

static void assert_known(struct fid_av *av, fi_addr_t addr, const char *ip, uint16_t port)
{
    struct sockaddr_in6 name;
    size_t bytes = sizeof(name);

    assert_int_equal(fi_av_lookup(av, addr, &name, &bytes), 0);
    assert_is(&name, bytes, ip, port);
}

TEST_F(end, ofi_v6__addresses_of_a_vector)
{
    struct sockaddr_in6 in[3];
    fi_addr_t addr[6];
    char text[64];
    size_t len = sizeof(text);

    end_open(self, &v6_format, NULL);
    struct fid_av *av = self->av;
    for (unsigned i = 0; i < 3; i++)
        in[i] = address("2001:db8::7", (uint16_t)(1000 + i));
    in[2].sin6_scope_id = 1; /* which means nothing there */
    assert_int_equal(fi_av_insert(av, in, 3, addr, 0, NULL), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_known(av, addr[i], "2001:db8::7", (uint16_t)(1000 + i));

    /* As text, and back. */
    assert_string_equal(fi_av_straddr(av, &in[2], text, &len), "[2001:db8::7]:1002");
    assert_int_equal(len, sizeof("[2001:db8::7]:1002"));
    assert_int_equal(fi_av_insertsvc(av, text, NULL, addr, 0, NULL), 1);
    assert_known(av, addr[0], "2001:db8::7", 1002);
    in[0] = address("::1", 0); /* of no endpoint, but of a host */
    len = sizeof(text);
    assert_string_equal(fi_av_straddr(av, &in[0], text, &len), "[::1]:0");

    assert_int_equal(fi_av_insertsvc(av, "::1", "1234", addr, 0, NULL), 1);
    assert_known(av, addr[0], "::1", 1234);
    assert_int_equal(fi_av_insertsym(av, "2001:db8::ffff", 2, "9", 3, addr, 0, NULL), 6);
    assert_known(av, addr[5], "2001:db8::1:0", 11);
}

/* It is not taken in, and the log says why. */
static void not_inserted(struct end *e, const char *node, const char *service, const char *why)
{
    fi_addr_t addr;

    log_keep();
    int result = fi_av_insertsvc(e->av, node, service, &addr, 0, NULL);
    log_says(why);
    assert_int_equal(result, 0);
}

/* Room for addresses is that of the domain's format: others are not taken in. */
TEST(ofi_v6__vector_of_one_format)
{
    struct sockaddr_in6 in6 = address("::1", PORT), none = address("::", PORT);
    union {
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } in = {.in = {.sin_family = AF_INET,
                   .sin_port = htons(PORT),
                   .sin_addr = {htonl(INADDR_LOOPBACK)}}};
    struct end *e = end_new(&v6_format, NULL);
    fi_addr_t addr;

    assert_int_equal(fi_av_insert(e->av, &in, 1, &addr, 0, NULL), 0);
    assert_int_equal(addr, FI_ADDR_NOTAVAIL);
    assert_int_equal(fi_av_insert(e->av, &none, 1, &addr, 0, NULL), 0);
    not_inserted(e, "127.0.0.1:1000", NULL, "127.0.0.1:1000 is no address of the domain's format");
    not_inserted(e, "127.0.0.1", "1000", "127.0.0.1: ");

    e = end_new(&v4_format, NULL);
    assert_int_equal(fi_av_insert(e->av, &in6, 1, &addr, 0, NULL), 0);
    not_inserted(e, "[::1]:1000", NULL, "[::1]:1000 is no address of the domain's format");
    not_inserted(e, "::1", "1000", "::1: ");
}

/* An endpoint of IPv6 sends nothing to IPv4, and says so. */
TEST_F(end, ofi_v6__to_v4)
{
    struct sockaddr_in6 mapped = address("::ffff:127.0.0.1", PORT);
    fi_addr_t addr;

    end_open(self, &v6_format, NULL);
    assert_int_equal(fi_av_insert(self->av, &mapped, 1, &addr, 0, NULL), 1);
    log_keep();
    ssize_t result = fi_send(self->ep, "x", 1, NULL, addr, NULL);
    log_says("127.0.0.1:47990 cannot be sent to: \"127.0.0.1:47990\" is an IPv4 address, and this "
             "context is bound to an IPv6 one");
    assert_int_equal(result, -FI_EINVAL);
    assert_int_equal(fi_write(self->ep, "x", 1, NULL, addr, 0, 0, NULL), -FI_EINVAL);
    end_silent(self->tx);
}

/* Its peers expect addresses of the format: it cannot have one of the other family. */
static void name_does_not_fit(const struct end_options *o, void *name, size_t bytes)
{
    struct end *e = end_new(o, NULL);
    struct fid_ep *ep = end_beside(e, e->info);

    assert_int_equal(fi_setname(&ep->fid, name, bytes), 0);
    log_keep();
    int result = fi_enable(ep);
    log_says("is not of the format that it has to have");
    assert_int_equal(result, -FI_EADDRNOTAVAIL);
    assert_int_equal(fi_close(&ep->fid), 0);
}

TEST(ofi_v6__endpoint_of_the_other_family)
{
    struct sockaddr_in6 mapped = address("::ffff:127.0.0.1", 0), in6 = address("::1", 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

    name_does_not_fit(&v6_format, &in, sizeof(in));
    name_does_not_fit(&v6_format, &mapped, sizeof(mapped));
    name_does_not_fit(&v4_format, &in6, sizeof(in6));
}

/* -------------------------------------------------------------------------------------- traffic */

TEST(ofi_v6__traffic)
{
    struct pair p;

    pair_open(&p, &v6);
    pair_exercise(&p);
    pair_close(&p);
    pair_open_shared(&p, &v6_format);
    pair_exercise(&p);
    pair_close(&p);
}

/* Who cannot be reached is named as all addresses of IPv6 are. */
TEST_F(end, ofi_v6__nobody_there)
{
    struct end *gone = end_new(&v6, NULL);
    char text[64];

    end_open(self, &v6, NULL);
    self->to = end_meet(self, gone);
    snprintf(text, sizeof(text), "[::1]:%u: ", ntohs(end_name6(gone->ep).sin6_port));
    end_close(gone);
    POST(fi_send(self->ep, "x", 1, NULL, self->to, self));
    struct entry entry = end_fails(self->tx, self, FI_EHOSTUNREACH);
    assert_memory_equal(entry.text, text, strlen(text));
}

/* Is there IPv6 on the loopback interface? */
static bool has_v6(void)
{
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&loopback, sizeof(loopback));

    if (fd >= 0)
        close(fd);
    return has;
}

int kit_before_all(void)
{
    if (has_v6())
        return 0;
    fprintf(stderr, "skipped: the loopback interface has no ::1\n");
    return KIT_SKIPPED;
}
