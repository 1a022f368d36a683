/* SPDX-License-Identifier: BSD-2-Clause */
/* Address strings of the UDP mover, and what it says of routes. */
#include "tests/kit/kit.h"
#include "tests/udp/udp_fixture.h"
#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_route.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    const char *formatted; /* NULL: -EINVAL */
} addresses[] = {
    {"192.0.2.7:4793", "192.0.2.7:4793"},
    {"192.0.2.7", "192.0.2.7:4793"},
    {"192.0.2.7:1", "192.0.2.7:1"},
    {"192.0.2.7:65535", "192.0.2.7:65535"},
    {"[2001:db8::7]:80", "[2001:db8::7]:80"},
    {"[2001:db8::7]", "[2001:db8::7]:4793"},
    {"2001:db8::7", "[2001:db8::7]:4793"},
    {"[2001:DB8:0:0::7]:80", "[2001:db8::7]:80"},
    {"[::1]:5", "[::1]:5"},
    {"[::ffff:192.0.2.7]:5", "192.0.2.7:5"}, /* one host, one form */
    {"[fe80::1%lo]:5", "[fe80::1%lo]:5"},
    {"[fe80::1%1]:5", "[fe80::1%lo]:5"},
    {"fe80::1%lo", "[fe80::1%lo]:4793"},
    {"[2001:db8::7%lo]:5", "[2001:db8::7]:5"}, /* the scope of a global address means nothing */
    {"", NULL},
    {":", NULL},
    {":4793", NULL},
    {"localhost:4793", NULL},
    {"192.0.2:1", NULL},
    {"192.0.2.256:1", NULL},
    {"192.0.2.7:", NULL},
    {"192.0.2.7:0", NULL},
    {"192.0.2.7:65536", NULL},
    {"192.0.2.7:4294967297", NULL},
    {"192.0.2.7:-1", NULL},
    {"192.0.2.7:+1", NULL},
    {"192.0.2.7: 1", NULL},
    {"192.0.2.7:1x", NULL},
    {"192.0.2.7%lo:1", NULL},
    {"[192.0.2.7]:1", NULL},
    {"[2001:db8::7", NULL},
    {"[2001:db8::7]x", NULL},
    {"[2001:db8::7]:", NULL},
    {"[]:1", NULL},
    {"[2001:db8::7:1", NULL},
    {"[fe80::1]:5", NULL}, /* which interface? */
    {"[fe80::1%]:5", NULL},
    {"[fe80::1%no-such-if]:5", NULL},
    {"[fe80::1%999999]:5", NULL},
    {"[fe80::1%99999999999999999999]:5", NULL},
    {"0.0.0.0:1", NULL},
    {"224.0.0.1:1", NULL},
    {"255.255.255.255:1", NULL},
    {"[::]:1", NULL},
    {"[ff02::1]:1", NULL},
    {"[2001:db8:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:"
     "0000:0000:0000:0000:0000:0000:0000:0000:0000:7]:1",
     NULL},
};

TEST_F(movers, mrd_udp_parse_address__table)
{
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        struct mrd_addr addr = {.port = 77}, again;
        char text[MRD_ADDRESS_MAX];
        int error = self->a->ops->parse_address(self->a, addresses[i].text, &addr);

        if (!addresses[i].formatted) {
            if (error != -EINVAL)
                fail_msg("\"%s\": %d", addresses[i].text, error);
            assert_int_equal(addr.port, 77);
            assert_non_null(strstr(mrd_last_error(), "\""));
            continue;
        }
        if (error)
            fail_msg("\"%s\": %d: %s", addresses[i].text, error, mrd_last_error());
        assert_int_equal(self->a->ops->format_address(self->a, &addr, text, sizeof(text)), 0);
        assert_string_equal(text, addresses[i].formatted);
        /* What is formatted parses to the same bytes. */
        assert_int_equal(self->a->ops->parse_address(self->a, text, &again), 0);
        assert_memory_equal(&addr, &again, sizeof(addr));
    }
}

/* A context that cannot reach a family says so when the handle is made, not by silence. */
TEST(mrd_udp_parse_address__other_family)
{
    struct mrd_context_attr v4 = {.address = "127.0.0.1", .paths = 1};
    struct mrd_context_attr v6 = {.address = "::1", .paths = 1};
    struct mrd_backend *b4 = fixture_open(&v4, 0), *b6 = fixture_open(&v6, 0);
    struct mrd_backend *without = fixture_open(NULL, MRD_UDP_WITHOUT_IPV6);
    struct mrd_addr addr;

    assert_int_equal(mrd_udp_parse_address(b4, "[::1]:1", &addr), -EAFNOSUPPORT);
    assert_int_equal(mrd_udp_parse_address(without, "[::1]:1", &addr), -EAFNOSUPPORT);
    assert_int_equal(mrd_udp_parse_address(b6, "127.0.0.1:1", &addr), -EAFNOSUPPORT);
    assert_int_equal(mrd_udp_parse_address(b4, "127.0.0.1:1", &addr), 0);
    assert_int_equal(mrd_udp_parse_address(without, "127.0.0.1:1", &addr), 0);
    assert_int_equal(mrd_udp_parse_address(b6, "[::1]:1", &addr), 0);
    fixture_close(b4);
    fixture_close(b6);
    fixture_close(without);
}

TEST_F(movers, mrd_udp_format_address__no_space)
{
    struct mrd_addr addr;
    char text[16];

    assert_int_equal(mrd_udp_parse_address(self->a, "192.0.2.7:4793", &addr), 0);
    assert_int_equal(mrd_udp_format_address(self->a, &addr, text, 14), -ENOSPC);
    assert_int_equal(mrd_udp_format_address(self->a, &addr, text, 15), 0);
    assert_string_equal(text, "192.0.2.7:4793");
}

/* An interface that is gone keeps its number. */
TEST_F(movers, mrd_udp_format_address__unknown_scope)
{
    struct mrd_addr addr;
    char text[MRD_ADDRESS_MAX];

    assert_int_equal(mrd_udp_parse_address(self->a, "[fe80::1%lo]:5", &addr), 0);
    addr.scope = 987654;
    assert_int_equal(mrd_udp_format_address(self->a, &addr, text, sizeof(text)), 0);
    assert_string_equal(text, "[fe80::1%987654]:5");
}

static void check_self(const char *bind, const char *expected)
{
    struct mrd_context_attr attr = {.address = bind, .paths = 1};
    struct mrd_backend *b = fixture_open(&attr, 0);
    char text[MRD_ADDRESS_MAX], wanted[MRD_ADDRESS_MAX];
    struct mrd_addr own;

    assert_int_equal(b->ops->self_address(b, &own), 0);
    assert_int_equal(mrd_udp_format_address(b, &own, text, sizeof(text)), 0);
    snprintf(wanted, sizeof(wanted), "%s:%u", expected, mrd_udp_of(b)->rx.port);
    assert_string_equal(text, wanted);
    fixture_close(b);
}

TEST(mrd_udp_self_address__bound)
{
    check_self("127.0.0.1", "127.0.0.1");
    check_self("127.0.0.3", "127.0.0.3");
    check_self("::1", "[::1]");
}

static const struct {
    uint32_t mtu;
    bool local, v4;
    uint32_t wanted, payload;
} fits[] = {
    {1500, false, true, 0, 1344},    {1500, false, false, 0, 1344}, {9000, false, true, 0, 8192},
    {9000, true, true, 0, 8832},     {65536, true, true, 0, 16128}, {65536, true, true, 8192, 8192},
    {1500, false, true, 4096, 1344}, {1500, false, true, 512, 512}, {4352, false, true, 0, 4096},
    {4220, false, true, 0, 4096},    {4219, false, true, 0, 4032},  {4239, false, false, 0, 4032},
    {8316, false, true, 0, 8192},    {8315, false, true, 0, 4096},  {576, false, true, 0, 448},
    {1280, false, false, 0, 1088},   {188, false, true, 0, 64},     {187, false, true, 0, 0},
    {68, false, true, 0, 0},         {68, false, true, 64, 0},
};

TEST(mrd_udp_payload_fit__table)
{
    for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
        struct mrd_udp_route route = {.mtu = fits[i].mtu, .local = fits[i].local};
        uint32_t payload = mrd_udp_payload_fit(&route, fits[i].v4, fits[i].wanted);

        if (payload != fits[i].payload)
            fail_msg("row %zu: %u", i, payload);
    }
}

TEST_F(movers, mrd_udp_payload_bytes__loopback)
{
    struct mrd_context_attr attr = {.mtu = 1024, .paths = 1};
    struct mrd_backend *small = fixture_open(&attr, 0);
    struct mrd_addr to;

    assert_int_equal(mrd_udp_parse_address(self->a, "127.0.0.1:1", &to), 0);
    assert_int_equal(self->a->ops->payload_bytes(self->a, &to), 16128);
    assert_int_equal(small->ops->payload_bytes(small, &to), 1024);
    assert_int_equal(mrd_udp_parse_address(self->a, "[::1]:1", &to), 0);
    assert_int_equal(self->a->ops->payload_bytes(self->a, &to), 16128);
    fixture_close(small);
}
