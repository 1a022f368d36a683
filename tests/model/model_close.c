/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered flows that end: CLOSE.
 *
 * An idle flow of the sender is closed by a reliable CLOSE(MSN). The target frees its record if it
 * waits for just that MSN; when the CLOSE is acked and nothing was posted meanwhile, the sender
 * frees its own. The next message begins again at MSN 0. Without a record the target begins one
 * where msn_behind says that the sender's oldest message is. A packet is executed once, at any time
 * after it was sent; so CLOSE, messages and acks overtake each other.
 */
#include "tests/model/search.h"

enum { MSGS = 7, CLOSES = 2 };

enum packet { NONE, SENT, TAKEN, ACKED };

enum place {
    NEW,
    HELD, /* back, for earlier ones */
    DELIVERED,
    GONE,
    LOST,
};

struct msg {
    uint8_t data, abort; /* packets */
    uint8_t msn, behind; /* as first sent */
    uint8_t complete, cancelled;
    uint8_t place;
};

struct close {
    uint8_t state; /* of its packet */
    uint8_t msn;
    uint8_t passed; /* a message was posted after it */
};

struct state {
    struct msg msg[MSGS]; /* in the order of posting */
    uint8_t posted;
    uint8_t tx, tx_next; /* the sender's record: exists, MSN of the next message */
    uint8_t rx, rx_next; /* the target's */
    struct close close[CLOSES];
    uint8_t cancels;
    uint8_t destroyed; /* the sender's queue pair */
    uint8_t disorder;
};

struct rules {
    uint8_t msgs;
    uint8_t cancels;
    bool destroy;
    /* Holes. */
    bool free_when_sent;   /* the sender frees its record when CLOSE is sent */
    bool free_when_posted; /* when CLOSE is acked, whatever was posted meanwhile */
    bool msn_only;         /* the target does not look at what it holds back */
    bool two_closes;       /* a second CLOSE while one is on its way */
    bool close_at_once;    /* CLOSE of a destroyed queue pair does not wait for ABORTs */
};

static void init(const struct rules *r, struct state *s)
{
    s->cancels = r->cancels;
}

static bool idle(const struct state *s)
{
    for (unsigned i = 0; i < s->posted; i++)
        if (!s->msg[i].complete)
            return false;
    return true;
}

/* The MSN of the oldest message of the flow that is not complete. */
static uint8_t una_of(const struct state *s)
{
    for (unsigned i = 0; i < s->posted; i++)
        if (!s->msg[i].complete)
            return s->msg[i].msn;
    return s->tx_next;
}

static uint8_t behind_of(const struct state *s, uint8_t msn)
{
    uint8_t una = una_of(s);

    return (uint8_t)(msn > una ? msn - una : 0);
}

/* Messages complete in order. What is over keeps no numbers. */
static void settle(struct state *s)
{
    for (unsigned i = 0; i < s->posted && (i == 0 || s->msg[i - 1].complete); i++) {
        struct msg *m = &s->msg[i];

        if (m->data == ACKED && (!m->cancelled || m->abort == ACKED))
            m->complete = 1;
        if (m->complete && (m->place == DELIVERED || m->place == LOST))
            m->msn = m->behind = 0;
    }
}

/* What waits in the record at this MSN, or NULL. */
static struct msg *waiting(struct state *s, uint8_t msn)
{
    for (unsigned i = 0; i < s->posted; i++)
        if ((s->msg[i].place == HELD || s->msg[i].place == GONE) && s->msg[i].msn == msn)
            return &s->msg[i];
    return NULL;
}

static void deliver(struct state *s)
{
    struct msg *m;

    while ((m = waiting(s, s->rx_next))) {
        for (struct msg *k = s->msg; k < m; k++)
            if (k->place == NEW && !k->cancelled)
                s->disorder = 1;
        m->place = m->place == HELD ? DELIVERED : LOST;
        s->rx_next++;
    }
}

/* The target's record for a part of this MSN, caught up to what its sender still owes. */
static void record_for(struct state *s, uint8_t msn, uint8_t behind)
{
    uint8_t una = (uint8_t)(msn - behind);

    if (!s->rx) {
        s->rx = 1;
        s->rx_next = una;
    }
    deliver(s);
    while (s->rx_next < una) {
        s->rx_next++;
        deliver(s);
    }
}

static void free_rx(struct state *s)
{
    for (unsigned i = 0; i < s->posted; i++)
        if (s->msg[i].place == HELD || s->msg[i].place == GONE)
            s->msg[i].place = LOST;
    s->rx = s->rx_next = 0;
}

static const char *arrive(struct state *s, unsigned i, uint8_t behind)
{
    struct msg *m = &s->msg[i];

    m->data = TAKEN;
    record_for(s, m->msn, behind);
    if (m->place != NEW)
        return "it has ended, dropped";
    if (m->msn < s->rx_next) {
        m->place = LOST;
        return "old, dropped";
    }
    m->place = HELD;
    deliver(s);
    return m->place == HELD ? "held back" : "delivered";
}

static void arrive_abort(struct state *s, unsigned i)
{
    struct msg *m = &s->msg[i];

    m->abort = TAKEN;
    record_for(s, m->msn, m->behind);
    if (m->place != NEW)
        return;
    m->place = m->msn < s->rx_next ? LOST : GONE;
    deliver(s);
}

static void arrive_close(const struct rules *r, struct state *s, struct close *c)
{
    bool holds = false;

    c->state = TAKEN;
    for (unsigned i = 0; i < s->posted; i++)
        holds = holds || s->msg[i].place == HELD || s->msg[i].place == GONE;
    if (s->rx && s->rx_next == c->msn && (!holds || r->msn_only))
        free_rx(s);
}

static void next_app(const struct rules *r, const struct state *old)
{
    struct state s = *old;
    struct msg *m = &s.msg[s.posted];

    if (s.posted < r->msgs && !s.destroyed) {
        s.posted++;
        s.tx = 1;
        for (unsigned k = 0; k < CLOSES; k++)
            s.close[k].passed = s.close[k].state != NONE;
        m->data = SENT;
        m->msn = s.tx_next++;
        m->behind = behind_of(&s, m->msn);
        search_fault(&s, "m%u is posted and sent: MSN %u, %u behind", old->posted, m->msn,
                     m->behind);
    }
    for (unsigned i = 0; i < old->posted; i++)
        if (old->cancels && !old->msg[i].complete && !old->msg[i].cancelled) {
            s = *old;
            s.cancels--;
            s.msg[i].cancelled = 1;
            s.msg[i].abort = SENT;
            search_fault(&s, "m%u is cancelled, its ABORT is sent", i);
        }
    if (r->destroy && !old->destroyed && old->posted) {
        s = *old;
        s.destroyed = 1;
        for (unsigned i = 0; i < s.posted; i++)
            if (!s.msg[i].complete && !s.msg[i].cancelled) {
                s.msg[i].cancelled = 1;
                s.msg[i].abort = SENT;
            }
        search_fault(&s, "the sender's queue pair is destroyed, ABORTs are sent");
    }
}

static void next_message(const struct state *old, unsigned i)
{
    const struct msg *m = &old->msg[i];
    struct state s = *old;
    const char *what;

    if (m->data == SENT) {
        uint8_t behind_now = behind_of(old, m->msn);

        what = arrive(&s, i, m->behind);
        search_step(&s, "m%u (MSN %u, %u behind) arrives: %s", i, m->msn, m->behind, what);
        s = *old;
        what = arrive(&s, i, behind_now);
        search_step(&s, "m%u (MSN %u, repeated, %u behind) arrives: %s", i, m->msn, behind_now,
                    what);
    } else if (m->data == TAKEN) {
        s.msg[i].data = ACKED;
        settle(&s);
        search_step(&s, "the ack of m%u arrives", i);
    }
    s = *old;
    if (m->abort == SENT) {
        arrive_abort(&s, i);
        search_step(&s, "ABORT of m%u arrives", i);
    } else if (m->abort == TAKEN) {
        s.msg[i].abort = ACKED;
        settle(&s);
        search_step(&s, "the ack of the ABORT of m%u arrives", i);
    }
}

static void next_close(const struct rules *r, const struct state *old)
{
    unsigned on_way = 0;
    bool told = false;
    struct state s;

    for (unsigned k = 0; k < CLOSES; k++) {
        on_way += old->close[k].state != NONE;
        told = told || (old->close[k].state != NONE && !old->close[k].passed);
    }
    for (unsigned k = 0; k < CLOSES; k++) {
        struct close *c = &s.close[k];

        s = *old;
        if (c->state == NONE && old->tx && !told && (!on_way || r->two_closes) &&
            (idle(old) || (r->close_at_once && old->destroyed))) {
            *c = (struct close){.state = SENT, .msn = s.tx_next};
            if (r->free_when_sent)
                s.tx = s.tx_next = 0;
            search_step(&s, "CLOSE(%u) is sent", c->msn);
        } else if (c->state == SENT) {
            arrive_close(r, &s, c);
            search_step(&s, "CLOSE(%u) arrives%s", c->msn,
                        old->rx && !s.rx ? ": the target's record is freed" : "");
        } else if (c->state == TAKEN) {
            if (s.tx && !r->free_when_sent && (!c->passed || r->free_when_posted))
                s.tx = s.tx_next = 0;
            *c = (struct close){.state = NONE};
            search_step(&s, "the ack of CLOSE(%u) arrives%s", old->close[k].msn,
                        s.tx ? "" : ": the sender's record is freed");
        }
    }
}

static void next(const struct rules *r, const struct state *s)
{
    next_app(r, s);
    for (unsigned i = 0; i < s->posted; i++)
        next_message(s, i);
    next_close(r, s);
}

static const char *bad(const struct rules *r, const struct state *s)
{
    (void)r;
    for (unsigned i = 0; i < s->posted; i++)
        if (s->msg[i].complete && !s->msg[i].cancelled && s->msg[i].place != DELIVERED)
            return "SUCCESS, not delivered";
    return s->disorder ? "delivered before an earlier one" : NULL;
}

/* All is complete, and no record of the flow is left. */
static bool goal(const struct rules *r, const struct state *s)
{
    (void)r;
    return idle(s) && !s->tx && !s->rx && s->close[0].state == NONE && s->close[1].state == NONE;
}

const struct search_model search_model = SEARCH_MODEL("close");

TEST(close__holds)
{
    search_holds(&(struct rules){.msgs = 7}, "seven messages");
    search_holds(&(struct rules){.msgs = 3, .cancels = 2}, "two of three are cancelled");
    search_holds(&(struct rules){.msgs = 3, .destroy = true}, "the queue pair is destroyed");
}

TEST(close__freed_too_early)
{
    search_bad(&(struct rules){.msgs = 2, .free_when_sent = true},
               "hole: the sender's record goes when CLOSE is sent", "SUCCESS, not delivered");
    search_bad(&(struct rules){.msgs = 4, .free_when_posted = true},
               "hole: the sender's record goes though more was posted", NULL);
}

TEST(close__held_back)
{
    search_bad(&(struct rules){.msgs = 3, .msn_only = true},
               "hole: a record goes with what it holds back", "SUCCESS, not delivered");
}

TEST(close__two)
{
    search_bad(&(struct rules){.msgs = 5, .two_closes = true}, "hole: two CLOSEs on their way",
               "SUCCESS, not delivered");
}

TEST(close__before_aborts)
{
    search_stuck(&(struct rules){.msgs = 2, .destroy = true, .close_at_once = true},
                 "hole: CLOSE does not wait for ABORTs");
}
