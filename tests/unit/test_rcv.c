/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/packet.h"
#include "core/rcv.h"
#include "core/rng.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum { TRACKER = 1024 };

FIXTURE(rcv_fixture)
{
    uint32_t tracker, first; /* PSN; no tracker: TRACKER */
    struct unit_alloc alloc;
    struct mrd_rcv_maps maps;
    struct mrd_rcv r;
    struct mrd_wire_ack ack;
};

static void begin(struct rcv_fixture *f)
{
    const uint32_t tracker = f->tracker ? f->tracker : TRACKER;

    unit_alloc_init(&f->alloc);
    assert_true(mrd_rcv_maps_init(&f->maps, &f->alloc.ops, tracker, 1));
    mrd_rcv_init(&f->r, &f->maps, tracker, f->first + tracker);
    f->r.cum = f->r.highest = f->first;
}

static void end(struct rcv_fixture *f)
{
    mrd_rcv_fini(&f->r);
    assert_int_equal(f->maps.pool.used, 0);
    assert_int_equal(f->maps.wide_bytes, 0);
    mrd_rcv_maps_fini(&f->maps);
    assert_int_equal(f->alloc.live_bytes, 0);
}

FIXTURE_FROM(rcv_fixture, begin, end);

static void count_at(struct rcv_fixture *f, uint32_t psn, uint16_t path, bool ce, uint64_t now_ns)
{
    struct mrd_wire_head head = {.psn = psn, .path_id = path, .stamp = 1000 + psn};

    mrd_rcv_count(&f->r, &head, ce);
    mrd_rcv_echo(&f->r, &head, ce, 5000 + psn, now_ns);
}

static void add(struct rcv_fixture *f, uint32_t psn)
{
    mrd_rcv_add(&f->r, psn, false);
}

static void build(struct rcv_fixture *f, uint64_t now_ns)
{
    mrd_rcv_build(&f->r, &f->ack, f->r.cum + TRACKER, UINT32_MAX, now_ns);
}

/* Does the ack say that this PSN arrived? */
static bool tells(const struct mrd_wire_ack *ack, uint32_t psn)
{
    if ((int32_t)(psn - ack->cum) < 0)
        return true;
    for (unsigned i = 0; i < ack->num_slices; i++) {
        uint32_t at = psn - ack->slice[i].base;

        if (at < MRD_WIRE_SLICE_BITS)
            return ack->slice[i].bits[at / 64] >> at % 64 & 1;
    }
    return false;
}

TEST_F(rcv_fixture, mrd_rcv_init__owes_nothing)
{
    assert_true(self->r.due_ns == MRD_NEVER);
    assert_false(self->r.now);
    assert_int_equal(self->r.limit, TRACKER);
}

TEST(mrd_rcv_check__table)
{
    static const struct {
        int32_t psn; /* from the first */
        enum mrd_rcv_verdict verdict;
    } table[] = {
        {-2000000000, MRD_RCV_DUPLICATE}, {-1, MRD_RCV_DUPLICATE},
        {0, MRD_RCV_DUPLICATE},           {1, MRD_RCV_NEW},
        {2, MRD_RCV_DUPLICATE},           {3, MRD_RCV_NEW},
        {TRACKER, MRD_RCV_NEW},           {TRACKER + 1, MRD_RCV_BEYOND},
        {2000000000, MRD_RCV_BEYOND},
    };
    static const uint32_t first[] = {0, 5, 1020, UINT32_MAX - 1, UINT32_MAX - 500};

    for (size_t k = 0; k < sizeof(first) / sizeof(first[0]); k++) {
        struct rcv_fixture f = {.first = first[k]};

        begin(&f);
        add(&f, first[k]);
        add(&f, first[k] + 2);
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
            assert_int_equal(mrd_rcv_check(&f.r, first[k] + (uint32_t)table[i].psn),
                             table[i].verdict);
        end(&f);
    }
}

TEST_F_WITH(rcv_fixture, mrd_rcv_add__cum_passes_what_came, self->first = UINT32_MAX - 1)
{
    const uint32_t first = UINT32_MAX - 1;

    add(self, first + 1);
    add(self, first + 3);
    assert_int_equal(self->r.cum, first);
    assert_int_equal(self->r.highest, first + 4);
    add(self, first);
    assert_int_equal(self->r.cum, first + 2);
    add(self, first + 2);
    assert_int_equal(self->r.cum, first + 4);
    assert_int_equal(self->r.highest, first + 4);
}

/* Any order, any number of turns of the ring: each PSN is new once. */
TEST(mrd_rcv_add__exactly_once_in_random_order)
{
    enum { SPREAD = 200, PACKETS = 5000 };
    const uint32_t first = UINT32_MAX - PACKETS / 2;
    struct rcv_fixture f = {.tracker = 256, .first = first};
    struct mrd_rng rng;
    uint32_t taken = 0;

    begin(&f);
    mrd_rng_init(&rng, 9);
    while (taken < PACKETS) {
        uint32_t psn = f.r.cum + mrd_rng_below(&rng, SPREAD) - mrd_rng_below(&rng, 20);

        if (psn - first >= PACKETS || mrd_rcv_check(&f.r, psn) != MRD_RCV_NEW)
            continue;
        add(&f, psn);
        assert_int_equal(mrd_rcv_check(&f.r, psn), MRD_RCV_DUPLICATE);
        taken++;
    }
    assert_int_equal(f.r.cum, first + PACKETS);
    end(&f);
}

/* A refused PSN is never executed; until its refusal is acked it is not told and holds cum back. */
TEST_F(rcv_fixture, mrd_rcv_add__refused_is_received_and_not_reported)
{
    add(self, 0);
    mrd_rcv_add(&self->r, 1, true);
    add(self, 2);
    assert_int_equal(self->r.cum, 1);
    assert_int_equal(mrd_rcv_check(&self->r, 1), MRD_RCV_DUPLICATE);
    build(self, 0);
    assert_int_equal(self->ack.cum, 1);
    assert_false(tells(&self->ack, 1));
    assert_true(tells(&self->ack, 2));
}

TEST_F(rcv_fixture, mrd_rcv_dup__told_at_once_by_a_full_ack)
{
    add(self, 0);
    mrd_rcv_dup(&self->r, 0);
    assert_true(self->r.now);
    assert_false(mrd_rcv_rides(&self->r));
    build(self, 0);
    assert_int_equal(self->ack.num_dups, 1);
    assert_int_equal(self->ack.dup[0], 0);
    build(self, 0);
    assert_int_equal(self->ack.num_dups, 0); /* told once */
}

TEST_F_WITH(rcv_fixture, mrd_rcv_dup__tells_at_most_four, self->first = 10)
{
    for (uint32_t i = 0; i < 9; i++)
        mrd_rcv_dup(&self->r, i);
    build(self, 0);
    assert_int_equal(self->ack.num_dups, MRD_ACK_DUPS_MAX);
    for (uint32_t i = 0; i < MRD_ACK_DUPS_MAX; i++)
        assert_int_equal(self->ack.dup[i], i);
}

/* Then at once: the sender's completion waits for it. */
TEST_F_WITH(rcv_fixture, mrd_rcv_refusal_acked__reported_at_once, self->first = UINT32_MAX)
{
    const uint32_t first = UINT32_MAX;

    mrd_rcv_add(&self->r, first, true);
    add(self, first + 1);
    build(self, 0);
    assert_false(self->r.now);
    assert_true(mrd_rcv_refusal_acked(&self->r, first));
    assert_int_equal(self->r.cum, first + 2);
    assert_int_equal(self->r.num_refused, 0);
    assert_true(self->r.now);
    assert_false(mrd_rcv_rides(&self->r));
}

TEST_F_WITH(rcv_fixture, mrd_rcv_refusal_acked__only_a_refused_psn, self->first = 10)
{
    mrd_rcv_add(&self->r, 12, true);
    add(self, 13);
    assert_false(mrd_rcv_refusal_acked(&self->r, 9));
    assert_false(mrd_rcv_refusal_acked(&self->r, 11));
    assert_false(mrd_rcv_refusal_acked(&self->r, 13));
    assert_false(mrd_rcv_refusal_acked(&self->r, 12 + TRACKER)); /* the same place in the ring */
    assert_false(mrd_rcv_refusal_acked(&self->r, 12 - TRACKER));
    assert_false(self->r.now);
    assert_true(mrd_rcv_refusal_acked(&self->r, 12));
    assert_false(mrd_rcv_refusal_acked(&self->r, 12));
}

/* Counts are cumulative, so a lost ack loses nothing; a path is told when something came on it. */
TEST_F(rcv_fixture, mrd_rcv_count__cumulative_per_path)
{
    count_at(self, 0, 3, false, 0);
    count_at(self, 1, 3, true, 0);
    count_at(self, 2, 8, false, 0);
    assert_int_equal(self->r.since_ack, 3);
    build(self, 0);
    assert_int_equal(self->r.since_ack, 0);
    assert_int_equal(self->ack.num_paths, 2);
    assert_int_equal(self->ack.path[0].id, 3);
    assert_int_equal(self->ack.path[0].received, 2);
    assert_int_equal(self->ack.path[0].ce, 1);
    count_at(self, 3, 3, true, 0);
    build(self, 0);
    assert_int_equal(self->ack.num_paths, 1);
    assert_int_equal(self->ack.path[0].received, 3);
    assert_int_equal(self->ack.path[0].ce, 2);
    build(self, 0);
    assert_int_equal(self->ack.num_paths, 0);
}

/* A fresh entropy value takes a place: its counts begin anew, under its own id. */
TEST_F(rcv_fixture, mrd_rcv_count__fresh_path_id_begins_anew)
{
    count_at(self, 0, 3, true, 0);
    count_at(self, 1, 3 + MRD_PATHS_MAX, false, 0);
    build(self, 0);
    assert_int_equal(self->ack.num_paths, 1);
    assert_int_equal(self->ack.path[0].id, 3 + MRD_PATHS_MAX);
    assert_int_equal(self->ack.path[0].received, 1);
    assert_int_equal(self->ack.path[0].ce, 0);
    assert_int_equal(self->r.num_seen, 0);
}

/* A block has room for cum only: a gap, a duplicate, new marks or a doubled ack need a full ack. */
TEST_F(rcv_fixture, mrd_rcv_rides__only_when_cum_says_all)
{
    add(self, 0);
    count_at(self, 0, 1, false, 0);
    assert_true(mrd_rcv_rides(&self->r));
    add(self, 2);
    assert_false(mrd_rcv_rides(&self->r)); /* a gap */
    add(self, 1);
    assert_true(mrd_rcv_rides(&self->r));
    count_at(self, 1, 1, true, 0);
    assert_false(mrd_rcv_rides(&self->r)); /* marks */
    build(self, 0);
    assert_true(mrd_rcv_rides(&self->r));
    self->r.twice = true;
    assert_false(mrd_rcv_rides(&self->r));
    self->r.twice = false;
    mrd_rcv_add(&self->r, 3, true);
    assert_false(mrd_rcv_rides(&self->r)); /* a PSN is refused */
}

/* The echoed stamp is shifted by the wait, so that the sender's RTT is without it. */
TEST_F(rcv_fixture, mrd_rcv_ride__tells_cum_and_shifts_the_stamp)
{
    struct mrd_wire_head head = {.flags = MRD_WIRE_FIRST_CONTACT};

    add(self, 0);
    count_at(self, 0, 1, false, 16000);
    self->r.due_ns = 20000;
    self->r.now = self->r.wait_for_reply = true;
    mrd_rcv_ride(&self->r, &head, 2000, 16000 + 10 * MRD_WIRE_STAMP_NS);
    assert_int_equal(head.flags, MRD_WIRE_FIRST_CONTACT | MRD_WIRE_ACKBLOCK);
    assert_int_equal(head.ack_cum, 1);
    assert_int_equal(head.ack_serial, 1);
    assert_int_equal(head.ack_psn_limit, 2000);
    assert_int_equal(head.ack_stamp, 1000 + 10);
    assert_int_equal(self->r.limit, 2000);
    assert_true(self->r.due_ns == MRD_NEVER);
    assert_false(self->r.now || self->r.wait_for_reply);
    assert_int_equal(self->r.since_ack, 0);
}

/* Path counts are not in a block: the next full ack tells them. */
TEST_F(rcv_fixture, mrd_rcv_ride__leaves_path_counts_for_the_full_ack)
{
    struct mrd_wire_head head = {0};

    add(self, 0);
    count_at(self, 0, 5, false, 0);
    mrd_rcv_ride(&self->r, &head, TRACKER, 0);
    build(self, 0);
    assert_int_equal(self->ack.num_paths, 1);
    assert_int_equal(self->ack.path[0].id, 5);
    assert_int_equal(self->ack.serial, 2);
}

/* A grant may shrink, but what was granted once is taken. */
TEST_F_WITH(rcv_fixture, mrd_rcv_build__a_grant_is_a_promise, self->first = UINT32_MAX - 10)
{
    mrd_rcv_build(&self->r, &self->ack, 500, UINT32_MAX, 0);
    assert_int_equal(self->r.limit, TRACKER - 11);
    mrd_rcv_build(&self->r, &self->ack, 2000, UINT32_MAX, 0);
    assert_int_equal(self->r.limit, 2000);
    mrd_rcv_build(&self->r, &self->ack, 1000, UINT32_MAX, 0);
    assert_int_equal(self->ack.psn_limit, 1000);
    assert_int_equal(self->r.limit, 2000);
}

TEST_F(rcv_fixture, mrd_rcv_build__echoes_the_last_packet_once)
{
    count_at(self, 7, 2, false, 100);
    count_at(self, 4, 9, true, 320);
    build(self, 320 + 5 * MRD_WIRE_STAMP_NS);
    assert_int_equal(self->ack.flags, MRD_ACK_ECHO | MRD_ACK_ECHO_CE);
    assert_int_equal(self->ack.echo_psn, 4);
    assert_int_equal(self->ack.echo_path, 9);
    assert_int_equal(self->ack.echo_stamp, 1004);
    assert_int_equal(self->ack.echo_rx_stamp, 5004);
    assert_int_equal(self->ack.echo_delay, 5);
    build(self, 1000);
    assert_int_equal(self->ack.flags, 0);
}

TEST_F(rcv_fixture, mrd_rcv_build__serial_rises)
{
    self->r.serial = UINT32_MAX - 1;
    build(self, 0);
    assert_int_equal(self->ack.serial, UINT32_MAX);
    build(self, 0);
    assert_int_equal(self->ack.serial, 0);
}

TEST_F(rcv_fixture, mrd_rcv_build__no_slices_without_a_gap)
{
    for (uint32_t i = 0; i < 300; i++)
        add(self, i);
    build(self, 0);
    assert_int_equal(self->ack.cum, 300);
    assert_int_equal(self->ack.num_slices, 0);
}

/* An ack says all that came and nothing else, wherever in the ring and the PSN space it is. */
TEST(mrd_rcv_build__tells_exactly_what_came)
{
    static const uint32_t trackers[] = {512, 1024, 4096};
    static const uint32_t first[] = {
        0, 100, 255, 256, 700, 4000, UINT32_MAX - 100, UINT32_MAX - 400};
    struct mrd_rng rng;

    mrd_rng_init(&rng, 4);
    for (size_t i = 0; i < 3 * 8; i++) {
        uint32_t tracker = trackers[i / 8], start = first[i % 8];
        uint8_t came[2048] = {0};
        struct rcv_fixture f = {.tracker = tracker, .first = start};

        begin(&f);
        for (uint32_t k = 0; k < tracker; k++) { /* cum stays: its PSN does not come */
            uint32_t at = 1 + mrd_rng_below(&rng, tracker / 2 - 1);

            if (mrd_rcv_check(&f.r, start + at) == MRD_RCV_NEW)
                add(&f, start + at);
            came[at] = 1;
        }
        build(&f, 0);
        assert_int_equal(f.ack.cum, start);
        for (uint32_t k = 0; k < tracker / 2; k++)
            assert_int_equal(tells(&f.ack, start + k), came[k]);
        for (uint32_t k = tracker / 2; k < tracker; k++)
            assert_false(tells(&f.ack, start + k));
        end(&f);
    }
}

/*
 * Also where a slice reaches into places of the ring that belong to PSNs before it: such an ack,
 * late, would confirm PSNs that were sent since and never came.
 */
TEST(mrd_rcv_build__tells_nothing_beyond_the_highest)
{
    static const struct {
        uint32_t tracker, cum, highest;
    } table[] = {
        {256, 200, 300}, {256, 10, 266},    {256, 50, 300}, {256, UINT32_MAX - 50, 40},
        {512, 300, 790}, {4096, 100, 4100},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct rcv_fixture f = {.tracker = table[i].tracker, .first = table[i].cum};

        begin(&f);
        for (uint32_t psn = table[i].cum + 1; psn != table[i].highest; psn++)
            add(&f, psn);
        build(&f, 0);
        assert_int_equal(f.ack.cum, table[i].cum);
        assert_true(tells(&f.ack, table[i].highest - 1));
        /* Nor below cum. */
        assert_int_equal(f.ack.slice[0].bits[0] & ((1ull << (table[i].cum & 63)) - 1), 0);
        for (uint32_t k = 0; k < 2 * MRD_WIRE_SLICE_BITS; k++)
            assert_false(tells(&f.ack, table[i].highest + k));
        end(&f);
    }
}

/* A full tracker that begins in mid-slice takes one slice more than its size says. */
TEST_F_WITH(rcv_fixture, mrd_rcv_build__full_tracker_fits, self->tracker = MRD_TRACKER_MAX,
            self->first = 77)
{
    for (uint32_t i = 1; i < MRD_TRACKER_MAX; i++)
        add(self, 77 + i);
    build(self, 0);
    assert_int_equal(self->ack.num_slices, MRD_WIRE_SLICES_MAX);
    for (uint32_t i = 0; i < MRD_TRACKER_MAX; i++)
        assert_int_equal(tells(&self->ack, 77 + i), i != 0);
}

/* A tracker as wide as it gets, with a gap at its begin. */
static void begin_wide(struct rcv_fixture *f, uint32_t first)
{
    *f = (struct rcv_fixture){.tracker = MRD_TRACKER_MAX, .first = first};
    begin(f);
    while (f->r.tracker < MRD_TRACKER_WIDEST)
        assert_true(mrd_rcv_widen(&f->r));
    add(f, first + 1);
}

/* What was noted before a tracker grows stays: received, refused, and told by the next ack. */
/* Slices that do not fit into the packet take turns: a few acks tell all, the first slice in each. */
TEST_F_WITH(rcv_fixture, mrd_rcv_build__slices_take_turns_in_small_packets,
            self->tracker = MRD_TRACKER_MAX)
{
    static const uint32_t rooms[] = {0, 200, 352, 600, 1184};

    for (uint32_t psn = 1; psn < MRD_TRACKER_MAX; psn += 2)
        add(self, psn);
    for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        bool is_told[MRD_TRACKER_MAX / MRD_WIRE_SLICE_BITS] = {false};

        for (unsigned acks = 0; acks < MRD_TRACKER_MAX / MRD_WIRE_SLICE_BITS; acks++) {
            mrd_rcv_build(&self->r, &self->ack, MRD_TRACKER_MAX, rooms[i], 0);
            uint32_t bytes =
                MRD_WIRE_ACK_BYTES + self->ack.num_slices * (uint32_t)MRD_WIRE_SLICE_BYTES;
            assert_true(bytes <= rooms[i] || self->ack.num_slices == 2);
            assert_int_equal(self->ack.slice[0].base, 0);
            for (unsigned k = 0; k < self->ack.num_slices; k++)
                is_told[self->ack.slice[k].base / MRD_WIRE_SLICE_BITS] = true;
        }
        for (unsigned k = 0; k < MRD_TRACKER_MAX / MRD_WIRE_SLICE_BITS; k++)
            assert_true(is_told[k]);
    }
}

TEST(mrd_rcv_widen__keeps_all)
{
    static const uint32_t first[] = {0, 77, 4095, UINT32_MAX - 5000};
    static const uint32_t ahead[] = {1, 100, 127, 128, 300, 4094};

    for (unsigned k = 0; k < sizeof(first) / sizeof(first[0]); k++) {
        struct rcv_fixture f = {.tracker = MRD_TRACKER_MAX, .first = first[k]};

        begin(&f);
        for (unsigned i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
            mrd_rcv_add(&f.r, first[k] + ahead[i], i == 2);
            assert_true(f.r.tracker >= 2 * MRD_TRACKER_MAX || mrd_rcv_widen(&f.r));
        }
        assert_true(mrd_rcv_widen(&f.r));
        assert_int_equal(f.maps.pool.used, 0);
        assert_int_equal(f.r.tracker, 4 * MRD_TRACKER_MAX);
        assert_int_equal(mrd_rcv_bytes(&f.r), f.maps.wide_bytes);
        assert_int_equal(mrd_rcv_check(&f.r, first[k] + f.r.tracker), MRD_RCV_BEYOND);
        assert_int_equal(mrd_rcv_check(&f.r, first[k] + f.r.tracker - 1), MRD_RCV_NEW);
        add(&f, first[k] + f.r.tracker - 1);
        build(&f, 0);
        for (unsigned i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
            assert_int_equal(mrd_rcv_check(&f.r, first[k] + ahead[i]), MRD_RCV_DUPLICATE);
            assert_int_equal(tells(&f.ack, first[k] + ahead[i]), i != 2);
        }
        assert_true(tells(&f.ack, first[k] + f.r.tracker - 1));
        assert_true(mrd_rcv_refusal_acked(&f.r, first[k] + ahead[2]));
        build(&f, 0);
        assert_true(tells(&f.ack, first[k] + ahead[2]));
        end(&f);
    }
}

/* Without memory nothing changes; and all that grew take MRD_WIDE_BYTES at most. */
TEST_F_WITH(rcv_fixture, mrd_rcv_widen__no_memory, self->tracker = MRD_TRACKER_MAX)
{
    add(self, 5);
    self->alloc.fail_at = self->alloc.requests + 1;
    assert_false(mrd_rcv_widen(&self->r));
    self->alloc.fail_at = 0;
    self->maps.wide_bytes = MRD_WIDE_BYTES - mrd_rcv_wide_bytes(2 * MRD_TRACKER_MAX) + 1;
    assert_false(mrd_rcv_widen(&self->r));
    assert_int_equal(self->r.tracker, MRD_TRACKER_MAX);
    assert_int_equal(mrd_rcv_check(&self->r, 5), MRD_RCV_DUPLICATE);
    self->maps.wide_bytes--;
    assert_true(mrd_rcv_widen(&self->r));
    self->maps.wide_bytes -= MRD_WIDE_BYTES - mrd_rcv_wide_bytes(2 * MRD_TRACKER_MAX);
}

/*
 * More slices than an ack takes. What came since the last ack is in the next one wherever it lies, and
 * all the rest, of which an ack may have been lost, within as many acks as it fills.
 */
TEST(mrd_rcv_build__a_wide_tracker_takes_turns)
{
    static const uint32_t first[] = {0, 300, UINT32_MAX - 30000};
    enum { NUM = 20000, SLICES = NUM / MRD_WIRE_SLICE_BITS + 2, NEWS = 4 };
    static bool told[NUM];

    for (unsigned k = 0; k < sizeof(first) / sizeof(first[0]); k++) {
        struct mrd_rng rng;
        struct rcv_fixture f;

        begin_wide(&f, first[k]);
        mrd_rng_init(&rng, k);
        memset(told, 0, sizeof(told));
        for (uint32_t i = 2; i < NUM; i += 2)
            add(&f, first[k] + i);
        for (unsigned acks = 0; acks < SLICES / MRD_WIRE_SLICES_MAX + 1; acks++)
            build(&f, 0); /* and all these are lost */
        for (unsigned acks = 0; acks < SLICES / (MRD_WIRE_SLICES_MAX - 1 - NEWS) + 1; acks++) {
            uint32_t news[NEWS];

            for (unsigned i = 0; i < NEWS; i++) {
                do
                    news[i] = 3 + 2 * mrd_rng_below(&rng, NUM / 2 - 2);
                while (mrd_rcv_check(&f.r, first[k] + news[i]) != MRD_RCV_NEW);
                add(&f, first[k] + news[i]);
            }
            build(&f, 0);
            assert_true(f.ack.num_slices <= MRD_WIRE_SLICES_MAX);
            for (unsigned i = 0; i < NEWS; i++)
                assert_true(tells(&f.ack, first[k] + news[i]));
            for (uint32_t i = 0; i < NUM; i++)
                told[i] |= tells(&f.ack, first[k] + i);
        }
        for (uint32_t i = 0; i < NUM; i++)
            assert_int_equal(told[i], mrd_rcv_check(&f.r, first[k] + i) == MRD_RCV_DUPLICATE);
        end(&f);
    }
}

/* With more news than an ack holds, the rest follows in the next one. */
TEST(mrd_rcv_build__more_news_than_an_ack_holds)
{
    enum { NUM = 40 };
    bool told[NUM + 1] = {true};
    struct rcv_fixture f;

    begin_wide(&f, 0);
    for (uint32_t i = 1; i <= NUM; i++)
        add(&f, i * MRD_WIRE_SLICE_BITS);
    for (unsigned acks = 0; acks < NUM / MRD_WIRE_SLICES_MAX + 1; acks++) {
        build(&f, 0);
        for (uint32_t i = 1; i <= NUM; i++)
            told[i] |= tells(&f.ack, i * MRD_WIRE_SLICE_BITS);
    }
    for (uint32_t i = 1; i <= NUM; i++)
        assert_true(told[i]);
    end(&f);
}

/* More paths than an ack takes: the rest is told by the next one. */
TEST_F(rcv_fixture, mrd_rcv_build__many_paths_take_turns)
{
    uint8_t told[100] = {0};

    for (uint32_t i = 0; i < 100; i++)
        count_at(self, i, (uint16_t)i, false, 0);
    for (int k = 0; k < 2; k++) {
        build(self, 0);
        assert_int_equal(self->ack.num_paths,
                         k ? 100 - MRD_WIRE_ACK_PATHS_MAX : MRD_WIRE_ACK_PATHS_MAX);
        for (unsigned i = 0; i < self->ack.num_paths; i++)
            told[self->ack.path[i].id]++;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(told[i], 1);
}

/* However small the room, an ack keeps to it while slices alone do, and each path gets its turn. */
TEST(mrd_rcv_build__keeps_to_the_room)
{
    static const uint32_t rooms[] = {1024, 512, 400};

    for (unsigned r = 0; r < sizeof(rooms) / sizeof(rooms[0]); r++) {
        struct rcv_fixture f = {0};
        unsigned told = 0, acks = 0;

        begin(&f);
        for (uint32_t psn = 0; psn < 64; psn++) {
            add(&f, psn * 3);
            count_at(&f, psn * 3, (uint16_t)psn, false, 0);
        }
        for (; told < 64 && acks < 64; acks++) {
            uint8_t packet[MRD_TX_HEAD_BYTES];
            struct mrd_wire_head head = {.type = MRD_WIRE_ACK};

            mrd_rcv_build(&f.r, &f.ack, TRACKER, rooms[r], 0);
            told += f.ack.num_paths;
            assert_true(mrd_wire_put_ack(mrd_wire_put_head(packet, &head), &f.ack) - packet <=
                        (ptrdiff_t)rooms[r]);
        }
        assert_int_equal(told, 64);
        end(&f);
    }
}

/* PSNs far ahead of cum: what they told, received or refused, is kept all over the ring. */
TEST(mrd_rcv_add__far_ahead)
{
    static const uint32_t first[] = {0, 1, 63, 64, 200, 255, 256, 1000, UINT32_MAX - 100};

    for (unsigned k = 0; k < sizeof(first) / sizeof(first[0]); k++) {
        uint32_t base = first[k];
        struct rcv_fixture f = {.first = base};

        begin(&f);
        for (uint32_t i = 1; i < MRD_RCV_FEW; i += 2)
            mrd_rcv_add(&f.r, base + i, i % 3 == 0);
        assert_int_equal(f.maps.pool.used, 0);
        assert_int_equal(mrd_rcv_check(&f.r, base + MRD_RCV_FEW + 1), MRD_RCV_NEW);
        add(&f, base + MRD_RCV_FEW + 1);
        assert_int_equal(f.maps.pool.used, 1);
        build(&f, 0);
        for (uint32_t i = 0; i < MRD_RCV_FEW + 2; i++) {
            assert_int_equal(mrd_rcv_check(&f.r, base + i),
                             i % 2 ? MRD_RCV_DUPLICATE : MRD_RCV_NEW);
            assert_int_equal(tells(&f.ack, base + i), i % 2 && (i % 3 || i > MRD_RCV_FEW));
        }
        for (uint32_t i = 0; i < MRD_RCV_FEW + 2; i++)
            if (i % 2 == 0)
                add(&f, base + i);
        for (uint32_t i = 3; i < MRD_RCV_FEW; i += 6)
            assert_true(mrd_rcv_refusal_acked(&f.r, base + i));
        assert_int_equal(f.r.cum, base + MRD_RCV_FEW + 2);
        assert_int_equal(f.r.num_refused, 0);
        end(&f);
    }
}

/* Packets of a path for which there is no memory are taken, only their counts are not told. */
TEST_F(rcv_fixture, mrd_rcv_count__no_memory)
{
    self->alloc.fail_at = self->alloc.requests + 1;
    count_at(self, 0, 0, false, 0);
    count_at(self, 1, 5, true, 0);
    self->alloc.fail_at = 0;
    assert_int_equal(self->r.since_ack, 2);
    build(self, 0);
    assert_int_equal(self->ack.num_paths, 1);
    count_at(self, 2, 5, true, 0);
    count_at(self, 3, 0, false, 0);
    build(self, 0);
    assert_int_equal(self->ack.num_paths, 2);
    assert_int_equal(self->ack.path[0].received, 2);
    assert_int_equal(self->ack.path[1].received, 1);
}
