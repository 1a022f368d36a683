/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong at an RDMA device while it is used: queue pairs in error, a port that goes,
 * failing calls.
 */
#include "tests/ibv/ibv_fault.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "transport/context.h"

/* ------------------------------------------------------------------------- queue pairs in error */

/* A queue pair that fails at either end is brought back, and what it held is sent again. */
TEST(mrd_ibv_qp_revive__any_of_them)
{
    static const struct {
        enum fake_ibv_kind kind;
        const char *entropy;
        bool srq;
    } rows[] = {
        {FAKE_IBV_MLX5, "ah", true},    {FAKE_IBV_MLX5, "ah", false},
        {FAKE_IBV_RXE, "qp", true},     {FAKE_IBV_RXE, "qp", false},
        {FAKE_IBV_MLX5, "qpair", true}, {FAKE_IBV_MLX5, "qpair", false},
    };

    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct fixture *f = open_pair(rows[r].kind, rows[r].entropy, rows[r].srq);

        fixture_transfer(f, MRD_WR_SEND, 1000, 4);
        for (unsigned round = 0; round < 12; round++) {
            struct fake_ibv_device *device = f->device[round % 2];
            uint32_t qpn = fake_ibv_qpn(device, round / 2);

            start_writes(f, 30, 50000);
            fixture_turn_times(f, 3);
            if (!qpn)
                qpn = fake_ibv_qpn(device, 0);
            assert_true(fake_ibv_break_qp(device, qpn));
            finish_writes(f, 30, 50000);
        }
        assert_int_equal(fixture_counter(f->a.context, "peers_unreachable"), 0);
        fixture_end(f);
    }
}

/*
 * A queue pair that cannot be brought back, the only one: the peer is unreachable, and closing
 * still works.
 */
TEST(mrd_ibv_qp_revive__fails)
{
    struct fixture *f = open_impatient();

    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    start_writes(f, 4, 50000);
    fake_ibv_fail("ibv_modify_qp", 0, EIO);
    assert_true(fake_ibv_break_qp(f->device[0], fake_ibv_qpn(f->device[0], 0)));
    assert_true(fixture_run(f, 4, 0));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(f->a.wc[i].status, MRD_WC_RETRY_EXC_ERR);
}

/* --------------------------------------------------------------------------------------- events */

/* The application is told, with our own address; traffic goes on when the port is back. */
TEST(mrd_get_async_event__port)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct mrd_async_event event;
    struct pollfd fd = {.fd = f->a.context->async_fd, .events = POLLIN};
    char own[MRD_ADDRESS_MAX];

    assert_int_equal(mrd_query_address(f->a.context, own, sizeof(own)), 0);
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ERR, 1);
    start_writes(f, 4, 50000);
    assert_true(next_event(f, &event));
    assert_int_equal(event.event_type, MRD_EVENT_PORT_ERR);
    assert_string_equal(event.address, own);
    assert_int_equal(poll(&fd, 1, 0), 0);
    fixture_pass(f, 20 * MSEC_NS);
    assert_int_equal(f->a.num_wc, 0);
    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ACTIVE, 1);
    assert_true(next_event(f, &event));
    assert_int_equal(event.event_type, MRD_EVENT_PORT_ACTIVE);
    finish_writes(f, 4, 50000);
}

/* Events that mean nothing to the application are not shown to it; nor those of another port. */
TEST(mrd_get_async_event__others)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct mrd_async_event event;

    fake_ibv_raise(f->device[0], IBV_EVENT_PORT_ERR, 2);
    fake_ibv_raise(f->device[0], IBV_EVENT_GID_CHANGE, 1);
    fake_ibv_raise(f->device[0], IBV_EVENT_CLIENT_REREGISTER, 1);
    fake_ibv_raise(f->device[0], IBV_EVENT_SRQ_LIMIT_REACHED, 0);
    assert_false(next_event(f, &event));
    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
}

/* ------------------------------------------------------------------------------ calls that fail */

/*
 * A post that the device will never take loses its packets; those before it in the list were
 * posted.
 */
TEST(mrd_ibv_tx_burst__post_fails)
{
    static const int errors[] = {EINVAL, EIO, EAGAIN, ENOMEM};

    for (unsigned takes = 1; takes < 9; takes++) {
        for (unsigned e = 0; e < 4; e++) {
            struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

            fixture_transfer(f, MRD_WR_SEND, 1000, 4);
            start_writes(f, 10, 50000);
            fake_ibv_set(&(struct fake_ibv_knobs){.post_takes = takes, .post_error = errors[e]});
            fixture_pass(f, 2 * MSEC_NS);
            fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
            finish_writes(f, 10, 50000);
            fixture_end(f);
        }
    }
}

/*
 * What a failed post left without a completion of its own: nothing is sent after it on that queue
 * pair, and still it completes.
 */
TEST(mrd_ibv_tx_burst__last_of_a_list_fails)
{
    struct fixture *f = open_pair(FAKE_IBV_RXE, "qp", true);
    const uint32_t payload = 3968;

    fixture_transfer(f, MRD_WR_SEND, 1000, 4);
    for (unsigned takes = 1; takes < 8; takes++) {
        start_writes(f, 1, payload * 32);
        fake_ibv_set(&(struct fake_ibv_knobs){.post_takes = takes, .post_error = EINVAL});
        finish_writes(f, 1, payload * 32);
    }
}

TEST(mrd_ibv_tx_burst__no_handle)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    for (unsigned i = 0; i < 10; i++) {
        fake_ibv_fail("ibv_create_ah", 1 + i % 3, ETIMEDOUT);
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 50000, 4);
    }
    (void)fake_ibv_fail_none();
}

TEST(mrd_ibv__polls_and_receives_fail)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    for (unsigned i = 0; i < 20; i++) {
        fake_ibv_fail("ibv_poll_cq", 1 + i, EIO);
        fake_ibv_fail("ibv_post_srq_recv", 1 + i % 3, ENOMEM);
        fixture_transfer(f, MRD_WR_SEND, 50000, 4);
        (void)fake_ibv_fail_none();
    }
}

/* --------------------------------------------------------------------------------------- memory */

struct dereg {
    struct fixture *f;
    int result;
};

static void *dereg_thread(void *arg)
{
    struct dereg *d = arg;

    d->result = mrd_dereg_mr(d->f->a.mr);
    return NULL;
}

/* Deregistering waits until the device has let go of the memory. */
TEST(mrd_dereg_mr__waits_for_the_device)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct dereg d = {.f = f, .result = 1};
    pthread_t thread;

    fixture_transfer(f, MRD_WR_RDMA_WRITE, 100, 1);
    start_writes(f, 1, 50000);
    fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
    fixture_turn_times(f, 3);
    assert_int_equal(pthread_create(&thread, NULL, dereg_thread, &d), 0);
    usleep(50000);
    assert_int_equal(fake_ibv_calls("ibv_dereg_mr"), 0);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    pthread_join(thread, NULL);
    assert_int_equal(d.result, 0);
    f->a.mr = NULL;
    assert_int_equal(fake_ibv_calls("ibv_dereg_mr"), 1);
    assert_true(fixture_run(f, 1, 0));
}

/* Only so long: then it is busy, and can be tried again. */
TEST(mrd_dereg_mr__device_never_lets_go)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    fixture_transfer(f, MRD_WR_RDMA_WRITE, 100, 1);
    start_writes(f, 1, 50000);
    fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
    fixture_turn(f);
    assert_int_equal(mrd_dereg_mr(f->a.mr), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "still reads"));
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    finish_writes(f, 1, 50000);
}

/*
 * A post that failed half-way leaves packets without a completion of their own: deregistering ends
 * all the same.
 */
TEST(mrd_dereg_mr__after_a_partial_post)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);

    fixture_transfer(f, MRD_WR_RDMA_WRITE, 300000, 4);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_MANUAL});
    start_writes(f, 1, 40000);
    (void)mrd_progress(f->a.context);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_MANUAL, .post_total = 3});
    assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, 1, 0, 40000, 0), 0);
    (void)mrd_progress(f->a.context);
    assert_true(mrd_context_impl(f->a.context)->outbox.partial > 0);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    assert_int_equal(mrd_dereg_mr(f->a.mr), 0);
    f->a.mr = NULL;
    assert_true(fixture_run(f, 2, 0));
}

/* --------------------------------------------------------------------------------- close, sleep */

/* Whatever is under way: closing leaves nothing behind. */
TEST(mrd_close_device__in_the_middle)
{
    for (unsigned i = 0; i < 24; i++) {
        struct fixture *f =
            open_pair(i % 2 ? FAKE_IBV_MLX5 : FAKE_IBV_RXE, fixture_entropies[i % 3], i % 4);
        struct fake_ibv_knobs knobs = {.drop_ppm = i % 5 == 0 ? 1000000 : 10000};

        fixture_transfer(f, MRD_WR_SEND, 1000, 4);
        fake_ibv_set(&knobs);
        start_writes(f, 30, 50000);
        for (unsigned turn = 0; turn < i; turn++)
            fixture_turn(f);
        if (i % 7 == 3)
            fake_ibv_break_qp(f->device[0], fake_ibv_qpn(f->device[0], 0));
        fixture_end(f);
    }
}

/* The descriptor is readable when a packet came, and no packet is slept through. */
TEST(mrd_context_fd__tells_of_packets)
{
    struct fixture *f = open_pair(FAKE_IBV_MLX5, "ah", true);
    struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};

    fds[0].fd = mrd_context_fd(f->a.context);
    fds[1].fd = mrd_context_fd(f->b.context);
    fixture_transfer(f, MRD_WR_RDMA_WRITE, 1000, 4);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_EAGER});
    for (unsigned i = 0; i < 50; i++) {
        unsigned slept = 0;

        fixture_pass(f, MSEC_NS);
        assert_int_equal(poll(fds, 2, 0), 0);
        f->a.num_wc = 0;
        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_RDMA_WRITE, 0, 0, 1000, 0), 0);
        while (!f->a.num_wc) {
            uint64_t a = mrd_next_timeout_ns(f->a.context), b = mrd_next_timeout_ns(f->b.context);
            uint64_t least = a < b ? a : b;

            if (poll(fds, 2, least == UINT64_MAX ? 1000 : (int)(least / MSEC_NS)) == 0)
                slept++;
            fixture_turn(f);
        }
        assert_true(slept < 100);
    }
}
