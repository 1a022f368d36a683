/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered mode: what a completion says.
 *
 * One flow of up to three messages of one packet. The target hands them out in order, and refuses
 * what has no receive (RNR), what is wrong in itself, and what comes to a queue pair in error. The
 * sender may cancel, or use up its retries: then an ABORT takes the message's place. Either side
 * may give the other one up. A packet is executed once, at any time after it was sent; acks and
 * refusals arrive at any later time.
 */
#ifndef MRD_TESTS_MODEL_ORDERED_H
#define MRD_TESTS_MODEL_ORDERED_H

#include "tests/model/search.h"

enum { MSGS = 3 };

enum phase {
    FRESH,
    SENDING,
    REFUSED,  /* until its packet is acked */
    WAIT,     /* for the RNR timer */
    ABORTING, /* until its packet and its ABORT are acked */
    GOOD,     /* acked; completes after all earlier ones */
    WRONG,    /* failed; likewise */
    SUCCESS,
    FAILED,
};

enum packet {
    NONE,
    SENT,
    HELD,  /* received and refused; the refusal is on its way */
    TOLD,  /* the sender knows the refusal, its ack is on its way */
    TAKEN, /* received; an ack is on its way */
    ACKED,
};

enum refusal { NO_REFUSAL, RNR, HARD, QPN };

enum place {
    NEW,
    RESERVED, /* a later one came: this one's receive is kept */
    FULL,     /* it is here and waits for earlier ones */
    DELIVERED,
    GONE,    /* it will not come: its place is free */
    DROPPED, /* it went with the flow's record */
};

struct msg {
    uint8_t phase, retries;
    uint8_t data, abort;         /* packets */
    uint8_t data_why, abort_why; /* refusals */
    uint8_t place;               /* at the target */
    uint8_t bound;               /* has a receive */
};

struct state {
    struct msg msg[MSGS];
    uint8_t free, to_post; /* receives */
    uint8_t dead_qp;       /* the target's is in error */
    uint8_t dead_flow;     /* the sender knows */
    uint8_t over;          /* the target gave the sender up: its space is over */
    uint8_t gave_up;       /* the sender gave the target up */
    uint8_t cancels, deaths, give_ups;
};

struct rules {
    uint8_t msgs;
    uint8_t depth;   /* the application keeps at most so many receives posted */
    uint8_t cancels; /* faults, at most so many */
    uint8_t deaths;
    uint8_t give_ups;
    uint8_t retries; /* after RNR; 0: for ever */
    uint8_t hard;    /* number + 1 of a message that is wrong in itself */
    uint8_t write;   /* number + 1 of a message that takes no receive */
    /* Holes. */
    bool success_at_ack;    /* acked is SUCCESS */
    bool order_only;        /* a later one completes after earlier ones, whatever became of them */
    bool acked_only;        /* a dead queue pair fails only what was acked when its refusal came */
    bool abort_acked;       /* an ABORT at a queue pair in error is acked, not refused */
    bool no_rnr_abort;      /* giving up after RNR sends no ABORT */
    bool hard_leaves_place; /* a hard refusal does not take the place in the order */
    bool naive_binding;     /* the message that came takes the first receive */
    bool no_silence_probe;
};

bool ordered_ended(const struct msg *m);
/* What follows at the sender. */
void ordered_settle(const struct rules *r, struct state *s);
/* A refusal says that the queue pair is gone: nothing later can have been delivered. */
void ordered_flow_dies(const struct rules *r, struct state *s, unsigned from);
/* The sender's space is over: all that is not completed fails. */
void ordered_flush(const struct rules *r, struct state *s);
/* The record of the flow goes, with all that waits in it. */
void ordered_drop_record(const struct rules *r, struct state *s);
const char *ordered_arrive(const struct rules *r, struct state *s, unsigned i);
const char *ordered_arrive_abort(const struct rules *r, struct state *s, unsigned i);
void ordered_give_up_message(struct msg *m);
/* The sender hears the refusal of message i's packet. */
void ordered_hear(const struct rules *r, struct state *s, unsigned i);

#endif
