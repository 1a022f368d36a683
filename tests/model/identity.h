/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who: lives, spaces, first contact, challenges, resets, tombstones, restarts.
 *
 * Two contexts, A and B, with messages of one or two packets. A network that loses, copies, delays
 * and reorders; a packet lives PACKET_LIFE ticks, but for one that an observer records, to send it
 * again whenever it likes. Time is in ticks; ages saturate where nothing is compared any more, so
 * runs may be of any length. A crash is a new life at the same address. "Stopped" needs no word of
 * its own: whoever takes no step is.
 *
 * A life is known by its number: each of the two has one address, so what a life is called towards
 * the other is one name. (Names of several addresses are in model_move.c.)
 *
 * PSN 0 of a space is its empty packet: hello and silence probe. Messages have the others.
 */
#ifndef MRD_TESTS_MODEL_IDENTITY_H
#define MRD_TESTS_MODEL_IDENTITY_H

#include "tests/model/search.h"

/* In ticks. Their relations are those of limits.h. */
enum {
    PACKET_LIFE = 1,
    FIRST_CONTACT_LIFE = 2,
    IDLE_LIFE = 1,
    COOKIE_LIFE = 2, /* less than any receive state's */
};

/* The packets on their way, and behind them the one that was recorded. */
enum { MSGS = 3, NET_MAX = 4, TAPE = NET_MAX, PACKETS = NET_MAX + 1 };

enum { LIVES_MAX = 3, LIVE_NONE = 15 };

enum type { NO_PACKET, DATA, ACK, RESET, CHALLENGE, BUSY };

enum rx_state { RX_NONE, RX_HELD, RX_TOMB };

enum result { UNPOSTED, UNDER_WAY, SUCCESS, FAILED, CRASHED };

struct packet {
    uint8_t type, from;
    uint8_t src, dst; /* incarnations; 0: not known */
    uint8_t epoch;
    uint8_t first_contact;
    uint8_t cookie, cookie_age; /* the life that it replaces + 1 */
    uint8_t forgotten;          /* DATA: its sender holds no space of the receiver */
    uint8_t stamp;              /* DATA with `forgotten`, ACK: its sender's clock */
    uint8_t psn, msg;           /* DATA; msg + 1, or empty */
    uint8_t bits;               /* ACK: PSNs */
    uint8_t live;               /* ACK, RESET: spaces of its sender below are over */
    uint8_t after;              /* DATA: as in its sender's send state */
    uint8_t age;
};

struct node {
    uint8_t up, inc, epoch_next;
    uint8_t clock; /* how often it took up a space of the peer's or gave one up */
    /* Send state. */
    uint8_t tx, epoch, bound, acked, cookie, cookie_age, tx_age, idle, psn_next;
    uint8_t hello; /* the first contact is empty: no data before an answer */
    uint8_t probe; /* time since an empty packet was sent that nothing answered, + 1 */
    uint8_t told;  /* newest stamp of an ack */
    uint8_t over;  /* the peer gave this space up */
    uint8_t after; /* this epoch began after the node gave up the peer's space */
    /* Receive state. */
    uint8_t rx, rx_inc, rx_epoch, rx_bits, silence;
    uint8_t newest; /* life of the peer that a message was executed of */
    uint8_t full;   /* strangers take all its room, until they go */
};

struct msg {
    uint8_t result, psn, age;
    uint8_t got;              /* its packets that the receive state holds */
    uint8_t begun[LIVES_MAX]; /* how often each life of the target took a receive for it */
    uint8_t done;             /* lives that got all of it */
};

struct state {
    struct node node[2];
    struct msg msg[MSGS];
    struct packet net[PACKETS];
    uint8_t crashes[2], give_ups[2], records;
    uint8_t wrong;
    uint8_t no_room; /* within a step: an answer found the network full */
};

struct rules {
    uint8_t msgs;
    uint8_t from[MSGS], packets[MSGS];
    uint8_t net; /* packets in the network at a time */
    uint8_t crashes[2], give_ups[2];
    uint8_t patience[2]; /* how long a side waits for the other; 0: 2 */
    bool records;        /* an observer may record one packet; cookies have an end */
    bool late;           /* B is not there at first */
    bool full;           /* B has no room for A at first */
    bool repost;         /* the application posts again what failed */
    bool never_expires;  /* a silent receive state stays */
    bool punctual;       /* answers come in time: nothing grows too old */
    bool needless;       /* no message may fail */
    /* Holes. */
    bool ack_no_live;     /* an ACK does not tell the live epoch */
    bool bind_tomb;       /* a new send state binds to an incarnation that a tombstone remembers */
    bool no_hello;        /* data in every first contact */
    bool same_epoch;      /* data goes in the epoch of the hello */
    bool own_patience;    /* a receive state's life follows from its own side's patience */
    bool one_name;        /* all lives at an address have one name */
    bool no_challenge;    /* any first contact of an unknown life is taken */
    bool endless_cookie;  /* a cookie holds for ever */
    bool keep_flag;       /* first contact for ever */
    bool drop_on_reset;   /* a RESET also forgets the receive state */
    bool busy_renews;     /* whoever is turned away sends the same data in a new space */
    bool no_forgotten;    /* nobody says that it gave a space up */
    bool stale_forgotten; /* it counts also if an ack of that space is newer */
};

enum wrong {
    NOTHING,
    TWICE,
    TWO_LIVES,
    OLD_LIFE,
    FALSE_SUCCESS,
    NEEDLESS,
    STALE,
};

/* identity_net.c */
/* For labels; the text lives until the next call. */
const char *identity_text_of(const struct packet *p);
bool identity_put(const struct rules *r, struct state *s, struct packet p);
/* Epochs and clocks of a life only matter by their order: they are numbered anew. */
struct state *identity_tidy(struct state *s);
void identity_lose(struct state *s, unsigned i);

/* identity_node.c */
uint8_t identity_patience_of(const struct rules *r, unsigned x);
/* The silence after which the receive state of x may go. */
uint8_t identity_receive_life(const struct rules *r, unsigned x);
bool identity_under_way(const struct rules *r, const struct state *s, unsigned x);
bool identity_half_here(const struct rules *r, const struct state *s, unsigned x);
void identity_end_message(const struct rules *r, struct state *s, unsigned k, enum result result);
/* The space of x is over, and all that is under way in it fails. */
void identity_flush_tx(const struct rules *r, struct state *s, unsigned x);
/* The receive state of x goes; messages that are half here end. */
void identity_drop_rx(const struct rules *r, struct state *s, unsigned x, enum rx_state state);
void identity_make_tx(const struct rules *r, struct state *s, unsigned x);
bool identity_send_data(const struct rules *r, struct state *s, unsigned k, unsigned part);
bool identity_send_empty(const struct rules *r, struct state *s, unsigned x);
void identity_receive(const struct rules *r, struct state *s, const struct packet *p);

#endif
