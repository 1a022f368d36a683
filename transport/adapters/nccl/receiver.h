/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving end of a comm, and the listener that it comes from. */
#ifndef MRD_NCCL_RECEIVER_H
#define MRD_NCCL_RECEIVER_H

#include "transport/adapters/nccl/comm.h"

/* A message of the sender's. Its place is its number, so that they are looked at in order. */
struct receiver_message {
    bool here;
    uint32_t imm;
    uint32_t bytes;
};

/* An eager send that no receive has met. */
struct receiver_unexpected {
    int tag;
    unsigned slot;
    uint32_t bytes;
};

struct receiver {
    struct comm comm;
    struct lane_op incoming; /* its receives, all alike */
    struct receiver_message message[COMM_NUMBERS];
    uint64_t next_message;
    /* Of groups: the oldest with receives that no send has met; next to tell the sender; next. */
    uint64_t first_group, next_grant, num_groups;
    struct receiver_unexpected unexpected[COMM_SLOTS];
    unsigned num_unexpected;
    uint8_t *slots;
    size_t slots_bytes;
    struct mrd_mr *slots_mr;
    uint32_t slot_bytes;
    uint32_t freed;   /* slots that the sender does not know of yet */
    const char *left; /* why there is no sender any more; or NULL */
};

struct listener;

/* Fills the handle. NULL: it is in the log. */
struct listener *listener_open(struct lane *lane, uint32_t eager_bytes, struct comm_handle *handle);
/* The next connection that was asked for. NULL: there is none; or *failed. */
struct receiver *listener_accept(struct listener *listener, bool *failed);
void listener_close(struct listener *listener);

/*
 * Posts a group: data, bytes, tag and keys of each receive. `looked_into`: NCCL may look into the memory before the
 * end. NULL: not now.
 */
struct comm_request *receiver_post(struct receiver *receiver, unsigned n,
                                   const struct comm_buffer *buffers, bool looked_into);
/* Of the lane's thread. The memory of that key is about to go: receives into it end the comm. */
void receiver_forget(struct receiver *receiver, uint32_t lkey);
void receiver_close(struct receiver *receiver);

#endif
