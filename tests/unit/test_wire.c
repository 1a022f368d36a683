/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire_frame.h"

/* Captures of any two versions must agree on where the fields lie. */
TEST(mrd_wire_put_head__lays_bytes_out)
{
    static const uint8_t expected[MRD_WIRE_BASE_BYTES] = {
        0x31, 0x02, 0,    40,   0x11, 0x11, 0x11, 0x12, 0x22, 0x22, 0x22, 0x23, 0x33, 0x33,
        0x33, 0x34, 0xff, 0xff, 0xff, 0xfe, 0x44, 0x44, 0x44, 0x45, 0x55, 0x56, 0x29, 0xc4,
        0,    0x77, 0x88, 0x99, 0,    0,    0,    0,    0x12, 0x34, 0x56, 0x78};
    struct mrd_wire_head head = data_head;
    struct frame f;

    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.peer_timeout_ns = 10000 * MRD_MSEC - 999; /* 2500 << 2 */
    finish(&f, mrd_wire_put_head(f.buf, &head), 0);
    memset(f.buf + 32, 0, 4); /* the check has tests of its own */
    assert_memory_equal(f.buf, expected, sizeof(expected));
}

TEST(mrd_wire_put_head__round_trip_of_data)
{
    for (unsigned flags = 0; flags < 16; flags++) {
        struct mrd_wire_head head = data_head, got;
        struct frame f;

        head.flags = (uint8_t)flags;
        head.key_id = 0xa5;
        finish(&f, mrd_wire_put_head(f.buf, &head), 0);
        assert_int_equal(mrd_wire_get(f.buf, f.len, &got), MRD_WIRE_OK);
        assert_int_equal(got.type, MRD_WIRE_DATA);
        assert_int_equal(got.flags, flags);
        assert_int_equal(got.key_id, 0xa5);
        assert_int_equal(got.head_len, f.head_len);
        assert_int_equal(got.parts_at, f.head_len);
        assert_int_equal(got.src_inc, head.src_inc);
        assert_int_equal(got.dst_inc, head.dst_inc);
        assert_int_equal(got.epoch, head.epoch);
        assert_int_equal(got.psn, head.psn);
        assert_int_equal(got.stamp, head.stamp);
        assert_int_equal(got.path_id, head.path_id);
        if (!(flags & MRD_WIRE_FIRST_CONTACT))
            assert_int_equal(got.pseq, head.pseq);
        assert_int_equal(got.reply, head.reply);
        assert_int_equal(got.payload_check, head.payload_check);
        assert_true(got.cookie == (flags & MRD_WIRE_COOKIE ? head.cookie : 0));
        if (!(flags & MRD_WIRE_ACKBLOCK))
            continue;
        assert_int_equal(got.ack_epoch, 9);
        assert_int_equal(got.ack_cum, 10);
        assert_int_equal(got.ack_serial, 11);
        assert_int_equal(got.ack_stamp, 12);
        assert_int_equal(got.ack_psn_limit, 13);
    }
}

TEST(mrd_wire_put_head__round_trip_of_plain_ones)
{
    struct mrd_wire_head got;
    struct frame f;

    build_plain(&f, MRD_WIRE_RESET);
    assert_int_equal(mrd_wire_get(f.buf, f.len, &got), MRD_WIRE_OK);
    assert_int_equal(got.type, MRD_WIRE_RESET);
    assert_int_equal(got.live_epoch, 9);
    assert_int_equal(got.epoch, 3);
    assert_int_equal(got.reply, 4793);
    build_plain(&f, MRD_WIRE_CHALLENGE);
    assert_int_equal(mrd_wire_get(f.buf, f.len, &got), MRD_WIRE_OK);
    assert_int_equal(got.type, MRD_WIRE_CHALLENGE);
    assert_int_equal(got.up_usec, 1234567);
    assert_int_equal(got.echo_stamp, 0x9abcdef0);
    assert_true(got.cookie == 0xfedcba9876543210);
    assert_int_equal(got.dst_inc, 2);
    build_plain(&f, MRD_WIRE_BUSY);
    assert_int_equal(mrd_wire_get(f.buf, f.len, &got), MRD_WIRE_OK);
    assert_int_equal(got.type, MRD_WIRE_BUSY);
    assert_int_equal(got.src_inc, 1);
    assert_int_equal(got.dst_inc, 2);
    assert_int_equal(got.epoch, 3);
}

/* None is larger than the smallest packet that it answers, or strangers could amplify. */
TEST(mrd_wire_put_head__plain_ones_do_not_amplify)
{
    struct frame smallest, f;

    finish(&smallest, mrd_wire_put_head(smallest.buf, &data_head), 0);
    assert_int_equal(smallest.len, 40);
    build_plain(&f, MRD_WIRE_RESET);
    assert_in_range(f.len, 1, smallest.len);
    build_plain(&f, MRD_WIRE_CHALLENGE);
    assert_in_range(f.len, 1, smallest.len);
    build_plain(&f, MRD_WIRE_BUSY);
    assert_in_range(f.len, 1, smallest.len);
}

TEST(mrd_wire_put_part__round_trip_of_each_form)
{
    static const uint8_t ops[] = {MRD_OP_SEND,      MRD_OP_WRITE,    MRD_OP_READ, MRD_OP_CMP_SWAP,
                                  MRD_OP_FETCH_ADD, MRD_OP_RESPONSE, MRD_OP_VOID, MRD_OP_ABORT};

    for (unsigned i = 0; i < sizeof(ops) * 16; i++) {
        bool request = mrd_wire_is_request(ops[i / 16]);
        struct mrd_wire_part part = segment_part, got = {0};
        uint32_t at = MRD_WIRE_BASE_BYTES;
        struct frame f;

        part.op = ops[i / 16];
        part.flags = (uint8_t)((i % 16) << 4);
        part.qkey = 0x99887766;
        part.token = 0x10203040;
        part.compare_add = 0x1122334455667788;
        part.swap = 0x99aabbccddeeff00;
        build_data(&f, 0, &part);
        assert_int_equal(f.head_len,
                         MRD_WIRE_BASE_BYTES + mrd_wire_part_bytes(part.op, part.flags));
        assert_true(mrd_wire_get_part(f.buf, &at, f.head_len, &got));
        assert_int_equal(at, f.head_len);
        assert_int_equal(got.op, part.op);
        assert_int_equal(got.flags, part.flags);
        assert_int_equal(got.attempt, part.attempt);
        assert_int_equal(got.len, part.len);
        assert_int_equal(got.dst_qpn, part.dst_qpn);
        assert_int_equal(got.src_qpn, part.src_qpn);
        assert_int_equal(got.id, part.flags & MRD_PART_MULTI ? part.id : 0);
        if (part.op == MRD_OP_CMP_SWAP || part.op == MRD_OP_FETCH_ADD)
            assert_int_equal(got.total, MRD_WIRE_ATOMIC_BYTES);
        else
            assert_int_equal(got.total,
                             request || part.flags & MRD_PART_MULTI ? part.total : part.len);
        assert_int_equal(got.offset, part.flags & MRD_PART_MULTI ? part.offset : 0);
        if (part.op == MRD_OP_SEND)
            assert_int_equal(got.qkey, part.qkey);
        if (part.op == MRD_OP_WRITE || request) {
            assert_int_equal(got.rkey, part.rkey);
            assert_true(got.addr == part.addr);
        }
        if (part.op == MRD_OP_RESPONSE || request)
            assert_int_equal(got.token, part.token);
        if (part.op == MRD_OP_CMP_SWAP || part.op == MRD_OP_FETCH_ADD) {
            assert_true(got.compare_add == part.compare_add);
            assert_true(got.swap == part.swap);
        }
        if (part.flags & MRD_PART_IMM)
            assert_int_equal(got.imm, part.imm);
        if (part.flags & MRD_PART_ORDERED) {
            assert_int_equal(got.msn, part.msn);
            assert_int_equal(got.rsn, part.rsn);
            assert_int_equal(got.msn_behind, part.msn_behind);
            assert_int_equal(got.rsn_behind, part.rsn_behind);
        }
    }
}

/* The immediate is the user's four bytes, not a number of ours. */
TEST(mrd_wire_put_part__imm_keeps_its_bytes)
{
    struct mrd_wire_part part = {.op = MRD_OP_SEND, .flags = MRD_PART_IMM};
    struct frame f;

    memcpy(&part.imm, "\x01\x02\x03\x04", 4);
    build_data(&f, 0, &part);
    assert_memory_equal(f.buf + f.head_len - 4, "\x01\x02\x03\x04", 4);
}

/* One part: at most 96 bytes before the payload; acks ride on packets of whole messages only. */
TEST(mrd_wire_put_part__header_of_one_part_fits_in_96_bytes)
{
    uint32_t most = 0;

    for (unsigned i = 0; i < 2 * 16; i++) {
        struct mrd_wire_part part = segment_part;
        struct frame f;

        part.op = i / 16 ? MRD_OP_WRITE : MRD_OP_SEND;
        part.flags = (uint8_t)((i % 16) << 4);
        build_data(&f, part.flags & MRD_PART_MULTI ? MRD_WIRE_COOKIE : MRD_WIRE_ACKBLOCK, &part);
        most = f.head_len > most ? f.head_len : most;
    }
    assert_int_equal(most, HEAD_MAX);
}

/* As many of the largest parts as a packet of whole messages may have. */
TEST(mrd_wire_put_part__header_of_64_parts_is_no_longer_than_the_bound)
{
    const uint8_t flags = MRD_PART_IMM | MRD_PART_ORDERED | MRD_PART_SOLICITED;

    assert_in_range(MRD_WIRE_BASE_BYTES + MRD_WIRE_COOKIE_BYTES + MRD_WIRE_ACKBLOCK_BYTES +
                        MRD_PARTS_MAX * mrd_wire_part_bytes(MRD_OP_WRITE, flags),
                    MRD_PARTS_MAX * 36, MRD_WIRE_HEAD_BYTES_MAX);
}

TEST(mrd_wire_put_refusal__round_trip)
{
    static const uint8_t counts[] = {0, 1, 3, MRD_PARTS_MAX};

    for (size_t i = 0; i < sizeof(counts); i++) {
        uint32_t at = MRD_WIRE_BASE_BYTES;
        struct mrd_wire_part part;
        struct frame f;

        build_refusal(&f, counts[i]);
        assert_int_equal(f.len, 40 + 16 + 8 * counts[i]);
        assert_true(mrd_wire_get_part(f.buf, &at, f.head_len, &part));
        assert_int_equal(at, f.head_len);
        assert_int_equal(part.op, MRD_OP_REFUSAL);
        assert_int_equal(part.len, 0);
        assert_int_equal(part.num_entries, counts[i]);
        assert_int_equal(part.epoch, 5);
        assert_int_equal(part.psn, 6);
        assert_int_equal(part.rnr_usec, 100);
        for (unsigned k = 0; k < counts[i]; k++) {
            struct mrd_wire_refusal_entry entry;

            mrd_wire_get_refusal_entry(&part, k, &entry);
            assert_int_equal(entry.index, k);
            assert_int_equal(entry.code, MRD_REFUSE_RNR);
            assert_int_equal(entry.attempt, (uint8_t)(200 + k));
            assert_int_equal(entry.id, 1000 + k);
        }
    }
}

/* A sender's patience: exact in ms up to 4 s, then to one part in 2,000, never told too short. */
TEST(mrd_wire_put_head__patience)
{
    static const struct {
        uint64_t ns, told_ns;
    } table[] = {{0, 0},
                 {1, MRD_MSEC},
                 {MRD_MSEC, MRD_MSEC},
                 {4095 * MRD_MSEC, 4095 * MRD_MSEC},
                 {4095 * MRD_MSEC + 1, 4096 * MRD_MSEC},
                 {8 * MRD_SEC, 8 * MRD_SEC},
                 {8 * MRD_SEC + 1, 8002 * MRD_MSEC},
                 {60 * MRD_SEC, 60 * MRD_SEC},
                 {86400 * MRD_SEC, 86409216 * MRD_MSEC},
                 {UINT64_MAX, (4095ull << 15) * MRD_MSEC}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_wire_head head = data_head, got;
        struct frame f;

        head.flags = MRD_WIRE_FIRST_CONTACT;
        head.peer_timeout_ns = table[i].ns;
        finish(&f, mrd_wire_put_head(f.buf, &head), 0);
        assert_int_equal(mrd_wire_get(f.buf, f.len, &got), MRD_WIRE_OK);
        assert_int_equal(got.peer_timeout_ns, table[i].told_ns);
    }
}

TEST(mrd_wire_put_ack__round_trip_up_to_the_bounds)
{
    static const uint8_t counts[][3] = {
        {0, 0, 0}, {1, 0, 0}, {0, 1, 0},
        {0, 0, 1}, {2, 5, 3}, {MRD_WIRE_SLICES_MAX, MRD_WIRE_ACK_PATHS_MAX, MRD_ACK_DUPS_MAX}};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct mrd_wire_head head;
        struct mrd_wire_ack ack;
        struct frame f;

        build_ack(&f, counts[i][0], counts[i][1], counts[i][2]);
        assert_int_equal(f.len, MRD_WIRE_ACK_BYTES + 36 * counts[i][0] + 12 * counts[i][1] +
                                    4 * counts[i][2]);
        assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
        assert_true(mrd_wire_get_ack(f.buf, &head, &ack));
        assert_int_equal(ack.cum, 4242);
        assert_int_equal(ack.live_epoch, 77);
        assert_int_equal(ack.serial, 5);
        assert_int_equal(ack.psn_limit, 6);
        assert_int_equal(ack.echo_psn, 7);
        assert_int_equal(ack.echo_stamp, 8);
        assert_int_equal(ack.echo_rx_stamp, 9);
        assert_int_equal(ack.echo_delay, 10);
        assert_int_equal(ack.echo_path, 11);
        assert_int_equal(ack.ack_delay_usec, 12);
        assert_int_equal(ack.flags, MRD_ACK_ECHO | MRD_ACK_ECHO_CE);
        assert_int_equal(ack.num_slices, counts[i][0]);
        assert_int_equal(ack.num_paths, counts[i][1]);
        assert_int_equal(ack.num_dups, counts[i][2]);
        for (unsigned k = 0; k < ack.num_slices; k++) {
            assert_int_equal(ack.slice[k].base, 4096 + k * 256);
            for (unsigned w = 0; w < 4; w++)
                assert_true(ack.slice[k].bits[w] == 0x0123456789abcdefull * (k + 1) + w);
        }
        for (unsigned k = 0; k < ack.num_paths; k++) {
            assert_int_equal(ack.path[k].id, k * 1000);
            assert_int_equal(ack.path[k].delay, k * 7 + 1);
            assert_int_equal(ack.path[k].received, k + 70000);
            assert_int_equal(ack.path[k].ce, k + 80000);
        }
        for (unsigned k = 0; k < ack.num_dups; k++)
            assert_int_equal(ack.dup[k], UINT32_MAX - k);
    }
}

TEST(mrd_wire_part_bytes__table)
{
    static const struct {
        uint8_t op, flags;
        uint32_t bytes;
    } table[] = {
        {MRD_OP_VOID, 0, 12},
        {MRD_OP_SEND, 0, 16},
        {MRD_OP_WRITE, 0, 24},
        {MRD_OP_SEND, MRD_PART_IMM, 20},
        {MRD_OP_SEND, MRD_PART_ORDERED, 24},
        {MRD_OP_SEND, MRD_PART_SOLICITED, 16},
        {MRD_OP_SEND, MRD_PART_MULTI, 28},
        {MRD_OP_WRITE, MRD_PART_MULTI | MRD_PART_IMM | MRD_PART_ORDERED, 48},
        {MRD_OP_READ, 0, 32},
        {MRD_OP_RESPONSE, MRD_PART_MULTI, 28},
        {MRD_OP_CMP_SWAP, MRD_PART_ORDERED, MRD_WIRE_PART_BYTES_MAX},
        {MRD_OP_FETCH_ADD, MRD_PART_ORDERED, MRD_WIRE_PART_BYTES_MAX},
        {MRD_OP_ABORT, MRD_PART_MULTI | MRD_PART_ORDERED, 32},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(mrd_wire_part_bytes(table[i].op, table[i].flags), table[i].bytes);
}

/* The header of the next segment is what encoding it would have made. */
TEST(mrd_wire_follow__is_the_next_header)
{
    static const uint8_t flags[] = {0, MRD_PART_IMM, MRD_PART_ORDERED,
                                    MRD_PART_IMM | MRD_PART_ORDERED};
    static const uint8_t ops[] = {MRD_OP_SEND, MRD_OP_WRITE, MRD_OP_RESPONSE};

    for (unsigned i = 0; i < 12; i++) {
        struct mrd_wire_head head = data_head;
        struct mrd_wire_part part = {.op = ops[i / 4],
                                     .flags = flags[i % 4] | MRD_PART_MULTI,
                                     .len = 4096,
                                     .id = 7,
                                     .total = 1 << 20,
                                     .offset = 8192,
                                     .addr = 0x123456789a,
                                     .msn = 3};
        uint8_t first[MRD_WIRE_HEAD_BYTES_MAX], next[MRD_WIRE_HEAD_BYTES_MAX];
        uint8_t expected[MRD_WIRE_HEAD_BYTES_MAX], *end;

        head.flags = 0;
        end = mrd_wire_put_part(mrd_wire_put_head(first, &head), &part);
        uint32_t len = (uint32_t)(end - first);
        mrd_wire_add_flags(first, MRD_WIRE_ACK_REQUEST);
        mrd_wire_seal(first, end);
        head.psn++;
        head.pseq += 5;
        head.payload_check = 0xabcdef;
        part.offset += part.len;
        mrd_wire_put_part(mrd_wire_put_head(expected, &head), &part);
        mrd_wire_seal(expected, expected + len);
        mrd_wire_follow(next, first, len, head.psn, head.pseq, part.offset, head.payload_check);
        mrd_wire_seal(next, next + len);
        assert_memory_equal(next, expected, len);
    }
}

TEST(mrd_wire_add_flags__keeps_the_others)
{
    struct mrd_wire_head head = data_head, got;
    struct frame f;

    head.flags = MRD_WIRE_FIRST_CONTACT;
    uint8_t *end = mrd_wire_put_head(f.buf, &head);
    mrd_wire_add_flags(f.buf, MRD_WIRE_ACK_REQUEST);
    mrd_wire_set_payload_check(f.buf, 0xcafe);
    finish(&f, end, 0);
    assert_int_equal(mrd_wire_get(f.buf, f.len, &got), MRD_WIRE_OK);
    assert_int_equal(got.flags, MRD_WIRE_FIRST_CONTACT | MRD_WIRE_ACK_REQUEST);
    assert_int_equal(got.payload_check, 0xcafe);
}

/* Epochs are compared as PSNs are; one number is none, and says that all is over. */
TEST(mrd_wire_epoch_over__comes_round)
{
    assert_true(mrd_wire_epoch_over(1, 2));
    assert_false(mrd_wire_epoch_over(2, 2));
    assert_false(mrd_wire_epoch_over(3, 2));
    assert_true(mrd_wire_epoch_over(MRD_WIRE_EPOCH_NONE - 1, 1));
    assert_false(mrd_wire_epoch_over(1, MRD_WIRE_EPOCH_NONE - 1));
    assert_true(mrd_wire_epoch_over(1, MRD_WIRE_EPOCH_NONE));
}
