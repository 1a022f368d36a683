/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/perf/cost_wire.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    DELAY_NS = 10000,
    BYTES_PER_NS = 5, /* 40 Gb/s */
    LOWER_BYTES = 42, /* headers of Ethernet, IP and UDP */
    PORT = 1,         /* where the first end receives; the others follow */
    SOURCE_PORT = 1000,
};

static struct cost_burst *spare;

struct mrd_addr cost_wire_addr(unsigned end)
{
    struct mrd_addr addr = {.port = PORT + end};

    addr.ip[10] = addr.ip[11] = 0xff;
    addr.ip[12] = 10;
    addr.ip[15] = (uint8_t)(end + 1);
    return addr;
}

static struct cost_burst *get_burst(void)
{
    struct cost_burst *b = spare;

    if (b)
        spare = b->next;
    else
        b = malloc(sizeof(*b));
    assert(b);
    b->next = NULL;
    b->segments = b->total_len = 0;
    return b;
}

void cost_wire_give(struct cost_burst *burst)
{
    burst->next = spare;
    spare = burst;
}

/* The same choice as that of the UDP mover: group_size() in transport/movers/udp/udp_tx.c. */
static bool continues(const struct mrd_tx_packet *first, const struct cost_burst *burst,
                      const struct mrd_tx_packet *packet)
{
    return !((first->flags | packet->flags) & MRD_TX_ALONE) &&
           burst->segments < MRD_UDP_SEGMENTS_MAX &&
           burst->total_len == burst->segments * burst->segment_len &&
           packet->len <= burst->segment_len &&
           burst->total_len + packet->len <= MRD_UDP_SUPERPACKET_BYTES &&
           packet->path == first->path && !memcmp(&packet->to, &first->to, sizeof(first->to));
}

static void append(struct cost_burst *burst, const struct mrd_tx_packet *packet)
{
    uint8_t *at = burst->bytes + burst->total_len;

    assert(burst->total_len + packet->len <= sizeof(burst->bytes));
    memcpy(at, packet->head, packet->head_len);
    at += packet->head_len;
    for (unsigned i = 0; i < packet->num_iov; at += packet->iov[i++].iov_len)
        memcpy(at, packet->iov[i].iov_base, packet->iov[i].iov_len);
    burst->total_len += packet->len;
    burst->segments++;
    assert(at == burst->bytes + burst->total_len);
}

static void put(struct cost_link *link, struct cost_burst *burst, uint64_t now_ns)
{
    uint64_t start_ns = now_ns + DELAY_NS;

    if (start_ns < link->busy_until_ns)
        start_ns = link->busy_until_ns;
    burst->arrival_ns =
        start_ns + (burst->total_len + burst->segments * LOWER_BYTES) / BYTES_PER_NS;
    link->busy_until_ns = burst->arrival_ns;
    if (link->first)
        link->last->next = burst;
    else
        link->first = burst;
    link->last = burst;
}

void cost_wire_send(struct cost_link *links, const struct mrd_addr *from,
                    const struct mrd_tx_packet *packets, unsigned n, uint64_t now_ns)
{
    for (unsigned i = 0; i < n;) {
        const struct mrd_tx_packet *first = &packets[i];
        struct cost_burst *burst = get_burst();

        burst->segment_len = first->len;
        burst->from = *from;
        burst->from.port = SOURCE_PORT + first->path;
        do
            append(burst, &packets[i++]);
        while (i < n && continues(first, burst, &packets[i]));
        put(&links[first->to.port - PORT], burst, now_ns);
    }
}

uint64_t cost_wire_arrival_ns(const struct cost_link *link)
{
    return link->first ? link->first->arrival_ns : UINT64_MAX;
}

struct cost_burst *cost_wire_take(struct cost_link *link)
{
    struct cost_burst *burst = link->first;

    link->first = burst->next;
    return burst;
}
