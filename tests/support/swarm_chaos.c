/* SPDX-License-Identifier: BSD-2-Clause */
/* What the swarm breaks, and how it is undone. */
#include <string.h>

#include "tests/support/swarm.h"

/* -------------------------------------------------------------------------------------- objects */

static int draw_live_qp(struct swarm *s, uint32_t host)
{
    return s->host[host].qp[swarm_below(s, s->config.slots)];
}

static void flush_qp(struct swarm *s, uint32_t host)
{
    int index = draw_live_qp(s, host);

    if (index < 0 || s->qp[index].error)
        return;
    s->qp[index].error = true;
    swarm_check(s,
                mrd_modify_qp(s->qp[index].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                              MRD_QP_STATE) == 0,
                "modify_qp: %s", mrd_last_error());
}

/* A QP goes, with its work; another takes its slot. */
static void replace_qp(struct swarm *s, uint32_t host)
{
    int index = draw_live_qp(s, host);

    if (index < 0)
        return;
    /* Completions already queued stay; with none left, there must not be one any more. */
    swarm_poll_host(s, host);
    swarm_destroy_qp(s, (uint32_t)index);
    swarm_create_qp(s, host, s->qp[index].slot);
}

/* A message in flight loses the memory that it is sent from. */
static void dereg_source(struct swarm *s, uint32_t host)
{
    for (uint32_t tries = 0; tries < 8 && s->num_messages > 0; tries++) {
        struct swarm_message *m = &s->message[swarm_below(s, s->num_messages)];

        if (!m->mr || s->qp[m->from_qp].host != host)
            continue;
        m->lost_mr = true;
        swarm_free_source(s, m, false);
        return;
    }
}

/* From now on the memory is ours: what is written into it is a mistake. */
static void take_window(struct swarm *s, uint32_t host, uint32_t window)
{
    for (uint32_t i = 0; i < s->num_messages; i++) {
        struct swarm_message *m = &s->message[i];

        if (m->target && s->qp[m->to_qp].host == host && m->window == window && !m->taken) {
            memset(m->target, SWARM_TAKEN, m->len);
            m->taken = true;
        }
    }
}

static void dereg_window(struct swarm *s, uint32_t host)
{
    struct swarm_host *h = &s->host[host];
    uint32_t index = swarm_below(s, SWARM_WINDOWS);
    struct swarm_window *window = &h->window[index];

    if (!window->mr)
        return;
    swarm_check(s, mrd_dereg_mr(window->mr) == 0, "dereg_mr: %s", mrd_last_error());
    window->mr = NULL;
    take_window(s, host, index);
}

static void dereg_receives(struct swarm *s, uint32_t host)
{
    struct swarm_host *h = &s->host[host];

    swarm_check(s, mrd_dereg_mr(h->recv_mr) == 0, "dereg_mr: %s", mrd_last_error());
    swarm_poll_host(s, host); /* those that were complete before are judged by their bytes */
    for (uint32_t i = 0; i < s->num_qps; i++)
        s->qp[i].memory_gone |=
            s->qp[i].host == host && s->qp[i].life == h->life && s->qp[i].receives > 0;
    for (uint32_t i = 0; i < s->num_receives; i++) {
        struct swarm_receive *r = &s->receive[i];

        if (r->host != host || !r->posted)
            continue;
        memset(r->buf, SWARM_USED, s->config.recv_bytes);
        r->used_len = s->config.recv_bytes;
        r->taken = true;
    }
    h->recv_mr = mrd_reg_mr(h->pd, h->recv, h->source_mr->length, MRD_ACCESS_LOCAL_WRITE);
    swarm_check(s, h->recv_mr, "reg_mr: %s", mrd_last_error());
}

static void dereg(struct swarm *s, uint32_t host)
{
    switch (swarm_below(s, 4)) {
    case 0:
        dereg_window(s, host);
        break;
    case 1:
        dereg_receives(s, host);
        break;
    default:
        dereg_source(s, host);
        break;
    }
}

/* --------------------------------------------------------------------------------- hosts, links */

static void close_for_a_while(struct swarm *s, uint32_t host)
{
    swarm_close_host(s, host);
    for (uint32_t i = 0; i < SWARM_WINDOWS; i++)
        take_window(s, host, i);
    /* At once, soon, or after all packets of this life are gone. */
    s->host[host].reopen_ns =
        mrd_sim_now(s->sim) + 1 + swarm_below(s, swarm_chance(s, 500) ? 2000000 : 2000000000);
}

/* Longer would be an error by right: first contact has two seconds. */
static void stop_host(struct swarm *s, uint32_t host)
{
    uint64_t ns = swarm_chance(s, 800) ? swarm_below(s, 30000000) : swarm_below(s, 1200000000);

    mrd_sim_stop_host(s->sim, host, 1);
    s->host[host].resume_ns = mrd_sim_now(s->sim) + 1 + ns;
}

static void set_blackhole(struct swarm *s, int link, int blackhole)
{
    struct mrd_sim_link attr = s->healing ? s->config.healthy : s->config.sim.link;

    attr.blackhole = blackhole;
    assert_int_equal(mrd_sim_set_link(s->sim, -1, -1, link, &attr), 0);
}

static void open_hole(struct swarm *s)
{
    if (s->hole_until_ns || s->partition_until_ns || s->config.sim.links == 1)
        return;
    s->hole_until_ns =
        mrd_sim_now(s->sim) + 1 + swarm_below(s, swarm_chance(s, 800) ? 5000000 : 500000000);
    set_blackhole(s, (int)swarm_below(s, s->config.sim.links), 1);
}

static void partition(struct swarm *s)
{
    if (s->hole_until_ns || s->partition_until_ns)
        return;
    s->partition_until_ns = mrd_sim_now(s->sim) + 1 + swarm_below(s, 400000000);
    set_blackhole(s, -1, 1);
}

static bool is_due(uint64_t at_ns, uint64_t now_ns, bool now)
{
    return at_ns != 0 && (now || at_ns <= now_ns);
}

void swarm_undo(struct swarm *s, bool now)
{
    uint64_t now_ns = mrd_sim_now(s->sim);

    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        struct swarm_host *h = &s->host[host];

        if (is_due(h->resume_ns, now_ns, now)) {
            h->resume_ns = 0;
            mrd_sim_stop_host(s->sim, host, 0);
        }
        if (is_due(h->reopen_ns, now_ns, now)) {
            h->reopen_ns = 0;
            swarm_open_host(s, host);
        }
    }
    if (is_due(s->hole_until_ns, now_ns, now) || is_due(s->partition_until_ns, now_ns, now) ||
        now) {
        s->hole_until_ns = s->partition_until_ns = 0;
        set_blackhole(s, -1, 0);
    }
}

/* A QP in the error state whose work is all complete makes room for another. */
static void bury_flushed(struct swarm *s, uint32_t host)
{
    for (uint32_t slot = 0; slot < s->config.slots; slot++) {
        int index = s->host[host].qp[slot];

        if (index < 0 || !s->qp[index].error || s->qp[index].receives > 0 || !swarm_chance(s, 100))
            continue;
        swarm_poll_host(s, host);
        swarm_destroy_qp(s, (uint32_t)index);
        swarm_create_qp(s, host, slot);
    }
}

void swarm_act(struct swarm *s, uint32_t host)
{
    const struct swarm_config *c = &s->config;

    bury_flushed(s, host);
    if (swarm_chance(s, c->flush))
        flush_qp(s, host);
    if (swarm_chance(s, c->destroy))
        replace_qp(s, host);
    if (swarm_chance(s, c->dereg))
        dereg(s, host);
    if (swarm_chance(s, c->hole))
        open_hole(s);
    if (swarm_chance(s, c->partition))
        partition(s);
    if (swarm_chance(s, c->stop))
        stop_host(s, host);
    else if (swarm_chance(s, c->restart))
        close_for_a_while(s, host);
}
