/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/mr.h"

#include <string.h>

#include "core/alloc.h"
#include "core/limits.h"

enum {
    INDEX_BITS = 20, /* the rest of an lkey is the generation */
    TABLE_MIN = 64,
};
_Static_assert(1 << INDEX_BITS == MRD_MRS_MAX, "an lkey names each");

bool mrd_mrs_init(struct mrd_mrs *mrs, const struct mrd_allocator *allocator)
{
    memset(mrs, 0, sizeof(*mrs));
    mrs->allocator = allocator;
    mrs->size = TABLE_MIN;
    mrs->removals = 1;
    mrs->by_index = mrd_alloc(allocator, TABLE_MIN * sizeof(*mrs->by_index));
    return mrs->by_index && mrd_hash_init(&mrs->rkeys, allocator, TABLE_MIN);
}

void mrd_mrs_fini(struct mrd_mrs *mrs)
{
    if (mrs->by_index)
        mrd_free(mrs->allocator, mrs->by_index, mrs->size * sizeof(*mrs->by_index));
    mrd_hash_fini(&mrs->rkeys, mrs->allocator);
}

static bool grow(struct mrd_mrs *mrs)
{
    struct mrd_mrs wide = *mrs;

    wide.size *= 2;
    if (wide.size > MRD_MRS_MAX)
        return false;
    wide.by_index = mrd_alloc(mrs->allocator, wide.size * sizeof(*wide.by_index));
    wide.rkeys.bucket = NULL;
    if (!wide.by_index || !mrd_hash_init(&wide.rkeys, mrs->allocator, wide.size)) {
        mrd_mrs_fini(&wide);
        return false;
    }
    for (uint32_t i = 0; i < mrs->size; i++) {
        wide.by_index[i] = mrs->by_index[i];
        if (wide.by_index[i])
            mrd_hash_add(&wide.rkeys, &wide.by_index[i]->by_rkey, wide.by_index[i]->by_rkey.hash);
    }
    mrd_mrs_fini(mrs);
    *mrs = wide;
    return true;
}

static struct mrd_mr_impl *find_rkey(const struct mrd_mrs *mrs, uint32_t rkey)
{
    for (struct mrd_hash_node *n = mrd_hash_first(&mrs->rkeys, mrd_hash_mix(rkey)); n;
         n = n->next) {
        struct mrd_mr_impl *mr =
            (struct mrd_mr_impl *)(void *)((char *)n - offsetof(struct mrd_mr_impl, by_rkey));

        if (mr->pub.rkey == rkey)
            return mr;
    }
    return NULL;
}

struct mrd_mr_impl *mrd_mr_add(struct mrd_mrs *mrs, struct mrd_secret *secret,
                               const struct mrd_mr *pub, int access,
                               const struct mrd_mover_mr *mover)
{
    struct mrd_mr_impl *mr;
    uint32_t rkey, index;

    if (mrs->num == mrs->size && !grow(mrs))
        return NULL;
    mr = mrd_alloc(mrs->allocator, sizeof(*mr));
    if (!mr)
        return NULL;
    do
        rkey = (uint32_t)mrd_secret_draw(secret);
    while (!rkey || find_rkey(mrs, rkey));
    while (mrs->by_index[index = mrs->next++ & (mrs->size - 1)])
        ;
    mrs->generation += 1u << INDEX_BITS;
    if (!mrs->generation) /* an lkey is never 0 */
        mrs->generation += 1u << INDEX_BITS;
    mr->pub = *pub;
    mr->pub.lkey = mrs->generation | index;
    mr->pub.rkey = rkey;
    mr->access = access;
    mr->mover = *mover;
    mrs->by_index[index] = mr;
    mrd_hash_add(&mrs->rkeys, &mr->by_rkey, mrd_hash_mix(rkey));
    mrs->num++;
    mrs->num_polled += (access & MRD_ACCESS_POLLED) != 0;
    return mr;
}

void mrd_mr_del(struct mrd_mrs *mrs, struct mrd_mr_impl *mr)
{
    mrd_hash_del(&mrs->rkeys, &mr->by_rkey);
    mrs->by_index[mr->pub.lkey & (mrs->size - 1)] = NULL;
    mrs->num--;
    mrs->num_polled -= (mr->access & MRD_ACCESS_POLLED) != 0;
    mrs->removals++;
    mrs->gone[mr->pub.rkey % MRD_RKEYS_GONE] = mr->pub.rkey;
    mrd_free(mrs->allocator, mr, sizeof(*mr));
}

static enum mrd_mr_verdict covers(const struct mrd_mr_impl *mr, const struct mrd_pd *pd,
                                  uint64_t addr, uint64_t len, int access)
{
    uint64_t start = (uint64_t)(uintptr_t)mr->pub.addr;

    if (mr->pub.pd != pd)
        return MRD_MR_NO_KEY;
    if (addr < start || len > mr->pub.length || addr - start > mr->pub.length - len)
        return MRD_MR_RANGE;
    return (mr->access & access) == access ? MRD_MR_OK : MRD_MR_ACCESS;
}

enum mrd_mr_verdict mrd_mr_local(const struct mrd_mrs *mrs, const struct mrd_pd *pd, uint32_t lkey,
                                 uint64_t addr, uint32_t len, int access)
{
    const struct mrd_mr_impl *mr = mrs->by_index[lkey & (mrs->size - 1)];

    return mr && mr->pub.lkey == lkey ? covers(mr, pd, addr, len, access) : MRD_MR_NO_KEY;
}

enum mrd_mr_verdict mrd_mr_remote(const struct mrd_mrs *mrs, const struct mrd_pd *pd, uint32_t rkey,
                                  uint64_t addr, uint64_t len, int access)
{
    const struct mrd_mr_impl *mr = find_rkey(mrs, rkey);

    return mr ? covers(mr, pd, addr, len, access) : MRD_MR_NO_KEY;
}

bool mrd_mr_was_told(const struct mrd_mrs *mrs, uint32_t rkey)
{
    return rkey && (find_rkey(mrs, rkey) || mrs->gone[rkey % MRD_RKEYS_GONE] == rkey);
}

uint32_t mrd_mr_lkey(const struct mrd_mrs *mrs, uint32_t rkey)
{
    return find_rkey(mrs, rkey)->pub.lkey;
}

uint32_t mrd_mr_mover_key(const struct mrd_mrs *mrs, uint32_t lkey)
{
    return mrs->by_index[lkey & (mrs->size - 1)]->mover.key;
}

bool mrd_mr_rkey_is_polled(const struct mrd_mrs *mrs, uint32_t rkey)
{
    const struct mrd_mr_impl *mr = find_rkey(mrs, rkey);

    return mr && mr->access & MRD_ACCESS_POLLED;
}

bool mrd_mr_list_is_polled(const struct mrd_mrs *mrs, const struct mrd_sge *sge, uint32_t num)
{
    for (uint32_t i = 0; i < num; i++) {
        const struct mrd_mr_impl *mr = mrs->by_index[sge[i].lkey & (mrs->size - 1)];

        if (mr && mr->pub.lkey == sge[i].lkey && mr->access & MRD_ACCESS_POLLED)
            return true;
    }
    return false;
}

enum mrd_mr_verdict mrd_mr_list(const struct mrd_mrs *mrs, const struct mrd_pd *pd,
                                const struct mrd_sge *sge, uint32_t num, int access)
{
    for (uint32_t i = 0; i < num; i++) {
        enum mrd_mr_verdict v = MRD_MR_OK;

        if (sge[i].length)
            v = mrd_mr_local(mrs, pd, sge[i].lkey, sge[i].addr, sge[i].length, access);
        if (v != MRD_MR_OK)
            return v;
    }
    return MRD_MR_OK;
}
