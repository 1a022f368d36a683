/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/heap.h"
#include "core/rng.h"
#include "tests/kit/kit.h"

enum { TIMERS = 50 };

FIXTURE(heap_fixture)
{
    struct mrd_timer *place[TIMERS];
    struct mrd_timer timer[TIMERS];
    struct mrd_heap heap;
};

static void begin(struct heap_fixture *f)
{
    f->heap.timer = f->place;
    for (int i = 0; i < TIMERS; i++)
        mrd_timer_init(&f->timer[i]);
}

FIXTURE_FROM(heap_fixture, begin, kit_nothing);

static void check_order(const struct heap_fixture *f)
{
    for (uint32_t i = 0; i < f->heap.num; i++) {
        assert_int_equal(f->place[i]->index, i);
        assert_true(f->place[i]->at_ns >= f->place[(i ? i - 1 : 0) / 2]->at_ns);
    }
}

/* Any order of arming and disarming: the earliest is on top, and they leave in order of time. */
TEST_F(heap_fixture, mrd_heap__keeps_the_order)
{
    struct mrd_rng rng;
    uint64_t last_ns = 0;

    mrd_rng_init(&rng, 11);
    for (int step = 0; step < 5000; step++) {
        struct mrd_timer *timer = &self->timer[mrd_rng_below(&rng, TIMERS)];
        uint64_t least_ns = MRD_NEVER;
        uint32_t armed = 0;

        if (mrd_rng_below(&rng, 3))
            mrd_heap_arm(&self->heap, timer, mrd_rng_below(&rng, 1000));
        else
            mrd_heap_disarm(&self->heap, timer);
        for (int i = 0; i < TIMERS; i++) {
            least_ns = self->timer[i].at_ns < least_ns ? self->timer[i].at_ns : least_ns;
            armed += self->timer[i].at_ns != MRD_NEVER;
        }
        assert_int_equal(self->heap.num, armed);
        assert_true(mrd_heap_next_ns(&self->heap) == least_ns);
        check_order(self);
    }
    for (struct mrd_timer *timer; (timer = mrd_heap_first(&self->heap));) {
        assert_true(timer->at_ns >= last_ns);
        last_ns = timer->at_ns;
        mrd_heap_disarm(&self->heap, timer);
        check_order(self);
    }
}
