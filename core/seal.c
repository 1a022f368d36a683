/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/seal.h"

#include <assert.h>
#include <string.h>

#include "core/hash.h"
#include "core/list.h"
#include "core/pool.h"
#include "core/replay.h"
#include "core/wire.h"

enum {
    ALIGN = 64,
    STRANGERS = 64, /* keys of lives that nothing is kept of */
    KEYS = 64,      /* buckets of shared keys */
    /* A key that a stranger can make us derive costs less than a microsecond. */
    DERIVE_NS = 50000, /* one in so long, in the long run */
    DERIVE_LEAST = 1024,
};

enum purpose { PURPOSE_PAIR = 1, PURPOSE_ANYBODY = 2 };

/* Keys between two lives, of one direction; `state` is zeroed where it is not valid. */
struct name {
    uint64_t from, to;
    uint64_t sub; /* of packets whose number begins so */
    uint32_t key_id;
};

struct key {
    struct name name;
    bool valid;
    uint8_t iv[MRD_CIPHER_NONCE_BYTES];
    void *state; /* of mrd_cipher.expand() */
};

/* A key that members share. */
struct shared {
    struct mrd_hash_node by_id;
    uint32_t id;
    uint8_t prk[MRD_CIPHER_HASH_BYTES]; /* of HKDF: what it extracts of the key */
    struct key anybody;                 /* of packets that are for whoever is there */
};

/* A life that has spoken to us. */
struct mrd_seal_peer {
    struct mrd_hash_node by_life;
    struct mrd_node used; /* on mrd_seal.used */
    uint64_t life;
    struct key in[2], out; /* in: the one used last comes first */
    struct mrd_replay seen;
};

struct mrd_seal {
    const struct mrd_allocator *allocator;
    struct mrd_allocator memory;
    const struct mrd_cipher *cipher;
    uint64_t life;
    uint32_t reply;
    uint64_t number, asked; /* of the next packet to a life that is known; to anybody */
    uint64_t credit_ns, most_ns, counted_ns;
    struct shared *sends; /* the key to send with; or NULL */
    struct mrd_hash shared, lives;
    struct mrd_pool peers; /* struct mrd_seal_peer, and the states of its keys */
    struct mrd_node used;  /* of them, those used longest ago first */
    size_t state_bytes;
    uint8_t *states; /* of strangers */
    struct key stranger[STRANGERS];
    struct mrd_seal_stats stats;
};

/* ---------------------------------------------------------------------------------------- bytes */

enum { FIRST_BYTE = MRD_WIRE_VERSION << 4 | MRD_WIRE_SEALED };

struct head {
    uint32_t key_id, reply;
    uint64_t number, from, to;
};

static void put_head(uint8_t *at, const struct head *h)
{
    mrd_wire_put_u64(at, (uint64_t)FIRST_BYTE << 56 | (uint64_t)h->key_id << 32 | h->reply);
    mrd_wire_put_u64(at + 8, h->number);
    mrd_wire_put_u64(at + 16, h->from);
    mrd_wire_put_u64(at + 24, h->to);
}

static void get_head(const uint8_t *at, struct head *h)
{
    uint64_t first = mrd_wire_get_u64(at);

    h->key_id = first >> 32 & MRD_SEAL_KEY_ID_MAX;
    h->reply = (uint32_t)first;
    h->number = mrd_wire_get_u64(at + 8);
    h->from = mrd_wire_get_u64(at + 16);
    h->to = mrd_wire_get_u64(at + 24);
}

/* ----------------------------------------------------------------------------------------- keys */

/*
 * HKDF-Expand of RFC 5869, of up to two hashes: cipher key and IV. `info` is all that makes these keys
 * differ from others of the shared key.
 */
static bool expand(struct mrd_seal *s, const uint8_t *prk, enum purpose purpose,
                   const struct name *name, uint8_t *out, uint32_t bytes)
{
    static const char label[] = "mrd sealed packets 1";
    uint8_t text[MRD_CIPHER_HASH_BYTES + sizeof(label) + 2 + 4 * 8 + 1], block[2][32];
    uint8_t *info = text + MRD_CIPHER_HASH_BYTES, *at = info + sizeof(label);
    bool done;

    memcpy(info, label, sizeof(label));
    *at++ = (uint8_t)s->cipher->id;
    *at++ = (uint8_t)purpose;
    mrd_wire_put_u64(at, name->key_id);
    mrd_wire_put_u64(at + 8, name->from);
    mrd_wire_put_u64(at + 16, name->to);
    mrd_wire_put_u64(at + 24, name->sub);
    at += 32;
    *at++ = 1;
    done = s->cipher->hmac(s->cipher->arg, prk, info, (uint32_t)(at - info), block[0]);
    if (done && bytes > sizeof(block[0])) {
        memcpy(text, block[0], sizeof(block[0]));
        at[-1] = 2;
        done = s->cipher->hmac(s->cipher->arg, prk, text, (uint32_t)(at - text), block[1]);
    }
    memcpy(out, block, bytes);
    mrd_wipe(block, sizeof(block));
    mrd_wipe(text, sizeof(text));
    return done;
}

static void forget(struct mrd_seal *s, struct key *key)
{
    if (key->valid)
        s->cipher->wipe(s->cipher->arg, key->state);
    key->valid = false;
    mrd_wipe(key->iv, sizeof(key->iv));
}

static bool derive(struct mrd_seal *s, struct key *key, const struct shared *shared,
                   enum purpose purpose, const struct name *name)
{
    uint8_t bytes[MRD_CIPHER_KEY_BYTES_MAX + MRD_CIPHER_NONCE_BYTES];
    uint32_t key_bytes = s->cipher->key_bytes;

    forget(s, key);
    s->stats.derived++;
    key->name = *name;
    key->valid = expand(s, shared->prk, purpose, name, bytes, key_bytes + MRD_CIPHER_NONCE_BYTES) &&
                 s->cipher->expand(s->cipher->arg, key->state, bytes);
    memcpy(key->iv, bytes + key_bytes, sizeof(key->iv));
    mrd_wipe(bytes, sizeof(bytes));
    s->stats.failed += !key->valid;
    return key->valid;
}

static bool is_key(const struct key *key, const struct name *name)
{
    return key->valid && key->name.sub == name->sub && key->name.key_id == name->key_id &&
           key->name.from == name->from && key->name.to == name->to;
}

/* Of a life that nothing is kept of: where its keys are, or are to be. */
static struct key *stranger_of(struct mrd_seal *s, const struct name *name)
{
    uint64_t hash = mrd_hash_mix(name->from ^ mrd_hash_mix(name->to ^ name->sub));

    return &s->stranger[(hash ^ name->key_id) % STRANGERS];
}

/* As RFC 9001, 5.3: the number is unique for the key, or with the sender's life for that of anybody. */
static void make_nonce(const struct key *key, const struct head *h, uint8_t *nonce)
{
    uint8_t bytes[MRD_CIPHER_NONCE_BYTES] = {0};

    mrd_wire_put_u64(bytes + 4, h->number);
    if (!h->to) {
        memcpy(bytes, bytes + 8, 4);
        mrd_wire_put_u64(bytes + 4, h->from);
    }
    for (unsigned i = 0; i < sizeof(bytes); i++)
        nonce[i] = key->iv[i] ^ bytes[i];
}

static struct shared *find_shared(const struct mrd_seal *s, uint32_t id)
{
    struct mrd_hash_node *n = mrd_hash_first(&s->shared, id);

    for (; n; n = n->next)
        if (n->hash == id)
            return mrd_container_of(n, struct shared, by_id);
    return NULL;
}

bool mrd_seal_has_key(const struct mrd_seal *s, uint32_t id)
{
    return find_shared(s, id);
}

void mrd_seal_remove_key(struct mrd_seal *s, uint32_t id)
{
    struct shared *shared = find_shared(s, id);

    if (!shared)
        return;
    mrd_hash_del(&s->shared, &shared->by_id);
    if (s->sends == shared)
        s->sends = NULL;
    forget(s, &shared->anybody);
    mrd_wipe(shared, sizeof(*shared));
    mrd_free(s->allocator, shared, sizeof(*shared) + ALIGN + s->state_bytes);
    /* The same id may be of another key next time. */
    for (unsigned i = 0; i < STRANGERS; i++)
        if (s->stranger[i].name.key_id == id)
            forget(s, &s->stranger[i]);
    for (struct mrd_node *n = s->used.next; n != &s->used; n = n->next) {
        struct mrd_seal_peer *peer = mrd_container_of(n, struct mrd_seal_peer, used);
        struct key *const key[] = {&peer->in[0], &peer->in[1], &peer->out};

        for (unsigned i = 0; i < 3; i++)
            if (key[i]->name.key_id == id)
                forget(s, key[i]);
    }
}

static void *align(void *at)
{
    return (void *)(((uintptr_t)at + ALIGN - 1) / ALIGN * ALIGN);
}

bool mrd_seal_add_key(struct mrd_seal *s, uint32_t id, const uint8_t *key, bool sends)
{
    static const uint8_t salt[MRD_CIPHER_HASH_BYTES] = "mrd shared key";
    struct name name = {.key_id = id};
    struct shared *shared;

    assert(id <= MRD_SEAL_KEY_ID_MAX);
    mrd_seal_remove_key(s, id);
    shared = mrd_alloc(s->allocator, sizeof(*shared) + ALIGN + s->state_bytes);
    if (!shared)
        return false;
    shared->id = id;
    shared->anybody.state = align(shared + 1);
    mrd_hash_add(&s->shared, &shared->by_id, id);
    if (!s->cipher->hmac(s->cipher->arg, salt, key, MRD_SEAL_KEY_BYTES, shared->prk) ||
        !derive(s, &shared->anybody, shared, PURPOSE_ANYBODY, &name)) {
        mrd_seal_remove_key(s, id);
        return false;
    }
    if (sends || !s->sends)
        s->sends = shared;
    return true;
}

/* ---------------------------------------------------------------------------------------- lives */

static struct mrd_seal_peer *find_peer(struct mrd_seal *s, uint64_t life)
{
    struct mrd_hash_node *n = mrd_hash_first(&s->lives, life);

    for (; n; n = n->next)
        if (n->hash == life) {
            struct mrd_seal_peer *peer = mrd_container_of(n, struct mrd_seal_peer, by_life);

            if (peer->used.next != &s->used) {
                mrd_list_remove(&peer->used);
                mrd_list_append(&s->used, &peer->used);
            }
            return peer;
        }
    return NULL;
}

static void forget_peer(struct mrd_seal *s, struct mrd_seal_peer *peer)
{
    forget(s, &peer->in[0]);
    forget(s, &peer->in[1]);
    forget(s, &peer->out);
    mrd_list_remove(&peer->used);
    mrd_hash_del(&s->lives, &peer->by_life);
    mrd_pool_release(&s->peers, peer);
}

static struct mrd_seal_peer *add_peer(struct mrd_seal *s, uint64_t life)
{
    struct mrd_seal_peer *peer;
    uint8_t *states;

    if (!mrd_pool_free(&s->peers))
        forget_peer(s, mrd_container_of(s->used.next, struct mrd_seal_peer, used));
    peer = mrd_pool_alloc(&s->peers);
    memset(peer, 0, s->peers.item_bytes);
    states = align(peer + 1);
    peer->life = life;
    peer->in[0].state = states;
    peer->in[1].state = states + s->state_bytes;
    peer->out.state = states + 2 * s->state_bytes;
    mrd_hash_add(&s->lives, &peer->by_life, life);
    mrd_list_append(&s->used, &peer->used);
    return peer;
}

/* The expanded key goes elsewhere. */
static void move(struct mrd_seal *s, struct key *to, struct key *from)
{
    void *state = to->state;

    forget(s, to);
    memcpy(state, from->state, s->state_bytes);
    mrd_wipe(from->state, s->state_bytes);
    *to = *from;
    to->state = state;
    from->valid = false;
    mrd_wipe(from->iv, sizeof(from->iv));
}

/* Of the two keys that a life's packets may have at a time, the older one goes. */
static void take_in(struct mrd_seal *s, struct mrd_seal_peer *peer, struct key *key)
{
    bool newer =
        key->name.key_id != peer->in[0].name.key_id || key->name.sub > peer->in[0].name.sub;

    if (peer->in[0].valid && newer)
        move(s, &peer->in[1], &peer->in[0]);
    move(s, &peer->in[peer->in[0].valid], key);
}

/* ----------------------------------------------------------------------------------------- open */

/* Anybody can send packets of lives that do not exist, or of keys to come. */
static bool may_derive(struct mrd_seal *s, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns > s->counted_ns ? now_ns - s->counted_ns : 0;

    s->counted_ns += passed_ns;
    s->credit_ns = passed_ns < s->most_ns - s->credit_ns ? s->credit_ns + passed_ns : s->most_ns;
    if (s->credit_ns < DERIVE_NS)
        return false;
    s->credit_ns -= DERIVE_NS;
    return true;
}

static enum mrd_seal_verdict open_by(struct mrd_seal *s, struct key *key, const struct head *h,
                                     struct mrd_rx_packet *packet)
{
    uint8_t nonce[MRD_CIPHER_NONCE_BYTES], *data = (uint8_t *)(uintptr_t)packet->data;

    make_nonce(key, h, nonce);
    return s->cipher->open(s->cipher->arg, key->state, nonce, data, MRD_SEAL_HEAD_BYTES,
                           data + MRD_SEAL_HEAD_BYTES, packet->len - MRD_SEAL_BYTES)
               ? MRD_SEAL_OPENED
               : MRD_SEAL_BAD_TAG;
}

/* Only a question comes to anybody, of a life that is told nothing but who is there. */
static enum mrd_seal_verdict open_question(struct mrd_seal *s, struct shared *shared,
                                           const struct head *h, struct mrd_rx_packet *packet)
{
    if (h->number > UINT32_MAX || packet->len != MRD_WIRE_BASE_BYTES + MRD_SEAL_BYTES)
        return MRD_SEAL_BAD_TAG;
    return open_by(s, &shared->anybody, h, packet);
}

/* Of a life that nothing is kept of, or to an earlier life of ours, which the engine answers. */
static enum mrd_seal_verdict open_strange(struct mrd_seal *s, struct shared *shared,
                                          const struct head *h, const struct name *name,
                                          struct mrd_rx_packet *packet, uint64_t now_ns)
{
    struct key *key = stranger_of(s, name);

    if (!is_key(key, name) &&
        (!may_derive(s, now_ns) || !derive(s, key, shared, PURPOSE_PAIR, name)))
        return MRD_SEAL_BUSY;
    return open_by(s, key, h, packet);
}

/* Where the key of a packet is, if its sender is known and its key as well. */
static struct key *find_in(struct mrd_seal_peer *peer, const struct name *name)
{
    for (unsigned i = 0; peer && i < 2; i++)
        if (is_key(&peer->in[i], name))
            return &peer->in[i];
    return NULL;
}

/*
 * Others' packets must cost neither the records nor the keys that are in use: a key is a stranger's
 * until one of its packets is opened.
 */
static enum mrd_seal_verdict open_ours(struct mrd_seal *s, struct shared *shared,
                                       const struct head *h, const struct name *name,
                                       struct mrd_rx_packet *packet, uint64_t now_ns)
{
    struct mrd_seal_peer *peer = find_peer(s, h->from);
    struct key *key = find_in(peer, name);
    enum mrd_seal_verdict verdict;

    if (peer && mrd_replay_knows(&peer->seen, h->number))
        return MRD_SEAL_REPLAY;
    verdict = key ? open_by(s, key, h, packet) : open_strange(s, shared, h, name, packet, now_ns);
    if (verdict)
        return verdict;
    if (!peer)
        peer = add_peer(s, h->from);
    if (!key)
        take_in(s, peer, stranger_of(s, name));
    mrd_replay_add(&peer->seen, h->number);
    return MRD_SEAL_OPENED;
}

static enum mrd_seal_verdict open_packet(struct mrd_seal *s, const struct head *h,
                                         struct mrd_rx_packet *packet, uint64_t now_ns)
{
    struct name name = {h->from, h->to, h->number >> MRD_SEAL_SUBKEY_BITS, h->key_id};
    struct shared *shared = find_shared(s, h->key_id);

    if (!shared)
        return MRD_SEAL_NO_KEY;
    if (!h->to)
        return open_question(s, shared, h, packet);
    if (h->to == s->life)
        return open_ours(s, shared, h, &name, packet, now_ns);
    /* One of ours that somebody sends back? */
    return h->from == s->life ? MRD_SEAL_REPLAY : open_strange(s, shared, h, &name, packet, now_ns);
}

enum mrd_seal_verdict mrd_seal_open(struct mrd_seal *s, struct mrd_rx_packet *packet,
                                    uint64_t now_ns, struct mrd_seal_claim *claim)
{
    enum mrd_seal_verdict verdict = MRD_SEAL_CLEAR;
    struct head h = {0};

    if (packet->len >= MRD_SEAL_BYTES + MRD_WIRE_BASE_BYTES && packet->data[0] == FIRST_BYTE) {
        get_head(packet->data, &h);
        verdict = open_packet(s, &h, packet, now_ns);
    } else if (packet->len >= MRD_WIRE_BASE_BYTES) {
        h.reply = mrd_wire_peek_reply(packet->data);
    }
    s->stats.verdicts[verdict]++;
    if (verdict) {
        *claim = (struct mrd_seal_claim){h.key_id, h.reply};
        return verdict;
    }
    packet->data += MRD_SEAL_HEAD_BYTES;
    packet->len -= MRD_SEAL_BYTES;
    packet->life = h.from;
    return verdict;
}

/* ----------------------------------------------------------------------------------------- seal */

/* The key to a life; NULL: the library failed. */
static struct key *find_out(struct mrd_seal *s, const struct name *name)
{
    struct mrd_seal_peer *peer = find_peer(s, name->to);
    struct key *key = peer ? &peer->out : stranger_of(s, name);

    if (is_key(key, name) || derive(s, key, s->sends, PURPOSE_PAIR, name))
        return key;
    return NULL;
}

void mrd_seal_packet(struct mrd_seal *s, struct mrd_tx_packet *packet)
{
    struct head h = {s->sends ? s->sends->id : 0, s->reply, s->number, s->life, packet->life};
    struct iovec pieces[1 + MRD_SEGMENT_PIECES_MAX] = {{packet->head, packet->head_len}};
    uint8_t nonce[MRD_CIPHER_NONCE_BYTES], *inner = packet->head;
    struct key *key = NULL;

    if (!h.to)
        h.number = s->asked;
    memcpy(&pieces[1], packet->iov, packet->num_iov * sizeof(packet->iov[0]));
    packet->head -= MRD_SEAL_HEAD_BYTES;
    put_head(packet->head, &h);
    if (s->sends && h.to)
        key = find_out(s, &(struct name){h.from, h.to, h.number >> MRD_SEAL_SUBKEY_BITS, h.key_id});
    else if (s->sends && h.number <= UINT32_MAX)
        key = &s->sends->anybody;
    if (key) {
        make_nonce(key, &h, nonce);
        *(h.to ? &s->number : &s->asked) += 1;
    }
    if (!key || !s->cipher->seal(s->cipher->arg, key->state, nonce, packet->head,
                                 MRD_SEAL_HEAD_BYTES, pieces, 1u + packet->num_iov, inner)) {
        s->stats.failed++; /* nothing in the clear leaves: it is lost */
        memset(inner, 0, packet->len + MRD_CIPHER_TAG_BYTES);
    }
    packet->len += MRD_SEAL_BYTES;
    packet->head_len = (uint16_t)packet->len;
    packet->num_iov = 0;
}

/* ------------------------------------------------------------------------------ create and destroy */

struct mrd_seal *mrd_seal_create(const struct mrd_seal_config *config,
                                 const struct mrd_allocator *allocator)
{
    struct mrd_seal *s = mrd_alloc(allocator, sizeof(*s));
    size_t bytes;

    if (!s)
        return NULL;
    s->memory = *allocator;
    s->allocator = &s->memory;
    s->cipher = config->cipher;
    s->life = config->life;
    s->reply = config->reply & 0xffffff;
    s->number = s->asked = config->number;
    s->state_bytes = (config->cipher->state_bytes + ALIGN - 1) / ALIGN * ALIGN;
    s->most_ns = (uint64_t)config->max_peers * DERIVE_NS;
    if (config->max_peers < DERIVE_LEAST)
        s->most_ns = (uint64_t)DERIVE_LEAST * DERIVE_NS;
    s->credit_ns = s->most_ns;
    mrd_list_init(&s->used);
    bytes =
        (sizeof(struct mrd_seal_peer) + ALIGN - 1 + 3 * s->state_bytes + ALIGN - 1) / ALIGN * ALIGN;
    s->states = mrd_alloc(s->allocator, STRANGERS * s->state_bytes + ALIGN);
    if (!s->states || !mrd_pool_init(&s->peers, s->allocator, bytes, config->max_peers) ||
        !mrd_hash_init(&s->lives, s->allocator, config->max_peers) ||
        !mrd_hash_init(&s->shared, s->allocator, KEYS)) {
        mrd_seal_destroy(s);
        return NULL;
    }
    for (unsigned i = 0; i < STRANGERS; i++)
        s->stranger[i].state = (uint8_t *)align(s->states) + i * s->state_bytes;
    return s;
}

void mrd_seal_destroy(struct mrd_seal *s)
{
    struct mrd_allocator allocator = s->memory;

    if (s->states)
        for (unsigned i = 0; i < STRANGERS; i++)
            forget(s, &s->stranger[i]);
    while (!mrd_list_empty(&s->used))
        forget_peer(s, mrd_container_of(s->used.next, struct mrd_seal_peer, used));
    for (uint32_t i = 0; s->shared.bucket && i <= s->shared.mask; i++)
        while (s->shared.bucket[i])
            mrd_seal_remove_key(s, mrd_container_of(s->shared.bucket[i], struct shared, by_id)->id);
    mrd_hash_fini(&s->shared, s->allocator);
    mrd_hash_fini(&s->lives, s->allocator);
    mrd_pool_fini(&s->peers);
    if (s->states)
        mrd_free(s->allocator, s->states, STRANGERS * s->state_bytes + ALIGN);
    mrd_wipe(s, sizeof(*s));
    mrd_free(&allocator, s, sizeof(*s));
}

const struct mrd_seal_stats *mrd_seal_stats(const struct mrd_seal *s)
{
    return &s->stats;
}
