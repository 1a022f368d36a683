/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/near.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/forward/listen.h"
#include "tools/forward/say.h"
#include "tools/forward/socks.h"

enum { SOCKS_PATIENCE_S = 30 };

struct door {
    struct near *near;
    const struct forward *forward;
    struct listener *listener;
};

struct near {
    struct hub *hub;
    const struct server *server;
    struct conn *talking; /* list of connections that speak SOCKS with us still */
    uint32_t num;
    struct door door[OPTIONS_ROWS_MAX];
};

/* A connection from when it came until its stream is over. */
struct conn {
    struct near *near;
    const struct forward *forward;
    int fd; /* owned; -1: it is the stream's */
    char target[ADDRESS_TEXT_BYTES];
    /* Of a client that speaks SOCKS: */
    struct event *readable;
    bool greeted;
    size_t len;
    uint8_t bytes[SOCKS_BYTES_MAX];
    struct conn *next; /* in near.talking */
};

/* It speaks SOCKS with us no longer. */
static void end_talk(struct conn *c)
{
    struct conn **at = &c->near->talking;

    if (!c->readable)
        return;
    event_free(c->readable);
    c->readable = NULL;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

static void let_go(struct conn *c)
{
    end_talk(c);
    if (c->fd >= 0)
        listen_reset(c->fd);
    free(c);
}

/* A few bytes into an empty socket buffer. What fails shows when the stream writes. */
static void tell(const struct conn *c, const uint8_t *bytes, size_t len)
{
    ssize_t n = write(c->fd, bytes, len);

    (void)n;
}

/* Before there was a stream. A SOCKS client is told, any other sees a reset. */
static void fail(struct conn *c, int error, const char *why)
{
    uint8_t reply[SOCKS_REPLY_BYTES];

    say("%s through %s: %s", c->target, server_text(c->near->server), why);
    if (c->forward->is_socks) {
        socks_reply(reply, error);
        tell(c, reply, sizeof(reply));
        close(c->fd);
        c->fd = -1;
    }
    let_go(c);
}

static void on_opened(struct stream *s)
{
    struct conn *c = s->owner;
    uint8_t reply[SOCKS_REPLY_BYTES];
    int fd = c->fd;

    say_detail("%s through %s: open", c->target, s->peer->address);
    if (c->forward->is_socks) {
        socks_reply(reply, 0);
        tell(c, reply, sizeof(reply));
    }
    c->fd = -1;
    s->early = c->bytes;
    s->early_len = (uint32_t)c->len;
    (void)stream_join(s, fd, fd);
}

static void on_ended(struct stream *s, int error, const char *why)
{
    struct conn *c = s->owner;

    if (c->fd >= 0) {
        fail(c, error, why);
        return;
    }
    if (error)
        say_detail("%s through %s: %s", c->target, s->peer->address, why);
    else
        say_detail("%s through %s: over, %llu bytes there, %llu back", c->target, s->peer->address,
                   (unsigned long long)s->bytes_in, (unsigned long long)s->bytes_out);
    let_go(c);
}

static void dial(struct conn *c)
{
    static const struct stream_ops ops = {on_opened, on_ended};
    struct link_peer *server = c->near->server->peer;
    char why[256];

    if (!server)
        fail(c, EHOSTUNREACH, "its address is not known yet");
    else if (!hub_dial(c->near->hub, server, c->target, &ops, c, why, sizeof(why)))
        fail(c, ENOBUFS, why);
}

/* ------------------------------------------------------------------------------------------ SOCKS */

static void used(struct conn *c, size_t bytes)
{
    c->len -= bytes;
    memmove(c->bytes, c->bytes + bytes, c->len);
}

static enum socks_result greet(struct conn *c)
{
    uint8_t answer[2];
    size_t bytes;
    enum socks_result result = socks_greeting(c->bytes, c->len, &bytes, answer);

    if (result != SOCKS_DONE)
        return result;
    used(c, bytes);
    tell(c, answer, sizeof(answer));
    c->greeted = true;
    return answer[1] == 0 ? SOCKS_DONE : SOCKS_BAD;
}

static void bad_request(struct conn *c, int error)
{
    uint8_t reply[SOCKS_REPLY_BYTES];

    if (error) {
        socks_reply(reply, error);
        tell(c, reply, sizeof(reply));
    }
    say("a SOCKS client was refused: %s",
        error == EOPNOTSUPP ? "only CONNECT is offered, UDP is not forwarded"
        : error             ? strerror(error)
                            : "it does not speak SOCKS 5 without authentication");
    close(c->fd);
    c->fd = -1;
    let_go(c);
}

static void on_socks(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    struct address target;
    enum socks_result result = SOCKS_DONE;
    size_t bytes;
    int error = 0;
    ssize_t n = read(fd, c->bytes + c->len, sizeof(c->bytes) - c->len); /* it may have come late */

    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !(what & EV_TIMEOUT))
        return;
    if (n <= 0) {
        let_go(c);
        return;
    }
    c->len += (size_t)n;
    if (!c->greeted)
        result = greet(c);
    if (result == SOCKS_DONE)
        result = socks_request(c->bytes, c->len, &bytes, &target, &error);
    if (result == SOCKS_BAD) {
        bad_request(c, error);
        return;
    }
    if (result == SOCKS_MORE)
        return;
    used(c, bytes); /* what is left is for the target */
    end_talk(c);
    address_print(&target, c->target);
    dial(c);
}

static void begin_socks(struct conn *c)
{
    struct near *near = c->near;
    struct timeval patience = {.tv_sec = SOCKS_PATIENCE_S};

    c->readable = event_new(near->hub->streams.base, c->fd, EV_READ | EV_PERSIST, on_socks, c);
    if (c->readable) {
        c->next = near->talking;
        near->talking = c;
    }
    if (!c->readable || event_add(c->readable, &patience) != 0)
        let_go(c);
}

/* ---------------------------------------------------------------------------------------- opening */

static void on_connection(void *arg, int fd)
{
    const struct door *door = arg;
    struct conn *c = calloc(1, sizeof(*c));

    if (!c) {
        say("no memory for a connection");
        listen_reset(fd);
        return;
    }
    c->near = door->near;
    c->forward = door->forward;
    c->fd = fd;
    if (c->forward->is_socks) {
        begin_socks(c);
        return;
    }
    address_print(&c->forward->to, c->target);
    dial(c);
}

struct near *near_open(struct hub *hub, const struct options *o, const struct server *server)
{
    struct near *near = calloc(1, sizeof(*near));

    if (!near) {
        say("no memory");
        return NULL;
    }
    near->hub = hub;
    near->server = server;
    for (; near->num < o->num_forwards; near->num++) {
        struct door *door = &near->door[near->num];

        *door = (struct door){.near = near, .forward = &o->forwards[near->num]};
        door->listener = listen_open(hub->streams.base, &door->forward->from, on_connection, door);
        if (!door->listener) {
            near_close(near);
            return NULL;
        }
    }
    return near;
}

void near_close(struct near *near)
{
    for (uint32_t i = 0; i < near->num; i++)
        listen_close(near->door[i].listener);
    for (struct conn *c = near->talking, *next; c; c = next) {
        next = c->next;
        let_go(c);
    }
    free(near);
}
