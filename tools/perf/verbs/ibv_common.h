/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RDMA device, opened at one port with one GID, and sentences for what may be wrong.
 *
 * perf_ibv_open(); perf_ibv_tell() and perf_ibv_hear() exchange where the ends are; perf_ibv_ah()
 * then addresses the other one. perf_ibv_close() last, after what was created on it.
 *
 * All return 0 or -errno with a sentence in `error`, unless it says otherwise.
 */
#ifndef MRD_PERF_VERBS_IBV_COMMON_H
#define MRD_PERF_VERBS_IBV_COMMON_H

#include <infiniband/verbs.h>
#include <json-c/json.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/run.h"

/* Where an end is. */
struct perf_ibv_place {
    uint16_t lid; /* 0 on Ethernet */
    union ibv_gid gid;
};

struct perf_ibv {
    struct perf_ibv_port port;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr limits;
    uint32_t gid_index;
    bool global; /* packets carry GIDs: always so on Ethernet */
    struct perf_ibv_place here, there;
    uint32_t mtu; /* of the path; from perf_ibv_hear() on */
};

int perf_ibv_open(struct perf_ibv *v, const struct perf_options *options, uint32_t mtu,
                  char *error);
void perf_ibv_close(struct perf_ibv *v);

void perf_ibv_tell(const struct perf_ibv *v, struct json_object *info);
int perf_ibv_hear(struct perf_run *run, struct perf_ibv *v, struct json_object *info);
/* How to address `place` from here. */
struct ibv_ah_attr perf_ibv_ah(const struct perf_ibv *v, const struct perf_ibv_place *place);
/* "::ffff:10.0.0.1", or the LID of an InfiniBand port */
void perf_ibv_format(const struct perf_ibv_place *place, char *text, size_t len);
enum ibv_mtu perf_ibv_mtu_value(uint32_t bytes);

/*
 * Write the sentence for a verb that failed with `rc` (-errno), and return that. ENOMEM and EPERM
 * often mean that too little memory may be locked: then the limit is told.
 */
int perf_ibv_failed(int rc, const char *what, char *error);

#endif
