/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/nic.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { TIMERS_FIRST = 4, PS_PER_NS = 1000 };

static uint64_t now_ns(const struct model_nic *nic)
{
    return mrd_sim_now(nic->flows->sim);
}

/* ---------------------------------------------------------------------------------------- turns */

static void ready_append(struct model_nic *nic, struct model_qp *qp)
{
    qp->is_ready = true;
    qp->next = NULL;
    if (nic->ready_first)
        nic->ready_last->next = qp;
    else
        nic->ready_first = qp;
    nic->ready_last = qp;
}

static struct model_qp *ready_take(struct model_nic *nic)
{
    struct model_qp *qp = nic->ready_first;

    nic->ready_first = qp->next;
    qp->is_ready = false;
    return qp;
}

/* ----------------------------------------------------------------------------------------- heap */

static void heap_put(struct model_nic *nic, uint32_t place, struct model_qp *qp)
{
    nic->timers[place] = qp;
    qp->timer_place = place;
}

static void heap_up(struct model_nic *nic, uint32_t place, struct model_qp *qp)
{
    while (place > 0 && nic->timers[(place - 1) / 2]->timer_ns > qp->timer_ns) {
        heap_put(nic, place, nic->timers[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_put(nic, place, qp);
}

static void heap_down(struct model_nic *nic, uint32_t place, struct model_qp *qp)
{
    for (;;) {
        uint32_t child = 2 * place + 1;

        if (child >= nic->num_timers)
            break;
        if (child + 1 < nic->num_timers &&
            nic->timers[child + 1]->timer_ns < nic->timers[child]->timer_ns)
            child++;
        if (nic->timers[child]->timer_ns >= qp->timer_ns)
            break;
        heap_put(nic, place, nic->timers[child]);
        place = child;
    }
    heap_put(nic, place, qp);
}

static void timer_clear(struct model_nic *nic, struct model_qp *qp)
{
    if (qp->timer_ns == MRD_SIM_NEVER)
        return;
    qp->timer_ns = MRD_SIM_NEVER;

    uint32_t place = qp->timer_place;
    struct model_qp *moved = nic->timers[--nic->num_timers];

    if (moved == qp)
        return;
    if (place > 0 && nic->timers[(place - 1) / 2]->timer_ns > moved->timer_ns)
        heap_up(nic, place, moved);
    else
        heap_down(nic, place, moved);
}

/* Move a time only to earlier. At a time that is too early, the queue pair is looked at again. */
static void timer_set(struct model_nic *nic, struct model_qp *qp, uint64_t at_ns)
{
    if (at_ns >= qp->timer_ns)
        return;
    if (qp->timer_ns == MRD_SIM_NEVER) {
        assert(nic->num_timers < nic->cap_timers);
        qp->timer_place = nic->num_timers++;
    }
    qp->timer_ns = at_ns;
    heap_up(nic, qp->timer_place, qp);
}

/* -------------------------------------------------------------------------------------- sending */

static uint64_t rto_at_ns(const struct model_qp *qp)
{
    uint64_t from_ns = qp->requester.rto_from_ns;

    return from_ns == MRD_SIM_NEVER ? MRD_SIM_NEVER : from_ns + qp->flows->ops->rto_ns(qp);
}

void model_nic_update(struct model_nic *nic, struct model_qp *qp)
{
    uint64_t at_ns = rto_at_ns(qp);

    if (!qp->is_ready && qp->flows->ops->find_packet(qp)) {
        uint64_t pace_ns = (qp->requester.pace_ps + PS_PER_NS - 1) / PS_PER_NS;

        if (pace_ns <= now_ns(nic))
            ready_append(nic, qp);
        else if (pace_ns < at_ns)
            at_ns = pace_ns;
    }
    timer_set(nic, qp, at_ns);
}

/* When the link is idle, so that a data packet may be sent. */
static uint64_t idle_ns(const struct model_nic *nic)
{
    uint64_t at_ns = mrd_sim_stack_idle_ns(nic->flows->sim, nic->host);

    return at_ns > nic->link_idle_ns ? at_ns : nic->link_idle_ns;
}

static void send_next(struct model_nic *nic)
{
    struct model_qp *qp = ready_take(nic);

    if (!qp->is_open) {
        model_qp_free(qp);
        return;
    }
    /* It may have nothing to send any more, if an ack came for what it had to retransmit. */
    if (qp->flows->ops->find_packet(qp))
        nic->link_idle_ns = model_qp_send(qp, qp->flows->ops->take_packet(qp));
    model_nic_update(nic, qp);
}

void model_nic_run(struct model_nic *nic)
{
    uint64_t wake_ns = MRD_SIM_NEVER;

    while (nic->ready_first) {
        wake_ns = idle_ns(nic);
        if (wake_ns > now_ns(nic))
            break;
        send_next(nic);
        wake_ns = MRD_SIM_NEVER;
    }
    if (nic->num_timers && nic->timers[0]->timer_ns < wake_ns)
        wake_ns = nic->timers[0]->timer_ns;
    mrd_sim_stack_wake(nic->flows->sim, nic->host, wake_ns);
}

static void time_out(struct model_qp *qp)
{
    struct model_flows *flows = qp->flows;
    struct model_requester *r = &qp->requester;

    flows->stats.timeouts++;
    flows->stats.retries_exceeded += ++r->timeouts > flows->retries;
    r->rto_from_ns = MRD_SIM_NEVER; /* until `una` is retransmitted */
    flows->ops->time_out(qp);
}

void model_nic_expire(struct model_nic *nic)
{
    while (nic->num_timers && nic->timers[0]->timer_ns <= now_ns(nic)) {
        struct model_qp *qp = nic->timers[0];

        timer_clear(nic, qp);
        if (rto_at_ns(qp) <= now_ns(nic))
            time_out(qp);
        model_nic_update(nic, qp);
    }
    model_nic_run(nic);
}

/* ---------------------------------------------------------------------------------- queue pairs */

void model_nic_init(struct model_nic *nic, struct model_flows *flows, uint32_t host)
{
    *nic = (struct model_nic){.flows = flows, .host = host};
}

void model_nic_fini(struct model_nic *nic)
{
    free(nic->timers);
    nic->timers = NULL;
}

int model_nic_add(struct model_nic *nic)
{
    if (nic->num_qps == nic->cap_timers) {
        uint32_t cap = nic->cap_timers ? 2 * nic->cap_timers : TIMERS_FIRST;
        struct model_qp **timers = realloc(nic->timers, cap * sizeof(*timers));

        if (!timers)
            return -ENOMEM;
        nic->timers = timers;
        nic->cap_timers = cap;
    }
    nic->num_qps++;
    return 0;
}

void model_nic_remove(struct model_nic *nic, struct model_qp *qp)
{
    timer_clear(nic, qp);
    nic->num_qps--;
    qp->is_open = false;
    if (!qp->is_ready)
        model_qp_free(qp);
}
