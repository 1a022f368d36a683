/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire: posted sends become packets, which are judged, recorded, and arrive or do not.
 *
 * transmit_one() reads the buffers, as late as that; judge() decides; fake_arrive() is in fake_ibv_arrive.c.
 */
#include "tests/support/fake_ibv_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROCE_PORT_FIRST = 0xc000,
    ROCE_PORT_BITS = 14,
    REORDER_MAX = 16,
    IP_CE = 3,
};
#define CONTROLLED_QKEY (1u << 31) /* such a key in a request means the sending QP's own */

/* ---------------------------------------------------------------------------------------- ports */

uint16_t fake_ibv_port_of_label(uint32_t flow_label)
{
    return (uint16_t)(((flow_label & 0x3fff) ^ (flow_label >> ROCE_PORT_BITS)) | ROCE_PORT_FIRST);
}

/* As rdma_rxe does: hash_32() of the kernel. */
uint16_t fake_ibv_port_of_qpn(uint32_t qpn)
{
    return (uint16_t)(ROCE_PORT_FIRST + ((qpn * 0x61c88647u) >> (32 - ROCE_PORT_BITS)));
}

static uint16_t source_port(const struct fake_qp *qp, const struct fake_send *send)
{
    switch (qp->device->port_rule) {
    case FAKE_IBV_PORT_FLOW_LABEL:
        if (send->av.grh.flow_label)
            return fake_ibv_port_of_label(send->av.grh.flow_label);
        return (uint16_t)(ROCE_PORT_FIRST | mrd_rng_below(&fake.rng, 1 << ROCE_PORT_BITS));
    case FAKE_IBV_PORT_QPN:
        return fake_ibv_port_of_qpn(qp->ibv.qp_num);
    case FAKE_IBV_PORT_QPN_PAIR:
    default:
        return fake_ibv_port_of_qpn(qp->ibv.qp_num * 0x10001u ^ send->qpn);
    }
}

/* ---------------------------------------------------------------------------------------- on the way */

static void hold(struct fake_flying *f, uint32_t wait)
{
    struct fake_flying **last = &fake.held;

    f->wait = wait;
    fake.packets[f->record]->fate = FAKE_IBV_HELD;
    fake.fates[FAKE_IBV_HELD]++;
    while (*last)
        last = &(*last)->next;
    *last = f;
}

static void let_go(struct fake_flying **at)
{
    struct fake_flying *f = *at;

    *at = f->next;
    fake_arrive(f);
    free(f);
}

/* A packet went by those that wait for some to do so. */
static void overtake(void)
{
    struct fake_flying **at = &fake.held;

    while (*at) {
        if ((*at)->wait > 0 && --(*at)->wait == 0)
            let_go(at);
        else
            at = &(*at)->next;
    }
}

static enum fake_ibv_verdict judge(struct fake_flying *f, struct fake_ibv_packet *p)
{
    enum fake_ibv_verdict verdict = FAKE_IBV_DELIVER;

    if (fake.filter) {
        struct fake_ibv_packet copy = *p;

        verdict = fake.filter(fake.filter_arg, &copy);
        f->traffic_class = copy.traffic_class;
    }
    if (verdict != FAKE_IBV_DELIVER)
        return verdict;
    if (fake_chance(fake.knobs.drop_ppm))
        return FAKE_IBV_DROP;
    if ((f->traffic_class & IP_CE) && fake_chance(fake.knobs.ce_ppm))
        f->traffic_class |= IP_CE;
    if (fake.knobs.hold_packets)
        return FAKE_IBV_HOLD;
    return fake_chance(fake.knobs.dup_ppm) ? FAKE_IBV_DUPLICATE : FAKE_IBV_DELIVER;
}

static void fly(struct fake_flying *f)
{
    struct fake_ibv_packet *p = fake.packets[f->record];
    enum fake_ibv_verdict verdict = judge(f, p);

    if (verdict == FAKE_IBV_HOLD) {
        hold(f, 0);
        return;
    }
    if (verdict == FAKE_IBV_DELIVER && fake_chance(fake.knobs.reorder_ppm)) {
        hold(f, 1 + mrd_rng_below(&fake.rng, REORDER_MAX));
        return;
    }
    if (verdict == FAKE_IBV_DROP) {
        p->fate = FAKE_IBV_LOST;
        fake.fates[FAKE_IBV_LOST]++;
    } else {
        fake_arrive(f);
    }
    if (verdict == FAKE_IBV_DUPLICATE)
        fake_arrive(f);
    free(f);
}

/* ---------------------------------------------------------------------------------------- leaving */

static struct fake_ibv_packet *record_packet(const struct fake_qp *qp, const struct fake_send *send)
{
    const struct fake_ibv_port *port = &qp->device->ports[send->av.port_num - 1];
    struct fake_ibv_packet *p = fake_alloc(sizeof(*p));

    if (fake.num_packets == fake.cap_packets) {
        fake.cap_packets = fake.cap_packets ? 2 * fake.cap_packets : 1024;
        fake.packets = realloc(fake.packets, fake.cap_packets * sizeof(struct fake_ibv_packet *));
        if (!fake.packets)
            abort();
    }
    fake.packets[fake.num_packets++] = p;
    *p = (struct fake_ibv_packet){
        .device = qp->device,
        .source_port = source_port(qp, send),
        .src_qpn = qp->ibv.qp_num,
        .dst_qpn = send->qpn,
        .qkey = send->qkey & CONTROLLED_QKEY ? qp->qkey : send->qkey,
        .sgid = port->gids[send->av.grh.sgid_index].gid,
        .dgid = send->av.grh.dgid,
        .traffic_class = send->av.grh.traffic_class,
        .hop_limit = send->av.grh.hop_limit,
        .flow_label = send->av.grh.flow_label,
        .len = send->len,
        .is_inline = send->is_inline,
        .signaled = send->signaled,
        .num_sge = (uint8_t)send->num_sge,
    };
    for (int i = 0; i < send->num_sge && i < FAKE_IBV_SGE_RECORDED; i++)
        p->sge[i] = send->sge[i];
    return p;
}

/* The packet's bytes, read from where they are: NULL if a key does not cover them. */
static struct fake_flying *gather(const struct fake_qp *qp, const struct fake_send *send)
{
    struct fake_flying *f = fake_alloc(sizeof(*f) + send->len);
    uint32_t at = 0;

    if (send->is_inline)
        memcpy(f->bytes, send->bytes, send->len);
    for (int i = 0; i < send->num_sge && !send->is_inline; i++) {
        const uint8_t *memory = fake_memory(qp->ibv.pd, &send->sge[i], 0);

        if (!memory && send->sge[i].length > 0) {
            free(f);
            return NULL;
        }
        if (memory)
            memcpy(f->bytes + at, memory, send->sge[i].length);
        at += send->sge[i].length;
    }
    f->solicited = send->solicited;
    f->with_imm = send->with_imm;
    f->imm_data = send->imm_data;
    f->traffic_class = send->av.grh.traffic_class;
    return f;
}

static void transmit_one(struct fake_qp *qp)
{
    struct fake_send *send = fake_send_at(qp, qp->sq_sent++);
    const struct fake_ibv_port *port = &qp->device->ports[send->av.port_num - 1];
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    struct fake_flying *f = NULL;

    if (send->len > 128u << port->attr.active_mtu || send->av.port_num != qp->port_num)
        status = IBV_WC_LOC_LEN_ERR;
    else if (!(f = gather(qp, send)))
        status = IBV_WC_LOC_PROT_ERR;
    if (f) {
        struct fake_ibv_packet *p = record_packet(qp, send);

        memcpy(p->head, f->bytes, p->len < sizeof(p->head) ? p->len : sizeof(p->head));
        f->record = fake.num_packets - 1;
        f->gid_type = port->gids[send->av.grh.sgid_index].type;
    }
    fake_send_release(send);
    fake_cq_send_done(qp, send, status);
    if (!f) {
        fake_qp_break(qp);
        return;
    }
    overtake();
    if (port->attr.state == IBV_PORT_ACTIVE) {
        fly(f);
    } else {
        fake.packets[f->record]->fate = FAKE_IBV_LOST;
        fake.fates[FAKE_IBV_LOST]++;
        free(f);
    }
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
            if (fake.knobs.shuffle_tx) {
                if (mrd_rng_below(&fake.rng, ++candidates) == 0)
                    found = qp;
            } else if (!found || fake_send_at(qp, qp->sq_sent)->order <
                                     fake_send_at(found, found->sq_sent)->order) {
                found = qp;
            }
        }
    }
    return found;
}

unsigned fake_transmit(unsigned max)
{
    unsigned n = 0;
    struct fake_qp *qp;

    while (n < max && (qp = next_sender())) {
        transmit_one(qp);
        n++;
    }
    if (n == 0) /* silence lets those through that wait for others */
        overtake();
    return n;
}

void fake_wire_end(void)
{
    while (fake.held) {
        struct fake_flying *f = fake.held;

        fake.held = f->next;
        free(f);
    }
    for (unsigned i = 0; i < fake.num_packets; i++)
        free(fake.packets[i]);
    free(fake.packets);
    fake.packets = NULL;
    fake.num_packets = fake.cap_packets = 0;
}

/* ---------------------------------------------------------------------------------------- for tests */

unsigned fake_ibv_transmit(unsigned max)
{
    unsigned n;

    fake_lock();
    n = fake_transmit(max);
    fake_leave();
    return n;
}

unsigned fake_ibv_release_packets(unsigned max, bool newest_first)
{
    unsigned n = 0;

    fake_lock();
    for (; n < max && fake.held; n++) {
        struct fake_flying **at = &fake.held;

        while (newest_first && (*at)->next)
            at = &(*at)->next;
        let_go(at);
    }
    fake_leave();
    return n;
}

unsigned fake_ibv_num_packets(void)
{
    unsigned n;

    fake_lock();
    n = fake.num_packets;
    fake_leave();
    return n;
}

const struct fake_ibv_packet *fake_ibv_packet(unsigned index)
{
    const struct fake_ibv_packet *p;

    fake_lock();
    assert(index < fake.num_packets);
    p = fake.packets[index];
    fake_leave();
    return p;
}

unsigned fake_ibv_fate_count(enum fake_ibv_fate fate)
{
    unsigned n;

    fake_lock();
    n = fake.fates[fate];
    fake_leave();
    return n;
}
