/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals against refusals: both sides send to each other, refuse what comes, and have a window of
 * one packet.
 *
 * A refused packet stays unacked, so it fills its sender's window until the refusal got through;
 * and the refusal is a packet of the other direction. Copies in the network arrive or are lost, at
 * any time. A packet is declared lost when one that was sent later is acked. A tail probe repeats
 * one packet; its timer may fire at any time.
 */
#include "tests/model/search.h"

enum {
    DATA = 2,
    RECORDS = 2 * DATA
}; /* records of a side: its data, its refusals of the other's data */

enum record_state { NONE, IN_FLIGHT, LOST, ACKED };

enum received { NOT_YET, TAKEN, REFUSED };

struct record {
    uint8_t state;
    uint8_t copy; /* one is in the network; those of a received packet do not matter */
    uint8_t received;
};

struct side {
    struct record record[RECORDS];
    uint8_t sent[RECORDS]; /* record + 1, that not sent for longest first */
};

struct state {
    struct side side[2];
};

struct rules {
    uint8_t window;
    uint8_t data; /* packets that each side sends */
    /* Holes. */
    bool control_waits; /* a refusal that was lost waits for the window */
    bool probe_flight;  /* a tail probe only looks at what is in flight */
};

/* A copy leaves, for the first time or again. */
static void transmit(struct side *a, unsigned i)
{
    unsigned n = 0;

    for (unsigned k = 0; k < RECORDS; k++)
        if (a->sent[k] && a->sent[k] != i + 1)
            a->sent[n++] = a->sent[k];
    a->sent[n++] = (uint8_t)(i + 1);
    while (n < RECORDS)
        a->sent[n++] = 0;
    a->record[i].state = IN_FLIGHT;
    a->record[i].copy = !a->record[i].received;
}

/* An ack of record i: what was sent before it and is still in flight counts as lost. */
static void acked(struct side *a, unsigned i)
{
    unsigned k = 0, n = 0;

    for (; a->sent[k] != i + 1; k++)
        if (a->record[a->sent[k] - 1].state == IN_FLIGHT)
            a->record[a->sent[k] - 1].state = LOST;
    a->record[i].state = ACKED;
    for (k = 0; k < RECORDS; k++)
        if (a->sent[k] && a->sent[k] != i + 1)
            a->sent[n++] = a->sent[k];
    while (n < RECORDS)
        a->sent[n++] = 0;
}

static bool window_open(const struct rules *r, const struct side *a)
{
    unsigned in_flight = 0;

    for (unsigned i = 0; i < RECORDS; i++)
        in_flight += a->record[i].state == IN_FLIGHT;
    return in_flight < r->window;
}

static const char *name_of(unsigned i)
{
    static const char *const name[RECORDS] = {"data 0", "data 1", "refusal of 0", "refusal of 1"};

    return name[i];
}

static void next_sends(const struct rules *r, const struct state *old, unsigned x)
{
    const struct side *a = &old->side[x], *b = &old->side[!x];
    struct state s;

    for (unsigned i = 0; i < RECORDS; i++) {
        bool control = i >= DATA;
        bool due = control ? b->record[i - DATA].received == REFUSED : i < r->data;
        bool fresh = a->record[i].state == NONE && due, lost = a->record[i].state == LOST;

        if ((!fresh && !lost) || (!window_open(r, a) && (!control || (lost && r->control_waits))))
            continue;
        s = *old;
        transmit(&s.side[x], i);
        search_step(&s, "%c sends %s%s", "AB"[x], name_of(i), lost ? " again" : "");
    }
    for (unsigned k = 0; k < RECORDS && a->sent[k]; k++) {
        unsigned i = a->sent[k] - 1u;

        if (r->probe_flight && a->record[i].state != IN_FLIGHT)
            continue;
        s = *old;
        transmit(&s.side[x], i);
        search_step(&s, "%c's tail probe repeats %s", "AB"[x], name_of(i));
        break;
    }
}

static void next_network(const struct state *old, unsigned x, unsigned i)
{
    const struct record *rec = &old->side[x].record[i];
    bool told = rec->received == TAKEN ||
                (rec->received == REFUSED && old->side[!x].record[DATA + i].state == ACKED);
    struct state s = *old;

    if (rec->copy) {
        s.side[x].record[i].copy = 0;
        search_fault(&s, "%c's %s is lost on its way", "AB"[x], name_of(i));
        s.side[x].record[i].received = TAKEN;
        search_step(&s, "%c's %s arrives", "AB"[x], name_of(i));
        if (i < DATA) {
            s.side[x].record[i].received = REFUSED;
            search_step(&s, "%c's %s arrives and is refused", "AB"[x], name_of(i));
        }
    }
    if (told && (rec->state == IN_FLIGHT || rec->state == LOST)) {
        s = *old;
        acked(&s.side[x], i);
        search_step(&s, "%c learns that its %s is acked", "AB"[x], name_of(i));
    }
}

static void next(const struct rules *r, const struct state *old)
{
    for (unsigned x = 0; x < 2; x++) {
        next_sends(r, old, x);
        for (unsigned i = 0; i < RECORDS; i++)
            next_network(old, x, i);
    }
}

/* All data was sent, and all is acked. */
static bool goal(const struct rules *r, const struct state *s)
{
    for (unsigned x = 0; x < 2; x++)
        for (unsigned i = 0; i < RECORDS; i++) {
            uint8_t st = s->side[x].record[i].state;

            if (st == IN_FLIGHT || st == LOST || (i < r->data && st == NONE))
                return false;
        }
    return true;
}

const struct search_model search_model = {
    .name = "window", .state_bytes = sizeof(struct state), .next = next, .goal = goal};

TEST(window__holds)
{
    struct rules r = {.window = 1, .data = 1};

    search_holds(&r, "one packet each");
    r.data = 2;
    search_holds(&r, "two packets each");
    r.window = 2;
    search_holds(&r, "two packets each, window of two");
}

/* Refusals that were lost wait for a window that the other side's refusal keeps shut. */
TEST(window__lost_refusals_wait)
{
    search_stuck(
        &(struct rules){.window = 1, .data = 2, .control_waits = true, .probe_flight = true},
        "hole: lost refusals wait, probes repeat what is in flight");
}

/* Each of the two rules is enough by itself: a lost refusal leaves at once, or as a probe. */
TEST(window__one_rule_is_enough)
{
    search_holds(&(struct rules){.window = 1, .data = 2, .probe_flight = true},
                 "control past the window alone");
    search_holds(&(struct rules){.window = 1, .data = 2, .control_waits = true},
                 "probes of the oldest alone");
}
