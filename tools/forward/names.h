/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks names up, in /etc/hosts and by the name servers of /etc/resolv.conf, as these files are when
 * somebody asks. A name that ends with a dot is complete: no domain to search is appended.
 *
 * names_open(); names_ask(), which calls back once, unless names_cancel() comes first; names_close().
 */
#ifndef FORWARD_NAMES_H
#define FORWARD_NAMES_H

#include <event2/util.h>

struct event_base;
struct names;
struct question;

/* `error`: 0, or an EVUTIL_EAI_*. The addresses are the callee's, for evutil_freeaddrinfo(). */
typedef void names_fn(int error, struct evutil_addrinfo *addresses, void *arg);

/* NULL: no memory. */
struct names *names_open(struct event_base *base);
/* Calls back before it returns, and returns NULL, if the answer is known. */
struct question *names_ask(struct names *names, const char *host, const char *port, names_fn *fn,
                           void *arg);
void names_cancel(struct question *question);
/* Calls back for all that is asked still. */
void names_close(struct names *names);

#endif
