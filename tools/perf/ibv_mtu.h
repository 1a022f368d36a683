/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What -m means over an RDMA device: a path MTU, which both ports must carry.
 */
#ifndef MRD_PERF_IBV_MTU_H
#define MRD_PERF_IBV_MTU_H

#include <json-c/json.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/run.h"

/* One of 256, 512, 1024, 2048, 4096? */
bool perf_ibv_mtu_valid(uint32_t mtu);
/*
 * Returns the payload that fits mrd's packets: headers take up to 96 bytes, and payload is a
 * multiple of 64.
 */
uint32_t perf_ibv_mtu_payload(uint32_t mtu);

/* May -m be `given` (0: it is not) on this port? 0, or -EMSGSIZE with a sentence. */
int perf_ibv_mtu_check(uint32_t given, const struct perf_ibv_port *port, char *error);

/*
 * Choose the path MTU of a run: `given`, or if that is 0 the ports' own, which must be equal.
 * `here` and `there` name the ends in the sentence. 0 and *mtu, or -EMSGSIZE with a sentence.
 */
int perf_ibv_mtu_agree(uint32_t given, const char *here, uint32_t here_mtu, const char *there,
                       uint32_t there_mtu, uint32_t *mtu, char *error);

/*
 * Tell the other end about the port; agree with what it told. 0 and *mtu, or -errno with
 * run->error.
 */
void perf_ibv_mtu_tell(const struct perf_ibv_port *port, struct json_object *info);
int perf_ibv_mtu_hear(struct perf_run *run, const struct perf_ibv_port *port,
                      struct json_object *info, uint32_t *mtu);

#endif
