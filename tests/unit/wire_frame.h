/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of each form, for the tests of encoding and of decoding. */
#ifndef MRD_UNIT_WIRE_FRAME_H
#define MRD_UNIT_WIRE_FRAME_H

#include "core/wire.h"

enum { BUF = 4096, PAYLOAD = 200, HEAD_MAX = 96 };

/* A packet: `len` bytes of datagram, of which `head_len` are header. */
struct frame {
    uint8_t buf[BUF];
    uint32_t head_len, len;
};

static const struct mrd_wire_part segment_part = {.op = MRD_OP_WRITE,
                                                  .flags = MRD_PART_MULTI | MRD_PART_IMM |
                                                           MRD_PART_ORDERED,
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

static inline void finish(struct frame *f, uint8_t *end, uint32_t payload)
{
    mrd_wire_seal(f->buf, end);
    f->head_len = (uint32_t)(end - f->buf);
    for (uint32_t i = 0; i < payload; i++)
        f->buf[f->head_len + i] = (uint8_t)i;
    f->len = f->head_len + payload;
}

static inline void build_data(struct frame *f, uint8_t flags, const struct mrd_wire_part *part)
{
    struct mrd_wire_head head = data_head;

    head.flags = flags;
    finish(f, mrd_wire_put_part(mrd_wire_put_head(f->buf, &head), part), part->len);
}

static inline void build_refusal(struct frame *f, uint8_t entries)
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

static inline void build_ack(struct frame *f, uint8_t slices, uint8_t paths, uint8_t dups)
{
    struct mrd_wire_head head = {
        .type = MRD_WIRE_ACK, .src_inc = 1, .dst_inc = 2, .epoch = 3, .psn = 4242};
    struct mrd_wire_ack ack = {.serial = 5,
                               .psn_limit = 6,
                               .live_epoch = 77,
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
        ack.path[i] = (struct mrd_wire_path){.id = (uint16_t)(i * 1000),
                                             .delay = (uint16_t)(i * 7 + 1),
                                             .received = i + 70000,
                                             .ce = i + 80000};
    for (unsigned i = 0; i < dups; i++)
        ack.dup[i] = UINT32_MAX - i;
    finish(f, mrd_wire_put_ack(mrd_wire_put_head(f->buf, &head), &ack), 0);
}

static inline void build_plain(struct frame *f, uint8_t type)
{
    struct mrd_wire_head head = {.type = type,
                                 .src_inc = 1,
                                 .dst_inc = 2,
                                 .epoch = 3,
                                 .reply = 4793,
                                 .cookie = 0xfedcba9876543210,
                                 .up_usec = 1234567,
                                 .echo_stamp = 0x9abcdef0,
                                 .live_epoch = 9};

    finish(f, mrd_wire_put_head(f->buf, &head), 0);
}

enum { FRAMES = 9 };

/* One packet of each form. */
static inline void build_any(struct frame *f, unsigned which)
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
    case 7:
        build_plain(f, MRD_WIRE_BUSY);
        break;
    case 8: { /* an empty packet */
        finish(f, mrd_wire_put_head(f->buf, &data_head), 0);
        break;
    }
    }
}

#endif
