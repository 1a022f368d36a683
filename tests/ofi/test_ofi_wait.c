/* SPDX-License-Identifier: BSD-2-Clause */
/* Who sleeps wakes up: queues, counters and their descriptors. */
#include "pair.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LATE_MS = 200, /* when it comes that somebody sleeps for */
    LONG_MS = END_PATIENCE_S * 1000,
    SLEEPERS = 4,
};

static const struct end_options waiting = {.wait = FI_WAIT_FD};

static uint64_t cpu_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ----------------------------------------------------------------------------- a thread that sends */

/* After a while, to b; meanwhile the test sleeps. Its end is driven by nobody else. */
struct sender {
    struct end *end;
    pthread_t thread;
    unsigned num;
    bool late;
};

static void *send_late(void *arg)
{
    struct sender *s = arg;
    struct entry entry;

    if (s->late)
        end_sleep_ms(LATE_MS);
    for (unsigned i = 0; i < s->num; i++) {
        while (fi_send(s->end->ep, "x", 1, NULL, s->end->to, NULL) == -FI_EAGAIN)
            (void)fi_cq_read(s->end->tx, NULL, 0);
        while (!end_take(s->end->tx, &entry))
            end_sleep_ms(1);
    }
    return NULL;
}

static void sender_start(struct sender *s, struct end *end, unsigned num, bool late)
{
    *s = (struct sender){.end = end, .num = num, .late = late};
    assert_int_equal(pthread_create(&s->thread, NULL, send_late, s), 0);
}

static void sender_join(struct sender *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
}

/* --------------------------------------------------------------------------------- completion queues */

/* It sleeps, and does not turn. */
TEST_F(pair, ofi_wait__sread_wakes_by_a_message)
{
    struct fi_cq_tagged_entry entry;
    uint64_t used_ns;
    struct sender s;
    fi_addr_t src;
    char in[8];

    pair_open(self, &waiting);
    for (unsigned i = 0; i < 3; i++) {
        POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &s));
        used_ns = cpu_ns();
        sender_start(&s, &self->a, 1, true);
        assert_int_equal(fi_cq_sreadfrom(self->b.rx, &entry, 1, &src, NULL, i ? LONG_MS : -1), 1);
        used_ns = cpu_ns() - used_ns;
        assert_ptr_equal(entry.op_context, &s);
        assert_int_equal(src, self->b.to);
        assert_true(used_ns < LATE_MS * 1000000ull * 3 / 4);
        sender_join(&s);
    }
}

/* More is complete than is dealt with at a time, and the queue is not told of it: the message is last. */
TEST_F(pair, ofi_wait__sread_behind_what_others_are_told)
{
    enum { NUM = 1500 };
    struct fi_cq_tagged_entry entry;
    char in[8];

    pair_open_each(self, &waiting, &(struct end_options){.progress = FI_PROGRESS_AUTO});
    POST(fi_recv(self->a.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    for (unsigned i = 0; i < NUM; i++)
        POST(fi_inject(self->a.ep, "x", 1, self->a.to));
    end_sleep_ms(LATE_MS);
    POST(fi_inject(self->b.ep, "y", 1, self->b.to));
    end_sleep_ms(LATE_MS);
    assert_int_equal(fi_cq_sread(self->a.rx, &entry, 1, NULL, LONG_MS), 1);
    assert_ptr_equal(entry.op_context, in);
}

TEST_F(end, ofi_wait__sread_for_a_time)
{
    struct fi_cq_tagged_entry entry;
    uint64_t start_ns = end_now_ns();

    end_open(self, &waiting, NULL);
    assert_int_equal(fi_cq_sread(self->rx, &entry, 1, NULL, LATE_MS), -FI_EAGAIN);
    assert_true(end_now_ns() - start_ns >= (LATE_MS - 1) * 1000000ull);
    assert_int_equal(fi_cq_sread(self->rx, &entry, 1, NULL, 0), -FI_EAGAIN);
}

TEST_F(end, ofi_wait__sread_of_a_queue_without)
{
    struct fi_cq_tagged_entry entry;

    end_open(self, &(struct end_options){0}, NULL);
    assert_int_equal(fi_cq_sread(self->rx, &entry, 1, NULL, 0), -FI_ENOSYS);
}

struct sleeper {
    struct fid_cq *cq;
    pthread_t thread;
    ssize_t result;
};

static void *sread(void *arg)
{
    struct sleeper *s = arg;
    struct fi_cq_tagged_entry entry;

    s->result = fi_cq_sread(s->cq, &entry, 1, NULL, LONG_MS);
    return NULL;
}

/* Each of several threads gets one. */
TEST_F(pair, ofi_wait__several_sleep_on_one_queue)
{
    struct sleeper sleeper[SLEEPERS];
    struct sender s;
    char in[8];

    pair_open(self, &waiting);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
        sleeper[i] = (struct sleeper){.cq = self->b.rx};
        assert_int_equal(pthread_create(&sleeper[i].thread, NULL, sread, &sleeper[i]), 0);
    }
    sender_start(&s, &self->a, SLEEPERS, true);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        assert_int_equal(pthread_join(sleeper[i].thread, NULL), 0);
        assert_int_equal(sleeper[i].result, 1);
    }
    sender_join(&s);
}

TEST_F(end, ofi_wait__signal_wakes_a_reader)
{
    end_open(self, &waiting, NULL);
    struct sleeper sleeper = (struct sleeper){.cq = self->rx};
    assert_int_equal(pthread_create(&sleeper.thread, NULL, sread, &sleeper), 0);
    end_sleep_ms(LATE_MS / 2);
    assert_int_equal(fi_cq_signal(self->rx), 0);
    assert_int_equal(pthread_join(sleeper.thread, NULL), 0);
    assert_int_equal(sleeper.result, -FI_EAGAIN);
}

/* The reader waits for several entries at once. */
TEST_F(pair, ofi_wait__threshold_of_a_queue)
{
    enum { NUM = 3 };
    struct fi_cq_tagged_entry entry[NUM];
    struct fi_cq_attr attr = {
        .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD, .wait_cond = FI_CQ_COND_THRESHOLD};
    struct end *a = &self->a, *b = &self->b;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct sender s;
    char in[8];

    pair_open(self, &waiting);
    assert_int_equal(fi_cq_open(b->domain, &attr, &cq, NULL), 0);
    assert_int_equal(fi_endpoint(b->domain, b->info, &ep, NULL), 0);
    assert_int_equal(fi_ep_bind(ep, &b->av->fid, 0), 0);
    assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_enable(ep), 0);
    struct sockaddr_in name = end_name(ep);
    assert_int_equal(fi_av_insert(a->av, &name, 1, &a->to, 0, NULL), 1);
    for (unsigned i = 0; i < NUM; i++)
        POST(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
    sender_start(&s, a, NUM, true);
    assert_int_equal(fi_cq_sread(cq, entry, NUM, (void *)(uintptr_t)NUM, LONG_MS), NUM);
    sender_join(&s);
    assert_int_equal(fi_close(&ep->fid), 0);
    assert_int_equal(fi_close(&cq->fid), 0);
}

/* ------------------------------------------------------------------------------------- descriptors */

/* Sleeps on the descriptor until a read gives an entry. Returns how often it slept. */
static unsigned poll_until(struct end *e, struct fid *fid, struct fid_cq *cq,
                           struct fi_cq_tagged_entry *entry)
{
    uint64_t since_ns = end_now_ns();
    struct pollfd fd = {.events = POLLIN};
    unsigned slept = 0;

    assert_int_equal(fi_control(fid, FI_GETWAIT, &fd.fd), 0);
    while (fi_cq_read(cq, entry, 1) == -FI_EAGAIN) {
        end_patience(since_ns);
        if (fi_trywait(e->fabric, &fid, 1) == -FI_EAGAIN)
            continue;
        assert_int_equal(poll(&fd, 1, LONG_MS), 1);
        slept++;
    }
    return slept;
}

TEST_F(pair, ofi_wait__descriptor_of_a_queue)
{
    struct fi_cq_tagged_entry entry;
    uint64_t used_ns;
    struct sender s;
    char in[8];
    int rx;

    pair_open(self, &waiting);
    for (unsigned i = 0; i < 20; i++) {
        POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
        used_ns = cpu_ns();
        sender_start(&s, &self->a, 1, i < 2);
        if (poll_until(&self->b, &self->b.rx->fid, self->b.rx, &entry) == 0)
            assert_true(i >= 2);
        assert_ptr_equal(entry.op_context, &rx);
        if (i < 2)
            assert_true(cpu_ns() - used_ns < LATE_MS * 1000000ull * 3 / 4);
        sender_join(&s);
    }
}

/* What is in the queue already is not slept for. */
TEST_F(pair, ofi_wait__trywait_of_a_queue_with_an_entry)
{
    struct fi_cq_tagged_entry entry;
    char in[8];
    int rx;

    pair_open(self, &waiting);
    struct fid *fid = &self->b.rx->fid;
    assert_int_equal(fi_trywait(self->b.fabric, &fid, 1), 0);
    POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_inject(self->a.ep, "x", 1, self->a.to));
    ends_drive_for(LATE_MS);
    assert_int_equal(fi_trywait(self->b.fabric, &fid, 1), -FI_EAGAIN);
    assert_int_equal(fi_cq_read(self->b.rx, &entry, 1), 1);
}

/* ----------------------------------------------------------------------------------------- counters */

TEST_F(pair, ofi_wait__counter_until_its_threshold)
{
    enum { NUM = 5 };
    struct end_options o = waiting;
    struct sender s;
    char in[8];

    o.counts = FI_SEND | FI_RECV;
    pair_open(self, &o);
    struct fid_cntr *cntr = end_cntr(&self->b, FI_RECV);
    for (unsigned i = 0; i < NUM; i++)
        POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
    assert_int_equal(fi_cntr_wait(cntr, 1, LATE_MS / 4), -FI_ETIMEDOUT);
    uint64_t used_ns = cpu_ns();
    sender_start(&s, &self->a, NUM, true);
    assert_int_equal(fi_cntr_wait(cntr, NUM, LONG_MS), 0);
    assert_true(cpu_ns() - used_ns < LATE_MS * 1000000ull * 3 / 4);
    assert_int_equal(fi_cntr_read(cntr), NUM);
    sender_join(&s);
    assert_int_equal(fi_cntr_wait(cntr, NUM, -1), 0);
    assert_int_equal(fi_cntr_read(end_cntr(&self->a, FI_SEND)), NUM);

    /* An error ends the wait, too. */
    POST(fi_recv(self->b.ep, in, 0, NULL, FI_ADDR_UNSPEC, NULL));
    sender_start(&s, &self->a, 1, true);
    assert_int_equal(fi_cntr_wait(cntr, NUM + 1, LONG_MS), -FI_EAVAIL);
    assert_int_equal(fi_cntr_readerr(cntr), 1);
    sender_join(&s);
}

static void *add_late(void *arg)
{
    end_sleep_ms(LATE_MS / 2);
    assert_int_equal(fi_cntr_add(arg, 3), 0);
    return NULL;
}

static void *set_late(void *arg)
{
    end_sleep_ms(LATE_MS / 2);
    assert_int_equal(fi_cntr_set(arg, 100), 0);
    return NULL;
}

TEST_F(end, ofi_wait__counter_that_the_application_sets)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    struct fid_cntr *cntr;
    pthread_t thread;

    end_open(self, &waiting, NULL);
    assert_int_equal(fi_cntr_open(self->domain, &attr, &cntr, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, add_late, cntr), 0);
    assert_int_equal(fi_cntr_wait(cntr, 3, LONG_MS), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, set_late, cntr), 0);
    assert_int_equal(fi_cntr_wait(cntr, 100, LONG_MS), 0);
    assert_int_equal(fi_cntr_read(cntr), 100);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(fi_cntr_seterr(cntr, 4), 0);
    assert_int_equal(fi_cntr_adderr(cntr, 1), 0);
    assert_int_equal(fi_cntr_readerr(cntr), 5);
    assert_int_equal(fi_close(&cntr->fid), 0);
}
