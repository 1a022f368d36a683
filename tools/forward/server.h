/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server that a client asks for streams: a name, and the process at one of its addresses.
 *
 * server_find(), after hub_open() with server_ops. Whenever the server does not answer, its name is looked up
 * again. An address that it did not have, or the next one of several, is its address from then on, and streams
 * that are being opened move there. server_close().
 */
#ifndef FORWARD_SERVER_H
#define FORWARD_SERVER_H

#include "tools/forward/hub.h"
#include "tools/forward/lookup.h"

/* An address that was tried since the server answered last. */
struct server_tried {
    char address[MRD_ADDRESS_MAX]; /* "": none */
    uint32_t turn;                 /* of the server's turns; the largest one is the last */
};

struct server {
    struct hub *hub;
    const char *name;             /* as the user has it */
    char host[LOOKUP_HOST_BYTES]; /* "": the name is an address, and never looked up */
    uint16_t port;
    struct link_peer *peer; /* used; NULL: no address is known yet */
    struct lookup *lookup;  /* under way */
    uint64_t looked_ns;     /* when it, or the last one, began */
    struct event *again;    /* looks up until an address is known */
    int failure;            /* EAI_* or -errno that was told of since the server answered */
    struct server_tried tried[LOOKUP_ADDRESSES_MAX];
    uint32_t turns;
};

/* hub_ops whose arg is a struct server *. */
extern const struct hub_ops server_ops;

/*
 * `name`: an address, HOST, or HOST:PORT; it stays the caller's. With `waits`, a name that cannot be
 * looked up now is no error. False after it said why.
 */
bool server_find(struct server *server, struct hub *hub, const char *name, bool waits);
/* Of whom sentences are about: the address, or the name while there is none. */
const char *server_text(const struct server *server);
/* After hub_close(). Nothing happens to one that was never found. */
void server_close(struct server *server);

#endif
