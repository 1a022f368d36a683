/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and atomics: requests, responses, and the records that responses need, on both sides.
 *
 * Two sides read from each other. A request is executed once it has a record for its response;
 * without one it is refused, and tried again. The response is a message of the responder's own; it
 * names its request by a token. The request completes when it is acked and answered. A packet is
 * executed once, at any time after it was sent.
 *
 * The responder may lose its memory, and then says that there will be no answer. Its send state may
 * end with responses in it: then it forgets the requester's space, too, so that the requester's
 * next packet is reset and its work fails.
 */
#include "tests/model/search.h"

enum { SIDES = 2, READS = 3 }; /* READS: most of a side */

enum request {
    NEW,
    WAITS, /* to be sent, for the first time or again */
    SENT,
    TAKEN,
    REFUSED, /* the refusal is on its way */
    OVER,    /* acked, or known to have failed */
};

enum response {
    NONE,
    READY,  /* executed; its record is held */
    MOVING, /* sent */
    CAME,   /* at the requester; its ack is on its way */
    ABORT,  /* the news that there will be none is sent */
};

enum { UNDER_WAY, SUCCESS, FAILED };

struct read {
    uint8_t request, response; /* enums above */
    uint8_t token;
    uint8_t executed;
    uint8_t answered, wrong; /* by a response; by that of another request */
    uint8_t cancelled;
    uint8_t outcome;
};

struct state {
    struct read read[SIDES][READS]; /* by requester, in the order of posting */
    uint8_t posted[SIDES];
    uint8_t cancels, losses, resets; /* that may still happen */
    uint8_t forgotten[SIDES];        /* the other side forgot this one's space */
};

struct rules {
    uint8_t reads;   /* of each side */
    uint8_t records; /* for responses, of each side */
    uint8_t cancels, losses, resets;
    /* Holes. */
    bool execute_first; /* before there is a record for the response */
    bool take_all;      /* requests without a record are taken, and never answered */
    bool one_queue;     /* responses wait behind requests that wait for records */
    bool reuse_tokens;  /* of requests that are over */
    bool silent_loss;   /* no news when there will be no response */
    bool silent_reset;  /* a send state ends with responses in it, and nobody is told */
};

static void init(const struct rules *r, struct state *s)
{
    s->cancels = r->cancels;
    s->losses = r->losses;
    s->resets = r->resets;
}

static unsigned records_used(const struct state *s, unsigned requester)
{
    unsigned used = 0;

    for (unsigned i = 0; i < s->posted[requester]; i++)
        used += s->read[requester][i].response != NONE;
    return used;
}

/* What is over keeps nothing that tells it from others like it. */
static void settle(struct state *s)
{
    for (unsigned side = 0; side < SIDES; side++)
        for (unsigned i = 0; i < s->posted[side]; i++) {
            struct read *m = &s->read[side][i];
            bool idle = m->request == OVER || m->request == WAITS;

            if (m->outcome)
                continue;
            if (m->cancelled && idle)
                m->outcome = FAILED;
            else if (m->answered && m->request == OVER)
                m->outcome = SUCCESS;
            if (m->outcome && m->request == WAITS)
                m->request = OVER;
        }
}

static uint8_t new_token(const struct rules *r, const struct state *s, unsigned side)
{
    if (!r->reuse_tokens)
        return s->posted[side];
    for (uint8_t token = 0;; token++) {
        bool used = false;

        for (unsigned i = 0; i < s->posted[side]; i++)
            used |= !s->read[side][i].outcome && s->read[side][i].token == token;
        if (!used)
            return token;
    }
}

static void next_app(const struct rules *r, const struct state *old, unsigned side)
{
    struct state s = *old;

    if (s.posted[side] < r->reads) {
        struct read *m = &s.read[side][s.posted[side]];

        m->token = new_token(r, old, side);
        m->request = WAITS;
        s.posted[side]++;
        search_fault(&s, "%c posts r%u, token %u", 'A' + side, old->posted[side], m->token);
    }
    for (unsigned i = 0; i < old->posted[side] && old->cancels; i++) {
        s = *old;
        if (s.read[side][i].outcome || s.read[side][i].cancelled)
            continue;
        s.cancels--;
        s.read[side][i].cancelled = 1;
        settle(&s);
        search_fault(&s, "%c cancels r%u", 'A' + side, i);
    }
}

/* A request meets its target. */
static const char *arrive(const struct rules *r, struct state *s, unsigned side, unsigned i)
{
    struct read *m = &s->read[side][i];
    bool room = records_used(s, side) < r->records;

    if (!room) {
        m->executed = (uint8_t)(m->executed + (r->execute_first || r->take_all));
        m->request = r->take_all ? TAKEN : REFUSED;
        return r->take_all ? "taken, without a record" : "refused";
    }
    m->executed++;
    m->request = TAKEN;
    m->response = READY;
    return "executed";
}

/* All that a side has under way fails: its packet was answered by a reset. */
static void fail_all(struct state *s, unsigned side)
{
    for (unsigned i = 0; i < s->posted[side]; i++) {
        struct read *m = &s->read[side][i];

        m->request = OVER;
        if (!m->outcome)
            m->outcome = FAILED;
        if (m->response != CAME)
            m->response = NONE;
    }
    s->forgotten[side] = 0;
}

static void next_request(const struct rules *r, const struct state *old, unsigned side, unsigned i)
{
    const struct read *m = &old->read[side][i];
    struct state s = *old;
    struct read *to = &s.read[side][i];
    const char *what;

    if (old->forgotten[side] && m->request != NEW && !m->outcome) {
        fail_all(&s, side);
        search_step(&s, "%c asks, and is reset: its requests fail", 'A' + side);
        return; /* nothing of the old space is executed any more */
    }
    switch (m->request) {
    case WAITS:
        if (m->outcome)
            break;
        to->request = SENT;
        search_step(&s, "%c sends r%u", 'A' + side, i);
        break;
    case SENT:
        what = arrive(r, &s, side, i);
        search_step(&s, "r%u of %c arrives: %s", i, 'A' + side, what);
        break;
    case REFUSED:
        to->request = WAITS;
        settle(&s);
        search_step(&s, "the refusal of r%u reaches %c", i, 'A' + side);
        break;
    case TAKEN:
        to->request = OVER;
        settle(&s);
        search_step(&s, "the ack of r%u reaches %c", i, 'A' + side);
        break;
    default:
        break;
    }
}

/* Has the side a request that was refused, and stands at the head of its only queue? */
static bool blocked(const struct state *s, unsigned side)
{
    for (unsigned i = 0; i < s->posted[side]; i++)
        if (s->read[side][i].request == WAITS || s->read[side][i].request == SENT ||
            s->read[side][i].request == REFUSED)
            return true;
    return false;
}

/* A response meets the request that has its token. */
static const char *answer(struct state *s, unsigned side, unsigned i)
{
    struct read *from = &s->read[side][i];

    from->response = CAME;
    for (unsigned k = 0; k < s->posted[side]; k++) {
        struct read *m = &s->read[side][k];

        if (m->token != from->token || m->outcome || m->answered)
            continue;
        m->answered = 1;
        m->wrong = k != i;
        return k == i ? "the answer" : "taken for the answer of another";
    }
    return "nobody waits for it";
}

static void next_response(const struct rules *r, const struct state *old, unsigned side, unsigned i)
{
    struct state s = *old;
    struct read *m = &s.read[side][i];
    const char *what;

    if (m->response == READY && !(r->one_queue && blocked(old, !side))) {
        m->response = MOVING;
        search_step(&s, "%c sends the response to r%u", 'A' + !side, i);
    } else if (m->response == MOVING) {
        what = answer(&s, side, i);
        settle(&s);
        search_step(&s, "the response to r%u reaches %c: %s", i, 'A' + side, what);
    } else if (m->response == ABORT) {
        m->response = CAME;
        if (!m->answered)
            m->cancelled = 1;
        settle(&s);
        search_step(&s, "%c hears that r%u gets no response", 'A' + side, i);
    } else if (m->response == CAME) {
        m->response = NONE;
        search_step(&s, "the record of the response to r%u is free", i);
    }
    s = *old;
    if (old->losses && (m->response == READY || m->response == MOVING)) {
        s.losses--;
        m->response = r->silent_loss ? NONE : ABORT;
        search_fault(&s, "%c cannot answer r%u any more", 'A' + !side, i);
    }
}

/* The send state of `side` ends, with the responses that it holds for the other. */
static void next_reset(const struct rules *r, const struct state *old, unsigned side)
{
    struct state s = *old;
    unsigned lost = 0;

    if (!old->resets)
        return;
    s.resets--;
    for (unsigned i = 0; i < s.posted[!side]; i++) {
        lost += s.read[!side][i].response != NONE;
        s.read[!side][i].response = NONE;
    }
    s.forgotten[!side] |= lost && !r->silent_reset;
    search_fault(&s, "the send state of %c ends, with %u responses", 'A' + side, lost);
}

static void next(const struct rules *r, const struct state *s)
{
    for (unsigned side = 0; side < SIDES; side++) {
        next_app(r, s, side);
        next_reset(r, s, side);
        for (unsigned i = 0; i < s->posted[side]; i++) {
            next_request(r, s, side, i);
            next_response(r, s, side, i);
        }
    }
}

static const char *bad(const struct rules *r, const struct state *s)
{
    (void)r;
    for (unsigned side = 0; side < SIDES; side++)
        for (unsigned i = 0; i < s->posted[side]; i++) {
            const struct read *m = &s->read[side][i];

            if (m->executed > 1)
                return "executed twice";
            if (m->wrong)
                return "answered by another's response";
            if (m->outcome == SUCCESS && !m->executed)
                return "SUCCESS, not executed";
        }
    return NULL;
}

/* All that was posted is over, and no record is held. */
static bool goal(const struct rules *r, const struct state *s)
{
    (void)r;
    for (unsigned side = 0; side < SIDES; side++)
        for (unsigned i = 0; i < s->posted[side]; i++)
            if (!s->read[side][i].outcome || s->read[side][i].response != NONE)
                return false;
    return true;
}

const struct search_model search_model = SEARCH_MODEL("reads");

TEST(reads__holds)
{
    search_holds(&(struct rules){.reads = 3, .records = 1}, "three each way, one record each");
    search_holds(&(struct rules){.reads = 2, .records = 1, .cancels = 2}, "two are cancelled");
    search_holds(&(struct rules){.reads = 2, .records = 1, .losses = 2, .cancels = 1},
                 "responders lose their memory");
    search_holds(&(struct rules){.reads = 2, .records = 1, .resets = 2, .cancels = 1},
                 "send states end");
}

TEST(reads__without_a_record)
{
    search_bad(&(struct rules){.reads = 2, .records = 1, .execute_first = true},
               "hole: executed before there is a record", "executed twice");
    search_stuck(&(struct rules){.reads = 2, .records = 1, .take_all = true},
                 "hole: taken without a record");
}

TEST(reads__responses_behind_requests)
{
    search_stuck(&(struct rules){.reads = 2, .records = 1, .one_queue = true},
                 "hole: responses wait behind requests");
}

TEST(reads__tokens)
{
    search_bad(&(struct rules){.reads = 2, .records = 2, .cancels = 1, .reuse_tokens = true},
               "hole: the token of a cancelled request is used again",
               "answered by another's response");
}

TEST(reads__not_told)
{
    search_stuck(&(struct rules){.reads = 1, .records = 1, .losses = 1, .silent_loss = true},
                 "hole: no news of a response that will not come");
    search_stuck(&(struct rules){.reads = 1, .records = 1, .resets = 1, .silent_reset = true},
                 "hole: a send state ends with responses in it");
}
