/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: libfabric's, which names the provider in each line.
 *
 * mrd_ofi_log_forward() once, to have the library's messages there, too.
 */
#ifndef MRD_OFI_LOG_H
#define MRD_OFI_LOG_H

#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* Its functions are set when libfabric loads it: prov.c. */
extern struct fi_provider mrd_ofi_provider;

#define MRD_OFI_WARN(subsystem, ...) FI_WARN(&mrd_ofi_provider, FI_LOG_##subsystem, __VA_ARGS__)
#define MRD_OFI_INFO(subsystem, ...) FI_INFO(&mrd_ofi_provider, FI_LOG_##subsystem, __VA_ARGS__)
/*
 * What a user is to see who set nothing: programs over libfabric seldom pass on more of an error
 * than that there was one. With FI_LOG_LEVEL set, libfabric's filters decide.
 */
#define MRD_OFI_ERROR(subsystem, ...)                                                              \
    do {                                                                                           \
        if (!getenv("FI_LOG_LEVEL") ||                                                             \
            fi_log_enabled(&mrd_ofi_provider, FI_LOG_WARN, FI_LOG_##subsystem))                    \
            fi_log(&mrd_ofi_provider, FI_LOG_WARN, FI_LOG_##subsystem, __func__, __LINE__,         \
                   __VA_ARGS__);                                                                   \
    } while (0)

/*
 * The library's messages go to libfabric's log. What that would drop anyway is not formatted at
 * all.
 */
void mrd_ofi_log_forward(void);

#endif
