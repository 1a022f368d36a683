/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/tune.h"

#include <errno.h>
#include <float.h>
#include <string.h>

#define P(part, constants) constants(X)

const struct mrd_tune mrd_tune_default = {
#define X(part, member, value, text) .part.member = (value),
    MRD_TUNE_PARTS(P)
#undef X
};

static const struct mrd_tune_entry entries[] = {
#define X(part, member, value, text)                                                               \
    {.name = #part "." #member,                                                                    \
     .help = (text),                                                                               \
     .value_default = (value),                                                                     \
     .offset = offsetof(struct mrd_tune, part.member)},
    MRD_TUNE_PARTS(P)
#undef X
};

enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

_Static_assert(sizeof(struct mrd_tune) == ENTRIES * sizeof(double), "each member has an entry");

const struct mrd_tune_entry *mrd_tune_entries(unsigned *num)
{
    *num = ENTRIES;
    return entries;
}

static const struct mrd_tune_entry *find(const struct mrd_tune_entry *list, unsigned num,
                                         const char *name)
{
    for (unsigned i = 0; i < num; i++) {
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    }
    return NULL;
}

int mrd_tune_set_in(const struct mrd_tune_entry *list, unsigned num, void *constants,
                    const char *name, double value)
{
    const struct mrd_tune_entry *entry = find(list, num, name);

    if (!entry)
        return -ENOENT;
    if (!(value >= 0 && value <= DBL_MAX)) /* NaN fails both */
        return -EINVAL;
    memcpy((char *)constants + entry->offset, &value, sizeof(value));
    return 0;
}

int mrd_tune_set(struct mrd_tune *tune, const char *name, double value)
{
    return mrd_tune_set_in(entries, ENTRIES, tune, name, value);
}

bool mrd_tune_get(const struct mrd_tune *tune, const char *name, double *value)
{
    const struct mrd_tune_entry *entry = find(entries, ENTRIES, name);

    if (!entry)
        return false;
    memcpy(value, (const char *)tune + entry->offset, sizeof(*value));
    return true;
}
