/* SPDX-License-Identifier: BSD-2-Clause */
/* The swarm's hosts: opens and destroys their contexts and objects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/engine/state.h"
#include "tests/support/swarm.h"
#include "transport/context.h"
#include "transport/movers/sim/sim_host.h"
#include "transport/sealing.h"

#define ARENA_BYTES (1ull << 30) /* address space only; pages are allocated when touched */

enum {
    MAX_SEND_SGE = 4,
    MAX_RECV_SGE = 3,
    INLINE_BYTES = 256,
    QKEY_BASE = 0x5000,
    AFTER_DEPTH = 64,   /* requests of the QP in SWARM_SLOT_AFTER */
    ENTRIES_LEAST = 32, /* items for the message that is next in order */
    RX_PACKETS_MIN = 8,
};

static void *map(void)
{
    void *memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

/* ------------------------------------------------------------------------------------------ QPs */

/* Shared receives count for a live QP of the host, if there is one. */
static void adopt_receives(struct swarm *s, uint32_t host)
{
    const struct swarm_host *h = &s->host[host];

    for (uint32_t i = 0; h->srq && i < s->num_receives; i++) {
        struct swarm_receive *r = &s->receive[i];

        if (!r->posted || r->host != host || !s->qp[r->qp].shared || s->qp[r->qp].qp)
            continue;
        for (uint32_t slot = 0; slot < SWARM_SLOTS_MAX; slot++) {
            if (h->qp[slot] == SWARM_NO_QP)
                continue;
            s->qp[r->qp].receives--;
            r->qp = (uint32_t)h->qp[slot];
            s->qp[r->qp].receives++;
            break;
        }
    }
}

void swarm_create_qp(struct swarm *s, uint32_t host, uint32_t slot)
{
    const struct swarm_config *c = &s->config;
    struct swarm_host *h = &s->host[host];

    h->qp[slot] = SWARM_NO_QP;
    if (s->num_qps == SWARM_QPS_MAX)
        return;

    static const char *const order[] = {"", ", ordered", ", ordered to the last bytes"};
    bool is_after = slot == SWARM_SLOT_AFTER;
    struct swarm_qp *qp = &s->qp[s->num_qps];
    struct mrd_qp_init_attr attr = {
        .comp_mask = c->rnr_limited && !is_after ? MRD_QP_INIT_ATTR_RNR_RETRY : 0,
        .send_cq = h->send_cq,
        .recv_cq = h->recv_cq,
        .cap = {.max_send_wr = is_after ? AFTER_DEPTH : c->send_depth,
                .max_recv_wr = is_after ? AFTER_DEPTH : c->recv_depth,
                .max_send_sge = MAX_SEND_SGE,
                .max_recv_sge = MAX_RECV_SGE,
                .max_inline_data = INLINE_BYTES},
        .order = swarm_chance(s, is_after ? 0 : c->ordered) ? MRD_ORDER_MSG : MRD_ORDER_NONE,
        .qkey = QKEY_BASE + s->num_qps,
        .rnr_retry = c->rnr_limited ? swarm_below(s, 6) : 0,
    };

    if (attr.order != MRD_ORDER_NONE && swarm_chance(s, 500))
        attr.order = MRD_ORDER_DATA;
    if (!c->rnr_limited && !is_after && c->profile != SWARM_CLOSING && swarm_chance(s, 250)) {
        attr.comp_mask |= MRD_QP_INIT_ATTR_STATE;
        attr.qp_state = MRD_QPS_INIT;
    }
    attr.max_rd_atomic = s->config.max_rd_atomic;
    attr.srq = is_after ? NULL : h->srq;
    *qp = (struct swarm_qp){.host = host,
                            .life = h->life,
                            .slot = slot,
                            .qkey = attr.qkey,
                            .order = attr.order,
                            .depth = attr.cap.max_recv_wr,
                            .shared = attr.srq,
                            .memory_gone = attr.srq && h->shared_memory_gone};
    qp->qp = mrd_create_qp(h->pd, &attr);
    swarm_check(s, qp->qp, "create_qp: %s", mrd_last_error());
    qp->num = qp->qp->qp_num;
    for (uint32_t i = 0; i < s->num_qps; i++)
        swarm_check(s, s->qp[i].host != host || s->qp[i].life != h->life || s->qp[i].num != qp->num,
                    "QP number %u was used before", qp->num);
    swarm_tell(s, "QP %u of host %u is created%s", s->num_qps, host, order[qp->order]);
    h->qp[slot] = (int)s->num_qps++;
    adopt_receives(s, host);
}

void swarm_free_source(struct swarm *s, struct swarm_message *m, bool by_completion)
{
    if (!m->source)
        return;

    /* A simulated device cannot stop reading before it is done. */
    bool is_read = !by_completion && s->config.sim.tx_done_delay_ns > 0;

    if (!is_read)
        memset(m->source, SWARM_TAKEN, m->len); /* later copies of the packets must not matter */
    if (m->mr)
        swarm_check(s, mrd_dereg_mr(m->mr) == 0, "dereg_mr: %s", mrd_last_error());
    m->mr = NULL;
    if (s->config.own_buffers) {
        if (is_read)
            s->deferred[s->num_deferred++] = m->source;
        else
            free(m->source);
    }
    m->source = NULL;
}

/* Frees the sources of sends that end without completions: those of a QP, or of a life (qp -1). */
static void abandon_sends(struct swarm *s, uint32_t host, int qp)
{
    for (uint32_t i = 0; i < s->num_messages; i++) {
        struct swarm_message *m = &s->message[i];

        if (s->qp[m->from_qp].host == host && (qp < 0 || m->from_qp == (uint32_t)qp) &&
            s->qp[m->from_qp].life == s->host[host].life)
            swarm_free_source(s, m, false);
    }
}

static void take_back(struct swarm *s, uint32_t receive)
{
    struct swarm_receive *r = &s->receive[receive];

    r->posted = r->taken = false;
    r->used_len = s->config.recv_bytes;
    memset(r->buf, SWARM_USED, r->used_len);
    s->host[r->host].unposted[s->host[r->host].num_unposted++] = receive;
}

/* Takes back the receive buffers of a destroyed QP: nothing may be written into them any more. */
static void abandon_receives(struct swarm *s, uint32_t qp)
{
    for (uint32_t i = 0; i < s->num_receives; i++) {
        struct swarm_receive *r = &s->receive[i];

        if (!r->posted || r->qp != qp || s->qp[qp].shared)
            continue;
        take_back(s, i);
    }
}

void swarm_destroy_qp(struct swarm *s, uint32_t index)
{
    struct swarm_qp *qp = &s->qp[index];

    swarm_tell(s, "QP %u of host %u is destroyed", index, qp->host);
    swarm_check_arrived(s, index);
    swarm_check(s, mrd_destroy_qp(qp->qp) == 0, "destroy_qp: %s", mrd_last_error());
    /* Completions of work that ended while the call waited for the device. */
    swarm_poll_host(s, qp->host);
    ledger_abandon(&s->ledger, qp->host, qp->life, qp->num);
    qp->qp = NULL;
    s->host[qp->host].qp[qp->slot] = SWARM_NO_QP;
    s->host[qp->host].shared_returned |= qp->shared;
    abandon_sends(s, qp->host, (int)index);
    abandon_receives(s, index);
    adopt_receives(s, qp->host);
}

/* ---------------------------------------------------------------------------------------- hosts */

static struct mrd_context *open_context(struct swarm *s, uint32_t host)
{
    const struct swarm_host_config *c = &s->config.host[host];
    struct mrd_context_attr attr = {
        .comp_mask =
            MRD_CONTEXT_ATTR_SEED | (c->challenge ? 0u : (unsigned)MRD_CONTEXT_ATTR_CHALLENGE),
        .challenge_ns = c->challenge ? c->challenge_ns : 0,
        .paths = c->paths,
        .mtu = s->config.mtu,
        .spray = c->spray,
        .cc = c->cc,
        .max_peers = c->max_peers,
        .max_flows = c->max_flows,
        .peer_timeout_ns = c->peer_timeout_ns,
        .check = c->unchecked >> s->host[host].life % 8 & 1 ? MRD_CHECK_OFF : MRD_CHECK_ON,
        .key_file = swarm_key_file(s),
        .seed = s->seed * 1000 + host * 100 + s->host[host].life,
    };

    return mrd_open_device(mrd_sim_device(s->sim, host), &attr);
}

struct mrd_pool *swarm_pool(struct swarm *s, uint32_t host, enum swarm_pool which)
{
    struct mrd_engine *e = mrd_context_engine(s->host[host].context);
    struct mrd_pool *pools[SWARM_POOLS] = {
        [SWARM_POOL_REFUSALS] = &e->refusals,     [SWARM_POOL_SLOTS] = &e->peers.slots,
        [SWARM_POOL_PENDS] = &e->reorder_entries, [SWARM_POOL_PAGES] = &e->peers.pages,
        [SWARM_POOL_RESPONSES] = &e->responses,
    };

    return pools[which];
}

/* Shrinks shared pools, as if more peers held the rest. Each keeps a page, and one for refusals. */
static void shrink_pools(struct swarm *s, uint32_t host)
{
    uint32_t least[SWARM_POOLS] = {
        [SWARM_POOL_PAGES] =
            2 * mrd_context_engine(s->host[host].context)->peers.max + s->config.sim.hosts,
        [SWARM_POOL_PENDS] = ENTRIES_LEAST,
    };

    for (unsigned which = 0; which < SWARM_POOLS; which++) {
        struct mrd_pool *pool = swarm_pool(s, host, which);

        if (s->config.pool[which] > 0 && least[which] + s->config.pool[which] < pool->num)
            pool->num = least[which] + s->config.pool[which];
    }
    memset(s->view[host], 0, sizeof(s->view[host]));
    s->host[host].refused = 0;
}

/* Shrinks what the mover reports, as if it had room for fewer packets. */
static void shrink_mover(struct swarm *s, uint32_t host)
{
    struct mrd_engine *e = mrd_context_engine(s->host[host].context);
    struct mrd_mover *mover = &e->config.mover;

    if (s->config.tracker > 0)
        mover->tracker = s->config.tracker;
    mover->payload_base =
        mrd_sealing_payload(mrd_context_impl(s->host[host].context), s->config.payload_base);
    mover->probes = s->config.payload_base && !s->config.payload_sure;
    mover->rx_buffer_bytes = s->config.rx_buffer_bytes;
    mrd_share_init(&e->share, mover->rx_buffer_bytes, mover->payload_usual,
                   mover->rx_packet_overhead, mover->tracker / 2, e->clock.now_ns);
}

static void open_windows(struct swarm *s, struct swarm_host *h)
{
    for (uint32_t i = 0; i < SWARM_WINDOWS; i++) {
        struct swarm_window *window = &h->window[i];

        window->mr = mrd_reg_mr(h->pd, window->memory, ARENA_BYTES,
                                MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
        swarm_check(s, window->mr, "reg_mr: %s", mrd_last_error());
        window->rkey = window->mr->rkey;
    }
}

void swarm_open_host(struct swarm *s, uint32_t host)
{
    const struct swarm_config *c = &s->config;
    struct swarm_host *h = &s->host[host];

    h->life++;
    swarm_tell(s, "host %u opens, life %u", host, h->life);
    h->context = open_context(s, host);
    swarm_check(s, h->context, "open of host %u: %s", host, mrd_last_error());
    shrink_pools(s, host);
    shrink_mover(s, host);
    h->pd = mrd_alloc_pd(h->context);
    h->send_cq = mrd_create_cq(h->context, (int)c->send_cqe, NULL);
    h->recv_cq = mrd_create_cq(h->context, (int)(c->recv_cqe + AFTER_DEPTH), NULL);
    h->srq = NULL;
    h->shared_posted = 0;
    h->shared_memory_gone = h->shared_returned = false;
    if (c->shared)
        h->srq = mrd_create_srq(
            h->pd, &(struct mrd_srq_init_attr){
                       .attr = {.max_wr = c->recv_depth * c->slots, .max_sge = MAX_RECV_SGE}});
    h->source_mr = mrd_reg_mr(h->pd, h->source, ARENA_BYTES, MRD_ACCESS_LOCAL_WRITE);
    h->recv_mr = mrd_reg_mr(h->pd, h->recv, ARENA_BYTES, MRD_ACCESS_LOCAL_WRITE);
    swarm_check(s,
                h->pd && h->send_cq && h->recv_cq && h->source_mr && h->recv_mr &&
                    (h->srq || !c->shared),
                "open: %s", mrd_last_error());
    open_windows(s, h);
    swarm_open_store(s, h);
    for (uint32_t to = 0; to < c->sim.hosts; to++) {
        char address[MRD_ADDRESS_MAX];

        swarm_address_of(s, to, address, sizeof(address));
        h->ah[to] = mrd_create_ah(h->pd, address);
        swarm_check(s, h->ah[to], "create_ah: %s", mrd_last_error());
    }
    for (uint32_t slot = 0; slot <= SWARM_SLOT_AFTER; slot++)
        h->qp[slot] = SWARM_NO_QP;
    for (uint32_t slot = 0; slot < c->slots; slot++)
        swarm_create_qp(s, host, slot);
}

static void destroy_qps(struct swarm *s, uint32_t host)
{
    for (uint32_t slot = 0; slot <= SWARM_SLOT_AFTER; slot++) {
        if (s->host[host].qp[slot] != SWARM_NO_QP)
            swarm_destroy_qp(s, (uint32_t)s->host[host].qp[slot]);
    }
}

/* The buffers are the application's again. */
static void close_srq(struct swarm *s, uint32_t host)
{
    struct swarm_host *h = &s->host[host];

    if (!h->srq)
        return;
    swarm_check(s, mrd_destroy_srq(h->srq) == 0, "destroy_srq: %s", mrd_last_error());
    h->srq = NULL;
    for (uint32_t i = 0; i < s->num_receives; i++) {
        struct swarm_receive *r = &s->receive[i];

        if (r->posted && r->host == host && s->qp[r->qp].shared)
            take_back(s, i);
    }
    ledger_abandon(&s->ledger, host, h->life, 0);
}

/* Packets that the host kept: their source was not there. */
static uint64_t kept(const struct swarm *s, uint32_t host)
{
    struct mrd_sim_host_stats stats = mrd_sim_get_host_stats(s->sim, host);

    return stats.no_source + stats.failed_source;
}

static void close_context(struct swarm *s, uint32_t host)
{
    struct swarm_host *h = &s->host[host];

    abandon_sends(s, host, SWARM_NO_QP);
    close_srq(s, host);
    for (uint32_t to = 0; to < s->config.sim.hosts; to++)
        assert_int_equal(mrd_destroy_ah(h->ah[to]), 0);
    for (uint32_t i = 0; i < SWARM_WINDOWS; i++) {
        if (h->window[i].mr)
            assert_int_equal(mrd_dereg_mr(h->window[i].mr), 0);
        h->window[i].mr = NULL;
    }
    swarm_close_store(h);
    assert_int_equal(mrd_dereg_mr(h->source_mr), 0);
    assert_int_equal(mrd_dereg_mr(h->recv_mr), 0);
    assert_int_equal(mrd_destroy_cq(h->send_cq), 0);
    assert_int_equal(mrd_destroy_cq(h->recv_cq), 0);
    assert_int_equal(mrd_dealloc_pd(h->pd), 0);
    uint64_t kept_before = kept(s, host);
    swarm_check(s, mrd_close_device(h->context) == 0, "close_device: %s", mrd_last_error());
    h->context = NULL;
    swarm_judge_closed(s, host, kept(s, host) - kept_before);
}

void swarm_close_host(struct swarm *s, uint32_t host)
{
    swarm_poll_host(s, host);
    destroy_qps(s, host);
    close_context(s, host);
}

/* ---------------------------------------------------------------------------------------- world */

void swarm_open_world(struct swarm *s)
{
    const struct swarm_config *c = &s->config;

    s->sim = mrd_sim_create(&c->sim);
    assert_non_null(s->sim);
    swarm_open_networks(s);
    if (c->unequal_delays)
        swarm_draw_delays(s);
    mrd_sim_set_tap(s->sim, swarm_judge_packet, s);
    mrd_sim_set_turn_hook(s->sim, swarm_judge_turn, s);
    mrd_sim_set_read_check(s->sim, true);
    if (c->straight)
        mrd_sim_set_gro(s->sim, true);
    if (c->straight || c->rx_buffer_bytes)
        mrd_sim_set_rx_delay(s->sim, 500 + swarm_below(s, 10000));
    /* Small packets cost less than what the contexts reckon with. */
    if (c->rx_buffer_bytes)
        mrd_sim_set_rx_packets_max(s->sim, RX_PACKETS_MIN + c->rx_buffer_bytes / 1024);
    for (uint32_t host = 0; host < c->sim.hosts; host++) {
        struct swarm_host *h = &s->host[host];

        /* Clocks of machines differ by any amount; some will soon wrap 32 bits of microseconds. */
        mrd_sim_set_clock_offset(s->sim, host,
                                 swarm_chance(s, 500)
                                     ? (1ull << 32) * USEC_NS - swarm_below(s, 1 << 20)
                                     : mrd_rng_u64(&s->rng) >> 10);
        h->unposted = calloc(SWARM_RECEIVES_MAX, sizeof(*h->unposted));
        assert_non_null(h->unposted);
        if (c->late_ns > 0 && swarm_chance(s, 700))
            h->late_until_ns = swarm_below(s, (uint32_t)c->late_ns);
        h->source = map();
        h->recv = map();
        for (uint32_t i = 0; i < SWARM_WINDOWS; i++)
            h->window[i].memory = map();
        h->store = map();
        swarm_fill_store(s, host);
        swarm_open_host(s, host);
    }
}

static void audit(struct swarm *s, uint32_t host)
{
    const char *wrong = mrd_engine_audit(mrd_context_engine(s->host[host].context));
    struct mrd_sim_host_stats stats = mrd_sim_get_host_stats(s->sim, host);

    swarm_check(s, !wrong, "audit of host %u: %s", host, wrong);
    swarm_check(s, stats.changed_early == 0,
                "host %u: %u packets whose buffers changed while the device read them", host,
                (unsigned)stats.changed_early);
}

void swarm_close_world(struct swarm *s)
{
    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        destroy_qps(s, host);
    mrd_sim_run_until(s->sim, mrd_sim_now(s->sim) + 50 * MSEC_NS);
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        audit(s, host);
        close_context(s, host);
    }
    swarm_close_networks(s);
    mrd_sim_destroy(s->sim);
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        free(s->host[host].unposted);
        munmap(s->host[host].source, ARENA_BYTES);
        munmap(s->host[host].recv, ARENA_BYTES);
        munmap(s->host[host].store, ARENA_BYTES);
        for (uint32_t i = 0; i < SWARM_WINDOWS; i++)
            munmap(s->host[host].window[i].memory, ARENA_BYTES);
    }
    for (uint32_t i = 0; i < s->num_deferred; i++)
        free(s->deferred[i]);
    ledger_fini(&s->ledger);
}
