/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: made when a path to a GID is first used, kept while there is room.
 *
 * To make one the kernel may have to resolve an Ethernet address, so after a failure the next try
 * waits for RETRY_NS. Handles are destroyed with the entry that was unused for longest, but never
 * while a datagram that uses one is at the device.
 */
#ifndef MRD_TRANSPORT_IBV_REMOTE_H
#define MRD_TRANSPORT_IBV_REMOTE_H

#include "transport/movers/ibv/ibv_state.h"

int mrd_ibv_remotes_init(struct mrd_ibv *ibv, uint32_t max);
void mrd_ibv_remotes_fini(struct mrd_ibv *ibv);
/*
 * Finds the entry for an address, makes it if there is none, and marks it as just used. NULL: no
 * memory, or all entries have datagrams at the device.
 */
struct mrd_ibv_remote *mrd_ibv_remote_get(struct mrd_ibv *ibv, const struct mrd_addr *addr,
                                          uint8_t dscp);
struct mrd_ibv_remote *mrd_ibv_remote_find(struct mrd_ibv *ibv, const struct mrd_addr *addr);
/* Finds or makes the handle of a path; NULL with errno: it cannot be made now. */
struct ibv_ah *mrd_ibv_remote_get_ah(struct mrd_ibv *ibv, struct mrd_ibv_remote *remote,
                                     uint32_t path);
/* Adds a QPN of the peer, unless it is known or there are MRD_IBV_PAIR_QPS already. */
void mrd_ibv_remote_learn(struct mrd_ibv_remote *remote, uint32_t qpn);
/* The flow label of a path. Never 0; labels of different paths lead to different source ports. */
uint32_t mrd_ibv_flow_label(const struct mrd_ibv *ibv, uint32_t path);

#endif
