/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/tune.h"

#include <stddef.h>

const struct model_tune model_tune_default = {
#define X(part, member, value, text) .part.member = (value),
    MODEL_TUNE(X)
#undef X
};

static const struct mrd_tune_entry entries[] = {
#define X(part, member, value, text)                                                               \
    {.name = #part "." #member,                                                                    \
     .help = (text),                                                                               \
     .value_default = (value),                                                                     \
     .offset = offsetof(struct model_tune, part.member)},
    MODEL_TUNE(X)
#undef X
};

enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

_Static_assert(sizeof(struct model_tune) == ENTRIES * sizeof(double), "each member has an entry");

const struct mrd_tune_entry *model_tune_entries(unsigned *num)
{
    *num = ENTRIES;
    return entries;
}

int model_tune_set(struct model_tune *tune, const char *name, double value)
{
    return mrd_tune_set_in(entries, ENTRIES, tune, name, value);
}
