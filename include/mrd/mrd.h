/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd: multipath reliable datagrams.
 *
 * A connectionless, reliable transport that sprays packets over many paths. Shape and names follow
 * libibverbs. include/PORTING.md names every place where renaming verbs code is not enough.
 *
 * Call sequence: mrd_get_device_list() or NULL, mrd_open_device(), mrd_alloc_pd(), mrd_reg_mr(),
 * mrd_create_cq(), mrd_create_qp(). The queue pair is usable at once. mrd_query_address() tells the
 * address that the other programs need, and mrd_create_ah() takes theirs. Then mrd_post_recv(),
 * mrd_post_send(), mrd_poll_cq(). Destroy in reverse order.
 *
 * Results: calls return 0 or a count, or -errno. Constructors return NULL and set errno. After each
 * failure mrd_last_error() holds a sentence that names the cause. A context that was opened before
 * fork() fails with EPERM in the child.
 *
 * Units: times are nanoseconds, sizes are bytes.
 *
 * Ownership: the library allocates all objects. The caller may read their fields but not write
 * them, and gives each object back with the call that destroys it. Structs that the caller fills
 * start as zero; the library copies them before the call returns.
 *
 * Threads: calls on a context may come from any thread, unless it was opened with
 * MRD_THREADING_SINGLE. A call that destroys an object needs it alone: mrd(7), Threads.
 *
 * Completions: a signaled or failed work request gives exactly one completion, an unsignaled
 * success none. Posting reserves room in the completion queue, so a queue cannot overflow; for a
 * shared receive it is reserved when a message takes it. A write succeeds when its bytes lie in the
 * target's memory.
 *
 * Versions: structs grow at their end only, and a program may be older or newer than the library;
 * see mrd(7). Calls learn the length of the caller's struct from an argument `size`, or from a
 * macro that passes sizeof to `..._sized`. Bindings of other languages call the `_sized` functions:
 * those behind the macros take the structs of version 0.1.
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
    MRD_DEFAULT_PORT = 4793,         /* the port of an address string that names none */
    MRD_ADDRESS_MAX = 128,           /* longest address string, with its NUL */
    MRD_PACKED_ADDRESS_MAX = 48,     /* most bytes of an address that is packed; without RDMA 24 */
    MRD_MESSAGE_BYTES_MAX = 1 << 30, /* longest message */
    MRD_SGE_MAX = 16,                /* most entries of a gather or scatter list */
    MRD_INLINE_BYTES_MAX = 1024,     /* most bytes of MRD_SEND_INLINE */
    MRD_RNR_RETRY_FOREVER = 7,
    MRD_FIRST_QP_NUM =
        16, /* qp_num of the first queue pair of a context: a server's, for example */
};

/* -------------------------------------------------------------------------------------- devices */

/*
 * Something that moves packets: "udp", which is UDP over any interface; an interface such as
 * "eth0", which is UDP bound to its address; an RDMA device such as "mlx5_0"; a simulated host.
 */
struct mrd_device {
    char name[32];
    char transport[16]; /* "udp", "ibv" or "sim" */
};

/* The check of payloads. That of headers is always on. */
enum mrd_check {
    MRD_CHECK_DEFAULT = 0, /* as MRD_CHECK says; on without it */
    MRD_CHECK_ON,
    /*
     * Payloads to and from peers that have it off, too, are not checked: to measure what the check
     * costs, or where the link checks end to end. What a broken switch or memory changes is then
     * delivered as SUCCESS.
     */
    MRD_CHECK_OFF,
};

/* Do packets say that switches may mark them when queues grow (RFC 3168)? */
enum mrd_ecn_mode {
    MRD_ECN_DEFAULT = 0, /* as MRD_ECN says; on without it */
    MRD_ECN_ON,          /* ECT(0); not to peers that are reached only without it */
    MRD_ECN_OFF,         /* never, for networks that drop or mistreat such packets */
};

enum mrd_threading {
    MRD_THREADING_MULTI = 0, /* calls lock the context */
    MRD_THREADING_SINGLE,    /* the caller serialises all calls; implies MRD_PROGRESS_MANUAL */
};

enum mrd_progress {
    MRD_PROGRESS_THREAD =
        0,               /* polls and posts make progress; while there are none, a thread does */
    MRD_PROGRESS_MANUAL, /* only polls, posts and mrd_progress() do */
};

/* Fields of mrd_context_attr whose zero is a value. Without its bit, zero means the default. */
enum mrd_context_attr_mask {
    MRD_CONTEXT_ATTR_CHALLENGE = 1 << 0, /* challenge_ns */
    MRD_CONTEXT_ATTR_SEED = 1 << 1,      /* seed */
    MRD_CONTEXT_ATTR_GID_INDEX = 1 << 2, /* gid_index */
};

/*
 * How to open a context. Zero or NULL means the default, except where comp_mask says otherwise.
 * mrd_open_device(3) has the ranges.
 */
struct mrd_context_attr {
    uint64_t comp_mask; /* enum mrd_context_attr_mask; unknown bits are EINVAL */
    /* Numeric local address to bind; default: any, IPv4 and IPv6. RDMA: the GID of this address. */
    const char *address;
    const uint16_t *source_ports; /* UDP source ports to send from; default: ephemeral ones */
    uint32_t num_source_ports;    /* entries of source_ports; becomes `paths` if that is 0 */
    uint16_t port;                /* UDP receive port; default: ephemeral */
    uint16_t port_num;            /* RDMA: port of the device; default: 1 */
    uint32_t paths;               /* paths to each peer, at most 256; default: the device's */
    uint32_t mtu;                 /* payload bytes a packet, multiple of 64; default: what fits */
    const char *spray;            /* one of mrd_spray_names(); default: the first */
    const char *cc;               /* one of mrd_cc_names(); default: the first */
    uint64_t link_bps;            /* rate of the link in bit/s; default: what the device says */
    /* Peers known at a time; default: 16384. One IPv4 address, or IPv6 prefix of 64 bits, can be
     * seven eighths of them, and of the rest as many as it leaves free. */
    uint32_t max_peers;
    uint32_t max_flows; /* flows of ordered messages, and send queues with work; default: 4096 */
    /* A peer with work outstanding is unreachable after so long without an ack; default: 8 s. */
    uint64_t peer_timeout_ns;
    /* Simulated contexts: 0 with MRD_CONTEXT_ATTR_CHALLENGE: first contacts are trusted, and cost no
     * round trip. Else without effect: a first contact always shows where it comes from. */
    uint64_t challenge_ns;
    enum mrd_progress progress;
    enum mrd_threading threading;
    uint32_t rx_drop_ppm; /* drop this share of received packets on purpose; parts per million */
    /* RDMA: entry of the port's GID table; default: a RoCEv2 one, of an IPv4 address if any. */
    uint32_t gid_index;
    uint64_t seed; /* of all random choices; default: random */
    /*
     * RDMA: what tells the paths apart. "ah": a flow label in each address handle; "qp": several
     * QPs; "qpair": pairs of a QP and a remote QP; default "auto": what the device hashes.
     */
    const char *entropy;
    uint32_t dscp; /* of the IP header of packets, 0 to 63 (RFC 2474) */
    enum mrd_check check;
    enum mrd_ecn_mode ecn;
    /*
     * A file of keys (mrd_keys(5)): packets are encrypted and authenticated, and those of others are
     * dropped. Default: that of MRD_KEY_FILE; without it, and if it is "", packets are in the clear.
     */
    const char *key_file;
};

struct mrd_context {
    const struct mrd_device *device;
    int async_fd; /* polls readable while mrd_get_async_event() has an event; simulated: -1 */
};

/*
 * Lists the devices of this machine. Returns a NULL-terminated array, and its length in
 * *num_devices unless that is NULL; or NULL with errno. The caller frees the array with
 * mrd_free_device_list(); contexts opened from it stay valid.
 */
MRD_EXPORT struct mrd_device **mrd_get_device_list(int *num_devices);
MRD_EXPORT void mrd_free_device_list(struct mrd_device **list);
MRD_EXPORT const char *mrd_get_device_name(const struct mrd_device *device);

/*
 * The congestion controls, and the ways to choose a packet's path, that mrd_context_attr can name.
 * Static arrays that end with NULL; the first is the default.
 */
MRD_EXPORT const char *const *mrd_cc_names(void);
MRD_EXPORT const char *const *mrd_spray_names(void);

/*
 * Opens a context on `device` (NULL: that of MRD_DEVICE, else "udp"). `attr` may be NULL. Where it
 * leaves the default, these environment variables apply: MRD_ADDRESS, MRD_PORT, MRD_MTU, MRD_CHECK,
 * MRD_ECN, MRD_SOURCE_PORTS (FIRST-LAST), MRD_DSCP, MRD_PATHS, MRD_SPRAY, MRD_CC, MRD_LOG (error|warn|info|debug).
 * NULL with errno: EINVAL (an attribute), EADDRINUSE (a port), EADDRNOTAVAIL (address), EMFILE
 * (each UDP path takes a descriptor), ENOMEM; mrd_open_device(3) has those of RDMA devices.
 */
MRD_EXPORT struct mrd_context *mrd_open_device(const struct mrd_device *device,
                                               const struct mrd_context_attr *attr);
MRD_EXPORT struct mrd_context *mrd_open_device_sized(const struct mrd_device *device,
                                                     const struct mrd_context_attr *attr,
                                                     size_t size);
#define mrd_open_device(...) mrd_open_device_sized(__VA_ARGS__, sizeof(struct mrd_context_attr))
/* Does not wait for data that peers have not acked. -EBUSY while the context has objects. */
MRD_EXPORT int mrd_close_device(struct mrd_context *context);

/*
 * Writes the address that others give to mrd_create_ah(), for example "192.0.2.7:4793". A context
 * that is bound to no address tells that of the default route, else the machine's first one that is
 * neither loopback nor link-local, else 127.0.0.1. -ENOSPC if `len` is too small; MRD_ADDRESS_MAX always suffices.
 */
MRD_EXPORT int mrd_query_address(struct mrd_context *context, char *buf, size_t len);

/* --------------------------------------------------------------------------------------- memory */

struct mrd_pd {
    struct mrd_context *context;
};

enum mrd_access_flags {
    MRD_ACCESS_LOCAL_WRITE = 1 << 0,   /* may be a receive buffer */
    MRD_ACCESS_REMOTE_WRITE = 1 << 1,  /* peers may write to it; needs LOCAL_WRITE */
    MRD_ACCESS_REMOTE_READ = 1 << 2,   /* peers may read it */
    MRD_ACCESS_REMOTE_ATOMIC = 1 << 3, /* peers may run atomics on it; needs LOCAL_WRITE */
    /*
     * The memory need not be there yet: it is neither looked at nor pinned. NULL with SIZE_MAX is
     * all memory of the process; no peer may use that. Not on RDMA devices.
     */
    MRD_ACCESS_ON_DEMAND = 1 << 4,
    /*
     * The program looks into the memory before a completion tells: see mrd_reg_mr(3), Polled memory.
     */
    MRD_ACCESS_POLLED = 1 << 5,
};

struct mrd_mr {
    struct mrd_context *context;
    struct mrd_pd *pd;
    void *addr;
    size_t length;
    uint32_t lkey;
    uint32_t rkey; /* random; a peer that knows it may do what `access` permits */
};

MRD_EXPORT struct mrd_pd *mrd_alloc_pd(struct mrd_context *context);
MRD_EXPORT int mrd_dealloc_pd(struct mrd_pd *pd); /* -EBUSY while it has MRs, QPs, SRQs, AHs */

/*
 * Registers [addr, addr + length) without a copy; RDMA devices pin it. NULL with errno EINVAL
 * (flags, NULL, wrap-around), EFAULT (not mapped, or not accessible as `access` needs), ENOMEM, or
 * EOPNOTSUPP (ON_DEMAND on an RDMA device).
 */
MRD_EXPORT struct mrd_mr *mrd_reg_mr(struct mrd_pd *pd, void *addr, size_t length, int access);
struct mrd_mr_init_attr {
    uint64_t comp_mask; /* 0 */
    void *addr;
    size_t length;
    uint32_t access; /* enum mrd_access_flags */
    uint32_t reserved;
};
/* As mrd_reg_mr(), with attributes. */
MRD_EXPORT struct mrd_mr *mrd_reg_mr_ex(struct mrd_pd *pd, const struct mrd_mr_init_attr *attr);
MRD_EXPORT struct mrd_mr *mrd_reg_mr_ex_sized(struct mrd_pd *pd,
                                              const struct mrd_mr_init_attr *attr, size_t size);
#define mrd_reg_mr_ex(...) mrd_reg_mr_ex_sized(__VA_ARGS__, sizeof(struct mrd_mr_init_attr))
/*
 * When this returns, the library no longer touches the memory. Work that still needed it completes
 * with MRD_WC_LOC_PROT_ERR. A peer's write into it is refused, even half-way.
 */
MRD_EXPORT int mrd_dereg_mr(struct mrd_mr *mr);

/* ---------------------------------------------------------------------------------- completions */

enum mrd_wc_status {
    MRD_WC_SUCCESS = 0,
    MRD_WC_LOC_LEN_ERR,       /* receive: the message is longer than it */
    MRD_WC_LOC_PROT_ERR,      /* the memory was deregistered */
    MRD_WC_WR_FLUSH_ERR,      /* the QP went to the error state */
    MRD_WC_REM_INV_REQ_ERR,   /* the target has no such QP, another qkey, or too short a receive */
    MRD_WC_REM_ACCESS_ERR,    /* the target refused rkey, range or permission */
    MRD_WC_REM_OP_ERR,        /* the target's memory or QP went meanwhile; perhaps it was done */
    MRD_WC_REM_ABORT_ERR,     /* receive: the sender gave up half-way, restarted or went away */
    MRD_WC_RETRY_EXC_ERR,     /* the peer is unreachable, or lost its state about this context */
    MRD_WC_RNR_RETRY_EXC_ERR, /* the target had no receive, or no memory, rnr_retry times */
    MRD_WC_GENERAL_ERR,       /* not used */
};

enum mrd_wc_opcode {
    MRD_WC_SEND = 0,
    MRD_WC_RDMA_WRITE,
    MRD_WC_RDMA_READ,
    MRD_WC_COMP_SWAP,
    MRD_WC_FETCH_ADD,
    MRD_WC_RECV = 128,
    MRD_WC_RECV_RDMA_WITH_IMM,
};

enum mrd_wc_flags {
    MRD_WC_WITH_IMM = 1 << 0,  /* imm_data is valid */
    MRD_WC_SOLICITED = 1 << 1, /* receive: the sender set MRD_SEND_SOLICITED */
};

/*
 * A completion. wr_id to vendor_err and qp_num are always valid, the other fields on success;
 * byte_len, src_qp and peer_id of failed sends, too, unless the queue pair was in error already:
 * then peer_id is 0.
 */
struct mrd_wc {
    uint64_t wr_id;
    enum mrd_wc_status status;
    enum mrd_wc_opcode opcode;
    uint32_t vendor_err; /* the peer's refusal code (core/WIRE.md), or 0 */
    uint32_t byte_len;
    uint32_t imm_data; /* big-endian, as posted */
    uint32_t qp_num;
    uint32_t src_qp;  /* receive: the sender's QP; send: the target's */
    uint32_t peer_id; /* for mrd_query_peer_id() */
    uint32_t wc_flags;
    uint32_t reserved[5];
};

struct mrd_cq {
    struct mrd_context *context;
    void *cq_context;
    int cqe; /* capacity; only mrd_resize_cq() changes it */
};

/* For `cqe` completions, at most 2^24. NULL with errno EINVAL or ENOMEM. */
MRD_EXPORT struct mrd_cq *mrd_create_cq(struct mrd_context *context, int cqe, void *cq_context);
/*
 * From now on for `cqe` completions; those that wait stay. -EINVAL: completions that wait and work
 * that is posted need more; -ENOMEM: nothing has changed.
 */
MRD_EXPORT int mrd_resize_cq(struct mrd_cq *cq, int cqe);
/* -EBUSY while a QP uses it, or events of it were not acked. */
MRD_EXPORT int mrd_destroy_cq(struct mrd_cq *cq);
/*
 * Takes up to `num_entries` completions and returns their number, or -errno. Makes progress if none
 * wait, and from time to time if some do. Never blocks.
 */
MRD_EXPORT int mrd_poll_cq(struct mrd_cq *cq, int num_entries, struct mrd_wc *wc);
/*
 * As mrd_poll_cq(), but makes no progress: for a thread that leaves packets and timers to the
 * progress thread, or to another one that calls mrd_progress().
 */
MRD_EXPORT int mrd_take_cq(struct mrd_cq *cq, int num_entries, struct mrd_wc *wc);
MRD_EXPORT const char *mrd_wc_status_str(enum mrd_wc_status status);

/* -------------------------------------------------------------------------- completion channels */

/*
 * Tells of completions to threads that sleep. `fd` polls readable while mrd_get_cq_event() has
 * something to do; the channel owns it. -1 for simulated contexts.
 */
struct mrd_comp_channel {
    struct mrd_context *context;
    int fd;
};

/* NULL with errno: ENOMEM, EMFILE, or EOPNOTSUPP: no thread, and a device without descriptor. */
MRD_EXPORT struct mrd_comp_channel *mrd_create_comp_channel(struct mrd_context *context);

enum mrd_comp_channel_flags {
    /*
     * `fd` polls readable only while there is an event, as in verbs: packets and timers do not wake
     * who sleeps on it. The progress thread handles them: -EOPNOTSUPP without one.
     */
    MRD_COMP_CHANNEL_EVENTS_ONLY = 1 << 0,
};

struct mrd_comp_channel_init_attr {
    uint64_t comp_mask; /* 0 */
    uint32_t flags;     /* enum mrd_comp_channel_flags */
    uint32_t reserved;
};
MRD_EXPORT struct mrd_comp_channel *
mrd_create_comp_channel_ex(struct mrd_context *context,
                           const struct mrd_comp_channel_init_attr *attr);
MRD_EXPORT struct mrd_comp_channel *
mrd_create_comp_channel_ex_sized(struct mrd_context *context,
                                 const struct mrd_comp_channel_init_attr *attr, size_t size);
#define mrd_create_comp_channel_ex(...)                                                            \
    mrd_create_comp_channel_ex_sized(__VA_ARGS__, sizeof(struct mrd_comp_channel_init_attr))
/* -EBUSY while a completion queue uses it, or a thread waits in mrd_get_cq_event(). */
MRD_EXPORT int mrd_destroy_comp_channel(struct mrd_comp_channel *channel);

struct mrd_cq_init_attr {
    uint64_t comp_mask; /* 0 */
    void *cq_context;
    int cqe; /* capacity: at most 2^24 */
    uint32_t reserved;
    struct mrd_comp_channel *channel; /* of the same context; NULL: the queue has no events */
};
/* As mrd_create_cq(), with a channel. */
MRD_EXPORT struct mrd_cq *mrd_create_cq_ex(struct mrd_context *context,
                                           const struct mrd_cq_init_attr *attr);
MRD_EXPORT struct mrd_cq *mrd_create_cq_ex_sized(struct mrd_context *context,
                                                 const struct mrd_cq_init_attr *attr, size_t size);
#define mrd_create_cq_ex(...) mrd_create_cq_ex_sized(__VA_ARGS__, sizeof(struct mrd_cq_init_attr))

/*
 * Asks for one event: when the next completion is added to the queue; with `solicited_only` the
 * next that failed, or is of a receive whose sender set MRD_SEND_SOLICITED. Completions that are in
 * the queue already raise none: poll once more after this call. 0, or -EINVAL: it has no channel.
 */
MRD_EXPORT int mrd_req_notify_cq(struct mrd_cq *cq, int solicited_only);
/*
 * Takes the oldest event of the channel: *cq is the queue that raised it. Waits for one, unless
 * O_NONBLOCK is set on the channel's fd: then -EAGAIN. -EINTR: a signal came.
 */
MRD_EXPORT int mrd_get_cq_event(struct mrd_comp_channel *channel, struct mrd_cq **cq,
                                void **cq_context);
/* Gives back events that were taken; mrd_destroy_cq() refuses until then. */
MRD_EXPORT void mrd_ack_cq_events(struct mrd_cq *cq, unsigned nevents);

/* ------------------------------------------------------------------------ shared receive queues */

/* Receives for several queue pairs: each message takes the oldest. */
struct mrd_srq {
    struct mrd_context *context;
    void *srq_context;
    struct mrd_pd *pd; /* whose keys cover the buffers */
};

struct mrd_srq_attr {
    uint32_t max_wr;  /* 1 to 2^20 */
    uint32_t max_sge; /* 0: 1; at most MRD_SGE_MAX */
    /* Fewer posted receives raise MRD_EVENT_SRQ_LIMIT_REACHED; that makes it 0. 0: never. */
    uint32_t srq_limit;
    uint32_t reserved;
};

struct mrd_srq_init_attr {
    uint64_t comp_mask; /* 0 */
    void *srq_context;
    struct mrd_srq_attr attr;
};

enum mrd_srq_attr_mask {
    MRD_SRQ_LIMIT = 1 << 0,
};

/*
 * NULL with errno EINVAL (an attribute) or ENOMEM. A completion is in the receive completion queue
 * of the queue pair that got the message. While that is full, messages are refused as if there were
 * no receive.
 */
MRD_EXPORT struct mrd_srq *mrd_create_srq(struct mrd_pd *pd, const struct mrd_srq_init_attr *attr);
MRD_EXPORT struct mrd_srq *mrd_create_srq_sized(struct mrd_pd *pd,
                                                const struct mrd_srq_init_attr *attr, size_t size);
#define mrd_create_srq(...) mrd_create_srq_sized(__VA_ARGS__, sizeof(struct mrd_srq_init_attr))
/* Changes what attr_mask names and reads no other field. */
MRD_EXPORT int mrd_modify_srq(struct mrd_srq *srq, const struct mrd_srq_attr *attr, int attr_mask);
MRD_EXPORT int mrd_query_srq(struct mrd_srq *srq, struct mrd_srq_attr *attr);
/*
 * The posted receives end without completions. -EBUSY while a QP uses it, or events of it were not
 * acked.
 */
MRD_EXPORT int mrd_destroy_srq(struct mrd_srq *srq);

/* ---------------------------------------------------------------------------------- queue pairs */

enum mrd_qp_state {
    MRD_QPS_RTS = 0, /* sends and receives */
    MRD_QPS_ERR,     /* final: all work is flushed */
    /*
     * Before MRD_QPS_RTS: receives may be posted, sends are -EINVAL, and messages to it wait as if
     * it had no receives.
     */
    MRD_QPS_INIT,
};

enum mrd_order {
    MRD_ORDER_NONE = 0, /* messages may be delivered in any order */
    MRD_ORDER_MSG,      /* this QP's messages to a remote QP are delivered in the order posted */
    /*
     * As MRD_ORDER_MSG. Besides, of a write to this QP that comes in order, the last 8 bytes are
     * stored after all its other bytes and after all of the writes before it.
     */
    MRD_ORDER_DATA,
};

struct mrd_qp_cap {
    uint32_t max_send_wr;     /* at most 2^20 */
    uint32_t max_recv_wr;     /* at most 2^20 */
    uint32_t max_send_sge;    /* 0: 1; at most MRD_SGE_MAX */
    uint32_t max_recv_sge;    /* 0: 1; at most MRD_SGE_MAX */
    uint32_t max_inline_data; /* at most MRD_INLINE_BYTES_MAX */
};

enum mrd_qp_events {
    /*
     * MRD_EVENT_QP_REFUSED when the queue pair refuses a request for good: a key, qkey, range or
     * length was wrong. The peer is that of the latest one; further ones raise no second event
     * until this one is taken.
     */
    MRD_QP_TELL_REFUSED = 1 << 0,
};

enum mrd_qp_init_attr_mask {
    MRD_QP_INIT_ATTR_RNR_RETRY = 1 << 0, /* rnr_retry; otherwise MRD_RNR_RETRY_FOREVER */
    MRD_QP_INIT_ATTR_STATE = 1 << 1,     /* qp_state; otherwise MRD_QPS_RTS */
};

struct mrd_qp_init_attr {
    uint64_t comp_mask; /* enum mrd_qp_init_attr_mask; unknown bits are EINVAL */
    void *qp_context;
    struct mrd_cq *send_cq; /* of the same context; may be recv_cq too */
    struct mrd_cq *recv_cq;
    struct mrd_qp_cap cap;
    int sq_sig_all; /* all sends and writes are signaled */
    enum mrd_order order;
    uint32_t qkey;         /* SENDs to this QP must name it; 0 is a key like any other */
    uint32_t rnr_retry;    /* retries while the target has no receive: 0 to 6, or 7 for ever */
    uint64_t rnr_timer_ns; /* senders to this QP wait so long before they retry; default: 100 us */
    /* Reads and atomics outstanding, to all peers; the others wait; default: 16. */
    uint32_t max_rd_atomic;
    enum mrd_qp_state qp_state; /* MRD_QPS_RTS or MRD_QPS_INIT */
    /* Receives are taken from there, and none can be posted to the QP; NULL: it has its own. */
    struct mrd_srq *srq;
    uint64_t events; /* enum mrd_qp_events; unknown bits are EINVAL */
};

/* A send queue and a receive queue with a number. Without a connection: it talks to any peer. */
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
    MRD_QP_DEST = 1 << 4, /* dest_ah and dest_qp_num */
};

struct mrd_qp_attr {
    enum mrd_qp_state qp_state; /* MRD_QPS_ERR, which is final; MRD_QPS_RTS */
    uint32_t qkey;
    uint32_t rnr_retry;
    uint64_t rnr_timer_ns;
    /*
     * In MRD_QPS_INIT: it will take messages of that queue pair at that address only; others are
     * told that there is no such queue pair. NULL: it takes those of all, as by default. The handle
     * may be destroyed later.
     */
    struct mrd_ah *dest_ah;
    uint32_t dest_qp_num;
};

/*
 * NULL with errno EINVAL (an attribute), ENOSPC (no QP number is left), ENOMEM. Writes the caps in
 * force to attr->cap.
 */
MRD_EXPORT struct mrd_qp *mrd_create_qp(struct mrd_pd *pd, struct mrd_qp_init_attr *attr);
MRD_EXPORT struct mrd_qp *mrd_create_qp_sized(struct mrd_pd *pd, struct mrd_qp_init_attr *attr,
                                              size_t size);
#define mrd_create_qp(...) mrd_create_qp_sized(__VA_ARGS__, sizeof(struct mrd_qp_init_attr))
/* Fills attributes that would make such a queue pair as this one is now, but for MRD_QP_DEST. `size` is sizeof(*attr). */
MRD_EXPORT int mrd_query_qp(struct mrd_qp *qp, struct mrd_qp_init_attr *attr, size_t size);
/*
 * Changes what attr_mask names and reads no other field. In the error state, outstanding and later
 * work completes with MRD_WC_WR_FLUSH_ERR.
 */
MRD_EXPORT int mrd_modify_qp(struct mrd_qp *qp, const struct mrd_qp_attr *attr, int attr_mask);
/*
 * Ends outstanding work without completions, and tells its targets. When this returns, the buffers
 * are the caller's again; receives of a shared queue that were in use go back to it. Completions
 * that are already in a queue stay there. -EBUSY: events of it were not acked.
 */
MRD_EXPORT int mrd_destroy_qp(struct mrd_qp *qp);

/* ------------------------------------------------------------------------------------ addresses */

struct mrd_ah {
    struct mrd_context *context;
    struct mrd_pd *pd;
};

/*
 * Looks a host up, "host:port" or "host" (MRD_DEFAULT_PORT), and writes its first address that the
 * context can send to, as mrd_create_ah() takes it; a numeric address stays what it is. Waits for
 * the answer, perhaps for seconds. -EINVAL: malformed; -ENOENT: not known; -EAGAIN: not known now;
 * -EHOSTUNREACH: no route; -ENOSPC: `len` is too small.
 */
MRD_EXPORT int mrd_resolve(struct mrd_context *context, const char *name, char *buf, size_t len);
/*
 * Makes a handle for the remote context at `address`: "192.0.2.7:4793", "[2001:db8::7]:4793",
 * "sim:1" or what mrd_query_address() told there. mrd_resolve() looks host names up, this does not;
 * a missing port is MRD_DEFAULT_PORT. Sends nothing. NULL with errno EINVAL (not an address),
 * EAFNOSUPPORT, EHOSTUNREACH, ENOMEM.
 */
MRD_EXPORT struct mrd_ah *mrd_create_ah(struct mrd_pd *pd, const char *address);

/*
 * Writes an address string in few bytes, which mean the same on every host, for messages and handles
 * of little room: 24, or up to MRD_PACKED_ADDRESS_MAX with an RDMA device. Returns their number;
 * -EINVAL or -EAFNOSUPPORT as mrd_create_ah(); -ENOSPC: `len` is too small.
 */
MRD_EXPORT int mrd_pack_address(struct mrd_context *context, const char *address, void *packed,
                                size_t len);
/*
 * Writes the address string of packed bytes, which may come from anybody. -EINVAL: they are not the
 * address of one host, or of another kind of device; -ENOSPC: `len` is too small.
 */
MRD_EXPORT int mrd_unpack_address(struct mrd_context *context, const void *packed,
                                  size_t packed_len, char *buf, size_t len);

enum mrd_ah_init_attr_mask {
    MRD_AH_INIT_ATTR_DSCP = 1 << 0, /* dscp; without this bit it is the context's */
};

struct mrd_ah_init_attr {
    uint64_t comp_mask;  /* enum mrd_ah_init_attr_mask; unknown bits are EINVAL */
    const char *address; /* as for mrd_create_ah() */
    /*
     * 0 to 63. Packets to a peer share sequence numbers and a window, and so a DSCP: that of the
     * handle last posted with.
     */
    uint32_t dscp;
    uint32_t reserved;
};
/* As mrd_create_ah(), with attributes. */
MRD_EXPORT struct mrd_ah *mrd_create_ah_ex(struct mrd_pd *pd, const struct mrd_ah_init_attr *attr);
MRD_EXPORT struct mrd_ah *mrd_create_ah_ex_sized(struct mrd_pd *pd,
                                                 const struct mrd_ah_init_attr *attr, size_t size);
#define mrd_create_ah_ex(...) mrd_create_ah_ex_sized(__VA_ARGS__, sizeof(struct mrd_ah_init_attr))
/* For the sender of the receive completion `wc`. NULL with ENOENT if the peer is forgotten. */
MRD_EXPORT struct mrd_ah *mrd_create_ah_from_wc(struct mrd_pd *pd, const struct mrd_wc *wc);
/* Writes the handle's address. -ENOSPC if `len` is too small; MRD_ADDRESS_MAX always suffices. */
MRD_EXPORT int mrd_query_ah(struct mrd_ah *ah, char *buf, size_t len);
MRD_EXPORT int mrd_destroy_ah(struct mrd_ah *ah); /* work posted with the handle goes on */
/*
 * With `on`, asks the handle's peer from time to time whether it is there, also without work to it,
 * and keeps what is known of it. MRD_EVENT_PEER_UNREACHABLE or _RESTARTED tells when it is not, and
 * ends that. So does 0, once for each call with `on`: several users of a context may watch the same
 * peer. -EAGAIN: the peer table is full.
 */
MRD_EXPORT int mrd_watch_peer(struct mrd_ah *ah, int on);

/* -------------------------------------------------------------------------------------- posting */

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
    MRD_WR_RDMA_READ,
    MRD_WR_ATOMIC_CMP_AND_SWP,
    MRD_WR_ATOMIC_FETCH_AND_ADD,
};

enum mrd_send_flags {
    /* Starts when the queue pair's earlier reads and atomics are complete; so do later requests. */
    MRD_SEND_FENCE = 1 << 0,
    MRD_SEND_SIGNALED = 1 << 1,  /* a success gives a completion too */
    MRD_SEND_SOLICITED = 1 << 2, /* raises an event at the receiver: mrd_req_notify_cq() */
    MRD_SEND_INLINE = 1 << 3,    /* the call copies the bytes, and ignores lkeys */
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
        uint32_t remote_qkey; /* of SENDs */
    } ud;
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
        /*
         * Of 8 bytes at an address that is a multiple of 8. CMP_AND_SWP writes `swap` if they equal
         * `compare_add`; FETCH_AND_ADD adds `compare_add`. Before, they are copied to sg_list, one
         * entry of 8 bytes. All values are in the byte order of their host.
         */
        struct {
            uint64_t remote_addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
        } atomic;
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
 * Posts a list of work requests. The library owns their buffers until the completion, except with
 * MRD_SEND_INLINE; the requests and their lists are the caller's when the call returns.
 *
 * Stops at the first request that cannot be posted, and stores it in *bad_wr: -EINVAL (malformed,
 * or no key covers a buffer), -ENOMEM (a send, receive or completion queue is full), -EAGAIN (the
 * peer or flow table is full), -EMSGSIZE.
 *
 * Work for a peer that does not answer completes with MRD_WC_RETRY_EXC_ERR, and so does work posted
 * before the peer's context was opened. Post it again.
 */
MRD_EXPORT int mrd_post_send(struct mrd_qp *qp, struct mrd_send_wr *wr,
                             struct mrd_send_wr **bad_wr) MRD_MUST_CHECK;
MRD_EXPORT int mrd_post_recv(struct mrd_qp *qp, struct mrd_recv_wr *wr,
                             struct mrd_recv_wr **bad_wr) MRD_MUST_CHECK;
MRD_EXPORT int mrd_post_srq_recv(struct mrd_srq *srq, struct mrd_recv_wr *wr,
                                 struct mrd_recv_wr **bad_wr) MRD_MUST_CHECK;

/* ------------------------------------------------------------------------------------- progress */

/* Handles packets and timers that are due, with any progress mode. Packets handled, or -errno. */
MRD_EXPORT int mrd_progress(struct mrd_context *context);
/*
 * Polls readable while packets wait; the context owns it. -1 for simulated contexts; -EOPNOTSUPP
 * for those with a progress thread, which takes the packets: use a completion channel.
 */
MRD_EXPORT int mrd_context_fd(struct mrd_context *context);
/* Until mrd_progress() must be called even without a packet. 0: now; UINT64_MAX: never. */
MRD_EXPORT uint64_t mrd_next_timeout_ns(struct mrd_context *context);

/* ------------------------------------------------------------------------------ events, figures */

/* `address` is the peer's; with events of no peer it is the context's own. */
enum mrd_event_type {
    MRD_EVENT_PEER_UNREACHABLE = 0, /* no answer; work to it failed: MRD_WC_RETRY_EXC_ERR */
    MRD_EVENT_PEER_RESTARTED,       /* the peer lost its state; work to it failed likewise */
    MRD_EVENT_DEVICE_FATAL,         /* the device is gone, nothing is sent or received any more */
    MRD_EVENT_PORT_ERR,             /* the device's port went down */
    MRD_EVENT_PORT_ACTIVE,          /* it is up again */
    MRD_EVENT_QP_FATAL,             /* element.qp is in the error state: its device is gone */
    MRD_EVENT_SRQ_LIMIT_REACHED,    /* element.srq has fewer receives than its srq_limit */
    MRD_EVENT_PEER_BUSY,  /* the peer has no room for us; work to it fails unless it has soon */
    MRD_EVENT_PEERS_FULL, /* a peer was turned away: max_peers are in use here */
    MRD_EVENT_QP_REFUSED, /* element.qp refused a request for good: see MRD_QP_TELL_REFUSED */
    MRD_EVENT_PEER_WRONG_KEYS, /* a peer names more wrong rkeys than are refused: it may be guessing */
};

struct mrd_async_event {
    enum mrd_event_type event_type;
    uint32_t peer_id;
    char address[MRD_ADDRESS_MAX];
    union {
        struct mrd_qp *qp;
        struct mrd_srq *srq;
        uint64_t reserved;
    } element;
    uint64_t reserved[3];
};

/*
 * Takes the oldest event; -EAGAIN if there is none. mrd_ack_async_event() gives it back, once:
 * until then its element cannot be destroyed.
 */
MRD_EXPORT int mrd_get_async_event(struct mrd_context *context, struct mrd_async_event *event);
MRD_EXPORT void mrd_ack_async_event(struct mrd_async_event *event);
MRD_EXPORT const char *mrd_event_type_str(enum mrd_event_type type);

struct mrd_counter {
    const char *name; /* static; for example "rx_drop_checksum" */
    const char *unit; /* static; "packets", "bytes", "messages", "events", "keys" or "peers" */
    uint64_t value;   /* since the context was opened; "peers": now */
};

/*
 * Fills up to `max` elements of the caller's array, which are `size` bytes apart. Returns how many
 * counters there are; with max = 0 it only counts. mrd(7) explains each counter.
 */
MRD_EXPORT int mrd_query_counters(struct mrd_context *context, struct mrd_counter *counters,
                                  int max);
MRD_EXPORT int mrd_query_counters_sized(struct mrd_context *context, struct mrd_counter *counters,
                                        int max, size_t size);
#define mrd_query_counters(...) mrd_query_counters_sized(__VA_ARGS__, sizeof(struct mrd_counter))

/* What this context knows of a peer. */
struct mrd_peer_attr {
    uint32_t peer_id;
    uint32_t paths;   /* that mrd_query_path() knows */
    uint64_t srtt_ns; /* 0: no sample yet */
    uint64_t min_rtt_ns;
    uint64_t cwnd_bytes;
    uint64_t inflight_bytes;
    uint64_t packets_sent; /* data packets, retransmissions included */
    uint64_t packets_retransmitted;
    uint64_t packets_spurious; /* retransmissions whose original had arrived */
    uint64_t packets_received;
    uint64_t bytes_sent;     /* payload, retransmissions included */
    uint64_t bytes_received; /* payload, without duplicates */
    /* Losses by how they were found; tail loss probes; retransmission timeouts. */
    uint64_t lost_by_path_order, lost_by_rack, probes_tail, timeouts;
    char address[MRD_ADDRESS_MAX];
    uint64_t payload_bytes; /* of a packet to it, at most, as its path was found to take now */
};

enum mrd_path_state { MRD_PATH_GOOD = 0, MRD_PATH_SUSPENDED, MRD_PATH_DEAD };

struct mrd_path_attr {
    uint32_t port; /* UDP source port, or the device's number of the path */
    enum mrd_path_state state;
    uint64_t packets; /* sent on it, retransmissions included */
    uint64_t lost;    /* of these, declared lost */
    uint64_t ce;      /* of these, marked by a switch and counted by the peer */
    uint64_t srtt_ns;
    uint64_t min_rtt_ns;
};

/*
 * Tell about the peer behind `ah`, the peer with that id, or path `index` to the peer, from 0.
 * `size` is sizeof(*attr). -ENOENT: nothing was exchanged with such a peer yet, it is forgotten, or
 * there is no such path.
 */
MRD_EXPORT int mrd_query_peer(struct mrd_ah *ah, struct mrd_peer_attr *attr, size_t size);
MRD_EXPORT int mrd_query_peer_id(struct mrd_context *context, uint32_t peer_id,
                                 struct mrd_peer_attr *attr, size_t size);
MRD_EXPORT int mrd_query_path(struct mrd_ah *ah, uint32_t index, struct mrd_path_attr *attr,
                              size_t size);

/* What a context can do. */
struct mrd_device_attr {
    uint64_t max_message_bytes;
    uint64_t max_mr_bytes;
    uint32_t max_mr;
    uint32_t max_qp_wr; /* of a send queue, and of a receive queue, shared or not */
    uint32_t max_sge;   /* of a work request */
    uint32_t max_inline_data;
    uint32_t max_cqe;
    uint32_t max_rd_atomic;     /* of a queue pair: mrd_qp_init_attr.max_rd_atomic */
    uint32_t max_res_rd_atomic; /* of peers, executed here at a time; the others try again */
    uint32_t max_peers;         /* as opened */
    uint32_t max_flows;
    uint32_t max_paths;
};
/* `size` is sizeof(*attr). Queue pairs, queues, domains and handles are bound by memory only. */
MRD_EXPORT int mrd_query_device(struct mrd_context *context, struct mrd_device_attr *attr,
                                size_t size);

enum mrd_port_state { MRD_PORT_UNKNOWN = 0, MRD_PORT_DOWN, MRD_PORT_ACTIVE };

/* What is in force in a context. */
struct mrd_context_info {
    uint32_t paths; /* to each peer */
    uint32_t mtu;   /* most payload bytes of a packet, to any peer */
    char spray[16];
    char cc[16];
    uint64_t link_bps; /* bit/s; 0: unknown */
    uint32_t receive_buffer_bytes;
    uint16_t port;  /* UDP receive port; 0: the device has none */
    uint16_t check; /* MRD_CHECK_ON or MRD_CHECK_OFF of enum mrd_check */
    /* Of the RDMA device's port, or the network interface that has the context's address: now. */
    enum mrd_port_state port_state;
    uint32_t port_mtu;  /* bytes; 0: unknown */
    uint64_t port_bps;  /* bit/s; 0: unknown */
    char interface[32]; /* empty: unknown */
    char cipher
        [32]; /* that seals packets, and the library that has it; empty: they are in the clear */
};
/* `size` is sizeof(*info). */
MRD_EXPORT int mrd_query_context(struct mrd_context *context, struct mrd_context_info *info,
                                 size_t size);

/*
 * Reads the context's key file again: from now on packets are sealed by its first key, and those of all
 * its keys are opened. -EINVAL: the context has no key file, or the file is wrong; or another error of
 * reading it: then nothing changed. -ENOMEM: not all of its keys are there.
 */
MRD_EXPORT int mrd_reload_keys(struct mrd_context *context);
/*
 * Writes to `buf` why nothing comes from the peer behind `ah`, as a part of a sentence such as "it is
 * not sealed": as far as packets from its address claim, which anybody can have forged. 0; -ENOENT:
 * there is no sign; -ENOSPC: `len` bytes are too few, 300 suffice.
 */
MRD_EXPORT int mrd_query_doubt(struct mrd_ah *ah, char *buf, size_t len);

/* A sentence on the calling thread's last failure, valid until its next one; never NULL. */
MRD_EXPORT const char *mrd_last_error(void);

enum mrd_log_level { MRD_LOG_ERROR = 0, MRD_LOG_WARN, MRD_LOG_INFO, MRD_LOG_DEBUG };
/* Called from any thread; `message` is valid during the call only. */
typedef void mrd_log_fn(void *arg, enum mrd_log_level level, const char *message);
/*
 * Sends messages up to `level`, of all contexts, to `fn`; NULL: nowhere. Until the first call,
 * messages go to standard error if MRD_LOG is set, else nowhere.
 */
MRD_EXPORT void mrd_set_log(mrd_log_fn *fn, void *arg, enum mrd_log_level level);

/* The library's version, for example "0.1.0". */
MRD_EXPORT const char *mrd_version(void);

#ifdef __cplusplus
}
#endif

#endif
