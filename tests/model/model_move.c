/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is where: names of pairs, hosts with two addresses, peers that move.
 *
 * A and B know each other. A's packets leave from two addresses, or its address becomes another one,
 * again and again; after each change A has something to say, as nobody else knows where it is. A
 * third party X has an address, too. A thief sends copies of A's packets from there; a stranger sends
 * what it likes, also in A's name, with what it was told of the two.
 *
 * Time is only that B heard nothing from A's own address for a while. Cookies hold for ever here:
 * their end is in model_identity.c. Every message is one packet, and its PSN is executed once. What
 * finds the network full is lost, and sent again.
 */
#include "tests/model/search.h"

#include <string.h>

enum { ADDRESSES = 3, X = ADDRESSES, MSGS = 4, NET_MAX = 3, WAY = 3 };

enum type { NO_PACKET, DATA, EMPTY, ACK, CHALLENGE };

enum result { UNPOSTED, UNDER_WAY, SUCCESS };

struct packet {
    uint8_t type;
    uint8_t to_a;   /* else to B */
    uint8_t addr;   /* A's: where it left from, or goes to */
    uint8_t stamp;  /* of A: so often had its address changed; no other time counts */
    uint8_t msg;    /* DATA */
    uint8_t bits;   /* ACK: messages */
    uint8_t cookie; /* for that address - 1 */
    uint8_t forged; /* by the stranger */
    uint8_t seen;   /* a copy of what arrived before */
};

/* What B knows of A. */
struct entry {
    uint8_t used, addr, bits;
    uint8_t quiet; /* nothing came from its own address for a while */
    uint8_t heard; /* newest stamp from there */
};

struct state {
    uint8_t changes;      /* of A's address */
    uint8_t cookie;       /* of a challenge that A has not answered yet */
    uint8_t acked, first; /* A's epoch: was any of it acked; first contact goes on */
    uint8_t got;          /* A's: messages of B */
    struct entry entry[2];
    uint8_t result[MSGS], executed[MSGS];
    struct packet net[NET_MAX];
    uint8_t thefts, forgeries;
    uint8_t wrong;
};

struct rules {
    uint8_t net;
    uint8_t changes;  /* of A's address, at most */
    uint8_t way[WAY]; /* its addresses */
    uint8_t from_b;   /* messages of B; A has one after each change */
    uint8_t thefts, forgeries;
    bool two;   /* A has addresses 0 and 1 at a time */
    bool fresh; /* nothing of A's epoch was acked yet */
    /* Holes. */
    bool one_name;      /* everybody is told the same name */
    bool by_address;    /* a peer is looked for by its address alone */
    bool no_proof;      /* a peer is where its packets come from */
    bool any_cookie;    /* a cookie is of no address */
    bool old_proof;     /* a proof counts whenever it comes */
    bool new_psn;       /* or unless it is a copy */
    bool no_late_proof; /* only first-contact packets carry the cookie until the first ack */
};

enum wrong { NOTHING, TWICE, FORGED, THIRD_PARTY, NEEDLESS };

static void init(const struct rules *r, struct state *s)
{
    s->entry[0] = (struct entry){.used = 1, .addr = r->way[0]};
    s->acked = !r->fresh;
    s->first = r->fresh;
    s->thefts = r->thefts;
    s->forgeries = r->forgeries;
}

/* -------------------------------------------------------------------------------------- network */

/* Packets are kept sorted, and the same packet again is one. */
static bool put(const struct rules *r, struct state *s, struct packet p)
{
    unsigned n = 0, at;

    for (; n < NET_MAX && s->net[n].type; n++)
        if (!memcmp(&s->net[n], &p, sizeof(p)))
            return true;
    if (n == r->net)
        return false;
    for (at = n; at && memcmp(&s->net[at - 1], &p, sizeof(p)) > 0; at--)
        s->net[at] = s->net[at - 1];
    s->net[at] = p;
    return true;
}

static void lose(struct state *s, unsigned i)
{
    memmove(&s->net[i], &s->net[i + 1], (NET_MAX - 1 - i) * sizeof(s->net[0]));
    memset(&s->net[NET_MAX - 1], 0, sizeof(s->net[0]));
}

static uint8_t place(const struct rules *r, const struct state *s)
{
    return r->way[s->changes];
}

static bool is_there(const struct rules *r, const struct state *s, uint8_t addr)
{
    return addr == place(r, s) || (r->two && addr < 2);
}

static bool is_of_b(const struct rules *r, unsigned k)
{
    return k + r->from_b >= MSGS;
}

/* ------------------------------------------------------------------------------------------- A */

/* Does a packet of A's carry the cookie that it was challenged with? */
static uint8_t cookie_on(const struct rules *r, const struct state *s, enum type type)
{
    if (s->acked || !r->no_late_proof)
        return type == EMPTY || s->first || r->by_address ? s->cookie : 0;
    return s->first ? s->cookie : 0;
}

static void a_receives(const struct rules *r, struct state *s, const struct packet *p)
{
    if (!is_there(r, s, p->addr))
        return;
    if (p->type == CHALLENGE)
        s->cookie = p->cookie;
    if (p->type == ACK) {
        s->acked = 1;
        s->first = s->cookie = 0;
        for (unsigned k = 0; k < MSGS; k++)
            if (p->bits >> k & 1 && s->result[k] == UNDER_WAY)
                s->result[k] = SUCCESS;
    }
    if (p->type != DATA)
        return;
    if (!(s->got >> p->msg & 1) && s->executed[p->msg]++)
        s->wrong = TWICE;
    s->got = (uint8_t)(s->got | 1 << p->msg);
    put(r, s,
        (struct packet){.type = ACK, .addr = place(r, s), .stamp = s->changes, .bits = s->got});
}

/* ------------------------------------------------------------------------------------------- B */

static void challenge(const struct rules *r, struct state *s, uint8_t addr)
{
    put(r, s,
        (struct packet){.type = CHALLENGE, .to_a = 1, .addr = addr, .cookie = (uint8_t)(addr + 1)});
}

/*
 * A packet of the peer's came. Where is it? A proof counts that was sent no earlier than all that came
 * from where the peer was.
 */
static void locate(const struct rules *r, struct state *s, struct entry *e, const struct packet *p)
{
    bool proven = r->any_cookie ? p->cookie != 0 : p->cookie == p->addr + 1;

    if (!r->old_proof && !r->new_psn)
        proven = proven && p->stamp >= e->heard;
    if (r->new_psn)
        proven = proven && !p->seen && !(p->type == DATA && e->bits >> p->msg & 1);
    if (p->addr == e->addr) {
        e->quiet = 0;
        if (p->stamp > e->heard)
            e->heard = p->stamp;
    } else if (proven || (r->no_proof && e->quiet)) {
        e->addr = p->addr;
        e->quiet = 0;
        e->heard = p->stamp;
        if (e->addr == X)
            s->wrong = THIRD_PARTY;
    } else if (e->quiet) {
        challenge(r, s, p->addr);
    }
}

/* The peer that sent a packet. NULL: none is known, and it was answered. */
static struct entry *find(const struct rules *r, struct state *s, const struct packet *p)
{
    struct entry *there = NULL;

    if (p->forged && !r->one_name)
        return NULL; /* not what A and B call each other */
    if (!r->by_address)
        return &s->entry[0];
    for (unsigned i = 0; i < 2; i++)
        if (s->entry[i].used && s->entry[i].addr == p->addr)
            there = &s->entry[i];
    if (there)
        return there;
    if (!r->one_name) { /* B has another name there, and resets what speaks to an unknown one */
        s->wrong = NEEDLESS;
        return NULL;
    }
    if (p->cookie != p->addr + 1) {
        challenge(r, s, p->addr);
        return NULL;
    }
    s->entry[1] = (struct entry){.used = 1, .addr = p->addr};
    return &s->entry[1];
}

static void b_receives(const struct rules *r, struct state *s, const struct packet *p)
{
    struct entry *e = find(r, s, p);

    if (!e)
        return;
    locate(r, s, e, p);
    if (p->type == ACK) {
        for (unsigned k = 0; k < MSGS; k++)
            if (p->bits >> k & 1 && s->result[k] == UNDER_WAY)
                s->result[k] = SUCCESS;
        return;
    }
    if (p->forged)
        s->wrong = FORGED;
    if (p->type == DATA && !(e->bits >> p->msg & 1)) {
        e->bits = (uint8_t)(e->bits | 1 << p->msg);
        if (s->executed[p->msg]++)
            s->wrong = TWICE;
    }
    put(r, s, (struct packet){.type = ACK, .to_a = 1, .addr = e->addr, .bits = e->bits});
}

/* ---------------------------------------------------------------------------------------- steps */

/* For labels; the text lives until the next call. */
static const char *text_of(const struct packet *p)
{
    static const char *const name[] = {"", "", "an empty packet", "an ACK", "a CHALLENGE"};
    static char text[100];
    char what[20], addr[12];

    if (p->type == DATA)
        snprintf(what, sizeof(what), "m%u", p->msg % 10u);
    else
        snprintf(what, sizeof(what), "%s", name[p->type]);
    if (p->addr == X)
        snprintf(addr, sizeof(addr), "X");
    else
        snprintf(addr, sizeof(addr), "address %u", p->addr % 10u);
    snprintf(text, sizeof(text), "%s%s%s%s", what,
             p->to_a        ? " from B to "
             : p->forged    ? " of the stranger as if from "
             : p->addr == X ? ", a copy, from "
             : p->seen      ? " (a copy) from A at "
                            : " from A at ",
             addr, p->cookie ? ", with a cookie" : "");
    return text;
}

static void next_packet(const struct rules *r, const struct state *old, unsigned i)
{
    const struct packet *p = &old->net[i];
    const char *text = text_of(p);

    for (unsigned copy = 0; copy < 2; copy++) {
        struct packet again = *p;
        struct state s = *old;

        lose(&s, i);
        again.seen = r->new_psn;
        if (copy)
            put(r, &s, again);
        if (p->to_a)
            a_receives(r, &s, p);
        else
            b_receives(r, &s, p);
        (copy ? search_fault : search_step)(&s, "arrives: %s%s", text,
                                            copy ? "; a copy stays" : "");
    }
    struct state s = *old;

    lose(&s, i);
    search_fault(&s, "lost: %s", text);
    s = *old;
    if (p->to_a || !s.thefts)
        return;
    s.thefts--;
    struct packet stolen = *p;

    stolen.addr = X;
    if (put(r, &s, stolen))
        search_fault(&s, "the thief sends a copy from X: %s", text);
}

/* From one of the addresses that A has. */
static void next_send(const struct rules *r, const struct state *old, struct packet p)
{
    p.stamp = old->changes;
    p.cookie = cookie_on(r, old, p.type);
    for (p.addr = 0; p.addr < ADDRESSES; p.addr++) {
        struct state s = *old;

        if (is_there(r, old, p.addr) && put(r, &s, p))
            search_step(&s, "A sends %s", text_of(&p));
    }
}

static void next_message(const struct rules *r, const struct state *old, unsigned k)
{
    bool of_b = is_of_b(r, k);
    struct packet p = {.type = DATA, .msg = (uint8_t)k, .to_a = of_b, .addr = old->entry[0].addr};
    struct state s = *old;

    if (old->result[k] == UNPOSTED && (of_b || k <= old->changes)) {
        s.result[k] = UNDER_WAY;
        search_step(&s, "%c posts m%u", "AB"[of_b], k);
    }
    if (old->result[k] != UNDER_WAY)
        return;
    if (!of_b)
        next_send(r, old, p);
    else if (put(r, &s, p))
        search_step(&s, "B sends %s", text_of(&p));
}

static void next(const struct rules *r, const struct state *old)
{
    struct state s;

    for (unsigned k = 0; k < MSGS; k++)
        next_message(r, old, k);
    for (unsigned i = 0; i < NET_MAX && old->net[i].type; i++)
        next_packet(r, old, i);
    if (old->cookie)
        next_send(r, old, (struct packet){.type = EMPTY});
    for (unsigned i = 0; i < 2; i++) {
        s = *old;
        s.entry[i].quiet = 1;
        if (s.entry[i].used)
            search_step(&s, "B hears nothing from A's address for a while");
    }
    if (old->first && old->entry[0].bits) {
        s = *old;
        s.first = 0;
        search_fault(&s, "A's first contact ends");
    }
    if (old->changes < r->changes) {
        s = *old;
        s.changes++;
        search_fault(&s, "A's address becomes %u", place(r, &s));
    }
    s = *old;
    if (!old->forgeries)
        return;
    s.forgeries--;
    if (put(r, &s, (struct packet){.type = DATA, .forged = 1, .addr = r->way[0]}))
        search_fault(&s, "the stranger sends in A's name");
}

static const char *bad(const struct rules *r, const struct state *s)
{
    (void)r;
    static const char *const why[] = {
        NULL,
        "executed twice in one life",
        "what a stranger sent was executed as the peer's",
        "what is sent to the peer goes to a third party",
        "a message failed without need",
    };

    return why[s->wrong];
}

/* A spoke where it is now, and all messages arrived. */
static bool goal(const struct rules *r, const struct state *s)
{
    for (unsigned k = 0; k < MSGS; k++)
        if (s->result[k] != SUCCESS && (is_of_b(r, k) || k <= s->changes))
            return false;
    return true;
}

const struct search_model search_model = SEARCH_MODEL("move");

/* ---------------------------------------------------------------------------------------- tests */

TEST(move__two_addresses)
{
    struct rules r = {.net = 3, .two = true, .from_b = 1};

    search_holds(&r, "two addresses at a time");
    r.by_address = true;
    search_bad(&r, "hole: looked for by address", "a message failed without need");
    r.one_name = true;
    search_bad(&r, "hole: by address, and everybody is told one name",
               "executed twice in one life");
}

TEST(move__stranger)
{
    struct rules r = {.net = 2, .from_b = 1, .forgeries = 2};

    search_holds(&r, "a stranger speaks in the peer's name");
    r.one_name = true;
    search_bad(&r, "hole: everybody is told one name",
               "what a stranger sent was executed as the peer's");
}

TEST(move__changes)
{
    search_holds(&(struct rules){.net = 2, .changes = 2, .way = {0, 1, 2}, .from_b = 1},
                 "the address changes, and again");
    search_holds(&(struct rules){.net = 2, .changes = 2, .way = {0, 1, 0}, .from_b = 1},
                 "there and back");
}

TEST(move__late_proof)
{
    struct rules r = {.net = 2, .changes = 2, .way = {0, 1, 0}, .from_b = 1, .old_proof = true};

    search_stuck(&r, "hole: a copy of a proof counts");
    r.old_proof = false;
    r.new_psn = true;
    search_stuck(&r, "hole: a late proof counts");
}

TEST(move__thief)
{
    struct rules r = {.net = 2, .changes = 1, .way = {0, 1}, .from_b = 1, .thefts = 2};

    search_holds(&r, "copies come from a third party");
    r.no_proof = true;
    search_bad(&r, "hole: a peer is where its packets come from",
               "what is sent to the peer goes to a third party");
    r.no_proof = false;
    r.any_cookie = true;
    search_bad(&r, "hole: a cookie is of no address",
               "what is sent to the peer goes to a third party");
}

/* A's packets arrive, and the acks go to where it was: it must be able to say where it is. */
TEST(move__during_first_contact)
{
    struct rules r = {.net = 3, .changes = 1, .way = {0, 1}, .from_b = 1, .fresh = true};

    search_holds(&r, "the address changes during first contact");
    r.no_late_proof = true;
    search_stuck(&r, "hole: no proof after first contact");
}
