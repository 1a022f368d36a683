/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a rank of nccl_ring reaches its neighbours: it sends to the right one and receives from the
 * left one. open(), add_memory(), then send() and receive() without waiting; sends meet receives in
 * the order in which both were posted, and have their lengths.
 */
#ifndef MRD_TESTS_RING_WIRE_H
#define MRD_TESTS_RING_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum { RING_OUTSTANDING = 8 }; /* sends, and as many receives */

struct ring_place {
    unsigned rank, ranks;
    const char *via;       /* the plugin's path, or how many TCP connections go to a neighbour */
    const char *directory; /* where ranks tell each other how they are reached */
    const char *address;   /* of this host */
};

struct ring_wire {
    /* Returns once both neighbours are connected. What fails ends the process, here and below. */
    void *(*open)(const struct ring_place *place);
    /* Data that is sent and received lies in memory that was added. */
    void (*add_memory)(void *wire, void *data, size_t bytes);
    /* False: not now. */
    bool (*send)(void *wire, void *data, size_t bytes);
    bool (*receive)(void *wire, void *data, size_t bytes);
    /* How many have ended since the last call, the oldest first. */
    unsigned (*sent)(void *wire);
    unsigned (*received)(void *wire);
    void (*close)(void *wire);
};

extern const struct ring_wire ring_plugin, ring_tcp;

/* A file of the directory for each rank, which the others wait for. */
void ring_publish(const struct ring_place *place, const void *data, size_t bytes);
void ring_look_up(const struct ring_place *place, unsigned rank, void *data, size_t bytes);

void ring_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* No core is kept from those who carry the data. */
void ring_pause(void);

#endif
