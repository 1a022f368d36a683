/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rr: the GOOD paths in turn, from a random one: senders that start together take different ones.
 */
#include "core/spray.h"

static void rr_init(struct mrd_spray *s, const struct mrd_paths *paths, struct mrd_rng *rng)
{
    s->ops = &mrd_spray_rr;
    s->next = mrd_rng_below(rng, paths->num);
}

static uint32_t rr_pick(struct mrd_spray *s, const struct mrd_paths *paths,
                        const struct mrd_spray_args *args)
{
    uint32_t index = mrd_spray_walk(paths, args, s->next);

    s->next = index + 1 < paths->num ? index + 1 : 0;
    return index;
}

const struct mrd_spray_ops mrd_spray_rr = {
    .name = "rr",
    .init = rr_init,
    .pick = rr_pick,
};
