/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What endpoints say to each other: a head, then what belongs to it, in one message to the queue
 * pair MRD_FIRST_QP_NUM of the other endpoint's context. Fields are little-endian.
 *
 *      0        1        2                 4                                 8
 *     +--------+--------+-----------------+---------------------------------+
 *     | version|  what  |      flags      | id: the sender's name for it    |
 *     +--------+--------+-----------------+---------------------------------+
 *   8 | tag, or the key of a region                                         |
 *     +---------------------------------------------------------------------+
 *  16 | data: of the completion queue at the other end, or an address       |
 *     +---------------------------------------------------------------------+
 *  24 | bytes of the message, or of the region                              |
 *     +---------------------------------+-----------------------------------+
 *  32 | answer: the id answered         | num: entries, a status, a type    |
 *     +---------------------------------+-----------------------------------+
 *
 * MSG: a message. Its bytes follow, or, with MRD_OFI_PULL, `num` struct mrd_ofi_wire_range: where
 * they are, to be read by RDMA reads. With MRD_OFI_PULL or MRD_OFI_CONFIRM the receiver answers by
 * DONE when it has them all in its buffer.
 *
 * REFUSED: a message came that is of another version. The first two bytes of a head, and this, are
 * the same in all versions. What is awaited of who says so, or of who speaks another version,
 * fails.
 *
 * DONE: the message, or atomic, `answer` is done with, and `tag` is its cookie; `num` is a FI_
 * error number, or 0. Results of an atomic follow.
 *
 * ASK: which memory is key `tag`? TELL answers it: `num` ranges follow, or a FI_ error number is in
 * `data`. MRD_OFI_VIRTUAL: addresses in it are virtual, else offsets; MRD_OFI_EVENTS: tell of each
 * operation by NOTE; MRD_OFI_NO_READ: it must not be read, nor fetched from by atomics.
 *
 * NOTE: an operation on key `tag` is complete: `bytes` at `data` for MRD_OFI_READ or _WRITE. With
 * MRD_OFI_CHANGED the region may have changed: an atomic that fetches is counted as read. With
 * MRD_OFI_DATA it writes an entry into the completion queue, of that data.
 *
 * ATOMIC: apply an operation, `num` & 0xff of enum fi_op, to elements of type `num` >> 8 & 0xff, of
 * enum fi_datatype; `num` >> 16 is an enum mrd_ofi_atomic_kind. `answer` struct mrd_ofi_wire_target
 * follow, then `bytes` of operands, then of values to compare with. `tag` is a cookie. DONE answers
 * it.
 *
 * To add one: a value of enum mrd_ofi_what, a line here, a case in progress.c.
 */
#ifndef MRD_OFI_WIRE_H
#define MRD_OFI_WIRE_H

#include <endian.h>
#include <stdint.h>

enum {
    MRD_OFI_WIRE_VERSION = 1,
    MRD_OFI_IOV_MAX = 8, /* entries of a buffer's list, and so ranges of a message's bytes */
};

enum mrd_ofi_what {
    MRD_OFI_MSG = 1,
    MRD_OFI_DONE,
    MRD_OFI_ASK,
    MRD_OFI_TELL,
    MRD_OFI_NOTE,
    MRD_OFI_ATOMIC,
    MRD_OFI_REFUSED,
};

enum mrd_ofi_wire_flags {
    MRD_OFI_TAGGED = 1 << 0,
    MRD_OFI_PULL = 1 << 1,
    MRD_OFI_CONFIRM = 1 << 2,
    MRD_OFI_DATA = 1 << 3,
    MRD_OFI_READ = 1 << 4,
    MRD_OFI_WRITE = 1 << 5,
    MRD_OFI_VIRTUAL = 1 << 6,
    MRD_OFI_EVENTS = 1 << 7,
    MRD_OFI_NO_READ = 1 << 8,
    MRD_OFI_CHANGED = 1 << 9,
};

struct mrd_ofi_wire_head {
    uint8_t version, what;
    uint16_t flags;
    uint32_t id;
    uint64_t tag, data, bytes;
    uint32_t answer, num;
};

/* Memory of the sender of the message, as its context registered it. */
struct mrd_ofi_wire_range {
    uint64_t addr, bytes;
    uint32_t rkey, reserved;
};

/* Memory of the receiver of the message, as the application names it. */
struct mrd_ofi_wire_target {
    uint64_t addr, bytes, key;
};

_Static_assert(sizeof(struct mrd_ofi_wire_target) == 24, "no padding");
_Static_assert(sizeof(struct mrd_ofi_wire_head) == 40, "as drawn");
_Static_assert(sizeof(struct mrd_ofi_wire_range) == 24, "no padding");

/* Between the host's byte order and that of the wire: its own inverse. */
static inline void mrd_ofi_wire_swap_head(struct mrd_ofi_wire_head *h)
{
    h->flags = htole16(h->flags);
    h->id = htole32(h->id);
    h->tag = htole64(h->tag);
    h->data = htole64(h->data);
    h->bytes = htole64(h->bytes);
    h->answer = htole32(h->answer);
    h->num = htole32(h->num);
}

static inline void mrd_ofi_wire_swap_range(struct mrd_ofi_wire_range *r)
{
    r->addr = htole64(r->addr);
    r->bytes = htole64(r->bytes);
    r->rkey = htole32(r->rkey);
}

static inline void mrd_ofi_wire_swap_target(struct mrd_ofi_wire_target *t)
{
    t->addr = htole64(t->addr);
    t->bytes = htole64(t->bytes);
    t->key = htole64(t->key);
}

#endif
