/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward's schedule, on a link whose buffers the test counts. */
#include <event2/event.h>

#include "tests/kit/kit.h"
#include "tools/forward/schedule.h"

static int num_tx, num_taken, num_soon, num_sweeps;
static uint32_t num_free;

uint8_t *link_tx(struct link *link, const struct link_peer *peer)
{
    static uint8_t buffer[1];
    (void)link, (void)peer;

    if (num_taken == num_tx)
        return NULL;
    num_taken++;
    return buffer;
}

void link_tx_unused(struct link *link, uint8_t *buffer)
{
    (void)link, (void)buffer;
    num_taken--;
}

void link_progress_soon(struct link *link)
{
    (void)link;
    num_soon++;
}

uint32_t link_buffers(const struct link *link)
{
    (void)link;
    return 8;
}

uint32_t link_buffers_free(const struct link *link)
{
    (void)link;
    return num_free;
}

static void on_sweep(int fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    num_sweeps++;
}

FIXTURE(streams)
{
    struct event_base *base;
    struct schedule schedule;
    struct schedule_entry one, other;
    struct link_peer peer;
};

FIXTURE_SETUP(streams)
{
    num_tx = 1;
    num_taken = num_soon = num_sweeps = 0;
    self->base = event_base_new();
    schedule_entry_init(&self->one);
    schedule_entry_init(&self->other);
    mrd_list_init(&self->peer.waiting);
    assert_int_equal(schedule_init(&self->schedule, self->base, on_sweep, NULL), 0);
}

FIXTURE_TEARDOWN(streams)
{
    schedule_fini(&self->schedule);
    event_base_free(self->base);
}

/* In the order in which they got due, once each, and the hub is called for it. */
TEST_F(streams, schedule_make_due__in_order)
{
    schedule_make_due(&self->schedule, &self->one);
    schedule_make_due(&self->schedule, &self->other);
    schedule_make_due(&self->schedule, &self->one);
    assert_int_equal(num_soon, 2);
    assert_ptr_equal(schedule_next_due(&self->schedule), &self->one);
    assert_ptr_equal(schedule_next_due(&self->schedule), &self->other);
    assert_null(schedule_next_due(&self->schedule));
}

/* One that ended is neither due nor waits, whatever happens to it still. */
TEST_F(streams, schedule_end__leaves_the_lists)
{
    schedule_make_due(&self->schedule, &self->one);
    schedule_wait_for_buffer(&self->one, &self->peer);
    schedule_end(&self->schedule, &self->one);
    schedule_make_due(&self->schedule, &self->one);
    assert_null(schedule_next_due(&self->schedule));
    assert_null(schedule_next_waiting(&self->schedule, &self->peer, &self->peer.waiting));
    assert_ptr_equal(schedule_next_ended(&self->schedule), &self->one);
    assert_null(schedule_next_ended(&self->schedule));
}

/* None is taken from the list without a buffer for it, and the buffer is not used up. */
TEST_F(streams, schedule_next_waiting__needs_a_buffer)
{
    schedule_wait_for_buffer(&self->one, &self->peer);
    schedule_wait_for_buffer(&self->other, &self->peer);
    num_tx = 0;
    assert_null(schedule_next_waiting(&self->schedule, &self->peer, &self->peer.waiting));
    assert_true(schedule_is_waiting(&self->one));
    num_tx = 1;
    assert_ptr_equal(schedule_next_waiting(&self->schedule, &self->peer, &self->peer.waiting),
                     &self->one);
    assert_false(schedule_is_waiting(&self->one));
    assert_ptr_equal(schedule_next_waiting(&self->schedule, &self->peer, &self->peer.waiting),
                     &self->other);
    assert_int_equal(num_taken, 0);
    assert_null(schedule_next_waiting(&self->schedule, &self->peer, &self->peer.waiting));
}

/* The sweep runs once however often it is asked for, and for buffers if half of them are in use. */
TEST_F(streams, schedule_sweep__once)
{
    num_free = 4;
    schedule_sweep_if_scarce(&self->schedule);
    assert_false(evtimer_pending(self->schedule.sweep, NULL));
    num_free = 3;
    schedule_sweep_if_scarce(&self->schedule);
    schedule_sweep(&self->schedule);
    (void)event_base_loop(self->base, EVLOOP_ONCE);
    assert_int_equal(num_sweeps, 1);
    assert_false(evtimer_pending(self->schedule.sweep, NULL));
}
