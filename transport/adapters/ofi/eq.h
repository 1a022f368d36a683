/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues: what asynchronous calls tell, and what the application writes itself. */
#ifndef MRD_OFI_EQ_H
#define MRD_OFI_EQ_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/adapters/ofi/ofi.h"
#include "transport/adapters/ofi/wait.h"

struct mrd_ofi_fabric;

struct mrd_ofi_event {
    struct mrd_node node;
    uint32_t type; /* FI_AV_COMPLETE, FI_MR_COMPLETE, FI_NOTIFY..., or what a user wrote */
    bool is_error;
    struct fi_eq_err_entry error;
    size_t bytes;
    uint8_t data[]; /* as fi_eq_read() gives it */
};

struct mrd_ofi_eq {
    struct fid_eq fid;
    struct mrd_ofi_fabric *fabric;
    pthread_mutex_t mutex;
    struct mrd_node events;
    bool writable; /* FI_WRITE: users may write */
    struct mrd_ofi_wait wait;
    atomic_uint users; /* objects that are bound to it */
};

int mrd_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
                    void *context);
/* Takes the EQ's own lock. Adds a struct fi_eq_entry. 0 or -FI_ENOMEM. */
int mrd_ofi_eq_add(struct mrd_ofi_eq *eq, uint32_t type, fid_t fid, void *context, uint64_t data);
int mrd_ofi_eq_add_error(struct mrd_ofi_eq *eq, fid_t fid, void *context, uint64_t data, int error);

#endif
