/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of hosts. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "transport/call.h"
#include "transport/context.h"
#include "transport/error.h"

enum { HOST_BYTES = 256 }; /* a DNS name is shorter */

/* "host" or "host:port". 0, or -EINVAL with mrd_error_set(). To glibc "*" is loopback: no host. */
static int split(const char *name, char *host, char *port)
{
    const char *colon = strchr(name, ':');
    size_t len = colon ? (size_t)(colon - name) : strlen(name);
    unsigned value = MRD_DEFAULT_PORT;
    char end;

    if (!len || len >= HOST_BYTES || (len == 1 && name[0] == '*') ||
        (colon && (sscanf(colon + 1, "%5u%c", &value, &end) != 1 || !value || value > UINT16_MAX ||
                   strspn(colon + 1, "0123456789") != strlen(colon + 1)))) {
        mrd_error_set("\"%s\" is neither an address nor HOST:PORT", name);
        return -EINVAL;
    }
    memcpy(host, name, len);
    host[len] = '\0';
    snprintf(port, 6, "%u", value);
    return 0;
}

/* 0; -EAGAIN: it may be known later; -ENOENT: it is not known. With mrd_error_set(). */
static int look_up(const char *name, struct addrinfo **list)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV};
    char host[HOST_BYTES], port[6];
    int error = split(name, host, port);

    if (error)
        return error;
    errno = 0;
    error = getaddrinfo(host, port, &hints, list);
    if (!error)
        return 0;
    /* To glibc a file of hosts that it cannot open, or a server that it cannot ask, knows no name. */
    if (errno == EMFILE || errno == ENFILE)
        error = EAI_SYSTEM;
    mrd_error_set("%s: %s", host, error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    if (error == EAI_MEMORY)
        return -ENOMEM;
    return error == EAI_AGAIN || error == EAI_SYSTEM ? -EAGAIN : -ENOENT;
}

/* As mrd_create_ah() takes it. */
static void format(const struct sockaddr *sa, char *text, size_t len)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)sa;
    char ip[INET6_ADDRSTRLEN] = "";

    if (sa->sa_family == AF_INET) {
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
        snprintf(text, len, "%s:%u", ip, ntohs(in->sin_port));
        return;
    }
    inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
    if (in6->sin6_scope_id)
        snprintf(text, len, "[%s%%%u]:%u", ip, in6->sin6_scope_id, ntohs(in6->sin6_port));
    else
        snprintf(text, len, "[%s]:%u", ip, ntohs(in6->sin6_port));
}

/* The first address of the list that the context can send to. The last one's refusal is told. */
static int choose(struct mrd_context_impl *c, const char *name, const struct addrinfo *list,
                  struct mrd_addr *addr)
{
    char why[MRD_SENTENCE_BYTES] = "they are of another kind";

    for (const struct addrinfo *i = list; i; i = i->ai_next) {
        char text[MRD_ADDRESS_MAX];

        if (i->ai_family != AF_INET && i->ai_family != AF_INET6)
            continue;
        format(i->ai_addr, text, sizeof(text));
        if (!c->ops->parse_address(c->backend, text, addr) &&
            c->ops->payload_bytes(c->backend, addr) > 0)
            return 0;
        snprintf(why, sizeof(why), "%s", mrd_last_error());
    }
    mrd_error_set("%s: the context can send to none of its addresses: %s", name, why);
    return -EHOSTUNREACH;
}

/* 0 or -errno with mrd_error_set(). Looking a name up takes long: it is done without the lock. */
static int find(struct mrd_context_impl *c, const char *name, struct mrd_addr *addr)
{
    struct addrinfo *list = NULL;
    int error = mrd_call_enter(c);
    bool numeric;

    if (error)
        return error;
    error = c->ops->parse_address(c->backend, name, addr);
    mrd_call_leave(c);
    /* Other movers have addresses without names. */
    numeric = !error || strcmp(c->ops->transport, "udp");
    if (numeric)
        return error;
    error = look_up(name, &list);
    if (!error)
        error = mrd_call_enter(c);
    if (!error) {
        error = choose(c, name, list, addr);
        mrd_call_leave(c);
    }
    if (list)
        freeaddrinfo(list);
    return error;
}

int mrd_resolve(struct mrd_context *context, const char *name, char *buf, size_t len)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    struct mrd_addr addr;
    int error = find(c, name, &addr);

    if (error)
        return error;
    error = c->ops->format_address(c->backend, &addr, buf, len);
    if (error)
        mrd_error_set("%zu bytes are too few for the address", len);
    return error;
}
