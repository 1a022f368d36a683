/* SPDX-License-Identifier: BSD-2-Clause */
/* What link.c, link_peer.c and link_send.c share. */
#ifndef FORWARD_LINK_STATE_H
#define FORWARD_LINK_STATE_H

#include "tools/forward/link.h"
#include "tools/forward/pool.h"

enum {
    CONTROL_SENDS = 1024, /* frames without a buffer that may be outstanding; a power of two */
    ANSWERS_MAX = 1024,   /* of link_answer(), held for a peer */
    REPEATS_MAX = 2,      /* of an OPENED or REFUSED */
    POLL_MAX = 64,
    ROUNDS_MAX = 16,   /* of POLL_MAX, before the loop looks at sockets again */
    SPIN_NS = 20000,   /* the loop does not sleep for a deadline that is nearer */
    QKEY = 0x6d726466, /* a frame to another program's queue pair fails */
};

/*
 * A frame without a buffer that is not sent yet, and uses its peer; or one that is being sent, and
 * is repeated if it fails.
 */
struct held {
    struct mrd_node node; /* in link_peer.held */
    uint64_t wr_id;
    uint32_t len;
    unsigned repeats;
    uint8_t bytes[FRAME_HEAD_BYTES + FRAME_TEXT_MAX];
};

struct link {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct pool rx, tx;
    uint32_t posted;   /* receives */
    uint32_t granted;  /* receive buffers that senders have credit for, or that received() kept */
    uint32_t signaled; /* sends under way */
    uint32_t controls; /* of these, frames without a buffer; more of them are held */
    uint32_t num_held;
    uint16_t place[CONTROL_SENDS];               /* stack of the free ones */
    struct link_peer *control_of[CONTROL_SENDS]; /* by place; used */
    struct held *kept[CONTROL_SENDS];            /* by place; NULL: not to be repeated; owned */
    struct link_peer *peers;                     /* list, owned */
    struct event *readable, *timer, *events;
    int spare_fd; /* for an address handle when there is no descriptor left; -1: none */
    const struct link_ops *ops;
    void *arg;
};

/* Of link_send.c: sends what was held, as far as there are places. */
void link_send_held(struct link *link);
/* Drops the oldest held frame of the peer, which may be freed with it. */
void link_drop_held(struct link *link, struct link_peer *peer);
/* Sends again what completed with `status` at that place. False: it is not to be repeated. */
bool link_repeat(struct link *link, struct link_peer *peer, unsigned place,
                 enum mrd_wc_status status);
/* The peer does not answer: nothing that is being sent to it is repeated. */
void link_stop_repeats(struct link *link, const struct link_peer *peer);

#endif
