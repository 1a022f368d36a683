/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/lookup.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct lookup_answer) <= PIPE_BUF, "one write hands it over");

struct lookup {
    int fd; /* owned; the thread has the other end */
    struct event *readable;
    lookup_fn *fn;
    void *arg;
};

/* The thread's. */
struct request {
    int fd;
    char host[LOOKUP_HOST_BYTES], port[6];
};

/* -------------------------------------------------------------------------------------- the thread */

static void look_up(const struct request *r, struct lookup_answer *answer)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *all = NULL;

    memset(answer, 0, sizeof(*answer));
    answer->error = getaddrinfo(r->host, r->port, &hints, &all);
    answer->system_error = answer->error == EAI_SYSTEM ? errno : 0;
    if (answer->error)
        return;
    for (struct addrinfo *a = all; a && answer->num < LOOKUP_ADDRESSES_MAX; a = a->ai_next) {
        if (a->ai_addrlen <= sizeof(answer->address[0]))
            memcpy(&answer->address[answer->num++], a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(all);
}

static void *run(void *arg)
{
    struct request *r = arg;
    struct lookup_answer answer;
    ssize_t n;

    look_up(r, &answer);
    n = write(r->fd, &answer, sizeof(answer)); /* fails if nobody waits for it */
    (void)n;
    close(r->fd);
    free(r);
    return NULL;
}

/* Takes no signals: they are the loop's. Returns 0, or an errno. */
static int start_thread(struct request *r)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int error = pthread_attr_init(&attr);

    if (error)
        return error;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attr, run, r);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return error;
}

/* -------------------------------------------------------------------------------------- the others */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct lookup *l = arg;
    struct lookup_answer answer = {.error = EAI_FAIL};
    lookup_fn *fn = l->fn;
    void *user = l->arg;
    (void)what;

    if (read(fd, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
        answer = (struct lookup_answer){.error = EAI_FAIL};
    lookup_cancel(l);
    fn(user, &answer);
}

/* Owns fd[0] then. */
static struct lookup *make(struct event_base *base, int fd, lookup_fn *fn, void *arg)
{
    struct lookup *l = calloc(1, sizeof(*l));

    if (!l) {
        close(fd);
        return NULL;
    }
    *l = (struct lookup){.fd = fd, .fn = fn, .arg = arg};
    l->readable = event_new(base, fd, EV_READ, on_readable, l);
    if (l->readable && event_add(l->readable, NULL) == 0)
        return l;
    lookup_cancel(l);
    errno = ENOMEM;
    return NULL;
}

struct lookup *lookup_start(struct event_base *base, const char *host, uint16_t port, lookup_fn *fn,
                            void *arg)
{
    struct request *r = calloc(1, sizeof(*r));
    struct lookup *l = NULL;
    int fd[2], error;

    if (!r || pipe2(fd, O_CLOEXEC) != 0) {
        error = errno;
        goto no_pipe;
    }
    r->fd = fd[1];
    snprintf(r->host, sizeof(r->host), "%s", host);
    snprintf(r->port, sizeof(r->port), "%u", port);
    l = make(base, fd[0], fn, arg);
    error = l ? start_thread(r) : errno;
    if (!error)
        return l;
    if (l)
        lookup_cancel(l);
    close(fd[1]);
no_pipe:
    free(r);
    errno = error;
    return NULL;
}

void lookup_cancel(struct lookup *l)
{
    if (l->readable)
        event_free(l->readable);
    close(l->fd);
    free(l);
}

const char *lookup_error(const struct lookup_answer *answer)
{
    return answer->error == EAI_SYSTEM ? strerror(answer->system_error)
                                       : gai_strerror(answer->error);
}
