/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/rng.h"
#include "core/slot.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

static struct mrd_slots slots;
static struct mrd_pool pool, words;

static void begin(struct unit_alloc *alloc, uint32_t records)
{
    unit_alloc_init(alloc);
    assert_true(mrd_pool_init(&pool, &alloc->ops, sizeof(struct mrd_slot), records));
    assert_true(mrd_pool_init(&words, &alloc->ops, MRD_MSG_SLOTS * sizeof(uint32_t), 1));
    mrd_slots_init(&slots, &pool, &words);
}

static void end(struct unit_alloc *alloc)
{
    mrd_slots_fini(&slots);
    assert_int_equal(words.used, 0);
    mrd_pool_fini(&words);
    mrd_pool_fini(&pool);
    assert_int_equal(alloc->live_bytes, 0);
}

static enum mrd_slot_verdict judge(uint32_t id)
{
    struct mrd_slot *slot;

    return mrd_slots_judge(&slots, id, &slot);
}

/* What a packet means to its place: by the place's state and which of the two ids is higher. */
TEST(mrd_slots_judge__table)
{
    static const uint32_t ids[] = {MRD_MSG_SLOTS + 100, 63, UINT32_MAX - 10}; /* ids wrap */
    struct unit_alloc alloc;

    for (size_t i = 0; i < 3; i++) {
        const uint32_t id = ids[i], higher = id + MRD_MSG_SLOTS, lower = id - MRD_MSG_SLOTS;
        struct mrd_slot *slot, *found;

        begin(&alloc, 4);
        assert_int_equal(judge(id), MRD_SLOT_BEGIN);
        assert_int_equal(judge(lower), MRD_SLOT_BEGIN);
        slot = mrd_slots_open(&slots, id);
        assert_int_equal(mrd_slots_judge(&slots, id, &found), MRD_SLOT_GO_ON);
        assert_ptr_equal(found, slot);
        assert_int_equal(mrd_slots_judge(&slots, higher, &found), MRD_SLOT_BEGIN);
        assert_ptr_equal(found, slot); /* it has to be given up first */
        assert_int_equal(mrd_slots_judge(&slots, lower, &found), MRD_SLOT_DROP);
        assert_null(found);
        assert_int_equal(judge(id + 1), MRD_SLOT_BEGIN);
        assert_int_equal(slots.num_open, 1);

        mrd_slots_end(&slots, slot, MRD_SLOT_CLOSED);
        assert_int_equal(judge(id), MRD_SLOT_DROP);
        assert_int_equal(judge(lower), MRD_SLOT_DROP);
        assert_int_equal(judge(higher), MRD_SLOT_BEGIN);
        mrd_slots_shut(&slots, higher);
        assert_int_equal(judge(higher), MRD_SLOT_DROP);

        slot = mrd_slots_open(&slots, higher + MRD_MSG_SLOTS);
        mrd_slots_end(&slots, slot, MRD_SLOT_EMPTY);
        assert_int_equal(judge(higher + MRD_MSG_SLOTS), MRD_SLOT_BEGIN);
        assert_int_equal(slots.num_open, 0);
        assert_true(mrd_list_empty(&slots.open));
        end(&alloc);
    }
}

TEST(mrd_slots_open__pool_exhausted)
{
    struct unit_alloc alloc;

    begin(&alloc, 1);
    struct mrd_slot *slot = mrd_slots_open(&slots, 5);
    assert_non_null(slot);
    assert_null(mrd_slots_open(&slots, 6));
    assert_int_equal(judge(6), MRD_SLOT_BEGIN);
    mrd_slots_end(&slots, slot, MRD_SLOT_CLOSED);
    assert_non_null(mrd_slots_open(&slots, 6));
    end(&alloc);
}

static const struct mrd_slot write_slot = {.op = MRD_OP_WRITE,
                                           .flags = MRD_PART_MULTI,
                                           .total = 10000,
                                           .src_qpn = 20,
                                           .dst_qpn = 21,
                                           .rkey = 22,
                                           .addr = 23};
enum { LONG_BYTES = 65536 };
static const struct mrd_slot long_slot = {.total = LONG_BYTES};
static const struct mrd_wire_part write_part = {.op = MRD_OP_WRITE,
                                                .flags = MRD_PART_MULTI,
                                                .total = 10000,
                                                .offset = 4096,
                                                .len = 4096,
                                                .src_qpn = 20,
                                                .dst_qpn = 21,
                                                .rkey = 22,
                                                .addr = 23};

/* All packets of a message tell the same story: one field that differs is a lie. */
TEST(mrd_slot_agrees__every_field)
{
    struct mrd_wire_part part[8];

    for (int i = 0; i < 8; i++)
        part[i] = write_part;
    part[1].op = MRD_OP_SEND;
    part[2].flags |= MRD_PART_IMM;
    part[3].total++;
    part[4].src_qpn++;
    part[5].dst_qpn++;
    part[6].rkey++;
    part[7].addr++;
    assert_true(mrd_slot_agrees(&write_slot, &part[0]));
    for (int i = 1; i < 8; i++)
        assert_false(mrd_slot_agrees(&write_slot, &part[i]));
}

/* What came and this part are together no more than the message. */
TEST(mrd_slot_agrees__no_more_than_the_message)
{
    struct mrd_slot slot = write_slot;

    slot.got = slot.total - write_part.len;
    assert_true(mrd_slot_agrees(&slot, &write_part));
    slot.got++;
    assert_false(mrd_slot_agrees(&slot, &write_part));
}

/* A send has no key and no address: whatever those fields hold. */
TEST(mrd_slot_agrees__send_has_no_rkey)
{
    struct mrd_slot slot = write_slot;
    struct mrd_wire_part part = write_part;

    slot.op = part.op = MRD_OP_SEND;
    part.rkey = 99;
    part.addr = 99;
    assert_true(mrd_slot_agrees(&slot, &part));
}

TEST(mrd_slot_agrees__inside_the_message)
{
    static const struct {
        uint32_t offset;
        uint16_t len;
        bool agrees;
    } table[] = {
        {0, 10000, true},       {0, 10001, false},
        {9999, 1, true},        {9999, 2, false},
        {10000, 0, true},       {10000, 1, false},
        {10001, 0, false},      {UINT32_MAX, 1, false},
        {UINT32_MAX, 2, false}, {UINT32_MAX - 4000, 5000, false},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_wire_part part = write_part;

        part.offset = table[i].offset;
        part.len = table[i].len;
        assert_int_equal(mrd_slot_agrees(&write_slot, &part), table[i].agrees);
    }
}

static void came(struct mrd_slot *slot, uint32_t offset, uint16_t len, uint32_t psn)
{
    struct mrd_wire_part part = write_part;

    part.total = slot->total;
    part.offset = offset;
    part.len = len;
    mrd_slot_came(slot, &part, psn);
}

static bool is_even(const struct mrd_slot *slot, uint32_t offset, uint32_t psn, uint32_t unit)
{
    struct mrd_wire_part part = write_part;

    part.offset = offset;
    return mrd_slot_is_even(slot, &part, psn, unit);
}

/* PSNs of a message cut in one go tell the places, whichever came first, also where PSNs wrap. */
TEST(mrd_slot_came__even_in_any_order)
{
    static const uint32_t psn[] = {100, UINT32_MAX - 1, 0};

    for (size_t i = 0; i < 3; i++) {
        struct mrd_slot slot = write_slot;

        came(&slot, 4096, 4096, psn[i] + 1);
        came(&slot, 8192, 1808, psn[i] + 2); /* the short last one */
        came(&slot, 0, 4096, psn[i]);
        for (uint32_t k = 0; k < 3; k++) {
            assert_true(is_even(&slot, k * 4096, psn[i] + k, 4096));
            assert_false(is_even(&slot, k * 4096, psn[i] + k + 1, 4096));
        }
    }
}

/* A part that does not lie where the rule says begins a new one; what is below has no rule. */
TEST(mrd_slot_came__begins_anew)
{
    static const struct {
        uint32_t offset;
        uint16_t len;
        uint32_t psn;
    } second[] = {
        {8192, 4096, 103}, /* another packet lay between */
        {8192, 2048, 102}, /* cut anew: the path's MTU shrank, */
        {8192, 8192, 102}, /* or it grew */
        {6144, 4096, 101},
    };

    for (size_t i = 0; i < sizeof(second) / sizeof(second[0]); i++) {
        uint32_t offset = second[i].offset, len = second[i].len, psn = second[i].psn;
        struct mrd_slot slot = long_slot;

        came(&slot, 0, 4096, 100);
        came(&slot, offset, second[i].len, psn);
        assert_true(is_even(&slot, offset, psn, len));
        assert_true(is_even(&slot, offset + 3 * len, psn + 3, len));
        assert_true(is_even(&slot, offset + 3 * len, psn, len)); /* beyond all that came */
        came(&slot, offset + 5 * len, second[i].len, psn + 5);
        assert_true(is_even(&slot, offset + 3 * len, psn + 3, len));
        assert_false(is_even(&slot, offset + 3 * len, psn + 4, len));
        assert_false(is_even(&slot, offset + 3 * len, psn + 3, len / 2));
        assert_false(is_even(&slot, 4096, 101, 4096));
    }
}

/* Amid what came, such a part ends the rule: it holds for none, until one comes beyond all. */
TEST(mrd_slot_came__uneven)
{
    static const struct {
        uint32_t offset;
        uint16_t len;
        uint32_t psn;
    } third[] = {{8192, 4096, 103}, {8192, 2048, 102}, {6144, 4096, 101}, {8192, 8192, 102}};

    for (size_t i = 0; i < sizeof(third) / sizeof(third[0]); i++) {
        struct mrd_slot slot = long_slot;

        came(&slot, 0, 4096, 100);
        came(&slot, 16384, 4096, 104);
        assert_true(is_even(&slot, 12288, 103, 4096));
        came(&slot, third[i].offset, third[i].len, third[i].psn);
        assert_false(is_even(&slot, 12288, 103, 4096));
        assert_false(is_even(&slot, 4096, 101, 4096));
        assert_true(is_even(&slot, 20480, 105, 4096));
        came(&slot, 24576, 4096, 107);
        assert_false(is_even(&slot, 20480, 106, 4096));
        assert_true(is_even(&slot, 28672, 108, 4096));
    }
}

/* A run is as its parts one by one. */
TEST(mrd_slot_run_came__as_one_by_one)
{
    for (unsigned gap = 0; gap < 2; gap++) {
        struct mrd_slot together = long_slot, apart = long_slot;
        struct mrd_wire_part part = {.total = LONG_BYTES, .offset = 8192, .len = 4096};

        came(&together, 0, 4096, 100);
        came(&apart, 0, 4096, 100);
        mrd_slot_run_came(&together, &part, 102 + gap, 4);
        for (uint32_t i = 0; i < 4; i++)
            came(&apart, 8192 + i * 4096, 4096, 102 + gap + i);
        assert_memory_equal(&together, &apart, sizeof(apart));
        assert_int_equal(together.top, 24576);
    }
}

/* Random parts in some disorder, cut anew at times: where the rule says nothing came, none did. */
TEST(mrd_slot_is_even__never_where_something_came)
{
    enum { PARTS = 64, ROUNDS = 2000 };
    static uint8_t taken[LONG_BYTES];
    struct mrd_rng rng;
    uint32_t even = 0;

    mrd_rng_init(&rng, 7);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mrd_slot slot = long_slot;
        struct mrd_wire_part part[PARTS];
        uint32_t psn[PARTS], offset = 0, unit = 64,
                             next = mrd_rng_below(&rng, 2) ? 0 : UINT32_MAX - 20;
        unsigned n = 0;
        bool came_already[PARTS] = {false};

        memset(taken, 0, sizeof(taken));
        for (; n < PARTS; n++) {
            if (!mrd_rng_below(&rng, 12))
                unit = 64 * (1 + mrd_rng_below(&rng, 3));
            next += !mrd_rng_below(&rng, 12);
            part[n] = (struct mrd_wire_part){.total = LONG_BYTES, .offset = offset};
            part[n].len = (uint16_t)unit;
            psn[n] = next++;
            offset += unit;
        }
        for (unsigned k = 0; k < PARTS; k++) {
            unsigned i = mrd_rng_below(&rng, PARTS), window = 6;

            /* About in order: one of the first few that did not come yet. */
            for (i = 0; came_already[i]; i++)
                ;
            for (unsigned skip = mrd_rng_below(&rng, window); skip && i + 1 < PARTS; skip--)
                i++;
            while (came_already[i])
                i--;
            for (unsigned j = 0; slot.top && j < PARTS; j++) {
                if (came_already[j] || !mrd_slot_is_even(&slot, &part[j], psn[j], part[j].len))
                    continue;
                even++;
                for (uint32_t b = 0; b < part[j].len; b++)
                    assert_false(taken[part[j].offset + b]);
            }
            mrd_slot_came(&slot, &part[i], psn[i]);
            memset(taken + part[i].offset, 1, part[i].len);
            came_already[i] = true;
        }
    }
    assert_true(even > ROUNDS * PARTS);
}

/* The last packet alone does not tell how long the others are. */
TEST(mrd_slot_came__last_one_first)
{
    struct mrd_slot slot = write_slot;

    came(&slot, 8192, 1808, 102);
    assert_false(is_even(&slot, 0, 100, 4096));
    came(&slot, 0, 4096, 100);
    assert_false(is_even(&slot, 4096, 101, 4096));
}

TEST(mrd_slot_is_even__table)
{
    static const struct {
        uint32_t offset, psn, unit;
        bool even;
    } table[] = {
        {0, 100, 4096, true},    {4096, 101, 4096, true}, {8192, 102, 4096, true},
        {4096, 102, 4096, true}, {4096, 102, 2048, true}, {2048, 100, 4096, false},
        {0, 101, 4096, false},   {0, 100, 2048, false},
    };
    struct mrd_slot slot = write_slot;

    came(&slot, 0, 4096, 100);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(is_even(&slot, table[i].offset, table[i].psn, table[i].unit),
                         table[i].even);
}

TEST(mrd_slot_scatter__over_entries_and_nowhere_else)
{
    char memory[64], expected[64];
    const uint64_t base = (uint64_t)(uintptr_t)memory;
    const struct mrd_sge sge[] = {{.addr = base + 40, .length = 4},
                                  {.addr = base, .length = 0},
                                  {.addr = base + 10, .length = 8}};

    memset(memory, '.', sizeof(memory));
    memset(expected, '.', sizeof(expected));
    memcpy(expected + 42, "ab", 2);
    memcpy(expected + 10, "cde", 3);
    mrd_slot_scatter(sge, 3, 2, (const uint8_t *)"abcde", 5);
    assert_memory_equal(memory, expected, sizeof(memory));
    mrd_slot_scatter(sge, 3, 12, (const uint8_t *)"x", 0);
    assert_memory_equal(memory, expected, sizeof(memory));
}

/* Slots that need the whole table keep what the first few told. */
TEST(mrd_slots_shut__higher_slots)
{
    struct unit_alloc alloc;
    struct mrd_slot *open, *slot;

    begin(&alloc, 2);
    mrd_slots_shut(&slots, 3);
    open = mrd_slots_open(&slots, 5);
    assert_int_equal(words.used, 0);
    assert_int_equal(judge(MRD_MSG_SLOTS - 1), MRD_SLOT_BEGIN);
    mrd_slots_shut(&slots, MRD_MSG_SLOTS - 1);
    assert_int_equal(words.used, 1);
    assert_int_equal(judge(MRD_MSG_SLOTS - 1), MRD_SLOT_DROP);
    assert_int_equal(judge(3), MRD_SLOT_DROP);
    assert_int_equal(judge(4), MRD_SLOT_BEGIN);
    assert_int_equal(mrd_slots_judge(&slots, 5, &slot), MRD_SLOT_GO_ON);
    assert_ptr_equal(slot, open);
    mrd_slots_end(&slots, open, MRD_SLOT_CLOSED);
    assert_int_equal(judge(5), MRD_SLOT_DROP);
    end(&alloc);
}
