/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/engine.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/engine_impl.h"

enum {
    PENDS_PER_FLOW = 4,
    PENDS_SHARED = 4096,
    REFUSALS = 8192,
    QPS_MIN = 1024, /* buckets of queue pairs, at least */
    SHARE_PERIOD_MS = 20,
};

static bool make_hash(struct mrd_engine *e, struct mrd_hash *h, uint32_t items)
{
    uint32_t buckets = mrd_hash_buckets(items);

    h->mask = buckets - 1;
    h->bucket = mrd_engine_take(e, buckets * sizeof(*h->bucket));
    return h->bucket != NULL;
}

static void free_hash(struct mrd_engine *e, struct mrd_hash *h)
{
    if (h->bucket)
        mrd_engine_give(e, h->bucket, (h->mask + 1) * sizeof(*h->bucket));
}

static bool make_pools(struct mrd_engine *e)
{
    const struct mrd_engine_config *c = &e->config;
    uint32_t pends = c->max_flows * PENDS_PER_FLOW + (c->max_flows ? PENDS_SHARED : 0);

    return mrd_peers_init(&e->peers, e->allocator, c->max_peers, c->paths) &&
           mrd_pool_init(&e->txq_pool, e->allocator, sizeof(struct mrd_txq), c->max_flows) &&
           mrd_pool_init(&e->want_pool, e->allocator, sizeof(struct mrd_want), c->max_flows) &&
           mrd_pool_init(&e->flow_tx_pool, e->allocator, sizeof(struct mrd_flow_tx),
                         c->max_flows) &&
           mrd_pool_init(&e->flow_rx_pool, e->allocator, sizeof(struct mrd_flow_rx),
                         3 * c->max_flows) &&
           mrd_pool_init(&e->pend_pool, e->allocator, sizeof(struct mrd_pend), pends) &&
           mrd_pool_init(&e->refusal_pool, e->allocator, sizeof(struct mrd_refusal), REFUSALS) &&
           mrd_mrs_init(&e->mrs, e->allocator) &&
           make_hash(e, &e->qps, c->max_flows > QPS_MIN ? c->max_flows : QPS_MIN) &&
           make_hash(e, &e->txqs, c->max_flows) && make_hash(e, &e->wants, c->max_flows) &&
           make_hash(e, &e->flows_tx, c->max_flows) && make_hash(e, &e->flows_rx, c->max_flows) &&
           (e->heap = mrd_engine_take(e, c->max_peers * sizeof(struct mrd_peer *)));
}

static int check_config(const struct mrd_engine_config *c)
{
    const struct mrd_mover *m = &c->mover;

    if (!mrd_spray_find(c->spray) || !mrd_cc_find(c->cc))
        return -EINVAL;
    if (!c->paths || c->paths > MRD_PATHS_MAX || c->paths > m->paths || !c->max_peers ||
        c->max_peers > 1u << 20 || !c->max_flows || !c->incarnation)
        return -EINVAL;
    if (m->tracker < MRD_TRACKER_MIN || m->tracker > MRD_TRACKER_MAX ||
        m->tracker & (m->tracker - 1))
        return -EINVAL;
    if (!m->payload_bytes || m->payload_bytes > MRD_PAYLOAD_BYTES_MAX || !m->quantum ||
        !m->ack_every)
        return -EINVAL;
    return 0;
}

struct mrd_engine *mrd_engine_create(const struct mrd_engine_config *config,
                                     const struct mrd_allocator *allocator, uint64_t now_ns,
                                     int *error)
{
    struct mrd_engine *e;

    *error = check_config(config);
    if (*error)
        return NULL;
    e = allocator->alloc(allocator->arg, sizeof(*e));
    *error = -ENOMEM;
    if (!e)
        return NULL;
    e->allocator_copy = *allocator;
    e->allocator = &e->allocator_copy;
    e->config = *config;
    if (!config->mover.tune)
        e->config.mover.tune = &mrd_tune_default;
    e->spray = mrd_spray_find(config->spray);
    e->cc = mrd_cc_find(config->cc);
    e->config.spray = e->spray->name;
    e->config.cc = e->cc->name;
    mrd_rng_init(&e->rng, config->seed);
    e->cookie_secret = mrd_rng_u64(&e->rng);
    e->epoch_next = 1;
    e->qpn_next = MRD_QPN_FIRST;
    e->now = e->opened_ns = e->looked_ns = e->empty_ns = e->share_at_ns = now_ns;
    mrd_list_init(&e->suspects);
    mrd_list_init(&e->qp_list);
    mrd_list_init(&e->ready);
    mrd_list_init(&e->touched);
    if (!make_pools(e)) {
        mrd_engine_destroy(e);
        return NULL;
    }
    *error = 0;
    return e;
}

void mrd_engine_destroy(struct mrd_engine *e)
{
    struct mrd_allocator a = e->allocator_copy;

    /* Queue pairs that the user destroyed and that still waited for their peers. */
    for (struct mrd_node *n; (n = mrd_list_pop(&e->qp_list));) {
        struct mrd_qp_impl *qp = mrd_container_of(n, struct mrd_qp_impl, node);

        mrd_engine_give(e, qp, qp->bytes);
    }
    if (e->heap)
        mrd_engine_give(e, e->heap, e->config.max_peers * sizeof(struct mrd_peer *));
    free_hash(e, &e->flows_rx);
    free_hash(e, &e->flows_tx);
    free_hash(e, &e->wants);
    free_hash(e, &e->txqs);
    free_hash(e, &e->qps);
    if (e->mrs.allocator)
        mrd_mrs_fini(&e->mrs);
    mrd_pool_fini(&e->refusal_pool);
    mrd_pool_fini(&e->pend_pool);
    mrd_pool_fini(&e->flow_rx_pool);
    mrd_pool_fini(&e->flow_tx_pool);
    mrd_pool_fini(&e->want_pool);
    mrd_pool_fini(&e->txq_pool);
    mrd_peers_fini(&e->peers);
    a.free(a.arg, e, sizeof(*e));
}

/* ---------------------------------------------------------------------------------------- time */

void mrd_engine_time(struct mrd_engine *e, uint64_t now_ns)
{
    if (now_ns > e->now)
        e->now = now_ns;
}

/*
 * Timers are set once a turn, not with each packet, and not before a packet that may leave now. As of when the peers
 * were touched: what was due since is late, not due now.
 */
static void settle(struct mrd_engine *e)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&e->touched)))
        mrd_engine_rearm(e, mrd_container_of(n, struct mrd_peer, touched), e->touched_ns);
}

void mrd_engine_begin(struct mrd_engine *e, uint64_t now_ns)
{
    /* Before the call changes what deadlines follow from: they may prove a stall. */
    if (now_ns > e->touched_ns + MRD_STALL_NS)
        settle(e);
    mrd_engine_time(e, now_ns);
    e->call_seq++;
}

void mrd_engine_touch(struct mrd_engine *e, struct mrd_peer *peer)
{
    e->touched_ns = e->now;
    if (mrd_list_empty(&peer->touched))
        mrd_list_append(&e->touched, &peer->touched);
}

static uint64_t next_timer(struct mrd_engine *e)
{
    settle(e);
    return e->heap_num ? e->heap[0]->timer_ns : MRD_NEVER;
}

/*
 * A caller may sleep until the next deadline; what is beyond is a stall. With nothing due there is nobody to judge, and
 * no stall.
 */
void mrd_engine_look(struct mrd_engine *e)
{
    uint64_t due_ns, expected;

    if (e->now > e->looked_ns + MRD_STALL_NS && (due_ns = next_timer(e)) != MRD_NEVER) {
        expected = due_ns > e->looked_ns ? due_ns : e->looked_ns;
        if (e->now > expected + MRD_STALL_NS) {
            e->stats.stalls++;
            e->absent_ns = e->now;
            e->absent_sum_ns += e->now - expected;
            if (e->now - expected > MRD_STALL_LONG_NS)
                e->absent_long_ns = e->now;
        }
    }
    e->looked_ns = e->now;
}

void mrd_engine_drained(struct mrd_engine *e, uint64_t now_ns)
{
    struct mrd_node *n;

    mrd_engine_time(e, now_ns);
    mrd_engine_look(e);
    e->empty_ns = e->now;
    while ((n = mrd_list_pop(&e->suspects))) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, suspect);

        if (peer->tx)
            mrd_engine_losses(e, peer);
    }
}

/* ---------------------------------------------------------------------------------------- timers: a binary heap */

static void heap_put(struct mrd_engine *e, uint32_t i, struct mrd_peer *peer)
{
    e->heap[i] = peer;
    peer->heap_index = i;
}

static void heap_up(struct mrd_engine *e, uint32_t i, struct mrd_peer *peer)
{
    while (i && e->heap[(i - 1) / 2]->timer_ns > peer->timer_ns) {
        heap_put(e, i, e->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_put(e, i, peer);
}

static void heap_down(struct mrd_engine *e, uint32_t i, struct mrd_peer *peer)
{
    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= e->heap_num)
            break;
        if (child + 1 < e->heap_num && e->heap[child + 1]->timer_ns < e->heap[child]->timer_ns)
            child++;
        if (e->heap[child]->timer_ns >= peer->timer_ns)
            break;
        heap_put(e, i, e->heap[child]);
        i = child;
    }
    heap_put(e, i, peer);
}

/* A later time leaves the peer where it is: the timer then fires early, finds nothing due and is set anew. */
void mrd_engine_arm(struct mrd_engine *e, struct mrd_peer *peer, uint64_t at_ns)
{
    if (at_ns == MRD_NEVER || (peer->heap_index != UINT32_MAX && peer->timer_ns <= at_ns))
        return;
    peer->timer_ns = at_ns;
    if (peer->heap_index == UINT32_MAX)
        peer->heap_index = e->heap_num++;
    heap_up(e, peer->heap_index, peer);
}

void mrd_engine_disarm(struct mrd_engine *e, struct mrd_peer *peer)
{
    uint32_t i = peer->heap_index;
    struct mrd_peer *last;

    if (i == UINT32_MAX)
        return;
    peer->heap_index = UINT32_MAX;
    peer->timer_ns = MRD_NEVER;
    last = e->heap[--e->heap_num];
    if (last == peer)
        return;
    if (i && e->heap[(i - 1) / 2]->timer_ns > last->timer_ns)
        heap_up(e, i, last);
    else
        heap_down(e, i, last);
}

void mrd_engine_expire(struct mrd_engine *e, uint64_t now_ns)
{
    mrd_engine_time(e, now_ns);
    settle(e);
    while (e->heap_num && e->heap[0]->timer_ns <= e->now) {
        struct mrd_peer *peer = e->heap[0];

        mrd_engine_disarm(e, peer);
        mrd_engine_fire(e, peer);
        assert(peer->heap_index == UINT32_MAX || peer->timer_ns > e->now);
    }
}

uint64_t mrd_engine_deadline(struct mrd_engine *e)
{
    if (!mrd_list_empty(&e->ready) || e->stateless_head != e->stateless_tail ||
        e->fresh_path_wanted)
        return 0;
    return next_timer(e);
}

void mrd_engine_ready(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (mrd_list_empty(&peer->ready))
        mrd_list_append(&e->ready, &peer->ready);
}

/* ---------------------------------------------------------------------------------------- shares and look-ups */

struct mrd_qp_impl *mrd_engine_qp(const struct mrd_engine *e, uint32_t qpn)
{
    for (struct mrd_hash_node *n = mrd_hash_first(&e->qps, mrd_hash_mix(qpn)); n; n = n->next) {
        struct mrd_qp_impl *qp = mrd_container_of(n, struct mrd_qp_impl, by_num);

        if (qp->pub.qp_num == qpn)
            return qp;
    }
    return NULL;
}

/*
 * The receive buffer is shared by those who sent lately. Twice the share is granted, because a sender fills at most
 * half of it with data; the rest is for refusals and aborts, which are small.
 */
uint32_t mrd_engine_grant(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_mover *m = &e->config.mover;
    struct mrd_rx_half *rx = peer->rx;
    uint64_t packets = m->tracker / 2;

    if (e->now - e->share_at_ns > SHARE_PERIOD_MS * MRD_MSEC) {
        e->senders_prev = e->now - e->share_at_ns > 2 * SHARE_PERIOD_MS * MRD_MSEC ? 0 : e->senders;
        e->senders = 0;
        e->share_period++;
        e->share_at_ns = e->now;
    }
    if (rx->share_seen != e->share_period + 1) {
        rx->share_seen = e->share_period + 1;
        e->senders++;
    }
    if (m->rx_buffer_bytes) {
        uint32_t active = e->senders > e->senders_prev ? e->senders : e->senders_prev;
        uint64_t room = m->rx_buffer_bytes / (m->payload_bytes + m->rx_packet_overhead);

        room = room ? room : 1;
        if (room < active && (peer->id + e->share_period) % ((active + room - 1) / room))
            return rx->rcv.cum +
                   1; /* not its turn: half of one packet is none, but it may ask again */
        room = room < active ? 1 : room / active;
        packets = room < packets ? room : packets;
    }
    return rx->rcv.cum + (uint32_t)packets * 2;
}

/* ---------------------------------------------------------------------------------------- events and figures */

void mrd_engine_event(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_event_type type)
{
    if (e->event_tail - e->event_head == MRD_EVENTS_MAX) {
        e->stats.events_lost++;
        return;
    }
    e->event[e->event_tail++ % MRD_EVENTS_MAX] =
        (struct mrd_engine_event){.type = type, .peer_id = peer->id, .addr = peer->addr};
}

int mrd_engine_get_event(struct mrd_engine *e, struct mrd_engine_event *event)
{
    if (e->event_head == e->event_tail)
        return -EAGAIN;
    *event = e->event[e->event_head++ % MRD_EVENTS_MAX];
    return 0;
}

int mrd_engine_query_counters(const struct mrd_engine *e, struct mrd_counter *counters, int max)
{
    int n = 0;

#define X(name_, unit_, what)                                                                      \
    if (n < max)                                                                                   \
        counters[n] =                                                                              \
            (struct mrd_counter){.name = #name_, .unit = unit_, .value = e->stats.name_};          \
    n++;
    MRD_COUNTERS(X)
#undef X
    return n;
}

int mrd_engine_query_peer(struct mrd_engine *e, const struct mrd_addr *addr,
                          struct mrd_peer_attr *attr)
{
    const struct mrd_peer *p = mrd_peer_find(&e->peers, addr);

    if (!p)
        return -ENOENT;
    memset(attr, 0, sizeof(*attr));
    attr->peer_id = p->id;
    attr->packets_sent = p->packets_sent;
    attr->packets_retransmitted = p->packets_retransmitted;
    attr->packets_spurious = p->packets_spurious;
    attr->packets_received = p->packets_received;
    attr->bytes_sent = p->bytes_sent;
    attr->bytes_received = p->bytes_received;
    attr->lost_by_path_order = p->lost_by_order;
    attr->lost_by_rack = p->lost_by_rack;
    attr->probes_tail = p->probes_tail;
    attr->timeouts = p->timeouts;
    if (p->tx) {
        attr->paths = p->tx->paths.num;
        attr->srtt_ns = p->tx->loss.srtt_ns;
        attr->min_rtt_ns = mrd_loss_rtt_min_ns(&p->tx->loss);
        attr->cwnd_bytes = (uint64_t)p->tx->cc.cwnd_bytes;
        attr->inflight_bytes = p->tx->sent.inflight_bytes;
    }
    return 0;
}

int mrd_engine_query_path(struct mrd_engine *e, const struct mrd_addr *addr, uint32_t index,
                          struct mrd_path_attr *attr)
{
    const struct mrd_peer *p = mrd_peer_find(&e->peers, addr);
    const struct mrd_path *path;

    if (!p || !p->tx || index >= p->tx->paths.num)
        return -ENOENT;
    path = &p->tx->path[index];
    *attr = (struct mrd_path_attr){.port = path->ev,
                                   .state = path->state,
                                   .packets = path->packets,
                                   .lost = path->lost,
                                   .ce = path->ce,
                                   .srtt_ns = path->srtt_ns,
                                   .min_rtt_ns = path->rtt_min_ns};
    return 0;
}

int mrd_engine_peer_addr(struct mrd_engine *e, uint32_t peer_id, struct mrd_addr *addr)
{
    const struct mrd_peer *p = mrd_peer_by_id(&e->peers, peer_id);

    if (!p)
        return -ENOENT;
    *addr = p->addr;
    return 0;
}

const char *mrd_engine_spray_name(const struct mrd_engine *e)
{
    return e->spray->name;
}

const char *mrd_engine_cc_name(const struct mrd_engine *e)
{
    return e->cc->name;
}

const char *mrd_engine_error(const struct mrd_engine *e)
{
    return e->error;
}

void mrd_engine_farewell(struct mrd_engine *e, uint64_t now_ns)
{
    mrd_engine_time(e, now_ns);
    e->closing = true;
    for (struct mrd_node *n = e->peers.all.next; n != &e->peers.all; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        if (!peer->rx || e->now - peer->heard_ns > MRD_FAREWELL_NS)
            continue;
        peer->rx->rcv.now = true;
        mrd_engine_ready(e, peer);
    }
}

unsigned mrd_engine_objects(const struct mrd_engine *e)
{
    return e->num_pds + e->num_mrs + e->num_cqs + e->num_qps + e->num_ahs;
}

static uint32_t length(const struct mrd_node *list)
{
    uint32_t num = 0;

    for (const struct mrd_node *n = list->next; n != list; n = n->next)
        num++;
    return num;
}

static uint32_t gone_in_flows(const struct mrd_peer *peer)
{
    uint32_t num = 0;

    for (const struct mrd_node *n = peer->flows_rx.next; n != &peer->flows_rx; n = n->next)
        num += mrd_container_of(n, const struct mrd_flow_rx, peer_node)->num_gone;
    return num;
}

const char *mrd_engine_audit(struct mrd_engine *e)
{
    uint32_t pages = 0, tx = 0, rx = 0, open = 0, pends = 0, refusals = 0, flows = 0, wants = 0;

    for (struct mrd_node *n = e->peers.all.next; n != &e->peers.all; n = n->next) {
        struct mrd_peer *p = mrd_container_of(n, struct mrd_peer, node);

        rx += p->rx != NULL;
        pends += p->num_pends;
        refusals += p->num_refusals;
        flows += p->num_flows_rx;
        open += p->rx ? p->rx->slots.num_open : 0;
        wants += length(&p->wants) + length(&p->readies);
        if (p->num_gone != gone_in_flows(p))
            return "a peer's number of messages that never come differs from its flows'";
        if (!p->tx)
            continue;
        tx++;
        if (!mrd_sent_audit(&p->tx->sent))
            return "bytes in flight differ from the records";
        for (uint32_t i = 0, out = 0; i <= p->tx->paths.num; i++) {
            if (i == p->tx->paths.num) {
                if (out != p->tx->sent.inflight.num)
                    return "paths' packets differ from the records";
                break;
            }
            if (p->tx->paths.load[i].out_packets != p->tx->path[i].chained)
                return "a path's outstanding packets differ from its records";
            out += p->tx->path[i].chained;
        }
        for (uint32_t i = 0; i <= p->tx->sent.mask / MRD_SENT_PAGE; i++)
            pages += p->tx->sent.page[i] != NULL;
    }
    if (pages != e->peers.pages.used)
        return "pages of records leaked";
    if (pends != e->pend_pool.used || refusals != e->refusal_pool.used ||
        flows != e->flow_rx_pool.used)
        return "records of pending messages, refusals or flows differ from the peers' counts";
    if (open != e->peers.slots.used)
        return "records of open messages leaked";
    if (wants != e->want_pool.used)
        return "records of who is to be told of receives leaked";
    if (tx != e->peers.tx_halves.used || rx != e->peers.rx_halves.used)
        return "halves leaked";
    for (struct mrd_node *n = e->qp_list.next; n != &e->qp_list; n = n->next) {
        struct mrd_qp_impl *qp = mrd_container_of(n, struct mrd_qp_impl, node);

        if (length(&qp->free_msgs) + qp->live_msgs != qp->cap.max_send_wr)
            return "send slots leaked";
    }
    return NULL;
}

bool mrd_engine_wants_path(struct mrd_engine *e, uint32_t *peer_id, uint32_t *index)
{
    if (!e->fresh_path_wanted)
        return false;
    for (struct mrd_node *n = e->peers.all.next; n != &e->peers.all; n = n->next) {
        struct mrd_peer *p = mrd_container_of(n, struct mrd_peer, node);

        for (uint32_t i = 0; p->tx && i < p->tx->paths.num; i++) {
            if (!p->tx->path[i].wants_ev)
                continue;
            *peer_id = p->id;
            *index = i;
            return true;
        }
    }
    e->fresh_path_wanted = false;
    return false;
}

void mrd_engine_give_path(struct mrd_engine *e, uint32_t peer_id, uint32_t index, int path,
                          uint64_t now_ns)
{
    struct mrd_peer *p = mrd_peer_by_id(&e->peers, peer_id);

    mrd_engine_time(e, now_ns);
    if (!p || !p->tx || index >= p->tx->paths.num)
        return;
    if (path < 0) {
        mrd_path_keep(&p->tx->paths, index, e->now);
        p->tx->path[index].wants_ev = false;
        return;
    }
    e->stats.paths_replaced++;
    mrd_path_replace(&p->tx->paths, index, (uint16_t)path, e->now);
}
