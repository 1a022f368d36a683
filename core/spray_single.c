/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * single: all packets of a peer on one path, as ECMP places a connection. The baseline: it never
 * leaves its path, not even for a retransmission.
 */
#include "core/spray.h"

static void single_init(struct mrd_spray *s, const struct mrd_paths *paths, struct mrd_rng *rng)
{
    s->ops = &mrd_spray_single;
    s->next = mrd_rng_below(rng, paths->num);
}

static uint32_t single_pick(struct mrd_spray *s, const struct mrd_paths *paths,
                            const struct mrd_spray_args *args)
{
    (void)paths;
    (void)args;
    return s->next;
}

const struct mrd_spray_ops mrd_spray_single = {
    .name = "single",
    .one_path = true,
    .init = single_init,
    .pick = single_pick,
};
