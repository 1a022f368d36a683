/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/rng.h"
#include "tests/unit/sent_fixture.h"

static struct mrd_sent *send_at(struct sent_fixture *f, uint16_t path, uint64_t now_ns)
{
    struct mrd_sent *rec = mrd_sent_add(&f->s, MRD_SENT_EMPTY);

    assert_non_null(rec);
    rec->bytes = BYTES;
    mrd_sent_transmit(&f->s, rec, &f->paths, path, mrd_path_sent(&f->paths, path), now_ns);
    return rec;
}

static void again_at(struct sent_fixture *f, uint32_t psn, uint16_t path, uint64_t now_ns)
{
    struct mrd_sent *rec = mrd_sent_get(&f->s, psn);
    uint32_t pseq = mrd_path_sent(&f->paths, path);

    if (rec->state == MRD_SENT_INFLIGHT)
        mrd_path_forgot(&f->paths, rec->path);
    mrd_sent_transmit(&f->s, rec, &f->paths, path, pseq, now_ns);
}

static void lose(struct sent_fixture *f, uint32_t psn)
{
    struct mrd_sent *rec = mrd_sent_get(&f->s, psn);

    mrd_path_forgot(&f->paths, rec->path);
    mrd_sent_lose(&f->s, rec, &f->paths);
}

/* Acked, and not released yet. */
static void ack_only(struct sent_fixture *f, struct mrd_sent *rec)
{
    if (rec->state == MRD_SENT_INFLIGHT)
        mrd_path_forgot(&f->paths, rec->path);
    mrd_sent_ack(&f->s, rec, &f->paths);
}

static void ack(struct sent_fixture *f, uint32_t psn)
{
    struct mrd_sent *rec = mrd_sent_get(&f->s, psn);

    assert_non_null(rec);
    ack_only(f, rec);
    mrd_sent_release(&f->s, rec);
}

/* A chain's PSNs from head to tail, as offsets from `first`, are `expected` (-1 ends it). */
static void expect_chain(const struct sent_fixture *f, const struct mrd_sent_chain *c,
                         uint32_t first, const int *expected)
{
    uint32_t psn = c->head, n = 0;

    for (; expected[n] >= 0; n++) {
        const struct mrd_sent *rec = mrd_sent_get(&f->s, psn);

        assert_true(n < c->num);
        assert_int_equal(psn, first + (uint32_t)expected[n]);
        if (n + 1 == c->num)
            assert_int_equal(c->tail, psn);
        psn = rec->next;
    }
    assert_int_equal(c->num, n);
}

static void expect_path(const struct sent_fixture *f, uint16_t path, uint32_t first,
                        const int *expected)
{
    uint32_t psn = f->path[path].head, n = 0;

    for (; expected[n] >= 0; n++) {
        assert_int_equal(psn, first + (uint32_t)expected[n]);
        psn = mrd_sent_get(&f->s, psn)->path_next;
    }
    assert_int_equal(f->load[path].out_packets, n);
}

TEST_F_WITH(sent_fixture, mrd_sent_add__numbers_records_in_order, self->first = UINT32_MAX - 1)
{
    for (uint32_t i = 0; i < 5; i++) {
        struct mrd_sent *rec = mrd_sent_add(&self->s, MRD_SENT_EMPTY);

        assert_int_equal(rec->psn, UINT32_MAX - 1 + i);
        assert_int_equal(rec->state, MRD_SENT_NEW);
        assert_int_equal(rec->tx_count, 0);
    }
    assert_int_equal(self->s.una, UINT32_MAX - 1);
    assert_int_equal(self->s.inflight.num, 0);
}

/* No page, no PSN: the next try gives the same one. */
TEST_F_WITH(sent_fixture, mrd_sent_add__null_when_pages_are_used_up, self->num_pages = 1)
{
    for (uint32_t i = 0; i < MRD_SENT_PAGE; i++)
        send_at(self, 0, i);
    assert_null(mrd_sent_add(&self->s, MRD_SENT_EMPTY));
    assert_int_equal(self->s.next, MRD_SENT_PAGE);
    for (uint32_t i = 0; i < MRD_SENT_PAGE; i++)
        ack(self, i);
    assert_int_equal(mrd_sent_add(&self->s, MRD_SENT_EMPTY)->psn, MRD_SENT_PAGE);
}

/* The whole tracker may be in flight, at whatever place of the ring it begins. */
TEST(mrd_sent_add__fills_the_tracker)
{
    static const uint32_t first[] = {0, 1, 63, 200, UINT32_MAX - 100};

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        struct sent_fixture f = {.first = first[i]};

        begin(&f);
        for (uint32_t k = 0; k < TRACKER; k++)
            send_at(&f, (uint16_t)(k % PATHS), k);
        for (uint32_t k = 0; k < TRACKER; k++)
            assert_int_equal(mrd_sent_get(&f.s, first[i] + k)->tx_ns, k);
        assert_true(mrd_sent_audit(&f.s, &f.paths));
        end(&f);
    }
}

TEST_F_WITH(sent_fixture, mrd_sent_get__only_live_records, self->first = 10)
{
    send_at(self, 0, 0);
    send_at(self, 0, 0);
    assert_int_equal(mrd_sent_get(&self->s, 10)->psn, 10);
    assert_null(mrd_sent_get(&self->s, 9));
    assert_null(mrd_sent_get(&self->s, 12));
    assert_null(mrd_sent_get(&self->s, 10 + TRACKER)); /* the same place in the ring */
    assert_null(mrd_sent_get(&self->s, 10 - TRACKER));
    assert_null(mrd_sent_get(&self->s, 10 + 64)); /* no page there */
    ack(self, 10);
    assert_null(mrd_sent_get(&self->s, 10));
    assert_non_null(mrd_sent_get(&self->s, 11));
}

/* Oldest transmission first, of the peer and of each path: a packet sent again goes to the end. */
TEST_F_WITH(sent_fixture, mrd_sent_transmit__keeps_the_order_of_transmissions,
            self->first = UINT32_MAX - 1)
{
    const uint32_t first = UINT32_MAX - 1;

    for (uint32_t i = 0; i < 5; i++)
        send_at(self, (uint16_t)(i % 2), i);
    expect_chain(self, &self->s.inflight, first, (int[]){0, 1, 2, 3, 4, -1});
    expect_path(self, 0, first, (int[]){0, 2, 4, -1});
    expect_path(self, 1, first, (int[]){1, 3, -1});

    again_at(self, first + 2, 1, 10); /* from the middle, to another path */
    again_at(self, first, 0, 11);     /* from the front, on the same path */
    expect_chain(self, &self->s.inflight, first, (int[]){1, 3, 4, 2, 0, -1});
    expect_path(self, 0, first, (int[]){4, 0, -1});
    expect_path(self, 1, first, (int[]){1, 3, 2, -1});
    again_at(self, first, 3, 12); /* from the end */
    expect_chain(self, &self->s.inflight, first, (int[]){1, 3, 4, 2, 0, -1});
    expect_path(self, 0, first, (int[]){4, -1});
    expect_path(self, 3, first, (int[]){0, -1});
    assert_int_equal(mrd_sent_get(&self->s, first)->tx_count, 3);
}

/* Bytes in flight follow the records' states: a retransmission counts once. */
TEST_F(sent_fixture, mrd_sent_transmit__counts_bytes_once)
{
    send_at(self, 0, 0);
    send_at(self, 1, 1);
    assert_int_equal(self->s.inflight_bytes, 2 * BYTES);
    again_at(self, 0, 2, 2);
    assert_int_equal(self->s.inflight_bytes, 2 * BYTES);
    lose(self, 0);
    assert_int_equal(self->s.inflight_bytes, BYTES);
    again_at(self, 0, 3, 3);
    assert_int_equal(self->s.inflight_bytes, 2 * BYTES);
    ack(self, 0);
    ack(self, 1);
    assert_int_equal(self->s.inflight_bytes, 0);
}

TEST_F(sent_fixture, mrd_sent_transmit__count_saturates)
{
    send_at(self, 0, 0);
    for (uint64_t i = 1; i < 600; i++)
        again_at(self, 0, 0, i);
    assert_int_equal(mrd_sent_get(&self->s, 0)->tx_count, UINT8_MAX);
}

TEST_F(sent_fixture, mrd_sent_lose__waits_in_the_order_of_losses)
{
    for (uint32_t i = 0; i < 4; i++)
        send_at(self, 0, i);
    lose(self, 2);
    lose(self, 0);
    expect_chain(self, &self->s.lost, 0, (int[]){2, 0, -1});
    expect_chain(self, &self->s.inflight, 0, (int[]){1, 3, -1});
    expect_path(self, 0, 0, (int[]){1, 3, -1});
    again_at(self, 2, 1, 9);
    expect_chain(self, &self->s.lost, 0, (int[]){0, -1});
    expect_chain(self, &self->s.inflight, 0, (int[]){1, 3, 2, -1});
    assert_true(mrd_sent_audit(&self->s, &self->paths));
}

TEST_F(sent_fixture, mrd_sent_oldest__of_those_in_flight_and_lost)
{
    assert_null(mrd_sent_oldest(&self->s));
    for (uint32_t i = 0; i < 3; i++)
        send_at(self, 0, i);
    assert_int_equal(mrd_sent_oldest(&self->s)->psn, 0);
    lose(self, 0);
    assert_int_equal(mrd_sent_oldest(&self->s)->psn, 0);
    again_at(self, 0, 1, 9);
    assert_int_equal(mrd_sent_oldest(&self->s)->psn, 1);
}

TEST_F_WITH(sent_fixture, mrd_sent_ack__una_passes_what_is_acked, self->first = UINT32_MAX - 2)
{
    const uint32_t first = UINT32_MAX - 2;

    for (uint32_t i = 0; i < 6; i++)
        send_at(self, 0, i);
    ack(self, first + 1);
    ack(self, first + 3);
    assert_int_equal(self->s.una, first);
    ack(self, first);
    assert_int_equal(self->s.una, first + 2);
    ack(self, first + 2);
    assert_int_equal(self->s.una, first + 4);
    ack(self, first + 5);
    ack(self, first + 4);
    assert_int_equal(self->s.una, self->s.next);
}

/* A packet that was given up may be acked after all. */
TEST_F(sent_fixture, mrd_sent_ack__of_a_lost_packet)
{
    send_at(self, 0, 0);
    send_at(self, 0, 1);
    lose(self, 0);
    ack(self, 0);
    assert_int_equal(self->s.lost.num, 0);
    assert_int_equal(self->s.una, 1);
    assert_int_equal(self->s.inflight_bytes, BYTES);
    assert_true(mrd_sent_audit(&self->s, &self->paths));
}

/* A record outlives its ack until what it carried was dealt with. */
TEST_F(sent_fixture, mrd_sent_release__record_stays_until_then)
{
    struct mrd_sent *rec = send_at(self, 0, 0);

    ack_only(self, rec);
    assert_ptr_equal(mrd_sent_get(&self->s, 0), rec);
    assert_int_equal(rec->state, MRD_SENT_ACKED);
    mrd_sent_release(&self->s, rec);
    assert_null(mrd_sent_get(&self->s, 0));
}

/* Pages go back when their records are gone; a slow sender keeps the one it is on. */
TEST_F(sent_fixture, mrd_sent_release__gives_pages_back)
{
    for (uint32_t i = 0; i < 2 * MRD_SENT_PAGE + 1; i++)
        send_at(self, 0, i);
    assert_int_equal(self->pages.used, 3);
    for (uint32_t i = 0; i < MRD_SENT_PAGE; i++)
        ack(self, i);
    assert_int_equal(self->pages.used, 2);
    for (uint32_t i = MRD_SENT_PAGE; i < 2 * MRD_SENT_PAGE + 1; i++)
        ack(self, i);
    assert_int_equal(self->pages.used, 1);
}

/* One packet at a time for ever: never more than two pages, also across the wrap of PSNs. */
TEST_F_WITH(sent_fixture, mrd_sent_release__slow_sender_holds_a_page,
            self->first = UINT32_MAX - 500)
{
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t psn = send_at(self, 0, i)->psn;

        assert_in_range(self->pages.used, 1, 2);
        ack(self, psn);
    }
    assert_in_range(self->pages.used, 0, 1);
}

/* Of what an ack says: nothing below una, nothing that was never sent, nothing that is known. */
TEST(mrd_sent_new_bits__table)
{
    static const struct {
        uint32_t una, next, base;
        uint64_t bits, expected;
    } table[] = {
        {0, 64, 0, ~0ull, ~0ull},
        {0, 10, 0, ~0ull, 0x3ff},
        {5, 10, 0, ~0ull, 0x3e0},
        {5, 10, 0, 0x0f0, 0x0e0},
        {0, 10, 64, ~0ull, 0}, /* never sent */
        {64, 70, 0, ~0ull, 0}, /* all acked */
        {63, 70, 0, ~0ull, 1ull << 63},
        {63, 65, 64, ~0ull, 1},
        {10, 10, 0, ~0ull, 0},
        {UINT32_MAX - 1, 3, UINT32_MAX - 63, ~0ull, 3ull << 62},
        {UINT32_MAX - 1, 3, 0, ~0ull, 7},
        {UINT32_MAX - 1, 3, 64, ~0ull, 0},
        {3, 100, 0x80000000, ~0ull, 0}, /* from half the space away */
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct sent_fixture f = {.first = table[i].una};

        begin(&f);
        while (f.s.next != table[i].next)
            send_at(&f, 0, 0);
        assert_true(mrd_sent_new_bits(&f.s, table[i].base, table[i].bits) == table[i].expected);
        end(&f);
    }
}

TEST_F(sent_fixture, mrd_sent_new_bits__not_what_is_known)
{
    for (uint32_t i = 0; i < 8; i++)
        send_at(self, 0, i);
    ack(self, 3);
    ack(self, 6);
    assert_int_equal(mrd_sent_new_bits(&self->s, 0, 0xff), 0xff & ~0x48);
}

/* Bits of an earlier turn of the ring say nothing of the PSN that has their place now. */
TEST_F(sent_fixture, mrd_sent_new_bits__after_a_turn_of_the_ring)
{
    for (uint32_t i = 0; i < TRACKER + 8; i++) {
        send_at(self, 0, i);
        if (i < TRACKER)
            ack(self, i);
    }
    assert_int_equal(mrd_sent_new_bits(&self->s, TRACKER, 0xffff), 0xff);
}

TEST_F(sent_fixture, mrd_sent_audit__sees_a_wrong_figure)
{
    send_at(self, 0, 0);
    send_at(self, 0, 0);
    lose(self, 1);
    assert_true(mrd_sent_audit(&self->s, &self->paths));
    self->s.inflight_bytes++;
    assert_false(mrd_sent_audit(&self->s, &self->paths));
    self->s.inflight_bytes--;
    self->s.inflight.num++;
    assert_false(mrd_sent_audit(&self->s, &self->paths));
    self->s.inflight.num--;
    self->s.lost.num++;
    assert_false(mrd_sent_audit(&self->s, &self->paths));
    self->s.lost.num--;
    self->load[0].out_packets++;
    assert_false(mrd_sent_audit(&self->s, &self->paths));
    self->load[0].out_packets--;
    assert_true(mrd_sent_audit(&self->s, &self->paths));
}

/* Any order of events leaves true figures, chains in order, and no page behind. */
TEST_F_WITH(sent_fixture, mrd_sent_audit__random_walk, self->first = UINT32_MAX - 2000)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, 3);
    for (uint64_t now = 1; now < 20000; now++) {
        uint32_t live = self->s.next - self->s.una;
        struct mrd_sent *rec =
            live ? mrd_sent_get(&self->s, self->s.una + mrd_rng_below(&rng, live)) : NULL;
        uint16_t path = (uint16_t)mrd_rng_below(&rng, PATHS);
        uint32_t what = mrd_rng_below(&rng, 10);

        if (what < 4 && live < TRACKER)
            send_at(self, path, now);
        else if (rec && what < 5)
            again_at(self, rec->psn, path, now);
        else if (rec && what < 6 && rec->state == MRD_SENT_INFLIGHT)
            lose(self, rec->psn);
        else if (rec)
            ack(self, rec->psn);
        assert_true(mrd_sent_audit(&self->s, &self->paths));
        if (now % 100)
            continue;
        for (uint32_t psn = self->s.inflight.head, i = 1; i < self->s.inflight.num; i++) {
            const struct mrd_sent *r = mrd_sent_get(&self->s, psn);

            assert_true(r->tx_ns <= mrd_sent_get(&self->s, r->next)->tx_ns);
            psn = r->next;
        }
    }
    while (self->s.una != self->s.next)
        ack(self, self->s.una);
    assert_int_equal(self->s.inflight_bytes, 0);
    assert_in_range(self->pages.used, 0, 1);
}

/*
 * The ring of pages grows with what is between una and next, from any PSN on; acked ones need no
 * page. Without memory for it there are no more records, until una moves.
 */
TEST(mrd_sent_add__ring_grows)
{
    static const uint32_t first[] = {0, 5, 200, UINT32_MAX - 70};

    for (unsigned k = 0; k < sizeof(first) / sizeof(first[0]); k++) {
        uint32_t base = first[k], few = 0;
        struct sent_fixture f = {.first = base};

        begin(&f);
        f.alloc.fail_at = f.alloc.requests + 1;
        for (; few < TRACKER && f.s.ring == MRD_SENT_FEW; few++) {
            struct mrd_sent *rec = mrd_sent_add(&f.s, MRD_SENT_EMPTY);

            if (!rec)
                break;
            rec->bytes = BYTES;
            mrd_sent_transmit(&f.s, rec, &f.paths, 0, mrd_path_sent(&f.paths, 0), few);
        }
        assert_in_range(few, (MRD_SENT_FEW - 1) * MRD_SENT_PAGE, MRD_SENT_FEW * MRD_SENT_PAGE);
        f.alloc.fail_at = 0;
        for (uint32_t i = few; i < TRACKER - 1; i++)
            send_at(&f, 0, i);
        assert_true(f.s.ring > MRD_SENT_FEW);
        for (uint32_t i = 1; i < TRACKER - 1; i++) {
            assert_int_equal(mrd_sent_get(&f.s, base + i)->psn, base + i);
            if (i % 7)
                ack(&f, base + i);
        }
        assert_true(mrd_sent_audit(&f.s, &f.paths));
        assert_int_equal(f.s.una, base);
        for (uint32_t i = 0; i < TRACKER - 1; i += 7)
            ack(&f, base + i);
        assert_int_equal(f.s.una, f.s.next);
        end(&f);
    }
}

/* A page whose last record goes while the next PSN needs its place in the ring goes as well. */
TEST_F(sent_fixture, mrd_sent_release__page_in_the_way_of_the_next)
{
    enum { FULL = MRD_SENT_FEW * MRD_SENT_PAGE };

    for (uint32_t i = 0; i < FULL; i++)
        send_at(self, 0, i);
    for (uint32_t i = 0; i < MRD_SENT_PAGE; i++)
        ack(self, i);
    assert_int_equal(self->pages.used, MRD_SENT_FEW - 1);
    for (uint32_t i = FULL; i < 20 * FULL; i++) {
        send_at(self, 0, i);
        ack(self, i - FULL + MRD_SENT_PAGE);
    }
    assert_int_equal(self->s.ring, MRD_SENT_FEW);
}
