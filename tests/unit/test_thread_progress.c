/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress thread and the lock: two contexts in one process, over the loopback. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/context_fixture.h"
#include "transport/context.h"

#define MSEC_NS 1000000ull
#define SEC_NS  1000000000ull

enum {
    DEPTH = 64,
    MESSAGE_BYTES = 20000,
    LONG_BYTES = 4 << 20,
    POSTS = 2000,
    PATIENCE_S = 600, /* until a test that hangs fails */
};

struct side {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_ah *peer;
    struct mrd_mr *mr;
    uint8_t *memory; /* LONG_BYTES, at least DEPTH * MESSAGE_BYTES */
};

FIXTURE(sides)
{
    uint64_t peer_timeout_ns;
    struct side a, b;
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SEC_NS + (uint64_t)now.tv_nsec;
}

static void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

static void side_open(struct side *s, uint64_t peer_timeout_ns)
{
    s->context = mrd_open_device(NULL, &(struct mrd_context_attr){
                                           .comp_mask = MRD_CONTEXT_ATTR_CHALLENGE,
                                           .address = "127.0.0.1",
                                           .paths = 4,
                                           .peer_timeout_ns = peer_timeout_ns,
                                       });
    assert_non_null(s->context);
    s->pd = mrd_alloc_pd(s->context);
    assert_non_null(s->pd);
    s->cq = mrd_create_cq(s->context, 4 * DEPTH, NULL);
    assert_non_null(s->cq);
    s->qp = mrd_create_qp(
        s->pd, &(struct mrd_qp_init_attr){
                   .send_cq = s->cq,
                   .recv_cq = s->cq,
                   .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_inline_data = 64},
               });
    assert_non_null(s->qp);
    s->memory = calloc(1, LONG_BYTES);
    assert_non_null(s->memory);
    s->mr =
        mrd_reg_mr(s->pd, s->memory, LONG_BYTES, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    assert_non_null(s->mr);
}

static void side_close(struct side *s)
{
    assert_int_equal(mrd_destroy_ah(s->peer), 0);
    assert_int_equal(mrd_destroy_qp(s->qp), 0);
    assert_int_equal(mrd_destroy_cq(s->cq), 0);
    assert_int_equal(mrd_dereg_mr(s->mr), 0);
    assert_int_equal(mrd_dealloc_pd(s->pd), 0);
    assert_int_equal(mrd_close_device(s->context), 0);
    free(s->memory);
}

FIXTURE_SETUP(sides)
{
    side_open(&self->a, self->peer_timeout_ns);
    side_open(&self->b, self->peer_timeout_ns);
    self->a.peer = ah_to(self->a.pd, self->b.context);
    self->b.peer = ah_to(self->b.pd, self->a.context);
}

FIXTURE_TEARDOWN(sides)
{
    side_close(&self->a);
    side_close(&self->b);
}

static void fill(uint8_t *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(seed * 37 + i * 11 + (i >> 8));
}

static bool is_filled(const uint8_t *from, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (from[i] != (uint8_t)(seed * 37 + i * 11 + (i >> 8)))
            return false;
    return true;
}

static void post_receive(struct side *s, uint64_t wr_id, size_t offset, uint32_t bytes)
{
    struct mrd_sge sge = {(uintptr_t)(s->memory + offset), bytes, s->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_recv(s->qp, &wr, &bad), 0);
}

static int try_send(struct side *s, struct side *to, uint64_t wr_id, void *from, uint32_t bytes,
                    unsigned flags)
{
    struct mrd_sge sge = {(uintptr_t)from, bytes, s->mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_SIGNALED | flags,
        .ud = {.ah = s->peer, .remote_qpn = to->qp->qp_num},
    };
    struct mrd_send_wr *bad;

    return mrd_post_send(s->qp, &wr, &bad);
}

/* Take `want` completions of status success before a hung test is given up; how many there were. */
static int take(struct side *s, int want)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_S * SEC_NS;
    struct mrd_wc wc[8];
    int got = 0;

    while (got < want && clock_ns(CLOCK_MONOTONIC) < end_ns) {
        int n = mrd_poll_cq(s->cq, want - got < 8 ? want - got : 8, wc);

        assert_true(n >= 0);
        for (int i = 0; i < n; i++)
            assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
        got += n;
    }
    return got;
}

static uint64_t counter(struct mrd_context *context, const char *name)
{
    struct mrd_counter counters[256];
    int n = mrd_query_counters(context, counters, 256);

    for (int i = 0; i < n && i < 256; i++)
        if (!strcmp(counters[i].name, name))
            return counters[i].value;
    fail_msg("no counter %s", name);
    return 0;
}

/* One message from a to b, both polling. */
static void exchange(struct sides *f, unsigned seed)
{
    post_receive(&f->b, 0, 0, MESSAGE_BYTES);
    fill(f->a.memory, MESSAGE_BYTES, seed);
    assert_int_equal(try_send(&f->a, &f->b, 0, f->a.memory, MESSAGE_BYTES, 0), 0);
    assert_int_equal(take(&f->b, 1), 1);
    assert_int_equal(take(&f->a, 1), 1);
    assert_true(is_filled(f->b.memory, MESSAGE_BYTES, seed));
}

static uint64_t wakeups(struct sides *f)
{
    return counter(f->a.context, "progress_thread_wakeups") +
           counter(f->b.context, "progress_thread_wakeups");
}

/* Of the two progress threads alone: a sanitizer has its own, which does not always sleep. */
static uint64_t threads_cpu_ns(const struct sides *f)
{
    struct mrd_context *contexts[] = {f->a.context, f->b.context};
    uint64_t sum_ns = 0;

    for (unsigned i = 0; i < 2; i++) {
        clockid_t clock;

        assert_int_equal(
            pthread_getcpuclockid(mrd_context_impl(contexts[i])->thread.thread, &clock), 0);
        sum_ns += clock_ns(clock);
    }
    return sum_ns;
}

/* The processor time of half a second without a wakeup of the threads. False if one woke up. */
static bool sleeps(struct sides *f, uint64_t *cpu_ns)
{
    uint64_t wakeups_before = wakeups(f);
    uint64_t cpu_before_ns = threads_cpu_ns(f);

    sleep_ms(500);
    *cpu_ns = threads_cpu_ns(f) - cpu_before_ns;
    return wakeups(f) == wakeups_before;
}

/* Neither a fresh context nor one with an idle peer wakes up once the last timer has fired. */
TEST_F(sides, progress_thread__idle_costs_nothing)
{
    for (unsigned round = 0; round < 2; round++) {
        uint64_t cpu_ns;
        unsigned tries = 0;

        sleep_ms(300);
        while (!sleeps(self, &cpu_ns))
            assert_true(++tries < 20);
        assert_true(cpu_ns < 2 * MSEC_NS);
        exchange(self, round);
    }
}

/* Both ends blocked: two threads do it all. */
TEST_F(sides, progress_thread__both_applications_blocked)
{
    post_receive(&self->b, 0, 0, LONG_BYTES);
    fill(self->a.memory, LONG_BYTES, 9);
    assert_int_equal(try_send(&self->a, &self->b, 0, self->a.memory, LONG_BYTES, 0), 0);
    while (!counter(self->a.context, "tx_messages"))
        sleep_ms(10);
    assert_int_equal(counter(self->a.context, "tx_messages"), 1);
    assert_int_equal(counter(self->b.context, "rx_messages"), 1);
    assert_true(is_filled(self->b.memory, LONG_BYTES, 9));
    assert_int_equal(take(&self->a, 1), 1);
    assert_int_equal(take(&self->b, 1), 1);
}

struct window {
    uint64_t gap_ns_max; /* longest time between two polls of a context */
    unsigned messages;
};

/* Messages from a to b for a while, by an application that polls both without a pause. */
static struct window poll_for(struct sides *f, uint64_t ns)
{
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), last_ns = start_ns;
    struct window window = {0};
    int open = 0; /* completions that the current message still owes */
    struct mrd_wc wc;

    while (last_ns - start_ns < ns || open) {
        if (!open) {
            post_receive(&f->b, 0, 0, 64);
            assert_int_equal(try_send(&f->a, &f->b, 0, f->a.memory, 64, 0), 0);
            open = 2;
            window.messages++;
        }
        open -= mrd_poll_cq(f->a.cq, 1, &wc);
        open -= mrd_poll_cq(f->b.cq, 1, &wc);

        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

        if (now_ns - last_ns > window.gap_ns_max)
            window.gap_ns_max = now_ns - last_ns;
        last_ns = now_ns;
    }
    return window;
}

/*
 * While the application polls, the thread stays out of its way: a look each nap, however many
 * packets there are. Only windows in which the scheduler let the application poll tell something.
 */
TEST_F(sides, progress_thread__leaves_a_polling_application_alone)
{
    const unsigned naps_max = 2 * (5 + 3 + 2); /* 5 ms of both threads, shorter first, late ones */

    exchange(self, 0);
    for (unsigned i = 0; i < 500; i++) {
        (void)poll_for(self, 2 * MSEC_NS); /* whatever slept before is napping now */

        uint64_t before = wakeups(self);
        struct window window = poll_for(self, 5 * MSEC_NS);
        uint64_t wakeups_here = wakeups(self) - before;

        if (window.gap_ns_max > 100000 || window.messages < 3 * naps_max)
            continue;
        assert_in_range(wakeups_here, 0, naps_max);
        return;
    }
    print_message("[  SKIPPED ] the machine is too busy to poll for 5 ms at a stretch\n");
    skip();
}

/* The thread alone finds out that a peer is dead, and the event wakes the application. */
TEST_F_WITH(sides, progress_thread__event_for_a_blocked_application,
            self->peer_timeout_ns = 500 * MSEC_NS)
{
    struct mrd_async_event event;
    struct mrd_ah *real = self->a.peer;
    struct pollfd fd = {.fd = self->a.context->async_fd, .events = POLLIN};
    struct mrd_wc wc;

    self->a.peer = mrd_create_ah(self->a.pd, "127.0.0.1:9");
    assert_non_null(self->a.peer);
    assert_int_equal(try_send(&self->a, &self->b, 77, self->a.memory, 100, 0), 0);
    assert_int_equal(poll(&fd, 1, -1), 1);
    assert_int_equal(mrd_get_async_event(self->a.context, &event), 0);
    assert_int_equal(event.event_type, MRD_EVENT_PEER_UNREACHABLE);
    assert_string_equal(event.address, "127.0.0.1:9");
    mrd_ack_async_event(&event);
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(mrd_poll_cq(self->a.cq, 1, &wc), 1);
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(wc.wr_id, 77);

    assert_int_equal(mrd_destroy_ah(self->a.peer), 0);
    self->a.peer = real;
    exchange(self, 1);
}

/* Closing right after posting, with the thread in whatever it does. */
TEST(mrd_close_device__while_the_thread_works)
{
    for (unsigned i = 0; i < 20; i++) {
        struct sides f = {0};

        side_open(&f.a, 0);
        side_open(&f.b, 0);
        f.a.peer = ah_to(f.a.pd, f.b.context);
        f.b.peer = ah_to(f.b.pd, f.a.context);
        post_receive(&f.b, 0, 0, LONG_BYTES);
        assert_int_equal(try_send(&f.a, &f.b, 0, f.a.memory, LONG_BYTES, 0), 0);
        if (i % 2)
            sleep_ms(i % 5);
        side_close(i % 4 < 2 ? &f.a : &f.b);
        side_close(i % 4 < 2 ? &f.b : &f.a);
    }
}

/* ------------------------------------------------------------------ atomics, and the host's own */

struct adder {
    uint64_t *word;
    unsigned count;
    atomic_bool over;
};

/* By turns a plain add and a loop of compare-and-swap, as programs do them. */
static void *add_here(void *arg)
{
    struct adder *a = arg;

    for (; !atomic_load(&a->over); a->count++) {
        uint64_t old = __atomic_load_n(a->word, __ATOMIC_RELAXED);

        if (a->count % 2)
            __atomic_fetch_add(a->word, 1, __ATOMIC_SEQ_CST);
        else
            while (!__atomic_compare_exchange_n(a->word, &old, old + 1, false, __ATOMIC_SEQ_CST,
                                                __ATOMIC_SEQ_CST))
                ;
    }
    return NULL;
}

/* One fetch-and-add, or one try to replace `old` by `old` + 1. Returns what was there. */
static uint64_t add_there(struct sides *f, struct mrd_mr *target, bool swap, uint64_t old)
{
    struct mrd_sge sge = {(uintptr_t)f->a.memory, sizeof(old), f->a.mr->lkey};
    struct mrd_send_wr *bad,
        wr = {
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = swap ? MRD_WR_ATOMIC_CMP_AND_SWP : MRD_WR_ATOMIC_FETCH_AND_ADD,
            .send_flags = MRD_SEND_SIGNALED,
            .ud = {.ah = f->a.peer, .remote_qpn = f->b.qp->qp_num},
        };

    wr.wr.atomic.remote_addr = (uintptr_t)f->b.memory;
    wr.wr.atomic.rkey = target->rkey;
    wr.wr.atomic.compare_add = swap ? old : 1;
    wr.wr.atomic.swap = old + 1;
    assert_int_equal(mrd_post_send(f->a.qp, &wr, &bad), 0);
    assert_int_equal(take(&f->a, 1), 1);
    memcpy(&old, f->a.memory, sizeof(old));
    return old;
}

/* A peer and a thread of this host count in one word, and no count is lost. */
TEST_F(sides, atomics__with_the_host)
{
    struct adder adder = {.word = (uint64_t *)(void *)self->b.memory};
    struct mrd_mr *target = mrd_reg_mr(self->b.pd, self->b.memory, sizeof(uint64_t),
                                       MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_ATOMIC);
    unsigned count = 0;
    uint64_t seen = 0;
    pthread_t thread;

    assert_non_null(target);
    assert_int_equal(pthread_create(&thread, NULL, add_here, &adder), 0);
    for (unsigned i = 0; i < POSTS; i++) {
        uint64_t old = add_there(self, target, i % 2, seen);

        count += !(i % 2) || old == seen;
        seen = old + (i % 2 ? 0 : 1);
    }
    atomic_store(&adder.over, true);
    pthread_join(thread, NULL);
    assert_int_equal(*adder.word, adder.count + count);
    assert_true(count >= POSTS / 2);
    assert_int_equal(mrd_dereg_mr(target), 0);
}
