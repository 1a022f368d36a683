/* SPDX-License-Identifier: BSD-2-Clause */
/* The provider as its log lines name it, and where the library's log goes. */
#include "transport/adapters/ofi/log.h"

#include "mrd/mrd.h"

struct fi_provider mrd_ofi_provider = {
    .version = FI_VERSION(MRD_VERSION_MAJOR, MRD_VERSION_MINOR),
    /* Applications that ask for a newer interface than this would not get the provider. */
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name = "mrd",
};

static void log_message(void *arg, enum mrd_log_level level, const char *message)
{
    static const enum fi_log_level levels[] = {[MRD_LOG_ERROR] = FI_LOG_WARN,
                                               [MRD_LOG_WARN] = FI_LOG_WARN,
                                               [MRD_LOG_INFO] = FI_LOG_INFO,
                                               [MRD_LOG_DEBUG] = FI_LOG_DEBUG};

    (void)arg;
    FI_LOG(&mrd_ofi_provider, levels[level], FI_LOG_CORE, "%s\n", message);
}

void mrd_ofi_log_forward(void)
{
    enum mrd_log_level level = MRD_LOG_WARN;

    if (fi_log_enabled(&mrd_ofi_provider, FI_LOG_INFO, FI_LOG_CORE))
        level = MRD_LOG_INFO;
    if (fi_log_enabled(&mrd_ofi_provider, FI_LOG_DEBUG, FI_LOG_CORE))
        level = MRD_LOG_DEBUG;
    mrd_set_log(log_message, NULL, level);
}
