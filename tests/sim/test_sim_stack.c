/* SPDX-License-Identifier: BSD-2-Clause */
/* Other transports on simulated hosts: a host belongs to a context or to a stack, not to both. */
#include <errno.h>

#include "mrd/sim.h"
#include "tests/kit/kit.h"
#include "transport/movers/sim/sim_stack.h"

enum { HOST = 1, WAKE_NS = 1000, END_NS = 1000000 };

struct ticker {
    struct mrd_sim *sim;
    unsigned fired, received;
};

static void ticker_receive(void *arg, struct mrd_sim_packet *packet)
{
    struct ticker *t = arg;

    t->received++;
    mrd_sim_stack_release(t->sim, packet);
}

static void ticker_timer(void *arg)
{
    struct ticker *t = arg;

    t->fired++;
}

static const struct mrd_sim_stack_ops ops = {.receive = ticker_receive, .timer = ticker_timer};

static void begin(struct ticker *t)
{
    *t = (struct ticker){.sim = mrd_sim_create(NULL)};
    assert_non_null(t->sim);
    assert_int_equal(mrd_sim_stack_attach(t->sim, HOST, &ops, t), 0);
}

static void end(struct ticker *t)
{
    mrd_sim_stack_detach(t->sim, HOST);
    mrd_sim_destroy(t->sim);
}

/* As a stack is refused where a context is open, so is a context where a stack is. */
TEST(mrd_open_device__stack_has_the_host)
{
    struct ticker t;

    begin(&t);
    struct mrd_context *context = mrd_open_device(mrd_sim_device(t.sim, HOST), NULL);
    int error = errno;
    if (context)
        mrd_close_device(context);
    end(&t);
    assert_null(context);
    assert_int_equal(error, EBUSY);
}

/* A context that comes and goes does not take the stack's timer with it. */
TEST(mrd_sim_stack_wake__context_came_and_went)
{
    struct ticker t;

    begin(&t);
    mrd_sim_stack_wake(t.sim, HOST, WAKE_NS);
    struct mrd_context *context = mrd_open_device(mrd_sim_device(t.sim, HOST), NULL);
    if (context)
        mrd_close_device(context);
    mrd_sim_run_until(t.sim, END_NS);
    end(&t);
    assert_int_equal(t.fired, 1);
}
