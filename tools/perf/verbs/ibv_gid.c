/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/ibv_gid.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/perf.h"

enum { GIDS_MAX = 1024 };

static bool is_ipv4(const union ibv_gid *gid)
{
    struct in6_addr address;

    memcpy(&address, gid->raw, sizeof(address));
    return IN6_IS_ADDR_V4MAPPED(&address);
}

/* Greater is better; 0: never chosen unasked. */
static int rank_of(const struct ibv_gid_entry *entry, bool ethernet)
{
    if (!ethernet)
        return 1;
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return 0;
    return is_ipv4(&entry->gid) ? 2 : 1;
}

const struct ibv_gid_entry *perf_ibv_gid_pick(const struct ibv_gid_entry *entries, size_t count,
                                              const struct perf_ibv_gid_choice *choice, char *error)
{
    const struct ibv_gid_entry *best = NULL;
    int best_rank = 0;

    for (size_t i = 0; i < count; i++) {
        const struct ibv_gid_entry *entry = &entries[i];
        if (entry->port_num != choice->port)
            continue;
        if (choice->wanted >= 0 && entry->gid_index == (uint32_t)choice->wanted)
            return entry;
        int rank = choice->wanted < 0 ? rank_of(entry, choice->ethernet) : 0;
        if (rank > best_rank) {
            best = entry;
            best_rank = rank;
        }
    }
    if (best)
        return best;
    if (choice->wanted >= 0)
        snprintf(error, PERF_ERROR_BYTES,
                 "-x %d: port %u of %s has no such GID; the table is what 'show_gids' or "
                 "'ibv_devinfo -v' shows",
                 choice->wanted, choice->port, choice->device);
    else
        snprintf(error, PERF_ERROR_BYTES,
                 "port %u of %s has no RoCEv2 GID: give its interface an IP address, or choose "
                 "another GID with -x",
                 choice->port, choice->device);
    return NULL;
}

int perf_ibv_gid_choose(struct ibv_context *ctx, const struct perf_ibv_gid_choice *choice,
                        uint32_t *index, char *error)
{
    static struct ibv_gid_entry entries[GIDS_MAX];
    ssize_t count = ibv_query_gid_table(ctx, entries, GIDS_MAX, 0);

    if (count < 0) {
        snprintf(error, PERF_ERROR_BYTES, "cannot read the GIDs of %s: %s", choice->device,
                 strerror((int)-count));
        return (int)count;
    }
    const struct ibv_gid_entry *entry = perf_ibv_gid_pick(entries, (size_t)count, choice, error);
    if (!entry)
        return -ENODEV;
    *index = entry->gid_index;
    return 0;
}
