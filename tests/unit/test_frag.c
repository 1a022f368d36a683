/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/frag.h"
#include "core/limits.h"
#include "core/rng.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum { TOTAL = 5000, PIECE = 1088 };

static struct unit_alloc alloc;
static struct mrd_frags frags;
static uint8_t packet[MRD_FRAG_WHOLE_BYTES];
static uint64_t now_ns;

FIXTURE(frags){};

FIXTURE_SETUP(frags)
{
    unit_alloc_init(&alloc);
    memset(&frags, 0, sizeof(frags));
    now_ns = MRD_SEC;
    for (uint32_t i = 0; i < sizeof(packet); i++)
        packet[i] = (uint8_t)(i * 7 + i / 256);
}

FIXTURE_TEARDOWN(frags)
{
    mrd_frags_fini(&frags, &alloc.ops);
    assert_int_equal(alloc.live_bytes, 0);
}

/* A piece of the packet of that PSN, of `total` bytes, sent at `stamp`. Returns: is it whole? */
static bool add_sent(uint32_t psn, uint32_t stamp, uint32_t total, uint32_t offset, uint32_t bytes)
{
    const uint32_t peer = 1 + psn; /* each is another one's */
    struct mrd_wire_head head = {
        .psn = psn, .stamp = stamp, .whole_len = total, .whole_offset = offset};
    const struct mrd_frag *whole;
    bool fits;

    whole = mrd_frags_add(&frags, &alloc.ops, peer, &head, packet + offset, bytes, now_ns, &fits);
    assert_true(fits);
    if (!whole)
        return false;
    assert_int_equal(whole->total, total);
    assert_memory_equal(whole->bytes, packet, total);
    return true;
}

static bool add(uint32_t psn, uint32_t total, uint32_t offset, uint32_t bytes)
{
    return add_sent(psn, 0, total, offset, bytes);
}

static uint32_t piece_len(uint32_t total, uint32_t i)
{
    return total - i * PIECE < PIECE ? total - i * PIECE : PIECE;
}

/* In any order, some twice: whole with the last missing one. */
TEST_F(frags, mrd_frags_add__in_any_order)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, 5);
    for (uint32_t round = 0; round < 300; round++) {
        uint32_t total = 1 + mrd_rng_below(&rng, MRD_FRAG_WHOLE_BYTES), came = 0;
        uint32_t pieces = (total + PIECE - 1) / PIECE;
        bool whole = false, here[MRD_FRAG_WHOLE_BYTES / PIECE + 1] = {false};

        while (!whole) {
            uint32_t i = mrd_rng_below(&rng, pieces);

            came += !here[i];
            here[i] = true;
            whole = add(round, total, i * PIECE, piece_len(total, i));
            assert_int_equal(whole, came == pieces);
        }
    }
}

/* Pieces of different packets are not mixed. Those of two transmissions of one are: they are alike. */
TEST_F(frags, mrd_frags_add__of_one_packet_each)
{
    enum { PEER = 7, OTHER = 8 };
    struct mrd_wire_head head = {.epoch = 2, .psn = 3, .stamp = 4};
    struct mrd_wire_head heads[3];
    bool fits;

    head.whole_len = 128;
    for (unsigned i = 0; i < 3; i++)
        heads[i] = head;
    heads[0].epoch++;
    heads[1].psn++;
    heads[2].whole_len++;
    for (unsigned i = 0; i < 4; i++) {
        mrd_frags_fini(&frags, &alloc.ops);
        assert_null(mrd_frags_add(&frags, &alloc.ops, PEER, &head, packet, 64, now_ns, &fits));
        head.whole_offset = 64;
        head.stamp++;
        heads[i % 3].whole_offset = 64;
        assert_null(mrd_frags_add(&frags, &alloc.ops, i < 3 ? PEER : OTHER,
                                  i < 3 ? &heads[i] : &head, packet + 64, 64, now_ns, &fits));
        assert_true(fits);
        assert_non_null(
            mrd_frags_add(&frags, &alloc.ops, PEER, &head, packet + 64, 64, now_ns, &fits));
        head.whole_offset = 0;
    }
}

/* With more packets at a time than there is room for, one that gets no pieces for a while goes. */
TEST_F(frags, mrd_frags_add__the_oldest_goes)
{
    for (uint32_t psn = 0; psn < MRD_FRAGS; psn++) {
        assert_false(add(psn, TOTAL, 0, PIECE));
        now_ns++;
    }
    now_ns += MRD_FRAG_LIFE_NS - MRD_FRAGS;
    for (uint32_t psn = 1; psn <= MRD_FRAGS; psn++)
        assert_false(add(psn, TOTAL, psn % MRD_FRAGS ? PIECE : 0, PIECE));
    for (uint32_t psn = 1; psn <= MRD_FRAGS; psn++)
        for (uint32_t i = 1; i * PIECE < TOTAL; i++)
            assert_int_equal(add(psn, TOTAL, i * PIECE, piece_len(TOTAL, i)),
                             (i + 1) * PIECE >= TOTAL);
    /* The first one begins anew. */
    for (uint32_t i = 1; i * PIECE < TOTAL; i++)
        assert_false(add_sent(0, 1, TOTAL, i * PIECE, piece_len(TOTAL, i)));
    assert_true(add_sent(0, 1, TOTAL, 0, PIECE));
}

/* Pieces of many packets arrive by turns: as many as there is room for are whole in the end. */
TEST_F(frags, mrd_frags_add__by_turns)
{
    const uint32_t packets = 8 * MRD_FRAGS;
    uint32_t whole = 0;

    for (uint32_t i = 0; i * PIECE < TOTAL; i++)
        for (uint32_t psn = 0; psn < packets; psn++)
            whole += add(psn, TOTAL, i * PIECE, piece_len(TOTAL, i));
    assert_in_range(whole, MRD_FRAGS, packets);
}

/*
 * A transmission goes on after its packet became whole by pieces of an earlier one. What is left of
 * it takes no room, and does not hinder the next one, which may be needed.
 */
TEST_F(frags, mrd_frags_add__leftovers)
{
    for (uint32_t psn = 0; psn < 4 * MRD_FRAGS; psn++) {
        for (uint32_t i = 1; i * PIECE < TOTAL; i++)
            assert_false(add_sent(psn, 1, TOTAL, i * PIECE, piece_len(TOTAL, i)));
        assert_true(add_sent(psn, 2, TOTAL, 0, PIECE));
        for (uint32_t i = 1; i * PIECE < TOTAL; i++)
            assert_false(add_sent(psn, 2, TOTAL, i * PIECE, piece_len(TOTAL, i)));
    }
    for (uint32_t i = 0; i * PIECE < TOTAL; i++)
        assert_int_equal(add_sent(0, 3, TOTAL, i * PIECE, piece_len(TOTAL, i)),
                         (i + 1) * PIECE >= TOTAL);
}

/* One peer alone has no more packets put together than it leaves room for. */
TEST_F(frags, mrd_frags_add__leaves_room)
{
    struct mrd_wire_head head = {.whole_len = 128};
    bool fits;

    for (; head.psn < MRD_FRAGS; head.psn++)
        assert_null(mrd_frags_add(&frags, &alloc.ops, 1, &head, packet, 64, now_ns, &fits));
    head.whole_offset = 64;
    for (head.psn = 0; head.psn < MRD_FRAGS; head.psn++)
        assert_int_equal(
            mrd_frags_add(&frags, &alloc.ops, 1, &head, packet + 64, 64, now_ns, &fits) != NULL,
            head.psn < MRD_FRAGS / 2);
    assert_null(mrd_frags_add(&frags, &alloc.ops, 2, &head, packet + 64, 64, now_ns, &fits));
    head.whole_offset = 0;
    assert_non_null(mrd_frags_add(&frags, &alloc.ops, 2, &head, packet, 64, now_ns, &fits));
}

/* A piece of 64 bytes of a packet of one sender. Is the packet whole now? */
static bool piece_of(uint32_t psn, uint32_t stamp, uint32_t num, uint32_t pieces)
{
    struct mrd_wire_head head = {
        .psn = psn, .stamp = stamp, .whole_len = 64 * pieces, .whole_offset = 64 * num};
    bool fits;

    return mrd_frags_add(&frags, &alloc.ops, 1, &head, packet + 64 * num, 64, now_ns, &fits) !=
           NULL;
}

/*
 * Single pieces come late, as copies do, one of each packet: they keep no room from what their sender
 * sends now. Nor does a late one among the pieces of a packet make that a late one.
 */
TEST_F(frags, mrd_frags_add__late_copies)
{
    const uint32_t late = 100, now = late + MRD_FRAG_LIFE_NS / MRD_WIRE_STAMP_NS;

    for (uint32_t turn = 0; turn < 2; turn++) {
        bool too_late = turn == 1;

        for (uint32_t psn = 100; psn < 100 + MRD_FRAGS; psn++)
            assert_false(piece_of(psn, too_late ? late : late + 1, 0, 3));
        assert_false(piece_of(turn, now, 0, 3));
        assert_false(piece_of(turn, late, 1, 3));
        now_ns++;
        for (uint32_t psn = 100; psn < 100 + MRD_FRAGS; psn++)
            assert_false(piece_of(psn, late, 0, 3));
        for (uint32_t psn = 200; psn < 200 + MRD_FRAGS; psn++)
            assert_false(piece_of(psn, now, 0, 3));
        assert_int_equal(piece_of(turn, now, 2, 3), too_late);
        mrd_frags_fini(&frags, &alloc.ops);
    }
}

/* What no packet can be made of is refused, and takes no memory. */
TEST_F(frags, mrd_frags_add__refuses_nonsense)
{
    static const struct {
        uint32_t total, offset, bytes;
    } table[] = {
        {TOTAL, 0, 0},
        {TOTAL, TOTAL, 64},
        {TOTAL, TOTAL - 9, 9},
        {TOTAL, 4992, 9},
        {TOTAL, 0, 100},
        {TOTAL, 64, UINT32_MAX - 63},
        {TOTAL, 1u << 31, 64},
        {UINT32_MAX, UINT32_MAX - 63, 64},
        {MRD_FRAG_WHOLE_BYTES + 1, 0, 64},
        {0, 0, 0},
    };
    enum { PEER = 7 };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_wire_head head = {.whole_len = table[i].total, .whole_offset = table[i].offset};
        bool fits = true;

        assert_null(
            mrd_frags_add(&frags, &alloc.ops, PEER, &head, packet, table[i].bytes, now_ns, &fits));
        assert_false(fits);
    }
    assert_null(frags.frag[0]);
}
