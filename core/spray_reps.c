/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reps: recycled entropies (Bonato et al., REPS: Recycled Entropy Packet Spraying for Adaptive Load
 * Balancing and Failure Mitigation). The path of a packet that was acked unmarked is used again, in
 * the order of the acks. So packets leave on a path as fast as it delivers them. The path of a
 * marked or lost packet leaves the cache. While the cache is empty, as in the first window, all
 * paths are explored in turn.
 */
#include "core/spray.h"

#define CACHE_MASK (MRD_SPRAY_CACHE - 1)

_Static_assert((MRD_SPRAY_CACHE & CACHE_MASK) == 0, "the cache is a ring of a power of two");

static void reps_init(struct mrd_spray *s, const struct mrd_paths *paths, struct mrd_rng *rng)
{
    s->ops = &mrd_spray_reps;
    s->next = mrd_rng_below(rng, paths->num);
    s->cache_head = s->cache_tail = 0;
}

static uint32_t reps_pick(struct mrd_spray *s, const struct mrd_paths *paths,
                          const struct mrd_spray_args *args)
{
    while (s->cache_head != s->cache_tail) {
        uint32_t index = s->cache[s->cache_head++ & CACHE_MASK];

        if (index < paths->num && (int)index != args->avoid &&
            mrd_path_is_good(&paths->path[index]))
            return index;
    }
    uint32_t index = mrd_spray_walk(paths, args, s->next);

    s->next = index + 1 < paths->num ? index + 1 : 0;
    return index;
}

static void drop(struct mrd_spray *s, uint32_t index)
{
    uint16_t to = s->cache_head;

    for (uint16_t from = s->cache_head; from != s->cache_tail; from++) {
        uint16_t cached = s->cache[from & CACHE_MASK];

        if (cached != index)
            s->cache[to++ & CACHE_MASK] = cached;
    }
    s->cache_tail = to;
}

static void reps_acked(struct mrd_spray *s, uint32_t index, bool ce)
{
    if (ce) {
        drop(s, index);
        return;
    }
    /* The packets of a quantum are acked together and get one entry: more would evict others. */
    if (s->cache_head != s->cache_tail && s->cache[(s->cache_tail - 1) & CACHE_MASK] == index)
        return;
    if ((uint16_t)(s->cache_tail - s->cache_head) == MRD_SPRAY_CACHE)
        s->cache_head++;
    s->cache[s->cache_tail++ & CACHE_MASK] = (uint16_t)index;
}

static void reps_lost(struct mrd_spray *s, uint32_t index)
{
    drop(s, index);
}

const struct mrd_spray_ops mrd_spray_reps = {
    .name = "reps",
    .caches = true,
    .init = reps_init,
    .pick = reps_pick,
    .acked = reps_acked,
    .lost = reps_lost,
};
