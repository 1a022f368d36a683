/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/peer.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

enum {
    PAGES_PER_PEER = 16,
    PAGES_SHARED = 4096,
    SLOTS_PER_PEER = 16, /* open messages of several packets, at their target */
    SLOTS_SHARED = 2048,
};

static uint32_t first_paths(uint32_t num_paths)
{
    return num_paths < MRD_PATHS_FIRST ? num_paths : MRD_PATHS_FIRST;
}

bool mrd_peers_init(struct mrd_peers *peers, const struct mrd_allocator *allocator,
                    uint32_t max_peers, uint32_t max_paths, uint32_t tracker, bool cache)
{
    memset(peers, 0, sizeof(*peers));
    peers->allocator = allocator;
    peers->max = max_peers;
    peers->tracker = tracker;
    /* The fewer peers, the more bits for the generation: the later an id recurs. */
    while (1u << peers->index_bits < max_peers)
        peers->index_bits++;
    mrd_list_init(&peers->active);
    peers->rest_mask = mrd_hash_buckets(max_peers) - 1;
    peers->by_number = mrd_alloc(allocator, max_peers * sizeof(*peers->by_number));
    peers->idle_bucket = mrd_alloc(allocator, 2 * (peers->rest_mask + 1) * sizeof(uint32_t));
    return peers->by_number && peers->idle_bucket &&
           mrd_hash_init(&peers->by_addr, allocator, 2 * max_peers) &&
           mrd_hash_init(&peers->by_own, allocator, max_peers) &&
           mrd_table_init(&peers->hosts, allocator, sizeof(struct mrd_host), max_peers,
                          max_peers) &&
           mrd_pool_init(&peers->idle, allocator, sizeof(struct mrd_idle_peer), max_peers) &&
           mrd_pool_init(&peers->entries, allocator, sizeof(struct mrd_peer), max_peers) &&
           mrd_pool_init(&peers->send_states, allocator,
                         sizeof(struct mrd_send_state) +
                             first_paths(max_paths) *
                                 (sizeof(struct mrd_path) + sizeof(struct mrd_path_load)) +
                             (cache ? MRD_SPRAY_CACHE * sizeof(uint16_t) : 0),
                         max_peers) &&
           mrd_pool_init(&peers->recv_states, allocator, sizeof(struct mrd_recv_state),
                         max_peers) &&
           mrd_rcv_maps_init(&peers->maps, allocator, tracker, max_peers) &&
           mrd_pool_init(&peers->words, allocator, MRD_MSG_SLOTS * sizeof(uint32_t), max_peers) &&
           mrd_pool_init(&peers->commons, allocator, sizeof(struct mrd_txq), 2 * max_peers) &&
           mrd_pool_init(&peers->pages, allocator, sizeof(struct mrd_sent_page),
                         max_peers * PAGES_PER_PEER + PAGES_SHARED) &&
           mrd_pool_init(&peers->slots, allocator, sizeof(struct mrd_slot),
                         max_peers * SLOTS_PER_PEER + SLOTS_SHARED);
}

void mrd_peers_fini(struct mrd_peers *peers)
{
    for (struct mrd_node *n = peers->active.next; n && n != &peers->active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        if (peer->tx)
            mrd_peer_tx_end(peers, peer);
        mrd_peer_rx_end(peers, peer, MRD_SPACE_NONE);
    }
    mrd_pool_fini(&peers->slots);
    mrd_pool_fini(&peers->pages);
    mrd_pool_fini(&peers->commons);
    mrd_pool_fini(&peers->words);
    mrd_rcv_maps_fini(&peers->maps);
    mrd_pool_fini(&peers->recv_states);
    mrd_pool_fini(&peers->send_states);
    mrd_pool_fini(&peers->entries);
    mrd_pool_fini(&peers->idle);
    if (peers->idle_bucket)
        mrd_free(peers->allocator, peers->idle_bucket,
                 2 * (peers->rest_mask + 1) * sizeof(uint32_t));
    if (peers->by_number)
        mrd_free(peers->allocator, peers->by_number, peers->max * sizeof(*peers->by_number));
    mrd_table_fini(&peers->hosts, peers->allocator);
    mrd_hash_fini(&peers->by_own, peers->allocator);
    mrd_hash_fini(&peers->by_addr, peers->allocator);
}

static uint64_t hash_addr(const struct mrd_addr *addr)
{
    uint64_t w[3];

    _Static_assert(sizeof(*addr) == sizeof(w), "address");
    memcpy(w, addr, sizeof(w));
    return mrd_hash_mix(w[0] ^ mrd_hash_mix(w[1] ^ mrd_hash_mix(w[2])));
}

/* The first of those from `n` on that is at the address. */
static struct mrd_peer *first_at(struct mrd_hash_node *n, const struct mrd_addr *addr)
{
    for (; n; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, by_addr);

        if (!memcmp(&peer->addr, addr, sizeof(*addr)))
            return peer;
    }
    return NULL;
}

struct mrd_peer *mrd_peer_first(const struct mrd_peers *peers, const struct mrd_addr *addr)
{
    return first_at(mrd_hash_first(&peers->by_addr, hash_addr(addr)), addr);
}

struct mrd_peer *mrd_peer_next(const struct mrd_peer *peer)
{
    return first_at(peer->by_addr.next, &peer->addr);
}

struct mrd_peer *mrd_peer_find(const struct mrd_peers *peers, const struct mrd_addr *addr)
{
    struct mrd_peer *first = mrd_peer_first(peers, addr), *peer = first;

    while (peer && !mrd_peer_has_state(peer))
        peer = mrd_peer_next(peer);
    return peer ? peer : first;
}

bool mrd_peer_speaks_as(const struct mrd_peer *peer, uint32_t inc)
{
    return (peer->space.state != MRD_SPACE_NONE && peer->space.inc == inc) ||
           (peer->tx && peer->tx->contact.inc == inc);
}

struct mrd_peer *mrd_peer_find_pair(const struct mrd_peers *peers, const struct mrd_addr *addr,
                                    uint32_t own_inc, uint32_t inc)
{
    struct mrd_peer *there = mrd_peer_find(peers, addr);
    uint64_t hash = mrd_hash_mix(own_inc);

    if (!inc ||
        (there && (!own_inc || there->pair.own_inc == own_inc) && mrd_peer_speaks_as(there, inc)))
        return there;
    if (!own_inc) {
        struct mrd_peer *peer = mrd_peer_first(peers, addr);

        while (peer && !mrd_peer_speaks_as(peer, inc))
            peer = mrd_peer_next(peer);
        return peer ? peer : there;
    }
    for (struct mrd_hash_node *n = mrd_hash_first(&peers->by_own, hash); n; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, by_own);

        if (peer->pair.own_inc == own_inc && mrd_peer_speaks_as(peer, inc))
            return peer;
    }
    return there;
}

uint32_t mrd_peers_named(const struct mrd_peers *peers, uint32_t own_inc)
{
    uint32_t num = 0;

    for (struct mrd_hash_node *n = mrd_hash_first(&peers->by_own, mrd_hash_mix(own_inc)); n;
         n = n->next)
        num += mrd_container_of(n, struct mrd_peer, by_own)->pair.own_inc == own_inc;
    return num;
}

uint32_t mrd_peer_lives(const struct mrd_peers *peers, uint32_t own_inc, uint32_t other)
{
    uint64_t hash = mrd_hash_mix(own_inc);
    uint32_t sum = other ? (uint32_t)mrd_hash_mix(other) : 0;

    for (struct mrd_hash_node *n = mrd_hash_first(&peers->by_own, hash); n; n = n->next) {
        const struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, by_own);

        if (peer->pair.own_inc == own_inc && peer->space.replaced)
            sum += (uint32_t)mrd_hash_mix((uint64_t)peer->space.replaced << 32);
    }
    return sum;
}

struct mrd_peer *mrd_peer_namesake(const struct mrd_peers *peers, const struct mrd_peer *peer,
                                   uint32_t inc)
{
    uint64_t hash = mrd_hash_mix(peer->pair.own_inc);

    for (struct mrd_hash_node *n = mrd_hash_first(&peers->by_own, hash); n; n = n->next) {
        struct mrd_peer *other = mrd_container_of(n, struct mrd_peer, by_own);

        if (other != peer && other->pair.own_inc == peer->pair.own_inc &&
            mrd_peer_speaks_as(other, inc))
            return other;
    }
    return NULL;
}

struct mrd_peer *mrd_peer_find_asked(const struct mrd_peers *peers, uint32_t own_inc,
                                     uint32_t epoch)
{
    uint64_t hash = mrd_hash_mix(own_inc);

    for (struct mrd_hash_node *n = mrd_hash_first(&peers->by_own, hash); n; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, by_own);

        if (peer->pair.own_inc == own_inc && peer->tx && !peer->tx->contact.inc &&
            peer->tx->contact.epoch == epoch)
            return peer;
    }
    return NULL;
}

bool mrd_peer_has_name(const struct mrd_peers *peers, uint32_t own_inc)
{
    const struct mrd_hash_node *n = mrd_hash_first(&peers->by_own, mrd_hash_mix(own_inc));

    while (n && mrd_container_of(n, struct mrd_peer, by_own)->pair.own_inc != own_inc)
        n = n->next;
    return n != NULL;
}

void mrd_peer_name(struct mrd_peers *peers, struct mrd_peer *peer, struct mrd_pair pair)
{
    mrd_hash_del(&peers->by_own, &peer->by_own);
    peer->pair = pair;
    mrd_hash_add(&peers->by_own, &peer->by_own, mrd_hash_mix(pair.own_inc));
}

/* ---------------------------------------------------------------------------------------- hosts */

/*
 * What the addresses of one host have in common. A network gives a host a whole IPv6 prefix, and
 * link-local addresses all have the same.
 */
static void host_prefix(const struct mrd_addr *addr, uint64_t prefix[2])
{
    bool local = addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;

    memcpy(prefix, addr->ip, sizeof(addr->ip));
    if (prefix[0] && !local)
        prefix[1] = 0;
}

static uint64_t hash_prefix(const uint64_t prefix[2])
{
    return mrd_hash_mix(prefix[0] ^ mrd_hash_mix(prefix[1]));
}

uint64_t mrd_peer_hash_host(const struct mrd_addr *addr)
{
    uint64_t prefix[2];

    host_prefix(addr, prefix);
    return hash_prefix(prefix);
}

static struct mrd_host *find_host(const struct mrd_peers *peers, const struct mrd_addr *addr)
{
    uint64_t prefix[2];

    host_prefix(addr, prefix);
    for (struct mrd_hash_node *n = mrd_hash_first(&peers->hosts.by_key, hash_prefix(prefix)); n;
         n = n->next) {
        struct mrd_host *host = mrd_container_of(n, struct mrd_host, by_key);

        if (!memcmp(host->prefix, prefix, sizeof(prefix)))
            return host;
    }
    return NULL;
}

uint32_t mrd_peers_of_host(const struct mrd_peers *peers, const struct mrd_addr *addr)
{
    const struct mrd_host *host = find_host(peers, addr);

    return host ? host->peers : 0;
}

static void count_host(struct mrd_peers *peers, const struct mrd_addr *addr)
{
    struct mrd_host *host = find_host(peers, addr);

    if (!host) {
        host = mrd_table_alloc(&peers->hosts);
        assert(host); /* there are as many as entries */
        host_prefix(addr, host->prefix);
        host->peers = 0;
        mrd_hash_add(&peers->hosts.by_key, &host->by_key, hash_prefix(host->prefix));
    }
    host->peers++;
}

static void uncount_host(struct mrd_peers *peers, const struct mrd_addr *addr)
{
    struct mrd_host *host = find_host(peers, addr);

    if (!--host->peers)
        mrd_table_release(&peers->hosts, &host->by_key, host);
}

/* -------------------------------------------------------------------------------------- entries */

static void enter_address(struct mrd_peers *peers, struct mrd_peer *peer,
                          const struct mrd_addr *addr)
{
    peer->addr = *addr;
    mrd_hash_add(&peers->by_addr, &peer->by_addr, hash_addr(addr));
    count_host(peers, addr);
}

static void leave_address(struct mrd_peers *peers, struct mrd_peer *peer)
{
    mrd_hash_del(&peers->by_addr, &peer->by_addr);
    uncount_host(peers, &peer->addr);
}

void mrd_peer_move(struct mrd_peers *peers, struct mrd_peer *peer, const struct mrd_addr *addr)
{
    leave_address(peers, peer);
    enter_address(peers, peer, addr);
}

static uint32_t number_of(const struct mrd_peers *peers, uint32_t id)
{
    return id & ((1u << peers->index_bits) - 1);
}

struct mrd_peer *mrd_peer_by_id(const struct mrd_peers *peers, uint32_t id)
{
    uint32_t number = number_of(peers, id);
    struct mrd_peer *peer = number < peers->max ? peers->by_number[number] : NULL;

    return peer && peer->id == id ? peer : NULL;
}

/* An entry of a peer, without what it knows. */
static struct mrd_peer *activate(struct mrd_peers *peers, const struct mrd_addr *addr, uint32_t id)
{
    struct mrd_peer *peer = mrd_pool_alloc(&peers->entries);

    assert(peer); /* there are as many entries as peers */
    memset(peer, 0, sizeof(*peer));
    peer->id = id;
    mrd_timer_init(&peer->timer);
    mrd_list_init(&peer->ready);
    mrd_list_init(&peer->suspect);
    mrd_list_init(&peer->touched);
    mrd_list_init(&peer->msgs);
    mrd_list_init(&peer->flows_tx);
    mrd_list_init(&peer->flows_rx);
    mrd_list_init(&peer->rnr_waiters);
    mrd_list_init(&peer->readies);
    mrd_list_append(&peers->active, &peer->node);
    enter_address(peers, peer, addr);
    mrd_hash_add(&peers->by_own, &peer->by_own, mrd_hash_mix(0));
    peers->by_number[number_of(peers, id)] = peer;
    return peer;
}

struct mrd_peer *mrd_peer_add(struct mrd_peers *peers, const struct mrd_addr *addr)
{
    struct mrd_idle_peer *idle = mrd_pool_alloc(&peers->idle);

    if (!idle)
        return NULL;
    peers->generation += 1u << peers->index_bits;
    if (!peers->generation) /* an id is never 0 */
        peers->generation += 1u << peers->index_bits;
    return activate(peers, addr, peers->generation | mrd_pool_index(&peers->idle, idle));
}

/* Ends an entry; its number lives on. */
static void end_entry(struct mrd_peers *peers, struct mrd_peer *peer)
{
    assert(!peer->tx && !peer->rx && mrd_list_empty(&peer->msgs) && mrd_list_empty(&peer->ready));
    leave_address(peers, peer);
    mrd_hash_del(&peers->by_own, &peer->by_own);
    mrd_list_remove(&peer->node);
    peers->by_number[number_of(peers, peer->id)] = NULL;
    mrd_pool_release(&peers->entries, peer);
}

void mrd_peer_remove(struct mrd_peers *peers, struct mrd_peer *peer)
{
    struct mrd_idle_peer *idle = mrd_pool_at(&peers->idle, number_of(peers, peer->id));

    end_entry(peers, peer);
    idle->id = 0;
    mrd_pool_release(&peers->idle, idle);
}

/* ----------------------------------------------------------------------------------- idle peers */

static uint32_t *bucket_of(const struct mrd_peers *peers, const struct mrd_addr *addr)
{
    return &peers->idle_bucket[hash_addr(addr) & peers->rest_mask];
}

static uint32_t *own_bucket_of(const struct mrd_peers *peers, uint32_t own_inc)
{
    return &peers->idle_bucket[peers->rest_mask + 1 + (mrd_hash_mix(own_inc) & peers->rest_mask)];
}

static struct mrd_idle_peer *idle_of(const struct mrd_peers *peers, uint32_t place)
{
    return mrd_pool_at(&peers->idle, place - 1);
}

static void link_idle(struct mrd_peers *peers, struct mrd_idle_peer *idle)
{
    uint32_t *bucket = bucket_of(peers, &idle->addr);
    uint32_t *own = own_bucket_of(peers, idle->pair.own_inc);

    idle->next = *bucket;
    idle->next_own = *own;
    *bucket = *own = number_of(peers, idle->id) + 1;
    peers->num_idle++;
}

static void unlink_idle(struct mrd_peers *peers, struct mrd_idle_peer *idle)
{
    uint32_t place = number_of(peers, idle->id) + 1, *at = bucket_of(peers, &idle->addr);

    while (*at != place)
        at = &idle_of(peers, *at)->next;
    *at = idle->next;
    at = own_bucket_of(peers, idle->pair.own_inc);
    while (*at != place)
        at = &idle_of(peers, *at)->next_own;
    *at = idle->next_own;
    idle->id = 0;
    peers->num_idle--;
}

void mrd_peer_make_idle(struct mrd_peers *peers, struct mrd_peer *peer)
{
    struct mrd_idle_peer *idle = mrd_pool_at(&peers->idle, number_of(peers, peer->id));

    *idle =
        (struct mrd_idle_peer){.addr = peer->addr,
                               .local = peer->local,
                               .pair = peer->pair,
                               .count = peer->count,
                               .heard_ns = peer->heard_ns,
                               .id = peer->id,
                               .payload_bytes = peer->payload_bytes,
                               .dscp = peer->dscp & 63u,
                               .given_up = peer->given_up,
                               .one_way = peer->one_way,
                               .ect_failed = (peer->ect.failed < 63 ? peer->ect.failed : 63u) & 63u,
                               .ect_off = peer->ect.off,
                               .ect_acks_off = peer->ect.acks_off};
    link_idle(peers, idle);
    end_entry(peers, peer);
}

static struct mrd_idle_peer *find_idle(const struct mrd_peers *peers, const struct mrd_addr *addr)
{
    uint32_t place = peers->num_idle ? *bucket_of(peers, addr) : 0;

    while (place && memcmp(&idle_of(peers, place)->addr, addr, sizeof(*addr)) != 0)
        place = idle_of(peers, place)->next;
    return place ? idle_of(peers, place) : NULL;
}

const struct mrd_idle_peer *mrd_peer_find_idle(const struct mrd_peers *peers,
                                               const struct mrd_addr *addr)
{
    return find_idle(peers, addr);
}

bool mrd_peer_is_named_elsewhere(const struct mrd_peers *peers, uint32_t own_inc,
                                 const struct mrd_addr *addr)
{
    uint32_t place = peers->num_idle ? *own_bucket_of(peers, own_inc) : 0;

    for (struct mrd_hash_node *n = mrd_hash_first(&peers->by_own, mrd_hash_mix(own_inc)); n;
         n = n->next) {
        const struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, by_own);

        if (peer->pair.own_inc == own_inc && memcmp(&peer->addr, addr, sizeof(*addr)) != 0)
            return true;
    }
    for (; place; place = idle_of(peers, place)->next_own) {
        const struct mrd_idle_peer *idle = idle_of(peers, place);

        if (idle->pair.own_inc == own_inc && memcmp(&idle->addr, addr, sizeof(*addr)) != 0)
            return true;
    }
    return false;
}

const struct mrd_idle_peer *mrd_peer_idle_by_id(const struct mrd_peers *peers, uint32_t id)
{
    uint32_t number = number_of(peers, id);
    const struct mrd_idle_peer *idle;

    if (!peers->num_idle || number >= peers->idle.fresh || peers->by_number[number])
        return NULL;
    idle = mrd_pool_at(&peers->idle, number);
    return id && idle->id == id ? idle : NULL;
}

struct mrd_peer *mrd_peer_activate(struct mrd_peers *peers, const struct mrd_addr *addr)
{
    struct mrd_idle_peer *idle = find_idle(peers, addr);
    struct mrd_peer *peer;

    if (!idle)
        return NULL;
    peer = activate(peers, addr, idle->id);
    peer->local = idle->local;
    mrd_peer_name(peers, peer, idle->pair);
    peer->count = idle->count;
    peer->heard_ns = idle->heard_ns;
    peer->payload_bytes = idle->payload_bytes;
    peer->dscp = idle->dscp;
    peer->given_up = idle->given_up;
    peer->one_way = idle->one_way;
    peer->ect.failed = idle->ect_failed;
    peer->ect.off = idle->ect_off;
    peer->ect.acks_off = idle->ect_acks_off;
    unlink_idle(peers, idle);
    return peer;
}

bool mrd_peer_forget(struct mrd_peers *peers)
{
    struct mrd_idle_peer *idle;

    if (!peers->num_idle)
        return false;
    do {
        if (peers->hand >= peers->idle.fresh)
            peers->hand = 0;
        idle = mrd_pool_at(&peers->idle, peers->hand++);
    } while (peers->by_number[peers->hand - 1] || !idle->id);
    unlink_idle(peers, idle);
    mrd_pool_release(&peers->idle, idle);
    return true;
}

/* ----------------------------------------------------------------------- send and receive states */

void mrd_txq_init(struct mrd_txq *q, struct mrd_peer *peer, uint32_t qpn, uint32_t remote_qpn)
{
    memset(q, 0, sizeof(*q));
    q->peer = peer;
    q->qpn = qpn;
    q->remote_qpn = remote_qpn;
    q->rnr_at_ns = MRD_NEVER;
    mrd_list_init(&q->msgs);
    mrd_list_init(&q->retries);
    mrd_list_init(&q->waiting);
    mrd_list_init(&q->rnr_node);
    mrd_list_init(&q->peer_node);
}

struct mrd_txq *mrd_peer_common(struct mrd_peers *peers, struct mrd_peer *peer, bool responses)
{
    struct mrd_txq **q = &peer->tx->rnr.common[responses];

    if (*q)
        return *q;
    *q = mrd_pool_alloc(&peers->commons);
    assert(*q);
    mrd_txq_init(*q, peer, 0, 0);
    (*q)->responses = responses;
    (*q)->common = true;
    return *q;
}

struct mrd_send_state *mrd_peer_tx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                         uint32_t num_paths, const struct mrd_tune *tune,
                                         uint64_t now_ns)
{
    struct mrd_send_state *tx = mrd_pool_alloc(&peers->send_states);
    uint32_t first = first_paths(num_paths);
    struct mrd_path_load *load = (struct mrd_path_load *)&tx->path[first];

    assert(tx && !peer->tx);
    memset(tx, 0, sizeof(*tx) + first * (sizeof(tx->path[0]) + sizeof(*load)));
    tx->contact.epoch_ns = tx->rnr.next_ns = MRD_NEVER;
    mrd_list_init(&tx->txqs);
    mrd_list_init(&tx->refusals);
    mrd_list_init(&tx->aborts);
    mrd_list_init(&tx->idle);
    mrd_list_init(&tx->closes);
    mrd_list_init(&tx->rnr.txqs);
    tx->probes.answer_ns = MRD_SILENCE_MIN_NS;
    tx->spray.cache = (uint16_t *)(void *)&load[first];
    mrd_ids_init(&tx->ids, peers->allocator);
    mrd_sent_init(&tx->sent, &peers->pages, MRD_TRACKER_WIDEST, peers->max);
    mrd_paths_init(&tx->paths, tx->path, load, first, num_paths, tune, now_ns);
    mrd_loss_init(&tx->loss, tune, now_ns);
    peer->tx = tx;
    return tx;
}

void mrd_peer_tx_end(struct mrd_peers *peers, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = peer->tx;

    for (unsigned i = 0; i < 2; i++)
        if (tx->rnr.common[i])
            mrd_pool_release(&peers->commons, tx->rnr.common[i]);
    mrd_ids_fini(&tx->ids);
    mrd_paths_fini(&tx->paths, peers->allocator);
    mrd_loss_fini(&tx->loss, peers->allocator);
    mrd_cc_fini(&tx->cc);
    mrd_sent_fini(&tx->sent);
    peer->ect.testing = false;
    mrd_pool_release(&peers->send_states, tx);
    peer->tx = NULL;
}

struct mrd_recv_state *mrd_peer_rx_begin(struct mrd_peers *peers, struct mrd_peer *peer,
                                         uint32_t limit)
{
    struct mrd_recv_state *rx = mrd_pool_alloc(&peers->recv_states);

    assert(rx && !peer->rx);
    memset(rx, 0, sizeof(*rx));
    mrd_rcv_init(&rx->rcv, &peers->maps, peers->tracker, limit);
    mrd_slots_init(&rx->slots, &peers->slots, &peers->words);
    rx->probe_at_ns = MRD_NEVER;
    peer->rx = rx;
    peer->space.state = MRD_SPACE_KNOWN;
    peer->space.life++;
    return rx;
}

void mrd_peer_rx_end(struct mrd_peers *peers, struct mrd_peer *peer, enum mrd_space_state state)
{
    if (peer->rx) {
        mrd_slots_fini(&peer->rx->slots);
        mrd_rcv_fini(&peer->rx->rcv);
        mrd_pool_release(&peers->recv_states, peer->rx);
    }
    peer->rx = NULL;
    peer->space.state = (uint8_t)state;
}

static uint64_t tx_bytes(const struct mrd_peers *peers, const struct mrd_send_state *tx)
{
    uint64_t bytes = peers->send_states.item_bytes + tx->sent.num_pages * peers->pages.item_bytes +
                     tx->ids.room * sizeof(*tx->ids.entry);

    if (tx->sent.page != tx->sent.few)
        bytes += tx->sent.ring * sizeof(*tx->sent.page);
    if (tx->cc.losses)
        bytes += sizeof(*tx->cc.losses);
    if (tx->loss.log)
        bytes += MRD_RETX_LOG * sizeof(*tx->loss.log);
    if (tx->paths.owned)
        bytes += tx->paths.num * (sizeof(*tx->paths.path) + sizeof(*tx->paths.load));
    if (tx->paths.watched)
        bytes += tx->paths.num * sizeof(*tx->paths.watched);
    for (unsigned i = 0; i < 2; i++)
        bytes += tx->rnr.common[i] ? peers->commons.item_bytes : 0;
    return bytes;
}

static uint64_t rx_bytes(const struct mrd_peers *peers, const struct mrd_recv_state *rx)
{
    uint64_t bytes =
        peers->recv_states.item_bytes + rx->slots.num_open * (uint64_t)peers->slots.item_bytes;

    if (rx->rcv.path != &rx->rcv.one)
        bytes += rx->rcv.room * sizeof(*rx->rcv.path);
    bytes += mrd_rcv_bytes(&rx->rcv);
    if (rx->slots.word != rx->slots.few)
        bytes += peers->words.item_bytes;
    return bytes;
}

uint64_t mrd_peer_bytes(const struct mrd_peers *peers, const struct mrd_peer *peer)
{
    return (peer->tx ? tx_bytes(peers, peer->tx) : 0) + (peer->rx ? rx_bytes(peers, peer->rx) : 0);
}
