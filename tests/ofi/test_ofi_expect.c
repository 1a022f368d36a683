/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What receives that name their source hear of it: it is killed, closes, or another one comes where it
 * was.
 */
#include "victim.h"

#include <pthread.h>
#include <stdlib.h>

static const struct end_options sleeps = {
    .order = FI_ORDER_SAS, .counts = FI_SEND, .wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE};

/* Of a test that needs a FI_MRD_PEER_TIMEOUT which no start of a process exceeds. */
static void needs_patience(void)
{
    if (atoi(getenv("FI_MRD_PEER_TIMEOUT")) <= PEER_TIMEOUT_MS)
        skip();
}

/* Sends one more when it is told to. */
static void twice(int channel)
{
    struct end e;

    child_open(channel, &e, 0);
    answer(&e);
    drive_until_told(channel);
    POST(fi_send(e.ep, "c", 1, NULL, e.to, NULL));
    (void)end_ok(e.tx, NULL);
    process_tell(channel, "r", 1);
    drive_until_told(channel);
}

/* Opens an endpoint that has heard of the peer, which answers. */
static void open_and_hear(struct end *e, const struct end_options *o, struct peer *p)
{
    start(p, alive);
    end_open(e, o, NULL);
    meet(e, p);
    hear_of(e, p);
}

/* Opens an endpoint that knows the address of a peer that has yet to come. */
static void open_before(struct end *e, struct peer *p)
{
    struct end first;

    end_open(&first, &options, NULL);
    end_open(e, &options, NULL);
    p->told = name_of(&first);
    end_close(&first);
    assert_int_equal(fi_av_insert(e->av, &p->told.name, 1, &p->to, 0, NULL), 1);
}

/* A reborn() process opens where another one was, and is ready. */
static void take_over(struct end *e, const struct told *place, struct peer *next)
{
    process_tell(next->process.channel, place, sizeof(*place));
    meet_target(e, next);
}

/* Those that name it end, if nothing else has to do with it, too. */
TEST_F(end, ofi_expect__receives_from_it)
{
    char in[64], any[8], all[8];
    struct peer victim, other;

    start(&victim, alive);
    start(&other, alive);
    end_open(self, &options, NULL);
    meet(self, &victim);
    meet(self, &other);
    hear_of(self, &victim);
    POST(fi_trecv(self->ep, any, sizeof(any), NULL, FI_ADDR_UNSPEC, TAG, 0, any));
    POST(end_recvmsg(self, in + 32, 32, victim.to, in + 32, FI_MULTI_RECV));
    POST(fi_recv(self->ep, in, 8, NULL, victim.to, in));
    POST(fi_recv(self->ep, all, sizeof(all), NULL, other.to, all));
    POST(fi_trecv(self->ep, in + 8, 8, NULL, victim.to, TAG, 0, in + 8));
    POST(fi_trecv(self->ep, in + 16, 8, NULL, victim.to, TAG, 0, in + 16));
    assert_int_equal(fi_cancel(&self->ep->fid, in + 16), 0);
    end_fails(self->rx, in + 16, FI_ECANCELED);
    end_silent(self->rx);
    process_stop(&victim.process);
    POST(fi_inject(self->ep, "a", 1, victim.to));
    process_kill(&victim.process);
    expect_error(self->rx, &victim, in + 32);
    expect_error(self->rx, &victim, in);
    expect_error(self->rx, &victim, in + 8);
    UNTIL(fi_cntr_readerr(end_cntr(self, FI_SEND)) == 1);
    end_silent(self->tx); /* what the receives told */

    /* It was heard of once: who waits for it again hears of it again. */
    POST(fi_trecv(self->ep, in, 8, NULL, victim.to, TAG, 0, in));
    expect_error(self->rx, &victim, in);
    end_silent(self->rx);
    POST(fi_send(self->ep, "a", 1, NULL, other.to, NULL));
    end_ok(self->rx, all);
    part(&other);
}

/* Without a receive reading the queue tells of what was injected: no entry has no context. */
TEST_F(end, ofi_expect__injected_and_no_receive)
{
    struct peer victim;
    char in[8];

    open_and_hear(self, &options, &victim);
    POST(fi_trecv(self->ep, in, sizeof(in), NULL, victim.to, TAG, 0, in));
    process_kill(&victim.process);
    expect_error(self->rx, &victim, in);
    for (unsigned i = 0; i < 2; i++) {
        POST(fi_inject(self->ep, "a", 1, victim.to));
        end_fails_bare(self->tx, FI_EHOSTUNREACH);
        assert_int_equal(fi_cntr_readerr(end_cntr(self, FI_SEND)), i + 1);
    }
    end_silent(self->tx);
}

/* Where there is an event queue, that tells, and the queue of completions does not fail. */
TEST_F(end, ofi_expect__injected_with_an_event_queue)
{
    struct end_options with = options;
    struct fi_eq_err_entry error = {0};
    struct fi_eq_entry entry;
    struct peer victim;
    uint32_t event;

    with.events = true;
    open_and_hear(self, &with, &victim);
    process_kill(&victim.process);
    POST(fi_inject(self->ep, "a", 1, victim.to));
    UNTIL(fi_eq_read(self->eq, &event, &entry, sizeof(entry), 0) == -FI_EAVAIL);
    assert_int_equal(fi_eq_readerr(self->eq, &error, 0), sizeof(error));
    assert_ptr_equal(error.fid, &self->ep->fid);
    assert_int_equal(error.err, FI_EHOSTUNREACH);
    assert_int_equal(error.data, victim.to);
    end_silent(self->tx);
}

/* Posts nothing but what is injected to somebody who never was there. */
static void inject_to_nobody(struct end *e, struct peer *nobody, unsigned num)
{
    open_before(e, nobody);
    for (unsigned i = 0; i < num; i++)
        POST(fi_tinject(e->ep, "a", 1, nobody->to, TAG));
}

/* Receives for who was never heard of end by what was injected to it, and tell of all of that. */
TEST_F(end, ofi_expect__injected_to_one_never_heard)
{
    char in[8], more[8], any[8];
    struct peer nobody = {0};

    inject_to_nobody(self, &nobody, 3);
    POST(fi_trecv(self->ep, any, sizeof(any), NULL, FI_ADDR_UNSPEC, TAG, 0, any));
    POST(fi_trecv(self->ep, in, sizeof(in), NULL, nobody.to, TAG, 0, in));
    POST(fi_recv(self->ep, more, sizeof(more), NULL, nobody.to, more));
    expect_error(self->rx, &nobody, more);
    expect_error(self->rx, &nobody, in);
    UNTIL(fi_cntr_readerr(end_cntr(self, FI_SEND)) == 3);
    end_silent(self->tx);
    end_silent(self->rx);
}

/* What is lost together is told of once. */
TEST_F(end, ofi_expect__injected_to_one_never_heard_and_no_receive)
{
    struct peer nobody = {0};

    inject_to_nobody(self, &nobody, 3);
    while (fi_cntr_readerr(end_cntr(self, FI_SEND)) < 3)
        ends_drive();
    end_fails_bare(self->tx, FI_EHOSTUNREACH);
    end_silent(self->tx);
}

/* Who sleeps wakes up for it. */
TEST_F(end, ofi_expect__injected_and_sleeping)
{
    struct fi_cq_tagged_entry entry;
    struct peer victim;

    open_and_hear(self, &sleeps, &victim);
    process_kill(&victim.process);
    POST(fi_inject(self->ep, "a", 1, victim.to));
    assert_int_equal(fi_cq_sread(self->tx, &entry, 1, NULL, END_PATIENCE_S * 1000),
                     -FI_EHOSTUNREACH);
    assert_int_equal(fi_cq_read(self->tx, &entry, 1), -FI_EAGAIN);
}

/* One that names an operation has its entry, with or without an entry for success. */
TEST_F(end, ofi_expect__injected_with_a_context)
{
    struct end_options selective = options;
    struct peer victim;
    int tx;

    selective.bind = FI_SELECTIVE_COMPLETION;
    start(&victim, alive);
    end_open(self, &selective, NULL);
    meet(self, &victim);
    process_kill(&victim.process);
    POST(end_sendmsg(self, "a", 1, victim.to, &tx, FI_INJECT));
    expect_error(self->tx, &victim, &tx);
    POST(end_sendmsg(self, "a", 1, victim.to, &tx, FI_INJECT | FI_COMPLETION));
    expect_error(self->tx, &victim, &tx);
    end_silent(self->tx);
}

/* One that sleeps until there is something has no other reason to wake up. */
TEST_F(end, ofi_expect__receive_in_sleep)
{
    struct fi_cq_tagged_entry entry;
    struct peer victim;
    char in[8];

    open_and_hear(self, &sleeps, &victim);
    POST(fi_trecv(self->ep, in, 8, NULL, victim.to, TAG, 0, in));
    process_kill(&victim.process);
    assert_int_equal(fi_cq_sread(self->rx, &entry, 1, NULL, END_PATIENCE_S * 1000), -FI_EAVAIL);
    expect_error(self->rx, &victim, in);
}

/* Posts a receive while others sleep. */
struct sleeper {
    struct end *e;
    fi_addr_t from;
    char in[8];
};

static void *post_in_a_while(void *arg)
{
    struct sleeper *s = arg;

    end_sleep_ms(3 * PEER_TIMEOUT_MS);
    must(fi_trecv(s->e->ep, s->in, sizeof(s->in), NULL, s->from, TAG, 0, s->in) == 0);
    return NULL;
}

/* It is posted while another thread sleeps, which nothing else will wake. */
TEST_F(end, ofi_expect__receive_posted_in_sleep)
{
    struct fi_cq_tagged_entry entry;
    struct peer victim;
    pthread_t thread;

    open_and_hear(self, &sleeps, &victim);
    process_kill(&victim.process);
    struct sleeper s = {.e = self, .from = victim.to};
    must(pthread_create(&thread, NULL, post_in_a_while, &s) == 0);
    assert_int_equal(fi_cq_sread(self->rx, &entry, 1, NULL, SLACK_S * 1000), -FI_EAVAIL);
    expect_error(self->rx, &victim, s.in);
    must(pthread_join(thread, NULL) == 0);
}

/* What came before its sender died is for the receive that was first, also if it is read later. */
TEST_F(end, ofi_expect__message_before_the_news)
{
    struct peer victim;
    char in[8], word;

    start(&victim, twice);
    end_open(self, &options, NULL);
    meet(self, &victim);
    hear_of(self, &victim);
    POST(fi_recv(self->ep, in, 1, NULL, victim.to, in));
    ends_drive_for(20);
    process_tell(victim.process.channel, "s", 1);
    must(process_hear(victim.process.channel, &word, 1, patience_ns()));
    process_kill(&victim.process);
    end_sleep_ms(3 * PEER_TIMEOUT_MS); /* without progress */
    POST(fi_recv(self->ep, in + 1, 1, NULL, victim.to, in + 1));
    end_ok(self->rx, in);
    assert_int_equal(in[0], 'c');
    expect_error(self->rx, &victim, in + 1);
}

/* That nobody was there when something was sent is not the fate of receives for who came then. */
TEST_F(end, ofi_expect__old_news_and_receive)
{
    struct peer sender;
    struct entry entry;
    char in[16];

    start(&sender, reborn);
    open_before(self, &sender);
    POST(fi_trecv(self->ep, in, 8, NULL, sender.to, TAG, 0, in));
    POST(fi_recv(self->ep, in + 8, 8, NULL, FI_ADDR_UNSPEC, in + 8));
    POST(fi_send(self->ep, "a", 1, NULL, sender.to, NULL));
    end_sleep_ms(3 * PEER_TIMEOUT_MS);
    uint64_t since_ns = end_now_ns();
    while (!end_take(self->tx, &entry)) /* and no more progress is made */
        end_patience(since_ns);
    assert_int_equal(entry.err, FI_EHOSTUNREACH);
    take_over(self, &sender.told, &sender);
    POST(fi_send(self->ep, "a", 1, NULL, sender.to, NULL));
    end_sleep_ms(PEER_TIMEOUT_MS / 2);
    since_ns = end_now_ns();
    while (!end_take(self->rx, &entry))
        end_patience(since_ns);
    assert_ptr_equal(entry.ok.op_context, in + 8);
    assert_int_equal(entry.err, 0);
    ends_drive_for(20);
    end_silent(self->rx);
    part(&sender);
}

/* A receive told of the one that was there before, but not of what was injected to the next. */
TEST_F(end, ofi_expect__injected_after_another_came)
{
    struct peer victim, second, third;
    char in[8];

    needs_patience();
    start(&second, reborn);
    start(&third, reborn);
    open_and_hear(self, &options, &victim);
    POST(fi_trecv(self->ep, in, sizeof(in), NULL, victim.to, TAG, 0, in));
    process_kill(&victim.process);
    expect_error(self->rx, &victim, in);
    take_over(self, &victim.told, &second);
    second.to = victim.to;
    hear_of(self, &second);
    process_stop(&second.process); /* what is injected is for this one, whoever makes progress */
    POST(fi_inject(self->ep, "a", 1, victim.to));
    process_kill(&second.process);
    take_over(self, &victim.told, &third);
    end_fails_bare(self->tx, FI_EHOSTUNREACH);
    process_tell(third.process.channel, "q", 1);
    process_kill(&third.process);
}

/* Who was never heard of may have yet to start. */
TEST_F(end, ofi_expect__receive_before_its_sender)
{
    struct peer sender;
    char in[8];

    start(&sender, reborn);
    open_before(self, &sender);
    POST(fi_recv(self->ep, in, sizeof(in), NULL, sender.to, in));
    POST(fi_send(self->ep, "a", 1, NULL, sender.to, NULL));
    expect_error(self->tx, &sender, NULL);
    ends_drive_for(3 * PEER_TIMEOUT_MS);
    end_silent(self->rx);
    take_over(self, &sender.told, &sender);
    POST(fi_send(self->ep, "a", 1, NULL, sender.to, NULL));
    end_ok(self->rx, in);
    part(&sender);
}

/* It closes, as programs do, and nobody comes where it was. */
TEST_F(end, ofi_expect__receive_from_one_that_closed)
{
    struct peer victim;
    char in[8];

    open_and_hear(self, &options, &victim);
    POST(fi_recv(self->ep, in, sizeof(in), NULL, victim.to, in));
    ends_drive_for(20);
    part(&victim);
    expect_error(self->rx, &victim, in);
}

/* The message of another one that soon comes where it was is for a receive that was posted before. */
TEST_F(end, ofi_expect__receive_across_a_restart)
{
    struct peer victim, second;
    char in[8];

    needs_patience();
    start(&second, reborn);
    open_and_hear(self, &options, &victim);
    POST(fi_recv(self->ep, in, sizeof(in), NULL, victim.to, in));
    ends_drive_for(20);
    part(&victim);
    take_over(self, &victim.told, &second);
    POST(fi_send(self->ep, "a", 1, NULL, victim.to, NULL));
    end_ok(self->rx, in);
    part(&second);
}

/* It is the next one at its address whose death ends the receive: that one is watched, too. */
TEST_F(end, ofi_expect__death_of_the_next_one)
{
    struct peer victim, second;
    char in[8], any[8];

    needs_patience();
    start(&second, reborn);
    open_and_hear(self, &options, &victim);
    POST(fi_trecv(self->ep, in, sizeof(in), NULL, victim.to, TAG, 0, in));
    ends_drive_for(20);
    process_kill(&victim.process);
    take_over(self, &victim.told, &second);
    POST(fi_recv(self->ep, any, sizeof(any), NULL, FI_ADDR_UNSPEC, any));
    do { /* what was for the first is not for the second */
        POST(fi_send(self->ep, "a", 1, NULL, victim.to, NULL));
    } while (end_next(self->tx).err);
    end_ok(self->rx, any);
    ends_drive_for(20); /* and reads of the change */
    process_kill(&second.process);
    expect_error(self->rx, &victim, in);
}

/* The peer is killed and another one comes where it was; the news of that is there, and is not read. */
static void replace_unread(struct end *e, struct peer *victim, struct peer *second)
{
    char in[8];

    start(second, reborn);
    open_and_hear(e, &options, victim);
    POST(fi_recv(e->ep, in, sizeof(in), NULL, victim->to, in));
    ends_drive_for(20);
    assert_int_equal(fi_cancel(&e->ep->fid, in), 0);
    end_fails(e->rx, in, FI_ECANCELED);
    process_kill(&victim->process);
    end_sleep_ms(3 * PEER_TIMEOUT_MS);
    take_over(e, &victim->told, second);
    second->to = victim->to;
}

/* That one was gone is not the fate of a receive that is posted after another one came. */
TEST_F(end, ofi_expect__receive_after_old_news)
{
    struct peer victim, second;
    char in[8];

    replace_unread(self, &victim, &second);
    POST(fi_recv(self->ep, in, sizeof(in), NULL, victim.to, in));
    POST(fi_send(self->ep, "a", 1, NULL, victim.to, NULL));
    end_ok(self->rx, in);
    part(&second);
}

/* Nor of what is posted to that one then, and waits: for a key, */
TEST_F(end, ofi_expect__write_after_old_news)
{
    struct peer victim, second;
    char out[8] = {0};

    replace_unread(self, &victim, &second);
    POST(fi_write(self->ep, out, sizeof(out), NULL, victim.to, 0, KEY, out));
    end_ok(self->tx, out);
    hear_of(self, &second);
    part(&second);
}

/* for the receiver to have it, */
TEST_F(end, ofi_expect__confirmed_message_after_old_news)
{
    struct peer victim, second;
    int tx;
    char in[8];

    replace_unread(self, &victim, &second);
    POST(fi_recv(self->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    POST(end_sendmsg(self, "a", 1, victim.to, &tx, FI_DELIVERY_COMPLETE));
    end_ok(self->tx, &tx);
    end_ok(self->rx, in);
    part(&second);
}

/* or for what its program does. */
TEST_F(end, ofi_expect__atomic_after_old_news)
{
    struct peer victim, second;
    uint32_t out[2] = {0};

    replace_unread(self, &victim, &second);
    POST(fi_atomic(self->ep, out, 2, NULL, victim.to, 0, KEY, FI_UINT32, FI_BXOR, out));
    end_ok(self->tx, out);
    hear_of(self, &second);
    part(&second);
}
