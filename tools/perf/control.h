/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP connection over which both ends agree: one JSON object a line.
 *
 * Server: perf_control_listen(), perf_control_accept(). Client: perf_control_connect(). Then
 * perf_control_send() and perf_control_recv(). During a test, perf_control_recv() with timeout 0
 * also tells when the other end is gone.
 */
#ifndef MRD_PERF_CONTROL_H
#define MRD_PERF_CONTROL_H

#include <json-c/json.h>
#include <sys/socket.h>

#include "tools/perf/perf.h"

struct perf_control {
    int fd;
    struct json_tokener *tokener;
    size_t parsed_bytes;         /* of a message that is not complete yet */
    char peer[PERF_HOST_BYTES];  /* numeric address of the other end */
    char local[PERF_HOST_BYTES]; /* numeric address of this end */
    int64_t clock_offset_ns;     /* client: what to add to its clock to have the server's */
    uint64_t rtt_ns;             /* client: of the fastest question and answer */
};

/*
 * Returns a listening socket, or -errno with a sentence. An empty `address` means any, of both
 * families unless `ipv6`. If *port is 0 it is set to the ephemeral port.
 */
int perf_control_listen(const char *address, uint16_t *port, bool ipv6, char *error);
/* 0 or -errno with a sentence. Blocks. */
int perf_control_accept(struct perf_control *c, int listener, char *error);
int perf_control_connect(struct perf_control *c, const char *host, uint16_t port,
                         const char *bind_address, bool ipv6, char *error);
void perf_control_close(struct perf_control *c);

/* Takes ownership of `message`. 0 or -errno. */
int perf_control_send(struct perf_control *c, struct json_object *message);
/*
 * Wait up to timeout_ms (-1: for ever) for the next message, which the caller puts. Returns 0,
 * -ETIMEDOUT, -ECONNRESET if the other end closed or is gone, or -EPROTO if a line is no object.
 */
int perf_control_recv(struct perf_control *c, int timeout_ms, struct json_object **message);

/*
 * One question, whose ownership passes, and its answer of that type, which the caller puts. NULL
 * with a sentence.
 */
struct json_object *perf_control_ask(struct perf_control *c, struct json_object *question,
                                     const char *type, char *error);
/* Likewise, with another patience than its 10 s. */
struct json_object *perf_control_ask_for(struct perf_control *c, struct json_object *question,
                                         const char *type, int timeout_ms, char *error);

struct perf_address {
    struct sockaddr_storage ss;
    socklen_t len;
};

/* A numeric address, with "%scope" if it needs one. 0 or -EINVAL. */
int perf_find_address(const char *host, uint16_t port, struct perf_address *address);
/* The port that a socket is bound to. */
uint16_t perf_control_port(int fd);
/* "192.0.2.7:5000" or "[2001:db8::7]:5000" */
void perf_format_endpoint(char *text, size_t len, const char *host, unsigned port);

#endif
