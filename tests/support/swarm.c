/* SPDX-License-Identifier: BSD-2-Clause */
/* The plot of a swarm. */
#include "tests/support/swarm.h"

#include <stdlib.h>

#include "transport/sim/sim_host.h"

#define HEAL_BUDGET_NS  (300 * SEC_NS)
#define FLUSH_BUDGET_NS (60 * SEC_NS)
#define QUIET_NS        (20 * MSEC_NS)

enum { STEP_NS = 2000, SETTLE_NS = 10000000 };

static bool is_live(const struct swarm *s, uint32_t host)
{
    return s->host[host].context && !s->host[host].resume_ns;
}

/* What happens next by itself: the fabric's next event, or the end of a fault. */
static uint64_t next_ns(struct swarm *s)
{
    uint64_t at_ns = mrd_sim_next_event_ns(s->sim);
    uint64_t undo_ns[2 + 2 * SWARM_HOSTS_MAX] = {s->hole_until_ns, s->partition_until_ns};

    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        undo_ns[2 + 2 * host] = s->host[host].resume_ns;
        undo_ns[3 + 2 * host] = s->host[host].reopen_ns;
    }
    for (unsigned i = 0; i < 2 + 2 * SWARM_HOSTS_MAX; i++) {
        if (undo_ns[i] && undo_ns[i] < at_ns)
            at_ns = undo_ns[i];
    }
    return at_ns;
}

/* Until `end_ns`, with faults ending in their time; nobody polls. */
static void pass_time(struct swarm *s, uint64_t end_ns)
{
    while (mrd_sim_now(s->sim) < end_ns) {
        uint64_t at_ns = next_ns(s), least_ns = mrd_sim_now(s->sim) + 1;

        at_ns = at_ns < least_ns ? least_ns : at_ns;
        mrd_sim_run_until(s->sim, at_ns < end_ns ? at_ns : end_ns);
        swarm_undo(s, false);
    }
}

/* Faults on: nothing wrong may happen. */
static void safety_phase(struct swarm *s)
{
    /* Work posted within a packet's flight of a peer's open may be taken for older than it. */
    pass_time(s, mrd_sim_now(s->sim) + SETTLE_NS);
    for (uint32_t i = 0; i < s->config.actions; i++) {
        uint32_t host = swarm_below(s, s->config.sim.hosts);

        pass_time(s, mrd_sim_now(s->sim) + swarm_below(s, s->config.pace_ns));
        if (!is_live(s, host))
            continue;
        if (swarm_chance(s, 700))
            swarm_poll_host(s, host);
        if (swarm_chance(s, 600))
            swarm_post_receives(s, host);
        for (uint32_t n = swarm_below(s, 3); n > 0; n--)
            swarm_post_message(s, host);
        swarm_act(s, host);
    }
}

static void poll_all(struct swarm *s)
{
    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        swarm_poll_host(s, host);
}

static void step_healed(struct swarm *s)
{
    uint64_t at_ns = mrd_sim_next_event_ns(s->sim), least_ns = mrd_sim_now(s->sim) + STEP_NS;
    uint64_t most_ns = mrd_sim_now(s->sim) + SEC_NS;

    at_ns = at_ns < least_ns ? least_ns : at_ns;
    mrd_sim_run_until(s->sim, at_ns < most_ns ? at_ns : most_ns);
    poll_all(s);
}

/* Faults off and receives posted: all must complete, and all that succeeded must arrive. */
static void completion_phase(struct swarm *s)
{
    uint64_t end_ns = mrd_sim_now(s->sim) + HEAL_BUDGET_NS;

    s->healing = true;
    swarm_undo(s, true);
    poll_all(s);
    while (!swarm_is_settled(s)) {
        if (mrd_sim_now(s->sim) >= end_ns) {
            swarm_describe_unsettled(s);
            swarm_check(s, false, "not settled after the faults ended");
        }
        for (uint32_t host = 0; host < s->config.sim.hosts; host++)
            swarm_post_receives(s, host);
        step_healed(s);
    }
}

/* All QPs to the error state: every request still open completes. */
static void flush_phase(struct swarm *s)
{
    uint64_t end_ns = mrd_sim_now(s->sim) + FLUSH_BUDGET_NS;

    for (uint32_t i = 0; i < s->num_qps; i++) {
        if (!s->qp[i].qp || s->qp[i].error)
            continue;
        s->qp[i].error = true;
        assert_int_equal(mrd_modify_qp(s->qp[i].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                       MRD_QP_STATE),
                         0);
    }
    while (ledger_open(&s->ledger, LEDGER_RECV, true, NULL) +
           ledger_open(&s->ledger, LEDGER_SEND, false, NULL)) {
        swarm_check(s, mrd_sim_now(s->sim) < end_ns,
                    "%u receives and %u sends are open after the flush",
                    ledger_open(&s->ledger, LEDGER_RECV, true, NULL),
                    ledger_open(&s->ledger, LEDGER_SEND, false, NULL));
        step_healed(s);
    }
    end_ns = mrd_sim_now(s->sim) + QUIET_NS;
    while (mrd_sim_now(s->sim) < end_ns)
        step_healed(s);
}

struct swarm_report swarm_run(uint64_t seed)
{
    struct swarm *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->seed = seed;
    mrd_rng_init(&s->rng, seed);
    ledger_init(&s->ledger, seed);
    swarm_draw(s);
    swarm_open_world(s);
    safety_phase(s);
    completion_phase(s);
    flush_phase(s);
    swarm_judge_end(s);

    struct swarm_report report = {.digest = s->digest,
                                  .virtual_ns = mrd_sim_now(s->sim),
                                  .messages = s->num_messages,
                                  .successes = s->successes,
                                  .failures = s->failures};

    swarm_close_world(s);
    free(s);
    return report;
}
