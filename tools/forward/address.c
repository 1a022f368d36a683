/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool set_port(struct address *a, const char *text, size_t len, bool any)
{
    unsigned port = 0;

    if (any && len == 1 && *text == '*') {
        strcpy(a->port, "*");
        return true;
    }
    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    snprintf(a->port, sizeof(a->port), "%u", port);
    return port > 0 && port <= UINT16_MAX;
}

static bool set_host(struct address *a, const char *text, size_t len)
{
    if (len >= sizeof(a->host))
        return false;
    for (size_t i = 0; i < len; i++) { /* the rest of what names have is the resolver's matter */
        if (isspace((unsigned char)text[i]) || iscntrl((unsigned char)text[i]))
            return false;
    }
    memcpy(a->host, text, len);
    a->host[len] = '\0';
    return true;
}

static bool set_path(struct address *a, const char *text, size_t len)
{
    a->is_unix = true;
    return len > 1 && len < sizeof(((struct sockaddr_un *)0)->sun_path) && set_host(a, text, len);
}

/* How long the part at `text` is: up to ':', but for those in brackets. */
static size_t part_length(const char *text)
{
    size_t skip = 0;

    if (*text == '[') {
        const char *close = strchr(text, ']');

        skip = close ? (size_t)(close - text) : 0;
    }
    return skip + strcspn(text + skip, ":");
}

static bool set_bracketed_host(struct address *a, const char *text, size_t len)
{
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']')
        return len > 2 && set_host(a, text + 1, len - 2);
    return !memchr(text, '[', len) && !memchr(text, '/', len) && set_host(a, text, len);
}

/* Patterns and listeners have it in place of a host, no target does. */
static bool is_any_host(const struct address *a)
{
    return !a->is_unix && strcmp(a->host, "*") == 0;
}

bool address_parse(struct address *a, const char *text, bool any)
{
    const char *path = strncmp(text, "unix:", 5) == 0 ? text + 5 : text;
    size_t len = part_length(text);

    memset(a, 0, sizeof(*a));
    if (*path == '/')
        return set_path(a, path, strlen(path));
    return text[len] == ':' && len > 0 && set_bracketed_host(a, text, len) &&
           set_port(a, text + len + 1, strlen(text + len + 1), any) && (any || !is_any_host(a));
}

void address_print(const struct address *a, char text[ADDRESS_TEXT_BYTES])
{
    const char *format = strchr(a->host, ':') ? "[%s]:%s" : "%s:%s";

    if (a->is_unix)
        snprintf(text, ADDRESS_TEXT_BYTES, "unix:%s", a->host);
    else
        snprintf(text, ADDRESS_TEXT_BYTES, format, a->host, a->port);
}

/* ------------------------------------------------------------------------------------- forwards */

enum { PARTS_MAX = 4 };

struct part {
    const char *text;
    size_t len;
};

/* Cuts at colons outside of brackets. Returns how many parts there are; 0: too many. */
static int cut(const char *text, struct part part[PARTS_MAX])
{
    for (int num = 0; num < PARTS_MAX; num++) {
        part[num] = (struct part){text, part_length(text)};
        text += part[num].len;
        if (!*text++)
            return num + 1;
    }
    return 0;
}

/* PATH, PORT or HOST:PORT in `num` parts. */
static bool from_parts(struct address *a, const struct part *part, int num)
{
    if (num == 1 && part[0].len && part[0].text[0] == '/')
        return set_path(a, part[0].text, part[0].len);
    if (num == 1)
        return set_port(a, part[0].text, part[0].len, false);
    return num == 2 && part[0].len && set_bracketed_host(a, part[0].text, part[0].len) &&
           set_port(a, part[1].text, part[1].len, false);
}

bool forward_parse(struct forward *f, const char *text)
{
    struct part part[PARTS_MAX];
    int num = cut(text, part), to;

    memset(f, 0, sizeof(*f));
    if (num < 2)
        return false;
    to = *part[num - 1].text == '/' ? num - 1 : num - 2;
    return to > 0 && from_parts(&f->from, part, to) && from_parts(&f->to, part + to, num - to) &&
           !is_any_host(&f->to);
}

bool forward_parse_socks(struct forward *f, const char *text)
{
    struct part part[PARTS_MAX];

    memset(f, 0, sizeof(*f));
    f->is_socks = true;
    return from_parts(&f->from, part, cut(text, part)) && !f->from.is_unix;
}

/* As numbers if both are; else as text, where a dot at the end changes nothing. */
static bool is_same_host(const char *a, const char *b)
{
    struct in6_addr x, y;
    size_t a_len = strlen(a), b_len = strlen(b);

    if (inet_pton(AF_INET6, a, &x) == 1 && inet_pton(AF_INET6, b, &y) == 1)
        return memcmp(&x, &y, sizeof(x)) == 0;
    a_len -= a_len > 1 && a[a_len - 1] == '.';
    b_len -= b_len > 1 && b[b_len - 1] == '.';
    return a_len == b_len && strncasecmp(a, b, a_len) == 0;
}

bool address_allows(const struct address *pattern, const struct address *target)
{
    if (pattern->is_unix != target->is_unix)
        return false;
    if (pattern->is_unix)
        return strcmp(pattern->host, target->host) == 0;
    return (strcmp(pattern->host, "*") == 0 || is_same_host(pattern->host, target->host)) &&
           (strcmp(pattern->port, "*") == 0 || strcmp(pattern->port, target->port) == 0);
}
