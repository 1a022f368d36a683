/* SPDX-License-Identifier: BSD-2-Clause */
/* First contacts from forged addresses that do not end: honest newcomers get in beside them. */
#include "tests/support/stranger.h"
#include "transport/movers/sim/sim_host.h"

enum {
    TARGET = HOST_1,
    NEWCOMER = HOST_2, /* the first one; so is every host behind it */
    HOSTS = 10,
    AT_ONCE = 1100, /* packets that use up what is answered at once */
    BURST = 8,
    GAP_NS = 4000, /* between packets: a quarter of a million a second, 100 Mb/s */
};

static void forge(struct sim_world *w, struct stranger *st)
{
    for (uint32_t i = 0; i < BURST; i++)
        (void)stranger_act(st, STRANGER_FIRST, TARGET, HOST_0);
    sim_run(w, BURST * GAP_NS);
}

TEST(sim_flood__newcomers_get_in)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.hosts = HOSTS, .recv_bytes = 4096});
    struct stranger *st = stranger_create(w->sim, HOSTS, test_seed());

    stranger_watch_all(st);
    sim_run(w, SEC_NS);
    for (uint32_t i = 0; i < AT_ONCE; i += BURST)
        forge(w, st);
    for (uint32_t host = NEWCOMER; host < HOSTS; host++)
        sim_send(w, host, TARGET, 100);
    uint64_t end_ns = mrd_sim_now(w->sim) + 10 * SEC_NS;
    while (!sim_is_complete(w) && mrd_sim_now(w->sim) < end_ns)
        forge(w, st);
    for (uint32_t i = 0; i < w->num_messages; i++)
        sim_expect_sent(w, i, MRD_WC_SUCCESS);
    stranger_destroy(st);
}
