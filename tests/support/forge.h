/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records, loses, alters and forges the packets of a simulated world.
 *
 * forge_begin() makes a world with a tape. The tape records every datagram, drops those of a cut
 * direction, and lets `edit` change the others. forge_find() reads the tape. forge_as() makes a
 * header that continues a host's space; forge_data(), forge_ack() and forge_bare() make packets of
 * headers; forge_inject() delivers them. forge_look() before and forge_expect() after a packet
 * check that it changed nothing but the named counters.
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

/* What a packet could change of a host. */
struct forge_state {
    struct mrd_counter counters[FORGE_COUNTERS_MAX];
    int num_counters;
    uint32_t memory; /* hash of the arena */
    uint32_t completions, events;
};

FIXTURE(forge_tape)
{
    struct sim_world *w;
    struct forge_packet *packets; /* in the order sent, dropped ones included; owned */
    uint32_t num, cap;
    bool cut[SIM_HOSTS_MAX][SIM_HOSTS_MAX]; /* [from][to]: drop all */
    /* May change or drop a datagram; NULL: none. The tape holds the datagram as it was before. */
    enum mrd_sim_verdict (*edit)(void *arg, struct mrd_sim_datagram *datagram);
    void *arg;
    struct forge_state before[SIM_HOSTS_MAX]; /* by forge_look() */
};

/* Makes a sim_fabric_world() with a tape; forge_end() takes the tape off and destroys the world. */
struct sim_world *forge_begin(struct forge_tape *tape, const struct sim_options *options);
void forge_end(struct forge_tape *tape);
/* Sends one small message, which must succeed. */
void forge_exchange(struct sim_world *w, uint32_t from, uint32_t to);
/* One from a to b, and then one back. */
void forge_exchange_both(struct sim_world *w, uint32_t a, uint32_t b);
/* Three hosts: 0 and 1 have exchanged messages, 2 has not. Host 1 has a receive for no message. */
struct sim_world *forge_acquainted(struct forge_tape *tape);
/* Posts a receive that only a message which is executed twice would take. Returns its index. */
uint32_t forge_bait(struct sim_world *w, uint32_t host);
/* Asserts that the message failed because its peer was unreachable, or had forgotten the sender. */
void forge_expect_failed(const struct sim_world *w, uint32_t message);
/* Drops everything between two hosts, both ways, or stops doing so. */
void forge_cut(struct forge_tape *tape, uint32_t a, uint32_t b, bool cut);

/* Number of packets from -> to of that type on the tape. */
uint32_t forge_count(const struct forge_tape *tape, uint32_t from, uint32_t to, uint8_t type);
/* The packet number `index` of these; -1: the last. Fails the test if there is none. */
const struct forge_packet *forge_find(const struct forge_tape *tape, uint32_t from, uint32_t to,
                                      uint8_t type, int index);
struct mrd_wire_head forge_head(const struct forge_packet *packet);
/* The first part of a DATA packet; false: it has none. */
bool forge_part(const struct forge_packet *packet, struct mrd_wire_part *part);

/* A header for DATA in `from`'s last space to `to`: the next PSN, no flags, `to`'s incarnation. */
struct mrd_wire_head forge_as(const struct forge_tape *tape, uint32_t from, uint32_t to);
/* A SEND part that QP 0 of `to` would accept. */
struct mrd_wire_part forge_send_part(const struct sim_world *w, uint32_t to, uint16_t len);

/*
 * Each writes a packet with correct checks to buf[FORGE_BYTES_MAX], and returns its length in
 * bytes. `part` may be NULL.
 */
uint32_t forge_data(uint8_t *buf, const struct mrd_wire_head *head,
                    const struct mrd_wire_part *part, const uint8_t *payload);
uint32_t forge_ack(uint8_t *buf, const struct mrd_wire_head *head, const struct mrd_wire_ack *ack);
uint32_t forge_bare(uint8_t *buf, const struct mrd_wire_head *head); /* reset, challenge */
/* Computes the header's check anew, after a change of the header's bytes. */
void forge_reseal(uint8_t *data);

/* Fills buf with random bytes. */
void forge_garbage(struct mrd_rng *rng, uint8_t *buf, uint32_t len);
/* Number of packets that a host dropped because it could not parse them. */
uint64_t forge_drops(struct sim_world *w, uint32_t host);

/* Delivers a packet at the present virtual time, so as soon as time moves. */
void forge_inject(struct sim_world *w, uint32_t from, uint32_t to, const void *data, uint32_t len);
/* A DATA packet whose payload is all zeroes but for the first byte. */
void forge_send(struct sim_world *w, uint32_t from, uint32_t to, const struct mrd_wire_head *head,
                const struct mrd_wire_part *part);
void forge_replay(struct sim_world *w, const struct forge_packet *packet);

struct forge_state forge_state(struct sim_world *w, uint32_t host);
/* Keeps the host's state. */
void forge_look(struct forge_tape *tape, uint32_t host);
/*
 * Fails the test unless these counters rose by so much since then, and nothing else changed:
 * forge_expect(tape, HOST_1, "rx_duplicates 2, rx_drop_reset %u", num). Counters of acks and bytes
 * sent may rise: duplicates are acked.
 */
void forge_expect(struct forge_tape *tape, uint32_t host, const char *rises, ...)
    __attribute__((format(printf, 3, 4)));

#endif
