/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wan: one flow without end over a long path that loses packets at random, against RTT and loss,
 * and what CUBIC and BBR get there by formulas.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"
#include "tools/sim/models/cubic.h"
#include "tools/sim/models/response.h"
#include "tools/sim/narrow.h"

static const double rtts_us[] = {1e3, 5e3, 20e3, 80e3};
static const double losses[] = {0, 1e-4, 1e-3, 1e-2};

enum {
    NUM_RTTS = sizeof(rtts_us) / sizeof(rtts_us[0]),
    NUM_LOSSES = sizeof(losses) / sizeof(losses[0]),
};

/* The share of the time that does not count: the flow finds its rate. */
#define BEGIN_SHARE 0.25

/* Observations of a run. */
struct watch {
    struct simx_narrow_look begin, end; /* of what counts */
    uint64_t begin_bytes, end_bytes;
};

static void point(struct simx_config *config, unsigned index)
{
    (void)index;
    simx_narrow_point(config, 1);
}

static int check(const struct simx_config *asked, const struct simx_net *net)
{
    int ret = 0;

    (void)net;
    if (strcmp(asked->transport, "mrd") != 0)
        return simx_fail(-EINVAL, "--transport: wan is of mrd only, not of %s", asked->transport);
    for (unsigned i = 0; ret == 0 && i < simx_points(&simx_exp_wan, asked); i++) {
        struct simx_config config = *asked;

        simx_point(&simx_exp_wan, &config, i);
        ret = simx_narrow_check(&config);
    }
    return ret;
}

static int traffic(const struct simx_config *c, const struct simx_net *net, struct simx_cm *cm)
{
    return simx_cm_pairs(cm, net->topology.hosts, 1, 1,
                         simx_narrow_endless_bytes(c, c->duration_s));
}

/* -------------------------------------------------------------------------------------- measure */

static int go(struct simx_run *run)
{
    struct watch *w = run->memo;
    double end_ns = run->config->duration_s * 1e9;

    if (!simx_run_until(run, (uint64_t)(end_ns * BEGIN_SHARE))) {
        simx_narrow_look(run, &w->begin);
        w->begin_bytes = run->ops->received(run->drive, 1);
        simx_run_until(run, (uint64_t)end_ns);
        simx_narrow_look(run, &w->end);
        w->end_bytes = run->ops->received(run->drive, 1);
    }
    return simx_narrow_end(run);
}

static double cubic_gbps(const struct simx_config *c)
{
    double payload = c->payload_bytes, wire = payload + MODEL_CUBIC_HEADER_BYTES;
    double packets = model_response_cubic_packets(c->rtt_us / 1e6, c->loss);

    return fmin(packets * payload * 8 / (c->rtt_us * 1e3), c->gbps * payload / wire) *
           (1 - c->loss);
}

static double bbr_gbps(const struct simx_config *c)
{
    double payload = c->payload_bytes, wire = payload + MODEL_CUBIC_HEADER_BYTES;

    return model_response_bbr_share(c->loss) * c->gbps * payload / wire;
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    const struct simx_config *c = run->config;
    const struct watch *w = run->memo;
    double ns = (double)(w->end.t_ns - w->begin.t_ns);
    double gbps = (double)(w->end_bytes - w->begin_bytes) * 8 / ns;
    double full_gbps = simx_narrow_payload_gbps(run);

    simx_narrow_add_figures(run, result);
    json_add_numbers(result, {"rtt_ms", c->rtt_us / 1e3}, {"loss", c->loss}, {"goodput_gbps", gbps},
                     {"full_gbps", full_gbps}, {"efficiency", gbps / (full_gbps * (1 - c->loss))},
                     {"cubic_gbps", cubic_gbps(c)}, {"bbr_gbps", bbr_gbps(c)},
                     {"over_cubic", gbps / cubic_gbps(c)},
                     {"utilisation", simx_narrow_utilisation(run, &w->begin, &w->end)},
                     {"narrow_drops", (double)(w->end.drops - w->begin.drops)},
                     {"narrow_drops_all", (double)w->end.drops});
}

/* ------------------------------------------------------------------------------- the experiment */

const struct simx_experiment simx_exp_wan = {
    .name = "wan",
    .summary = "one flow over a long path: goodput against RTT and loss",
    .about = "One flow without end crosses a narrow link; packets are lost at random. The first "
             "quarter of the time does not count. Beside it what CUBIC and BBR get by formulas.",
    .own = {{"gbps", "1", NULL},
            {"rtt", NULL, "1000, 5000, 20000 and 80000 in turn"},
            {"loss", NULL, "0, 0.0001, 0.001 and 0.01 in turn"},
            {"speedup", "10", NULL},
            {"payload", "1408", NULL},
            {"knows", "sockets", NULL},
            {"ecn", "0,0", NULL},
            {"duration", "10", NULL}},
    .sweeps = {{offsetof(struct simx_config, loss), false, NUM_LOSSES, losses},
               {offsetof(struct simx_config, rtt_us), false, NUM_RTTS, rtts_us}},
    .point = point,
    .check = check,
    .traffic = traffic,
    .memo_bytes = sizeof(struct watch),
    .go = go,
    .figures = add_figures,
    .columns =
        {
            SIMX_COLUMNS_TRANSPORT,
            {"loss", "loss", NULL, 6},
            {"rtt_ms", "RTT", "ms", 2},
            {"goodput_gbps", "goodput", "Gb/s", 4},
            {"efficiency", "efficiency", NULL, 4},
            {"cubic_gbps", "CUBIC", "Gb/s", 4},
            {"bbr_gbps", "BBR", "Gb/s", 4},
            {"over_cubic", "/CUBIC", NULL, 2},
            {"utilisation", "used", NULL, 3},
            {"narrow_drops", "drops", NULL, 0},
            SIMX_COLUMNS_PACKETS,
            {"lost", "lost", NULL, 0},
            {"timeouts", "timeouts", NULL, 0},
            {"wall_s", "wall", "s", 3},
        },
    .picture =
        {
            .title = "Goodput of one flow over a long path, by share of packets lost",
            .x_label = "RTT [ms]",
            .y_label = "goodput [Gb/s]",
            .group = "loss",
            .all_values = true,
            .x = {"rtt_ms", 1, NULL},
            .y = {{"goodput_gbps", 1, "measured"},
                  {"cubic_gbps", 1, "CUBIC"},
                  {"bbr_gbps", 1, "BBR"}},
            .x_log = true,
            .y_log = true,
        },
};
