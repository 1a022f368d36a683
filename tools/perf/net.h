/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of the raw transports.
 */
#ifndef MRD_PERF_NET_H
#define MRD_PERF_NET_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "tools/perf/run.h"

/* As perf_find_address(). 0 or -EINVAL with run->error. */
int perf_net_address(struct perf_run *run, const char *host, uint16_t port,
                     struct perf_address *address);
/*
 * Open a socket of `type` at the address that the control connection has at this end. `port` 0:
 * ephemeral. Returns its descriptor, or -errno with run->error.
 */
int perf_net_bind(struct perf_run *run, int type, uint16_t port);
/*
 * Returns the payload of a packet that fits the path of a connected socket unfragmented: a multiple
 * of 64, at most `most`.
 */
uint32_t perf_net_payload(int fd, uint32_t most);
/* As large a buffer as we may have: SO_RCVBUF, SO_SNDBUF. */
void perf_net_buffer(int fd, int option, int bytes);

#endif
