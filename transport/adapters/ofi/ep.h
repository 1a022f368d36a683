/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints. Each is a context of mrd with two queue pairs: one for messages (wire.h), in order if
 * the application asks for that, and one for reads and writes, which have none.
 */
#ifndef MRD_OFI_EP_H
#define MRD_OFI_EP_H

#include "transport/adapters/ofi/ofi.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/rx.h"
#include "transport/adapters/ofi/wait.h"

struct mrd_ofi_av;
struct mrd_ofi_cntr;
struct mrd_ofi_cq;
struct mrd_ofi_domain;
struct mrd_ofi_eq;

/* What an endpoint counts on counters that are bound to it. */
enum mrd_ofi_counts {
    MRD_OFI_COUNT_SEND,
    MRD_OFI_COUNT_RECV,
    MRD_OFI_COUNT_READ,
    MRD_OFI_COUNT_WRITE,
    MRD_OFI_COUNT_REMOTE_READ,
    MRD_OFI_COUNT_REMOTE_WRITE,
    MRD_OFI_COUNTS,
};

/* What it is bound to, beside its completion queues. */
struct mrd_ofi_bound {
    struct mrd_ofi_av *av;
    struct mrd_ofi_eq *eq;
    struct mrd_ofi_cntr *cntr[MRD_OFI_COUNTS];
};

/* Its context of mrd, and what it has there. */
struct mrd_ofi_dev {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_comp_channel *channel;
    struct mrd_cq *cq;
    struct mrd_qp *messages, *memory; /* queue pairs */
    struct mrd_mr *all;               /* all memory; NULL: the device pins what it uses */
    bool on_demand;                   /* mrd_reg_mr() with MRD_ACCESS_ON_DEMAND */
    bool gone;                        /* the device is */
    struct mrd_node mr_regs;          /* mrd_ofi_mr_reg.ep_node */
    uint32_t op_mrs; /* registrations of operations that end without the peer's program */
};

/* The transmit side. */
struct mrd_ofi_tx {
    struct mrd_ofi_cq *cq;
    bool selective;
    uint64_t flags;         /* default op flags */
    struct mrd_node unsent; /* operations that wait for room in a send queue */
    uint32_t used, most;    /* operations of the application under way; how many may be */
    /* Not complete yet: what the provider sends for itself, and what the application injected. */
    uint32_t num_internal;
};

/* A message that came while there was no memory to deal with it. */
struct mrd_ofi_held {
    uint32_t index; /* of its buffer */
    uint32_t peer_id;
    uint32_t bytes;
};

/* The receive side. */
struct mrd_ofi_rx_side {
    struct mrd_ofi_cq *cq;
    bool selective;
    uint64_t flags; /* default op flags */
    size_t min_multi;
    uint8_t *memory; /* buffers for messages */
    struct mrd_mr *mr;
    uint32_t bytes, num; /* of a buffer; how many there are */
    uint32_t spent[MRD_OFI_RX_SPENT], num_spent;
    struct mrd_ofi_held *held; /* a ring of `num`, the oldest first: progress.c */
    uint32_t first_held, num_held;
    struct mrd_ofi_match msg, tagged;
    struct mrd_ofi_rxs pool;
};

/* What a turn of progress leaves for its end: progress.h. */
struct mrd_ofi_turn {
    struct mrd_node
        ended;      /* operations that ended, or go on: the key that they waited for is known */
    uint32_t calls; /* of mrd_ofi_ep_progress() */
    bool armed;     /* mrd_ofi_ep_arm() came after the last of them */
};

struct mrd_ofi_ep {
    struct fid_ep fid;
    struct mrd_ofi_domain *domain;
    struct mrd_node domain_node; /* on mrd_ofi_domain.eps */
    struct fi_info *info;
    bool enabled;
    uint32_t cookie; /* random: answers to an earlier life at this address name another one */
    struct mrd_ofi_bound bound;
    struct mrd_ofi_dev dev;
    struct mrd_ofi_source source; /* fd: an epoll set of the channel and of the context's events */
    struct mrd_ofi_peers peers;
    struct mrd_ofi_ops ops;
    struct mrd_ofi_tx tx;
    struct mrd_ofi_rx_side rx;
    struct mrd_ofi_turn turn;
};

static inline bool mrd_ofi_ep_has_room(const struct mrd_ofi_ep *ep)
{
    return mrd_list_empty(&ep->tx.unsent) && ep->tx.used < ep->tx.most;
}

/* The flags of a transmit call that names none. */
static inline uint64_t mrd_ofi_tx_flags(struct fid_ep *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_ep, fid)->tx.flags;
}

/* Those of one that names some: without selective completion all are told. */
static inline uint64_t mrd_ofi_tx_flags_named(struct fid_ep *fid, uint64_t flags)
{
    return flags |
           (mrd_container_of(fid, struct mrd_ofi_ep, fid)->tx.selective ? 0 : FI_COMPLETION);
}

int mrd_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                    void *context);

#endif
