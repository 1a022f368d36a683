/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/limits.h"
#include "core/pmtu.h"
#include "core/rng.h"
#include "tests/kit/kit.h"

enum { BASE = 1088, LIMIT = 8192 };

static const struct mrd_pmtu_range range = {BASE, LIMIT};

FIXTURE(search)
{
    struct mrd_pmtu m;
};

static void begin(struct search *f)
{
    mrd_pmtu_init(&f->m, &range, false);
}

FIXTURE_FROM(search, begin, kit_nothing);

/* Probes until none is due; packets of up to `path` bytes come through. Returns their number. */
static unsigned search_in(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint32_t path,
                          uint64_t now_ns)
{
    unsigned probes = 0;
    uint32_t bytes;

    while ((bytes = mrd_pmtu_next(m, r, now_ns))) {
        assert_true(bytes > m->payload && bytes <= r->limit && bytes % 64 == 0);
        mrd_pmtu_sent(m, bytes);
        assert_int_equal(mrd_pmtu_next(m, r, now_ns), 0); /* one at a time */
        if (bytes <= path)
            mrd_pmtu_acked(m, r, bytes, now_ns);
        else
            mrd_pmtu_lost(m, bytes, now_ns);
        assert_true(++probes < 100);
    }
    return probes;
}

static unsigned search(struct mrd_pmtu *m, uint32_t path, uint64_t now_ns)
{
    return search_in(m, &range, path, now_ns);
}

/* Whatever the path takes is found, to the last multiple of 64. */
TEST(mrd_pmtu_next__finds_any_size)
{
    for (uint32_t path = 0; path <= LIMIT + 64; path += 32) {
        uint32_t expected = path < BASE ? BASE : path > LIMIT ? LIMIT : path / 64 * 64;
        struct mrd_pmtu m;

        mrd_pmtu_init(&m, &range, false);
        assert_int_equal(m.payload, BASE);
        assert_true(search(&m, path, 0) <= 30);
        assert_int_equal(m.payload, expected);
    }
}

/* Most networks need one probe; Ethernet four. */
TEST_F(search, mrd_pmtu_next__likely_sizes_first)
{
    assert_int_equal(search(&self->m, LIMIT, 0), 1);
    mrd_pmtu_init(&self->m, &range, false);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(mrd_pmtu_next(&self->m, &range, 0), LIMIT);
        mrd_pmtu_sent(&self->m, LIMIT);
        mrd_pmtu_lost(&self->m, LIMIT, 0);
    }
    assert_int_equal(mrd_pmtu_next(&self->m, &range, 0), 1344);
    mrd_pmtu_init(&self->m, &(struct mrd_pmtu_range){1024, 1024}, false); /* nothing to search */
    assert_int_equal(mrd_pmtu_next(&self->m, &(struct mrd_pmtu_range){1024, 1024}, 0), 0);
    assert_int_equal(self->m.payload, 1024);
}

/* A few probes that were lost for other reasons do not hide a size. */
TEST_F(search, mrd_pmtu_lost__three_in_a_row)
{
    for (unsigned i = 0; i < 2; i++) {
        mrd_pmtu_sent(&self->m, mrd_pmtu_next(&self->m, &range, 0));
        mrd_pmtu_lost(&self->m, LIMIT, 0);
        mrd_pmtu_lost(&self->m, LIMIT, 0); /* told twice: it is none in flight */
    }
    assert_int_equal(mrd_pmtu_next(&self->m, &range, 0), LIMIT);
    mrd_pmtu_sent(&self->m, LIMIT);
    mrd_pmtu_acked(&self->m, &range, LIMIT, 0);
    assert_int_equal(self->m.payload, LIMIT);
}

/* An ack of a probe that was taken for lost counts, as long as nothing else was sent in its place. */
TEST_F(search, mrd_pmtu_acked__late)
{
    search(&self->m, 4000, 0);
    assert_int_equal(self->m.payload, 3968);
    mrd_pmtu_acked(&self->m, &range, 6400, 0);
    assert_int_equal(self->m.payload, 6400);
    mrd_pmtu_acked(&self->m, &range, LIMIT + 64, 0);
    assert_int_equal(self->m.payload, 6400);
}

/* When a search has ended another follows after a minute, then after two, at last every ten. */
TEST_F(search, mrd_pmtu_next__searches_again)
{
    static const unsigned minutes[] = {1, 2, 4, 8, 10, 10};
    uint64_t now_ns = 7;

    search(&self->m, 1400, now_ns);
    for (unsigned i = 0; i < 6; i++) {
        uint64_t next_ns = now_ns + minutes[i] * 60 * MRD_SEC;

        assert_int_equal(mrd_pmtu_next(&self->m, &range, next_ns - MRD_SEC), 0);
        assert_int_equal(search(&self->m, 1400 + 200 * i, next_ns) > 0, 1);
        assert_int_equal(self->m.payload, (1400 + 200 * i) / 64 * 64);
        now_ns = next_ns;
    }
}

/* The next search is due also if nobody asked for hours: the clock of searches wraps every 18. */
TEST(mrd_pmtu_next__after_hours)
{
    struct mrd_pmtu m;

    for (unsigned hours = 1; hours < 40; hours++) {
        mrd_pmtu_init(&m, &range, false);
        search(&m, 1400, 0);
        assert_int_equal(mrd_pmtu_next(&m, &range, hours * 3600 * MRD_SEC), LIMIT);
    }
}

/*
 * The path becomes smaller: packets above the base are lost, and none is acked. But neither a burst
 * of losses counts, nor losses among acks of packets as large, nor what carries no more than the base.
 */
TEST_F(search, mrd_pmtu_payload_lost__when_nothing_large_comes)
{
    const uint64_t srtt_ns = 5 * MRD_MSEC, span_ns = 30 * MRD_MSEC;

    search(&self->m, LIMIT, 0);
    for (unsigned i = 0; i < 1000; i++)
        assert_false(mrd_pmtu_payload_lost(&self->m, &range, LIMIT, srtt_ns, span_ns - 1));
    mrd_pmtu_payload_acked(&self->m, &range, LIMIT);
    for (unsigned i = 0; i < 100; i++) {
        assert_false(
            mrd_pmtu_payload_lost(&self->m, &range, LIMIT, srtt_ns, MRD_SEC + i * span_ns));
        assert_false(mrd_pmtu_payload_lost(&self->m, &range, BASE, srtt_ns, MRD_SEC + i * span_ns));
        if (i % 3 == 2)
            mrd_pmtu_payload_acked(&self->m, &range, LIMIT);
    }
    mrd_pmtu_payload_acked(&self->m, &range, LIMIT);
    for (unsigned i = 0; i < 4; i++) {
        mrd_pmtu_payload_acked(&self->m, &range, BASE); /* smaller ones come through */
        mrd_pmtu_payload_acked(&self->m, &range, LIMIT - 1);
        assert_int_equal(
            mrd_pmtu_payload_lost(&self->m, &range, LIMIT, srtt_ns, 9 * MRD_SEC + i * span_ns / 3),
            i == 3);
    }
    assert_int_equal(self->m.payload, BASE);
    assert_false(
        mrd_pmtu_payload_lost(&self->m, &range, LIMIT, srtt_ns, 20 * MRD_SEC)); /* of before */
    /* The search begins at once, with what came through before. */
    assert_int_equal(mrd_pmtu_next(&self->m, &range, 10 * MRD_SEC), LIMIT);
    search(&self->m, 1400, 10 * MRD_SEC);
    assert_int_equal(self->m.payload, 1344);
}

/* Some smaller ones are lost by chance: that others of their size come says nothing of large ones. */
TEST_F(search, mrd_pmtu_payload_acked__smaller_than_the_largest_lost)
{
    const uint64_t srtt_ns = 5 * MRD_MSEC, span_ns = 30 * MRD_MSEC;

    search(&self->m, LIMIT, 0);
    for (unsigned i = 0; i < 4; i++) {
        mrd_pmtu_payload_acked(&self->m, &range, LIMIT / 2);
        assert_int_equal(mrd_pmtu_payload_lost(&self->m, &range, i % 2 ? LIMIT / 2 : LIMIT, srtt_ns,
                                               MRD_SEC + i * span_ns / 3),
                         i == 3);
    }
    assert_int_equal(self->m.payload, BASE);
}

/* The route takes less from now on: what was lost of the sizes before is no sign any more. */
TEST_F(search, mrd_pmtu_limit__forgets_what_was_lost)
{
    const uint64_t srtt_ns = 5 * MRD_MSEC, span_ns = 30 * MRD_MSEC;
    static const struct mrd_pmtu_range less = {BASE, LIMIT / 2};

    search(&self->m, LIMIT, 0);
    assert_false(mrd_pmtu_payload_lost(&self->m, &range, LIMIT, srtt_ns, MRD_SEC));
    mrd_pmtu_limit(&self->m, &less);
    for (unsigned i = 0; i < 10; i++) {
        mrd_pmtu_payload_acked(&self->m, &less, LIMIT / 2);
        assert_false(
            mrd_pmtu_payload_lost(&self->m, &less, LIMIT / 2, srtt_ns, 2 * MRD_SEC + i * span_ns));
    }
}

/* What the sender's own route does not take is not tried before the next search, a minute later. */
TEST_F(search, mrd_pmtu_too_big__for_a_while)
{
    const uint64_t now_ns = 7 * MRD_SEC;

    search(&self->m, LIMIT, 0);
    for (unsigned i = 0; i < 5; i++) {
        mrd_pmtu_too_big(&self->m, 1344, now_ns + i);
        assert_int_equal(self->m.payload, 1344);
    }
    assert_int_equal(mrd_pmtu_next(&self->m, &range, now_ns + 59 * MRD_SEC), 0);
    assert_int_equal(mrd_pmtu_next(&self->m, &range, now_ns + 61 * MRD_SEC), LIMIT);
    mrd_pmtu_sent(&self->m, LIMIT);
    mrd_pmtu_too_big(&self->m, 1344, now_ns + 61 * MRD_SEC);
    mrd_pmtu_lost(&self->m, LIMIT, now_ns + 61 * MRD_SEC);
    assert_int_equal(mrd_pmtu_next(&self->m, &range, now_ns + 179 * MRD_SEC), 0);
    search(&self->m, LIMIT, now_ns + 182 * MRD_SEC);
    assert_int_equal(self->m.payload, LIMIT);
    /* One that comes amid a search ends it only above what the route takes. */
    mrd_pmtu_init(&self->m, &range, false);
    mrd_pmtu_too_big(&self->m, 1344, 0);
    assert_int_equal(self->m.payload, BASE);
    assert_int_equal(search(&self->m, 1400, 0) > 0, 1);
    assert_int_equal(self->m.payload, 1344);
}

/* A probe of a size that is not tried any more was lost: that hides none of the others. */
TEST(mrd_pmtu_lost__of_another_size)
{
    for (unsigned falls = 0; falls < 2; falls++) {
        struct mrd_pmtu m;

        mrd_pmtu_init(&m, &range, false);
        if (falls) {
            search(&m, 4032, 0);
            mrd_pmtu_next(&m, &range, 61 * MRD_SEC);
        }
        mrd_pmtu_sent(&m, LIMIT);
        if (falls)
            for (unsigned i = 0; i < 4; i++)
                mrd_pmtu_payload_lost(&m, &range, 4032, 0, (62 + i) * MRD_SEC);
        else
            mrd_pmtu_too_big(&m, 1344, 0);
        mrd_pmtu_lost(&m, LIMIT, 70 * MRD_SEC);
        uint32_t bytes = mrd_pmtu_next(&m, &range, 70 * MRD_SEC);
        assert_int_equal(bytes, falls ? 4032 : 1344);
        for (unsigned i = 0; i < 2; i++) {
            mrd_pmtu_sent(&m, bytes);
            mrd_pmtu_lost(&m, bytes, 70 * MRD_SEC);
            assert_int_equal(mrd_pmtu_next(&m, &range, 70 * MRD_SEC), bytes);
        }
    }
}

/* Who is sure of the size begins with it, and falls like others if it does not come through. */
TEST_F(search, mrd_pmtu_init__sure)
{
    mrd_pmtu_init(&self->m, &range, true);
    assert_int_equal(self->m.payload, LIMIT);
    assert_int_equal(mrd_pmtu_next(&self->m, &range, 0), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(mrd_pmtu_payload_lost(&self->m, &range, LIMIT, 0, MRD_SEC * (i + 1)),
                         i == 3);
    assert_int_equal(self->m.payload, BASE);
    search(&self->m, LIMIT, MRD_SEC * 5);
    assert_int_equal(self->m.payload, LIMIT);
}

TEST_F(search, mrd_pmtu_limit__of_the_route)
{
    const struct mrd_pmtu_range less = {BASE, 4096}, least = {512, 512};

    search(&self->m, LIMIT, 0);
    mrd_pmtu_limit(&self->m, &less);
    assert_int_equal(self->m.payload, 4096);
    assert_int_equal(mrd_pmtu_next(&self->m, &less, 1000 * MRD_SEC), 0);
    assert_int_equal(mrd_pmtu_next(&self->m, &range, 1000 * MRD_SEC), LIMIT);
    mrd_pmtu_limit(&self->m, &least);
    assert_int_equal(self->m.payload, 512);
    assert_false(mrd_pmtu_payload_lost(&self->m, &least, 4096, 0, MRD_SEC));
}

/* At 20% loss the size is found all the same, at times after another search. */
TEST(mrd_pmtu_next__with_losses)
{
    struct mrd_rng rng;
    unsigned searches = 0;

    mrd_rng_init(&rng, 3);
    for (unsigned i = 0; i < 1000; i++) {
        uint32_t path = BASE + mrd_rng_below(&rng, LIMIT - BASE), bytes;
        uint64_t now_ns = 0;
        struct mrd_pmtu m;

        mrd_pmtu_init(&m, &range, false);
        for (searches++; m.payload != path / 64 * 64; searches++, now_ns += 600 * MRD_SEC) {
            assert_true(now_ns < 20 * 600 * MRD_SEC);
            while ((bytes = mrd_pmtu_next(&m, &range, now_ns))) {
                mrd_pmtu_sent(&m, bytes);
                if (bytes <= path && mrd_rng_below(&rng, 5))
                    mrd_pmtu_acked(&m, &range, bytes, now_ns);
                else
                    mrd_pmtu_lost(&m, bytes, now_ns);
            }
        }
    }
    assert_true(searches < 2200);
}
