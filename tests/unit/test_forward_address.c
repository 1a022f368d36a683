/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward's addresses, forwards and what --allow allows. */
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/forward/address.h"

TEST(address_parse__good)
{
    static const struct {
        const char *text, *host, *port, *printed;
        bool is_unix;
    } rows[] = {
        {"db:5432", "db", "5432", "db:5432", false},
        {"192.0.2.1:1", "192.0.2.1", "1", "192.0.2.1:1", false},
        {"[2001:db8::1]:65535", "2001:db8::1", "65535", "[2001:db8::1]:65535", false},
        {"db:0080", "db", "80", "db:80", false},
        {"/run/x.sock", "/run/x.sock", "", "unix:/run/x.sock", true},
        {"unix:/run/x.sock", "/run/x.sock", "", "unix:/run/x.sock", true},
    };
    struct address a;
    char text[ADDRESS_TEXT_BYTES];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(address_parse(&a, rows[i].text, false));
        assert_string_equal(a.host, rows[i].host);
        assert_string_equal(a.port, rows[i].port);
        assert_int_equal(a.is_unix, rows[i].is_unix);
        address_print(&a, text);
        assert_string_equal(text, rows[i].printed);
    }
}

TEST(address_parse__bad)
{
    static const char *const texts[] = {
        "",          "db",        "db:",       ":80",    "db:0",        "db:65536",
        "db:123456", "db:8x",     "db:*",      "*:80",   "2001:db8::1", "[::1]",
        "[::1]80",   "[]:80",     "[::1:80",   "a b:80", "a\n:80",      "/",
        "unix:",     "db:80:443", "x[::1]:80", "-",
    };
    char path[200], name[300];
    struct address a;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(address_parse(&a, texts[i], false));
    memset(path, 'p', sizeof(path)); /* longer than a unix socket's */
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_false(address_parse(&a, path, false));
    memset(name, 'n', sizeof(name));
    strcpy(name + sizeof(name) - 4, ":80");
    assert_false(address_parse(&a, name, false));
}

TEST(forward_parse__good)
{
    static const struct {
        const char *text, *from, *to;
    } rows[] = {
        {"8080:web:80", ":8080", "web:80"},
        {"*:8080:web:80", "*:8080", "web:80"},
        {"[::1]:8080:[2001:db8::7]:80", "[::1]:8080", "[2001:db8::7]:80"},
        {"8080:[2001:db8::7]:80", ":8080", "[2001:db8::7]:80"},
        {"8080:/run/x", ":8080", "unix:/run/x"},
        {"0.0.0.0:8080:/run/x", "0.0.0.0:8080", "unix:/run/x"},
        {"/run/y:web:80", "unix:/run/y", "web:80"},
        {"/run/y:/run/x", "unix:/run/y", "unix:/run/x"},
    };
    struct forward f;
    char text[ADDRESS_TEXT_BYTES];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(forward_parse(&f, rows[i].text));
        assert_false(f.is_socks);
        address_print(&f.from, text);
        assert_string_equal(text, rows[i].from);
        address_print(&f.to, text);
        assert_string_equal(text, rows[i].to);
    }
}

TEST(forward_parse__bad)
{
    static const char *const texts[] = {
        "",          "8080",      "8080:80",  "web:80",   "8080:web:",     "8080:web:*",
        "8080:*:80", "a:b:c:d:e", "0:web:80", "x:web:80", "::1:8080:w:80", "/a:/b:/c:1",
        ":",         "::",        ":::",      "8080::80", "a:8080:/:1",    "8080:/",
        "/:web:80",
    };
    struct forward f;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(forward_parse(&f, texts[i]));
}

TEST(forward_parse_socks__both)
{
    struct forward f;

    assert_true(forward_parse_socks(&f, "1080"));
    assert_true(f.is_socks);
    assert_string_equal(f.from.port, "1080");
    assert_true(forward_parse_socks(&f, "127.0.0.1:1080"));
    assert_string_equal(f.from.host, "127.0.0.1");
    assert_false(forward_parse_socks(&f, "/run/x"));
    assert_false(forward_parse_socks(&f, "1080:web:80"));
    assert_false(forward_parse_socks(&f, ""));
}

TEST(address_allows__table)
{
    static const struct {
        const char *pattern, *target;
        bool allowed;
    } rows[] = {
        {"db:5432", "db:5432", true},
        {"db:5432", "DB:5432", true},
        {"db:5432", "db:5433", false},
        {"db:5432", "db2:5432", false},
        {"*:443", "any.example:443", true},
        {"*:443", "any.example:444", false},
        {"db:*", "db:1", true},
        {"*:*", "x:9", true},
        {"*:*", "/run/x", false},
        {"/run/x", "unix:/run/x", true},
        {"/run/x", "/run/xy", false},
        {"db:5432", "/run/x", false},
        {"[::1]:80", "[::1]:80", true},
        {"127.0.0.1:80", "localhost:80", false},
        {"[0:0::1]:80", "[::1]:80", true}, /* numbers have several spellings */
        {"[::2]:80", "[::1]:80", false},
        {"db.example:80", "db.example.:80", true},
        {"db.example.:80", "DB.example:80", true},
        {"db:80", "db..:80", false},
    };
    struct address pattern, target;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(address_parse(&pattern, rows[i].pattern, true));
        assert_true(address_parse(&target, rows[i].target, false));
        assert_int_equal(address_allows(&pattern, &target), rows[i].allowed);
    }
}
