/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: what peers may read and write, by a key of a domain. A region is registered with
 * an endpoint's context when a peer of that endpoint asks for the key, and not before.
 */
#ifndef MRD_OFI_MR_H
#define MRD_OFI_MR_H

#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_cntr;
struct mrd_ofi_domain;
struct mrd_ofi_ep;

/* Regions of a domain, by key. */
struct mrd_ofi_mrs {
    struct mrd_node *bucket; /* of struct mrd_ofi_mr.by_key */
    uint32_t num, num_buckets;
    uint64_t next_key;
};

struct mrd_ofi_mr {
    struct fid_mr fid; /* its key is the one that peers name */
    struct mrd_ofi_domain *domain;
    struct mrd_node by_key;
    struct iovec iov[MRD_OFI_IOV_MAX]; /* remote offsets run through them in this order */
    uint32_t num_iov;
    uint64_t access; /* FI_REMOTE_WRITE... */
    uint64_t flags;  /* FI_RMA_EVENT: the target hears of what peers do */
    bool enabled;
    struct mrd_ofi_cntr *cntr; /* of remote writes; NULL: none */
    /* Registrations with endpoints, made when a peer asks for the key: struct mrd_ofi_mr_reg.node.
     */
    struct mrd_node regs;
};

/* A region's range, registered with an endpoint's context. */
struct mrd_ofi_mr_reg {
    struct mrd_node node, ep_node; /* on mrd_ofi_mr.regs; on mrd_ofi_dev.mr_regs */
    struct mrd_ofi_ep *ep;
    struct mrd_mr *mr;
    uint32_t index; /* of its range in mrd_ofi_mr.iov */
};

int mrd_ofi_mrs_init(struct mrd_ofi_domain *d);
void mrd_ofi_mrs_fini(struct mrd_ofi_domain *d);
extern struct fi_ops_mr mrd_ofi_mr_ops;
/* The region of a key; NULL: none. */
struct mrd_ofi_mr *mrd_ofi_mr_find(struct mrd_ofi_domain *d, uint64_t key);
/*
 * Registers range `index` of the region with the endpoint, unless it is already. NULL with errno:
 * it cannot be, see mrd_last_error().
 */
struct mrd_mr *mrd_ofi_mr_register(struct mrd_ofi_mr *mr, struct mrd_ofi_ep *ep, uint32_t index);
/* Are the addresses that peers give virtual ones? Else offsets. */
bool mrd_ofi_mr_is_virtual(const struct mrd_ofi_domain *d);
/* Counters of regions hear of the endpoint from now on; no more. */
int mrd_ofi_mrs_add_ep(struct mrd_ofi_ep *ep);
void mrd_ofi_mrs_del_ep(struct mrd_ofi_ep *ep);
/* The endpoint closes: its registrations end. */
void mrd_ofi_mr_forget_ep(struct mrd_ofi_ep *ep);
/*
 * The memory behind [addr, addr + len) of the region, addr as peers give it: an offset, or a
 * virtual address with FI_MR_VIRT_ADDR. It may run over into the next range: *len becomes what lies
 * in this one, *index its number. NULL: it is outside.
 */
void *mrd_ofi_mr_at(const struct mrd_ofi_mr *mr, uint64_t addr, uint64_t *len, uint32_t *index);

#endif
