/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire: posted sends become packets, which are recorded, and arrive or do not.
 *
 * transmit_one() reads the buffers, no earlier; fly() decides; arrive() finds the port by GID and
 * the QP by number, and puts the lower header and the payload into a posted receive.
 */
#include "tests/support/fake_ibv_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    GRH_BYTES = 40, /* before the payload of each received datagram */
    ROCE_PORT_FIRST = 0xc000,
    ROCE_PORT_BITS = 14,
    REORDER_MAX = 16,
    IP_CE = 3,
    RUBBISH = 0xa5,
    PACKETS_MAX = 1 << 19,
};

static struct fake_packet *packets[PACKETS_MAX];

static bool has_gid(const struct fake_ibv_port *port, const union ibv_gid *gid,
                    enum ibv_gid_type type)
{
    for (int i = 0; i < port->attr.gid_tbl_len; i++)
        if (port->gids[i].valid && port->gids[i].type == type &&
            !memcmp(&port->gids[i].gid, gid, sizeof(*gid)))
            return true;
    return false;
}

/* What the mover reads of the 40 bytes in front: an IPv4 header lies in the last 20. */
static void put_grh(const struct fake_packet *p, uint8_t *grh)
{
    static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t traffic_class = (uint8_t)(p->seen.traffic_class | (p->is_ce ? IP_CE : 0));

    memset(grh, RUBBISH, GRH_BYTES);
    if (!memcmp(&p->seen.dgid, v4_prefix, sizeof(v4_prefix))) {
        grh[21] = traffic_class;
        memcpy(grh + 32, p->seen.sgid.raw + 12, 4);
        memcpy(grh + 36, p->seen.dgid.raw + 12, 4);
    } else {
        grh[0] = (uint8_t)(6 << 4 | traffic_class >> 4);
        grh[1] = (uint8_t)(traffic_class << 4 | p->seen.flow_label >> 16);
        memcpy(grh + 8, p->seen.sgid.raw, 16);
        memcpy(grh + 24, p->seen.dgid.raw, 16);
    }
}

/* Spread the bytes over the receive. */
static void scatter(const struct ibv_pd *pd, const struct fake_recv *recv, const uint8_t *bytes,
                    uint32_t len)
{
    for (int i = 0; i < recv->num_sge && len > 0; i++) {
        uint32_t part = recv->sge[i].length < len ? recv->sge[i].length : len;
        uint8_t *memory = fake_memory(pd, &recv->sge[i], IBV_ACCESS_LOCAL_WRITE);

        if (!memory)
            break;
        memcpy(memory, bytes, part);
        bytes += part;
        len -= part;
    }
    if (len > 0)
        fake_broken("a posted receive is too short, or its key does not cover it");
}

static void receive(struct fake_qp *qp, const struct fake_packet *p)
{
    struct fake_srq *srq = qp->ibv.srq ? FAKE_OF(fake_srq, qp->ibv.srq) : NULL;
    struct fake_recv *recv =
        fake_recv_take(srq ? &srq->queue : &qp->rq, srq && fake.knobs.shuffle_srq);
    uint32_t len = GRH_BYTES + p->seen.len;

    if (!recv)
        return;
    uint8_t *bytes = fake_alloc(len);
    put_grh(p, bytes);
    memcpy(bytes + GRH_BYTES, p->bytes, p->seen.len);
    scatter(qp->ibv.pd, recv, bytes, len);
    free(bytes);
    fake_recv_done(qp, recv->wr_id, IBV_WC_SUCCESS, len, p->seen.src_qpn);
    fake.num_received++;
}

static bool is_for(const struct fake_packet *p, const struct fake_qp *qp)
{
    if (qp->ibv.qp_num != p->seen.dst_qpn || qp->qkey != p->qkey || qp->device->state->fatal ||
        (qp->ibv.state != IBV_QPS_RTR && qp->ibv.state != IBV_QPS_RTS))
        return false;
    const struct fake_ibv_port *port = &qp->device->ports[qp->port_num - 1];
    return port->attr.state == IBV_PORT_ACTIVE && has_gid(port, &p->seen.dgid, p->gid_type);
}

static void arrive(const struct fake_packet *p)
{
    for (unsigned d = 0; d < fake.num_devices; d++)
        for (struct fake_qp *qp = fake.states[d].qps; qp; qp = qp->next)
            if (is_for(p, qp)) {
                receive(qp, p);
                return;
            }
}

static void end_flight(struct fake_packet *p)
{
    free(p->bytes);
    p->bytes = NULL;
}

/* A packet went by those that wait for some to do so. */
static void overtake(void)
{
    struct fake_packet **at = &fake.held;

    while (*at) {
        struct fake_packet *p = *at;

        if (--p->wait > 0) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        arrive(p);
        end_flight(p);
    }
}

static void fly(struct fake_packet *p)
{
    const struct fake_ibv_knobs *k = &fake.knobs;
    struct fake_packet **last = &fake.held;
    bool is_lost = k->loses && k->loses(k->arg, &p->seen);

    p->is_ce = (p->seen.traffic_class & IP_CE) && fake_chance(k->ce_ppm);
    if (!is_lost && !fake_chance(k->drop_ppm)) {
        if (fake_chance(k->reorder_ppm)) {
            p->wait = 1 + mrd_rng_below(&fake.rng, REORDER_MAX);
            while (*last)
                last = &(*last)->next;
            *last = p;
            return;
        }
        arrive(p);
        if (fake_chance(k->dup_ppm))
            arrive(p);
    }
    end_flight(p);
}

/* As rdma_rxe does: hash_32() of the kernel. */
static uint16_t port_of_qpn(uint32_t qpn)
{
    return (uint16_t)(ROCE_PORT_FIRST + ((qpn * 0x61c88647u) >> (32 - ROCE_PORT_BITS)));
}

static uint16_t source_port(const struct fake_qp *qp, uint32_t flow_label, uint32_t dst_qpn)
{
    if (qp->device->port_rule == FAKE_IBV_PORT_QPN)
        return port_of_qpn(qp->ibv.qp_num);
    if (qp->device->port_rule == FAKE_IBV_PORT_QPN_PAIR)
        return port_of_qpn(qp->ibv.qp_num * 0x10001u ^ dst_qpn);
    if (!flow_label)
        return (uint16_t)(ROCE_PORT_FIRST | mrd_rng_below(&fake.rng, 1 << ROCE_PORT_BITS));
    return (uint16_t)(((flow_label & 0x3fff) ^ (flow_label >> ROCE_PORT_BITS)) | ROCE_PORT_FIRST);
}

static struct fake_packet *record(const struct fake_qp *qp, const struct fake_send *send)
{
    const struct ibv_ah_attr *av = &send->ah->attr;
    const struct fake_ibv_port *port = &qp->device->ports[av->port_num - 1];
    struct fake_packet *p = fake_alloc(sizeof(*p));

    assert(fake.num_packets < PACKETS_MAX);
    packets[fake.num_packets++] = p;
    p->qkey = send->qkey;
    p->gid_type = port->gids[av->grh.sgid_index].type;
    p->seen = (struct fake_ibv_packet){
        .device = qp->device,
        .source_port = source_port(qp, av->grh.flow_label, send->qpn),
        .src_qpn = qp->ibv.qp_num,
        .dst_qpn = send->qpn,
        .sgid = port->gids[av->grh.sgid_index].gid,
        .dgid = av->grh.dgid,
        .traffic_class = av->grh.traffic_class,
        .hop_limit = av->grh.hop_limit,
        .flow_label = av->grh.flow_label,
        .len = send->len,
        .is_inline = send->is_inline,
        .num_sge = send->num_sge,
    };
    memcpy(p->seen.sge, send->sge, sizeof(send->sge));
    return p;
}

static void transmit_one(struct fake_qp *qp)
{
    struct fake_send *send = fake_send_at(qp, qp->sq_sent++);
    const struct fake_ibv_port *port = &qp->device->ports[qp->port_num - 1];
    struct fake_packet *p = record(qp, send);

    if (send->len > 128u << port->attr.active_mtu || send->ah->attr.port_num != qp->port_num)
        fake_broken("a send of %u bytes is too long, or leaves by another port", send->len);
    if (!send->bytes)
        fake_gather(qp, send);
    p->bytes = send->bytes;
    send->bytes = NULL;
    fake_send_release(send);
    fake_send_done(qp, send, IBV_WC_SUCCESS);
    overtake();
    if (port->attr.state == IBV_PORT_ACTIVE)
        fly(p);
    else
        end_flight(p);
}

/* The QP that is to send next: the one with the oldest post, or any. */
static struct fake_qp *next_sender(void)
{
    struct fake_qp *found = NULL;
    uint32_t candidates = 0;

    for (unsigned d = 0; d < fake.num_devices; d++) {
        for (struct fake_qp *qp = fake.states[d].qps; qp; qp = qp->next) {
            if (qp->sq_sent == qp->sq_posted || fake.states[d].fatal)
                continue;
            if (fake.knobs.shuffle_tx ? mrd_rng_below(&fake.rng, ++candidates) == 0
                                      : !found || fake_send_at(qp, qp->sq_sent)->order <
                                                      fake_send_at(found, found->sq_sent)->order)
                found = qp;
        }
    }
    return found;
}

void fake_transmit(void)
{
    struct fake_qp *qp = next_sender();

    if (!qp) /* silence lets those through that wait for others */
        overtake();
    for (; qp; qp = next_sender())
        transmit_one(qp);
}

void fake_wire_end(void)
{
    for (unsigned i = 0; i < fake.num_packets; i++) {
        end_flight(packets[i]);
        free(packets[i]);
    }
    fake.num_packets = 0;
}

unsigned fake_ibv_num_packets(void)
{
    return fake_read(&fake.num_packets);
}

unsigned fake_ibv_num_received(void)
{
    return fake_read(&fake.num_received);
}

const struct fake_ibv_packet *fake_ibv_packet(unsigned index)
{
    fake_lock();
    assert(index < fake.num_packets);
    const struct fake_ibv_packet *p = &packets[index]->seen;
    fake_leave(0);
    return p;
}
