/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of IPv6, on ::1: what is offered, addresses and their text, all kinds of traffic. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "pair.h"
#include "traffic.h"

enum { PORT = 47990 };

static const uint32_t now = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
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

/* -------------------------------------------------------------------------------------- offered */

TEST(ofi_v6__source)
{
    static const uint32_t formats[] = {FI_FORMAT_UNSPEC, FI_SOCKADDR, FI_SOCKADDR_IN6};
    struct fi_info *hints = end_hints(&v6), *info;

    for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        hints->addr_format = formats[i];
        assert_int_equal(fi_getinfo(now, "::1", "47990", FI_SOURCE, hints, &info), 0);
        assert_null(info->next);
        assert_is(info->src_addr, info->src_addrlen, "::1", PORT);
        assert_null(info->dest_addr);
        assert_int_equal(info->addr_format, formats[i] ? formats[i] : FI_SOCKADDR_IN6);
        assert_string_equal(info->fabric_attr->name, "::1/128");
        fi_freeinfo(info);
        assert_int_equal(fi_getinfo(now, "::1", NULL, FI_SOURCE | FI_NUMERICHOST, hints, &info), 0);
        assert_is(info->src_addr, info->src_addrlen, "::1", 0);
        fi_freeinfo(info);
    }
    /* Any of this machine, at that port; and none of IPv4 among them. */
    assert_int_equal(fi_getinfo(now, NULL, "47990", FI_SOURCE, hints, &info), 0);
    for (const struct fi_info *i = info; i; i = i->next) {
        assert_int_equal(i->addr_format, FI_SOCKADDR_IN6);
        assert_int_equal(in6_of(i->src_addr)->sin6_family, AF_INET6);
        assert_int_equal(ntohs(in6_of(i->src_addr)->sin6_port), PORT);
        assert_false(IN6_IS_ADDR_LINKLOCAL(&in6_of(i->src_addr)->sin6_addr));
    }
    fi_freeinfo(info);
    assert_int_equal(fi_getinfo(now, "::", "47990", FI_SOURCE, hints, &info), 0);
    assert_int_equal(in6_of(info->src_addr)->sin6_family, AF_INET6);
    assert_int_equal(ntohs(in6_of(info->src_addr)->sin6_port), PORT);
    fi_freeinfo(info);
    assert_int_equal(fi_getinfo(now, "2001:db8::7", NULL, FI_SOURCE, hints, &info), -FI_ENODATA);
    fi_freeinfo(hints);
}

/* In all the ways that name a peer. */
TEST(ofi_v6__destination)
{
    static const char *const texts[] = {"[::1]:47990", "fi_sockaddr_in6://[::1]:47990"};
    struct fi_info *hints = end_hints(&v6), *info;
    struct sockaddr_in6 dest = address("::1", PORT);

    for (unsigned format = 0; format < 2; format++) {
        hints->addr_format = format ? FI_SOCKADDR_IN6 : FI_FORMAT_UNSPEC;
        assert_int_equal(fi_getinfo(now, "::1", "47990", 0, hints, &info), 0);
        assert_is(info->dest_addr, info->dest_addrlen, "::1", PORT);
        assert_is(info->src_addr, info->src_addrlen, "::1", 0);
        fi_freeinfo(info);
        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            assert_int_equal(fi_getinfo(now, texts[i], NULL, 0, hints, &info), 0);
            assert_is(info->dest_addr, info->dest_addrlen, "::1", PORT);
            fi_freeinfo(info);
        }
        hints->dest_addr = calloc(1, sizeof(dest));
        memcpy(hints->dest_addr, &dest, sizeof(dest));
        hints->dest_addrlen = sizeof(dest);
        assert_int_equal(fi_getinfo(now, NULL, NULL, 0, hints, &info), 0);
        assert_is(info->dest_addr, info->dest_addrlen, "::1", PORT);
        assert_is(info->src_addr, info->src_addrlen, "::1", 0);
        fi_freeinfo(info);

        /* With its source, as fabtests' clients ask. */
        assert_int_equal(fi_getinfo(now, "::1", "47991", FI_SOURCE, hints, &info), 0);
        assert_is(info->dest_addr, info->dest_addrlen, "::1", PORT);
        assert_is(info->src_addr, info->src_addrlen, "::1", PORT + 1);
        fi_freeinfo(info);
        free(hints->dest_addr);
        hints->dest_addr = NULL;
        hints->dest_addrlen = 0;
    }
    fi_freeinfo(hints);
}

/* Says why there is nothing. */
static void not_offered(const char *node, const char *service, uint64_t flags,
                        const struct fi_info *hints, const char *why)
{
    struct fi_info *info;

    log_keep();
    int result = fi_getinfo(now, node, service, flags, hints, &info);
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
    hints->dest_addr = &dest;
    hints->dest_addrlen = sizeof(dest);
    not_offered("127.0.0.1", NULL, FI_SOURCE, hints, "of IPv4 and of IPv6");
    hints->dest_addrlen = sizeof(struct sockaddr_in); /* it is cut off */
    not_offered(NULL, NULL, 0, hints, "not offered: dest_addr is no address");
    hints->dest_addr = NULL;
    hints->dest_addrlen = 0;
    fi_freeinfo(hints);
}

/* It is IPv4, however it is written; and where IPv6 is asked for, it is not offered. */
TEST(ofi_v6__v4_mapped)
{
    static const char node[] = "::ffff:127.0.0.1";
    struct fi_info *hints = end_hints(&v6), *info;
    struct sockaddr_in6 mapped = address(node, PORT);

    for (unsigned source = 0; source < 2; source++) {
        for (unsigned port = 0; port < 2; port++) {
            assert_int_equal(
                fi_getinfo(now, node, port ? "47990" : NULL, source ? FI_SOURCE : 0, hints, &info),
                0);
            assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
            const struct sockaddr_in *got = source ? info->src_addr : info->dest_addr;
            assert_int_equal(source ? info->src_addrlen : info->dest_addrlen, sizeof(*got));
            assert_int_equal(got->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
            fi_freeinfo(info);
        }
    }
    hints->dest_addr = &mapped;
    hints->dest_addrlen = sizeof(mapped);
    assert_int_equal(fi_getinfo(now, NULL, NULL, 0, hints, &info), 0);
    assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
    assert_int_equal(info->dest_addrlen, sizeof(struct sockaddr_in));
    fi_freeinfo(info);
    hints->addr_format = FI_SOCKADDR_IN6;
    not_offered(NULL, NULL, 0, hints, "not offered: dest_addr is no address of the format");
    hints->dest_addr = NULL;
    hints->dest_addrlen = 0;
    not_offered(node, "47990", 0, hints, "not offered: ::ffff:127.0.0.1 is no address of the for");
    not_offered(node, NULL, FI_SOURCE, hints, "not offered: ::ffff:127.0.0.1 is no address of the");
    fi_freeinfo(hints);
}

/* ------------------------------------------------------------------------------------ addresses */

TEST(ofi_v6__name_of_an_endpoint)
{
    struct end_options o = v6;
    struct sockaddr_in6 name;
    size_t bytes = sizeof(name);
    struct end e;

    end_open(&e, &o, NULL);
    assert_int_equal(fi_getname(&e.ep->fid, &name, &bytes), 0);
    uint16_t port = ntohs(name.sin6_port);
    assert_true(port);
    assert_is(&name, bytes, "::1", port);
    bytes = sizeof(struct sockaddr_in);
    assert_int_equal(fi_getname(&e.ep->fid, &name, &bytes), -FI_ETOOSMALL);
    assert_int_equal(bytes, sizeof(name));
    end_close(&e);
    o.port = port; /* it is free again */
    end_open(&e, &o, NULL);
    assert_int_equal(fi_getname(&e.ep->fid, &name, &bytes), 0);
    assert_is(&name, bytes, "::1", port);
    end_close(&e);
}

/* It has one of this machine, also where that has others of IPv4. */
TEST_F(end, ofi_v6__any_name_of_an_endpoint)
{
    struct sockaddr_in6 any = address("::", 0), name;
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    size_t bytes = sizeof(name);
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;

    end_open(self, &v6_format, NULL);
    assert_int_equal(fi_endpoint(self->domain, self->info, &ep, NULL), 0);
    assert_int_equal(fi_cq_open(self->domain, &cq_attr, &cq, NULL), 0);
    assert_int_equal(fi_av_open(self->domain, &(struct fi_av_attr){.type = FI_AV_MAP}, &av, NULL),
                     0);
    assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
    assert_int_equal(fi_setname(&ep->fid, &any, sizeof(any)), 0);
    assert_int_equal(fi_enable(ep), 0);
    assert_int_equal(fi_getname(&ep->fid, &name, &bytes), 0);
    assert_int_equal(bytes, sizeof(name));
    assert_int_equal(name.sin6_family, AF_INET6);
    assert_false(IN6_IS_ADDR_UNSPECIFIED(&name.sin6_addr));
    assert_false(IN6_IS_ADDR_V4MAPPED(&name.sin6_addr));
    assert_true(name.sin6_port);
    assert_int_equal(fi_close(&ep->fid), 0);
    assert_int_equal(fi_close(&av->fid), 0);
    assert_int_equal(fi_close(&cq->fid), 0);
}

TEST_F(end, ofi_v6__addresses_of_a_vector)
{
    struct sockaddr_in6 back, in[3];
    size_t bytes = sizeof(back), len;
    fi_addr_t addr[6];
    char text[64];

    end_open(self, &v6_format, NULL);
    for (unsigned i = 0; i < 3; i++)
        in[i] = address("2001:db8::7", (uint16_t)(1000 + i));
    in[2].sin6_scope_id = 1; /* which means nothing there */
    assert_int_equal(fi_av_insert(self->av, in, 3, addr, 0, NULL), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fi_av_lookup(self->av, addr[i], &back, &bytes), 0);
        assert_is(&back, bytes, "2001:db8::7", (uint16_t)(1000 + i));
    }

    /* As text, and back. */
    len = sizeof(text);
    assert_string_equal(fi_av_straddr(self->av, &in[2], text, &len), "[2001:db8::7]:1002");
    assert_int_equal(len, sizeof("[2001:db8::7]:1002"));
    assert_int_equal(fi_av_insertsvc(self->av, text, NULL, addr, 0, NULL), 1);
    assert_int_equal(fi_av_lookup(self->av, addr[0], &back, &bytes), 0);
    assert_is(&back, bytes, "2001:db8::7", 1002);
    in[0] = address("::1", 0); /* of no endpoint, but of a host */
    len = sizeof(text);
    assert_string_equal(fi_av_straddr(self->av, &in[0], text, &len), "[::1]:0");

    assert_int_equal(fi_av_insertsvc(self->av, "::1", "1234", addr, 0, NULL), 1);
    assert_int_equal(fi_av_lookup(self->av, addr[0], &back, &bytes), 0);
    assert_is(&back, bytes, "::1", 1234);
    assert_int_equal(fi_av_insertsym(self->av, "2001:db8::ffff", 2, "9", 3, addr, 0, NULL), 6);
    assert_int_equal(fi_av_lookup(self->av, addr[5], &back, &bytes), 0);
    assert_is(&back, bytes, "2001:db8::1:0", 11);
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
    fi_addr_t addr;
    struct end e;

    end_open(&e, &v6_format, NULL);
    assert_int_equal(fi_av_insert(e.av, &in, 1, &addr, 0, NULL), 0);
    assert_int_equal(addr, FI_ADDR_NOTAVAIL);
    assert_int_equal(fi_av_insert(e.av, &none, 1, &addr, 0, NULL), 0);
    log_keep();
    int result = fi_av_insertsvc(e.av, "127.0.0.1:1000", NULL, &addr, 0, NULL);
    log_says("127.0.0.1:1000 is no address of the domain's format");
    assert_int_equal(result, 0);
    log_keep();
    result = fi_av_insertsvc(e.av, "127.0.0.1", "1000", &addr, 0, NULL);
    log_says("127.0.0.1: ");
    assert_int_equal(result, 0);
    end_close(&e);

    end_open(&e, &v4_format, NULL);
    assert_int_equal(fi_av_insert(e.av, &in6, 1, &addr, 0, NULL), 0);
    log_keep();
    result = fi_av_insertsvc(e.av, "[::1]:1000", NULL, &addr, 0, NULL);
    log_says("[::1]:1000 is no address of the domain's format");
    assert_int_equal(result, 0);
    log_keep();
    result = fi_av_insertsvc(e.av, "::1", "1000", &addr, 0, NULL);
    log_says("::1: ");
    assert_int_equal(result, 0);
    end_close(&e);
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
    struct fid_ep *ep;
    struct end e;

    end_open(&e, o, NULL);
    assert_int_equal(fi_endpoint(e.domain, e.info, &ep, NULL), 0);
    assert_int_equal(fi_ep_bind(ep, &e.av->fid, 0), 0);
    assert_int_equal(fi_ep_bind(ep, &e.tx->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_setname(&ep->fid, name, bytes), 0);
    log_keep();
    int result = fi_enable(ep);
    log_says("is not of the format that it has to have");
    assert_int_equal(result, -FI_EADDRNOTAVAIL);
    assert_int_equal(fi_close(&ep->fid), 0);
    end_close(&e);
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
TEST(ofi_v6__nobody_there)
{
    struct end_options o = v6;
    struct sockaddr_in6 name;
    size_t bytes = sizeof(name);
    struct end e, gone;
    char text[64];

    end_open(&e, &o, NULL);
    end_open(&gone, &o, NULL);
    e.to = end_meet(&e, &gone);
    assert_int_equal(fi_getname(&gone.ep->fid, &name, &bytes), 0);
    end_close(&gone);
    POST(fi_send(e.ep, "x", 1, NULL, e.to, &e));
    struct entry entry = end_fails(e.tx, &e, FI_EHOSTUNREACH);
    snprintf(text, sizeof(text), "[::1]:%u: ", ntohs(name.sin6_port));
    assert_memory_equal(entry.text, text, strlen(text));
    end_close(&e);
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
