/* SPDX-License-Identifier: BSD-2-Clause */
/* Many that wait: threads with times of their own, descriptors that tell of edges, poll sets. */
#include "pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { THREADS = 6, EACH = 100, LONG_MS = END_PATIENCE_S * 1000 };

static const struct end_options waiting = {.wait = FI_WAIT_FD, .threading = FI_THREAD_SAFE};

/* ------------------------------------------------------------------------- threads at one queue */

struct reader {
    struct fid_cq *cq;
    pthread_t thread;
    int timeout_ms;
    atomic_uint *got; /* of all of them; until all there are were got */
    unsigned all;
    int bad; /* a result that cannot be */
};

static void *read_all(void *arg)
{
    struct reader *r = arg;
    struct fi_cq_tagged_entry entry[2];

    while (atomic_load(r->got) < r->all && !r->bad) {
        ssize_t n = fi_cq_sread(r->cq, entry, 2, NULL, r->timeout_ms);

        if (n > 0)
            atomic_fetch_add(r->got, (unsigned)n);
        else if (n != -FI_EAGAIN)
            r->bad = (int)n;
    }
    return NULL;
}

/* Some lose patience all the time, others never do: no message is lost, and nobody sleeps on. */
TEST_F(pair, ofi_sleepers__times_of_their_own)
{
    static const int timeouts_ms[THREADS] = {0, 1, 2, 7, 50, 200};
    struct reader readers[THREADS];
    atomic_uint got = 0;
    char in[8];

    pair_open(self, &waiting);
    for (unsigned i = 0; i < THREADS * EACH; i++)
        assert_int_equal(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){
            .cq = self->b.rx, .timeout_ms = timeouts_ms[i], .got = &got, .all = THREADS * EACH};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS * EACH; i++) {
        while (fi_inject(self->a.ep, "x", 1, self->a.to) == -FI_EAGAIN)
            sched_yield();
        if (i % 64 == 0)
            end_sleep_ms(3);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        assert_int_equal(readers[i].bad, 0);
    }
    assert_int_equal(got, THREADS * EACH);
}

/* ----------------------------------------------------------------------- threads at one counter */

struct counter {
    struct fid_cntr *cntr;
    pthread_t thread;
    uint64_t threshold;
    int result;
};

static void *count(void *arg)
{
    struct counter *c = arg;

    c->result = fi_cntr_wait(c->cntr, c->threshold, LONG_MS);
    return NULL;
}

static void count_to_thresholds(enum fi_wait_obj wait)
{
    struct end_options o = {.wait = wait, .counts = FI_RECV};
    struct end *b = end_new(&o, NULL), *a = end_new(&o, NULL);
    struct fid_cntr *cntr = end_cntr(b, FI_RECV);
    struct counter counters[THREADS];
    char in[8];

    a->to = end_meet(a, b);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
        counters[i] = (struct counter){.cntr = cntr, .threshold = i + 1};
        assert_int_equal(pthread_create(&counters[i].thread, NULL, count, &counters[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        end_sleep_ms(2); /* until they wait */
        assert_int_equal(fi_inject(a->ep, "x", 1, a->to), 0);
        assert_int_equal(pthread_join(counters[i].thread, NULL), 0);
        assert_int_equal(counters[i].result, 0);
    }
    /* Nobody is left who waits, and more does not come. */
    assert_int_equal(fi_cntr_wait(cntr, THREADS + 1, 0), -FI_ETIMEDOUT);
    assert_int_equal(fi_cntr_wait(cntr, THREADS + 1, 20), -FI_ETIMEDOUT);
    assert_int_equal(fi_cntr_wait(cntr, THREADS, 0), 0);
}

TEST(ofi_sleepers__thresholds_of_a_counter)
{
    count_to_thresholds(FI_WAIT_FD);
    count_to_thresholds(FI_WAIT_NONE); /* they turn */
    count_to_thresholds(FI_WAIT_YIELD);
}

/* ---------------------------------------------------------------------------------- descriptors */

/*
 * As event loops have them: several queues in one set, which tells of an edge once. Each message is
 * got before the next is sent, so that one that is not told of would be waited for in vain. Every
 * other one comes when nothing is there, as fi_trywait() said, and before the loop sleeps.
 */
static void edges(uint32_t events)
{
    struct epoll_event event = {.events = events};
    int set = epoll_create1(EPOLL_CLOEXEC), fd[2];
    struct fi_cq_tagged_entry entry;
    uint64_t since_ns = end_now_ns();
    struct fid *fids[2];
    struct pair p;
    char in[8];

    pair_open(&p, &waiting);
    fids[0] = &p.b.rx->fid;
    fids[1] = &p.b.tx->fid;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(fi_control(fids[i], FI_GETWAIT, &fd[i]), 0);
        event.data.u32 = i;
        assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd[i], &event), 0);
    }
    for (unsigned i = 0; i < 300; i++) {
        bool sent = i % 2;

        assert_int_equal(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
        if (sent)
            assert_int_equal(fi_inject(p.a.ep, "x", 1, p.a.to), 0);
        while (fi_cq_read(p.b.rx, &entry, 1) == -FI_EAGAIN) {
            end_patience(since_ns);
            if (fi_trywait(p.b.fabric, fids, 2) == -FI_EAGAIN)
                continue;
            if (!sent)
                assert_int_equal(fi_inject(p.a.ep, "x", 1, p.a.to), 0);
            sent = true;
            assert_int_equal(epoll_wait(set, &event, 1, LONG_MS), 1);
        }
    }
    close(set);
    pair_close(&p);
}

TEST(ofi_sleepers__edges)
{
    edges(EPOLLIN);
    edges(EPOLLIN | EPOLLET);
}

/* Of what the application takes meanwhile, nothing is told later: the descriptor becomes quiet. */
TEST_F(pair, ofi_sleepers__quiet_again)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC), fd;
    struct fi_cq_tagged_entry entry;
    char in[8];

    pair_open(self, &waiting);
    struct fid *fid = &self->b.rx->fid;
    assert_int_equal(fi_control(fid, FI_GETWAIT, &fd), 0);
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
        assert_int_equal(fi_trywait(self->b.fabric, &fid, 1), 0);
        assert_int_equal(fi_inject(self->a.ep, "x", 1, self->a.to), 0);
        assert_int_equal(epoll_wait(set, &event, 1, LONG_MS), 1);
        UNTIL(fi_cq_read(self->b.rx, &entry, 1) == 1);
        ends_drive_for(2);
        assert_int_equal(fi_trywait(self->b.fabric, &fid, 1), 0);
        assert_int_equal(epoll_wait(set, &event, 1, 5), 0);
    }
    close(set);
}

/* What cannot be waited on is said to be. */
TEST(ofi_sleepers__nothing_to_wait_on)
{
    struct end_options turning = {.wait = FI_WAIT_YIELD}, none = {0};
    enum fi_wait_obj obj = FI_WAIT_SET;
    struct end e;
    int fd;

    end_open(&e, &none, NULL);
    struct fid *fid = &e.rx->fid;
    assert_int_equal(fi_trywait(e.fabric, &fid, 1), -FI_EINVAL);
    assert_int_equal(fi_trywait(e.fabric, &fid, 0), 0);
    fid = &e.av->fid;
    assert_int_equal(fi_trywait(e.fabric, &fid, 1), -FI_EINVAL);
    assert_true(fi_control(&e.rx->fid, FI_GETWAIT, &fd) < 0);
    assert_int_equal(fi_cq_signal(e.rx), -FI_ENOSYS);
    end_close(&e);
    end_open(&e, &turning, NULL);
    assert_true(fi_control(&e.rx->fid, FI_GETWAIT, &fd) < 0);
    assert_int_equal(fi_control(&e.rx->fid, FI_GETWAITOBJ, &obj), 0);
    assert_int_equal(obj, FI_WAIT_YIELD);
    end_close(&e);
}

/* ------------------------------------------------------------------------------------ poll sets */

TEST_F(pair, ofi_sleepers__poll_sets)
{
    enum { SETS = 3, MORE = 20 };
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cntr *more[MORE];
    struct fid_poll *set[SETS];
    struct fi_cq_tagged_entry entry;
    void *context[MORE + 2];
    char in[8];

    pair_open(self, &waiting);
    self->b.rx->fid.context = &self->b;
    for (unsigned i = 0; i < SETS; i++) {
        assert_int_equal(fi_poll_open(self->b.domain, &(struct fi_poll_attr){0}, &set[i]), 0);
        assert_int_equal(fi_poll(set[i], context, 1), 0); /* it is empty */
        assert_int_equal(fi_poll_add(set[i], &self->b.rx->fid, 0), 0);
        assert_int_equal(fi_poll_add(set[i], &self->b.rx->fid, 0), 0); /* once more is once */
        assert_int_equal(fi_poll_add(set[i], &self->b.rx->fid, FI_SEND), -FI_EBADFLAGS);
        /* Another domain's: */
        assert_int_equal(fi_poll_add(set[i], &self->a.rx->fid, 0), -FI_EINVAL);
        assert_int_equal(fi_poll_add(set[i], &self->b.av->fid, 0), -FI_EINVAL);
        assert_int_equal(fi_poll_del(set[i], &self->b.tx->fid, 0), -FI_EINVAL);
    }
    for (unsigned i = 0; i < MORE; i++) {
        assert_int_equal(fi_cntr_open(self->b.domain, &attr, &more[i], &more[i]), 0);
        assert_int_equal(fi_poll_add(set[0], &more[i]->fid, 0), 0);
        assert_int_equal(fi_cntr_add(more[i], 1), 0);
    }
    assert_int_equal(fi_poll(set[0], context, 5), 5);
    assert_ptr_equal(context[4], &more[4]);
    assert_int_equal(fi_poll(set[0], context, MORE + 2), MORE - 5); /* the others, each once */
    assert_int_equal(fi_poll(set[0], context, MORE + 2), 0);
    assert_int_equal(fi_cntr_add(more[0], 1), 0); /* told of no more */
    assert_int_equal(fi_poll_del(set[0], &more[0]->fid, 0), 0);
    assert_int_equal(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
    assert_int_equal(fi_inject(self->a.ep, "x", 1, self->a.to), 0);
    for (unsigned i = 0; i < SETS; i++) {
        UNTIL(fi_poll(set[i], context, MORE) == 1);
        assert_ptr_equal(context[0], &self->b);
    }
    assert_int_equal(fi_cq_read(self->b.rx, &entry, 1), 1);
    for (unsigned i = 0; i < SETS; i++) {
        assert_int_equal(fi_poll(set[i], context, MORE), 0);
        assert_int_equal(fi_close(&self->b.rx->fid), -FI_EBUSY);
        assert_int_equal(fi_close(&set[i]->fid), 0);
    }
    for (unsigned i = 0; i < MORE; i++)
        assert_int_equal(fi_close(&more[i]->fid), 0);
}
