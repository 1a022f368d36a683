/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs of segments: sent and acked together, they are as if each had been by itself. */
#include "core/rng.h"
#include "tests/unit/sent_fixture.h"

enum { LEN = 64, FIRST = 5 };

static struct mrd_sent *send(struct sent_fixture *f, enum mrd_sent_kind kind, uint16_t path)
{
    struct mrd_sent *rec = mrd_sent_add(&f->s, kind);

    assert_non_null(rec);
    rec->bytes = BYTES;
    if (kind == MRD_SENT_SEGMENT) {
        rec->len = LEN;
        rec->id = 9;
        rec->offset = 1000;
    }
    mrd_sent_transmit(&f->s, rec, &f->paths, path, mrd_path_sent(&f->paths, path), f->now_ns);
    return rec;
}

/* Packets behind a segment that was sent just now. `together`: as a run. */
static void send_more(struct sent_fixture *f, struct mrd_sent *last, uint32_t n, bool together)
{
    for (uint32_t i = 0; i < n; i++) {
        struct mrd_sent *rec;

        if (together) {
            rec = mrd_sent_add(&f->s, MRD_SENT_SEGMENT);
            mrd_sent_follow(&f->s, rec, last, &f->paths, mrd_path_sent(&f->paths, last->path));
        } else {
            rec = send(f, MRD_SENT_SEGMENT, last->path);
            rec->offset = last->offset + last->len;
            rec->in_run = true;
        }
        last = rec;
    }
}

static void ack_one(struct sent_fixture *f, struct mrd_sent *rec)
{
    if (rec->state == MRD_SENT_INFLIGHT)
        mrd_path_acked(&f->paths, rec->path);
    mrd_sent_ack(&f->s, rec, &f->paths);
    mrd_sent_release(&f->s, rec);
}

/* Returns the bytes that were acked. */
static uint32_t ack(struct sent_fixture *f, uint32_t psn, uint32_t past, bool together)
{
    uint32_t sum = 0, bytes, payload;

    while (psn != past) {
        struct mrd_sent *rec = mrd_sent_get(&f->s, psn);
        uint32_t n = rec && together ? mrd_sent_run(&f->s, rec, past) : 1;

        if (n > 1 && mrd_path_is_good(&f->path[rec->path])) {
            mrd_path_run_acked(&f->paths, rec->path, n);
            mrd_sent_ack_run(&f->s, rec, n, &f->paths, &bytes, &payload);
            assert_int_equal(bytes, n * BYTES);
            assert_int_equal(payload, n * LEN);
            sum += bytes;
        } else {
            n = 1;
            if (rec) {
                sum += rec->bytes;
                ack_one(f, rec);
            }
        }
        psn += n;
    }
    return sum;
}

/* The PSNs of both chains, and all that is counted, are the same. */
static void compare(const struct sent_fixture *a, const struct sent_fixture *b)
{
    uint32_t psn = a->s.inflight.head;

    assert_true(mrd_sent_audit(&a->s, &a->paths) && mrd_sent_audit(&b->s, &b->paths));
    assert_int_equal(a->s.una, b->s.una);
    assert_int_equal(a->s.next, b->s.next);
    assert_int_equal(a->s.num_pages, b->s.num_pages);
    assert_int_equal(a->s.inflight_bytes, b->s.inflight_bytes);
    assert_int_equal(a->s.inflight.num, b->s.inflight.num);
    assert_int_equal(a->s.lost.num, b->s.lost.num);
    if (a->s.inflight.num)
        assert_int_equal(psn, b->s.inflight.head);
    for (uint32_t i = 0; i < a->s.inflight.num; i++) {
        struct mrd_sent *x = mrd_sent_get(&a->s, psn), *y = mrd_sent_get(&b->s, psn);

        psn = x->next;
        x->next = y->next; /* the last one's is undefined */
        x->prev = i ? x->prev : y->prev;
        assert_memory_equal(x, y, sizeof(*x));
        x->next = psn;
    }
    for (uint32_t i = 0; i < PATHS; i++) {
        assert_memory_equal(&a->load[i], &b->load[i], sizeof(a->load[i]));
        if (a->load[i].out_packets) {
            assert_int_equal(a->path[i].head, b->path[i].head);
            assert_int_equal(a->path[i].tail, b->path[i].tail);
        }
        assert_int_equal(a->path[i].state, b->path[i].state);
        assert_int_equal(a->path[i].losses_row, b->path[i].losses_row);
        assert_int_equal(a->path[i].bad_packets, b->path[i].bad_packets);
        assert_true(a->path[i].loss_ewma == b->path[i].loss_ewma);
    }
    assert_true(a->paths.loss_avg == b->paths.loss_avg);
    assert_int_equal(a->paths.acks, b->paths.acks);
}

static void lose(struct sent_fixture *f, uint32_t psn)
{
    struct mrd_sent *rec = mrd_sent_get(&f->s, psn);

    if (!rec || rec->state != MRD_SENT_INFLIGHT)
        return;
    mrd_path_lost(&f->paths, rec->path, 1000, f->now_ns);
    mrd_sent_lose(&f->s, rec, &f->paths);
}

static void send_lost(struct sent_fixture *f, uint16_t path)
{
    if (f->s.lost.num)
        mrd_sent_transmit(&f->s, mrd_sent_get(&f->s, f->s.lost.head), &f->paths, path,
                          mrd_path_sent(&f->paths, path), f->now_ns);
}

/* Random runs, losses, retransmissions and acks: one tracker does them together, one apart. */
TEST(mrd_sent_run__as_one_by_one)
{
    struct sent_fixture fixture[2] = {{.first = FIRST}, {.first = FIRST}};
    struct mrd_rng rng;
    uint32_t runs = 0;

    mrd_rng_init(&rng, 1);
    begin(&fixture[0]);
    begin(&fixture[1]);
    for (uint32_t step = 0; step < 20000; step++) {
        const struct mrd_sents *s = &fixture[0].s;
        uint32_t what = mrd_rng_below(&rng, 10), out = s->next - s->una, sum[2] = {0};
        uint32_t psn = s->una + (out ? mrd_rng_below(&rng, out) : 0);
        uint32_t n = mrd_rng_below(&rng, 40);
        uint16_t path = (uint16_t)mrd_rng_below(&rng, PATHS);

        n = n < s->next - psn ? n : s->next - psn;
        for (unsigned i = 0; i < 2; i++) {
            struct sent_fixture *f = &fixture[i];

            f->now_ns++;
            if (what < 4 && out < TRACKER / 2)
                send_more(f, send(f, MRD_SENT_SEGMENT, path), what * 7, i);
            else if (what == 4 && out < TRACKER / 2)
                send(f, MRD_SENT_EMPTY, path);
            else if (what == 5)
                lose(f, psn);
            else if (what == 6)
                send_lost(f, path);
            else if (what > 6)
                sum[i] = ack(f, psn, psn + n, i);
        }
        runs += sum[1] > 10 * BYTES;
        assert_int_equal(sum[0], sum[1]);
        compare(&fixture[0], &fixture[1]);
    }
    assert_true(runs > 100);
    end(&fixture[0]);
    end(&fixture[1]);
}

/* What is not alike is no run. */
TEST(mrd_sent_run__ends_where_packets_differ)
{
    enum { N = 6 };
    for (uint32_t how = 0; how < 7; how++) {
        struct sent_fixture fixture = {.first = FIRST}, *f = &fixture;

        begin(f);
        struct mrd_sent *rec = send(f, MRD_SENT_SEGMENT, 1);
        send_more(f, rec, N - 1, true);
        assert_int_equal(mrd_sent_run(&f->s, rec, FIRST + N), N);
        assert_int_equal(mrd_sent_run(&f->s, rec, FIRST + 2), 2);
        struct mrd_sent *odd = mrd_sent_get(&f->s, FIRST + 4);
        if (how == 0)
            odd->id++;
        else if (how == 1)
            odd->in_run = false;
        else if (how == 2)
            odd->tx_ns++;
        else if (how == 3)
            odd->kind = MRD_SENT_EMPTY;
        else if (how == 4)
            odd->tx_count++;
        else if (how == 5)
            lose(f, FIRST + 4);
        else
            ack_one(f, odd);
        assert_int_equal(mrd_sent_run(&f->s, rec, FIRST + N), 4);
        end(f);
    }
}

/* What follows is as if each had been sent by itself: also where a page ends. */
TEST_F_WITH(sent_fixture, mrd_sent_follow__like_a_transmission, self->first = FIRST)
{
    enum { RUN = MRD_SENT_PAGE + 3 };
    struct mrd_sent *rec;

    self->now_ns = 20;
    send(self, MRD_SENT_EMPTY, 1);
    send(self, MRD_SENT_EMPTY, 2);
    send_more(self, send(self, MRD_SENT_SEGMENT, 1), RUN - 1, true);
    assert_true(mrd_sent_audit(&self->s, &self->paths));
    assert_int_equal(self->s.inflight.num, RUN + 2);
    assert_int_equal(self->s.inflight_bytes, (RUN + 2) * BYTES);
    assert_int_equal(self->paths.load[1].out_packets, RUN + 1);
    for (uint32_t i = 0; i < RUN; i++) {
        rec = mrd_sent_get(&self->s, FIRST + 2 + i);
        assert_int_equal(rec->kind, MRD_SENT_SEGMENT);
        assert_int_equal(rec->state, MRD_SENT_INFLIGHT);
        assert_int_equal(rec->tx_count, 1);
        assert_int_equal(rec->tx_ns, 20);
        assert_int_equal(rec->path, 1);
        assert_int_equal(rec->pseq, 2 + i);
        assert_int_equal(rec->id, 9);
        assert_int_equal(rec->offset, 1000 + LEN * i);
        assert_int_equal(rec->in_run, i > 0);
    }
    /* Both chains lead through all: whatever the order in which they are acked. */
    for (uint32_t i = 0; i < RUN + 2; i++) {
        rec = mrd_sent_get(&self->s, FIRST + i * 8 % (RUN + 2));
        mrd_path_acked(&self->paths, rec->path);
        mrd_sent_ack(&self->s, rec, &self->paths);
        mrd_sent_release(&self->s, rec);
        assert_true(mrd_sent_audit(&self->s, &self->paths));
    }
    assert_int_equal(self->s.inflight.num, 0);
    assert_int_equal(self->s.una, FIRST + RUN + 2);
}
