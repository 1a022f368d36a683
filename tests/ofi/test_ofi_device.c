/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of endpoints on an RDMA device, which is a fake one: the provider's calls of libibverbs
 * come to this program.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "tests/support/fake_ibv.h"

static int ask(const char *node, const char *service, uint64_t flags, struct fi_info **info)
{
    struct fi_info *hints = end_hints(&(struct end_options){0});
    int result = fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), node, service, flags,
                            hints, info);

    fi_freeinfo(hints);
    return result;
}

static void assert_address(const void *addr, size_t bytes, const char *gid)
{
    const struct sockaddr_in6 *in6 = addr;
    char text[INET6_ADDRSTRLEN];

    assert_non_null(addr);
    assert_int_equal(bytes, sizeof(*in6));
    assert_int_equal(in6->sin6_family, AF_INET6);
    assert_int_equal(in6->sin6_port, 0);
    inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
    assert_string_equal(text, gid);
}

static void assert_source(const char *node, const char *service, uint64_t flags, const char *gid)
{
    struct fi_info *info;

    assert_int_equal(ask(node, service, flags, &info), 0);
    assert_int_equal(info->addr_format, FI_SOCKADDR_IN6);
    assert_address(info->src_addr, info->src_addrlen, gid);
    fi_freeinfo(info);
}

/* Applications read src_addr, and write to it, without looking whether it is there. */
static void ofi_device__source(void **state)
{
    (void)state;
    assert_source(NULL, NULL, 0, "::");
    assert_source(NULL, "9228", FI_SOURCE, "::");
    assert_source("192.0.2.1", NULL, FI_SOURCE, "::ffff:192.0.2.1");
    assert_source("192.0.2.1", "9228", FI_SOURCE, "::ffff:192.0.2.1");
    assert_source("fe80::1", NULL, FI_SOURCE, "fe80::1");
}

/* A host and a port are no peer; what an endpoint tells of itself is. */
static void ofi_device__destination(void **state)
{
    struct fi_info *info;

    (void)state;
    assert_int_equal(ask("192.0.2.1", "9228", 0, &info), -FI_ENODATA);
    assert_int_equal(ask("192.0.2.1/17", NULL, 0, &info), 0);
    assert_address(info->src_addr, info->src_addrlen, "::");
    assert_address(info->dest_addr, info->dest_addrlen, "::ffff:192.0.2.1");
    assert_int_equal(ntohl(((struct sockaddr_in6 *)info->dest_addr)->sin6_flowinfo), 17);
    fi_freeinfo(info);
}

/* The source that getinfo tells is any of the device's; then the endpoint has one. */
static void ofi_device__name(void **state)
{
    struct sockaddr_in6 name;
    size_t bytes = sizeof(name);
    struct pair p;
    char in = 0;

    (void)state;
    pair_open(&p, &(struct end_options){0});
    assert_address(p.a.info->src_addr, p.a.info->src_addrlen, "::");
    assert_int_equal(fi_getname(&p.a.ep->fid, &name, &bytes), 0);
    assert_address(&name, bytes, "::ffff:192.0.2.1");
    assert_true(ntohl(name.sin6_flowinfo) > 0);
    POST(fi_recv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
    POST(fi_inject(p.a.ep, "x", 1, p.a.to));
    end_ok(p.b.rx, &in);
    assert_int_equal(in, 'x');
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ofi_test(ofi_device__source),
                                       ofi_test(ofi_device__destination),
                                       ofi_test(ofi_device__name)};
    struct fi_info *info;
    int failed;

    fake_ibv_begin(1);
    if (!ask(NULL, NULL, 0, &info)) /* libfabric's own providers look for devices now: none yet */
        return 1;
    fake_ibv_add(FAKE_IBV_RXE, "fake0");
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + (int)fake_ibv_end();
}
