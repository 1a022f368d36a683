/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward's messages: what is put comes back, and nothing else is taken. */
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/forward/frame.h"

TEST(frame_put__comes_back)
{
    const struct frame frame = {FRAME_OPENED, 0x01020304, 0x05060708, 0x090a0b0c,
                                0x0d0e0f10,   0x11121314, 0};
    uint8_t bytes[FRAME_HEAD_BYTES];
    struct frame got;

    frame_put(bytes, &frame);
    assert_true(frame_get(bytes, sizeof(bytes), &got));
    assert_memory_equal(&got, &frame, sizeof(frame));
    for (unsigned i = 0; i < 20; i++) /* big-endian, in the order of the picture */
        assert_int_equal(bytes[4 + i], i + 1);
}

TEST(frame_get__lengths)
{
    static const struct {
        enum frame_type type;
        uint32_t arg, least, most; /* behind the head */
    } rows[] = {
        {FRAME_OPEN, 7, 1, FRAME_TEXT_MAX},
        {FRAME_OPENED, 7, 0, 0},
        {FRAME_REFUSED, 7, 0, FRAME_TEXT_MAX},
        {FRAME_DATA, 7, 7, 7},
        {FRAME_CREDIT, 0, 0, 0},
        {FRAME_FIN, 0, 0, 0},
        {FRAME_DONE, 0, 0, 0},
        {FRAME_RESET, 1, 0, 0},
        {FRAME_GONE, 0, 0, 0},
        {FRAME_PING, 0, 0, 0},
        {FRAME_RECALL, 0, 0, 0},
        {FRAME_YIELD, 0, 0, 0},
        {FRAME_ASK, 0, 0, 0},
    };
    uint8_t bytes[FRAME_HEAD_BYTES + FRAME_TEXT_MAX + 1];
    struct frame got;

    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        frame_put(bytes, &(struct frame){.type = rows[i].type, .arg = rows[i].arg});
        for (uint32_t len = 0; len <= FRAME_TEXT_MAX + 1; len++)
            assert_int_equal(frame_get(bytes, FRAME_HEAD_BYTES + len, &got),
                             len >= rows[i].least && len <= rows[i].most);
    }
}

TEST(frame_get__not_ours)
{
    uint8_t bytes[FRAME_HEAD_BYTES];
    struct frame got;

    frame_put(bytes, &(struct frame){.type = FRAME_FIN});
    for (uint32_t len = 0; len < sizeof(bytes); len++)
        assert_false(frame_get(bytes, len, &got));
    for (unsigned at = 0; at < 4; at++) { /* type, version and zeros */
        frame_put(bytes, &(struct frame){.type = FRAME_FIN});
        bytes[at] ^= 0x80;
        assert_false(frame_get(bytes, sizeof(bytes), &got));
    }
    frame_put(bytes, &(struct frame){.type = FRAME_ASK + 1});
    assert_false(frame_get(bytes, sizeof(bytes), &got));
    bytes[0] = 0;
    assert_false(frame_get(bytes, sizeof(bytes), &got));
}

/* Who asks in another version is answered in that one; all else of it is ignored. */
TEST(frame_get__another_version)
{
    uint8_t bytes[FRAME_HEAD_BYTES + 1] = "";
    struct frame got;

    for (unsigned type = FRAME_OPEN; type <= FRAME_ASK; type++) {
        struct frame frame = {.type = (enum frame_type)type, .version = FRAME_VERSION + 1};

        frame_put(bytes, &frame);
        assert_int_equal(bytes[1], FRAME_VERSION + 1);
        assert_int_equal(frame_get(bytes, sizeof(bytes), &got), type == FRAME_OPEN);
        assert_false(frame_get(bytes, FRAME_HEAD_BYTES, &got));
    }
    frame_put(bytes, &(struct frame){.type = FRAME_OPEN, .version = FRAME_VERSION + 1});
    assert_true(frame_get(bytes, sizeof(bytes), &got));
    assert_int_equal(got.version, FRAME_VERSION + 1);
    frame_put(bytes, &(struct frame){.type = FRAME_OPEN});
    assert_true(frame_get(bytes, sizeof(bytes), &got));
    assert_int_equal(got.version, 0);
}

/* A DATA frame without bytes would take a receive for nothing. */
TEST(frame_get__empty_data)
{
    uint8_t bytes[FRAME_HEAD_BYTES];
    struct frame got;

    frame_put(bytes, &(struct frame){.type = FRAME_DATA});
    assert_false(frame_get(bytes, sizeof(bytes), &got));
}
