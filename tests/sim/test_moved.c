/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that moved: when they come back after a rest, and handles for where they were before. */
#include "core/engine/state.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_fault.h"
#include "transport/movers/sim/sim_host.h"

enum { MOVED = 5 };

#define TIMEOUT_NS (1 * SEC_NS)
#define REST_NS    (60 * SEC_NS) /* neither end knows a space of the other's then */

static struct sim_world *world(void)
{
    return sim_fabric_world(
        &(struct sim_options){.recv_bytes = 4096, .peer_timeout_ns = TIMEOUT_NS});
}

/* A message: how it ended. */
static enum mrd_wc_status talk(struct sim_world *w, uint32_t from, uint32_t to)
{
    uint32_t i = sim_send(w, from, to, 100);

    sim_run_until_complete(w, 3 * TIMEOUT_NS);
    return w->messages[i].status;
}

static void expect_talk(struct sim_world *w, uint32_t from, uint32_t to)
{
    assert_int_equal(talk(w, from, to), MRD_WC_SUCCESS);
}

/* The two know each other; host 0's only address becomes another one, and host 1 follows. */
static void move_host_0(struct sim_world *w)
{
    expect_talk(w, HOST_0, HOST_1);
    expect_talk(w, HOST_1, HOST_0);
    mrd_sim_move_address(w->sim, 0, HOST_0, 0, MOVED);
    (void)talk(w, HOST_0, HOST_1);
    expect_talk(w, HOST_0, HOST_1);
    expect_talk(w, HOST_1, HOST_0);
    assert_int_equal(sim_counter(w, HOST_1, "peers_moved"), 1);
}

/* Both forget the other's space. Then the one that moved speaks first: nobody restarted. */
TEST(sim_moved__speaks_after_a_rest)
{
    struct sim_world *w = world();

    move_host_0(w);
    sim_run(w, REST_NS);
    expect_talk(w, HOST_0, HOST_1);
    sim_expect_no_losses(w);
}

/* The same, and the other one speaks first. */
TEST(sim_moved__is_spoken_to_after_a_rest)
{
    struct sim_world *w = world();

    move_host_0(w);
    sim_run(w, REST_NS);
    expect_talk(w, HOST_1, HOST_0);
    sim_expect_no_losses(w);
}

/* The host has its old address again, beside the new one: a new handle for it reaches the host. */
TEST(sim_moved__handle_for_the_old_address)
{
    struct sim_world *w = world();
    struct sim_node *node = &w->node[HOST_1];

    move_host_0(w);
    mrd_sim_change_address(w->sim, 0, HOST_0, 0, MRD_SIM_ADDRESS_GET);
    expect_talk(w, HOST_0, HOST_1);
    assert_int_equal(mrd_destroy_ah(node->ah[HOST_0]), 0);
    node->ah[HOST_0] = mrd_create_ah(node->pd, "sim:0");
    assert_non_null(node->ah[HOST_0]);
    expect_talk(w, HOST_1, HOST_0);
    expect_talk(w, HOST_0, HOST_1);
    sim_expect_no_losses(w);
}

/*
 * The host is at its old address again, which the handle names, and nobody was told. The first message
 * may fail, as it goes where the host was last; those that are posted later reach it.
 */
TEST(sim_moved_back__unnoticed)
{
    struct sim_world *w = world();

    move_host_0(w);
    mrd_sim_move_address(w->sim, 0, HOST_0, MOVED, 0);
    sim_run(w, MSEC_NS);
    (void)talk(w, HOST_1, HOST_0);
    expect_talk(w, HOST_1, HOST_0);
}

/* The same after a rest, and the host speaks first, from where the handle says: the answer gets there. */
TEST(sim_moved_back__speaks_after_a_rest)
{
    struct sim_world *w = world();

    move_host_0(w);
    sim_run(w, REST_NS);
    mrd_sim_move_address(w->sim, 0, HOST_0, MOVED, 0);
    sim_run(w, MSEC_NS);
    expect_talk(w, HOST_0, HOST_1);
    expect_talk(w, HOST_1, HOST_0);
    sim_expect_no_losses(w);
}
