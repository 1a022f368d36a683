/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end is a process, and is killed: what it owes ends with an error that names it, and the
 * endpoint goes on with others. Run with FI_MRD_PEER_TIMEOUT of a second.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/udp/udp_process.h"

enum {
    KEY = 4,
    MEMORY = 1 << 20,
    LONG = 1 << 20,
    TAG = 9,
    EAGER = 10,
    INJECTED = 200,
    PEER_TIMEOUT_MS = 1000, /* FI_MRD_PEER_TIMEOUT */
    SLACK_S = 60,           /* beside the second that a peer has to answer */
};

static const struct end_options options = {.order = FI_ORDER_SAS, .counts = FI_SEND};

/* What processes tell each other first. */
struct told {
    struct sockaddr_in name;
};

static uint64_t patience_ns(void)
{
    return clock_now_ns() + END_PATIENCE_S * SEC_NS;
}

static struct told name_of(const struct end *e)
{
    size_t bytes = sizeof(struct sockaddr_in);
    struct told told;

    must(fi_getname(&e->ep->fid, &told.name, &bytes) == 0);
    return told;
}

/* ---------------------------------------------------------------------------------- what children do */

/* At `port`, or any; knows its parent as e->to. */
static void child_open(int channel, struct end *e, uint16_t port)
{
    struct end_options o = options;
    struct told told;

    setenv("CMOCKA_TEST_ABORT", "1", 1); /* it has no tests to go on with */
    o.port = port;
    end_open(e, &o, NULL);
    told = name_of(e);
    process_tell(channel, &told, sizeof(told));
    must(process_hear(channel, &told, sizeof(told), patience_ns()));
    must(fi_av_insert(e->av, &told.name, 1, &e->to, 0, NULL) == 1);
}

static void drive_until_told(int channel)
{
    char word;

    while (!process_hear(channel, &word, 1, clock_now_ns()))
        ends_drive();
}

/* Has memory, and receives nothing. */
static void target(int channel)
{
    uint64_t *memory = calloc(1, MEMORY);
    struct fid_mr *mr;
    struct end e;

    child_open(channel, &e, 0);
    must(fi_mr_reg(e.domain, memory, MEMORY, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr,
                   NULL) == 0);
    process_tell(channel, "r", 1);
    drive_until_told(channel);
}

/* Has a long message to send. */
static void long_sender(int channel)
{
    uint8_t *out = filled(LONG, 1);
    struct end e;

    child_open(channel, &e, 0);
    POST(fi_tsend(e.ep, out, LONG, NULL, e.to, TAG, NULL));
    drive_until_told(channel);
}

/* Receives one message and sends one. */
static void answer(struct end *e)
{
    char in[8];

    POST(fi_recv(e->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
    (void)end_ok(e->rx, NULL);
    POST(fi_send(e->ep, "b", 1, NULL, e->to, NULL));
    (void)end_ok(e->tx, NULL);
}

static void alive(int channel)
{
    struct end e;

    child_open(channel, &e, 0);
    answer(&e);
    drive_until_told(channel);
    end_close(&e);
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

/* Waits for the port that another one had; has memory under that one's key, and one more. */
static void reborn(int channel)
{
    uint64_t *memory = calloc(2, MEMORY);
    struct fid_mr *mr[2];
    struct told told;
    struct end e;

    must(process_hear(channel, &told, sizeof(told), patience_ns()));
    child_open(channel, &e, ntohs(told.name.sin_port));
    for (unsigned i = 0; i < 2; i++)
        must(fi_mr_reg(e.domain, memory + i * MEMORY / 8, MEMORY, FI_REMOTE_READ | FI_REMOTE_WRITE,
                       0, KEY + i, 0, &mr[i], NULL) == 0);
    process_tell(channel, "r", 1);
    answer(&e);
    drive_until_told(channel);
    for (unsigned i = 0; i < 2; i++)
        must(fi_close(&mr[i]->fid) == 0);
    end_close(&e);
}

/* Tells how many of the messages came in order. */
static void counter(int channel)
{
    uint32_t in = 0, num = 0;
    struct end e;

    child_open(channel, &e, 0);
    for (; num < INJECTED; num++) {
        POST(fi_recv(e.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in));
        (void)end_ok(e.rx, &in);
        must(in == num);
    }
    process_tell(channel, &num, sizeof(num));
    end_close(&e);
}

/* ------------------------------------------------------------------------------------ what tests do */

/* A child as the test sees it. */
struct peer {
    struct process process;
    struct told told;
    fi_addr_t to;
};

static void meet(struct end *e, struct peer *p)
{
    struct told own = name_of(e);

    must(process_hear(p->process.channel, &p->told, sizeof(p->told), patience_ns()));
    process_tell(p->process.channel, &own, sizeof(own));
    assert_int_equal(fi_av_insert(e->av, &p->told.name, 1, &p->to, 0, NULL), 1);
}

static void meet_target(struct end *e, struct peer *p)
{
    char word;

    meet(e, p);
    must(process_hear(p->process.channel, &word, 1, patience_ns()));
}

/* An operation of this context, or any if it is NULL, ends with an error that names the peer. */
static void expect_error(struct fid_cq *cq, const struct peer *p, const void *context)
{
    struct entry entry = end_next(cq);
    char name[64];

    if (context)
        assert_ptr_equal(entry.ok.op_context, context);
    assert_int_equal(entry.err, FI_EHOSTUNREACH);
    snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(p->told.name.sin_port));
    if (!strstr(entry.text, name))
        fail_msg("\"%s\" does not name %s", entry.text, name);
}

static void expect_errors(struct end *e, const struct peer *p, unsigned num)
{
    uint64_t since_ns = end_now_ns();

    for (unsigned i = 0; i < num; i++)
        expect_error(e->tx, p, NULL);
    assert_true(end_now_ns() - since_ns < SLACK_S * SEC_NS);
    end_silent(e->tx);
}

/* Messages go to the other one and back. */
static void expect_alive(struct end *e, struct peer *other)
{
    char in[8];

    POST(fi_recv(e->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    POST(fi_send(e->ep, "a", 1, NULL, other->to, &in[1]));
    end_ok(e->tx, &in[1]);
    assert_int_equal(end_ok(e->rx, in).src, other->to);
    process_tell(other->process.channel, "q", 1);
    process_join(&other->process);
}

static void start(struct peer *p, void (*body)(int channel))
{
    process_start(&p->process, body);
}

static ssize_t send_flagged(struct end *e, fi_addr_t to, uint64_t flags)
{
    struct iovec iov = {(void *)(uintptr_t) "x", 1};

    return fi_sendmsg(e->ep, &(struct fi_msg){.msg_iov = &iov, .iov_count = 1, .addr = to}, flags);
}

/* ------------------------------------------------------------------------------------------- messages */

/* Some are there, but no receive has them; others are sent to nobody. */
static void ofi_dead__messages(void **state)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim, other;
    struct end e;

    (void)state;
    start(&victim, target);
    start(&other, alive);
    end_open(&e, &options, NULL);
    meet_target(&e, &victim);
    meet(&e, &other);
    POST(fi_send(e.ep, out, 100, NULL, victim.to, out));
    end_ok(e.tx, out);
    POST(send_flagged(&e, victim.to, FI_DELIVERY_COMPLETE));
    POST(fi_send(e.ep, out, LONG, NULL, victim.to, NULL));
    end_silent(e.tx);
    process_stop(&victim.process);
    for (unsigned i = 0; i < EAGER; i++)
        POST(fi_send(e.ep, out, EAGER_BYTES, NULL, victim.to, NULL));
    POST(fi_inject(e.ep, out, 1, victim.to));
    process_kill(&victim.process);
    POST(fi_send(e.ep, out, LONG, NULL, victim.to, NULL));
    expect_errors(&e, &victim, 2 + EAGER + 1 + 1);
    assert_int_equal(fi_cntr_readerr(end_cntr(&e, FI_SEND)), 2 + EAGER + 1 + 1);

    /* It is gone: what follows fails, too. */
    POST(fi_send(e.ep, out, 1, NULL, victim.to, out));
    expect_error(e.tx, &victim, out);
    expect_alive(&e, &other);
    end_close(&e);
    free(out);
}

/* How many lines of the file name the peer. */
static unsigned lines_about(FILE *log, const struct peer *p)
{
    char line[512], name[64];
    unsigned num = 0;

    snprintf(name, sizeof(name), "127.0.0.1:%u: peer unreachable", ntohs(p->told.name.sin_port));
    rewind(log);
    while (fgets(line, sizeof(line), log))
        num += strstr(line, name) != NULL;
    return num;
}

/* Once for each peer, also if nothing is asked of libfabric's log. */
static void ofi_dead__the_user_is_told(void **state)
{
    int kept = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    struct peer victim[2];
    struct end e;

    (void)state;
    if (getenv("FI_LOG_LEVEL"))
        skip();
    for (unsigned i = 0; i < 2; i++)
        start(&victim[i], target);
    end_open(&e, &options, NULL);
    for (unsigned i = 0; i < 2; i++)
        meet_target(&e, &victim[i]);
    for (unsigned i = 0; i < 2; i++)
        process_kill(&victim[i].process);
    must(log && kept >= 0 && dup2(fileno(log), STDERR_FILENO) == STDERR_FILENO);
    for (unsigned i = 0; i < EAGER; i++)
        POST(fi_send(e.ep, "x", 1, NULL, victim[0].to, NULL));
    POST(fi_inject(e.ep, "x", 1, victim[1].to));
    for (unsigned i = 0; i < EAGER + 1; i++)
        (void)end_next(e.tx);
    must(dup2(kept, STDERR_FILENO) == STDERR_FILENO);
    close(kept);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(lines_about(log, &victim[i]), 1);
    fclose(log);
    end_close(&e);
}

/* Who always has a message to deal with hears of it, too. */
static void ofi_dead__under_traffic(void **state)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim;
    fi_addr_t self;
    struct end e;
    uint64_t since_ns;
    struct entry entry = {0};
    char in;

    (void)state;
    start(&victim, target);
    end_open(&e, &options, NULL);
    meet_target(&e, &victim);
    self = end_meet(&e, &e);
    POST(fi_send(e.ep, out, LONG, NULL, victim.to, out));
    end_silent(e.tx);
    process_kill(&victim.process);
    since_ns = end_now_ns();
    while (!end_take(e.tx, &entry)) {
        POST(fi_recv(e.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
        POST(fi_inject(e.ep, "x", 1, self));
        end_ok(e.rx, &in);
        end_patience(since_ns);
    }
    assert_int_equal(entry.err, FI_EHOSTUNREACH);
    end_close(&e);
    free(out);
}

/* It was announced by its sender, who is killed before it is read. */
static void ofi_dead__sender_of_a_long_message(void **state)
{
    struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .tag = TAG};
    uint8_t *in = blank(LONG);
    struct peer victim, other;
    struct entry entry = {.err = FI_ENOMSG};
    uint64_t since_ns;
    struct end e;

    (void)state;
    start(&victim, long_sender);
    start(&other, alive);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    meet(&e, &other);
    since_ns = end_now_ns();
    while (entry.err == FI_ENOMSG) {
        assert_int_equal(fi_trecvmsg(e.ep, &peek, FI_PEEK), 0);
        entry = end_next(e.rx);
        end_patience(since_ns);
    }
    assert_int_equal(entry.ok.len, LONG);
    process_stop(&victim.process);
    POST(fi_trecv(e.ep, in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, in));
    ends_drive_for(20);
    process_kill(&victim.process);
    since_ns = end_now_ns();
    expect_error(e.rx, &victim, in);
    assert_true(end_now_ns() - since_ns < SLACK_S * SEC_NS);
    expect_alive(&e, &other);
    end_close(&e);
    free(in);
}

/* --------------------------------------------------------------------------------------------- receives */

/* The other end answers: it was heard of. */
static void hear_of(struct end *e, const struct peer *p)
{
    char in[8];

    POST(fi_recv(e->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    POST(fi_send(e->ep, "a", 1, NULL, p->to, &in[1]));
    end_ok(e->tx, &in[1]);
    assert_int_equal(end_ok(e->rx, in).src, p->to);
}

/* Those that name it end, if nothing else has to do with it, too. */
static void ofi_dead__receives_from_it(void **state)
{
    char in[64], any[8], all[8];
    struct iovec iov = {in + 32, 32};
    struct fi_msg multi = {.msg_iov = &iov, .iov_count = 1, .context = in + 32};
    struct peer victim, other;
    struct end e;

    (void)state;
    start(&victim, alive);
    start(&other, alive);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    meet(&e, &other);
    hear_of(&e, &victim);
    multi.addr = victim.to;
    POST(fi_trecv(e.ep, any, sizeof(any), NULL, FI_ADDR_UNSPEC, TAG, 0, any));
    POST(fi_recvmsg(e.ep, &multi, FI_MULTI_RECV));
    POST(fi_recv(e.ep, in, 8, NULL, victim.to, in));
    POST(fi_recv(e.ep, all, sizeof(all), NULL, other.to, all));
    POST(fi_trecv(e.ep, in + 8, 8, NULL, victim.to, TAG, 0, in + 8));
    POST(fi_trecv(e.ep, in + 16, 8, NULL, victim.to, TAG, 0, in + 16));
    assert_int_equal(fi_cancel(&e.ep->fid, in + 16), 0);
    end_fails(e.rx, in + 16, FI_ECANCELED);
    end_silent(e.rx);
    process_stop(&victim.process);
    POST(fi_inject(e.ep, "a", 1, victim.to));
    process_kill(&victim.process);
    expect_error(e.rx, &victim, in + 32);
    expect_error(e.rx, &victim, in);
    expect_error(e.rx, &victim, in + 8);
    UNTIL(fi_cntr_readerr(end_cntr(&e, FI_SEND)) == 1);
    end_silent(e.tx); /* what the receives told */

    /* It was heard of once: who waits for it again hears of it again. */
    POST(fi_trecv(e.ep, in, 8, NULL, victim.to, TAG, 0, in));
    expect_error(e.rx, &victim, in);
    end_silent(e.rx);
    POST(fi_send(e.ep, "a", 1, NULL, other.to, NULL));
    end_ok(e.rx, all);
    process_tell(other.process.channel, "q", 1);
    process_join(&other.process);
    end_close(&e);
}

/* Without a receive the entry of what was injected tells. */
static void ofi_dead__injected_and_no_receive(void **state)
{
    struct peer victim;
    struct end e;
    char in[8];

    (void)state;
    start(&victim, alive);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    POST(fi_trecv(e.ep, in, sizeof(in), NULL, victim.to, TAG, 0, in));
    process_kill(&victim.process);
    expect_error(e.rx, &victim, in);
    for (unsigned i = 0; i < 2; i++) {
        POST(fi_inject(e.ep, "a", 1, victim.to));
        expect_error(e.tx, &victim, NULL);
    }
    end_close(&e);
}

/* One that sleeps until there is something has no other reason to wake up. */
static void ofi_dead__receive_in_sleep(void **state)
{
    struct end_options sleeps = options;
    struct fi_cq_tagged_entry entry;
    struct peer victim;
    struct end e;
    char in[8];

    (void)state;
    sleeps.wait = FI_WAIT_UNSPEC;
    start(&victim, alive);
    end_open(&e, &sleeps, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    POST(fi_trecv(e.ep, in, 8, NULL, victim.to, TAG, 0, in));
    process_kill(&victim.process);
    assert_int_equal(fi_cq_sread(e.rx, &entry, 1, NULL, END_PATIENCE_S * 1000), -FI_EAVAIL);
    expect_error(e.rx, &victim, in);
    end_close(&e);
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
static void ofi_dead__receive_posted_in_sleep(void **state)
{
    struct end_options sleeps = options;
    struct fi_cq_tagged_entry entry;
    struct peer victim;
    struct sleeper s;
    pthread_t thread;
    struct end e;

    (void)state;
    sleeps.wait = FI_WAIT_UNSPEC;
    sleeps.threading = FI_THREAD_SAFE;
    start(&victim, alive);
    end_open(&e, &sleeps, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    process_kill(&victim.process);
    s = (struct sleeper){.e = &e, .from = victim.to};
    must(pthread_create(&thread, NULL, post_in_a_while, &s) == 0);
    assert_int_equal(fi_cq_sread(e.rx, &entry, 1, NULL, SLACK_S * 1000), -FI_EAVAIL);
    expect_error(e.rx, &victim, s.in);
    must(pthread_join(thread, NULL) == 0);
    end_close(&e);
}

/* What came before its sender died is for the receive that was first, also if it is read later. */
static void ofi_dead__message_before_the_news(void **state)
{
    struct peer victim;
    char in[8], word;
    struct end e;

    (void)state;
    start(&victim, twice);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    POST(fi_recv(e.ep, in, 1, NULL, victim.to, in));
    ends_drive_for(20);
    process_tell(victim.process.channel, "s", 1);
    must(process_hear(victim.process.channel, &word, 1, patience_ns()));
    process_kill(&victim.process);
    end_sleep_ms(3 * PEER_TIMEOUT_MS); /* without progress */
    POST(fi_recv(e.ep, in + 1, 1, NULL, victim.to, in + 1));
    end_ok(e.rx, in);
    assert_int_equal(in[0], 'c');
    expect_error(e.rx, &victim, in + 1);
    end_close(&e);
}

/* That nobody was there when something was sent is not the fate of receives for who came then. */
static void ofi_dead__old_news_and_receive(void **state)
{
    struct end first, e;
    struct peer sender;
    struct entry entry;
    uint64_t since_ns;
    char in[16];

    (void)state;
    start(&sender, reborn);
    end_open(&first, &options, NULL);
    end_open(&e, &options, NULL);
    sender.told = name_of(&first);
    end_close(&first);
    assert_int_equal(fi_av_insert(e.av, &sender.told.name, 1, &sender.to, 0, NULL), 1);
    POST(fi_trecv(e.ep, in, 8, NULL, sender.to, TAG, 0, in));
    POST(fi_recv(e.ep, in + 8, 8, NULL, FI_ADDR_UNSPEC, in + 8));
    POST(fi_send(e.ep, "a", 1, NULL, sender.to, NULL));
    end_sleep_ms(3 * PEER_TIMEOUT_MS);
    since_ns = end_now_ns();
    while (!end_take(e.tx, &entry)) /* and nothing more: the news is not read yet */
        end_patience(since_ns);
    assert_int_equal(entry.err, FI_EHOSTUNREACH);
    process_tell(sender.process.channel, &sender.told, sizeof(sender.told));
    meet_target(&e, &sender);
    POST(fi_send(e.ep, "a", 1, NULL, sender.to, NULL));
    end_sleep_ms(PEER_TIMEOUT_MS / 2);
    since_ns = end_now_ns();
    while (!end_take(e.rx, &entry))
        end_patience(since_ns);
    assert_ptr_equal(entry.ok.op_context, in + 8);
    assert_int_equal(entry.err, 0);
    ends_drive_for(20);
    end_silent(e.rx);
    process_tell(sender.process.channel, "q", 1);
    process_join(&sender.process);
    end_close(&e);
}

/* A receive told of the one that was there before, but not of what was injected to the next. */
static void ofi_dead__injected_after_another_came(void **state)
{
    struct peer victim, second, third;
    struct end e;
    char in[8];

    (void)state;
    start(&victim, alive);
    start(&second, reborn);
    start(&third, reborn);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    POST(fi_trecv(e.ep, in, sizeof(in), NULL, victim.to, TAG, 0, in));
    process_kill(&victim.process);
    expect_error(e.rx, &victim, in);
    process_tell(second.process.channel, &victim.told, sizeof(victim.told));
    meet_target(&e, &second);
    second.to = victim.to;
    hear_of(&e, &second);
    process_kill(&second.process);
    process_tell(third.process.channel, &victim.told, sizeof(victim.told));
    meet_target(&e, &third);
    POST(fi_inject(e.ep, "a", 1, victim.to));
    expect_error(e.tx, &victim, NULL);
    process_tell(third.process.channel, "q", 1);
    process_kill(&third.process);
    end_close(&e);
}

/* Who was never heard of may have yet to start. */
static void ofi_dead__receive_before_its_sender(void **state)
{
    struct end first, e;
    struct peer sender;
    char in[8];

    (void)state;
    start(&sender, reborn);
    end_open(&first, &options, NULL);
    end_open(&e, &options, NULL);
    sender.told = name_of(&first);
    end_close(&first);
    assert_int_equal(fi_av_insert(e.av, &sender.told.name, 1, &sender.to, 0, NULL), 1);
    POST(fi_recv(e.ep, in, sizeof(in), NULL, sender.to, in));
    POST(fi_send(e.ep, "a", 1, NULL, sender.to, NULL));
    expect_error(e.tx, &sender, NULL);
    ends_drive_for(3 * PEER_TIMEOUT_MS);
    end_silent(e.rx);
    process_tell(sender.process.channel, &sender.told, sizeof(sender.told));
    meet_target(&e, &sender);
    POST(fi_send(e.ep, "a", 1, NULL, sender.to, NULL));
    end_ok(e.rx, in);
    process_tell(sender.process.channel, "q", 1);
    process_join(&sender.process);
    end_close(&e);
}

/* It closes, as programs do, and nobody comes where it was. */
static void ofi_dead__receive_from_one_that_closed(void **state)
{
    struct peer victim;
    struct end e;
    char in[8];

    (void)state;
    start(&victim, alive);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    POST(fi_recv(e.ep, in, sizeof(in), NULL, victim.to, in));
    ends_drive_for(20);
    process_tell(victim.process.channel, "q", 1);
    process_join(&victim.process);
    expect_error(e.rx, &victim, in);
    end_close(&e);
}

/* The message of another one that soon comes where it was is for a receive that was posted before. */
static void ofi_dead__receive_across_a_restart(void **state)
{
    struct peer victim, second;
    struct end e;
    char in[8];

    (void)state;
    start(&victim, alive);
    start(&second, reborn);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    POST(fi_recv(e.ep, in, sizeof(in), NULL, victim.to, in));
    ends_drive_for(20);
    process_tell(victim.process.channel, "q", 1);
    process_join(&victim.process);
    process_tell(second.process.channel, &victim.told, sizeof(victim.told));
    meet_target(&e, &second);
    POST(fi_send(e.ep, "a", 1, NULL, victim.to, NULL));
    end_ok(e.rx, in);
    process_tell(second.process.channel, "q", 1);
    process_join(&second.process);
    end_close(&e);
}

/* That one was gone is not the fate of a receive that is posted after another one came. */
static void ofi_dead__receive_after_old_news(void **state)
{
    struct peer victim, second;
    struct end e;
    char in[8];

    (void)state;
    start(&victim, alive);
    start(&second, reborn);
    end_open(&e, &options, NULL);
    meet(&e, &victim);
    hear_of(&e, &victim);
    POST(fi_recv(e.ep, in, sizeof(in), NULL, victim.to, in));
    ends_drive_for(20);
    assert_int_equal(fi_cancel(&e.ep->fid, in), 0);
    end_fails(e.rx, in, FI_ECANCELED);
    process_kill(&victim.process);
    end_sleep_ms(3 * PEER_TIMEOUT_MS); /* the news comes, and is not read */
    process_tell(second.process.channel, &victim.told, sizeof(victim.told));
    meet_target(&e, &second);
    POST(fi_recv(e.ep, in, sizeof(in), NULL, victim.to, in));
    POST(fi_send(e.ep, "a", 1, NULL, victim.to, NULL));
    end_ok(e.rx, in);
    process_tell(second.process.channel, "q", 1);
    process_join(&second.process);
    end_close(&e);
}

/* ---------------------------------------------------------------------------------------------- memory */

/* Under way when it is killed, and after: of a key that is known, and of one that is not. */
static void ofi_dead__memory(void **state)
{
    uint8_t *out = filled(MEMORY, 1), *in = blank(MEMORY);
    struct peer victim, other;
    struct end e;

    (void)state;
    start(&victim, target);
    start(&other, alive);
    end_open(&e, &options, NULL);
    meet_target(&e, &victim);
    meet(&e, &other);
    POST(fi_write(e.ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    end_ok(e.tx, out);
    process_stop(&victim.process);
    POST(fi_write(e.ep, out, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_read(e.ep, in, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_write(e.ep, out, 100, NULL, victim.to, 0, KEY + 1, NULL));
    POST(fi_inject_write(e.ep, out, 100, victim.to, 0, KEY));
    process_kill(&victim.process);
    POST(fi_read(e.ep, in, 100, NULL, victim.to, 0, KEY + 2, NULL));
    POST(fi_writedata(e.ep, out, 100, NULL, 5, victim.to, 0, KEY, NULL));
    expect_errors(&e, &victim, 6);
    POST(fi_write(e.ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    expect_error(e.tx, &victim, out);
    expect_alive(&e, &other);
    end_close(&e);
    free(in);
    free(out);
}

static void ofi_dead__atomics(void **state)
{
    uint64_t operand[2] = {1, 2}, result[2] = {0};
    struct peer victim, other;
    struct end e;

    (void)state;
    start(&victim, target);
    start(&other, alive);
    end_open(&e, &options, NULL);
    meet_target(&e, &victim);
    meet(&e, &other);
    for (unsigned i = 1; i <= 2; i++) {
        POST(fi_atomic(e.ep, operand, i, NULL, victim.to, 0, KEY, FI_UINT64, FI_SUM, operand));
        end_ok(e.tx, operand);
    }
    process_stop(&victim.process);
    for (unsigned i = 1; i <= 2; i++) {
        POST(fi_atomic(e.ep, operand, i, NULL, victim.to, 0, KEY, FI_UINT64, FI_SUM, NULL));
        POST(fi_fetch_atomic(e.ep, operand, i, NULL, result, NULL, victim.to, 0, KEY, FI_UINT64,
                             FI_SUM, NULL));
    }
    process_kill(&victim.process);
    POST(fi_compare_atomic(e.ep, operand, 1, NULL, operand, NULL, result, NULL, victim.to, 0, KEY,
                           FI_UINT64, FI_CSWAP, NULL));
    expect_errors(&e, &victim, 5);
    assert_int_equal(result[0], 0);
    expect_alive(&e, &other);
    end_close(&e);
}

/* ------------------------------------------------------------------------------------- others, closing */

/* Another process comes where the dead one was, before anybody gave that one up. */
static void ofi_dead__another_at_its_address(void **state)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim, second;
    uint64_t word = 0;
    struct end e;

    (void)state;
    start(&victim, target);
    start(&second, reborn);
    end_open(&e, &options, NULL);
    meet_target(&e, &victim);
    POST(fi_write(e.ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    end_ok(e.tx, out);
    POST(fi_send(e.ep, out, LONG, NULL, victim.to, NULL));
    POST(send_flagged(&e, victim.to, FI_DELIVERY_COMPLETE));
    end_silent(e.tx);
    process_stop(&victim.process);
    POST(fi_read(e.ep, &word, 8, NULL, victim.to, 0, KEY + 1, NULL));
    ends_drive();
    process_kill(&victim.process);
    process_tell(second.process.channel, &victim.told, sizeof(victim.told));
    meet_target(&e, &second);
    assert_int_equal(second.told.name.sin_port, victim.told.name.sin_port);
    for (unsigned i = 0; i < 3; i++)
        assert_true(end_next(e.tx).err != 0);
    second.to = victim.to;
    for (unsigned i = 0; i < 2; i++) {
        POST(fi_write(e.ep, out, MEMORY, NULL, victim.to, 0, KEY + i, out));
        end_ok(e.tx, out);
        POST(fi_read(e.ep, &word, 8, NULL, victim.to, 0, KEY + i, &word));
        end_ok(e.tx, &word);
        assert_memory_equal(&word, out, 8);
    }
    expect_alive(&e, &second);
    end_close(&e);
    free(out);
}

/* That one peer was gone is not the fate of what is posted after another one came. */
static void ofi_dead__old_news(void **state)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim, second;
    struct end e;

    (void)state;
    start(&victim, target);
    start(&second, reborn);
    end_open(&e, &options, NULL);
    meet_target(&e, &victim);
    process_stop(&victim.process);
    POST(send_flagged(&e, victim.to, FI_DELIVERY_COMPLETE));
    POST(fi_write(e.ep, out, 100, NULL, victim.to, 0, KEY, NULL));
    for (unsigned i = 0; i < 2; i++)
        expect_error(e.tx, &victim, NULL); /* and nothing more: the news is not read yet */
    process_kill(&victim.process);
    process_tell(second.process.channel, &victim.told, sizeof(victim.told));
    meet_target(&e, &second);
    second.to = victim.to;
    POST(fi_write(e.ep, out, 100, NULL, victim.to, 0, KEY, out));
    end_ok(e.tx, out);
    expect_alive(&e, &second);
    end_close(&e);
    free(out);
}

/* Nobody waits for what is under way: not for somebody who is dead, nor for receives. */
static void ofi_dead__close_with_work_under_way(void **state)
{
    uint8_t *out = filled(MEMORY, 1), *in = blank(MEMORY);
    struct peer victim;
    uint64_t since_ns;
    struct end e;

    (void)state;
    start(&victim, target);
    end_open(&e, &options, NULL);
    meet_target(&e, &victim);
    POST(fi_write(e.ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    end_ok(e.tx, out);
    POST(fi_recv(e.ep, in, MEMORY, NULL, FI_ADDR_UNSPEC, NULL));
    POST(fi_trecv(e.ep, in, MEMORY, NULL, victim.to, TAG, 0, NULL));
    POST(send_flagged(&e, victim.to, FI_DELIVERY_COMPLETE));
    POST(fi_send(e.ep, out, LONG, NULL, victim.to, NULL));
    ends_drive_for(20);
    process_stop(&victim.process);
    POST(fi_inject(e.ep, out, 100, victim.to));
    POST(fi_send(e.ep, out, EAGER_BYTES, NULL, victim.to, NULL));
    POST(fi_write(e.ep, out, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_read(e.ep, in, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_read(e.ep, in, 100, NULL, victim.to, 0, KEY + 1, NULL));
    POST(fi_atomic(e.ep, out, 2, NULL, victim.to, 0, KEY, FI_UINT32, FI_BXOR, NULL));
    process_kill(&victim.process);
    since_ns = end_now_ns();
    end_close(&e);
    assert_true(end_now_ns() - since_ns < SLACK_S * SEC_NS);
    free(in);
    free(out);
}

static void ofi_dead__injected_and_closed_at_once(void **state)
{
    struct peer other;
    uint32_t num = 0;
    struct end e;

    (void)state;
    start(&other, counter);
    end_open(&e, &options, NULL);
    meet(&e, &other);
    for (uint32_t i = 0; i < INJECTED; i++)
        POST(fi_inject(e.ep, &i, sizeof(i), other.to));
    end_close(&e);
    must(process_hear(other.process.channel, &num, sizeof(num), patience_ns()));
    assert_int_equal(num, INJECTED);
    process_join(&other.process);
}

static int teardown(void **state)
{
    return ends_teardown(state) | process_teardown(state);
}

/* With an argument: what is run with a FI_MRD_PEER_TIMEOUT that no start of a process exceeds. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ofi_dead__messages, teardown),
        cmocka_unit_test_teardown(ofi_dead__the_user_is_told, teardown),
        cmocka_unit_test_teardown(ofi_dead__under_traffic, teardown),
        cmocka_unit_test_teardown(ofi_dead__sender_of_a_long_message, teardown),
        cmocka_unit_test_teardown(ofi_dead__receives_from_it, teardown),
        cmocka_unit_test_teardown(ofi_dead__injected_and_no_receive, teardown),
        cmocka_unit_test_teardown(ofi_dead__receive_in_sleep, teardown),
        cmocka_unit_test_teardown(ofi_dead__receive_posted_in_sleep, teardown),
        cmocka_unit_test_teardown(ofi_dead__message_before_the_news, teardown),
        cmocka_unit_test_teardown(ofi_dead__old_news_and_receive, teardown),
        cmocka_unit_test_teardown(ofi_dead__injected_after_another_came, teardown),
        cmocka_unit_test_teardown(ofi_dead__receive_before_its_sender, teardown),
        cmocka_unit_test_teardown(ofi_dead__receive_from_one_that_closed, teardown),
        cmocka_unit_test_teardown(ofi_dead__receive_after_old_news, teardown),
        cmocka_unit_test_teardown(ofi_dead__memory, teardown),
        cmocka_unit_test_teardown(ofi_dead__atomics, teardown),
        cmocka_unit_test_teardown(ofi_dead__another_at_its_address, teardown),
        cmocka_unit_test_teardown(ofi_dead__old_news, teardown),
        cmocka_unit_test_teardown(ofi_dead__close_with_work_under_way, teardown),
        cmocka_unit_test_teardown(ofi_dead__injected_and_closed_at_once, teardown),
    };

    const struct CMUnitTest patient[] = {
        cmocka_unit_test_teardown(ofi_dead__receive_across_a_restart, teardown),
    };

    (void)argv;
    return argc > 1 ? cmocka_run_group_tests(patient, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
