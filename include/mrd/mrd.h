/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd: multipath reliable datagrams.
 *
 * A connectionless, reliable transport whose packets are sprayed over many paths. The shape and the names follow
 * libibverbs, so that verbs code ports by renaming; include/PORTING.md names every difference.
 *
 * Call sequence: mrd_get_device_list() or NULL, mrd_open_device(), mrd_alloc_pd(), mrd_reg_mr(), mrd_create_cq(),
 * mrd_create_qp() (usable at once), mrd_query_address() (tell it to the others), mrd_create_ah() from an address
 * that you were told, mrd_post_recv(), mrd_post_send(), mrd_poll_cq(). Tear down in reverse order.
 *
 * Conventions: calls return 0 or a count, or -errno; constructors return NULL and set errno. mrd_last_error() then
 * holds a sentence that names the cause. Times are nanoseconds, sizes are bytes. Objects are allocated by the
 * library only; their fields are readable, never writable. Calls are thread-safe per context unless the context was
 * opened with MRD_THREADING_SINGLE. Use after fork() is an error.
 *
 * Completion contract: a signaled or failed work request gives exactly one completion, an unsignaled success none.
 * Posting reserves room in the completion queue, so a queue cannot overflow. A write's success means that its bytes
 * lie in the target's memory.
 *
 * Versions: a program may be compiled against an older or a newer header than the library's. Structs grow at their
 * end only, and calls are told how long the caller's is: by an argument `size`, or by a macro of the call's name
 * that passes sizeof to the call `..._sized`. A field that is set and that the library does not know is -EINVAL; one
 * that the library does not fill is zero. A size below the first version's is -EINVAL. Bindings of other languages
 * use the `_sized` calls: the functions behind the macros take the structs of version 0.1.
 */
#ifndef MRD_MRD_H
#define MRD_MRD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MRD_VERSION_MAJOR 0
#define MRD_VERSION_MINOR 1
#define MRD_VERSION_PATCH 0

#if defined(__GNUC__)
#define MRD_MUST_CHECK __attribute__((warn_unused_result))
#define MRD_EXPORT     __attribute__((visibility("default")))
#else
#define MRD_MUST_CHECK
#define MRD_EXPORT
#endif

enum {
    MRD_DEFAULT_PORT = 4793,         /* fills in a port that an address string leaves out */
    MRD_ADDRESS_MAX = 128,           /* longest address string, with its NUL */
    MRD_MESSAGE_BYTES_MAX = 1 << 30, /* longest message */
    MRD_SGE_MAX = 16,                /* most entries of a gather or scatter list */
    MRD_INLINE_BYTES_MAX = 1024,     /* most bytes of MRD_SEND_INLINE */
    MRD_RNR_RETRY_FOREVER = 7,
};

/* ------------------------------------------------------------------------------------------------ devices */

/* A packet mover that can be opened: "udp", an RDMA device such as "mlx5_0", a simulated host. */
struct mrd_device {
    char name[32];
    char transport[16]; /* "udp", "ibv" or "sim" */
};

enum mrd_threading {
    MRD_THREADING_MULTI = 0, /* calls lock the context */
    MRD_THREADING_SINGLE, /* the caller serialises all calls on the context; implies no progress thread */
};

enum mrd_progress {
    MRD_PROGRESS_THREAD =
        0, /* inside polls and posts, and in a thread while the application does neither */
    MRD_PROGRESS_MANUAL, /* inside polls, posts and mrd_progress() only */
};

/* Fields of mrd_context_attr whose zero is a value and not "the default"; set their bit to have zero taken. */
enum mrd_context_attr_mask {
    MRD_CONTEXT_ATTR_CHALLENGE = 1 << 0, /* challenge_ns */
    MRD_CONTEXT_ATTR_SEED = 1 << 1,      /* seed */
    MRD_CONTEXT_ATTR_GID_INDEX = 1 << 2, /* gid_index */
};

/* How to open a context. Zero or NULL means the default, except where comp_mask says otherwise. */
struct mrd_context_attr {
    uint64_t comp_mask; /* enum mrd_context_attr_mask; unknown bits are -EINVAL */
    /* Numeric local address to bind; default: any, both families. RDMA: the GID with this address. */
    const char *address;
    const uint16_t *source_ports; /* UDP source ports to send from; default: ephemeral ones */
    uint32_t num_source_ports;    /* entries of source_ports; sets `paths` if that is 0 */
    uint16_t port;     /* UDP receive port; default: ephemeral. A busy port is EADDRINUSE */
    uint16_t port_num; /* RDMA: port of the device; default: 1 */
    uint32_t paths;    /* entropy values to spray over; default: the mover's (16 or 32), most 256 */
    uint32_t
        mtu; /* most payload bytes a packet, multiple of 64; default: what fits, at most 4096 */
    const char *spray; /* "single" "rr" "random" "reps" "adaptive"; default: adaptive */
    const char *cc;    /* "nscc" "dctcp" "swift" "none"; default: nscc */
    uint64_t link_bps; /* the link's rate if you know better than the mover; default: the mover's */
    uint32_t max_peers; /* peer table entries; default: 1024 */
    uint32_t max_flows; /* flows of ordered traffic, and send queues with work; default: 4096 */
    uint64_t
        peer_timeout_ns; /* silence after which a peer with work outstanding is unreachable; default: 8 s */
    uint64_t challenge_ns; /* how long after open first contact costs a round trip; default: 4 s */
    enum mrd_progress progress;
    enum mrd_threading threading;
    uint32_t rx_drop_ppm; /* lose this share of received packets on purpose, per million */
    /* RDMA: entry of the port's GID table; default: a RoCEv2 one, of an IPv4 address where there is one */
    uint32_t gid_index;
    uint64_t seed; /* of all random choices; default: the system's randomness */
    /*
     * RDMA: where a path's entropy comes from. "ah": a flow label per address handle; "qp": several QPs; "qpair":
     * pairs of a QP and a remote QP; default "auto": what the device is known to hash.
     */
    const char *entropy;
};

struct mrd_context {
    const struct mrd_device *device;
    int async_fd; /* readable when mrd_get_async_event() has an event; -1 for simulated contexts */
};

/*
 * All devices that can be opened on this machine: a NULL-terminated array, or NULL with errno. Free it with
 * mrd_free_device_list(); contexts opened from it stay valid.
 */
MRD_EXPORT struct mrd_device **mrd_get_device_list(int *num_devices);
MRD_EXPORT void mrd_free_device_list(struct mrd_device **list);
MRD_EXPORT const char *mrd_get_device_name(const struct mrd_device *device);

/*
 * Open `device` (NULL: the first, which is "udp"). `attr` may be NULL. The environment is applied where `attr`
 * leaves the default: MRD_PATHS, MRD_SPRAY, MRD_CC, MRD_LOG (error|warn|info|debug).
 * NULL with errno: EINVAL (an attribute), EADDRINUSE, EADDRNOTAVAIL, EMFILE, ENOMEM.
 */
MRD_EXPORT struct mrd_context *mrd_open_device(const struct mrd_device *device,
                                               const struct mrd_context_attr *attr);
MRD_EXPORT struct mrd_context *mrd_open_device_sized(const struct mrd_device *device,
                                                     const struct mrd_context_attr *attr,
                                                     size_t size);
#define mrd_open_device(...) mrd_open_device_sized(__VA_ARGS__, sizeof(struct mrd_context_attr))
/* -EBUSY while objects of the context are left. Unacknowledged data to peers is not waited for. */
MRD_EXPORT int mrd_close_device(struct mrd_context *context);

/*
 * The address that others give to mrd_create_ah() to reach this context, for example "192.0.2.7:4793". A context
 * bound to no particular address answers with the machine's first non-loopback address, else loopback.
 * 0, or -ENOSPC if `len` is too small; MRD_ADDRESS_MAX always suffices.
 */
MRD_EXPORT int mrd_query_address(struct mrd_context *context, char *buf, size_t len);

/* ------------------------------------------------------------------------------------------------ memory */

struct mrd_pd {
    struct mrd_context *context;
};

enum mrd_access_flags {
    MRD_ACCESS_LOCAL_WRITE = 1 << 0,  /* may be a receive buffer */
    MRD_ACCESS_REMOTE_WRITE = 1 << 1, /* needs LOCAL_WRITE */
    MRD_ACCESS_REMOTE_READ = 1 << 2,
};

struct mrd_mr {
    struct mrd_context *context;
    struct mrd_pd *pd;
    void *addr;
    size_t length;
    uint32_t lkey;
    uint32_t rkey; /* random; knowing it is the permission that `access` grants */
};

MRD_EXPORT struct mrd_pd *mrd_alloc_pd(struct mrd_context *context);
MRD_EXPORT int mrd_dealloc_pd(struct mrd_pd *pd); /* -EBUSY while MRs, QPs or AHs of it are left */

/* Register [addr, addr + length) as it lies in the process. NULL with errno EINVAL (flags, wrap-around), ENOMEM. */
MRD_EXPORT struct mrd_mr *mrd_reg_mr(struct mrd_pd *pd, void *addr, size_t length, int access);
/*
 * After this call the library touches the memory no more. Work that still used it completes with
 * MRD_WC_LOC_PROT_ERR; a peer's unfinished write into it is refused.
 */
MRD_EXPORT int mrd_dereg_mr(struct mrd_mr *mr);

/* ------------------------------------------------------------------------------------------------ completions */

enum mrd_wc_status {
    MRD_WC_SUCCESS = 0,
    MRD_WC_LOC_LEN_ERR,  /* the message is longer than the receive */
    MRD_WC_LOC_PROT_ERR, /* a local key does not cover the buffer (any more) */
    MRD_WC_WR_FLUSH_ERR, /* the QP went to the error state */
    MRD_WC_REM_INV_REQ_ERR, /* the target refused: no such QP, wrong qkey, or message longer than its receive */
    MRD_WC_REM_ACCESS_ERR, /* the target refused: rkey, range or permission */
    MRD_WC_REM_OP_ERR,     /* the target could not do it (its memory went away) */
    MRD_WC_REM_ABORT_ERR, /* receive: the sender gave the message up half-way, or started a new life */
    MRD_WC_RETRY_EXC_ERR,     /* the peer is unreachable, or lost what it knew of us */
    MRD_WC_RNR_RETRY_EXC_ERR, /* the target had no receive posted, rnr_retry times */
    MRD_WC_GENERAL_ERR,
};

enum mrd_wc_opcode {
    MRD_WC_SEND = 0,
    MRD_WC_RDMA_WRITE,
    MRD_WC_RECV = 128,
    MRD_WC_RECV_RDMA_WITH_IMM,
};

enum mrd_wc_flags {
    MRD_WC_WITH_IMM = 1 << 0,
};

/*
 * One completion. On failure only wr_id, status, vendor_err, qp_num and opcode mean anything. vendor_err tells the
 * refusal code of the peer (core/WIRE.md) or 0. peer_id goes into mrd_query_peer().
 */
struct mrd_wc {
    uint64_t wr_id;
    enum mrd_wc_status status;
    enum mrd_wc_opcode opcode;
    uint32_t vendor_err;
    uint32_t byte_len;
    uint32_t imm_data; /* big-endian, as posted */
    uint32_t qp_num;
    uint32_t src_qp;
    uint32_t peer_id;
    uint32_t wc_flags;
    uint32_t reserved[5];
};

struct mrd_cq {
    struct mrd_context *context;
    void *cq_context;
    int cqe; /* capacity */
};

MRD_EXPORT struct mrd_cq *mrd_create_cq(struct mrd_context *context, int cqe, void *cq_context);
MRD_EXPORT int mrd_destroy_cq(struct mrd_cq *cq); /* -EBUSY while a QP uses it */
/*
 * Take up to `num_entries` completions, making progress where there are none or it is time to. Count, or -errno. Never
 * blocks.
 */
MRD_EXPORT int mrd_poll_cq(struct mrd_cq *cq, int num_entries, struct mrd_wc *wc);
MRD_EXPORT const char *mrd_wc_status_str(enum mrd_wc_status status);

/* ------------------------------------------------------------------------------------------------ queue pairs */

enum mrd_qp_state { MRD_QPS_RTS = 0, MRD_QPS_ERR };

enum mrd_order {
    MRD_ORDER_NONE = 0, /* messages may be delivered in any order */
    MRD_ORDER_MSG,      /* messages of this QP to one remote QP are delivered in the order posted */
};

struct mrd_qp_cap {
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;    /* 0: 1; most MRD_SGE_MAX */
    uint32_t max_recv_sge;    /* 0: 1; most MRD_SGE_MAX */
    uint32_t max_inline_data; /* most MRD_INLINE_BYTES_MAX */
};

enum mrd_qp_init_attr_mask {
    MRD_QP_INIT_ATTR_RNR_RETRY = 1 << 0, /* rnr_retry; otherwise MRD_RNR_RETRY_FOREVER */
};

struct mrd_qp_init_attr {
    uint64_t comp_mask; /* enum mrd_qp_init_attr_mask; unknown bits are EINVAL */
    void *qp_context;
    struct mrd_cq *send_cq;
    struct mrd_cq *recv_cq;
    struct mrd_qp_cap cap;
    int sq_sig_all;
    enum mrd_order order;
    uint32_t qkey; /* senders must name it; 0 is a key like any other */
    uint32_t
        rnr_retry; /* 0..7, 7 = for ever: how often to try again when the target has no receive */
    uint64_t
        rnr_timer_ns; /* asked of those who send to this QP before they try again; default: 100 us */
};

/* A queue pair: a send and a receive queue with a number. It has no connection; it is usable on creation. */
struct mrd_qp {
    struct mrd_context *context;
    void *qp_context;
    struct mrd_pd *pd;
    struct mrd_cq *send_cq;
    struct mrd_cq *recv_cq;
    uint32_t qp_num; /* never used twice in a context's life */
    enum mrd_qp_state state;
    enum mrd_order order;
};

enum mrd_qp_attr_mask {
    MRD_QP_STATE = 1 << 0,
    MRD_QP_QKEY = 1 << 1,
    MRD_QP_RNR_RETRY = 1 << 2,
    MRD_QP_RNR_TIMER = 1 << 3,
};

struct mrd_qp_attr {
    enum mrd_qp_state
        qp_state; /* only MRD_QPS_ERR: outstanding work completes with MRD_WC_WR_FLUSH_ERR */
    uint32_t qkey;
    uint32_t rnr_retry;
    uint64_t rnr_timer_ns;
};

MRD_EXPORT struct mrd_qp *mrd_create_qp(struct mrd_pd *pd, struct mrd_qp_init_attr *attr);
MRD_EXPORT struct mrd_qp *mrd_create_qp_sized(struct mrd_pd *pd, struct mrd_qp_init_attr *attr,
                                              size_t size);
#define mrd_create_qp(...) mrd_create_qp_sized(__VA_ARGS__, sizeof(struct mrd_qp_init_attr))
/* Of `attr` only the fields that attr_mask names are read. */
MRD_EXPORT int mrd_modify_qp(struct mrd_qp *qp, const struct mrd_qp_attr *attr, int attr_mask);
/* Outstanding work ends without completions; the peers are told. Completions already queued stay. */
MRD_EXPORT int mrd_destroy_qp(struct mrd_qp *qp);

/* ------------------------------------------------------------------------------------------------ addresses */

struct mrd_ah {
    struct mrd_context *context;
    struct mrd_pd *pd;
};

/*
 * A handle for the remote context at `address`, for example "192.0.2.7:4793", "[2001:db8::7]:4793" or "sim:1".
 * Numeric; a missing port is MRD_DEFAULT_PORT. Nothing is sent: the address holds no connection. NULL with errno
 * EINVAL (not an address), EAFNOSUPPORT, EHOSTUNREACH, ENOMEM.
 */
MRD_EXPORT struct mrd_ah *mrd_create_ah(struct mrd_pd *pd, const char *address);
/* A handle for whoever caused the receive completion `wc`. NULL with ENOENT if that peer is forgotten by now. */
MRD_EXPORT struct mrd_ah *mrd_create_ah_from_wc(struct mrd_pd *pd, const struct mrd_wc *wc);
MRD_EXPORT int mrd_query_ah(struct mrd_ah *ah, char *buf, size_t len); /* its address string */
/* Work posted with the handle goes on. */
MRD_EXPORT int mrd_destroy_ah(struct mrd_ah *ah);

/* ------------------------------------------------------------------------------------------------ posting */

struct mrd_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

enum mrd_wr_opcode {
    MRD_WR_RDMA_WRITE = 0,
    MRD_WR_RDMA_WRITE_WITH_IMM,
    MRD_WR_SEND,
    MRD_WR_SEND_WITH_IMM,
};

enum mrd_send_flags {
    MRD_SEND_SIGNALED = 1 << 1,
    MRD_SEND_SOLICITED = 1 << 2,
    MRD_SEND_INLINE =
        1 << 3, /* the buffer may be reused when the call returns; lkeys are not looked at */
};

struct mrd_send_wr {
    uint64_t wr_id;
    struct mrd_send_wr *next;
    struct mrd_sge *sg_list;
    int num_sge;
    enum mrd_wr_opcode opcode;
    unsigned int send_flags;
    uint32_t imm_data; /* big-endian */
    struct {
        struct mrd_ah *ah;
        uint32_t remote_qpn;
        uint32_t remote_qkey;
    } ud;
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
        uint64_t reserved[4];
    } wr;
};

struct mrd_recv_wr {
    uint64_t wr_id;
    struct mrd_recv_wr *next;
    struct mrd_sge *sg_list;
    int num_sge;
};

/*
 * Post a list of work requests. Buffers stay the library's until the completion (MRD_SEND_INLINE excepted).
 * Stops at the first that cannot be posted, stores it in *bad_wr, and returns: -EINVAL (the request is malformed),
 * -ENOMEM (send queue or completion queue full), -EAGAIN (the context's peer or flow table is full), -EMSGSIZE.
 * Posting to a peer before its context opened, or to one that does not answer, ends in MRD_WC_RETRY_EXC_ERR; post
 * again.
 */
MRD_EXPORT int mrd_post_send(struct mrd_qp *qp, struct mrd_send_wr *wr,
                             struct mrd_send_wr **bad_wr) MRD_MUST_CHECK;
MRD_EXPORT int mrd_post_recv(struct mrd_qp *qp, struct mrd_recv_wr *wr,
                             struct mrd_recv_wr **bad_wr) MRD_MUST_CHECK;

/* ------------------------------------------------------------------------------------------------ progress */

/* For contexts with MRD_PROGRESS_MANUAL (allowed for all): do what is due. Number of packets handled, or -errno. */
MRD_EXPORT int mrd_progress(struct mrd_context *context);
/* A descriptor that polls readable when packets wait; -1 for simulated contexts. Owned by the context. */
MRD_EXPORT int mrd_context_fd(struct mrd_context *context);
/* Nanoseconds until mrd_progress() has something to do without a packet: 0 now, UINT64_MAX never. */
MRD_EXPORT uint64_t mrd_next_timeout_ns(struct mrd_context *context);

/* ------------------------------------------------------------------------------------------------ events, figures */

enum mrd_event_type {
    MRD_EVENT_PEER_UNREACHABLE =
        0, /* `address` has not answered; its work failed with MRD_WC_RETRY_EXC_ERR */
    MRD_EVENT_PEER_RESTARTED, /* `address` lost what it knew of us; unfinished work to it failed likewise */
    MRD_EVENT_DEVICE_FATAL, /* the device is gone: nothing will be sent or received any more */
    MRD_EVENT_PORT_ERR,     /* the device's port went down; `address` is the context's own */
    MRD_EVENT_PORT_ACTIVE,  /* it is up again */
};

struct mrd_async_event {
    enum mrd_event_type event_type;
    uint32_t peer_id;
    char address[MRD_ADDRESS_MAX];
    uint64_t reserved[4];
};

/* Take the oldest event. 0, or -EAGAIN if there is none. Each taken event is given back with mrd_ack_async_event(). */
MRD_EXPORT int mrd_get_async_event(struct mrd_context *context, struct mrd_async_event *event);
MRD_EXPORT void mrd_ack_async_event(struct mrd_async_event *event);
MRD_EXPORT const char *mrd_event_type_str(enum mrd_event_type type);

struct mrd_counter {
    const char *name; /* static; for example "rx_drop_checksum" */
    const char *unit; /* "packets", "bytes", "messages", "events", "peers" */
    uint64_t value;
};

/*
 * Fill up to `max` counters of the context, each `size` bytes after the one before; the number there are. With
 * max = 0 it only counts.
 */
MRD_EXPORT int mrd_query_counters(struct mrd_context *context, struct mrd_counter *counters,
                                  int max);
MRD_EXPORT int mrd_query_counters_sized(struct mrd_context *context, struct mrd_counter *counters,
                                        int max, size_t size);
#define mrd_query_counters(...) mrd_query_counters_sized(__VA_ARGS__, sizeof(struct mrd_counter))

/* One peer, seen from here. */
struct mrd_peer_attr {
    uint32_t peer_id;
    uint32_t paths;   /* how many mrd_query_path() knows */
    uint64_t srtt_ns; /* 0: no sample yet */
    uint64_t min_rtt_ns;
    uint64_t cwnd_bytes;
    uint64_t inflight_bytes;
    uint64_t packets_sent;
    uint64_t packets_retransmitted;
    uint64_t packets_spurious; /* retransmissions whose original had arrived */
    uint64_t packets_received;
    uint64_t bytes_sent;     /* payload, each transmission */
    uint64_t bytes_received; /* payload, without duplicates */
    uint64_t lost_by_path_order, lost_by_rack, probes_tail, timeouts;
    char address[MRD_ADDRESS_MAX];
};

enum mrd_path_state { MRD_PATH_GOOD = 0, MRD_PATH_SUSPENDED, MRD_PATH_DEAD };

struct mrd_path_attr {
    uint32_t port; /* UDP source port, or the mover's number of the path */
    enum mrd_path_state state;
    uint64_t packets; /* sent on it, retransmissions included */
    uint64_t lost;    /* of these, declared lost */
    uint64_t ce;      /* of these, marked by a switch as the peer counted them */
    uint64_t srtt_ns;
    uint64_t min_rtt_ns;
};

/*
 * Figures of the peer behind `ah`, of the peer with that id, or of its path `index`. `size` is sizeof(*attr): an
 * older caller gets the fields that it knows. -ENOENT: no such peer (nothing was exchanged yet, or it went idle).
 */
MRD_EXPORT int mrd_query_peer(struct mrd_ah *ah, struct mrd_peer_attr *attr, size_t size);
MRD_EXPORT int mrd_query_peer_id(struct mrd_context *context, uint32_t peer_id,
                                 struct mrd_peer_attr *attr, size_t size);
MRD_EXPORT int mrd_query_path(struct mrd_ah *ah, uint32_t index, struct mrd_path_attr *attr,
                              size_t size);

/* The context's limits and which policies are in force; mtu: the most payload bytes of a packet to anybody. */
struct mrd_context_info {
    uint32_t paths;
    uint32_t mtu;
    char spray[16];
    char cc[16];
    uint64_t link_bps; /* 0: unknown */
    uint32_t receive_buffer_bytes;
    uint16_t port; /* UDP receive port; 0: the device has none */
    uint16_t reserved;
};
MRD_EXPORT int mrd_query_context(struct mrd_context *context, struct mrd_context_info *info,
                                 size_t size);

/* The sentence behind the calling thread's last failure. Never NULL; valid until the thread's next failing call. */
MRD_EXPORT const char *mrd_last_error(void);

enum mrd_log_level { MRD_LOG_ERROR = 0, MRD_LOG_WARN, MRD_LOG_INFO, MRD_LOG_DEBUG };
typedef void mrd_log_fn(void *arg, enum mrd_log_level level, const char *message);
/* Where messages up to `level` go, for the process. NULL: nowhere, the default. */
MRD_EXPORT void mrd_set_log(mrd_log_fn *fn, void *arg, enum mrd_log_level level);

/* "0.1.0" */
MRD_EXPORT const char *mrd_version(void);

#ifdef __cplusplus
}
#endif

#endif
