/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets and addresses as the engine and a packet mover exchange them.
 *
 * The mover fills mrd_rx_packet for mrd_engine_rx(); mrd_engine_tx() fills mrd_tx_packet for the
 * mover. Neither side keeps the other's pointers for longer than the fields say.
 */
#ifndef MRD_CORE_PACKET_H
#define MRD_CORE_PACKET_H

#include <stdint.h>
#include <sys/uio.h> /* struct iovec, the type only */

#include "mrd/mrd.h"

/*
 * A mover's address, compared as bytes. UDP: IPv6 or v4-mapped IPv6, scope id, port. Simulator: the
 * host number + 1 in the last bytes of ip and in port. The port names where the peer receives.
 */
struct mrd_addr {
    uint8_t ip[16];
    uint32_t scope;
    uint32_t port;
};

/* ECN field of the IP header; UNKNOWN: the mover did not see it. */
enum mrd_ecn {
    MRD_ECN_NOT_ECT = 0,
    MRD_ECN_ECT1 = 1,
    MRD_ECN_ECT0 = 2,
    MRD_ECN_CE = 3,
    MRD_ECN_UNKNOWN = 4
};

enum {
    /* Bound of the headers of packets that straight receive plans for. */
    MRD_HEAD_PEEK_BYTES = 96,
    MRD_PLAN_SEGMENTS_MAX = 64,
    MRD_SEGMENT_PIECES_MAX = MRD_SGE_MAX,
};

struct mrd_rx_packet {
    const uint8_t *data; /* the datagram; with `placed`, its header only */
    uint32_t len;        /* bytes at data */
    uint8_t ecn;         /* enum mrd_ecn */
    /* Straight receive: the payload is where mrd_engine_rx_plan() wanted this segment's. */
    uint8_t placed;
    uint16_t placed_len; /* payload bytes put there */
    uint16_t plan_index; /* with `placed`: which segment of the last plan this is */
    /* Source address; its port is the source port, not where the peer receives. */
    struct mrd_addr from;
    /* Local destination address (answers leave from it); all zero if unknown. */
    struct mrd_addr to;
    uint64_t life; /* of a sealed packet: of the context that sent it */
};

enum mrd_tx_flags {
    MRD_TX_ECT = 1 << 0,     /* set ECT(0) */
    MRD_TX_NOT_ECT = 1 << 1, /* do not; neither: as the mover likes */
    MRD_TX_ALONE = 1 << 2,   /* not to be sent in a burst: this path loses bursts */
    MRD_TX_UNHEARD = 1 << 3, /* the peer was never heard of: does anybody listen there? */
    MRD_TX_ACK = 1 << 4,     /* an ack, and nothing else */
};

/* The mover's handle and key of a memory region; all zero if it needs none. */
struct mrd_mover_mr {
    void *handle; /* the mover's */
    uint32_t key; /* goes into mrd_tx_packet.key */
};

/* Cookie of packets for which mrd_engine_tx_done() is not to be called. */
#define MRD_TX_COOKIE_NONE UINT64_MAX

struct mrd_tx_packet {
    struct mrd_addr to;   /* where the peer receives */
    struct mrd_addr from; /* local address to leave from; all zero: any */
    uint64_t cookie;      /* for mrd_engine_tx_done() when iov[] is read, or MRD_TX_COOKIE_NONE */
    uint16_t path; /* the mover's path number, below mrd_mover.paths and what new_path() returned */
    uint8_t flags; /* enum mrd_tx_flags */
    uint8_t num_iov;
    uint8_t dscp;      /* of the IP header, 0 to 63 */
    uint16_t head_len; /* header and staged payload */
    uint16_t head_cap; /* set by the caller: room at head, at least MRD_TX_HEAD_BYTES */
    uint32_t len;      /* the whole datagram: head_len + all of iov[] */
    uint8_t *head;     /* the caller's memory, filled by the engine */
    uint32_t key;      /* with iov[]: mrd_mover_mr.key of that memory */
    uint64_t life;     /* of the context that a sealed packet is for; 0: whoever is there */
    struct iovec iov[MRD_SEGMENT_PIECES_MAX]; /* payload in the user's buffers */
};

enum {
    MRD_PAYLOAD_BYTES_MAX = 16384,
    /* Largest header (an ack of a full tracker, a packet of many parts) plus a staged payload. */
    MRD_TX_HEAD_BYTES = MRD_PAYLOAD_BYTES_MAX + 2560,
};

/*
 * Where to put the payload of the next segments: that of segment i into pieces [first[i], first[i +
 * 1]) of iov.
 */
struct mrd_rx_plan {
    uint16_t head_len;     /* header bytes in front of each segment's payload */
    uint16_t num_segments; /* segments planned, from the first */
    uint16_t first[MRD_PLAN_SEGMENTS_MAX + 1];
    struct iovec iov[MRD_PLAN_SEGMENTS_MAX * 2 + MRD_SEGMENT_PIECES_MAX];
};

#endif
