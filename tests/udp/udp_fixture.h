/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two UDP movers on loopback, packets with known bytes, and a fake of the engine's plan.
 *
 * TEST_F(movers, name); fixture_open() opens further movers, to be closed by fixture_close().
 * fixture_send() then fixture_receive() moves packets, which
 * fixture_check() compares.
 */
#ifndef MRD_TESTS_UDP_FIXTURE_H
#define MRD_TESTS_UDP_FIXTURE_H

#include "tests/kit/kit.h"
#include "transport/movers/udp/udp_state.h"

enum {
    FIXTURE_PACKETS_MAX = 512,
    FIXTURE_PACKET_BYTES = 8400,
    FIXTURE_HEAD_BYTES = 48, /* of each packet; a packet begins with its number and length */
};

/* A packet as it was received. */
struct fixture_packet {
    uint32_t number; /* which it says to be */
    uint32_t len;
    bool placed;
    struct mrd_addr from, to;
    uint8_t ecn;
    uint8_t bytes[FIXTURE_PACKET_BYTES];
};

/* The engine's part in straight receive. */
struct fixture_plan {
    unsigned segments_max;                     /* plan no more segments than this; 0: stage all */
    unsigned pieces;                           /* pieces of each payload, 0: 1 */
    int wrong_segment;                         /* plan one byte too few for it; -1: none */
    unsigned calls;                            /* how often it was asked */
    unsigned planned;                          /* segments of the plan in force */
    unsigned segments, segment_len, total_len; /* what it was told last */
    struct mrd_addr from;
    uint8_t head[MRD_HEAD_PEEK_BYTES];
    unsigned head_len;
    uint8_t places[MRD_PLAN_SEGMENTS_MAX][FIXTURE_PACKET_BYTES];
};

FIXTURE(movers)
{
    struct mrd_backend *a, *b;  /* dual-stack, any address */
    struct mrd_addr to_a, to_b; /* over 127.0.0.1 */
    struct fixture_plan plan;
    unsigned num_sent;
    unsigned num_received;
    struct fixture_packet received[FIXTURE_PACKETS_MAX];
};

/* As the fixture's setup and teardown do. */
void fixture_open_both(struct movers *f);
void fixture_close_both(struct movers *f);

struct mrd_backend *fixture_open(const struct mrd_context_attr *attr, unsigned without);
void fixture_close(struct mrd_backend *b);
struct mrd_addr fixture_addr(const char *ip, const struct mrd_backend *b);

/* A packet whose bytes follow from number and len. Its payload is in num_iov pieces behind
 * FIXTURE_HEAD_BYTES. */
struct mrd_tx_packet fixture_packet(uint32_t number, uint32_t len, const struct mrd_addr *to);
/* Numbered on from the last call: `n` packets of lens[], all taken. */
void fixture_send(struct movers *f, struct mrd_backend *from, const struct mrd_addr *to,
                  unsigned path, const uint32_t *lens, unsigned n);
void fixture_send_equal(struct movers *f, struct mrd_backend *from, const struct mrd_addr *to,
                        unsigned path, uint32_t len, unsigned n);

/* One rx_burst() of at most `max` packets, appended to received[]: how many. */
unsigned fixture_burst(struct movers *f, struct mrd_backend *b, unsigned max, bool planned,
                       bool *more);
/* Receive until `want` packets are there, or until none came for 300 ms. */
void fixture_receive(struct movers *f, struct mrd_backend *b, unsigned want, bool planned);
/* received[] is packets 0 .. n - 1 in this order, each with its bytes. */
void fixture_check(const struct movers *f, unsigned n);
/* Both of these. */
void fixture_arrive(struct movers *f, struct mrd_backend *b, unsigned n, bool planned);
bool fixture_bytes_right(const struct fixture_packet *p);

#endif
