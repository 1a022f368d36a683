/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is who: all that may happen next, and what must hold always. The state is in identity.h. */
#include "tests/model/identity.h"

#include <string.h>

static void init(const struct rules *r, struct state *s)
{
    for (unsigned x = 0; x < 2; x++) {
        struct node *n = &s->node[x];

        n->up = n->inc = n->epoch_next = n->clock = 1;
        n->full = r->full && x == 1;
        s->crashes[x] = r->crashes[x];
        s->give_ups[x] = r->give_ups[x];
    }
    s->records = r->records;
    if (r->late)
        s->node[1] = (struct node){0};
}

/* ---------------------------------------------------------------------------------------- steps */

static void next_message(const struct rules *r, const struct state *old, unsigned k)
{
    const struct msg *m = &old->msg[k];
    unsigned x = r->from[k];
    struct state s = *old;

    if (!old->node[x].up)
        return;
    if (m->result == UNPOSTED || (r->repost && m->result == FAILED)) {
        struct node *n = &s.node[x];

        for (unsigned i = 0; i < k; i++)
            if (r->from[i] == x && s.msg[i].result == UNPOSTED)
                return;
        identity_make_tx(r, &s, x);
        if (n->psn_next + r->packets[k] > 8)
            return;
        if (r->packets[k] == 2) /* psn 1, 3, ..: its parts can be told */
            n->psn_next |= 1;
        memset(&s.msg[k], 0, sizeof(s.msg[k]));
        s.msg[k].result = UNDER_WAY;
        s.msg[k].psn = n->psn_next;
        n->psn_next = (uint8_t)(n->psn_next + r->packets[k]);
        n->idle = 0;
        search_step(identity_tidy(&s), "%c%u posts m%u", "AB"[x], n -> inc, k);
    }
    if (m->result != UNDER_WAY)
        return;
    for (unsigned part = 0; part < r->packets[k]; part++) {
        s = *old;
        if (!s.node[x].hello && identity_send_data(r, &s, k, part))
            search_step(identity_tidy(&s), "%c%u sends packet %u of m%u", "AB"[x], s.node[x].inc,
                        part, k);
    }
}

static void next_packet(const struct rules *r, const struct state *old, unsigned i)
{
    const struct packet *p = &old->net[i];
    const char *text = identity_text_of(p);
    struct state s;

    for (unsigned copy = 0; copy < 2; copy++) {
        bool fault;

        s = *old;
        if (!copy)
            identity_lose(&s, i);
        identity_receive(r, &s, p);
        fault = copy || s.no_room;
        s.no_room = 0;
        (fault ? search_fault : search_step)(identity_tidy(&s), "arrives: %s%s", text,
                                             copy ? "; a copy stays" : "");
    }
    s = *old;
    identity_lose(&s, i);
    search_fault(identity_tidy(&s), "lost: %s", text);
    if (!old->records || p->type != DATA || !p->first_contact)
        return;
    s = *old;
    s.records--;
    s.net[TAPE] = *p;
    s.net[TAPE].age = 0;
    search_fault(identity_tidy(&s), "recorded: %s", text);
}

/* Whoever recorded a packet sends it again. */
static void next_record(const struct rules *r, const struct state *old)
{
    const char *text = identity_text_of(&old->net[TAPE]);
    struct state s = *old;

    if (identity_put(r, &s, s.net[TAPE]))
        search_fault(identity_tidy(&s), "sent again: %s", text);
}

/* Cookies grow old, if it matters: without records no packet lives as long as they hold. */
static void age_cookies(const struct rules *r, struct state *s)
{
    if (!r->records)
        return;
    for (struct packet *p = s->net; p < s->net + PACKETS; p++)
        p->cookie_age = (uint8_t)(p->cookie_age + (p->cookie && p->cookie_age <= COOKIE_LIFE));
    for (struct node *n = s->node; n < s->node + 2; n++)
        n->cookie_age = (uint8_t)(n->cookie_age + (n->cookie && n->cookie_age <= COOKIE_LIFE));
}

static void next_tick(const struct rules *r, const struct state *old)
{
    struct state s = *old;

    for (unsigned i = 0; i < NET_MAX && s.net[i].type;)
        if (s.net[i].age++ == PACKET_LIFE)
            identity_lose(&s, i);
        else
            i++;
    age_cookies(r, &s);
    for (unsigned x = 0; x < 2; x++) {
        struct node *n = &s.node[x];
        bool busy = identity_under_way(r, &s, x);

        if (r->punctual && s.node[!x].up && n->tx && !n->hello && !n->acked && busy &&
            n->tx_age == FIRST_CONTACT_LIFE)
            return;
        n->tx_age = (uint8_t)(n->tx_age + (n->tx && !n->acked && n->tx_age <= FIRST_CONTACT_LIFE));
        n->idle = (uint8_t)(n->idle + (n->tx && !busy && n->idle < IDLE_LIFE));
        n->silence = (uint8_t)(n->silence + (n->rx && n->silence < identity_receive_life(r, x)));
        n->probe = (uint8_t)(n->probe + (n->probe && n->probe <= identity_patience_of(r, x)));
        if (n->acked)
            n->tx_age = 0;
    }
    for (unsigned k = 0; k < r->msgs; k++) {
        bool late = s.msg[k].age >= identity_patience_of(r, r->from[k]);

        if (s.msg[k].result != UNDER_WAY)
            continue;
        if (r->punctual && late)
            return;
        s.msg[k].age = (uint8_t)(s.msg[k].age + !late);
    }
    /* Once faults have stopped, the network is faster than a tick. */
    (old->net[0].type ? search_fault : search_step)(identity_tidy(&s), "-- a tick --");
}

static void crash(const struct rules *r, struct state *s, unsigned x)
{
    struct node *n = &s->node[x];
    uint8_t inc = n->inc;

    for (unsigned k = 0; k < r->msgs; k++)
        if (r->from[k] == x && s->msg[k].result == UNDER_WAY)
            identity_end_message(r, s, k, CRASHED);
    identity_drop_rx(r, s, x, RX_NONE);
    identity_flush_tx(r, s, x);
    *n = (struct node){.inc = inc};
}

static void next_node(const struct rules *r, const struct state *old, unsigned x)
{
    const struct node *n = &old->node[x];
    bool impatient = n->probe > identity_patience_of(r, x);
    struct state s = *old;
    char name = "AB"[x];

    if (!n->up) {
        s.node[x] = (struct node){
            .up = 1, .inc = (uint8_t)(n->inc + 1), .epoch_next = 1, .clock = 1, .full = n->full};
        search_step(identity_tidy(&s), "%c opens again", name);
        return;
    }
    if (n->full) {
        s.node[x].full = 0;
        search_step(identity_tidy(&s), "%c%u has room", name, n->inc);
        s = *old;
    }
    if (n->tx && n->hello && identity_under_way(r, old, x) && identity_send_empty(r, &s, x))
        search_step(identity_tidy(&s), "%c%u says hello", name, n->inc);
    s = *old;
    if (n->rx == RX_HELD && identity_half_here(r, old, x)) {
        identity_make_tx(r, &s, x);
        if (identity_send_empty(r, &s, x)) {
            if (!s.node[x].probe)
                s.node[x].probe = 1;
            search_step(identity_tidy(&s), "%c%u sends a silence probe", name, n->inc);
        }
    }
    for (unsigned k = 0; k < r->msgs; k++)
        impatient = impatient || (r->from[k] == x && old->msg[k].result == UNDER_WAY &&
                                  old->msg[k].age >= identity_patience_of(r, x));
    if (impatient && old->give_ups[x]) {
        s = *old;
        s.give_ups[x]--;
        identity_drop_rx(r, &s, x, n->rx ? RX_TOMB : RX_NONE);
        identity_flush_tx(r, &s, x);
        search_fault(identity_tidy(&s), "%c%u gives the peer up", name, n->inc);
    }
    if (n->tx && !identity_under_way(r, old, x) && !n->probe) {
        s = *old;
        identity_flush_tx(r, &s, x);
        search_fault(identity_tidy(&s), "%c%u evicts its idle send state", name, n->inc);
    }
    if (n->rx && n->silence >= identity_receive_life(r, x) && !r->never_expires) {
        s = *old;
        identity_drop_rx(r, &s, x, RX_NONE);
        search_fault(identity_tidy(&s), "%c%u forgets a silent receive state", name, n->inc);
    }
    if (old->crashes[x] && n->inc < LIVES_MAX) {
        s = *old;
        s.crashes[x]--;
        crash(r, &s, x);
        search_fault(identity_tidy(&s), "%c%u crashes", name, n->inc);
    }
}

static void next(const struct rules *r, const struct state *s)
{
    for (unsigned k = 0; k < r->msgs; k++)
        next_message(r, s, k);
    for (unsigned i = 0; i < NET_MAX && s->net[i].type; i++)
        next_packet(r, s, i);
    if (s->net[TAPE].type)
        next_record(r, s);
    next_tick(r, s);
    for (unsigned x = 0; x < 2; x++)
        next_node(r, s, x);
}

static const char *bad(const struct rules *r, const struct state *s)
{
    (void)r;
    static const char *const why[] = {
        NULL,
        "executed twice in one life",
        "executed in two lives",
        "a message of an old life executed after one of a newer life",
        "SUCCESS, not delivered",
        "a message failed without need",
        "an answer goes the way of what the peer gave up",
    };

    return why[s->wrong];
}

/* Every message has ended, also at its target; what is posted again in the end arrives. */
static bool goal(const struct rules *r, const struct state *s)
{
    for (unsigned k = 0; k < r->msgs; k++)
        if (s->msg[k].result == UNDER_WAY || (r->repost && s->msg[k].result == FAILED))
            return false;
    return s->node[0].up && s->node[1].up && !identity_half_here(r, s, 0) &&
           !identity_half_here(r, s, 1);
}

const struct search_model search_model = SEARCH_MODEL("identity");

/* ---------------------------------------------------------------------------------------- tests */

TEST(identity__restarts)
{
    struct rules target = {
        .msgs = 2, .packets = {1, 1}, .net = 3, .crashes = {0, 1}, .give_ups = {1}};

    search_holds(&target, "the target restarts");
    search_holds(
        &(struct rules){.msgs = 2, .packets = {1, 1}, .net = 2, .crashes = {1}, .give_ups = {1}},
        "the sender restarts");
    search_holds(
        &(struct rules){.msgs = 2, .from = {0, 1}, .packets = {1, 1}, .net = 2, .crashes = {1}},
        "both send, one restarts");
    target.one_name = true;
    search_bad(&target, "hole: all lives have one name", "executed in two lives");
}

TEST(identity__give_ups)
{
    search_holds(
        &(struct rules){.msgs = 2, .from = {0, 1}, .packets = {1, 1}, .net = 2, .give_ups = {1, 1}},
        "both send, each gives the other up");
}

/* Every receive that was taken ends, whoever goes. */
TEST(identity__half_messages)
{
    search_holds(&(struct rules){.msgs = 1, .packets = {2}, .net = 2, .give_ups = {1, 1}},
                 "half a message, both may give up");
    search_holds(&(struct rules){.msgs = 1, .packets = {2}, .net = 2, .crashes = {1}},
                 "half a message, its sender restarts");
}

TEST(identity__no_needless_failure)
{
    struct rules patient = {.msgs = 2,
                            .packets = {1, 1},
                            .net = 2,
                            .patience = {5},
                            .punctual = true,
                            .needless = true};

    search_holds(&(struct rules){.msgs = 2,
                                 .from = {0, 1},
                                 .packets = {1, 1},
                                 .net = 2,
                                 .punctual = true,
                                 .needless = true},
                 "both begin at once, nothing may fail");
    search_holds(&patient, "a patient sender, nothing may fail");
    patient.own_patience = true;
    search_bad(&patient, "hole: the sender's patience is not known",
               "a message failed without need");
}

/* Whoever opens late finds messages that wait for it. */
TEST(identity__hello)
{
    struct rules r = {.msgs = 1,
                      .packets = {1},
                      .net = 2,
                      .patience = {7},
                      .late = true,
                      .punctual = true,
                      .needless = true};

    search_holds(&r, "the target opens late");
    r.same_epoch = true;
    search_bad(&r, "hole: data in the epoch of the hello", "a message failed without need");
    r.same_epoch = false;
    r.no_hello = true;
    search_bad(&r, "hole: data in every first contact", "a message failed without need");
}

/* The sender left the space, and acks the probes of a target that waits for half a message. */
TEST(identity__ack_without_live_epoch)
{
    search_stuck(
        &(struct rules){.msgs = 1, .packets = {2}, .net = 2, .give_ups = {1}, .ack_no_live = true},
        "hole: an ACK does not tell the live epoch");
}

/* However often the application posts again: each send state goes to the life that is over. */
TEST(identity__binding_to_a_tombstone)
{
    struct rules r = {.msgs = 2,
                      .from = {0, 1},
                      .packets = {1, 1},
                      .net = 1,
                      .crashes = {1},
                      .repost = true,
                      .never_expires = true};

    search_holds(&r, "posted again until it arrives");
    r.bind_tomb = true;
    search_stuck(&r, "hole: a send state binds to a tombstone");
}

/* What was recorded comes again when its space is forgotten. */
TEST(identity__records)
{
    struct rules r = {.msgs = 1, .packets = {1}, .net = 2, .records = true};

    search_holds(&r, "a first contact is sent again");
    r.endless_cookie = true;
    search_bad(&r, "hole: a cookie without an end", "executed twice in one life");
    r.endless_cookie = false;
    r.no_challenge = true;
    search_bad(&r, "hole: an unknown life is not challenged", "executed twice in one life");
    search_bad(&(struct rules){.msgs = 1, .packets = {1}, .net = 2, .keep_flag = true},
               "hole: first contact for ever", "executed twice in one life");
}

/* B has sent, and A gave it up. Then A speaks again, and B answers. */
TEST(identity__given_up)
{
    struct rules up = {
        .msgs = 2, .from = {1, 0}, .packets = {1, 1}, .net = 1, .give_ups = {1}, .repost = true};
    struct rules both = {.msgs = 3,
                         .from = {0, 1, 1},
                         .packets = {1, 1, 1},
                         .net = 2,
                         .punctual = true,
                         .needless = true};

    search_holds(&up, "given up, and spoken to again");
    up.no_forgotten = true;
    search_bad(&up, "hole: nobody says what it gave up",
               "an answer goes the way of what the peer gave up");
    both.stale_forgotten = true;
    search_bad(&both, "hole: what was said before counts", "a message failed without need");
}

/* Whoever is turned away waits in the same space: copies of its packets may still be admitted. */
TEST(identity__no_room)
{
    struct rules r = {.msgs = 2, .packets = {1, 1}, .net = 2, .give_ups = {1}, .full = true};

    search_holds(&r, "the target has no room at first");
    search_holds(
        &(struct rules){.msgs = 1, .packets = {1}, .net = 3, .crashes = {0, 1}, .full = true},
        "no room, and the target restarts");
    r.busy_renews = true;
    search_bad(&r, "hole: the same data in a new space", "executed twice in one life");
}

TEST(identity__reset_forgets)
{
    search_bad(
        &(struct rules){
            .msgs = 2, .from = {0, 1}, .packets = {1, 1}, .net = 2, .drop_on_reset = true},
        "hole: what is over is forgotten at once", "executed twice in one life");
}
