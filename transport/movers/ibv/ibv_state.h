/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA packet mover, over unreliable datagram (UD) queue pairs of libibverbs: the state that its
 * files share.
 *
 * A path is a triple (local QP, address handle, remote QPN). Which of the three decides the UDP
 * source port, and so the route that ECMP takes, depends on the device: enum mrd_ibv_entropy. All
 * QPs share one pair of completion queues and, where the device has them, one shared receive queue.
 * Our header names the peer that a packet comes from, never the QPN that it came from.
 *
 * ibv.c opens, closes, sleeps; ibv_port.c chooses device, port, GID and sizes; ibv_slot.c keeps
 * what is at the device; ibv_queue.c makes queues; ibv_addr.c converts addresses; ibv_remote.c keeps
 * address handles; ibv_tx.c and ibv_rx.c move packets.
 */
#ifndef MRD_TRANSPORT_IBV_STATE_H
#define MRD_TRANSPORT_IBV_STATE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/hash.h"
#include "core/list.h"
#include "core/rng.h"
#include "transport/backend.h"

enum {
    MRD_IBV_PATHS_DEFAULT = 32,
    MRD_IBV_QPS_DEFAULT = 16, /* paths where each takes a QP: devices cache the state of few QPs */
    MRD_IBV_PATHS_MAX = 256,
    MRD_IBV_PATHS_GROWTH = 4, /* new_path() adds paths up to so many times the first number */
    MRD_IBV_PAIR_QPS = 8,     /* QPs at each end where pairs of QPs are paths */

    MRD_IBV_MTU_MIN = 1024,   /* with less, an ack of a full tracker would not fit */
    MRD_IBV_HEADER_ROOM = 96, /* room for our header in front of a payload */
    MRD_IBV_GRH_BYTES = 40,   /* global routing header, in front of every received datagram */
    MRD_IBV_PIECES = 2,       /* pieces of a datagram sent: our header, the user's memory */
    MRD_IBV_HOP_LIMIT = 64,
    MRD_IBV_QKEY = 0x6d7264,

    MRD_IBV_TX_SLOTS = 512, /* datagrams at the device, at most */
    MRD_IBV_TX_SLOTS_MIN = 64,
    MRD_IBV_QP_DEPTH = 64, /* datagrams at one QP, where there are several */
    MRD_IBV_RX_BYTES = 2 << 20,
    MRD_IBV_RX_SLOTS_MIN = 64,
    MRD_IBV_INLINE_BYTES = 256, /* asked of a QP: enough for a short ack */
    MRD_IBV_SIGNAL_EVERY = 8,   /* a send completion is asked for every so many, and for the last */
    /* Entries kept beyond max_peers: strangers are answered too. */
    MRD_IBV_REMOTES_SPARE = 256,
};

/* Where a path's entropy comes from: what makes the device take another UDP source port. */
enum mrd_ibv_entropy {
    MRD_IBV_BY_AH = 0, /* the port follows from the flow label of the address handle (AH) */
    MRD_IBV_BY_QP,     /* the port follows from the local QPN */
    MRD_IBV_BY_QPAIR,  /* the port follows from both QPNs, as may be on unknown devices */
};

/* What was found out about device and port at open. */
struct mrd_ibv_port {
    uint8_t num;
    uint32_t gid_index;
    union ibv_gid gid;
    bool v4; /* the GID is an IPv4 address, so peers' GIDs must be, too */
    uint32_t mtu;
    uint64_t link_bps; /* bits per second; 0: a software device, whose rate means nothing */
    enum mrd_ibv_entropy entropy;
    uint32_t max_qps, qp_depth, tx_slots, rx_slots;
    bool has_srq;
    bool gathers; /* the device can send a datagram from two pieces of memory */
};

#define MRD_IBV_NONE UINT32_MAX

/*
 * A datagram at the device: from posting until its completion and, if it has one, its
 * cookie's report.
 */
struct mrd_ibv_tx_slot {
    uint64_t cookie;
    struct mrd_ibv_remote *remote;
    /* Also in the wr_id, so that a completion from before a reset of the QP is recognised. */
    uint32_t generation;
    uint32_t next; /* next on the QP's list, the free list or the done list */
    uint16_t qp;
    bool signaled;
};

struct mrd_ibv_rx_slot {
    uint32_t generation;
    uint16_t qp; /* the QP at whose receive queue it is; 0 with an SRQ */
    bool posted;
};

struct mrd_ibv_qp {
    struct ibv_qp *qp;
    uint32_t head, tail; /* list of posted tx slots, oldest first; head MRD_IBV_NONE: empty */
    uint32_t num_posted, num_signaled;
    uint32_t max_inline;
    bool dead; /* failed, and could not be made ready again */
};

/*
 * The address handles to a peer's GID. With MRD_IBV_BY_QPAIR also the peer's QPNs, the first of
 * which is then part of the key.
 */
struct mrd_ibv_remote {
    struct mrd_hash_node by_key;
    struct mrd_node used; /* list, longest unused first */
    struct mrd_addr key;
    uint32_t num_posted; /* posted datagrams that use its handles */
    uint64_t failed_ns;  /* when making a handle last failed; 0: not since one was made */
    uint32_t num_qpns;
    uint32_t qpn[MRD_IBV_PAIR_QPS];
    struct ibv_ah *ah[]; /* by path with MRD_IBV_BY_AH, else only [0] */
};

struct mrd_ibv_remotes {
    struct mrd_hash hash;
    struct mrd_node used;
    uint32_t num, max;
    uint32_t num_ahs; /* handles in each entry */
};

struct mrd_ibv {
    struct mrd_backend base;
    char name[32];
    struct mrd_ibv_port port;
    uint32_t payload_bytes;
    uint32_t num_paths, max_paths;
    uint32_t label_base; /* offset of the paths' flow labels: mrd_ibv_flow_label() */
    struct mrd_rng rng;
    uint32_t drop_ppm;
    uint8_t dscp; /* of the context */
    uint8_t ecn;  /* enum mrd_ecn, of all packets */

    struct ibv_context *verbs;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr; /* registers `memory` */
    uint8_t *memory;   /* receive slots, then send slots */
    size_t memory_bytes;
    uint32_t rx_stride, tx_stride;
    struct mrd_ibv_qp *qps;
    uint32_t num_qps;

    struct mrd_ibv_tx_slot *tx_slots;
    uint32_t tx_free, tx_num_free;
    uint32_t tx_done; /* list of slots whose cookies tx_reap() has still to return */
    struct mrd_ibv_rx_slot *rx_slots;
    uint32_t *rx_idle; /* rx_num_idle receive slots that are not posted */
    uint32_t rx_num_idle;
    struct mrd_ibv_remotes remotes;

    /* Sleeping. wait() reads and writes these atomics without the lock. */
    atomic_bool want_armed, armed, woken;
    atomic_bool done_waits; /* tx_done is not empty */
    atomic_bool fd_used;
    int epoll_fd;
    unsigned event_turn;
    atomic_bool gone; /* the device reported IBV_EVENT_DEVICE_FATAL */
    /* The errno of a failed post logged last: the same one is not logged again. */
    int logged_error;
};

static inline struct mrd_ibv *mrd_ibv_of(struct mrd_backend *b)
{
    return (struct mrd_ibv *)(void *)b; /* base is the first field */
}

static inline uint64_t mrd_ibv_now_ns(struct mrd_backend *b)
{
    struct timespec ts;

    (void)b;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Is the GID an IPv4 address, mapped into IPv6? */
static inline bool mrd_ibv_is_v4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

#endif
