/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the fake libibverbs share: its objects, each with the one that users see in front.
 *
 * Every verb is fake_enter(), the work, fake_leave(). Functions without either are called inside the lock. Callers
 * give pointers to ibv objects; FAKE_OF() leads to the fake's.
 */
#ifndef MRD_TESTS_SUPPORT_FAKE_IBV_IMPL_H
#define MRD_TESTS_SUPPORT_FAKE_IBV_IMPL_H

#include "tests/support/fake_ibv.h"

#include <limits.h>

#include "core/rng.h"

/* The verbs that can be counted and made to fail. */
#define FAKE_IBV_CALLS(X)                                                                          \
    X(ibv_get_device_list)                                                                         \
    X(ibv_open_device)                                                                             \
    X(ibv_close_device)                                                                            \
    X(ibv_query_device)                                                                            \
    X(ibv_query_port)                                                                              \
    X(ibv_query_gid)                                                                               \
    X(ibv_query_gid_ex)                                                                            \
    X(ibv_query_gid_table)                                                                         \
    X(ibv_query_pkey)                                                                              \
    X(ibv_alloc_pd)                                                                                \
    X(ibv_dealloc_pd)                                                                              \
    X(ibv_reg_mr)                                                                                  \
    X(ibv_dereg_mr)                                                                                \
    X(ibv_create_comp_channel)                                                                     \
    X(ibv_destroy_comp_channel)                                                                    \
    X(ibv_create_cq)                                                                               \
    X(ibv_destroy_cq)                                                                              \
    X(ibv_req_notify_cq)                                                                           \
    X(ibv_get_cq_event)                                                                            \
    X(ibv_create_srq)                                                                              \
    X(ibv_modify_srq)                                                                              \
    X(ibv_query_srq)                                                                               \
    X(ibv_destroy_srq)                                                                             \
    X(ibv_create_qp)                                                                               \
    X(ibv_modify_qp)                                                                               \
    X(ibv_query_qp)                                                                                \
    X(ibv_destroy_qp)                                                                              \
    X(ibv_create_ah)                                                                               \
    X(ibv_destroy_ah)                                                                              \
    X(ibv_post_send)                                                                               \
    X(ibv_post_recv)                                                                               \
    X(ibv_post_srq_recv)                                                                           \
    X(ibv_poll_cq)                                                                                 \
    X(ibv_get_async_event)                                                                         \
    X(ibv_fork_init)

#define FAKE_CALL_NAME(name) FAKE_##name,
enum fake_call { FAKE_IBV_CALLS(FAKE_CALL_NAME) FAKE_CALLS };
#undef FAKE_CALL_NAME

enum fake_object {
    FAKE_LIST, /* a device list */
    FAKE_CONTEXT,
    FAKE_PD,
    FAKE_MR,
    FAKE_CHANNEL,
    FAKE_CQ,
    FAKE_SRQ,
    FAKE_QP,
    FAKE_AH,
    FAKE_OBJECTS
};

struct fake_qp;
struct fake_mr;

struct fake_ibv_device_state {
    unsigned live[FAKE_OBJECTS];
    uint64_t mr_bytes;
    uint32_t next_qpn, next_key;
    bool fatal;
    struct fake_context *contexts;
    struct fake_qp *qps; /* oldest first */
    struct fake_mr *mrs;
};

/* What a device list points to; freed when neither a list nor a context knows it. */
struct fake_handle {
    struct ibv_device ibv;
    struct fake_ibv_device *device;
    unsigned refs;
};

enum { FAKE_EVENTS_MAX = 64 };
#define FAKE_ALL_FAIL UINT_MAX /* of fail_at[] */

struct fake_context {
    struct verbs_context v; /* its `context` is what users see */
    struct fake_handle *handle;
    struct fake_ibv_device *device;
    struct fake_context *next;
    unsigned children;
    struct ibv_async_event events[FAKE_EVENTS_MAX];
    uint32_t events_head, events_tail; /* free-running */
    unsigned unacked;                  /* events of the port or device */
};

struct fake_pd {
    struct ibv_pd ibv;
    unsigned children;
};

struct fake_mr {
    struct ibv_mr ibv;
    int access;
    struct fake_mr *next;
};

struct fake_channel {
    struct ibv_comp_channel ibv;
    struct fake_cq *cqs;
};

/* A completion, and how many slots of the send queue are free once it is polled. */
struct fake_cqe {
    struct ibv_wc wc;
    struct fake_qp *qp; /* NULL once it is destroyed */
    bool is_send;
    uint64_t frees; /* send queue: all work up to this index is done with */
    uint64_t order; /* of its post, over all QPs */
};

struct fake_cq {
    struct ibv_cq ibv;
    struct fake_cq *channel_next;
    unsigned users;        /* queue uses of QPs */
    struct fake_cqe *ring; /* visible ones, [0, count) */
    unsigned count;
    unsigned waiting; /* at QPs, not visible yet */
    bool armed, solicited_only;
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
    uint32_t limit;
    struct fake_srq *next;
};

struct fake_ah {
    struct ibv_ah ibv;
    struct ibv_ah_attr attr;
    unsigned posted; /* work requests that name it and have not left */
};

/* A posted send. */
struct fake_send {
    uint64_t wr_id, order;
    bool signaled, solicited, is_inline, with_imm;
    uint32_t imm_data, len;
    int num_sge;
    struct ibv_sge sge[FAKE_IBV_SGE_MAX];
    uint8_t *bytes; /* copied when posted, if inline */
    struct fake_ah *ah;
    struct ibv_ah_attr av;
    uint32_t qpn, qkey;
};

struct fake_qp {
    struct ibv_qp ibv;
    struct fake_ibv_device *device;
    struct fake_qp *next;
    struct ibv_qp_cap cap;
    bool sq_sig_all;
    uint32_t qkey, sq_psn;
    uint16_t pkey_index;
    uint8_t port_num;
    struct fake_recv_queue rq;
    struct fake_send *sq;                 /* ring of cap.max_send_wr */
    uint64_t sq_posted, sq_sent, sq_free; /* free-running; free <= sent <= posted */
    struct fake_cqe *late;                /* send completions not visible yet, [0, num_late) */
    unsigned num_late;
    unsigned unacked; /* async events */
};

/* A packet on its way. */
struct fake_flying {
    unsigned record; /* index of fake.packets */
    struct fake_flying *next;
    bool solicited, with_imm;
    uint32_t imm_data;
    uint32_t wait;         /* later packets to let pass; 0: until released */
    uint8_t traffic_class; /* as marked on the way */
    enum ibv_gid_type gid_type;
    uint8_t bytes[]; /* packets[record].len */
};

struct fake {
    struct fake_ibv_device devices[FAKE_IBV_DEVICES_MAX];
    struct fake_ibv_device_state states[FAKE_IBV_DEVICES_MAX];
    unsigned num_devices;
    struct mrd_rng rng;
    struct fake_ibv_knobs knobs;
    unsigned posted; /* sends since they were set */
    fake_ibv_filter *filter;
    void *filter_arg;
    unsigned calls[FAKE_CALLS];
    unsigned fail_at[FAKE_CALLS]; /* count of calls at which it fails; 0: never */
    int fail_error[FAKE_CALLS];
    unsigned live[FAKE_OBJECTS];
    unsigned problems;
    char problem[256];
    struct fake_ibv_packet **packets; /* each on its own, so that they stay where they are */
    unsigned num_packets, cap_packets;
    unsigned fates[FAKE_IBV_FATES];
    struct fake_flying *held; /* oldest first */
    struct fake_srq *srqs;
    uint64_t order;
};
extern struct fake fake;

#define FAKE_OF(type, ibv_object) ((struct type *)(void *)(ibv_object))

static inline struct fake_context *fake_context_of(struct ibv_context *context)
{
    return (struct fake_context *)(void *)((char *)context -
                                           offsetof(struct fake_context, v.context));
}

/* Take the lock and count: 0, or the error that this call shall fail with. The lock is held either way. */
int fake_enter(enum fake_call call);
void fake_leave(void);
/* The lock alone, for the functions that tests call. */
void fake_lock(void);
/* Leave with a constructor's or function's failure. */
void *fake_fail_null(int error);
int fake_fail(int error);

/* Somebody broke a rule of verbs. */
void fake_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool fake_chance(uint32_t ppm);

/* Count an object of a device (NULL: of none): false if there are as many as it can have. */
bool fake_born(struct fake_ibv_device *device, enum fake_object kind);
void fake_gone(struct fake_ibv_device *device, enum fake_object kind);
void *fake_alloc(size_t bytes); /* zeroed; aborts if there is none */

/* fake_ibv_device.c */
void fake_event(struct fake_context *context, const struct ibv_async_event *event);
void fake_event_forget(struct fake_context *context, const void *object);
void fake_handle_put(struct fake_handle *handle);

/* fake_ibv_object.c: the memory of a piece of a gather or scatter list, or NULL if its key does not cover it. */
uint8_t *fake_memory(const struct ibv_pd *pd, const struct ibv_sge *sge, int access);

/* fake_ibv_cq.c */
void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *cqe, bool solicited);
void fake_cq_forget(struct fake_cq *cq, const struct fake_qp *qp, bool remove);
/* A send of the QP is done; it completes now or later. */
void fake_cq_send_done(struct fake_qp *qp, const struct fake_send *send, enum ibv_wc_status status);
/* A receive is done; `wc` wants its wr_id, status and what the sender said. */
void fake_cq_recv_done(struct fake_qp *qp, struct ibv_wc wc, bool solicited);

/* fake_ibv_qp.c: to the error state, all work flushed. */
void fake_qp_break(struct fake_qp *qp);

/* fake_ibv_post.c */
/* The oldest posted receive, or any; NULL: none. It lasts until the lock is left. */
struct fake_recv *fake_recv_take(struct fake_recv_queue *queue, bool any);
struct fake_send *fake_send_at(const struct fake_qp *qp, uint64_t index);
/* A posted send has left or is flushed: it needs its address handle and bytes no more. */
void fake_send_release(struct fake_send *send);
int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int fake_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *ibv, int solicited_only);

/* fake_ibv_arrive.c: sets the packet's fate. */
void fake_arrive(const struct fake_flying *flying);

/* fake_ibv_wire.c */
unsigned fake_transmit(unsigned max);
void fake_wire_end(void);

#endif
