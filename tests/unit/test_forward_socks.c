/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward's SOCKS 5, by the examples of RFC 1928. */
#include <errno.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/forward/socks.h"

TEST(socks_greeting__methods)
{
    static const uint8_t none[] = {5, 1, 0}, several[] = {5, 3, 2, 1, 0, 5}, other[] = {5, 1, 2},
                         old[] = {4, 1, 0, 80};
    uint8_t answer[2];
    size_t used;

    for (size_t len = 0; len < sizeof(none); len++)
        assert_int_equal(socks_greeting(none, len, &used, answer), SOCKS_MORE);
    assert_int_equal(socks_greeting(none, sizeof(none), &used, answer), SOCKS_DONE);
    assert_int_equal(used, 3);
    assert_int_equal(answer[0], 5);
    assert_int_equal(answer[1], 0);
    assert_int_equal(socks_greeting(several, sizeof(several), &used, answer), SOCKS_DONE);
    assert_int_equal(used, 5); /* the next byte is of the request */
    assert_int_equal(answer[1], 0);
    assert_int_equal(socks_greeting(other, sizeof(other), &used, answer), SOCKS_DONE);
    assert_int_equal(answer[1], 255);
    assert_int_equal(socks_greeting(old, sizeof(old), &used, answer), SOCKS_BAD);
}

static void check_request(const uint8_t *bytes, size_t len, const char *host, const char *port)
{
    struct address a;
    size_t used;
    int error;

    for (size_t n = 0; n < len; n++)
        assert_int_equal(socks_request(bytes, n, &used, &a, &error), SOCKS_MORE);
    assert_int_equal(socks_request(bytes, len, &used, &a, &error), SOCKS_DONE);
    assert_int_equal(used, len);
    assert_string_equal(a.host, host);
    assert_string_equal(a.port, port);
}

TEST(socks_request__kinds_of_addresses)
{
    static const uint8_t ipv4[] = {5, 1, 0, 1, 192, 0, 2, 7, 0, 80},
                         name[] = {5, 1, 0, 3, 3, 'w', 'e', 'b', 1, 187},
                         ipv6[] = {5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0,
                                   0, 0, 0, 0, 0,    0, 0,   0,    7, 0, 22};

    check_request(ipv4, sizeof(ipv4), "192.0.2.7", "80");
    check_request(name, sizeof(name), "web", "443");
    check_request(ipv6, sizeof(ipv6), "2001:db8::7", "22");
}

/* Clients that look at nothing send numbers as names. */
TEST(socks_request__numbers_as_names)
{
    static const struct {
        const char *name, *host; /* host NULL: refused */
    } rows[] = {
        {"192.0.2.7", "192.0.2.7"},
        {"::1", "::1"},
        {"[::1]", "::1"},
        {"0:0:0:0:0:0:0:1", "::1"},
        {"[2001:DB8::7]", "2001:db8::7"},
        {"::ffff:192.0.2.7", "::ffff:192.0.2.7"},
        {"web.example.", "web.example."},
        {"[]", NULL},
        {"[web]", NULL},
        {"[192.0.2.7]", NULL},
        {"[::1", NULL},
        {"::1]", NULL},
        {"web:80", NULL},
        {"1::2::3", NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bytes[SOCKS_BYTES_MAX] = {5, 1, 0, 3}, len = (uint8_t)strlen(rows[i].name);
        struct address a;
        size_t used;
        int error;

        bytes[4] = len;
        memcpy(bytes + 5, rows[i].name, len);
        bytes[6 + len] = 80;
        if (rows[i].host) {
            check_request(bytes, 7u + len, rows[i].host, "80");
            continue;
        }
        assert_int_equal(socks_request(bytes, 7u + len, &used, &a, &error), SOCKS_BAD);
        assert_int_equal(error, EINVAL);
    }
}

TEST(socks_request__refused)
{
    static const struct {
        uint8_t bytes[12];
        size_t len;
        int error;
    } rows[] = {
        {{5, 3, 0, 1, 0, 0, 0, 0, 0, 0}, 10, EOPNOTSUPP},    /* UDP ASSOCIATE */
        {{5, 2, 0, 1, 0, 0, 0, 0, 0, 0}, 10, EOPNOTSUPP},    /* BIND */
        {{5, 1, 0, 2, 0, 0, 0, 0, 0, 0}, 10, EAFNOSUPPORT},  /* no such type */
        {{5, 1, 0, 1, 192, 0, 2, 7, 0, 0}, 10, EINVAL},      /* port 0 */
        {{5, 1, 0, 3, 0, 0, 80}, 7, EINVAL},                 /* no name */
        {{5, 1, 0, 3, 3, '/', 'a', 'b', 0, 80}, 10, EINVAL}, /* no path */
        {{5, 1, 0, 3, 3, 'a', ' ', 'b', 0, 80}, 10, EINVAL},
        {{5, 1, 0, 3, 3, 'a', '\t', 'b', 0, 80}, 10, EINVAL},
        {{5, 1, 0, 3, 3, 'a', 27, 'c', 0, 80}, 10, EINVAL}, /* of a terminal */
        {{5, 1, 0, 3, 1, '*', 0, 80}, 8, EINVAL},
        {{5, 1, 0, 3, 3, 'a', 0, 'b', 0, 80}, 10, EINVAL}, /* no name ends before its end */
        {{4, 1, 0, 80, 192, 0, 2, 7}, 8, 0},
    };
    struct address a;
    size_t used;
    int error;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(socks_request(rows[i].bytes, rows[i].len, &used, &a, &error), SOCKS_BAD);
        assert_int_equal(error, rows[i].error);
    }
}

/* A name of 255 bytes fills the buffer exactly. */
TEST(socks_request__longest_name)
{
    uint8_t bytes[SOCKS_BYTES_MAX] = {5, 1, 0, 3, 255};
    char host[256];

    memset(bytes + 5, 'n', 255);
    bytes[261] = 80;
    memset(host, 'n', 255);
    host[255] = '\0';
    check_request(bytes, sizeof(bytes), host, "80");
}

TEST(socks_reply__codes)
{
    static const struct {
        int error;
        uint8_t code;
    } rows[] = {
        {0, 0},
        {EACCES, 2},
        {ENETUNREACH, 3},
        {EHOSTUNREACH, 4},
        {ENOENT, 4},
        {ECONNREFUSED, 5},
        {ETIMEDOUT, 6},
        {EOPNOTSUPP, 7},
        {EAFNOSUPPORT, 8},
        {ENOBUFS, 1},
    };
    uint8_t reply[SOCKS_REPLY_BYTES];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        socks_reply(reply, rows[i].error);
        assert_int_equal(reply[0], 5);
        assert_int_equal(reply[1], rows[i].code);
        assert_int_equal(reply[3], 1);
    }
}
