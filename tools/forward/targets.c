/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/targets.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/forward/listen.h"
#include "tools/forward/names.h"
#include "tools/forward/say.h"

enum { BACKLOG_PAUSE_US = 20000 };

struct targets {
    struct event_base *base;
    struct names *names;
    const struct options *options;
};

/* A connection to a target, from when it was asked for until its stream is over. */
struct call {
    struct targets *targets;
    struct stream *stream;
    struct address target;
    struct evutil_addrinfo *addresses, *next; /* owned; the one to be tried next */
    struct question *lookup;
    int fd; /* owned; -1: none, or the stream's */
    struct event *connected, *timer;
    struct event *again;            /* a unix target whose backlog is full */
    struct timeval address_timeout; /* with each address */
    int error;                      /* of the last attempt */
    bool was_accepted;
    bool looked_again; /* for an answer, when the timer ran out */
};

static void call_free(struct call *c)
{
    if (c->connected)
        event_free(c->connected);
    if (c->timer)
        event_free(c->timer);
    if (c->again)
        event_free(c->again);
    if (c->fd >= 0)
        close(c->fd);
    if (c->lookup)
        names_cancel(c->lookup);
    if (c->addresses)
        evutil_freeaddrinfo(c->addresses);
    free(c);
}

static void on_ended(struct stream *s, int error, const char *why)
{
    struct call *c = s->owner;

    if (c->was_accepted && error)
        say_detail("%s to %s: %s", s->peer->address, s->target, why);
    else if (c->was_accepted)
        say_detail("%s to %s: over, %llu bytes there, %llu back", s->peer->address, s->target,
                   (unsigned long long)s->out.bytes, (unsigned long long)s->in.bytes);
    call_free(c);
}

/* Ends in on_ended(). */
static void call_refuse(struct call *c, int error, const char *why)
{
    char text[FRAME_TEXT_MAX];

    snprintf(text, sizeof(text), "%.200s", why);
    say("%s to %s: refused: %s", c->stream->peer->address, c->stream->target, text);
    hub_refuse(c->stream, error, text);
}

static void try_next(struct call *c);
static void connect_unix(struct call *c);

/*
 * Is connect() over? After a stop of the process libevent runs timers that ran out first, though the
 * answer is there.
 */
static bool has_answer(int fd)
{
    struct pollfd socket = {.fd = fd, .events = POLLOUT};

    return poll(&socket, 1, 0) == 1;
}

static void on_connected(evutil_socket_t fd, short what, void *arg)
{
    struct call *c = arg;
    int error = ETIMEDOUT;
    socklen_t len = sizeof(error);
    (void)what;

    if (has_answer(fd))
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    event_free(c->connected);
    c->connected = NULL;
    if (error) {
        c->error = error;
        close(c->fd);
        c->fd = -1;
        try_next(c);
        return;
    }
    event_free(c->timer);
    c->timer = NULL;
    c->was_accepted = true;
    c->fd = -1;
    listen_tune(fd);
    say_detail("%s to %s: open", c->stream->peer->address, c->stream->target);
    (void)hub_accept(c->stream, fd, fd);
}

static void await_connection(struct call *c, int fd)
{
    c->fd = fd;
    c->connected = event_new(c->targets->base, fd, EV_WRITE, on_connected, c);
    if (!c->connected || event_add(c->connected, &c->address_timeout) != 0)
        call_refuse(c, ENOMEM, "no memory");
}

/* Each address of the name in turn, until one answers. */
static void try_next(struct call *c)
{
    while (c->next) {
        const struct evutil_addrinfo *a = c->next;
        int fd = listen_connect(a->ai_addr, a->ai_addrlen);

        c->next = a->ai_next;
        if (fd >= 0) {
            await_connection(c, fd);
            return;
        }
        c->error = -fd;
    }
    call_refuse(c, c->error, strerror(c->error));
}

/* Each address of a name gets its share, so that a silent one leaves time for the next. */
static void share_timeout(struct call *c)
{
    uint32_t num = 1;

    for (const struct evutil_addrinfo *a = c->addresses; a && a->ai_next; a = a->ai_next)
        num++;
    uint64_t us = (uint64_t)c->targets->options->connect_timeout_s * 1000000 / num;

    c->address_timeout =
        (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
}

static void on_addresses(int error, struct evutil_addrinfo *addresses, void *arg)
{
    struct call *c = arg;

    c->lookup = NULL;
    c->addresses = c->next = addresses;
    share_timeout(c);
    if (error)
        call_refuse(c, ENOENT, evutil_gai_strerror(error));
    else
        try_next(c);
}

/* The first time it only looks again: what came while this process was stopped is handled first. */
static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct call *c = arg;
    (void)fd, (void)what;

    if (!c->looked_again && event_add(c->timer, &(struct timeval){0}) == 0) {
        c->looked_again = true;
        return;
    }
    call_refuse(c, ETIMEDOUT, c->lookup ? "the name servers do not answer" : strerror(ETIMEDOUT));
}

static bool is_allowed(const struct options *o, const struct address *target)
{
    for (uint32_t i = 0; i < o->num_allow; i++) {
        if (address_allows(&o->allow[i], target))
            return true;
    }
    return false;
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    struct call *c = arg;
    (void)fd, (void)what;

    event_free(c->again);
    c->again = NULL;
    connect_unix(c);
}

/* Where the backlog is full it tries again: the kernel waits for blocking sockets only. */
static void connect_unix(struct call *c)
{
    struct timeval pause = {.tv_usec = BACKLOG_PAUSE_US};
    int fd = listen_connect_unix(c->target.host);

    if (fd >= 0) {
        await_connection(c, fd);
        return;
    }
    if (fd == -EAGAIN) {
        c->again = evtimer_new(c->targets->base, on_again, c);
        if (c->again && evtimer_add(c->again, &pause) == 0)
            return;
    }
    call_refuse(c, -fd, strerror(-fd));
}

/* The call may be freed then: a target that fails at once is refused. */
static void connect_to(struct call *c)
{
    struct question *lookup;

    if (c->target.is_unix) {
        connect_unix(c);
        return;
    }
    /* NULL: it has called back already, and the call may be freed. */
    lookup = names_ask(c->targets->names, c->target.host, c->target.port, on_addresses, c);
    if (lookup)
        c->lookup = lookup;
}

static void on_asked(void *arg, struct stream *s, const char *target)
{
    static const struct stream_ops ops = {.ended = on_ended};
    struct targets *targets = arg;
    struct timeval timeout = {.tv_sec = targets->options->connect_timeout_s};
    struct call *c = calloc(1, sizeof(*c));

    if (!c) {
        hub_refuse(s, ENOMEM, "no memory");
        return;
    }
    c->targets = targets;
    c->stream = s;
    c->fd = -1;
    c->error = EHOSTUNREACH;
    s->owner = c;
    s->ops = &ops;
    share_timeout(c);
    c->timer = evtimer_new(targets->base, on_timeout, c);
    if (!c->timer || evtimer_add(c->timer, &timeout) != 0)
        call_refuse(c, ENOMEM, "no memory");
    else if (!address_parse(&c->target, target, false))
        call_refuse(c, EINVAL, "not a target: HOST:PORT or unix:/PATH");
    else if (!is_allowed(targets->options, &c->target))
        call_refuse(c, EACCES, "not among the targets that --allow names");
    else
        connect_to(c);
}

const struct hub_ops targets_ops = {.asked = on_asked};

struct targets *targets_open(struct event_base *base, const struct options *o)
{
    struct targets *targets = calloc(1, sizeof(*targets));

    if (targets) {
        targets->base = base;
        targets->options = o;
        targets->names = names_open(base);
    }
    if (targets && targets->names)
        return targets;
    free(targets);
    say("no memory");
    return NULL;
}

void targets_close(struct targets *targets)
{
    names_close(targets->names);
    free(targets);
}
