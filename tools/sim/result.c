/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys that every run has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/experiment.h"

/* Sums the counters of all links. */
static struct mrd_sim_stats link_totals(struct mrd_sim *sim)
{
    struct mrd_sim_stats sum = {0}, stats;

    for (uint32_t i = 0; i < mrd_sim_num_links(sim); i++) {
        mrd_sim_query_link(sim, i, NULL, &stats);
        sum.lost += stats.lost;
        sum.queue_drops += stats.queue_drops;
        sum.blackholed += stats.blackholed;
        sum.ce += stats.ce;
    }
    return sum;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double simx_percentile(const double *sorted, uint64_t num, double share)
{
    uint64_t rank = (uint64_t)ceil(share * (double)num);

    return sorted[rank ? rank - 1 : 0];
}

double *simx_sorted_fct_us(const struct simx_run *run)
{
    uint32_t num = run->cm->num_flows;
    double *us = malloc((num + 1) * sizeof(*us));

    for (uint32_t i = 0; us && i < num; i++) {
        const struct simx_run_flow *flow = &run->flows[i];

        us[i] =
            flow->done_ns == UINT64_MAX ? INFINITY : (double)(flow->done_ns - flow->start_ns) / 1e3;
    }
    if (us)
        qsort(us, num, sizeof(*us), compare);
    return us;
}

static void add_fct(struct json_object *result, const struct simx_run *run)
{
    struct json_object *fct = json_object_new_object();
    double *us = simx_sorted_fct_us(run);
    uint32_t n = us ? run->num_done : 0;
    bool is_all = n > 0 && n == run->cm->num_flows;
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += us[i];
    /* If some flows never ended, the maximum and the mean are unknown. */
    json_add_numbers(
        fct, {"min", n ? us[0] : NAN}, {"p50", n ? simx_percentile(us, n, 0.5) : NAN},
        {"mean", is_all ? sum / n : NAN}, {"p99", is_all ? simx_percentile(us, n, 0.99) : NAN},
        {"p999", is_all ? simx_percentile(us, n, 0.999) : NAN}, {"max", is_all ? us[n - 1] : NAN});
    json_object_object_add(result, "fct_us", fct);
    free(us);
}

static uint64_t bytes_done(const struct simx_run *run, uint64_t *first_ns)
{
    uint64_t bytes = 0;

    *first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < run->cm->num_flows; i++) {
        if (run->flows[i].done_ns == UINT64_MAX)
            continue;
        bytes += run->cm->flows[i].bytes;
        if (run->flows[i].start_ns < *first_ns)
            *first_ns = run->flows[i].start_ns;
    }
    return bytes;
}

/* Returns the constants of the transport in use. */
static struct json_object *constants_of(const struct simx_config *c)
{
    struct json_object *constants = json_object_new_object();
    bool is_mrd = strcmp(c->transport, "mrd") == 0;
    unsigned num;
    const struct mrd_tune_entry *entries =
        is_mrd ? mrd_tune_entries(&num) : model_tune_entries(&num);
    const char *values = is_mrd ? (const char *)&c->tune : (const char *)&c->model_tune;

    for (unsigned i = 0; i < num; i++)
        json_add_numbers(constants, {entries[i].name,
                                     *(const double *)(const void *)(values + entries[i].offset)});
    return constants;
}

static void add_config(struct json_object *result, const struct simx_run *run)
{
    const struct simx_config *c = run->config;
    struct json_object *config = json_object_new_object();

    json_add_string(config, "tm", c->tm[0] ? c->tm : NULL);
    json_add_string(config, "topo", c->topo[0] ? c->topo : NULL);
    json_add_string(config, "faults", c->faults[0] ? c->faults : NULL);
    json_add_numbers(config, {"tiers", (double)(run->net.topology.tiers)},
                     {"leaf_hosts", (double)(run->net.topology.tier[0].radix_down)},
                     {"gbps", (double)run->net.host_bps / 1e9},
                     {"base_rtt_us", run->net.base_rtt_ns / 1e3}, {"bdp_bytes", run->net.bdp_bytes},
                     {"queue_packets", (double)c->queue_packets}, {"ecn_min_bdp", c->ecn_min},
                     {"ecn_max_bdp", c->ecn_max}, {"ack_priority", (double)c->ack_priority},
                     {"sealed", (double)(c->key_file[0] != 0)}, {"loss", c->loss},
                     {"paths", (double)c->paths}, {"payload_bytes", (double)c->payload_bytes});
    json_add_string(config, "wire_overhead", c->wire_overhead);
    json_add_string(config, "knows", c->knows);
    json_add_numbers(config, {"clock_skew_ppm", c->skew_ppm}, {"limit_s", c->limit_s});
    json_object_object_add(config, "constants", constants_of(c));
    json_object_object_add(result, "config", config);
}

static const char *first_failure(const struct simx_run *run)
{
    for (uint32_t i = 0; i < run->cm->num_flows; i++) {
        if (run->flows[i].failure)
            return run->flows[i].failure;
    }
    return NULL;
}

void simx_add_completion(const struct simx_run *run, const struct simx_bounds *bounds,
                         struct json_object *result)
{
    bool is_all = run->num_done == run->cm->num_flows;
    double us = is_all ? (double)run->last_done_ns / 1e3 : NAN;

    json_add_numbers(result, {"completion_us", us}, {"ideal_completion_us", bounds->completion_us},
                     {"completion_over_ideal", us / bounds->completion_us});
}

struct json_object *simx_result(const struct simx_run *run)
{
    const struct simx_config *c = run->config;
    struct json_object *result = json_object_new_object();
    bool is_mrd = strcmp(c->transport, "mrd") == 0;
    struct mrd_sim_stats links = link_totals(run->sim);
    struct simx_bounds bounds;
    struct simx_totals totals;
    uint64_t first_ns, bytes = bytes_done(run, &first_ns);
    double wall_s = (double)run->wall_ns / 1e9;

    run->ops->totals(run->drive, &totals);
    simx_bounds_init(&bounds, run);
    json_add_string(result, "experiment", c->experiment);
    json_add_string(result, "transport", c->transport);
    json_add_string(result, "spray", is_mrd ? c->spray : "single");
    json_add_string(result, "cc", c->cc);
    json_add_numbers(result, {"seed", (double)c->seed},
                     {"hosts", (double)(run->net.topology.hosts)},
                     {"flows", (double)(run->cm->num_flows)});
    add_fct(result, run);
    json_add_numbers(result, {"ideal_us", bounds.fct_us},
                     {"max_over_ideal", json_get_number(result, "fct_us.max") / bounds.fct_us});
    if (run->cm->num_triggers > 0)
        simx_add_completion(run, &bounds, result);
    json_add_numbers(
        result,
        {"goodput_gbps", run->last_done_ns > first_ns && bytes
                             ? 8.0 * (double)bytes / (double)(run->last_done_ns - first_ns)
                             : NAN},
        {"packets", (double)totals.packets}, {"retransmitted", (double)totals.retransmitted},
        {"spurious", (double)totals.spurious}, {"timeouts", (double)totals.timeouts},
        {"acks", (double)totals.acks}, {"drops", (double)links.queue_drops},
        {"lost", (double)(links.lost + links.blackholed + mrd_sim_lost(run->sim))},
        {"ce", (double)links.ce}, {"unfinished", (double)(run->cm->num_flows - run->num_done)});
    json_add_string(result, "failure", first_failure(run));
    json_add_numbers(result, {"wall_s", wall_s},
                     {"packets_per_wall_s", (double)totals.packets / wall_s});
    add_config(result, run);
    return result;
}
