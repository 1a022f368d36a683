/* SPDX-License-Identifier: BSD-2-Clause */
/* Worlds: hosts, their contexts and what is opened on them. */
#include "tests/support/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/engine/state.h"
#include "transport/context.h"
#include "transport/movers/sim/sim_host.h"

#define ARENA_BYTES (4ull << 30) /* address space only; pages are allocated when touched */

enum { SETTLE_NS = 20 * 1000 * 1000, LINKS_OF_PATHS_MAX = 16, MAX_PEERS = 64 };

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct sim_options filled(const struct sim_options *options)
{
    struct sim_options o = *options;
    uint32_t links = o.paths < LINKS_OF_PATHS_MAX ? o.paths : LINKS_OF_PATHS_MAX;

    o.seed = o.seed ? o.seed : test_seed();
    o.hosts = o.topology ? o.topology->hosts : or_default(o.hosts, 2);
    o.links = or_default(o.links, or_default(links, 4));
    o.qps = or_default(o.qps, 1);
    /* The address sanitizer marks all memory that a context reserves for peers. */
    o.max_peers = or_default(o.max_peers, MAX_PEERS);
    o.rate_bps = o.rate_bps ? o.rate_bps : 100000000000;
    o.delay_ns = o.delay_ns ? o.delay_ns : 5000;
    o.queue_bytes = o.queue_bytes ? o.queue_bytes : 1 << 20;
    o.send_wr = or_default(o.send_wr, 256);
    o.recv_wr = or_default(o.recv_wr, 1024);
    o.cqe = or_default(o.cqe, 4096);
    o.recv_bytes = or_default(o.recv_bytes, 4 << 20);
    return o;
}

static struct mrd_sim *create_sim(const struct sim_options *o)
{
    struct mrd_sim *sim = mrd_sim_create(&(struct mrd_sim_attr){
        .seed = o->seed,
        .hosts = o->hosts,
        .links = o->topology ? 0 : o->links,
        .topology = o->topology,
        .wire_overhead = o->wire_overhead,
        .knows = o->knows,
        .ack_priority = o->ack_priority,
        .link = {.rate_bps = o->rate_bps,
                 .delay_ns = o->delay_ns,
                 .jitter_ns = o->jitter_ns,
                 .queue_bytes = o->queue_bytes,
                 .ecn_min_bytes = o->ecn_min_bytes,
                 .ecn_max_bytes = o->ecn_max_bytes,
                 .loss_ppm = o->loss_ppm,
                 .duplicate_ppm = o->duplicate_ppm,
                 .corrupt_ppm = o->corrupt_ppm},
        .tx_done_delay_ns = o->tx_done_delay_ns,
        .tx_burst_max = o->tx_burst_max,
        .clock_skew_ppm = o->skew_ppm,
    });

    assert_non_null(sim);
    if (o->straight) {
        mrd_sim_set_gro(sim, true);
        mrd_sim_set_rx_delay(sim, 2000);
    }
    mrd_sim_set_read_check(sim, true);
    return sim;
}

static void destroy_world(void *object)
{
    struct sim_world *w = object;

    mrd_sim_set_tap(w->sim, NULL, NULL);
    sim_world_destroy(object);
}

struct sim_world *sim_world_create(const struct sim_options *options)
{
    struct sim_world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->options = filled(options);
    assert_true(w->options.hosts <= SIM_HOSTS_MAX && w->options.qps <= SIM_QPS_MAX);
    w->sim = create_sim(&w->options);
    ledger_init(&w->ledger, w->options.seed);
    for (uint32_t host = 0; host < w->options.hosts; host++) {
        w->node[host].arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_true(w->node[host].arena != MAP_FAILED);
        sim_open(w, host);
    }
    kit_own(w, destroy_world);
    return w;
}

struct sim_world *sim_fabric_world(const struct sim_options *options)
{
    struct sim_options fabric = *options;

    fabric.knows = MRD_SIM_KNOWS_FABRIC;
    return sim_world_create(&fabric);
}

struct sim_world *sim_warm_world(const struct sim_options *options)
{
    struct sim_world *w = sim_fabric_world(options);

    sim_write(w, HOST_0, HOST_1, 64);
    sim_write_complete(w, HOST_1, HOST_0, 64, 1 * MSEC_NS);
    sim_run(w, 50 * USEC_NS);
    return w;
}

struct mrd_engine *sim_engine(const struct sim_world *w, uint32_t host)
{
    return mrd_context_engine(w->node[host].context);
}

struct mrd_peer *sim_peer(const struct sim_world *w, uint32_t host)
{
    return mrd_container_of(sim_engine(w, host)->peers.active.next, struct mrd_peer, node);
}

static void create_qps(struct sim_world *w, struct sim_node *node)
{
    const struct sim_options *o = &w->options;

    for (uint32_t i = 0; i < o->qps; i++) {
        struct mrd_qp_init_attr attr = {
            .comp_mask = o->rnr_limited ? MRD_QP_INIT_ATTR_RNR_RETRY : 0,
            .send_cq = node->cq,
            .recv_cq = node->cq,
            .cap = {.max_send_wr = o->send_wr,
                    .max_recv_wr = o->recv_wr,
                    .max_send_sge = o->send_sge,
                    .max_recv_sge = o->recv_sge,
                    .max_inline_data = MRD_INLINE_BYTES_MAX},
            .order = o->order,
            .qkey = 0x1000 + i,
            .rnr_retry = o->rnr_retry,
            .rnr_timer_ns = o->rnr_timer_ns,
        };

        node->qp[i] = mrd_create_qp(node->pd, &attr);
        assert_non_null(node->qp[i]);
    }
}

void sim_open(struct sim_world *w, uint32_t host)
{
    const struct sim_options *o = &w->options;
    struct sim_node *node = &w->node[host];
    int access = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ;

    assert_null(node->context);
    node->life++;
    node->context = mrd_open_device(
        mrd_sim_device(w->sim, host),
        &(struct mrd_context_attr){
            .comp_mask = MRD_CONTEXT_ATTR_SEED |
                         (o->no_challenge || o->challenge_ns ? MRD_CONTEXT_ATTR_CHALLENGE : 0u),
            .paths = o->paths,
            .mtu = o->mtu,
            .spray = o->spray,
            .cc = o->cc,
            .max_peers = o->max_peers,
            .max_flows = o->max_flows,
            .peer_timeout_ns = o->peer_timeout_ns,
            .check = o->unchecked ? MRD_CHECK_OFF : MRD_CHECK_ON,
            .challenge_ns = o->challenge_ns,
            .key_file = host == 1 && o->key_file_1 ? o->key_file_1 : o->key_file,
            .seed = o->seed + host + 1000ull * node->life,
        });
    test_check(o->seed, node->context, "open of host %u: %s", host, mrd_last_error());
    node->pd = mrd_alloc_pd(node->context);
    assert_non_null(node->pd);
    node->cq = mrd_create_cq(node->context, (int)o->cqe, NULL);
    assert_non_null(node->cq);
    node->mr = mrd_reg_mr(node->pd, node->arena, ARENA_BYTES, access);
    assert_non_null(node->mr);
    create_qps(w, node);
    for (uint32_t to = 0; to < o->hosts; to++) {
        char address[MRD_ADDRESS_MAX];

        snprintf(address, sizeof(address), "sim:%u", to);
        node->ah[to] = mrd_create_ah(node->pd, address);
        assert_non_null(node->ah[to]);
    }
}

static void destroy_qps(struct sim_world *w, uint32_t host)
{
    struct sim_node *node = &w->node[host];

    for (uint32_t i = 0; i < w->options.qps; i++) {
        if (node->qp[i])
            assert_int_equal(mrd_destroy_qp(node->qp[i]), 0);
        node->qp[i] = NULL;
    }
    ledger_abandon(&w->ledger, host, node->life, 0);
}

static void close_node(struct sim_world *w, uint32_t host)
{
    struct sim_node *node = &w->node[host];

    for (uint32_t to = 0; to < w->options.hosts; to++)
        assert_int_equal(mrd_destroy_ah(node->ah[to]), 0);
    assert_int_equal(mrd_dereg_mr(node->mr), 0);
    assert_int_equal(mrd_destroy_cq(node->cq), 0);
    assert_int_equal(mrd_dealloc_pd(node->pd), 0);
    assert_int_equal(mrd_close_device(node->context), 0);
    node->context = NULL;
}

void sim_close(struct sim_world *w, uint32_t host)
{
    sim_poll(w);
    destroy_qps(w, host);
    close_node(w, host);
}

void sim_restart(struct sim_world *w, uint32_t host)
{
    sim_close(w, host);
    sim_open(w, host);
}

void sim_restart_with(struct sim_world *w, uint32_t host, uint64_t peer_timeout_ns)
{
    w->options.peer_timeout_ns = peer_timeout_ns;
    sim_restart(w, host);
}

static void check_figures(struct sim_world *w, uint32_t host)
{
    struct mrd_sim_host_stats stats = mrd_sim_get_host_stats(w->sim, host);
    const char *wrong = mrd_engine_audit(sim_engine(w, host));

    test_check(w->options.seed, !wrong, "audit of host %u: %s", host, wrong);
    test_check(w->options.seed, stats.changed_early == 0,
               "host %u: %llu packets whose buffers changed while the device read them", host,
               (unsigned long long)stats.changed_early);
}

void sim_world_destroy(struct sim_world *w)
{
    kit_disown(w);
    sim_poll(w);
    for (uint32_t host = 0; host < w->options.hosts; host++) {
        mrd_sim_stop_host(w->sim, host, 0);
        if (w->node[host].context)
            destroy_qps(w, host);
    }
    mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + SETTLE_NS);
    for (uint32_t host = 0; host < w->options.hosts; host++) {
        if (w->node[host].context) {
            check_figures(w, host);
            close_node(w, host);
        }
        munmap(w->node[host].arena, ARENA_BYTES);
    }
    mrd_sim_destroy(w->sim);
    ledger_fini(&w->ledger);
    free(w->messages);
    free(w->receives);
    free(w);
}
