/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a stream: how much may be sent, and in which order what came is handed on.
 *
 * Credit is counted in messages, as each takes a receive buffer whatever its length. It is absolute
 * and wraps at 2^32: a credit that comes late or twice changes nothing. What a sender does not use
 * can be taken back: then a new round of credits begins.
 *
 * The sender: flow_tx_init(); flow_may_send(), flow_sent(); flow_credited(), flow_recalled().
 * The receiver: flow_rx_init(); flow_came() for each message; flow_next() for what is in order, and
 * flow_drained() when its bytes are handed on. Then flow_grow() and flow_tell(). Of one that is not
 * sent anything, flow_recall(), and flow_yielded() when it is answered.
 */
#ifndef FORWARD_FLOW_H
#define FORWARD_FLOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FLOW_WINDOW_MAX = 512, /* messages; a power of two */
    FLOW_FEW = 8,          /* slots that need no memory of their own; likewise */
};

struct flow_tx {
    uint32_t sent;    /* messages */
    uint32_t allowed; /* messages in all */
    uint32_t round;   /* of credits */
};

/* A message that came and waits for those before it. */
struct flow_slot {
    uint8_t *buffer; /* NULL: free */
    uint32_t len;
};

struct flow_rx {
    uint32_t drained; /* messages whose bytes are handed on */
    uint32_t came;    /* the number of the last one that came, and 1 */
    uint32_t told;    /* credit that the sender knows of */
    uint32_t window;  /* messages that the sender may be ahead of `drained` */
    uint32_t end;     /* messages in all; valid if has_end */
    bool has_end;
    bool recalled;          /* credit; the answer is to come */
    bool starved;           /* the sender used its last credit since the window grew */
    uint32_t round;         /* of credits */
    uint32_t keep;          /* the window to be when the answer has come */
    uint32_t slots;         /* a power of two, at least as many as the window */
    struct flow_slot *more; /* NULL: `few` are enough */
    struct flow_slot few[FLOW_FEW];
};

void flow_tx_init(struct flow_tx *tx, uint32_t credit);
/* Returns how many messages may be sent now. */
uint32_t flow_may_send(const struct flow_tx *tx);
/* Returns the number of the message. */
uint32_t flow_sent(struct flow_tx *tx);
/* False: a credit of another round, that goes back, or beyond the largest window, is ignored. */
bool flow_credited(struct flow_tx *tx, uint32_t round, uint32_t allowed);
/* Only `allowed` are, but for what is sent; tx->allowed is to be told. False: it is no next round. */
bool flow_recalled(struct flow_tx *tx, uint32_t round, uint32_t allowed);

/* `window`: 1 to FLOW_FEW; it is the first credit, too. */
void flow_rx_init(struct flow_rx *rx, uint32_t window);
/* Whoever calls it has taken the buffers of messages that were not handed on: flow_take(). */
void flow_rx_fini(struct flow_rx *rx);
/* Takes out any message that was not handed on, and returns its buffer; NULL: there is none. */
uint8_t *flow_take(struct flow_rx *rx);
/*
 * Takes the buffer over. `last`: the sender had no more credit. False: no such message was allowed, or it
 * came already.
 */
bool flow_came(struct flow_rx *rx, uint32_t seq, uint8_t *buffer, uint32_t len, bool last);
/* The sender ends after `end` messages. False: that cannot be. */
bool flow_end(struct flow_rx *rx, uint32_t end);
/* The same for a sender that breaks off, perhaps behind the end that it told of. */
bool flow_cut(struct flow_rx *rx, uint32_t end);
/* The `ahead`th oldest message that was not handed on; NULL: it, or one before it, is missing. */
struct flow_slot *flow_next(struct flow_rx *rx, uint32_t ahead);
/* The oldest one's bytes are handed on; its buffer is the caller's again. */
void flow_drained(struct flow_rx *rx);
bool flow_is_over(const struct flow_rx *rx);
/*
 * The window may double, up to `most`, when the sender had used all that it was told of, and all that came
 * is handed on. Returns by how much it would grow; flow_grow() does it. False: there is no memory.
 */
uint32_t flow_wants(const struct flow_rx *rx, uint32_t most);
bool flow_grow(struct flow_rx *rx, uint32_t messages);
/* Is it time to tell the sender of more credit? Then returns it in *credit; it is of rx->round. */
bool flow_tell(struct flow_rx *rx, uint32_t *credit);
/* The same, whether it is time or not. False: what was recalled is to come first, or all has come. */
bool flow_answer(struct flow_rx *rx, uint32_t *credit);
/*
 * Takes credit back until the window is `keep`. False: there is nothing to be had. Else *credit is to
 * be told, and rx->round.
 */
bool flow_recall(struct flow_rx *rx, uint32_t keep, uint32_t *credit);
/* The answer. Returns by how many messages the window is smaller; 0, too, for one that cannot be. */
uint32_t flow_yielded(struct flow_rx *rx, uint32_t round, uint32_t allowed);

#endif
