/* SPDX-License-Identifier: BSD-2-Clause */
/* Beside TCP on a narrow path without marks: neither starves the other, whoever came first. */
#include "tests/support/check.h"
#include "tests/support/pump.h"
#include "tools/sim/models/cubic.h"

enum { WARM_UP_NS = 1000 * MSEC_NS };
#define PATH_BPS 1000000000ull

struct scene {
    uint64_t delay_ns; /* of a link; there are two each way */
    bool tcp_first;
    uint32_t mtu, mss; /* payload of our packets, 0: the greatest; of TCP's */
    uint64_t measured_ns;
    double least; /* share of each */
};

/* What is not TCP's. */
static double share(const struct scene *s, uint64_t seed)
{
    const struct mrd_sim_topology topology = {
        4, 2, 0, {{2, 1, 0, 10 * PATH_BPS, s->delay_ns, 0}, {2, 0, 0, PATH_BPS, s->delay_ns, 0}}};
    struct sim_world *w = sim_world_create(&(struct sim_options){
        .seed = seed, .topology = &topology, .queue_bytes = 200000, .paths = 32, .mtu = s->mtu});
    struct model_cubic *tcp = NULL;
    struct pump pump;

    sim_close(w, HOST_1);
    sim_close(w, HOST_3);
    pump_start(&pump, w, HOST_0, HOST_2);
    if (s->tcp_first) {
        tcp = model_cubic_start(w->sim, HOST_1, HOST_3, s->mss);
        sim_run(w, WARM_UP_NS);
    } else {
        pump_run_one(&pump, WARM_UP_NS);
        tcp = model_cubic_start(w->sim, HOST_1, HOST_3, s->mss);
    }
    pump_run_one(&pump, WARM_UP_NS);

    uint64_t bytes = model_cubic_delivered_bytes(tcp);
    double gbps = pump_run_one(&pump, s->measured_ns);
    double tcp_gbps =
        (double)(model_cubic_delivered_bytes(tcp) - bytes) * 8 / (double)s->measured_ns;

    test_check(seed, (gbps + tcp_gbps) * 1e9 >= 0.85 * PATH_BPS,
               "%.3f Gb/s beside TCP's %.3f: the path is not full", gbps, tcp_gbps);
    pump_stop(&pump);
    model_cubic_stop(tcp);
    sim_world_destroy(w);
    return gbps / (gbps + tcp_gbps);
}

/* The narrow path of tools/fabric.sh; a longer one; packets for Ethernet. */
TEST(sim_beside_tcp__each_has_its_share)
{
    static const struct scene scenes[] = {
        {10 * USEC_NS, true, 0, 8948, 28 * SEC_NS, 1.0 / 3},
        {10 * USEC_NS, false, 0, 8948, 28 * SEC_NS, 1.0 / 3},
        {100 * USEC_NS, true, 0, 8948, 4 * SEC_NS, 0.3},
        {100 * USEC_NS, false, 0, 8948, 4 * SEC_NS, 0.3},
        {10 * USEC_NS, true, 1408, 1448, 4 * SEC_NS, 0.25},
        {10 * USEC_NS, false, 1408, 1448, 4 * SEC_NS, 0.25},
    };

    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        const struct scene *s = &scenes[i];
        double ours = share(s, test_seed());

        test_check(test_seed(), ours >= s->least && ours <= 1 - s->least,
                   "%s first, links of %llu ns, MSS %u: a share of %.3f",
                   s->tcp_first ? "TCP" : "mrd", (unsigned long long)s->delay_ns, s->mss, ours);
    }
}
