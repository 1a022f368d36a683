/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a simulated host hands packets to its context: one by one, or in bursts whose payload goes
 * straight in place.
 */
#include <assert.h>
#include <string.h>

#include "transport/movers/sim/sim_host.h"
#include "transport/movers/sim/sim_world.h"

enum { GRO_LOOKAHEAD = 256 /* waiting packets searched for those of one burst */ };

static struct mrd_sim_packet *next_of(const struct mrd_sim_packet *packet)
{
    return (struct mrd_sim_packet *)packet->event.next;
}

/* May both be in one burst? UDP_GRO joins packets of the same 5-tuple. */
static bool is_joined(const struct mrd_sim_packet *first, const struct mrd_sim_packet *packet)
{
    return packet->from == first->from && packet->path == first->path &&
           packet->from_id == first->from_id && packet->to_id == first->to_id;
}

/*
 * Find the burst that starts with the oldest waiting packet: all have its length, but the last may
 * be shorter. They are put in run[] and stay in the queue. Returns their number.
 */
static unsigned find_run(const struct mrd_sim_host *host, struct mrd_sim_packet **run, unsigned max)
{
    struct mrd_sim_packet *first = host->rx_head;
    struct mrd_sim_packet *packet = first;
    unsigned n = 0;

    for (unsigned seen = 0; packet && seen < GRO_LOOKAHEAD && n < max;
         seen++, packet = next_of(packet)) {
        if (!is_joined(first, packet))
            continue;
        if (packet->len > first->len)
            break;
        run[n++] = packet;
        if (packet->len < first->len)
            break;
    }
    return n;
}

/* Remove the packets of run[], which has the queue's order, from the receive queue. */
static void unlink_run(struct mrd_sim_host *host, struct mrd_sim_packet **run, unsigned n)
{
    struct mrd_sim_packet *before = NULL, *packet = host->rx_head;

    host->rx_waiting -= n;
    for (unsigned i = 0; i < n; i++) {
        while (packet != run[i]) {
            before = packet;
            packet = next_of(packet);
        }
        packet = next_of(packet);
        if (before)
            before->event.next = (struct mrd_sim_event *)packet;
        else
            host->rx_head = packet;
    }
    if (!packet)
        host->rx_last = before;
}

/* Lend a packet to the engine until mrd_sim_rx_return(). False: no memory, it is lost. */
static bool lend(struct mrd_sim_host *host, struct mrd_sim_packet *packet, struct mrd_rx_packet *rx)
{
    packet = mrd_sim_packet_join(&host->part->packets, packet);
    if (!packet)
        return false;
    packet->event.next = (struct mrd_sim_event *)host->rx_lent;
    host->rx_lent = packet;
    host->stats.received++;
    *rx = (struct mrd_rx_packet){
        .data = packet->data,
        .len = packet->len,
        .ecn = packet->ecn,
        .from = mrd_sim_address(packet->from, packet->from_id),
        .to = mrd_sim_address(host->number, packet->to_id),
    };
    return true;
}

/* Copy the payload of segment i to where the plan says, as recvmsg() with an iovec does. */
static void place(struct mrd_sim_packet *packet, const struct mrd_rx_plan *plan, unsigned i,
                  struct mrd_rx_packet *rx)
{
    uint32_t at = plan->head_len;

    for (unsigned piece = plan->first[i]; piece < plan->first[i + 1]; piece++) {
        const struct iovec *iov = &plan->iov[piece];

        assert(at + iov->iov_len <= packet->len);
        memcpy(iov->iov_base, packet->data + at, iov->iov_len);
        at += (uint32_t)iov->iov_len;
    }
    assert(at == packet->len && "a plan covers its segments to the byte");
    rx->placed = 1;
    rx->placed_len = (uint16_t)(packet->len - plan->head_len);
    rx->plan_index = (uint16_t)i;
    rx->len = plan->head_len;
}

/* Hand out a burst by the engine's plan. Returns its packets; 0: no burst waits. */
static unsigned take_burst(struct mrd_sim_host *host, struct mrd_rx_packet *packets, unsigned max,
                           mrd_plan_fn *plan_fn, void *plan_arg)
{
    struct mrd_sim_packet *run[MRD_PLAN_SEGMENTS_MAX];
    struct mrd_addr from = mrd_sim_address(host->rx_head->from, host->rx_head->from_id);
    unsigned n = find_run(host, run, max < MRD_PLAN_SEGMENTS_MAX ? max : MRD_PLAN_SEGMENTS_MAX);
    struct mrd_rx_plan plan = {0};
    uint32_t total_len = 0;

    if (n < 2)
        return 0;
    for (unsigned i = 0; i < n; i++)
        total_len += run[i]->len;

    uint32_t head_len = run[0]->len < MRD_HEAD_PEEK_BYTES ? run[0]->len : MRD_HEAD_PEEK_BYTES;
    unsigned planned =
        plan_fn(plan_arg, run[0]->data, head_len, n, run[0]->len, total_len, &from, &plan);

    assert(planned <= n);
    host->stats.plans += planned > 0;
    host->stats.planned_segments += planned;
    unlink_run(host, run, n);
    for (unsigned i = 0; i < n; i++) {
        if (!lend(host, run[i], &packets[i]))
            return i;
        if (i < planned)
            place(run[i], &plan, i, &packets[i]);
    }
    return n;
}

/*
 * Hand out packets one by one, without a plan. With straight receive the caller sets max to 1: the
 * engine must have seen all earlier packets when it makes the next plan.
 */
static unsigned take_packets(struct mrd_sim_host *host, struct mrd_rx_packet *packets, unsigned max)
{
    unsigned n = 0;

    while (n < max && host->rx_head) {
        struct mrd_sim_packet *packet = host->rx_head;

        unlink_run(host, &packet, 1);
        n += lend(host, packet, &packets[n]);
    }
    return n;
}

unsigned mrd_sim_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg)
{
    struct mrd_sim_host *host = (struct mrd_sim_host *)b;
    bool gro = host->sim->options.gro && plan;
    unsigned n = 0;

    mrd_sim_host_touch(host);
    *more = false;
    if (host->stopped)
        return 0;
    if (gro && host->rx_head)
        n = take_burst(host, packets, max, plan, plan_arg);
    if (n == 0)
        n = take_packets(host, packets, gro ? 1 : max);
    if (!host->rx_head)
        host->rx_ready_ns = MRD_SIM_NEVER;
    *more = host->rx_head != NULL;
    return n;
}

void mrd_sim_rx_return(struct mrd_backend *b)
{
    struct mrd_sim_host *host = (struct mrd_sim_host *)b;

    while (host->rx_lent) {
        struct mrd_sim_packet *packet = host->rx_lent;

        host->rx_lent = next_of(packet);
        mrd_sim_packet_release(&host->part->packets, packet);
    }
}
