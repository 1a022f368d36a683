/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers that need no peer, and what strangers are told. */
#include "core/engine/answer.h"

#include <string.h>

#include "core/engine/query.h"
#include "core/hash.h"

static struct mrd_addr address_of(const struct mrd_wire_head *head,
                                  const struct mrd_rx_packet *packet)
{
    struct mrd_addr addr = packet->from;

    addr.port = head->reply;
    return addr;
}

static struct mrd_pair draw_pair(const struct mrd_engine *e, const struct mrd_addr *addr,
                                 uint32_t turn)
{
    struct {
        struct mrd_addr addr;
        uint32_t incarnation, turn;
    } c = {*addr, e->config.incarnation, turn};
    uint64_t names = mrd_secret_of(&e->secret, MRD_SECRET_PAIR, &c, sizeof(c));
    uint32_t own_inc = (uint32_t)names;

    return (struct mrd_pair){own_inc ? own_inc : 1, (uint32_t)(names >> 32)};
}

bool mrd_answer_is_usual(const struct mrd_engine *e, const struct mrd_addr *addr, uint32_t own_inc)
{
    return draw_pair(e, addr, 0).own_inc == own_inc;
}

struct mrd_pair mrd_answer_pair(const struct mrd_engine *e, const struct mrd_addr *addr)
{
    const struct mrd_idle_peer *idle = mrd_peer_find_idle(&e->peers, addr);
    struct mrd_pair pair;

    if (idle)
        return idle->pair;
    for (uint32_t turn = 0;; turn++) {
        pair = draw_pair(e, addr, turn);
        if (!mrd_peer_is_named_elsewhere(&e->peers, pair.own_inc, addr))
            return pair;
    }
}

/*
 * Many may be answered at once, but not for long: whoever forges addresses must not keep us busy.
 * Those who call us by our name were told it at their address: they are not held up by the others.
 */
static bool may_answer(struct mrd_engine *e, bool named)
{
    struct mrd_answers *a = &e->answers;
    uint64_t most_ns = (uint64_t)e->config.max_peers * MRD_ANSWER_NS;
    uint64_t *credit_ns = &a->credit_ns[named], passed_ns = e->clock.now_ns - a->counted_ns[named];

    if (most_ns < MRD_ANSWERS_LEAST * MRD_ANSWER_NS)
        most_ns = MRD_ANSWERS_LEAST * MRD_ANSWER_NS;
    *credit_ns += passed_ns;
    a->counted_ns[named] = e->clock.now_ns;
    if (*credit_ns > most_ns)
        *credit_ns = most_ns;
    if (*credit_ns < MRD_ANSWER_NS || a->tail - a->head == MRD_STATELESS_MAX) {
        e->stats.rx_drop_unanswered++;
        return false;
    }
    *credit_ns -= MRD_ANSWER_NS;
    return true;
}

/* Counts one more answer in this window of MRD_ANSWERS_NS, and notes since when answers wait. */
static void count(struct mrd_engine *e)
{
    struct mrd_answers *a = &e->answers;
    uint64_t passed_ns = e->clock.now_ns - a->window_ns;

    if (passed_ns >= MRD_ANSWERS_NS) {
        a->before = passed_ns < 2 * MRD_ANSWERS_NS ? a->lately : 0;
        a->lately = 0;
        a->window_ns = e->clock.now_ns;
    }
    a->lately++;
    if (a->head == a->tail)
        a->since_ns = e->clock.now_ns;
}

uint64_t mrd_answer_due_ns(const struct mrd_engine *e)
{
    const struct mrd_answers *a = &e->answers;

    if (a->head == a->tail)
        return MRD_NEVER;
    if (a->tail - a->head >= MRD_ANSWERS_BATCH || a->lately + a->before < MRD_ANSWERS_BATCH)
        return 0;
    return a->since_ns + MRD_ANSWERS_WAIT_NS;
}

/* Queue an answer to a packet; NULL: too many were given lately, and it gets none. */
static struct mrd_answer *add_answer(struct mrd_engine *e, const struct mrd_rx_packet *packet,
                                     const struct mrd_wire_head *asked, uint8_t type,
                                     uint32_t own_inc)
{
    struct mrd_answer *s;

    if (!may_answer(e, asked->dst_inc == own_inc))
        return NULL;
    count(e);
    s = &e->answers.ring[e->answers.tail++ % MRD_STATELESS_MAX];
    memset(s, 0, sizeof(*s));
    s->to = address_of(asked, packet);
    s->from = packet->to;
    s->life = packet->life;
    s->head.type = type;
    s->head.src_inc = own_inc;
    s->head.dst_inc = asked->src_inc;
    s->head.epoch = asked->epoch;
    s->head.reply = e->config.self.port;
    return s;
}

void mrd_answer_reset(struct mrd_engine *e, const struct mrd_peer *peer,
                      const struct mrd_wire_head *head, const struct mrd_rx_packet *packet)
{
    struct mrd_addr addr = address_of(head, packet);
    struct mrd_pair pair = peer ? peer->pair : mrd_answer_pair(e, &addr);
    struct mrd_answer *s;

    e->stats.rx_drop_space++;
    /* One of our own that somebody sends back: we would end what it is of. */
    if (head->src_inc != pair.own_inc && mrd_peer_has_name(&e->peers, head->src_inc))
        return;
    s = add_answer(e, packet, head, MRD_WIRE_RESET, pair.own_inc);
    if (!s)
        return;
    if (head->dst_inc && head->dst_inc != pair.own_inc) {
        s->head.src_inc = head->dst_inc;
        s->head.live_epoch = MRD_WIRE_EPOCH_NONE; /* that life of ours is over */
    } else {
        s->head.live_epoch =
            peer && peer->tx ? peer->tx->contact.epoch : pair.epoch_base + e->lives.epoch_next;
    }
}

void mrd_answer_sealed(struct mrd_engine *e, const struct mrd_wire_head *head,
                       const struct mrd_rx_packet *packet)
{
    (void)add_answer(e, packet, head, MRD_WIRE_RESET, 1);
}

/*
 * What a first contact must echo, to show that it comes from its address and was sent lately: in the
 * present interval of MRD_COOKIE_NS, or `ago` intervals before.
 */
static uint64_t cookie_for(const struct mrd_engine *e, const struct mrd_wire_head *head,
                           const struct mrd_rx_packet *packet, uint32_t lives, uint64_t ago)
{
    struct {
        struct mrd_addr addr;
        uint64_t own_ip, interval;
        uint32_t src_inc, incarnation, lives, zero;
    } c = {.addr = address_of(head, packet),
           .interval = e->clock.now_ns / MRD_COOKIE_NS - ago,
           .src_inc = head->src_inc,
           .incarnation = e->config.incarnation,
           .lives = lives};
    uint64_t ip[2];

    memcpy(ip, packet->to.ip, sizeof(ip));
    c.own_ip = ip[0] ^ mrd_hash_mix(ip[1]);
    return mrd_secret_of(&e->secret, MRD_SECRET_COOKIE, &c, sizeof(c));
}

bool mrd_answer_is_proven(const struct mrd_engine *e, uint32_t lives,
                          const struct mrd_wire_head *head, const struct mrd_rx_packet *packet)
{
    return head->flags & MRD_WIRE_COOKIE &&
           (head->cookie == cookie_for(e, head, packet, lives, 0) ||
            head->cookie == cookie_for(e, head, packet, lives, 1));
}

void mrd_answer_challenge(struct mrd_engine *e, uint32_t own_inc, uint32_t lives,
                          const struct mrd_wire_head *head, const struct mrd_rx_packet *packet)
{
    struct mrd_answer *s = add_answer(e, packet, head, MRD_WIRE_CHALLENGE, own_inc);
    uint64_t up_usec = (e->clock.now_ns - e->clock.opened_ns) / MRD_USEC;

    if (!s)
        return;
    s->head.cookie = cookie_for(e, head, packet, lives, 0);
    s->head.echo_stamp = head->stamp;
    s->head.up_usec = up_usec < UINT32_MAX ? (uint32_t)up_usec : UINT32_MAX;
}

void mrd_answer_busy(struct mrd_engine *e, uint32_t own_inc, const struct mrd_wire_head *head,
                     const struct mrd_rx_packet *packet)
{
    struct mrd_engine_event event = {.type = MRD_EVENT_PEERS_FULL,
                                     .addr = address_of(head, packet)};

    e->stats.rx_drop_table_full++;
    (void)add_answer(e, packet, head, MRD_WIRE_BUSY, own_inc);
    if (e->lives.full_told_ns && e->clock.now_ns - e->lives.full_told_ns < MRD_FULL_EVENT_NS)
        return;
    e->lives.full_told_ns = e->clock.now_ns;
    mrd_engine_add_event(e, &event);
}
