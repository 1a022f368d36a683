/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/iface.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/mr.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/params.h"
#include "transport/adapters/ofi/peer.h"

enum {
    READS = 128,     /* reads and atomics under way, of an endpoint */
    OWN_WORK = 1024, /* room in the send queue beside the application's operations */
};

/* The device of FI_MRD_DEVICE; NULL: the usual one. */
static int find_device(struct mrd_device ***list, const struct mrd_device **device)
{
    *list = NULL;
    *device = NULL;
    if (!mrd_ofi_params.device)
        return 0;
    *list = mrd_get_device_list(NULL);
    for (struct mrd_device **d = *list; d && *d; d++) {
        if (!strcmp(mrd_get_device_name(*d), mrd_ofi_params.device))
            *device = *d;
    }
    if (*device)
        return 0;
    MRD_OFI_WARN(EP_CTRL, "FI_MRD_DEVICE: there is no device %s\n", mrd_ofi_params.device);
    return -FI_ENODEV;
}

/*
 * Writes the address to bind to, without port, and that port; false: any address. is_gid: it is one
 * of an RDMA device, which has no scope.
 */
static bool own_address(const struct fi_info *info, bool is_gid, char *text, uint16_t *port)
{
    union mrd_ofi_addr addr;

    *port = 0;
    if (!info->src_addr)
        return false;
    memcpy(&addr, info->src_addr, mrd_ofi_addr_bytes(info->src_addr));
    if (addr.sa.sa_family == AF_INET6 && is_gid)
        addr.in6.sin6_scope_id = 0;
    mrd_ofi_addr_host_text(&addr, text, MRD_ADDRESS_MAX);
    if (addr.sa.sa_family == AF_INET) {
        *port = ntohs(addr.in.sin_port);
        return addr.in.sin_addr.s_addr != INADDR_ANY;
    }
    *port = ntohs(addr.in6.sin6_port);
    return !IN6_IS_ADDR_UNSPECIFIED(&addr.in6.sin6_addr);
}

static bool wants_v6(const struct fi_info *info)
{
    const union mrd_ofi_addr *addr = info->src_addr;

    return info->addr_format == FI_SOCKADDR_IN6 || (addr && addr->sa.sa_family == AF_INET6);
}

/*
 * An endpoint that has any address gets the first one of its family that would be offered: mrd would
 * tell peers another one, of a bridge of containers, or of IPv4 to those who want IPv6.
 */
static bool find_first(sa_family_t family, char *text)
{
    struct mrd_ofi_iface *list = NULL;
    int num = mrd_ofi_ifaces_list(&list), i = 0;

    while (i < num &&
           (list[i].addr.sa.sa_family != family || list[i].link_local ||
            (mrd_ofi_params.interface && strcmp(list[i].name, mrd_ofi_params.interface))))
        i++;
    if (i < num)
        mrd_ofi_addr_host_text(&list[i].addr, text, MRD_ADDRESS_MAX);
    free(list);
    return i < num;
}

/* Peers could not use an address of the other family: they have room for their format only. */
static int check_own_address(const struct mrd_ofi_ep *ep)
{
    char text[MRD_ADDRESS_MAX];
    union mrd_ofi_addr own;

    if (mrd_query_address(ep->dev.context, text, sizeof(text)) || mrd_ofi_addr_parse(text, &own) ||
        mrd_ofi_addr_fits(ep->info->addr_format, &own))
        return 0;
    MRD_OFI_WARN(EP_CTRL, "the endpoint's address, %s, is not of the format that it has to have\n",
                 text);
    return -FI_EADDRNOTAVAIL;
}

static int open_context(struct mrd_ofi_ep *ep)
{
    char text[MRD_ADDRESS_MAX];
    struct mrd_context_attr attr = {.paths = mrd_ofi_params.paths,
                                    .mtu = mrd_ofi_params.mtu,
                                    .spray = mrd_ofi_params.spray,
                                    .cc = mrd_ofi_params.cc,
                                    .key_file = mrd_ofi_params.key_file,
                                    .source_ports = mrd_ofi_params.ports,
                                    .num_source_ports = mrd_ofi_params.num_ports,
                                    .peer_timeout_ns = mrd_ofi_params.peer_timeout_ns,
                                    .rx_drop_ppm = mrd_ofi_params.drop_ppm};
    struct mrd_device **list;
    const struct mrd_device *device;
    int error = find_device(&list, &device);
    bool is_gid = device && strcmp(mrd_get_device_name(device), "udp") != 0;

    if (!error && (own_address(ep->info, is_gid, text, &attr.port) ||
                   (!is_gid && find_first(wants_v6(ep->info) ? AF_INET6 : AF_INET, text))))
        attr.address = text;
    if (!error) {
        ep->dev.context = mrd_open_device(device, &attr);
        error = ep->dev.context ? check_own_address(ep) : -errno;
    }
    if (list)
        mrd_free_device_list(list);
    return error;
}

static int make_wait_fd(struct mrd_ofi_ep *ep)
{
    struct epoll_event event = {.events = EPOLLIN};
    int flags = fcntl(ep->dev.channel->fd, F_GETFL);

    ep->source.fd = epoll_create1(EPOLL_CLOEXEC);
    if (ep->source.fd < 0 || flags < 0 || fcntl(ep->dev.channel->fd, F_SETFL, flags | O_NONBLOCK) ||
        epoll_ctl(ep->source.fd, EPOLL_CTL_ADD, ep->dev.channel->fd, &event) ||
        epoll_ctl(ep->source.fd, EPOLL_CTL_ADD, ep->dev.context->async_fd, &event))
        return -errno;
    return 0;
}

/* The queue pair whose number peers send messages to comes first. */
static int make_queues(struct mrd_ofi_ep *ep)
{
    uint32_t size = (uint32_t)ep->info->tx_attr->size, work = 2 * size + OWN_WORK;
    struct mrd_cq_init_attr cq = {.cqe = (int)(2 * work + ep->rx.num), .channel = ep->dev.channel};
    struct mrd_qp_init_attr qp = {
        .cap = {.max_send_wr = work,
                .max_recv_wr = ep->rx.num,
                .max_send_sge = MRD_OFI_SGE_MAX,
                .max_inline_data = MRD_INLINE_BYTES_MAX},
        .max_rd_atomic = READS,
        .order = ep->info->tx_attr->msg_order & FI_ORDER_SAS ? MRD_ORDER_MSG : MRD_ORDER_NONE};

    ep->dev.cq = mrd_create_cq_ex(ep->dev.context, &cq);
    if (!ep->dev.cq)
        return -errno;
    qp.send_cq = qp.recv_cq = ep->dev.cq;
    ep->dev.messages = mrd_create_qp(ep->dev.pd, &qp);
    if (!ep->dev.messages)
        return -errno;
    qp.order = MRD_ORDER_NONE;
    qp.cap.max_recv_wr = 1;
    ep->dev.memory = mrd_create_qp(ep->dev.pd, &qp);
    return ep->dev.memory ? 0 : -errno;
}

static int register_all(struct mrd_ofi_ep *ep)
{
    ep->dev.all =
        mrd_reg_mr(ep->dev.pd, NULL, SIZE_MAX, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_ON_DEMAND);
    ep->dev.on_demand = ep->dev.all != NULL;
    return ep->dev.all || errno == EOPNOTSUPP ? 0 : -errno;
}

static int post_buffers(struct mrd_ofi_ep *ep)
{
    size_t bytes = (size_t)ep->rx.num * ep->rx.bytes;

    ep->rx.held = calloc(ep->rx.num, sizeof(*ep->rx.held));
    ep->rx.memory = aligned_alloc(64, bytes);
    if (!ep->rx.held || !ep->rx.memory)
        return -FI_ENOMEM;
    ep->rx.mr = mrd_reg_mr(ep->dev.pd, ep->rx.memory, bytes, MRD_ACCESS_LOCAL_WRITE);
    if (!ep->rx.mr)
        return -errno;
    for (uint32_t i = 0; i < ep->rx.num; i++) {
        struct mrd_sge sge = {(uintptr_t)(ep->rx.memory + (size_t)i * ep->rx.bytes), ep->rx.bytes,
                              ep->rx.mr->lkey};
        struct mrd_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        int error = mrd_post_recv(ep->dev.messages, &wr, &bad);

        if (error)
            return error;
    }
    return 0;
}

void mrd_ofi_context_close(struct mrd_ofi_ep *ep)
{
    /* Until they are gone mrd may read what is being sent. */
    if (ep->dev.messages)
        (void)mrd_destroy_qp(ep->dev.messages);
    if (ep->dev.memory)
        (void)mrd_destroy_qp(ep->dev.memory);
    mrd_ofi_ops_abandon(ep);
    mrd_ofi_mr_forget_ep(ep);
    mrd_ofi_peers_fini(ep);
    if (ep->rx.mr)
        (void)mrd_dereg_mr(ep->rx.mr);
    if (ep->dev.all)
        (void)mrd_dereg_mr(ep->dev.all);
    free(ep->rx.held);
    free(ep->rx.memory);
    if (ep->dev.cq)
        (void)mrd_destroy_cq(ep->dev.cq);
    if (ep->source.fd >= 0)
        close(ep->source.fd);
    if (ep->dev.channel)
        (void)mrd_destroy_comp_channel(ep->dev.channel);
    if (ep->dev.pd)
        (void)mrd_dealloc_pd(ep->dev.pd);
    if (ep->dev.context && mrd_close_device(ep->dev.context))
        MRD_OFI_WARN(EP_CTRL, "a context is not closed: %s\n", mrd_last_error());
    ep->dev.messages = ep->dev.memory = NULL;
    ep->rx.mr = ep->dev.all = NULL;
    ep->rx.held = NULL;
    ep->rx.memory = NULL;
    ep->rx.first_held = ep->rx.num_held = 0;
    ep->dev.cq = NULL;
    ep->source.fd = -1;
    ep->dev.channel = NULL;
    ep->dev.pd = NULL;
    ep->dev.context = NULL;
}

int mrd_ofi_context_open(struct mrd_ofi_ep *ep)
{
    int error = open_context(ep);

    if (!error && getrandom(&ep->cookie, sizeof(ep->cookie), 0) != sizeof(ep->cookie))
        error = -FI_EIO;
    if (error)
        return error;
    ep->dev.pd = mrd_alloc_pd(ep->dev.context);
    ep->dev.channel = mrd_create_comp_channel(ep->dev.context);
    if (!ep->dev.pd || !ep->dev.channel)
        return -errno;
    error = make_wait_fd(ep);
    if (!error)
        error = register_all(ep);
    if (!error)
        error = make_queues(ep);
    if (!error)
        error = mrd_ofi_peers_init(ep);
    return error ? error : post_buffers(ep);
}
