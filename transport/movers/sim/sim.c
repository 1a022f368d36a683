/* SPDX-License-Identifier: BSD-2-Clause */
/* The control calls of mrd/sim.h but mrd_sim_run_until(). */
#include "mrd/sim.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "transport/movers/sim/sim_fault.h"
#include "transport/movers/sim/sim_host.h"
#include "transport/movers/sim/sim_run.h"
#include "transport/movers/sim/sim_world.h"
#include "transport/sized.h"

enum {
    HOSTS_DEFAULT = 2,
    HOSTS_MAX = 256, /* the links grow with its square; a topology may have more */
    LINKS_DEFAULT = 4,
    LINKS_MAX = 1024,
    PATHS_DEFAULT = 64,
    PATHS_MAX = 65535, /* a path number has 16 bits */
    SKEW_PPM_MAX = 100000,
    LOSS_PPB_MAX = 1000000000,
};

static const struct mrd_sim_link link_default = {
    .rate_bps = 100000000000, .delay_ns = 5000, .queue_bytes = 1 << 20};

/* --------------------------------------------------------------------------------------- create */

static int fill_attr(struct mrd_sim_attr *attr)
{
    static const struct mrd_sim_link unset;

    if (attr->topology && (attr->links || (attr->hosts && attr->hosts != attr->topology->hosts)))
        return -EINVAL;
    if (attr->topology)
        attr->hosts = attr->topology->hosts;
    attr->hosts = attr->hosts ? attr->hosts : HOSTS_DEFAULT;
    attr->links = attr->links ? attr->links : LINKS_DEFAULT;
    attr->paths = attr->paths ? attr->paths : PATHS_DEFAULT;
    if (memcmp(&attr->link, &unset, sizeof(unset)) == 0)
        attr->link = link_default;
    if (attr->comp_mask != 0 || (!attr->topology && attr->hosts > HOSTS_MAX) ||
        attr->links > LINKS_MAX || attr->paths > PATHS_MAX || attr->clock_skew_ppm > SKEW_PPM_MAX ||
        attr->wire_overhead > MRD_SIM_WIRE_HTSIM || attr->loss_ppb > LOSS_PPB_MAX || attr->reserved)
        return -EINVAL;
    return mrd_sim_link_validate(&attr->link);
}

static int no_memory(void)
{
    mrd_error_set("simulation: no memory");
    return -ENOMEM;
}

static int init_hosts(struct mrd_sim *sim, struct mrd_rng *rng)
{
    uint32_t spread_ppb = sim->attr.clock_skew_ppm * 2000 + 1;

    sim->hosts = calloc(sim->attr.hosts, sizeof(*sim->hosts));
    if (!sim->hosts)
        return -ENOMEM;
    for (uint32_t i = 0; i < sim->attr.hosts; i++) {
        int64_t skew_ppb = (int64_t)mrd_rng_below(rng, spread_ppb) - (int64_t)(spread_ppb / 2);

        mrd_sim_host_init(&sim->hosts[i], sim, i, skew_ppb);
    }
    return 0;
}

struct mrd_sim *mrd_sim_create_sized(const struct mrd_sim_attr *attr, size_t size)
{
    struct mrd_sim_attr filled = {0};
    struct mrd_rng rng;

    if (attr && mrd_sized_read(&mrd_sized_sim_attr, &filled, attr, size) != 0) {
        errno = EINVAL;
        return NULL;
    }
    if (size < offsetof(struct mrd_sim_attr, knows) + sizeof(filled.knows))
        filled.knows = MRD_SIM_KNOWS_FABRIC; /* as it was before callers could say */
    if (filled.knows > MRD_SIM_KNOWS_FABRIC) {
        mrd_error_set("simulation: knows %u is none of enum mrd_sim_knows", filled.knows);
        errno = EINVAL;
        return NULL;
    }
    if (fill_attr(&filled) != 0) {
        mrd_error_set("simulation: an attribute is out of range");
        errno = EINVAL;
        return NULL;
    }

    struct mrd_sim *sim = calloc(1, sizeof(*sim));
    int ret = -ENOMEM;

    if (!sim)
        goto fail;
    sim->attr = filled;
    sim->options.quantum = 1;
    mrd_rng_init(&rng, filled.seed);
    ret = mrd_sim_fabric_init(&sim->fabric, &filled, mrd_rng_u64(&rng));
    if (ret != 0)
        goto free_sim;
    sim->attr.topology = NULL; /* was borrowed: the fabric has a copy */
    ret = init_hosts(sim, &rng);
    if (ret == 0)
        ret = mrd_sim_run_init(sim);
    if (ret == 0)
        return sim;
    free(sim->hosts);
    mrd_sim_fabric_fini(&sim->fabric);
free_sim:
    free(sim);
fail:
    if (ret == -ENOMEM)
        (void)no_memory();
    errno = -ret;
    return NULL;
}

struct mrd_sim *(mrd_sim_create)(const struct mrd_sim_attr *attr)
{
    return mrd_sim_create_sized(attr, mrd_sized_sim_attr.first_bytes);
}

void mrd_sim_destroy(struct mrd_sim *sim)
{
    if (!sim)
        return;
    for (uint32_t i = 0; i < sim->attr.hosts; i++)
        mrd_sim_host_fini(&sim->hosts[i]);
    free(sim->hosts);
    mrd_sim_faults_fini(sim);
    mrd_sim_fabric_fini(&sim->fabric);
    mrd_sim_run_fini(sim);
    free(sim);
}

const struct mrd_device *mrd_sim_device(struct mrd_sim *sim, uint32_t host)
{
    return host < sim->attr.hosts ? &sim->hosts[host].device : NULL;
}

/* ----------------------------------------------------------------------------------------- time */

uint64_t mrd_sim_now(const struct mrd_sim *sim)
{
    return mrd_sim_time(sim);
}

/* ---------------------------------------------------------------------------------------- links */

/* The range [*first, *end) that `value` stands for: one number, or all for -1. 0 or -EINVAL. */
static int range_of(int value, uint32_t num, uint32_t *first, uint32_t *end)
{
    if (value < -1 || (value >= 0 && (uint32_t)value >= num))
        return -EINVAL;
    *first = value < 0 ? 0 : (uint32_t)value;
    *end = value < 0 ? num : (uint32_t)value + 1;
    return 0;
}

/* The links that three arguments name: ranges of senders, receivers and parallel links. */
struct link_box {
    uint32_t from, from_end, to, to_end, link, link_end;
};

static int box_of(const struct mrd_sim *sim, int from, int to, int link, struct link_box *box)
{
    if (sim->fabric.tree || range_of(from, sim->attr.hosts, &box->from, &box->from_end) != 0 ||
        range_of(to, sim->attr.hosts, &box->to, &box->to_end) != 0 ||
        range_of(link, sim->attr.links, &box->link, &box->link_end) != 0)
        return -EINVAL;
    return 0;
}

typedef void wire_fn(struct mrd_sim *sim, uint32_t wire, void *arg);

static void for_each_wire(struct mrd_sim *sim, const struct link_box *box, wire_fn *fn, void *arg)
{
    uint32_t hosts = sim->attr.hosts, links = sim->attr.links;

    for (uint32_t from = box->from; from < box->from_end; from++) {
        for (uint32_t to = box->to; to < box->to_end; to++) {
            for (uint32_t link = box->link; link < box->link_end; link++)
                fn(sim, (from * hosts + to) * links + link, arg);
        }
    }
}

static void set_attr(struct mrd_sim *sim, uint32_t wire, void *arg)
{
    mrd_sim_fabric_set(&sim->fabric, wire, arg, mrd_sim_time(sim));
}

int mrd_sim_set_link(struct mrd_sim *sim, int from, int to, int link,
                     const struct mrd_sim_link *attr)
{
    struct mrd_sim_link copy = *attr;
    struct link_box box;

    if (mrd_sim_link_validate(&copy) != 0 || box_of(sim, from, to, link, &box) != 0)
        return -EINVAL;
    for_each_wire(sim, &box, set_attr, &copy);
    return 0;
}

int mrd_sim_get_link(const struct mrd_sim *sim, int from, int to, int link,
                     struct mrd_sim_link *attr)
{
    struct link_box box;

    if (box_of(sim, from, to, link, &box) != 0)
        return -EINVAL;
    *attr = mrd_sim_fabric_wire(&sim->fabric, box.from, box.to, box.link)->attr;
    return 0;
}

static void add_stats(struct mrd_sim *sim, uint32_t wire, void *arg)
{
    const struct mrd_sim_stats *stats = &sim->fabric.wires[wire].stats;
    struct mrd_sim_stats *sum = arg;

    sum->packets += stats->packets;
    sum->lost += stats->lost;
    sum->queue_drops += stats->queue_drops;
    sum->duplicated += stats->duplicated;
    sum->corrupted += stats->corrupted;
    sum->blackholed += stats->blackholed;
    sum->ce += stats->ce;
    sum->bytes += stats->bytes;
}

int mrd_sim_link_stats_sized(const struct mrd_sim *sim, int from, int to, int link,
                             struct mrd_sim_stats *stats, size_t size)
{
    struct mrd_sim_stats sum = {0};
    struct link_box box;

    if (mrd_sized_check(&mrd_sized_sim_stats, size) != 0 || box_of(sim, from, to, link, &box) != 0)
        return -EINVAL;
    for_each_wire((struct mrd_sim *)(uintptr_t)sim, &box, add_stats, &sum);
    mrd_sized_write(&mrd_sized_sim_stats, stats, size, &sum);
    return 0;
}

int(mrd_sim_link_stats)(const struct mrd_sim *sim, int from, int to, int link,
                        struct mrd_sim_stats *stats)
{
    return mrd_sim_link_stats_sized(sim, from, to, link, stats, mrd_sized_sim_stats.first_bytes);
}

uint64_t mrd_sim_lost(const struct mrd_sim *sim)
{
    uint64_t lost = 0;

    for (uint32_t i = 0; i < sim->num_parts; i++)
        lost += sim->parts[i].lost;
    return lost;
}

uint32_t mrd_sim_num_links(const struct mrd_sim *sim)
{
    return sim->fabric.num_wires;
}

int mrd_sim_link_name(const struct mrd_sim *sim, uint32_t link, char *name, size_t len)
{
    return link < sim->fabric.num_wires ? mrd_sim_fabric_name(&sim->fabric, link, name, len)
                                        : -EINVAL;
}

int mrd_sim_query_link_sized(const struct mrd_sim *sim, uint32_t link, struct mrd_sim_link *attr,
                             struct mrd_sim_stats *stats, size_t size)
{
    if (mrd_sized_check(&mrd_sized_sim_stats, size) != 0 || link >= sim->fabric.num_wires)
        return -EINVAL;
    if (attr)
        *attr = sim->fabric.wires[link].attr;
    if (stats)
        mrd_sized_write(&mrd_sized_sim_stats, stats, size, &sim->fabric.wires[link].stats);
    return 0;
}

int(mrd_sim_query_link)(const struct mrd_sim *sim, uint32_t link, struct mrd_sim_link *attr,
                        struct mrd_sim_stats *stats)
{
    return mrd_sim_query_link_sized(sim, link, attr, stats, mrd_sized_sim_stats.first_bytes);
}

int mrd_sim_set_loss_mask(struct mrd_sim *sim, int from, int to, uint64_t mask)
{
    struct link_box box;

    if (box_of(sim, from, to, -1, &box) != 0)
        return -EINVAL;
    if (!sim->fabric.loss_masks)
        sim->fabric.loss_masks =
            calloc((size_t)sim->attr.hosts * sim->attr.hosts, sizeof(*sim->fabric.loss_masks));
    if (!sim->fabric.loss_masks)
        return no_memory();
    for (uint32_t i = box.from; i < box.from_end; i++) {
        for (uint32_t j = box.to; j < box.to_end; j++)
            sim->fabric.loss_masks[(size_t)i * sim->attr.hosts + j] = mask;
    }
    return 0;
}

/* ------------------------------------------------------------------------------- hosts, packets */

void mrd_sim_stop_host(struct mrd_sim *sim, uint32_t host, int stopped)
{
    assert(host < sim->attr.hosts);
    mrd_sim_host_stop(&sim->hosts[host], stopped != 0);
}

void mrd_sim_set_tap(struct mrd_sim *sim, mrd_sim_tap *tap, void *arg)
{
    assert(sim->num_parts == 1);
    sim->fabric.tap = tap;
    sim->fabric.tap_arg = arg;
}

int mrd_sim_inject(struct mrd_sim *sim, uint32_t from, uint32_t to, const void *data, uint32_t len,
                   uint64_t at_ns)
{
    if (from >= sim->attr.hosts || to >= sim->attr.hosts || len > MRD_SIM_DATAGRAM_BYTES_MAX)
        return -EINVAL;

    struct mrd_sim_part *part = sim->hosts[to].part;
    struct mrd_sim_packet *packet = mrd_sim_packet_alloc(&part->packets, len);

    if (!packet)
        return no_memory();
    packet->from = from;
    packet->to = to;
    packet->path = 0;
    packet->ecn = MRD_ECN_NOT_ECT;
    packet->alone = false;
    memcpy(packet->data, data, len);

    int ret = mrd_sim_part_arrive(part, packet, to, at_ns);

    return ret == -ENOMEM ? no_memory() : ret;
}

/* ----------------------------------------------------------------------- for experiments, tests */

void mrd_sim_set_tune(struct mrd_sim *sim, const struct mrd_tune *tune)
{
    sim->options.tune = tune;
}

void mrd_sim_set_turn_hook(struct mrd_sim *sim, void (*hook)(void *arg, uint32_t host), void *arg)
{
    sim->options.turn_hook = hook;
    sim->options.turn_hook_arg = arg;
}

void mrd_sim_set_gro(struct mrd_sim *sim, bool gro)
{
    sim->options.gro = gro;
    sim->options.quantum = gro ? 16 : 1;
}

void mrd_sim_set_rx_delay(struct mrd_sim *sim, uint64_t delay_ns)
{
    sim->options.rx_delay_ns = delay_ns;
}

void mrd_sim_set_rx_packets_max(struct mrd_sim *sim, uint32_t packets)
{
    sim->options.rx_packets_max = packets;
}

void mrd_sim_set_datagram_max(struct mrd_sim *sim, uint32_t bytes)
{
    assert(bytes == 0 || bytes >= 256);
    sim->options.datagram_bytes_max = bytes;
}

void mrd_sim_set_clock_offset(struct mrd_sim *sim, uint32_t host, uint64_t offset_ns)
{
    assert(host < sim->attr.hosts && !sim->hosts[host].open);
    sim->hosts[host].clock_offset_ns = offset_ns;
}

void mrd_sim_set_read_check(struct mrd_sim *sim, bool check)
{
    sim->options.read_check = check;
}

void mrd_sim_set_large_pages(struct mrd_sim *sim, bool large_pages)
{
    for (uint32_t i = 0; i < sim->attr.hosts; i++)
        assert(!sim->hosts[i].open);
    sim->options.large_pages = large_pages;
}

bool mrd_sim_is_stopped(const struct mrd_sim *sim, uint32_t host)
{
    assert(host < sim->attr.hosts);
    return sim->hosts[host].stopped;
}

uint32_t mrd_sim_part_of(const struct mrd_sim *sim, uint32_t host)
{
    assert(host < sim->attr.hosts);
    return sim->hosts[host].part->packets.number;
}

uint64_t mrd_sim_host_time(const struct mrd_sim *sim, uint32_t host)
{
    assert(host < sim->attr.hosts);
    return sim->hosts[host].part->now_ns;
}

struct mrd_sim_host_stats mrd_sim_get_host_stats(const struct mrd_sim *sim, uint32_t host)
{
    assert(host < sim->attr.hosts);
    return sim->hosts[host].stats;
}
