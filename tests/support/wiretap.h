/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tap on a simulated world's wires: every packet decoded and kept, and exactly those lost that a
 * test wants lost.
 *
 * wiretap_open() on a world; set `drop` or `rule` at any time; look at packets[]; wiretap_replay()
 * delivers a kept packet (again); wiretap_close() before sim_world_destroy().
 */
#ifndef MRD_TESTS_SUPPORT_WIRETAP_H
#define MRD_TESTS_SUPPORT_WIRETAP_H

#include <stdbool.h>

#include "core/wire.h"
#include "tests/support/world.h"

#define WIRE_ALL UINT32_MAX /* of `drop`: all from now on, until it is set to 0 */

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
    WIRE_KINDS,
};

struct wire_packet {
    uint64_t at_ns; /* when it left */
    uint32_t from, to, path, len;
    enum wire_kind kind;
    bool dropped;
    uint32_t num_parts, num_void;
    struct mrd_wire_head head;
    struct mrd_wire_part part; /* the first that is not void; its pointers lead into `data` */
    uint8_t *data;             /* owned */
};

/* Is it to be lost? Asked of what `drop` lets pass. */
typedef bool wiretap_rule(void *arg, const struct wire_packet *packet);

struct wiretap {
    struct sim_world *w;
    uint32_t drop[SIM_HOSTS_MAX][WIRE_KINDS]; /* so many of the next ones that the host sends */
    wiretap_rule *rule;
    void *arg;
    struct wire_packet *packets; /* owned, in the order sent */
    uint32_t num, cap;
};

struct wiretap *wiretap_open(struct sim_world *w);
void wiretap_close(struct wiretap *tap);

/* How many of the kind the host sent; of these, `dropped` ones only. */
uint32_t wiretap_count(const struct wiretap *tap, uint32_t from, enum wire_kind kind);
uint32_t wiretap_count_dropped(const struct wiretap *tap, uint32_t from, enum wire_kind kind);
/* The first such packet at or after index `start`; none fails the test. */
const struct wire_packet *wiretap_find(const struct wiretap *tap, uint32_t start, uint32_t from,
                                       enum wire_kind kind);
/* Does it report the PSN of the other side as acked? */
bool wire_packet_acks(const struct wire_packet *packet, uint32_t psn);
/* When the host first sent a packet that got through and reports `psn` acked; UINT64_MAX: never. */
uint64_t wiretap_acked_ns(const struct wiretap *tap, uint32_t from, uint32_t psn);
/* Deliver it once more, a microsecond from now. */
void wiretap_replay(struct wiretap *tap, const struct wire_packet *packet);

#endif
