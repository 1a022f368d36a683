/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the fake libibverbs share: its objects, each behind what its users see.
 *
 * Every verb is fake_enter() or fake_lock(), the work, and one of fake_leave_*(). Functions without
 * them are called inside the lock. FAKE_OF() leads from the object that users see to the fake's.
 */
#ifndef MRD_TESTS_SUPPORT_FAKE_IBV_IMPL_H
#define MRD_TESTS_SUPPORT_FAKE_IBV_IMPL_H

#include "tests/support/fake_ibv.h"

#include "core/rng.h"

/* The verbs that are counted and can be made to fail. */
#define FAKE_IBV_CALLS(X)                                                                          \
    X(ibv_get_device_list)                                                                         \
    X(ibv_open_device)                                                                             \
    X(ibv_query_device)                                                                            \
    X(ibv_query_port)                                                                              \
    X(ibv_query_gid_table)                                                                         \
    X(ibv_alloc_pd)                                                                                \
    X(ibv_reg_mr)                                                                                  \
    X(ibv_dereg_mr)                                                                                \
    X(ibv_create_comp_channel)                                                                     \
    X(ibv_create_cq)                                                                               \
    X(ibv_create_srq)                                                                              \
    X(ibv_create_qp)                                                                               \
    X(ibv_modify_qp)                                                                               \
    X(ibv_create_ah)                                                                               \
    X(ibv_post_srq_recv)                                                                           \
    X(ibv_poll_cq)

#define FAKE_CALL_NAME(name) FAKE_##name,
enum fake_call { FAKE_IBV_CALLS(FAKE_CALL_NAME) FAKE_CALLS };
#undef FAKE_CALL_NAME

struct fake_ibv_device_state {
    struct ibv_device ibv;
    struct fake_ibv_device *device;
    int qp_count, ah_count;
    uint64_t mr_bytes;
    uint32_t next_qpn, next_key;
    bool fatal;
    struct fake_context *contexts;
    struct fake_qp *qps; /* oldest first */
    struct fake_mr *mrs;
};

enum { FAKE_EVENTS_MAX = 64 };

struct fake_context {
    struct verbs_context v; /* its `context` is what users see */
    struct fake_ibv_device *device;
    struct fake_context *next;
    unsigned users;
    struct ibv_async_event events[FAKE_EVENTS_MAX]; /* oldest first */
    unsigned num_events;
};

struct fake_pd {
    struct ibv_pd ibv;
    unsigned users;
};

struct fake_mr {
    struct ibv_mr ibv;
    int access;
    struct fake_mr *next;
};

struct fake_channel {
    struct ibv_comp_channel ibv;
    unsigned users;
    struct fake_cq *cqs;
};

struct fake_cqe {
    struct ibv_wc wc;
    struct fake_qp *qp; /* NULL once it is destroyed */
    bool is_hidden;     /* from polls, until one lets it appear */
    uint64_t frees;     /* of a send: all work of the send queue up to this index is done with */
};

struct fake_cq {
    struct ibv_cq ibv;
    struct fake_cq *next; /* of the channel */
    unsigned users;
    struct fake_cqe *cqes; /* oldest first */
    unsigned count;
    bool is_armed;
    unsigned undelivered, unacked; /* events */
};

/* A posted receive. */
struct fake_recv {
    uint64_t wr_id;
    int num_sge;
    struct ibv_sge sge[FAKE_IBV_SGE_MAX];
};

struct fake_recv_queue {
    struct fake_recv *entry; /* ring of max */
    uint64_t head, tail;     /* free-running; posted: [head, tail) */
    uint32_t max, max_sge;
};

struct fake_srq {
    struct ibv_srq ibv;
    struct fake_recv_queue queue;
    unsigned users;
};

struct fake_ah {
    struct ibv_ah ibv;
    struct ibv_ah_attr attr;
    unsigned posted; /* sends that name it and have not left */
};

/* A posted send. */
struct fake_send {
    uint64_t wr_id, order;
    bool is_signaled, is_inline;
    uint32_t len;
    int num_sge;
    struct ibv_sge sge[FAKE_IBV_SGE_MAX];
    uint8_t *bytes;
    struct fake_ah *ah;
    uint32_t qpn, qkey;
};

struct fake_qp {
    struct ibv_qp ibv;
    struct fake_ibv_device *device;
    struct fake_qp *next;
    struct ibv_qp_cap cap;
    uint32_t qkey;
    uint8_t port_num;
    struct fake_recv_queue rq;
    struct fake_send *sq;                 /* ring of cap.max_send_wr */
    uint64_t sq_posted, sq_sent, sq_free; /* free-running; free <= sent <= posted */
    uint64_t passed_over;                 /* the scan of a CQ that left a completion of it behind */
};

/* A packet: recorded, and on its way while it has bytes. */
struct fake_packet {
    struct fake_ibv_packet seen;
    uint8_t *bytes;
    uint32_t qkey;
    enum ibv_gid_type gid_type;
    bool is_ce;
    struct fake_packet *next; /* that is held */
    uint32_t wait;            /* later packets to let pass */
};

struct fake {
    struct fake_ibv_device devices[FAKE_IBV_DEVICES_MAX];
    struct fake_ibv_device_state states[FAKE_IBV_DEVICES_MAX];
    unsigned num_devices;
    struct mrd_rng rng;
    struct fake_ibv_knobs knobs;
    unsigned posted; /* sends since they were set */
    unsigned calls[FAKE_CALLS];
    unsigned fail_at[FAKE_CALLS]; /* count of calls at which it fails; 0: never */
    int fail_error[FAKE_CALLS];
    unsigned live, problems, events_unacked;
    unsigned num_packets, num_received;
    struct fake_packet *held; /* oldest first */
    uint64_t order, scans;
};
extern struct fake fake;

#define FAKE_OF(type, ibv_object) ((struct type *)(void *)(ibv_object))

static inline struct fake_context *fake_context_of(struct ibv_context *context)
{
    return (struct fake_context *)(void *)((char *)context -
                                           offsetof(struct fake_context, v.context));
}

void fake_lock(void);
/* Take the lock, in any case, and count: 0, or the error that this call shall fail with. */
int fake_enter(enum fake_call call);
/* Unlock, with an error or 0 in errno's terms. */
int fake_leave(int error);
/* Unlock. The object, or NULL with errno set. */
void *fake_leave_new(void *object, int error);

/* Somebody broke a rule of verbs. */
void fake_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool fake_chance(uint32_t ppm);
unsigned fake_read(const unsigned *n); /* with the lock */
void *fake_alloc(size_t bytes);        /* zeroed; aborts if there is none */

/* A new object, which its parent must outlive; NULL if there is an error already. */
void *fake_new(size_t bytes, unsigned *parent_users, int error);
/* Free it and unlock: 0, or EBUSY if it has users. */
int fake_destroy(void *object, unsigned users, unsigned *parent_users);

/* fake_ibv_device.c */
void fake_event(struct fake_context *context, const struct ibv_async_event *event);
/* The events of a QP go with it; whoever saw the descriptor readable for one finds none. */
void fake_event_forget(struct fake_context *context, const struct fake_qp *qp);

/* fake_ibv_object.c: where a piece of a list lies, or NULL if its key does not cover it. */
uint8_t *fake_memory(const struct ibv_pd *pd, const struct ibv_sge *sge, int access);

/* fake_ibv_cq.c */
/* A send of the QP is done; it completes now or later. */
void fake_send_done(struct fake_qp *qp, const struct fake_send *send, enum ibv_wc_status status);
void fake_recv_done(struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status, uint32_t len,
                    uint32_t src_qpn);
/* A QP goes, and its completions with it, but for those that the device keeps. */
void fake_cq_forget(struct ibv_cq *ibv, const struct fake_qp *qp);
int fake_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *ibv, int solicited_only);

/* fake_ibv_qp.c: to the error state, all work flushed. */
void fake_qp_break(struct fake_qp *qp);

/* fake_ibv_post.c */
/* The oldest posted receive, or any; NULL: none. It lasts until the lock is left. */
struct fake_recv *fake_recv_take(struct fake_recv_queue *queue, bool any);
struct fake_send *fake_send_at(const struct fake_qp *qp, uint64_t index);
/* Copy its bytes from where they are: inline ones when they are posted, others when they leave. */
void fake_gather(const struct fake_qp *qp, struct fake_send *send);
/* A posted send has left or is flushed: it needs its address handle and bytes no more. */
void fake_send_release(struct fake_send *send);
int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* fake_ibv_wire.c */
void fake_transmit(void);
void fake_wire_end(void);

#endif
