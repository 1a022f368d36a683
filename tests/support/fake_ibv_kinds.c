/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of devices: what drivers of today say of themselves, with limits small enough to reach. */
#include "tests/support/fake_ibv_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind {
    const char *prefix; /* of the name that the driver gives */
    enum ibv_node_type node_type;
    enum ibv_transport_type transport_type;
    enum fake_ibv_port_rule port_rule;
    uint8_t link_layer;
    uint32_t vendor_id, vendor_part_id;
    int max_qp_wr, max_cqe, max_sge, max_srq, max_srq_wr;
    uint32_t max_inline;
};

static const struct kind kinds[] = {
    [FAKE_IBV_MLX5] = {"mlx5_", IBV_NODE_CA, IBV_TRANSPORT_IB, FAKE_IBV_PORT_FLOW_LABEL,
                       IBV_LINK_LAYER_ETHERNET, 0x02c9, 4119, 32768, 1 << 20, 30, 1 << 16, 32767,
                       956},
    [FAKE_IBV_HNS] = {"hns_", IBV_NODE_CA, IBV_TRANSPORT_IB, FAKE_IBV_PORT_FLOW_LABEL,
                      IBV_LINK_LAYER_ETHERNET, 0x19e5, 0xa222, 32768, 1 << 20, 32, 1 << 16, 32767,
                      1024},
    [FAKE_IBV_MLX4] = {"mlx4_", IBV_NODE_CA, IBV_TRANSPORT_IB, FAKE_IBV_PORT_QPN,
                       IBV_LINK_LAYER_ETHERNET, 0x02c9, 4103, 16351, 1 << 20, 32, 1 << 16, 16383,
                       748},
    [FAKE_IBV_RXE] = {"rxe", IBV_NODE_CA, IBV_TRANSPORT_IB, FAKE_IBV_PORT_QPN,
                      IBV_LINK_LAYER_ETHERNET, 0xffffff, 0, 1 << 20, 32767, 32, 917504, 32768, 400},
    [FAKE_IBV_IRDMA] = {"irdma", IBV_NODE_CA, IBV_TRANSPORT_IB, FAKE_IBV_PORT_QPN,
                        IBV_LINK_LAYER_ETHERNET, 0x8086, 0x1592, 4096, 1 << 20, 13, 1 << 12, 4095,
                        101},
    [FAKE_IBV_BNXT_RE] = {"bnxt_re", IBV_NODE_CA, IBV_TRANSPORT_IB, FAKE_IBV_PORT_QPN,
                          IBV_LINK_LAYER_ETHERNET, 0x14e4, 0x1750, 32768, 1 << 20, 6, 1 << 12,
                          32768, 96},
    [FAKE_IBV_EFA] = {"efa_", IBV_NODE_UNSPECIFIED, IBV_TRANSPORT_UNSPECIFIED,
                      FAKE_IBV_PORT_QPN_PAIR, IBV_LINK_LAYER_UNSPECIFIED, 0x1d0f, 0xefa1, 4096,
                      1 << 15, 2, 0, 0, 32},
    [FAKE_IBV_IB] = {"mlx5_", IBV_NODE_CA, IBV_TRANSPORT_IB, FAKE_IBV_PORT_FLOW_LABEL,
                     IBV_LINK_LAYER_INFINIBAND, 0x02c9, 4119, 32768, 1 << 20, 30, 1 << 16, 32767,
                     956},
    [FAKE_IBV_SIW] = {"siw", IBV_NODE_RNIC, IBV_TRANSPORT_IWARP, FAKE_IBV_PORT_QPN,
                      IBV_LINK_LAYER_ETHERNET, 0xffffff, 0, 32768, 1 << 18, 6, 1 << 16, 32768, 224},
};

static union ibv_gid gid_of(const char *address)
{
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

    if (inet_pton(AF_INET, address, gid.raw + 12) != 1 &&
        inet_pton(AF_INET6, address, gid.raw) != 1) {
        fprintf(stderr, "fake_ibv: %s is no address\n", address);
        abort();
    }
    return gid;
}

void fake_ibv_gid(struct fake_ibv_device *device, unsigned index, enum ibv_gid_type type,
                  const char *address)
{
    struct fake_ibv_port *port = &device->ports[0];

    if (index >= FAKE_IBV_GIDS_MAX)
        abort();
    if (port->attr.gid_tbl_len <= (int)index)
        port->attr.gid_tbl_len = (int)index + 1;
    port->gids[index].valid = address != NULL;
    if (!address)
        return;
    port->gids[index].type = type;
    port->gids[index].gid = gid_of(address);
}

static void add_gids(struct fake_ibv_device *device, enum fake_ibv_kind kind, unsigned n)
{
    char local[32], v4[32];

    snprintf(local, sizeof(local), "fe80::%x", n);
    snprintf(v4, sizeof(v4), "192.0.2.%u", n);
    if (kind == FAKE_IBV_EFA || kind == FAKE_IBV_IB) {
        fake_ibv_gid(device, 0, IBV_GID_TYPE_IB, local);
        return;
    }
    if (kind == FAKE_IBV_SIW) {
        fake_ibv_gid(device, 0, IBV_GID_TYPE_IB, "::2:0:0:0");
        return;
    }
    fake_ibv_gid(device, 0, IBV_GID_TYPE_ROCE_V1, local);
    fake_ibv_gid(device, 1, IBV_GID_TYPE_ROCE_V2, local);
    fake_ibv_gid(device, 2, IBV_GID_TYPE_ROCE_V1, v4);
    fake_ibv_gid(device, 3, IBV_GID_TYPE_ROCE_V2, v4);
}

struct fake_ibv_device *fake_ibv_add(enum fake_ibv_kind kind, const char *name)
{
    const struct kind *k = &kinds[kind];
    unsigned n = fake.num_devices++;

    if (n >= FAKE_IBV_DEVICES_MAX)
        abort();

    struct fake_ibv_device *device = &fake.devices[n];

    *device = (struct fake_ibv_device){
        .node_type = k->node_type,
        .transport_type = k->transport_type,
        .port_rule = k->port_rule,
        .max_inline = k->max_inline,
        .keeps_cqes = kind == FAKE_IBV_RXE,
        .no_grh = kind == FAKE_IBV_IB || kind == FAKE_IBV_EFA,
        .all_signaled = kind == FAKE_IBV_EFA,
        .state = &fake.states[n],
    };
    if (name)
        snprintf(device->name, sizeof(device->name), "%s", name);
    else
        snprintf(device->name, sizeof(device->name), "%s%u", k->prefix, n);
    device->attr = (struct ibv_device_attr){
        .fw_ver = "1.0",
        .max_mr_size = UINT64_MAX,
        .page_size_cap = 4096,
        .vendor_id = k->vendor_id,
        .vendor_part_id = k->vendor_part_id,
        .max_qp = 256,
        .max_qp_wr = k->max_qp_wr,
        .max_sge = k->max_sge,
        .max_cq = 64,
        .max_cqe = k->max_cqe,
        .max_mr = 4096,
        .max_pd = 64,
        .max_ah = 1 << 16,
        .max_srq = k->max_srq,
        .max_srq_wr = k->max_srq_wr,
        .max_srq_sge = k->max_srq ? k->max_sge : 0,
        .max_pkeys = 1,
        .phys_port_cnt = 1,
    };
    device->ports[0].attr = (struct ibv_port_attr){
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096,
        .max_msg_sz = 1u << 30,
        .pkey_tbl_len = 1,
        .lid = k->link_layer == IBV_LINK_LAYER_INFINIBAND ? (uint16_t)(n + 1) : 0,
        .active_width = 2,  /* 4x */
        .active_speed = 32, /* 25 Gb/s a lane */
        .phys_state = 5,    /* LinkUp */
        .link_layer = k->link_layer,
    };
    device->ports[1] = device->ports[0]; /* for tests that set phys_port_cnt to 2 */
    /* The same on every device, as it is in life: a number says nothing of whose it is. */
    fake.states[n] = (struct fake_ibv_device_state){.next_qpn = 0x11, .next_key = 0x1000};
    add_gids(device, kind, n + 1);
    return device;
}
