/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of devices: what the mover reads of what drivers say of themselves. */
#include "tests/support/fake_ibv_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *prefix; /* of the name that the driver gives */
    enum fake_ibv_port_rule port_rule;
    uint32_t vendor_id, vendor_part_id, max_inline;
    int max_sge;
} kinds[] = {
    [FAKE_IBV_MLX5] = {"mlx5_", FAKE_IBV_PORT_FLOW_LABEL, 0x02c9, 4119, 956, 30},
    [FAKE_IBV_HNS] = {"hns_", FAKE_IBV_PORT_FLOW_LABEL, 0x19e5, 0xa222, 1024, 32},
    [FAKE_IBV_MLX4] = {"mlx4_", FAKE_IBV_PORT_QPN, 0x02c9, 4103, 748, 32},
    [FAKE_IBV_RXE] = {"rxe", FAKE_IBV_PORT_QPN, 0xffffff, 0, 400, 32},
    [FAKE_IBV_IRDMA] = {"irdma", FAKE_IBV_PORT_QPN, 0x8086, 0x1592, 101, 13},
    [FAKE_IBV_BNXT_RE] = {"bnxt_re", FAKE_IBV_PORT_QPN, 0x14e4, 0x1750, 96, 6},
};

void fake_ibv_gid(struct fake_ibv_device *device, unsigned index, enum ibv_gid_type type,
                  const char *address)
{
    struct fake_ibv_port *port = &device->ports[0];
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

    if (index >= FAKE_IBV_GIDS_MAX || (address && inet_pton(AF_INET, address, gid.raw + 12) != 1 &&
                                       inet_pton(AF_INET6, address, gid.raw) != 1))
        abort();
    if (port->attr.gid_tbl_len <= (int)index)
        port->attr.gid_tbl_len = (int)index + 1;
    port->gids[index].valid = address != NULL;
    port->gids[index].type = type;
    port->gids[index].gid = gid;
}

static void add_gids(struct fake_ibv_device *device, unsigned n)
{
    char local[32], v4[32];

    snprintf(local, sizeof(local), "fe80::%x", n);
    snprintf(v4, sizeof(v4), "192.0.2.%u", n);
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
        .transport_type = IBV_TRANSPORT_IB,
        .port_rule = k->port_rule,
        .max_inline = k->max_inline,
        .keeps_cqes = kind == FAKE_IBV_RXE,
        .state = &fake.states[n],
    };
    if (name)
        snprintf(device->name, sizeof(device->name), "%s", name);
    else
        snprintf(device->name, sizeof(device->name), "%s%u", k->prefix, n);
    device->attr = (struct ibv_device_attr){
        .vendor_id = k->vendor_id,
        .vendor_part_id = k->vendor_part_id,
        .max_qp = 256,
        .max_qp_wr = 4096,
        .max_sge = k->max_sge,
        .max_cqe = 32767,
        .max_ah = 1 << 16,
        .max_srq = 64,
        .max_srq_wr = 4095,
        .max_srq_sge = k->max_sge,
        .phys_port_cnt = 1,
    };
    device->ports[0].attr = (struct ibv_port_attr){
        .state = IBV_PORT_ACTIVE,
        .active_mtu = IBV_MTU_4096,
        .active_width = 2,  /* 4x */
        .active_speed = 32, /* 25 Gb/s a lane */
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };
    device->ports[1] = device->ports[0]; /* for tests that set phys_port_cnt to 2 */
    /* The same on every device, as it is in life: a number says nothing of whose it is. */
    fake.states[n] =
        (struct fake_ibv_device_state){.device = device, .next_qpn = 0x11, .next_key = 0x1000};
    add_gids(device, n + 1);
    return device;
}
