/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash tables, and records of a pool that are found by a key. */
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

#include "core/table.h"

enum { RECORDS = 40, SAME = 7 };

struct record {
    struct mrd_hash_node by_key;
};

static bool has(const struct mrd_hash *h, uint64_t hash, const struct mrd_hash_node *node)
{
    for (struct mrd_hash_node *n = mrd_hash_first(h, hash); n; n = n->next)
        if (n == node)
            return true;
    return false;
}

/* --------------------------------------------------------------------------------------- hash.h */

/* A power of two, at least 16, at most a million. */
TEST(mrd_hash_buckets__table)
{
    static const struct {
        uint32_t items, buckets;
    } rows[] = {{0, 16},
                {16, 16},
                {17, 32},
                {1000, 1024},
                {1024, 1024},
                {1025, 2048},
                {1u << 20, 1u << 20},
                {UINT32_MAX, 1u << 20}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(mrd_hash_buckets(rows[i].items), rows[i].buckets);
}

/* Without memory there is no table; what failed, or was never begun, can be ended all the same. */
TEST(mrd_hash_init__fails_without_memory)
{
    struct mrd_hash h = {0};
    struct unit_alloc a;

    unit_alloc_init(&a);
    mrd_hash_fini(&h, &a.ops);
    a.fail_at = 1;
    assert_false(mrd_hash_init(&h, &a.ops, 100));
    mrd_hash_fini(&h, &a.ops);
    assert_true(mrd_hash_init(&h, &a.ops, 100));
    assert_int_equal(a.live_bytes, 128 * sizeof(void *));
    mrd_hash_fini(&h, &a.ops);
    mrd_hash_fini(&h, &a.ops); /* twice is once */
    assert_int_equal(a.live_bytes, 0);
}

/* Items with one hash share a bucket; each can be taken out, first, middle or last. */
TEST(mrd_hash_del__from_a_shared_bucket)
{
    struct mrd_hash_node node[3];
    struct unit_alloc a;
    struct mrd_hash h;

    unit_alloc_init(&a);
    assert_true(mrd_hash_init(&h, &a.ops, 16));
    for (unsigned gone = 0; gone < 3; gone++) {
        for (unsigned i = 0; i < 3; i++)
            mrd_hash_add(&h, &node[i], SAME + 16 * i); /* the same bucket of 16 */
        assert_null(mrd_hash_first(&h, SAME + 1));
        assert_int_equal(node[1].hash, SAME + 16); /* all of it: a look-up need not compare keys */
        mrd_hash_del(&h, &node[gone]);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(has(&h, SAME, &node[i]), i != gone);
        for (unsigned i = 0; i < 3; i++)
            if (i != gone)
                mrd_hash_del(&h, &node[i]);
        assert_null(mrd_hash_first(&h, SAME));
    }
    mrd_hash_fini(&h, &a.ops);
}

/* -------------------------------------------------------------------------------------- table.h */

/* Whichever request fails, nothing is kept. */
TEST(mrd_table_init__gives_back_what_it_got)
{
    struct mrd_table t;
    struct unit_alloc a;
    bool made = false;

    for (uint32_t at = 1; !made; at++) {
        unit_alloc_init(&a);
        a.fail_at = at;
        t = (struct mrd_table){0};
        made = mrd_table_init(&t, &a.ops, sizeof(struct record), RECORDS, RECORDS);
        assert_int_equal(made, at > 2); /* the records, and the buckets */
        mrd_table_fini(&t, &a.ops);
        assert_int_equal(a.live_bytes, 0);
    }
}

/* Records are found by their hash until they are released, and can be had again then. */
TEST(mrd_table_release__is_not_found_again)
{
    struct record *r[RECORDS];
    struct mrd_table t;
    struct unit_alloc a;

    unit_alloc_init(&a);
    assert_true(mrd_table_init(&t, &a.ops, sizeof(struct record), RECORDS, 1));
    for (uint32_t i = 0; i < RECORDS; i++) {
        r[i] = mrd_table_alloc(&t);
        assert_non_null(r[i]);
        mrd_hash_add(&t.by_key, &r[i]->by_key, mrd_hash_mix(i));
    }
    assert_null(mrd_table_alloc(&t));
    mrd_table_release(&t, &r[SAME]->by_key, r[SAME]);
    for (uint32_t i = 0; i < RECORDS; i++)
        assert_int_equal(has(&t.by_key, mrd_hash_mix(i), &r[i]->by_key), i != SAME);
    assert_int_equal(t.pool.used, RECORDS - 1);
    assert_ptr_equal(mrd_table_alloc(&t), r[SAME]);
    mrd_table_fini(&t, &a.ops);
    assert_int_equal(a.live_bytes, 0);
}
