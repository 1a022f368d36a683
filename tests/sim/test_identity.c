/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is who: incarnations, epochs, resets, receive states, tombstones. One test a rule. */
#include "core/engine/answer.h"
#include "core/engine/state.h"
#include "tests/support/forge.h"
#include "transport/movers/sim/sim_host.h"

enum { BYTES = 100 };

static struct sim_world *create(struct forge_tape *tape, uint64_t peer_timeout_ns)
{
    return forge_begin(tape, &(struct sim_options){.no_challenge = true,
                                                   .hosts = 4,
                                                   .rate_bps = 10000000000,
                                                   .recv_bytes = 1 << 20,
                                                   .peer_timeout_ns = peer_timeout_ns});
}

/* --------------------------------------------------------------------------------------- epochs */

/*
 * The sender forgets an idle peer and begins again at PSN 0; the target must not take it for old.
 */
TEST_F(forge_tape, sim_epoch__idle_peer_forgotten)
{
    struct sim_world *w = create(self, 0);

    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 9 * SEC_NS);
    forge_exchange(w, HOST_0, HOST_1);

    struct mrd_wire_head first = forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 0));
    struct mrd_wire_head second = forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, -1));
    assert_int_equal(second.psn, 0);
    assert_true(second.epoch > first.epoch);
    assert_int_equal(second.src_inc, first.src_inc);
    assert_true(sim_payload_equal(w, HOST_1));
    assert_int_equal(sim_counter(w, HOST_1, "rx_duplicates"), 0);
}

/*
 * The counter of epochs comes round: with 16,384 peers that are spoken to once a second, each time
 * by a new send state, after three days. One number is no epoch.
 */
TEST_F(forge_tape, sim_epoch__counter_comes_round)
{
    const struct mrd_addr to = mrd_sim_addr(HOST_1);
    struct sim_world *w = create(self, 0);
    struct mrd_engine *e = sim_engine(w, HOST_0);
    uint32_t first = MRD_WIRE_EPOCH_NONE - 2, last = 3;

    e->lives.epoch_next = first - mrd_answer_pair(e, &to).epoch_base;
    for (unsigned i = 0; i < 6; i++) {
        forge_exchange_both(w, HOST_0, HOST_1);
        sim_run(w, 9 * SEC_NS);
    }
    assert_int_equal(forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 0)).epoch, first);
    assert_int_equal(forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, -1)).epoch, last);
    for (uint32_t i = 0; i < forge_count(self, HOST_0, HOST_1, MRD_WIRE_DATA); i++)
        assert_int_not_equal(
            forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, (int)i)).epoch,
            MRD_WIRE_EPOCH_NONE);
    assert_int_equal(sim_counter(w, HOST_1, "rx_drop_epoch"), 0);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* An ack names the space it speaks of: one of the old epoch says nothing of the new one's PSN 0. */
TEST_F(forge_tape, sim_epoch__ack_of_an_older_one)
{
    struct sim_world *w = create(self, 0);

    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    sim_run(w, 9 * SEC_NS);
    self->cut[HOST_0][HOST_1] = true;
    uint32_t second = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 10 * USEC_NS);
    forge_replay(w, forge_find(self, HOST_1, HOST_0, MRD_WIRE_ACK, -1));
    sim_run(w, 10 * USEC_NS);

    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_ack"), 1);
    assert_false(w->messages[second].sent);
    self->cut[HOST_0][HOST_1] = false;
    sim_all_arrive(w, 100 * MSEC_NS);
}

/* A packet of an epoch that is over is dropped and not executed, flag or not. */
TEST_F(forge_tape, sim_epoch__lower_is_dropped)
{
    struct sim_world *w = create(self, 0);

    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 9 * SEC_NS);
    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    forge_bait(w, HOST_1);
    forge_look(self, HOST_1);
    forge_replay(w, forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 0));
    sim_run(w, 100 * USEC_NS);

    forge_expect(self, HOST_1, "rx_drop_epoch 1");
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* A reset of host `of`'s space to `asker`, as `of` would send it; live_epoch is the caller's. */
static void inject_reset(struct forge_tape *tape, uint32_t of, uint32_t asker, uint32_t epoch_add,
                         uint32_t live_epoch)
{
    struct mrd_wire_head head = forge_as(tape, asker, of);
    uint8_t buf[FORGE_BYTES_MAX];
    struct mrd_wire_head reset = {.type = MRD_WIRE_RESET,
                                  .src_inc = head.dst_inc,
                                  .dst_inc = head.src_inc,
                                  .epoch = head.epoch + epoch_add,
                                  .live_epoch = live_epoch,
                                  .reply = of + 1};

    forge_inject(tape->w, of, asker, buf, forge_bare(buf, &reset));
    sim_run(tape->w, 10 * USEC_NS);
}

/* A higher epoch ends what was half received in the lower one, and never our own sends. */
TEST_F(forge_tape, sim_epoch__higher_ends_the_half_received)
{
    struct sim_world *w = create(self, 0);

    forge_exchange_both(w, HOST_0, HOST_1);
    uint32_t half = sim_send(w, HOST_0, HOST_1, 1 << 20);
    sim_run(w, 100 * USEC_NS);
    forge_cut(self, HOST_0, HOST_1, true);
    uint32_t own = sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run(w, 100 * USEC_NS);
    inject_reset(self, HOST_1, HOST_0, 0, forge_as(self, HOST_1, HOST_0).epoch);
    forge_expect_failed(w, half);
    assert_false(w->receives[2].done);
    forge_cut(self, HOST_0, HOST_1, false);
    uint32_t next = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 100 * MSEC_NS);

    sim_expect_received(w, 2, MRD_WC_REM_ABORT_ERR);
    assert_true(w->messages[next].received);
    sim_expect_sent(w, own, MRD_WC_SUCCESS);
}

/* --------------------------------------------------------------------------------------- spaces */

/* Without the flag no space is made, also where there is an entry: a reset, which fits no work. */
TEST_F(forge_tape, sim_space__unknown_and_flagless_is_reset)
{
    struct sim_world *w = create(self, 0);
    struct mrd_wire_head head;

    forge_exchange(w, HOST_0, HOST_1);
    forge_exchange(w, HOST_2, HOST_1);
    forge_exchange(w, HOST_1, HOST_3); /* the entry of host 3 is there because we sent */
    sim_run(w, 1 * MSEC_NS);
    forge_bait(w, HOST_1);
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    for (uint32_t from = HOST_0; from <= HOST_3; from += 3) {
        forge_look(self, HOST_1);
        forge_look(self, from);
        head = forge_as(self, from, HOST_1);
        head.epoch++;
        head.psn = 0;
        forge_send(w, from, HOST_1, &head, &part);
        sim_run(w, 100 * USEC_NS);

        forge_expect(self, HOST_1, "rx_drop_space 1, tx_resets 1");
        forge_expect(self, from, "rx_drop_reset 1");
    }
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* The flag alone makes no space: the packet was meant for another life. */
TEST_F(forge_tape, sim_space__flag_for_another_life_is_reset)
{
    struct sim_world *w = create(self, 0);

    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    forge_bait(w, HOST_1);
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
    head.reply = HOST_2 + 1;
    head.dst_inc ^= 1;
    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.psn = 0;
    forge_look(self, HOST_1);
    forge_send(w, HOST_2, HOST_1, &head, &part);
    sim_run(w, 100 * USEC_NS);

    forge_expect(self, HOST_1, "rx_drop_space 1, tx_resets 1");
}

/*
 * All acks are lost for longer than a first contact lives. Its flag goes, the destination is still
 * unknown: the target, which holds the space, takes what comes, and each message once.
 */
TEST_F(forge_tape, sim_space__flagless_to_nobody_is_taken_if_held)
{
    struct sim_world *w = create(self, 0);

    self->cut[HOST_1][HOST_0] = true;
    sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 2500 * MSEC_NS);
    uint32_t second = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 500 * MSEC_NS);

    struct mrd_wire_head last = forge_head(forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, -1));
    assert_int_equal(last.dst_inc, 0);
    assert_int_equal(last.flags & MRD_WIRE_FIRST_CONTACT, 0);
    assert_true(w->messages[second].received);
    assert_false(w->messages[second].sent);
    self->cut[HOST_1][HOST_0] = false;
    sim_all_arrive(w, 2 * SEC_NS);
    assert_int_equal(sim_counter(w, HOST_1, "tx_resets"), 0);
}

/* --------------------------------------------------------------------------------------- halves */

/*
 * Unreachable ends both directions. What the peer sent was executed; its copies, flag and all, get
 * a reset and are not executed again.
 */
TEST_F(forge_tape, sim_unreachable__leaves_a_tombstone)
{
    struct sim_world *w = create(self, 500 * MSEC_NS);

    sim_restart_with(w, HOST_1, 8 * SEC_NS);
    self->cut[HOST_0][HOST_1] = true;
    uint32_t executed = sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run(w, 50 * USEC_NS);
    assert_true(w->messages[executed].received);
    self->cut[HOST_1][HOST_0] = true;
    uint32_t given_up = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 1 * SEC_NS);
    forge_expect_failed(w, given_up);
    assert_int_equal(w->node[HOST_0].unreachable, 1);
    uint32_t untouched = forge_bait(w, HOST_0);
    forge_cut(self, HOST_0, HOST_1, false);
    sim_run(w, 500 * MSEC_NS);

    struct mrd_wire_head last = forge_head(forge_find(self, HOST_1, HOST_0, MRD_WIRE_DATA, -1));
    assert_true(last.flags & MRD_WIRE_FIRST_CONTACT);
    assert_true(sim_counter(w, HOST_0, "tx_resets") > 0);
    forge_expect_failed(w, executed);
    assert_int_equal(w->node[HOST_1].restarted, 1);
    assert_false(w->receives[untouched].done);
    forge_exchange(w, HOST_1, HOST_0);
    assert_true(w->messages[w->num_messages - 1].received);
}

/* --------------------------------------------------------------------------------------- resets */

/* Cut while half a message of host 1's has arrived, and then one of host 0's is posted, `work`. */
static void cut_amid(struct forge_tape *tape, uint32_t *half, uint32_t *work)
{
    struct sim_world *w = tape->w;

    forge_exchange_both(w, HOST_0, HOST_1);
    *half = sim_send(w, HOST_1, HOST_0, 1 << 20);
    sim_run(w, 100 * USEC_NS);
    forge_cut(tape, HOST_0, HOST_1, true);
    *work = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 50 * USEC_NS);
}

/* A reset acts only if it echoes both lives and the epoch; it ends their spaces below its epoch. */
TEST_F(forge_tape, sim_reset__acts_on_a_match_only)
{
    struct sim_world *w = create(self, 0);
    uint32_t half, work;

    cut_amid(self, &half, &work);

    inject_reset(self, HOST_1, HOST_0, 1, UINT32_MAX);
    inject_reset(self, HOST_1, HOST_0, UINT32_MAX, UINT32_MAX);
    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_reset"), 2);
    assert_false(w->messages[work].sent);
    assert_int_equal(w->node[HOST_0].restarted, 0);

    inject_reset(self, HOST_1, HOST_0, 0, forge_as(self, HOST_1, HOST_0).epoch);
    forge_expect_failed(w, work);
    assert_int_equal(w->node[HOST_0].restarted, 1);
    forge_cut(self, HOST_0, HOST_1,
              false); /* their space is as live as before: the message goes on */
    sim_run(w, 100 * MSEC_NS);
    assert_int_equal(w->messages[half].status, MRD_WC_SUCCESS);
    assert_true(w->messages[half].equal);
}

TEST_F(forge_tape, sim_reset__ends_the_peers_older_spaces)
{
    struct sim_world *w = create(self, 0);
    uint32_t half, work;

    cut_amid(self, &half, &work);
    inject_reset(self, HOST_1, HOST_0, 0, forge_as(self, HOST_1, HOST_0).epoch + 1);

    forge_expect_failed(w, work);
    sim_expect_received(w, 2, MRD_WC_REM_ABORT_ERR);
    forge_cut(self, HOST_0, HOST_1, false);
    sim_run(w, 100 * MSEC_NS);
    forge_expect_failed(w, half);
}

/* Whatever an ack, a reset or a challenge speaks of, nothing answers it. */
TEST_F(forge_tape, sim_reset__nothing_but_data_causes_one)
{
    struct sim_world *w = create(self, 0);
    uint8_t buf[FORGE_BYTES_MAX];

    forge_exchange_both(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    uint32_t sent = self->num;
    for (uint32_t i = 0; i < 16; i++) {
        struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
        struct mrd_wire_ack ack = {.serial = 1000, .cum = 1000};

        head.src_inc ^= i & 1;
        head.dst_inc ^= i >> 1 & 1;
        head.epoch += 7 * (i >> 2 & 1);
        head.reply += 2 * (i >> 3 & 1); /* host 2 was never heard of */
        forge_inject(w, HOST_0, HOST_1, buf, forge_ack(buf, &head, &ack));
        head.epoch += 7; /* what would match is sim_reset__acts_on_a_match_only */
        head.type = MRD_WIRE_RESET;
        forge_inject(w, HOST_0, HOST_1, buf, forge_bare(buf, &head));
        head.type = MRD_WIRE_CHALLENGE;
        forge_inject(w, HOST_0, HOST_1, buf, forge_bare(buf, &head));
        head.type = MRD_WIRE_BUSY;
        forge_inject(w, HOST_0, HOST_1, buf, forge_bare(buf, &head));
    }
    sim_run(w, 1 * MSEC_NS);

    assert_int_equal(self->num, sent);
    assert_int_equal(sim_counter(w, HOST_1, "rx_drop_ack"), 16);
    assert_int_equal(sim_counter(w, HOST_1, "rx_drop_reset"), 48);
    forge_exchange(w, HOST_1, HOST_0);
}

/* A reset or challenge is no larger than the least packet it can answer: nothing is amplified. */
TEST_F(forge_tape, sim_reset__no_larger_than_its_cause)
{
    struct sim_world *w = create(self, 0);
    uint8_t buf[FORGE_BYTES_MAX];

    forge_exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
    head.epoch++;
    uint32_t len = forge_data(buf, &head, NULL, NULL);
    forge_inject(w, HOST_0, HOST_1, buf, len);
    head.src_inc ^= 1;
    head.flags = MRD_WIRE_FIRST_CONTACT;
    forge_send(w, HOST_0, HOST_1, &head, NULL);
    sim_run(w, 1 * MSEC_NS);

    assert_int_equal(len, MRD_WIRE_BASE_BYTES);
    assert_true(forge_find(self, HOST_1, HOST_0, MRD_WIRE_RESET, 0)->len <= len);
    assert_true(forge_find(self, HOST_1, HOST_0, MRD_WIRE_CHALLENGE, 0)->len <= len);
}

/* ---------------------------------------------------------------------------------------- lives */

/* A QP number is used once: what is meant for a QP that is gone is not for its successor. */
TEST_F(forge_tape, sim_qpn__is_never_reused)
{
    struct sim_world *w = create(self, 0);
    struct sim_node *node = &w->node[HOST_1];
    uint32_t last = node->qp[0]->qp_num;

    for (uint32_t i = 0; i < 2000; i++) {
        struct mrd_qp *qp = mrd_create_qp(
            node->pd, &(struct mrd_qp_init_attr){.send_cq = node->cq,
                                                 .recv_cq = node->cq,
                                                 .cap = {.max_send_wr = 1, .max_recv_wr = 1}});

        assert_non_null(qp);
        assert_true(qp->qp_num > last);
        last = qp->qp_num;
        assert_int_equal(mrd_destroy_qp(qp), 0);
    }
}

/*
 * Packets of a restarted peer's old life, and packets meant for it, change nothing in the new one.
 */
TEST_F(forge_tape, sim_restart__packets_of_the_old_life)
{
    struct sim_world *w = create(self, 0);
    struct forge_packet old[4];

    forge_exchange(w, HOST_0, HOST_1);
    forge_exchange_both(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    old[0] = *forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 0); /* with the flag */
    old[1] = *forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 1); /* without */
    old[2] = *forge_find(self, HOST_0, HOST_1, MRD_WIRE_ACK, 0);
    old[3] = *forge_find(self, HOST_1, HOST_0, MRD_WIRE_DATA, 0);
    sim_restart(w, HOST_0);
    forge_exchange_both(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    forge_bait(w, HOST_0);
    forge_bait(w, HOST_1);
    forge_look(self, HOST_0);
    forge_look(self, HOST_1);
    for (uint32_t i = 0; i < 4; i++)
        forge_replay(w, &old[i]);
    sim_run(w, 1 * MSEC_NS);

    /* The answers to the replayed packets go to a life that did not send them. */
    forge_expect(self, HOST_1,
                 "rx_drop_challenged 1, tx_challenges 1, rx_drop_space 1, tx_resets 1, rx_drop_ack "
                 "1, rx_drop_reset 1");
    forge_expect(self, HOST_0, "rx_drop_space 1, tx_resets 1, rx_drop_reset 2");
    forge_exchange_both(w, HOST_0, HOST_1);
    assert_true(sim_payload_equal(w, HOST_0));
    assert_true(sim_payload_equal(w, HOST_1));
}

/*
 * After an outage the peer that gave up begins an epoch: what it gave up fails, and is told, before its
 * message is delivered. So the answer to that goes in a new space.
 */
TEST_F(forge_tape, sim_epoch__what_was_given_up_ends_first)
{
    struct sim_world *w = create(self, 0);

    sim_restart_with(w, HOST_0, 1 * SEC_NS);
    sim_restart_with(w, HOST_1, 60 * SEC_NS);
    forge_exchange_both(w, HOST_0, HOST_1);
    forge_cut(self, HOST_0, HOST_1, true);
    uint32_t lost = sim_send(w, HOST_0, HOST_1, BYTES);
    uint32_t old = sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run(w, 3 * SEC_NS);
    forge_expect_failed(w, lost);
    assert_false(w->messages[old].sent);
    forge_cut(self, HOST_0, HOST_1, false);
    uint32_t news = sim_send(w, HOST_0, HOST_1, BYTES);
    for (unsigned i = 0; i < 1000 && !w->messages[news].received; i++)
        sim_run(w, USEC_NS);
    assert_true(w->messages[news].received);
    assert_int_equal(w->node[HOST_1].restarted, 1);
    forge_expect_failed(w, old);
    uint32_t answer = sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run(w, 100 * MSEC_NS);
    sim_expect_sent(w, answer, MRD_WC_SUCCESS);
    assert_int_equal(sim_counter(w, HOST_1, "rx_resets"), 0);
}
