/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two fake devices with a queue pair each, used as verbs are used: for the tests of the fake itself.
 *
 * pair_setup() and pair_teardown() are cmocka's; the latter demands that nothing leaked. pair_post() and pair_recv()
 * post one work request; pair_poll() takes one completion.
 */
#ifndef MRD_TESTS_IBV_FAKE_IBV_PAIR_H
#define MRD_TESTS_IBV_FAKE_IBV_PAIR_H

#include "tests/support/fake_ibv.h"

enum { PAIR_BYTES = 1 << 16, PAIR_DEPTH = 16, PAIR_QKEY = 0x1234, PAIR_SRQ = 32 };

struct pair_end {
    struct fake_ibv_device *device;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_ah *ah; /* to the other end */
    struct ibv_mr *mr; /* of `memory` */
    uint8_t *memory;
};

struct pair {
    struct pair_end a, b;
};

int pair_setup(void **state);
int pair_teardown(void **state);

/* Another queue pair of an end, with its completion queues; 0 with a receive queue of its own, else with the SRQ. */
struct ibv_qp *pair_qp(struct pair_end *end, bool srq);
/* RESET to RTS. */
void pair_qp_ready(struct ibv_qp *qp);
struct ibv_ah *pair_ah(struct pair_end *end, const union ibv_gid *dgid, uint32_t flow_label);
const union ibv_gid *pair_gid(const struct pair_end *end);

/* [offset, offset + len) of the end's memory. */
struct ibv_sge pair_sge(const struct pair_end *end, uint32_t offset, uint32_t len);
/* A signaled send of these bytes to the other end's QP: what ibv_post_send() said. */
int pair_post(struct pair_end *from, const struct pair_end *to, uint64_t wr_id, uint32_t offset,
              uint32_t len, unsigned flags);
/* A receive of 4096 + 40 bytes at `offset`, of the SRQ. */
void pair_recv(struct pair_end *end, uint64_t wr_id, uint32_t offset);
/* One completion: whether there was one. */
bool pair_poll(struct ibv_cq *cq, struct ibv_wc *wc);

#endif
