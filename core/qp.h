/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: slots of work requests, receive queue, number; validation of work requests.
 *
 * A queue pair has no connection. Its slots for sends (struct mrd_msg) and receives (struct
 * mrd_recv) are allocated at create. Free lists keep them, because work to different peers ends in
 * any order.
 */
#ifndef MRD_CORE_QP_H
#define MRD_CORE_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cq.h"
#include "core/hash.h"
#include "core/list.h"
#include "core/mr.h"
#include "core/msg.h"

struct mrd_recv {
    struct mrd_node node; /* on `posted` or `free_recvs`; on no list while bound to a message */
    uint64_t wr_id;
    uint32_t length;
    uint32_t num_sge;
    struct mrd_sge *sge;
};

/* Reads and atomics that were posted, and fences. Owned by request.c. */
struct mrd_qp_requests {
    uint32_t max_rd_atomic, num; /* outstanding: at most, now */
    struct mrd_node held;        /* work requests kept back, in the order posted */
    uint32_t num_fenced;         /* fenced ones on `held` */
};

struct mrd_qp_impl {
    struct mrd_qp pub;
    struct mrd_hash_node by_num;
    struct mrd_node node; /* on the engine's list */
    uint32_t qkey, rnr_retry;
    uint64_t rnr_timer_ns;
    struct mrd_qp_cap cap;
    bool sig_all;
    bool destroyed;     /* the user destroyed it: it waits for its messages to end */
    uint32_t live_msgs; /* messages that are not FREE */

    struct mrd_msg *msgs;
    struct mrd_node free_msgs;
    struct mrd_qp_requests requests;
    struct mrd_node responses; /* struct mrd_response.node: sent for this queue pair */
    struct mrd_recv *recvs;
    struct mrd_node free_recvs, posted;
    uint32_t num_posted;
    struct mrd_node flows; /* mrd_flow_tx.qp_node */
    struct mrd_node wants; /* mrd_want.qp_node: peers refused for want of a receive */
    struct mrd_sge *sges;  /* of all messages and receives */
    uint8_t *inline_data;
    size_t bytes; /* size of the one allocation that holds all of the above */
};

static inline struct mrd_qp_impl *mrd_qp_impl(struct mrd_qp *qp)
{
    return (struct mrd_qp_impl *)(void *)qp;
}

/* Returns the queue pair with a number; NULL: there is none. */
struct mrd_qp_impl *mrd_qp_find(const struct mrd_hash *qps, uint32_t qpn);

/* Returns the size of a queue pair with these caps; 0: a cap is out of range. */
size_t mrd_qp_bytes(const struct mrd_qp_cap *cap);
/* Initializes a queue pair in zeroed memory of mrd_qp_bytes(). */
void mrd_qp_init(struct mrd_qp_impl *qp, const struct mrd_qp_init_attr *attr, size_t bytes);

/* Takes the oldest posted receive; NULL: none. The caller frees or returns it. */
struct mrd_recv *mrd_qp_recv_take(struct mrd_qp_impl *qp);
/* Puts an unused receive back to the front of the queue. */
void mrd_qp_recv_return(struct mrd_qp_impl *qp, struct mrd_recv *recv);
void mrd_qp_recv_free(struct mrd_qp_impl *qp, struct mrd_recv *recv);
/* Fills a free receive slot and posts it. Returns 0, -EINVAL, or -ENOMEM if no slot is free. */
int mrd_qp_recv_post(struct mrd_qp_impl *qp, const struct mrd_recv_wr *wr);

/*
 * Checks a send request, except its memory keys. Returns 0 and sets *length, or -EINVAL or
 * -EMSGSIZE and sets *why to the reason.
 */
int mrd_qp_check_send(const struct mrd_qp_impl *qp, const struct mrd_send_wr *wr, uint32_t *length,
                      const char **why);
/* Returns the wire's op for an opcode. */
uint8_t mrd_qp_op(enum mrd_wr_opcode opcode);
/*
 * Fills a free send slot from a checked request: state QUEUED, on no list. NULL: no slot is free.
 */
struct mrd_msg *mrd_qp_msg_alloc(struct mrd_qp_impl *qp, const struct mrd_send_wr *wr,
                                 uint32_t length);
void mrd_qp_msg_free(struct mrd_qp_impl *qp, struct mrd_msg *msg);

#endif
