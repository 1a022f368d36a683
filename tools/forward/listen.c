/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/listen.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/forward/say.h"

enum {
    ADDRESSES_MAX = 16,
    BACKLOG = 1024,
    PAUSE_US = 100000, /* without descriptors: some come back meanwhile */
};

struct listener {
    struct evconnlistener *socket[ADDRESSES_MAX]; /* owned */
    int num;
    struct event *resume;
    listen_fn *fn;
    void *arg;
    char text[ADDRESS_TEXT_BYTES];
    char path[ADDRESS_HOST_BYTES]; /* to be removed; "": none */
};

/* ------------------------------------------------------------------------------------ connections */

void listen_tune(int fd)
{
    int on = 1, idle_s = 60, interval_s = 15, count = 4;

    /* A unix socket refuses, and needs none. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

void listen_reset(int fd)
{
    struct linger at_once = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

int listen_connect(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -errno;
    if (connect(fd, address, len) == 0 || errno == EINPROGRESS)
        return fd;
    error = errno;
    close(fd);
    return -error;
}

/* False: no room. */
static bool fill_unix(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address->sun_path))
        return false;
    strcpy(address->sun_path, path);
    return true;
}

int listen_connect_unix(const char *path)
{
    struct sockaddr_un address;

    if (!fill_unix(&address, path))
        return -ENAMETOOLONG;
    return listen_connect((struct sockaddr *)&address, sizeof(address));
}

/* --------------------------------------------------------------------------------------- listeners */

static void on_accept(struct evconnlistener *socket, evutil_socket_t fd, struct sockaddr *from,
                      int len, void *arg)
{
    struct listener *l = arg;
    (void)socket, (void)from, (void)len;

    listen_tune(fd);
    l->fn(l->arg, fd);
}

static void enable(struct listener *l, bool on)
{
    for (int i = 0; i < l->num; i++)
        (void)(on ? evconnlistener_enable(l->socket[i]) : evconnlistener_disable(l->socket[i]));
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    enable(arg, true);
}

/* Out of descriptors: the connection that waits would wake us again and again. */
static void on_error(struct evconnlistener *socket, void *arg)
{
    struct listener *l = arg;
    struct timeval pause = {.tv_usec = PAUSE_US};
    (void)socket;

    say("accepting at %s: %s", l->text, strerror(errno));
    enable(l, false);
    (void)evtimer_add(l->resume, &pause);
}

static bool add_socket(struct listener *l, struct event_base *base, const struct sockaddr *address,
                       socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0)
        return false;
    if (address->sa_family != AF_UNIX)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, address, len) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        return false;
    }
    l->socket[l->num] = evconnlistener_new(base, on_accept, l,
                                           LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!l->socket[l->num]) {
        close(fd);
        errno = ENOMEM;
        return false;
    }
    evconnlistener_set_error_cb(l->socket[l->num++], on_error);
    return true;
}

/* Removes a socket file whose process is gone. */
static void remove_stale(const char *path)
{
    struct stat st;
    int fd;

    if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return;
    fd = listen_connect_unix(path);
    if (fd == -ECONNREFUSED)
        (void)unlink(path);
    if (fd >= 0)
        close(fd);
}

static bool open_unix(struct listener *l, struct event_base *base, const char *path)
{
    struct sockaddr_un address;

    remove_stale(path);
    if (!fill_unix(&address, path)) {
        say("%s: too long for a unix socket", path);
        return false;
    }
    if (!add_socket(l, base, (struct sockaddr *)&address, sizeof(address))) {
        say("cannot listen at %s: %s", path, strerror(errno));
        return false;
    }
    strcpy(l->path, path);
    return true;
}

static bool open_tcp(struct listener *l, struct event_base *base, const struct address *at)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    const char *host = at->host[0] ? at->host : "localhost";
    struct addrinfo *all;
    int error = EADDRNOTAVAIL;
    bool failed = false;
    int rc = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, at->port, &hints, &all);

    if (rc != 0) {
        say("cannot listen at %s: %s", l->text, gai_strerror(rc));
        return false;
    }
    for (struct addrinfo *a = all; a && l->num < ADDRESSES_MAX && !failed; a = a->ai_next) {
        if (add_socket(l, base, a->ai_addr, a->ai_addrlen))
            continue;
        failed = errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT; /* no IPv6 here, for example */
        error = errno;
    }
    freeaddrinfo(all);
    if (!failed && l->num > 0)
        return true;
    say("cannot listen at %s: %s", l->text, strerror(error));
    return false;
}

struct listener *listen_open(struct event_base *base, const struct address *at, listen_fn *fn,
                             void *arg)
{
    struct listener *l = calloc(1, sizeof(*l));

    if (!l) {
        say("no memory");
        return NULL;
    }
    l->fn = fn;
    l->arg = arg;
    address_print(at, l->text);
    if (!at->is_unix && !at->host[0])
        snprintf(l->text, sizeof(l->text), "localhost:%s", at->port);
    l->resume = evtimer_new(base, on_resume, l);
    if (l->resume && (at->is_unix ? open_unix(l, base, at->host) : open_tcp(l, base, at)))
        return l;
    listen_close(l);
    return NULL;
}

void listen_close(struct listener *l)
{
    for (int i = 0; i < l->num; i++)
        evconnlistener_free(l->socket[i]);
    if (l->resume)
        event_free(l->resume);
    if (l->path[0])
        (void)unlink(l->path);
    free(l);
}
