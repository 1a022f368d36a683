/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA contexts with progress threads: they sleep on the device's descriptors, and are woken by
 * them.
 */
#include "tests/ibv/ibv_fixture.h"
#include "tests/kit/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { ASLEEP_US = 5000 }; /* a thread that has nothing to do sleeps by then */

static struct fixture *open_threaded(enum fake_ibv_kind kind)
{
    fixture_progress = MRD_PROGRESS_THREAD;
    struct fixture *f = fixture_begin(kind, NULL);
    fixture_progress = MRD_PROGRESS_MANUAL;
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_EAGER});
    return f;
}

/* The target of writes is not called, and sleeps when each of them comes. */
TEST(mrd_ibv_thread__passive_target)
{
    struct fixture *f = open_threaded(FAKE_IBV_MLX5);

    for (unsigned i = 0; i < 50; i++) {
        usleep(ASLEEP_US);
        fixture_fill(&f->a, 0, 20000, i);
        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, i, 0, 20000, 0), 0);
        while (f->a.num_wc <= i)
            fixture_turn_one(&f->a);
        assert_int_equal(f->a.wc[i].status, MRD_WC_SUCCESS);
        assert_true(fixture_holds(&f->b, 0, 20000, i));
    }
}

/* Nobody is called: posting is all the application does. */
TEST(mrd_ibv_thread__both_asleep)
{
    struct fixture *f = open_threaded(FAKE_IBV_RXE);

    for (unsigned i = 0; i < 20; i++) {
        usleep(ASLEEP_US);
        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, i, 0, 20000, 0), 0);
        usleep(8 * ASLEEP_US);
        while (f->a.num_wc <= i)
            fixture_turn_one(&f->a);
        assert_int_equal(f->a.wc[i].status, MRD_WC_SUCCESS);
    }
}

TEST(mrd_ibv_thread__transfers)
{
    static const struct fake_ibv_knobs knobs[] = {
        {.pace = FAKE_IBV_EAGER},
        {.pace = FAKE_IBV_EAGER, .drop_ppm = 10000, .reorder_ppm = 50000, .dup_ppm = 10000},
        {.pace = FAKE_IBV_LAZY, .drop_ppm = 10000, .late_ppm = 500000, .post_takes = 3},
    };

    for (unsigned k = 0; k < 3; k++) {
        struct fixture *f = open_threaded(k % 2 ? FAKE_IBV_RXE : FAKE_IBV_MLX5);

        fake_ibv_set(&knobs[k]);
        for (unsigned i = 0; i < 5; i++) {
            fixture_transfer(f, MRD_WR_SEND, 30000, 50);
            fixture_transfer(f, MRD_WR_RDMA_WRITE_WITH_IMM, 500, 100);
        }
        fixture_end(f);
    }
}

/*
 * A thread that sleeps hears of the port; a broken queue pair is brought back without anybody
 * asking.
 */
TEST(mrd_ibv_thread__events)
{
    struct fixture *f = open_threaded(FAKE_IBV_MLX5);
    struct pollfd fd = {.fd = f->a.context->async_fd, .events = POLLIN};
    struct mrd_async_event event;

    usleep(ASLEEP_US);
    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ERR, 1);
    assert_int_equal(poll(&fd, 1, -1), 1);
    assert_int_equal(mrd_get_async_event(f->a.context, &event), 0);
    assert_int_equal(event.event_type, MRD_EVENT_PORT_ERR);
    mrd_ack_async_event(&event);
    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ACTIVE, 1);
    assert_true(fake_ibv_break_qp(f->device[0], fake_ibv_qpn(f->device[0], 0)));
    assert_true(fake_ibv_break_qp(f->device[1], fake_ibv_qpn(f->device[1], 0)));
    fixture_transfer(f, MRD_WR_SEND, 30000, 50);
    fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
    for (unsigned i = 0; i < 2; i++) { /* the port's return is still to be told */
        assert_int_equal(poll(&fd, 1, -1), 1);
        assert_int_equal(mrd_get_async_event(f->a.context, &event), 0);
        mrd_ack_async_event(&event);
    }
    assert_int_equal(event.event_type, MRD_EVENT_DEVICE_FATAL);
    usleep(ASLEEP_US); /* a thread whose device is gone sleeps, too */
}

/* ---------------------------------------------------------------------------- completion channels */

/* A channel of that end's context; mrd_get_cq_event() does not wait for its events. */
static struct mrd_comp_channel *open_channel(struct fixture_end *end)
{
    struct mrd_comp_channel *channel = mrd_create_comp_channel(end->context);

    assert_non_null(channel);
    assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
    return channel;
}

static void no_event(struct mrd_comp_channel *channel)
{
    struct mrd_cq *cq;
    void *context;

    assert_int_equal(mrd_get_cq_event(channel, &cq, &context), -EAGAIN);
}

static bool is_readable(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};

    return poll(&at, 1, 0) == 1;
}

/*
 * Who asked sleeps until the answer comes. It wakes for the ack, which completes nothing, and for
 * the answer after it.
 */
TEST(mrd_ibv_channel__packet_after_packet)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);
    struct mrd_comp_channel *channel = open_channel(&f->a);
    int fd = mrd_context_fd(f->a.context);

    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_EAGER});
    fixture_transfer(f, MRD_WR_RDMA_WRITE, 500, 20);
    fixture_pass(f, 10000000);
    for (unsigned i = 0; i < 8; i++) {
        unsigned received = fake_ibv_num_received();

        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, i, 0, 500, 0), 0);
        while (fake_ibv_num_received() == received)
            fixture_turn_one(&f->a);
        while (is_readable(fd))
            no_event(channel);
        while (!is_readable(fd))
            fixture_turn_one(&f->b);
        no_event(channel);
        received = fake_ibv_num_received();
        assert_int_equal(fixture_post(&f->b, &f->a, MRD_WR_RDMA_WRITE, i, 0, 500, 0), 0);
        while (fake_ibv_num_received() == received)
            fixture_turn_one(&f->b);
        assert_true(is_readable(fd));
        fixture_pass(f, 1000000);
    }
    assert_int_equal(mrd_destroy_comp_channel(channel), 0);
}

/* Who sleeps when the device is gone goes on sleeping. */
TEST(mrd_ibv_channel__device_gone)
{
    for (unsigned threaded = 0; threaded < 2; threaded++) {
        struct fixture *f =
            threaded ? open_threaded(FAKE_IBV_MLX5) : fixture_begin(FAKE_IBV_MLX5, NULL);
        struct mrd_comp_channel *channel = open_channel(&f->a);
        struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
        unsigned wakeups = 0;

        fixture_transfer(f, MRD_WR_SEND, 500, 20);
        fake_ibv_raise(f->device[0], IBV_EVENT_DEVICE_FATAL, 1);
        no_event(channel);
        fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ERR, 1); /* nobody asks for it any more */
        for (unsigned i = 0; i < 50; i++) {
            wakeups += poll(&fd, 1, 10) == 1;
            no_event(channel);
        }
        assert_true(wakeups < 25);
        assert_int_equal(mrd_destroy_comp_channel(channel), 0);
        fixture_end(f);
    }
}

struct registrar {
    struct fixture *f;
    atomic_bool stop;
};

static void *register_memory(void *arg)
{
    struct registrar *r = arg;
    static uint8_t memory[65536];

    do {
        struct mrd_mr *mr = mrd_reg_mr(r->f->a.pd, memory, sizeof(memory), MRD_ACCESS_LOCAL_WRITE);

        if (!mr || mrd_dereg_mr(mr))
            abort();
    } while (!atomic_load(&r->stop));
    return NULL;
}

/* Memory comes and goes while messages do. */
TEST(mrd_ibv_thread__registers_meanwhile)
{
    struct fixture *f = open_threaded(FAKE_IBV_MLX5);
    struct registrar r = {.f = f};
    pthread_t thread;

    atomic_init(&r.stop, false);
    assert_int_equal(pthread_create(&thread, NULL, register_memory, &r), 0);
    for (unsigned i = 0; i < 20; i++)
        fixture_transfer(f, MRD_WR_SEND, 30000, 50);
    atomic_store(&r.stop, true);
    pthread_join(thread, NULL);
}
