/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages and receives at random, of two senders and one receiver, against lists that are walked:
 * which message each receive gets, what searches find, and what is cancelled.
 */
#include "pair.h"

#include <string.h>

enum {
    SEEDS = 8,
    TURNS = 1500,
    SENDERS = 2,
    SLOTS = 150, /* receives at a time */
    MESSAGES = 150,
    LONG = EAGER_BYTES + 100, /* read by the receiver */
    MULTI_BYTES = 64,         /* a buffer for several messages of SHORT; MULTI_LEFT: it ends */
    MULTI_LEFT = 16,
    SHORT = 8,
};
#define MARK (1ull << 63) /* a tag that nothing takes but what waits for it */

struct slot {
    bool used, posted, tagged, multi;
    int from; /* -1: any */
    uint64_t tag, ignore;
    unsigned turn;
    uint64_t bytes_used; /* of a buffer for several messages */
    uint8_t buf[LONG];
};

struct message {
    uint64_t id, tag;
    int from;
    bool tagged;
    size_t len;
};

struct list {
    struct message m[MESSAGES];
    unsigned num;
};

struct world {
    struct end c, sender[SENDERS];
    fi_addr_t who[SENDERS]; /* at c */
    struct slot slot[SLOTS];
    struct list waiting, claimed;
    void *claimer[MESSAGES + 1];
    uint8_t out[LONG];
    uint64_t random, ids;
    unsigned turns, sent;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (w->random >> 33) % below;
}

static bool takes(const struct slot *s, const struct message *m)
{
    return s->tagged == m->tagged && (s->from < 0 || s->from == m->from) &&
           (!s->tagged || (s->tag | s->ignore) == (m->tag | s->ignore));
}

static fi_addr_t addr_of(const struct world *w, int from)
{
    return from < 0 ? FI_ADDR_UNSPEC : w->who[from];
}

static struct message take_off(struct list *l, unsigned i)
{
    struct message m = l->m[i];

    l->num--;
    memmove(&l->m[i], &l->m[i + 1], (l->num - i) * sizeof(m));
    return m;
}

/* ---------------------------------------------------------------------------------- what is expected */

/* The receive has got the message. */
static void expect_received(struct world *w, struct slot *s, const struct message *m)
{
    struct entry entry = end_ok(w->c.rx, s);
    const uint8_t *at = s->buf + s->bytes_used;
    bool over = true;
    uint64_t id;

    assert_int_equal(entry.ok.len, m->len);
    assert_int_equal(entry.src, w->who[m->from]);
    if (s->tagged)
        assert_int_equal(entry.ok.tag, m->tag);
    if (s->multi) {
        assert_ptr_equal(entry.ok.buf, at);
        s->bytes_used += m->len;
        over = MULTI_BYTES - s->bytes_used < MULTI_LEFT;
        assert_int_equal((entry.ok.flags & FI_MULTI_RECV) != 0, over);
    }
    memcpy(&id, at, sizeof(id));
    assert_int_equal(id, m->id);
    s->used = s->posted = !over;
}

static struct slot *free_slot(struct world *w)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (!w->slot[i].used)
            return &w->slot[i];
    return NULL;
}

/* The first posted receive that takes it. */
static struct slot *find_slot(struct world *w, const struct message *m)
{
    struct slot *first = NULL;

    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &w->slot[i];

        if (s->posted && takes(s, m) && (!first || s->turn < first->turn))
            first = s;
    }
    return first;
}

/* The first message that waits and is taken; at the end of the list: none. */
static unsigned find_message(const struct world *w, const struct slot *s)
{
    unsigned i = 0;

    while (i < w->waiting.num && !takes(s, &w->waiting.m[i]))
        i++;
    return i;
}

/* ---------------------------------------------------------------------------------------- operations */

static uint64_t draw_tag(struct world *w)
{
    return draw(w, 3) << 40 | draw(w, 12);
}

static uint64_t draw_ignored(struct world *w)
{
    static const uint64_t masks[] = {0, 0, 0, 3, 3ull << 40, ~MARK};
    const unsigned num = sizeof(masks) / sizeof(masks[0]);
    uint64_t i = draw(w, num + 2);

    return i < num ? masks[i] : 1ull << draw(w, 63); /* many shapes: some tables have to go */
}

/* What was sent before is there when this message is. */
static void send_mark(struct world *w, const struct end *from)
{
    char in;

    POST(fi_trecv(w->c.ep, &in, 0, NULL, FI_ADDR_UNSPEC, MARK, 0, &in));
    POST(fi_tinject(from->ep, NULL, 0, from->to, MARK));
    end_ok(w->c.rx, &in);
}

static void send_one(struct world *w)
{
    struct message m = {.id = ++w->ids, .from = (int)draw(w, SENDERS), .tagged = draw(w, 5) > 0};
    struct end *from = &w->sender[m.from];

    if (w->waiting.num == MESSAGES)
        return;
    m.tag = m.tagged ? draw_tag(w) : 0;
    m.len = m.tagged && !draw(w, 6) ? LONG : SHORT;
    memcpy(w->out, &m.id, sizeof(m.id));
    struct slot *s = find_slot(w, &m);
    if (m.len == LONG) { /* its bytes have to stay until they are read */
        uint8_t *copy = memcpy(zeros(LONG), w->out, LONG);

        POST(fi_tsend(from->ep, copy, LONG, NULL, from->to, m.tag, copy));
        w->sent++;
    } else if (m.tagged) {
        POST(fi_tinject(from->ep, w->out, SHORT, from->to, m.tag));
    } else {
        POST(fi_inject(from->ep, w->out, SHORT, from->to));
    }
    if (s) {
        expect_received(w, s, &m);
        return;
    }
    send_mark(w, from);
    w->waiting.m[w->waiting.num++] = m;
}

static void post(struct world *w, struct slot *s)
{
    unsigned i;

    s->used = s->posted = true;
    s->turn = w->turns;
    s->bytes_used = 0;
    if (s->tagged)
        POST(fi_trecv(w->c.ep, s->buf, LONG, NULL, addr_of(w, s->from), s->tag, s->ignore, s));
    else
        POST(end_recvmsg(&w->c, s->buf, s->multi ? MULTI_BYTES : LONG, addr_of(w, s->from), s,
                         s->multi ? FI_MULTI_RECV : 0));
    while (s->posted && (i = find_message(w, s)) < w->waiting.num) {
        struct message m = take_off(&w->waiting, i);

        expect_received(w, s, &m);
    }
}

static void post_one(struct world *w)
{
    struct slot *s = free_slot(w);

    if (!s)
        return;
    s->tagged = draw(w, 5) > 0;
    s->multi = !s->tagged && draw(w, 2);
    s->from = (int)draw(w, SENDERS + 1) - 1;
    s->tag = draw_tag(w);
    s->ignore = draw_ignored(w);
    post(w, s);
}

static void cancel_one(struct world *w)
{
    struct slot *s = &w->slot[draw(w, SLOTS)];

    if (!s->posted) {
        assert_int_equal(fi_cancel(&w->c.ep->fid, s), -FI_ENOENT);
        return;
    }
    assert_int_equal(fi_cancel(&w->c.ep->fid, s), 0);
    end_fails(w->c.rx, s, FI_ECANCELED);
    s->used = s->posted = false;
}

static void search(struct world *w)
{
    static const uint64_t flags[] = {FI_PEEK, FI_PEEK | FI_CLAIM, FI_PEEK | FI_DISCARD};
    struct slot like = {.tagged = true, .from = (int)draw(w, SENDERS + 1) - 1, .tag = draw_tag(w)};
    unsigned kind = (unsigned)draw(w, 3), i;
    struct fi_msg_tagged msg = {.addr = addr_of(w, like.from), .tag = like.tag};

    if (kind == 1 && w->claimed.num == MESSAGES)
        return;
    like.ignore = msg.ignore = draw_ignored(w);
    msg.context = &w->claimer[draw(w, 4)];
    i = find_message(w, &like);
    assert_int_equal(fi_trecvmsg(w->c.ep, &msg, flags[kind]), 0);
    if (i == w->waiting.num) {
        end_fails(w->c.rx, msg.context, FI_ENOMSG);
        return;
    }
    struct entry entry = end_ok(w->c.rx, msg.context);
    assert_int_equal(entry.ok.tag, w->waiting.m[i].tag);
    assert_int_equal(entry.ok.len, w->waiting.m[i].len);
    assert_int_equal(entry.src, w->who[w->waiting.m[i].from]);
    if (!kind)
        return;
    w->claimer[w->claimed.num] = msg.context;
    if (kind == 1)
        w->claimed.m[w->claimed.num++] = w->waiting.m[i];
    (void)take_off(&w->waiting, i);
}

static void take_claim(struct world *w)
{
    struct slot *s = free_slot(w);
    void *context = &w->claimer[draw(w, 4)];
    unsigned i = 0;
    uint64_t id;

    while (i < w->claimed.num && w->claimer[i] != context)
        i++;
    if (!s)
        return;
    struct iovec iov = (struct iovec){s->buf, LONG};
    assert_int_equal(
        fi_trecvmsg(w->c.ep,
                    &(struct fi_msg_tagged){.msg_iov = &iov, .iov_count = 1, .context = context},
                    FI_CLAIM),
        i < w->claimed.num ? 0 : -FI_EINVAL);
    if (i == w->claimed.num)
        return;
    struct message m = take_off(&w->claimed, i);
    memmove(&w->claimer[i], &w->claimer[i + 1], (w->claimed.num - i) * sizeof(w->claimer[0]));
    assert_int_equal(end_ok(w->c.rx, context).ok.len, m.len);
    memcpy(&id, s->buf, sizeof(id));
    assert_int_equal(id, m.id);
}

/* ---------------------------------------------------------------------------------------------- turns */

static void take_sent(struct world *w)
{
    struct entry entry;

    for (unsigned i = 0; i < SENDERS; i++) {
        while (end_take(w->sender[i].tx, &entry)) {
            assert_int_equal(entry.err, 0);
            w->sent--;
        }
    }
}

static void turn(struct world *w, unsigned messages_percent)
{
    uint64_t what = draw(w, 100);

    w->turns++;
    if (what < 15)
        search(w);
    else if (what < 22)
        take_claim(w);
    else if (what < 26)
        cancel_one(w);
    else if (draw(w, 100) < messages_percent)
        send_one(w);
    else
        post_one(w);
    take_sent(w);
}

/* All that waits is taken, so that no sender waits. */
static void finish(struct world *w)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (w->slot[i].posted) {
            assert_int_equal(fi_cancel(&w->c.ep->fid, &w->slot[i]), 0);
            end_fails(w->c.rx, &w->slot[i], FI_ECANCELED);
            w->slot[i].used = w->slot[i].posted = false;
        }
    }
    while (w->waiting.num) {
        struct slot *s = &w->slot[0];

        *s = (struct slot){.tagged = w->waiting.m[0].tagged, .from = -1, .ignore = ~MARK};
        post(w, s);
        assert_false(s->posted);
    }
    while (w->claimed.num)
        take_claim(w);
    UNTIL((take_sent(w), w->sent == 0));
}

static void run(uint64_t seed)
{
    const struct end_options ordered = {.order = FI_ORDER_SAS};
    struct world *w = zeros(sizeof(*w));

    w->random = seed;
    end_open(&w->c, &ordered, NULL);
    end_set_min_multi_recv(&w->c, MULTI_LEFT);
    for (unsigned i = 0; i < SENDERS; i++) {
        end_open(&w->sender[i], &ordered, NULL);
        w->who[i] = end_meet(&w->c, &w->sender[i]);
        w->sender[i].to = end_meet(&w->sender[i], &w->c);
    }
    for (unsigned i = 0; i < TURNS; i++)
        turn(w, i / 250 % 2 ? 15 : 85);
    finish(w);
    for (unsigned i = 0; i < SENDERS; i++)
        end_close(&w->sender[i]);
    end_close(&w->c);
}

TEST(ofi_model__at_random)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        run(seed);
    }
}
