/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tap on a simulated world's wires: decodes and keeps every packet, and drops those that a test
 * wants lost.
 *
 * wiretap_open() on a world; set `drop` or `rule` at any time; read packets[]; wiretap_replay()
 * delivers a kept packet again; wiretap_close() before a sim_world_destroy().
 */
#ifndef MRD_TESTS_SUPPORT_WIRETAP_H
#define MRD_TESTS_SUPPORT_WIRETAP_H

#include <stdbool.h>

#include "core/wire.h"
#include "tests/support/world.h"

#define WIRE_ALL UINT32_MAX /* for `drop`: all packets until it is set to 0 */

enum wire_kind {
    WIRE_MESSAGE = 0, /* DATA with parts of messages */
    WIRE_EMPTY,       /* DATA that carries nothing but its PSN */
    WIRE_REFUSAL,
    WIRE_ABORT,
    WIRE_READY,
    WIRE_CLOSE,
    WIRE_ACK,
    WIRE_RESET,
    WIRE_CHALLENGE,
    WIRE_BUSY,
    WIRE_FRAGMENT,
    WIRE_KINDS,
};

struct wire_packet {
    uint64_t at_ns; /* when it left */
    uint32_t from, to, path, len;
    enum wire_kind kind;
    bool dropped;
    bool alone; /* its sender keeps it out of bursts */
    uint32_t num_parts, num_void;
    struct mrd_wire_head head;
    struct mrd_wire_part part; /* the first that is not void; its pointers lead into `data` */
    uint8_t *data;             /* owned */
};

/* Returns true if the packet is to be dropped. Called for packets that `drop` lets pass. */
typedef bool wiretap_rule(void *arg, const struct wire_packet *packet);

struct wiretap {
    struct sim_world *w;
    /* How many of the host's next packets of each kind to drop. */
    uint32_t drop[SIM_HOSTS_MAX][WIRE_KINDS];
    wiretap_rule *rule;
    void *arg;
    struct wire_packet *packets; /* owned, in the order sent */
    uint32_t num, cap;
};

struct wiretap *wiretap_open(struct sim_world *w);
void wiretap_close(struct wiretap *tap);

/* Number of packets of that kind that the host sent; `dropped`: of those that were dropped. */
uint32_t wiretap_count(const struct wiretap *tap, uint32_t from, enum wire_kind kind);
uint32_t wiretap_count_dropped(const struct wiretap *tap, uint32_t from, enum wire_kind kind);
/* The first such packet at or after index `start`; fails the test if there is none. */
const struct wire_packet *wiretap_find(const struct wiretap *tap, uint32_t start, uint32_t from,
                                       enum wire_kind kind);
/* Does the packet ack this PSN of the other side? */
bool wire_packet_acks(const struct wire_packet *packet, uint32_t psn);
/* When the host first sent a packet that acks `psn` and was not dropped; UINT64_MAX: never. */
uint64_t wiretap_acked_ns(const struct wiretap *tap, uint32_t from, uint32_t psn);
/* Delivers a kept packet once more, 1 us from now. */
void wiretap_replay(struct wiretap *tap, const struct wire_packet *packet);
/* The same of all that the host sent with parts of messages, the last first. Returns the number. */
uint32_t wiretap_replay_messages(struct wiretap *tap, uint32_t from);

#endif
