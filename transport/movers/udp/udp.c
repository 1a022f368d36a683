/* SPDX-License-Identifier: BSD-2-Clause */
/* Ops of the UDP mover: open, close, sleep, new paths. */
#include "transport/movers/udp/udp.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_icmp.h"
#include "transport/movers/udp/udp_lacks.h"
#include "transport/movers/udp/udp_port.h"
#include "transport/movers/udp/udp_route.h"
#include "transport/movers/udp/udp_rx.h"
#include "transport/movers/udp/udp_socket.h"
#include "transport/movers/udp/udp_source.h"
#include "transport/movers/udp/udp_tx.h"

enum { ETHERNET_BYTES = 14 };

static uint64_t udp_now_ns(struct mrd_backend *b)
{
    struct timespec ts;

    (void)b;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * What a datagram takes of the receive buffer beyond its own bytes, if it comes alone. The kernel
 * stores it in a power of two of bytes, with room for the lower headers and its bookkeeping, and
 * also counts a descriptor: 4,160 bytes measure 8,448. In a superpacket the overhead is about 5%.
 * The larger one counts: where the route does not coalesce datagrams, an overflow loses a burst.
 */
static uint32_t rx_packet_overhead(uint32_t payload_bytes)
{
    enum { LOWER_BYTES = 384, DESCRIPTOR_BYTES = 256 };
    uint32_t bytes = payload_bytes + MRD_UDP_HEADER_ROOM, buffer = 1024;

    while (buffer < bytes + LOWER_BYTES)
        buffer *= 2;
    return buffer + DESCRIPTOR_BYTES - bytes;
}

static void fill_mover(struct mrd_udp *udp)
{
    bool v6 = udp->family == AF_INET6 && !mrd_udp_addr_is_any(&udp->bound);
    struct mrd_mover *m = &udp->base.mover; /* rx_buffer_bytes was set when the socket was made */

    mrd_mover_fill_sockets(m);
    m->payload_bytes = udp->mtu ? udp->mtu : MRD_UDP_PAYLOAD_LOCAL;
    m->payload_usual = udp->mtu ? udp->mtu : MRD_UDP_PAYLOAD_JUMBO;
    m->payload_base = udp->mtu && udp->mtu < MRD_UDP_PAYLOAD_BASE ? udp->mtu : MRD_UDP_PAYLOAD_BASE;
    m->probes =
        !udp->mtu && mrd_udp_can(udp, MRD_UDP_LACKS_DF) && mrd_udp_can(udp, MRD_UDP_LACKS_DF6);
    m->paths = udp->tx.num_paths;
    m->rx_packet_overhead = rx_packet_overhead(m->probes ? m->payload_base : m->payload_usual);
    m->header_bytes = (v6 ? 48 : 28) + ETHERNET_BYTES;
    m->reply_max = UINT16_MAX;
    m->copies = true;
}

static int check_attr(const struct mrd_context_attr *attr)
{
    if (attr->mtu % 64 != 0 || attr->mtu > MRD_PAYLOAD_BYTES_MAX) {
        mrd_error_set("an MTU of %u payload bytes is not a multiple of 64 up to %d", attr->mtu,
                      MRD_PAYLOAD_BYTES_MAX);
        return -EINVAL;
    }
    if (attr->paths > MRD_UDP_PATHS_MAX) {
        mrd_error_set("%u paths are more than %d", attr->paths, MRD_UDP_PATHS_MAX);
        return -EINVAL;
    }
    if (attr->num_source_ports > MRD_UDP_PATHS_MAX ||
        (attr->paths && attr->num_source_ports && attr->paths > attr->num_source_ports)) {
        mrd_error_set("%u source ports do not fit %u paths (at most %d)", attr->num_source_ports,
                      attr->paths, MRD_UDP_PATHS_MAX);
        return -EINVAL;
    }
    for (unsigned i = 0; i < attr->num_source_ports; i++) {
        if (attr->source_ports[i] == 0) {
            mrd_error_set("source port 0 is no port");
            return -EINVAL;
        }
    }
    if (attr->port_num || attr->gid_index || (attr->comp_mask & MRD_CONTEXT_ATTR_GID_INDEX) ||
        attr->entropy) {
        mrd_error_set("port_num, gid_index and entropy are of RDMA devices; udp has none of them");
        return -EINVAL;
    }
    if (attr->rx_drop_ppm > 1000000) {
        mrd_error_set("a drop share of %u parts per million is more than all", attr->rx_drop_ppm);
        return -EINVAL;
    }
    return 0;
}

static int open_paths(struct mrd_udp *udp, const struct mrd_context_attr *attr)
{
    struct mrd_udp_tx *tx = &udp->tx;
    unsigned paths = attr->paths;

    tx->fixed_ports = attr->num_source_ports != 0;
    if (paths == 0)
        paths = tx->fixed_ports ? attr->num_source_ports : MRD_UDP_PATHS_DEFAULT;
    tx->max_paths = tx->fixed_ports ? paths : paths * MRD_UDP_PATHS_GROWTH;
    tx->paths = calloc(tx->max_paths, sizeof(*tx->paths));
    if (!tx->paths) {
        mrd_error_set("no memory for %u paths", tx->max_paths);
        return -ENOMEM;
    }
    while (tx->num_paths < paths) {
        int error = mrd_udp_open_path(udp, tx->fixed_ports ? attr->source_ports[tx->num_paths] : 0);

        if (error)
            return error;
    }
    return 0;
}

/* The address to bind: that of the attributes, else that of the interface; all zero: any. */
static int choose_address(struct mrd_udp *udp, const char *device,
                          const struct mrd_context_attr *attr)
{
    if (attr->address)
        return mrd_udp_parse_ip(attr->address, &udp->bound);
    return strcmp(device, MRD_UDP_ANY) ? mrd_udp_interface_address(device, &udp->bound) : 0;
}

static int open_sockets(struct mrd_udp *udp, const char *device,
                        const struct mrd_context_attr *attr)
{
    int error = choose_address(udp, device, attr);

    if (!error)
        error = mrd_udp_family_choose(udp);
    /* First the sockets whose ports are given, else an ephemeral port might be one of these. */
    if (!error && attr->port)
        error = mrd_udp_open_rx(udp, attr->port);
    if (!error)
        error = open_paths(udp, attr);
    if (!error && !attr->port)
        error = mrd_udp_open_rx(udp, 0);
    if (!error)
        error = mrd_udp_open_ask(udp);
    if (error)
        return error;
    /*
     * Ask now. A kernel without the option ignores it in a message, and sends the superpacket as
     * one datagram.
     */
    if (!(udp->without & MRD_UDP_WITHOUT_GSO)) {
        mrd_udp_ask(udp, udp->tx.paths[0].fd, MRD_UDP_LACKS_GSO, 0);
        udp->tx.gso = mrd_udp_can(udp, MRD_UDP_LACKS_GSO);
    }
    mrd_udp_ask_for_mtu(udp, udp->tx.paths[0].fd);
    return 0;
}

static void udp_close(struct mrd_backend *b)
{
    struct mrd_udp *udp = mrd_udp_of(b);

    for (unsigned i = 0; i < udp->tx.num_paths; i++)
        close(udp->tx.paths[i].fd);
    if (udp->rx.fd >= 0)
        close(udp->rx.fd);
    if (udp->ask_fd >= 0)
        close(udp->ask_fd);
    mrd_udp_sources_fini(&udp->tx.sources);
    free(udp->tx.paths);
    free(udp->rx.staging);
    free(udp);
}

struct mrd_backend *mrd_udp_open_without(const char *device, const struct mrd_context_attr *attr,
                                         unsigned without, int *error)
{
    struct mrd_udp *udp;

    *error = check_attr(attr);
    if (*error)
        return NULL;
    udp = calloc(1, sizeof(*udp));
    if (!udp) {
        mrd_error_set("no memory for a UDP context");
        *error = -ENOMEM;
        return NULL;
    }
    udp->base = (struct mrd_backend){.ops = &mrd_udp_ops, .threaded = true};
    udp->without = without;
    udp->mtu = attr->mtu;
    udp->rx.fd = udp->ask_fd = -1;
    udp->no_ect = attr->ecn == MRD_ECN_OFF;
    udp->tos = mrd_udp_tos((uint8_t)attr->dscp, !udp->no_ect);
    udp->rx.drop_ppm = attr->rx_drop_ppm;
    mrd_rng_init(&udp->rx.rng, attr->seed);
    udp->rx.staging = malloc(MRD_UDP_STAGING_BYTES);
    if (!udp->rx.staging) {
        mrd_error_set("no memory for a UDP context");
        *error = -ENOMEM;
    } else {
        *error = open_sockets(udp, device, attr);
    }
    if (*error) {
        udp_close(&udp->base);
        return NULL;
    }
    fill_mover(udp);
    return &udp->base;
}

static struct mrd_backend *udp_open(const struct mrd_device *device,
                                    const struct mrd_context_attr *attr, int *error)
{
    return mrd_udp_open_without(device->name, attr, 0, error);
}

static void udp_wait(struct mrd_backend *b, int wake_fd, uint64_t timeout_ns)
{
    struct pollfd fds[2] = {
        {.fd = mrd_udp_of(b)->rx.fd, .events = POLLIN},
        {.fd = wake_fd, .events = POLLIN}, /* poll() ignores -1 */
    };
    struct timespec ts = {
        .tv_sec = (time_t)(timeout_ns / 1000000000u),
        .tv_nsec = (long)(timeout_ns % 1000000000u),
    };

    /* An error, as by a signal, only ends the sleep early: the caller checks everything anyway. */
    (void)ppoll(fds, 2, timeout_ns == UINT64_MAX ? NULL : &ts, NULL);
}

static int udp_fd(struct mrd_backend *b)
{
    return mrd_udp_of(b)->rx.fd;
}

static int udp_new_path(struct mrd_backend *b)
{
    struct mrd_udp *udp = mrd_udp_of(b);
    int error;

    if (udp->tx.fixed_ports)
        return -ENOTSUP;
    if (udp->tx.num_paths == udp->tx.max_paths)
        return -ENOSPC;
    error = mrd_udp_open_path(udp, 0);
    return error ? error : (int)udp->tx.num_paths - 1;
}

static uint32_t udp_path_port(struct mrd_backend *b, uint32_t path)
{
    const struct mrd_udp_tx *tx = &mrd_udp_of(b)->tx;

    assert(path < tx->num_paths);
    return tx->paths[path].port;
}

const struct mrd_backend_ops mrd_udp_ops = {
    .transport = "udp",
    .has_port = true,
    .open = udp_open,
    .close = udp_close,
    .now_ns = udp_now_ns,
    .tx_burst = mrd_udp_tx_burst,
    .too_big = mrd_udp_too_big,
    .refused = mrd_udp_refused,
    .other_source = mrd_udp_other_source,
    .rx_burst = mrd_udp_rx_burst,
    .rx_return = mrd_udp_rx_return,
    .wait = udp_wait,
    .fd = udp_fd,
    .new_path = udp_new_path,
    .path_port = udp_path_port,
    .parse_address = mrd_udp_parse_address,
    .format_address = mrd_udp_format_address,
    .self_address = mrd_udp_self_address,
    .payload_bytes = mrd_udp_payload_bytes,
    .one_way = mrd_udp_one_way,
    .port_facts = mrd_udp_port_facts,
};
