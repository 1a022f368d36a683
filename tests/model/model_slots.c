/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids of messages of several packets, refusals for want of a receive (RNR), and cancelled messages.
 *
 * One sender, one target, two slots, up to four messages of two packets. Each packet of an attempt
 * is executed once, at any time after it was sent; acks and refusals arrive at any later time.
 * Receives are posted late or never. An RNR timer may fire at any time, and stands for READY, too.
 */
#include <string.h>

#include "tests/model/search.h"

enum { MSGS = 4, SLOTS = 2, PACKETS = 2, QPS = 2 };

enum phase {
    FRESH,   /* never sent */
    RUN,     /* has an id */
    REFUSED, /* waits until its packets are acked */
    WAIT,    /* for the RNR timer */
    DUE,
    CANCELLING, /* waits until its packets and its ABORT are acked */
    CANCELLED,
    DONE,
};

enum packet {
    NONE,
    SENT,
    HELD,  /* received and refused; the refusal is on its way */
    TOLD,  /* the sender knows the refusal, its ack is on its way */
    TAKEN, /* received; an ack is on its way */
    ACKED,
};

enum slot_state { EMPTY, OPEN, SLOT_REFUSED, SLOT_DONE, ABORTED };

struct msg {
    uint8_t phase;
    uint8_t slot, gen; /* its id, while a packet names it; slot + 1 */
    uint8_t attempt;   /* two attempts differ in one bit */
    uint8_t packet[PACKETS];
    uint8_t abort;
    uint8_t delivered;
};

struct slot {
    uint8_t state, gen, msg, attempt, got;
};

struct state {
    struct msg msg[MSGS];
    struct slot slot[SLOTS]; /* at the target */
    uint8_t owner[SLOTS];    /* at the sender: message + 1, or free */
    uint8_t gen[SLOTS];      /* newest generation given */
    uint8_t ids;             /* keep_id: given so far */
    uint8_t receives[QPS], late[QPS];
    uint8_t cancels;
    uint8_t overrun; /* a running message lost its slot */
};

struct rules {
    uint8_t msgs;
    uint8_t from[MSGS], to[MSGS]; /* queue pairs */
    uint8_t receives[QPS];        /* posted at some time; 0: it starves */
    uint8_t cancels;
    /* Holes. */
    bool keep_id;           /* id needs id - SLOTS to be over; a refused message keeps its own */
    bool retries_behind;    /* retries go behind what was never sent */
    bool no_delay;          /* a retry is due as soon as its packets are acked */
    bool acked_when_held;   /* a refused PSN is acked before its refusal is */
    bool free_before_abort; /* a cancelled message's slot is free before its ABORT is acked */
};

static void init(const struct rules *r, struct state *s)
{
    memcpy(s->late, r->receives, sizeof(s->late));
    s->cancels = r->cancels;
}

static bool over(const struct msg *m)
{
    return m->phase == DONE || m->phase == CANCELLED;
}

/* Of generations only the order matters. A slot whose id nobody names is as good as empty. */
static void tidy(struct state *s)
{
    for (unsigned k = 0; k < SLOTS; k++) {
        uint8_t lowest = UINT8_MAX, used[MSGS + 2], n = 0, *value[MSGS + 2];

        for (unsigned i = 0; i < MSGS; i++)
            if (s->msg[i].slot == k + 1) {
                value[n++] = &s->msg[i].gen;
                if (s->msg[i].gen < lowest)
                    lowest = s->msg[i].gen;
            }
        if (s->slot[k].state != OPEN && s->slot[k].gen < lowest)
            memset(&s->slot[k], 0, sizeof(s->slot[k]));
        value[n++] = &s->gen[k];
        if (s->slot[k].state != EMPTY)
            value[n++] = &s->slot[k].gen;
        for (unsigned i = 0; i < n; i++) {
            uint8_t rank = 1;

            for (unsigned j = 0; j < n; j++) {
                bool first = *value[j] < *value[i];

                for (unsigned h = 0; h < j; h++)
                    first = first && *value[h] != *value[j];
                rank = (uint8_t)(rank + first);
            }
            used[i] = rank;
        }
        for (unsigned i = 0; i < n; i++)
            *value[i] = used[i];
    }
}

static void give_back(struct state *s, struct msg *m)
{
    if (m->slot && s->owner[m->slot - 1] == m - s->msg + 1)
        s->owner[m->slot - 1] = 0;
}

static void forget_packets(struct msg *m)
{
    memset(m->packet, NONE, sizeof(m->packet));
    m->abort = NONE;
}

/* What follows from acks at the sender. */
static void settle(const struct rules *r, struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        struct msg *m = &s->msg[i];
        unsigned acked = 0, away = 0;

        for (unsigned p = 0; p < PACKETS; p++) {
            acked += m->packet[p] == ACKED;
            away += m->packet[p] != ACKED && m->packet[p] != NONE;
        }
        if (m->phase == RUN && acked == PACKETS) {
            m->phase = DONE;
        } else if (m->phase == REFUSED && !away) {
            m->phase = r->no_delay ? DUE : WAIT;
            forget_packets(m);
            if (!r->keep_id) {
                give_back(s, m);
                m->slot = m->gen = 0;
            }
        } else if (m->phase == CANCELLING && !away) {
            if (r->free_before_abort)
                give_back(s, m);
            if (m->abort == ACKED)
                m->phase = CANCELLED;
        }
        if (over(m)) {
            give_back(s, m);
            forget_packets(m);
            m->slot = m->gen = m->attempt = 0;
        }
    }
    tidy(s);
}

/* A packet of message i reaches its target. */
static const char *arrive(const struct rules *r, struct state *s, unsigned i, unsigned p)
{
    struct msg *m = &s->msg[i];
    struct slot *t = &s->slot[m->slot - 1];
    bool same = t->state != EMPTY && t->gen == m->gen;

    m->packet[p] = TAKEN;
    if (t->state != EMPTY && t->gen > m->gen)
        return "old, dropped";
    if (same && t->state == OPEN) {
        if (++t->got == PACKETS) {
            t->state = SLOT_DONE;
            m->delivered++;
        }
        return t->state == SLOT_DONE ? "delivered" : "placed";
    }
    if (same && (t->state != SLOT_REFUSED || t->attempt == m->attempt))
        return "the slot has ended, dropped";
    if (t->state == OPEN)
        s->overrun = 1;
    *t = (struct slot){.gen = m->gen, .msg = (uint8_t)(i + 1), .attempt = m->attempt};
    if (!s->receives[r->to[i]]) {
        t->state = SLOT_REFUSED;
        m->packet[p] = HELD;
        return "refused";
    }
    s->receives[r->to[i]]--;
    t->state = OPEN;
    t->got = 1;
    return "takes a receive";
}

static void arrive_abort(struct state *s, unsigned i)
{
    struct msg *m = &s->msg[i];
    struct slot *t = &s->slot[m->slot - 1];

    m->abort = TAKEN;
    if (t->state != EMPTY && (t->gen > m->gen || (t->gen == m->gen && t->state == SLOT_DONE)))
        return;
    if (t->state == OPEN && t->gen != m->gen)
        s->overrun = 1;
    *t = (struct slot){.state = ABORTED, .gen = m->gen, .msg = (uint8_t)(i + 1)};
}

/* The message that its queue pair sends next: the first that is due, or never sent. -1: none. */
static int head_of(const struct rules *r, const struct state *s, unsigned qp)
{
    int due = -1, fresh = -1;

    for (int i = r->msgs - 1; i >= 0; i--) {
        if (r->from[i] == qp && s->msg[i].phase == DUE)
            due = i;
        if (r->from[i] == qp && s->msg[i].phase == FRESH)
            fresh = i;
    }
    if (due < 0 || (r->retries_behind && fresh >= 0))
        return fresh;
    return due;
}

/* Begin an attempt of message i in slot k: it has an id, and its first packet leaves. */
static void begin(const struct rules *r, const struct state *old, unsigned i, unsigned k,
                  bool same_id)
{
    struct state s = *old;
    struct msg *m = &s.msg[i];

    m->phase = RUN;
    m->packet[0] = SENT;
    if (same_id) {
        m->attempt ^= 1;
    } else {
        m->slot = (uint8_t)(k + 1);
        m->gen = ++s.gen[k];
        s.owner[k] = (uint8_t)(i + 1);
        s.ids = (uint8_t)(s.ids + r->keep_id);
    }
    tidy(&s);
    search_step(&s, "m%u begins in slot %u: packet 0 is sent", i, k);
}

static void next_begin(const struct rules *r, const struct state *s)
{
    for (unsigned qp = 0; qp < QPS; qp++) {
        int i = head_of(r, s, qp);

        if (i < 0)
            continue;
        if (s->msg[i].slot) {
            begin(r, s, (unsigned)i, s->msg[i].slot - 1u, true);
        } else if (r->keep_id) { /* its slot is free once the id before is over */
            if (!s->owner[s->ids % SLOTS])
                begin(r, s, (unsigned)i, s->ids % SLOTS, false);
        } else {
            for (unsigned k = 0; k < SLOTS; k++)
                if (!s->owner[k])
                    begin(r, s, (unsigned)i, k, false);
        }
    }
}

static void next_sender(const struct rules *r, const struct state *old, unsigned i)
{
    const struct msg *m = &old->msg[i];
    struct state s;

    if (m->phase == RUN && m->packet[1] == NONE) {
        s = *old;
        s.msg[i].packet[1] = SENT;
        search_step(&s, "packet 1 of m%u is sent", i);
    }
    if (m->phase == WAIT) {
        s = *old;
        s.msg[i].phase = DUE;
        search_step(&s, "the RNR timer of m%u fires", i);
    }
    if (m->phase == CANCELLING && m->abort == NONE) {
        s = *old;
        s.msg[i].abort = SENT;
        search_step(&s, "ABORT of m%u is sent", i);
    }
    if (old->cancels && m->phase != CANCELLING && !over(m)) {
        s = *old;
        s.cancels--;
        s.msg[i].phase = m->slot ? CANCELLING : CANCELLED;
        settle(r, &s);
        search_fault(&s, "m%u is cancelled", i);
    }
}

static void next_network(const struct rules *r, const struct state *old, unsigned i)
{
    const struct msg *m = &old->msg[i];
    struct state s;

    for (unsigned p = 0; p < PACKETS; p++) {
        s = *old;
        if (m->packet[p] == SENT) {
            const char *what = arrive(r, &s, i, p);

            tidy(&s);
            search_step(&s, "packet %u of m%u arrives: %s", p, i, what);
        } else if (m->packet[p] == HELD) {
            s.msg[i].packet[p] = TOLD;
            if (m->phase == RUN)
                s.msg[i].phase = REFUSED;
            search_step(&s, "the refusal of packet %u of m%u arrives", p, i);
        } else if (m->packet[p] == TOLD) {
            s.msg[i].packet[p] = TAKEN;
            search_step(&s, "the refusal of packet %u of m%u is acked", p, i);
        }
        if (m->packet[p] == TAKEN || (m->packet[p] == HELD && r->acked_when_held)) {
            s = *old;
            s.msg[i].packet[p] = ACKED;
            settle(r, &s);
            search_step(&s, "the ack of packet %u of m%u arrives", p, i);
        }
    }
    s = *old;
    if (m->abort == SENT) {
        arrive_abort(&s, i);
        tidy(&s);
        search_step(&s, "ABORT of m%u arrives", i);
    } else if (m->abort == TAKEN) {
        s.msg[i].abort = ACKED;
        settle(r, &s);
        search_step(&s, "the ack of the ABORT of m%u arrives", i);
    }
}

static void next(const struct rules *r, const struct state *old)
{
    next_begin(r, old);
    for (unsigned i = 0; i < r->msgs; i++) {
        next_sender(r, old, i);
        next_network(r, old, i);
    }
    for (unsigned q = 0; q < QPS; q++)
        if (old->late[q]) {
            struct state s = *old;

            s.late[q]--;
            s.receives[q]++;
            search_step(&s, "a receive is posted to queue pair %u", q);
        }
}

static const char *bad(const struct rules *r, const struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        if (s->msg[i].delivered > 1)
            return "delivered twice";
        if (s->msg[i].phase == DONE && !s->msg[i].delivered)
            return "SUCCESS, not delivered";
    }
    for (unsigned k = 0; k < SLOTS; k++)
        if (s->slot[k].state == OPEN && over(&s->msg[s->slot[k].msg - 1]))
            return "a receive is left with a message that is over";
    return s->overrun ? "a running message lost its slot" : NULL;
}

/* All is over but what is sent to a queue pair that starves. */
static bool goal(const struct rules *r, const struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++)
        if (s->msg[i].phase == CANCELLING || (r->receives[r->to[i]] && !over(&s->msg[i])))
            return false;
    return true;
}

const struct search_model search_model = SEARCH_MODEL("slots");

/* Messages 0 and 1 go to queue pair 0, the others to 1. */
static struct rules four(uint8_t receives0, uint8_t receives1)
{
    return (struct rules){.msgs = 4, .to = {0, 0, 1, 1}, .receives = {receives0, receives1}};
}

TEST(slots__hold)
{
    struct rules late = four(2, 2), starve = four(0, 2), two_from = four(0, 2);
    search_holds(&late, "receives come late");
    search_holds(&starve, "one queue pair starves");
    two_from.from[1] = two_from.from[3] = 1;
    search_holds(&two_from, "two senders, one queue pair starves");
}

TEST(slots__hold_with_cancels)
{
    search_holds(&(struct rules){.msgs = 3, .to = {0, 1, 1}, .receives = {0, 2}, .cancels = 2},
                 "two are cancelled");
}

/* A refused message that keeps its id stops everybody once ids in order reach its slot again. */
TEST(slots__id_kept_while_refused)
{
    struct rules r = four(0, 2);

    r.keep_id = true;
    search_stuck(&r, "hole: a refused message keeps its id");
}

/* Nobody starves, and yet the head waits for an id whose holder waits behind the head. */
TEST(slots__retries_behind_the_head)
{
    struct rules r = four(2, 2);
    r.keep_id = true;
    search_holds(&r, "old ids, retries first");
    r.retries_behind = true;
    search_stuck(&r, "hole: old ids, retries behind the head");
}

/* Retries go first: as many starving messages as slots leave none to anything new. */
TEST(slots__retries_without_delay)
{
    struct rules r = four(0, 2);
    r.no_delay = true;
    search_stuck(&r, "hole: retries without a delay");
}

TEST(slots__held_psn_acked)
{
    struct rules r = four(2, 2);
    r.acked_when_held = true;
    search_bad(&r, "hole: a refused PSN is acked at once", "SUCCESS, not delivered");
}

TEST(slots__freed_before_abort)
{
    struct rules r = {.msgs = 3, .to = {1, 1, 1}, .receives = {0, 3}, .cancels = 1};
    r.free_before_abort = true;
    search_bad(&r, "hole: the slot is free before the ABORT is acked",
               "a running message lost its slot");
}
