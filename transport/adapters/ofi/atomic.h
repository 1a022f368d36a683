/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application posts atomics by.
 */
#ifndef MRD_OFI_ATOMIC_H
#define MRD_OFI_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

extern struct fi_ops_atomic mrd_ofi_atomic_ops;
int mrd_ofi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
                         struct fi_atomic_attr *attr, uint64_t flags);

#endif
