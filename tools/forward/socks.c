/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/socks.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 5, CMD_CONNECT = 1, ATYP_IPV4 = 1, ATYP_NAME = 3, ATYP_IPV6 = 4, NO_METHOD = 255 };

enum socks_result socks_greeting(const uint8_t *bytes, size_t len, size_t *used, uint8_t answer[2])
{
    if (len >= 1 && bytes[0] != VERSION)
        return SOCKS_BAD;
    if (len < 2 || len < 2u + bytes[1])
        return SOCKS_MORE;
    *used = 2u + bytes[1];
    answer[0] = VERSION;
    answer[1] = memchr(bytes + 2, 0, bytes[1]) ? 0 : NO_METHOD;
    return SOCKS_DONE;
}

/* Bytes of the address after its type; 0: no such type. */
static size_t address_bytes(const uint8_t *bytes)
{
    switch (bytes[3]) {
    case ATYP_IPV4:
        return 4;
    case ATYP_IPV6:
        return 16;
    case ATYP_NAME:
        return 1u + bytes[4];
    default:
        return 0;
    }
}

/* A number that comes as a name, in brackets or not, is the number. False: it is no host's name. */
static bool fill_name(struct address *target, const uint8_t *name, size_t len)
{
    struct in6_addr number;

    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++) { /* as address_parse(): it is printed, too */
        if (isspace(name[i]) || iscntrl(name[i]))
            return false;
    }
    if (len > 2 && name[0] == '[' && name[len - 1] == ']') {
        name++;
        len -= 2;
        memcpy(target->host, name, len);
        if (inet_pton(AF_INET6, target->host, &number) != 1)
            return false;
    }
    memcpy(target->host, name, len);
    if (inet_pton(AF_INET6, target->host, &number) == 1)
        return inet_ntop(AF_INET6, &number, target->host, sizeof(target->host)) != NULL;
    return !strpbrk(target->host, "/[]*:");
}

enum socks_result socks_request(const uint8_t *bytes, size_t len, size_t *used,
                                struct address *target, int *error)
{
    *error = 0;
    if (len < 5)
        return SOCKS_MORE;
    if (bytes[0] != VERSION)
        return SOCKS_BAD;
    if (bytes[1] != CMD_CONNECT) {
        *error = EOPNOTSUPP;
        return SOCKS_BAD;
    }

    size_t length = address_bytes(bytes);

    if (length == 0) {
        *error = EAFNOSUPPORT;
        return SOCKS_BAD;
    }
    if (len < 4 + length + 2)
        return SOCKS_MORE;
    memset(target, 0, sizeof(*target));

    bool ok = bytes[3] != ATYP_NAME || fill_name(target, bytes + 5, bytes[4]);

    if (bytes[3] != ATYP_NAME)
        inet_ntop(bytes[3] == ATYP_IPV4 ? AF_INET : AF_INET6, bytes + 4, target->host,
                  sizeof(target->host));

    unsigned port = (unsigned)bytes[4 + length] << 8 | bytes[4 + length + 1];

    snprintf(target->port, sizeof(target->port), "%u", port);
    *used = 4 + length + 2;
    if (port == 0 || !ok) {
        *error = EINVAL;
        return SOCKS_BAD;
    }
    return SOCKS_DONE;
}

/* RFC 1928, section 6. */
static uint8_t reply_of(int error)
{
    switch (error) {
    case 0:
        return 0;
    case EACCES:
    case EPERM:
        return 2;
    case ENETUNREACH:
        return 3;
    case EHOSTUNREACH:
    case ENOENT: /* a name that nobody knows */
        return 4;
    case ECONNREFUSED:
        return 5;
    case ETIMEDOUT:
        return 6;
    case EOPNOTSUPP:
        return 7;
    case EAFNOSUPPORT:
        return 8;
    default:
        return 1;
    }
}

void socks_reply(uint8_t reply[SOCKS_REPLY_BYTES], int error)
{
    memset(reply, 0, SOCKS_REPLY_BYTES);
    reply[0] = VERSION;
    reply[1] = reply_of(error);
    reply[3] = ATYP_IPV4;
}
