/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed contexts: what lies between engine and mover (core/seal.h), with its cipher and its keys.
 */
#ifndef MRD_TRANSPORT_SEALING_H
#define MRD_TRANSPORT_SEALING_H

#include "transport/context.h"

/* Of the payload of each packet, for head and tag: a multiple of 64, as all payloads are. */
enum { MRD_SEALING_PAYLOAD_BYTES = 64, MRD_SEALING_DOUBT_BYTES = 300 };

/*
 * Before the engine is there. Without a key file nothing is sealed. 0, or -errno with mrd_error_set().
 * `seed`: of a simulated context.
 */
int mrd_sealing_open(struct mrd_context_impl *c, const struct mrd_context_attr *attr,
                     uint64_t seed);
void mrd_sealing_close(struct mrd_context_impl *c);
/* Reads the key file again. 0, or -errno with mrd_error_set(): then nothing changed. */
int mrd_sealing_reload(struct mrd_context_impl *c);

/* Opens received packets in place, and leaves out those that are to be dropped. How many are left. */
unsigned mrd_sealing_open_packets(struct mrd_context_impl *c, struct mrd_rx_packet *packets,
                                  unsigned n, uint64_t now_ns);

/* Why nothing comes from that address, as far as packets from there claim; NULL: there is no sign. */
const char *mrd_sealing_doubt(const struct mrd_context_impl *c, const struct mrd_addr *addr,
                              char *text, size_t len);
/* No packet came from that address that could be opened: logs why. */
void mrd_sealing_log_silence(struct mrd_context_impl *c, const struct mrd_addr *addr);

static inline bool mrd_sealing_is_on(const struct mrd_context_impl *c)
{
    return c->sealing.seal;
}

/* What a packet carries that the mover says takes so much. */
static inline uint32_t mrd_sealing_payload(const struct mrd_context_impl *c, uint32_t bytes)
{
    return mrd_sealing_is_on(c) && bytes > MRD_SEALING_PAYLOAD_BYTES
               ? bytes - MRD_SEALING_PAYLOAD_BYTES
               : bytes;
}

#endif
