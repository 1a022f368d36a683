/* SPDX-License-Identifier: BSD-2-Clause */
/* What a context does with what arrives and with its halves, and the network between the two. */
#include "tests/model/identity.h"

#include <string.h>

uint8_t identity_patience_of(const struct rules *r, unsigned x)
{
    return r->patience[x] ? r->patience[x] : 2;
}

uint8_t identity_receive_life(const struct rules *r, unsigned x)
{
    uint8_t own = identity_patience_of(r, x), other = identity_patience_of(r, !x);
    uint8_t longer = own > other || r->own_patience ? own : other;

    return (uint8_t)(IDLE_LIFE + longer + 2 * PACKET_LIFE);
}

/* -------------------------------------------------------------------------------------- network */

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

struct state *identity_tidy(struct state *s)
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

void identity_lose(struct state *s, unsigned i)
{
    memmove(&s->net[i], &s->net[i + 1], (NET_MAX - 1 - i) * sizeof(s->net[0]));
    memset(&s->net[NET_MAX - 1], 0, sizeof(s->net[0]));
}

/* --------------------------------------------------------------------------------------- halves */

bool identity_under_way(const struct rules *r, const struct state *s, unsigned x)
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

bool identity_half_here(const struct rules *r, const struct state *s, unsigned x)
{
    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] != x && s->msg[k].got && s->msg[k].got != all_of(r, k))
            return true;
    return false;
}

void identity_end_message(const struct rules *r, struct state *s, unsigned k, enum result result)
{
    struct msg *m = &s->msg[k];

    m->result = (uint8_t)result;
    m->psn = m->age = 0;
    if (r->punctual)
        s->wrong = NEEDLESS;
}

void identity_flush_tx(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] == x && s->msg[k].result == UNDER_WAY)
            identity_end_message(r, s, k, FAILED);
    n->tx = n->epoch = n->bound = n->acked = n->cookie = n->tx_age = n->idle = n->psn_next = 0;
    n->hello = n->probe = 0;
}

void identity_drop_rx(const struct rules *r, struct state *s, unsigned x, enum rx_state state)
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

void identity_make_tx(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    if (n->tx && !identity_under_way(r, s, x) && !n->probe && n->idle >= IDLE_LIFE)
        identity_flush_tx(r, s, x);
    if (n->tx)
        return;
    n->tx = 1;
    n->epoch = n->epoch_next++;
    n->psn_next = 1;
    n->hello = n->age <= CHALLENGED && !r->no_hello;
    if (n->rx == RX_HELD || (n->rx == RX_TOMB && r->bind_tomb))
        n->bound = n->rx_inc;
}

bool identity_may_send_data(const struct node *n)
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

bool identity_send_data(const struct rules *r, struct state *s, unsigned k, unsigned part)
{
    struct packet p = data_packet(r, s, r->from[k]);

    p.psn = (uint8_t)(s->msg[k].psn + part);
    p.msg = (uint8_t)(k + 1);
    return put(r, s, p);
}

bool identity_send_empty(const struct rules *r, struct state *s, unsigned x)
{
    return put(r, s, data_packet(r, s, x));
}

static uint8_t live_epoch(const struct node *n)
{
    return n->tx ? n->epoch : n->epoch_next;
}

/* ------------------------------------------------------------------------------------- received */

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
    if ((young || other || n->full) && !(p->dst == n->inc && p->cookie == other + 1)) {
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
    if (n->full) {
        put(r, s,
            (struct packet){
                .type = BUSY, .from = (uint8_t)x, .src = n->inc, .dst = p->src, .epoch = p->epoch});
        return false;
    }
    if (n->tx && n->bound && n->bound != p->src)
        identity_flush_tx(r, s, x);
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
        identity_drop_rx(r, s, x, RX_HELD);
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
        identity_drop_rx(r, s, x, r->drop_on_reset ? RX_NONE : RX_TOMB);
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
                identity_flush_tx(r, s, x);
            return;
        }
    }
    n->bound = p->src;
    n->cookie = p->cookie;
}

void identity_receive(const struct rules *r, struct state *s, const struct packet *p)
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
    else if (p->type == BUSY && mine && !n->acked && r->busy_renews)
        n->epoch = n->epoch_next++, n->tx_age = 0;
    else if (p->type == RESET && mine) {
        ended_below(r, s, x, p);
        if (r->drop_on_reset)
            identity_drop_rx(r, s, x, RX_NONE);
        identity_flush_tx(r, s, x);
    }
}
