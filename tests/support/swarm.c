/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of a swarm: faults, completion, aftermath, flush, end. */
#include "tests/support/swarm.h"
#include "core/recvq.h"

#include <stdlib.h>

#include "transport/movers/sim/sim_host.h"

#define QUIET_NS (20 * MSEC_NS)

enum { STEP_NS = 2000, SETTLE_NS = 10000000 };

bool swarm_is_live(const struct swarm *s, uint32_t host)
{
    return s->host[host].context && !s->host[host].resume_ns;
}

/* When the next thing happens by itself: an event of the fabric, or the end of a fault. */
static uint64_t next_ns(struct swarm *s)
{
    uint64_t at_ns = mrd_sim_next_event_ns(s->sim), stranger_ns = swarm_stranger_ns(s);
    uint64_t undo_ns[2 + 2 * SWARM_HOSTS_MAX] = {s->cut.until_ns, s->roam.until_ns};

    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        undo_ns[2 + 2 * host] = s->host[host].resume_ns;
        undo_ns[3 + 2 * host] = s->host[host].reopen_ns;
    }
    for (unsigned i = 0; i < 2 + 2 * SWARM_HOSTS_MAX; i++) {
        if (undo_ns[i] && undo_ns[i] < at_ns)
            at_ns = undo_ns[i];
    }
    return stranger_ns < at_ns ? stranger_ns : at_ns;
}

/* See swarm.h. */
void swarm_pass_time(struct swarm *s, uint64_t end_ns)
{
    while (mrd_sim_now(s->sim) < end_ns) {
        uint64_t at_ns = next_ns(s), least_ns = mrd_sim_now(s->sim) + 1;

        at_ns = at_ns < least_ns ? least_ns : at_ns;
        mrd_sim_run_until(s->sim, at_ns < end_ns ? at_ns : end_ns);
        swarm_undo(s, false);
        swarm_stranger_go(s);
    }
}

static void act(struct swarm *s, bool breaks)
{
    uint32_t host = swarm_below(s, s->config.sim.hosts);

    swarm_pass_time(s, mrd_sim_now(s->sim) + swarm_below(s, s->config.pace_ns));
    if (!swarm_is_live(s, host))
        return;
    if (swarm_chance(s, 700))
        swarm_poll_host(s, host);
    if (swarm_chance(s, 600))
        swarm_post_receives(s, host);
    for (uint32_t n = swarm_below(s, s->config.burst + 1); n > 0; n--)
        swarm_post_message(s, host);
    if (breaks)
        swarm_act(s, host);
}

/* Half of the seeds let a cut that is left last as long as it was meant to. */
static void outlast_cut(struct swarm *s)
{
    for (uint32_t i = 0; s->cut.until_ns > 0 && i < s->config.actions; i++)
        act(s, false);
    if (s->cut.until_ns > 0)
        swarm_pass_time(s, s->cut.until_ns);
}

/*
 * Do all hosts challenge first contacts for the default time after open? A challenge finds out
 * whether a packet was sent to an earlier life.
 */
static bool is_doubt_resolved(const struct swarm *s)
{
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        if (!s->config.host[host].challenge || s->config.host[host].challenge_ns > 0)
            return false;
    }
    return true;
}

/*
 * The phase with faults: completions may fail as the faults explain, and nothing else may go wrong.
 */
static void safety_phase(struct swarm *s)
{
    /* Wait: work posted within a packet's flight of an open may be taken for an earlier life's. */
    if (!is_doubt_resolved(s))
        swarm_pass_time(s, mrd_sim_now(s->sim) + SETTLE_NS);
    if (s->config.profile == SWARM_STARVED)
        swarm_starve(s);
    if (s->config.profile == SWARM_CLOSING)
        swarm_close_early(s);
    if (s->config.profile == SWARM_CROWD && swarm_chance(s, 500))
        swarm_crowd(s);
    if (s->config.profile == SWARM_QUIET)
        swarm_quiet(s);
    if (s->config.profile == SWARM_STALLED && s->config.sim.link.loss_ppm == 0)
        swarm_patience(s);
    for (uint32_t i = 0; i < s->config.actions; i++)
        act(s, true);
    if (swarm_chance(s, 500))
        outlast_cut(s);
    if (swarm_chance(s, s->config.last))
        swarm_last_fault(s);
}

void swarm_step(struct swarm *s)
{
    uint64_t at_ns = mrd_sim_next_event_ns(s->sim), least_ns = mrd_sim_now(s->sim) + STEP_NS;
    uint64_t most_ns = mrd_sim_now(s->sim) + SEC_NS;

    at_ns = swarm_stranger_ns(s) < at_ns ? swarm_stranger_ns(s) : at_ns;
    at_ns = at_ns < least_ns ? least_ns : at_ns;
    mrd_sim_run_until(s->sim, at_ns < most_ns ? at_ns : most_ns);
    swarm_undo(s, false);
    swarm_stranger_go(s);
    swarm_poll_all(s);
}

/* Did a fault end so lately that a host may still be about to give a peer up? */
static bool was_faulty(const struct swarm *s)
{
    return s->faulty_ns > 0 && mrd_sim_now(s->sim) - s->faulty_ns < swarm_timeout_most_ns(s);
}

/* After the faults, with receives posted: all must complete, and what succeeded must arrive. */
static void completion_phase(struct swarm *s)
{
    uint64_t budget_ns = swarm_budget_ns(s), end_ns = mrd_sim_now(s->sim) + budget_ns;

    s->healing = true;
    swarm_tell(s, "all faults end; budget %.1f ms", (double)budget_ns / 1e6);
    swarm_undo(s, true);
    swarm_begin_qps(s);
    s->ends_with_fault |= was_faulty(s);
    swarm_poll_all(s);
    while (!swarm_is_settled(s)) {
        if (mrd_sim_now(s->sim) >= end_ns) {
            swarm_describe_unsettled(s);
            swarm_check(s, false, "not settled %.1f ms after the faults ended",
                        (double)budget_ns / 1e6);
        }
        for (uint32_t host = 0; host < s->config.sim.hosts; host++)
            swarm_post_receives(s, host);
        swarm_step(s);
    }
}

/* Receives that were posted to QPs, or that QPs took of those that they share. */
static uint32_t open_receives(struct swarm *s)
{
    uint32_t num = ledger_open(&s->ledger, LEDGER_RECV, true, NULL);

    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        if (s->host[host].srq)
            num -= mrd_srq_impl(s->host[host].srq)->recvq.num_posted;
    return num;
}

/* Puts all QPs into the error state: every request that is open must complete. */
static void flush_phase(struct swarm *s)
{
    uint64_t end_ns = mrd_sim_now(s->sim) + swarm_budget_ns(s);

    for (uint32_t i = 0; i < s->num_qps; i++) {
        if (!s->qp[i].qp || s->qp[i].error)
            continue;
        s->qp[i].error = true;
        assert_int_equal(mrd_modify_qp(s->qp[i].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                       MRD_QP_STATE),
                         0);
    }
    while (open_receives(s) + ledger_open(&s->ledger, LEDGER_SEND, false, NULL)) {
        swarm_check(s, mrd_sim_now(s->sim) < end_ns,
                    "%u receives and %u sends are open after the flush", open_receives(s),
                    ledger_open(&s->ledger, LEDGER_SEND, false, NULL));
        swarm_step(s);
    }
    end_ns = mrd_sim_now(s->sim) + QUIET_NS;
    while (mrd_sim_now(s->sim) < end_ns)
        swarm_step(s);
}

struct swarm_report swarm_run(uint64_t seed)
{
    struct swarm *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->seed = seed;
    s->tells = getenv("MRD_SWARM_TRACE") != NULL;
    mrd_rng_init(&s->rng, seed);
    mrd_rng_init(&s->wire_rng, ~seed);
    ledger_init(&s->ledger, seed);
    swarm_draw(s);
    swarm_seal_begin(s);
    swarm_open_world(s);
    safety_phase(s);
    completion_phase(s);
    swarm_aftermath(s);
    flush_phase(s);
    swarm_judge_end(s);

    struct swarm_report report = {.digest = s->digest,
                                  .virtual_ns = mrd_sim_now(s->sim),
                                  .messages = s->num_messages,
                                  .successes = s->successes,
                                  .failures = s->failures};

    swarm_close_world(s);
    swarm_seal_end(s);
    free(s);
    return report;
}
