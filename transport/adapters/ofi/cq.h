/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: a ring of entries, successes and errors in the order in which they came.
 * Endpoints add to it when they make progress, which reading an empty queue does.
 */
#ifndef MRD_OFI_CQ_H
#define MRD_OFI_CQ_H

#include "transport/adapters/ofi/ofi.h"
#include "transport/adapters/ofi/wait.h"

struct mrd_ofi_domain;

struct mrd_ofi_comp {
    void *context;
    uint64_t flags;
    size_t len;
    void *buf;
    uint64_t data, tag;
    fi_addr_t src;
    int err;        /* positive FI_ error number; 0: it succeeded */
    int prov_errno; /* enum mrd_wc_status, if mrd said so */
    size_t olen;
    char *text; /* what is said about the error, of malloc(); NULL: nothing */
};

struct mrd_ofi_cq {
    struct fid_cq fid;
    struct mrd_ofi_domain *domain;
    enum fi_cq_format format;
    enum fi_cq_wait_cond wait_cond;
    struct mrd_ofi_comp *ring; /* a power of two; grows */
    uint32_t head, tail, room; /* free-running */
    bool overrun;              /* there was no memory for an entry */
    int failed;                /* FI_: of what no operation is known to tell by; read once */
    bool gave;                 /* the last read got entries */
    bool signaled;             /* fi_cq_signal(): the next sread() returns */
    char *text;                /* that the last readerr() told; freed by the next */
    struct mrd_ofi_wait wait;
    struct mrd_ofi_sources sources;
    uint32_t users; /* endpoints */
};

int mrd_ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
                    void *context);
/* Adds a copy, and takes comp->text over. */
void mrd_ofi_cq_add(struct mrd_ofi_cq *cq, const struct mrd_ofi_comp *comp);
/* What read() returns, once, when it has no more entries: a FI_ error number. */
void mrd_ofi_cq_fail(struct mrd_ofi_cq *cq, int error);
/* Has it nothing to tell? */
static inline bool mrd_ofi_cq_empty(const struct mrd_ofi_cq *cq)
{
    return cq->head == cq->tail && !cq->failed;
}

#endif
