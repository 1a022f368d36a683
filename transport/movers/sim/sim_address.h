/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts with several addresses, and addresses that come, go and fail. Included by sim_host.h.
 *
 * Address `id` of host h is mrd_sim_address(h, id): its text is "sim:H/ID", and "sim:H" for id 0,
 * which every host has at first. A host that was never told otherwise has that one only, and no
 * packet of it costs more than the look at a pointer.
 *
 * mrd_sim_set_addresses() gives a host addresses, before or after its context opens;
 * mrd_sim_change_address() and mrd_sim_move_address() of sim_fault.h schedule what becomes of them.
 *
 * A packet leaves from the address that it names, if the host has it: else it is lost, as with
 * EINVAL. One that names none leaves from the one that the host's kernel chooses: enum
 * mrd_sim_source. What comes tells in mrd_rx_packet.to which address it came to.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_ADDRESS_H
#define MRD_TRANSPORT_SIM_SIM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/packet.h"

struct mrd_backend;
struct mrd_sim;
struct mrd_sim_host;

enum {
    MRD_SIM_ADDRESSES_MAX = 32, /* ids are below it */
    MRD_SIM_PINS_MAX = 64,
    MRD_SIM_ID_BYTE = 11, /* of mrd_addr.ip */
};

/* The source of packets that name none. */
enum mrd_sim_source {
    MRD_SIM_SOURCE_FIRST = 0, /* the host's address with the lowest id */
    MRD_SIM_SOURCE_HASHED,    /* by hash of destination and path, as a multipath route chooses */
};

/* What becomes of an address. */
enum mrd_sim_address_change {
    MRD_SIM_ADDRESS_GET = 0, /* the host has it from now on */
    MRD_SIM_ADDRESS_LOSE,    /* the host has it no more */
    /* Its link is down, and nobody notices: what leaves from it, or comes to it, is lost. */
    MRD_SIM_ADDRESS_FAIL,
    MRD_SIM_ADDRESS_MEND, /* its link is up */
};

/* The source of packets to `to` that name none, since the one before was not answered. */
struct mrd_sim_pin {
    struct mrd_addr to;
    uint32_t id;
};

/* The addresses of a host. */
struct mrd_sim_addresses {
    uint32_t has, fails;         /* bit i: address i */
    uint8_t source;              /* enum mrd_sim_source */
    uint32_t num_pins, next_pin; /* the one to be replaced next */
    struct mrd_sim_pin pin[MRD_SIM_PINS_MAX];
};

/* The host has `num` addresses from now on, with ids from 0; they are up. 0 or -ENOMEM. */
int mrd_sim_set_addresses(struct mrd_sim *sim, uint32_t host, uint32_t num,
                          enum mrd_sim_source source);
/* Bit i: the host has address i. */
uint32_t mrd_sim_addresses_of(const struct mrd_sim *sim, uint32_t host);

/*
 * For struct mrd_backend_ops: nothing that was sent to `to` was answered. What names no source
 * leaves from the host's next address from now on.
 */
void mrd_sim_other_source(struct mrd_backend *b, const struct mrd_addr *to);

/*
 * Delivers a copy of a datagram at virtual time `at_ns` from any source: of a host, or of nobody. It
 * crosses no link. 0, -EINVAL if `to` is no host's, or -ENOMEM.
 */
int mrd_sim_inject_from(struct mrd_sim *sim, const struct mrd_addr *from, const struct mrd_addr *to,
                        const void *data, uint32_t len, uint64_t at_ns);
/* During a call of the tap: the addresses of the datagram that it is shown. */
void mrd_sim_tapped(const struct mrd_sim *sim, struct mrd_addr *from, struct mrd_addr *to);
/* A datagram that host `from` sent to an address that no host of the simulation has. */
struct mrd_sim_stray {
    uint32_t from;
    struct mrd_addr source, to;
    const uint8_t *data; /* valid during the call only */
    uint32_t len;
};
/*
 * Shows those to `hook` as they leave: they are for whoever plays a stranger. It may inject, and
 * must call no context. NULL: to nobody.
 */
void mrd_sim_set_stray_hook(struct mrd_sim *sim,
                            void (*hook)(void *arg, const struct mrd_sim_stray *stray), void *arg);

/* ------------------------------------------------------------------------- between the parts */

static inline struct mrd_addr mrd_sim_address(uint32_t host, uint32_t id)
{
    uint32_t n = host + 1;

    return (struct mrd_addr){.ip = {[MRD_SIM_ID_BYTE] = (uint8_t)id,
                                    [12] = (uint8_t)(n >> 24),
                                    [13] = (uint8_t)(n >> 16),
                                    [14] = (uint8_t)(n >> 8),
                                    [15] = (uint8_t)n},
                             .port = n};
}

static inline uint32_t mrd_sim_address_id(const struct mrd_addr *addr)
{
    return addr->ip[MRD_SIM_ID_BYTE];
}

/* Is it an address that some host of the simulation has, or may have? */
bool mrd_sim_is_host(const struct mrd_sim *sim, const struct mrd_addr *addr);
/*
 * Chooses the source of a packet of a host with host->addresses. `from` may be all zero. Returns
 * its id, or -1: the packet is lost.
 */
int mrd_sim_choose_source(struct mrd_sim_host *host, const struct mrd_addr *from,
                          const struct mrd_addr *to, uint16_t path);
/* Does the host get what comes to its address `id`? */
bool mrd_sim_takes(struct mrd_sim_host *host, uint32_t id);
/* What a host with addresses of its own has, made if it is another; NULL: no memory. */
struct mrd_sim_addresses *mrd_sim_need_addresses(struct mrd_sim *sim, uint32_t host);
/* Applies a change now, to a host with addresses of its own. */
void mrd_sim_address_apply(struct mrd_sim *sim, uint32_t host, uint32_t id,
                           enum mrd_sim_address_change change);
int mrd_sim_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
int mrd_sim_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len);

#endif
