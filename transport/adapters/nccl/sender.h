/* SPDX-License-Identifier: BSD-2-Clause */
/* The sending end of a comm. */
#ifndef MRD_NCCL_SENDER_H
#define MRD_NCCL_SENDER_H

#include "transport/adapters/nccl/comm.h"

enum {
    SENDER_GRANT_BUFFERS = 2 * COMM_GROUPS, /* of groups, and of slots that become free */
    SENDER_WAITING = 4 * COMM_SENDS,
};

/* A receive for a message of the peer's. */
struct sender_incoming {
    struct lane_op op;
    struct sender *sender;
};

/* A send that has not met its receive. */
struct sender_wait {
    int tag;
    struct comm_request *request; /* NULL: its data is in a slot of the receiver's */
};

struct sender {
    struct comm comm;
    atomic_bool ready; /* the receiver has answered */
    struct comm_hello hello;
    struct comm_handle handle;

    struct sender_incoming incoming[SENDER_GRANT_BUFFERS];
    union comm_message message[SENDER_GRANT_BUFFERS]; /* their buffers */
    struct mrd_mr *message_mr;
    struct comm_grant group[COMM_GROUPS]; /* by its number; that of another one: not here yet */
    uint64_t first_group;                 /* oldest with receives that no send has met */
    unsigned met[COMM_GROUPS];            /* bits of receives that a send has met */

    struct sender_wait waiting[SENDER_WAITING];
    unsigned num_waiting;
    uint32_t next_message; /* its number */
    unsigned posted;       /* messages that are not through */
    bool peer_closed;

    struct comm_eager eager[COMM_SENDS]; /* by request */
    struct mrd_mr *eager_mr;
    uint32_t free_slots;
    uint64_t slots;
    uint32_t slots_rkey, slot_bytes, eager_bytes;
};

/* Asks the listener that the handle names. NULL: no memory. What fails later breaks the comm. */
struct sender *sender_connect(struct lane *lane, const struct comm_handle *handle,
                              uint32_t eager_bytes);
/* NULL: not now. */
struct comm_request *sender_send(struct sender *sender, void *data, size_t bytes, int tag,
                                 uint32_t lkey);
/* Frees it, too. What is not ended is not sent. */
void sender_close(struct sender *sender);

#endif
