/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bare UDP datagrams from one end to the other: which source ports get through, which sizes, which
 * marks, in which order.
 *
 * The receiver: perf_probe_open(), perf_probe_take() until all is sent, perf_probe_close(). The
 * sender: perf_probe_ports(), perf_probe_sizes(), perf_probe_plain(). A probe has a number; what arrived is an array of
 * pairs in the order of arrival, the number and the ECN bits (RFC 3168).
 */
#ifndef MRD_PERF_DOCTOR_PROBE_H
#define MRD_PERF_DOCTOR_PROBE_H

#include <json-c/json.h>
#include <stdint.h>

enum {
    PERF_PROBE_PORTS = 32,
    PERF_PROBE_ROUNDS = 25, /* datagrams from each port */
    PERF_PROBE_SIZES = 8,
    PERF_PROBE_REPEATS = 12, /* of each size: some get through a bad link, too */
    PERF_PROBE_SIZE_BASE = PERF_PROBE_PORTS * PERF_PROBE_ROUNDS, /* number of the first of these */
    PERF_PROBE_PLAIN_ROUNDS = 5, /* of each port, without ECT: only where some are silent */
    PERF_PROBE_PLAIN_BASE = PERF_PROBE_SIZE_BASE + PERF_PROBE_SIZES * PERF_PROBE_REPEATS,
    PERF_PROBE_MAX = PERF_PROBE_PLAIN_BASE + PERF_PROBE_PORTS * PERF_PROBE_PLAIN_ROUNDS,
};

/* The port, counted from 0, from which a repetition of the sizes is sent: some are blocked at times. */
static inline uint32_t perf_probe_size_port(uint32_t repeat)
{
    return repeat * PERF_PROBE_PORTS / PERF_PROBE_REPEATS;
}

/* MTUs that are tried: bytes of the IP packet. */
extern const uint32_t perf_probe_mtus[PERF_PROBE_SIZES];

/* Binds a socket there; port 0: any. Returns it, or -errno. */
int perf_probe_open(const char *address, uint16_t port);
/* Adds what has arrived to `arrivals`. */
void perf_probe_take(int fd, struct json_object *arrivals);

/* What the sender alone knows. */
struct perf_probe_sent {
    uint16_t ports[PERF_PROBE_PORTS]; /* source ports */
    uint32_t local_mtu;               /* the first MTU that its own interface refuses; 0: none */
    uint32_t icmp_mtu;                /* that a router told; 0: none did */
};

/* From so many source ports of this address, each in turn; ECT(0). 0, or -errno. */
int perf_probe_ports(const char *from, const char *to, uint16_t port, struct perf_probe_sent *sent);
/* Few more without ECT, from those of sent->ports that are still free. 0, or -errno. */
int perf_probe_plain(const char *from, const char *to, uint16_t port,
                     const struct perf_probe_sent *sent);
/*
 * Of each size, not to be fragmented, from some of the ports that perf_probe_ports() had. Takes two
 * seconds, with what routers say. 0, or -errno.
 */
int perf_probe_sizes(const char *from, const char *to, uint16_t port, struct perf_probe_sent *sent);

#endif
