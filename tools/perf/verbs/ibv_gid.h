/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which entry of a port's GID table packets come from.
 */
#ifndef MRD_PERF_VERBS_IBV_GID_H
#define MRD_PERF_VERBS_IBV_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

struct perf_ibv_gid_choice {
    const char *device;
    uint8_t port;
    bool ethernet;
    int wanted; /* entry, -1: none in particular */
};

/*
 * Returns the entry to use: the wanted one, else a RoCEv2 one of an IPv4 address, else any RoCEv2
 * one, else on InfiniBand the first. NULL with a sentence.
 */
const struct ibv_gid_entry *perf_ibv_gid_pick(const struct ibv_gid_entry *entries, size_t count,
                                              const struct perf_ibv_gid_choice *choice,
                                              char *error);
/* The same with the device's table. 0 and *index, or -errno with a sentence. */
int perf_ibv_gid_choose(struct ibv_context *ctx, const struct perf_ibv_gid_choice *choice,
                        uint32_t *index, char *error);

#endif
