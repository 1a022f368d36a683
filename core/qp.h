/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: slots of send requests, receive queue, number; validation of send requests.
 *
 * A queue pair has no connection. Its slots for sends (struct mrd_msg) are allocated at create. A
 * free list keeps them, because work to different peers ends in any order.
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
#include "core/packet.h"
#include "core/recvq.h"

/* Reads and atomics that were posted, and fences. Owned by request.c. */
struct mrd_qp_requests {
    uint32_t max_rd_atomic, num; /* outstanding: at most, now */
    struct mrd_node held;        /* work requests kept back, in the order posted */
    uint32_t num_fenced;         /* fenced ones on `held` */
};

/* Whose messages the queue pair takes. */
struct mrd_qp_dest {
    bool only; /* those of this queue pair at this address; false: of all */
    struct mrd_addr addr;
    uint32_t own_inc; /* what we call ourselves to it: it may have moved */
    uint32_t qpn;
};

struct mrd_qp_impl {
    struct mrd_qp pub;
    struct mrd_hash_node by_num;
    struct mrd_node node; /* on the engine's list */
    uint32_t qkey, rnr_retry;
    uint64_t rnr_timer_ns;
    struct mrd_qp_cap cap;
    struct mrd_qp_dest dest;
    bool sig_all;
    bool destroyed; /* the user destroyed it: it waits for its messages to end */
    struct mrd_event_source event, refused; /* it failed; it refused a request */
    bool tells_refused;
    uint32_t live_msgs; /* messages that are not FREE */

    struct mrd_msg *msgs;
    struct mrd_node free_msgs;
    struct mrd_qp_requests requests;
    struct mrd_node responses; /* struct mrd_response.node: sent for this queue pair */
    struct mrd_recvq own;      /* has no slots if it shares another */
    struct mrd_recvq *recvq;   /* where it takes receives: `own`, or that of `srq` */
    struct mrd_srq_impl *srq;
    struct mrd_node flows;       /* mrd_flow_tx.qp_node */
    struct mrd_node ended;       /* the same of flows whose space ended, the oldest first */
    struct mrd_node rnr_waiters; /* mrd_rnr_waiter.qp_node: peers that it refused */
    struct mrd_sge *sges;        /* of all messages */
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
void mrd_qp_init(struct mrd_qp_impl *qp, struct mrd_pd *pd, const struct mrd_qp_init_attr *attr,
                 size_t bytes);

/*
 * Returns how many receives the queue pair can take now. Of its own receives all can complete; the
 * receive completion queue may have no room for those of a shared queue.
 */
uint32_t mrd_qp_receives(const struct mrd_qp_impl *qp);

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
