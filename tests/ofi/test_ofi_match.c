/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives and messages that wait for each other: how many steps it takes to find one. Which one is
 * found is checked against lists in test_ofi_model.c.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "transport/adapters/ofi/queue.h"

enum {
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

/* Without tags no bit counts, whatever stands there. */
TEST(match__untagged)
{
    struct mrd_ofi_rx rx = {.tag = 1};
    struct mrd_ofi_match m;

    mrd_list_init(&rx.node);
    mrd_ofi_match_init(&m, 1);
    assert_int_equal(mrd_ofi_posted_add(&m, &rx), 0);
    assert_ptr_equal(mrd_ofi_posted_find(&m, peer(0), 2), &rx);
    mrd_ofi_match_fini(&m);
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
