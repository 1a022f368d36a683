/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/nic.h"

#include <errno.h>
#include <stdlib.h>

enum { TIMERS_FIRST = 4, PS_PER_NS = 1000 };

static uint64_t now_ns(const struct model_nic *nic)
{
    return mrd_sim_now(nic->flows->sim);
}

/* -------------------------------------------------------------------------------------- sending */

static uint64_t rto_at_ns(const struct model_qp *qp)
{
    const struct model_flows *flows = qp->flows;
    uint64_t from_ns = qp->requester.rto_from_ns;

    if (from_ns == MRD_SIM_NEVER)
        return MRD_SIM_NEVER;
    return from_ns +
           (model_qp_inflight(qp) < flows->rto_low_packets ? flows->rto_low_ns : flows->rto_ns);
}

void model_nic_update(struct model_nic *nic, struct model_qp *qp)
{
    uint64_t at_ns = rto_at_ns(qp);

    if (mrd_list_empty(&qp->node) && qp->flows->ops->find_packet(qp)) {
        uint64_t pace_ns = (qp->requester.pace_ps + PS_PER_NS - 1) / PS_PER_NS;

        if (pace_ns <= now_ns(nic))
            mrd_list_append(&nic->ready, &qp->node);
        else if (pace_ns < at_ns)
            at_ns = pace_ns;
    }
    mrd_heap_arm(&nic->timers, &qp->timer, at_ns);
}

/* When the link is idle, so that a data packet may be sent. */
static uint64_t idle_ns(const struct model_nic *nic)
{
    uint64_t at_ns = mrd_sim_stack_idle_ns(nic->flows->sim, nic->host);

    return at_ns > nic->link_idle_ns ? at_ns : nic->link_idle_ns;
}

static void send_next(struct model_nic *nic)
{
    struct model_qp *qp = mrd_container_of(mrd_list_pop(&nic->ready), struct model_qp, node);

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

    while (!mrd_list_empty(&nic->ready)) {
        wake_ns = idle_ns(nic);
        if (wake_ns > now_ns(nic))
            break;
        send_next(nic);
        wake_ns = MRD_SIM_NEVER;
    }
    if (mrd_heap_next_ns(&nic->timers) < wake_ns)
        wake_ns = mrd_heap_next_ns(&nic->timers);
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
    while (mrd_heap_next_ns(&nic->timers) <= now_ns(nic)) {
        struct model_qp *qp =
            mrd_container_of(mrd_heap_first(&nic->timers), struct model_qp, timer);

        mrd_heap_disarm(&nic->timers, &qp->timer);
        if (rto_at_ns(qp) <= now_ns(nic))
            time_out(qp);
        model_nic_update(nic, qp);
    }
    model_nic_run(nic);
}

/* ---------------------------------------------------------------------------------- queue pairs */

int model_nic_add(struct model_nic *nic)
{
    if (nic->num_qps == nic->cap_timers) {
        uint32_t cap = nic->cap_timers ? 2 * nic->cap_timers : TIMERS_FIRST;
        struct mrd_timer **timers = realloc(nic->timers.timer, cap * sizeof(*timers));

        if (!timers)
            return -ENOMEM;
        nic->timers.timer = timers;
        nic->cap_timers = cap;
    }
    nic->num_qps++;
    return 0;
}

void model_nic_remove(struct model_nic *nic, struct model_qp *qp)
{
    mrd_heap_disarm(&nic->timers, &qp->timer);
    nic->num_qps--;
    qp->is_open = false;
    if (mrd_list_empty(&qp->node))
        model_qp_free(qp);
}
