/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/ibv/ibv_rx.h"

#include <string.h>

#include "core/wire.h"
#include "transport/movers/ibv/ibv_remote.h"
#include "transport/movers/ibv/ibv_slot.h"
#include "transport/movers/ibv/ibv_tx.h"

enum {
    POLL_MAX = 64,
    IDLE_FEW = 8, /* fewer idle slots wait to be posted until there is nothing else to do */
    /* Where our header has the QPN to which peers answer: 24 bits, see core/WIRE.md. */
    REPLY_AT = 29,
    /*
     * Where the IP header is in the 40 bytes before a datagram. An IPv4 header is at their end; the
     * GRH of IPv6 fills them.
     */
    V4_AT = 20,
    V4_TOS_AT = V4_AT + 1,
    V4_SOURCE_AT = V4_AT + 12,
    V6_SOURCE_AT = 8,
    PPM = 1000000,
};

/* -------------------------------------------------------------------- arrivals */

static void read_lower_header(const struct mrd_ibv *ibv, const uint8_t *grh,
                              struct mrd_rx_packet *p)
{
    memset(&p->from, 0, sizeof(p->from));
    if (ibv->port.v4) {
        p->from.ip[10] = p->from.ip[11] = 0xff;
        memcpy(p->from.ip + 12, grh + V4_SOURCE_AT, 4);
        p->ecn = grh[V4_TOS_AT] & 3;
    } else {
        memcpy(p->from.ip, grh + V6_SOURCE_AT, 16);
        /* After 4 bits of version: the traffic class, whose low bits are ECN. */
        p->ecn = (grh[1] >> 4) & 3;
    }
}

/*
 * Learns a peer's further QPNs from the packets that come from them. Used where pairs of QPs
 * are paths.
 */
static void learn_qpn(struct mrd_ibv *ibv, const struct mrd_rx_packet *p)
{
    struct mrd_addr addr = p->from;
    struct mrd_ibv_remote *remote;
    struct mrd_wire_head head;

    if (p->len < MRD_WIRE_BASE_BYTES)
        return;
    addr.port = (uint32_t)p->data[REPLY_AT] << 16 | (uint32_t)p->data[REPLY_AT + 1] << 8 |
                p->data[REPLY_AT + 2];
    if (addr.port == p->from.port || !(remote = mrd_ibv_remote_find(ibv, &addr)))
        return;
    for (uint32_t i = 0; i < remote->num_qpns; i++)
        if (remote->qpn[i] == p->from.port)
            return;
    if (mrd_wire_get(p->data, p->len, &head) == MRD_WIRE_OK)
        mrd_ibv_remote_learn(remote, p->from.port);
}

void mrd_ibv_learn(struct mrd_backend *b, const struct mrd_rx_packet *packet)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);

    if (ibv->port.entropy == MRD_IBV_BY_QPAIR)
        learn_qpn(ibv, packet);
}

/* Fills *p with a completion's datagram; false: there is none for the engine. */
static bool take(struct mrd_ibv *ibv, const struct ibv_wc *wc, struct mrd_rx_packet *p)
{
    const uint8_t *data = ibv->memory + (size_t)ibv->rx_stride * (uint32_t)wc->wr_id;

    if (wc->status != IBV_WC_SUCCESS || wc->byte_len < MRD_IBV_GRH_BYTES ||
        !(wc->wc_flags & IBV_WC_GRH))
        return false;
    if (ibv->drop_ppm && mrd_rng_below(&ibv->rng, PPM) < ibv->drop_ppm)
        return false;
    read_lower_header(ibv, data, p);
    p->from.port = wc->src_qp;
    p->data = data + MRD_IBV_GRH_BYTES;
    p->len = wc->byte_len - MRD_IBV_GRH_BYTES;
    p->placed = 0;
    p->placed_len = 0;
    p->plan_index = 0;
    memset(&p->to, 0, sizeof(p->to));
    if (ibv->port.entropy == MRD_IBV_BY_QPAIR)
        learn_qpn(ibv, p);
    return true;
}

static unsigned poll_once(struct mrd_ibv *ibv, struct mrd_rx_packet *packets, unsigned max,
                          bool *more)
{
    struct ibv_wc wc[POLL_MAX];
    unsigned room = max < POLL_MAX ? max : POLL_MAX, n = 0;
    int found = ibv_poll_cq(ibv->recv_cq, (int)room, wc);

    *more = found == (int)room;
    for (int i = 0; i < found; i++) {
        uint32_t index = (uint32_t)wc[i].wr_id;

        if (wc[i].wr_id != mrd_ibv_rx_slot_wr_id(ibv, index))
            continue; /* from before its queue pair was reset */
        n += take(ibv, &wc[i], &packets[n]);
        mrd_ibv_rx_slot_retire(ibv, index);
    }
    return n;
}

/* -------------------------------------------------------------------- sleeping */

static void drain_events(struct mrd_ibv *ibv)
{
    struct ibv_cq *cq;
    void *context;

    while (ibv_get_cq_event(ibv->channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
}

/*
 * Arms the completion queues: the next completion raises an event. Then polls again, since one may
 * have come before. Returns the number of packets received.
 */
static unsigned arm(struct mrd_ibv *ibv, struct mrd_rx_packet *packets, unsigned max, bool *more)
{
    unsigned n;

    if (ibv_req_notify_cq(ibv->recv_cq, 0) || ibv_req_notify_cq(ibv->send_cq, 0))
        return 0;
    n = poll_once(ibv, packets, max, more);
    mrd_ibv_tx_poll(ibv);
    atomic_store_explicit(&ibv->armed, n == 0, memory_order_relaxed);
    atomic_store_explicit(&ibv->want_armed, false, memory_order_relaxed);
    return n;
}

unsigned mrd_ibv_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    bool armed = atomic_load_explicit(&ibv->armed, memory_order_relaxed);
    unsigned n;

    (void)plan;
    (void)plan_arg;
    n = poll_once(ibv, packets, max, more);
    if (armed && (n || atomic_load_explicit(&ibv->fd_used, memory_order_relaxed) ||
                  atomic_load_explicit(&ibv->woken, memory_order_relaxed))) {
        drain_events(ibv);
        atomic_store_explicit(&ibv->woken, false, memory_order_relaxed);
        atomic_store_explicit(&ibv->armed, false, memory_order_relaxed);
        armed = false;
    }
    if (!n && !armed &&
        (atomic_load_explicit(&ibv->fd_used, memory_order_relaxed) ||
         atomic_load_explicit(&ibv->want_armed, memory_order_relaxed)))
        n = arm(ibv, packets, max, more);
    /* The descriptor will not tell of what comes next, nor of what waits for tx_reap(). */
    if (atomic_load_explicit(&ibv->fd_used, memory_order_relaxed) &&
        (n || atomic_load_explicit(&ibv->done_waits, memory_order_relaxed)))
        *more = true;
    if (!n)
        mrd_ibv_rx_post(ibv);
    return n;
}

void mrd_ibv_rx_return(struct mrd_backend *b)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);

    if (ibv->rx_num_idle >= IDLE_FEW)
        mrd_ibv_rx_post(ibv);
}
