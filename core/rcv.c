/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/rcv.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bitmap.h"
#include "core/seq.h"

enum {
    ACK_PATHS_MIN = 4, /* paths in a full ack, however little room there is */
    SLICES = MRD_TRACKER_WIDEST / MRD_WIRE_SLICE_BITS,
};

/* Both rings of so many bits. */
static size_t rings_bytes(uint32_t bits)
{
    return bits / 4;
}

bool mrd_rcv_maps_init(struct mrd_rcv_maps *maps, const struct mrd_allocator *allocator,
                       uint32_t tracker, uint32_t num)
{
    maps->wide_bytes = 0;
    return mrd_pool_init(&maps->pool, allocator, rings_bytes(tracker), num);
}

void mrd_rcv_init(struct mrd_rcv *r, struct mrd_rcv_maps *maps, uint32_t tracker, uint32_t limit)
{
    memset(r, 0, sizeof(*r));
    r->maps = maps;
    r->tracker = tracker;
    r->limit = limit;
    r->due_ns = MRD_NEVER;
    r->received = r->few;
    r->refused = r->few + MRD_RCV_FEW / 64;
    r->ring = MRD_RCV_FEW;
    r->path = &r->one;
    r->room = 1;
}

static void free_rings(struct mrd_rcv *r)
{
    if (r->wide) {
        mrd_free(r->maps->pool.allocator, r->received, mrd_rcv_wide_bytes(r->ring));
        r->maps->wide_bytes -= mrd_rcv_wide_bytes(r->ring);
    } else if (r->received != r->few) {
        mrd_pool_release(&r->maps->pool, r->received);
    }
}

void mrd_rcv_fini(struct mrd_rcv *r)
{
    free_rings(r);
    if (r->path != &r->one)
        mrd_free(r->maps->pool.allocator, r->path, r->room * sizeof(*r->path));
}

/* Moves all bits to longer rings, `refused` behind `received`, which are 0. */
static void move_to(struct mrd_rcv *r, uint64_t *received, uint32_t ring)
{
    uint64_t *refused = received + ring / 64;

    for (uint32_t psn = r->cum; psn != r->cum + r->ring; psn++) {
        if (mrd_bit_test(r->received, r->ring - 1, psn))
            mrd_bit_set(received, ring - 1, psn);
        if (mrd_bit_test(r->refused, r->ring - 1, psn))
            mrd_bit_set(refused, ring - 1, psn);
    }
    free_rings(r);
    r->received = received;
    r->refused = refused;
    r->ring = ring;
}

/* PSNs further ahead of cum are to be noted: the rings become as long as the tracker. */
static void use_map(struct mrd_rcv *r)
{
    uint64_t *item = mrd_pool_alloc(&r->maps->pool);

    assert(item && r->received == r->few);
    memset(item, 0, rings_bytes(r->tracker));
    move_to(r, item, r->tracker);
}

static uint64_t *fresh_bits(const struct mrd_rcv *r)
{
    return r->refused + r->ring / 64;
}

bool mrd_rcv_widen(struct mrd_rcv *r)
{
    uint32_t tracker = 2 * r->tracker;
    size_t bytes = mrd_rcv_wide_bytes(tracker);
    uint64_t *item, fresh[SLICES / 64];

    if (r->maps->wide_bytes + bytes > MRD_WIDE_BYTES)
        return false;
    item = mrd_alloc(r->maps->pool.allocator, bytes);
    if (!item)
        return false;
    if (r->wide)
        memcpy(fresh, fresh_bits(r), sizeof(fresh));
    else
        memset(fresh, 0xff, sizeof(fresh));
    r->maps->wide_bytes += bytes;
    move_to(r, item, tracker);
    r->tracker = tracker;
    r->wide = true;
    memcpy(fresh_bits(r), fresh, sizeof(fresh));
    return true;
}

/* The PSN's slice has news for the next ack. */
static void freshen(struct mrd_rcv *r, uint32_t psn)
{
    if (r->wide)
        mrd_bit_set(fresh_bits(r), SLICES - 1, psn / MRD_WIRE_SLICE_BITS);
}

/* Returns the figures of a path; NULL: no memory for one more. */
static struct mrd_rcv_path *path_of(struct mrd_rcv *r, uint16_t id)
{
    uint32_t index = id % MRD_PATHS_MAX, room = r->room;
    struct mrd_rcv_path *path;

    if (index < room)
        return &r->path[index];
    while (room <= index)
        room *= 2;
    path = mrd_alloc(r->maps->pool.allocator, room * sizeof(*path));
    if (!path)
        return NULL;
    memcpy(path, r->path, r->room * sizeof(*path));
    if (r->path != &r->one)
        mrd_free(r->maps->pool.allocator, r->path, r->room * sizeof(*path));
    r->path = path;
    r->room = (uint16_t)room;
    return &path[index];
}

enum mrd_rcv_verdict mrd_rcv_check(const struct mrd_rcv *r, uint32_t psn)
{
    if (mrd_seq_before(psn, r->cum))
        return MRD_RCV_DUPLICATE;
    if (psn - r->cum >= r->tracker)
        return MRD_RCV_BEYOND;
    if (psn - r->cum >= r->ring)
        return MRD_RCV_NEW;
    return mrd_bit_test(r->received, r->ring - 1, psn) ? MRD_RCV_DUPLICATE : MRD_RCV_NEW;
}

uint32_t mrd_rcv_room(const struct mrd_rcv *r, uint32_t psn, uint32_t most)
{
    uint32_t n = 0;

    if (!mrd_seq_before(psn, r->limit))
        return 0;
    if (most > r->limit - psn)
        most = r->limit - psn;
    if (!mrd_seq_before(psn, r->highest) && psn - r->cum < r->tracker)
        return most < r->cum + r->tracker - psn ? most : r->cum + r->tracker - psn;
    while (n < most && mrd_rcv_check(r, psn + n) == MRD_RCV_NEW)
        n++;
    return n;
}

/*
 * Bits that cum passes are cleared: from then on they stand for the PSN one turn of the ring later.
 */
static void advance(struct mrd_rcv *r)
{
    while (r->cum != r->highest && mrd_bit_test(r->received, r->ring - 1, r->cum) &&
           !mrd_bit_test(r->refused, r->ring - 1, r->cum)) {
        mrd_bit_clear(r->received, r->ring - 1, r->cum);
        r->cum++;
    }
}

void mrd_rcv_add(struct mrd_rcv *r, uint32_t psn, bool refused)
{
    assert(mrd_rcv_check(r, psn) == MRD_RCV_NEW);
    if (psn - r->cum >= r->ring)
        use_map(r);
    mrd_bit_set(r->received, r->ring - 1, psn);
    freshen(r, psn);
    if (refused) {
        mrd_bit_set(r->refused, r->ring - 1, psn);
        r->num_refused++;
    }
    if (!mrd_seq_before(psn, r->highest))
        r->highest = psn + 1;
    advance(r);
}

void mrd_rcv_add_run(struct mrd_rcv *r, uint32_t psn, uint32_t n)
{
    /* In order, with no gap before: no bit would stay set. */
    if (psn == r->cum && r->cum == r->highest && !r->num_refused) {
        r->cum = r->highest = psn + n;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        mrd_rcv_add(r, psn + i, false);
}

void mrd_rcv_dup(struct mrd_rcv *r, uint32_t psn)
{
    if (r->num_dups < MRD_ACK_DUPS_MAX)
        r->dup[r->num_dups++] = psn;
    r->now = true;
    r->full = true;
}

bool mrd_rcv_refusal_acked(struct mrd_rcv *r, uint32_t psn)
{
    if (psn - r->cum >= r->ring || !mrd_bit_test(r->refused, r->ring - 1, psn))
        return false;
    mrd_bit_clear(r->refused, r->ring - 1, psn);
    freshen(r, psn);
    r->num_refused--;
    advance(r);
    r->now = true;
    r->full = true;
    return true;
}

void mrd_rcv_count(struct mrd_rcv *r, const struct mrd_wire_head *head, bool ce)
{
    mrd_rcv_count_run(r, head, 1, ce);
}

void mrd_rcv_count_run(struct mrd_rcv *r, const struct mrd_wire_head *head, uint32_t n, bool ce)
{
    struct mrd_rcv_path *p = path_of(r, head->path_id);

    r->since_ack += n;
    if (!p)
        return;
    if (!p->used || p->id != head->path_id) { /* a fresh entropy value replaced this path */
        if (p->used && p->seen)
            r->num_seen--;
        memset(p, 0, sizeof(*p));
        p->used = true;
        p->id = head->path_id;
    }
    p->received += n;
    p->ce += ce ? n : 0;
    if (!p->seen) {
        p->seen = true;
        r->num_seen++;
    }
    r->ce_unsaid |= ce;
}

void mrd_rcv_echo(struct mrd_rcv *r, const struct mrd_wire_head *head, bool ce, uint32_t rx_stamp,
                  uint64_t now_ns)
{
    struct mrd_rcv_path *p = path_of(r, head->path_id);

    if (p) {
        p->delay = (uint16_t)(rx_stamp - head->stamp);
        if (!p->delay) /* 0 on the wire means: no delay */
            p->delay = 1;
        p->delay_after = (uint16_t)r->serial;
    }
    r->echo_valid = true;
    r->echo_ce = ce;
    r->echo_psn = head->psn;
    r->echo_stamp = head->stamp;
    r->echo_rx_stamp = rx_stamp;
    r->echo_path = head->path_id;
    r->echo_ns = now_ns;
}

bool mrd_rcv_rides(const struct mrd_rcv *r)
{
    return !r->full && !r->ce_unsaid && r->cum == r->highest && !r->twice;
}

/* A grant may shrink, but packets below a limit granted earlier are still taken. */
static void promise(struct mrd_rcv *r, uint32_t psn_limit)
{
    if (mrd_seq_before(r->limit, psn_limit))
        r->limit = psn_limit;
}

static void start_interval(struct mrd_rcv *r)
{
    r->serial++;
    r->since_ack = 0;
    r->due_ns = MRD_NEVER;
    r->now = false;
    r->wait_for_reply = false;
    r->echo_valid = false;
}

void mrd_rcv_ride(struct mrd_rcv *r, struct mrd_wire_head *head, uint32_t psn_limit,
                  uint64_t now_ns)
{
    start_interval(r);
    head->flags |= MRD_WIRE_ACKBLOCK;
    head->ack_cum = r->cum;
    head->ack_serial = r->serial;
    head->ack_psn_limit = psn_limit;
    promise(r, psn_limit);
    /*
     * Moved forward by the time since the packet came: now - stamp at the sender is the RTT without
     * the ack's delay.
     */
    head->ack_stamp = r->echo_stamp + (uint32_t)((now_ns - r->echo_ns) / MRD_WIRE_STAMP_NS);
}

/*
 * Returns the reportable ones of 64 PSNs from `base`. Bits below cum and from highest on belong to
 * other turns of the ring.
 */
static uint64_t reportable(const struct mrd_rcv *r, uint32_t base)
{
    uint32_t i = (base & (r->ring - 1)) >> 6;
    uint64_t bits = r->received[i] & ~r->refused[i];
    int32_t lo = (int32_t)(r->cum - base), hi = (int32_t)(r->highest - base);

    if (lo >= 64 || hi <= 0)
        return 0;
    if (lo > 0)
        bits &= ~0ull << lo;
    if (hi < 64)
        bits &= (1ull << hi) - 1;
    return bits;
}

/* Adds a slice; where they take turns only if something in it is reportable. */
static void add_slice(struct mrd_rcv *r, struct mrd_wire_ack *ack, uint32_t base)
{
    struct mrd_wire_slice *slice = &ack->slice[ack->num_slices];
    uint64_t any = 0;

    slice->base = base;
    for (uint32_t w = 0; w < 4; w++)
        any |= slice->bits[w] = reportable(r, base + 64 * w);
    if (r->wide)
        mrd_bit_clear(fresh_bits(r), SLICES - 1, base / MRD_WIRE_SLICE_BITS);
    if (any || !r->wide)
        ack->num_slices++;
}

static bool is_fresh(const struct mrd_rcv *r, uint32_t base)
{
    return mrd_bit_test(fresh_bits(r), SLICES - 1, base / MRD_WIRE_SLICE_BITS);
}

/*
 * There are more slices than an ack takes: `num`, the first one at `first`. It tells that one, where
 * what was lost comes, then those with news, then the others in turn: an ack that told news may be lost.
 */
static void take_slices(struct mrd_rcv *r, struct mrd_wire_ack *ack, uint32_t first, uint32_t num,
                        uint32_t most)
{
    bool told[SLICES + 1] = {true};
    uint32_t i, looks;

    add_slice(r, ack, first);
    for (i = 1; r->wide && i < num && ack->num_slices < most; i++) {
        told[i] = is_fresh(r, first + i * MRD_WIRE_SLICE_BITS);
        if (told[i])
            add_slice(r, ack, first + i * MRD_WIRE_SLICE_BITS);
    }
    i = (r->next_base - first) / MRD_WIRE_SLICE_BITS;
    for (looks = 0; looks < num && ack->num_slices < most; looks++) {
        i = i < num ? i : 0;
        if (!told[i])
            add_slice(r, ack, first + i * MRD_WIRE_SLICE_BITS);
        i++;
    }
    r->next_base = first + i * MRD_WIRE_SLICE_BITS;
}

/* How many slices fit beside the least number of paths, and the duplicates: two at least, for their turns. */
static uint32_t slices_room(const struct mrd_rcv *r, uint32_t room)
{
    uint32_t used = MRD_WIRE_ACK_BYTES + ACK_PATHS_MIN * MRD_WIRE_PATH_BYTES + r->num_dups * 4u;
    uint32_t slices = room > used ? (room - used) / MRD_WIRE_SLICE_BYTES : 0;

    if (slices < 2)
        return 2;
    return slices < MRD_WIRE_SLICES_MAX ? slices : MRD_WIRE_SLICES_MAX;
}

static void build_slices(struct mrd_rcv *r, struct mrd_wire_ack *ack, uint32_t most)
{
    uint32_t first = r->cum & ~(uint32_t)(MRD_WIRE_SLICE_BITS - 1), num;

    if (r->highest == r->cum)
        return;
    num = (r->highest - 1 - first) / MRD_WIRE_SLICE_BITS + 1;
    if (num > most) {
        take_slices(r, ack, first, num, most);
        return;
    }
    for (uint32_t i = 0; i < num; i++)
        add_slice(r, ack, first + i * MRD_WIRE_SLICE_BITS);
}

/*
 * Returns how many paths fit into an ack of `room` bytes: at least ACK_PATHS_MIN, so that each gets
 * its turn.
 */
static uint32_t paths_room(const struct mrd_rcv *r, const struct mrd_wire_ack *ack, uint32_t room)
{
    uint32_t used = MRD_WIRE_ACK_BYTES + ack->num_slices * MRD_WIRE_SLICE_BYTES + r->num_dups * 4u;
    uint32_t paths = room > used ? (room - used) / MRD_WIRE_PATH_BYTES : 0;

    if (paths < ACK_PATHS_MIN)
        return ACK_PATHS_MIN;
    return paths < MRD_WIRE_ACK_PATHS_MAX ? paths : MRD_WIRE_ACK_PATHS_MAX;
}

void mrd_rcv_build(struct mrd_rcv *r, struct mrd_wire_ack *ack, uint32_t psn_limit, uint32_t room,
                   uint64_t now_ns)
{
    uint32_t paths;

    ack->flags = 0;
    ack->num_slices = ack->num_paths = 0;
    ack->cum = r->cum;
    ack->psn_limit = psn_limit;
    promise(r, psn_limit);
    ack->echo_psn = ack->echo_stamp = ack->echo_rx_stamp = ack->echo_delay = 0;
    ack->echo_path = 0;
    if (r->echo_valid) {
        ack->flags = MRD_ACK_ECHO | (r->echo_ce ? MRD_ACK_ECHO_CE : 0);
        ack->echo_psn = r->echo_psn;
        ack->echo_stamp = r->echo_stamp;
        ack->echo_rx_stamp = r->echo_rx_stamp;
        ack->echo_path = r->echo_path;
        ack->echo_delay = (uint32_t)((now_ns - r->echo_ns) / MRD_WIRE_STAMP_NS);
    }
    build_slices(r, ack, slices_room(r, room));
    paths = paths_room(r, ack, room);
    for (uint32_t i = 0; r->num_seen && i < r->room; i++) {
        struct mrd_rcv_path *p = &r->path[i];

        if (!p->seen)
            continue;
        if (ack->num_paths == paths)
            break;
        p->seen = false;
        r->num_seen--;
        /* Only a delay measured since the last ack: clocks drift. */
        ack->path[ack->num_paths++] =
            (struct mrd_wire_path){.id = p->id,
                                   .delay = p->delay_after == (uint16_t)r->serial ? p->delay : 0,
                                   .received = p->received,
                                   .ce = p->ce};
    }
    ack->num_dups = r->num_dups;
    memcpy(ack->dup, r->dup, sizeof(ack->dup));
    r->num_dups = 0;
    r->full = false;
    r->ce_unsaid = false;
    start_interval(r);
    ack->serial = r->serial;
}
