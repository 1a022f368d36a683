/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of peers that is full: who is turned away, who makes room, and who is told. */
#include "tests/support/forge.h"

enum { BYTES = 100 };

static void stranger(struct sim_world *w, uint32_t to, uint32_t number)
{
    struct mrd_wire_head head = {.type = MRD_WIRE_DATA,
                                 .flags = MRD_WIRE_FIRST_CONTACT,
                                 .src_inc = 0xabc000 + number,
                                 .epoch = 1,
                                 .reply = 100 + number};

    forge_send(w, HOST_3, to, &head, NULL);
    sim_run(w, 10 * USEC_NS);
}

/* A table of which strangers hold all places but one, which host 1 takes. */
static struct sim_world *fill_table(struct forge_tape *tape)
{
    struct sim_world *w =
        forge_begin(tape, &(struct sim_options){.no_challenge = true, .hosts = 4, .max_peers = 8});

    for (uint32_t i = 0; i < 7; i++)
        stranger(w, HOST_0, i);
    forge_exchange(w, HOST_1, HOST_0);
    return w;
}

/* Whoever finds no room is told so, and so is the host that has none. It did not restart. */
TEST_F(forge_tape, sim_identity__no_room_is_told)
{
    struct sim_world *w = fill_table(self);
    uint32_t first = sim_send(w, HOST_3, HOST_0, BYTES), second;

    sim_run(w, 1 * SEC_NS);
    assert_int_equal(w->node[HOST_3].busy, 1);
    assert_in_range(w->node[HOST_0].full, 1, 2);
    assert_true(sim_counter(w, HOST_3, "rx_busies") > 0);
    assert_int_equal(sim_counter(w, HOST_3, "rx_busies"), sim_counter(w, HOST_0, "tx_busies"));
    sim_run(w, 3 * SEC_NS);
    forge_expect_failed(w, first);
    assert_false(w->messages[first].received);
    assert_int_equal(w->node[HOST_3].restarted, 0);
    assert_int_equal(w->node[HOST_3].unreachable, 0);
    /* Posted again it is told again; once there is room, it arrives. */
    second = sim_send(w, HOST_3, HOST_0, BYTES);
    sim_run(w, 4 * SEC_NS);
    forge_expect_failed(w, second);
    assert_int_equal(w->node[HOST_3].busy, 2);
    sim_run(w, 16 * SEC_NS);
    forge_exchange(w, HOST_3, HOST_0);
    assert_int_equal(w->node[HOST_3].busy, 2);
}

/* There is room before first contact ends. */
TEST_F(forge_tape, sim_identity__room_in_time)
{
    struct sim_world *w = fill_table(self);

    sim_run(w, 19 * SEC_NS); /* S + U + 2 L, 20 s, since the strangers came */
    forge_exchange(w, HOST_1, HOST_0);
    uint32_t late = sim_send(w, HOST_3, HOST_0, BYTES);
    sim_run(w, 100 * MSEC_NS);
    assert_int_equal(w->node[HOST_3].busy, 1);
    assert_false(w->messages[late].sent);
    sim_run(w, 2500 * MSEC_NS);
    assert_true(w->messages[late].received);
    assert_int_equal(sim_counter(w, HOST_0, "peers_evicted"), 1);
}

/*
 * Turned away, then admitted and executed, but the acks die; then the target restarts. That is no
 * want of room: of this the manual says that nothing was executed, and no event tells the restart.
 */
TEST_F(forge_tape, sim_identity__restart_after_a_busy_is_told)
{
    struct sim_world *w = fill_table(self);

    sim_run(w, 19 * SEC_NS);
    forge_exchange(w, HOST_1, HOST_0);
    uint32_t late = sim_send(w, HOST_3, HOST_0, BYTES);
    sim_run(w, 100 * MSEC_NS);
    assert_int_equal(w->node[HOST_3].busy, 1);
    self->cut[HOST_0][HOST_3] = true;
    sim_run(w, 2500 * MSEC_NS);
    assert_true(w->messages[late].received); /* there was room, and it was executed */
    assert_false(w->messages[late].sent);
    sim_restart(w, HOST_0);
    self->cut[HOST_0][HOST_3] = false;
    sim_run(w, 3 * SEC_NS);
    sim_expect_sent(w, late, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(w->node[HOST_3].restarted, 1);
}

/*
 * A full table evicts nobody whose packets may still come: a copy of an executed message is a
 * duplicate for as long. Then the silent make room.
 */
TEST_F(forge_tape, sim_receive_half__stays_under_pressure)
{
    struct sim_world *w = forge_begin(
        self, &(struct sim_options){
                  .no_challenge = true, .hosts = 4, .max_peers = 8, .peer_timeout_ns = 2 * SEC_NS});

    forge_exchange(w, HOST_1, HOST_0);
    for (uint32_t i = 0; i < 6; i++)
        stranger(w, HOST_0, i);
    assert_int_equal(sim_counter(w, HOST_0, "tx_challenges"), 0);
    forge_exchange(w, HOST_2, HOST_0); /* the last place costs a challenge */
    assert_int_equal(sim_counter(w, HOST_0, "tx_challenges"), 1);
    assert_int_equal(sim_counter(w, HOST_0, "peers"), 8);
    uint32_t late = sim_send(w, HOST_3, HOST_0, BYTES);
    sim_run(w, 13500 * MSEC_NS); /* R is S + U + 2 L, 14 s */

    forge_expect_failed(w, late);
    assert_false(w->messages[late].received);
    assert_true(sim_counter(w, HOST_0, "rx_drop_table_full") > 0);
    assert_int_equal(sim_counter(w, HOST_0, "peers_evicted"), 0);
    forge_look(self, HOST_0);
    forge_replay(w, forge_find(self, HOST_1, HOST_0, MRD_WIRE_DATA, 0));
    stranger(w, HOST_0, 0);
    forge_expect(self, HOST_0, "rx_duplicates 2");

    sim_run(w, 3 * SEC_NS);
    forge_exchange(w, HOST_3, HOST_0);
    assert_int_equal(sim_counter(w, HOST_0, "peers_evicted"), 1);
}
