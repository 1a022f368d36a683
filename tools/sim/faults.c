/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/faults.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/sim/fail.h"
#include "tools/sim/lines.h"

enum { TIME, LINKS, ACTION, VALUE, WORDS };

/* The virtual time, at most a day: beyond it nothing runs. */
#define TIME_US_MAX 86400e6

static int schedule(struct mrd_sim *sim, const struct simx_lines *lines)
{
    char *end;

    if (lines->num_words < WORDS)
        return simx_lines_expected(lines, lines->line, simx_lines_word(lines, WORDS),
                                   "TIME_US LINKS ACTION VALUE");

    double us = strtod(lines->word[TIME], &end);
    int ret = simx_lines_end(lines, WORDS);

    if (ret == 0 && (end == lines->word[TIME] || *end || !(us >= 0 && us <= TIME_US_MAX)))
        ret = simx_lines_expected(lines, lines->line, lines->word[TIME], "a time in microseconds");
    if (ret != 0)
        return ret;
    ret = mrd_sim_schedule(sim, (uint64_t)llround(us * 1e3), lines->word[LINKS],
                           lines->word[ACTION], lines->word[VALUE]);
    if (ret == 0)
        return 0;
    return simx_fail(ret == -ENOENT ? -EINVAL : ret, "%s:%u: %s", lines->path, lines->line,
                     ret == -ENOMEM ? "no memory" : mrd_last_error());
}

int simx_faults_read(struct mrd_sim *sim, const char *path)
{
    struct simx_lines lines;
    int ret = simx_lines_open(&lines, path);

    if (ret != 0)
        return ret;
    while ((ret = simx_lines_next(&lines)) > 0) {
        ret = schedule(sim, &lines);
        if (ret != 0)
            break;
    }
    simx_lines_close(&lines);
    return ret;
}
