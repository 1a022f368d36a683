/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/client.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/forward/listen.h"
#include "tools/forward/say.h"
#include "tools/forward/socks.h"
#include "tools/forward/stream_join.h"

enum { SOCKS_TIMEOUT_S = 30 };

struct client_listener {
    struct client *client;
    const struct forward *forward;
    struct listener *listener;
};

struct client {
    struct hub *hub;
    const struct server *server;
    struct mrd_node negotiating; /* list of connections in SOCKS negotiation */
    uint32_t num;
    struct client_listener listeners[OPTIONS_ROWS_MAX];
};

/* A connection from when it came until its stream is over. */
struct conn {
    struct client *client;
    const struct forward *forward;
    int fd; /* owned; -1: it is the stream's */
    char target[ADDRESS_TEXT_BYTES];
    /* Of a client that speaks SOCKS: */
    struct event *readable;
    bool greeted;
    size_t len;
    uint8_t bytes[SOCKS_BYTES_MAX];
    struct mrd_node node; /* in client.negotiating */
};

/* Its SOCKS negotiation is over. */
static void end_socks(struct conn *c)
{
    if (!c->readable)
        return;
    event_free(c->readable);
    c->readable = NULL;
    mrd_list_remove(&c->node);
}

static void conn_free(struct conn *c)
{
    end_socks(c);
    if (c->fd >= 0)
        listen_reset(c->fd);
    free(c);
}

/* A few bytes fit into an empty socket buffer. A failure shows when the stream writes. */
static void write_reply(const struct conn *c, const uint8_t *bytes, size_t len)
{
    ssize_t n = write(c->fd, bytes, len);

    (void)n;
}

/* No stream was opened: a SOCKS client gets a reply, any other a reset. */
static void conn_fail(struct conn *c, int error, const char *why)
{
    uint8_t reply[SOCKS_REPLY_BYTES];

    say("%s through %s: %s", c->target, server_text(c->client->server), why);
    if (c->forward->is_socks) {
        socks_reply(reply, error);
        write_reply(c, reply, sizeof(reply));
        close(c->fd);
        c->fd = -1;
    }
    conn_free(c);
}

static void on_opened(struct stream *s)
{
    struct conn *c = s->owner;
    uint8_t reply[SOCKS_REPLY_BYTES];
    int fd = c->fd;

    say_detail("%s through %s: open", c->target, s->peer->address);
    if (c->forward->is_socks) {
        socks_reply(reply, 0);
        write_reply(c, reply, sizeof(reply));
    }
    c->fd = -1;
    s->in.early = c->bytes;
    s->in.early_len = (uint32_t)c->len;
    (void)stream_join(s, fd, fd);
}

static void on_ended(struct stream *s, int error, const char *why)
{
    struct conn *c = s->owner;

    if (c->fd >= 0) {
        conn_fail(c, error, why);
        return;
    }
    if (error)
        say_detail("%s through %s: %s", c->target, s->peer->address, why);
    else
        say_detail("%s through %s: over, %llu bytes there, %llu back", c->target, s->peer->address,
                   (unsigned long long)s->in.bytes, (unsigned long long)s->out.bytes);
    conn_free(c);
}

static void conn_dial(struct conn *c)
{
    static const struct stream_ops ops = {on_opened, on_ended};
    struct link_peer *server = c->client->server->peer;
    char why[256];

    if (!server)
        conn_fail(c, EHOSTUNREACH, "its address is not known yet");
    else if (!hub_dial(c->client->hub, server, c->target, &ops, c, why, sizeof(why)))
        conn_fail(c, ENOBUFS, why);
}

/* ------------------------------------------------------------------------------------------ SOCKS */

static void drop_bytes(struct conn *c, size_t bytes)
{
    c->len -= bytes;
    memmove(c->bytes, c->bytes + bytes, c->len);
}

static enum socks_result socks_greet(struct conn *c)
{
    uint8_t answer[2];
    size_t bytes;
    enum socks_result result = socks_greeting(c->bytes, c->len, &bytes, answer);

    if (result != SOCKS_DONE)
        return result;
    drop_bytes(c, bytes);
    write_reply(c, answer, sizeof(answer));
    c->greeted = true;
    return answer[1] == 0 ? SOCKS_DONE : SOCKS_BAD;
}

static void socks_refuse(struct conn *c, int error)
{
    uint8_t reply[SOCKS_REPLY_BYTES];

    if (error) {
        socks_reply(reply, error);
        write_reply(c, reply, sizeof(reply));
    }
    say("a SOCKS client was refused: %s",
        error == EOPNOTSUPP ? "only CONNECT is offered, UDP is not forwarded"
        : error             ? strerror(error)
                            : "it does not speak SOCKS 5 without authentication");
    close(c->fd);
    c->fd = -1;
    conn_free(c);
}

static void on_socks(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    struct address target;
    enum socks_result result = SOCKS_DONE;
    size_t bytes;
    int error = 0;
    ssize_t n =
        read(fd, c->bytes + c->len,
             sizeof(c->bytes) - c->len); /* also after the timeout: it may be here already */

    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !(what & EV_TIMEOUT))
        return;
    if (n <= 0) {
        conn_free(c);
        return;
    }
    c->len += (size_t)n;
    if (!c->greeted)
        result = socks_greet(c);
    if (result == SOCKS_DONE)
        result = socks_request(c->bytes, c->len, &bytes, &target, &error);
    if (result == SOCKS_BAD) {
        socks_refuse(c, error);
        return;
    }
    if (result == SOCKS_MORE)
        return;
    drop_bytes(c, bytes); /* what is left is for the target */
    end_socks(c);
    address_print(&target, c->target);
    conn_dial(c);
}

static void begin_socks(struct conn *c)
{
    struct client *client = c->client;
    struct timeval timeout = {.tv_sec = SOCKS_TIMEOUT_S};

    c->readable = event_new(client->hub->streams.base, c->fd, EV_READ | EV_PERSIST, on_socks, c);
    if (c->readable)
        mrd_list_append(&client->negotiating, &c->node);
    if (!c->readable || event_add(c->readable, &timeout) != 0)
        conn_free(c);
}

/* ---------------------------------------------------------------------------------------- opening */

static void on_connection(void *arg, int fd)
{
    const struct client_listener *l = arg;
    struct conn *c = calloc(1, sizeof(*c));

    if (!c) {
        say("no memory for a connection");
        listen_reset(fd);
        return;
    }
    c->client = l->client;
    c->forward = l->forward;
    c->fd = fd;
    if (c->forward->is_socks) {
        begin_socks(c);
        return;
    }
    address_print(&c->forward->to, c->target);
    conn_dial(c);
}

struct client *client_open(struct hub *hub, const struct options *o, const struct server *server)
{
    struct client *client = calloc(1, sizeof(*client));

    if (!client) {
        say("no memory");
        return NULL;
    }
    mrd_list_init(&client->negotiating);
    client->hub = hub;
    client->server = server;
    for (; client->num < o->num_forwards; client->num++) {
        struct client_listener *l = &client->listeners[client->num];

        *l = (struct client_listener){.client = client, .forward = &o->forwards[client->num]};
        l->listener = listen_open(hub->streams.base, &l->forward->from, on_connection, l);
        if (!l->listener) {
            client_close(client);
            return NULL;
        }
    }
    return client;
}

void client_close(struct client *client)
{
    struct mrd_node *next;

    for (uint32_t i = 0; i < client->num; i++)
        listen_close(client->listeners[i].listener);
    for (struct mrd_node *n = client->negotiating.next; n != &client->negotiating; n = next) {
        next = n->next;
        conn_free(mrd_container_of(n, struct conn, node));
    }
    free(client);
}
