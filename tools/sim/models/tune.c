/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/tune.h"

#include <stddef.h>

const struct mrd_sim_tune mrd_sim_tune_default = {
#define X(part, member, value, text) .part.member = (value),
    MRD_SIM_TUNE(X)
#undef X
};

static const struct mrd_tune_entry entries[] = {
#define X(part, member, value, text)                                                               \
    {.name = #part "." #member,                                                                    \
     .help = (text),                                                                               \
     .value_default = (value),                                                                     \
     .offset = offsetof(struct mrd_sim_tune, part.member)},
    MRD_SIM_TUNE(X)
#undef X
};

enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

_Static_assert(sizeof(struct mrd_sim_tune) == ENTRIES * sizeof(double), "each member has an entry");

const struct mrd_tune_entry *mrd_sim_tune_entries(unsigned *num)
{
    *num = ENTRIES;
    return entries;
}

int mrd_sim_tune_set(struct mrd_sim_tune *tune, const char *name, double value)
{
    return mrd_tune_set_in(entries, ENTRIES, tune, name, value);
}
