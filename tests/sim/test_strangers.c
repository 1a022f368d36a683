/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What strangers who speak the wire format cannot do: be taken for a host, end or complete its work,
 * have a message executed, have packets sent to a third party, keep honest newcomers out.
 */
#include <string.h>

#include "tests/support/stranger.h"
#include "transport/movers/sim/sim_host.h"

enum {
    ROUNDS = 20,
    MESSAGES = 8,
    FORGED = 60, /* of each kind in each round */
    QUESTIONS = 40,
    FLOOD = 20000,
    NEWCOMER = HOST_2,
    NEWCOMER_MESSAGES = 20,
    BAIT_BYTES = 1 << 20,
};

static bool aim(void *arg, uint32_t host, struct mrd_wire_part *part)
{
    uint16_t len = part->len;

    *part = forge_send_part(arg, host, len);
    return true;
}

static struct stranger *stranger(struct sim_world *w)
{
    struct stranger *st = stranger_create(w->sim, w->options.hosts, test_seed());

    st->plan.aim = aim;
    st->plan.arg = w;
    stranger_watch_all(st);
    return st;
}

/* Contexts that have been open for long. */
static struct sim_world *world(uint32_t hosts)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.hosts = hosts, .recv_bytes = 4096});

    sim_run(w, 20 * SEC_NS);
    return w;
}

static void talk(struct sim_world *w)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        sim_send(w, HOST_0, HOST_1, 1 + 400 * i);
        sim_send(w, HOST_1, HOST_0, 1 + 400 * i);
    }
}

/* Asks both hosts all that it can. */
static void ask(struct sim_world *w, struct stranger *st)
{
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        (void)stranger_act(st, STRANGER_ASK, i % 2, 1 - i % 2);
        (void)stranger_act(st, STRANGER_GO_ON, i % 2, 1 - i % 2);
        sim_run(w, 30 * USEC_NS);
    }
}

/*
 * Amid the packets of that kind that a stranger forges as each of two hosts to the other, with what
 * it guesses and what the two told it: all their messages succeed, each is executed once, and
 * nothing else is.
 */
static void forged(enum stranger_kind kind)
{
    struct sim_world *w = world(2);
    struct stranger *st = stranger(w);

    talk(w);
    sim_run_until_complete(w, 50 * MSEC_NS);
    ask(w, st);
    /* Receives that an executed message of the stranger would take. */
    sim_post_recvs(w, HOST_0, 0, 4, BAIT_BYTES);
    sim_post_recvs(w, HOST_1, 0, 4, BAIT_BYTES);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        talk(w);
        for (uint32_t i = 0; i < FORGED; i++) {
            (void)stranger_act(st, kind, i % 2, 1 - i % 2);
            sim_run(w, USEC_NS);
        }
        sim_run_until_complete(w, 50 * MSEC_NS);
    }
    uint32_t deliveries = w->node[HOST_0].deliveries + w->node[HOST_1].deliveries;
    assert_int_equal(deliveries, 2 * MESSAGES * (ROUNDS + 1));
    for (uint32_t i = 0; i < w->num_messages; i++)
        assert_int_equal(w->messages[i].status, MRD_WC_SUCCESS);
    for (uint32_t host = 0; host < 2; host++) {
        assert_int_equal(w->node[host].restarted + w->node[host].unreachable, 0);
        assert_int_equal(w->node[host].busy + w->node[host].full, 0);
        assert_true(sim_payload_equal(w, host));
    }
    stranger_destroy(st);
}

TEST(sim_strangers__take)
{
    forged(STRANGER_TAKE);
}

TEST(sim_strangers__data)
{
    forged(STRANGER_DATA);
}

TEST(sim_strangers__ack)
{
    forged(STRANGER_ACK);
}

TEST(sim_strangers__reset)
{
    forged(STRANGER_RESET);
}

TEST(sim_strangers__challenge)
{
    forged(STRANGER_CHALLENGE);
}

TEST(sim_strangers__busy)
{
    forged(STRANGER_BUSY);
}

TEST(sim_strangers__garbage)
{
    forged(STRANGER_GARBAGE);
}

TEST(sim_strangers__replay)
{
    forged(STRANGER_REPLAY);
}

TEST(sim_strangers__moved)
{
    forged(STRANGER_MOVED);
}

/* First contacts from addresses of nobody, with messages that a queue pair would take. */
TEST(sim_strangers__first)
{
    forged(STRANGER_FIRST);
}

/* What a host tells one address of itself is of no use at another one. */
TEST(sim_strangers__told_each_another)
{
    struct sim_world *w = world(2);
    struct stranger *st = stranger(w);

    stranger_hello(st, 0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    struct mrd_wire_head one = stranger_told(st, HOST_1, 0)->head;
    stranger_hello(st, 1, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    struct mrd_wire_head other = stranger_told(st, HOST_1, 0)->head;
    assert_memory_not_equal(&one.dst_inc, &other.dst_inc, sizeof(one.dst_inc));
    assert_memory_not_equal(&one.src_inc, &other.src_inc, sizeof(one.src_inc));
    stranger_destroy(st);
}

/* A message is executed once, however long its sender is gone when a copy of it comes. */
TEST(sim_strangers__replay_after_silence)
{
    struct sim_world *w = world(2);
    struct stranger *st = stranger(w);

    sim_send_complete(w, HOST_0, HOST_1, 100, 50 * MSEC_NS);
    sim_close(w, HOST_0);
    sim_run(w, 60 * SEC_NS);
    sim_post_recvs(w, HOST_1, 0, 4, BAIT_BYTES);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        assert_true(stranger_act(st, STRANGER_REPLAY, HOST_1, HOST_0));
        sim_run(w, 100 * USEC_NS);
    }
    assert_int_equal(w->node[HOST_1].deliveries, 1);
    stranger_destroy(st);
}

/*
 * Who has not shown that it is there gets no more than it sent, neither packets nor bytes, however
 * long it says that it has patience.
 */
TEST(sim_strangers__no_more_than_asked)
{
    struct sim_world *w = world(2);
    struct stranger *st = stranger(w);

    for (uint32_t i = 0; i < 1000; i++) {
        (void)stranger_act(st, STRANGER_FIRST, HOST_1, HOST_0);
        if (i % 8 == 0)
            sim_run(w, 10 * USEC_NS);
    }
    sim_run(w, 60 * SEC_NS);
    assert_true(st->nobody_packets + st->told_packets <= st->sent_packets);
    assert_true(st->nobody_bytes + st->told_bytes <= st->sent_bytes);
    stranger_destroy(st);
}

/*
 * First contacts from thousands of addresses hold nothing that an honest newcomer needs: it gets in
 * while they come, and its messages find the receives.
 */
TEST(sim_strangers__newcomers_get_in)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.hosts = 3, .max_peers = 1024, .no_receives = true});
    struct stranger *st = stranger(w);
    uint32_t sent = 0;

    sim_run(w, 20 * SEC_NS);
    sim_post_recvs(w, HOST_1, 0, 2 * NEWCOMER_MESSAGES, 4096);
    for (uint32_t i = 0; i < FLOOD; i++) {
        (void)stranger_act(st, STRANGER_FIRST, HOST_1, HOST_0);
        if (i % (FLOOD / NEWCOMER_MESSAGES) == FLOOD / (2 * NEWCOMER_MESSAGES) &&
            sent++ < NEWCOMER_MESSAGES)
            sim_send(w, NEWCOMER, HOST_1, 100);
        if (i % 8 == 0)
            sim_run(w, 8 * USEC_NS);
    }
    sim_run_until_complete(w, 50 * MSEC_NS);
    assert_int_equal(w->node[HOST_1].deliveries, sent);
    assert_int_equal(w->node[NEWCOMER].busy + w->node[HOST_1].full, 0);
    stranger_destroy(st);
}
