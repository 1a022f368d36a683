/* SPDX-License-Identifier: BSD-2-Clause */
/* Many short messages of a few packets, to one peer, go as fast as few long ones. */
#include "core/engine/state.h"
#include "tests/support/check.h"
#include "tests/support/pump.h"

enum {
    LINKS = 16,
    LINK_DELAY_NS = 15000,
    LONG_BYTES = 1 << 20,
    LONG_OUTSTANDING = 16,
    SHORT_OUTSTANDING = 1024,
    WARM_UP_NS = 2 * MSEC_NS,
    MEASURE_NS = 4 * MSEC_NS,
};
#define LINK_BPS 25000000000
#define ALL_BPS  (LINKS * LINK_BPS)

/* link_bps: what the sender takes the rate of its way for. */
static double rate(uint64_t link_bps, uint32_t bytes, uint32_t outstanding, uint32_t loss_ppm)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.links = LINKS,
                                                                 .paths = LINKS,
                                                                 .rate_bps = LINK_BPS,
                                                                 .delay_ns = LINK_DELAY_NS,
                                                                 .loss_ppm = loss_ppm,
                                                                 .send_wr = SHORT_OUTSTANDING});
    struct pump p;

    sim_engine(w, HOST_0)->config.mover.link_bps = link_bps;
    pump_start_sized(&p, w, HOST_0, HOST_1, bytes, outstanding);
    pump_run_one(&p, WARM_UP_NS);

    double gbps = pump_run_one(&p, MEASURE_NS);

    pump_stop(&p);
    return gbps;
}

static void check_rate(uint64_t link_bps, uint32_t bytes, uint32_t loss_ppm, double least)
{
    double whole = rate(link_bps, LONG_BYTES, LONG_OUTSTANDING, loss_ppm);
    double gbps = rate(link_bps, bytes, SHORT_OUTSTANDING, loss_ppm);

    test_check(test_seed(), gbps >= least * whole,
               "%u bytes, loss %u ppm: %.2f Gb/s, of 1 MiB %.2f", bytes, loss_ppm, gbps, whole);
}

TEST(sim_message_rate__without_loss)
{
    check_rate(LINK_BPS, 8 << 10, 0, 0.85);
    check_rate(LINK_BPS, 5 << 10, 0, 0.85);
    check_rate(ALL_BPS, 8 << 10, 0, 0.85);
    check_rate(ALL_BPS, 5 << 10, 0, 0.85);
}

/* Half-full packets fill the space of PSNs before the window: not at the rate of all links. */
TEST(sim_message_rate__with_loss)
{
    check_rate(LINK_BPS, 8 << 10, 10000, 0.75);
    check_rate(LINK_BPS, 5 << 10, 10000, 0.75);
    check_rate(ALL_BPS, 8 << 10, 10000, 0.75);
}
