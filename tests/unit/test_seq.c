/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/bitmap.h"
#include "core/hash.h"
#include "core/list.h"
#include "core/rng.h"
#include "core/seq.h"
#include "core/sge.h"
#include "tests/kit/kit.h"

/* ---------------------------------------------------------------------------------------- seq.h */

TEST(mrd_seq_before__table)
{
    static const struct {
        uint32_t a, b;
        bool before;
    } table[] = {
        {0, 0, false},         {0, 1, true},           {1, 0, false},
        {UINT32_MAX, 0, true}, {0, UINT32_MAX, false}, {UINT32_MAX - 5, 5, true},
        {0, 0x7fffffff, true}, {0x7fffffff, 0, false}, {0x80000001, 0, true},
        {5, 0x80000004, true},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(mrd_seq_before(table[i].a, table[i].b), table[i].before);
}

TEST(mrd_seq16_before__table)
{
    static const struct {
        uint16_t a, b;
        bool before;
    } table[] = {
        {0, 0, false},      {0, 1, true},           {1, 0, false},     {0xffff, 0, true},
        {0, 0xffff, false}, {0xfff0, 0x0010, true}, {0, 0x7fff, true}, {0x7fff, 0, false},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(mrd_seq16_before(table[i].a, table[i].b), table[i].before);
}

/* ------------------------------------------------------------------------------------- bitmap.h */

/* A ring of bits: PSNs a ring's length apart share one, and no other. */
TEST(mrd_bit_set__touches_one_bit_of_the_ring)
{
    enum { BITS = 256 };
    static const uint32_t at[] = {0, 63, 64, 255, 256, 1000, UINT32_MAX};

    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        uint64_t map[BITS / 64] = {0};

        mrd_bit_set(map, BITS - 1, at[i]);
        for (uint32_t psn = at[i] - BITS; psn != at[i] + 2 * BITS; psn++)
            assert_int_equal(mrd_bit_test(map, BITS - 1, psn), (psn - at[i]) % BITS == 0);
    }
}

TEST(mrd_bit_clear__leaves_the_others)
{
    uint64_t map[4] = {~0ull, ~0ull, ~0ull, ~0ull};

    mrd_bit_clear(map, 255, UINT32_MAX - 64);
    for (uint32_t psn = 0; psn < 256; psn++)
        assert_int_equal(mrd_bit_test(map, 255, psn), psn != 191);
}

/* Neighbouring numbers (queue pairs, keys) fall all over the table, whatever bits it looks at. */
TEST(mrd_hash_mix__spreads_neighbours)
{
    for (int shift = 0; shift < 64; shift += 8) {
        unsigned filled = 0;
        uint8_t seen[256] = {0};

        for (uint64_t i = 0; i < 1024; i++)
            seen[mrd_hash_mix(i << 12) >> shift & 255] = 1;
        for (int i = 0; i < 256; i++)
            filled += seen[i];
        assert_in_range(filled, 230, 256); /* 1,024 random throws leave 5 of 256 empty */
    }
}

/* --------------------------------------------------------------------------------------- list.h */

struct item {
    int value;
    struct mrd_node node;
};

static void expect(struct mrd_node *list, const char *values)
{
    struct mrd_node *n = list->next, *back = list;

    for (; *values; values++, n = n->next) {
        assert_ptr_not_equal(n, list);
        assert_ptr_equal(n->prev, back);
        assert_int_equal(mrd_container_of(n, struct item, node)->value, *values);
        back = n;
    }
    assert_ptr_equal(n, list);
    assert_ptr_equal(list->prev, back);
}

TEST(mrd_list_insert_before__append_and_prepend)
{
    struct item a = {.value = 'a'}, b = {.value = 'b'}, c = {.value = 'c'}, d = {.value = 'd'};
    struct mrd_node list;

    mrd_list_init(&list);
    assert_true(mrd_list_empty(&list));
    mrd_list_append(&list, &b.node);
    mrd_list_append(&list, &d.node);
    mrd_list_prepend(&list, &a.node);
    mrd_list_insert_before(&d.node, &c.node);
    expect(&list, "abcd");
    assert_false(mrd_list_empty(&list));
}

/* A removed node says that it is on no list, and may be removed again: both are relied upon. */
TEST(mrd_list_remove__node_points_to_itself)
{
    struct item a = {.value = 'a'}, b = {.value = 'b'};
    struct mrd_node list;

    mrd_list_init(&list);
    mrd_list_append(&list, &a.node);
    mrd_list_append(&list, &b.node);
    mrd_list_remove(&a.node);
    assert_true(mrd_list_empty(&a.node));
    mrd_list_remove(&a.node);
    expect(&list, "b");
}

TEST(mrd_list_pop__oldest_first)
{
    struct item a = {.value = 'a'}, b = {.value = 'b'};
    struct mrd_node list;

    mrd_list_init(&list);
    assert_null(mrd_list_first(&list));
    assert_null(mrd_list_pop(&list));
    mrd_list_append(&list, &a.node);
    mrd_list_append(&list, &b.node);
    assert_ptr_equal(mrd_list_pop(&list), &a.node);
    assert_ptr_equal(mrd_list_first(&list), &b.node);
    assert_ptr_equal(mrd_list_pop(&list), &b.node);
    assert_null(mrd_list_pop(&list));
}

TEST(mrd_list_splice__all_to_the_end)
{
    struct item item[4] = {{.value = 'a'}, {.value = 'b'}, {.value = 'c'}, {.value = 'd'}};
    struct mrd_node to, from;

    mrd_list_init(&to);
    mrd_list_init(&from);
    mrd_list_splice(&to, &from);
    expect(&to, "");
    mrd_list_append(&from, &item[0].node);
    mrd_list_append(&from, &item[1].node);
    mrd_list_splice(&to, &from);
    expect(&to, "ab");
    expect(&from, "");
    mrd_list_append(&from, &item[2].node);
    mrd_list_append(&from, &item[3].node);
    mrd_list_splice(&to, &from);
    expect(&to, "abcd");
    expect(&from, "");
}

/* ---------------------------------------------------------------------------------------- rng.h */

/* The published values of SplitMix64 for seed 1234567. */
TEST(mrd_rng_u64__published_sequence)
{
    static const uint64_t expected[] = {6457827717110365317ull, 3203168211198807973ull,
                                        9817491932198370423ull, 4593380528125082431ull,
                                        16408922859458223821ull};
    struct mrd_rng rng;

    mrd_rng_init(&rng, 1234567);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_true(mrd_rng_u64(&rng) == expected[i]);
}

TEST(mrd_rng_below__even_and_in_range)
{
    enum { BOUND = 7, THROWS = 70000 };
    uint32_t count[BOUND] = {0};
    struct mrd_rng rng;

    mrd_rng_init(&rng, 1);
    for (int i = 0; i < THROWS; i++) {
        uint32_t r = mrd_rng_below(&rng, BOUND);

        assert_true(r < BOUND);
        count[r]++;
    }
    for (int i = 0; i < BOUND; i++)
        assert_in_range(count[i], 9600, 10400); /* 4 sigma */
    assert_int_equal(mrd_rng_below(&rng, 1), 0);
}

TEST(mrd_sge_at__skips_what_is_before)
{
    static const struct mrd_sge sge[] = {{.length = 10}, {.length = 0}, {.length = 5}};

    assert_ptr_equal(mrd_sge_at(sge, 0), &sge[0]);
    assert_ptr_equal(mrd_sge_at(sge, 9), &sge[0]);
    assert_ptr_equal(mrd_sge_at(sge, 10), &sge[2]);
    assert_ptr_equal(mrd_sge_at(sge, 14), &sge[2]);
}

/* ---------------------------------------------------------------------------------------- sge.h */

TEST(mrd_sge_pieces__table)
{
    static const struct {
        uint32_t offset, len;
        unsigned pieces;
        struct {
            unsigned at, len;
        } piece[4];
    } table[] = {
        {0, 0, 0, {{0, 0}}},
        {0, 10, 1, {{0, 10}}},
        {3, 4, 1, {{3, 4}}},
        {0, 11, 2, {{0, 10}, {100, 1}}},
        {9, 2, 2, {{9, 1}, {100, 1}}},
        {10, 5, 1, {{100, 5}}},                    /* begins where an entry ends */
        {5, 20, 3, {{5, 5}, {100, 5}, {200, 10}}}, /* over the empty one */
        {15, 30, 1, {{200, 30}}},
        {0, 45, 3, {{0, 10}, {100, 5}, {200, 30}}},
        {45, 0, 0, {{0, 0}}},
    };
    static char memory[300];
    const uint64_t base = (uint64_t)(uintptr_t)memory;
    const struct mrd_sge sge[] = {{.addr = base, .length = 10},
                                  {.addr = base + 100, .length = 5},
                                  {.addr = base + 150, .length = 0},
                                  {.addr = base + 200, .length = 30}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct iovec iov[4];

        assert_int_equal(mrd_sge_pieces(sge, 4, table[i].offset, table[i].len, iov),
                         table[i].pieces);
        for (unsigned k = 0; k < table[i].pieces; k++) {
            assert_ptr_equal(iov[k].iov_base, memory + table[i].piece[k].at);
            assert_int_equal(iov[k].iov_len, table[i].piece[k].len);
        }
    }
}
