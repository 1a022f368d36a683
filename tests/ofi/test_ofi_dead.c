/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end is a process, and is killed: what it owes ends with an error that names it, and the
 * endpoint goes on with others. What posted receives hear of it is in test_ofi_expect.c.
 */
#include "victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EAGER = 10, INJECTED = 200 };

/* ---------------------------------------------------------------------------------- what children do */

/* Has memory, and receives nothing. */
static void target(int channel)
{
    uint8_t *memory = zeros(MEMORY);
    struct end e;

    child_open(channel, &e, 0);
    end_register(&e, memory, MEMORY, REGION_ACCESS, KEY);
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

/* So many operations end with an error; of what was injected, reading the queue tells, once. */
static void expect_errors(struct end *e, const struct peer *p, unsigned num, bool injected)
{
    uint64_t since_ns = end_now_ns();
    bool told = false;

    for (unsigned i = 0; i < num + injected; i++) {
        struct entry entry = end_next(e->tx);

        if (!entry.bare) {
            check_error(&entry, p);
            continue;
        }
        assert_int_equal(entry.err, FI_EHOSTUNREACH);
        assert_true(injected && !told);
        told = true;
    }
    assert_true(end_now_ns() - since_ns < SLACK_S * SEC_NS);
    end_silent(e->tx);
}

/* Messages go to the other one and back. */
static void expect_alive(struct end *e, struct peer *other)
{
    hear_of(e, other);
    part(other);
}

/* One that is complete only when a receive has it. */
static ssize_t send_confirmed(struct end *e, fi_addr_t to)
{
    return end_sendmsg(e, "x", 1, to, NULL, FI_DELIVERY_COMPLETE);
}

/* Opens an endpoint that knows a target, and another process that is alive; NULL: none. */
static void begin(struct end *e, struct peer *victim, struct peer *other)
{
    start(victim, target);
    if (other)
        start(other, alive);
    end_open(e, &options, NULL);
    meet_target(e, victim);
    if (other)
        meet(e, other);
}

/* Opens one that knows a target; another process will come where that one is. */
static void begin_before(struct end *e, struct peer *victim, struct peer *second)
{
    start(second, reborn);
    begin(e, victim, NULL);
}

/* The target is killed, and the other one comes there. */
static void replace(struct end *e, struct peer *victim, struct peer *second)
{
    process_kill(&victim->process);
    process_tell(second->process.channel, &victim->told, sizeof(victim->told));
    meet_target(e, second);
    assert_int_equal(second->told.name.sin_port, victim->told.name.sin_port);
    second->to = victim->to;
}

/* ------------------------------------------------------------------------------------------- messages */

/* Some are there, but no receive has them; others are sent to nobody. */
TEST_F(end, ofi_dead__messages)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim, other;

    begin(self, &victim, &other);
    POST(fi_send(self->ep, out, 100, NULL, victim.to, out));
    end_ok(self->tx, out);
    POST(send_confirmed(self, victim.to));
    POST(fi_send(self->ep, out, LONG, NULL, victim.to, NULL));
    end_silent(self->tx);
    process_stop(&victim.process);
    for (unsigned i = 0; i < EAGER; i++)
        POST(fi_send(self->ep, out, EAGER_BYTES, NULL, victim.to, NULL));
    POST(fi_inject(self->ep, out, 1, victim.to));
    process_kill(&victim.process);
    POST(fi_send(self->ep, out, LONG, NULL, victim.to, NULL));
    expect_errors(self, &victim, 2 + EAGER + 1, true);
    assert_int_equal(fi_cntr_readerr(end_cntr(self, FI_SEND)), 2 + EAGER + 1 + 1);

    /* It is gone: what follows fails, too. */
    POST(fi_send(self->ep, out, 1, NULL, victim.to, out));
    expect_error(self->tx, &victim, out);
    expect_alive(self, &other);
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
TEST_F(end, ofi_dead__the_user_is_told)
{
    int kept = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    struct peer victim[2];

    if (getenv("FI_LOG_LEVEL"))
        skip();
    for (unsigned i = 0; i < 2; i++)
        start(&victim[i], target);
    end_open(self, &options, NULL);
    for (unsigned i = 0; i < 2; i++)
        meet_target(self, &victim[i]);
    for (unsigned i = 0; i < 2; i++)
        process_kill(&victim[i].process);
    must(log && kept >= 0 && dup2(fileno(log), STDERR_FILENO) == STDERR_FILENO);
    for (unsigned i = 0; i < EAGER; i++)
        POST(fi_send(self->ep, "x", 1, NULL, victim[0].to, NULL));
    POST(fi_inject(self->ep, "x", 1, victim[1].to));
    for (unsigned i = 0; i < EAGER + 1; i++)
        (void)end_next(self->tx);
    must(dup2(kept, STDERR_FILENO) == STDERR_FILENO);
    close(kept);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(lines_about(log, &victim[i]), 1);
    fclose(log);
}

/* Who always has a message to deal with hears of it, too. */
TEST_F(end, ofi_dead__under_traffic)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim;
    struct entry entry = {0};
    char in;

    begin(self, &victim, NULL);
    fi_addr_t own = end_meet(self, self);
    POST(fi_send(self->ep, out, LONG, NULL, victim.to, out));
    end_silent(self->tx);
    process_kill(&victim.process);
    uint64_t since_ns = end_now_ns();
    while (!end_take(self->tx, &entry)) {
        POST(fi_recv(self->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
        POST(fi_inject(self->ep, "x", 1, own));
        end_ok(self->rx, &in);
        end_patience(since_ns);
    }
    assert_int_equal(entry.err, FI_EHOSTUNREACH);
}

/* It was announced by its sender, who is killed before it is read. */
TEST_F(end, ofi_dead__sender_of_a_long_message)
{
    struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .tag = TAG};
    uint8_t *in = blank(LONG);
    struct peer victim, other;
    struct entry entry = {.err = FI_ENOMSG};

    start(&victim, long_sender);
    start(&other, alive);
    end_open(self, &options, NULL);
    meet(self, &victim);
    meet(self, &other);
    uint64_t since_ns = end_now_ns();
    while (entry.err == FI_ENOMSG) {
        assert_int_equal(fi_trecvmsg(self->ep, &peek, FI_PEEK), 0);
        entry = end_next(self->rx);
        end_patience(since_ns);
    }
    assert_int_equal(entry.ok.len, LONG);
    process_stop(&victim.process);
    POST(fi_trecv(self->ep, in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, in));
    ends_drive_for(20);
    process_kill(&victim.process);
    since_ns = end_now_ns();
    expect_error(self->rx, &victim, in);
    assert_true(end_now_ns() - since_ns < SLACK_S * SEC_NS);
    expect_alive(self, &other);
}

/* ---------------------------------------------------------------------------------------------- memory */

/* Under way when it is killed, and after: of a key that is known, and of one that is not. */
TEST_F(end, ofi_dead__memory)
{
    uint8_t *out = filled(MEMORY, 1), *in = blank(MEMORY);
    struct peer victim, other;

    begin(self, &victim, &other);
    POST(fi_write(self->ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    end_ok(self->tx, out);
    process_stop(&victim.process);
    POST(fi_write(self->ep, out, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_read(self->ep, in, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_write(self->ep, out, 100, NULL, victim.to, 0, KEY + 1, NULL));
    POST(fi_inject_write(self->ep, out, 100, victim.to, 0, KEY));
    process_kill(&victim.process);
    POST(fi_read(self->ep, in, 100, NULL, victim.to, 0, KEY + 2, NULL));
    POST(fi_writedata(self->ep, out, 100, NULL, 5, victim.to, 0, KEY, NULL));
    expect_errors(self, &victim, 5, true);
    POST(fi_write(self->ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    expect_error(self->tx, &victim, out);
    expect_alive(self, &other);
}

TEST_F(end, ofi_dead__atomics)
{
    uint64_t operand[2] = {1, 2}, result[2] = {0};
    struct peer victim, other;

    begin(self, &victim, &other);
    for (unsigned i = 1; i <= 2; i++) {
        POST(fi_atomic(self->ep, operand, i, NULL, victim.to, 0, KEY, FI_UINT64, FI_SUM, operand));
        end_ok(self->tx, operand);
    }
    process_stop(&victim.process);
    for (unsigned i = 1; i <= 2; i++) {
        POST(fi_atomic(self->ep, operand, i, NULL, victim.to, 0, KEY, FI_UINT64, FI_SUM, NULL));
        POST(fi_fetch_atomic(self->ep, operand, i, NULL, result, NULL, victim.to, 0, KEY, FI_UINT64,
                             FI_SUM, NULL));
    }
    process_kill(&victim.process);
    POST(fi_compare_atomic(self->ep, operand, 1, NULL, operand, NULL, result, NULL, victim.to, 0,
                           KEY, FI_UINT64, FI_CSWAP, NULL));
    expect_errors(self, &victim, 5, false);
    assert_int_equal(result[0], 0);
    expect_alive(self, &other);
}

/* ------------------------------------------------------------------------------------- others, closing */

/* Another process comes where the dead one was, before anybody gave that one up. */
TEST_F(end, ofi_dead__another_at_its_address)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim, second;
    uint64_t word = 0;

    begin_before(self, &victim, &second);
    POST(fi_write(self->ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    end_ok(self->tx, out);
    POST(fi_send(self->ep, out, LONG, NULL, victim.to, NULL));
    POST(send_confirmed(self, victim.to));
    end_silent(self->tx);
    process_stop(&victim.process);
    POST(fi_read(self->ep, &word, 8, NULL, victim.to, 0, KEY + 1, NULL));
    ends_drive();
    replace(self, &victim, &second);
    for (unsigned i = 0; i < 3; i++)
        assert_true(end_next(self->tx).err != 0);
    for (unsigned i = 0; i < 2; i++) {
        POST(fi_write(self->ep, out, MEMORY, NULL, victim.to, 0, KEY + i, out));
        end_ok(self->tx, out);
        POST(fi_read(self->ep, &word, 8, NULL, victim.to, 0, KEY + i, &word));
        end_ok(self->tx, &word);
        assert_memory_equal(&word, out, 8);
    }
    expect_alive(self, &second);
}

/* That one peer was gone is not the fate of what is posted after another one came. */
TEST_F(end, ofi_dead__old_news)
{
    uint8_t *out = filled(LONG, 1);
    struct peer victim, second;

    begin_before(self, &victim, &second);
    process_stop(&victim.process);
    POST(send_confirmed(self, victim.to));
    POST(fi_write(self->ep, out, 100, NULL, victim.to, 0, KEY, NULL));
    for (unsigned i = 0; i < 2; i++)
        expect_error(self->tx, &victim, NULL); /* and no more progress is made */
    replace(self, &victim, &second);
    POST(fi_write(self->ep, out, 100, NULL, victim.to, 0, KEY, out));
    end_ok(self->tx, out);
    expect_alive(self, &second);
}

/* Nobody waits for what is under way: not for somebody who is dead, nor for receives. */
TEST_F(end, ofi_dead__close_with_work_under_way)
{
    uint8_t *out = filled(MEMORY, 1), *in = blank(MEMORY);
    struct peer victim;

    begin(self, &victim, NULL);
    POST(fi_write(self->ep, out, MEMORY, NULL, victim.to, 0, KEY, out));
    end_ok(self->tx, out);
    POST(fi_recv(self->ep, in, MEMORY, NULL, FI_ADDR_UNSPEC, NULL));
    POST(fi_trecv(self->ep, in, MEMORY, NULL, victim.to, TAG, 0, NULL));
    POST(send_confirmed(self, victim.to));
    POST(fi_send(self->ep, out, LONG, NULL, victim.to, NULL));
    ends_drive_for(20);
    process_stop(&victim.process);
    POST(fi_inject(self->ep, out, 100, victim.to));
    POST(fi_send(self->ep, out, EAGER_BYTES, NULL, victim.to, NULL));
    POST(fi_write(self->ep, out, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_read(self->ep, in, MEMORY, NULL, victim.to, 0, KEY, NULL));
    POST(fi_read(self->ep, in, 100, NULL, victim.to, 0, KEY + 1, NULL));
    POST(fi_atomic(self->ep, out, 2, NULL, victim.to, 0, KEY, FI_UINT32, FI_BXOR, NULL));
    process_kill(&victim.process);
    uint64_t since_ns = end_now_ns();
    end_close(self);
    assert_true(end_now_ns() - since_ns < SLACK_S * SEC_NS);
}

TEST_F(end, ofi_dead__injected_and_closed_at_once)
{
    struct peer other;
    uint32_t num = 0;

    start(&other, counter);
    end_open(self, &options, NULL);
    meet(self, &other);
    for (uint32_t i = 0; i < INJECTED; i++)
        POST(fi_inject(self->ep, &i, sizeof(i), other.to));
    end_close(self);
    must(process_hear(other.process.channel, &num, sizeof(num), patience_ns()));
    assert_int_equal(num, INJECTED);
    process_join(&other.process);
}
