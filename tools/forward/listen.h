/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets, and connecting ones: TCP and unix. */
#ifndef FORWARD_LISTEN_H
#define FORWARD_LISTEN_H

#include <sys/socket.h>

#include "tools/forward/address.h"

struct event_base;
struct listener;

typedef void listen_fn(void *arg, int fd);

/*
 * Listens at all addresses of the name; fn() gets each connection, non-blocking, as its own. NULL
 * after it said why. A unix socket that nobody listens at any more is replaced.
 */
struct listener *listen_open(struct event_base *base, const struct address *at, listen_fn *fn,
                             void *arg);
void listen_close(struct listener *l);

/* Small writes leave at once, and a silent peer is noticed in time: a connection that is carried. */
void listen_tune(int fd);
/* Closes, and the other end gets a reset where there are resets. */
void listen_reset(int fd);
/* Begins to connect. Returns the descriptor, non-blocking, or -errno. */
int listen_connect(const struct sockaddr *address, socklen_t len);
int listen_connect_unix(const char *path);

#endif
