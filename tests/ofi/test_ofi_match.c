/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives and messages that wait for each other: which one is found, against lists that are walked,
 * and how many steps it takes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "transport/adapters/ofi/queue.h"

enum {
    SEEDS = 8,
    TURNS = 20000,    /* of each seed */
    LENGTH_MAX = 400, /* of the lists, about */
    PEERS = 5,
    MANY = 100000,
    STEPS_MAX = 24,       /* of a receive or message on average, for each shape, whatever waits; */
    STEPS_POSTED_MAX = 8, /* of a receive that is posted before its message comes */
};

static char peers[PEERS];

static struct mrd_ofi_peer *peer(unsigned i)
{
    return (struct mrd_ofi_peer *)(void *)&peers[i];
}

/* ------------------------------------------------------------------------------------ the model */

/* Both kinds in the order in which they came; the queues are searched from the first on. */
struct model {
    struct mrd_ofi_match m;
    struct mrd_ofi_rx *rx[2 * LENGTH_MAX];
    struct mrd_ofi_unexpected *message[2 * LENGTH_MAX], *claimed[2 * LENGTH_MAX];
    const void *claimer[2 * LENGTH_MAX];
    unsigned num_rx, num_messages, num_claimed;
    uint64_t random;
    bool tagged;
};

static uint64_t draw(struct model *w, uint64_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (w->random >> 33) % below;
}

static const void *draw_context(struct model *w)
{
    return (const void *)(uintptr_t)(draw(w, 40) * 64);
}

/* Few different ones, so that they match; of some, bits at both ends are set. */
static uint64_t draw_tag(struct model *w)
{
    return draw(w, 4) << 62 | draw(w, 8) << 20 | draw(w, 4);
}

static uint64_t draw_ignored(struct model *w)
{
    switch (draw(w, 8)) {
    case 0:
        return ~0ull;
    case 1:
        return 3;
    case 2:
        return 3ull << 62;
    case 3:
        return 7ull << 20 | 1;
    case 4:
        return 1ull << draw(w, 64); /* many shapes: some tables have to go */
    default:
        return 0;
    }
}

static struct mrd_ofi_rx draw_receive(struct model *w)
{
    return (struct mrd_ofi_rx){.tagged = w->tagged,
                               .from = draw(w, 3) ? peer((unsigned)draw(w, PEERS)) : NULL,
                               .tag = draw_tag(w),
                               .ignore = draw_ignored(w),
                               .context = (void *)(uintptr_t)draw_context(w)};
}

static bool takes(const struct mrd_ofi_rx *rx, const struct mrd_ofi_peer *from, uint64_t tag)
{
    return (!rx->from || rx->from == from) &&
           (!rx->tagged || (rx->tag | rx->ignore) == (tag | rx->ignore));
}

static void drop_rx(struct model *w, unsigned i)
{
    mrd_ofi_posted_remove(&w->m, w->rx[i]);
    free(w->rx[i]);
    w->num_rx--;
    for (; i < w->num_rx; i++)
        w->rx[i] = w->rx[i + 1];
}

/* Takes it off the list of the model. */
static void forget_message(struct model *w, unsigned i)
{
    w->num_messages--;
    for (; i < w->num_messages; i++)
        w->message[i] = w->message[i + 1];
}

/* ---------------------------------------------------------------------------------- operations */

static void message_comes(struct model *w)
{
    struct mrd_ofi_unexpected *u = calloc(1, sizeof(*u));
    unsigned i = 0;

    assert_non_null(u);
    u->peer = peer((unsigned)draw(w, PEERS));
    u->head.tag = draw_tag(w);
    struct mrd_ofi_rx *found = mrd_ofi_posted_find(&w->m, u->peer, u->head.tag);
    while (i < w->num_rx && !takes(w->rx[i], u->peer, u->head.tag))
        i++;
    assert_ptr_equal(found, i < w->num_rx ? w->rx[i] : NULL);
    if (!found) {
        mrd_ofi_unexpected_add(&w->m, u);
        w->message[w->num_messages++] = u;
        return;
    }
    free(u);
    if (draw(w, 8)) /* else it takes more, and stays where it is */
        drop_rx(w, i);
}

static void receive_is_posted(struct model *w)
{
    struct mrd_ofi_rx *rx = malloc(sizeof(*rx));
    unsigned i = 0;

    assert_non_null(rx);
    *rx = draw_receive(w);
    mrd_list_init(&rx->node);
    mrd_list_init(&rx->from_node);
    struct mrd_ofi_unexpected *found = mrd_ofi_unexpected_find(&w->m, rx);
    while (i < w->num_messages && !takes(rx, w->message[i]->peer, w->message[i]->head.tag))
        i++;
    assert_ptr_equal(found, i < w->num_messages ? w->message[i] : NULL);
    if (!found) {
        assert_int_equal(mrd_ofi_posted_add(&w->m, rx), 0);
        w->rx[w->num_rx++] = rx;
        return;
    }
    free(rx);
    mrd_ofi_unexpected_remove(&w->m, found);
    free(found);
    forget_message(w, i);
}

/* A search that leaves the message where it is, or claims it. */
static void is_searched(struct model *w)
{
    struct mrd_ofi_rx like = draw_receive(w);
    struct mrd_ofi_unexpected *found = mrd_ofi_unexpected_find(&w->m, &like);
    unsigned i = 0;

    while (i < w->num_messages && !takes(&like, w->message[i]->peer, w->message[i]->head.tag))
        i++;
    assert_ptr_equal(found, i < w->num_messages ? w->message[i] : NULL);
    if (!found || draw(w, 2) || w->num_claimed == LENGTH_MAX)
        return;
    assert_int_equal(mrd_ofi_unexpected_claim(&w->m, found, like.context), 0);
    forget_message(w, i);
    w->claimer[w->num_claimed] = like.context;
    w->claimed[w->num_claimed++] = found;
}

static void claim_is_taken(struct model *w)
{
    const void *context = draw_context(w);
    struct mrd_ofi_unexpected *found = mrd_ofi_claimed_take(&w->m, context);
    unsigned i = 0;

    while (i < w->num_claimed && w->claimer[i] != context)
        i++;
    assert_ptr_equal(found, i < w->num_claimed ? w->claimed[i] : NULL);
    if (!found)
        return;
    free(found);
    w->num_claimed--;
    for (; i < w->num_claimed; i++) {
        w->claimed[i] = w->claimed[i + 1];
        w->claimer[i] = w->claimer[i + 1];
    }
}

static void receive_is_cancelled(struct model *w)
{
    const void *context = draw_context(w);
    struct mrd_ofi_rx *found = mrd_ofi_posted_of(&w->m, context);
    unsigned i = 0;

    while (i < w->num_rx && w->rx[i]->context != context)
        i++;
    assert_ptr_equal(found, i < w->num_rx ? w->rx[i] : NULL);
    if (found)
        drop_rx(w, i);
}

/* One peer is lost: what waits for it ends, from wherever it is. */
static void receives_end(struct model *w)
{
    const struct mrd_ofi_peer *lost = peer((unsigned)draw(w, PEERS));

    for (unsigned i = w->num_rx; i-- > 0;)
        if (w->rx[i]->from == lost)
            drop_rx(w, i);
}

static void step(struct model *w, uint64_t messages_percent)
{
    uint64_t what = draw(w, 100);

    if (what < 20)
        is_searched(w);
    else if (what < 25)
        claim_is_taken(w);
    else if (what < 28)
        receive_is_cancelled(w);
    else if (!draw(w, 1000))
        receives_end(w);
    else if (draw(w, 100) < messages_percent ? w->num_messages < LENGTH_MAX
                                             : w->num_rx == LENGTH_MAX)
        message_comes(w);
    else
        receive_is_posted(w);
}

/* Turns in which more messages come than receives are posted, and others; the queues run empty. */
static void run(uint64_t seed, bool tagged)
{
    struct model *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->random = seed;
    w->tagged = tagged;
    mrd_ofi_match_init(&w->m, seed);
    for (unsigned i = 0; i < TURNS; i++)
        step(w, i / 1500 % 3 == 0 ? 90 : i / 1500 % 3 == 1 ? 10 : 50);
    while (w->num_rx > 0)
        free(w->rx[--w->num_rx]);
    mrd_ofi_match_fini(&w->m);
    free(w);
}

TEST(match__against_lists)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        run(seed, true);
        run(seed, false);
    }
}

/* ---------------------------------------------------------------------------------- complexity */

enum order { OLDEST_FIRST, NEWEST_FIRST, SHUFFLED };

/* Numbers below MANY, each once. */
static uint32_t turn_of(enum order order, uint32_t i)
{
    if (order == OLDEST_FIRST)
        return i;
    return order == NEWEST_FIRST ? MANY - 1 - i : (uint32_t)((uint64_t)i * 61681 % MANY);
}

struct tags {
    uint64_t different; /* how many tags there are */
    unsigned peers;
    unsigned shapes;
};

static const struct tags kinds[] = {
    {MANY, 1, 1}, {MANY, PEERS, 1}, {7, PEERS, 1}, {1, 1, 1}, {MANY, 1, 6}};

static uint64_t tag_of(const struct tags *t, uint32_t i)
{
    return i % t->different << 4;
}

/* Of a shape: bits that no tag has are ignored, and of every other one the source, too. */
static struct mrd_ofi_rx receive_of(const struct tags *t, uint32_t i)
{
    unsigned shape = i % t->shapes;

    return (struct mrd_ofi_rx){.tagged = true,
                               .tag = tag_of(t, i),
                               .ignore = shape / 2,
                               .from = shape % 2 ? NULL : peer(i % t->peers),
                               .context = (void *)(uintptr_t)(i + 1)};
}

/* So far, of MANY that come and go: what is slow need not come to its end. */
static void expect_few(const struct mrd_ofi_match *m, const char *what, enum order order,
                       unsigned kind)
{
    uint64_t steps = m->steps, most = strcmp(what, "posted") ? STEPS_MAX : STEPS_POSTED_MAX;

    if (steps > most * kinds[kind].shapes * MANY)
        fail_msg("%s, order %d, kind %u: %llu steps for %d", what, order, kind,
                 (unsigned long long)steps, MANY);
}

/* Posts MANY, which are matched, or cancelled. */
static void post_and_end(const struct tags *t, enum order order, bool cancel, unsigned kind)
{
    struct mrd_ofi_rx *rx = calloc(MANY, sizeof(*rx)), *found;
    struct mrd_ofi_match m;

    assert_non_null(rx);
    mrd_ofi_match_init(&m, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        rx[i] = receive_of(t, i);
        mrd_list_init(&rx[i].node);
        assert_int_equal(mrd_ofi_posted_add(&m, &rx[i]), 0);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t n = turn_of(order, i);

        found = cancel ? mrd_ofi_posted_of(&m, rx[n].context)
                       : mrd_ofi_posted_find(&m, peer(n % t->peers), tag_of(t, n));
        assert_non_null(found);
        mrd_ofi_posted_remove(&m, found);
        expect_few(&m, cancel ? "cancelled" : "posted", order, kind);
    }
    mrd_ofi_match_fini(&m);
    free(rx);
}

/* MANY come that nobody waits for; receives take them, or searches claim them first. */
static void come_and_end(const struct tags *t, enum order order, bool claim, unsigned kind)
{
    struct mrd_ofi_match m;

    mrd_ofi_match_init(&m, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        struct mrd_ofi_unexpected *u = calloc(1, sizeof(*u));

        assert_non_null(u);
        u->peer = peer(i % t->peers);
        u->head.tag = tag_of(t, i);
        mrd_ofi_unexpected_add(&m, u);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        struct mrd_ofi_rx rx = receive_of(t, turn_of(order, i));
        struct mrd_ofi_unexpected *u = mrd_ofi_unexpected_find(&m, &rx);

        assert_non_null(u);
        if (claim) {
            assert_int_equal(mrd_ofi_unexpected_claim(&m, u, rx.context), 0);
        } else {
            mrd_ofi_unexpected_remove(&m, u);
            free(u);
        }
        expect_few(&m, claim ? "claimed" : "unexpected", order, kind);
    }
    for (uint32_t i = 0; i < MANY && claim; i++) {
        struct mrd_ofi_rx rx = receive_of(t, turn_of(order, i));

        free(mrd_ofi_claimed_take(&m, rx.context));
        expect_few(&m, "claimed", order, kind);
    }
    assert_true(mrd_list_empty(&m.unexpected) && mrd_list_empty(&m.claimed));
    mrd_ofi_match_fini(&m);
}

TEST(match__steps)
{
    for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        for (enum order order = OLDEST_FIRST; order <= SHUFFLED; order++) {
            post_and_end(&kinds[kind], order, false, kind);
            post_and_end(&kinds[kind], order, true, kind);
            come_and_end(&kinds[kind], order, false, kind);
            come_and_end(&kinds[kind], order, true, kind);
        }
    }
}

/* One that is searched for again and again, and is not there. */
TEST(match__steps_of_searches_in_vain)
{
    static const struct tags t = {MANY, 1, 1};
    struct mrd_ofi_match m;

    mrd_ofi_match_init(&m, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        struct mrd_ofi_unexpected *u = calloc(1, sizeof(*u));

        assert_non_null(u);
        u->peer = peer(0);
        u->head.tag = tag_of(&t, i);
        mrd_ofi_unexpected_add(&m, u);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        struct mrd_ofi_rx rx = receive_of(&t, i);

        rx.from = peer(1);
        assert_null(mrd_ofi_unexpected_find(&m, &rx));
        assert_null(mrd_ofi_posted_find(&m, rx.from, rx.tag));
        expect_few(&m, "in vain", OLDEST_FIRST, 0);
    }
    mrd_ofi_match_fini(&m);
}
