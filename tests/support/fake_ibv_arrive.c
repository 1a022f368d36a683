/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet arrives: the port is found by GID, the QP by number, GRH and payload go into a posted receive. */
#include "tests/support/fake_ibv_impl.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUBBISH = 0xa5,
    NEXT_HEADER_UDP = 17,
    NEXT_HEADER_BTH = 0x1b, /* InfiniBand and RoCEv1 */
};

/* The device whose active port has this GID, of this type. */
static struct fake_ibv_device *device_by_gid(const union ibv_gid *gid, enum ibv_gid_type type,
                                             uint8_t *port_num)
{
    for (unsigned d = 0; d < fake.num_devices; d++) {
        struct fake_ibv_device *device = &fake.devices[d];

        for (unsigned p = 0; p < device->attr.phys_port_cnt; p++) {
            const struct fake_ibv_port *port = &device->ports[p];

            for (int i = 0; i < port->attr.gid_tbl_len; i++) {
                if (!port->gids[i].valid || port->gids[i].type != type ||
                    memcmp(&port->gids[i].gid, gid, sizeof(*gid)) != 0)
                    continue;
                if (port->attr.state != IBV_PORT_ACTIVE || device->state->fatal)
                    return NULL;
                *port_num = (uint8_t)(p + 1);
                return device;
            }
        }
    }
    return NULL;
}

static bool is_v4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

/* The 40 bytes in front: for IPv4 (RoCEv2) its header in the last 20, the rest undefined. */
static void put_grh(const struct fake_flying *f, const struct fake_ibv_packet *p, bool none,
                    uint8_t *grh)
{
    uint16_t payload = htons((uint16_t)(p->len + 8 + 12 + 8 + 4)); /* UDP, BTH, DETH, ICRC */

    memset(grh, RUBBISH, FAKE_IBV_GRH_BYTES);
    if (none)
        return;
    if (f->gid_type == IBV_GID_TYPE_ROCE_V2 && is_v4(&p->dgid)) {
        uint16_t total = htons((uint16_t)(ntohs(payload) + 20));

        grh[20] = 0x45;
        grh[21] = f->traffic_class;
        memcpy(grh + 22, &total, 2);
        grh[28] = p->hop_limit;
        grh[29] = NEXT_HEADER_UDP;
        memcpy(grh + 32, p->sgid.raw + 12, 4);
        memcpy(grh + 36, p->dgid.raw + 12, 4);
        return;
    }

    uint32_t first = htonl(6u << 28 | (uint32_t)f->traffic_class << 20 | p->flow_label);

    memcpy(grh, &first, 4);
    memcpy(grh + 4, &payload, 2);
    grh[6] = f->gid_type == IBV_GID_TYPE_ROCE_V2 ? NEXT_HEADER_UDP : NEXT_HEADER_BTH;
    grh[7] = p->hop_limit;
    memcpy(grh + 8, p->sgid.raw, 16);
    memcpy(grh + 24, p->dgid.raw, 16);
}

/* Spread the bytes over the receive: 0, or what is wrong with its buffers. */
static enum ibv_wc_status scatter(const struct ibv_pd *pd, const struct fake_recv *recv,
                                  const uint8_t *bytes, uint32_t len)
{
    for (int i = 0; i < recv->num_sge && len > 0; i++) {
        uint32_t part = recv->sge[i].length < len ? recv->sge[i].length : len;
        uint8_t *memory = fake_memory(pd, &recv->sge[i], IBV_ACCESS_LOCAL_WRITE);

        if (!memory)
            return IBV_WC_LOC_PROT_ERR;
        memcpy(memory, bytes, part);
        bytes += part;
        len -= part;
    }
    return len > 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

static void srq_limit(struct fake_srq *srq)
{
    struct ibv_async_event event = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
                                    .element.srq = &srq->ibv};

    if (!srq->limit || srq->queue.tail - srq->queue.head >= srq->limit)
        return;
    srq->limit = 0;
    fake_event(fake_context_of(srq->ibv.context), &event);
}

static enum fake_ibv_fate receive(struct fake_qp *qp, const struct fake_flying *f,
                                  const struct fake_ibv_packet *p)
{
    struct fake_srq *srq = qp->ibv.srq ? FAKE_OF(fake_srq, qp->ibv.srq) : NULL;
    struct fake_recv *recv =
        fake_recv_take(srq ? &srq->queue : &qp->rq, srq && fake.knobs.shuffle_srq);
    uint32_t len = FAKE_IBV_GRH_BYTES + p->len;
    struct ibv_wc wc = {.byte_len = len, .src_qp = p->src_qpn, .imm_data = f->imm_data};
    uint8_t *bytes;

    if (!recv)
        return FAKE_IBV_NO_BUFFER;
    bytes = fake_alloc(len);
    put_grh(f, p, qp->device->no_grh, bytes);
    memcpy(bytes + FAKE_IBV_GRH_BYTES, f->bytes, p->len);
    wc.wr_id = recv->wr_id;
    wc.status = scatter(srq ? srq->ibv.pd : qp->ibv.pd, recv, bytes, len);
    wc.wc_flags =
        (qp->device->no_grh ? 0u : IBV_WC_GRH) | (f->with_imm ? (unsigned)IBV_WC_WITH_IMM : 0u);
    free(bytes);
    fake_cq_recv_done(qp, wc, f->solicited);
    if (wc.status != IBV_WC_SUCCESS) {
        fake_qp_break(qp);
        return FAKE_IBV_BAD_BUFFER;
    }
    if (srq)
        srq_limit(srq);
    return FAKE_IBV_DELIVERED;
}

static enum fake_ibv_fate fate_of(const struct fake_flying *f, const struct fake_ibv_packet *p)
{
    uint8_t port_num;
    struct fake_ibv_device *device = device_by_gid(&p->dgid, f->gid_type, &port_num);

    if (!device)
        return FAKE_IBV_NO_HOST;
    for (struct fake_qp *qp = device->state->qps; qp; qp = qp->next) {
        if (qp->ibv.qp_num != p->dst_qpn)
            continue;
        if ((qp->ibv.state != IBV_QPS_RTR && qp->ibv.state != IBV_QPS_RTS) ||
            qp->port_num != port_num)
            return FAKE_IBV_NO_QP;
        if (qp->qkey != p->qkey) {
            device->ports[port_num - 1].attr.qkey_viol_cntr++;
            return FAKE_IBV_BAD_QKEY;
        }
        return receive(qp, f, p);
    }
    return FAKE_IBV_NO_QP;
}

void fake_arrive(const struct fake_flying *f)
{
    struct fake_ibv_packet *p = fake.packets[f->record];

    p->fate = fate_of(f, p);
    fake.fates[p->fate]++;
}
