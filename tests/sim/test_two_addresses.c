/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts with two addresses, sources that fail, addresses that change: a peer is a life, no address. */
#include "core/engine/state.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_fault.h"
#include "transport/movers/sim/sim_host.h"

enum { ROUNDS = 20, MESSAGES = 16, LONG_BYTES = 64 << 10, MOVED = 5 };

#define TIMEOUT_NS (1 * SEC_NS)

static struct sim_world *world(enum mrd_order order)
{
    return sim_fabric_world(&(struct sim_options){
        .recv_bytes = LONG_BYTES, .order = order, .peer_timeout_ns = TIMEOUT_NS});
}

/* Posts messages of many lengths. */
static void post_some(struct sim_world *w, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < MESSAGES; i++)
        sim_send(w, from, to, i % 4 ? 1 + 100 * i : LONG_BYTES);
}

static void expect_success(const struct sim_world *w)
{
    for (uint32_t i = 0; i < w->num_messages; i++)
        assert_int_equal(w->messages[i].status, MRD_WC_SUCCESS);
}

/* A message to each other, each of which must succeed. */
static void expect_talk(struct sim_world *w, uint64_t budget_ns)
{
    uint32_t there = sim_send(w, HOST_0, HOST_1, 100), back = sim_send(w, HOST_1, HOST_0, 100);

    sim_run_until_complete(w, budget_ns);
    assert_int_equal(w->messages[there].status, MRD_WC_SUCCESS);
    assert_int_equal(w->messages[back].status, MRD_WC_SUCCESS);
}

static void expect_peers(struct sim_world *w, uint32_t host, uint32_t most)
{
    assert_in_range(sim_engine(w, host)->peers.entries.used, 1, most);
    assert_int_equal(w->node[host].restarted + w->node[host].unreachable, 0);
    assert_int_equal(sim_counter(w, host, "rx_resets"), 0);
}

static void expect_one_peer(struct sim_world *w, uint32_t host)
{
    expect_peers(w, host, 1);
}

/*
 * Paths leave from two addresses: one peer, each message once, nothing lost, nothing late. Two that do
 * so contact each other at two addresses: then each way has its own.
 */
static void two_sources(enum mrd_order order, bool both)
{
    struct sim_world *w = world(order);

    mrd_sim_set_addresses(w->sim, HOST_0, 2, MRD_SIM_SOURCE_HASHED);
    if (both)
        mrd_sim_set_addresses(w->sim, HOST_1, 2, MRD_SIM_SOURCE_HASHED);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        post_some(w, HOST_0, HOST_1);
        if (both)
            post_some(w, HOST_1, HOST_0);
        sim_run_until_complete(w, 20 * MSEC_NS);
    }
    expect_success(w);
    assert_int_equal(w->node[HOST_1].deliveries, ROUNDS * MESSAGES);
    assert_true(sim_payload_equal(w, HOST_1));
    expect_peers(w, HOST_0, both ? 2 : 1);
    expect_peers(w, HOST_1, both ? 2 : 1);
}

TEST(sim_two_addresses__executed_once)
{
    two_sources(MRD_ORDER_NONE, false);
}

TEST(sim_two_addresses__in_order)
{
    two_sources(MRD_ORDER_MSG, false);
}

TEST(sim_two_addresses__both_ends)
{
    two_sources(MRD_ORDER_NONE, true);
}

/* The link of the source goes down, its address stays: others are tried within the timeout. */
static void source_fails(bool busy, enum mrd_sim_address_change how)
{
    struct sim_world *w = world(MRD_ORDER_NONE);

    mrd_sim_set_addresses(w->sim, HOST_0, 2, MRD_SIM_SOURCE_FIRST);
    expect_talk(w, 20 * MSEC_NS);
    if (busy)
        post_some(w, HOST_0, HOST_1);
    sim_run(w, 10 * USEC_NS);
    mrd_sim_change_address(w->sim, 0, HOST_0, 0, how);
    if (!busy)
        sim_run(w, 3 * TIMEOUT_NS);
    post_some(w, HOST_0, HOST_1);
    sim_run_until_complete(w, 2 * TIMEOUT_NS);
    expect_success(w);
    expect_talk(w, 2 * TIMEOUT_NS);
    expect_one_peer(w, HOST_0);
    expect_one_peer(w, HOST_1);
}

TEST(sim_source_fails__idle)
{
    source_fails(false, MRD_SIM_ADDRESS_FAIL);
}

TEST(sim_source_fails__busy)
{
    source_fails(true, MRD_SIM_ADDRESS_FAIL);
}

TEST(sim_source_lost__idle)
{
    source_fails(false, MRD_SIM_ADDRESS_LOSE);
}

TEST(sim_source_lost__busy)
{
    source_fails(true, MRD_SIM_ADDRESS_LOSE);
}

/*
 * The host's only address becomes another one. What was under way succeeds or fails once, and is
 * not executed twice; then the two talk as before, in both directions.
 */
static void address_changes(bool busy)
{
    struct sim_world *w = world(MRD_ORDER_NONE);
    struct mrd_peer_attr attr;

    expect_talk(w, 20 * MSEC_NS);
    if (busy) {
        post_some(w, HOST_0, HOST_1);
        post_some(w, HOST_1, HOST_0);
    }
    sim_run(w, 10 * USEC_NS);
    mrd_sim_move_address(w->sim, 0, HOST_0, 0, MOVED);
    /* It speaks first: nobody else knows where it is. */
    sim_send_complete(w, HOST_0, HOST_1, 100, 3 * TIMEOUT_NS);
    for (uint32_t i = 0; i < w->num_messages; i++)
        assert_true(w->messages[i].status == MRD_WC_SUCCESS ||
                    w->messages[i].status == MRD_WC_RETRY_EXC_ERR);
    expect_talk(w, 2 * TIMEOUT_NS);
    /* The handle for the old address says where the peer is now. */
    assert_int_equal(mrd_query_peer(w->node[HOST_1].ah[HOST_0], &attr, sizeof(attr)), 0);
    assert_string_equal(attr.address, "sim:0/5");
    assert_int_equal(sim_counter(w, HOST_1, "peers_moved"), 1);
}

TEST(sim_address_changes__idle)
{
    address_changes(false);
}

TEST(sim_address_changes__busy)
{
    address_changes(true);
}
