/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP packet mover, as its own files see it.
 *
 * A mover has one receive socket, the only one that is read, and P source sockets: each is a path,
 * for its source port decides the route that ECMP takes. Peers answer to the receive socket, whose
 * port their headers carry. udp.c opens and closes; udp_socket.c makes sockets; udp_addr.c knows
 * address strings; udp_route.c asks the kernel about routes; udp_tx.c and udp_rx.c move packets.
 */
#ifndef MRD_TRANSPORT_UDP_H
#define MRD_TRANSPORT_UDP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/rng.h"
#include "transport/backend.h"

enum {
    MRD_UDP_PATHS_DEFAULT = 32,
    MRD_UDP_PATHS_MAX = 256,
    MRD_UDP_PATHS_GROWTH = 4, /* new_path() goes up to so many times the paths of the start */

    MRD_UDP_SEGMENTS_MAX = 64, /* of a superpacket that we send; every kernel takes so many */
    MRD_UDP_SUPERPACKET_BYTES =
        65000, /* lo splits superpackets above 65,493 payload bytes, silently */
    MRD_UDP_PAYLOAD_DEFAULT = 4096,
    MRD_UDP_HEADER_ROOM = 96, /* our header in front of a payload */
    MRD_UDP_RCVBUF_BYTES = 4 << 20,
    MRD_UDP_SNDBUF_BYTES = 1 << 20,
};

/* What a mover shall do without, though the machine has it. For tests of the fallbacks. */
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
    bool connected;  /* for good: sends to `peer` need no route look-up, others name their source */
    uint16_t streak; /* messages in a row to `peer`, while not connected */
    struct mrd_addr peer;
};

/* What the kernel thinks of the way to an address. */
struct mrd_udp_route {
    struct mrd_addr source; /* the address it would send from; port 0 */
    uint32_t mtu;
    bool local; /* the destination is this machine */
};

enum { MRD_UDP_SOURCES = 64, MRD_UDP_TOO_BIG_MAX = 64, MRD_UDP_NO_GSO_MAX = 16 };

/* A remembered answer: packets to `to` leave from `source` when they name no source. */
struct mrd_udp_source {
    struct mrd_addr to; /* port 0 */
    struct mrd_addr source;
    uint64_t made_ns; /* 0: unused */
};

struct mrd_udp_too_big {
    struct mrd_addr to;
    uint32_t payload_bytes;
};

enum { MRD_UDP_TX_MESSAGES = 16, MRD_UDP_TX_IOV = 1024 };

/* The messages of one sendmmsg(): one socket, each message one packet or one superpacket. */
struct mrd_udp_tx_batch {
    unsigned num_messages, num_iov;
    unsigned packets[MRD_UDP_TX_MESSAGES]; /* packets of each message */
    struct mmsghdr messages[MRD_UDP_TX_MESSAGES];
    union mrd_udp_sockaddr names[MRD_UDP_TX_MESSAGES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
    } control[MRD_UDP_TX_MESSAGES];
    struct iovec iov[MRD_UDP_TX_IOV];
};

struct mrd_udp_tx {
    struct mrd_udp_path *paths;
    unsigned num_paths, max_paths;
    bool fixed_ports;
    bool gso;                                   /* superpackets, save to the destinations below */
    struct mrd_addr no_gso[MRD_UDP_NO_GSO_MAX]; /* their route refused a superpacket */
    unsigned num_no_gso;
    struct mrd_udp_source sources[MRD_UDP_SOURCES]; /* by hash of the destination */
    struct mrd_udp_too_big too_big[MRD_UDP_TOO_BIG_MAX];
    unsigned num_too_big;
    int logged_error; /* the errno last logged, so that a dead route does not flood the log */
    uint64_t lost;    /* packets that the kernel refused for good */
    struct mrd_udp_tx_batch batch;
};

/*
 * What recvmsg() told of a datagram, or of a superpacket: the kernel's coalesced row of datagrams.
 */
struct mrd_udp_arrival {
    struct mrd_addr from, to;
    uint8_t ecn;
    uint32_t segment_len, total_len;
    unsigned segments;    /* ceil(total_len / segment_len); 0: nothing here */
    unsigned next;        /* segments before it are reported */
    unsigned planned;     /* segments before it were received straight: headers in rx->heads */
    uint32_t head_len;    /* of each of those */
    const uint8_t *bytes; /* the segments from `planned` on */
};

enum {
    MRD_UDP_STAGING_BYTES = 256 << 10,
    MRD_UDP_DATAGRAM_ROOM = 64 << 10, /* the largest superpacket fits */
    MRD_UDP_RX_IOV = MRD_PLAN_SEGMENTS_MAX * 3 + MRD_SEGMENT_PIECES_MAX + 1,
};

struct mrd_udp_rx {
    int fd;
    uint16_t port;
    bool peeking;        /* look at the header before receiving: the last datagrams were long */
    bool quiet;          /* the last look found nothing */
    bool lent;           /* packets reported were not returned yet */
    bool lean;           /* no coalescing and no control data: one short datagram at a time comes */
    unsigned single_run; /* short datagrams in a row that came after silence and alone */
    unsigned small_run;  /* short datagrams since the last long one */
    bool peeked; /* `arrival` and `peek` describe the datagram that the next recvmsg() gives */
    uint32_t drop_ppm;
    uint32_t overflow; /* datagrams lost to a full receive buffer, as the kernel counts them */
    uint32_t overflow_logged;
    uint32_t staged; /* bytes used of `staging` */
    struct mrd_rng rng;
    struct mrd_udp_arrival arrival; /* received, as far as `next` reported */
    struct mrd_rx_plan plan;
    struct iovec iov[MRD_UDP_RX_IOV];
    uint8_t peek[MRD_HEAD_PEEK_BYTES];
    uint8_t heads[MRD_PLAN_SEGMENTS_MAX][MRD_HEAD_PEEK_BYTES];
    uint8_t *staging;
    struct {
        uint64_t plain, peeks, straight; /* receives without a look, looks, receives by a plan */
    } count;
};

struct mrd_udp {
    struct mrd_backend base;
    unsigned without; /* enum mrd_udp_without */
    int family;       /* of all sockets: AF_INET6 takes both families unless bound to an address */
    struct mrd_addr bound; /* address of all sockets; all zero: any */
    uint32_t mtu;          /* payload bytes asked for, or 0 */
    struct mrd_udp_tx tx;
    struct mrd_udp_rx rx;
};

/* -------------------------------------------------------------------- udp.c */

/* mrd_udp_ops.open without some of the machine's abilities. */
struct mrd_backend *mrd_udp_open_without(const struct mrd_context_attr *attr, unsigned without,
                                         int *error);

static inline struct mrd_udp *mrd_udp_of(struct mrd_backend *b)
{
    return (struct mrd_udp *)b; /* base is the first field */
}

/* -------------------------------------------------------------------- udp_socket.c */

/*
 * All return -errno after mrd_error_set(). The family is chosen by the address that is bound and by
 * what the machine has. A source socket takes `port`, 0: an ephemeral one.
 */
int mrd_udp_family_choose(struct mrd_udp *udp);
int mrd_udp_open_rx(struct mrd_udp *udp, uint16_t port);
int mrd_udp_open_path(struct mrd_udp *udp, uint16_t port);
/* Allow fragments to leave by a source socket, or forbid them. */
int mrd_udp_set_fragment(const struct mrd_udp *udp, int fd, bool allowed);

/* -------------------------------------------------------------------- udp_addr.c */

bool mrd_udp_addr_is_v4(const struct mrd_addr *addr);
bool mrd_udp_addr_is_any(const struct mrd_addr *addr); /* as in "all zero" */
bool mrd_udp_addr_is_loopback(const struct mrd_addr *addr);
bool mrd_udp_addr_is_link_local(
    const struct mrd_addr *addr); /* of IPv6: means nothing without its scope */
bool mrd_udp_addr_same_ip(const struct mrd_addr *a, const struct mrd_addr *b);
/*
 * A family AF_INET address needs mrd_udp_addr_is_v4() or mrd_udp_addr_is_any(). Returns its length.
 */
socklen_t mrd_udp_to_sockaddr(int family, const struct mrd_addr *addr, union mrd_udp_sockaddr *sa);
void mrd_udp_from_sockaddr(const union mrd_udp_sockaddr *sa, struct mrd_addr *addr);
void mrd_udp_from_v4(struct in_addr in, struct mrd_addr *addr); /* ip only */
/* An IP address without a port, for binding: 0 or -errno with mrd_error_set(). */
int mrd_udp_parse_ip(const char *text, struct mrd_addr *addr);
int mrd_udp_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
int mrd_udp_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len);
int mrd_udp_self_address(struct mrd_backend *b, struct mrd_addr *addr);

/* -------------------------------------------------------------------- udp_route.c */

/* 0 or -errno, without mrd_error_set(). */
int mrd_udp_route(const struct mrd_udp *udp, const struct mrd_addr *to,
                  struct mrd_udp_route *route);
/* The payload that fits a route; 0: not even 64 bytes. `wanted` 0: our choice. */
uint32_t mrd_udp_payload_fit(const struct mrd_udp_route *route, bool v4, uint32_t wanted);
int mrd_udp_payload_bytes(struct mrd_backend *b, const struct mrd_addr *to);
/* The source that packets to `to` leave from when they name none; false: no route. */
bool mrd_udp_source_default(struct mrd_udp *udp, const struct mrd_addr *to,
                            struct mrd_addr *source);
/* A packet to `to` need not name `from`: the kernel takes it anyway. */
bool mrd_udp_source_is_default(struct mrd_udp *udp, const struct mrd_addr *to,
                               const struct mrd_addr *from);
void mrd_udp_too_big_add(struct mrd_udp *udp, const struct mrd_addr *to);
bool mrd_udp_too_big(struct mrd_backend *b, struct mrd_addr *to, uint32_t *payload_bytes);

/* -------------------------------------------------------------------- udp_tx.c, udp_rx.c */

unsigned mrd_udp_tx_burst(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n);
unsigned mrd_udp_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg);
void mrd_udp_rx_return(struct mrd_backend *b);

#endif
