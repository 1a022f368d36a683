/* SPDX-License-Identifier: BSD-2-Clause */
/* Many messages: their order, receives for many of them, and more than anybody waits for. */
#include "pair.h"

#include <string.h>

#include "core/rng.h"

enum {
    WINDOW = 64,
    LEN_MAX = 50000,
    MIXED = 2000,
    UNEXPECTED = 700, /* more than the endpoint has buffers for */
    BUFFERS = 4,
    BUFFER_BYTES = 1 << 20,
    RELEASE_BYTES = 64 << 10,
};

/* Every fourth message is long; each begins with its number. */
static size_t len_of(uint64_t message)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, message);
    uint64_t r = mrd_rng_u64(&rng);
    if (r % 4 == 0)
        return EAGER_BYTES + 1 + (r >> 8) % (LEN_MAX - EAGER_BYTES);
    return (r >> 8) % (r % 4 == 1 ? EAGER_BYTES + 1 : INJECT_BYTES + 1);
}

/* ------------------------------------------------------------------------------------------ order */

/* Of one end: what it still sends and receives. */
struct flow {
    struct end *end;
    uint8_t *out[WINDOW]; /* NULL: free */
    uint8_t *in[WINDOW];
    uint64_t first;  /* message number of this direction, here sent */
    uint64_t awaits; /* and of those received */
    unsigned sent, told, posted, got;
};

static void flow_post(struct flow *f)
{
    while (f->sent < MIXED && !f->out[f->sent % WINDOW]) {
        uint64_t message = f->first + f->sent;
        uint8_t **out = &f->out[f->sent % WINDOW];

        *out = filled(len_of(message), message);
        POST(fi_send(f->end->ep, *out, len_of(message), NULL, f->end->to, out));
        f->sent++;
    }
    while (f->posted < MIXED && f->posted - f->got < WINDOW / 2) {
        uint8_t *in = f->in[f->posted % WINDOW];

        POST(fi_recv(f->end->ep, in, LEN_MAX + 1, NULL, FI_ADDR_UNSPEC, in));
        f->posted++;
    }
}

/* Messages end in any order, but go to receives in theirs. */
static void flow_take(struct flow *f, bool *over)
{
    struct entry entry;

    while (end_take(f->end->tx, &entry)) {
        uint8_t **out = entry.ok.op_context;

        assert_int_equal(entry.err, 0);
        *out = NULL;
        f->told++;
    }
    while (end_take(f->end->rx, &entry)) {
        assert_int_equal(entry.err, 0);
        for (unsigned i = 0; i < WINDOW; i++)
            if (f->in[i] == entry.ok.op_context)
                over[i] = true;
        *(size_t *)(void *)((uint8_t *)entry.ok.op_context + LEN_MAX + 8) = entry.ok.len;
    }
    while (f->got < f->posted && over[f->got % WINDOW]) {
        uint64_t message = f->awaits + f->got;
        uint8_t *in = f->in[f->got % WINDOW];

        assert_int_equal(*(size_t *)(void *)(in + LEN_MAX + 8), len_of(message));
        assert_filled(in, len_of(message), message);
        over[f->got % WINDOW] = false;
        f->got++;
    }
}

static void flow_init(struct flow *f, struct end *end, uint64_t first, uint64_t awaits)
{
    *f = (struct flow){.end = end, .first = first, .awaits = awaits};
    for (unsigned i = 0; i < WINDOW; i++)
        f->in[i] = blank(LEN_MAX + 16);
}

TEST_F(ordered, ofi_order__mixed_messages_both_ways)
{
    static bool over[2][WINDOW];
    uint64_t since_ns = end_now_ns();
    struct flow f[2];

    flow_init(&f[0], &self->a, 0, MIXED);
    flow_init(&f[1], &self->b, MIXED, 0);
    while (f[0].got < MIXED || f[1].got < MIXED || f[0].told < MIXED || f[1].told < MIXED) {
        for (unsigned i = 0; i < 2; i++) {
            flow_post(&f[i]);
            flow_take(&f[i], over[i]);
        }
        end_patience(since_ns);
    }
}

/* ------------------------------------------------------------------------------------- unexpected */

TEST_F(ordered, ofi_order__hundreds_that_no_receive_waits_for)
{
    uint8_t *in = blank(LEN_MAX + 1);
    int rx;

    for (unsigned i = 0; i < UNEXPECTED; i++)
        POST(fi_send(self->a.ep, filled(len_of(i), i), len_of(i), NULL, self->a.to, NULL));
    ends_drive_for(SILENCE_MS);
    for (unsigned i = 0; i < UNEXPECTED; i++) {
        POST(fi_recv(self->b.ep, in, LEN_MAX + 1, NULL, self->b.to, &rx));
        assert_int_equal(end_ok(self->b.rx, &rx).ok.len, len_of(i));
        assert_filled(in, len_of(i), i);
    }
    for (unsigned i = 0; i < UNEXPECTED; i++)
        end_ok(self->a.tx, NULL);
    end_silent(self->a.tx);
}

/* -------------------------------------------------------------------- receives for many messages */

struct many {
    uint8_t *memory;
    size_t used; /* bytes told of */
    unsigned released;
};

/* Where long and short ones end in any order, each has a place of its own. */
static void many_take(struct many *m, const struct entry *entry, uint64_t message)
{
    size_t at = (size_t)((uint8_t *)entry->ok.buf - m->memory);

    assert_int_equal(entry->err, 0);
    assert_true(at + entry->ok.len <= BUFFER_BYTES);
    assert_int_equal(m->released, 0); /* the release is the last that is told of it */
    assert_filled(entry->ok.buf, entry->ok.len, message);
    m->used += entry->ok.len;
    m->released += (entry->ok.flags & FI_MULTI_RECV) != 0;
    assert_true(m->used <= BUFFER_BYTES);
}

/* The number of a message that begins with `word`, among the first ones. */
static uint64_t find(const uint64_t *first, unsigned num, uint64_t word)
{
    unsigned i = 0;

    while (i < num && first[i] != word)
        i++;
    assert_true(i < num);
    return i;
}

TEST_F(ordered, ofi_order__receives_for_many_are_released_once)
{
    enum { NUM = 300 };
    static struct many many[BUFFERS];
    static uint8_t *out[NUM];
    static uint64_t first[NUM];
    static bool seen[NUM];
    unsigned sent = 0, got = 0, posted = 0;
    uint64_t since_ns = end_now_ns();
    struct end *a = &self->a, *b = &self->b;
    struct entry entry;

    end_set_min_multi_recv(b, RELEASE_BYTES);
    memset(many, 0, sizeof(many));
    for (unsigned i = 0; i < NUM; i++) {
        out[i] = filled(len_of(i) + 8, i);
        memcpy(&first[i], out[i], 8);
    }
    while (got < NUM) {
        /* Two at a time are posted. */
        while (posted < BUFFERS && (posted < 2 || many[posted - 2].released)) {
            struct many *m = &many[posted++];

            m->memory = blank(BUFFER_BYTES);
            POST(end_recvmsg(b, m->memory, BUFFER_BYTES, FI_ADDR_UNSPEC, m, FI_MULTI_RECV));
        }
        while (sent < NUM && fi_send(a->ep, out[sent], len_of(sent) + 8, NULL, a->to, NULL) == 0)
            sent++;
        while (end_take(a->tx, &entry))
            assert_int_equal(entry.err, 0);
        while (end_take(b->rx, &entry)) {
            uint64_t word;

            memcpy(&word, entry.ok.buf, 8);
            uint64_t message = find(first, NUM, word);
            assert_false(seen[message]);
            seen[message] = true;
            assert_int_equal(entry.ok.len, len_of(message) + 8);
            many_take(entry.ok.op_context, &entry, message);
            got++;
        }
        end_patience(since_ns);
    }
    /* Each was released when less was left than asked for, and not before. */
    for (unsigned i = 0; i < posted; i++)
        assert_int_equal(many[i].released, many[i].used > BUFFER_BYTES - RELEASE_BYTES);
    assert_true(many[0].released && many[1].released);
}

/* Messages that came before go into one such receive, too. */
TEST_F(ordered, ofi_order__receive_for_many_takes_unexpected_ones)
{
    enum { NUM = 20, BYTES = 5000 };
    uint8_t *memory = blank(NUM * BYTES), *out = filled(BYTES, 7);
    unsigned released = 0;
    struct entry entry;
    int rx;

    for (unsigned i = 0; i < NUM; i++)
        POST(fi_send(self->a.ep, out, BYTES, NULL, self->a.to, NULL));
    ends_drive_for(20);
    POST(end_recvmsg(&self->b, memory, NUM * BYTES, FI_ADDR_UNSPEC, &rx, FI_MULTI_RECV));
    for (unsigned i = 0; i < NUM; i++) {
        entry = end_ok(self->b.rx, &rx);
        assert_ptr_equal(entry.ok.buf, memory + i * BYTES);
        assert_filled(entry.ok.buf, BYTES, 7);
        released += (entry.ok.flags & FI_MULTI_RECV) != 0;
    }
    assert_true(entry.ok.flags & FI_MULTI_RECV);
    assert_int_equal(released, 1);
}

/* It is the application's again when that is told, and not before what is being read has come. */
TEST_F(plain, ofi_order__cancelled_receive_for_many)
{
    enum { BYTES = 32 << 20 };
    uint8_t *out = filled(BYTES, 1), *in = blank(BYTES + 65536);
    struct end *b = &self->b;
    int rx, tx;

    POST(end_recvmsg(b, in, BYTES + 65536, FI_ADDR_UNSPEC, &rx, FI_MULTI_RECV));
    POST(fi_send(self->a.ep, out, BYTES, NULL, self->a.to, &tx));
    UNTIL(in[0] != BLANK);
    assert_int_equal(fi_cancel(&b->ep->fid, &rx), 0);
    struct entry entry = end_next(b->rx);
    assert_int_equal(entry.err, 0);
    assert_int_equal(entry.ok.len, BYTES);
    assert_false(entry.ok.flags & FI_MULTI_RECV);
    assert_filled(in, BYTES, 1);
    entry = end_next(b->rx);
    assert_int_equal(entry.err, FI_ECANCELED);
    end_ok(self->a.tx, &tx);
}
