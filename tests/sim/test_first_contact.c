/* SPDX-License-Identifier: BSD-2-Clause */
/* First contact: the flag, binding, challenges, cookies, tables under pressure. One test a rule. */
#include "tests/support/forge.h"

enum { BYTES = 100 };

static struct sim_world *create(struct forge_tape *tape, uint64_t challenge_ns)
{
    struct sim_world *w = forge_begin(tape, &(struct sim_options){.hosts = 3,
                                                                  .recv_bytes = 1 << 20,
                                                                  .challenge_ns = challenge_ns,
                                                                  .no_challenge = !challenge_ns});

    sim_run(w, 1 * MSEC_NS); /* all lives are older than any epoch */
    return w;
}

/* ------------------------------------------------------------------------------------- the flag */

/* The first packet carries data and is executed at once, one way. */
TEST_F(forge_tape, sim_first_contact__costs_no_round_trip)
{
    struct sim_world *w = create(self, 0);
    uint32_t message = sim_send(w, HOST_0, HOST_1, BYTES);

    sim_run(w, 7 * USEC_NS); /* a way is 5 us */
    assert_true(w->messages[message].received);
    assert_int_equal(sim_counter(w, HOST_1, "tx_challenges"), 0);
}

/* What is in flight before the first ack fills 400 Gb/s over 10 us: the sender never pauses. */
TEST(sim_first_contact__fills_a_round_trip)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.links = 1, .rate_bps = 400000000000, .no_challenge = true});
    uint32_t message = sim_write(w, HOST_0, HOST_1, 1 << 20);

    sim_run(w, 33 * USEC_NS); /* 21.3 us of packets, and a way of 5 us there and back */
    assert_true(w->messages[message].sent);
    assert_true(sim_payload_equal(w, HOST_1));
}

/*
 * The way is much longer than the RTT that is taken for granted before the first sample: the timeouts before
 * it were early, and slow start goes on where it was.
 */
TEST(sim_first_contact__early_timeouts_cost_no_window)
{
    static const uint64_t way_ns[] = {10 * MSEC_NS, 40 * MSEC_NS, 100 * MSEC_NS};

    for (size_t i = 0; i < sizeof(way_ns) / sizeof(way_ns[0]); i++) {
        for (uint64_t run = 0; run < 4; run++) {
            struct sim_world *w = sim_world_create(&(struct sim_options){.seed = test_seed() + run,
                                                                         .links = 1,
                                                                         .rate_bps = 1000000000,
                                                                         .delay_ns = way_ns[i],
                                                                         .no_challenge = run % 2});
            uint64_t begin_ns = mrd_sim_now(w->sim), rtts;

            sim_write_complete(w, HOST_0, HOST_1, 1 << 20, 10 * SEC_NS);
            rtts = (mrd_sim_now(w->sim) - begin_ns) / (2 * way_ns[i]);
            test_check(w->options.seed, sim_counter(w, HOST_0, "retx_timeout") > 0 && rtts <= 7,
                       "a way of %llu ns: %llu round trips", (unsigned long long)way_ns[i],
                       (unsigned long long)rtts);
            sim_world_destroy(w);
        }
    }
}

/*
 * Host 1 knows host 0's incarnation from what it received, but host 0 holds no space of it yet: the
 * flag must be there until the first ack, and not after it.
 */
TEST_F(forge_tape, sim_flag__stays_until_the_first_ack)
{
    struct sim_world *w = create(self, 0);

    forge_exchange(w, HOST_0, HOST_1);
    self->cut[HOST_1][HOST_0] = true;
    sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run(w, 100 * USEC_NS);
    self->cut[HOST_1][HOST_0] = false;
    sim_send_complete(w, HOST_1, HOST_0, BYTES, 100 * MSEC_NS);

    struct mrd_wire_head head = forge_head(forge_find(self, HOST_1, HOST_0, MRD_WIRE_DATA, 0));
    assert_int_equal(head.dst_inc,
                     forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 0)).src_inc);
    assert_true(head.flags & MRD_WIRE_FIRST_CONTACT);
    assert_int_equal(sim_counter(w, HOST_0, "tx_resets"), 0);
    forge_exchange(w, HOST_1, HOST_0);
    head = forge_head(forge_find(self, HOST_1, HOST_0, MRD_WIRE_DATA, -1));
    assert_int_equal(head.flags & MRD_WIRE_FIRST_CONTACT, 0);
    assert_true(sim_payload_equal(w, HOST_0));
}

/*
 * A message was executed, its ack lost; the target, whose timeout is short, forgets a silent sender
 * whose own timeout is long. The sender's flag went with F, so what it repeats makes no new space.
 */
TEST_F(forge_tape, sim_flag__goes_after_its_life)
{
    struct sim_world *w = create(self, 0);

    sim_restart_with(w, HOST_0, 60 * SEC_NS);
    sim_restart_with(w, HOST_1, 1 * SEC_NS);
    self->cut[HOST_1][HOST_0] = true;
    uint32_t message = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 10 * USEC_NS);
    assert_true(w->messages[message].received);
    self->cut[HOST_0][HOST_1] = true;
    uint32_t untouched = forge_bait(w, HOST_1);
    sim_run(w, 14 * SEC_NS);
    assert_false(w->messages[message].sent);
    assert_false(forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, -1)).flags &
                 MRD_WIRE_FIRST_CONTACT);
    forge_cut(self, HOST_0, HOST_1, false);
    sim_run(w, 2 * SEC_NS);

    /* The target keeps the space for as long as its sender said that it would wait. */
    assert_false(w->receives[untouched].done);
    sim_expect_sent(w, message, MRD_WC_SUCCESS);
    assert_int_equal(w->node[HOST_0].restarted, 0);
}

/* -------------------------------------------------------------------------------------- binding */

static void inject_ack(struct forge_tape *tape, uint32_t of, uint32_t asker, uint32_t src_inc,
                       uint32_t cum)
{
    struct mrd_wire_head asked = forge_head(forge_find(tape, asker, of, MRD_WIRE_DATA, -1));
    struct mrd_wire_head head = {
        .src_inc = src_inc, .dst_inc = asked.src_inc, .epoch = asked.epoch, .reply = of + 1};
    struct mrd_wire_ack ack = {.serial = 1, .cum = cum, .psn_limit = cum + 256};
    uint8_t buf[FORGE_BYTES_MAX];

    forge_inject(tape->w, of, asker, buf, forge_ack(buf, &head, &ack));
    sim_run(tape->w, 10 * USEC_NS);
}

/* A sender speaks to the first incarnation that answered; acks of others are not for it. */
TEST_F(forge_tape, sim_bind__to_the_first_that_answers)
{
    enum { IMPOSTOR = 0x1badcafe };
    struct sim_world *w = create(self, 0);

    forge_exchange(w, HOST_0, HOST_1);
    forge_cut(self, HOST_0, HOST_1, true);
    uint32_t bound = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 10 * USEC_NS);
    inject_ack(self, HOST_1, HOST_0, IMPOSTOR, 2);
    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_ack"), 1);
    assert_false(w->messages[bound].sent);

    self->cut[HOST_0][HOST_2] = true;
    uint32_t unbound = sim_send(w, HOST_0, HOST_2, BYTES);
    sim_run(w, 10 * USEC_NS);
    inject_ack(self, HOST_2, HOST_0, IMPOSTOR, 0);
    sim_run(w, 10 * MSEC_NS);
    assert_int_equal(forge_head(forge_find(self, HOST_0, HOST_2, MRD_WIRE_DATA, -1)).dst_inc,
                     IMPOSTOR);
    forge_cut(self, HOST_0, HOST_1, false);
    self->cut[HOST_0][HOST_2] = false;
    sim_run(w, 100 * MSEC_NS);
    assert_int_equal(w->messages[bound].status, MRD_WC_SUCCESS);
    forge_expect_failed(w, unbound); /* host 2 is another life: it said so by a reset */
    forge_exchange(w, HOST_0, HOST_2);
}

/* ----------------------------------------------------------------------------------- challenges */

/* A first contact is executed only with the cookie, which costs one round trip, however old the target. */
TEST_F(forge_tape, sim_challenge__costs_a_round_trip)
{
    struct sim_world *w = create(self, 4 * SEC_NS);
    uint32_t message;

    for (unsigned old = 0; old < 2; old++) {
        uint32_t from = old ? HOST_2 : HOST_0;

        message = sim_send(w, from, HOST_1, BYTES);
        sim_run(w, 11 * USEC_NS); /* a way is 5 us */
        assert_false(w->messages[message].received);
        sim_run(w, 6 * USEC_NS);
        assert_true(w->messages[message].received);
        sim_run_until_complete(w, 1 * MSEC_NS);
        assert_false(forge_head(forge_find(self, from, HOST_1, MRD_WIRE_DATA, 0)).flags &
                     MRD_WIRE_COOKIE);
        assert_true(forge_head(forge_find(self, from, HOST_1, MRD_WIRE_DATA, 1)).flags &
                    MRD_WIRE_COOKIE);
        assert_int_equal(forge_count(self, HOST_1, from, MRD_WIRE_CHALLENGE), 1);
        assert_int_equal(sim_counter(w, from, "rx_challenges"), 1);
        sim_run(w, 10 * SEC_NS);
    }
}

/*
 * A copy meant for an earlier life at this address comes within its life: challenged, not executed.
 */
TEST_F(forge_tape, sim_challenge__late_copy_for_an_earlier_life)
{
    struct sim_world *w = create(self, 4 * SEC_NS);

    sim_run(w, 5 * SEC_NS);
    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    sim_restart(w, HOST_1);
    forge_bait(w, HOST_1);
    sim_run(w, 1900 * MSEC_NS);
    forge_look(self, HOST_1);
    forge_replay(w, forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 0));
    sim_run(w, 1 * MSEC_NS);

    forge_expect(self, HOST_1, "rx_drop_challenged 1, tx_challenges 1");
    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_reset"), 1);
}

/* The target executed a message, lost the ack and restarted: the sender must not repeat it. */
TEST_F(forge_tape, sim_challenge__executed_by_an_earlier_life)
{
    struct sim_world *w = create(self, 4 * SEC_NS);

    forge_exchange(w, HOST_0, HOST_1);
    self->cut[HOST_1][HOST_0] = true;
    uint32_t message = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 50 * USEC_NS);
    assert_true(w->messages[message].received);
    sim_restart(w, HOST_1);
    uint32_t untouched = forge_bait(w, HOST_1);
    self->cut[HOST_1][HOST_0] = false;
    sim_run(w, 100 * MSEC_NS);

    forge_expect_failed(w, message);
    assert_false(w->receives[untouched].done);
    assert_int_equal(w->node[HOST_0].restarted, 1);
}

/* Work posted before the peer's context opened goes there once it is there. */
TEST_F(forge_tape, sim_first_contact__posted_before_the_peer_opened)
{
    struct sim_world *w = create(self, 4 * SEC_NS);

    sim_run(w, 5 * SEC_NS);
    self->cut[HOST_0][HOST_1] = true;
    uint32_t early = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 3000 * MSEC_NS);
    sim_restart(w, HOST_1);
    forge_bait(w, HOST_1);
    self->cut[HOST_0][HOST_1] = false;
    sim_run(w, 2 * SEC_NS);
    sim_expect_sent(w, early, MRD_WC_SUCCESS);
    assert_int_equal(w->node[HOST_0].restarted, 0);
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(w->messages[w->num_messages - 1].received);
}

/*
 * An empty packet goes first, so that no work is lost whenever the
 * peer opens, however close in time, and whatever happens to the first packets.
 */
TEST(sim_first_contact__of_two_that_open_together)
{
    static const uint64_t later_ns[] = {0,    500,  1000,  2000,   4000,   5000,    6000,
                                        8000, 9999, 15000, 100000, 900000, 3000000, 2500000000};

    for (unsigned i = 0; i < sizeof(later_ns) / sizeof(later_ns[0]); i++) {
        for (unsigned lossy = 0; lossy < 2; lossy++) {
            struct forge_tape tape;
            struct sim_world *w = create(&tape, 4 * SEC_NS);

            sim_restart(w, HOST_0);
            tape.cut[HOST_0][HOST_1] = true;
            uint32_t message = sim_post(
                w, &(struct sim_post){
                       .to = HOST_1, .len = BYTES, .opcode = MRD_WR_SEND, .no_receive = true});
            if (later_ns[i])
                mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + later_ns[i]);
            sim_restart(w, HOST_1);
            sim_post_recvs(w, HOST_1, 0, 1, BYTES);
            tape.cut[HOST_0][HOST_1] = lossy;
            sim_run(w, 100 * USEC_NS);
            tape.cut[HOST_0][HOST_1] = false;
            sim_run(w, 3 * SEC_NS);
            test_check(w->options.seed,
                       w->messages[message].sent && w->messages[message].status == MRD_WC_SUCCESS,
                       "the peer opened %llu ns later", (unsigned long long)later_ns[i]);
            assert_int_equal(w->node[HOST_0].restarted + w->node[HOST_0].unreachable, 0);
            forge_end(&tape);
        }
    }
}

/* So does work that was unanswered for F while the peer held no space. */
TEST_F(forge_tape, sim_first_contact__unanswered_for_its_life)
{
    struct sim_world *w = create(self, 0);

    self->cut[HOST_0][HOST_1] = true;
    uint32_t early = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 2500 * MSEC_NS);
    assert_false(w->messages[early].sent);
    self->cut[HOST_0][HOST_1] = false;
    sim_run(w, 500 * MSEC_NS);

    forge_expect_failed(w, early);
    assert_false(w->messages[early].received);
    assert_int_equal(w->node[HOST_0].restarted, 1);
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(w->messages[w->num_messages - 1].received);
}

/* Who claims an address that another incarnation holds is challenged; the holder keeps it. */
TEST_F(forge_tape, sim_challenge__address_held_by_another_incarnation)
{
    struct sim_world *w = create(self, 0);

    forge_exchange(w, HOST_1, HOST_0);
    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    uint32_t claimed = forge_bait(w, HOST_0);
    struct mrd_wire_head head = forge_as(self, HOST_1, HOST_0);
    head.src_inc ^= 1;
    head.dst_inc = head.psn = 0;
    head.flags = MRD_WIRE_FIRST_CONTACT;
    struct mrd_wire_part part = forge_send_part(w, HOST_0, BYTES);
    forge_look(self, HOST_0);
    forge_send(w, HOST_1, HOST_0, &head, &part);
    sim_run(w, 100 * USEC_NS);
    forge_expect(self, HOST_0, "rx_drop_challenged 1, tx_challenges 1");
    assert_false(w->receives[claimed].done);

    /* A real new life, whose challenge is lost at first: until it answers, the old entry stays. */
    forge_exchange(w, HOST_1, HOST_0);
    assert_int_equal(sim_counter(w, HOST_0, "tx_resets"), 0);
    sim_run(w, 1 * MSEC_NS);
    self->cut[HOST_1][HOST_0] = true; /* killed: it says nothing */
    sim_restart(w, HOST_1);
    self->cut[HOST_1][HOST_0] = false;
    self->cut[HOST_0][HOST_1] = true;
    uint32_t work = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run(w, 10 * MSEC_NS);
    assert_false(w->messages[work].sent);
    assert_int_equal(w->node[HOST_0].restarted, 0);
    self->cut[HOST_0][HOST_1] = false;
    sim_run(w, 100 * MSEC_NS);
    forge_expect_failed(w, work);
    assert_int_equal(w->node[HOST_0].restarted, 1);
    assert_true(w->messages[w->num_messages - 1].received);
}

/*
 * A sender answered a challenge, started anew and answered again. The first answer comes back: it
 * named another incarnation to be replaced, so the old life does not return.
 */
TEST_F(forge_tape, sim_challenge__cookie_covers_whom_it_replaces)
{
    struct sim_world *w = create(self, 4 * SEC_NS);

    forge_exchange(w, HOST_0, HOST_1);
    struct forge_packet answer = *forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, -1);
    assert_true(forge_head(&answer).flags & MRD_WIRE_COOKIE);
    sim_run(w, 1 * MSEC_NS);
    sim_restart(w, HOST_0);
    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    forge_bait(w, HOST_1);
    forge_look(self, HOST_1);
    forge_replay(w, &answer);
    sim_run(w, 1 * MSEC_NS);

    forge_expect(self, HOST_1, "rx_drop_challenged 1, tx_challenges 1");
    forge_exchange(w, HOST_0, HOST_1);
    assert_int_equal(w->node[HOST_0].restarted, 0);
}

/* A cookie is worth nothing at another address, and a wrong one nothing at all. */
TEST_F(forge_tape, sim_challenge__cookie_of_another_address)
{
    struct sim_world *w = create(self, 4 * SEC_NS);
    struct mrd_wire_head head;

    forge_exchange(w, HOST_0, HOST_1);
    struct forge_packet answer = *forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, -1);
    assert_true(forge_head(&answer).flags & MRD_WIRE_COOKIE);
    sim_run(w, 1 * MSEC_NS);
    forge_bait(w, HOST_1);
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    forge_look(self, HOST_1);
    for (uint32_t i = 0; i < 3; i++) {
        head = forge_head(&answer);
        head.reply = HOST_2 + 1;
        head.dst_inc =
            i ? forge_head(forge_find(self, HOST_1, HOST_2, MRD_WIRE_CHALLENGE, 0)).src_inc : 0;
        head.cookie ^= i == 2;
        forge_send(w, HOST_2, HOST_1, &head, &part);
        sim_run(w, 1 * MSEC_NS);
    }

    forge_expect(self, HOST_1, "rx_drop_challenged 3, tx_challenges 3");
}

/* ------------------------------------------------------------------------------- table pressure */

/* Strangers cost a round trip when the table runs out, nothing when it is full; who is in stays. */
TEST_F(forge_tape, sim_challenge__table_under_pressure)
{
    enum { PEERS = 8, STRANGERS = 100 };
    struct sim_world *w = forge_begin(
        self, &(struct sim_options){.hosts = 4, .max_peers = PEERS, .no_challenge = true});
    struct mrd_wire_head head = {
        .type = MRD_WIRE_DATA, .flags = MRD_WIRE_FIRST_CONTACT, .epoch = 1};

    forge_exchange(w, HOST_1, HOST_0);
    for (uint32_t i = 0; i < STRANGERS; i++) {
        head.src_inc = 1000 + i;
        head.reply = 100 + i; /* where nobody answers a challenge */
        forge_send(w, HOST_3, HOST_0, &head, NULL);
        sim_run(w, 10 * USEC_NS);
    }

    assert_int_equal(sim_counter(w, HOST_0, "peers"), PEERS - 1);
    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_challenged"), STRANGERS - (PEERS - 2));
    forge_exchange(w, HOST_2, HOST_0); /* one who answers takes the last place */
    assert_int_equal(sim_counter(w, HOST_0, "peers"), PEERS);
    forge_exchange(w, HOST_1, HOST_0);
    assert_int_equal(sim_counter(w, HOST_1, "tx_messages_failed"), 0);
    assert_true(sim_payload_equal(w, HOST_0));
}
