/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address that packets leave from. A peer is known by the address that its packets come from, so
 * all packets to it name one source, whatever path they take: where routes are several, the kernel
 * would choose by the path's port.
 *
 * A packet that brings a source leaves from that one: the peer's packets came there. Else the first
 * packet to a destination asks the kernel, and what it says holds for that destination. It has no
 * end of life, as the kernel may answer otherwise each time, and the peer would take us for two. It
 * ends when
 * - the kernel refuses a packet for its source, as the address is gone: the packet leaves from
 *   another one at once, and so do packets that bring the dead one, for SOURCE_DEAD_NS;
 * - the engine asks for another, as nothing is answered: an interface may be down and its address
 *   still be there; or
 * - no packet needed it for SOURCE_IDLE_NS: the peer is not at stake any more.
 */
#ifndef MRD_TRANSPORT_UDP_SOURCE_H
#define MRD_TRANSPORT_UDP_SOURCE_H

#include "transport/movers/udp/udp_state.h"

uint64_t mrd_udp_coarse_ns(void);
/*
 * Finds the address that a packet must name as its source; `from` is what the packet brings, or all
 * zero. false: it names none, as the sockets are bound to an address or there is no route.
 */
bool mrd_udp_source_for(struct mrd_udp *udp, const struct mrd_addr *to, const struct mrd_addr *from,
                        struct mrd_addr *source);
/*
 * The kernel did not send such a packet: `error`. If that was for its source, finds another. true:
 * it did, send the packet again.
 */
bool mrd_udp_source_refused(struct mrd_udp *udp, const struct mrd_addr *to,
                            const struct mrd_addr *from, int error);
void mrd_udp_other_source(struct mrd_backend *b, const struct mrd_addr *to);
void mrd_udp_sources_fini(struct mrd_udp_sources *sources);

#endif
