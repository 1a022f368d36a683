/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA devices of this machine, by name. Without libibverbs there are none, and
 * perf_ibv_missing() says why.
 */
#ifndef MRD_PERF_IBV_DEVICE_H
#define MRD_PERF_IBV_DEVICE_H

#include "tools/perf/run.h"

/* The port that this end uses. */
struct perf_ibv_port {
    char device[PERF_DEVICE_BYTES];
    uint8_t number;
    uint32_t mtu; /* active */
};

/* NULL, or why this mrd_perf knows no RDMA devices. */
const char *perf_ibv_missing(void);
/* Is there a device of that name? If not, `known` gets the names that there are: "rxe0, rxe1". */
bool perf_ibv_has_device(const char *name, char *known, size_t len);
/*
 * Find the port that -d and -i name; by default the first active one. 0, or -errno with a sentence:
 * there is no such device or port, or it is down.
 */
int perf_ibv_find_port(const struct perf_options *options, struct perf_ibv_port *port, char *error);

/* ibv_mtu.c: what -m means over an RDMA device: a path MTU, which both ports must carry. */
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
