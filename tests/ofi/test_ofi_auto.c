/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress that nobody makes: by a thread of the domain. And endpoints of several threads. */
#include "pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    IDLE_MS = 400,
    LONG_MS = END_PATIENCE_S * 1000,
    LONG = 3 << 20,
};

/* The receiver calls nothing while a long message comes: its sender hears that it is there. */
TEST(ofi_auto__long_messages)
{
    static const struct end_options automatic = {.progress = FI_PROGRESS_AUTO};
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct fi_cq_tagged_entry entry;
    uint64_t since_ns = end_now_ns();
    struct pair p;
    int tx, rx;

    end_open(&p.a, &(struct end_options){0}, NULL);
    end_open(&p.b, &automatic, NULL);
    p.a.to = end_meet(&p.a, &p.b);
    p.b.to = end_meet(&p.b, &p.a);
    POST(fi_recv(p.b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_send(p.a.ep, out, LONG, NULL, p.a.to, &tx));
    while (fi_cq_read(p.a.tx, &entry, 1) == -FI_EAGAIN)
        end_patience(since_ns);
    assert_ptr_equal(entry.op_context, &tx);
    assert_int_equal(fi_cq_read(p.b.rx, &entry, 1), 1);
    assert_ptr_equal(entry.op_context, &rx);
    assert_filled(in, LONG, 1);

    /* And the other way round: the sender sleeps. */
    memset(in, BLANK, LONG);
    POST(fi_recv(p.a.ep, in, LONG, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_send(p.b.ep, out, LONG, NULL, p.b.to, &tx));
    since_ns = end_now_ns();
    while (fi_cq_read(p.a.rx, &entry, 1) == -FI_EAGAIN)
        end_patience(since_ns);
    assert_filled(in, LONG, 1);
    pair_close(&p);
    free(in);
    free(out);
}

/* Memory is written, added to and read while its owner calls nothing. */
TEST(ofi_auto__target)
{
    static const struct end_options automatic = {.progress = FI_PROGRESS_AUTO};
    uint64_t *memory = calloc(16, 8), one[2] = {7, 9}, back[2] = {0};
    struct fi_cq_tagged_entry entry;
    uint64_t since_ns = end_now_ns();
    struct fid_mr *mr;
    struct pair p;

    end_open(&p.a, &(struct end_options){0}, NULL);
    end_open(&p.b, &automatic, NULL);
    p.a.to = end_meet(&p.a, &p.b);
    assert_int_equal(
        fi_mr_reg(p.b.domain, memory, 128, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL),
        0);
    assert_int_equal(fi_write(p.a.ep, one, 16, NULL, p.a.to, 16, 1, NULL), 0);
    while (fi_cq_read(p.a.tx, &entry, 1) == -FI_EAGAIN)
        end_patience(since_ns);
    assert_int_equal(fi_atomic(p.a.ep, one, 2, NULL, p.a.to, 16, 1, FI_UINT64, FI_SUM, NULL), 0);
    while (fi_cq_read(p.a.tx, &entry, 1) == -FI_EAGAIN)
        end_patience(since_ns);
    assert_int_equal(fi_read(p.a.ep, back, 16, NULL, p.a.to, 16, 1, NULL), 0);
    while (fi_cq_read(p.a.tx, &entry, 1) == -FI_EAGAIN)
        end_patience(since_ns);
    assert_int_equal(back[0], 14);
    assert_int_equal(back[1], 18);
    assert_int_equal(fi_close(&mr->fid), 0);
    pair_close(&p);
    free(memory);
}

/* The message is long: it takes turns of both ends until it is there. */
TEST(ofi_auto__sread_until_a_long_message_is_there)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct fi_cq_tagged_entry entry;
    struct pair p;
    int rx;

    pair_open(&p, &(struct end_options){.wait = FI_WAIT_UNSPEC, .progress = FI_PROGRESS_AUTO});
    POST(fi_recv(p.b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_send(p.a.ep, out, LONG, NULL, p.a.to, NULL));
    assert_int_equal(fi_cq_sread(p.b.rx, &entry, 1, NULL, LONG_MS), 1);
    assert_filled(in, LONG, 1);
    assert_int_equal(fi_cq_sread(p.a.tx, &entry, 1, NULL, LONG_MS), 1);
    pair_close(&p);
    free(in);
    free(out);
}

/* With nothing to do it sleeps; and then it wakes up. */
TEST_F(pair, ofi_auto__sleeps)
{
    struct end_options automatic = {.progress = FI_PROGRESS_AUTO, .counts = FI_RECV};
    struct fi_cq_tagged_entry entry;
    uint64_t since_ns = end_now_ns();
    struct timespec start, end;
    char in[8];
    int64_t used_ns;

    end_open(&self->a, &(struct end_options){0}, NULL);
    end_open(&self->b, &automatic, NULL);
    self->a.to = end_meet(&self->a, &self->b);
    for (unsigned i = 0; i < 3; i++) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        end_sleep_ms(IDLE_MS);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        used_ns = (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
        assert_true(used_ns < IDLE_MS / 2 * 1000000);
        POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
        end_sleep_ms(10);
        /* It is complete when the receive has it: nobody but the thread can have done that. */
        assert_int_equal(
            fi_sendmsg(self->a.ep,
                       &(struct fi_msg){.msg_iov = &(struct iovec){(void *)(uintptr_t) "x", 1},
                                        .iov_count = 1,
                                        .addr = self->a.to},
                       FI_DELIVERY_COMPLETE),
            0);
        while (fi_cq_read(self->a.tx, &entry, 1) == -FI_EAGAIN)
            end_patience(since_ns);
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
    static const struct end_options automatic = {
        .wait = FI_WAIT_FD, .threading = FI_THREAD_SAFE, .progress = FI_PROGRESS_AUTO};
    static unsigned in[THREADS * EACH];
    static bool seen[THREADS * EACH];
    struct sharer from[THREADS], to[THREADS];
    void *result;

    pair_open(self, &automatic);
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
