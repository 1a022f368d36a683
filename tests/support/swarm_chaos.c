/* SPDX-License-Identifier: BSD-2-Clause */
/* The faults of the swarm: how they begin and end. */
#include <errno.h>
#include <string.h>

#include "core/engine/state.h"
#include "tests/support/swarm.h"
#include "transport/context.h"
#include "transport/movers/sim/sim_host.h"

#define LATE_MOST_NS (50 * MSEC_NS)
#define LAST_STEP_NS (10 * MSEC_NS)

enum { BUSY_POSTS = 6, LATELY = 16 };

/* -------------------------------------------------------------------------------------- objects */

static int draw_live_qp(struct swarm *s, uint32_t host)
{
    return s->host[host].qp[swarm_below(s, s->config.slots)];
}

/* Posts messages, so that the fault that follows hits some on their way. */
static void make_busy(struct swarm *s, uint32_t host)
{
    if (!swarm_chance(s, s->config.busy))
        return;
    for (uint32_t n = swarm_below(s, BUSY_POSTS); n > 0; n--) {
        uint32_t other = swarm_below(s, s->config.sim.hosts);

        swarm_post_receives(s, host);
        swarm_post_message(s, host);
        if (swarm_is_live(s, other))
            swarm_post_message(s, other);
    }
    swarm_pass_time(s, mrd_sim_now(s->sim) +
                           swarm_below(s, SWARM_PICK(s, 1000, 10000, 100000, 1000000)));
}

/* Draws a QP to be given up: mostly one whose work was posted last, and is still on its way. */
static int draw_victim(struct swarm *s, uint32_t host)
{
    uint32_t last = s->num_messages > 0 ? s->message[s->num_messages - 1].from_qp : 0;
    int drawn = draw_live_qp(s, host);

    if (s->num_messages > 0 && s->qp[last].host == host && s->qp[last].qp && swarm_chance(s, 700))
        drawn = (int)last;
    return drawn;
}

static void flush_qp(struct swarm *s, uint32_t host)
{
    make_busy(s, host);

    int index = swarm_is_live(s, host) ? draw_victim(s, host) : SWARM_NO_QP;

    if (index < 0 || s->qp[index].error)
        return;
    swarm_tell(s, "QP %d of host %u goes into the error state", index, host);
    s->qp[index].error = true;
    s->host[host].cancelled = true;
    swarm_check(s,
                mrd_modify_qp(s->qp[index].qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                              MRD_QP_STATE) == 0,
                "modify_qp: %s", mrd_last_error());
}

/* Destroys a QP with its work, and creates another in its slot. */
static void replace_qp(struct swarm *s, uint32_t host)
{
    make_busy(s, host);

    int index = swarm_is_live(s, host) ? draw_victim(s, host) : SWARM_NO_QP;

    if (index < 0)
        return;
    /* Completions already queued would stay: take them, so that none of this QP may come later. */
    s->host[host].cancelled = true;
    swarm_poll_host(s, host);
    swarm_destroy_qp(s, (uint32_t)index);
    swarm_create_qp(s, host, s->qp[index].slot);
}

/* Deregisters the memory that a message in flight is sent from. */
static void dereg_source(struct swarm *s, uint32_t host)
{
    for (uint32_t tries = 0; tries < 8 && s->num_messages > 0; tries++) {
        uint32_t lately =
            swarm_chance(s, 700) && s->num_messages > LATELY ? LATELY : s->num_messages;
        struct swarm_message *m = &s->message[s->num_messages - 1 - swarm_below(s, lately)];

        if (!m->mr || s->qp[m->from_qp].host != host)
            continue;
        m->lost_mr = true;
        s->host[host].cancelled = true;
        swarm_free_source(s, m, false);
        return;
    }
}

/* Overwrites the targets of a window's messages: from now on nothing may be written into them. */
static void take_window(struct swarm *s, uint32_t host, uint32_t window)
{
    for (uint32_t i = 0; i < s->num_messages; i++) {
        struct swarm_message *m = &s->message[i];

        if (m->target && s->qp[m->to_qp].host == host && m->window == window && !m->taken) {
            /* What came after its turn is there as a whole, or not at all: nothing of it waits. */
            m->placed =
                m->placed || (m->late ? swarm_holds(s, m, m->target) : swarm_may_have_come(s, m));
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

    for (uint32_t i = 0; i < s->num_qps; i++)
        s->qp[i].memory_gone |=
            s->qp[i].host == host && s->qp[i].life == h->life &&
            (s->qp[i].receives > 0 || (s->qp[i].shared && h->shared_posted > 0));
    h->shared_memory_gone |= h->shared_posted > 0;
    swarm_check(s, mrd_dereg_mr(h->recv_mr) == 0, "dereg_mr: %s", mrd_last_error());
    /* Judges complete ones by their bytes, before these are overwritten. */
    swarm_poll_host(s, host);
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

/* ---------------------------------------------------------------------------------------- hosts */

static void close_for_a_while(struct swarm *s, uint32_t host)
{
    make_busy(s, host);
    if (!swarm_is_live(s, host))
        return;
    swarm_close_for_a_while(s, host);
}

void swarm_close_for_a_while(struct swarm *s, uint32_t host)
{
    swarm_tell(s, "host %u closes", host);
    swarm_note_restart(s, host);
    s->host[host].cancelled = true;
    swarm_close_host(s, host);
    for (uint32_t i = 0; i < SWARM_WINDOWS; i++)
        take_window(s, host, i);
    /* It opens again at once, soon, or after all packets of this life are gone. */
    s->host[host].reopen_ns =
        mrd_sim_now(s->sim) + 1 + swarm_below(s, swarm_chance(s, 500) ? 2000000 : 2000000000);
}

static uint64_t draw_ns(struct swarm *s, uint64_t short_ns, uint64_t long_ns)
{
    uint64_t most_ns = swarm_chance(s, s->config.longer) ? long_ns : short_ns;

    return mrd_rng_u64(&s->rng) % most_ns + 1;
}

void swarm_stop_host(struct swarm *s, uint32_t host, uint64_t ns)
{
    uint64_t now_ns = mrd_sim_now(s->sim);

    swarm_tell(s, "host %u stops for %.3f ms", host, (double)ns / 1e6);
    mrd_sim_stop_host(s->sim, host, 1);
    s->host[host].stopped_ns = now_ns;
    s->host[host].resume_ns = now_ns + ns;
    for (uint32_t other = 0; other < s->config.sim.hosts; other++)
        swarm_note_cut(s, host, other, ns);
}

static void stop_host(struct swarm *s, uint32_t host)
{
    make_busy(s, host);
    swarm_stop_host(s, host, draw_ns(s, 30 * MSEC_NS, s->config.stop_ns));
}

static void resume_host(struct swarm *s, uint32_t host)
{
    struct swarm_host *h = &s->host[host];

    for (uint32_t other = 0; other < s->config.sim.hosts; other++)
        swarm_check_given_up(s, other, host, h->stopped_ns);
    h->resume_ns = 0;
    h->resumed_ns = s->faulty_ns = mrd_sim_now(s->sim);
    mrd_sim_stop_host(s->sim, host, 0);
}

/* ---------------------------------------------------------------------------------------- links */

typedef void change_link(struct swarm *s, struct mrd_sim_link *link, uint64_t value);

/* Changes each link of from -> to; SWARM_ANY: any of that kind. */
static void for_links(struct swarm *s, int from, int to, int link, change_link *change,
                      uint64_t value)
{
    for (int a = 0; a < (int)s->config.sim.hosts; a++) {
        for (int b = 0; b < (int)s->config.sim.hosts; b++) {
            if ((from != SWARM_ANY && from != a) || (to != SWARM_ANY && to != b))
                continue;
            for (int i = 0; i < (int)s->config.sim.links; i++) {
                struct mrd_sim_link attr;

                if (link != SWARM_ANY && link != i)
                    continue;
                assert_int_equal(mrd_sim_get_link(s->sim, a, b, i, &attr), 0);
                change(s, &attr, value);
                assert_int_equal(mrd_sim_set_link(s->sim, a, b, i, &attr), 0);
            }
        }
    }
}

static void set_blackhole(struct swarm *s, struct mrd_sim_link *link, uint64_t value)
{
    (void)s;
    link->blackhole = (int)value;
}

static void set_delay(struct swarm *s, struct mrd_sim_link *link, uint64_t value)
{
    (void)s;
    link->delay_ns = value;
}

static void set_loss(struct swarm *s, struct mrd_sim_link *link, uint64_t value)
{
    (void)s;
    link->loss_ppm = (uint32_t)value;
}

static void heal_link(struct swarm *s, struct mrd_sim_link *link, uint64_t value)
{
    uint64_t delay_ns = link->delay_ns;
    (void)value;

    *link = s->config.healthy;
    link->delay_ns = delay_ns;
}

static void draw_link(struct swarm *s, struct mrd_sim_link *link, uint64_t value)
{
    (void)value;
    link->delay_ns = swarm_below(s, SWARM_PICK(s, 1000, 10000, SWARM_DELAY_MOST_NS));
    if (swarm_chance(s, 400))
        link->loss_ppm = 0;
}

void swarm_draw_delays(struct swarm *s)
{
    for_links(s, SWARM_ANY, SWARM_ANY, SWARM_ANY, draw_link, 0);
}

static void change_delay(struct swarm *s)
{
    int from = (int)swarm_below(s, s->config.sim.hosts);
    int to = (int)swarm_below(s, s->config.sim.hosts);
    int link = (int)swarm_below(s, s->config.sim.links);

    for_links(s, from, to, swarm_chance(s, 300) ? SWARM_ANY : link, set_delay,
              swarm_below(s, SWARM_PICK(s, 1000, 30000, SWARM_DELAY_MOST_NS)));
}

/* So few paths may all lie on one dead link for long; `single` uses one of them. */
enum { PATHS_FEW = 2 };

static bool has_few_paths(const struct swarm *s, uint32_t host)
{
    const struct swarm_host_config *c = &s->config.host[host];

    return (c->paths > 0 && c->paths <= PATHS_FEW) || (c->spray && !strcmp(c->spray, "single"));
}

static void note_cut(struct swarm *s, uint64_t ns)
{
    const struct swarm_cut *cut = &s->cut;

    for (uint32_t a = 0; a < s->config.sim.hosts; a++) {
        for (uint32_t b = 0; b < s->config.sim.hosts; b++) {
            bool few =
                has_few_paths(s, a) || has_few_paths(s, b) || s->config.sim.links <= PATHS_FEW;

            if ((cut->from != SWARM_ANY && cut->from != (int)a) || cut->spared == (int)b ||
                (cut->to != SWARM_ANY && cut->to != (int)b))
                continue;
            if ((cut->link == SWARM_ANY || few) && (a <= b || cut->from != SWARM_ANY))
                swarm_note_cut(s, a, b, ns);
        }
    }
}

static void cut(struct swarm *s, int from, int to, int link, int spared, uint64_t ns)
{
    if (s->cut.until_ns)
        return;
    s->cut = (struct swarm_cut){.from = from,
                                .to = to,
                                .link = link,
                                .spared = spared,
                                .since_ns = mrd_sim_now(s->sim),
                                .until_ns = mrd_sim_now(s->sim) + ns};
    if (s->stranger)
        s->stranger->cut = true;
    swarm_tell(s, "links %d of %d > %d are dead for %.3f ms", link, from, to, (double)ns / 1e6);
    for_links(s, from, to, link, set_blackhole, 1);
    if (spared != SWARM_ANY)
        for_links(s, from, spared, link, set_blackhole, 0);
    note_cut(s, ns);
}

static void open_hole(struct swarm *s)
{
    if (s->config.sim.links == 1)
        return;
    cut(s, SWARM_ANY, SWARM_ANY, (int)swarm_below(s, s->config.sim.links), SWARM_ANY,
        draw_ns(s, 5 * MSEC_NS, 500 * MSEC_NS));
}

static void partition(struct swarm *s, uint32_t host)
{
    make_busy(s, host);
    cut(s, SWARM_ANY, SWARM_ANY, SWARM_ANY, SWARM_ANY, draw_ns(s, 30 * MSEC_NS, s->config.cut_ns));
}

/* Cuts one direction between two hosts; in a crowd that from the host to which all send. */
static void cut_one_way(struct swarm *s, uint32_t host)
{
    uint32_t hosts = s->config.sim.hosts, from = swarm_below(s, hosts);
    int to = (int)((from + 1 + swarm_below(s, hosts - 1)) % hosts);

    if (s->config.profile == SWARM_CROWD) {
        from = 0;
        to = SWARM_ANY;
    }
    make_busy(s, swarm_is_live(s, from) ? from : host);
    cut(s, (int)from, to, SWARM_ANY, SWARM_ANY, draw_ns(s, 30 * MSEC_NS, s->config.cut_ns));
}

void swarm_cut_crowd(struct swarm *s, uint64_t ns)
{
    cut(s, 0, SWARM_ANY, SWARM_ANY, (int)s->config.sim.hosts - 1, ns);
}

void swarm_cut_off(struct swarm *s, uint32_t host, uint64_t ns)
{
    cut(s, (int)host, SWARM_ANY, SWARM_ANY, SWARM_ANY, ns);
}

static void end_cut(struct swarm *s)
{
    struct swarm_cut ended = s->cut;

    for (uint32_t a = 0; a < s->config.sim.hosts && ended.link == SWARM_ANY; a++) {
        for (uint32_t b = 0; b < s->config.sim.hosts; b++) {
            if (a == b || ended.spared == (int)b ||
                (ended.from != SWARM_ANY && ended.from != (int)a) ||
                (ended.to != SWARM_ANY && ended.to != (int)b))
                continue;
            swarm_check_given_up(s, a, b, ended.since_ns);
            swarm_check_given_up(s, b, a, ended.since_ns);
        }
    }
    s->cut = (struct swarm_cut){0};
    if (s->stranger)
        s->stranger->cut = false;
    s->faulty_ns = mrd_sim_now(s->sim);
    for_links(s, ended.from, ended.to, ended.link, set_blackhole, 0);
}

static bool is_due(uint64_t at_ns, uint64_t now_ns, bool now)
{
    return at_ns != 0 && (now || at_ns <= now_ns);
}

void swarm_undo(struct swarm *s, bool now)
{
    uint64_t now_ns = mrd_sim_now(s->sim);

    if (is_due(s->cut.until_ns, now_ns, now))
        end_cut(s);
    if (is_due(s->roam.until_ns, now_ns, now))
        swarm_end_roam(s);
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        struct swarm_host *h = &s->host[host];

        if (is_due(h->resume_ns, now_ns, now))
            resume_host(s, host);
        if (is_due(h->reopen_ns, now_ns, now)) {
            h->reopen_ns = 0;
            swarm_open_host(s, host);
        }
    }
    if (now)
        for_links(s, SWARM_ANY, SWARM_ANY, SWARM_ANY, heal_link, 0);
}

/* -------------------------------------------------------------------------------------- actions */

/* Replaces QPs in the error state whose work is all complete. */
static void bury_flushed(struct swarm *s, uint32_t host)
{
    for (uint32_t slot = 0; slot < s->config.slots; slot++) {
        int index = s->host[host].qp[slot];

        if (index < 0 || !s->qp[index].error ||
            (s->qp[index].receives > 0 && !s->qp[index].shared) || !swarm_chance(s, 100))
            continue;
        swarm_poll_host(s, host);
        swarm_destroy_qp(s, (uint32_t)index);
        swarm_create_qp(s, host, slot);
    }
}

/* Is told from now on, or not any more, of what becomes of some host. */
static void watch(struct swarm *s, uint32_t host)
{
    uint32_t other = swarm_below(s, s->config.sim.hosts);
    int on = swarm_chance(s, 500);
    int ret = mrd_watch_peer(s->host[host].ah[other], on);

    swarm_tell(s, "host %u watches host %u: %d", host, other, on);
    swarm_check(s, ret == 0 || (ret == -EAGAIN && swarm_is_crowded(s)), "watch_peer: %s",
                mrd_last_error());
}

void swarm_act(struct swarm *s, uint32_t host)
{
    const struct swarm_config *c = &s->config;

    bury_flushed(s, host);
    if (c->watch && swarm_chance(s, c->watch))
        watch(s, host);
    if (swarm_chance(s, c->flush))
        flush_qp(s, host);
    if (swarm_chance(s, c->destroy))
        replace_qp(s, host);
    if (swarm_chance(s, c->dereg))
        dereg(s, host);
    if (swarm_chance(s, c->hole))
        open_hole(s);
    if (swarm_chance(s, c->partition))
        partition(s, host);
    if (swarm_chance(s, c->one_way))
        cut_one_way(s, host);
    if (swarm_chance(s, c->delay))
        change_delay(s);
    if (c->roam && mrd_rng_below(&s->net_rng, 1000) < c->roam) {
        make_busy(s, host);
        swarm_roam(s, host);
    }
    if (swarm_chance(s, c->late))
        s->host[host].late_until_ns = mrd_sim_now(s->sim) + swarm_below(s, LATE_MOST_NS);
    if (swarm_chance(s, c->stop))
        stop_host(s, host);
    else if (swarm_chance(s, c->restart))
        close_for_a_while(s, host);
}

/* ------------------------------------------------------------------------------- the last fault */

enum {
    LAST_POSTS = 24,
    LAST_LOSS_PPM = 300000,
    LAST_SMALL = 2000,
    LAST_LEN = 128 << 10,
    LAST_BYTES = LAST_POSTS * LAST_LEN,
    LAST_EVENTS = 2000
};

static bool is_over(const struct swarm *s)
{
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        if (s->host[host].resume_ns > 0 || s->host[host].reopen_ns > 0)
            return false;
    }
    return s->cut.until_ns == 0 && s->roam.until_ns == 0;
}

static void pass_faults(struct swarm *s)
{
    while (!is_over(s)) {
        swarm_pass_time(s, mrd_sim_now(s->sim) + LAST_STEP_NS);
        swarm_poll_all(s);
    }
}

/*
 * Does the host hold a message of which only a part has arrived? With `held_back`: does it hold
 * whole messages only, which wait for an earlier one?
 */
static bool is_half_way(const struct swarm *s, uint32_t host, bool held_back)
{
    const struct mrd_engine *e = mrd_context_engine(s->host[host].context);

    return held_back ? e->reorder_entries.used > 0 && !e->peers.slots.used
                     : e->peers.slots.used > 0;
}

bool swarm_is_half_way(const struct swarm *s, uint32_t host)
{
    return is_half_way(s, host, false);
}

/* Draws a queue pair of the host that can send; an ordered one, if there is any and `ordered`. */
static int draw_sender(struct swarm *s, uint32_t host, bool ordered)
{
    int drawn = draw_live_qp(s, host);

    for (uint32_t slot = 0; ordered && slot < s->config.slots; slot++) {
        int index = s->host[host].qp[slot];

        if (index >= 0 && !s->qp[index].error && s->qp[index].order != MRD_ORDER_NONE)
            drawn = index;
    }
    return drawn >= 0 && !s->qp[drawn].error ? drawn : SWARM_NO_QP;
}

/*
 * Posts the messages that the last fault shall hit. With `held_back` links lose packets, so that
 * whole messages must wait for lost earlier ones.
 */
static void draw_last_messages(struct swarm *s, uint32_t from, uint32_t to, bool held_back)
{
    int from_qp = draw_sender(s, from, held_back), to_qp = draw_live_qp(s, to);

    s->config.bytes_left = LAST_BYTES;
    s->config.len_min = 1;
    s->config.len_max = held_back ? LAST_SMALL : SWARM_PICK(s, LAST_SMALL, 32000, LAST_LEN);
    s->config.sends = held_back ? 1000 : s->config.sends; /* only messages that take a receive */
    if (held_back)
        for_links(s, (int)from, (int)to, SWARM_ANY, set_loss, LAST_LOSS_PPM);
    if (from_qp < 0 || to_qp < 0)
        return;
    for (uint32_t n = 1 + swarm_below(s, LAST_POSTS); n > 0; n--)
        swarm_post_drawn(s, (uint32_t)from_qp, (uint32_t)to_qp);
}

/* Sends messages from one host to another until, mostly, one of them has arrived in part. */
static void make_last_busy(struct swarm *s, uint32_t from, uint32_t to)
{
    bool held_back = swarm_chance(s, 500);

    swarm_post_receives(s, to);
    draw_last_messages(s, from, to, held_back);
    for (uint32_t step = 0; step < LAST_EVENTS; step++) {
        uint64_t at_ns = mrd_sim_next_event_ns(s->sim), most_ns = mrd_sim_now(s->sim) + USEC_NS;

        swarm_pass_time(s, at_ns < most_ns ? at_ns : most_ns);
        if (is_half_way(s, to, held_back) && swarm_chance(s, 300))
            return;
    }
}

/*
 * Makes one more fault, after which no host posts anything: hosts that wait for something must find
 * out by themselves what became of it. The fault lasts for about the sender's timeout.
 */
void swarm_last_fault(struct swarm *s)
{
    uint32_t from = s->config.one_sided ? 0 : swarm_below(s, s->config.sim.hosts);
    uint64_t timeout_ns = swarm_timeout_ns(s, from);
    uint64_t ns = timeout_ns / 2 + mrd_rng_u64(&s->rng) % (5 * timeout_ns / 2);
    uint32_t to = (from + 1 + swarm_below(s, s->config.sim.hosts - 1)) % s->config.sim.hosts;
    uint32_t dice = swarm_below(s, s->config.restart > 0 ? 4 : 3);

    s->ends_with_fault = true;
    pass_faults(s);
    make_last_busy(s, from, to);
    if (dice == 0)
        cut(s, (int)from, (int)to, SWARM_ANY, SWARM_ANY, ns);
    else if (dice == 1)
        cut(s, SWARM_ANY, SWARM_ANY, SWARM_ANY, SWARM_ANY, ns);
    else if (dice == 2)
        swarm_stop_host(s, to, ns);
    else
        swarm_close_for_a_while(s, from);
    pass_faults(s);
}
