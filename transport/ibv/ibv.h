/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet mover over unreliable datagram (UD) queue pairs of libibverbs, as its own files
 * see it.
 *
 * A path is (local QP, address handle, remote QPN). Which of them decides the UDP source port, and
 * so the route that ECMP takes, is the device's habit: enum mrd_ibv_entropy. All QPs share one pair
 * of completion queues and, where the device has them, one shared receive queue. Peers are known by
 * our header, never by the QPN that a packet came from.
 *
 * ibv.c opens, closes, sleeps; ibv_port.c chooses device, port, GID and sizes; ibv_queue.c makes
 * queues; ibv_addr.c knows address strings; ibv_remote.c address handles; ibv_tx.c and ibv_rx.c
 * move packets.
 */
#ifndef MRD_TRANSPORT_IBV_H
#define MRD_TRANSPORT_IBV_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <string.h>

#include "core/hash.h"
#include "core/list.h"
#include "core/rng.h"
#include "transport/backend.h"

enum {
    MRD_IBV_PATHS_DEFAULT = 32,
    MRD_IBV_QPS_DEFAULT = 16, /* paths where each takes a QP: devices have caches for few of them */
    MRD_IBV_PATHS_MAX = 256,
    MRD_IBV_PATHS_GROWTH = 4, /* new_path() goes up to so many times the paths of the start */
    MRD_IBV_PAIR_QPS = 8,     /* QPs of an end where pairs of QPs are paths */

    MRD_IBV_MTU_MIN = 1024,   /* below it an ack of a full tracker would not fit */
    MRD_IBV_HEADER_ROOM = 96, /* our header in front of a payload */
    MRD_IBV_GRH_BYTES = 40,   /* in front of every received datagram */
    MRD_IBV_PIECES = 2,       /* of a datagram sent: what we wrote, and the user's memory */
    MRD_IBV_HOP_LIMIT = 64,
    MRD_IBV_QKEY = 0x6d7264,

    MRD_IBV_TX_SLOTS = 512, /* datagrams at the device */
    MRD_IBV_TX_SLOTS_MIN = 64,
    MRD_IBV_QP_DEPTH = 64, /* of these on one QP, where there are several */
    MRD_IBV_RX_BYTES = 2 << 20,
    MRD_IBV_RX_SLOTS_MIN = 64,
    MRD_IBV_INLINE_BYTES = 256, /* an ack with a few slices and paths */
    MRD_IBV_SIGNAL_EVERY = 8,   /* send completions asked for: of every so many, and of the last */
    MRD_IBV_REMOTES_SPARE =
        256, /* address handles kept beyond max_peers: strangers are answered too */
};

/* What tells paths apart. */
enum mrd_ibv_entropy {
    MRD_IBV_BY_AH = 0, /* the AH's flow label becomes the source port */
    MRD_IBV_BY_QP,     /* the port follows from the local QPN */
    MRD_IBV_BY_QPAIR,  /* both QPNs decide; for devices that nobody looked at */
};

/* What was found out about the device when it was opened. */
struct mrd_ibv_port {
    uint8_t num;
    uint32_t gid_index;
    union ibv_gid gid;
    bool v4; /* the GID is an IPv4 address: so are all that it talks to */
    uint32_t mtu;
    uint64_t link_bps; /* 0: a software device, whose rate means nothing */
    enum mrd_ibv_entropy entropy;
    uint32_t max_qps, qp_depth, tx_slots, rx_slots;
    bool has_srq;
    bool gathers; /* a datagram may have the user's memory as its second piece */
};

#define MRD_IBV_NONE UINT32_MAX

/* A datagram at the device, from posting until its completion came. */
struct mrd_ibv_tx_slot {
    uint64_t cookie;
    struct mrd_ibv_remote *remote;
    uint32_t generation; /* in the wr_id too: completions of a QP that was reset since are stale */
    uint32_t next;       /* on its QP's list, the free list or the done list */
    uint16_t qp;
    bool signaled;
};

struct mrd_ibv_rx_slot {
    uint32_t generation;
    uint16_t qp; /* whose receive queue has it; 0 with an SRQ */
    bool posted;
};

struct mrd_ibv_qp {
    struct ibv_qp *qp;
    uint32_t head, tail; /* tx slots posted, oldest first; head MRD_IBV_NONE: none */
    uint32_t num_posted, num_signaled;
    uint32_t max_inline;
    bool dead; /* could not be brought back after an error */
};

/*
 * Address handles to a GID; where pairs of QPs are paths, also the peer's QPNs, and then its first
 * is in the key.
 */
struct mrd_ibv_remote {
    struct mrd_hash_node by_key;
    struct mrd_node used; /* longest unused first */
    struct mrd_addr key;
    uint32_t num_posted; /* datagrams that its handles are in use for */
    uint64_t failed_ns;  /* when a handle could last not be made; 0: never */
    uint32_t num_qpns;
    uint32_t qpn[MRD_IBV_PAIR_QPS];
    struct ibv_ah *ah[]; /* by path, or only the first */
};

struct mrd_ibv_remotes {
    struct mrd_hash hash;
    struct mrd_node used;
    uint32_t num, max;
    uint32_t num_ahs; /* of each */
};

struct mrd_ibv {
    struct mrd_backend base;
    char name[32];
    struct mrd_ibv_port port;
    uint32_t payload_bytes;
    uint32_t num_paths, max_paths;
    uint32_t label_base; /* flow labels of paths start there */
    struct mrd_rng rng;
    uint32_t drop_ppm;

    struct ibv_context *verbs;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr; /* of `memory` */
    uint8_t *memory;   /* receive slots, then send slots */
    size_t memory_bytes;
    uint32_t rx_stride, tx_stride;
    struct mrd_ibv_qp *qps;
    uint32_t num_qps;

    struct mrd_ibv_tx_slot *tx_slots;
    uint32_t tx_free, tx_num_free;
    uint32_t tx_done; /* of packets whose cookies are not told yet */
    struct mrd_ibv_rx_slot *rx_slots;
    uint32_t *rx_idle; /* slots that wait to be posted, of rx_num_idle */
    uint32_t rx_num_idle;
    struct mrd_ibv_remotes remotes;

    /* Sleeping. The first three are also touched by wait(), which runs without the lock. */
    atomic_bool want_armed, armed, woken;
    atomic_bool done_waits; /* cookies wait to be told */
    bool fd_used;
    int epoll_fd;
    unsigned event_turn;
    atomic_bool gone; /* DEVICE_FATAL came */
    int logged_error; /* last errno of a failed post, so that it does not flood the log */
};

static inline struct mrd_ibv *mrd_ibv_of(struct mrd_backend *b)
{
    return (struct mrd_ibv *)(void *)b; /* base is the first field */
}

/* A GID that is an IPv4 address, mapped into IPv6. */
static inline bool mrd_ibv_is_v4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

/* -------------------------------------------------------------------- ibv_port.c */

/* 0 or -errno with mrd_error_set(): the device opened, its port, GID, MTU, habits and sizes. */
int mrd_ibv_port_open(struct mrd_ibv *ibv, const struct mrd_context_attr *attr);

/* -------------------------------------------------------------------- ibv_queue.c */

/*
 * 0 or -errno with mrd_error_set(). Ended in two steps, which take half-made ones too: queue pairs,
 * then address handles (ibv_remote.c), then the rest.
 */
int mrd_ibv_queues_init(struct mrd_ibv *ibv);
void mrd_ibv_qps_fini(struct mrd_ibv *ibv);
void mrd_ibv_queues_fini(struct mrd_ibv *ibv);
int mrd_ibv_qp_add(struct mrd_ibv *ibv);
/* Through RESET to RTS again, after an error; what was posted counts as done. */
void mrd_ibv_qp_revive(struct mrd_ibv *ibv, uint32_t index);
/* The sentence for memory that could not be pinned; returns -errno. */
int mrd_ibv_memory_error(const struct mrd_ibv *ibv, const char *what, size_t bytes);

/* -------------------------------------------------------------------- ibv_addr.c */

int mrd_ibv_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
int mrd_ibv_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len);
int mrd_ibv_self_address(struct mrd_backend *b, struct mrd_addr *addr);
/* An IP address or GID in text; IPv4 becomes v4-mapped. false: it is none. */
bool mrd_ibv_parse_gid(const char *text, union ibv_gid *gid);

/* -------------------------------------------------------------------- ibv_remote.c */

int mrd_ibv_remotes_init(struct mrd_ibv *ibv, uint32_t max);
void mrd_ibv_remotes_fini(struct mrd_ibv *ibv);
/* The entry for an address, made if need be; NULL: the table is full of busy ones. */
struct mrd_ibv_remote *mrd_ibv_remote_for(struct mrd_ibv *ibv, const struct mrd_addr *addr);
struct mrd_ibv_remote *mrd_ibv_remote_find(struct mrd_ibv *ibv, const struct mrd_addr *addr);
/* The handle that a path takes; NULL with errno: it cannot be made now. */
struct ibv_ah *mrd_ibv_remote_ah(struct mrd_ibv *ibv, struct mrd_ibv_remote *remote, uint32_t path);
void mrd_ibv_remote_learn(struct mrd_ibv_remote *remote, uint32_t qpn);
/* Not 0, and with a source port that no other path of ours has. */
uint32_t mrd_ibv_flow_label(const struct mrd_ibv *ibv, uint32_t path);
int mrd_ibv_payload_bytes(struct mrd_backend *b, const struct mrd_addr *to);

/* -------------------------------------------------------------------- ibv_tx.c, ibv_rx.c */

unsigned mrd_ibv_tx_burst(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n);
unsigned mrd_ibv_tx_reap(struct mrd_backend *b, uint64_t *cookies, unsigned max);
/* Take completions of sends. */
void mrd_ibv_tx_poll(struct mrd_ibv *ibv);
/* All that is posted on a QP is done: it was reset. */
void mrd_ibv_tx_forget(struct mrd_ibv *ibv, struct mrd_ibv_qp *qp);

unsigned mrd_ibv_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg);
void mrd_ibv_rx_return(struct mrd_backend *b);
/* Post the idle slots. */
void mrd_ibv_rx_post(struct mrd_ibv *ibv);
void mrd_ibv_rx_forget(struct mrd_ibv *ibv, uint32_t qp);

#endif
