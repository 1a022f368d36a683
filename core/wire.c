/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/wire.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/check.h"

/* The base header on the wire. It consists of bytes only: no padding, no alignment. */
struct base {
    uint8_t version_type, flags;
    uint8_t head_len[2];
    uint8_t src_inc[4], dst_inc[4], epoch[4];
    uint8_t psn[4]; /* ACK: cumulative PSN; RESET: live epoch; CHALLENGE: time since open */
    uint8_t stamp[4];
    uint8_t path_id[2];
    /* FIRST_CONTACT: the timeout of peers; CHALLENGE: stamp, path_id and pseq hold the cookie. */
    uint8_t pseq[2];
    uint8_t key_reply[4];
    uint8_t head_check[4], payload_check[4]; /* CHALLENGE: payload_check holds the echoed stamp */
};
_Static_assert(sizeof(struct base) == MRD_WIRE_BASE_BYTES, "base header");

struct ack_body {
    uint8_t serial[4], psn_limit[4], live_epoch[4];
    uint8_t echo_psn[4], echo_stamp[4], echo_rx_stamp[4], echo_delay[4];
    uint8_t echo_path[2], flags, num_slices, num_paths, num_dups, ack_delay_usec[2];
};
_Static_assert(MRD_WIRE_BASE_BYTES + sizeof(struct ack_body) == MRD_WIRE_ACK_BYTES, "ack");

static inline void put16(uint8_t *at, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(at, &v, 2);
}

static inline void put32(uint8_t *at, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(at, &v, 4);
}

static inline void put64(uint8_t *at, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(at, &v, 8);
}

static inline uint16_t get16(const uint8_t *at)
{
    uint16_t v;

    memcpy(&v, at, 2);
    return __builtin_bswap16(v);
}

static inline uint32_t get32(const uint8_t *at)
{
    uint32_t v;

    memcpy(&v, at, 4);
    return __builtin_bswap32(v);
}

static inline uint64_t get64(const uint8_t *at)
{
    uint64_t v;

    memcpy(&v, at, 8);
    return __builtin_bswap64(v);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the swaps above assume it");

static inline uint8_t *field32(uint8_t *at, uint32_t v)
{
    put32(at, v);
    return at + 4;
}

static inline uint8_t *field64(uint8_t *at, uint64_t v)
{
    put64(at, v);
    return at + 8;
}

void mrd_wire_put_u64(uint8_t *at, uint64_t v)
{
    put64(at, v);
}

uint64_t mrd_wire_get_u64(const uint8_t *at)
{
    return get64(at);
}

enum { XXH3_SHORT_BYTES = 240 }; /* up to this length XXH3 uses no vector loop */

static uint32_t check(const void *data, size_t len)
{
    return len <= XXH3_SHORT_BYTES ? (uint32_t)XXH3_64bits(data, len) : mrd_check_long(data, len);
}

uint32_t mrd_wire_payload_check(const void *data, uint32_t len)
{
    return len ? check(data, len) : 0;
}

/*
 * A time in 16 bits, rounded up: mantissa of PATIENCE_BITS in milliseconds, exponent in the others.
 */
enum { PATIENCE_BITS = 12, PATIENCE_MASK = (1 << PATIENCE_BITS) - 1, PATIENCE_SHIFT_MAX = 15 };

static uint16_t timeout_code(uint64_t ns)
{
    uint64_t ms = ns / MRD_MSEC + (ns % MRD_MSEC != 0);
    uint32_t shift = 0;

    for (; ms > PATIENCE_MASK && shift < PATIENCE_SHIFT_MAX; shift++)
        ms = (ms + 1) / 2;
    return (uint16_t)(shift << PATIENCE_BITS | (ms < PATIENCE_MASK ? (uint32_t)ms : PATIENCE_MASK));
}

static uint64_t timeout_of_code(uint16_t code)
{
    return ((uint64_t)(code & PATIENCE_MASK) << (code >> PATIENCE_BITS)) * MRD_MSEC;
}

uint8_t *mrd_wire_put_head(uint8_t *buf, const struct mrd_wire_head *head)
{
    struct base *b = (struct base *)(void *)buf;
    uint8_t *at = buf + MRD_WIRE_BASE_BYTES;

    b->version_type = (uint8_t)(MRD_WIRE_VERSION << 4 | head->type);
    b->flags = head->flags;
    put32(b->src_inc, head->src_inc);
    put32(b->dst_inc, head->dst_inc);
    put32(b->epoch, head->epoch);
    put32(b->psn, head->psn);
    if (head->type == MRD_WIRE_CHALLENGE) {
        put32(b->psn, head->up_usec);
        put64(b->stamp, head->cookie);
        put32(b->payload_check, head->echo_stamp);
    } else {
        if (head->type == MRD_WIRE_RESET)
            put32(b->psn, head->live_epoch);
        put32(b->stamp, head->stamp);
        put16(b->path_id, head->path_id);
        put16(b->pseq, head->flags & MRD_WIRE_FIRST_CONTACT ? timeout_code(head->peer_timeout_ns)
                                                            : head->pseq);
        put32(b->payload_check, head->payload_check);
    }
    put32(b->key_reply, (uint32_t)head->key_id << 24 | (head->reply & 0xffffff));
    if (head->flags & MRD_WIRE_COOKIE) {
        put64(at, head->cookie);
        at += MRD_WIRE_COOKIE_BYTES;
    }
    if (head->flags & MRD_WIRE_ACKBLOCK) {
        at = field32(at, head->ack_epoch);
        at = field32(at, head->ack_cum);
        at = field32(at, head->ack_serial);
        at = field32(at, head->ack_stamp);
        at = field32(at, head->ack_psn_limit);
    }
    if (head->type == MRD_WIRE_FRAGMENT) {
        at = field32(at, head->whole_len);
        at = field32(at, head->whole_offset);
    }
    return at;
}

const uint8_t mrd_wire_op_bytes[16] = {
    [MRD_OP_SEND] = 4,      [MRD_OP_WRITE] = 12,     [MRD_OP_READ] = 20,
    [MRD_OP_CMP_SWAP] = 32, [MRD_OP_FETCH_ADD] = 32, [MRD_OP_RESPONSE] = 4,
};

enum { OFFSET_AT = MRD_WIRE_PART_BYTES_MIN + 8 }; /* of a segment's part, behind id and total */

uint8_t *mrd_wire_put_part(uint8_t *at, const struct mrd_wire_part *part)
{
    at[0] = part->op | part->flags;
    at[1] = part->attempt;
    put16(at + 2, part->len);
    put32(at + 4, part->dst_qpn);
    put32(at + 8, part->src_qpn);
    at += MRD_WIRE_PART_BYTES_MIN;
    if (part->flags & MRD_PART_MULTI) {
        at = field32(at, part->id);
        at = field32(at, part->total);
        at = field32(at, part->offset);
    }
    if (part->op == MRD_OP_SEND)
        at = field32(at, part->qkey);
    if (mrd_wire_is_request(part->op) || part->op == MRD_OP_RESPONSE)
        at = field32(at, part->token);
    if (mrd_wire_is_request(part->op) || part->op == MRD_OP_WRITE) {
        at = field32(at, part->rkey);
        at = field64(at, part->addr);
    }
    if (part->op == MRD_OP_READ)
        at = field32(at, part->total);
    if (part->op == MRD_OP_CMP_SWAP || part->op == MRD_OP_FETCH_ADD) {
        at = field64(at, part->compare_add);
        at = field64(at, part->swap);
    }
    if (part->flags & MRD_PART_IMM) {
        memcpy(at, &part->imm, 4); /* the user gave big-endian bytes */
        at += 4;
    }
    if (part->flags & MRD_PART_ORDERED) {
        put16(at, part->msn);
        put16(at + 2, part->rsn);
        put16(at + 4, part->msn_behind);
        put16(at + 6, part->rsn_behind);
        at += 8;
    }
    return at;
}

uint8_t *mrd_wire_put_refusal(uint8_t *at, uint32_t epoch, uint32_t psn, uint32_t rnr_usec,
                              uint8_t num_entries)
{
    at[0] = MRD_OP_REFUSAL;
    at[1] = num_entries;
    put16(at + 2, 0);
    put32(at + 4, epoch);
    put32(at + 8, psn);
    put32(at + 12, rnr_usec);
    return at + MRD_WIRE_REFUSAL_BYTES;
}

uint8_t *mrd_wire_put_refusal_entry(uint8_t *at, const struct mrd_wire_refusal_entry *entry)
{
    at[0] = entry->index;
    at[1] = entry->code;
    at[2] = entry->attempt;
    at[3] = 0;
    put32(at + 4, entry->id);
    return at + MRD_WIRE_REFUSAL_ENTRY_BYTES;
}

uint8_t *mrd_wire_put_ack(uint8_t *at, const struct mrd_wire_ack *ack)
{
    struct ack_body *b = (struct ack_body *)(void *)at;

    put32(b->serial, ack->serial);
    put32(b->psn_limit, ack->psn_limit);
    put32(b->live_epoch, ack->live_epoch);
    put32(b->echo_psn, ack->echo_psn);
    put32(b->echo_stamp, ack->echo_stamp);
    put32(b->echo_rx_stamp, ack->echo_rx_stamp);
    put32(b->echo_delay, ack->echo_delay);
    put16(b->echo_path, ack->echo_path);
    b->flags = ack->flags;
    b->num_slices = ack->num_slices;
    b->num_paths = ack->num_paths;
    b->num_dups = ack->num_dups;
    put16(b->ack_delay_usec, ack->ack_delay_usec);
    at += sizeof(*b);
    for (unsigned i = 0; i < ack->num_slices; i++) {
        at = field32(at, ack->slice[i].base);
        for (unsigned w = 0; w < 4; w++, at += 8)
            put64(at, ack->slice[i].bits[w]);
    }
    for (unsigned i = 0; i < ack->num_paths; i++) {
        put16(at, ack->path[i].id);
        put16(at + 2, ack->path[i].delay);
        put32(at + 4, ack->path[i].received);
        put32(at + 8, ack->path[i].ce);
        at += MRD_WIRE_PATH_BYTES;
    }
    for (unsigned i = 0; i < ack->num_dups; i++)
        at = field32(at, ack->dup[i]);
    return at;
}

void mrd_wire_follow(uint8_t *buf, const uint8_t *prev, uint32_t head_len, uint32_t psn,
                     uint32_t pseq, uint32_t offset, uint32_t payload_check)
{
    struct base *b = (struct base *)(void *)buf;

    memcpy(buf, prev, head_len);
    b->flags &= MRD_WIRE_UNCHECKED;
    put32(b->psn, psn);
    put16(b->pseq, (uint16_t)pseq);
    put32(b->payload_check, payload_check);
    put32(buf + MRD_WIRE_BASE_BYTES + OFFSET_AT, offset);
}

void mrd_wire_add_flags(uint8_t *buf, uint8_t flags)
{
    ((struct base *)(void *)buf)->flags |= flags;
}

void mrd_wire_set_payload_check(uint8_t *buf, uint32_t check)
{
    put32(((struct base *)(void *)buf)->payload_check, check);
}

uint32_t mrd_wire_get_payload_check(const uint8_t *buf)
{
    return get32(((const struct base *)(const void *)buf)->payload_check);
}

void mrd_wire_seal(uint8_t *buf, const uint8_t *end)
{
    struct base *b = (struct base *)(void *)buf;

    put16(b->head_len, (uint16_t)(end - buf));
    memset(b->head_check, 0, 4);
    put32(b->head_check, check(buf, (size_t)(end - buf)));
}

/* The header check covers the header with its own bytes zero: hashes a copy made so. */
static bool head_check_holds(const uint8_t *buf, uint32_t head_len)
{
    uint8_t copy[MRD_WIRE_HEAD_BYTES_MAX];
    struct base *b = (struct base *)(void *)copy;

    memcpy(copy, buf, head_len);
    memset(b->head_check, 0, 4);
    return check(copy, head_len) == get32(((const struct base *)(const void *)buf)->head_check);
}

uint32_t mrd_wire_peek_reply(const uint8_t *data)
{
    const struct base *b = (const struct base *)(const void *)data;

    if ((b->version_type & 15) == MRD_WIRE_SEALED)
        return (uint32_t)get64(data) & 0xffffff;
    return get32(b->key_reply) & 0xffffff;
}

enum mrd_wire_error mrd_wire_get(const uint8_t *buf, uint32_t len, struct mrd_wire_head *head)
{
    const struct base *b = (const struct base *)(const void *)buf;
    uint32_t need = MRD_WIRE_BASE_BYTES;
    const uint8_t *at = buf + MRD_WIRE_BASE_BYTES;

    if (len < MRD_WIRE_BASE_BYTES)
        return MRD_WIRE_TRUNCATED;
    if (b->version_type >> 4 != MRD_WIRE_VERSION)
        return MRD_WIRE_BAD_VERSION;
    head->type = b->version_type & 15;
    if (head->type < MRD_WIRE_DATA || head->type > MRD_WIRE_FRAGMENT)
        return MRD_WIRE_BAD_TYPE;
    head->flags = b->flags;
    head->head_len = get16(b->head_len);
    need += (head->flags & MRD_WIRE_COOKIE ? MRD_WIRE_COOKIE_BYTES : 0) +
            (head->flags & MRD_WIRE_ACKBLOCK ? MRD_WIRE_ACKBLOCK_BYTES : 0);
    if (head->type != MRD_WIRE_DATA) {
        if (head->flags)
            return MRD_WIRE_BAD_LENGTH;
        if (head->type == MRD_WIRE_ACK)
            need = MRD_WIRE_ACK_BYTES;
        else if (head->type == MRD_WIRE_FRAGMENT)
            need = MRD_WIRE_FRAGMENT_BYTES;
    }
    if (head->head_len > len)
        return MRD_WIRE_TRUNCATED;
    if (head->head_len < need || head->head_len > MRD_WIRE_HEAD_BYTES_MAX)
        return MRD_WIRE_BAD_LENGTH;
    if (head->type != MRD_WIRE_DATA &&
        head->head_len != (head->type == MRD_WIRE_FRAGMENT ? need : len))
        return MRD_WIRE_BAD_LENGTH;
    if (!head_check_holds(buf, head->head_len))
        return MRD_WIRE_BAD_CHECK;

    head->src_inc = get32(b->src_inc);
    head->dst_inc = get32(b->dst_inc);
    head->epoch = get32(b->epoch);
    head->psn = head->live_epoch = head->up_usec = get32(b->psn);
    head->stamp = get32(b->stamp);
    head->cookie = get64(b->stamp);
    head->path_id = get16(b->path_id);
    head->pseq = get16(b->pseq);
    head->peer_timeout_ns = 0;
    head->key_id = b->key_reply[0];
    head->reply = get32(b->key_reply) & 0xffffff;
    head->payload_check = head->echo_stamp = get32(b->payload_check);
    if (head->type == MRD_WIRE_DATA) {
        head->cookie = 0;
        if (head->flags & MRD_WIRE_FIRST_CONTACT)
            head->peer_timeout_ns = timeout_of_code(head->pseq);
        if (head->flags & MRD_WIRE_COOKIE) {
            head->cookie = get64(at);
            at += MRD_WIRE_COOKIE_BYTES;
        }
        if (head->flags & MRD_WIRE_ACKBLOCK) {
            head->ack_epoch = get32(at);
            head->ack_cum = get32(at + 4);
            head->ack_serial = get32(at + 8);
            head->ack_stamp = get32(at + 12);
            head->ack_psn_limit = get32(at + 16);
            at += MRD_WIRE_ACKBLOCK_BYTES;
        }
    } else if (head->type == MRD_WIRE_FRAGMENT) {
        head->whole_len = get32(at);
        head->whole_offset = get32(at + 4);
    }
    head->parts_at = (uint16_t)(at - buf);
    return MRD_WIRE_OK;
}

static bool get_refusal(const uint8_t *p, uint32_t *at, uint32_t head_len,
                        struct mrd_wire_part *part)
{
    if (head_len - *at < MRD_WIRE_REFUSAL_BYTES)
        return false;
    part->num_entries = p[1];
    part->len = 0;
    part->epoch = get32(p + 4);
    part->psn = get32(p + 8);
    part->rnr_usec = get32(p + 12);
    part->entries = p + MRD_WIRE_REFUSAL_BYTES;
    *at += MRD_WIRE_REFUSAL_BYTES;
    if ((head_len - *at) / MRD_WIRE_REFUSAL_ENTRY_BYTES < part->num_entries)
        return false;
    *at += part->num_entries * (uint32_t)MRD_WIRE_REFUSAL_ENTRY_BYTES;
    return true;
}

bool mrd_wire_get_part(const uint8_t *buf, uint32_t *at, uint32_t head_len,
                       struct mrd_wire_part *part)
{
    const uint8_t *p = buf + *at;
    uint32_t bytes;

    if (head_len - *at < MRD_WIRE_PART_BYTES_MIN)
        return false;
    part->op = p[0] & 15;
    part->flags = p[0] & 0xf0;
    if (part->op == MRD_OP_REFUSAL)
        return get_refusal(p, at, head_len, part);
    if (part->op < MRD_OP_SEND || part->op > MRD_OP_CLOSE)
        return false;
    bytes = mrd_wire_part_bytes(part->op, part->flags);
    if (head_len - *at < bytes)
        return false;
    *at += bytes;
    part->attempt = p[1];
    part->len = get16(p + 2);
    part->dst_qpn = get32(p + 4);
    part->src_qpn = get32(p + 8);
    part->id = 0;
    part->total = part->len;
    part->offset = 0;
    p += MRD_WIRE_PART_BYTES_MIN;
    if (part->flags & MRD_PART_MULTI) {
        part->id = get32(p);
        part->total = get32(p + 4);
        part->offset = get32(p + 8);
        p += 12;
    }
    if (part->op == MRD_OP_SEND) {
        part->qkey = get32(p);
        p += 4;
    }
    if (mrd_wire_is_request(part->op) || part->op == MRD_OP_RESPONSE) {
        part->token = get32(p);
        p += 4;
    }
    if (mrd_wire_is_request(part->op) || part->op == MRD_OP_WRITE) {
        part->rkey = get32(p);
        part->addr = get64(p + 4);
        p += 12;
    }
    if (part->op == MRD_OP_READ) {
        part->total = get32(p);
        p += 4;
    }
    if (part->op == MRD_OP_CMP_SWAP || part->op == MRD_OP_FETCH_ADD) {
        part->total = MRD_WIRE_ATOMIC_BYTES;
        part->compare_add = get64(p);
        part->swap = get64(p + 8);
        p += 16;
    }
    if (part->flags & MRD_PART_IMM) {
        memcpy(&part->imm, p, 4);
        p += 4;
    }
    if (part->flags & MRD_PART_ORDERED) {
        part->msn = get16(p);
        part->rsn = get16(p + 2);
        part->msn_behind = get16(p + 4);
        part->rsn_behind = get16(p + 6);
    }
    return true;
}

bool mrd_wire_get_parts(const uint8_t *buf, const struct mrd_wire_head *head,
                        struct mrd_wire_part *part, unsigned *num)
{
    *num = 0;
    for (uint32_t at = head->parts_at; at < head->head_len; (*num)++) {
        if (*num == MRD_PARTS_MAX || !mrd_wire_get_part(buf, &at, head->head_len, &part[*num]))
            return false;
    }
    return true;
}

bool mrd_wire_parts_agree(const struct mrd_wire_part *part, unsigned num, uint32_t payload_len)
{
    uint32_t bytes = 0, segments = 0, aborts = 0;

    for (const struct mrd_wire_part *end = part + num; part < end; part++) {
        bytes += part->len;
        aborts += part->op == MRD_OP_ABORT;
        segments += part->flags & MRD_PART_MULTI && part->op != MRD_OP_ABORT;
        /* A request has no payload, is never cut, and takes no receive. */
        if (mrd_wire_is_request(part->op) &&
            (part->len || part->flags & (MRD_PART_MULTI | MRD_PART_IMM)))
            return false;
    }
    return bytes == payload_len && (!segments || num == 1) && (!aborts || aborts == num);
}

void mrd_wire_get_refusal_entry(const struct mrd_wire_part *part, unsigned i,
                                struct mrd_wire_refusal_entry *entry)
{
    const uint8_t *p = part->entries + (size_t)i * MRD_WIRE_REFUSAL_ENTRY_BYTES;

    assert(i < part->num_entries);
    entry->index = p[0];
    entry->code = p[1];
    entry->attempt = p[2];
    entry->id = get32(p + 4);
}

bool mrd_wire_get_ack(const uint8_t *buf, const struct mrd_wire_head *head,
                      struct mrd_wire_ack *ack)
{
    const struct ack_body *b = (const struct ack_body *)(const void *)(buf + MRD_WIRE_BASE_BYTES);
    const uint8_t *at = buf + MRD_WIRE_ACK_BYTES;

    ack->cum = head->psn;
    ack->serial = get32(b->serial);
    ack->psn_limit = get32(b->psn_limit);
    ack->live_epoch = get32(b->live_epoch);
    ack->echo_psn = get32(b->echo_psn);
    ack->echo_stamp = get32(b->echo_stamp);
    ack->echo_rx_stamp = get32(b->echo_rx_stamp);
    ack->echo_delay = get32(b->echo_delay);
    ack->echo_path = get16(b->echo_path);
    ack->flags = b->flags;
    ack->num_slices = b->num_slices;
    ack->num_paths = b->num_paths;
    ack->num_dups = b->num_dups;
    ack->ack_delay_usec = get16(b->ack_delay_usec);
    if (ack->num_slices > MRD_WIRE_SLICES_MAX || ack->num_paths > MRD_WIRE_ACK_PATHS_MAX ||
        ack->num_dups > MRD_ACK_DUPS_MAX)
        return false;
    if (head->head_len != MRD_WIRE_ACK_BYTES + ack->num_slices * MRD_WIRE_SLICE_BYTES +
                              ack->num_paths * MRD_WIRE_PATH_BYTES + ack->num_dups * 4)
        return false;
    for (unsigned i = 0; i < ack->num_slices; i++, at += MRD_WIRE_SLICE_BYTES) {
        ack->slice[i].base = get32(at);
        if (ack->slice[i].base % MRD_WIRE_SLICE_BITS)
            return false;
        for (unsigned w = 0; w < 4; w++)
            ack->slice[i].bits[w] = get64(at + 4 + 8 * w);
    }
    for (unsigned i = 0; i < ack->num_paths; i++, at += MRD_WIRE_PATH_BYTES) {
        ack->path[i].id = get16(at);
        ack->path[i].delay = get16(at + 2);
        ack->path[i].received = get32(at + 4);
        ack->path[i].ce = get32(at + 8);
    }
    for (unsigned i = 0; i < ack->num_dups; i++, at += 4)
        ack->dup[i] = get32(at);
    return true;
}
