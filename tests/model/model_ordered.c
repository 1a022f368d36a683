/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered mode: what a completion says.
 *
 * One flow of up to three messages of one packet. The target hands them out in order, and refuses what has no receive
 * (RNR), what is wrong in itself, and what comes to a queue pair in error. The sender may cancel, or use up its retries:
 * then an ABORT takes the message's place. Either side may give the other one up. A packet is executed once, at any time
 * after it was sent; acks and refusals arrive at any later time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/model/mc.h"

enum { MSGS = 3 };

enum phase {
    FRESH,
    SENDING,
    REFUSED,  /* until its packet is acked */
    WAIT,     /* for the RNR timer */
    ABORTING, /* until its packet and its ABORT are acked */
    GOOD,     /* acked; completes after all earlier ones */
    WRONG,    /* failed; likewise */
    SUCCESS,
    FAILED,
};

enum packet {
    NONE,
    SENT,
    HELD,  /* received and refused; the refusal is on its way */
    TOLD,  /* the sender knows the refusal, its ack is on its way */
    TAKEN, /* received; an ack is on its way */
    ACKED,
};

enum refusal { NO_REFUSAL, RNR, HARD, QPN };

enum place {
    NEW,
    RESERVED, /* a later one came: this one's receive is kept */
    FULL,     /* it is here and waits for earlier ones */
    DELIVERED,
    GONE,    /* it will not come: its place is free */
    DROPPED, /* it went with the flow's record */
};

struct msg {
    uint8_t phase, retries;
    uint8_t data, abort;         /* packets */
    uint8_t data_why, abort_why; /* refusals */
    uint8_t place;               /* at the target */
    uint8_t bound;               /* has a receive */
};

struct state {
    struct msg msg[MSGS];
    uint8_t free, to_post; /* receives */
    uint8_t dead_qp;       /* the target's is in error */
    uint8_t dead_flow;     /* the sender knows */
    uint8_t over;          /* the target gave the sender up: its space is over */
    uint8_t gave_up;       /* the sender gave the target up */
    uint8_t cancels, deaths, give_ups;
};

struct rules {
    uint8_t msgs;
    uint8_t depth;   /* the application keeps at most so many receives posted */
    uint8_t cancels; /* faults, at most so many */
    uint8_t deaths;
    uint8_t give_ups;
    uint8_t retries; /* after RNR; 0: for ever */
    uint8_t hard;    /* number + 1 of a message that is wrong in itself */
    uint8_t write;   /* number + 1 of a message that takes no receive */
    /* Holes. */
    bool success_at_ack;    /* acked is SUCCESS */
    bool order_only;        /* a later one completes after earlier ones, whatever became of them */
    bool acked_only;        /* a dead queue pair fails only what was acked when its refusal came */
    bool abort_acked;       /* an ABORT at a queue pair in error is acked, not refused */
    bool no_rnr_abort;      /* giving up after RNR sends no ABORT */
    bool hard_leaves_place; /* a hard refusal does not take the place in the order */
    bool naive_binding;     /* the message that came takes the first receive */
    bool no_silence_probe;
};

static void init(const void *rules, void *state)
{
    const struct rules *r = rules;
    struct state *s = state;

    s->to_post = r->msgs;
    s->cancels = r->cancels;
    s->deaths = r->deaths;
    s->give_ups = r->give_ups;
}

static bool takes_receive(const struct rules *r, unsigned i)
{
    return r->write != i + 1;
}

static bool ended(const struct msg *m)
{
    return m->phase == SUCCESS || m->phase == FAILED;
}

/* What follows at the sender. */
static void settle(const struct rules *r, struct state *s)
{
    bool all_before = true;

    for (unsigned i = 0; i < r->msgs; i++) {
        struct msg *m = &s->msg[i];

        if (m->phase == SENDING && m->data == ACKED && m->data_why == NO_REFUSAL)
            m->phase = s->dead_flow && !r->acked_only && !r->order_only ? WRONG : GOOD;
        if (m->phase == REFUSED && m->data == ACKED) {
            m->phase = WAIT;
            m->data = NONE;
            m->data_why = NO_REFUSAL;
        }
        if (m->phase == ABORTING && (m->data == NONE || m->data == ACKED) && m->abort == ACKED)
            m->phase = WRONG;
        if (m->phase == GOOD && (all_before || r->success_at_ack))
            m->phase = SUCCESS;
        if (m->phase == WRONG && all_before)
            m->phase = FAILED;
        all_before = all_before && ended(m);
    }
}

/* A refusal says that the queue pair is gone: nothing later can have been delivered. */
static void flow_dies(const struct rules *r, struct state *s, unsigned from)
{
    if (r->order_only || r->success_at_ack)
        return;
    s->dead_flow = 1;
    for (unsigned i = from + 1; i < r->msgs; i++)
        if (s->msg[i].phase == GOOD)
            s->msg[i].phase = WRONG;
}

/* The sender's space is over: all that is not completed fails. */
static void flush(const struct rules *r, struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        struct msg *m = &s->msg[i];

        if (!ended(m))
            m->phase = FAILED;
        m->data = m->abort = NONE;
        m->data_why = m->abort_why = NO_REFUSAL;
    }
}

/* The record of the flow goes, with all that waits in it. */
static void drop_record(const struct rules *r, struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        struct msg *m = &s->msg[i];

        if (m->place != DELIVERED && m->place != GONE)
            m->place = DROPPED;
        m->bound = 0;
    }
    s->free = s->to_post = 0;
}

static void deliver(const struct rules *r, struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        struct msg *m = &s->msg[i];

        if (m->place == FULL) {
            m->place = DELIVERED;
            m->bound = 0; /* its receive is used */
        }
        if (m->place != DELIVERED && m->place != GONE)
            return;
    }
}

/* Receives for message i and all lower ones that have none, or for none of them. */
static bool bind(const struct rules *r, struct state *s, unsigned i)
{
    unsigned first = r->naive_binding ? i : 0, need = 0;

    if (!takes_receive(r, i) || s->msg[i].bound)
        return true;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned k = first; k <= i; k++) {
            struct msg *m = &s->msg[k];

            if (!takes_receive(r, k) || m->bound || m->place != NEW)
                continue;
            if (pass == 0) {
                need++;
            } else {
                m->bound = 1;
                m->place = RESERVED;
                s->free--;
            }
        }
        if (need > s->free)
            return false;
    }
    return true;
}

static void gone(const struct rules *r, struct state *s, unsigned i)
{
    struct msg *m = &s->msg[i];

    s->free = (uint8_t)(s->free + m->bound);
    m->bound = 0;
    m->place = GONE;
    deliver(r, s);
}

static void refuse(struct msg *m, enum refusal why)
{
    m->data = HELD;
    m->data_why = (uint8_t)why;
}

static const char *arrive(const struct rules *r, struct state *s, unsigned i)
{
    struct msg *m = &s->msg[i];

    m->data = TAKEN;
    if (s->dead_qp) {
        refuse(m, QPN);
        return "refused, the queue pair is in error";
    }
    if (m->place != NEW && m->place != RESERVED)
        return "dropped, it has ended";
    if (r->hard == i + 1) {
        refuse(m, HARD);
        if (!r->hard_leaves_place)
            gone(r, s, i);
        return "refused for good";
    }
    if (!bind(r, s, i)) {
        refuse(m, RNR);
        return "refused, no receive";
    }
    m->place = FULL;
    deliver(r, s);
    return m->place == DELIVERED ? "delivered" : "held back";
}

static const char *arrive_abort(const struct rules *r, struct state *s, unsigned i)
{
    struct msg *m = &s->msg[i];

    m->abort = TAKEN;
    if (s->dead_qp && !r->abort_acked) {
        m->abort = HELD;
        m->abort_why = QPN;
        return "refused, the queue pair is in error";
    }
    if (!s->dead_qp && (m->place == NEW || m->place == RESERVED))
        gone(r, s, i);
    return "taken";
}

static void give_up_message(struct msg *m)
{
    m->phase = ABORTING;
    m->abort = SENT;
}

/* The sender hears the refusal of message i's packet. */
static void hear(const struct rules *r, struct state *s, unsigned i)
{
    struct msg *m = &s->msg[i];

    m->data = TOLD;
    if (m->phase != SENDING)
        return; /* cancelled: its ABORT will tell */
    if (m->data_why != RNR) {
        m->phase = WRONG;
        if (m->data_why == QPN)
            flow_dies(r, s, i);
    } else if (!r->retries || m->retries < r->retries) {
        m->retries = (uint8_t)(m->retries + (r->retries > 0));
        m->phase = REFUSED;
    } else if (r->no_rnr_abort) {
        m->phase = WRONG;
    } else {
        give_up_message(m);
    }
}

static void next_sender(struct mc *mc, const struct state *old, unsigned i)
{
    const struct msg *m = &old->msg[i];
    struct state s = *old;

    if ((m->phase == FRESH && (i == 0 || old->msg[i - 1].phase != FRESH)) || m->phase == WAIT) {
        s.msg[i].phase = SENDING;
        s.msg[i].data = SENT;
        mc_emit(mc, MC_STEP, &s, "m%u is sent%s", i, m->phase == WAIT ? " again" : "");
    }
    if (old->cancels &&
        (m->phase == FRESH || m->phase == SENDING || m->phase == REFUSED || m->phase == WAIT)) {
        s = *old;
        s.cancels--;
        give_up_message(&s.msg[i]);
        mc_emit(mc, MC_FAULT, &s, "m%u is cancelled, its ABORT is sent", i);
    }
}

static void next_data(struct mc *mc, const struct rules *r, const struct state *old, unsigned i)
{
    const struct msg *m = &old->msg[i];
    struct state s = *old;
    const char *what;

    switch (m->data) {
    case SENT:
        if (old->over)
            break;
        what = arrive(r, &s, i);
        mc_emit(mc, MC_STEP, &s, "m%u arrives: %s", i, what);
        break;
    case HELD:
        if (old->over)
            break;
        hear(r, &s, i);
        settle(r, &s);
        mc_emit(mc, MC_STEP, &s, "the refusal of m%u arrives", i);
        break;
    case TOLD:
        s.msg[i].data = TAKEN;
        mc_emit(mc, MC_STEP, &s, "the refusal of m%u is acked", i);
        break;
    case TAKEN:
        s.msg[i].data = ACKED;
        settle(r, &s);
        mc_emit(mc, MC_STEP, &s, "the ack of m%u arrives", i);
        break;
    default:
        break;
    }
}

static void next_abort(struct mc *mc, const struct rules *r, const struct state *old, unsigned i)
{
    struct state s = *old;
    const char *what;

    switch (old->msg[i].abort) {
    case SENT:
        if (old->over)
            break;
        what = arrive_abort(r, &s, i);
        mc_emit(mc, MC_STEP, &s, "ABORT of m%u arrives: %s", i, what);
        break;
    case HELD:
        if (old->over)
            break;
        s.msg[i].abort = TOLD;
        flow_dies(r, &s, i);
        mc_emit(mc, MC_STEP, &s, "the refusal of the ABORT of m%u arrives", i);
        break;
    case TOLD:
        s.msg[i].abort = TAKEN;
        mc_emit(mc, MC_STEP, &s, "the refusal of the ABORT of m%u is acked", i);
        break;
    case TAKEN:
        s.msg[i].abort = ACKED;
        settle(r, &s);
        mc_emit(mc, MC_STEP, &s, "the ack of the ABORT of m%u arrives", i);
        break;
    default:
        break;
    }
}

/* Does the target hold anything that only the sender can release? */
static bool waits(const struct rules *r, const struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++)
        if (s->msg[i].place == RESERVED || s->msg[i].place == FULL)
            return true;
    return false;
}

static void next_target(struct mc *mc, const struct rules *r, const struct state *old)
{
    unsigned held = old->free;
    struct state s = *old;

    for (unsigned i = 0; i < r->msgs; i++)
        held += old->msg[i].bound;
    if (old->to_post && held < r->depth) {
        s.to_post--;
        s.free++;
        mc_emit(mc, MC_STEP, &s, "a receive is posted");
    }
    if (old->deaths && !old->dead_qp) {
        s = *old;
        s.deaths--;
        s.dead_qp = 1;
        drop_record(r, &s);
        mc_emit(mc, MC_FAULT, &s, "the target's queue pair goes into error");
    }
}

static void next_peers(struct mc *mc, const struct rules *r, const struct state *old)
{
    bool unacked = false;
    struct state s = *old;

    for (unsigned i = 0; i < r->msgs; i++)
        unacked = unacked || (old->msg[i].data != NONE && old->msg[i].data != ACKED) ||
                  (old->msg[i].abort != NONE && old->msg[i].abort != ACKED);
    if (old->give_ups && !old->over) {
        s.give_ups--;
        s.over = 1;
        drop_record(r, &s);
        mc_emit(mc, MC_FAULT, &s, "the target gives the sender up, or is a new life");
    }
    if (old->over && unacked) {
        s = *old;
        flush(r, &s);
        mc_emit(mc, MC_STEP, &s, "what the sender repeats is answered by a RESET");
    }
    if (old->give_ups && !old->gave_up) {
        s = *old;
        s.give_ups--;
        s.gave_up = 1;
        flush(r, &s);
        mc_emit(mc, MC_FAULT, &s, "the sender gives the target up");
    }
    if (old->gave_up && !old->over && waits(r, old) && !r->no_silence_probe) {
        s = *old;
        s.over = 1;
        drop_record(r, &s);
        mc_emit(mc, MC_STEP, &s, "the target's silence probe is answered: the space is over");
    }
}

static void next(struct mc *mc, const void *rules, const void *state)
{
    const struct rules *r = rules;

    for (unsigned i = 0; i < r->msgs; i++) {
        next_sender(mc, state, i);
        next_data(mc, r, state, i);
        next_abort(mc, r, state, i);
    }
    next_target(mc, r, state);
    next_peers(mc, r, state);
}

static const char *bad(const void *rules, const void *state)
{
    const struct rules *r = rules;
    const struct state *s = state;

    for (unsigned i = 0; i < r->msgs; i++) {
        if (s->msg[i].phase == SUCCESS && s->msg[i].place == DROPPED)
            return "SUCCESS, and it will never be delivered";
        if (s->msg[i].phase == SUCCESS && s->msg[i].place != DELIVERED)
            return "SUCCESS, not delivered";
    }
    return NULL;
}

/* Every message has completed, and nothing waits at the target. */
static bool goal(const void *rules, const void *state)
{
    const struct rules *r = rules;
    const struct state *s = state;

    for (unsigned i = 0; i < r->msgs; i++)
        if (!ended(&s->msg[i]))
            return false;
    return !waits(r, s);
}

static void show(const void *rules, const void *state, FILE *to)
{
    static const char *const phase[] = {
        "fresh",    "sending", "refused",          "waits for the timer",
        "aborting", "acked",   "failed, not told", "SUCCESS",
        "FAILED"};
    static const char *const place[] = {"new",       "reserved", "held back",
                                        "delivered", "gone",     "dropped"};
    const struct rules *r = rules;
    const struct state *s = state;

    for (unsigned i = 0; i < r->msgs; i++)
        fprintf(to, "m%u %s, target: %s; ", i, phase[s->msg[i].phase], place[s->msg[i].place]);
    fprintf(to, "%u receives free", s->free);
}

static const struct mc_model model = {
    .name = "ordered",
    .state_bytes = sizeof(struct state),
    .init = init,
    .next = next,
    .bad = bad,
    .goal = goal,
    .show = show,
};

static void ordered__holds(void **state)
{
    struct rules all = {
        .msgs = 3, .depth = 3, .cancels = 1, .deaths = 1, .retries = 1, .give_ups = 1};
    struct rules few = {.msgs = 3, .depth = 1, .deaths = 1};
    struct rules hard = {
        .msgs = 3, .depth = 2, .hard = 2, .write = 1, .cancels = 2, .give_ups = 1, .deaths = 1};
    (void)state;

    mc_expect(&model, &all, "cancel, dead queue pair, one gives up, RNR", MC_HOLDS, NULL);
    mc_expect(&model, &few, "one receive at a time", MC_HOLDS, NULL);
    mc_expect(&model, &hard, "a WRITE, then a hard refusal", MC_HOLDS, NULL);
}

static void ordered__success_at_ack(void **state)
{
    struct rules r = {.msgs = 2, .depth = 2, .deaths = 1, .success_at_ack = true};
    (void)state;

    mc_expect(&model, &r, "hole: acked is SUCCESS", MC_BAD, "SUCCESS, not delivered");
}

static void ordered__order_of_completions_alone(void **state)
{
    struct rules r = {.msgs = 2, .depth = 2, .deaths = 1, .order_only = true};
    (void)state;

    mc_expect(&model, &r, "hole: a refusal at a dead queue pair fails one message", MC_BAD,
              "SUCCESS, and it will never be delivered");
}

/* The ack of a later message may be on its way when the refusal of an earlier one comes. */
static void ordered__acked_when_the_refusal_came(void **state)
{
    struct rules r = {.msgs = 2, .depth = 2, .deaths = 1, .acked_only = true};
    (void)state;

    mc_expect(&model, &r, "hole: only what is acked by then fails", MC_BAD,
              "SUCCESS, and it will never be delivered");
}

static void ordered__abort_acked_at_dead_queue_pair(void **state)
{
    struct rules r = {.msgs = 2, .depth = 2, .deaths = 1, .cancels = 1, .abort_acked = true};
    (void)state;

    mc_expect(&model, &r, "hole: ABORT at a dead queue pair is acked", MC_BAD,
              "SUCCESS, and it will never be delivered");
}

static void ordered__places_that_stay(void **state)
{
    struct rules rnr = {.msgs = 2, .depth = 2, .retries = 1, .no_rnr_abort = true};
    struct rules hard = {.msgs = 2, .depth = 2, .hard = 1, .hard_leaves_place = true};
    (void)state;

    mc_expect(&model, &rnr, "hole: no ABORT after the last RNR", MC_BAD, "SUCCESS, not delivered");
    mc_expect(&model, &hard, "hole: a hard refusal leaves its place", MC_BAD,
              "SUCCESS, not delivered");
}

static void ordered__naive_binding(void **state)
{
    struct rules r = {.msgs = 2, .depth = 1, .naive_binding = true};
    (void)state;

    mc_expect(&model, &r, "hole: who comes first takes the receive", MC_STUCK, NULL);
}

static void ordered__no_silence_probe(void **state)
{
    struct rules r = {.msgs = 2, .depth = 2, .give_ups = 1, .no_silence_probe = true};
    (void)state;

    mc_expect(&model, &r, "hole: no silence probe for what is held back", MC_STUCK, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordered__holds),
        cmocka_unit_test(ordered__success_at_ack),
        cmocka_unit_test(ordered__order_of_completions_alone),
        cmocka_unit_test(ordered__acked_when_the_refusal_came),
        cmocka_unit_test(ordered__abort_acked_at_dead_queue_pair),
        cmocka_unit_test(ordered__places_that_stay),
        cmocka_unit_test(ordered__naive_binding),
        cmocka_unit_test(ordered__no_silence_probe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
