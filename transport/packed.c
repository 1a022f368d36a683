/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses in few bytes, the same on every machine, in network byte order: 16 bytes of an IP address, or
 * what a mover has in its place; 4 of the scope; one for the kind of mover; 3 of the port or number.
 * Then 3 for each further number of the text, which follows a comma there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/call.h"
#include "transport/context.h"

enum { KIND_AT = 20, NUMBER_BYTES = 3, FIRST_BYTES = KIND_AT + 1 + NUMBER_BYTES };

static void put_number(uint8_t *at, unsigned long number)
{
    at[0] = (uint8_t)(number >> 16);
    at[1] = (uint8_t)(number >> 8);
    at[2] = (uint8_t)number;
}

static uint32_t get_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

/* Movers differ in the first letter of their names. */
static uint8_t kind_of(const struct mrd_context_impl *c)
{
    return (uint8_t)c->ops->transport[0];
}

/* Under the lock: as mrd_pack_address(). */
static int pack(struct mrd_context_impl *c, const char *address, uint8_t *packed, size_t len)
{
    uint8_t out[MRD_PACKED_ADDRESS_MAX];
    char text[MRD_ADDRESS_MAX];
    struct mrd_addr addr;
    size_t used = FIRST_BYTES;
    uint32_t scope;
    int error = c->ops->parse_address(c->backend, address, &addr);

    if (!error)
        error = c->ops->format_address(c->backend, &addr, text, sizeof(text));
    if (error)
        return error;
    memcpy(out, addr.ip, sizeof(addr.ip));
    scope = htonl(addr.scope);
    memcpy(out + sizeof(addr.ip), &scope, sizeof(scope));
    out[KIND_AT] = kind_of(c);
    put_number(out + KIND_AT + 1, addr.port);
    for (const char *next = strchr(text, ','); next && used + NUMBER_BYTES <= sizeof(out);
         next = strchr(next + 1, ',')) {
        put_number(out + used, strtoul(next + 1, NULL, 10));
        used += NUMBER_BYTES;
    }
    if (used > len) {
        mrd_error_set("%zu bytes are too few for an address; %d suffice", len,
                      MRD_PACKED_ADDRESS_MAX);
        return -ENOSPC;
    }
    memcpy(packed, out, used);
    return (int)used;
}

/* Parses what was packed: who did that may be anybody. */
static int check(struct mrd_context_impl *c, const char *text, struct mrd_addr *addr)
{
    return (c->ops->check_address ? c->ops->check_address : c->ops->parse_address)(c->backend, text,
                                                                                   addr);
}

/* Under the lock: as mrd_unpack_address(). */
static int unpack(struct mrd_context_impl *c, const uint8_t *packed, size_t packed_len, char *buf,
                  size_t len)
{
    char text[MRD_ADDRESS_MAX];
    struct mrd_addr addr;
    size_t used;

    if (packed_len < FIRST_BYTES || packed_len > MRD_PACKED_ADDRESS_MAX ||
        (packed_len - FIRST_BYTES) % NUMBER_BYTES || packed[KIND_AT] != kind_of(c)) {
        mrd_error_set("%zu bytes are not an address that a context of %s packed", packed_len,
                      c->ops->transport);
        return -EINVAL;
    }
    memcpy(addr.ip, packed, sizeof(addr.ip));
    memcpy(&addr.scope, packed + sizeof(addr.ip), sizeof(addr.scope));
    addr.scope = ntohl(addr.scope);
    addr.port = get_number(packed + KIND_AT + 1);

    int error = c->ops->format_address(c->backend, &addr, text, sizeof(text));

    if (!error)
        error = check(c, text, &addr);
    if (!error) /* without a scope where it means nothing: a host has one string */
        error = c->ops->format_address(c->backend, &addr, text, sizeof(text));
    if (error)
        return error;
    used = strcspn(text, ",");
    text[used] = '\0';
    for (size_t at = FIRST_BYTES; at < packed_len && used < sizeof(text); at += NUMBER_BYTES)
        used += (size_t)snprintf(text + used, sizeof(text) - used, ",%u", get_number(packed + at));
    if (used >= sizeof(text)) /* cut off, what is left would be another address */
        text[0] = '\0';
    error = check(c, text, &addr);
    if (error)
        return error;
    if (used >= len) {
        mrd_error_set("%zu bytes are too few for the address", len);
        return -ENOSPC;
    }
    memcpy(buf, text, used + 1);
    return 0;
}

int mrd_pack_address(struct mrd_context *context, const char *address, void *packed, size_t len)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int ret = mrd_call_enter(c);

    if (ret)
        return ret;
    ret = pack(c, address, packed, len);
    mrd_call_leave(c);
    return ret;
}

int mrd_unpack_address(struct mrd_context *context, const void *packed, size_t packed_len,
                       char *buf, size_t len)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    error = unpack(c, packed, packed_len, buf, len);
    mrd_call_leave(c);
    return error;
}
