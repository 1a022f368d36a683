/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic(ncclDebugLogger_t) nccl_logger;

void log_begin(ncclDebugLogger_t logger)
{
    atomic_store(&nccl_logger, logger);
}

__attribute__((format(printf, 2, 0))) static void say(int level, const char *format, va_list list)
{
    ncclDebugLogger_t logger = atomic_load(&nccl_logger);
    char text[512];

    if (!logger)
        return;
    vsnprintf(text, sizeof(text), format, list);
    /* A warning with all bits is shown whatever NCCL_DEBUG_SUBSYS says. */
    logger(level, level == NCCL_LOG_WARN ? ~0ul : NCCL_INIT | NCCL_NET, "mrd", 0, "NET/MRD : %s",
           text);
}

void log_warn(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(NCCL_LOG_WARN, format, list);
    va_end(list);
}

void log_info(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(NCCL_LOG_INFO, format, list);
    va_end(list);
}
