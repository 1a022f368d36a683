/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw-udp: what the kernel's UDP gives with the same sizes, GSO, GRO and number of ports, and no protocol at all.
 * It is the ceiling that a protocol over UDP can be held against.
 *
 * run_raw.c opens and exchanges; raw_bw.c and raw_lat.c are the tests.
 */
#ifndef MRD_PERF_RAW_UDP_H
#define MRD_PERF_RAW_UDP_H

#include "tools/perf/net.h"

enum {
    RAW_BURST_BYTES = 61440, /* 15 x 4096: a superpacket that loopback does not split */
    RAW_SEGMENTS_MAX = 64,   /* what every kernel with UDP_SEGMENT takes */
    RAW_BUFFER_BYTES = 64 << 10,
    RAW_RECEIVE_BUFFER_BYTES = 8 << 20,
    RAW_SEND_BUFFER_BYTES = 4 << 20,
};

struct raw_udp {
    int fds[PERF_PORTS_MAX]; /* the server has one */
    unsigned num_fds;
    uint32_t payload_bytes; /* a packet, at most */
    bool gso;
    uint8_t *buf;                     /* one, hot */
    uint64_t packets[PERF_PORTS_MAX]; /* sent on each socket */
    uint64_t bytes_sent;
};

/* Send `len` bytes of the buffer on socket i, in packets of `segment` bytes. 0, or -errno; lost counts as sent. */
int raw_udp_send(struct perf_run *run, unsigned i, size_t len, size_t segment);

int raw_bw_client(struct perf_run *run);
int raw_bw_server(struct perf_run *run);
int raw_lat_client(struct perf_run *run);
int raw_lat_server(struct perf_run *run);

#endif
