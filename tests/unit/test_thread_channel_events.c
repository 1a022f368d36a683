/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels whose descriptor is readable only while there is an event. */
#include "tests/unit/channel_fixture.h"

static bool is_readable(const struct mrd_comp_channel *channel)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* Packets come all the time, and wake nobody: they complete nothing here. */
TEST_F_WITH(channels, channel_events__packets_do_not_wake,
            self->flags = MRD_COMP_CHANNEL_EVENTS_ONLY)
{
    enum { WRITES = 200, SPACE = 64 * 1024 };
    struct mrd_send_wr *bad;
    struct long_write w;
    struct mrd_comp_channel *channel = self->b.q[0].channel;
    struct mrd_cq *cq;
    struct mrd_wc wc;
    void *context;

    never_block(channel);
    long_write_begin(self, &w, MRD_WR_RDMA_WRITE, SPACE);
    post_receive(&self->b, 0, 0);
    assert_int_equal(mrd_req_notify_cq(self->b.q[0].cq, 0), 0);
    for (unsigned i = 0; i < WRITES; i++) {
        assert_int_equal(mrd_post_send(self->a.q[0].qp, &w.wr, &bad), 0);
        while (!mrd_poll_cq(self->a.q[0].cq, 1, &wc))
            assert_false(is_readable(channel));
        assert_int_equal(wc.status, MRD_WC_SUCCESS);
        assert_int_equal(mrd_get_cq_event(channel, &cq, &context), -EAGAIN);
    }
    post_send(&self->a, &self->b, 0, 0);
    while (!is_readable(channel))
        mrd_progress(self->a.context);
    assert_int_equal(mrd_get_cq_event(channel, &cq, &context), 0);
    assert_ptr_equal(cq, self->b.q[0].cq);
    mrd_ack_cq_events(cq, 1);
    assert_false(is_readable(channel));
    assert_int_equal(mrd_poll_cq(cq, 1, &wc), 1);
    long_write_end(&w);
}

/* Whoever finds it readable finds an event; and none is missed. */
TEST_F_WITH(channels, channel_events__no_wakeup_in_vain, self->flags = MRD_COMP_CHANNEL_EVENTS_ONLY)
{
    struct sleeper sleepers[2 * QUEUES];

    play(self, sleepers);
    for (unsigned i = 0; i < 2 * QUEUES; i++)
        assert_int_equal(sleepers[i].in_vain, 0);
}

/* As above, while another thread drives the loop and then goes away, again and again. */
static void *come_and_go(void *arg)
{
    struct channels *f = arg;

    while (!atomic_load(&f->over)) {
        for (unsigned i = 0; i < 10; i++) {
            mrd_progress(f->a.context);
            mrd_progress(f->b.context);
        }
        usleep(2000);
    }
    return NULL;
}

TEST_F_WITH(channels, channel_events__beside_who_comes_and_goes,
            self->flags = MRD_COMP_CHANNEL_EVENTS_ONLY)
{
    struct sleeper sleepers[2 * QUEUES];
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, come_and_go, self), 0);
    play(self, sleepers);
    atomic_store(&self->over, true);
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < 2 * QUEUES; i++)
        assert_int_equal(sleepers[i].in_vain, 0);
}

/* A queue goes with an event that nobody took: there is none any more. */
TEST_F_WITH(channels, channel_events__queue_goes_with_its_event,
            self->flags = MRD_COMP_CHANNEL_EVENTS_ONLY)
{
    const struct mrd_qp_attr err = {.qp_state = MRD_QPS_ERR};
    struct mrd_comp_channel *channel = self->b.q[0].channel;
    struct mrd_qp *qp = self->b.q[0].qp;
    struct mrd_cq *cq;
    struct mrd_wc wc;
    void *context;

    never_block(channel);
    assert_int_equal(mrd_req_notify_cq(self->b.q[0].cq, 0), 0);
    post_receive(&self->b, 0, 0);
    assert_int_equal(mrd_modify_qp(qp, &err, MRD_QP_STATE), 0);
    assert_true(is_readable(channel));
    assert_int_equal(mrd_poll_cq(self->b.q[0].cq, 1, &wc), 1);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(self->b.q[0].cq), 0);
    assert_false(is_readable(channel));
    assert_int_equal(mrd_get_cq_event(channel, &cq, &context), -EAGAIN);
    assert_int_equal(mrd_destroy_comp_channel(channel), 0);
    open_queue(&self->b, 0, MRD_COMP_CHANNEL_EVENTS_ONLY);
}

TEST(mrd_create_comp_channel_ex__refuses)
{
    static const struct {
        enum mrd_progress progress;
        struct mrd_comp_channel_init_attr attr;
        int error;
    } table[] = {
        {MRD_PROGRESS_MANUAL, {.flags = MRD_COMP_CHANNEL_EVENTS_ONLY}, EOPNOTSUPP},
        {MRD_PROGRESS_THREAD, {.flags = 2}, EINVAL},
        {MRD_PROGRESS_THREAD, {.comp_mask = 1}, EINVAL},
    };

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_context *context =
            mrd_open_device(NULL, &(struct mrd_context_attr){.address = "127.0.0.1",
                                                             .progress = table[i].progress});

        assert_non_null(context);
        refused(mrd_create_comp_channel_ex(context, &table[i].attr), table[i].error, "");
        assert_int_equal(mrd_close_device(context), 0);
    }
}
