/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/adapters/ofi/info.h"
#include "transport/adapters/ofi/log.h"

enum { TEXT_BYTES = 1024 };

/* Says in the log why not. Returns false. */
static bool __attribute__((format(printf, 1, 2))) refuse(const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    MRD_OFI_INFO(CORE, "not offered: %s\n", text);
    return false;
}

/* Are all of these bits among those that there are? */
static bool has_bits(const char *what, enum fi_type type, uint64_t asked, uint64_t there_are)
{
    uint64_t missing = asked & ~there_are;
    char text[TEXT_BYTES / 2];

    return !missing || refuse("%s has no %s", what, fi_tostr_r(text, sizeof(text), &missing, type));
}

static bool fits(const char *what, uint64_t asked, uint64_t most)
{
    return asked <= most || refuse("%s %llu: at most %llu", what, (unsigned long long)asked,
                                   (unsigned long long)most);
}

/* --------------------------------------------------------------------------------- capabilities */

uint64_t mrd_ofi_caps_implied(uint64_t caps)
{
    const uint64_t messages = FI_SEND | FI_RECV;
    const uint64_t memory = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

    if (caps & (FI_MSG | FI_TAGGED) && !(caps & messages))
        caps |= messages;
    if (caps & (FI_RMA | FI_ATOMIC) && !(caps & memory))
        caps |= memory;
    return caps;
}

/*
 * Those of one side: part of the endpoint's, if these are told. Bits of the other side do not
 * matter; applications give both sides the same.
 */
static bool side_caps_fit(const char *what, uint64_t asked, uint64_t of_side, uint64_t of_ep)
{
    if (!has_bits(what, FI_TYPE_CAPS, asked, MRD_OFI_CAPS))
        return false;
    return !of_ep || has_bits(what, FI_TYPE_CAPS, asked & of_side, mrd_ofi_caps_implied(of_ep));
}

/* ----------------------------------------------------------------------------------- attributes */

static bool tx_fits(const struct fi_tx_attr *tx, uint64_t caps)
{
    return side_caps_fit("tx_attr->caps", tx->caps, MRD_OFI_TX_CAPS, caps) &&
           has_bits("tx_attr->op_flags", FI_TYPE_OP_FLAGS, tx->op_flags, MRD_OFI_TX_FLAGS) &&
           has_bits("tx_attr->msg_order", FI_TYPE_MSG_ORDER, tx->msg_order, FI_ORDER_SAS) &&
           has_bits("tx_attr->comp_order", FI_TYPE_MSG_ORDER, tx->comp_order, 0) &&
           fits("tx_attr->inject_size", tx->inject_size, MRD_OFI_INJECT_BYTES) &&
           fits("tx_attr->size", tx->size, MRD_OFI_QUEUE_MAX) &&
           fits("tx_attr->iov_limit", tx->iov_limit, MRD_OFI_IOV_MAX) &&
           fits("tx_attr->rma_iov_limit", tx->rma_iov_limit, MRD_OFI_RMA_IOV_MAX);
}

/* total_buffered_recv is but a hint: fi_endpoint(3) lets providers ignore it. */
static bool rx_fits(const struct fi_rx_attr *rx, uint64_t caps)
{
    return side_caps_fit("rx_attr->caps", rx->caps, MRD_OFI_RX_CAPS, caps) &&
           has_bits("rx_attr->op_flags", FI_TYPE_OP_FLAGS, rx->op_flags, MRD_OFI_RX_FLAGS) &&
           has_bits("rx_attr->msg_order", FI_TYPE_MSG_ORDER, rx->msg_order, FI_ORDER_SAS) &&
           has_bits("rx_attr->comp_order", FI_TYPE_MSG_ORDER, rx->comp_order, 0) &&
           fits("rx_attr->size", rx->size, MRD_OFI_QUEUE_MAX) &&
           fits("rx_attr->iov_limit", rx->iov_limit, MRD_OFI_IOV_MAX);
}

static bool contexts_fit(const struct fi_ep_attr *ep)
{
    if (ep->tx_ctx_cnt == FI_SHARED_CONTEXT || ep->rx_ctx_cnt == FI_SHARED_CONTEXT)
        return refuse("shared contexts");
    return fits("ep_attr->tx_ctx_cnt", ep->tx_ctx_cnt, 1) &&
           fits("ep_attr->rx_ctx_cnt", ep->rx_ctx_cnt, 1);
}

/* Nothing is ordered after reads and writes, however small. Without them the sizes say nothing. */
static bool orders_fit(const struct fi_ep_attr *ep, uint64_t caps)
{
    return !(caps & (FI_RMA | FI_ATOMIC)) ||
           (fits("ep_attr->max_order_raw_size", ep->max_order_raw_size, 0) &&
            fits("ep_attr->max_order_war_size", ep->max_order_war_size, 0) &&
            fits("ep_attr->max_order_waw_size", ep->max_order_waw_size, 0));
}

static bool ep_fits(const struct fi_ep_attr *ep, uint64_t caps)
{
    char text[TEXT_BYTES / 2];

    if (ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM)
        return refuse("endpoints of type %s",
                      fi_tostr_r(text, sizeof(text), &ep->type, FI_TYPE_EP_TYPE));
    if (ep->protocol != FI_PROTO_UNSPEC && ep->protocol != MRD_OFI_PROTOCOL)
        return refuse("protocol %s",
                      fi_tostr_r(text, sizeof(text), &ep->protocol, FI_TYPE_PROTOCOL));
    return fits("ep_attr->protocol_version", ep->protocol_version, MRD_OFI_WIRE_VERSION) &&
           fits("ep_attr->max_msg_size", ep->max_msg_size, MRD_MESSAGE_BYTES_MAX) &&
           fits("ep_attr->auth_key_size", ep->auth_key_size, 0) && contexts_fit(ep) &&
           orders_fit(ep, caps);
}

/* The provider needs none of these modes, so it takes any. Old and new ones are not to be mixed. */
static bool mr_mode_fits(uint32_t version, int mr_mode)
{
    const int old = FI_MR_BASIC | FI_MR_SCALABLE;

    if (mr_mode == FI_MR_UNSPEC || mr_mode == FI_MR_BASIC || mr_mode == FI_MR_SCALABLE)
        return true;
    if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
        return refuse("mr_mode 0x%x before version 1.5", mr_mode);
    return !(mr_mode & old) || refuse("mr_mode 0x%x, of old and new modes", mr_mode);
}

static bool models_fit(const struct fi_domain_attr *domain)
{
    if ((unsigned)domain->threading > FI_THREAD_ENDPOINT)
        return refuse("threading %d", (int)domain->threading);
    if ((unsigned)domain->control_progress > FI_PROGRESS_MANUAL)
        return refuse("control_progress %d", (int)domain->control_progress);
    if ((unsigned)domain->data_progress > FI_PROGRESS_MANUAL)
        return refuse("data_progress %d", (int)domain->data_progress);
    if ((unsigned)domain->resource_mgmt > FI_RM_ENABLED)
        return refuse("resource_mgmt %d", (int)domain->resource_mgmt);
    if ((unsigned)domain->av_type > FI_AV_TABLE)
        return refuse("av_type %d", (int)domain->av_type);
    return true;
}

static bool counts_fit(const struct fi_domain_attr *domain)
{
    return fits("domain_attr->cq_cnt", domain->cq_cnt, MRD_OFI_OBJECTS) &&
           fits("domain_attr->ep_cnt", domain->ep_cnt, MRD_OFI_OBJECTS) &&
           fits("domain_attr->tx_ctx_cnt", domain->tx_ctx_cnt, MRD_OFI_OBJECTS) &&
           fits("domain_attr->rx_ctx_cnt", domain->rx_ctx_cnt, MRD_OFI_OBJECTS) &&
           fits("domain_attr->cntr_cnt", domain->cntr_cnt, MRD_OFI_OBJECTS) &&
           fits("domain_attr->mr_cnt", domain->mr_cnt, MRD_OFI_REGIONS) &&
           fits("domain_attr->max_ep_tx_ctx", domain->max_ep_tx_ctx, 1) &&
           fits("domain_attr->max_ep_rx_ctx", domain->max_ep_rx_ctx, 1) &&
           fits("domain_attr->max_ep_stx_ctx", domain->max_ep_stx_ctx, 0) &&
           fits("domain_attr->max_ep_srx_ctx", domain->max_ep_srx_ctx, 0);
}

static bool domain_fits(uint32_t version, const struct fi_domain_attr *domain)
{
    return has_bits("domain_attr->caps", FI_TYPE_CAPS, domain->caps, MRD_OFI_DOMAIN_CAPS) &&
           models_fit(domain) && mr_mode_fits(version, domain->mr_mode) && counts_fit(domain) &&
           fits("domain_attr->mr_key_size", domain->mr_key_size, MRD_OFI_KEY_BYTES) &&
           fits("domain_attr->cq_data_size", domain->cq_data_size, MRD_OFI_CQ_DATA_BYTES) &&
           fits("domain_attr->mr_iov_limit", domain->mr_iov_limit, MRD_OFI_IOV_MAX) &&
           fits("domain_attr->max_err_data", domain->max_err_data, 0) &&
           fits("domain_attr->auth_key_size", domain->auth_key_size, 0);
}

static bool format_fits(uint32_t format)
{
    char text[TEXT_BYTES / 2];

    switch (format) {
    case FI_FORMAT_UNSPEC:
    case FI_SOCKADDR:
    case FI_SOCKADDR_IN:
    case FI_SOCKADDR_IN6:
        return true;
    default:
        return refuse("addresses of format %s",
                      fi_tostr_r(text, sizeof(text), &format, FI_TYPE_ADDR_FORMAT));
    }
}

int mrd_ofi_check_hints(uint32_t version, const struct fi_info *hints)
{
    uint64_t caps;

    if (!hints)
        return 0;
    caps = hints->caps ? hints->caps : MRD_OFI_CAPS;
    if (hints->ep_attr && !ep_fits(hints->ep_attr, caps))
        return -FI_ENODATA;
    if (!has_bits("caps", FI_TYPE_CAPS, hints->caps, MRD_OFI_CAPS) ||
        !format_fits(hints->addr_format))
        return -FI_ENODATA;
    if ((hints->tx_attr && !tx_fits(hints->tx_attr, hints->caps)) ||
        (hints->rx_attr && !rx_fits(hints->rx_attr, hints->caps)) ||
        (hints->domain_attr && !domain_fits(version, hints->domain_attr)))
        return -FI_ENODATA;
    if (hints->fabric_attr && !fits("fabric_attr->prov_version", hints->fabric_attr->prov_version,
                                    mrd_ofi_provider.version))
        return -FI_ENODATA;
    return 0;
}

int mrd_ofi_check_ep_info(const struct fi_info *info)
{
    uint32_t version;

    if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr || !info->domain_attr ||
        !info->fabric_attr || !info->tx_attr->size || !info->rx_attr->size) {
        MRD_OFI_WARN(EP_CTRL, "an endpoint needs all attributes that fi_getinfo() returned\n");
        return -FI_EINVAL;
    }
    version = info->fabric_attr->api_version;
    if (mrd_ofi_check_hints(version ? version : mrd_ofi_provider.fi_version, info)) {
        MRD_OFI_WARN(EP_CTRL, "an endpoint of other attributes than fi_getinfo() returned; "
                              "FI_LOG_LEVEL=info tells which\n");
        return -FI_EINVAL;
    }
    return 0;
}
