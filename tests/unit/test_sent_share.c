/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of records are shared by peers: whoever has most of them leaves some to the others. */
#include "core/sent.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum { TRACKER = 1024, PAGES = 10, PEERS = 2, SHARED = PAGES - 2 * PEERS };

/* Records of data that a peer gets, up to as many as half its tracker holds. */
static uint32_t take(struct mrd_sents *s)
{
    uint32_t n = 0;

    while (n < TRACKER / 2 && mrd_sent_add(s, MRD_SENT_SEGMENT))
        n++;
    return n;
}

/* No more than half of the pages go to one peer. The next finds some, and refusals find one. */
TEST(mrd_sent_add__leaves_pages_to_others)
{
    struct unit_alloc alloc;
    struct mrd_pool pages;
    struct mrd_sents s[PEERS];

    unit_alloc_init(&alloc);
    assert_true(mrd_pool_init(&pages, &alloc.ops, sizeof(struct mrd_sent_page), PAGES));
    mrd_sent_init(&s[0], &pages, TRACKER, PEERS);
    mrd_sent_init(&s[1], &pages, TRACKER, PEERS);
    assert_int_equal(take(&s[0]), SHARED / 2 * MRD_SENT_PAGE);
    assert_int_equal(pages.used, SHARED / 2);
    assert_true(take(&s[1]) >= SHARED / 4 * MRD_SENT_PAGE);
    for (unsigned i = 0; i < PEERS; i++) {
        assert_int_equal(take(&s[i]), 0);
        assert_non_null(mrd_sent_add(&s[i], MRD_SENT_REFUSAL));
    }
    mrd_sent_fini(&s[0]);
    mrd_sent_fini(&s[1]);
    assert_int_equal(pages.used, 0);
    mrd_pool_fini(&pages);
    assert_int_equal(alloc.live_bytes, 0);
}

/* However many took their share, each other finds a page for data, and one for refusals. */
TEST(mrd_sent_add__finds_a_first_page)
{
    enum { MANY = 40 };
    struct unit_alloc alloc;
    struct mrd_pool pages;
    struct mrd_sents s[MANY];

    unit_alloc_init(&alloc);
    assert_true(mrd_pool_init(&pages, &alloc.ops, sizeof(struct mrd_sent_page), 2 * MANY + PAGES));
    for (unsigned i = 0; i < MANY; i++) {
        mrd_sent_init(&s[i], &pages, TRACKER, MANY);
        assert_true(take(&s[i]) >= MRD_SENT_PAGE);
        assert_non_null(mrd_sent_add(&s[i], MRD_SENT_REFUSAL));
    }
    for (unsigned i = 0; i < MANY; i++)
        mrd_sent_fini(&s[i]);
    assert_int_equal(pages.used, 0);
    mrd_pool_fini(&pages);
}

/* The packet leaves, and is acked. */
static void pass(struct mrd_sents *s, struct mrd_paths *paths, uint32_t psn)
{
    struct mrd_sent *rec = mrd_sent_get(s, psn);

    mrd_sent_transmit(s, rec, paths, 0, mrd_path_sent(paths, 0), 0);
    mrd_path_forgot(paths, 0);
    mrd_sent_ack(s, rec, paths);
    mrd_sent_release(s, rec);
}

/* A peer whose only page is the spare one sends data there, and finds another spare page later. */
TEST(mrd_sent_add__data_on_the_spare_page)
{
    enum { FIRST = MRD_SENT_PAGE, OTHERS = 8 };
    struct unit_alloc alloc;
    struct mrd_pool pages;
    struct mrd_sents s[OTHERS + 1], *last = &s[OTHERS];
    struct mrd_paths paths;
    struct mrd_path path = {0};
    struct mrd_path_load load = {0};

    unit_alloc_init(&alloc);
    mrd_paths_init(&paths, &path, &load, 1, 1, NULL, 0);
    assert_true(mrd_pool_init(&pages, &alloc.ops, sizeof(struct mrd_sent_page), 2 * OTHERS + 6));
    for (unsigned i = 0; i <= OTHERS; i++) {
        mrd_sent_init(&s[i], &pages, TRACKER, OTHERS + 1);
        take(&s[i]);
        assert_non_null(mrd_sent_add(&s[i], MRD_SENT_REFUSAL));
    }
    assert_non_null(last->spare);
    assert_null(mrd_sent_add(last, MRD_SENT_SEGMENT));
    for (uint32_t psn = 0; psn < FIRST; psn++)
        pass(last, &paths, psn);
    assert_int_equal(last->num_pages, 1);
    assert_int_equal(take(last), MRD_SENT_PAGE - 1);
    assert_null(last->spare);
    assert_non_null(mrd_sent_add(last, MRD_SENT_REFUSAL));
    assert_null(mrd_sent_add(last, MRD_SENT_SEGMENT));
    for (unsigned i = 0; i <= OTHERS; i++)
        mrd_sent_fini(&s[i]);
    mrd_pool_fini(&pages);
}
