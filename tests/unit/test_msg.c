/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/msg.h"
#include "tests/kit/kit.h"

TEST(mrd_msg_copy__gathers)
{
    char memory[] = "0123456789abcdefghij";
    const uint64_t base = (uint64_t)(uintptr_t)memory;
    struct mrd_sge sge[] = {{.addr = base + 10, .length = 4},
                            {.addr = base + 3, .length = 0},
                            {.addr = base, .length = 6}};
    struct mrd_msg msg = {.wr.sge = sge, .wr.num_sge = 3, .wr.length = 10};
    static const struct {
        uint32_t offset, len;
        const char *bytes;
    } table[] = {{0, 10, "abcd012345"}, {0, 4, "abcd"}, {2, 4, "cd01"},
                 {4, 6, "012345"},      {9, 1, "5"},    {10, 0, ""}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint8_t to[16] = {0};

        mrd_msg_copy(&msg, table[i].offset, table[i].len, to);
        assert_string_equal((char *)to, table[i].bytes);
    }
}

/* The caller's buffer of an inline message may be gone. */
TEST(mrd_msg_copy__from_inline_data)
{
    uint8_t data[] = "inline", to[8] = {0};
    struct mrd_msg msg = {.wr.is_inline = true, .wr.inline_data = data, .wr.length = 6};

    mrd_msg_copy(&msg, 2, 4, to);
    assert_string_equal((char *)to, "line");
}

struct chain_fixture {
    struct mrd_msg msg[4];
    struct mrd_msg *head;
};

static void begin(struct chain_fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->head = &f->msg[0];
    for (uint8_t i = 0; i < 4; i++) {
        f->msg[i].packet.index = i;
        f->msg[i].packet.chained = true;
        f->msg[i].packet.next = i < 3 ? &f->msg[i + 1] : NULL;
    }
}

/* One that left leaves a gap: a refusal that names a later part still means the right message. */
TEST(mrd_msg_unchain__indices_stay)
{
    for (unsigned gone = 0; gone < 4; gone++) {
        struct chain_fixture f;

        begin(&f);
        mrd_msg_unchain(&f.head, &f.msg[gone]);
        assert_false(f.msg[gone].packet.chained);
        assert_null(f.msg[gone].packet.next);
        for (unsigned i = 0; i < 4; i++)
            assert_ptr_equal(mrd_msg_in_chain(f.head, i), i == gone ? NULL : &f.msg[i]);
    }
}
