/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SOCKS version 5 (RFC 1928), the server's side: no authentication, CONNECT only.
 *
 * socks_greeting() of what the client sent first, then socks_request(); socks_reply().
 */
#ifndef FORWARD_SOCKS_H
#define FORWARD_SOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/forward/address.h"

enum { SOCKS_BYTES_MAX = 262 /* of a request */, SOCKS_REPLY_BYTES = 10 };

enum socks_result {
    SOCKS_MORE, /* wait for more bytes */
    SOCKS_DONE,
    SOCKS_BAD, /* not SOCKS 5, or nothing that is offered here */
};

/* *used: its bytes, when DONE. The answer is two bytes, also to a client that asks for none of our methods. */
enum socks_result socks_greeting(const uint8_t *bytes, size_t len, size_t *used, uint8_t answer[2]);
/* Fills `target` when DONE. When BAD, *error is an errno for socks_reply(), or 0: say nothing. */
enum socks_result socks_request(const uint8_t *bytes, size_t len, size_t *used,
                                struct address *target, int *error);
/* `error`: 0, or the errno that ended the attempt. */
void socks_reply(uint8_t reply[SOCKS_REPLY_BYTES], int error);

#endif
