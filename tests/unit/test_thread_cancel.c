/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that pthread_cancel() ends in a call of the library: others go on, and all is given back. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "mrd/mrd.h"
#include "tests/kit/kit.h"

enum { ROUNDS = 20, PATIENCE_S = 10 };

FIXTURE(world)
{
    struct mrd_context *context;
    struct mrd_comp_channel *channel;
    struct mrd_cq *cq;
    atomic_bool go;
};

FIXTURE_SETUP(world)
{
    self->context =
        mrd_open_device(NULL, &(struct mrd_context_attr){.comp_mask = MRD_CONTEXT_ATTR_CHALLENGE,
                                                         .address = "127.0.0.1",
                                                         .paths = 2,
                                                         .max_peers = 16});
    assert_non_null(self->context);
    self->channel = mrd_create_comp_channel(self->context);
    assert_non_null(self->channel);
    self->cq = mrd_create_cq_ex(self->context,
                                &(struct mrd_cq_init_attr){.cqe = 4, .channel = self->channel});
    assert_non_null(self->cq);
    alarm(PATIENCE_S); /* a lock that is lost stops everything */
}

FIXTURE_TEARDOWN(world)
{
    assert_int_equal(mrd_destroy_cq(self->cq), 0);
    assert_int_equal(mrd_destroy_comp_channel(self->channel), 0);
    assert_int_equal(mrd_close_device(self->context), 0);
    alarm(0);
}

static void end(pthread_t thread)
{
    void *result;

    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

static void *wait_for_event(void *arg)
{
    struct world *w = arg;
    struct mrd_cq *cq;
    void *context;

    mrd_get_cq_event(w->channel, &cq, &context);
    return NULL;
}

/* As programs end the thread that waits for events. */
TEST_F(world, mrd_get_cq_event__cancelled_while_it_waits)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, wait_for_event, self), 0);
        do {
            sched_yield();
            assert_int_equal(mrd_destroy_comp_channel(self->channel), -EBUSY);
        } while (!strstr(mrd_last_error(), "1 threads wait"));
        assert_int_equal(pthread_cancel(thread), 0);
        end(thread);
        /* Nobody waits any more: only its queue keeps the channel. */
        assert_int_equal(mrd_destroy_comp_channel(self->channel), -EBUSY);
        assert_null(strstr(mrd_last_error(), "threads wait"));
    }
}

static void *wait_when_cancelled(void *arg)
{
    struct world *w = arg;

    while (!atomic_load(&w->go))
        sched_yield();
    return wait_for_event(w);
}

TEST_F(world, mrd_get_cq_event__cancelled_before)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wait_when_cancelled, self), 0);
    assert_int_equal(pthread_cancel(thread), 0);
    atomic_store(&self->go, true);
    end(thread);
}
