/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/spray.h"

#include <stddef.h>
#include <string.h>

#define X(name) &mrd_spray_##name,
static const struct mrd_spray_ops *const policies[] = {MRD_SPRAY_POLICIES(X)};
#undef X

const struct mrd_spray_ops *mrd_spray_find(const char *name)
{
    if (name == NULL)
        return policies[0];
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    }
    return NULL;
}

uint32_t mrd_spray_walk(const struct mrd_paths *paths, const struct mrd_spray_args *args,
                        uint32_t start)
{
    uint32_t index = start;

    for (uint32_t i = 0; i < paths->num; i++) {
        if ((int)index != args->avoid && mrd_path_is_good(&paths->path[index]))
            return index;
        if (++index == paths->num)
            index = 0;
    }
    return mrd_spray_last_resort(paths, args);
}

/*
 * Is path `a` the better last resort? Suspended before dead before `avoid`; then the one due first.
 */
static bool sooner(const struct mrd_paths *paths, uint32_t a, uint32_t b, int avoid)
{
    const struct mrd_path *pa = &paths->path[a], *pb = &paths->path[b];

    if (((int)a == avoid) != ((int)b == avoid))
        return (int)b == avoid;
    if (pa->state != pb->state)
        return pa->state < pb->state;
    return pa->until_ns < pb->until_ns;
}

uint32_t mrd_spray_last_resort(const struct mrd_paths *paths, const struct mrd_spray_args *args)
{
    uint32_t best = 0;

    if (args->avoid >= 0 && mrd_path_is_good(&paths->path[args->avoid]))
        return (uint32_t)args->avoid;
    for (uint32_t i = 1; i < paths->num; i++) {
        if (sooner(paths, i, best, args->avoid))
            best = i;
    }
    return best;
}
