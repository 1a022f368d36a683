/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP packet mover: the state that its files share.
 *
 * A mover has one receive socket, the only one that is read, and one source socket for each path:
 * ECMP chooses the route of a packet by its UDP source port. Packets carry the receive socket's
 * port, to which peers send. One more socket asks the kernel about routes: at the limit of
 * descriptors it still can.
 *
 * udp.c opens and closes; udp_socket.c makes sockets; udp_addr.c converts addresses; udp_route.c asks
 * the kernel about routes, udp_port.c about interfaces; udp_source.c chooses the address that packets
 * leave from; udp_lacks.c holds what the kernel refused; udp_icmp.c reads what ICMP says; udp_tx.c
 * and udp_rx.c move packets.
 */
#ifndef MRD_TRANSPORT_UDP_STATE_H
#define MRD_TRANSPORT_UDP_STATE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/rng.h"
#include "transport/backend.h"
#include "transport/mover.h"

enum {
    MRD_UDP_PATHS_DEFAULT = 32,
    MRD_UDP_PATHS_MAX = 256,
    MRD_UDP_PATHS_GROWTH = 4,    /* new_path() adds paths up to so many times the first number */
    MRD_UDP_PAYLOAD_BASE = 1088, /* at an MTU of 1,280, which IPv6 asks of every network */
    MRD_UDP_PAYLOAD_DEFAULT = 4096,
    MRD_UDP_PAYLOAD_JUMBO = 8192, /* where the MTU is 9,000 or nearly so */
    MRD_UDP_HEADER_ROOM = 96,     /* room for our header in front of a payload */
    /* To this machine, whose MTU is larger: four of them fill a superpacket. */
    MRD_UDP_PAYLOAD_LOCAL = (MRD_UDP_SUPERPACKET_BYTES / 4 - MRD_UDP_HEADER_ROOM) / 64 * 64,
    MRD_UDP_RCVBUF_BYTES = 4 << 20,
    MRD_UDP_SNDBUF_BYTES = 1 << 20,
};

/* What this machine may refuse: see udp_lacks.c. */
enum mrd_udp_ability {
    MRD_UDP_LACKS_V6ONLY,
    MRD_UDP_LACKS_RXQ_OVFL,
    MRD_UDP_LACKS_RECVTOS,
    MRD_UDP_LACKS_RECVTCLASS,
    MRD_UDP_LACKS_PKTINFO,
    MRD_UDP_LACKS_RECVPKTINFO,
    MRD_UDP_LACKS_GRO,
    MRD_UDP_LACKS_GSO,
    MRD_UDP_LACKS_DF,
    MRD_UDP_LACKS_DF6,
    MRD_UDP_LACKS_TOS,
    MRD_UDP_LACKS_TCLASS,
    MRD_UDP_LACKS_RECVERR,
    MRD_UDP_LACKS_RECVERR6,
    MRD_UDP_LACKS_MTU,
    MRD_UDP_LACKS_MTU6,
    MRD_UDP_LACKS_SENDMMSG,
};

/* Abilities of the machine that a mover shall not use, so that tests reach the fallbacks. */
enum mrd_udp_without {
    MRD_UDP_WITHOUT_IPV6 = 1 << 0,
    MRD_UDP_WITHOUT_GSO = 1 << 1,
    MRD_UDP_WITHOUT_GRO = 1 << 2,
};

union mrd_udp_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

struct mrd_udp_path {
    int fd;
    uint16_t port;
    /* To `peer`: messages to it from `local` need no route look-up, all others name their source. */
    bool connected;
    uint16_t streak; /* messages to `peer` in a row that the connection did not serve */
    struct mrd_addr peer;
    struct mrd_addr local;  /* of the connection; port 0 */
    struct mrd_addr wanted; /* the source that packets had when it was connected; port 0 */
    uint64_t checked_ns;    /* when a message by the connection named its source last */
};

/* What the kernel knows of the route to an address. */
struct mrd_udp_route {
    struct mrd_addr source; /* the address that it would send from; port 0 */
    uint32_t mtu;
    bool local; /* the destination is this machine */
};

enum { MRD_UDP_TOO_BIG_MAX = 64, MRD_UDP_NO_GSO_MAX = 16 };
enum { MRD_UDP_REFUSED_MAX = 64, MRD_UDP_ASKED = 8 };
enum {
    MRD_UDP_SOURCES_MIN = 64,
    MRD_UDP_SOURCES_MAX = 1 << 15,
    MRD_UDP_OWN_MAX = 64,
};

/* The address that packets to `to` leave from, if they bring none that works. */
struct mrd_udp_source {
    bool used;
    uint32_t turn;          /* other_source(): the candidate to try next */
    struct mrd_addr to;     /* the destination; port 0 */
    struct mrd_addr source; /* all zero: none was found yet; port 0 */
    struct mrd_addr dead;   /* the kernel refused to send from it; all zero: none */
    uint64_t dead_ns;       /* when it did */
    uint64_t used_ns;       /* when a packet needed `source` last */
    uint64_t sought_ns;     /* when another source was looked for last, as one was refused */
    uint64_t turned_ns;     /* when other_source() changed it last */
};

/* What was chosen, for each destination: see udp_source.c. */
struct mrd_udp_sources {
    struct mrd_udp_source *slots; /* a hash table by `to`, half full at most unless at its bound */
    uint32_t num_slots;           /* a power of 2, MRD_UDP_SOURCES_MIN .. MRD_UDP_SOURCES_MAX */
    uint32_t num_used;
    uint64_t dead_until_ns;               /* no slot has a source that is dead from then on */
    struct mrd_addr own[MRD_UDP_OWN_MAX]; /* this machine's addresses, on interfaces that run */
    unsigned num_own;
    uint64_t own_ns; /* when they were listed; 0: never */
};

struct mrd_udp_too_big {
    struct mrd_addr to;
    uint32_t payload_bytes;
};

enum { MRD_UDP_TX_MESSAGES = 16, MRD_UDP_TX_IOV = 1024 };

/* The messages of one sendmmsg(), all by one socket; each is one packet or one superpacket. */
struct mrd_udp_tx_batch {
    unsigned num_messages, num_iov;
    unsigned packets[MRD_UDP_TX_MESSAGES]; /* number of packets in each message */
    struct mmsghdr messages[MRD_UDP_TX_MESSAGES];
    union mrd_udp_sockaddr names[MRD_UDP_TX_MESSAGES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)) +
                   CMSG_SPACE(sizeof(uint16_t))];
    } control[MRD_UDP_TX_MESSAGES];
    struct iovec iov[MRD_UDP_TX_IOV];
};

struct mrd_udp_tx {
    struct mrd_udp_path *paths;
    unsigned num_paths, max_paths;
    bool fixed_ports;
    bool gso;                                   /* send superpackets, but not to no_gso[] */
    struct mrd_addr no_gso[MRD_UDP_NO_GSO_MAX]; /* their routes refused one */
    unsigned num_no_gso;
    struct mrd_udp_sources sources;
    uint64_t now_ns;   /* of this tx_burst(), by mrd_udp_coarse_ns() */
    bool naming_works; /* a message that named its source was sent */
    bool nameless;     /* the system refuses such messages */
    struct mrd_udp_too_big too_big[MRD_UDP_TOO_BIG_MAX];
    unsigned num_too_big;
    struct mrd_addr refused[MRD_UDP_REFUSED_MAX]; /* where nobody listens: reports not yet told */
    unsigned num_refused;
    uint16_t asked[MRD_UDP_ASKED]; /* the last paths that packets to peers never heard of left by */
    unsigned num_asked;            /* free-running */
    /*
     * The errno logged last: the same one is not logged again, so that a dead route cannot fill
     * the log.
     */
    int logged_error;
    uint64_t lost; /* packets that the kernel refused to send */
    struct mrd_udp_tx_batch batch;
};

/* A received datagram, or superpacket: datagrams of one sender that the kernel has coalesced. */
struct mrd_udp_arrival {
    struct mrd_addr from, to;
    uint8_t ecn;
    uint32_t segment_len, total_len;
    unsigned segments; /* datagrams: ceil(total_len / segment_len); 0: nothing is here */
    unsigned next;     /* the next segment to report to the engine */
    /* The segments before it were received straight into place; their headers are in rx->heads. */
    unsigned planned;
    uint32_t head_len;    /* header bytes of each planned segment */
    const uint8_t *bytes; /* in staging: the segments from `planned` on */
};

enum {
    MRD_UDP_STAGING_BYTES = 512 << 10,
    /* Free bytes of staging before each receive: the largest superpacket. */
    MRD_UDP_DATAGRAM_ROOM = 64 << 10,
    MRD_UDP_RX_MANY = MRD_UDP_STAGING_BYTES / MRD_UDP_DATAGRAM_ROOM, /* that one call receives */
    MRD_UDP_RX_IOV = MRD_PLAN_SEGMENTS_MAX * 3 + MRD_SEGMENT_PIECES_MAX + 1,
};

struct mrd_udp_rx {
    int fd;
    uint16_t port;
    bool peeking; /* peek at headers before receiving: the last datagrams were long */
    bool quiet;   /* the last receive found the socket empty */
    bool lent;    /* the engine has packets that it did not return yet */
    /* No coalescing, no control data: datagrams come short and alone. Only if `bound`. */
    bool lean;
    /* Short datagrams in a row that came alone, the socket having been empty before. */
    unsigned single_run;
    unsigned small_run; /* short datagrams since the last long one, while `peeking` */
    /*
     * Most datagrams that come are short, and several wait: some are received by each call, and none is
     * peeked at. `short_score` is what that saved lately. `many_next` is the next of `many`, of which
     * there are num_many.
     */
    bool takes_many;
    bool one_by_one; /* the system refuses recvmmsg() */
    unsigned short_score, num_many, many_next;
    struct mrd_udp_arrival many[MRD_UDP_RX_MANY];
    /* `arrival` and `peek` describe the datagram that the next recvmsg() will return. */
    bool peeked;
    uint32_t drop_ppm;
    uint32_t overflow; /* datagrams dropped at a full receive buffer, as counted by the kernel */
    uint32_t overflow_logged;
    uint32_t staged; /* bytes of `staging` in use */
    struct mrd_rng rng;
    struct mrd_udp_arrival arrival; /* the last one received; segments before `next` are reported */
    struct mrd_rx_plan plan;
    struct iovec iov[MRD_UDP_RX_IOV];
    uint8_t peek[MRD_HEAD_PEEK_BYTES];
    uint8_t heads[MRD_PLAN_SEGMENTS_MAX][MRD_HEAD_PEEK_BYTES];
    uint8_t *staging;
    struct {
        /* Datagrams received without a peek; calls for several; peeks; receives into planned places. */
        uint64_t plain, many, peeks, straight;
    } count;
};

struct mrd_udp {
    struct mrd_backend base;
    unsigned without; /* enum mrd_udp_without */
    uint32_t lacks;   /* a bit for each enum mrd_udp_ability: asked for, and refused */
    /* Of all sockets. AF_INET6 takes both families unless bound to an address. */
    int family;
    int ask_fd;            /* not connected between two questions: see udp_route.c */
    uint32_t bound_device; /* index of the device that sockets are born bound to (a VRF), or 0 */
    struct mrd_addr bound; /* address that all sockets are bound to; all zero: any */
    uint32_t mtu;          /* most payload bytes a packet, as the user asked; 0: our choice */
    uint8_t tos;           /* of the path sockets; of packets that say nothing else */
    bool no_ect;           /* no packet has ECT */
    struct mrd_udp_tx tx;
    struct mrd_udp_rx rx;
};

/* The TOS or traffic class of packets: the DSCP, and ECT(0) if it may be marked. */
static inline uint8_t mrd_udp_tos(uint8_t dscp, bool ect)
{
    return (uint8_t)(dscp << 2 | (ect ? MRD_ECN_ECT0 : MRD_ECN_NOT_ECT));
}

static inline struct mrd_udp *mrd_udp_of(struct mrd_backend *b)
{
    return (struct mrd_udp *)b; /* base is the first field */
}

#endif
