/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stranger who speaks the wire format: no host of the simulation, no engine. It sends from
 * addresses of its own, from those of hosts, and from those of nobody; it hears what hosts send to
 * its own, and sees what honest hosts send each other.
 *
 * stranger_create(); stranger_watch_all(), or stranger_watch() from a test's own tap, so that it has
 * packets to send again; then either
 *   - stranger_act() for one packet of a kind, from values that it guesses or was told; or
 *     stranger_send() for a packet that the test makes itself (forge.h), with stranger_told() for
 *     what a host told it; or
 *   - stranger_start() and stranger_go(), again and again: packets of all kinds at a rate, up to a
 *     budget.
 * stranger_destroy() before the simulation is destroyed.
 *
 * It makes packets with the encoders of core/wire.h only, and takes over what it was told field by
 * field. What it knows of other hosts is what they told it at its own addresses: nothing that it
 * saw is ever put into another packet. Packets that it saw leave again as they were. (Who sees a
 * host's packets and can send from that host's address is that host, where nothing is sealed.)
 */
#ifndef MRD_TESTS_SUPPORT_STRANGER_H
#define MRD_TESTS_SUPPORT_STRANGER_H

#include "core/rng.h"
#include "tests/support/forge.h"
#include "transport/movers/sim/sim_address.h"

enum {
    STRANGER_OWN = 8,       /* addresses of its own */
    STRANGER_TOLD_MAX = 8,  /* packets of each host that it remembers */
    STRANGER_KEPT_MAX = 64, /* first contacts that it remembers; and as many other packets */
    STRANGER_MESSAGE_MOST = 64,
};

/* Kinds of packets. "As host A": from A's address, as if A sent it. */
enum stranger_kind {
    STRANGER_FIRST = 0, /* first contact from an address whose answers it does not get */
    STRANGER_ASK,       /* a question from an own address: what is told in the answer? */
    STRANGER_GO_ON,     /* a peer of its own, which does what it was told: cookies, requests */
    STRANGER_REPLAY,    /* a packet that it saw, from where that came */
    STRANGER_MOVED,     /* a packet that it saw, from elsewhere */
    /* As host A, with values that it guesses, or that the two hosts told it about themselves. */
    STRANGER_TAKE, /* a first contact */
    STRANGER_DATA,
    STRANGER_ACK,
    STRANGER_RESET,
    STRANGER_CHALLENGE,
    STRANGER_BUSY,
    STRANGER_GARBAGE,
    STRANGER_KINDS
};

/* What a host sent to an own address of the stranger. */
struct stranger_told {
    uint32_t own;              /* number of the address */
    struct mrd_wire_head head; /* of any type; all zero: nothing yet */
    uint32_t live_epoch;       /* of an ACK or RESET; else 0 */
    uint64_t at_ns;
};

/* A packet that it saw. */
struct stranger_kept {
    struct mrd_addr from, to;
    uint32_t len, head_len;
    uint8_t *data; /* owned */
};

/* A life of its own at one of its addresses. */
struct stranger_own {
    struct mrd_addr addr;
    struct mrd_wire_head head; /* what all its packets there have in common */
    uint32_t psn;              /* the next one */
};

struct stranger_plan {
    uint64_t budget;    /* packets */
    uint64_t period_ns; /* mean time between bursts */
    uint32_t burst;     /* packets at a time, at most; 0: 1 */
    uint32_t weight[STRANGER_KINDS];
    /*
     * Turns `part` into one that a queue pair of the host would accept from anybody who may speak to
     * it; false: there is none. NULL: it never knows.
     */
    bool (*aim)(void *arg, uint32_t host, struct mrd_wire_part *part);
    void *arg;
};

struct stranger {
    struct mrd_sim *sim;
    uint32_t hosts;
    struct mrd_rng rng;
    struct stranger_plan plan;
    uint64_t next_ns; /* when stranger_go() has something to do; UINT64_MAX: never */
    struct stranger_own own[STRANGER_OWN];
    uint32_t num_nobodies; /* addresses of nobody that it has used */
    struct stranger_told told[SIM_HOSTS_MAX][STRANGER_TOLD_MAX];
    uint32_t num_told[SIM_HOSTS_MAX]; /* all of them */
    struct stranger_kept first[STRANGER_KEPT_MAX], other[STRANGER_KEPT_MAX];
    uint32_t num_first, num_other; /* all of them: rings */
    uint64_t sent[STRANGER_KINDS], sent_packets, sent_bytes;
    /* What hosts sent to its own addresses, and to those of nobody. */
    uint64_t told_packets, told_bytes, nobody_packets, nobody_bytes;
    bool taps;
    bool cut; /* links are cut: it hears and repeats nothing, which would get around the cut */
};

/* For a simulation of so many hosts, from a seed. */
struct stranger *stranger_create(struct mrd_sim *sim, uint32_t hosts, uint64_t seed);
void stranger_destroy(struct stranger *st);

/* Sets the simulation's tap to one that shows it every packet. */
void stranger_watch_all(struct stranger *st);
/* Shows it a packet. */
void stranger_watch(struct stranger *st, const struct mrd_sim_datagram *d);

/* ------------------------------------------------------------------------------------- by itself */

/* All kinds alike. */
void stranger_all_kinds(struct stranger_plan *plan);
void stranger_start(struct stranger *st, const struct stranger_plan *plan);
/* Sends what is due at the present virtual time. Call it when st->next_ns has come, or later. */
void stranger_go(struct stranger *st);

/* ------------------------------------------------------------------------------------- by a test */

/* An address where the stranger hears the answers: alone, or on the same machine as a host. */
struct mrd_addr stranger_address(uint32_t own);
struct mrd_addr stranger_beside(uint32_t host);
/* An address of nobody. Its packets come from there, and what is sent there is lost. */
struct mrd_addr stranger_nobody(uint32_t number);
/* Sends a packet to a host, which has it one microsecond later. */
void stranger_send(struct stranger *st, const struct mrd_addr *from, uint32_t to, const void *data,
                   uint32_t len);
/* The same to any address. 0, or -EINVAL if no host has it. */
int stranger_send_to(struct stranger *st, const struct mrd_addr *from, const struct mrd_addr *to,
                     const void *data, uint32_t len);
/*
 * Sends a packet of that kind to host `to`, as host `as` where the kind needs one. false: it cannot,
 * since it has seen or heard nothing yet.
 */
bool stranger_act(struct stranger *st, enum stranger_kind kind, uint32_t to, uint32_t as);
/* What the host told it, from the last one (`back` 0) backwards; NULL: not so much. */
const struct stranger_told *stranger_told(const struct stranger *st, uint32_t host, uint32_t back);
/* An empty first contact from that own address to a host; it has an answer after a round trip. */
void stranger_hello(struct stranger *st, uint32_t own, uint32_t to);
const char *stranger_kind_name(enum stranger_kind kind);

#endif
