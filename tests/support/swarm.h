/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The swarm: a world drawn from a seed, with random traffic, faults and destruction, in which
 * nothing wrong may happen.
 *
 * swarm_run() does it all: safety phase (faults on), heal, require completion, flush, destroy,
 * audit. It fails the running cmocka test with the seed. swarm_config.c draws the world,
 * swarm_world.c opens and destroys what is in it, swarm_traffic.c posts, swarm_chaos.c breaks,
 * swarm_judge.c decides what each completion may be, swarm.c is the plot.
 */
#ifndef MRD_TESTS_SUPPORT_SWARM_H
#define MRD_TESTS_SUPPORT_SWARM_H

#include <stdbool.h>

#include "core/rng.h"
#include "mrd/sim.h"
#include "tests/support/check.h"
#include "tests/support/ledger.h"

enum {
    SWARM_HOSTS_MAX = 4,
    SWARM_SLOTS_MAX = 3, /* live QPs a host */
    SWARM_QPS_MAX = 192, /* QPs ever made */
    SWARM_WINDOWS = 3,   /* memory regions a host that others write to */
    SWARM_MESSAGES_MAX = 512,
    SWARM_RECEIVES_MAX = 4096,
    SWARM_NO_QP = -1,
};

/*
 * Bytes of memory that nobody may have written, of writes that were read and given back, of used
 * receives.
 */
enum { SWARM_BLANK = 0, SWARM_TAKEN = 0xee, SWARM_USED = 0x5a };

/* What a seed draws. */
struct swarm_config {
    struct mrd_sim_attr sim; /* link: as it is while faults are on */
    struct mrd_sim_link healthy;
    uint32_t slots; /* QPs a host */
    uint32_t paths, mtu, max_peers, max_flows;
    uint64_t peer_timeout_ns;
    bool challenge; /* as after a real open; without, restarts are not drawn */
    const char *spray, *cc;
    uint32_t recv_bytes; /* room of each receive */
    uint32_t recv_depth; /* receives a QP */
    uint32_t send_cqe, send_depth;
    bool rnr_limited;
    bool straight;    /* receive in bursts, in place */
    bool own_buffers; /* each message has memory and an MR of its own, freed once it is complete */
    uint32_t actions;
    uint64_t bytes_left; /* budget of all messages together */
    uint32_t pace_ns;    /* time between actions: up to so much */
    /* Chaos, in parts per thousand of the actions. */
    uint32_t flush, destroy, dereg, restart, stop, hole, partition;
    bool bad_requests;
    bool trouble; /* a peer may become unreachable: RETRY_EXC is no surprise */
    bool cancels; /* something is given up half-way: REM_ABORT is no surprise */
};

/* A QP, dead or alive. */
struct swarm_qp {
    struct mrd_qp *qp; /* NULL: destroyed */
    uint32_t host, life, slot, num, qkey;
    enum mrd_order order;
    bool error;        /* put into the error state */
    bool memory_gone;  /* receives posted to it lost their MR */
    bool oversized;    /* a message longer than its receives was sent to it */
    uint32_t receives; /* posted and not complete */
};

struct swarm_window {
    struct mrd_mr *mr; /* NULL: deregistered */
    uint8_t *memory;   /* never unmapped before the end */
    size_t used;
    uint32_t rkey;
};

struct swarm_host {
    struct mrd_context *context; /* NULL: closed */
    struct mrd_pd *pd;
    struct mrd_cq *send_cq, *recv_cq;
    struct mrd_ah *ah[SWARM_HOSTS_MAX];
    struct mrd_mr *source_mr, *recv_mr;
    uint8_t *source, *recv; /* arenas */
    size_t source_used, recv_used;
    struct swarm_window window[SWARM_WINDOWS];
    int qp[SWARM_SLOTS_MAX]; /* index of the QP in each slot, or SWARM_NO_QP */
    uint32_t life;
    uint64_t resume_ns, reopen_ns; /* 0: not stopped, not closed */
};

enum swarm_flaw {
    SWARM_SOUND = 0,
    SWARM_BAD_QPN,
    SWARM_BAD_QKEY,
    SWARM_BAD_RKEY,
    SWARM_BAD_RANGE,
    SWARM_TOO_LONG
};

struct swarm_message {
    uint32_t from_qp, to_qp; /* indices */
    enum mrd_wr_opcode opcode;
    enum swarm_flaw flaw;
    uint32_t len;
    uint8_t *source;   /* NULL: given back */
    struct mrd_mr *mr; /* of its own, or NULL */
    bool lost_mr;      /* it was deregistered in mid-flight */
    uint8_t *target;   /* of a write */
    uint32_t window;   /* of a write */
    uint64_t wr_id;
    bool signaled, is_inline;
    bool sent;     /* the send completed */
    bool received; /* its receive completed */
    bool placed;   /* a write was seen in its place */
    bool late;     /* a write that was not in place when a later ordered message was delivered */
    bool taken;    /* its target was overwritten by the test, and must stay so */
    enum mrd_wc_status status;
};

/* A receive buffer. */
struct swarm_receive {
    uint8_t *buf;
    uint32_t host, used_len; /* used_len: bytes that must still be SWARM_USED */
    uint32_t qp;
    bool posted;
    bool taken; /* its MR went while it was posted: what lay there is overwritten by the test */
};

struct swarm {
    uint64_t seed;
    struct mrd_rng rng;
    struct swarm_config config;
    struct mrd_sim *sim;
    struct ledger ledger;
    struct swarm_host host[SWARM_HOSTS_MAX];
    struct swarm_qp qp[SWARM_QPS_MAX];
    uint32_t num_qps;
    struct swarm_message message[SWARM_MESSAGES_MAX];
    uint32_t num_messages;
    struct swarm_receive receive[SWARM_RECEIVES_MAX];
    uint32_t num_receives;
    /*
     * Ordered flows: message index + 1 of the last delivered, and up to which writes were looked
     * at.
     */
    uint32_t delivered[SWARM_QPS_MAX][SWARM_QPS_MAX], looked_at[SWARM_QPS_MAX][SWARM_QPS_MAX];
    uint64_t hole_until_ns, partition_until_ns; /* 0: none */
    bool healing;
    uint8_t *deferred[SWARM_MESSAGES_MAX]; /* buffers that a simulated device may still read */
    uint32_t num_deferred;
    uint64_t digest;              /* of all packets: when, where, how long */
    uint32_t successes, failures; /* of sends */
};

/* Figures of a run, for those who want to know what a swarm did. */
struct swarm_report {
    uint64_t digest, virtual_ns;
    uint32_t messages, successes, failures;
};

struct swarm_report swarm_run(uint64_t seed);

/* ---------------------------------------------------------------------------- between the parts */

void swarm_draw(struct swarm *s);
void swarm_describe(const struct swarm *s);
uint32_t swarm_below(struct swarm *s, uint32_t bound);
bool swarm_chance(struct swarm *s, uint32_t per_mille);

void swarm_open_world(struct swarm *s);
void swarm_close_world(struct swarm *s);
void swarm_open_host(struct swarm *s, uint32_t host);
void swarm_close_host(struct swarm *s, uint32_t host);
void swarm_create_qp(struct swarm *s, uint32_t host, uint32_t slot);
void swarm_destroy_qp(struct swarm *s, uint32_t index);
/*
 * Give a message's source back; `by_completion`: the library said so, else a device may still read
 * it.
 */
void swarm_free_source(struct swarm *s, struct swarm_message *m, bool by_completion);

void swarm_post_message(struct swarm *s, uint32_t host);
void swarm_post_receives(struct swarm *s, uint32_t host);

void swarm_act(struct swarm *s, uint32_t host);
/* Undo what is due; all of it when `now`. */
void swarm_undo(struct swarm *s, bool now);

void swarm_poll_host(struct swarm *s, uint32_t host);
/* Is nothing left to wait for? */
bool swarm_is_settled(struct swarm *s);
void swarm_describe_unsettled(struct swarm *s);
/* After all is complete: what succeeded arrived, what nobody may touch was not touched. */
void swarm_judge_end(struct swarm *s);

#define swarm_check(s, condition, ...)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            swarm_describe(s);                                                                     \
            test_fail((s)->seed, __VA_ARGS__);                                                     \
        }                                                                                          \
    } while (0)

#endif
