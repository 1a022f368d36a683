/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

#include "core/mr.h"

enum { ALL = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ };

FIXTURE(mr_fixture)
{
    struct unit_alloc alloc;
    struct mrd_mrs mrs;
    struct mrd_secret secret;
    struct mrd_pd pd, other_pd;
};

FIXTURE_SETUP(mr_fixture)
{
    unit_alloc_init(&self->alloc);
    assert_true(mrd_mrs_init(&self->mrs, &self->alloc.ops));
}

FIXTURE_TEARDOWN(mr_fixture)
{
    mrd_mrs_fini(&self->mrs);
    assert_int_equal(self->alloc.live_bytes, 0);
}

/* No byte of it is ever touched: any address will do. */
static struct mrd_mr_impl *add(struct mr_fixture *f, uint64_t addr, size_t length, int access)
{
    struct mrd_mr pub = {.pd = &f->pd, .addr = (void *)(uintptr_t)addr, .length = length};

    return mrd_mr_add(&f->mrs, &f->secret, &pub, access,
                      &(struct mrd_mover_mr){.key = ~(uint32_t)(uintptr_t)addr});
}

TEST(mrd_mrs_init__fails_without_memory)
{
    for (uint32_t at = 1; at <= 2; at++) {
        struct unit_alloc alloc;
        struct mrd_mrs mrs;

        unit_alloc_init(&alloc);
        alloc.fail_at = at;
        assert_false(mrd_mrs_init(&mrs, &alloc.ops));
        mrd_mrs_fini(&mrs);
        assert_int_equal(alloc.live_bytes, 0);
    }
}

/* Keys are never 0, differ, and an rkey is not to be guessed from another. */
TEST_F(mr_fixture, mrd_mr_add__keys_differ)
{
    enum { REGIONS = 60 };
    struct mrd_mr_impl *mr[REGIONS];

    for (int i = 0; i < REGIONS; i++) {
        mr[i] = add(self, 0x1000, 16, ALL);
        assert_int_not_equal(mr[i]->pub.lkey, 0);
        assert_int_not_equal(mr[i]->pub.rkey, 0);
        assert_int_not_equal(mr[i]->pub.rkey, mr[i]->pub.lkey);
        for (int k = 0; k < i; k++) {
            assert_int_not_equal(mr[i]->pub.lkey, mr[k]->pub.lkey);
            assert_true(mr[i]->pub.rkey - mr[k]->pub.rkey + 1000 > 2000);
        }
    }
    for (int i = 0; i < REGIONS; i++)
        mrd_mr_del(&self->mrs, mr[i]);
}

/* A region's key at the mover is found by its lkey, whatever else was registered. */
TEST_F(mr_fixture, mrd_mr_mover_key__by_lkey)
{
    struct mrd_mr_impl *mr[3];

    for (unsigned i = 0; i < 3; i++)
        mr[i] = add(self, 0x1000 * (i + 1), 16, 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(mrd_mr_mover_key(&self->mrs, mr[i]->pub.lkey), ~(0x1000 * (i + 1)));
    for (unsigned i = 0; i < 3; i++)
        mrd_mr_del(&self->mrs, mr[i]);
}

/* The table grows, and all keys go on. */
TEST_F(mr_fixture, mrd_mr_add__grows)
{
    enum { REGIONS = 1000 };
    static struct mrd_mr_impl *mr[REGIONS];

    for (uint64_t i = 0; i < REGIONS; i++)
        mr[i] = add(self, i << 12, 4096, ALL);
    for (uint64_t i = 0; i < REGIONS; i++) {
        assert_int_equal(mrd_mr_local(&self->mrs, &self->pd, mr[i]->pub.lkey, i << 12, 4096, 0),
                         MRD_MR_OK);
        assert_int_equal(mrd_mr_remote(&self->mrs, &self->pd, mr[i]->pub.rkey, i << 12, 4096, 0),
                         MRD_MR_OK);
        assert_int_equal(mrd_mr_local(&self->mrs, &self->pd, mr[i]->pub.lkey, (i + 1) << 12, 1, 0),
                         MRD_MR_RANGE);
    }
    for (int i = 0; i < REGIONS; i++)
        mrd_mr_del(&self->mrs, mr[i]);
    assert_int_equal(self->mrs.num, 0);
}

TEST_F(mr_fixture, mrd_mr_add__null_without_memory)
{
    struct mrd_mr_impl *mr[64];

    for (int i = 0; i < 64; i++)
        mr[i] = add(self, 0x1000, 16, ALL);
    for (uint32_t at = 1; at <= 2; at++) { /* one of the two tables that it grows to */
        self->alloc.fail_at = self->alloc.requests + at;
        assert_null(add(self, 0x1000, 16, ALL));
    }
    self->alloc.fail_at = 0;
    for (int i = 0; i < 64; i++) {
        assert_int_equal(mrd_mr_remote(&self->mrs, &self->pd, mr[i]->pub.rkey, 0x1000, 16, 0),
                         MRD_MR_OK);
        mrd_mr_del(&self->mrs, mr[i]);
    }
}

/* After deregistration the keys mean nothing, also when another region has the place. */
TEST_F(mr_fixture, mrd_mr_del__keys_are_dead)
{
    struct mrd_mr_impl *mr;

    for (int i = 0; i < 200; i++) {
        mr = add(self, 0x1000, 16, ALL);
        uint32_t lkey = mr->pub.lkey;
        uint32_t rkey = mr->pub.rkey;
        assert_int_equal(mrd_mr_local(&self->mrs, &self->pd, lkey, 0x1000, 16, 0), MRD_MR_OK);
        mrd_mr_del(&self->mrs, mr);
        self->mrs.next--; /* the next one takes the same place */
        mr = add(self, 0x1000, 16, ALL);
        assert_int_equal(mrd_mr_local(&self->mrs, &self->pd, lkey, 0x1000, 16, 0), MRD_MR_NO_KEY);
        assert_int_equal(mrd_mr_remote(&self->mrs, &self->pd, rkey, 0x1000, 16, 0), MRD_MR_NO_KEY);
        mrd_mr_del(&self->mrs, mr);
    }
}

/* Its own regions and no others, by each key, as long as they are there. */
TEST_F(mr_fixture, mrd_mr_polls__by_either_key)
{
    struct mrd_mr_impl *plain = add(self, 0x1000, 16, ALL);
    struct mrd_mr_impl *polled = add(self, 0x2000, 16, ALL | MRD_ACCESS_POLLED);
    struct mrd_sge sge[] = {{.lkey = plain->pub.lkey}, {.lkey = polled->pub.lkey}};

    assert_true(mrd_mr_polls_rkey(&self->mrs, polled->pub.rkey));
    assert_false(mrd_mr_polls_rkey(&self->mrs, plain->pub.rkey));
    assert_true(mrd_mr_polls_list(&self->mrs, sge, 2));
    assert_false(mrd_mr_polls_list(&self->mrs, sge, 1));
    mrd_mr_del(&self->mrs, polled);
    assert_int_equal(self->mrs.num_polled, 0);
    assert_false(mrd_mr_polls_list(&self->mrs, sge, 2));
    mrd_mr_del(&self->mrs, plain);
}

/* A key was told if a region has it, or had it lately; 0 is none. */
TEST_F(mr_fixture, mrd_mr_was_told__lately)
{
    assert_false(mrd_mr_was_told(&self->mrs, 0));
    struct mrd_mr_impl *mr = add(self, 4096, 64, ALL);
    uint32_t rkey = mr->pub.rkey;
    assert_true(mrd_mr_was_told(&self->mrs, rkey));
    assert_false(mrd_mr_was_told(&self->mrs, rkey + 1));
    mrd_mr_del(&self->mrs, mr);
    assert_true(mrd_mr_was_told(&self->mrs, rkey));
    assert_false(mrd_mr_was_told(&self->mrs, rkey + 1));
    assert_false(mrd_mr_was_told(&self->mrs, 0));
}

/* Their generations come round. */
TEST_F(mr_fixture, mrd_mr_add__no_lkey_is_0)
{
    for (uint32_t i = 0; i < 4200; i++) {
        self->mrs.next = 0; /* the index that an lkey of 0 would have */
        struct mrd_mr_impl *mr = add(self, 4096, 64, ALL);
        assert_int_not_equal(mr->pub.lkey, 0);
        mrd_mr_del(&self->mrs, mr);
    }
}

static const struct {
    uint64_t addr;
    uint32_t len;
    int access;
    enum mrd_mr_verdict verdict;
} range_table[] = {
    /* of a region [0x1000, 0x1100) with LOCAL_WRITE */
    {0x1000, 0x100, 0, MRD_MR_OK},
    {0x1000, 0, 0, MRD_MR_OK},
    {0x1100, 0, 0, MRD_MR_OK},
    {0x10ff, 1, 0, MRD_MR_OK},
    {0x1080, 0x80, MRD_ACCESS_LOCAL_WRITE, MRD_MR_OK},
    {0xfff, 1, 0, MRD_MR_RANGE},
    {0xfff, 0x100, 0, MRD_MR_RANGE},
    {0x1000, 0x101, 0, MRD_MR_RANGE},
    {0x10ff, 2, 0, MRD_MR_RANGE},
    {0x1100, 1, 0, MRD_MR_RANGE},
    {0x1101, 0, 0, MRD_MR_RANGE},
    {UINT64_MAX, 1, 0, MRD_MR_RANGE},
    {UINT64_MAX - 0x10, 0x1020, 0, MRD_MR_RANGE}, /* wraps into it */
    {0x1000, UINT32_MAX, 0, MRD_MR_RANGE},
    {0x1000, 1, MRD_ACCESS_REMOTE_WRITE, MRD_MR_ACCESS},
    {0x1000, 1, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_READ, MRD_MR_ACCESS},
};

static enum mrd_mr_verdict local_of(const struct mrd_mrs *mrs, const struct mrd_pd *pd,
                                    uint32_t lkey, uint64_t addr, uint64_t len, int access)
{
    return mrd_mr_local(mrs, pd, lkey, addr, (uint32_t)len, access);
}

/* What holds for the key of either kind of a region of 0x100 bytes at 0x1000. */
static void check_ranges(const struct mr_fixture *f, uint32_t key,
                         enum mrd_mr_verdict (*look_up)(const struct mrd_mrs *,
                                                        const struct mrd_pd *, uint32_t, uint64_t,
                                                        uint64_t, int))
{
    for (size_t i = 0; i < sizeof(range_table) / sizeof(range_table[0]); i++)
        assert_int_equal(look_up(&f->mrs, &f->pd, key, range_table[i].addr, range_table[i].len,
                                 range_table[i].access),
                         range_table[i].verdict);
}

TEST_F(mr_fixture, mrd_mr_local__table)
{
    struct mrd_mr_impl *mr = add(self, 0x1000, 0x100, MRD_ACCESS_LOCAL_WRITE);

    check_ranges(self, mr->pub.lkey, local_of);
    assert_int_equal(mrd_mr_local(&self->mrs, &self->other_pd, mr->pub.lkey, 0x1000, 1, 0),
                     MRD_MR_NO_KEY);
    assert_int_equal(mrd_mr_local(&self->mrs, &self->pd, 0, 0x1000, 1, 0), MRD_MR_NO_KEY);
    assert_int_equal(mrd_mr_local(&self->mrs, &self->pd, mr->pub.lkey + (1u << 20), 0x1000, 1, 0),
                     MRD_MR_NO_KEY);
    assert_int_equal(mrd_mr_local(&self->mrs, &self->pd, mr->pub.lkey + 1, 0x1000, 1, 0),
                     MRD_MR_NO_KEY);
    mrd_mr_del(&self->mrs, mr);
}

TEST_F(mr_fixture, mrd_mr_remote__table)
{
    struct mrd_mr_impl *mr = add(self, 0x1000, 0x100, MRD_ACCESS_LOCAL_WRITE);

    check_ranges(self, mr->pub.rkey, mrd_mr_remote);
    assert_int_equal(mrd_mr_remote(&self->mrs, &self->pd, mr->pub.rkey, 0x1000, 1ull << 40, 0),
                     MRD_MR_RANGE);
    assert_int_equal(mrd_mr_remote(&self->mrs, &self->pd, mr->pub.rkey, 0x1000, UINT64_MAX, 0),
                     MRD_MR_RANGE);
    assert_int_equal(mrd_mr_remote(&self->mrs, &self->other_pd, mr->pub.rkey, 0x1000, 1, 0),
                     MRD_MR_NO_KEY);
    assert_int_equal(mrd_mr_remote(&self->mrs, &self->pd, mr->pub.lkey, 0x1000, 1, 0),
                     MRD_MR_NO_KEY);
    assert_int_equal(mrd_mr_remote(&self->mrs, &self->pd, 0, 0x1000, 1, 0), MRD_MR_NO_KEY);
    mrd_mr_del(&self->mrs, mr);
}

/* Every entry must hold; one of no bytes needs no key. */
TEST_F(mr_fixture, mrd_mr_list__every_entry)
{
    struct mrd_sge sge[3] = {
        {.addr = 0x1000, .length = 16}, {.addr = 0, .length = 0}, {.addr = 0x1010, .length = 16}};
    struct mrd_mr_impl *mr = add(self, 0x1000, 0x20, 0);

    sge[0].lkey = sge[2].lkey = mr->pub.lkey;
    assert_int_equal(mrd_mr_list(&self->mrs, &self->pd, sge, 3, 0), MRD_MR_OK);
    assert_int_equal(mrd_mr_list(&self->mrs, &self->pd, sge, 0, MRD_ACCESS_LOCAL_WRITE), MRD_MR_OK);
    assert_int_equal(mrd_mr_list(&self->mrs, &self->pd, sge, 3, MRD_ACCESS_LOCAL_WRITE),
                     MRD_MR_ACCESS);
    sge[2].length++;
    assert_int_equal(mrd_mr_list(&self->mrs, &self->pd, sge, 3, 0), MRD_MR_RANGE);
    assert_int_equal(mrd_mr_list(&self->mrs, &self->pd, sge, 2, 0), MRD_MR_OK);
    sge[1].length = 1;
    assert_int_equal(mrd_mr_list(&self->mrs, &self->pd, sge, 2, 0), MRD_MR_NO_KEY);
    mrd_mr_del(&self->mrs, mr);
}

/* What was found valid is not looked up again, before any region is removed. */
TEST_F(mr_fixture, mrd_mr_list_stays__until_one_is_removed)
{
    struct mrd_sge sge = {.addr = 0x1000, .length = 16};
    uint64_t seen = 0;
    struct mrd_mr_impl *mr = add(self, 0x1000, 0x20, 0);
    struct mrd_mr_impl *other = add(self, 0x2000, 0x20, 0);

    assert_false(mrd_mr_list_stays(&self->mrs, &self->pd, &sge, 1, 0, &seen)); /* no such key */
    sge.lkey = mr->pub.lkey;
    assert_true(mrd_mr_list_stays(&self->mrs, &self->pd, &sge, 1, 0, &seen));
    mrd_mr_del(&self->mrs, other);
    assert_int_not_equal(seen, self->mrs.removals);
    assert_true(mrd_mr_list_stays(&self->mrs, &self->pd, &sge, 1, 0, &seen));
    assert_int_equal(seen, self->mrs.removals);
    mrd_mr_del(&self->mrs, mr);
    assert_false(mrd_mr_list_stays(&self->mrs, &self->pd, &sge, 1, 0, &seen));
}
