/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine is made and destroyed. All memory but that of objects is taken here. */
#include <errno.h>

#include "core/engine/state.h"

enum {
    ENTRIES_PER_FLOW = 4,
    ENTRIES_SHARED = 4096,
    REFUSALS = 8192,
    REQUESTS = 4096, /* buckets of our own */
    QPS_MIN = 1024,  /* buckets of queue pairs, at least */
};

static bool make_pools(struct mrd_engine *e)
{
    const struct mrd_engine_config *c = &e->config;
    const struct mrd_allocator *a = &e->allocator;
    uint32_t flows = c->max_flows, entries = ENTRIES_PER_FLOW * flows + ENTRIES_SHARED;

    if (c->sealed && !(e->sealed_lives = mrd_alloc(a, c->max_peers * sizeof(uint64_t))))
        return false;
    return mrd_peers_init(&e->peers, a, c->max_peers, c->paths, c->mover.tracker,
                          e->spray->caches) &&
           mrd_table_init(&e->txqs, a, sizeof(struct mrd_txq), flows, flows) &&
           mrd_table_init(&e->rnr_waiters, a, sizeof(struct mrd_rnr_waiter), flows, flows) &&
           mrd_table_init(&e->flows_tx, a, sizeof(struct mrd_flow_tx), flows, flows) &&
           mrd_table_init(&e->flows_rx, a, sizeof(struct mrd_flow_rx), 3 * flows, flows) &&
           mrd_pool_init(&e->reorder_entries, a, sizeof(struct mrd_reorder_entry), entries) &&
           mrd_pool_init(&e->refusals, a, sizeof(struct mrd_refusal), REFUSALS) &&
           mrd_pool_init(&e->responses, a, sizeof(struct mrd_response), MRD_RESPONSES) &&
           mrd_hash_init(&e->requests.by_token, a, REQUESTS) && mrd_mrs_init(&e->objects.mrs, a) &&
           mrd_hash_init(&e->objects.qps, a, flows > QPS_MIN ? flows : QPS_MIN) &&
           (e->timers.heap.timer = mrd_alloc(a, c->max_peers * sizeof(*e->timers.heap.timer)));
}

static int check_config(const struct mrd_engine_config *c)
{
    const struct mrd_mover *m = &c->mover;

    if (!mrd_spray_find(c->spray) || !mrd_cc_find(c->cc))
        return -EINVAL;
    if (!c->paths || c->paths > MRD_PATHS_MAX || c->paths > m->paths || !c->max_peers ||
        c->max_peers > MRD_PEERS_MAX || !c->max_flows || c->max_flows > MRD_FLOWS_MAX ||
        !c->incarnation)
        return -EINVAL;
    if (m->tracker < MRD_TRACKER_MIN || m->tracker > MRD_TRACKER_MAX ||
        m->tracker & (m->tracker - 1))
        return -EINVAL;
    if (!m->payload_bytes || m->payload_bytes > MRD_PAYLOAD_BYTES_MAX ||
        m->payload_usual > m->payload_bytes || m->payload_base > m->payload_bytes ||
        (m->payload_base && !m->copies) || (m->probes && !m->payload_base) || !m->quantum ||
        !m->ack_every)
        return -EINVAL;
    return 0;
}

struct mrd_engine *mrd_engine_create(const struct mrd_engine_config *config,
                                     const struct mrd_allocator *allocator, uint64_t now_ns,
                                     int *error)
{
    const struct mrd_mover *m = &config->mover;
    struct mrd_engine *e;

    *error = check_config(config);
    if (*error)
        return NULL;
    e = mrd_alloc(allocator, sizeof(*e));
    *error = -ENOMEM;
    if (!e)
        return NULL;
    e->allocator = *allocator;
    e->config = *config;
    if (!config->mover.payload_usual)
        e->config.mover.payload_usual = m->payload_bytes;
    if (!config->mover.tune)
        e->config.mover.tune = &mrd_tune_default;
    e->spray = mrd_spray_find(config->spray);
    e->cc = mrd_cc_find(config->cc);
    e->config.spray = e->spray->name;
    e->config.cc = e->cc->name;
    mrd_rng_init(&e->rng, config->seed);
    e->secret = (struct mrd_secret){.key = {config->key[0], config->key[1]}};
    e->requests.token_next = (uint32_t)mrd_secret_draw(&e->secret);
    e->lives.epoch_next = 1;
    for (unsigned i = 0; i < 2; i++) {
        e->answers.credit_ns[i] = MRD_NEVER / 2; /* as many as may be saved up */
        e->answers.counted_ns[i] = now_ns;
    }
    e->objects.qpn_next = MRD_QPN_FIRST;
    mrd_clock_init(&e->clock, now_ns);
    mrd_share_init(&e->share, m->rx_buffer_bytes,
                   m->probes ? m->payload_base : e->config.mover.payload_usual,
                   m->rx_packet_overhead, m->tracker / 2, now_ns);
    mrd_list_init(&e->turns.suspects);
    mrd_list_init(&e->turns.responses);
    mrd_list_init(&e->turns.news.channels);
    mrd_list_init(&e->objects.qp_list);
    mrd_list_init(&e->events.objects);
    mrd_list_init(&e->turns.ready);
    mrd_list_init(&e->timers.touched);
    if (!make_pools(e)) {
        mrd_engine_destroy(e);
        return NULL;
    }
    *error = 0;
    return e;
}

void mrd_engine_destroy(struct mrd_engine *e)
{
    const struct mrd_allocator a = e->allocator;

    mrd_frags_fini(&e->frags, &a);
    /* Queue pairs that the user destroyed and that still waited for their peers. */
    for (struct mrd_node *n; (n = mrd_list_pop(&e->objects.qp_list));) {
        struct mrd_qp_impl *qp = mrd_container_of(n, struct mrd_qp_impl, node);

        mrd_free(&a, qp, qp->bytes);
    }
    if (e->timers.heap.timer)
        mrd_free(&a, e->timers.heap.timer, e->config.max_peers * sizeof(*e->timers.heap.timer));
    mrd_hash_fini(&e->objects.qps, &a);
    if (e->objects.mrs.allocator)
        mrd_mrs_fini(&e->objects.mrs);
    mrd_hash_fini(&e->requests.by_token, &a);
    mrd_pool_fini(&e->responses);
    mrd_pool_fini(&e->refusals);
    mrd_pool_fini(&e->reorder_entries);
    mrd_table_fini(&e->flows_rx, &a);
    mrd_table_fini(&e->flows_tx, &a);
    mrd_table_fini(&e->rnr_waiters, &a);
    mrd_table_fini(&e->txqs, &a);
    mrd_peers_fini(&e->peers);
    if (e->sealed_lives)
        mrd_free(&a, e->sealed_lives, e->config.max_peers * sizeof(uint64_t));
    if (e->plan.moved)
        mrd_free(&a, e->plan.moved, e->plan.moved_size);
    mrd_free(&a, e, sizeof(*e));
}
