/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address strings: "<gid>/<qpn>[,<qpn>...]", for example "::ffff:10.0.0.7/17"; and whether there is a
 * way to an address.
 *
 * The peer's address is its GID and the first QPN. Further QPNs are other QPs of the same context;
 * they are used only where pairs of QPs are paths.
 */
#ifndef MRD_TRANSPORT_IBV_ADDR_H
#define MRD_TRANSPORT_IBV_ADDR_H

#include "transport/movers/ibv/ibv_state.h"

int mrd_ibv_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
/* The same, but further QPNs are not learnt. */
int mrd_ibv_check_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
int mrd_ibv_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len);
int mrd_ibv_self_address(struct mrd_backend *b, struct mrd_addr *addr);
int mrd_ibv_payload_bytes(struct mrd_backend *b, const struct mrd_addr *to);
/* Parses an IP address or GID; IPv4 becomes v4-mapped. false: it is none. */
bool mrd_ibv_parse_gid(const char *text, union ibv_gid *gid);

#endif
