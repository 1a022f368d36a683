/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress that nobody makes: by a thread of the domain. And endpoints of several threads. */
#include "pair.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum {
    IDLE_MS = 400,
    LONG_MS = END_PATIENCE_S * 1000,
    LONG = 3 << 20,
};

static const struct end_options automatic = {.progress = FI_PROGRESS_AUTO};

/* Until the queue has an entry, which is of that context; nobody drives the other end. */
static void wait_alone(struct fid_cq *cq, const void *context)
{
    uint64_t since_ns = end_now_ns();
    struct fi_cq_tagged_entry entry;
    ssize_t num;

    while ((num = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
        end_patience(since_ns);
    assert_int_equal(num, 1);
    assert_ptr_equal(entry.op_context, context);
}

/* The receiver calls nothing while a long message comes: its sender hears that it is there. */
TEST_F(pair, ofi_auto__long_messages)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct fi_cq_tagged_entry entry;
    struct end *a = &self->a, *b = &self->b;

    pair_open_each(self, &(struct end_options){0}, &automatic);
    POST(fi_recv(b->ep, in, LONG, NULL, FI_ADDR_UNSPEC, in));
    POST(fi_send(a->ep, out, LONG, NULL, a->to, out));
    wait_alone(a->tx, out);
    assert_int_equal(fi_cq_read(b->rx, &entry, 1), 1);
    assert_ptr_equal(entry.op_context, in);
    assert_filled(in, LONG, 1);

    /* And the other way round: the sender sleeps. */
    memset(in, BLANK, LONG);
    POST(fi_recv(a->ep, in, LONG, NULL, FI_ADDR_UNSPEC, in));
    POST(fi_send(b->ep, out, LONG, NULL, b->to, out));
    wait_alone(a->rx, in);
    assert_filled(in, LONG, 1);
}

/* Memory is written, added to and read while its owner calls nothing. */
TEST_F(pair, ofi_auto__target)
{
    uint64_t one[2] = {7, 9}, back[2] = {0};
    struct end *a = &self->a;

    pair_open_each(self, &(struct end_options){0}, &automatic);
    end_register(&self->b, zeros(128), 128, REGION_ACCESS, 1);
    assert_int_equal(fi_write(a->ep, one, 16, NULL, a->to, 16, 1, NULL), 0);
    wait_alone(a->tx, NULL);
    assert_int_equal(fi_atomic(a->ep, one, 2, NULL, a->to, 16, 1, FI_UINT64, FI_SUM, NULL), 0);
    wait_alone(a->tx, NULL);
    assert_int_equal(fi_read(a->ep, back, 16, NULL, a->to, 16, 1, NULL), 0);
    wait_alone(a->tx, NULL);
    assert_int_equal(back[0], 14);
    assert_int_equal(back[1], 18);
}

/* The message is long: it takes turns of both ends until it is there. */
TEST_F(pair, ofi_auto__sread_until_a_long_message_is_there)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct fi_cq_tagged_entry entry;
    int rx;

    pair_open(self, &(struct end_options){.wait = FI_WAIT_UNSPEC, .progress = FI_PROGRESS_AUTO});
    POST(fi_recv(self->b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_send(self->a.ep, out, LONG, NULL, self->a.to, NULL));
    assert_int_equal(fi_cq_sread(self->b.rx, &entry, 1, NULL, LONG_MS), 1);
    assert_filled(in, LONG, 1);
    assert_int_equal(fi_cq_sread(self->a.tx, &entry, 1, NULL, LONG_MS), 1);
}

/* With nothing to do it sleeps; and then it wakes up. */
TEST_F(pair, ofi_auto__sleeps)
{
    struct fi_cq_tagged_entry entry;
    struct timespec start, end;
    char in[8];
    int64_t used_ns;

    pair_open_each(self, &(struct end_options){0},
                   &(struct end_options){.progress = FI_PROGRESS_AUTO, .counts = FI_RECV});
    for (unsigned i = 0; i < 3; i++) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        end_sleep_ms(IDLE_MS);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        used_ns = (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
        assert_true(used_ns < IDLE_MS / 2 * 1000000);
        POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
        end_sleep_ms(10);
        /* It is complete when the receive has it: nobody but the thread can have done that. */
        assert_int_equal(end_sendmsg(&self->a, "x", 1, self->a.to, NULL, FI_DELIVERY_COMPLETE), 0);
        wait_alone(self->a.tx, NULL);
        assert_int_equal(fi_cq_read(self->b.rx, &entry, 1), 1);
    }
}

/* ------------------------------------------------------------------------------------ many threads */

enum { THREADS = 3, EACH = 300 };

struct sharer {
    struct end *end;
    pthread_t thread;
    unsigned first; /* number of its first message */
};

static void *send_shared(void *arg)
{
    struct sharer *s = arg;

    for (unsigned i = 0; i < EACH; i++) {
        unsigned number = s->first + i;

        while (fi_inject(s->end->ep, &number, sizeof(number), s->end->to) == -FI_EAGAIN)
            sched_yield();
    }
    return NULL;
}

/* Each thread waits for as many as one sends; where they are from is all the same. */
static void *receive_shared(void *arg)
{
    struct sharer *s = arg;
    struct fi_cq_tagged_entry entry;

    for (unsigned i = 0; i < EACH; i++)
        if (fi_cq_sread(s->end->rx, &entry, 1, NULL, LONG_MS) != 1)
            return NULL;
    return s;
}

/* One endpoint sends by several threads, another one receives by several. */
TEST_F(pair, ofi_auto__threads_share_endpoints)
{
    static const struct end_options shared = {
        .wait = FI_WAIT_FD, .threading = FI_THREAD_SAFE, .progress = FI_PROGRESS_AUTO};
    static unsigned in[THREADS * EACH];
    static bool seen[THREADS * EACH];
    struct sharer from[THREADS], to[THREADS];
    void *result;

    pair_open(self, &shared);
    memset(seen, 0, sizeof(seen));
    for (unsigned i = 0; i < THREADS * EACH; i++)
        POST(fi_recv(self->b.ep, &in[i], sizeof(in[i]), NULL, FI_ADDR_UNSPEC, &in[i]));
    for (unsigned i = 0; i < THREADS; i++) {
        from[i] = (struct sharer){.end = &self->a, .first = i * EACH};
        to[i] = (struct sharer){.end = &self->b};
        assert_int_equal(pthread_create(&to[i].thread, NULL, receive_shared, &to[i]), 0);
        assert_int_equal(pthread_create(&from[i].thread, NULL, send_shared, &from[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(from[i].thread, NULL), 0);
        assert_int_equal(pthread_join(to[i].thread, &result), 0);
        assert_ptr_equal(result, &to[i]);
    }
    for (unsigned i = 0; i < THREADS * EACH; i++) {
        assert_true(in[i] < THREADS * EACH && !seen[in[i]]);
        seen[in[i]] = true;
    }
}
