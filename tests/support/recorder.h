/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A context without an engine, for tests of the simulator: it records the packets that its
 * host receives.
 *
 * recorder_pair_create(); recorder_send() or the mover's own ops; mrd_sim_run_until(); then
 * read host[1].arrivals.
 */
#ifndef MRD_TESTS_SUPPORT_RECORDER_H
#define MRD_TESTS_SUPPORT_RECORDER_H

#include "mrd/sim.h"
#include "transport/movers/sim/sim_host.h"

enum { ARRIVALS_MAX = 4096, PACKET_BYTES = 1000, WIRE_BYTES = PACKET_BYTES + 66, GBPS_NS = 8 };

struct arrival {
    uint64_t at_ns;
    uint64_t hash; /* of the bytes at `data`, without those placed */
    uint32_t len, from;
    struct mrd_addr source, to;
    uint8_t ecn, placed;
    uint8_t data[64]; /* the first bytes */
};

/* Receives everything, sends nothing by itself. */
struct recorder {
    struct mrd_sim *sim;
    struct mrd_backend *b;
    struct arrival arrivals[ARRIVALS_MAX];
    unsigned num_arrivals, turns;
    uint64_t deadline_ns; /* when to be called next, by the host's clock */
    uint64_t turn_at_ns;  /* virtual time of the last turn */
    uint64_t cookies[64];
    unsigned num_cookies;
    mrd_plan_fn *plan;
    void *plan_arg;
};

void recorder_open(struct recorder *r, struct mrd_sim *sim, uint32_t host);

/* Two hosts with a recorder each. */
struct recorder_pair {
    struct mrd_sim *sim;
    struct recorder host[2];
};

struct recorder_pair *recorder_pair_create(const struct mrd_sim_attr *attr);
/* Any number of hosts with a recorder each, and payloads that live as long as they. */
struct recorder_fabric {
    struct mrd_sim *sim;
    uint32_t num_hosts, num_sent;
    struct recorder *host; /* owned */
    uint8_t *payloads;     /* of what was sent, PACKET_BYTES each; owned */
};

struct recorder_fabric *recorder_fabric_create(const struct mrd_sim_attr *attr);
/*
 * Sends n packets of PACKET_BYTES at the rate of the sender's link, and lets time pass for that.
 * The payloads differ; the first two bytes are the number of packets sent before.
 */
void recorder_fabric_send(struct recorder_fabric *fabric, uint32_t from, uint32_t to, uint16_t path,
                          unsigned n);
/* The number of a link; fails the test if no link has that name. */
uint32_t recorder_link(const struct mrd_sim *sim, const char *name);
struct mrd_sim_stats recorder_link_stats(const struct mrd_sim *sim, const char *name);

/* Makes a packet without a header for host 1; `payload` stays the caller's. */
struct mrd_tx_packet packet_to_1(uint16_t path, const uint8_t *payload, uint32_t len);
/* Sends n packets of PACKET_BYTES from host 0 at once; the first byte of each is its number. */
void recorder_send(struct recorder_pair *pair, uint16_t path, unsigned n);
/* Runs until then; so many packets have come to host 1 by now. */
void recorder_expect(struct recorder_pair *pair, uint64_t at_ns, unsigned num_arrivals);
/* Counters of link `link` from host 0 to host 1; -1: of all links. */
struct mrd_sim_stats recorder_stats(struct recorder_pair *pair, int link);

#endif
