/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks a name up as getaddrinfo() does, which may take minutes: in a thread of its own.
 *
 * lookup_start(), which calls back once, in the loop, unless lookup_cancel() comes first. The thread shares
 * nothing with the others: the answer comes through a pipe. One that nobody waits for any more ends by itself.
 */
#ifndef FORWARD_LOOKUP_H
#define FORWARD_LOOKUP_H

#include <stdint.h>
#include <sys/socket.h>

enum { LOOKUP_ADDRESSES_MAX = 16, LOOKUP_HOST_BYTES = 256 };

struct event_base;
struct lookup;

struct lookup_answer {
    int error;        /* 0, or an EAI_* */
    int system_error; /* of EAI_SYSTEM */
    uint32_t num;
    struct sockaddr_storage address[LOOKUP_ADDRESSES_MAX]; /* with the port */
};

typedef void lookup_fn(void *arg, const struct lookup_answer *answer);

/* NULL with errno. */
struct lookup *lookup_start(struct event_base *base, const char *host, uint16_t port, lookup_fn *fn,
                            void *arg);
void lookup_cancel(struct lookup *lookup);
/* What is wrong, as a sentence. */
const char *lookup_error(const struct lookup_answer *answer);

#endif
