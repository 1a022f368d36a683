/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/run.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/sim/fail.h"
#include "transport/movers/sim/sim_host.h"

/* SETTLE_NS: packets in flight when the last flow ends still arrive and are counted. */
enum { SLICE_NS = 20000, SETTLE_NS = 1000000, NS_PER_S = 1000000000 };

/* Hosts of a part of the simulation: fewer are too little work for a thread. */
enum { PART_HOSTS = 32 };

static uint64_t wall_start_ns;

void simx_wall_start(void)
{
    wall_start_ns = clock_now_ns();
}

uint64_t simx_wall_ns(void)
{
    return clock_now_ns() - wall_start_ns;
}

/* ---------------------------------------------------------------------------------------- flows */

/* The counters of the part that a host is in. */
static struct simx_run_part *part_of(struct simx_run *run, uint32_t host)
{
    return &run->parts[mrd_sim_part_of(run->sim, host)];
}

static void start_flow(struct simx_run *run, uint32_t flow)
{
    uint32_t src = run->cm->flows[flow].src;
    struct simx_run_part *part = part_of(run, src);

    run->flows[flow].start_ns = mrd_sim_host_time(run->sim, src);

    int ret = run->ops->start(run->drive, flow);

    if (ret != 0 && part->error == 0) {
        part->error = ret;
        snprintf(part->why, sizeof(part->why), "%s", mrd_last_error());
    }
}

static void fire(struct simx_run *run, int32_t trigger)
{
    const struct simx_cm *cm = run->cm;

    if (trigger < 0 || ++run->fired[trigger] != cm->triggers[trigger].count)
        return;
    /* They start at the host at which the trigger fired, or there is one part. */
    for (uint32_t i = run->waiting.first[trigger]; i < run->waiting.first[trigger + 1]; i++)
        start_flow(run, run->waiting.flows[i]);
}

static void flow_event(void *arg, uint32_t flow, enum simx_flow_event event, const char *why)
{
    struct simx_run *run = arg;
    const struct simx_flow *what = &run->cm->flows[flow];

    if (event == SIMX_RECEIVED) {
        fire(run, what->recv_done);
        return;
    }

    struct simx_run_part *part = part_of(run, what->src);

    if (run->flows[flow].done_ns != UINT64_MAX || run->flows[flow].failure)
        return;
    if (event == SIMX_FAILED) {
        run->flows[flow].failure = why;
        part->num_failed++;
        return;
    }
    run->flows[flow].done_ns = part->last_done_ns = mrd_sim_host_time(run->sim, what->src);
    part->num_done++;
    fire(run, what->send_done);
}

static int compare_start(const void *a, const void *b, void *arg)
{
    const struct simx_cm *cm = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t at_x = cm->flows[x].start_ps, at_y = cm->flows[y].start_ps;

    if (at_x != at_y)
        return at_x < at_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void order_starts(struct simx_run *run)
{
    for (uint32_t i = 0; i < run->cm->num_flows; i++) {
        run->flows[i].done_ns = UINT64_MAX;
        if (!run->cm->flows[i].triggered)
            run->by_start[run->num_by_start++] = i;
    }
    qsort_r(run->by_start, run->num_by_start, sizeof(run->by_start[0]), compare_start,
            (void *)(uintptr_t)run->cm);
}

static uint64_t start_ns(const struct simx_run *run)
{
    if (run->next_start == run->num_by_start)
        return UINT64_MAX;
    return run->cm->flows[run->by_start[run->next_start]].start_ps / 1000;
}

/* ---------------------------------------------------------------------------------------- parts */

/* Does each trigger start flows at that host only at which all that fire it happens? */
static bool is_at_one_host(const struct simx_run *run)
{
    const struct simx_cm *cm = run->cm;
    int64_t *host = malloc((cm->num_triggers + 1) * sizeof(*host)); /* of a trigger; -1: none yet */
    bool is_one = host != NULL;

    for (uint32_t i = 0; is_one && i < cm->num_triggers; i++)
        host[i] = -1;
    for (uint32_t i = 0; is_one && i < cm->num_flows; i++) {
        const struct simx_flow *flow = &cm->flows[i];
        const struct {
            int32_t trigger;
            uint32_t host;
        } at[] = {{flow->send_done, flow->src},
                  {flow->recv_done, flow->dst},
                  {flow->triggered ? flow->trigger : -1, flow->src}};

        for (unsigned j = 0; j < 3; j++) {
            if (at[j].trigger < 0)
                continue;
            is_one &= host[at[j].trigger] < 0 || host[at[j].trigger] == at[j].host;
            host[at[j].trigger] = at[j].host;
        }
    }
    free(host);
    return is_one;
}

/*
 * How many parts the simulation has depends on what is simulated, not on this machine: so do its
 * bits. Models keep state of both ends in one place, and a trigger that fires here and starts a
 * flow there takes no time, which no window allows.
 */
static uint32_t choose_parts(const struct simx_run *run)
{
    uint32_t parts = run->net.topology.hosts / PART_HOSTS, max = mrd_sim_parts_max(run->sim);

    if (run->ops != &simx_drive_mrd || parts == 0 || run->config->is_one_part ||
        !is_at_one_host(run))
        return 1;
    return parts < max ? parts : max;
}

static uint32_t choose_threads(const struct simx_config *config)
{
    cpu_set_t ours;

    if (config->threads)
        return config->threads;
    return sched_getaffinity(0, sizeof(ours), &ours) == 0 ? (uint32_t)CPU_COUNT(&ours) : 1;
}

/* Adds up what the parts counted. */
static void add_up(struct simx_run *run)
{
    run->num_done = run->num_failed = 0;
    for (uint32_t i = 0; i < MRD_SIM_PARTS_MAX; i++) {
        const struct simx_run_part *part = &run->parts[i];

        run->num_done += part->num_done;
        run->num_failed += part->num_failed;
        if (part->last_done_ns > run->last_done_ns)
            run->last_done_ns = part->last_done_ns;
        if (run->error == 0 && part->error != 0) {
            run->error = part->error;
            simx_error_set("%s", part->why);
        }
    }
    if (run->num_done == run->cm->num_flows && run->wall_ns == 0)
        run->wall_ns = simx_wall_ns();
}

/* -------------------------------------------------------------------------------------- the run */

int simx_run_create(struct simx_run *run, const struct simx_config *config,
                    const struct simx_net *net, const struct simx_cm *cm)
{
    *run = (struct simx_run){.config = config, .net = *net, .cm = cm};
    if (cm->nodes > run->net.topology.hosts)
        return simx_fail(-EINVAL, "the traffic has %u hosts, the topology %u", cm->nodes,
                         run->net.topology.hosts);
    run->ops = strcmp(config->transport, "mrd") == 0 ? &simx_drive_mrd : &simx_drive_model;
    run->flows = calloc(cm->num_flows, sizeof(run->flows[0]));
    run->by_start = calloc(cm->num_flows, sizeof(run->by_start[0]));
    run->fired = calloc(cm->num_triggers + 1, sizeof(run->fired[0]));
    if (!simx_waiting_init(&run->waiting, cm) || !run->flows || !run->by_start || !run->fired) {
        simx_error_set("no memory for %u flows", cm->num_flows);
        simx_run_destroy(run);
        return -ENOMEM;
    }
    order_starts(run);
    run->sim = simx_net_create(&run->net, config, config->seed);
    if (run->sim && mrd_sim_set_parts(run->sim, choose_parts(run), choose_threads(config)) != 0) {
        simx_error_set("no memory for the parts of the simulation");
        simx_run_destroy(run);
        return -ENOMEM;
    }
    if (run->sim) {
        struct simx_drive_env env = {config, &run->net, cm, run->sim, flow_event, run};

        run->drive = run->ops->open(&env);
    }
    if (!run->drive) {
        simx_run_destroy(run);
        return -EINVAL;
    }
    return 0;
}

void simx_run_destroy(struct simx_run *run)
{
    if (run->drive)
        run->ops->close(run->drive);
    mrd_sim_destroy(run->sim);
    free(run->flows);
    free(run->by_start);
    free(run->fired);
    free(run->memo);
    simx_waiting_fini(&run->waiting);
    *run = (struct simx_run){0};
}

static bool is_over(const struct simx_run *run)
{
    return run->num_done + run->num_failed == run->cm->num_flows || run->error != 0;
}

static void show(const struct simx_run *run)
{
    uint32_t num = run->cm->num_flows;
    char text[64];

    if (!run->progress)
        return;
    snprintf(text, sizeof(text), "%u of %u flows, %.0f us simulated", run->num_done, num,
             (double)mrd_sim_now(run->sim) / 1e3);
    simx_progress_set(run->progress, (double)run->num_done / num, text);
}

bool simx_run_until(struct simx_run *run, uint64_t ns)
{
    for (;;) {
        uint64_t now_ns = mrd_sim_now(run->sim);
        uint64_t to_ns = ns - now_ns > SLICE_NS ? now_ns + SLICE_NS : ns;

        while (start_ns(run) <= now_ns)
            start_flow(run, run->by_start[run->next_start++]);
        add_up(run);
        if (now_ns >= ns || is_over(run))
            return is_over(run);
        if (start_ns(run) < to_ns)
            to_ns = start_ns(run);
        mrd_sim_run_until(run->sim, to_ns);
        add_up(run);
        show(run);
    }
}

int simx_run_end(struct simx_run *run)
{
    if (run->wall_ns == 0)
        run->wall_ns = simx_wall_ns();
    if (run->error != 0)
        return simx_fail(run->error, "a flow could not be started: %s", mrd_last_error());
    return 0;
}

int simx_run_all(struct simx_run *run)
{
    simx_run_until(run, (uint64_t)(run->config->limit_s * NS_PER_S));

    int ret = simx_run_end(run);

    if (ret == 0 && is_over(run))
        mrd_sim_run_until(run->sim, mrd_sim_now(run->sim) + SETTLE_NS);
    return ret;
}
