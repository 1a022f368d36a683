/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading, losing, altering and forging packets of a simulated world.
 *
 * forge_begin() makes a world with a tape: it records every datagram, loses those of a cut
 * direction, and lets `edit` look first. forge_find() reads the tape. forge_as() is a header that
 * goes on in a host's space; forge_data(), forge_ack() and forge_bare() make packets of headers;
 * forge_inject() delivers them. forge_look() before and forge_expect() after say what a packet
 * changed: nothing but the counters named.
 */
#ifndef MRD_TESTS_SUPPORT_FORGE_H
#define MRD_TESTS_SUPPORT_FORGE_H

#include "core/packet.h"
#include "core/rng.h"
#include "core/wire.h"
#include "tests/support/world.h"

enum { FORGE_BYTES_MAX = MRD_TX_HEAD_BYTES, FORGE_COUNTERS_MAX = 128 };

struct forge_packet {
    uint32_t from, to, len;
    uint64_t at_ns;
    uint8_t *data; /* owned by the tape */
};

struct forge_tape {
    struct sim_world *w;
    struct forge_packet *packets; /* in the order sent, lost ones too */
    uint32_t num, cap;
    bool cut[SIM_HOSTS_MAX][SIM_HOSTS_MAX]; /* [from][to]: lose all */
    /* May change the datagram or drop it; NULL: none. The tape holds what it was before. */
    enum mrd_sim_verdict (*edit)(void *arg, struct mrd_sim_datagram *datagram);
    void *arg;
};

/* A world with a tape; forge_end() takes the tape off and destroys the world. */
struct sim_world *forge_begin(struct forge_tape *tape, const struct sim_options *options);
void forge_end(struct forge_tape *tape);
/* One small message, which must succeed. */
void forge_exchange(struct sim_world *w, uint32_t from, uint32_t to);
/* Hosts 0 and 1 know each other, host 2 nobody; host 1 has a receive that nothing may take. */
struct sim_world *forge_acquainted(struct forge_tape *tape);
/* A receive that nothing but a message executed twice would take; its index. */
uint32_t forge_bait(struct sim_world *w, uint32_t host);
/* The message ended because its peer could not be reached, or forgot it. */
void forge_expect_failed(const struct sim_world *w, uint32_t message);
/* Lose all between two hosts, both ways, or stop doing so. */
void forge_cut(struct forge_tape *tape, uint32_t a, uint32_t b, bool cut);

/* Packets from -> to of that type on the tape. */
uint32_t forge_count(const struct forge_tape *tape, uint32_t from, uint32_t to, uint8_t type);
/* The index'th of them; -1: the last. There must be one. */
const struct forge_packet *forge_find(const struct forge_tape *tape, uint32_t from, uint32_t to,
                                      uint8_t type, int index);
struct mrd_wire_head forge_head(const struct forge_packet *packet);
/* The first part of a DATA packet; false: it has none. */
bool forge_part(const struct forge_packet *packet, struct mrd_wire_part *part);

/*
 * DATA of the space that `from` last used to `to`, with the PSN that follows, no flags, and
 * `to`'s incarnation.
 */
struct mrd_wire_head forge_as(const struct forge_tape *tape, uint32_t from, uint32_t to);
/* The SEND part that QP 0 of `to` would take. */
struct mrd_wire_part forge_send_part(const struct sim_world *w, uint32_t to, uint16_t len);

/*
 * Each fills buf, of FORGE_BYTES_MAX, and returns the packet's length. Checks hold. part: NULL
 * for none.
 */
uint32_t forge_data(uint8_t *buf, const struct mrd_wire_head *head,
                    const struct mrd_wire_part *part, const uint8_t *payload);
uint32_t forge_ack(uint8_t *buf, const struct mrd_wire_head *head, const struct mrd_wire_ack *ack);
uint32_t forge_bare(uint8_t *buf, const struct mrd_wire_head *head); /* reset, challenge */
/* The header's check anew after a change of its bytes. */
void forge_reseal(uint8_t *data);

/* Random bytes. */
void forge_garbage(struct mrd_rng *rng, uint8_t *buf, uint32_t len);
/* Packets of a host that could not even be read. */
uint64_t forge_drops(struct sim_world *w, uint32_t host);

/* Arrives at once: as soon as time moves. */
void forge_inject(struct sim_world *w, uint32_t from, uint32_t to, const void *data, uint32_t len);
void forge_replay(struct sim_world *w, const struct forge_packet *packet);

/* All of a host that a packet could change. */
struct forge_state {
    struct mrd_counter counters[FORGE_COUNTERS_MAX];
    int num_counters;
    uint32_t memory; /* hash of the arena */
    uint32_t completions, events;
};

struct forge_rise {
    const char *counter; /* NULL: the end */
    uint64_t by;
};

void forge_look(struct sim_world *w, uint32_t host, struct forge_state *state);
/*
 * Fails the test unless these counters rose by so much since `before`, and nothing else changed.
 * Acks and bytes sent do not count: a duplicate is acked.
 */
void forge_expect(struct sim_world *w, uint32_t host, const struct forge_state *before,
                  const struct forge_rise *rises);

#endif
