/* SPDX-License-Identifier: BSD-2-Clause */
/* random: a random GOOD path for each quantum. */
#include "core/spray.h"

/* At most half of the paths are out, so all draws fail with probability 1/256 at worst. */
enum { DRAWS = 8 };

static void random_init(struct mrd_spray *s, const struct mrd_paths *paths, struct mrd_rng *rng)
{
    (void)paths;
    (void)rng;
    s->ops = &mrd_spray_random;
}

static uint32_t random_pick(struct mrd_spray *s, const struct mrd_paths *paths,
                            const struct mrd_spray_args *args)
{
    uint32_t index = 0;

    (void)s;
    for (int i = 0; i < DRAWS; i++) {
        index = mrd_rng_below(args->rng, paths->num);
        if ((int)index != args->avoid && mrd_path_is_good(&paths->path[index]))
            return index;
    }
    return mrd_spray_walk(paths, args, index);
}

const struct mrd_spray_ops mrd_spray_random = {
    .name = "random",
    .init = random_init,
    .pick = random_pick,
};
