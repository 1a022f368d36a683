/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/mover.h"

enum {
    CWND_CAP_BYTES = 512 << 10,
    CWND_START_BYTES = 64 << 10,
    /* Before an ack, at the latest, as senders ask several times a window: packets, */
    UDP_ACK_EVERY = 30,
    UDP_ACK_BYTES = 112 << 10, /* or segments of so many bytes: about two superpackets */
};

void mrd_mover_fill_sockets(struct mrd_mover *m)
{
    m->link_bps = 0;
    m->rto_floor_ns = 2 * 1000 * 1000;
    m->base_rtt_ns = 50 * 1000;
    m->base_rtt_max_ns = 0;
    m->ack_every = UDP_ACK_EVERY;
    m->ack_bytes = UDP_ACK_BYTES;
    m->ack_delay_ns = 100 * 1000;
    m->quantum = MRD_UDP_SEGMENTS_MAX;
    m->burst_bytes = MRD_UDP_SUPERPACKET_BYTES;
    m->tracker = 4096;
    m->cwnd_cap_bytes = CWND_CAP_BYTES;
    m->cwnd_start_bytes = CWND_START_BYTES;
}

/*
 * A software device's work is done by the kernel in runs, between what else its processors have to
 * do. So a packet's round trip takes as long as the work before it in those runs, and an ack costs
 * as much as a packet of data.
 */
void mrd_mover_fill_rdma(struct mrd_mover *m, uint64_t link_bps)
{
    bool software = link_bps == 0;

    m->link_bps = link_bps;
    m->rto_floor_ns = software ? 8000 * 1000 : 500 * 1000;
    m->base_rtt_ns = software ? 8000 * 1000 : 0;
    m->base_rtt_max_ns = 0;
    m->ack_every = software ? 32 : 8;
    m->ack_bytes = 0;
    m->ack_delay_ns = software ? 1000 * 1000 : 20 * 1000;
    /*
     * The packets of a quantum are one post: a system call where software does the device's work.
     */
    m->quantum = software ? 32 : 1;
    m->burst_bytes = 0;
    m->tracker = 2048;
    m->cwnd_cap_bytes = CWND_CAP_BYTES;
    m->cwnd_start_bytes = CWND_START_BYTES;
}
