/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses as the command line has them, and as one end tells the other: "HOST:PORT", "[::1]:PORT",
 * or "unix:/PATH". A path alone, which begins with '/', stands for the last.
 */
#ifndef FORWARD_ADDRESS_H
#define FORWARD_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

enum { ADDRESS_HOST_BYTES = 256, ADDRESS_TEXT_BYTES = 272 };

struct address {
    bool is_unix;
    char host[ADDRESS_HOST_BYTES]; /* or the path; "" and "*": any, which no target has */
    char port[6];                  /* decimal, 1 to 65535; "*" if that was allowed */
};

struct forward {
    struct address from; /* to listen at; host "": the loopback interface */
    struct address to;
    bool is_socks; /* `to` is what each client asks for */
};

/* False: it is none. With `any`, the host and the port may be "*". */
bool address_parse(struct address *a, const char *text, bool any);
void address_print(const struct address *a, char text[ADDRESS_TEXT_BYTES]);
/* "[BIND:]PORT:HOST:PORT", with a path in place of either side, as ssh -L. */
bool forward_parse(struct forward *f, const char *text);
/* "[BIND:]PORT" of a SOCKS proxy. */
bool forward_parse_socks(struct forward *f, const char *text);

/*
 * Does the pattern allow the target? Host names are compared as text, without case and a dot at the end;
 * '*' is any host, or any port. A name does not stand for its addresses, nor they for it.
 */
bool address_allows(const struct address *pattern, const struct address *target);

#endif
