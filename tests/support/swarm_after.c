/* SPDX-License-Identifier: BSD-2-Clause */
/* What a healed world must be able to do, and what a QP without receives may not stop. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/swarm.h"
#include "transport/sim/sim_host.h"

/* Work posted within a packet's flight of a peer's open may be taken for older than it. */
#define SETTLE_NS (10 * MSEC_NS)
/* Everybody knows everybody: nothing but round trips, and losses of a queue that is full. */
#define HELLO_NS  (100 * MSEC_NS)
#define STARVE_NS (200 * MSEC_NS)

enum { RTTS = 50, STARVED_OTHERS = 32 };

struct task {
    uint32_t from_qp, to_qp;
    uint32_t message; /* once it is posted */
    bool posted;
};

/* Post all of it, as there is room, and wait until all has ended. */
static void run_tasks(struct swarm *s, struct task *tasks, uint32_t num, uint64_t budget_ns,
                      const char *what)
{
    uint64_t end_ns = mrd_sim_now(s->sim) + budget_ns;

    for (uint32_t open = num; open > 0;) {
        open = 0;
        for (uint32_t i = 0; i < num; i++) {
            struct task *task = &tasks[i];

            if (!task->posted && swarm_post_small(s, task->from_qp, task->to_qp) == 0) {
                task->posted = true;
                task->message = s->num_messages - 1;
            }
            open += !task->posted || !s->message[task->message].sent;
        }
        if (open == 0)
            return;
        for (uint32_t i = 0; i < s->num_qps; i++) {
            for (; s->qp[i].owed > 0; s->qp[i].owed--)
                swarm_post_receive(s, i);
        }
        if (mrd_sim_now(s->sim) >= end_ns) {
            swarm_describe_unsettled(s);
            swarm_check(s, false, "%u of %u messages have not ended after %.0f ms: %s", open, num,
                        (double)budget_ns / 1e6, what);
        }
        swarm_step(s);
    }
}

enum direction { UP, DOWN, BOTH };

/* A message from each host to each other one, or only to those of higher or lower numbers. */
static void say_hello(struct swarm *s, enum direction direction, uint64_t budget_ns,
                      const char *what)
{
    uint32_t hosts = s->config.sim.hosts, num = 0;
    struct task *tasks = calloc(hosts * hosts, sizeof(*tasks));

    assert_non_null(tasks);
    for (uint32_t from = 0; from < hosts; from++) {
        swarm_post_receives(s, from);
        for (uint32_t to = 0; to < hosts; to++) {
            if ((from < to && direction != DOWN) || (from > to && direction != UP))
                tasks[num++] =
                    (struct task){.from_qp = (uint32_t)s->host[from].qp[SWARM_SLOT_AFTER],
                                  .to_qp = (uint32_t)s->host[to].qp[SWARM_SLOT_AFTER]};
        }
    }
    run_tasks(s, tasks, num, budget_ns, what);
    /* From now on only those may fail who failed, or were given up, this time. */
    swarm_end_excuses(s);
    for (uint32_t i = 0; i < num; i++) {
        if (s->message[tasks[i].message].status != MRD_WC_SUCCESS)
            swarm_excuse(s, s->qp[tasks[i].from_qp].host, s->qp[tasks[i].to_qp].host);
    }
    free(tasks);
}

/*
 * As many messages to each QP as it has receives, all from its own host, so that nobody else hears
 * of it: none of them may stay reserved for a message that does not come. Receives that end in
 * error meanwhile, which is right, are posted again.
 */
static void drain_receives(struct swarm *s)
{
    uint32_t num = 0;
    struct task *tasks = calloc(SWARM_RECEIVES_MAX, sizeof(*tasks));

    assert_non_null(tasks);
    for (uint32_t i = 0; i < s->num_qps; i++) {
        const struct swarm_qp *to = &s->qp[i];

        if (!to->qp || to->error || to->memory_gone || num + to->receives > SWARM_RECEIVES_MAX)
            continue;
        for (uint32_t n = 0; n < to->receives; n++)
            tasks[num++] = (struct task){
                .from_qp = (uint32_t)s->host[to->host].qp[SWARM_SLOT_AFTER], .to_qp = i};
    }
    s->drain_first = s->num_messages;
    if (s->num_messages + num <= SWARM_MESSAGES_MAX && s->num_messages > 0)
        run_tasks(s, tasks, num, swarm_budget_ns(s), "as many as there are receives");
    s->drain_first = 0;
    free(tasks);
    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        swarm_post_receives(s, host);
}

/*
 * The first message finds out that a peer restarted, or was given up; that may end the other
 * direction, too, which the second message finds out. Then all is well.
 */
static void meet_again(struct swarm *s, enum direction direction, uint64_t budget_ns,
                       uint64_t third_ns)
{
    say_hello(s, direction, budget_ns, "the first after the faults, which may fail");
    say_hello(s, direction, budget_ns, "the second after the faults");
    swarm_end_excuses(s);
    say_hello(s, direction, third_ns, "the third after the faults");
}

void swarm_aftermath(struct swarm *s)
{
    struct swarm_pair pair[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    uint64_t budget_ns, third_ns = HELLO_NS + RTTS * swarm_rtt_ns(s);

    /* Who does not fit into a table may have to wait until others are forgotten there. */
    if (swarm_is_crowded(s))
        return;
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        if (s->num_qps == SWARM_QPS_MAX)
            return;
        swarm_create_qp(s, host, SWARM_SLOT_AFTER);
    }
    budget_ns = swarm_budget_ns(s);
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        if (s->config.host[host].max_flows > 0)
            third_ns = budget_ns;
    }
    swarm_pass_time(s, mrd_sim_now(s->sim) + SETTLE_NS);
    drain_receives(s);
    /* In one direction first: what comes the other way could help. */
    memcpy(pair, s->pair, sizeof(pair));
    meet_again(s, swarm_chance(s, 500) ? UP : DOWN, budget_ns, third_ns);
    memcpy(s->pair, pair, sizeof(pair));
    meet_again(s, BOTH, budget_ns, third_ns);
}

/* ----------------------------------------------------------------------------------- starvation */

void swarm_starve(struct swarm *s)
{
    uint32_t victim = (uint32_t)s->host[1].qp[0], hungry = (uint32_t)s->host[0].qp[0];
    uint32_t num = SWARM_PICK(s, 1, 2, 65, 200, 1100), first = 0;
    uint64_t end_ns = mrd_sim_now(s->sim) + swarm_below(s, 5 * MSEC_NS);

    s->qp[victim].starved = true;
    for (uint32_t i = 0; i < num; i++)
        swarm_post_drawn(s, hungry, victim);
    while (mrd_sim_now(s->sim) < end_ns)
        swarm_step(s);
    first = s->num_messages;
    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        swarm_post_receives(s, host);
    for (uint32_t i = 0; i < STARVED_OTHERS; i++) {
        bool back = swarm_chance(s, 300);
        uint32_t other = swarm_below(s, s->config.sim.hosts);
        uint32_t from = (uint32_t)s->host[other == 1 ? 0 : other].qp[1];
        uint32_t to = (uint32_t)s->host[1].qp[1];

        swarm_post_drawn(s, back ? to : from, back ? from : to);
    }
    /* The faults are on: with much loss a window may be a tenth of a packet, and each packet take ten round trips. */
    end_ns = mrd_sim_now(s->sim) + STARVE_NS + RTTS * swarm_rtt_ns(s) +
             20 * (swarm_rtt_ns(s) + 2 * s->config.sim.link.jitter_ns) *
                 (s->posted_len / s->config.mtu + STARVED_OTHERS) +
             16 * s->posted_len * 8 * SEC_NS / s->config.healthy.rate_bps;
    while (!swarm_is_settled_from(s, first)) {
        if (mrd_sim_now(s->sim) >= end_ns) {
            swarm_describe_unsettled(s);
            swarm_check(s, false, "messages from %u on wait for a QP without receives", first);
        }
        for (uint32_t host = 0; host < s->config.sim.hosts; host++)
            swarm_post_receives(s, host);
        swarm_step(s);
    }
}

/* -------------------------------------------------------------------------------------- closing */

enum { CLOSINGS = 8, CLOSING_POSTS = 4, CLOSING_STEPS = 400 };

static uint32_t count_received(const struct swarm *s)
{
    uint32_t received = 0;

    for (uint32_t i = 0; i < s->num_messages; i++)
        received += s->message[i].received;
    return received;
}

void swarm_close_early(struct swarm *s)
{
    for (uint32_t i = 0; i < CLOSINGS; i++) {
        uint32_t to = swarm_below(s, s->config.sim.hosts);
        uint32_t from = (to + 1) % s->config.sim.hosts, before = count_received(s), posted = 0;

        swarm_post_receives(s, to);
        for (uint32_t n = 1 + swarm_below(s, CLOSING_POSTS); n > 0; n--) {
            uint32_t slot = swarm_below(s, s->config.slots);

            posted += swarm_post_drawn(s, (uint32_t)s->host[from].qp[slot],
                                       (uint32_t)s->host[to].qp[slot]) == 0;
        }
        /* Only the receiver polls. */
        for (uint32_t step = 0; step < CLOSING_STEPS; step++) {
            uint64_t at_ns = mrd_sim_next_event_ns(s->sim), now_ns = mrd_sim_now(s->sim);

            swarm_pass_time(s, at_ns < now_ns + USEC_NS ? at_ns : now_ns + USEC_NS);
            swarm_poll_host(s, to);
            if (count_received(s) >= before + (swarm_chance(s, 500) ? 1 : posted))
                break;
        }
        swarm_close_for_a_while(s, to);
        swarm_pass_time(s, s->host[to].reopen_ns + SETTLE_NS);
        swarm_poll_all(s);
    }
}

/* ---------------------------------------------------------------------------------------- crowds */

enum { CROWD_WARM = 20, CROWD_POSTS = 400 };

void swarm_crowd(struct swarm *s)
{
    uint32_t last = s->config.sim.hosts - 1, to = (uint32_t)s->host[0].qp[0];
    uint64_t timeout_ns = swarm_timeout_ns(s, last);

    /* Everybody is known, with a window and a grant, before the host falls silent. */
    for (uint32_t i = 0; i < CROWD_WARM; i++) {
        for (uint32_t host = 1; host <= last; host++)
            swarm_post_drawn(s, (uint32_t)s->host[host].qp[0], to);
        for (uint32_t step = 0; step < CROWD_WARM; step++) {
            swarm_post_receives(s, 0);
            swarm_pass_time(s, mrd_sim_now(s->sim) + 10 * USEC_NS);
            swarm_poll_all(s);
        }
    }
    s->qp[to].starved = true;
    swarm_cut_crowd(s, 4 * timeout_ns);
    for (uint32_t host = 1; host < last; host++) {
        for (uint32_t i = 0; i < CROWD_POSTS && s->num_messages < SWARM_MESSAGES_MAX / 2; i++)
            swarm_post_drawn(s, (uint32_t)s->host[host].qp[0], to);
    }
    swarm_pass_time(s, mrd_sim_now(s->sim) + 5 * MSEC_NS);
    for (uint32_t i = 0; i < CROWD_WARM; i++)
        swarm_post_drawn(s, (uint32_t)s->host[last].qp[0], to);
    /* The one that is reached is refused, and told so: it must not find the host gone. */
    swarm_pass_time(s, mrd_sim_now(s->sim) + 2 * timeout_ns);
    swarm_poll_all(s);
}
