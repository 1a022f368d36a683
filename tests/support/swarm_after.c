/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks what a world without faults must be able to do. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/swarm.h"

/* Work posted within a packet's flight of an open may be taken for an earlier life's: wait. */
#define SETTLE_NS (10 * MSEC_NS)
/* Budget of messages between peers that know each other: round trips, and losses at full queues. */
#define HELLO_NS (100 * MSEC_NS)

/*
 * Senders to a host whose receive buffer holds fewer packets than there are of them take turns, each
 * of a period of mrd_share_grant() and what is left until a sender asks again.
 */
#define TURN_NS (30 * MSEC_NS)

enum { RTTS = 50 };

struct task {
    uint32_t from_qp, to_qp;
    uint32_t message; /* its index, once `posted` */
    bool posted;
};

/* Posts all tasks, as there is room, and waits until all have ended. */
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

/* A message from each host to each other one: to higher numbers (UP), lower ones (DOWN) or all. */
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
    /* From now on only pairs may fail of which a message failed this time. */
    swarm_end_excuses(s);
    for (uint32_t i = 0; i < num; i++) {
        if (s->message[tasks[i].message].status != MRD_WC_SUCCESS)
            swarm_excuse(s, s->qp[tasks[i].from_qp].host, s->qp[tasks[i].to_qp].host);
    }
    free(tasks);
}

/*
 * Sends as many messages to each QP as it has receives. They come from its own host, so that no
 * other host learns of it. If a receive stayed reserved for a message that will not come, one would
 * not arrive. Receives may end in errors meanwhile, which is right; these are posted again.
 */
static void drain_receives(struct swarm *s)
{
    uint32_t num = 0;
    struct task *tasks = calloc(SWARM_RECEIVES_MAX, sizeof(*tasks));

    assert_non_null(tasks);
    /* What was for a host's last life may wait for a receive of the next one, and fill its sender's queues. */
    for (uint32_t i = 0; i < s->num_qps; i++)
        if (s->qp[i].qp && !s->qp[i].error && !s->qp[i].memory_gone && !s->qp[i].receives)
            swarm_post_receive(s, i);
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
    for (uint32_t i = 0; i < s->num_qps; i++)
        s->qp[i].owed = 0; /* the next lines fill up all receives */
    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        swarm_post_receives(s, host);
}

/*
 * Sends three messages between each pair. The first may find that the peer restarted, or was given
 * up. That may end the other direction too, which the second message finds. The third must succeed.
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

    /*
     * A host that has no place in a peer's table may have to wait until others are forgotten there.
     */
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
    if (s->config.rx_buffer_bytes > 0)
        third_ns += s->config.sim.hosts * TURN_NS;
    swarm_pass_time(s, mrd_sim_now(s->sim) + SETTLE_NS);
    drain_receives(s);
    /*
     * Hosts that were about to give a peer up when the faults ended have done so by then: a message
     * might notice it too late.
     */
    if (s->ends_with_fault)
        swarm_pass_time(s, mrd_sim_now(s->sim) + 2 * swarm_timeout_most_ns(s));
    /* First in one direction only: packets of the other one could help. */
    memcpy(pair, s->pair, sizeof(pair));
    meet_again(s, swarm_chance(s, 500) ? UP : DOWN, budget_ns, third_ns);
    memcpy(s->pair, pair, sizeof(pair));
    meet_again(s, BOTH, budget_ns, third_ns);
}
