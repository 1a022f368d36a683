/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which errors the faults explain, and how long things may take.
 *
 * A host may find a peer unreachable or restarted after a restart, or after a fault of about the
 * patience of one of the two. It may find that out much later, by its next message.
 */
#include <string.h>

#include "tests/support/swarm.h"

#define FIRST_CONTACT_NS  (2 * SEC_NS)     /* first contacts unanswered for so long may fail */
#define TIMEOUT_NS        (8 * SEC_NS)     /* the default of peer_timeout_ns */
#define RNR_DELAY_MOST_NS (6400 * USEC_NS) /* the greatest RNR delay: 64 times the default */
#define FLOW_IDLE_NS      (1 * SEC_NS)     /* an idle flow gives its record back after so long */
#define CUT_LONG_NS       (100 * MSEC_NS)  /* slack beyond a peer's timeout */

enum {
    RTTS = 50,
    TIMEOUTS = 3,
    PACKET_RTTS = 20,
    TRANSFERS = 16,
    HEADER_BYTES = 160,
    RTO_RTTS = 6 /* that a sender waits for at most, as its estimate of the round trip varies */
};

static uint64_t min_ns(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t swarm_timeout_ns(const struct swarm *s, uint32_t host)
{
    uint64_t ns = s->config.host[host].peer_timeout_ns;

    return ns ? ns : TIMEOUT_NS;
}

static struct swarm_pair *pair_of(struct swarm *s, uint32_t a, uint32_t b)
{
    return a < b ? &s->pair[a][b] : &s->pair[b][a];
}

/* Half of the least patience of the two: a host that waits between tries may wait twice that. */
static uint64_t patience_ns(const struct swarm *s, uint32_t a, uint32_t b)
{
    return min_ns(min_ns(swarm_timeout_ns(s, a), swarm_timeout_ns(s, b)), FIRST_CONTACT_NS) / 2;
}

void swarm_note_cut(struct swarm *s, uint32_t a, uint32_t b, uint64_t ns)
{
    struct swarm_pair *pair = pair_of(s, a, b);
    uint64_t now_ns = mrd_sim_now(s->sim);
    uint64_t forget_ns = 2 * max_ns(swarm_timeout_ns(s, a), swarm_timeout_ns(s, b));

    if (now_ns > pair->until_ns + forget_ns)
        pair->cut_ns = 0;
    pair->cut_ns += ns;
    pair->until_ns = max_ns(pair->until_ns, now_ns + ns);
    if (pair->cut_ns >= patience_ns(s, a, b))
        pair->excused = pair->was_excused = true;
}

void swarm_excuse(struct swarm *s, uint32_t a, uint32_t b)
{
    pair_of(s, a, b)->excused = pair_of(s, a, b)->was_excused = true;
}

void swarm_end_excuses(struct swarm *s)
{
    for (uint32_t a = 0; a < s->config.sim.hosts; a++) {
        for (uint32_t b = 0; b < s->config.sim.hosts; b++)
            s->pair[a][b].excused = false;
    }
}

void swarm_note_restart(struct swarm *s, uint32_t host)
{
    for (uint32_t other = 0; other < s->config.sim.hosts; other++)
        swarm_excuse(s, host, other);
}

bool swarm_is_excused(const struct swarm *s, uint32_t a, uint32_t b)
{
    const struct swarm_pair *pair = a < b ? &s->pair[a][b] : &s->pair[b][a];

    return swarm_is_crowded(s) || pair->excused;
}

bool swarm_may_be_told(const struct swarm *s, uint32_t a, uint32_t b)
{
    const struct swarm_pair *pair = a < b ? &s->pair[a][b] : &s->pair[b][a];
    bool several = s->config.networks & (SWARM_TWO_ADDRESSES | SWARM_ROAM);

    return swarm_is_excused(s, a, b) || (several && pair->was_excused) ||
           (pair->moved_ns && pair->moved_ns == mrd_sim_now(s->sim));
}

/* When a host last sent from another address than before; 0: never. */
static uint64_t moved_ns(const struct swarm_view *v)
{
    uint64_t ns = 0;

    for (uint32_t id = 0; id < MRD_SIM_ADDRESSES_MAX; id++)
        ns = max_ns(ns, v->way[id].moved_ns);
    return ns;
}

/*
 * Was its last packet with data one of a first contact, or was one that may be answered just now? The
 * host may speak to the peer by another entry, too, which is past that.
 */
static bool in_first_contact(const struct swarm *s, const struct swarm_way *w)
{
    return w->first_contact ||
           (w->contact_ns && mrd_sim_now(s->sim) - w->contact_ns <= PACKET_RTTS * swarm_rtt_ns(s));
}

bool swarm_has_moved(struct swarm *s, const struct swarm_message *m)
{
    uint32_t from = s->qp[m->from_qp].host, to = s->qp[m->to_qp].host;
    const struct swarm_view *v = &s->view[from][to];
    uint64_t back_ns = moved_ns(&s->view[to][from]);
    bool moved = false;

    if (!(s->config.networks & (SWARM_TWO_ADDRESSES | SWARM_ROAM)))
        return false;
    for (uint32_t id = 0; id < MRD_SIM_ADDRESSES_MAX; id++) {
        const struct swarm_way *w = &v->way[id];

        moved |=
            in_first_contact(s, w) &&
            (w->moved_ns > m->posted_ns || w->moved_ns > w->hello_ns || back_ns > m->posted_ns ||
             ((w->moved_ns || back_ns) && w->quiet_ns >= m->posted_ns));
    }
    if (moved)
        pair_of(s, from, to)->moved_ns = mrd_sim_now(s->sim);
    return moved;
}

bool swarm_may_abort(const struct swarm *s, uint32_t host)
{
    for (uint32_t other = 0; other < s->config.sim.hosts; other++) {
        if (s->host[other].cancelled || swarm_is_excused(s, host, other))
            return true;
    }
    return s->config.rnr_limited;
}

/* ----------------------------------------------------------------------------------------- time */

uint64_t swarm_delay_ns(const struct swarm *s)
{
    bool varies = s->config.unequal_delays || s->config.delay > 0;

    return max_ns(s->config.healthy.delay_ns, varies ? SWARM_DELAY_MOST_NS : 0);
}

uint64_t swarm_rtt_ns(const struct swarm *s)
{
    const struct mrd_sim_link *link = &s->config.healthy;

    return 2 * (swarm_delay_ns(s) + link->queue_bytes * 8 * SEC_NS / link->rate_bps) +
           s->config.sim.tx_done_delay_ns + 100 * USEC_NS;
}

uint64_t swarm_timeout_most_ns(const struct swarm *s)
{
    uint64_t ns = 0;

    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        ns = max_ns(ns, swarm_timeout_ns(s, host));
    return ns;
}

/* Where few ordered flows have room, the others wait until those are idle. */
static uint64_t flow_turns_ns(const struct swarm *s)
{
    uint64_t flows = 0, least = UINT32_MAX;
    uint64_t live = (uint64_t)s->config.sim.hosts * (s->config.slots + 1);

    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        if (s->config.host[host].max_flows > 0)
            least = min_ns(least, s->config.host[host].max_flows);
    }
    if (least == UINT32_MAX)
        return 0;
    flows = live * (s->config.slots + 1);
    return (flows / least + 1) * 2 * FLOW_IDLE_NS;
}

/*
 * Does a host use swift, with a delay target of the fabric's base RTT, and paths longer than that?
 */
static bool is_swift_afar(const struct swarm *s)
{
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        const char *cc = s->config.host[host].cc;

        if (cc && strcmp(cc, "swift") == 0)
            return s->config.unequal_delays || s->config.delay > 0;
    }
    return false;
}

uint64_t swarm_budget_ns(const struct swarm *s)
{
    const struct swarm_config *c = &s->config;
    uint64_t rtt_ns = swarm_rtt_ns(s);
    uint64_t packets = s->num_messages + s->posted_len / (c->mtu ? c->mtu : 4096);
    uint64_t bytes = s->posted_len + packets * HEADER_BYTES;
    uint64_t ns = TIMEOUTS * swarm_timeout_most_ns(s) + RTTS * rtt_ns + 2 * FIRST_CONTACT_NS;

    ns += TRANSFERS * bytes * 8 * SEC_NS / c->healthy.rate_bps;
    /* Messages take turns at the receives that there are. */
    ns += s->num_messages / c->recv_depth * RNR_DELAY_MOST_NS;
    /* Where packets are marked, windows may stay below one packet. */
    if (c->healthy.ecn_max_bytes > 0)
        ns += PACKET_RTTS * packets * 2 * (c->healthy.delay_ns + 10 * USEC_NS);
    if (is_swift_afar(s))
        ns += PACKET_RTTS * packets * rtt_ns;
    /* Copies that come late, their originals lost at a full queue, are to the sender a long round trip. */
    if (c->old_copies > 0)
        ns += RTTS * SWARM_OLDEST_NS;
    return ns + flow_turns_ns(s);
}

/* ----------------------------------------------------------------------------- nothing hangs on */

/*
 * A sender asks some times before it gives up, an RTO apart. Copies that come late, and are acked, are
 * to it a network with a long round trip.
 */
static uint64_t asks_ns(const struct swarm *s, uint32_t from, uint32_t to)
{
    struct mrd_peer_attr attr;

    if (mrd_query_peer(s->host[from].ah[to], &attr, sizeof(attr)) != 0)
        return 0;
    return (MRD_PROBES_MIN + 1) * RTO_RTTS * attr.srtt_ns;
}

/*
 * "A peer that does not answer for peer_timeout_ns is unreachable: work to it completes
 * with MRD_WC_RETRY_EXC_ERR."
 */
void swarm_check_given_up(struct swarm *s, uint32_t from, uint32_t to, uint64_t since_ns)
{
    uint64_t now_ns = mrd_sim_now(s->sim);
    uint64_t limit_ns = TIMEOUTS * swarm_timeout_ns(s, from) + CUT_LONG_NS;
    const struct swarm_host *h = &s->host[from];

    if (from == to || !swarm_is_live(s, from))
        return;
    if (s->config.old_copies > 0) /* an ack that comes that late is an answer */
        limit_ns += SWARM_OLDEST_NS + asks_ns(s, from, to);
    if (h->resumed_ns >= since_ns || now_ns - since_ns < limit_ns)
        return;
    swarm_poll_host(s, from);
    for (uint32_t i = 0; i < s->num_messages; i++) {
        const struct swarm_message *m = &s->message[i];

        if (s->qp[m->from_qp].host != from || s->qp[m->to_qp].host != to || !m->signaled ||
            now_ns - m->posted_ns < limit_ns)
            continue;
        swarm_check(s, ledger_get(&s->ledger, m->wr_id)->state != LEDGER_OPEN,
                    "message %u, posted %.1f ms ago by host %u to host %u, which is out of reach "
                    "for %.1f ms, is not complete; timeout %.0f ms",
                    i, (double)(now_ns - m->posted_ns) / 1e6, from, to,
                    (double)(now_ns - since_ns) / 1e6, (double)swarm_timeout_ns(s, from) / 1e6);
    }
}
