/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/control.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/perf/message.h"

enum {
    MESSAGE_BYTES_MAX = 256 << 20, /* the samples of a long run */
    READ_BYTES = 64 << 10,
    DEAD_AFTER_MS = 10 * 1000, /* silence of a vanished host */
    ANSWER_MS = 10 * 1000,
};

void perf_format_endpoint(char *text, size_t len, const char *host, unsigned port)
{
    snprintf(text, len, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static int resolve_host(const char *host, uint16_t port, bool ipv6, bool passive,
                        struct addrinfo **list, char *error)
{
    struct addrinfo hints = {
        .ai_family = ipv6 ? AF_INET6 : AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0),
    };
    char service[8];

    snprintf(service, sizeof(service), "%u", port);
    int rc = getaddrinfo(host, service, &hints, list);
    if (rc == 0)
        return 0;
    return perf_fail(error, -EHOSTUNREACH, "address %s%s: %s", host ? host : "any",
                     ipv6 ? " (IPv6)" : "", rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
}

static int listen_on(const struct addrinfo *ai, bool dual)
{
    int one = 1, zero = 0;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one,
               sizeof(one)); /* past connections in TIME_WAIT are no obstacle */
    if (ai->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, dual ? &zero : &one, sizeof(one));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 16) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

int perf_find_address(const char *host, uint16_t port, struct perf_address *address)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_DGRAM};
    struct addrinfo *list;
    char service[8];

    snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(host, service, &hints, &list))
        return -EINVAL;
    memcpy(&address->ss, list->ai_addr, list->ai_addrlen);
    address->len = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

uint16_t perf_control_port(int fd)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof(ss);

    if (getsockname(fd, (struct sockaddr *)&ss, &len))
        return 0;
    return ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
                                          : ((struct sockaddr_in *)&ss)->sin_port);
}

int perf_control_listen(const char *address, uint16_t *port, bool ipv6, char *error)
{
    bool any = address[0] == '\0';
    struct addrinfo *list;
    int fd = -EADDRNOTAVAIL;

    /*
     * Any address: first the IPv6 wildcard, which takes IPv4 too; then IPv4, if there is no IPv6.
     */
    for (int attempt = 0; attempt < 2 && fd < 0; attempt++) {
        const char *host = any && !ipv6 ? (attempt ? "0.0.0.0" : "::") : any ? NULL : address;
        if (resolve_host(host, *port, ipv6, true, &list, error))
            return -EHOSTUNREACH;
        fd = listen_on(list, any && !ipv6);
        freeaddrinfo(list);
        if (!any || ipv6)
            break;
    }
    if (fd < 0)
        return perf_fail(error, fd, "cannot listen on TCP port %u of %s: %s", *port,
                         any ? "any address" : address, strerror(-fd));
    *port = perf_control_port(fd);
    return fd;
}

/* "::ffff:192.0.2.7" is IPv4 through a dual-stack socket: say so. */
static void name_of(const struct sockaddr_storage *ss, socklen_t ss_len, char *text, size_t len)
{
    char host[NI_MAXHOST];

    if (getnameinfo((const struct sockaddr *)ss, ss_len, host, sizeof(host), NULL, 0,
                    NI_NUMERICHOST))
        strcpy(host, "?");
    const char *plain = strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.') ? host + 7 : host;
    snprintf(text, len, "%.*s", (int)len - 1, plain);
}

static void adopt_socket(struct perf_control *c, int fd)
{
    int one = 1, idle_s = 3, interval_s = 2, count = 3, dead_ms = DEAD_AFTER_MS;
    struct sockaddr_storage ss;
    socklen_t len = sizeof(ss);

    *c = (struct perf_control){.fd = fd, .tokener = json_tokener_new()};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    /*
     * Over a path that loses much, doubled timeouts would soon be longer than anybody waits. With
     * BBR, which leaves slow start its own way, Linux does not take this option into account.
     */
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
    setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &one, sizeof(one));
    /* Keepalive: a host that vanished must not leave the other one waiting. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof(dead_ms));
    if (getpeername(fd, (struct sockaddr *)&ss, &len) == 0)
        name_of(&ss, len, c->peer, sizeof(c->peer));
    len = sizeof(ss);
    if (getsockname(fd, (struct sockaddr *)&ss, &len) == 0)
        name_of(&ss, len, c->local, sizeof(c->local));
}

int perf_control_accept(struct perf_control *c, int listener, char *error)
{
    int fd;

    do {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0)
        return perf_fail(error, -errno, "cannot accept a client: %s", strerror(errno));
    adopt_socket(c, fd);
    return 0;
}

static int bind_to(int fd, int family, const char *address)
{
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;

    if (getaddrinfo(address, NULL, &hints, &list))
        return -EADDRNOTAVAIL;
    int rc = bind(fd, list->ai_addr, list->ai_addrlen) ? -errno : 0;
    freeaddrinfo(list);
    return rc;
}

/* 0 and the connected socket, -ETIMEDOUT after `patience_s`, or another -errno. */
static int try_to_connect(const struct addrinfo *ai, const char *bind_address, int patience_s,
                          int *fd)
{
    *fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return -errno;
    struct timeval patience = {.tv_sec = patience_s}, none = {0};
    setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
               sizeof(patience)); /* holds for connect(), too */
    int rc = bind_address[0] ? bind_to(*fd, ai->ai_family, bind_address) : 0;
    if (rc == 0 && connect(*fd, ai->ai_addr, ai->ai_addrlen))
        rc = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
    setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
    if (rc)
        close(*fd);
    return rc;
}

/*
 * Each try is from another port, and so over another path where there are several: one of them may
 * lose what is sent. The first tries end before a SYN is sent again, as TCP takes 3 s for the first
 * retransmission timeout of such a connection (RFC 6298, 5.7). The last ones are for hosts that are
 * far.
 */
static int connect_one(const struct addrinfo *ai, const char *bind_address, int *fd)
{
    static const int patience_s[] = {1, 1, 1, 1, 2, 4};
    int rc = -ETIMEDOUT;

    for (size_t i = 0; i < sizeof(patience_s) / sizeof(patience_s[0]) && rc == -ETIMEDOUT; i++)
        rc = try_to_connect(ai, bind_address, patience_s[i], fd);
    return rc;
}

int perf_control_connect(struct perf_control *c, const char *host, uint16_t port,
                         const char *bind_address, bool ipv6, char *error)
{
    struct addrinfo *list;
    char endpoint[PERF_HOST_BYTES + 16];
    int fd = -1;
    int rc = resolve_host(host, port, ipv6, false, &list, error);

    if (rc)
        return rc;
    for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
        rc = connect_one(ai, bind_address, &fd);
        if (rc == 0)
            break;
    }
    freeaddrinfo(list);
    if (rc) {
        perf_format_endpoint(endpoint, sizeof(endpoint), host, port);
        return perf_fail(error, rc, "cannot reach a server at %s%s%s: %s%s", endpoint,
                         bind_address[0] ? " from " : "", bind_address, strerror(-rc),
                         rc == -ECONNREFUSED ? " (is 'mrd_perf TEST' without a host running there?)"
                                             : "");
    }
    adopt_socket(c, fd);
    return 0;
}

void perf_control_close(struct perf_control *c)
{
    if (c->fd >= 0)
        close(c->fd);
    if (c->tokener)
        json_tokener_free(c->tokener);
    *c = (struct perf_control){.fd = -1};
}

int perf_control_send(struct perf_control *c, struct json_object *message)
{
    const char *text = json_object_to_json_string_ext(message, JSON_C_TO_STRING_PLAIN);
    size_t left = text ? strlen(text) : 0;
    int rc = text ? 0 : -ENOMEM;

    while (rc == 0 && left) {
        ssize_t n = send(c->fd, text, left, MSG_NOSIGNAL | MSG_MORE);
        if (n < 0 && errno != EINTR)
            rc = -errno;
        if (n > 0) {
            text += n;
            left -= (size_t)n;
        }
    }
    json_object_put(message);
    if (rc == 0 && send(c->fd, "\n", 1, MSG_NOSIGNAL) != 1)
        rc = -errno;
    return rc;
}

/*
 * Parse what has come, and take it from the socket as far as it belongs to this message. 0 and
 * *message, -EINPROGRESS if more of it must come, -EAGAIN if nothing has come, or -errno.
 */
static int parse_more(struct perf_control *c, struct json_object **message)
{
    char text[READ_BYTES];
    ssize_t n = recv(c->fd, text, sizeof(text), MSG_DONTWAIT | MSG_PEEK);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : -ECONNRESET;
    if (!c->tokener)
        return -ENOMEM;
    struct json_object *object = json_tokener_parse_ex(c->tokener, text, (int)n);
    bool more = json_tokener_get_error(c->tokener) == json_tokener_continue;
    size_t taken = json_tokener_get_parse_end(c->tokener);
    /* A message is a line. Only the end of the one before may come first, if it came late. */
    size_t begin = c->parsed_bytes == 0 && text[0] == '\n';
    bool broken = more && memchr(text + begin, '\n', taken - begin);
    /* With its end of line: closing with anything unread would reset the connection. */
    if (object && taken < (size_t)n && text[taken] == '\n')
        taken++;
    c->parsed_bytes = more ? c->parsed_bytes + taken : 0;
    if (recv(c->fd, text, taken, 0) != (ssize_t)taken || c->parsed_bytes > MESSAGE_BYTES_MAX)
        return -EPROTO;
    if (broken)
        return -EPROTO;
    if (more)
        return -EINPROGRESS;
    if (!json_object_is_type(object, json_type_object)) {
        json_object_put(object);
        return -EPROTO;
    }
    *message = object;
    return 0;
}

int perf_control_recv(struct perf_control *c, int timeout_ms, struct json_object **message)
{
    uint64_t deadline_ns =
        timeout_ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ms * PERF_MSEC_NS;

    for (;;) {
        int rc = parse_more(c, message);
        if (rc == -EINPROGRESS)
            continue;
        if (rc != -EAGAIN)
            return rc;
        uint64_t now_ns = timeout_ms ? clock_now_ns() : deadline_ns;
        if (now_ns >= deadline_ns)
            return -ETIMEDOUT;
        struct pollfd pfd = {.fd = c->fd, .events = POLLIN};
        poll(&pfd, 1, timeout_ms < 0 ? -1 : (int)((deadline_ns - now_ns) / PERF_MSEC_NS) + 1);
    }
}

struct json_object *perf_control_ask(struct perf_control *c, struct json_object *question,
                                     const char *type, char *error)
{
    return perf_control_ask_for(c, question, type, ANSWER_MS, error);
}

struct json_object *perf_control_ask_for(struct perf_control *c, struct json_object *question,
                                         const char *type, int timeout_ms, char *error)
{
    struct json_object *answer = NULL;
    int rc = perf_control_send(c, question);

    if (rc == 0)
        rc = perf_control_recv(c, timeout_ms, &answer);
    if (rc == 0 && perf_message_is(answer, type))
        return answer;
    const char *text = rc == 0 ? json_get_string(answer, "text") : NULL;
    if (text)
        snprintf(error, PERF_ERROR_BYTES, "the server %s says: %s", c->peer, text);
    else if (rc == -ETIMEDOUT)
        snprintf(error, PERF_ERROR_BYTES,
                 "the server at %s does not answer: %s (is it busy with another client?)", c->peer,
                 strerror(-rc));
    else
        snprintf(error, PERF_ERROR_BYTES, "the server at %s does not answer as mrd_perf does: %s",
                 c->peer, rc ? strerror(-rc) : "unexpected message");
    json_object_put(answer);
    return NULL;
}
