/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered mode: all that may happen next, and what must hold always. The state is in ordered.h. */
#include "tests/model/ordered.h"

static void init(const struct rules *r, struct state *s)
{
    s->to_post = r->msgs;
    s->cancels = r->cancels;
    s->deaths = r->deaths;
    s->give_ups = r->give_ups;
}

static void next_sender(const struct state *old, unsigned i)
{
    const struct msg *m = &old->msg[i];
    struct state s = *old;

    if ((m->phase == FRESH && (i == 0 || old->msg[i - 1].phase != FRESH)) || m->phase == WAIT) {
        s.msg[i].phase = SENDING;
        s.msg[i].data = SENT;
        search_step(&s, "m%u is sent%s", i, m->phase == WAIT ? " again" : "");
    }
    if (old->cancels &&
        (m->phase == FRESH || m->phase == SENDING || m->phase == REFUSED || m->phase == WAIT)) {
        s = *old;
        s.cancels--;
        ordered_give_up_message(&s.msg[i]);
        search_fault(&s, "m%u is cancelled, its ABORT is sent", i);
    }
}

static void next_data(const struct rules *r, const struct state *old, unsigned i)
{
    const struct msg *m = &old->msg[i];
    struct state s = *old;
    const char *what;

    switch (m->data) {
    case SENT:
        if (old->over)
            break;
        what = ordered_arrive(r, &s, i);
        search_step(&s, "m%u arrives: %s", i, what);
        break;
    case HELD:
        if (old->over)
            break;
        ordered_hear(r, &s, i);
        ordered_settle(r, &s);
        search_step(&s, "the refusal of m%u arrives", i);
        break;
    case TOLD:
        s.msg[i].data = TAKEN;
        search_step(&s, "the refusal of m%u is acked", i);
        break;
    case TAKEN:
        s.msg[i].data = ACKED;
        ordered_settle(r, &s);
        search_step(&s, "the ack of m%u arrives", i);
        break;
    default:
        break;
    }
}

static void next_abort(const struct rules *r, const struct state *old, unsigned i)
{
    struct state s = *old;
    const char *what;

    switch (old->msg[i].abort) {
    case SENT:
        if (old->over)
            break;
        what = ordered_arrive_abort(r, &s, i);
        search_step(&s, "ABORT of m%u arrives: %s", i, what);
        break;
    case HELD:
        if (old->over)
            break;
        s.msg[i].abort = TOLD;
        ordered_flow_dies(r, &s, i);
        search_step(&s, "the refusal of the ABORT of m%u arrives", i);
        break;
    case TOLD:
        s.msg[i].abort = TAKEN;
        search_step(&s, "the refusal of the ABORT of m%u is acked", i);
        break;
    case TAKEN:
        s.msg[i].abort = ACKED;
        ordered_settle(r, &s);
        search_step(&s, "the ack of the ABORT of m%u arrives", i);
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

static void next_target(const struct rules *r, const struct state *old)
{
    unsigned held = old->free;
    struct state s = *old;

    for (unsigned i = 0; i < r->msgs; i++)
        held += old->msg[i].bound;
    if (old->to_post && held < r->depth) {
        s.to_post--;
        s.free++;
        search_step(&s, "a receive is posted");
    }
    if (old->deaths && !old->dead_qp) {
        s = *old;
        s.deaths--;
        s.dead_qp = 1;
        ordered_drop_record(r, &s);
        search_fault(&s, "the target's queue pair goes into error");
    }
}

static void next_peers(const struct rules *r, const struct state *old)
{
    bool unacked = false;
    struct state s = *old;

    for (unsigned i = 0; i < r->msgs; i++)
        unacked = unacked || (old->msg[i].data != NONE && old->msg[i].data != ACKED) ||
                  (old->msg[i].abort != NONE && old->msg[i].abort != ACKED);
    if (old->give_ups && !old->over) {
        s.give_ups--;
        s.over = 1;
        ordered_drop_record(r, &s);
        search_fault(&s, "the target gives the sender up, or is a new life");
    }
    if (old->over && unacked) {
        s = *old;
        ordered_flush(r, &s);
        search_step(&s, "what the sender repeats is answered by a RESET");
    }
    if (old->give_ups && !old->gave_up) {
        s = *old;
        s.give_ups--;
        s.gave_up = 1;
        ordered_flush(r, &s);
        search_fault(&s, "the sender gives the target up");
    }
    if (old->gave_up && !old->over && waits(r, old) && !r->no_silence_probe) {
        s = *old;
        s.over = 1;
        ordered_drop_record(r, &s);
        search_step(&s, "the target's silence probe is answered: the space is over");
    }
}

static void next(const struct rules *r, const struct state *old)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        next_sender(old, i);
        next_data(r, old, i);
        next_abort(r, old, i);
    }
    next_target(r, old);
    next_peers(r, old);
}

static const char *bad(const struct rules *r, const struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        if (s->msg[i].phase == SUCCESS && s->msg[i].place == DROPPED)
            return "SUCCESS, and it will never be delivered";
        if (s->msg[i].phase == SUCCESS && s->msg[i].place != DELIVERED)
            return "SUCCESS, not delivered";
    }
    return NULL;
}

/* Every message has completed, and nothing waits at the target. */
static bool goal(const struct rules *r, const struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++)
        if (!ordered_ended(&s->msg[i]))
            return false;
    return !waits(r, s);
}

const struct search_model search_model = SEARCH_MODEL("ordered");

TEST(ordered__holds)
{
    search_holds(
        &(struct rules){
            .msgs = 3, .depth = 3, .cancels = 1, .deaths = 1, .retries = 1, .give_ups = 1},
        "cancel, dead queue pair, one gives up, RNR");
    search_holds(&(struct rules){.msgs = 3, .depth = 1, .deaths = 1}, "one receive at a time");
    search_holds(
        &(struct rules){
            .msgs = 3, .depth = 2, .hard = 2, .write = 1, .cancels = 2, .give_ups = 1, .deaths = 1},
        "a WRITE, then a hard refusal");
}

TEST(ordered__success_at_ack)
{
    search_bad(&(struct rules){.msgs = 2, .depth = 2, .deaths = 1, .success_at_ack = true},
               "hole: acked is SUCCESS", "SUCCESS, not delivered");
}

TEST(ordered__order_of_completions_alone)
{
    search_bad(&(struct rules){.msgs = 2, .depth = 2, .deaths = 1, .order_only = true},
               "hole: a refusal at a dead queue pair fails one message",
               "SUCCESS, and it will never be delivered");
}

/* The ack of a later message may be on its way when the refusal of an earlier one comes. */
TEST(ordered__acked_when_the_refusal_came)
{
    search_bad(&(struct rules){.msgs = 2, .depth = 2, .deaths = 1, .acked_only = true},
               "hole: only what is acked by then fails", "SUCCESS, and it will never be delivered");
}

TEST(ordered__abort_acked_at_dead_queue_pair)
{
    search_bad(
        &(struct rules){.msgs = 2, .depth = 2, .deaths = 1, .cancels = 1, .abort_acked = true},
        "hole: ABORT at a dead queue pair is acked", "SUCCESS, and it will never be delivered");
}

TEST(ordered__places_that_stay)
{
    search_bad(&(struct rules){.msgs = 2, .depth = 2, .retries = 1, .no_rnr_abort = true},
               "hole: no ABORT after the last RNR", "SUCCESS, not delivered");
    search_bad(&(struct rules){.msgs = 2, .depth = 2, .hard = 1, .hard_leaves_place = true},
               "hole: a hard refusal leaves its place", "SUCCESS, not delivered");
}

TEST(ordered__naive_binding)
{
    search_stuck(&(struct rules){.msgs = 2, .depth = 1, .naive_binding = true},
                 "hole: who comes first takes the receive");
}

TEST(ordered__no_silence_probe)
{
    search_stuck(&(struct rules){.msgs = 2, .depth = 2, .give_ups = 1, .no_silence_probe = true},
                 "hole: no silence probe for what is held back");
}
