/* SPDX-License-Identifier: BSD-2-Clause */
/* Courses of events that chance would hardly take: how some profiles begin or end. */
#include "core/engine/state.h"
#include "tests/support/swarm.h"
#include "transport/context.h"
#include "transport/movers/sim/sim_host.h"

/* Work posted within a packet's flight of an open may be taken for an earlier life's: wait. */
#define SETTLE_NS (10 * MSEC_NS)
#define STARVE_NS (200 * MSEC_NS)

enum { RTTS = 50, STARVED_OTHERS = 32 };

/* ----------------------------------------------------------------------------------- starvation */

/*
 * If the target has few records of flows, starved flows may hold their share of these. Then several
 * QPs starve, and messages of other hosts only must go on.
 */
static bool starves_many(const struct swarm *s)
{
    return s->config.host[1].max_flows > 0;
}

static void post_hungry(struct swarm *s, uint32_t num)
{
    for (uint32_t i = 0; i < num; i++) {
        uint32_t to = starves_many(s) ? swarm_below(s, 2) * 2 : 0;
        uint32_t from = starves_many(s) ? swarm_below(s, s->config.slots) : 0;

        swarm_post_drawn(s, (uint32_t)s->host[0].qp[from], (uint32_t)s->host[1].qp[to]);
    }
}

/* Posts a message that must not wait for the starved ones: to the same host, or from it. */
static void post_other(struct swarm *s)
{
    bool back = swarm_chance(s, 300);
    uint32_t least = starves_many(s) ? 2 : 0;
    uint32_t other = least + swarm_below(s, s->config.sim.hosts - least);
    uint32_t from = (uint32_t)s->host[other == 1 ? 0 : other].qp[1];
    uint32_t to = (uint32_t)s->host[1].qp[1];

    swarm_post_drawn(s, back ? to : from, back ? from : to);
}

void swarm_starve(struct swarm *s)
{
    uint32_t num = SWARM_PICK(s, 1, 2, 65, 200, 1100), first = 0;
    uint64_t end_ns = mrd_sim_now(s->sim) + swarm_below(s, 5 * MSEC_NS);

    for (uint32_t slot = 0; slot < s->config.slots; slot += 2)
        s->qp[s->host[1].qp[slot]].starved = slot == 0 || starves_many(s);
    post_hungry(s, num);
    while (mrd_sim_now(s->sim) < end_ns)
        swarm_step(s);
    first = s->num_messages;
    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        swarm_post_receives(s, host);
    for (uint32_t i = 0; i < STARVED_OTHERS; i++)
        post_other(s);
    /*
     * The faults are on. With much loss a window may be a tenth of a packet, so each packet takes
     * ten round trips. A quarter of the packets is lost and a quarter of the acks, so each is sent
     * twice. And after each, a starved packet has its turn.
     */
    end_ns = mrd_sim_now(s->sim) + STARVE_NS + RTTS * swarm_rtt_ns(s) +
             2 * 2 * 20 * (swarm_rtt_ns(s) + 2 * s->config.sim.link.jitter_ns) *
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

/* A host that closes tells its peers, and no packet is lost: what it did not ack fails at once. */
static void check_told(struct swarm *s, uint32_t to, uint32_t first)
{
    uint64_t wait_ns = 4 * swarm_rtt_ns(s) + MSEC_NS;

    if (s->host[to].reopen_ns < mrd_sim_now(s->sim) + wait_ns)
        return;
    swarm_pass_time(s, mrd_sim_now(s->sim) + wait_ns);
    swarm_poll_all(s);
    for (uint32_t i = first; i < s->num_messages; i++)
        swarm_check(s, s->message[i].sent || !s->message[i].signaled,
                    "message %u is to a host that closed %.1f ms ago, and is not complete", i,
                    (double)wait_ns / 1e6);
}

void swarm_close_early(struct swarm *s)
{
    for (uint32_t i = 0; i < CLOSINGS; i++) {
        uint32_t to = swarm_below(s, s->config.sim.hosts);
        uint32_t from = (to + 1) % s->config.sim.hosts, before = count_received(s), posted = 0;
        uint32_t first = s->num_messages;

        swarm_post_receives(s, to);
        for (uint32_t n = 1 + swarm_below(s, CLOSING_POSTS); n > 0; n--) {
            uint32_t slot = swarm_below(s, s->config.slots);

            posted += swarm_post_drawn(s, (uint32_t)s->host[from].qp[slot],
                                       (uint32_t)s->host[to].qp[slot]) == 0;
        }
        /* Here only the receiver polls. */
        for (uint32_t step = 0; step < CLOSING_STEPS; step++) {
            uint64_t at_ns = mrd_sim_next_event_ns(s->sim), now_ns = mrd_sim_now(s->sim);

            swarm_pass_time(s, at_ns < now_ns + USEC_NS ? at_ns : now_ns + USEC_NS);
            swarm_poll_host(s, to);
            if (count_received(s) >= before + (swarm_chance(s, 500) ? 1 : posted))
                break;
        }
        swarm_close_for_a_while(s, to);
        if (count_received(s) > before)
            check_told(s, to, first);
        swarm_pass_time(s, s->host[to].reopen_ns + SETTLE_NS);
        swarm_poll_all(s);
    }
}

/* --------------------------------------------------------------------------------------- crowds */

enum { CROWD_WARM = 20, CROWD_POSTS = 400 };

/* Messages between host 0 and `last`, which reach each other, while those of others are stuck. */
static void talk_in_crowd(struct swarm *s, uint32_t last, uint64_t budget_ns)
{
    uint64_t end_ns = mrd_sim_now(s->sim) + budget_ns;
    uint32_t first = s->num_messages;

    swarm_post_small(s, (uint32_t)s->host[last].qp[1], (uint32_t)s->host[0].qp[1]);
    swarm_post_small(s, (uint32_t)s->host[0].qp[1], (uint32_t)s->host[last].qp[1]);
    while (!swarm_is_settled_from(s, first)) {
        swarm_check(s, mrd_sim_now(s->sim) < end_ns,
                    "hosts 0 and %u reach each other, and wait for those that do not", last);
        swarm_post_receives(s, 0);
        swarm_post_receives(s, last);
        swarm_pass_time(s, mrd_sim_now(s->sim) + MSEC_NS);
        swarm_poll_all(s);
    }
}

void swarm_crowd(struct swarm *s)
{
    uint32_t last = s->config.sim.hosts - 1, to = (uint32_t)s->host[0].qp[0];
    uint64_t timeout_ns = swarm_timeout_ns(s, last);

    /* All hosts get a window and a grant before host 0 falls silent. */
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
    /* Shared receives may all be held by messages that those who are cut off sent a part of. */
    if (s->config.slots > 1 && !s->config.shared)
        talk_in_crowd(s, last, timeout_ns / 2);
    /*
     * The host that is reached is refused, and hears so: it must not take the peer for unreachable.
     */
    swarm_pass_time(s, mrd_sim_now(s->sim) + 2 * timeout_ns);
    swarm_poll_all(s);
}

/* ----------------------------------------------------------------------------------- quiet ends */

/*
 * After so long a silence the send state is no longer used. That includes an old copy of the last
 * ack, for the packet that closed an idle flow.
 */
#define QUIET_LEAST_NS (10 * SEC_NS + SWARM_OLDEST_NS)
#define QUIET_MOST_NS  (17 * SEC_NS)

enum { QUIET_TALK = 3 };

/* Sends one message, with receives posted for it. Returns its status. */
static enum mrd_wc_status tell_one(struct swarm *s, uint32_t from, uint32_t to)
{
    uint64_t end_ns = mrd_sim_now(s->sim) + swarm_budget_ns(s);
    uint32_t number = s->num_messages;

    /* Its receive must be posted: after a refusal the two remember each other for longer. */
    while (s->qp[s->host[to].qp[0]].receives == 0)
        swarm_post_receives(s, to);
    swarm_check(
        s, swarm_post_small(s, (uint32_t)s->host[from].qp[0], (uint32_t)s->host[to].qp[0]) == 0,
        "nothing is posted, and there is no room: %s", mrd_last_error());
    while (!s->message[number].sent) {
        swarm_check(s, mrd_sim_now(s->sim) < end_ns, "message %u does not end", number);
        swarm_post_receives(s, to);
        swarm_step(s);
    }
    return s->message[number].status;
}

/*
 * A host gives a peer up, reaches it again, and then is silent for so long that it will begin a new
 * epoch. Meanwhile the peer restarts, unnoticed. The next message must succeed: it is for whoever
 * answers at that address.
 */
static void restart_unnoticed(struct swarm *s, uint32_t from, uint32_t to)
{
    uint64_t timeout_ns = swarm_timeout_ns(s, from), end_ns;

    for (uint32_t i = 0; i < QUIET_TALK; i++) {
        tell_one(s, from, to);
        tell_one(s, to, from);
    }
    swarm_cut_off(s, from, 4 * timeout_ns);
    /* An old copy of an ack counts as an answer, and may keep the host from giving up. */
    if (tell_one(s, from, to) == MRD_WC_SUCCESS)
        return;
    while (s->cut.until_ns > 0)
        swarm_pass_time(s, s->cut.until_ns);
    for (uint32_t i = 0; i < QUIET_TALK; i++)
        tell_one(s, from, to);
    end_ns = mrd_sim_now(s->sim) + QUIET_LEAST_NS +
             mrd_rng_u64(&s->rng) % (QUIET_MOST_NS - QUIET_LEAST_NS);
    swarm_pass_time(s, mrd_sim_now(s->sim) + swarm_below(s, 2 * SEC_NS) + SEC_NS);
    swarm_close_for_a_while(s, to);
    swarm_pass_time(s, s->host[to].reopen_ns + SETTLE_NS);
    if (mrd_sim_now(s->sim) < end_ns)
        swarm_pass_time(s, end_ns);
    enum mrd_wc_status status = tell_one(s, from, to);

    swarm_check(s, status == MRD_WC_SUCCESS,
                "host %u was silent for long, host %u restarted long ago, and a message fails: %s",
                from, to, mrd_wc_status_str(status));
}

void swarm_quiet(struct swarm *s)
{
    uint32_t from = swarm_below(s, s->config.sim.hosts);

    restart_unnoticed(s, from, (from + 1) % s->config.sim.hosts);
}

/* ------------------------------------------------------------------------------------- patience */

#define ABSENT_MOST_NS (8 * SEC_NS)

enum { PATIENCE_STEPS = 2000 };

/*
 * Waits for a message to end, which must succeed: its sender has waited for less than its timeout.
 */
static void end_well(struct swarm *s, uint32_t number, uint32_t to, const char *after)
{
    uint64_t end_ns = mrd_sim_now(s->sim) + swarm_budget_ns(s);
    const struct swarm_message *m = &s->message[number];

    while (!m->sent) {
        swarm_check(s, mrd_sim_now(s->sim) < end_ns, "message %u does not end", number);
        swarm_post_receives(s, to);
        swarm_step(s);
    }
    swarm_check(s, m->status == MRD_WC_SUCCESS, "message %u fails after %s: %s", number, after,
                mrd_wc_status_str(m->status));
}

/* Does the host wait for an ack? Packets without data are acked, too. */
static bool awaits_ack(const struct swarm *s, uint32_t host)
{
    const struct mrd_engine *e = mrd_context_engine(s->host[host].context);

    for (struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        const struct mrd_peer *peer = mrd_container_of(n, const struct mrd_peer, node);

        if (peer->tx && mrd_sent_any(&peer->tx->sent))
            return true;
    }
    return false;
}

/* Lets a host have all acked that it sent: the patience of one that waits for nothing is judged. */
static void be_done(struct swarm *s, uint32_t host)
{
    for (uint32_t step = 0; step < PATIENCE_STEPS && awaits_ack(s, host); step++)
        swarm_pass_time(s, mrd_sim_now(s->sim) + USEC_NS);
}

/*
 * The network fails for less than the sender's timeout, then the sender's process stops for longer.
 * Only the silence that it was active for may count.
 */
static void be_absent(struct swarm *s, uint32_t from, uint32_t to)
{
    uint64_t timeout_ns = swarm_timeout_ns(s, from);
    uint64_t cut_ns = timeout_ns / 3 + mrd_rng_u64(&s->rng) % (timeout_ns / 3), stop_ns;
    uint32_t number = s->num_messages;

    be_done(s, to);
    swarm_cut_off(s, from, cut_ns);
    if (swarm_post_small(s, (uint32_t)s->host[from].qp[0], (uint32_t)s->host[to].qp[0]) != 0)
        return;
    swarm_pass_time(s, mrd_sim_now(s->sim) + cut_ns - cut_ns / 8);
    /*
     * Not for too long: the target forgets a peer after its timeout, MRD_SEND_IDLE_LIFE_NS and
     * twice MRD_PACKET_LIFE_NS of silence.
     */
    stop_ns = timeout_ns / 2 + mrd_rng_u64(&s->rng) % (2 * timeout_ns);
    swarm_stop_host(s, from, stop_ns < ABSENT_MOST_NS ? stop_ns : ABSENT_MOST_NS);
    swarm_pass_time(s, s->host[from].resume_ns);
    end_well(s, number, to, "our own absence");
}

/*
 * The network fails for less than the sender's timeout when a part of a message, or of the answer to a read,
 * has arrived. The target must be as patient as the sender. While nothing has arrived it may be a first
 * contact, which is given up sooner.
 */
static void be_patient(struct swarm *s, uint32_t from, uint32_t to)
{
    uint64_t timeout_ns = swarm_timeout_ns(s, from);
    uint64_t cut_ns = timeout_ns / 4 + mrd_rng_u64(&s->rng) % (timeout_ns / 2);
    uint32_t number = s->num_messages, len_max = s->config.len_max;
    bool half_way = false;

    s->config.len_min = s->config.len_max = s->config.recv_bytes;
    if (swarm_post_drawn(s, (uint32_t)s->host[from].qp[0], (uint32_t)s->host[to].qp[0]) != 0)
        number = SWARM_MESSAGES_MAX;
    s->config.len_min = 0;
    s->config.len_max = len_max;
    if (number == SWARM_MESSAGES_MAX || !s->message[number].signaled)
        return;
    for (uint32_t step = 0; step < PATIENCE_STEPS && !half_way; step++) {
        swarm_pass_time(s, mrd_sim_now(s->sim) + USEC_NS);
        half_way = swarm_is_half_way(s, to) || swarm_is_half_way(s, from);
    }
    if (!half_way)
        return;
    swarm_cut_off(s, swarm_chance(s, 500) ? from : to, cut_ns);
    swarm_pass_time(s, s->cut.until_ns);
    end_well(s, number, to, "a cut shorter than its sender's timeout");
}

void swarm_patience(struct swarm *s)
{
    uint32_t from = swarm_below(s, s->config.sim.hosts);
    uint32_t to = (from + 1) % s->config.sim.hosts;

    for (uint32_t i = 0; i < QUIET_TALK; i++)
        tell_one(s, from, to);
    if (swarm_chance(s, 500))
        be_absent(s, from, to);
    else
        be_patient(s, from, to);
}
