/* SPDX-License-Identifier: BSD-2-Clause */
/* Automatic progress: the thread of a domain whose endpoints make progress by themselves. */
#ifndef MRD_OFI_THREAD_H
#define MRD_OFI_THREAD_H

struct mrd_ofi_domain;

/* The domain's thread runs while it has endpoints. Without the lock. */
int mrd_ofi_thread_start(struct mrd_ofi_domain *d);
void mrd_ofi_thread_stop(struct mrd_ofi_domain *d);

#endif
