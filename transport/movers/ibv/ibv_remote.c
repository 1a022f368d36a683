/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/ibv/ibv_remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PORT_BITS = 14,                /* bits of a source port that the flow label decides */
    LABELS = (1 << PORT_BITS) - 1, /* nonzero flow labels that differ in these bits */
    /* Coprime to LABELS, so that labels of neighbouring paths differ in many bits. */
    LABEL_STRIDE = 5077,
};
#define RETRY_NS 100000000ull

int mrd_ibv_remotes_init(struct mrd_ibv *ibv, uint32_t max)
{
    struct mrd_ibv_remotes *r = &ibv->remotes;
    uint32_t buckets = mrd_hash_buckets(2 * max);

    mrd_list_init(&r->used);
    r->hash.bucket = calloc(buckets, sizeof(struct mrd_hash_node *));
    r->hash.mask = buckets - 1;
    r->max = max;
    r->num_ahs = ibv->port.entropy == MRD_IBV_BY_AH ? ibv->max_paths : 1;
    if (r->hash.bucket)
        return 0;
    mrd_error_set("no memory for the address handles of %u peers", max);
    return -ENOMEM;
}

static void free_remote(struct mrd_ibv *ibv, struct mrd_ibv_remote *remote)
{
    for (uint32_t i = 0; i < ibv->remotes.num_ahs; i++)
        if (remote->ah[i])
            ibv_destroy_ah(remote->ah[i]);
    mrd_hash_del(&ibv->remotes.hash, &remote->by_key);
    mrd_list_remove(&remote->used);
    ibv->remotes.num--;
    free(remote);
}

void mrd_ibv_remotes_fini(struct mrd_ibv *ibv)
{
    struct mrd_node *n;

    if (!ibv->remotes.hash.bucket)
        return;
    while ((n = mrd_list_first(&ibv->remotes.used)))
        free_remote(ibv, mrd_container_of(n, struct mrd_ibv_remote, used));
    free(ibv->remotes.hash.bucket);
    ibv->remotes.hash.bucket = NULL;
}

/* The key of an address: its GID and DSCP, and its QPN only where entries hold QPNs. */
static void key_of(const struct mrd_ibv *ibv, const struct mrd_addr *addr, uint8_t dscp,
                   struct mrd_addr *key)
{
    *key = *addr;
    key->scope = dscp;
    if (ibv->port.entropy != MRD_IBV_BY_QPAIR)
        key->port = 0;
}

static uint64_t hash_of(const struct mrd_addr *key)
{
    uint64_t w[2];

    memcpy(w, key->ip, sizeof(w));
    return mrd_hash_mix(w[0] ^ mrd_hash_mix(w[1] ^ key->port));
}

static struct mrd_ibv_remote *find(const struct mrd_ibv *ibv, const struct mrd_addr *key)
{
    for (struct mrd_hash_node *n = mrd_hash_first(&ibv->remotes.hash, hash_of(key)); n;
         n = n->next) {
        struct mrd_ibv_remote *remote = mrd_container_of(n, struct mrd_ibv_remote, by_key);

        if (memcmp(&remote->key, key, sizeof(*key)) == 0)
            return remote;
    }
    return NULL;
}

struct mrd_ibv_remote *mrd_ibv_remote_find(struct mrd_ibv *ibv, const struct mrd_addr *addr)
{
    struct mrd_addr key;

    key_of(ibv, addr, ibv->dscp, &key);
    return find(ibv, &key);
}

static bool make_room(struct mrd_ibv *ibv)
{
    struct mrd_ibv_remotes *r = &ibv->remotes;

    if (r->num < r->max)
        return true;
    for (struct mrd_node *n = r->used.next; n != &r->used; n = n->next) {
        struct mrd_ibv_remote *remote = mrd_container_of(n, struct mrd_ibv_remote, used);

        if (remote->num_posted)
            continue;
        free_remote(ibv, remote);
        return true;
    }
    return false;
}

/* The further QPNs are learnt by the entry of the context's DSCP. */
static void take_qpns(struct mrd_ibv *ibv, const struct mrd_addr *addr,
                      struct mrd_ibv_remote *remote)
{
    const struct mrd_ibv_remote *known = mrd_ibv_remote_find(ibv, addr);

    for (uint32_t i = 0; known && i < known->num_qpns; i++)
        mrd_ibv_remote_learn(remote, known->qpn[i]);
}

struct mrd_ibv_remote *mrd_ibv_remote_get(struct mrd_ibv *ibv, const struct mrd_addr *addr,
                                          uint8_t dscp)
{
    struct mrd_ibv_remotes *r = &ibv->remotes;
    struct mrd_ibv_remote *remote;
    struct mrd_addr key;

    key_of(ibv, addr, dscp, &key);
    remote = find(ibv, &key);
    if (remote) {
        mrd_list_remove(&remote->used);
        mrd_list_append(&r->used, &remote->used);
        return remote;
    }
    if (!make_room(ibv))
        return NULL;
    remote = calloc(1, sizeof(*remote) + r->num_ahs * sizeof(struct ibv_ah *));
    if (!remote)
        return NULL;
    remote->key = key;
    remote->num_qpns = 1;
    remote->qpn[0] = addr->port;
    if (dscp != ibv->dscp)
        take_qpns(ibv, addr, remote);
    mrd_hash_add(&r->hash, &remote->by_key, hash_of(&key));
    mrd_list_append(&r->used, &remote->used);
    r->num++;
    return remote;
}

void mrd_ibv_remote_learn(struct mrd_ibv_remote *remote, uint32_t qpn)
{
    for (uint32_t i = 0; i < remote->num_qpns; i++)
        if (remote->qpn[i] == qpn)
            return;
    if (remote->num_qpns < MRD_IBV_PAIR_QPS)
        remote->qpn[remote->num_qpns++] = qpn;
}

uint32_t mrd_ibv_flow_label(const struct mrd_ibv *ibv, uint32_t path)
{
    return 1 + (ibv->label_base + path * LABEL_STRIDE) % LABELS;
}

struct ibv_ah *mrd_ibv_remote_get_ah(struct mrd_ibv *ibv, struct mrd_ibv_remote *remote,
                                     uint32_t path)
{
    uint32_t index = ibv->port.entropy == MRD_IBV_BY_AH ? path : 0;
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = ibv->port.num,
        .grh = {.sgid_index = (uint8_t)ibv->port.gid_index,
                .hop_limit = MRD_IBV_HOP_LIMIT,
                .traffic_class = (uint8_t)(remote->key.scope << 2 | ibv->ecn)},
    };

    if (remote->ah[index])
        return remote->ah[index];
    if (remote->failed_ns && mrd_ibv_now_ns(&ibv->base) - remote->failed_ns < RETRY_NS) {
        errno = EHOSTUNREACH;
        return NULL;
    }
    memcpy(attr.grh.dgid.raw, remote->key.ip, sizeof(remote->key.ip));
    attr.grh.flow_label = mrd_ibv_flow_label(ibv, index);
    errno = EIO;
    remote->ah[index] = ibv_create_ah(ibv->pd, &attr);
    remote->failed_ns = remote->ah[index] ? 0 : mrd_ibv_now_ns(&ibv->base);
    return remote->ah[index];
}
