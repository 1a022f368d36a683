/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comms: NCCL's connections, which go one way.
 *
 * Each end of a comm is a queue pair. The receiver tells the sender of each group of receives where
 * they are and how long (a grant); the sender writes there, with an immediate value that says which
 * receive that was. A send that finds no grant is written into a slot of the receiver's, as long as
 * there is a free one (eagerly), and the receiver copies it to its receive.
 *
 * Both ends find out by themselves which send meets which receive: the first send of a tag meets the
 * first receive of that tag, the second the second. For that, messages are numbered as they leave, and
 * the receiver looks at them in that order. Of a tag, no send leaves before an earlier one; one without a
 * receive keeps none of another tag.
 *
 * All fields but those of the caller belong to the lane's thread.
 */
#ifndef MRD_NCCL_COMM_H
#define MRD_NCCL_COMM_H

#include "transport/adapters/nccl/lane.h"
#include "transport/adapters/nccl/nccl_net.h"

enum {
    COMM_GROUPS = 64,  /* of receives, outstanding */
    COMM_SENDS = 256,  /* outstanding: NCCL_NET_MAX_REQUESTS * SETTINGS_GROUP_MAX */
    COMM_SLOTS = 32,   /* for eager sends */
    COMM_BACKLOG = 64, /* connections that were not accepted */
    /* While a message is on its way, those of at most COMM_SENDS - 1 sends before its own, which had
     * waited, and of as many after it leave. */
    COMM_NUMBERS = 2 * COMM_SENDS,
    COMM_VERSION = 1,
};

/* What a message is; of other software, or of another byte order, it is none of these. */
enum comm_magic { COMM_HANDLE = 0x4d52444e, COMM_HELLO, COMM_WELCOME, COMM_GRANT, COMM_BYE };

/* The immediate value of a message from the sender: its number, modulo COMM_NUMBERS, and these. */
enum comm_imm {
    COMM_IMM_PLACE = 16,   /* bits from here on: the group, or the slot of an eager send */
    COMM_IMM_RECEIVE = 24, /* and from here on: the receive of the group */
    COMM_IMM_EAGER = 1u << 31,
    COMM_IMM_BYE = 1u << 30, /* the sender has closed */
};

/* In front of an eager send, in its slot. */
struct comm_eager {
    int32_t tag;
    uint32_t reserved[3];
};

/* Where each receive of a group is, and which slots have become free. */
struct comm_grant {
    uint32_t magic;
    uint32_t freed;    /* bits of slots */
    uint32_t receives; /* 0: no group, only `freed` counts */
    uint32_t reserved;
    uint64_t group;
    struct comm_grant_at {
        uint64_t address;
        uint64_t bytes;
        uint32_t rkey;
        int32_t tag;
    } at[SETTINGS_GROUP_MAX];
};

/* The first message to a listener, and the first one back, to the sender's queue pair. */
struct comm_hello {
    uint32_t magic, version;
    uint32_t qp_num, qkey;
    uint64_t slots; /* of the receiver: address, key, size; 0: none */
    uint32_t slots_rkey, slot_bytes;
    char address[MRD_ADDRESS_MAX];
};

union comm_message {
    uint32_t magic;
    struct comm_hello welcome;
    struct comm_grant grant;
};

/* What listen() tells and connect() gets, 128 bytes. */
struct comm_handle {
    uint32_t magic, version;
    uint32_t qp_num, qkey;
    char address[96];
    uint64_t connecting; /* the process that connects keeps a pointer there */
    uint64_t reserved;
};

/* What ends a request, besides success, which is 1. */
enum comm_end { COMM_PENDING = 0, COMM_DONE = 1, COMM_GONE, COMM_TOO_LONG, COMM_FAILED };

/* One of NCCL's requests: a send, or a group of receives. */
struct comm_request {
    struct lane_work work;
    struct lane_op op;
    struct comm *comm;
    bool used;       /* the caller's: from isend or irecv until test() has told the end */
    atomic_int end;  /* enum comm_end */
    uint64_t number; /* of the send or the group */
    unsigned n;      /* receives of the group; 1 for a send */
    unsigned open;   /* of them, not ended */
    bool copies;     /* data goes through `bounce` */
    unsigned taken;  /* bits of receives that have met their send */
    bool granting;   /* the sender has not got the grant; also of an earlier group of this place */
    int sizes[SETTINGS_GROUP_MAX];
    struct comm_buffer {
        void *data;
        size_t bytes;
        uint32_t lkey, rkey; /* its region's, which may be gone before the request */
        int tag;
        uint8_t *landing; /* where the sender writes: `data`, or a part of `bounce` */
    } buffer[SETTINGS_GROUP_MAX];
    struct {
        uint8_t *data;
        size_t bytes;
        struct mrd_mr *mr;
    } bounce;
};

struct comm {
    struct lane *lane;
    struct lane_user user;
    bool sends;
    struct mrd_qp *qp;
    int cqe; /* reserved in the lane's completion queue */
    uint32_t remote_qpn, remote_qkey;
    struct lane_op control;           /* of small messages */
    void (*ready)(struct comm *comm); /* when one of them is through; or NULL */
    atomic_int broken;                /* the peer is gone: what is not ended does not end well */
    atomic_bool told;                 /* in the log */
    char why[128];
    char peer[MRD_ADDRESS_MAX];
    struct lane_op bye; /* to the peer: we have closed; these three stay until it is through */
    struct lane_work closing;
    struct lane_last last;
    void (*finish)(struct comm *comm); /* frees all of it */
    struct comm_request *requests;     /* COMM_SENDS or COMM_GROUPS of them */
    uint64_t next;                     /* the caller's: number of the next request */
};

/* Both kinds share this. */
bool comm_init(struct comm *comm, struct lane *lane, bool sends);
/* The queue pair, in `state`, and room for its completions. */
bool comm_open(struct comm *comm, enum mrd_qp_state state, struct mrd_qp_cap cap);
/* Ends what is left, and frees all but the comm. */
void comm_close(struct comm *comm);
void comm_free(struct comm *comm);

/*
 * A small message, to the peer's queue pair or to another one of that context. False: it is not
 * posted; either the comm is broken, or `ready` will be called. `op`: comm.control, or one that calls it.
 */
bool comm_post(struct comm *comm, struct lane_op *op, uint32_t qp_num, uint32_t qkey,
               const void *data, size_t bytes);
/*
 * From now on requests end in ncclRemoteError; `why` is told once. What ends one in another way comes
 * before.
 */
void comm_break(struct comm *comm, const char *why);
void comm_end_request(struct comm_request *request, enum comm_end end);
uint32_t comm_random(void);

/* Is no request outstanding? */
bool comm_is_idle(struct comm *comm);
/* Does the peer's context answer? The comm may be broken all the same. */
bool comm_has_peer(const struct comm *comm);
/* Another queue pair in place of it: what was outstanding touches no memory any more. */
bool comm_renew(struct comm *comm);
/* Tells the peer by that request, and calls finish() later. False: it is not posted. */
bool comm_say_bye(struct comm *comm, struct mrd_send_wr *wr);

/* The caller's part: the next free request, numbered; NULL: all are in use. */
struct comm_request *comm_take(struct comm *comm);

#endif
