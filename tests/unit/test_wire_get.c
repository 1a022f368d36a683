/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire_frame.h"

/* The packet in memory of just its size, so that a sanitizer sees a read beyond it. */
static enum mrd_wire_error get_exact(const uint8_t *buf, uint32_t len, struct mrd_wire_head *head)
{
    uint8_t *exact = malloc(len ? len : 1);

    assert_non_null(exact);
    memcpy(exact, buf, len);
    enum mrd_wire_error error = mrd_wire_get(exact, len, head);
    free(exact);
    return error;
}

TEST(mrd_wire_get__rejects_any_flipped_bit)
{
    for (unsigned which = 0; which < FRAMES; which++) {
        struct mrd_wire_head head;
        struct frame f;

        build_any(&f, which);
        assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
        for (uint32_t bit = 0; bit < 8 * f.head_len; bit++) {
            f.buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_not_equal(get_exact(f.buf, f.len, &head), MRD_WIRE_OK);
            f.buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
    }
}

TEST(mrd_wire_get__rejects_truncation_at_each_length)
{
    for (unsigned which = 0; which < FRAMES; which++) {
        struct mrd_wire_head head;
        struct frame f;

        build_any(&f, which);
        for (uint32_t len = 0; len < f.head_len; len++)
            assert_int_equal(get_exact(f.buf, len, &head), MRD_WIRE_TRUNCATED);
        /* A header alone is whole: straight receive looks at it before its payload. */
        assert_int_equal(get_exact(f.buf, f.head_len, &head), MRD_WIRE_OK);
    }
}

TEST(mrd_wire_get__only_data_has_a_payload)
{
    for (unsigned which = 3; which < 7; which++) {
        struct mrd_wire_head head;
        struct frame f;

        build_any(&f, which);
        f.buf[f.len] = 0;
        assert_int_equal(mrd_wire_get(f.buf, f.len + 1, &head), MRD_WIRE_BAD_LENGTH);
    }
}

/* Headers whose check holds, and that are wrong. */
TEST(mrd_wire_get__names_what_is_wrong)
{
    static const struct {
        uint8_t first, flags;
        uint32_t head_len;
        enum mrd_wire_error error;
    } table[] = {
        {0x31, 0, 40, MRD_WIRE_OK},
        {0x01, 0, 40, MRD_WIRE_BAD_VERSION},
        {0x11, 0, 40, MRD_WIRE_BAD_VERSION},
        {0x21, 0, 40, MRD_WIRE_BAD_VERSION},
        {0x30, 0, 40, MRD_WIRE_BAD_TYPE},
        {0x37, 0, 40, MRD_WIRE_BAD_TYPE},
        {0x3f, 0, 40, MRD_WIRE_BAD_TYPE},
        {0x31, 0, 39, MRD_WIRE_BAD_LENGTH},
        {0x31, MRD_WIRE_COOKIE, 47, MRD_WIRE_BAD_LENGTH},
        {0x31, MRD_WIRE_COOKIE, 48, MRD_WIRE_OK},
        {0x31, MRD_WIRE_ACKBLOCK, 59, MRD_WIRE_BAD_LENGTH},
        {0x31, MRD_WIRE_ACKBLOCK, 60, MRD_WIRE_OK},
        {0x31, MRD_WIRE_ACKBLOCK | MRD_WIRE_COOKIE, 67, MRD_WIRE_BAD_LENGTH},
        {0x31, MRD_WIRE_ACKBLOCK | MRD_WIRE_COOKIE, 68, MRD_WIRE_OK},
        {0x31, 0, MRD_WIRE_HEAD_BYTES_MAX, MRD_WIRE_OK},
        {0x31, 0, MRD_WIRE_HEAD_BYTES_MAX + 1, MRD_WIRE_BAD_LENGTH},
        {0x32, 0, 75, MRD_WIRE_BAD_LENGTH},
        {0x32, 0, 76, MRD_WIRE_OK},
        {0x32, MRD_WIRE_ACK_REQUEST, 76, MRD_WIRE_BAD_LENGTH},
        {0x33, MRD_WIRE_FIRST_CONTACT, 40, MRD_WIRE_BAD_LENGTH},
        {0x34, MRD_WIRE_COOKIE, 48, MRD_WIRE_BAD_LENGTH},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_wire_head head;
        struct frame f = {{0}, 0, 0};
        uint32_t len = table[i].head_len < 40 ? 40 : table[i].head_len;

        f.buf[0] = table[i].first;
        f.buf[1] = table[i].flags;
        mrd_wire_seal(f.buf, f.buf + table[i].head_len);
        assert_int_equal(mrd_wire_get(f.buf, len, &head), table[i].error);
    }
}

TEST(mrd_wire_get_part__rejects_unknown_operations)
{
    for (unsigned op = 0; op < 16; op++) {
        struct mrd_wire_part part = {.op = (uint8_t)op}, got;
        uint32_t at = MRD_WIRE_BASE_BYTES;
        struct frame f;

        memset(&f, 0, sizeof(f));
        build_data(&f, 0, &part);
        assert_int_equal(mrd_wire_get_part(f.buf, &at, f.head_len + 8, &got),
                         op >= MRD_OP_SEND && op <= MRD_OP_CLOSE);
    }
}

TEST(mrd_wire_get_part__rejects_truncation_at_each_length)
{
    static const uint8_t ops[] = {MRD_OP_SEND,     MRD_OP_WRITE,    MRD_OP_READ,
                                  MRD_OP_CMP_SWAP, MRD_OP_RESPONSE, MRD_OP_VOID,
                                  MRD_OP_ABORT,    MRD_OP_READY,    MRD_OP_CLOSE};

    for (unsigned i = 0; i < sizeof(ops) * 16; i++) {
        struct mrd_wire_part part = segment_part, got;
        struct frame f;

        part.op = ops[i / 16];
        part.flags = (uint8_t)((i % 16) << 4);
        build_data(&f, 0, &part);
        for (uint32_t len = MRD_WIRE_BASE_BYTES; len < f.head_len; len++) {
            uint32_t at = MRD_WIRE_BASE_BYTES;

            assert_false(mrd_wire_get_part(f.buf, &at, len, &got));
        }
    }
}

/* More entries than bytes. */
TEST(mrd_wire_get_part__refusal_with_a_bad_count)
{
    for (unsigned count = 0; count < 256; count++) {
        uint32_t at = MRD_WIRE_BASE_BYTES;
        struct mrd_wire_part part;
        struct frame f;

        build_refusal(&f, 3);
        f.buf[MRD_WIRE_BASE_BYTES + 1] = (uint8_t)count;
        assert_int_equal(mrd_wire_get_part(f.buf, &at, f.head_len, &part), count <= 3);
    }
}

/* Parts follow each other without gaps, and each begins where the last one ended. */
TEST(mrd_wire_get_part__walks_many)
{
    struct mrd_wire_part part = {0};
    uint32_t at = MRD_WIRE_BASE_BYTES, num = 0;
    struct frame f;
    uint8_t *end = mrd_wire_put_head(f.buf, &data_head);

    for (unsigned i = 0; i < MRD_PARTS_MAX; i++) {
        part.op = i % 3 ? MRD_OP_SEND : MRD_OP_VOID;
        part.len = (uint16_t)i;
        end = mrd_wire_put_part(end, &part);
    }
    finish(&f, end, 0);
    for (; at < f.head_len; num++) {
        assert_true(mrd_wire_get_part(f.buf, &at, f.head_len, &part));
        assert_int_equal(part.len, num);
    }
    assert_int_equal(num, MRD_PARTS_MAX);
    assert_false(mrd_wire_get_part(f.buf, &at, f.head_len, &part));
}

/* Counts beyond the arrays, and counts that do not add up to the length. */
TEST(mrd_wire_get_ack__rejects_bad_counts)
{
    enum { AT_SLICES = 40 + 31 };

    for (unsigned field = 0; field < 3; field++) {
        for (unsigned count = 0; count < 256; count++) {
            struct mrd_wire_head head;
            struct mrd_wire_ack ack;
            struct frame f;

            build_ack(&f, 2, 3, 1);
            if (f.buf[AT_SLICES + field] == count)
                continue;
            f.buf[AT_SLICES + field] = (uint8_t)count;
            mrd_wire_seal(f.buf, f.buf + f.head_len);
            assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
            assert_false(mrd_wire_get_ack(f.buf, &head, &ack));
        }
    }
}

/* The lengths add up, and there are more than the arrays take. */
TEST(mrd_wire_get_ack__rejects_more_than_the_bounds)
{
    static const struct {
        unsigned at;
        uint8_t count;
        uint32_t bytes;
    } table[] = {
        {71, MRD_WIRE_SLICES_MAX + 1, (MRD_WIRE_SLICES_MAX + 1) * MRD_WIRE_SLICE_BYTES},
        {72, MRD_WIRE_ACK_PATHS_MAX + 1, (MRD_WIRE_ACK_PATHS_MAX + 1) * MRD_WIRE_PATH_BYTES},
        {73, MRD_ACK_DUPS_MAX + 1, (MRD_ACK_DUPS_MAX + 1) * 4},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_wire_head head;
        struct mrd_wire_ack ack;
        struct frame f = {{0}, 0, 0};

        build_ack(&f, 0, 0, 0);
        f.buf[table[i].at] = table[i].count;
        f.len = MRD_WIRE_ACK_BYTES + table[i].bytes;
        mrd_wire_seal(f.buf, f.buf + f.len);
        assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
        assert_false(mrd_wire_get_ack(f.buf, &head, &ack));
    }
}

TEST(mrd_wire_get_ack__slices_begin_at_multiples_of_256)
{
    struct mrd_wire_head head;
    struct mrd_wire_ack ack;
    struct frame f;

    build_ack(&f, 2, 0, 0);
    f.buf[MRD_WIRE_ACK_BYTES + MRD_WIRE_SLICE_BYTES + 3] = 64;
    mrd_wire_seal(f.buf, f.buf + f.head_len);
    assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
    assert_false(mrd_wire_get_ack(f.buf, &head, &ack));
}

TEST(mrd_wire_payload_check__low_half_of_xxh3)
{
    static const uint32_t lengths[] = {1, 16, 17, 128, 129, 240, 241, 1024, 1025, 4096};
    uint8_t data[4096];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        assert_int_equal(mrd_wire_payload_check(data, lengths[i]),
                         (uint32_t)XXH3_64bits(data, lengths[i]));
    assert_int_equal(mrd_wire_payload_check(NULL, 0), 0);
}
