/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/scale.h"

static const uint32_t peers_default[] = {10, 100, 1000, 10000, 1000000};

int perf_scale_take(struct option_line *line, int count, char **words)
{
    struct perf_options *o = line->to;

    o->scale = true;
    o->params.test = o->params.write_with_imm ? PERF_WRITE_BW : PERF_SEND_BW;
    if (count > PERF_SCALE_ROWS_MAX)
        return option_fail(line->error, "scale: at most %d numbers of peers", PERF_SCALE_ROWS_MAX);
    for (int i = 0; i < count; i++) {
        char *end;
        unsigned long peers = strtoul(words[i], &end, 10);
        if (words[i][0] < '0' || words[i][0] > '9' || *end || peers < PERF_SCALE_PEERS_MIN ||
            peers > PERF_SCALE_PEERS_MAX)
            return option_fail(line->error, "scale: '%s' is not a number of peers within %d..%d",
                               words[i], PERF_SCALE_PEERS_MIN, PERF_SCALE_PEERS_MAX);
        o->scale_peers[o->num_scale_peers++] = (uint32_t)peers;
    }
    if (count == 0) {
        memcpy(o->scale_peers, peers_default, sizeof(peers_default));
        o->num_scale_peers = sizeof(peers_default) / sizeof(peers_default[0]);
    }
    return 0;
}

int perf_scale_check(const struct option_line *line)
{
    const struct perf_options *o = line->to;

    if (o->two_devices)
        return option_fail(line->error, "scale is about this machine: -d names one device");
    if (o->params.size_bytes > PERF_SCALE_SIZE_MAX || o->params.size_bytes == 0)
        return option_fail(line->error, "scale: -s is within 1..%d", PERF_SCALE_SIZE_MAX);
    for (unsigned i = 0; i < o->num_scale_peers && o->scale_contexts; i++) {
        if (o->scale_peers[i] > PERF_SCALE_CONTEXTS_MAX)
            return option_fail(line->error, "scale: --contexts makes at most %d peers, not %u",
                               PERF_SCALE_CONTEXTS_MAX, o->scale_peers[i]);
    }
    return perf_params_check(&o->params, line->error);
}
