/* SPDX-License-Identifier: BSD-2-Clause */
/* What a context does with what arrives and with its halves. */
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
    if (r->needless)
        s->wrong = NEEDLESS;
}

/* What the peer said of the space of x is void. */
static void leave_epoch(struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    n->bound = n->acked = n->cookie = n->cookie_age = n->tx_age = n->told = n->over = 0;
    n->after = s->node[!x].over;
    s->node[!x].after = 0;
    for (struct packet *p = s->net; p < s->net + PACKETS; p++)
        if (p->from != x)
            p->after = 0;
}

void identity_flush_tx(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] == x && s->msg[k].result == UNDER_WAY)
            identity_end_message(r, s, k, FAILED);
    leave_epoch(s, x);
    n->tx = n->epoch = n->idle = n->psn_next = n->hello = n->probe = n->after = 0;
}

void identity_drop_rx(const struct rules *r, struct state *s, unsigned x, enum rx_state state)
{
    struct node *n = &s->node[x], *peer = &s->node[!x];

    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] != x)
            s->msg[k].got = 0;
    n->clock++;
    if (n->rx == RX_HELD && peer->tx && n->rx_inc == peer->inc && n->rx_epoch == peer->epoch)
        peer->over = 1;
    n->rx = (uint8_t)state;
    n->rx_bits = 0;
    if (state == RX_NONE)
        n->rx_inc = n->rx_epoch = n->silence = 0;
}

/* A space without packets, under the next epoch, to the life whose space is held or to anybody. */
static void begin_epoch(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    leave_epoch(s, x);
    n->epoch = n->epoch_next++;
    if (n->rx == RX_HELD || (n->rx == RX_TOMB && r->bind_tomb))
        n->bound = n->rx_inc;
}

void identity_make_tx(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];

    if (n->tx && !identity_under_way(r, s, x) && !n->probe && n->idle >= IDLE_LIFE)
        identity_flush_tx(r, s, x);
    if (n->tx)
        return;
    n->tx = 1;
    n->psn_next = 1;
    n->hello = n->rx != RX_HELD && !r->no_hello;
    begin_epoch(r, s, x);
}

static struct packet data_packet(const struct rules *r, const struct state *s, unsigned x)
{
    const struct node *n = &s->node[x];
    struct packet p = {.type = DATA,
                       .from = (uint8_t)x,
                       .src = n->inc,
                       .dst = n->bound,
                       .epoch = n->epoch,
                       .after = n->after};

    p.first_contact = !n->acked && (n->tx_age <= FIRST_CONTACT_LIFE || r->keep_flag);
    if (!p.first_contact)
        return p;
    p.cookie = n->cookie;
    p.cookie_age = n->cookie_age;
    p.forgotten = n->rx != RX_HELD && !r->no_forgotten;
    if (p.forgotten)
        p.stamp = n->clock;
    return p;
}

bool identity_send_data(const struct rules *r, struct state *s, unsigned k, unsigned part)
{
    struct packet p = data_packet(r, s, r->from[k]);

    p.psn = (uint8_t)(s->msg[k].psn + part);
    p.msg = (uint8_t)(k + 1);
    return identity_put(r, s, p);
}

bool identity_send_empty(const struct rules *r, struct state *s, unsigned x)
{
    return identity_put(r, s, data_packet(r, s, x));
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
    identity_put(r, s, a);
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

    /* What is posted now, as an answer, goes the way of what the peer gave up. */
    if (p->after && n->tx && n->acked && n->over &&
        (identity_under_way(r, s, x) || n->idle < IDLE_LIFE))
        s->wrong = STALE;
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

/* Does the packet show that its sender got a challenge of this life lately? */
static bool proven(const struct rules *r, const struct node *n, uint8_t other,
                   const struct packet *p)
{
    return p->dst == n->inc && p->cookie == other + 1 &&
           (p->cookie_age <= COOKIE_LIFE || r->endless_cookie);
}

/* May a life in that no space is held of, or that does not call this one by its name? */
static bool admit(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];
    uint8_t other = 0;

    if (n->rx && n->rx_inc != p->src)
        other = n->rx_inc;
    else if (n->tx && n->bound != p->src)
        other = n->bound;
    if ((other || !r->no_challenge) && !proven(r, n, other, p)) {
        identity_put(r, s,
                     (struct packet){.type = CHALLENGE,
                                     .from = (uint8_t)x,
                                     .src = n->inc,
                                     .dst = p->src,
                                     .epoch = p->epoch,
                                     .cookie = (uint8_t)(other + 1)});
        return false;
    }
    if (n->full) {
        identity_put(
            r, s,
            (struct packet){
                .type = BUSY, .from = (uint8_t)x, .src = n->inc, .dst = p->src, .epoch = p->epoch});
        return false;
    }
    if (n->tx && n->bound && n->bound != p->src)
        identity_flush_tx(r, s, x);
    return true;
}

/*
 * The packet begins a space. If its sender holds no space of ours, all that it ever acked there is
 * over; but it may have said so before it took that space up.
 */
static void begin_space(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];

    if (p->forgotten && n->tx && n->acked && (p->stamp > n->told || r->stale_forgotten))
        identity_flush_tx(r, s, x);
    identity_drop_rx(r, s, x, RX_HELD);
    n->rx_inc = p->src;
    n->rx_epoch = p->epoch;
}

static void rx_data(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];
    bool known = n->rx && n->rx_inc == p->src, named = p->dst || r->no_challenge;

    if (p->dst && p->dst != n->inc && !r->one_name) {
        reset(r, s, x, p);
        return;
    }
    if (known && p->epoch < n->rx_epoch)
        return;
    if (!known || !named || p->epoch != n->rx_epoch) {
        if (!p->first_contact) {
            reset(r, s, x, p);
            return;
        }
        if ((!known || !named) && !admit(r, s, x, p))
            return;
        begin_space(r, s, x, p);
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
    identity_put(r, s,
                 (struct packet){.type = ACK,
                                 .from = (uint8_t)x,
                                 .src = n->inc,
                                 .dst = p->src,
                                 .epoch = p->epoch,
                                 .bits = n->rx_bits,
                                 .stamp = n->clock,
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
    n->cookie = n->cookie_age = n->hello = n->idle = n->probe = 0;
    if (n->told < p->stamp)
        n->told = p->stamp;
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

/* The challenger executed nothing of the epoch. */
static void rx_challenge(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    struct node *n = &s->node[x];

    if (n->acked ||
        (n->bound == p->src && n->cookie == p->cookie && n->cookie_age == p->cookie_age))
        return;
    if (n->hello && !r->same_epoch)
        begin_epoch(r, s, x);
    n->hello = 0;
    n->bound = p->src;
    n->cookie = p->cookie;
    n->cookie_age = p->cookie_age;
}

/* The space is not held there. If only empty packets were sent in it, the work goes on in the next. */
static void rx_reset(const struct rules *r, struct state *s, unsigned x, const struct packet *p)
{
    ended_below(r, s, x, p);
    if (r->drop_on_reset)
        identity_drop_rx(r, s, x, RX_NONE);
    if (s->node[x].hello)
        begin_epoch(r, s, x);
    else
        identity_flush_tx(r, s, x);
}

void identity_receive(const struct rules *r, struct state *s, const struct packet *p)
{
    unsigned x = !p->from;
    struct node *n = &s->node[x];
    bool mine = p->dst == n->inc && n->tx && n->epoch == p->epoch &&
                (!n->bound || n->bound == p->src || r->one_name);

    if (!n->up)
        return;
    if (p->type == DATA)
        rx_data(r, s, x, p);
    else if (p->type == ACK && mine)
        rx_ack(r, s, x, p);
    else if (p->type == CHALLENGE && mine)
        rx_challenge(r, s, x, p);
    else if (p->type == RESET && mine)
        rx_reset(r, s, x, p);
    else if (p->type == BUSY && mine && !n->acked && r->busy_renews)
        n->epoch = n->epoch_next++, n->tx_age = 0;
}
