/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/ibv/ibv_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/movers/ibv/ibv_addr.h"

enum {
    GIDS_MAX = 256,
    /* Vendor ids as ibv_query_device() tells them. */
    VENDOR_MELLANOX = 0x02c9,
    VENDOR_HUAWEI = 0x19e5,
    VENDOR_AMAZON = 0x1d0f,
    VENDOR_RXE = 0xffffff,
    /* Connect-IB, the first mlx5 device. ConnectX-3 and older ones, of mlx4, have smaller ids. */
    PART_MLX5_FIRST = 4113,
};

static int open_verbs(struct mrd_ibv *ibv)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    int error = -ENODEV;

    for (unsigned i = 0; devices && devices[i]; i++) {
        if (strcmp(ibv_get_device_name(devices[i]), ibv->name) != 0)
            continue;
        errno = EIO; /* some providers do not set errno */
        ibv->verbs = ibv_open_device(devices[i]);
        error = ibv->verbs ? 0 : -errno;
    }
    if (devices)
        ibv_free_device_list(devices);
    if (error == -ENODEV)
        mrd_error_set("there is no RDMA device %s; \"rdma link\" lists those that there are",
                      ibv->name);
    else if (error)
        mrd_error_set("%s cannot be opened: %s; /dev/infiniband must be readable and writable",
                      ibv->name, strerror(-error));
    return error;
}

/* -------------------------------------------------------------------- GID */

/*
 * Preference of a GID: 3 is RoCEv2 with an IPv4 address, 2 with a routable IPv6 address, 1 with a
 * link-local one; 0: not RoCEv2.
 */
static unsigned gid_rank(const struct ibv_gid_entry *entry)
{
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return 0;
    if (mrd_ibv_is_v4(entry->gid.raw))
        return 3;
    return entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80 ? 1 : 2;
}

static void take_gid(struct mrd_ibv *ibv, const struct ibv_gid_entry *entry)
{
    ibv->port.gid = entry->gid;
    ibv->port.gid_index = entry->gid_index;
    ibv->port.v4 = mrd_ibv_is_v4(entry->gid.raw);
}

static int gid_by_index(struct mrd_ibv *ibv, uint32_t index, bool roce)
{
    struct ibv_gid_entry entry;

    if (ibv_query_gid_ex(ibv->verbs, ibv->port.num, index, &entry, 0)) {
        mrd_error_set("port %u of %s has no GID %u; \"rdma link\" and \"ibv_devinfo -v\" show them",
                      ibv->port.num, ibv->name, index);
        return -EADDRNOTAVAIL;
    }
    if (roce && !gid_rank(&entry)) {
        mrd_error_set("GID %u of port %u of %s is not a RoCEv2 one: its packets cannot be routed "
                      "over several paths",
                      index, ibv->port.num, ibv->name);
        return -EADDRNOTAVAIL;
    }
    take_gid(ibv, &entry);
    return 0;
}

static bool gid_suits(const struct mrd_ibv *ibv, const struct ibv_gid_entry *entry,
                      const union ibv_gid *wanted)
{
    return entry->port_num == ibv->port.num && gid_rank(entry) &&
           (!wanted || memcmp(&entry->gid, wanted, sizeof(*wanted)) == 0);
}

/* Takes the RoCEv2 GID of the highest rank; `address` not NULL: the one with this value. */
static int gid_by_rank(struct mrd_ibv *ibv, const char *address)
{
    static const struct ibv_gid_entry none;
    const struct ibv_gid_entry *best = &none;
    struct ibv_gid_entry *entries = calloc(GIDS_MAX, sizeof(*entries));
    union ibv_gid wanted;
    int error = -EADDRNOTAVAIL;

    if (!entries) {
        mrd_error_set("no memory for the GID table of %s", ibv->name);
        return -ENOMEM;
    }
    if (address && !mrd_ibv_parse_gid(address, &wanted)) {
        mrd_error_set("\"%s\" is not an IP address or a GID", address);
        free(entries);
        return -EINVAL;
    }

    ssize_t count = ibv_query_gid_table(ibv->verbs, entries, GIDS_MAX, 0);

    for (ssize_t i = 0; i < count; i++)
        if (gid_suits(ibv, &entries[i], address ? &wanted : NULL) &&
            gid_rank(&entries[i]) > gid_rank(best))
            best = &entries[i];
    if (gid_rank(best)) {
        take_gid(ibv, best);
        error = 0;
    } else if (address) {
        mrd_error_set("port %u of %s has no RoCEv2 GID of %s", ibv->port.num, ibv->name, address);
    } else {
        mrd_error_set("port %u of %s has no RoCEv2 GID: give its network interface an IP address",
                      ibv->port.num, ibv->name);
    }
    free(entries);
    return error;
}

static int choose_gid(struct mrd_ibv *ibv, const struct mrd_context_attr *attr, bool roce)
{
    if (attr->gid_index || (attr->comp_mask & MRD_CONTEXT_ATTR_GID_INDEX))
        return gid_by_index(ibv, attr->gid_index, roce);
    /* On other link layers the first GID is the only one. */
    return roce ? gid_by_rank(ibv, attr->address) : gid_by_index(ibv, 0, false);
}

/* -------------------------------------------------------------------- port */

/*
 * The interface's name behind a blank, as in " ens1", for the end of a sentence; "" if it
 * is unknown.
 */
static const char *interface_of(const struct mrd_ibv *ibv, char *text, size_t len)
{
    struct ibv_gid_entry entry;
    char name[IF_NAMESIZE];

    text[0] = '\0';
    if (!ibv_query_gid_ex(ibv->verbs, ibv->port.num, 0, &entry, 0) && entry.ndev_ifindex &&
        if_indextoname(entry.ndev_ifindex, name))
        snprintf(text, len, " %s", name);
    return text;
}

static int check_port(const struct mrd_ibv *ibv, const struct ibv_port_attr *attr)
{
    char interface[IF_NAMESIZE + 1];

    if (attr->link_layer == IBV_LINK_LAYER_INFINIBAND) {
        mrd_error_set("port %u of %s is InfiniBand: mrd needs Ethernet (RoCEv2) below it",
                      ibv->port.num, ibv->name);
        return -EPROTONOSUPPORT;
    }
    if (attr->state != IBV_PORT_ACTIVE && attr->state != IBV_PORT_ACTIVE_DEFER) {
        mrd_error_set("port %u of %s is not active but %s: bring its network interface%s up",
                      ibv->port.num, ibv->name, ibv_port_state_str(attr->state),
                      interface_of(ibv, interface, sizeof(interface)));
        return -ENETDOWN;
    }
    if (ibv->port.mtu < MRD_IBV_MTU_MIN) {
        mrd_error_set("port %u of %s has an MTU of %u bytes, mrd needs %d: give its network "
                      "interface%s an MTU of 1500 or more",
                      ibv->port.num, ibv->name, ibv->port.mtu, MRD_IBV_MTU_MIN,
                      interface_of(ibv, interface, sizeof(interface)));
        return -EMSGSIZE;
    }
    return 0;
}

/*
 * The link's rate in bits per second, by the IBTA's codes of its width and of a lane's speed, here
 * in tenths of Gb/s. 0: unknown.
 */
static uint64_t link_bps(const struct ibv_port_attr *attr)
{
    static const struct {
        unsigned code, value;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
      speeds[] = {{1, 25},   {2, 50},   {4, 100},  {8, 100},
                  {16, 140}, {32, 250}, {64, 500}, {128, 1000}};
    uint64_t lanes = 0, tenths = 0;

    for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        if (widths[i].code == attr->active_width)
            lanes = widths[i].value;
    for (unsigned i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
        if (speeds[i].code == attr->active_speed)
            tenths = speeds[i].value;
    return lanes * tenths * 100000000u;
}

static int query_port(struct mrd_ibv *ibv, const struct mrd_context_attr *attr,
                      const struct ibv_device_attr *limits)
{
    struct mrd_ibv_port *port = &ibv->port;
    struct ibv_port_attr found;

    port->num = (uint8_t)(attr->port_num ? attr->port_num : 1);
    if (attr->port_num > limits->phys_port_cnt) {
        mrd_error_set("%s has no port %u but %u", ibv->name, attr->port_num, limits->phys_port_cnt);
        return -EINVAL;
    }
    if (ibv_query_port(ibv->verbs, port->num, &found)) {
        mrd_error_set("port %u of %s cannot be asked: %s", port->num, ibv->name, strerror(errno));
        return -EIO;
    }
    port->mtu = 128u << found.active_mtu; /* enum ibv_mtu: 1 means 256 bytes */
    if (limits->vendor_id != VENDOR_RXE)
        port->link_bps = link_bps(&found);

    int error = check_port(ibv, &found);

    return error ? error : choose_gid(ibv, attr, found.link_layer == IBV_LINK_LAYER_ETHERNET);
}

void mrd_ibv_port_facts(struct mrd_backend *b, struct mrd_port_facts *facts)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    struct ibv_port_attr found;
    char interface[IF_NAMESIZE + 1];

    if (ibv_query_port(ibv->verbs, ibv->port.num, &found))
        return;
    facts->state = found.state == IBV_PORT_ACTIVE ? MRD_PORT_ACTIVE : MRD_PORT_DOWN;
    facts->mtu = 128u << found.active_mtu;
    facts->bps = ibv->port.link_bps ? link_bps(&found) : 0; /* software tells a rate, too */
    interface_of(ibv, interface, sizeof(interface));
    snprintf(facts->interface, sizeof(facts->interface), "%s", interface + (interface[0] == ' '));
}

/* -------------------------------------------------------------------- habits and sizes */

/*
 * What the device derives the UDP source port from. mlx5 and hns: the flow label of the AH;
 * rdma_rxe, irdma, bnxt_re and mlx4: the local QPN. Unknown devices are treated like these: several
 * QPs do no harm.
 */
static enum mrd_ibv_entropy entropy_of(const struct ibv_device_attr *limits)
{
    switch (limits->vendor_id) {
    case VENDOR_MELLANOX:
        return limits->vendor_part_id >= PART_MLX5_FIRST ? MRD_IBV_BY_AH : MRD_IBV_BY_QP;
    case VENDOR_HUAWEI:
        return MRD_IBV_BY_AH;
    default:
        return MRD_IBV_BY_QP;
    }
}

static enum mrd_ibv_entropy choose_entropy(const char *name, const struct ibv_device_attr *limits)
{
    if (!name || strcmp(name, "auto") == 0)
        return entropy_of(limits);
    if (strcmp(name, "ah") == 0)
        return MRD_IBV_BY_AH;
    return strcmp(name, "qp") == 0 ? MRD_IBV_BY_QP : MRD_IBV_BY_QPAIR;
}

static int too_small(const struct mrd_ibv *ibv, const char *what, int most, int needed)
{
    mrd_error_set("%s has %s of at most %d entries, mrd needs %d", ibv->name, what, most, needed);
    return -EOPNOTSUPP;
}

static uint32_t least(uint32_t a, int b)
{
    return b > 0 && (uint32_t)b < a ? (uint32_t)b : a;
}

static int choose_sizes(struct mrd_ibv *ibv, const struct ibv_device_attr *limits)
{
    struct mrd_ibv_port *port = &ibv->port;
    int receives;

    port->has_srq = limits->max_srq > 0;
    receives = port->has_srq ? limits->max_srq_wr : limits->max_qp_wr;
    if (limits->max_cqe < MRD_IBV_TX_SLOTS_MIN)
        return too_small(ibv, "completion queues", limits->max_cqe, MRD_IBV_TX_SLOTS_MIN);
    if (receives < MRD_IBV_RX_SLOTS_MIN)
        return too_small(ibv, "receive queues", receives, MRD_IBV_RX_SLOTS_MIN);
    if (limits->max_qp_wr < 2 * MRD_IBV_SIGNAL_EVERY)
        return too_small(ibv, "send queues", limits->max_qp_wr, 2 * MRD_IBV_SIGNAL_EVERY);
    if (limits->max_qp < 1)
        return too_small(ibv, "a table of queue pairs", limits->max_qp, 1);
    port->tx_slots = least(MRD_IBV_TX_SLOTS, limits->max_cqe);
    port->rx_slots = MRD_IBV_RX_BYTES / (port->mtu + MRD_IBV_GRH_BYTES);
    port->rx_slots = least(least(port->rx_slots, receives), limits->max_cqe);
    port->qp_depth = port->entropy == MRD_IBV_BY_AH ? port->tx_slots : MRD_IBV_QP_DEPTH;
    port->qp_depth = least(port->qp_depth, limits->max_qp_wr);
    port->max_qps = (uint32_t)limits->max_qp;
    port->gathers = limits->max_sge >= MRD_IBV_PIECES;
    return 0;
}

static int choose_payload(struct mrd_ibv *ibv, const struct mrd_context_attr *attr)
{
    uint32_t fits = (ibv->port.mtu - MRD_IBV_HEADER_ROOM) / 64 * 64;

    if (attr->mtu > fits) {
        mrd_error_set("mtu %u: port %u of %s, whose MTU is %u, takes at most %u payload bytes",
                      attr->mtu, ibv->port.num, ibv->name, ibv->port.mtu, fits);
        return -EMSGSIZE;
    }
    ibv->payload_bytes = attr->mtu ? attr->mtu : fits;
    return 0;
}

static int choose_paths(struct mrd_ibv *ibv, const struct mrd_context_attr *attr)
{
    uint32_t most = MRD_IBV_PATHS_MAX;

    if (attr->num_source_ports) {
        mrd_error_set("source_ports: an RDMA device chooses its source ports itself");
        return -EINVAL;
    }
    if (attr->port) {
        mrd_error_set("port %u: contexts of an RDMA device are told apart by QPNs", attr->port);
        return -EINVAL;
    }
    if (ibv->port.entropy == MRD_IBV_BY_QP && ibv->port.max_qps < most)
        most = ibv->port.max_qps;
    if (attr->paths > most) {
        mrd_error_set("paths %u: %s has %u queue pairs", attr->paths, ibv->name, most);
        return -EINVAL;
    }
    ibv->num_paths =
        ibv->port.entropy == MRD_IBV_BY_QP ? MRD_IBV_QPS_DEFAULT : MRD_IBV_PATHS_DEFAULT;
    if (attr->paths)
        ibv->num_paths = attr->paths;
    if (ibv->num_paths > most)
        ibv->num_paths = most;
    ibv->max_paths = ibv->num_paths * MRD_IBV_PATHS_GROWTH;
    if (ibv->port.entropy == MRD_IBV_BY_QP && ibv->max_paths > ibv->port.max_qps)
        ibv->max_paths = ibv->port.max_qps;
    return 0;
}

/* EFA delivers no GRH with a datagram, so its sender is unknown and cannot be answered. */
static int check_vendor(const struct mrd_ibv *ibv, const struct ibv_device_attr *limits)
{
    if (limits->vendor_id != VENDOR_AMAZON)
        return 0;
    mrd_error_set(
        "%s is an EFA device, whose datagrams do not tell their sender: mrd cannot use it",
        ibv->name);
    return -EOPNOTSUPP;
}

int mrd_ibv_port_open(struct mrd_ibv *ibv, const struct mrd_context_attr *attr)
{
    struct ibv_device_attr limits;
    int error = open_verbs(ibv);

    if (error)
        return error;
    if (ibv_query_device(ibv->verbs, &limits)) {
        mrd_error_set("%s cannot be asked for its limits: %s", ibv->name, strerror(errno));
        return -EIO;
    }
    ibv->port.entropy = choose_entropy(attr->entropy, &limits);
    if ((error = check_vendor(ibv, &limits)) || (error = query_port(ibv, attr, &limits)) ||
        (error = choose_sizes(ibv, &limits)) || (error = choose_payload(ibv, attr)))
        return error;
    return choose_paths(ibv, attr);
}
