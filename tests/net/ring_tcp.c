/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP as NCCL's own network transport uses it: every message is cut into as many pieces as there
 * are connections, one goes over each, and the slowest of them ends the message.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/net/ring_wire.h"

enum { CONNECTIONS_MAX = 64 };

/* A connection, and how far it is: `done` bytes of its piece of `message`. */
struct stripe {
    int fd;
    uint64_t message;
    size_t done;
};

/* One way. */
struct way {
    struct stripe stripe[CONNECTIONS_MAX];
    struct {
        uint8_t *data;
        size_t bytes;
    } message[RING_OUTSTANDING];
    uint64_t posted, ended;
    bool sends;
};

struct tcp {
    struct way out, in;
    unsigned connections;
};

static void set_options(int fd)
{
    static const int on = 1;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        ring_die("TCP_NODELAY: %s", strerror(errno));
}

static int listen_at(const char *address, unsigned backlog, struct sockaddr_in *at)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*at);

    *at = (struct sockaddr_in){.sin_family = AF_INET};
    if (inet_pton(AF_INET, address, &at->sin_addr) != 1)
        ring_die("%s is no address", address);
    if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) || listen(fd, (int)backlog) ||
        getsockname(fd, (struct sockaddr *)at, &len))
        ring_die("listening at %s: %s", address, strerror(errno));
    return fd;
}

static int connect_to(const struct sockaddr_in *to, uint8_t number)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) ||
        send(fd, &number, 1, 0) != 1)
        ring_die("connecting: %s", strerror(errno));
    set_options(fd);
    return fd;
}

/* The left neighbour tells which of its connections this is. */
static void accept_one(struct tcp *t, int listener)
{
    uint8_t number;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0 || recv(fd, &number, 1, 0) != 1 || number >= t->connections)
        ring_die("accepting: %s", strerror(errno));
    set_options(fd);
    t->in.stripe[number].fd = fd;
}

static void *open_tcp(const struct ring_place *place)
{
    struct tcp *t = calloc(1, sizeof(*t));
    struct sockaddr_in self, right;

    if (!t)
        ring_die("no memory");
    t->connections = (unsigned)atoi(place->via);
    if (t->connections < 1 || t->connections > CONNECTIONS_MAX)
        ring_die("1 to %d connections", CONNECTIONS_MAX);
    t->out.sends = true;
    int listener = listen_at(place->address, t->connections, &self);
    ring_publish(place, &self, sizeof(self));
    ring_look_up(place, (place->rank + 1) % place->ranks, &right, sizeof(right));
    for (unsigned i = 0; i < t->connections; i++)
        t->out.stripe[i].fd = connect_to(&right, (uint8_t)i);
    for (unsigned i = 0; i < t->connections; i++)
        accept_one(t, listener);
    close(listener);
    return t;
}

static void add_memory(void *wire, void *data, size_t bytes)
{
    (void)wire, (void)data, (void)bytes;
}

static bool post(struct way *way, void *data, size_t bytes)
{
    if (way->posted - way->ended == RING_OUTSTANDING)
        return false;
    way->message[way->posted % RING_OUTSTANDING].data = data;
    way->message[way->posted++ % RING_OUTSTANDING].bytes = bytes;
    return true;
}

static bool send_tcp(void *wire, void *data, size_t bytes)
{
    return post(&((struct tcp *)wire)->out, data, bytes);
}

static bool receive_tcp(void *wire, void *data, size_t bytes)
{
    return post(&((struct tcp *)wire)->in, data, bytes);
}

/* As much of the pieces of connection i as it takes now. */
static void move_stripe(struct way *way, unsigned i, unsigned connections)
{
    struct stripe *s = &way->stripe[i];

    while (s->message < way->posted) {
        size_t bytes = way->message[s->message % RING_OUTSTANDING].bytes;
        size_t piece = (bytes + connections - 1) / connections, begin = i * piece;
        size_t left = begin < bytes ? (bytes - begin < piece ? bytes - begin : piece) - s->done : 0;
        uint8_t *at = way->message[s->message % RING_OUTSTANDING].data + begin + s->done;
        ssize_t n = !left        ? 0
                    : way->sends ? send(s->fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : recv(s->fd, at, left, MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 || (!n && left))
            ring_die("a connection: %s", n ? strerror(errno) : "the peer has closed it");
        s->done += (size_t)n;
        if ((size_t)n == left)
            s->message++, s->done = 0;
    }
}

static unsigned move(struct way *way, unsigned connections)
{
    uint64_t ended = way->posted;

    for (unsigned i = 0; i < connections; i++) {
        move_stripe(way, i, connections);
        if (way->stripe[i].message < ended)
            ended = way->stripe[i].message;
    }
    unsigned n = (unsigned)(ended - way->ended);
    way->ended = ended;
    return n;
}

static unsigned sent(void *wire)
{
    return move(&((struct tcp *)wire)->out, ((struct tcp *)wire)->connections);
}

static unsigned received(void *wire)
{
    return move(&((struct tcp *)wire)->in, ((struct tcp *)wire)->connections);
}

static void close_tcp(void *wire)
{
    struct tcp *t = wire;

    for (unsigned i = 0; i < t->connections; i++) {
        close(t->out.stripe[i].fd);
        close(t->in.stripe[i].fd);
    }
    free(t);
}

const struct ring_wire ring_tcp = {
    .open = open_tcp,
    .add_memory = add_memory,
    .send = send_tcp,
    .receive = receive_tcp,
    .sent = sent,
    .received = received,
    .close = close_tcp,
};
