/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet formats: encode, decode, validate. WIRE.md has the box diagrams.
 *
 * Sending: mrd_wire_put_head(), then the options and parts in order, mrd_wire_seal() last.
 * Receiving: mrd_wire_get() validates everything up to the payload; mrd_wire_get_part() walks the
 * parts; the payload is valid if its mrd_wire_payload_check() is mrd_wire_head.payload_check.
 *
 * Adding a packet type: enum mrd_wire_type, a case in mrd_wire_get(), encode and decode here, a
 * diagram in WIRE.md, a row in tests/unit/test_wire.c.
 */
#ifndef MRD_CORE_WIRE_H
#define MRD_CORE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/limits.h"
#include "core/seq.h"

enum {
    MRD_WIRE_VERSION = 3,
    MRD_WIRE_BASE_BYTES = 40,
    MRD_WIRE_COOKIE_BYTES = 8,
    MRD_WIRE_ACKBLOCK_BYTES = 20,
    MRD_WIRE_FRAGMENT_BYTES = 48, /* base included */
    MRD_WIRE_PART_BYTES_MIN = 12,
    MRD_WIRE_ATOMIC_BYTES = 8, /* what an atomic works on, and answers */
    MRD_WIRE_PART_BYTES_MAX = 52,
    MRD_WIRE_ACK_BYTES = 76, /* fixed part, base included */
    MRD_WIRE_SLICE_BITS = 256,
    MRD_WIRE_SLICE_BYTES = 36,
    MRD_WIRE_PATH_BYTES = 12,
    MRD_WIRE_SLICES_MAX =
        MRD_TRACKER_MAX / MRD_WIRE_SLICE_BITS + 1, /* a wider tracker takes turns */
    MRD_WIRE_ACK_PATHS_MAX = 64,
    MRD_WIRE_REFUSAL_BYTES = 16,
    MRD_WIRE_REFUSAL_ENTRY_BYTES = 8,
    MRD_WIRE_HEAD_BYTES_MAX = 2560, /* 64 ordered writes with immediate data, and room */
    MRD_WIRE_STAMP_NS = 16,         /* unit of stamps: 32 bits wrap after 68 s */
};

enum mrd_wire_type {
    MRD_WIRE_DATA = 1,
    MRD_WIRE_ACK = 2,
    MRD_WIRE_RESET = 3,
    MRD_WIRE_CHALLENGE = 4,
    MRD_WIRE_BUSY = 5,
    MRD_WIRE_FRAGMENT = 6, /* a piece of a DATA packet that its path does not take any more */
};

/* Beside these: the type of a packet that has one of them in it, encrypted (seal.h). */
enum { MRD_WIRE_SEALED = 7 };

/* As live epoch: the sender's life is over, or ends now, with all its spaces. */
#define MRD_WIRE_EPOCH_NONE UINT32_MAX

/* Is a space of that epoch over, says this live epoch of the same life? Epochs come round. */
static inline bool mrd_wire_epoch_over(uint32_t epoch, uint32_t live_epoch)
{
    return live_epoch == MRD_WIRE_EPOCH_NONE || mrd_seq_before(epoch, live_epoch);
}

enum mrd_wire_flags {
    MRD_WIRE_ACK_REQUEST = 1 << 0,
    MRD_WIRE_FIRST_CONTACT = 1 << 1,
    MRD_WIRE_ACKBLOCK = 1 << 2,
    MRD_WIRE_COOKIE = 1 << 3,
    MRD_WIRE_UNCHECKED = 1 << 4, /* the payload has no check: its receiver asked for none */
    MRD_WIRE_FORGOTTEN = 1 << 5, /* with FIRST_CONTACT: its sender holds no space of the receiver */
    MRD_WIRE_WANTS_MORE = 1 << 6, /* its sender has more to send than it was granted */
};

enum mrd_wire_op {
    MRD_OP_SEND = 1,
    MRD_OP_WRITE = 2,
    MRD_OP_READ = 3, /* requests: they carry no payload... */
    MRD_OP_CMP_SWAP = 4,
    MRD_OP_FETCH_ADD = 5,
    MRD_OP_RESPONSE = 6, /* ...and the message that answers one, sent by its target */
    MRD_OP_VOID = 7,     /* placeholder of a part that a retransmission leaves out */
    MRD_OP_REFUSAL = 8,
    MRD_OP_ABORT = 9,
    MRD_OP_READY = 10, /* a queue pair that refused for want of a receive has receives */
    MRD_OP_CLOSE = 11, /* a flow of ordered messages is idle */
};

enum mrd_part_flags {
    MRD_PART_MULTI = 0x10, /* a segment of a longer message: id, total, offset present */
    MRD_PART_IMM = 0x20,
    MRD_PART_ORDERED = 0x40, /* msn, rsn present */
    MRD_PART_SOLICITED = 0x80,
};

/* Why a target refuses a message; the number is wc.vendor_err at the sender. */
enum mrd_refusal_code {
    MRD_REFUSE_RNR = 1,       /* no receive posted: try again after the RNR delay */
    MRD_REFUSE_RESOURCES = 2, /* no memory for the message's state: likewise */
    MRD_REFUSE_QPN = 3,
    MRD_REFUSE_QKEY = 4,
    MRD_REFUSE_TOO_LONG = 5,
    MRD_REFUSE_ACCESS = 6,
    MRD_REFUSE_INVALID = 7,   /* contradicts itself or the rules of its mode */
    MRD_REFUSE_OPERATION = 8, /* the target's receive buffer was deregistered */
};

struct mrd_wire_head {
    uint8_t type, flags, key_id;
    uint16_t head_len;
    uint32_t src_inc, dst_inc, epoch, psn, stamp;
    uint16_t path_id, pseq;
    uint32_t reply; /* sender's receive port or QPN, 24 bits */
    uint32_t payload_check;
    uint64_t cookie;     /* DATA: with MRD_WIRE_COOKIE; CHALLENGE */
    uint32_t up_usec;    /* CHALLENGE: time since the challenger opened, saturated */
    uint32_t echo_stamp; /* CHALLENGE: stamp of the packet that it answers */
    uint32_t live_epoch; /* RESET: lowest live epoch of its sender, or MRD_WIRE_EPOCH_NONE */
    /*
     * FIRST_CONTACT: how long its sender waits for acks before it gives up; rounded up on the wire.
     */
    uint64_t peer_timeout_ns;
    uint32_t whole_len, whole_offset; /* FRAGMENT: of the whole packet; where this piece begins */
    /* MRD_WIRE_ACKBLOCK */
    uint32_t ack_epoch, ack_cum, ack_serial, ack_stamp, ack_psn_limit;
    uint16_t parts_at; /* offset of the first part */
};

/* A part of a DATA packet: a whole message, a segment of one, or control. */
struct mrd_wire_part {
    uint8_t op, flags, attempt;
    uint16_t len; /* payload bytes */
    union {
        uint32_t dst_qpn;
        uint32_t receives; /* READY: receives posted at src_qpn */
    };
    uint32_t src_qpn;
    /* Without MRD_PART_MULTI: 0, len, 0; total of a READ: bytes asked for; of an atomic: 8. */
    uint32_t id, total, offset;
    uint32_t qkey;  /* SEND */
    uint32_t rkey;  /* WRITE, requests */
    uint64_t addr;  /* WRITE, requests: address of the message's first byte */
    uint32_t token; /* requests: the requester's name for it; RESPONSE: of its request */
    uint64_t compare_add, swap; /* atomics */
    uint32_t imm;               /* as posted: big-endian bytes; ABORT of a RESPONSE: its token */
    uint16_t msn, rsn;          /* ORDERED: low 16 bits */
    /* By how much the oldest message that the sender still owes is behind msn and rsn. */
    uint16_t msn_behind, rsn_behind;
    /* REFUSAL */
    uint8_t num_entries;
    uint32_t epoch, psn, rnr_usec; /* refused PSN; epoch of its space */
    const uint8_t *entries;
};

/* Does the part's message consume a receive at its target? */
static inline bool mrd_wire_consumes(const struct mrd_wire_part *part)
{
    return part->op == MRD_OP_SEND || part->flags & MRD_PART_IMM;
}

/* Does the target answer an op by a RESPONSE? */
static inline bool mrd_wire_is_request(uint8_t op)
{
    return op == MRD_OP_READ || op == MRD_OP_CMP_SWAP || op == MRD_OP_FETCH_ADD;
}

/*
 * Where its sender is answered, says a packet of at least MRD_WIRE_BASE_BYTES that nobody has checked
 * yet, and that may be sealed. 24 bits.
 */
uint32_t mrd_wire_peek_reply(const uint8_t *data);

/* The payload of an atomic's response. */
void mrd_wire_put_u64(uint8_t *at, uint64_t v);
uint64_t mrd_wire_get_u64(const uint8_t *at);

/* Converts a time to a stamp, as packets carry it. */
static inline uint32_t mrd_wire_stamp(uint64_t ns)
{
    return (uint32_t)(ns / MRD_WIRE_STAMP_NS);
}

struct mrd_wire_refusal_entry {
    uint8_t index, code, attempt; /* `index` of the part in the refused packet */
    uint32_t id;
};

enum mrd_wire_ack_flags {
    MRD_ACK_ECHO = 1,
    MRD_ACK_ECHO_CE = 2,
    MRD_ACK_UNCHECKED = 4, /* the acker takes payloads without a check */
};

struct mrd_wire_slice {
    uint32_t base; /* multiple of MRD_WIRE_SLICE_BITS */
    uint64_t bits[4];
};

struct mrd_wire_path {
    uint16_t id;
    /* Low 16 bits of rx stamp - tx stamp of the last new packet; 0: none since the last ack. */
    uint16_t delay;
    uint32_t received, ce; /* cumulative */
};

struct mrd_wire_ack {
    uint32_t serial, cum, psn_limit;
    uint32_t live_epoch; /* spaces of the acker as sender below this epoch have ended */
    uint32_t echo_psn, echo_stamp, echo_rx_stamp, echo_delay; /* stamp units */
    uint16_t echo_path, ack_delay_usec;
    uint8_t flags, num_slices, num_paths, num_dups;
    struct mrd_wire_slice slice[MRD_WIRE_SLICES_MAX];
    struct mrd_wire_path path[MRD_WIRE_ACK_PATHS_MAX];
    uint32_t dup[MRD_ACK_DUPS_MAX];
};

enum mrd_wire_error {
    MRD_WIRE_OK = 0,
    MRD_WIRE_TRUNCATED,
    MRD_WIRE_BAD_VERSION,
    MRD_WIRE_BAD_TYPE,
    MRD_WIRE_BAD_LENGTH,
    MRD_WIRE_BAD_CHECK,
};

/* Writes base header and options. Returns the end, where parts go. Ignores head->head_len. */
uint8_t *mrd_wire_put_head(uint8_t *buf, const struct mrd_wire_head *head);
uint8_t *mrd_wire_put_part(uint8_t *at, const struct mrd_wire_part *part);
uint8_t *mrd_wire_put_refusal(uint8_t *at, uint32_t epoch, uint32_t psn, uint32_t rnr_usec,
                              uint8_t num_entries);
uint8_t *mrd_wire_put_refusal_entry(uint8_t *at, const struct mrd_wire_refusal_entry *entry);
/* Writes the body of an ACK packet behind the base header of mrd_wire_put_head(). */
uint8_t *mrd_wire_put_ack(uint8_t *at, const struct mrd_wire_ack *ack);
/* Bytes of an operation's own fields in a part. */
extern const uint8_t mrd_wire_op_bytes[16];

/* Returns the number of bytes that mrd_wire_put_part() writes. */
static inline uint32_t mrd_wire_part_bytes(uint8_t op, uint8_t flags)
{
    return MRD_WIRE_PART_BYTES_MIN + mrd_wire_op_bytes[op & 15] +
           (flags & MRD_PART_MULTI ? 12u : 0u) + (flags & MRD_PART_IMM ? 4u : 0u) +
           (flags & MRD_PART_ORDERED ? 8u : 0u);
}

/*
 * Writes the header of the segment that follows the one with header `prev`: all as there, but for
 * what is given, and no flags but UNCHECKED. There must be no cookie and no ack block.
 */
void mrd_wire_follow(uint8_t *buf, const uint8_t *prev, uint32_t head_len, uint32_t psn,
                     uint32_t pseq, uint32_t offset, uint32_t payload_check);
/* Adds flags to a header that is not sealed yet. */
void mrd_wire_add_flags(uint8_t *buf, uint8_t flags);
void mrd_wire_set_payload_check(uint8_t *buf, uint32_t check);
/* Returns what the header, of MRD_WIRE_BASE_BYTES at least, says of its payload. */
uint32_t mrd_wire_get_payload_check(const uint8_t *buf);
/* Finishes the header: sets head_len and the header check. */
void mrd_wire_seal(uint8_t *buf, const uint8_t *end);

/* Checks lengths, version, type and header check; fills `head`. */
enum mrd_wire_error mrd_wire_get(const uint8_t *buf, uint32_t len, struct mrd_wire_head *head);
/* Decodes the part at offset *at of the header and moves *at behind it. false: malformed. */
bool mrd_wire_get_part(const uint8_t *buf, uint32_t *at, uint32_t head_len,
                       struct mrd_wire_part *part);
/* Decodes all parts, up to MRD_PARTS_MAX. false: malformed, or more. */
bool mrd_wire_get_parts(const uint8_t *buf, const struct mrd_wire_head *head,
                        struct mrd_wire_part *part, unsigned *num);
/*
 * Do the lengths of a packet's parts add up to its payload? Is a segment alone in its packet, are
 * ABORTs among ABORTs only, and do requests carry, and take, nothing?
 */
bool mrd_wire_parts_agree(const struct mrd_wire_part *part, unsigned num, uint32_t payload_len);
void mrd_wire_get_refusal_entry(const struct mrd_wire_part *part, unsigned i,
                                struct mrd_wire_refusal_entry *entry);
bool mrd_wire_get_ack(const uint8_t *buf, const struct mrd_wire_head *head,
                      struct mrd_wire_ack *ack);

/* Returns the payload check of `len` bytes; 0 for len 0. */
uint32_t mrd_wire_payload_check(const void *data, uint32_t len);

#endif
