/* SPDX-License-Identifier: BSD-2-Clause */
/* What callers ask: events, counters, figures of peers and paths. */
#include "core/engine/query.h"

#include <errno.h>
#include <string.h>

void mrd_engine_add_event(struct mrd_engine *e, const struct mrd_engine_event *event)
{
    if (e->events.tail - e->events.head == MRD_EVENTS_MAX) {
        e->stats.events_lost++;
        return;
    }
    e->events.ring[e->events.tail++ % MRD_EVENTS_MAX] = *event;
}

void mrd_event_add(struct mrd_engine *e, const struct mrd_peer *peer, enum mrd_event_type type)
{
    mrd_engine_add_event(
        e, &(struct mrd_engine_event){.type = type, .peer_id = peer->id, .addr = peer->addr});
}

void mrd_event_raise(struct mrd_engine *e, struct mrd_event_source *source)
{
    if (mrd_list_empty(&source->node))
        mrd_list_append(&e->events.objects, &source->node);
}

void mrd_event_refused(struct mrd_engine *e, const struct mrd_peer *peer, struct mrd_qp_impl *qp)
{
    if (!qp->tells_refused)
        return;
    qp->refused.peer_id = peer->id;
    qp->refused.addr = peer->addr;
    mrd_event_raise(e, &qp->refused);
}

void mrd_event_check_srq(struct mrd_engine *e, struct mrd_srq_impl *srq)
{
    if (srq->recvq.num_posted >= srq->limit)
        return;
    srq->limit = 0;
    mrd_event_raise(e, &srq->event);
}

static struct mrd_event_source *source_of(enum mrd_event_type type, void *object)
{
    struct mrd_qp_impl *qp = object;

    if (type == MRD_EVENT_SRQ_LIMIT_REACHED)
        return &((struct mrd_srq_impl *)object)->event;
    return type == MRD_EVENT_QP_REFUSED ? &qp->refused : &qp->event;
}

void mrd_engine_hand_event(const struct mrd_engine_event *event)
{
    if (event->object)
        source_of(event->type, event->object)->taken++;
}

void mrd_engine_ack_event(enum mrd_event_type type, void *object)
{
    struct mrd_event_source *source = source_of(type, object);

    source->taken -= source->taken > 0;
}

int mrd_engine_get_event(struct mrd_engine *e, struct mrd_engine_event *event)
{
    const struct mrd_event_source *source;
    struct mrd_node *n;

    if (e->events.head != e->events.tail) {
        *event = e->events.ring[e->events.head++ % MRD_EVENTS_MAX];
        return 0;
    }
    n = mrd_list_pop(&e->events.objects);
    if (!n)
        return -EAGAIN;
    source = mrd_container_of(n, struct mrd_event_source, node);
    *event = (struct mrd_engine_event){.type = source->type,
                                       .object = source->object,
                                       .peer_id = source->peer_id,
                                       .addr = source->addr};
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

static struct mrd_peer_attr counts_of(const struct mrd_peer_count *c)
{
    return (struct mrd_peer_attr){.packets_sent = c->packets_sent,
                                  .packets_retransmitted = c->packets_retransmitted,
                                  .packets_spurious = c->packets_spurious,
                                  .packets_received = c->packets_received,
                                  .bytes_sent = c->bytes_sent,
                                  .bytes_received = c->bytes_received,
                                  .lost_by_path_order = c->lost_by_order,
                                  .lost_by_rack = c->lost_by_rack,
                                  .probes_tail = c->probes_tail,
                                  .timeouts = c->timeouts};
}

int mrd_engine_query_peer(struct mrd_engine *e, const struct mrd_addr *addr,
                          struct mrd_peer_attr *attr)
{
    const struct mrd_peer *p = mrd_peer_find(&e->peers, addr);
    const struct mrd_idle_peer *idle = p ? NULL : mrd_peer_find_idle(&e->peers, addr);

    if (!p && !idle)
        return -ENOENT;
    *attr = counts_of(p ? &p->count : &idle->count);
    attr->peer_id = p ? p->id : idle->id;
    if (p && p->tx) {
        attr->paths = p->tx->paths.max;
        attr->srtt_ns = p->tx->loss.srtt_ns;
        attr->min_rtt_ns = mrd_loss_rtt_min_ns(&p->tx->loss);
        attr->cwnd_bytes = (uint64_t)p->tx->cc.cwnd_bytes;
        attr->inflight_bytes = p->tx->sent.inflight_bytes;
        attr->payload_bytes = p->tx->pmtu.payload;
    }
    return 0;
}

int mrd_engine_query_path(struct mrd_engine *e, const struct mrd_addr *addr, uint32_t index,
                          struct mrd_path_attr *attr)
{
    const struct mrd_peer *p = mrd_peer_find(&e->peers, addr);
    const struct mrd_path *path;

    if (!p || !p->tx || index >= p->tx->paths.max)
        return -ENOENT;
    *attr = (struct mrd_path_attr){.port = index, .state = MRD_PATH_GOOD};
    if (index >= p->tx->paths.num)
        return 0; /* not used yet */
    path = &p->tx->paths.path[index];
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
    const struct mrd_idle_peer *idle = p ? NULL : mrd_peer_idle_by_id(&e->peers, peer_id);

    if (!p && !idle)
        return -ENOENT;
    *addr = p ? p->addr : idle->addr;
    return 0;
}

const struct mrd_engine_config *mrd_engine_config(const struct mrd_engine *e)
{
    return &e->config;
}

const char *mrd_engine_spray_name(const struct mrd_engine *e)
{
    return e->spray->name;
}

const char *mrd_engine_cc_name(const struct mrd_engine *e)
{
    return e->cc->name;
}

enum mrd_check mrd_engine_check(const struct mrd_engine *e)
{
    return e->config.no_check ? MRD_CHECK_OFF : MRD_CHECK_ON;
}

int mrd_error_keep(struct mrd_engine *e, int error, const char *why)
{
    size_t n = strlen(why);

    if (n >= sizeof(e->objects.error))
        n = sizeof(e->objects.error) - 1;
    memcpy(e->objects.error, why, n);
    e->objects.error[n] = 0;
    return error;
}

const char *mrd_engine_error(const struct mrd_engine *e)
{
    return e->objects.error;
}

unsigned mrd_engine_objects(const struct mrd_engine *e)
{
    const struct mrd_objects *o = &e->objects;

    return o->num_pds + o->num_mrs + o->num_cqs + o->num_qps + o->num_ahs + o->num_channels +
           o->num_srqs;
}
