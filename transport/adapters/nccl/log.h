/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences for NCCL's log, each headed "NET/MRD". Until NCCL gave its logger, to nowhere. */
#ifndef MRD_NCCL_LOG_H
#define MRD_NCCL_LOG_H

#include "transport/adapters/nccl/nccl_net.h"

/* NCCL's own; a later one takes its place. */
void log_begin(ncclDebugLogger_t logger);

void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
