/* SPDX-License-Identifier: BSD-2-Clause */
/* The packet mover of a simulated host: struct mrd_backend_ops over sim_host.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/wire.h"
#include "transport/mover.h"
#include "transport/movers/sim/sim_host.h"
#include "transport/movers/sim/sim_world.h"
#include "transport/zeroed.h"

enum {
    PAYLOAD_DEFAULT = 4096,
    HEADER_MAX = 96, /* bytes before the payload of a data packet */
    ACK_EVERY = 4,
    ACK_DELAYS_A_RTT = 12, /* longest RTT of a tree / how long an ack may wait */
    ACK_DELAY_NS_MIN = 1000,
    ACK_DELAY_NS_MAX = 50000, /* half the RTO floor */
    RTO_FLOOR_NS = 100000,
    TRACKER = 4096,
    TX_RETRY_NS = 100,
    SENT_FIRST = 64,
};

static struct mrd_sim_host *host_of(struct mrd_backend *b)
{
    return (struct mrd_sim_host *)b;
}

/* ---------------------------------------------------------------------------------- open, close */

/* The time to serialise a full packet; link_bps is not 0. */
static uint64_t packet_ns(uint64_t link_bps, uint32_t payload_bytes)
{
    uint64_t bits = (uint64_t)(payload_bytes + HEADER_MAX + MRD_SIM_WIRE_OVERHEAD_BYTES) * 8;

    return bits * 1000000000u / link_bps;
}

/* The time of ACK_EVERY packets: on a slow link an ack waits for more packets, but not longer. */
static uint32_t ack_delay_ns(uint64_t link_bps, uint32_t payload_bytes)
{
    if (link_bps == 0)
        return ACK_DELAY_NS_MIN;

    uint64_t delay_ns = ACK_EVERY * packet_ns(link_bps, payload_bytes);

    if (delay_ns < ACK_DELAY_NS_MIN)
        return ACK_DELAY_NS_MIN;
    return delay_ns > ACK_DELAY_NS_MAX ? ACK_DELAY_NS_MAX : (uint32_t)delay_ns;
}

static int check_attr(const struct mrd_sim *sim, const struct mrd_context_attr *attr)
{
    if (attr->paths > sim->attr.paths) {
        mrd_error_set("paths %u: the simulation has %u", attr->paths, sim->attr.paths);
        return -EINVAL;
    }
    if (attr->mtu % 64 != 0 || attr->mtu > MRD_PAYLOAD_BYTES_MAX) {
        mrd_error_set("mtu %u: not a multiple of 64 up to %d", attr->mtu, MRD_PAYLOAD_BYTES_MAX);
        return -EINVAL;
    }
    return 0;
}

/* The link that a host sends on, as it was created. */
static const struct mrd_sim_link *host_link(const struct mrd_sim_host *host)
{
    return mrd_sim_fabric_start(&host->sim->fabric, host->number);
}

/* The RTT of a full packet and its ack on the longest way through the tree. */
static uint64_t longest_rtt_ns(const struct mrd_sim *sim, uint32_t payload_bytes)
{
    const struct mrd_sim_topology *topology = &sim->fabric.tree->topology;
    double bytes = payload_bytes + HEADER_MAX + MRD_SIM_WIRE_OVERHEAD_BYTES;

    return (uint64_t)(mrd_sim_tree_longest_ns(topology, bytes) +
                      mrd_sim_tree_longest_ns(topology, HEADER_MAX + MRD_SIM_WIRE_OVERHEAD_BYTES));
}

/* What the mover of a host that knows the fabric says: the link's rate and the longest RTT. */
static void fill_fabric(struct mrd_mover *m, const struct mrd_sim *sim, uint64_t link_bps)
{
    m->link_bps = link_bps;
    m->rto_floor_ns = RTO_FLOOR_NS;
    m->ack_every = ACK_EVERY;
    m->ack_delay_ns = ack_delay_ns(link_bps, m->payload_bytes);
    m->quantum = sim->options.quantum;
    m->tracker = TRACKER;
    if (sim->fabric.tree) {
        m->base_rtt_max_ns = longest_rtt_ns(sim, m->payload_bytes);
        m->ack_delay_ns = (uint32_t)(m->base_rtt_max_ns / ACK_DELAYS_A_RTT);
    }
}

static void fill_mover(struct mrd_sim_host *host, const struct mrd_context_attr *attr)
{
    const struct mrd_sim *sim = host->sim;
    struct mrd_mover *m = &host->backend.mover;
    uint64_t link_bps = host_link(host)->rate_bps;

    *m = (struct mrd_mover){
        .payload_bytes = attr->mtu ? attr->mtu : PAYLOAD_DEFAULT,
        .paths = attr->paths ? attr->paths : sim->attr.paths,
        .header_bytes = MRD_SIM_WIRE_OVERHEAD_BYTES,
        .copies = sim->attr.tx_done_delay_ns == 0,
        .tune = sim->options.tune,
    };
    switch ((enum mrd_sim_knows)sim->attr.knows) {
    case MRD_SIM_KNOWS_SOCKETS:
        mrd_mover_fill_sockets(m);
        break;
    case MRD_SIM_KNOWS_RDMA:
        mrd_mover_fill_rdma(m, link_bps);
        break;
    case MRD_SIM_KNOWS_FABRIC:
        fill_fabric(m, sim, attr->link_bps ? attr->link_bps : link_bps);
        break;
    }
}

/* The host of a device: the simulation owns its devices and none of them is const. */
static struct mrd_sim_host *host_of_device(const struct mrd_device *device)
{
    return (struct mrd_sim_host *)((uintptr_t)device - offsetof(struct mrd_sim_host, device));
}

static void *sim_alloc(const struct mrd_device *device, size_t bytes)
{
    const struct mrd_sim_host *host = host_of_device(device);

    return host->sim->options.large_pages ? mrd_sim_memory_alloc(&host->part->memory, bytes)
                                          : mrd_zeroed_alloc(bytes);
}

static void sim_release(const struct mrd_device *device, void *ptr, size_t bytes)
{
    const struct mrd_sim_host *host = host_of_device(device);

    if (host->sim->options.large_pages)
        mrd_sim_memory_release(&host->part->memory, ptr, bytes);
    else
        mrd_zeroed_release(ptr, bytes);
}

static struct mrd_backend *sim_open(const struct mrd_device *device,
                                    const struct mrd_context_attr *attr, int *error)
{
    static const struct mrd_context_attr defaults;
    struct mrd_sim_host *host = host_of_device(device);
    const struct mrd_sim *sim = host->sim;

    attr = attr ? attr : &defaults;
    if (host->open || host->stack) {
        mrd_error_set("%s has %s already", device->name,
                      host->open ? "an open context" : "a stack of another transport");
        *error = -EBUSY;
        return NULL;
    }

    int ret = check_attr(sim, attr);

    if (ret != 0) {
        *error = ret;
        return NULL;
    }

    host->backend.ops = &mrd_sim_ops;
    host->backend.threaded = false;
    fill_mover(host, attr);
    if (sim->fabric.tree)
        host->backend.batch = 1;
    mrd_sim_host_reset(host);
    host->path_next = host->backend.mover.paths;
    host->open = true;
    return &host->backend;
}

static void sim_close(struct mrd_backend *b)
{
    struct mrd_sim_host *host = host_of(b);

    mrd_sim_host_reset(host);
    host->open = false;
}

static uint64_t sim_now_ns(struct mrd_backend *b)
{
    struct mrd_sim_host *host = host_of(b);

    mrd_sim_host_touch(host);
    return mrd_sim_host_now_ns(host);
}

/* ------------------------------------------------------------------------------------- transmit */

static uint64_t hash_pieces(const struct iovec *iov, uint32_t num_iov)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < num_iov; i++)
        hash = XXH3_64bits_withSeed(iov[i].iov_base, iov[i].iov_len, hash);
    return hash;
}

/* Make room for one more record of a packet whose buffers the device reads. */
static int reserve_sent(struct mrd_sim_host *host)
{
    uint32_t len = host->sent_tail - host->sent_head;

    if (len < host->sent_cap)
        return 0;

    uint32_t cap = host->sent_cap ? host->sent_cap * 2 : SENT_FIRST;
    struct mrd_sim_sent *sent = malloc(cap * sizeof(*sent));

    if (!sent)
        return -ENOMEM;
    for (uint32_t i = 0; i < len; i++)
        sent[i] = host->sent[(host->sent_head + i) & (host->sent_cap - 1)];
    free(host->sent);
    host->sent = sent;
    host->sent_cap = cap;
    host->sent_head = 0;
    host->sent_tail = len;
    return 0;
}

static void note_sent(struct mrd_sim_host *host, const struct mrd_tx_packet *tx)
{
    struct mrd_sim_sent *sent = &host->sent[host->sent_tail++ & (host->sent_cap - 1)];

    sent->at_ns = host->part->now_ns + host->sim->attr.tx_done_delay_ns;
    sent->cookie = tx->cookie;
    sent->num_iov = tx->num_iov;
    memcpy(sent->iov, tx->iov, tx->num_iov * sizeof(tx->iov[0]));
    sent->hash = host->sim->options.read_check ? hash_pieces(sent->iov, sent->num_iov) : 0;
}

/* Size on the wire as uet-htsim counts: by payload. Of packets that are not sealed: see open. */
static uint32_t htsim_bytes(const struct mrd_tx_packet *tx)
{
    struct mrd_wire_head head;

    if (tx->num_iov)
        return tx->len - tx->head_len + MRD_SIM_HTSIM_DATA_BYTES;
    if (mrd_wire_get(tx->head, tx->head_len, &head) == MRD_WIRE_OK && head.type == MRD_WIRE_DATA)
        return tx->len - head.head_len + MRD_SIM_HTSIM_DATA_BYTES;
    return MRD_SIM_HTSIM_ACK_BYTES;
}

static struct mrd_sim_packet *gather(struct mrd_sim_host *host, const struct mrd_tx_packet *tx)
{
    const struct mrd_sim_attr *attr = &host->sim->attr;
    bool by_reference = attr->payload_by_reference && tx->num_iov == 1;
    struct mrd_sim_packet *packet =
        mrd_sim_packet_alloc(&host->part->packets, by_reference ? tx->head_len : tx->len);

    if (!packet)
        return NULL;

    uint32_t at = tx->head_len;

    memcpy(packet->data, tx->head, tx->head_len);
    if (by_reference) {
        packet->rest = tx->iov[0].iov_base;
        packet->len = tx->len;
    }
    for (unsigned i = 0; i < tx->num_iov && !by_reference; i++) {
        memcpy(packet->data + at, tx->iov[i].iov_base, tx->iov[i].iov_len);
        at += (uint32_t)tx->iov[i].iov_len;
    }
    assert(by_reference || at == tx->len);
    packet->wire_bytes = attr->wire_overhead == MRD_SIM_WIRE_HTSIM
                             ? htsim_bytes(tx)
                             : tx->len + MRD_SIM_WIRE_OVERHEAD_BYTES;
    packet->from = host->number;
    packet->to = tx->to.port - 1;
    packet->path = tx->path;
    packet->urgent = attr->ack_priority && tx->flags & MRD_TX_ACK;
    packet->alone = (tx->flags & MRD_TX_ALONE) != 0;
    packet->ecn = tx->flags & MRD_TX_ECT ? MRD_ECN_ECT0 : MRD_ECN_NOT_ECT;
    return packet;
}

static bool is_too_big(const struct mrd_sim_host *host, const struct mrd_tx_packet *tx)
{
    uint32_t max = host->sim->options.datagram_bytes_max;

    return max != 0 && tx->len > max;
}

static void note_too_big(struct mrd_sim_host *host, const struct mrd_addr *to)
{
    host->stats.too_big++;
    for (uint32_t i = 0; i < host->num_too_big; i++) {
        if (memcmp(&host->too_big[i].to, to, sizeof(*to)) == 0)
            return;
    }
    if (host->num_too_big == MRD_SIM_TOO_BIG_MAX)
        return;

    uint32_t payload_bytes = (host->sim->options.datagram_bytes_max - HEADER_MAX) / 64 * 64;

    host->too_big[host->num_too_big++] = (struct mrd_sim_too_big){*to, payload_bytes};
}

/* Nobody has that address: a packet to it is lost, unless somebody plays a stranger there. */
static void send_stray(struct mrd_sim_host *host, const struct mrd_tx_packet *tx, uint32_t id)
{
    const struct mrd_sim_options *options = &host->sim->options;
    struct mrd_sim_packet *packet = options->stray_hook ? gather(host, tx) : NULL;

    host->stats.unroutable++;
    if (packet)
        packet = mrd_sim_packet_join(&host->part->packets, packet);
    if (!packet)
        return;
    options->stray_hook(options->stray_hook_arg,
                        &(struct mrd_sim_stray){.from = host->number,
                                                .source = mrd_sim_address(host->number, id),
                                                .to = tx->to,
                                                .data = packet->data,
                                                .len = packet->len});
    mrd_sim_packet_release(&host->part->packets, packet);
}

/* Send a packet, or lose it. False: no memory for its record, the engine offers it again. */
static bool send_one(struct mrd_sim_host *host, const struct mrd_tx_packet *tx)
{
    assert(tx->path < host->path_next);
    if (tx->cookie != MRD_TX_COOKIE_NONE && !host->backend.mover.copies) {
        if (reserve_sent(host) != 0)
            return false;
        note_sent(host, tx);
    }
    if (is_too_big(host, tx)) {
        note_too_big(host, &tx->to);
        return true;
    }

    int id = host->addresses ? mrd_sim_choose_source(host, &tx->from, &tx->to, tx->path) : 0;

    if (id < 0)
        return true;
    if (!mrd_sim_is_host(host->sim, &tx->to)) {
        send_stray(host, tx, (uint32_t)id);
        return true;
    }

    struct mrd_sim_packet *packet = gather(host, tx);

    if (!packet)
        return true;
    packet->from_id = (uint8_t)id;
    packet->to_id = (uint8_t)mrd_sim_address_id(&tx->to);
    mrd_sim_fabric_send(&host->sim->fabric, host->part, packet);
    return true;
}

/*
 * Time until the host's link is idle. In a tree a host has no queue of its own: the engine decides
 * what goes next when the link is idle, as an engine in a network card would.
 */
static uint64_t link_wait_ns(const struct mrd_sim_host *host)
{
    return mrd_sim_host_idle_ns(host) - host->part->now_ns;
}

static unsigned sim_tx_burst(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n)
{
    struct mrd_sim_host *host = host_of(b);
    uint32_t limit = host->sim->attr.tx_burst_max;
    uint64_t wait_ns = TX_RETRY_NS;
    unsigned taken = 0;

    mrd_sim_host_touch(host);
    if (host->stopped)
        return 0;
    while (taken < n && (limit == 0 || taken < limit)) {
        uint64_t link_ns = link_wait_ns(host);

        if (link_ns)
            wait_ns = link_ns;
        if (link_ns || !send_one(host, &packets[taken]))
            break;
        taken++;
    }
    if (taken < n) {
        host->stats.partial_bursts++;
        host->tx_retry_ns = host->part->now_ns + wait_ns;
    }
    return taken;
}

static unsigned sim_tx_reap(struct mrd_backend *b, uint64_t *cookies, unsigned max)
{
    struct mrd_sim_host *host = host_of(b);
    unsigned n = 0;

    while (n < max && host->sent_head != host->sent_tail) {
        const struct mrd_sim_sent *sent = &host->sent[host->sent_head & (host->sent_cap - 1)];

        if (sent->at_ns > host->part->now_ns)
            break;
        if (host->sim->options.read_check && hash_pieces(sent->iov, sent->num_iov) != sent->hash)
            host->stats.changed_early++;
        cookies[n++] = sent->cookie;
        host->sent_head++;
    }
    return n;
}

static bool sim_too_big(struct mrd_backend *b, struct mrd_addr *to, uint32_t *payload_bytes)
{
    struct mrd_sim_host *host = host_of(b);

    if (host->num_too_big == 0)
        return false;
    *to = host->too_big[--host->num_too_big].to;
    *payload_bytes = host->too_big[host->num_too_big].payload_bytes;
    return true;
}

/* ------------------------------------------------------------------------------------- the rest */

/* Calls on simulated contexts never wait. */
static void sim_wait(struct mrd_backend *b, int wake_fd, uint64_t timeout_ns)
{
    (void)b;
    (void)wake_fd;
    (void)timeout_ns;
}

static int sim_fd(struct mrd_backend *b)
{
    (void)b;
    return -1;
}

static int sim_new_path(struct mrd_backend *b)
{
    struct mrd_sim_host *host = host_of(b);

    if (host->path_next >= host->sim->attr.paths)
        return -ENOSPC;
    return (int)host->path_next++;
}

static uint32_t sim_path_port(struct mrd_backend *b, uint32_t path)
{
    (void)b;
    return path;
}

static void sim_port_facts(struct mrd_backend *b, struct mrd_port_facts *facts)
{
    (void)b;
    facts->state = MRD_PORT_ACTIVE;
}

static int sim_self_address(struct mrd_backend *b, struct mrd_addr *addr)
{
    *addr = mrd_sim_addr(host_of(b)->number);
    return 0;
}

static int sim_payload_bytes(struct mrd_backend *b, const struct mrd_addr *to)
{
    if (!mrd_sim_is_host(host_of(b)->sim, to)) {
        mrd_error_set("sim:%u: the simulation has no such host", to->port - 1);
        return -EHOSTUNREACH;
    }
    return (int)b->mover.payload_bytes;
}

const struct mrd_backend_ops mrd_sim_ops = {
    .transport = "sim",
    .has_port = true,
    .open = sim_open,
    .close = sim_close,
    .alloc = sim_alloc,
    .release = sim_release,
    .now_ns = sim_now_ns,
    .tx_burst = sim_tx_burst,
    .tx_reap = sim_tx_reap,
    .too_big = sim_too_big,
    .rx_burst = mrd_sim_rx_burst,
    .rx_return = mrd_sim_rx_return,
    .wait = sim_wait,
    .fd = sim_fd,
    .new_path = sim_new_path,
    .other_source = mrd_sim_other_source,
    .path_port = sim_path_port,
    .parse_address = mrd_sim_parse_address,
    .format_address = mrd_sim_format_address,
    .self_address = sim_self_address,
    .port_facts = sim_port_facts,
    .payload_bytes = sim_payload_bytes,
};
