/* SPDX-License-Identifier: BSD-2-Clause */
/* getinfo: one endpoint for each address that it could have. */
#include "transport/adapters/ofi/info.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/check.h"
#include "transport/adapters/ofi/ends.h"
#include "transport/adapters/ofi/iface.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/params.h"

/* What is asked for, once all of it is known. */
struct request {
    uint32_t version;
    const struct fi_info *hints; /* NULL: none */
    uint32_t format;             /* of addresses */
    const char *interface;       /* the only one; NULL: any */
    struct mrd_ofi_ends ends;
    bool pinned; /* ends.src is the address, not only the port */
};

/* Where an endpoint would be. */
struct place {
    const char *domain, *fabric;
    const union mrd_ofi_addr *src, *dest; /* NULL: it has none yet */
};

/* ----------------------------------------------------------------------------------- attributes */

static void fill_tx(struct fi_tx_attr *tx, const struct fi_tx_attr *hints, uint64_t caps)
{
    uint64_t asked = hints ? mrd_ofi_caps_implied(hints->caps & MRD_OFI_TX_CAPS) : 0;

    tx->caps = caps & MRD_OFI_TX_CAPS & (asked ? asked : ~0ull);
    tx->op_flags = hints ? hints->op_flags : 0;
    tx->inject_size = MRD_OFI_INJECT_BYTES;
    tx->size = hints && hints->size ? hints->size : MRD_OFI_QUEUE;
    tx->iov_limit = MRD_OFI_IOV_MAX;
    tx->rma_iov_limit = MRD_OFI_RMA_IOV_MAX;
}

static void fill_rx(struct fi_rx_attr *rx, const struct fi_rx_attr *hints, uint64_t caps)
{
    uint64_t asked = hints ? mrd_ofi_caps_implied(hints->caps & MRD_OFI_RX_CAPS) : 0;

    rx->caps = caps & MRD_OFI_RX_CAPS & (asked ? asked : ~0ull);
    rx->op_flags = hints ? hints->op_flags : 0;
    rx->size = hints && hints->size ? hints->size : MRD_OFI_QUEUE;
    rx->iov_limit = MRD_OFI_IOV_MAX;
}

/*
 * Messages wait for lost ones only if somebody asks for their order. Whoever has no hints at all
 * gets it.
 */
static uint64_t order_of(const struct fi_info *hints)
{
    if (!hints || (!hints->tx_attr && !hints->rx_attr))
        return FI_ORDER_SAS;
    return (hints->tx_attr ? hints->tx_attr->msg_order : 0) |
           (hints->rx_attr ? hints->rx_attr->msg_order : 0);
}

static void fill_ep(struct fi_ep_attr *ep)
{
    ep->type = FI_EP_RDM;
    ep->protocol = MRD_OFI_PROTOCOL;
    ep->protocol_version = MRD_OFI_WIRE_VERSION;
    ep->max_msg_size = MRD_MESSAGE_BYTES_MAX;
    ep->mem_tag_format = MRD_OFI_TAG_FORMAT;
    ep->tx_ctx_cnt = 1;
    ep->rx_ctx_cnt = 1;
}

/* Nothing is needed of memory or keys: before version 1.5, that was called scalable. */
static int mr_mode_of(const struct request *r)
{
    int asked = r->hints && r->hints->domain_attr ? r->hints->domain_attr->mr_mode : FI_MR_UNSPEC;

    if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE)
        return asked;
    return FI_VERSION_LT(r->version, FI_VERSION(1, 5)) ? FI_MR_SCALABLE : 0;
}

static void fill_domain(struct fi_domain_attr *domain, const struct request *r)
{
    static const struct fi_domain_attr none;
    const struct fi_domain_attr *asked =
        r->hints && r->hints->domain_attr ? r->hints->domain_attr : &none;

    domain->threading = asked->threading ? asked->threading : FI_THREAD_SAFE;
    domain->control_progress =
        asked->control_progress ? asked->control_progress : FI_PROGRESS_MANUAL;
    domain->data_progress = asked->data_progress ? asked->data_progress : FI_PROGRESS_MANUAL;
    domain->resource_mgmt = FI_RM_ENABLED;
    domain->av_type = asked->av_type;
    domain->mr_mode = mr_mode_of(r);
    domain->mr_key_size = MRD_OFI_KEY_BYTES;
    domain->cq_data_size = MRD_OFI_CQ_DATA_BYTES;
    domain->cq_cnt = MRD_OFI_OBJECTS;
    domain->ep_cnt = MRD_OFI_OBJECTS;
    domain->tx_ctx_cnt = MRD_OFI_OBJECTS;
    domain->rx_ctx_cnt = MRD_OFI_OBJECTS;
    domain->max_ep_tx_ctx = 1;
    domain->max_ep_rx_ctx = 1;
    domain->cntr_cnt = MRD_OFI_OBJECTS;
    domain->mr_iov_limit = MRD_OFI_IOV_MAX;
    domain->mr_cnt = MRD_OFI_REGIONS;
    domain->caps = MRD_OFI_DOMAIN_CAPS;
}

/* --------------------------------------------------------------------------------------- places */

/* Copies an address; none is none. false: no memory. */
static bool fill_addr(const union mrd_ofi_addr *addr, void **copy, size_t *bytes)
{
    if (!addr)
        return true;
    *copy = calloc(1, sizeof(*addr));
    if (!*copy)
        return false;
    *bytes = mrd_ofi_addr_bytes(addr);
    memcpy(*copy, addr, *bytes);
    return true;
}

/* libfabric fills in the rest of fabric_attr. */
static bool fill_place(struct fi_info *info, const struct request *r, const struct place *place)
{
    const union mrd_ofi_addr *any = place->src ? place->src : place->dest;

    info->domain_attr->name = strdup(place->domain);
    info->fabric_attr->name = strdup(place->fabric);
    info->fabric_attr->prov_version = mrd_ofi_provider.version;
    info->addr_format = r->format;
    if (r->format == FI_FORMAT_UNSPEC)
        info->addr_format = any && any->sa.sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    return info->domain_attr->name && info->fabric_attr->name &&
           fill_addr(place->src, &info->src_addr, &info->src_addrlen) &&
           fill_addr(place->dest, &info->dest_addr, &info->dest_addrlen);
}

/* NULL: no memory. */
static struct fi_info *make(const struct request *r, const struct place *place)
{
    const struct fi_info *hints = r->hints;
    struct fi_info *info = fi_allocinfo();

    if (!info || !fill_place(info, r, place)) {
        if (info)
            fi_freeinfo(info);
        return NULL;
    }
    info->caps = MRD_OFI_CAPS;
    if (hints && hints->caps)
        info->caps = mrd_ofi_caps_implied(hints->caps) | MRD_OFI_DOMAIN_CAPS;
    fill_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps);
    fill_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps);
    info->tx_attr->msg_order = info->rx_attr->msg_order = order_of(hints);
    fill_ep(info->ep_attr);
    fill_domain(info->domain_attr, r);
    return info;
}

static bool has_names(const struct fi_info *hints, const char *domain, const char *fabric)
{
    if (hints && hints->domain_attr && hints->domain_attr->name &&
        strcmp(hints->domain_attr->name, domain))
        return false;
    return !hints || !hints->fabric_attr || !hints->fabric_attr->name ||
           !strcmp(hints->fabric_attr->name, fabric);
}

static int nothing(void)
{
    MRD_OFI_INFO(CORE, "not offered: no address of this machine is the one that is asked for\n");
    return -FI_ENODATA;
}

/* --------------------------------------------------------------------------- network interfaces */

static bool is_wanted(const struct request *r, const struct mrd_ofi_iface *iface)
{
    sa_family_t family = r->ends.has_src ? r->ends.src.sa.sa_family : AF_UNSPEC;
    bool v4 = iface->addr.sa.sa_family == AF_INET;

    if (family != AF_UNSPEC && family != iface->addr.sa.sa_family)
        return false;
    if ((r->format == FI_SOCKADDR_IN && !v4) || (r->format == FI_SOCKADDR_IN6 && v4))
        return false;
    if (r->interface && strcmp(r->interface, iface->name))
        return false;
    /* Other machines have other numbers for its scope: it is for those who name it. */
    if (iface->link_local && !r->pinned)
        return false;
    return has_names(r->hints, iface->name, iface->network) &&
           (!r->pinned || mrd_ofi_iface_has(iface, &r->ends.src));
}

static bool asks_remote(const struct fi_info *hints)
{
    return hints && (hints->caps & FI_REMOTE_COMM ||
                     (hints->domain_attr && hints->domain_attr->caps & FI_REMOTE_COMM));
}

/*
 * Drops what nobody means who names no address. Some applications, Open MPI among them, spread
 * their processes over all that is offered: so no loopback, if other machines are to be reached;
 * and no IPv6, if nobody asks for it and there is IPv4. Returns how many are left.
 */
static int drop_unmeant(const struct request *r, struct mrd_ofi_iface *list, int num)
{
    bool outside = false, outside_v4 = false;
    int left = 0;

    for (int i = 0; i < num; i++) {
        outside |= !list[i].loopback;
        outside_v4 |= !list[i].loopback && list[i].addr.sa.sa_family == AF_INET;
    }
    for (int i = 0; i < num; i++) {
        bool v6 = list[i].addr.sa.sa_family == AF_INET6;

        if (outside && list[i].loopback && asks_remote(r->hints))
            continue;
        if (outside_v4 && v6 && r->format == FI_FORMAT_UNSPEC)
            continue;
        list[left++] = list[i];
    }
    return left;
}

static void warn_unknown(const struct request *r, const struct mrd_ofi_iface *list, int num)
{
    for (int i = 0; i < num; i++)
        if (!strcmp(r->interface, list[i].name) && (r->pinned || !list[i].link_local))
            return;
    MRD_OFI_WARN(CORE, "no network interface %s is up and has an address\n", r->interface);
}

/* Keeps those that are wanted. Returns how many. */
static int choose(const struct request *r, struct mrd_ofi_iface *list, int num)
{
    int left = 0;

    for (int i = 0; i < num; i++)
        if (is_wanted(r, &list[i]))
            list[left++] = list[i];
    return r->pinned ? left : drop_unmeant(r, list, left);
}

static struct fi_info *make_on(const struct request *r, const struct mrd_ofi_iface *iface)
{
    union mrd_ofi_addr src = r->pinned ? r->ends.src : iface->addr;
    struct place place = {.domain = iface->name,
                          .fabric = iface->network,
                          .src = &src,
                          .dest = r->ends.has_dest ? &r->ends.dest : NULL};

    if (r->ends.has_src)
        src.in.sin_port = r->ends.src.in.sin_port; /* at the same place in both kinds */
    return make(r, &place);
}

/* Which address a destination is reached from. 0 or -FI_ENODATA. */
static int find_source(struct request *r)
{
    union mrd_ofi_addr from;

    r->pinned = r->ends.has_src && !mrd_ofi_addr_is_any(&r->ends.src);
    if (!r->ends.has_dest || r->pinned)
        return 0;
    if (!mrd_ofi_route(&r->ends.dest, &from)) {
        MRD_OFI_INFO(CORE, "not offered: there is no route to the destination\n");
        return -FI_ENODATA;
    }
    if (r->ends.has_src)
        from.in.sin_port = r->ends.src.in.sin_port;
    r->ends.src = from;
    r->ends.has_src = r->pinned = true;
    return 0;
}

static int offer_interfaces(struct request *r, struct fi_info **out)
{
    struct mrd_ofi_iface *list;
    struct fi_info *first = NULL, **next = &first;
    int error = find_source(r), num = error ? error : mrd_ofi_ifaces_list(&list);

    if (num < 0)
        return num;
    if (r->interface)
        warn_unknown(r, list, num);
    num = choose(r, list, num);
    for (int i = 0; i < num && !error; i++) {
        *next = make_on(r, &list[i]);
        if (*next)
            next = &(*next)->next;
        else
            error = -FI_ENOMEM;
        if (r->pinned)
            break; /* several loopback addresses may share a network */
    }
    free(list);
    if (!error && first) {
        *out = first;
        return 0;
    }
    if (first)
        fi_freeinfo(first);
    return error ? error : nothing();
}

/* --------------------------------------------------------------------------------- RDMA devices */

/* Its address is known when an endpoint is enabled. Until then it is ::, which means any. */
static int offer_device(const struct request *r, const char *name, struct fi_info **out)
{
    const union mrd_ofi_addr any = {.in6 = {.sin6_family = AF_INET6}};
    struct place place = {.domain = name, .fabric = "rdma", .src = &any};
    const struct mrd_ofi_ends *ends = &r->ends;

    if (r->format == FI_SOCKADDR_IN || !has_names(r->hints, place.domain, place.fabric))
        return nothing();
    if (ends->has_src && !mrd_ofi_addr_is_any(&ends->src))
        place.src = &ends->src;
    if (ends->has_dest)
        place.dest = &ends->dest;
    *out = make(r, &place);
    return *out ? 0 : -FI_ENOMEM;
}

/* -------------------------------------------------------------------------------------- getinfo */

/* Copies the device of FI_MRD_DEVICE; without one, that of UDP over all interfaces. */
static int find_device(struct mrd_device *device)
{
    struct mrd_device **list;
    bool found = false;

    *device = (struct mrd_device){.name = "udp", .transport = "udp"};
    if (!mrd_ofi_params.device)
        return 0;
    list = mrd_get_device_list(NULL);
    for (struct mrd_device **d = list; d && *d && !found; d++) {
        found = !strcmp(mrd_get_device_name(*d), mrd_ofi_params.device);
        if (found)
            *device = **d;
    }
    if (list)
        mrd_free_device_list(list);
    if (found)
        return 0;
    MRD_OFI_WARN(CORE, "FI_MRD_DEVICE: there is no device %s\n", mrd_ofi_params.device);
    return -FI_ENODATA;
}

int mrd_ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                    const struct fi_info *hints, struct fi_info **info)
{
    struct request r = {.version = version,
                        .hints = hints,
                        .format = hints ? hints->addr_format : FI_FORMAT_UNSPEC};
    struct mrd_device device;
    bool rdma;
    int error;

    mrd_ofi_params_read();
    error = mrd_ofi_check_hints(version, hints);
    if (!error)
        error = find_device(&device);
    if (error)
        return error;
    rdma = strcmp(device.transport, "udp") != 0;
    error = mrd_ofi_ends_find(node, service, flags, hints, rdma, &r.ends);
    if (error)
        return error;
    if (rdma)
        return offer_device(&r, device.name, info);
    r.interface = mrd_ofi_params.interface;
    if (strcmp(device.name, "udp"))
        r.interface = mrd_ofi_params.device;
    return offer_interfaces(&r, info);
}
