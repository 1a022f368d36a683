/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/faults.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 128, LINE_BYTES = 512 };

/* The virtual time, at most a day: beyond it nothing runs. */
#define TIME_US_MAX 86400e6

static int schedule(struct mrd_sim *sim, const char *line, const char *where, char *error,
                    size_t len)
{
    char time[WORD_BYTES], links[WORD_BYTES], action[WORD_BYTES], value[WORD_BYTES], more[2], *end;
    int words = sscanf(line, "%127s %127s %127s %127s %1s", time, links, action, value, more);

    if (words <= 0)
        return 0;
    if (words != 4) {
        snprintf(error, len, "%s: expected TIME_US LINKS ACTION VALUE, found %s", where,
                 words < 4 ? "less" : "more");
        return -EINVAL;
    }

    double us = strtod(time, &end);

    if (end == time || *end || !(us >= 0 && us <= TIME_US_MAX)) {
        snprintf(error, len, "%s: expected a time in microseconds, found '%s'", where, time);
        return -EINVAL;
    }

    int ret = mrd_sim_schedule(sim, (uint64_t)llround(us * 1e3), links, action, value);

    if (ret != 0)
        snprintf(error, len, "%s: %s", where, ret == -ENOMEM ? "no memory" : mrd_last_error());
    return ret == -ENOENT ? -EINVAL : ret;
}

int simx_faults_read(struct mrd_sim *sim, const char *path, char *error, size_t len)
{
    FILE *file = fopen(path, "r");
    char line[LINE_BYTES], where[LINE_BYTES];
    unsigned number = 0;
    int ret = 0;

    if (!file) {
        ret = -errno;
        snprintf(error, len, "%s: %s", path, strerror(errno));
        return ret;
    }
    while (ret == 0 && fgets(line, sizeof(line), file)) {
        snprintf(where, sizeof(where), "%.400s:%u", path, ++number);
        if (!strchr(line, '\n') && !feof(file)) {
            snprintf(error, len, "%s: expected a line of at most %d bytes", where, LINE_BYTES - 2);
            ret = -EINVAL;
            break;
        }
        line[strcspn(line, "#\n")] = '\0';
        ret = schedule(sim, line, where, error, len);
    }
    fclose(file);
    return ret;
}
