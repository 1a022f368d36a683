/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

#include "core/pool.h"

enum { ITEMS = 5 };

TEST(mrd_pool_init__fails_without_memory)
{
    struct unit_alloc a;
    struct mrd_pool pool;

    unit_alloc_init(&a);
    a.fail_at = 1;
    assert_false(mrd_pool_init(&pool, &a.ops, 24, ITEMS));
    mrd_pool_fini(&pool); /* also of a pool that never came to be */
    assert_int_equal(a.live_bytes, 0);
}

/* Items hold pointers and 64-bit numbers: each is aligned, whatever its size. */
TEST(mrd_pool_init__aligns_items)
{
    static const size_t item_bytes[] = {8, 15, 16, 17, 31, 100};

    for (size_t i = 0; i < sizeof(item_bytes) / sizeof(item_bytes[0]); i++) {
        struct unit_alloc a;
        struct mrd_pool pool;

        unit_alloc_init(&a);
        assert_true(mrd_pool_init(&pool, &a.ops, item_bytes[i], ITEMS));
        char *first = mrd_pool_alloc(&pool);
        char *second = mrd_pool_alloc(&pool);
        assert_int_equal((uintptr_t)second % 16, (uintptr_t)first % 16);
        assert_true((size_t)(second - first) >= item_bytes[i]);
        mrd_pool_fini(&pool);
        assert_int_equal(a.live_bytes, 0);
    }
}

/* A large pool costs only the pages in use: what was given back is used before what is fresh. */
TEST(mrd_pool_release__is_used_again_first)
{
    struct unit_alloc a;
    struct mrd_pool pool;
    void *one, *two;

    unit_alloc_init(&a);
    assert_true(mrd_pool_init(&pool, &a.ops, 24, ITEMS));
    for (int round = 0; round < 100; round++) {
        one = mrd_pool_alloc(&pool);
        two = mrd_pool_alloc(&pool);
        assert_int_equal(pool.used, 2);
        mrd_pool_release(&pool, one);
        mrd_pool_release(&pool, two);
    }
    assert_int_equal(pool.fresh, 2);
    assert_int_equal(mrd_pool_free(&pool), ITEMS);
    for (int i = 0; i < ITEMS; i++)
        assert_non_null(mrd_pool_alloc(&pool));
    assert_null(mrd_pool_alloc(&pool));
    mrd_pool_fini(&pool);
    assert_int_equal(a.live_bytes, 0);
}

/* A test that starves an engine lowers the number of items: all memory is freed nevertheless. */
TEST(mrd_pool_fini__after_it_was_made_smaller)
{
    struct unit_alloc a;
    struct mrd_pool pool;

    unit_alloc_init(&a);
    assert_true(mrd_pool_init(&pool, &a.ops, 24, ITEMS));
    pool.num = 2;
    assert_non_null(mrd_pool_alloc(&pool));
    assert_non_null(mrd_pool_alloc(&pool));
    assert_null(mrd_pool_alloc(&pool));
    mrd_pool_fini(&pool);
    assert_int_equal(a.live_bytes, 0);
}
