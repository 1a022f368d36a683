/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device did not take waits in the outbox, but for less than its peer knows its space. */
#include "tests/support/wiretap.h"
#include "tests/support/world.h"
#include "transport/context.h"
#include "transport/progress.h"

enum { ROOM = 80, LONG_BYTES = 1 << 20, SHORT_BYTES = 100, TICK_NS = 10 };

static const struct mrd_backend_ops *real;

/* ------------------------------------------------------------------------- a clock that goes on */

static uint64_t ticks_ns;
static unsigned room;

static uint64_t ticking_now_ns(struct mrd_backend *b)
{
    return real->now_ns(b) + (ticks_ns += TICK_NS);
}

static unsigned takes_some(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n)
{
    unsigned taken = real->tx_burst(b, packets, n < room ? n : room);

    room -= taken;
    return taken;
}

/* A step reads the clock again for later batches; a flush after it has the first reading. */
TEST(sim_outbox__built_after_the_clock_was_read)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.no_challenge = true, .recv_bytes = LONG_BYTES, .cc = "none"});
    struct mrd_context_impl *c = mrd_context_impl(w->node[HOST_0].context);
    struct mrd_backend_ops ops = *c->ops;

    sim_send(w, HOST_0, HOST_1, LONG_BYTES);
    sim_run_until_complete(w, SEC_NS); /* the window is open, a grant is there */
    real = c->ops;
    ops.now_ns = ticking_now_ns;
    ops.tx_burst = takes_some;
    c->ops = &ops;
    room = 0;
    sim_send(w, HOST_0, HOST_1, LONG_BYTES);
    assert_int_equal(c->outbox.count, c->outbox.batch);
    room = ROOM;
    mrd_progress_step(c, mrd_context_now(c));
    assert_true(c->outbox.count > c->outbox.first && c->outbox.built_ns > c->last_step_ns);
    mrd_progress_flush(c, c->last_step_ns);
    c->ops = real;
    assert_int_equal(c->outbox.old, 0);
    sim_run_until_complete(w, SEC_NS);
}

/* -------------------------------------------------------------------- a process that is stopped */

static bool stops, has_read_clock;
static uint64_t before_ns;

static uint64_t now_before_the_stop(struct mrd_backend *b)
{
    if (!stops)
        return real->now_ns(b);
    has_read_clock = true;
    return before_ns;
}

static unsigned stopped_in_here(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                                bool *more, mrd_plan_fn *plan, void *arg)
{
    stops = stops && !has_read_clock;
    return real->rx_burst(b, packets, max, more, plan, arg);
}

/*
 * A process is stopped while a packet that it repeats waits for the device; and the peer, who had
 * executed it and whose acks were lost, has forgotten the space by the time that it is continued.
 * The packet must not go: it would be executed again. `in_a_step`: the clock was read just before.
 */
static void stop_with_a_copy(bool in_a_step)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.no_challenge = true, .tx_burst_max = 1, .recv_bytes = SHORT_BYTES});
    struct wiretap *tap = wiretap_open(w);
    struct mrd_context_impl *c = mrd_context_impl(w->node[HOST_0].context);
    struct mrd_backend_ops ops = *c->ops;

    sim_post_recvs(w, HOST_1, 0, 4, SHORT_BYTES);
    tap->drop[HOST_1][WIRE_ACK] = WIRE_ALL;
    sim_send(w, HOST_0, HOST_1, SHORT_BYTES);
    /* The first of two copies has left, and there is room for one at a time. */
    while (wiretap_count(tap, HOST_0, WIRE_MESSAGE) < 2)
        mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + 100);
    assert_true(c->outbox.count > c->outbox.first);
    real = c->ops;
    before_ns = mrd_context_now(c);
    mrd_sim_stop_host(w->sim, HOST_0, 1);
    sim_run(w, 40 * SEC_NS);
    assert_int_equal(w->node[HOST_1].deliveries, 1);
    tap->drop[HOST_1][WIRE_ACK] = 0;
    ops.now_ns = now_before_the_stop;
    ops.rx_burst = stopped_in_here;
    stops = in_a_step;
    has_read_clock = false;
    c->ops = &ops;
    mrd_sim_stop_host(w->sim, HOST_0, 0);
    sim_run(w, 20 * SEC_NS);
    c->ops = real;
    assert_false(stops);
    test_check(w->options.seed, w->node[HOST_1].deliveries == 1, "delivered %u times",
               w->node[HOST_1].deliveries);
    assert_true(sim_counter(w, HOST_0, "tx_drop_old") > 0);
    assert_true(w->messages[0].sent);
}

TEST(sim_outbox__of_a_stopped_process)
{
    stop_with_a_copy(false);
}

TEST(sim_outbox__of_a_process_stopped_in_a_step)
{
    stop_with_a_copy(true);
}
