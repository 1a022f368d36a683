/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages go to the address of their handle, and to nobody else. */
#include <errno.h>

#include "core/engine/state.h"
#include "tests/support/world.h"

enum { EVICTABLE_S = 40 };

static struct mrd_peer *only_peer(struct sim_world *w, uint32_t host)
{
    struct mrd_engine *e = sim_engine(w, host);

    assert_int_equal(e->peers.entries.used, 1);
    return mrd_container_of(e->peers.active.next, struct mrd_peer, node);
}

/* Peer ids come again after many peers: a handle that has one must not follow it to a stranger. */
TEST(sim_address__a_peer_id_that_comes_again)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = 3, .max_peers = 1});
    struct mrd_engine *e = sim_engine(w, HOST_0);

    sim_write_complete(w, HOST_0, HOST_1, 64, 10 * MSEC_NS);
    uint32_t id = only_peer(w, HOST_0)->id;
    sim_run(w, EVICTABLE_S * SEC_NS);
    e->peers.generation -= 1u << e->peers.index_bits; /* all others were given meanwhile */
    sim_write_complete(w, HOST_0, HOST_2, 64, 10 * MSEC_NS);
    assert_int_equal(only_peer(w, HOST_0)->id, id);
    sim_run(w, EVICTABLE_S * SEC_NS);
    uint32_t message = sim_write(w, HOST_0, HOST_1, 64);
    sim_run_until_complete(w, 10 * MSEC_NS);
    assert_true(w->messages[message].equal);
    assert_true(only_peer(w, HOST_0)->addr.port == 2); /* host 1's */
}

/* A handle of another context is no address here. */
TEST(sim_address__handle_of_another_context)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = 3});
    struct mrd_ah *own = w->node[HOST_0].ah[HOST_2];
    uint32_t message;

    w->node[HOST_0].ah[HOST_2] = w->node[HOST_1].ah[HOST_2];
    assert_int_equal(sim_try_post(w, &(struct sim_post){.to = HOST_2, .len = 64}, &message),
                     -EINVAL);
    assert_string_equal(mrd_last_error(), "the address handle belongs to another context");
    w->node[HOST_0].ah[HOST_2] = own;
    sim_write_complete(w, HOST_0, HOST_2, 64, 10 * MSEC_NS);
}
