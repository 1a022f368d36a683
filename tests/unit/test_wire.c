/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <xxhash.h>

#include "core/wire.h"

enum { BUF = 4096, PAYLOAD = 200, HEAD_MAX = 96 };

/* A packet: `len` bytes of datagram, of which `head_len` are header. */
struct frame {
    uint8_t buf[BUF];
    uint32_t head_len, len;
};

static const struct mrd_wire_part segment_part = {.op = MRD_OP_WRITE,
                                                  .flags = MRD_PART_MULTI | MRD_PART_IMM | MRD_PART_ORDERED,
                                                  .attempt = 3,
                                                  .len = PAYLOAD,
                                                  .dst_qpn = 0x01020304,
                                                  .src_qpn = 0x05060708,
                                                  .id = 77,
                                                  .total = 100000,
                                                  .offset = 4096,
                                                  .rkey = 0xdeadbeef,
                                                  .addr = 0x1122334455667788,
                                                  .imm = 0x0a0b0c0d,
                                                  .msn = 65000,
                                                  .rsn = 1000,
                                                  .msn_behind = 12,
                                                  .rsn_behind = 11};

static const struct mrd_wire_head data_head = {.type = MRD_WIRE_DATA,
                                               .src_inc = 0x11111112,
                                               .dst_inc = 0x22222223,
                                               .epoch = 0x33333334,
                                               .psn = 0xfffffffe,
                                               .stamp = 0x44444445,
                                               .path_id = 0x5556,
                                               .pseq = 0x6667,
                                               .reply = 0x778899,
                                               .payload_check = 0x12345678,
                                               .cookie = 0x0102030405060708,
                                               .ack_epoch = 9,
                                               .ack_cum = 10,
                                               .ack_serial = 11,
                                               .ack_stamp = 12,
                                               .ack_psn_limit = 13};

static void finish(struct frame *f, uint8_t *end, uint32_t payload)
{
    mrd_wire_seal(f->buf, end);
    f->head_len = (uint32_t)(end - f->buf);
    for (uint32_t i = 0; i < payload; i++)
        f->buf[f->head_len + i] = (uint8_t)i;
    f->len = f->head_len + payload;
}

static void build_data(struct frame *f, uint8_t flags, const struct mrd_wire_part *part)
{
    struct mrd_wire_head head = data_head;

    head.flags = flags;
    finish(f, mrd_wire_put_part(mrd_wire_put_head(f->buf, &head), part), part->len);
}

static void build_refusal(struct frame *f, uint8_t entries)
{
    uint8_t *at = mrd_wire_put_refusal(mrd_wire_put_head(f->buf, &data_head), 5, 6, 100, entries);

    for (unsigned i = 0; i < entries; i++) {
        struct mrd_wire_refusal_entry entry = {.index = (uint8_t)i,
                                               .code = MRD_REFUSE_RNR,
                                               .attempt = (uint8_t)(200 + i),
                                               .id = 1000 + i};

        at = mrd_wire_put_refusal_entry(at, &entry);
    }
    finish(f, at, 0);
}

static void build_ack(struct frame *f, uint8_t slices, uint8_t paths, uint8_t dups)
{
    struct mrd_wire_head head = {.type = MRD_WIRE_ACK, .src_inc = 1, .dst_inc = 2, .epoch = 3, .psn = 4242};
    struct mrd_wire_ack ack = {.serial = 5,
                               .psn_limit = 6,
                               .echo_psn = 7,
                               .echo_stamp = 8,
                               .echo_rx_stamp = 9,
                               .echo_delay = 10,
                               .echo_path = 11,
                               .ack_delay_usec = 12,
                               .flags = MRD_ACK_ECHO | MRD_ACK_ECHO_CE,
                               .num_slices = slices,
                               .num_paths = paths,
                               .num_dups = dups};

    for (unsigned i = 0; i < slices; i++) {
        ack.slice[i].base = 4096 + i * MRD_WIRE_SLICE_BITS;
        for (unsigned w = 0; w < 4; w++)
            ack.slice[i].bits[w] = 0x0123456789abcdefull * (i + 1) + w;
    }
    for (unsigned i = 0; i < paths; i++)
        ack.path[i] = (struct mrd_wire_path){(uint16_t)(i * 1000), i + 70000, i + 80000};
    for (unsigned i = 0; i < dups; i++)
        ack.dup[i] = UINT32_MAX - i;
    finish(f, mrd_wire_put_ack(mrd_wire_put_head(f->buf, &head), &ack), 0);
}

static void build_plain(struct frame *f, uint8_t type)
{
    struct mrd_wire_head head = {.type = type,
                                 .src_inc = 1,
                                 .dst_inc = 2,
                                 .epoch = 3,
                                 .reply = 4793,
                                 .cookie = 0xfedcba9876543210,
                                 .up_usec = 1234567,
                                 .live_epoch = 9};

    finish(f, mrd_wire_put_head(f->buf, &head), 0);
}

enum { FRAMES = 8 };

/* One packet of each form. */
static void build_any(struct frame *f, unsigned which)
{
    struct mrd_wire_part part = segment_part;

    switch (which) {
    case 0:
        build_data(f, MRD_WIRE_FIRST_CONTACT | MRD_WIRE_COOKIE, &part);
        break;
    case 1:
        part.op = MRD_OP_SEND;
        part.flags = MRD_PART_SOLICITED;
        build_data(f, MRD_WIRE_ACKBLOCK | MRD_WIRE_ACK_REQUEST, &part);
        break;
    case 2:
        build_refusal(f, 3);
        break;
    case 3:
        build_ack(f, 2, 3, 1);
        break;
    case 4:
        build_ack(f, 0, 0, 0);
        break;
    case 5:
        build_plain(f, MRD_WIRE_RESET);
        break;
    case 6:
        build_plain(f, MRD_WIRE_CHALLENGE);
        break;
    case 7: { /* an empty packet */
        finish(f, mrd_wire_put_head(f->buf, &data_head), 0);
        break;
    }
    }
}

/* The packet in memory of just its size, so that a sanitizer sees a read beyond it. */
static enum mrd_wire_error get_exact(const uint8_t *buf, uint32_t len, struct mrd_wire_head *head)
{
    uint8_t *exact = malloc(len ? len : 1);
    enum mrd_wire_error error;

    assert_non_null(exact);
    memcpy(exact, buf, len);
    error = mrd_wire_get(exact, len, head);
    free(exact);
    return error;
}

/* ---------------------------------------------------------------------------------------- encode */

/* Captures of any two versions must agree on where the fields lie. */
static void mrd_wire_put_head__lays_bytes_out(void **state)
{
    static const uint8_t expected[MRD_WIRE_BASE_BYTES] = {
        0x11, 0x02, 0,    40,   0x11, 0x11, 0x11, 0x12, 0x22, 0x22, 0x22, 0x23, 0x33, 0x33,
        0x33, 0x34, 0xff, 0xff, 0xff, 0xfe, 0x44, 0x44, 0x44, 0x45, 0x55, 0x56, 0x66, 0x67,
        0,    0x77, 0x88, 0x99, 0,    0,    0,    0,    0x12, 0x34, 0x56, 0x78};
    struct mrd_wire_head head = data_head;
    struct frame f;

    (void)state;
    head.flags = MRD_WIRE_FIRST_CONTACT;
    finish(&f, mrd_wire_put_head(f.buf, &head), 0);
    memset(f.buf + 32, 0, 4); /* the check has tests of its own */
    assert_memory_equal(f.buf, expected, sizeof(expected));
}

static void mrd_wire_put_head__round_trip_of_data(void **state)
{
    (void)state;
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

static void mrd_wire_put_head__round_trip_of_reset_and_challenge(void **state)
{
    struct mrd_wire_head got;
    struct frame f;

    (void)state;
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
    assert_true(got.cookie == 0xfedcba9876543210);
    assert_int_equal(got.dst_inc, 2);
}

/* Neither may be larger than the smallest packet that it answers: else strangers could use us to amplify. */
static void mrd_wire_put_head__reset_and_challenge_do_not_amplify(void **state)
{
    struct frame smallest, f;

    (void)state;
    finish(&smallest, mrd_wire_put_head(smallest.buf, &data_head), 0);
    assert_int_equal(smallest.len, 40);
    build_plain(&f, MRD_WIRE_RESET);
    assert_in_range(f.len, 1, smallest.len);
    build_plain(&f, MRD_WIRE_CHALLENGE);
    assert_in_range(f.len, 1, smallest.len);
}

static void mrd_wire_put_part__round_trip_of_each_form(void **state)
{
    static const uint8_t ops[] = {MRD_OP_SEND, MRD_OP_WRITE, MRD_OP_VOID, MRD_OP_ABORT};

    (void)state;
    for (unsigned i = 0; i < sizeof(ops) * 16; i++) {
        struct mrd_wire_part part = segment_part, got = {0};
        uint32_t at = MRD_WIRE_BASE_BYTES;
        struct frame f;

        part.op = ops[i / 16];
        part.flags = (uint8_t)((i % 16) << 4);
        part.qkey = 0x99887766;
        build_data(&f, 0, &part);
        assert_int_equal(f.head_len, MRD_WIRE_BASE_BYTES + mrd_wire_part_bytes(part.op, part.flags));
        assert_true(mrd_wire_get_part(f.buf, &at, f.head_len, &got));
        assert_int_equal(at, f.head_len);
        assert_int_equal(got.op, part.op);
        assert_int_equal(got.flags, part.flags);
        assert_int_equal(got.attempt, part.attempt);
        assert_int_equal(got.len, part.len);
        assert_int_equal(got.dst_qpn, part.dst_qpn);
        assert_int_equal(got.src_qpn, part.src_qpn);
        assert_int_equal(got.id, part.flags & MRD_PART_MULTI ? part.id : 0);
        assert_int_equal(got.total, part.flags & MRD_PART_MULTI ? part.total : part.len);
        assert_int_equal(got.offset, part.flags & MRD_PART_MULTI ? part.offset : 0);
        if (part.op == MRD_OP_SEND)
            assert_int_equal(got.qkey, part.qkey);
        if (part.op == MRD_OP_WRITE) {
            assert_int_equal(got.rkey, part.rkey);
            assert_true(got.addr == part.addr);
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
static void mrd_wire_put_part__imm_keeps_its_bytes(void **state)
{
    struct mrd_wire_part part = {.op = MRD_OP_SEND, .flags = MRD_PART_IMM};
    struct frame f;

    (void)state;
    memcpy(&part.imm, "\x01\x02\x03\x04", 4);
    build_data(&f, 0, &part);
    assert_memory_equal(f.buf + f.head_len - 4, "\x01\x02\x03\x04", 4);
}

/* A packet of one part has at most 96 bytes in front of its payload; an ack rides on packets of whole messages only. */
static void mrd_wire_put_part__header_of_one_part_fits_in_96_bytes(void **state)
{
    uint32_t most = 0;

    (void)state;
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

static void mrd_wire_put_refusal__round_trip(void **state)
{
    static const uint8_t counts[] = {0, 1, 3, MRD_PARTS_MAX};

    (void)state;
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

static void mrd_wire_put_ack__round_trip_up_to_the_bounds(void **state)
{
    static const uint8_t counts[][3] = {
        {0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {2, 5, 3}, {MRD_WIRE_SLICES_MAX, MRD_WIRE_ACK_PATHS_MAX, MRD_ACK_DUPS_MAX}};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct mrd_wire_head head;
        struct mrd_wire_ack ack;
        struct frame f;

        build_ack(&f, counts[i][0], counts[i][1], counts[i][2]);
        assert_int_equal(f.len, 72 + 36 * counts[i][0] + 12 * counts[i][1] + 4 * counts[i][2]);
        assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
        assert_true(mrd_wire_get_ack(f.buf, &head, &ack));
        assert_int_equal(ack.cum, 4242);
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
            assert_int_equal(ack.path[k].received, k + 70000);
            assert_int_equal(ack.path[k].ce, k + 80000);
        }
        for (unsigned k = 0; k < ack.num_dups; k++)
            assert_int_equal(ack.dup[k], UINT32_MAX - k);
    }
}

static void mrd_wire_part_bytes__table(void **state)
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
        {MRD_OP_WRITE, MRD_PART_MULTI | MRD_PART_IMM | MRD_PART_ORDERED, MRD_WIRE_PART_BYTES_MAX},
        {MRD_OP_ABORT, MRD_PART_MULTI | MRD_PART_ORDERED, 32},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(mrd_wire_part_bytes(table[i].op, table[i].flags), table[i].bytes);
}

static void mrd_wire_add_flags__keeps_the_others(void **state)
{
    struct mrd_wire_head head = data_head, got;
    struct frame f;
    uint8_t *end;

    (void)state;
    head.flags = MRD_WIRE_FIRST_CONTACT;
    end = mrd_wire_put_head(f.buf, &head);
    mrd_wire_add_flags(f.buf, MRD_WIRE_ACK_REQUEST);
    mrd_wire_set_payload_check(f.buf, 0xcafe);
    finish(&f, end, 0);
    assert_int_equal(mrd_wire_get(f.buf, f.len, &got), MRD_WIRE_OK);
    assert_int_equal(got.flags, MRD_WIRE_FIRST_CONTACT | MRD_WIRE_ACK_REQUEST);
    assert_int_equal(got.payload_check, 0xcafe);
}

/* ---------------------------------------------------------------------------------------- decode */

static void mrd_wire_get__rejects_any_flipped_bit(void **state)
{
    (void)state;
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

static void mrd_wire_get__rejects_truncation_at_each_length(void **state)
{
    (void)state;
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

static void mrd_wire_get__only_data_has_a_payload(void **state)
{
    (void)state;
    for (unsigned which = 3; which < 7; which++) {
        struct mrd_wire_head head;
        struct frame f;

        build_any(&f, which);
        f.buf[f.len] = 0;
        assert_int_equal(mrd_wire_get(f.buf, f.len + 1, &head), MRD_WIRE_BAD_LENGTH);
    }
}

/* Headers whose check holds, and that are wrong. */
static void mrd_wire_get__names_what_is_wrong(void **state)
{
    static const struct {
        uint8_t first, flags;
        uint32_t head_len;
        enum mrd_wire_error error;
    } table[] = {
        {0x11, 0, 40, MRD_WIRE_OK},
        {0x01, 0, 40, MRD_WIRE_BAD_VERSION},
        {0x21, 0, 40, MRD_WIRE_BAD_VERSION},
        {0x10, 0, 40, MRD_WIRE_BAD_TYPE},
        {0x15, 0, 40, MRD_WIRE_BAD_TYPE},
        {0x1f, 0, 40, MRD_WIRE_BAD_TYPE},
        {0x11, 0, 39, MRD_WIRE_BAD_LENGTH},
        {0x11, MRD_WIRE_COOKIE, 47, MRD_WIRE_BAD_LENGTH},
        {0x11, MRD_WIRE_COOKIE, 48, MRD_WIRE_OK},
        {0x11, MRD_WIRE_ACKBLOCK, 59, MRD_WIRE_BAD_LENGTH},
        {0x11, MRD_WIRE_ACKBLOCK, 60, MRD_WIRE_OK},
        {0x11, MRD_WIRE_ACKBLOCK | MRD_WIRE_COOKIE, 67, MRD_WIRE_BAD_LENGTH},
        {0x11, MRD_WIRE_ACKBLOCK | MRD_WIRE_COOKIE, 68, MRD_WIRE_OK},
        {0x11, 0, 2048, MRD_WIRE_OK},
        {0x11, 0, 2049, MRD_WIRE_BAD_LENGTH},
        {0x12, 0, 71, MRD_WIRE_BAD_LENGTH},
        {0x12, 0, 72, MRD_WIRE_OK},
        {0x12, MRD_WIRE_ACK_REQUEST, 72, MRD_WIRE_BAD_LENGTH},
        {0x13, MRD_WIRE_FIRST_CONTACT, 40, MRD_WIRE_BAD_LENGTH},
        {0x14, MRD_WIRE_COOKIE, 48, MRD_WIRE_BAD_LENGTH},
    };

    (void)state;
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

static void mrd_wire_get_part__rejects_unknown_operations(void **state)
{
    (void)state;
    for (unsigned op = 0; op < 16; op++) {
        struct mrd_wire_part part = {.op = (uint8_t)op}, got;
        uint32_t at = MRD_WIRE_BASE_BYTES;
        struct frame f;

        memset(&f, 0, sizeof(f));
        build_data(&f, 0, &part);
        assert_int_equal(mrd_wire_get_part(f.buf, &at, f.head_len + 8, &got),
                         op == MRD_OP_SEND || op == MRD_OP_WRITE || op == MRD_OP_VOID ||
                             op == MRD_OP_REFUSAL || op == MRD_OP_ABORT);
    }
}

static void mrd_wire_get_part__rejects_truncation_at_each_length(void **state)
{
    static const uint8_t ops[] = {MRD_OP_SEND, MRD_OP_WRITE, MRD_OP_VOID, MRD_OP_ABORT};

    (void)state;
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
static void mrd_wire_get_part__refusal_with_a_bad_count(void **state)
{
    (void)state;
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
static void mrd_wire_get_part__walks_many(void **state)
{
    struct mrd_wire_part part = {0};
    uint32_t at = MRD_WIRE_BASE_BYTES, num = 0;
    struct frame f;
    uint8_t *end = mrd_wire_put_head(f.buf, &data_head);

    (void)state;
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
static void mrd_wire_get_ack__rejects_bad_counts(void **state)
{
    enum { AT_SLICES = 40 + 27 };

    (void)state;
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
static void mrd_wire_get_ack__rejects_more_than_the_bounds(void **state)
{
    static const struct {
        unsigned at;
        uint8_t count;
        uint32_t bytes;
    } table[] = {
        {67, MRD_WIRE_SLICES_MAX + 1, (MRD_WIRE_SLICES_MAX + 1) * MRD_WIRE_SLICE_BYTES},
        {68, MRD_WIRE_ACK_PATHS_MAX + 1, (MRD_WIRE_ACK_PATHS_MAX + 1) * MRD_WIRE_PATH_BYTES},
        {69, MRD_ACK_DUPS_MAX + 1, (MRD_ACK_DUPS_MAX + 1) * 4},
    };

    (void)state;
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

static void mrd_wire_get_ack__slices_begin_at_multiples_of_256(void **state)
{
    struct mrd_wire_head head;
    struct mrd_wire_ack ack;
    struct frame f;

    (void)state;
    build_ack(&f, 2, 0, 0);
    f.buf[MRD_WIRE_ACK_BYTES + MRD_WIRE_SLICE_BYTES + 3] = 64;
    mrd_wire_seal(f.buf, f.buf + f.head_len);
    assert_int_equal(mrd_wire_get(f.buf, f.len, &head), MRD_WIRE_OK);
    assert_false(mrd_wire_get_ack(f.buf, &head, &ack));
}

static void mrd_wire_payload_check__low_half_of_xxh3(void **state)
{
    static const uint32_t lengths[] = {1, 16, 17, 128, 129, 240, 241, 1024, 1025, 4096};
    uint8_t data[4096];

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        assert_int_equal(mrd_wire_payload_check(data, lengths[i]), (uint32_t)XXH3_64bits(data, lengths[i]));
    assert_int_equal(mrd_wire_payload_check(NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_wire_put_head__lays_bytes_out),
        cmocka_unit_test(mrd_wire_put_head__round_trip_of_data),
        cmocka_unit_test(mrd_wire_put_head__round_trip_of_reset_and_challenge),
        cmocka_unit_test(mrd_wire_put_head__reset_and_challenge_do_not_amplify),
        cmocka_unit_test(mrd_wire_put_part__round_trip_of_each_form),
        cmocka_unit_test(mrd_wire_put_part__imm_keeps_its_bytes),
        cmocka_unit_test(mrd_wire_put_part__header_of_one_part_fits_in_96_bytes),
        cmocka_unit_test(mrd_wire_put_refusal__round_trip),
        cmocka_unit_test(mrd_wire_put_ack__round_trip_up_to_the_bounds),
        cmocka_unit_test(mrd_wire_part_bytes__table),
        cmocka_unit_test(mrd_wire_add_flags__keeps_the_others),
        cmocka_unit_test(mrd_wire_get__rejects_any_flipped_bit),
        cmocka_unit_test(mrd_wire_get__rejects_truncation_at_each_length),
        cmocka_unit_test(mrd_wire_get__only_data_has_a_payload),
        cmocka_unit_test(mrd_wire_get__names_what_is_wrong),
        cmocka_unit_test(mrd_wire_get_part__rejects_unknown_operations),
        cmocka_unit_test(mrd_wire_get_part__rejects_truncation_at_each_length),
        cmocka_unit_test(mrd_wire_get_part__refusal_with_a_bad_count),
        cmocka_unit_test(mrd_wire_get_part__walks_many),
        cmocka_unit_test(mrd_wire_get_ack__rejects_bad_counts),
        cmocka_unit_test(mrd_wire_get_ack__rejects_more_than_the_bounds),
        cmocka_unit_test(mrd_wire_get_ack__slices_begin_at_multiples_of_256),
        cmocka_unit_test(mrd_wire_payload_check__low_half_of_xxh3),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
