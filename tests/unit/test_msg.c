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

TEST(mrd_msg_part__says_what_was_posted)
{
    struct mrd_msg msg = {.wr.op = MRD_OP_WRITE,
                          .wr.part_flags = MRD_PART_MULTI | MRD_PART_IMM,
                          .attempt = 3,
                          .wr.dst_qpn = 20,
                          .id = 21,
                          .wr.length = 100000,
                          .wr.qkey = 22,
                          .wr.rkey = 23,
                          .wr.remote_addr = 0x123456789a,
                          .wr.imm = 24};
    struct mrd_wire_part part = {0};

    mrd_msg_part(&msg, 8192, 4096, &part);
    assert_int_equal(part.op, MRD_OP_WRITE);
    assert_int_equal(part.flags, MRD_PART_MULTI | MRD_PART_IMM);
    assert_int_equal(part.attempt, 3);
    assert_int_equal(part.len, 4096);
    assert_int_equal(part.dst_qpn, 20);
    assert_int_equal(part.id, 21);
    assert_int_equal(part.total, 100000);
    assert_int_equal(part.offset, 8192);
    assert_int_equal(part.qkey, 22);
    assert_int_equal(part.rkey, 23);
    assert_true(part.addr == 0x123456789a);
    assert_int_equal(part.imm, 24);
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

TEST(mrd_msg_in_chain__by_index)
{
    struct chain_fixture f;

    begin(&f);
    for (unsigned i = 0; i < 4; i++)
        assert_ptr_equal(mrd_msg_in_chain(f.head, i), &f.msg[i]);
    assert_null(mrd_msg_in_chain(f.head, 4));
    assert_null(mrd_msg_in_chain(NULL, 0));
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

TEST(mrd_msg_unchain__to_the_last)
{
    struct chain_fixture f;

    begin(&f);
    for (unsigned i = 0; i < 4; i++)
        mrd_msg_unchain(&f.head, &f.msg[3 - i]);
    assert_null(f.head);
}
