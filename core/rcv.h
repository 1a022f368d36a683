/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was received from a peer, and the acks that tell it.
 *
 * mrd_rcv_check() judges a PSN; mrd_rcv_add() takes it, or mrd_rcv_dup() notes a duplicate;
 * mrd_rcv_unhold() makes a refused PSN reportable once its refusal was acked; mrd_rcv_build() fills
 * an ack and starts the next interval.
 *
 * Two marks a PSN: received (never executed again) and held (received, but its refusal is not acked
 * yet, so an ack must not report it: a lost refusal would turn into a success).
 */
#ifndef MRD_CORE_RCV_H
#define MRD_CORE_RCV_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire.h"

struct mrd_rcv_path {
    uint16_t id;
    bool seen; /* since the last ack */
    bool used;
    uint16_t delay;       /* as it goes on the wire */
    uint16_t delay_after; /* serial of the ack before it, low half */
    uint32_t received, ce;
};

struct mrd_rcv {
    uint32_t mask;     /* tracker - 1 */
    uint32_t cum;      /* all below are received and reportable */
    uint32_t highest;  /* one past the highest received */
    uint32_t limit;    /* psn_limit as last told: beyond it nothing is taken */
    uint32_t num_held; /* refused PSNs whose refusal is not acked */
    uint32_t serial;   /* of the last ack */
    uint64_t received[MRD_TRACKER_MAX / 64], held[MRD_TRACKER_MAX / 64];

    uint32_t since_ack; /* packets since the last ack */
    uint64_t due_ns;    /* when the next ack must leave; MRD_NEVER: none owed */
    bool now;           /* it must leave at once */
    /* It waits for the current call to return, so that it can ride on an answer. */
    bool wait_for_reply;
    bool full;      /* only a full ack tells what is owed (duplicates, gaps, a new path's counts) */
    bool twice;     /* send the next one twice: the sender repeats itself on two paths */
    bool ce_unsaid; /* CE counts changed since the last full ack */

    bool echo_valid, echo_ce;
    uint32_t echo_psn, echo_stamp, echo_rx_stamp;
    uint16_t echo_path;
    uint64_t echo_ns;

    uint32_t dup[MRD_ACK_DUPS_MAX];
    uint8_t num_dups;
    uint16_t num_seen;
    struct mrd_rcv_path path[MRD_PATHS_MAX];
};

enum mrd_rcv_verdict { MRD_RCV_NEW, MRD_RCV_DUPLICATE, MRD_RCV_BEYOND };

void mrd_rcv_init(struct mrd_rcv *r, uint32_t tracker, uint32_t limit);
enum mrd_rcv_verdict mrd_rcv_check(const struct mrd_rcv *r, uint32_t psn);
/* Take a new PSN; with `held` it is not reported yet. */
void mrd_rcv_add(struct mrd_rcv *r, uint32_t psn, bool held);
void mrd_rcv_dup(struct mrd_rcv *r, uint32_t psn);
/* Its refusal was acked. false: it was not held. */
bool mrd_rcv_unhold(struct mrd_rcv *r, uint32_t psn);
/* Count a packet of a path, new or not. */
void mrd_rcv_count(struct mrd_rcv *r, const struct mrd_wire_head *head, bool ce);
/*
 * The next ack echoes it. New packets only: a late or replayed copy would tell an RTT that
 * nobody had.
 */
void mrd_rcv_echo(struct mrd_rcv *r, const struct mrd_wire_head *head, bool ce, uint32_t rx_stamp,
                  uint64_t now_ns);
/* May the ack owed ride as a block on a data packet? Else only a full one tells all. */
bool mrd_rcv_rides(const struct mrd_rcv *r);
/* The block's fields; what was owed counts as told. */
void mrd_rcv_ride(struct mrd_rcv *r, struct mrd_wire_head *head, uint32_t psn_limit,
                  uint64_t now_ns);
/*
 * An ack of at most `room` bytes, header included: paths that find no room are told by the
 * next one.
 */
void mrd_rcv_build(struct mrd_rcv *r, struct mrd_wire_ack *ack, uint32_t psn_limit, uint32_t room,
                   uint64_t now_ns);

#endif
