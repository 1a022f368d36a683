/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who: lives, spaces, first contact, challenges, resets, tombstones, restarts.
 *
 * Two contexts, A and B, with messages of one or two packets. A network that loses, copies, delays and reorders; a
 * packet lives PACKET_LIFE ticks. Time is in ticks; ages saturate where nothing is compared any more, so runs may be
 * of any length. A crash is a new life at the same address. "Stopped" needs no word of its own: whoever takes no step is.
 *
 * PSN 0 of a space is its empty packet: hello and silence probe. Messages have the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/model/mc.h"

/* In ticks. Their relations are those of limits.h. */
enum {
    PACKET_LIFE = 1,
    FIRST_CONTACT_LIFE = 2,
    IDLE_LIFE = 1,
    CHALLENGED = FIRST_CONTACT_LIFE + PACKET_LIFE, /* so long after open */
    AGE_MAX = FIRST_CONTACT_LIFE + 2 * PACKET_LIFE + 1,
};

enum { MSGS = 3, NET_MAX = 4, LIVES_MAX = 3, LIVE_NONE = 15 };

enum type { NO_PACKET, DATA, ACK, RESET, CHALLENGE };

enum rx_state { RX_NONE, RX_HELD, RX_TOMB };

enum result { UNPOSTED, UNDER_WAY, SUCCESS, FAILED, CRASHED };

struct packet {
    uint8_t type, from;
    uint8_t src, dst; /* incarnations; 0: not known */
    uint8_t epoch;
    uint8_t first_contact, cookie;
    uint8_t psn, msg; /* DATA; msg + 1, or empty */
    uint8_t bits;     /* ACK: PSNs */
    uint8_t live;     /* ACK, RESET: spaces of its sender below are over */
    uint8_t up;       /* CHALLENGE: time since open */
    uint8_t asked;    /* CHALLENGE: age of what it answers when that arrived */
    uint8_t age;
};

struct node {
    uint8_t up, inc, age, epoch_next;
    /* Send half. */
    uint8_t tx, epoch, bound, acked, cookie, tx_age, idle, psn_next;
    uint8_t hello; /* the first contact is empty: no data before an answer */
    uint8_t probe; /* time since an empty packet was sent that nothing answered, + 1 */
    /* Receive half. */
    uint8_t rx, rx_inc, rx_epoch, rx_bits, silence;
    uint8_t newest; /* life of the peer that a message was executed of */
};

struct msg {
    uint8_t result, psn, age;
    uint8_t got;              /* its packets that the receive half holds */
    uint8_t begun[LIVES_MAX]; /* how often each life of the target took a receive for it */
    uint8_t done;             /* lives that got all of it */
};

struct state {
    struct node node[2];
    struct msg msg[MSGS];
    struct packet net[NET_MAX];
    uint8_t crashes[2], give_ups[2];
    uint8_t wrong;
    uint8_t no_room; /* within a step: an answer found the network full */
};

struct rules {
    uint8_t msgs;
    uint8_t from[MSGS], packets[MSGS];
    uint8_t net; /* packets in the network at a time */
    uint8_t crashes[2], give_ups[2];
    uint8_t patience[2]; /* how long a side waits for the other; 0: 2 */
    bool young;          /* both have just opened */
    bool repost;         /* the application posts again what failed */
    bool never_expires;  /* a silent receive half stays */
    bool
        punctual; /* answers come in time: no first contact grows too old, and no message may fail */
    /* Holes. */
    bool ack_no_live;   /* an ACK does not tell the live epoch */
    bool bind_tomb;     /* a new send half binds to an incarnation that a tombstone remembers */
    bool no_hello;      /* data in every first contact */
    bool own_patience;  /* a receive half's life follows from its own side's patience */
    bool no_challenge;  /* a young context takes any first contact */
    bool no_up;         /* a challenge does not tell the time since open */
    bool keep_flag;     /* first contact for ever */
    bool drop_on_reset; /* a RESET also forgets the receive half */
};

enum wrong {
    NOTHING,
    TWICE,
    TWO_LIVES,
    OLD_LIFE,
    FALSE_SUCCESS,
    NEEDLESS,
};

static uint8_t patience_of(const struct rules *r, unsigned x)
{
    return r->patience[x] ? r->patience[x] : 2;
}

/* The silence after which the receive half of x may go. */
static uint8_t receive_life(const struct rules *r, unsigned x)
{
    uint8_t own = patience_of(r, x), other = patience_of(r, !x);
    uint8_t longer = own > other || r->own_patience ? own : other;

    return (uint8_t)(IDLE_LIFE + longer + 2 * PACKET_LIFE);
}

static void init(const void *rules, void *state)
{
    const struct rules *r = rules;
    struct state *s = state;

    for (unsigned x = 0; x < 2; x++) {
        struct node *n = &s->node[x];

        n->up = n->inc = n->epoch_next = 1;
        n->age = r->young ? 0 : AGE_MAX;
        s->crashes[x] = r->crashes[x];
        s->give_ups[x] = r->give_ups[x];
    }
}

/* ---------------------------------------------------------------------------------------- network */

/* Packets are kept sorted; the same packet again is the younger one. */
static bool put(const struct rules *r, struct state *s, struct packet p)
{
    unsigned n = 0, at;

    for (unsigned i = 0; i < NET_MAX && s->net[i].type; i++, n++) {
        struct packet same = s->net[i];

        same.age = p.age;
        if (!memcmp(&same, &p, sizeof(p))) {
            s->net[i].age = 0;
            return true;
        }
    }
    if (n == r->net) {
        s->no_room = 1;
        return false;
    }
    for (at = n; at && memcmp(&s->net[at - 1], &p, sizeof(p)) > 0; at--)
        s->net[at] = s->net[at - 1];
    s->net[at] = p;
    return true;
}

static void sort_net(struct state *s)
{
    for (unsigned i = 1; i < NET_MAX && s->net[i].type; i++)
        for (unsigned k = i; k && memcmp(&s->net[k - 1], &s->net[k], sizeof(s->net[k])) > 0; k--) {
            struct packet swap = s->net[k];

            s->net[k] = s->net[k - 1];
            s->net[k - 1] = swap;
        }
}

enum { EPOCHS_MAX = 2 * NET_MAX + 3 };

/* All mentions of epochs of one life. */
static unsigned mentions(struct state *s, unsigned x, unsigned inc, uint8_t **value)
{
    struct node *n = &s->node[x], *peer = &s->node[!x];
    unsigned num = 0;

    if (n->inc == inc && n->up) {
        value[num++] = &n->epoch_next;
        if (n->tx)
            value[num++] = &n->epoch;
    }
    if (peer->rx && peer->rx_inc == inc)
        value[num++] = &peer->rx_epoch;
    for (struct packet *p = s->net; p < s->net + NET_MAX && p->type; p++) {
        bool its = p->from == x && p->src == inc;

        if (its ? p->type == DATA : p->from != x && p->type != DATA && p->dst == inc)
            value[num++] = &p->epoch;
        if (its && p->live && p->live != LIVE_NONE)
            value[num++] = &p->live;
    }
    return num;
}

/* Epochs of a life only matter by their order: they are numbered anew. */
static struct state *tidy(struct state *s)
{
    uint8_t *value[EPOCHS_MAX];

    for (unsigned x = 0; x < 2; x++)
        for (unsigned inc = 1; inc <= s->node[x].inc; inc++) {
            unsigned num = mentions(s, x, inc, value), seen = 0;

            for (uint8_t rank = 1; seen < num; rank++) {
                uint8_t lowest = UINT8_MAX;

                for (unsigned i = seen; i < num; i++)
                    if (*value[i] < lowest)
                        lowest = *value[i];
                for (unsigned i = seen; i < num; i++)
                    if (*value[i] == lowest) {
                        uint8_t *swap = value[i];

                        *swap = rank;
                        value[i] = value[seen];
                        value[seen++] = swap;
                    }
            }
        }
    sort_net(s);
    return s;
}

static void lose(struct state *s, unsigned i)
{
    memmove(&s->net[i], &s->net[i + 1], (NET_MAX - 1 - i) * sizeof(s->net[0]));
    memset(&s->net[NET_MAX - 1], 0, sizeof(s->net[0]));
}

/* ---------------------------------------------------------------------------------------- halves */

static bool under_way(const struct rules *r, const struct state *s, unsigned x)
{
    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] == x && s->msg[k].result == UNDER_WAY)
            return true;
    return false;
}

static uint8_t all_of(const struct rules *r, unsigned k)
{
    return (uint8_t)((1 << r->packets[k]) - 1);
}

static bool half_here(const struct rules *r, const struct state *s, unsigned x)
{
    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] != x && s->msg[k].got && s->msg[k].got != all_of(r, k))
            return true;
    return false;
}

static void end_message(const struct rules *r, struct state *s, unsigned k, enum result result)
{
    struct msg *m = &s->msg[k];

    m->result = (uint8_t)result;
    m->psn = m->age = 0;
    if (r->punctual)
        s->wrong = NEEDLESS;
}

/* The space of x is over, and all that is under way in it fails. */
static void flush_tx(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] == x && s->msg[k].result == UNDER_WAY)
            end_message(r, s, k, FAILED);
    n->tx = n->epoch = n->bound = n->acked = n->cookie = n->tx_age = n->idle = n->psn_next = 0;
    n->hello = n->probe = 0;
}

/* The receive half of x goes; messages that are half here end. */
static void drop_rx(const struct rules *r, struct state *s, unsigned x, enum rx_state state)
{
    struct node *n = &s->node[x];

    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] != x)
            s->msg[k].got = 0;
    n->rx = (uint8_t)state;
    n->rx_bits = 0;
    if (state == RX_NONE)
        n->rx_inc = n->rx_epoch = n->silence = 0;
}

static void make_tx(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    if (n->tx && !under_way(r, s, x) && !n->probe && n->idle >= IDLE_LIFE)
        flush_tx(r, s, x);
    if (n->tx)
        return;
    n->tx = 1;
    n->epoch = n->epoch_next++;
    n->psn_next = 1;
    n->hello = n->age <= CHALLENGED && !r->no_hello;
    if (n->rx == RX_HELD || (n->rx == RX_TOMB && r->bind_tomb))
        n->bound = n->rx_inc;
}

static bool may_send_data(const struct node *n)
{
    return !n->hello || n->acked || n->cookie;
}

static struct packet data_packet(const struct rules *r, const struct state *s, unsigned x)
{
    const struct node *n = &s->node[x];
    struct packet p = {.type = DATA,
                       .from = (uint8_t)x,
                       .src = n->inc,
                       .dst = n->bound,
                       .epoch = n->epoch,
                       .cookie = n->cookie};

    p.first_contact = !n->acked && (n->tx_age <= FIRST_CONTACT_LIFE || r->keep_flag);
    return p;
}

static bool send_data(const struct rules *r, struct state *s, unsigned k, unsigned part)
{
    struct packet p = data_packet(r, s, r->from[k]);

    p.psn = (uint8_t)(s->msg[k].psn + part);
    p.msg = (uint8_t)(k + 1);
    return put(r, s, p);
}

static bool send_empty(const struct rules *r, struct state *s, unsigned x)
{
    return put(r, s, data_packet(r, s, x));
}

static uint8_t live_epoch(const struct node *n)
{
    return n->tx ? n->epoch : n->epoch_next;
}

/* ---------------------------------------------------------------------------------------- received */

static void reset(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct packet a = {.type = RESET, .from = (uint8_t)x, .dst = p->src, .epoch = p->epoch};

    a.src = p->dst ? p->dst : s->node[x].inc;
    a.live = a.src == s->node[x].inc ? live_epoch(&s->node[x]) : LIVE_NONE;
    put(r, s, a);
}

/* This life of the target takes a receive for a message. */
static void count(struct state *s, struct msg *m, uint8_t inc)
{
    if (++m->begun[inc - 1] > 1)
        s->wrong = TWICE;
    for (unsigned l = 0; l + 1u < inc; l++)
        if (m->begun[l])
            s->wrong = TWO_LIVES;
}

static void execute(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];
    unsigned k = p->msg - 1u;
    struct msg *m = &s->msg[k];

    if (!m->got) {
        if (!r->repost) /* else it may be another message */
            count(s, m, n->inc);
        if (p->src < n->newest)
            s->wrong = OLD_LIFE;
        n->newest = p->src;
    }
    m->got = (uint8_t)(m->got | 1 << (r->packets[k] == 2 ? (p->psn - 1) & 1 : 0));
    if (m->got == all_of(r, k))
        m->done = (uint8_t)(m->done | 1 << n->inc);
}

/* May a life in that we hold no space of? */
static bool admit(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];
    bool young = n->age <= CHALLENGED && !r->no_challenge;
    uint8_t other = 0;

    if (n->rx)
        other = n->rx_inc;
    else if (n->tx && n->bound != p->src)
        other = n->bound;
    if ((young || other) && !(p->dst == n->inc && p->cookie == other + 1)) {
        struct packet c = {.type = CHALLENGE,
                           .from = (uint8_t)x,
                           .src = n->inc,
                           .dst = p->src,
                           .epoch = p->epoch,
                           .cookie = (uint8_t)(other + 1),
                           .up = n->age,
                           .asked = p->age};

        put(r, s, c);
        return false;
    }
    if (n->tx && n->bound && n->bound != p->src)
        flush_tx(r, s, x);
    return true;
}

static void rx_data(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];
    bool known = n->rx && n->rx_inc == p->src;

    if (p->dst && p->dst != n->inc) {
        reset(r, s, x, p);
        return;
    }
    if (known && p->epoch < n->rx_epoch)
        return;
    if (!known || p->epoch != n->rx_epoch) {
        if (!p->first_contact) {
            reset(r, s, x, p);
            return;
        }
        if (!known && !admit(r, s, x, p))
            return;
        drop_rx(r, s, x, RX_HELD);
        n->rx_inc = p->src;
        n->rx_epoch = p->epoch;
    }
    if (n->rx == RX_TOMB) {
        reset(r, s, x, p);
        return;
    }
    n->silence = 0;
    if (n->tx && !n->bound)
        n->bound = p->src;
    if (!(n->rx_bits >> p->psn & 1)) {
        n->rx_bits = (uint8_t)(n->rx_bits | 1 << p->psn);
        if (p->msg)
            execute(r, s, x, p);
    }
    put(r, s,
        (struct packet){.type = ACK,
                        .from = (uint8_t)x,
                        .src = n->inc,
                        .dst = p->src,
                        .epoch = p->epoch,
                        .bits = n->rx_bits,
                        .live = live_epoch(n)});
}

/* The peer's spaces below its live epoch are over. */
static void ended_below(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    const struct node *n = &s->node[x];

    if (n->rx == RX_HELD && n->rx_inc == p->src && n->rx_epoch < p->live)
        drop_rx(r, s, x, r->drop_on_reset ? RX_NONE : RX_TOMB);
}

static void rx_ack(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];

    n->bound = p->src;
    n->acked = 1;
    n->cookie = n->idle = n->probe = 0;
    for (unsigned k = 0; k < r->msgs; k++) {
        struct msg *m = &s->msg[k];

        if (r->from[k] != x || m->result != UNDER_WAY ||
            (p->bits >> m->psn & all_of(r, k)) != all_of(r, k))
            continue;
        m->result = SUCCESS;
        m->psn = m->age = 0;
        if (!(m->done >> p->src & 1) && !r->repost)
            s->wrong = FALSE_SUCCESS;
    }
    if (!r->ack_no_live)
        ended_below(r, s, x, p);
}

static void rx_challenge(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];
    /* Ages of its sender's life now, as far as can be told. */
    unsigned least = p->up, most = p->up + p->asked + p->age;

    if (n->acked || n->cookie == p->cookie)
        return;
    if (!r->no_up && n->tx_age >= least && p->up < AGE_MAX) {
        if (n->hello && !n->cookie) { /* no data was sent: a new epoch is younger for certain */
            n->epoch = n->epoch_next++;
            n->tx_age = 0;
        } else {
            if (n->tx_age > most)
                flush_tx(r, s, x);
            return;
        }
    }
    n->bound = p->src;
    n->cookie = p->cookie;
}

static void receive(const struct rules *r, struct state *s, const struct packet *p)
{
    unsigned x = !p->from;
    struct node *n = &s->node[x];
    bool mine =
        p->dst == n->inc && n->tx && n->epoch == p->epoch && (!n->bound || n->bound == p->src);

    if (!n->up)
        return;
    if (p->type == DATA)
        rx_data(r, s, x, p);
    else if (p->type == ACK && mine)
        rx_ack(r, s, x, p);
    else if (p->type == CHALLENGE && mine)
        rx_challenge(r, s, x, p);
    else if (p->type == RESET && mine) {
        ended_below(r, s, x, p);
        if (r->drop_on_reset)
            drop_rx(r, s, x, RX_NONE);
        flush_tx(r, s, x);
    }
}

/* ---------------------------------------------------------------------------------------- steps */

static void next_message(struct mc *mc, const struct rules *r, const struct state *old, unsigned k)
{
    const struct msg *m = &old->msg[k];
    unsigned x = r->from[k];
    struct state s = *old;

    if (!old->node[x].up)
        return;
    if (m->result == UNPOSTED || (r->repost && m->result == FAILED)) {
        struct node *n = &s.node[x];

        for (unsigned i = 0; i < k; i++)
            if (r->from[i] == x && s.msg[i].result == UNPOSTED)
                return;
        make_tx(r, &s, x);
        if (n->psn_next + r->packets[k] > 8)
            return;
        if (r->packets[k] == 2) /* psn 1, 3, ..: its parts can be told */
            n->psn_next |= 1;
        memset(&s.msg[k], 0, sizeof(s.msg[k]));
        s.msg[k].result = UNDER_WAY;
        s.msg[k].psn = n->psn_next;
        n->psn_next = (uint8_t)(n->psn_next + r->packets[k]);
        n->idle = 0;
        mc_emit(mc, MC_STEP, tidy(&s), "%c%u posts m%u", "AB"[x], n -> inc, k);
    }
    if (m->result != UNDER_WAY)
        return;
    for (unsigned part = 0; part < r->packets[k]; part++) {
        s = *old;
        if (may_send_data(&s.node[x]) && send_data(r, &s, k, part))
            mc_emit(mc, MC_STEP, tidy(&s), "%c%u sends packet %u of m%u", "AB"[x], s.node[x].inc,
                    part, k);
    }
}

/* For labels; the text lives until the next call. */
static const char *text_of(const struct packet *p)
{
    static char text[120];
    char from = "AB"[p->from], to = "BA"[p->from], dst[4] = "?";
    const char *contact = p->first_contact ? ", first contact" : "";
    const char *cookie = p->cookie ? ", cookie" : "";

    if (p->dst)
        snprintf(dst, sizeof(dst), "%c%u", to, p->dst % 10u);
    if (p->type == DATA && p->msg)
        snprintf(text, sizeof(text), "m%u (psn %u, epoch %u%s%s) from %c%u to %s", p->msg - 1u,
                 p->psn, p->epoch, contact, cookie, from, p->src, dst);
    else if (p->type == DATA)
        snprintf(text, sizeof(text), "an empty packet (epoch %u%s%s) from %c%u to %s", p->epoch,
                 contact, cookie, from, p->src, dst);
    else if (p->type == ACK)
        snprintf(text, sizeof(text), "ACK of epoch %u (psns %#x, live epoch %u) from %c%u to %s",
                 p->epoch, p->bits, p->live, from, p->src, dst);
    else if (p->type == RESET)
        snprintf(text, sizeof(text), "RESET of epoch %u (live epoch %u) from %c%u to %s", p->epoch,
                 p->live, from, p->src, dst);
    else
        snprintf(text, sizeof(text), "CHALLENGE of epoch %u (up %u ticks) from %c%u to %s",
                 p->epoch, p->up, from, p->src, dst);
    return text;
}

static void next_packet(struct mc *mc, const struct rules *r, const struct state *old, unsigned i)
{
    const struct packet *p = &old->net[i];
    const char *text = text_of(p);
    struct state s;

    for (unsigned copy = 0; copy < 2; copy++) {
        enum mc_kind kind = copy ? MC_FAULT : MC_STEP;

        s = *old;
        if (!copy)
            lose(&s, i);
        receive(r, &s, p);
        if (s.no_room)
            kind = MC_FAULT;
        s.no_room = 0;
        mc_emit(mc, kind, tidy(&s), "arrives: %s%s", text, copy ? "; a copy stays" : "");
    }
    s = *old;
    lose(&s, i);
    mc_emit(mc, MC_FAULT, tidy(&s), "lost: %s", text);
}

static void next_tick(struct mc *mc, const struct rules *r, const struct state *old)
{
    /* Once faults have stopped, the network is faster than a tick. */
    enum mc_kind kind = old->net[0].type ? MC_FAULT : MC_STEP;
    struct state s = *old;

    for (unsigned i = 0; i < NET_MAX && s.net[i].type;)
        if (s.net[i].age++ == PACKET_LIFE)
            lose(&s, i);
        else
            i++;
    for (unsigned x = 0; x < 2; x++) {
        struct node *n = &s.node[x];
        bool busy = under_way(r, &s, x);

        if (r->punctual && n->tx && !n->acked && busy && n->tx_age == FIRST_CONTACT_LIFE)
            return;
        n->age = (uint8_t)(n->age + (n->up && n->age < AGE_MAX));
        n->tx_age = (uint8_t)(n->tx_age + (n->tx && !n->acked && n->tx_age < AGE_MAX));
        n->idle = (uint8_t)(n->idle + (n->tx && !busy && n->idle < IDLE_LIFE));
        n->silence = (uint8_t)(n->silence + (n->rx && n->silence < receive_life(r, x)));
        n->probe = (uint8_t)(n->probe + (n->probe && n->probe <= patience_of(r, x)));
        if (n->acked)
            n->tx_age = 0;
    }
    for (unsigned k = 0; k < r->msgs; k++) {
        bool late = s.msg[k].age >= patience_of(r, r->from[k]);

        if (s.msg[k].result != UNDER_WAY)
            continue;
        if (r->punctual && late)
            return;
        s.msg[k].age = (uint8_t)(s.msg[k].age + !late);
    }
    mc_emit(mc, kind, tidy(&s), "-- a tick --");
}

static void crash(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];
    uint8_t inc = n->inc;

    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] == x && s->msg[k].result == UNDER_WAY)
            end_message(r, s, k, CRASHED);
    drop_rx(r, s, x, RX_NONE);
    *n = (struct node){.inc = inc};
}

static void next_node(struct mc *mc, const struct rules *r, const struct state *old, unsigned x)
{
    const struct node *n = &old->node[x];
    bool impatient = n->probe > patience_of(r, x);
    struct state s = *old;
    char name = "AB"[x];

    if (!n->up) {
        s.node[x] = (struct node){.up = 1, .inc = (uint8_t)(n->inc + 1), .epoch_next = 1};
        mc_emit(mc, MC_STEP, tidy(&s), "%c opens again", name);
        return;
    }
    if (n->tx && n->hello && !may_send_data(n) && under_way(r, old, x) && send_empty(r, &s, x))
        mc_emit(mc, MC_STEP, tidy(&s), "%c%u says hello", name, n->inc);
    s = *old;
    if (n->rx == RX_HELD && half_here(r, old, x)) {
        make_tx(r, &s, x);
        if (send_empty(r, &s, x)) {
            if (!s.node[x].probe)
                s.node[x].probe = 1;
            mc_emit(mc, MC_STEP, tidy(&s), "%c%u sends a silence probe", name, n->inc);
        }
    }
    for (unsigned k = 0; k < r->msgs; k++)
        impatient = impatient || (r->from[k] == x && old->msg[k].result == UNDER_WAY &&
                                  old->msg[k].age >= patience_of(r, x));
    if (impatient && old->give_ups[x]) {
        s = *old;
        s.give_ups[x]--;
        drop_rx(r, &s, x, n->rx ? RX_TOMB : RX_NONE);
        flush_tx(r, &s, x);
        mc_emit(mc, MC_FAULT, tidy(&s), "%c%u gives the peer up", name, n->inc);
    }
    if (n->tx && !under_way(r, old, x) && !n->probe) {
        s = *old;
        flush_tx(r, &s, x);
        mc_emit(mc, MC_FAULT, tidy(&s), "%c%u evicts its idle send half", name, n->inc);
    }
    if (n->rx && n->silence >= receive_life(r, x) && !r->never_expires) {
        s = *old;
        drop_rx(r, &s, x, RX_NONE);
        mc_emit(mc, MC_FAULT, tidy(&s), "%c%u forgets a silent receive half", name, n->inc);
    }
    if (old->crashes[x] && n->inc < LIVES_MAX) {
        s = *old;
        s.crashes[x]--;
        crash(r, &s, x);
        mc_emit(mc, MC_FAULT, tidy(&s), "%c%u crashes", name, n->inc);
    }
}

static void next(struct mc *mc, const void *rules, const void *state)
{
    const struct rules *r = rules;
    const struct state *s = state;

    for (unsigned k = 0; k < r->msgs; k++)
        next_message(mc, r, s, k);
    for (unsigned i = 0; i < NET_MAX && s->net[i].type; i++)
        next_packet(mc, r, s, i);
    next_tick(mc, r, s);
    for (unsigned x = 0; x < 2; x++)
        next_node(mc, r, s, x);
}

static const char *bad(const void *rules, const void *state)
{
    static const char *const why[] = {
        NULL,
        "executed twice in one life",
        "executed in two lives",
        "a message of an old life executed after one of a newer life",
        "SUCCESS, not delivered",
        "a message failed without need",
    };
    const struct state *s = state;
    (void)rules;

    return why[s->wrong];
}

/* Every message has ended, also at its target; what is posted again in the end arrives. */
static bool goal(const void *rules, const void *state)
{
    const struct rules *r = rules;
    const struct state *s = state;

    for (unsigned k = 0; k < r->msgs; k++)
        if (s->msg[k].result == UNDER_WAY || (r->repost && s->msg[k].result == FAILED))
            return false;
    return s->node[0].up && s->node[1].up && !half_here(r, s, 0) && !half_here(r, s, 1);
}

static void show(const void *rules, const void *state, FILE *to)
{
    static const char *const result[] = {"unposted", "under way", "SUCCESS", "FAILED", "crashed"};
    static const char *const rx[] = {"none", "held", "tombstone"};
    const struct rules *r = rules;
    const struct state *s = state;

    for (unsigned x = 0; x < 2; x++) {
        const struct node *n = &s->node[x];

        fprintf(to, "%c%u: send epoch %u to life %u, receive half %s of life %u epoch %u; ",
                "AB"[x], n -> inc, n -> epoch, n -> bound, rx[n->rx], n -> rx_inc, n -> rx_epoch);
    }
    for (unsigned k = 0; k < r->msgs; k++)
        fprintf(to, "m%u %s, got %x; ", k, result[s->msg[k].result], s->msg[k].got);
}

static const struct mc_model model = {
    .name = "identity",
    .state_bytes = sizeof(struct state),
    .init = init,
    .next = next,
    .bad = bad,
    .goal = goal,
    .show = show,
};

/* ---------------------------------------------------------------------------------------- tests */

static void identity__restarts(void **state)
{
    struct rules target = {
        .msgs = 2, .packets = {1, 1}, .net = 3, .crashes = {0, 1}, .give_ups = {1}};
    struct rules sender = {
        .msgs = 2, .packets = {1, 1}, .net = 2, .crashes = {1}, .give_ups = {1}, .young = true};
    struct rules both = {.msgs = 2, .from = {0, 1}, .packets = {1, 1}, .net = 2, .crashes = {1}};
    (void)state;

    mc_expect(&model, &target, "the target restarts", MC_HOLDS, NULL);
    mc_expect(&model, &sender, "the sender restarts, both young", MC_HOLDS, NULL);
    mc_expect(&model, &both, "both send, one restarts", MC_HOLDS, NULL);
}

static void identity__give_ups(void **state)
{
    struct rules r = {.msgs = 2, .from = {0, 1}, .packets = {1, 1}, .net = 2, .give_ups = {1, 1}};
    (void)state;

    mc_expect(&model, &r, "both send, each gives the other up", MC_HOLDS, NULL);
}

/* Every receive that was taken ends, whoever goes. */
static void identity__half_messages(void **state)
{
    struct rules up = {.msgs = 1, .packets = {2}, .net = 2, .give_ups = {1, 1}};
    struct rules restart = {.msgs = 1, .packets = {2}, .net = 2, .crashes = {1}};
    (void)state;

    mc_expect(&model, &up, "half a message, both may give up", MC_HOLDS, NULL);
    mc_expect(&model, &restart, "half a message, its sender restarts", MC_HOLDS, NULL);
}

static void identity__no_needless_failure(void **state)
{
    struct rules young = {
        .msgs = 2, .from = {0, 1}, .packets = {1, 1}, .net = 2, .young = true, .punctual = true};
    struct rules patient = {
        .msgs = 2, .packets = {1, 1}, .net = 2, .patience = {5}, .punctual = true};
    (void)state;

    mc_expect(&model, &young, "both young, nothing may fail", MC_HOLDS, NULL);
    mc_expect(&model, &patient, "a patient sender, nothing may fail", MC_HOLDS, NULL);
}

/* The sender is gone from the space, and acks the probes of a target that waits for the rest of a message. */
static void identity__ack_without_live_epoch(void **state)
{
    struct rules r = {.msgs = 1, .packets = {2}, .net = 2, .give_ups = {1}, .ack_no_live = true};
    (void)state;

    mc_expect(&model, &r, "hole: an ACK does not tell the live epoch", MC_STUCK, NULL);
}

/* However often the application posts again: each send half goes to the life that is over. */
static void identity__binding_to_a_tombstone(void **state)
{
    struct rules r = {.msgs = 2,
                      .from = {0, 1},
                      .packets = {1, 1},
                      .net = 1,
                      .crashes = {1},
                      .repost = true,
                      .never_expires = true};
    (void)state;

    mc_expect(&model, &r, "posted again until it arrives", MC_HOLDS, NULL);
    r.bind_tomb = true;
    mc_expect(&model, &r, "hole: a send half binds to a tombstone", MC_STUCK, NULL);
}

static void identity__data_in_every_first_contact(void **state)
{
    struct rules r = {
        .msgs = 1, .packets = {1}, .net = 2, .young = true, .punctual = true, .no_hello = true};
    (void)state;

    mc_expect(&model, &r, "hole: data in every first contact", MC_STUCK, NULL);
}

static void identity__own_patience(void **state)
{
    struct rules r = {.msgs = 2,
                      .packets = {1, 1},
                      .net = 2,
                      .patience = {5},
                      .punctual = true,
                      .own_patience = true};
    (void)state;

    mc_expect(&model, &r, "hole: the sender's patience is not known", MC_BAD,
              "a message failed without need");
}

static void identity__first_contact(void **state)
{
    struct rules open = {
        .msgs = 1, .packets = {1}, .net = 2, .crashes = {0, 1}, .no_challenge = true};
    struct rules age = {.msgs = 1, .packets = {1}, .net = 2, .crashes = {0, 1}, .no_up = true};
    struct rules flag = {.msgs = 1, .packets = {1}, .net = 2, .keep_flag = true};
    (void)state;

    mc_expect(&model, &open, "hole: a young context takes what comes", MC_BAD,
              "executed in two lives");
    mc_expect(&model, &age, "hole: a challenge tells no time", MC_BAD, "executed in two lives");
    mc_expect(&model, &flag, "hole: first contact for ever", MC_BAD, "executed twice in one life");
}

static void identity__reset_forgets(void **state)
{
    struct rules r = {
        .msgs = 2, .from = {0, 1}, .packets = {1, 1}, .net = 2, .drop_on_reset = true};
    (void)state;

    mc_expect(&model, &r, "hole: what is over is forgotten at once", MC_BAD,
              "executed twice in one life");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity__restarts),
        cmocka_unit_test(identity__give_ups),
        cmocka_unit_test(identity__half_messages),
        cmocka_unit_test(identity__no_needless_failure),
        cmocka_unit_test(identity__ack_without_live_epoch),
        cmocka_unit_test(identity__binding_to_a_tombstone),
        cmocka_unit_test(identity__data_in_every_first_contact),
        cmocka_unit_test(identity__own_patience),
        cmocka_unit_test(identity__first_contact),
        cmocka_unit_test(identity__reset_forgets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
