/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fairness: flows without end share one narrow link.
 *
 * They begin one after the other, those of TCP behind or before the others. What each receiver has
 * is looked at in even steps; the figures are of the second half of the time after the last start.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"
#include "tools/sim/fair.h"
#include "tools/sim/models/cubic.h"
#include "tools/sim/narrow.h"

/* STEPS: of the whole time, but none is shorter than RTTS_A_STEP base RTTs. */
enum { FLOWS_MAX = SIMX_NARROW_FLOWS_MAX, STEPS = 200, RTTS_A_STEP = 2, NAME_BYTES = 16 };

/* From here on shares are even. */
#define EVEN_JAIN 0.95

/* What all receivers have. */
struct look {
    struct simx_narrow_look link;
    uint64_t bytes[FLOWS_MAX];
};

/* Observations of a run. Flows are numbered in the order of their starts, as their hosts are. */
struct watch {
    struct model_cubic *tcp[FLOWS_MAX]; /* that runs; NULL: not yet, or not TCP */
    struct look before, half, end;      /* the last look; the begin and the end of what counts */
    double converged_us;                /* since the last start; NAN: not yet */
    double queue_bytes;                 /* the sum of all looks of the second half */
    uint32_t num_queue;
    struct json_object *samples;
};

static uint32_t num_flows(const struct simx_config *c)
{
    return c->mrd_flows + c->tcp_flows;
}

static bool is_tcp(const struct simx_config *c, uint32_t flow)
{
    return c->tcp_first ? flow < c->tcp_flows : flow >= c->mrd_flows;
}

static uint64_t start_ns(const struct simx_config *c, uint32_t flow)
{
    return (uint64_t)llround(c->stagger_us * 1e3) * flow;
}

static uint64_t last_start_ns(const struct simx_config *c)
{
    return start_ns(c, num_flows(c) - 1);
}

static uint64_t end_ns(const struct simx_config *c)
{
    return last_start_ns(c) + (uint64_t)llround(c->duration_s * 1e9);
}

static void point(struct simx_config *config, unsigned index)
{
    (void)index;
    simx_narrow_point(config, num_flows(config));
}

static int check(const struct simx_config *asked, const struct simx_net *net)
{
    struct simx_config config = *asked;

    (void)net;
    if (num_flows(asked) > FLOWS_MAX)
        return simx_fail(-EINVAL, "--tcp: expected at most %u, as --flows is %u, found %u",
                         FLOWS_MAX - asked->mrd_flows, asked->mrd_flows, asked->tcp_flows);
    if (asked->tcp_flows > 0 && strcmp(asked->transport, "mrd") != 0)
        return simx_fail(-EINVAL, "--tcp: it runs beside mrd only, not beside %s",
                         asked->transport);
    point(&config, 0);
    return simx_narrow_check(&config);
}

/* -------------------------------------------------------------------------------------- traffic */

/* Flow i goes from host i to the one that many further; those of TCP are no flows of the matrix. */
static int traffic(const struct simx_config *c, const struct simx_net *net, struct simx_cm *cm)
{
    uint32_t all = num_flows(c), kept = 0;
    uint64_t bytes = simx_narrow_endless_bytes(c, (double)end_ns(c) / 1e9);
    int ret = simx_cm_pairs(cm, net->topology.hosts, all, all, bytes);

    for (uint32_t i = 0; ret == 0 && i < all; i++) {
        cm->flows[i].start_ps = start_ns(c, i) * 1000;
        if (!is_tcp(c, i))
            cm->flows[kept++] = cm->flows[i];
    }
    if (ret == 0)
        cm->num_flows = kept;
    return ret;
}

/* -------------------------------------------------------------------------------------- the run */

static void take_look(const struct simx_run *run, const struct watch *w, struct look *look)
{
    uint32_t all = num_flows(run->config);

    simx_narrow_look(run, &look->link);
    for (uint32_t i = 0; i < all; i++) {
        if (w->tcp[i])
            look->bytes[i] = model_cubic_delivered_bytes(w->tcp[i]);
        else if (!is_tcp(run->config, i))
            look->bytes[i] = run->ops->received(run->drive, all + i);
    }
}

static double gbps(const struct look *from, const struct look *to, uint32_t flow)
{
    return (double)(to->bytes[flow] - from->bytes[flow]) * 8 /
           (double)(to->link.t_ns - from->link.t_ns);
}

static struct simx_fair spread_of(const struct simx_config *c, const struct look *from,
                                  const struct look *to)
{
    struct simx_fair fair = {0};

    for (uint32_t i = 0; i < num_flows(c); i++)
        simx_fair_add(&fair, gbps(from, to, i));
    return fair;
}

/* Of the link's rate, of each flow. */
static struct json_object *shares(const struct simx_config *c, const struct look *from,
                                  const struct look *to)
{
    struct json_object *array = json_object_new_array();

    for (uint32_t i = 0; i < num_flows(c); i++)
        json_object_array_add(array, json_number(gbps(from, to, i) / c->gbps));
    return array;
}

static void end_step(const struct simx_run *run, struct watch *w)
{
    const struct simx_config *c = run->config;
    struct json_object *sample = json_object_new_object();
    uint64_t now_ns = mrd_sim_now(run->sim);
    struct look now = {0};

    take_look(run, w, &now);

    struct simx_fair fair = spread_of(c, &w->before, &now);
    double jain = simx_fair_jain(&fair);

    json_add_numbers(sample, {"t_us", (double)now_ns / 1e3},
                     {"queue_bytes", (double)now.link.queue_bytes});
    json_object_object_add(sample, "shares", shares(c, &w->before, &now));
    json_object_array_add(w->samples, sample);
    if (isnan(w->converged_us) && w->before.link.t_ns >= last_start_ns(c) && jain >= EVEN_JAIN)
        w->converged_us = (double)(now_ns - last_start_ns(c)) / 1e3;
    if (w->half.link.t_ns > 0) {
        w->queue_bytes += (double)now.link.queue_bytes;
        w->num_queue++;
    }
    w->before = now;
}

/* Starts the TCP flows that are due. Returns when the next one is, UINT64_MAX: never. */
static int start_tcp(struct simx_run *run, struct watch *w, uint64_t *next_ns)
{
    const struct simx_config *c = run->config;
    uint32_t all = num_flows(c);

    *next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < all; i++) {
        if (!is_tcp(c, i) || w->tcp[i])
            continue;
        if (start_ns(c, i) > mrd_sim_now(run->sim)) {
            *next_ns = start_ns(c, i);
            return 0;
        }
        w->tcp[i] = model_cubic_start(run->sim, i, all + i, c->payload_bytes);
        if (!w->tcp[i])
            return simx_fail(-errno, "fairness: a TCP flow could not be started: %s",
                             strerror(errno));
    }
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* 0, or -errno with a sentence. */
static int watch_all(struct simx_run *run, struct watch *w)
{
    const struct simx_config *c = run->config;
    uint64_t end = end_ns(c), half = last_start_ns(c) + (end - last_start_ns(c)) / 2;
    uint64_t step = (uint64_t)fmax((double)end / STEPS, RTTS_A_STEP * c->rtt_us * 1e3);
    uint64_t next_step = step, next_tcp;
    int ret = start_tcp(run, w, &next_tcp);

    for (uint64_t now = 0; ret == 0 && now < end;) {
        now = least(least(next_step, next_tcp), now < half ? half : end);
        if (simx_run_until(run, now) || run->num_failed > 0)
            break;
        ret = start_tcp(run, w, &next_tcp);
        if (now == next_step) {
            end_step(run, w);
            next_step += step;
        }
        if (now == half)
            take_look(run, w, &w->half);
    }
    take_look(run, w, &w->end);
    return ret;
}

static int go(struct simx_run *run)
{
    struct watch *w = run->memo;

    w->converged_us = NAN;
    w->samples = json_object_new_array();

    int ret = watch_all(run, w);

    for (uint32_t i = 0; i < FLOWS_MAX; i++) {
        model_cubic_stop(w->tcp[i]);
        w->tcp[i] = NULL;
    }
    if (ret == 0)
        ret = simx_narrow_end(run);
    if (ret != 0)
        json_object_put(w->samples);
    return ret;
}

/* -------------------------------------------------------------------------------------- results */

static struct json_object *names(const struct simx_config *c)
{
    struct json_object *array = json_object_new_array();
    char name[NAME_BYTES + 16];

    for (uint32_t i = 0; i < num_flows(c); i++) {
        snprintf(name, sizeof(name), "%u %s", i + 1, is_tcp(c, i) ? "TCP" : c->transport);
        json_object_array_add(array, json_object_new_string(name));
    }
    return array;
}

/* The mean of the flows of one kind over that of all; NAN: there are none. */
static double kind_over_fair(const struct simx_config *c, const struct watch *w,
                             const struct simx_fair *fair, bool tcp)
{
    uint32_t num = tcp ? c->tcp_flows : c->mrd_flows;
    double sum = 0;

    for (uint32_t i = 0; i < num_flows(c); i++)
        sum += is_tcp(c, i) == tcp ? gbps(&w->half, &w->end, i) : 0;
    return num ? simx_fair_over(fair, sum / num) : NAN;
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    const struct simx_config *c = run->config;
    const struct watch *w = run->memo;
    struct simx_fair fair = spread_of(c, &w->half, &w->end);

    simx_narrow_add_figures(run, result);
    json_add_numbers(
        result, {"tcp_flows", c->tcp_flows}, {"goodput_gbps", fair.sum},
        {"jain", simx_fair_jain(&fair)}, {"least_over_fair", simx_fair_over(&fair, fair.least)},
        {"most_over_fair", simx_fair_over(&fair, fair.most)},
        {"flows_over_fair", kind_over_fair(c, w, &fair, false)},
        {"tcp_over_fair", kind_over_fair(c, w, &fair, true)}, {"even_us", w->converged_us},
        {"utilisation", simx_narrow_utilisation(run, &w->half.link, &w->end.link)},
        {"narrow_drops", (double)(w->end.link.drops - w->half.link.drops)},
        {"narrow_drops_all", (double)w->end.link.drops},
        {"queue_us", w->num_queue ? w->queue_bytes / w->num_queue * 8 / (c->gbps * 1e3) : NAN});
    json_object_object_add(result, "names", names(c));
    json_object_object_add(result, "shares", shares(c, &w->half, &w->end));
    json_object_object_add(result, "samples", w->samples);
    json_add_numbers(json_get(result, "config"), {"stagger_us", c->stagger_us},
                     {"tcp_first", c->tcp_first});
}

/* ------------------------------------------------------------------------------- the experiment */

const struct simx_experiment simx_exp_fairness = {
    .name = "fairness",
    .summary = "how flows, and TCP beside them, share one narrow link",
    .about = "Flows without end from as many hosts cross one link; they begin one after the "
             "other. Shares over time; the figures are of the second half of the time after the "
             "last start.",
    .own = {{"gbps", "10", NULL}, {"knows", "sockets", NULL}, {"ecn", "0,0", NULL}},
    .point = point,
    .check = check,
    .traffic = traffic,
    .memo_bytes = sizeof(struct watch),
    .go = go,
    .figures = add_figures,
    .columns =
        {
            SIMX_COLUMNS_TRANSPORT,
            {"flows", "flows", NULL, 0},
            {"tcp_flows", "TCP", NULL, 0},
            {"goodput_gbps", "goodput", "Gb/s", 3},
            {"utilisation", "used", NULL, 3},
            {"jain", "Jain", NULL, 4},
            {"least_over_fair", "least/fair", NULL, 3},
            {"most_over_fair", "most/fair", NULL, 3},
            {"flows_over_fair", "flows/fair", NULL, 3},
            {"tcp_over_fair", "TCP/fair", NULL, 3},
            {"even_us", "even after", "us", 0},
            {"queue_us", "queue", "us", 1},
            {"narrow_drops", "drops", NULL, 0},
            SIMX_COLUMNS_PACKETS,
            {"timeouts", "timeouts", NULL, 0},
            {"ce", "CE", NULL, 0},
            {"wall_s", "wall", "s", 3},
        },
    .picture =
        {
            .title = "Shares of a narrow link over time",
            .x_label = "time [ms]",
            .y_label = "share of the link's rate",
            .array = "samples",
            .names = "names",
            .x = {"t_us", 1e-3, NULL},
            .y = {{"shares", 1, NULL}},
        },
};
