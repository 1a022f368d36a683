/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A caller without a thread slept for longer than spaces last, and then posts before it polls. What became of its
 * peer meanwhile waits in its receive queue, or its silence tells: both are looked at first.
 */
#include "core/engine/state.h"
#include "tests/support/forge.h"
#include "transport/context.h"
#include "transport/error.h"
#include "transport/movers/sim/sim_fault.h"
#include "transport/movers/sim/sim_host.h"

enum { BYTES = 100 };

#define TIMEOUT_NS (300 * MSEC_NS)
#define SLEEP_NS   (30 * SEC_NS)

/* The caller does something else for some round trips, between its post and its next poll. */
static void look_away(struct sim_world *w, uint32_t host)
{
    sim_stop_for(w, host, 100 * USEC_NS);
}

static void settle(struct sim_world *w, uint32_t index)
{
    for (unsigned i = 0; i < 300 && !w->messages[index].sent; i++)
        sim_run(w, 10 * MSEC_NS);
}

/* Nobody of the peer's is dead: the peer's process is another one. */
TEST(sim_slept__the_peer_restarted)
{
    struct sim_world *w;
    uint32_t m;

    for (unsigned trusting = 0; trusting < 2; trusting++) {
        w = sim_fabric_world(&(struct sim_options){.no_challenge = trusting});
        m = sim_send(w, HOST_1, HOST_0, BYTES); /* so that host 0 holds a space */
        sim_run_until_complete(w, SEC_NS);
        mrd_sim_stop_host(w->sim, HOST_0, 1);
        sim_run(w, SLEEP_NS);
        sim_restart(w, HOST_1);
        sim_run(w, SEC_NS);
        mrd_sim_stop_host(w->sim, HOST_0, 0);
        for (unsigned i = 0; i < 3; i++) {
            m = sim_send(w, HOST_0, HOST_1, BYTES);
            look_away(w, HOST_0);
            settle(w, m);
            test_check(w->options.seed, w->messages[m].status == MRD_WC_SUCCESS,
                       "message %u: status %u", i, w->messages[m].status);
            sim_run(w, 9 * SEC_NS); /* idle, and looking all the time */
        }
        assert_int_equal(w->node[HOST_0].restarted, 0);
    }
}

/*
 * The caller's own first address fails, so that the peer knows it by another name, and is mended later. What is
 * refused then is not acked by the other name.
 */
TEST_F(forge_tape, sim_slept__its_address_failed)
{
    struct sim_world *w = forge_begin(self, &(struct sim_options){.peer_timeout_ns = TIMEOUT_NS});

    mrd_sim_set_addresses(w->sim, HOST_1, 2, MRD_SIM_SOURCE_FIRST);
    uint32_t m = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run_until_complete(w, SEC_NS);
    assert_int_equal(w->messages[m].status, MRD_WC_SUCCESS);
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    sim_run(w, 14 * SEC_NS);
    mrd_sim_change_address(w->sim, 0, HOST_1, 0, MRD_SIM_ADDRESS_LOSE);
    sim_run(w, MSEC_NS);
    mrd_sim_stop_host(w->sim, HOST_1, 0);
    uint64_t woke_ns = mrd_sim_now(w->sim);
    m = sim_send(w, HOST_1, HOST_0, BYTES);
    look_away(w, HOST_1);
    settle(w, m);
    test_check(w->options.seed, w->messages[m].status == MRD_WC_SUCCESS, "status %u",
               w->messages[m].status);
    test_check(w->options.seed, mrd_sim_now(w->sim) - woke_ns < 4 * TIMEOUT_NS,
               "the message took %llu ms",
               (unsigned long long)((mrd_sim_now(w->sim) - woke_ns) / MSEC_NS));
    mrd_sim_change_address(w->sim, 0, HOST_1, 0, MRD_SIM_ADDRESS_GET);
    sim_run(w, MSEC_NS);
    uint32_t bad =
        sim_post(w, &(struct sim_post){.from = HOST_0, .to = HOST_1, .len = 64, .rkey_add = 1000});
    settle(w, bad);
    test_check(w->options.seed, w->messages[bad].status == MRD_WC_REM_ACCESS_ERR,
               "a write that was refused for its key: status %u", w->messages[bad].status);
}

/*
 * The caller slept while something was in flight. The next message is to a peer that is not there: the time of sleep
 * does not add to its timeout.
 */
TEST(sim_slept__another_is_not_there)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.hosts = 3, .peer_timeout_ns = TIMEOUT_NS});

    mrd_sim_stop_host(w->sim, HOST_2, 1);
    sim_send(w, HOST_0, HOST_1, BYTES);
    sim_stop_for(w, HOST_0, SLEEP_NS);
    uint64_t woke_ns = mrd_sim_now(w->sim);
    uint32_t m = sim_send(w, HOST_0, HOST_2, BYTES);
    settle(w, m);
    test_check(w->options.seed, w->messages[m].status == MRD_WC_RETRY_EXC_ERR, "status %u",
               w->messages[m].status);
    test_check(w->options.seed, mrd_sim_now(w->sim) - woke_ns < 4 * TIMEOUT_NS,
               "told after %llu ms",
               (unsigned long long)((mrd_sim_now(w->sim) - woke_ns) / MSEC_NS));
}

static struct mrd_backend_ops ops;

/* As mrd_udp_open_path() where descriptors are out. */
static int no_path(struct mrd_backend *b)
{
    (void)b;
    mrd_error_set("out of file descriptors");
    return -24;
}

/* What is looked at first is nothing that the user asked for: here a dead path, which finds no new socket. */
TEST(sim_slept__the_last_error_stays)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});
    struct mrd_context_impl *c = mrd_context_impl(w->node[HOST_1].context);
    const struct mrd_backend_ops *usual = c->ops;

    sim_send_complete(w, HOST_1, HOST_0, BYTES, SEC_NS);
    sim_stop_for(w, HOST_1, SEC_NS);
    ops = *c->ops;
    ops.new_path = no_path;
    c->ops = &ops;
    struct mrd_peer *peer = mrd_container_of(c->engine->peers.active.next, struct mrd_peer, node);
    assert_non_null(peer->tx);
    peer->tx->paths.path[0].wants_ev = true;
    c->engine->turns.wants_path = true;
    mrd_error_set("what the user's call said");
    assert_int_equal(mrd_watch_peer(w->node[HOST_1].ah[HOST_0], 1), 0);
    assert_false(c->engine->turns.wants_path);
    assert_string_equal(mrd_last_error(), "what the user's call said");
    assert_int_equal(mrd_watch_peer(w->node[HOST_1].ah[HOST_0], 0), 0);
    c->ops = usual;
}
