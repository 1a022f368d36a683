/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a context as they were at one time. */
#ifndef MRD_COMMON_COUNTERS_H
#define MRD_COMMON_COUNTERS_H

#include <string.h>

#include <mrd/mrd.h>

struct counters {
    struct mrd_counter all[256]; /* more than there are */
    int num;
};

/* Reads all of them. Without a context there are none. */
static inline void counters_read(struct counters *c, struct mrd_context *context)
{
    const int most = sizeof(c->all) / sizeof(c->all[0]);
    int num = context ? mrd_query_counters(context, c->all, most) : 0;

    c->num = num < most ? num : most;
}

/* The counter of that name; 0: there is none. */
static inline uint64_t counters_value(const struct counters *c, const char *name)
{
    for (int i = 0; i < c->num; i++) {
        if (strcmp(c->all[i].name, name) == 0)
            return c->all[i].value;
    }
    return 0;
}

#endif
