/* SPDX-License-Identifier: BSD-2-Clause */
/* Where libfabric enters, and where the library's log goes. */
#include "transport/adapters/ofi/ofi.h"

#include "transport/adapters/ofi/params.h"

static void log_message(void *arg, enum mrd_log_level level, const char *message)
{
    static const enum fi_log_level levels[] = {[MRD_LOG_ERROR] = FI_LOG_WARN,
                                               [MRD_LOG_WARN] = FI_LOG_WARN,
                                               [MRD_LOG_INFO] = FI_LOG_INFO,
                                               [MRD_LOG_DEBUG] = FI_LOG_DEBUG};

    (void)arg;
    FI_LOG(&mrd_ofi_provider, levels[level], FI_LOG_CORE, "%s\n", message);
}

/* What libfabric would drop anyway is not formatted at all. */
static void forward_log(void)
{
    enum mrd_log_level level = MRD_LOG_WARN;

    if (fi_log_enabled(&mrd_ofi_provider, FI_LOG_INFO, FI_LOG_CORE))
        level = MRD_LOG_INFO;
    if (fi_log_enabled(&mrd_ofi_provider, FI_LOG_DEBUG, FI_LOG_CORE))
        level = MRD_LOG_DEBUG;
    mrd_set_log(log_message, NULL, level);
}

static void read_once(void)
{
    mrd_ofi_params_parse(&mrd_ofi_params);
    forward_log();
}

void mrd_ofi_params_read(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_once);
}

/* libfabric goes away. */
static void cleanup(void)
{
    mrd_set_log(NULL, NULL, MRD_LOG_ERROR);
    mrd_ofi_params_free(&mrd_ofi_params);
}

struct fi_provider mrd_ofi_provider = {
    .version = FI_VERSION(MRD_VERSION_MAJOR, MRD_VERSION_MINOR),
    /* Applications that ask for a newer interface than this would not get the provider. */
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name = "mrd",
    .getinfo = mrd_ofi_getinfo,
    .fabric = mrd_ofi_fabric_open,
    .cleanup = cleanup,
};

FI_EXT_INI;
FI_EXT_INI
{
    mrd_ofi_params_define();
    return &mrd_ofi_provider;
}
