/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What movers of a kind know of the network, and how they time and pace packets, acks and windows.
 *
 * A mover fills its struct mrd_mover by one of these calls and by what is its own: sizes of packets
 * and headers, paths, buffers. The simulator calls them too, for hosts that know no more than real
 * ones (enum mrd_sim_knows), so its figures are those of the movers that it stands for.
 */
#ifndef MRD_TRANSPORT_MOVER_H
#define MRD_TRANSPORT_MOVER_H

#include "core/engine/engine.h"

enum {
    MRD_UDP_SEGMENTS_MAX = 64, /* in a superpacket that we send; every kernel takes so many */
    MRD_UDP_SUPERPACKET_BYTES =
        /* The loopback device silently splits superpackets of more than 65,493 payload bytes. */
    65000,
};

/*
 * UDP sockets: neither the link's rate nor the network's RTT is known. A kernel sends bursts by
 * segmentation offload; acks are rare, as each costs the sender a system call's share.
 */
void mrd_mover_fill_sockets(struct mrd_mover *m);
/*
 * RDMA: the port's rate is known, the network's RTT is not. Sets the figures of hardware, or with
 * link_bps 0, which is an unknown rate, those of a software device.
 */
void mrd_mover_fill_rdma(struct mrd_mover *m, uint64_t link_bps);

#endif
