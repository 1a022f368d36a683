/* SPDX-License-Identifier: BSD-2-Clause */
/* What each end of an ordered flow does with what arrives. */
#include "tests/model/ordered.h"

static bool takes_receive(const struct rules *r, unsigned i)
{
    return r->write != i + 1;
}

bool ordered_ended(const struct msg *m)
{
    return m->phase == SUCCESS || m->phase == FAILED;
}

void ordered_settle(const struct rules *r, struct state *s)
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
        all_before = all_before && ordered_ended(m);
    }
}

void ordered_flow_dies(const struct rules *r, struct state *s, unsigned from)
{
    if (r->order_only || r->success_at_ack)
        return;
    s->dead_flow = 1;
    for (unsigned i = from + 1; i < r->msgs; i++)
        if (s->msg[i].phase == GOOD)
            s->msg[i].phase = WRONG;
}

void ordered_flush(const struct rules *r, struct state *s)
{
    for (unsigned i = 0; i < r->msgs; i++) {
        struct msg *m = &s->msg[i];

        if (!ordered_ended(m))
            m->phase = FAILED;
        m->data = m->abort = NONE;
        m->data_why = m->abort_why = NO_REFUSAL;
    }
}

void ordered_drop_record(const struct rules *r, struct state *s)
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

const char *ordered_arrive(const struct rules *r, struct state *s, unsigned i)
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

const char *ordered_arrive_abort(const struct rules *r, struct state *s, unsigned i)
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

void ordered_give_up_message(struct msg *m)
{
    m->phase = ABORTING;
    m->abort = SENT;
}

void ordered_hear(const struct rules *r, struct state *s, unsigned i)
{
    struct msg *m = &s->msg[i];

    m->data = TOLD;
    if (m->phase != SENDING)
        return; /* cancelled: its ABORT will tell */
    if (m->data_why != RNR) {
        m->phase = WRONG;
        if (m->data_why == QPN)
            ordered_flow_dies(r, s, i);
    } else if (!r->retries || m->retries < r->retries) {
        m->retries = (uint8_t)(m->retries + (r->retries > 0));
        m->phase = REFUSED;
    } else if (r->no_rnr_abort) {
        m->phase = WRONG;
    } else {
        ordered_give_up_message(m);
    }
}
