/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: tables by lkey (an index with a generation) and by rkey (random).
 *
 * mrd_mr_add() and mrd_mr_del() are for control calls. mrd_mr_local(), mrd_mr_remote() and
 * mrd_mr_list_stays() check each access, so that no memory is touched after its deregistration.
 */
#ifndef MRD_CORE_MR_H
#define MRD_CORE_MR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"
#include "core/packet.h"
#include "core/secret.h"
#include "mrd/mrd.h"

struct mrd_allocator;

struct mrd_mr_impl {
    struct mrd_mr pub;
    int access;
    struct mrd_mover_mr mover;
    struct mrd_hash_node by_rkey;
};

enum { MRD_RKEYS_GONE = 1024 }; /* a power of two */

struct mrd_mrs {
    const struct mrd_allocator *allocator;
    struct mrd_mr_impl **by_index;
    /* Regions; table size, a power of two; where to look for a free place. */
    uint32_t num, size, next;
    uint32_t generation;
    uint32_t num_polled;   /* regions of MRD_ACCESS_POLLED */
    uint64_t removals;     /* one more than regions were removed */
    struct mrd_hash rkeys; /* with as many buckets as the table has places */
    uint32_t
        gone[MRD_RKEYS_GONE]; /* of regions removed lately, by the low bits of the rkey; 0: none */
};

enum mrd_mr_verdict { MRD_MR_OK, MRD_MR_NO_KEY, MRD_MR_RANGE, MRD_MR_ACCESS };

bool mrd_mrs_init(struct mrd_mrs *mrs, const struct mrd_allocator *allocator);
void mrd_mrs_fini(struct mrd_mrs *mrs);
/* Adds a region like `pub` with new keys, its rkey drawn from `secret`; NULL: no memory. */
struct mrd_mr_impl *mrd_mr_add(struct mrd_mrs *mrs, struct mrd_secret *secret,
                               const struct mrd_mr *pub, int access,
                               const struct mrd_mover_mr *mover);
void mrd_mr_del(struct mrd_mrs *mrs, struct mrd_mr_impl *mr);
/* May [addr, addr + len) be used through this lkey by an object of `pd`? access: flags needed. */
enum mrd_mr_verdict mrd_mr_local(const struct mrd_mrs *mrs, const struct mrd_pd *pd, uint32_t lkey,
                                 uint64_t addr, uint32_t len, int access);
enum mrd_mr_verdict mrd_mr_remote(const struct mrd_mrs *mrs, const struct mrd_pd *pd, uint32_t rkey,
                                  uint64_t addr, uint64_t len, int access);
/* Is it the rkey of a region, or was it lately? Whoever names it was told it. */
bool mrd_mr_was_told(const struct mrd_mrs *mrs, uint32_t rkey);
/* Returns the lkey of a region that mrd_mr_remote() found valid. */
uint32_t mrd_mr_lkey(const struct mrd_mrs *mrs, uint32_t rkey);
/* Returns the mover's key of a region that mrd_mr_local() found valid. */
uint32_t mrd_mr_mover_key(const struct mrd_mrs *mrs, uint32_t lkey);
bool mrd_mr_rkey_is_polled(const struct mrd_mrs *mrs, uint32_t rkey);
bool mrd_mr_list_is_polled(const struct mrd_mrs *mrs, const struct mrd_sge *sge, uint32_t num);
/* Has the region of the rkey, or that of an entry of the list, MRD_ACCESS_POLLED? Few programs have any. */
static inline bool mrd_mr_polls_rkey(const struct mrd_mrs *mrs, uint32_t rkey)
{
    return mrs->num_polled && mrd_mr_rkey_is_polled(mrs, rkey);
}

static inline bool mrd_mr_polls_list(const struct mrd_mrs *mrs, const struct mrd_sge *sge,
                                     uint32_t num)
{
    return mrs->num_polled && mrd_mr_list_is_polled(mrs, sge, num);
}

/*
 * Checks all entries of a scatter or gather list; returns the first verdict that is not MRD_MR_OK.
 */
enum mrd_mr_verdict mrd_mr_list(const struct mrd_mrs *mrs, const struct mrd_pd *pd,
                                const struct mrd_sge *sge, uint32_t num, int access);
/*
 * Are all entries of a list valid? `seen`: kept with the list, `removals` when they were last found
 * so, 0 at first. They are not looked up again before a region is removed.
 */
static inline bool mrd_mr_list_stays(const struct mrd_mrs *mrs, const struct mrd_pd *pd,
                                     const struct mrd_sge *sge, uint32_t num, int access,
                                     uint64_t *seen)
{
    if (*seen == mrs->removals)
        return true;
    if (mrd_mr_list(mrs, pd, sge, num, access) != MRD_MR_OK)
        return false;
    *seen = mrs->removals;
    return true;
}

#endif
