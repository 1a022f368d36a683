/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings for the enums of the public API, the names of policies, and the version. */
#include "mrd/mrd.h"

#include <stddef.h>

#include "core/cc.h"
#include "core/spray.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *mrd_wc_status_str(enum mrd_wc_status status)
{
    switch (status) {
    case MRD_WC_SUCCESS:
        return "success";
    case MRD_WC_LOC_LEN_ERR:
        return "local length error: message longer than the receive";
    case MRD_WC_LOC_PROT_ERR:
        return "local protection error: key does not cover the buffer";
    case MRD_WC_WR_FLUSH_ERR:
        return "work request flushed";
    case MRD_WC_REM_INV_REQ_ERR:
        return "remote invalid request: no such queue pair, wrong qkey or message too long";
    case MRD_WC_REM_ACCESS_ERR:
        return "remote access error: rkey, range or permission";
    case MRD_WC_REM_OP_ERR:
        return "remote operation error";
    case MRD_WC_REM_ABORT_ERR:
        return "aborted by the sender";
    case MRD_WC_RETRY_EXC_ERR:
        return "peer unreachable";
    case MRD_WC_RNR_RETRY_EXC_ERR:
        return "receiver not ready, retries exceeded";
    case MRD_WC_GENERAL_ERR:
        return "general error";
    }
    return "unknown status";
}

const char *mrd_event_type_str(enum mrd_event_type type)
{
    switch (type) {
    case MRD_EVENT_PEER_UNREACHABLE:
        return "peer unreachable";
    case MRD_EVENT_PEER_RESTARTED:
        return "peer restarted";
    case MRD_EVENT_DEVICE_FATAL:
        return "device fatal";
    case MRD_EVENT_PORT_ERR:
        return "port down";
    case MRD_EVENT_PORT_ACTIVE:
        return "port up";
    case MRD_EVENT_QP_FATAL:
        return "queue pair fatal";
    case MRD_EVENT_QP_REFUSED:
        return "queue pair refused a request";
    case MRD_EVENT_SRQ_LIMIT_REACHED:
        return "shared receive queue limit reached";
    case MRD_EVENT_PEER_BUSY:
        return "peer has no room for us in its table of peers";
    case MRD_EVENT_PEERS_FULL:
        return "peer turned away: the table of peers is full";
    case MRD_EVENT_PEER_WRONG_KEYS:
        return "peer names many wrong memory keys";
    }
    return "unknown event";
}

const char *mrd_version(void)
{
    return TEXT(MRD_VERSION_MAJOR) "." TEXT(MRD_VERSION_MINOR) "." TEXT(MRD_VERSION_PATCH);
}

#define X(name) #name,
const char *const *mrd_cc_names(void)
{
    static const char *const names[] = {MRD_CC_POLICIES(X) NULL};

    return names;
}

const char *const *mrd_spray_names(void)
{
    static const char *const names[] = {MRD_SPRAY_POLICIES(X) NULL};

    return names;
}
#undef X
