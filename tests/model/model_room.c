/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for refusals among the PSNs of both directions.
 *
 * Two sides send to each other. A tracker holds the PSNs from the oldest unacked one on. A refused
 * PSN is acked only when the refusal, a packet of the other direction, is acked. So either side's
 * oldest PSN may depend on room that the other's oldest PSN holds. Anything in flight may be late
 * as long as it likes.
 *
 * If what may be refused uses PSNs below una + C, and anything that is no refusal those below una +
 * E, then E + C may be at most the tracker: while una waits for its refusal, E PSNs are in use, and
 * C - 1 refusals of the other side's packets; one more must fit.
 */
#include <string.h>

#include "tests/model/search.h"

enum { TRACKER_MAX = 10 };

/* What a PSN is, and how far it came. Upper bits: the other side's PSN that a refusal is about. */
enum what {
    ACKED,
    DATA,     /* or an ABORT: anything that may be refused */
    QUEUED,   /* refused; the refusal has no PSN yet */
    HELD,     /* refused; the refusal is on its way */
    RELEASED, /* the refusal was acked; or it was taken: the ack is on its way */
    EMPTY,    /* anything else that is not refused: probes, READY, CLOSE */
    REFUSAL,
    LINK = 16,
};

struct side {
    uint8_t num;
    uint8_t psn[TRACKER_MAX]; /* [0]: the oldest unacked */
};

struct state {
    struct side side[2];
};

struct rules {
    uint8_t tracker;
    uint8_t data, empty; /* so many PSNs from the oldest unacked one on may be used */
};

/* The oldest PSNs are acked: the window moves. */
static void slide(struct state *s)
{
    for (unsigned x = 0; x < 2; x++) {
        struct side *a = &s->side[x], *b = &s->side[!x];

        while (a->num && a->psn[0] == ACKED) {
            memmove(a->psn, a->psn + 1, TRACKER_MAX - 1);
            a->psn[TRACKER_MAX - 1] = ACKED;
            a->num--;
            for (unsigned i = 0; i < b->num; i++)
                if (b->psn[i] % LINK == REFUSAL)
                    b->psn[i] = (uint8_t)(b->psn[i] - LINK);
        }
    }
}

static void next_sends(const struct rules *r, const struct state *old, unsigned x)
{
    struct state s = *old;
    struct side *a = &s.side[x];

    if (a->num < r->data) {
        a->psn[a->num++] = DATA;
        search_fault(&s, "%c sends data", "AB"[x]);
    }
    s = *old;
    if (a->num < r->empty) {
        a->psn[a->num++] = EMPTY;
        search_fault(&s, "%c sends an empty packet", "AB"[x]);
    }
}

/* Side y refuses PSN i of side x: at once, or when there is room. */
static void refuse(const struct rules *r, struct state *s, unsigned x, unsigned i)
{
    struct side *y = &s->side[!x];

    s->side[x].psn[i] = QUEUED;
    if (y->num == r->tracker)
        return;
    s->side[x].psn[i] = HELD;
    y->psn[y->num++] = (uint8_t)(REFUSAL + LINK * i);
}

static void next_packet(const struct rules *r, const struct state *old, unsigned x, unsigned i)
{
    char from = "AB"[x], to = "BA"[x];
    struct state s = *old;
    uint8_t *p = &s.side[x].psn[i];

    switch (*p % LINK) {
    case DATA:
        refuse(r, &s, x, i);
        search_step(&s, "%c's PSN una+%u arrives: %c refuses it%s", from, i, to,
                    *p == QUEUED ? ", has no room to say so" : "");
        s = *old;
        *p = RELEASED;
        search_step(&s, "%c's PSN una+%u arrives: taken", from, i);
        break;
    case QUEUED:
        refuse(r, &s, x, i);
        if (*p == HELD)
            search_step(&s, "%c's refusal of %c's PSN una+%u has room", to, from, i);
        break;
    case RELEASED:
    case EMPTY:
        *p = ACKED;
        slide(&s);
        search_step(&s, "%c's PSN una+%u is acked", from, i);
        break;
    case REFUSAL:
        s.side[!x].psn[*p / LINK] = RELEASED;
        *p = ACKED;
        slide(&s);
        search_step(&s, "%c's refusal at una+%u arrives and is acked", from, i);
        break;
    default:
        break;
    }
}

static void next(const struct rules *r, const struct state *s)
{
    for (unsigned x = 0; x < 2; x++) {
        next_sends(r, s, x);
        for (unsigned i = 0; i < s->side[x].num; i++)
            next_packet(r, s, x, i);
    }
}

/* Everything is acked. */
static bool goal(const struct rules *r, const struct state *s)
{
    (void)r;
    return !s->side[0].num && !s->side[1].num;
}

const struct search_model search_model = {
    .name = "room", .state_bytes = sizeof(struct state), .next = next, .goal = goal};

/*
 * Everything fits if what may be refused and what is no refusal use at most one tracker together.
 */
TEST(room__holds)
{
    search_holds(&(struct rules){.tracker = 4, .data = 1, .empty = 3}, "data 1/4, empty 3/4");
    search_holds(&(struct rules){.tracker = 5, .data = 2, .empty = 3}, "data 2/5, empty 3/5");
    search_holds(&(struct rules){.tracker = 6, .data = 3, .empty = 3}, "data 3/6, empty 3/6");
}

/* One PSN more, and both sides wait for room that only the other can make. */
TEST(room__one_more)
{
    search_stuck(&(struct rules){.tracker = 4, .data = 1, .empty = 4},
                 "hole: empty packets use the whole tracker");
    search_stuck(&(struct rules){.tracker = 5, .data = 2, .empty = 4}, "hole: data 2/5, empty 4/5");
    search_stuck(&(struct rules){.tracker = 5, .data = 3, .empty = 3}, "hole: data 3/5, empty 3/5");
}
