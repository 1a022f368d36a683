/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated world for tests: hosts with a context each, messages with known bytes, and budgets of
 * virtual time.
 *
 * sim_world_create(); sim_send(), sim_write(), sim_post(); sim_run_until_complete(), which fails
 * the test if the budget is not enough; sim_payload_equal(). After the test its worlds are destroyed,
 * which asserts that nothing leaked. Every completion goes through the ledger (ledger.h). Tests may use the
 * handles and messages in these structs with the API directly.
 */
#ifndef MRD_TESTS_SUPPORT_WORLD_H
#define MRD_TESTS_SUPPORT_WORLD_H

#include <stdbool.h>

#include "mrd/sim.h"
#include "tests/support/check.h"
#include "tests/support/ledger.h"

enum { HOST_0 = 0, HOST_1, HOST_2, HOST_3, SIM_HOSTS_MAX = 64, SIM_QPS_MAX = 64 };

/* Zero means the default, which is in brackets. */
struct sim_options {
    uint64_t seed;  /* [test_seed()] */
    uint32_t hosts; /* [2] */
    uint32_t links; /* between two hosts [paths, at most 16; else 4] */
    uint32_t paths; /* of each context [the simulation's 64] */
    uint32_t qps;   /* a host [1] */
    uint64_t rate_bps, delay_ns, jitter_ns, queue_bytes; /* of a link [100 Gb/s, 5 us, 0, 1 MiB] */
    uint64_t ecn_min_bytes, ecn_max_bytes;
    uint32_t loss_ppm, duplicate_ppm, corrupt_ppm, skew_ppm;
    /*
     * Switches in place of links between hosts; gives the hosts, the rates and the delays [none].
     */
    const struct mrd_sim_topology *topology;
    uint32_t wire_overhead;
    uint32_t knows; /* enum mrd_sim_knows [MRD_SIM_KNOWS_SOCKETS] */
    bool ack_priority;
    struct {
        uint32_t path;
        /* From then on the path's link drops all, in both directions; 0: never. */
        uint64_t at_ns;
    } blackhole;
    const char *spray, *cc;
    uint32_t mtu, max_flows;
    uint32_t max_peers; /* [64] */
    uint64_t peer_timeout_ns;
    uint64_t challenge_ns;  /* [the library's] */
    bool unchecked;         /* payloads have no check */
    const char *key_file;   /* of all hosts */
    const char *key_file_1; /* of host 1, if it has another; "": none */
    bool no_challenge;      /* first contacts are never challenged, and carry data at once */
    enum mrd_order order;
    uint32_t send_wr, recv_wr, cqe; /* [256, 1024, 4096] */
    uint32_t send_sge, recv_sge;    /* [1, 1] */
    uint32_t recv_bytes;            /* length of receives posted by sim_send() [4 MiB] */
    bool rnr_limited;               /* use rnr_retry; else retry for ever */
    uint32_t rnr_retry;
    uint64_t rnr_timer_ns;
    uint64_t tx_done_delay_ns;
    uint32_t tx_burst_max;
    bool straight;    /* straight receive: bursts, with payload straight to its place */
    bool no_receives; /* sim_send() and sim_write_imm() post none */
};

struct sim_node {
    struct mrd_context *context; /* NULL while closed */
    struct mrd_pd *pd;
    struct mrd_cq *cq; /* of all QPs, sends and receives */
    struct mrd_qp *qp[SIM_QPS_MAX];
    struct mrd_ah *ah[SIM_HOSTS_MAX]; /* for each host, itself included */
    struct mrd_mr *mr;                /* of the whole arena */
    uint8_t *arena;
    size_t arena_used;
    uint32_t life;                               /* number of times opened */
    uint32_t deliveries;                         /* receive completions so far */
    uint32_t unreachable, restarted, busy, full; /* numbers of events */
};

struct sim_message {
    uint32_t from, to, qp; /* hosts; index of the QP at both */
    enum mrd_wr_opcode opcode;
    uint32_t len;
    uint8_t *source, *target; /* target: of a write */
    uint64_t wr_id;
    bool signaled, sent, received, equal; /* `sent`: the send has completed */
    enum mrd_wc_status status;            /* of the send's completion */
    /* Place of its receive among those completed at the target, from 1. */
    uint32_t delivery;
    uint64_t sent_ns, received_ns; /* when the completions were polled */
};

struct sim_receive {
    uint32_t host, qp;
    uint8_t *buf;
    uint32_t len;
    uint64_t wr_id;
    bool done;
    enum mrd_wc_status status;
    struct mrd_wc wc;
};

struct sim_world {
    struct mrd_sim *sim;
    struct sim_options options; /* with defaults filled in */
    struct sim_node node[SIM_HOSTS_MAX];
    struct sim_message *messages; /* owned */
    uint32_t num_messages, cap_messages;
    struct sim_receive *receives; /* owned */
    uint32_t num_receives, cap_receives;
    struct ledger ledger;
};

struct sim_world *sim_world_create(const struct sim_options *options);
/* The same with MRD_SIM_KNOWS_FABRIC. */
struct sim_world *sim_fabric_world(const struct sim_options *options);
/* The same, and hosts 0 and 1 know their round trip time, so that probes are quick. */
struct sim_world *sim_warm_world(const struct sim_options *options);
/*
 * Before the end of the test, where many worlds would be too large: destroys all QPs, lets time pass,
 * and asserts mrd_engine_audit() of every context.
 */
void sim_world_destroy(struct sim_world *w);

struct mrd_engine *sim_engine(const struct sim_world *w, uint32_t host);
/* The host's only peer, or the one that it had to do with last. */
struct mrd_peer *sim_peer(const struct sim_world *w, uint32_t host);

/* All attributes of a request; zero means the default, which is in brackets. */
struct sim_post {
    uint32_t from, to, qp;
    uint32_t len;
    enum mrd_wr_opcode opcode; /* [MRD_WR_RDMA_WRITE] */
    bool unsignaled, is_inline;
    uint32_t pieces;     /* gather from so many pieces [1] */
    bool no_receive;     /* post none at the target */
    uint32_t qpn_add;    /* added to the remote QP number: to name a wrong one */
    uint32_t qkey_add;   /* likewise the qkey */
    uint32_t rkey_add;   /* likewise the rkey */
    uint64_t remote_add; /* likewise the remote address */
};

/* Each posts one message and returns its index in messages[]. A failing post fails the test. */
uint32_t sim_post(struct sim_world *w, const struct sim_post *post);
uint32_t sim_send(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len);
uint32_t sim_write(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len);
uint32_t sim_write_imm(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len);
uint32_t sim_post_on(struct sim_world *w, uint32_t from, uint32_t to, uint32_t qp, uint32_t len,
                     enum mrd_wr_opcode opcode);
/* As sim_post(), but returns what mrd_post_send() returned; sets *index only if that is 0. */
int sim_try_post(struct sim_world *w, const struct sim_post *post, uint32_t *index);
/* Posts `count` receives of `len` bytes on QP `qp` of the host. */
void sim_post_recvs(struct sim_world *w, uint32_t host, uint32_t qp, uint32_t count, uint32_t len);

/* Puts QP `qp` of the host into the error state. */
void sim_fail_qp(struct sim_world *w, uint32_t host, uint32_t qp);
/* Changes links at once, as mrd_sim_schedule() does: sim_links(w, "host0>host1*", "delay", "%d", us). */
void sim_links(struct sim_world *w, const char *links, const char *action, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Takes all completions and events of all contexts. */
void sim_poll(struct sim_world *w);
/* Lets `ns` of virtual time pass, with all contexts polling. */
void sim_run(struct sim_world *w, uint64_t ns);
/* The same, and the host is stopped meanwhile. */
void sim_stop_for(struct sim_world *w, uint32_t host, uint64_t ns);
/*
 * Runs until every message is complete, and fails the test if that takes longer than budget_ns.
 * Returns the time taken in ns.
 */
uint64_t sim_run_until_complete(struct sim_world *w, uint64_t budget_ns);
/* The same, and every message must have arrived, with all bytes right. */
uint64_t sim_all_arrive(struct sim_world *w, uint64_t budget_ns);
/* Posts one, and likewise. */
void sim_send_complete(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len,
                       uint64_t budget_ns);
void sim_write_complete(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len,
                        uint64_t budget_ns);
/* Is every message complete: with a completion, and received if it succeeded? */
bool sim_is_complete(struct sim_world *w);
/* Did every message to the host arrive, with all bytes right? */
bool sim_payload_equal(struct sim_world *w, uint32_t host);
/* No host of the world has had an event that a peer is unreachable, or restarted. */
void sim_expect_no_losses(const struct sim_world *w);
/* The message's send, or the receive, has completed with this status. */
void sim_expect_sent(const struct sim_world *w, uint32_t message, enum mrd_wc_status status);
void sim_expect_received(const struct sim_world *w, uint32_t receive, enum mrd_wc_status status);
/* Were the messages from -> to on that QP received in the order posted? */
bool sim_in_order(const struct sim_world *w, uint32_t from, uint32_t to, uint32_t qp);
/* A counter of mrd_query_counters(); fails the test if there is none of that name. */
uint64_t sim_counter(struct sim_world *w, uint32_t host, const char *name);

/*
 * Closes the host's context and all its objects; opens it again: a new incarnation, the old memory.
 */
void sim_close(struct sim_world *w, uint32_t host);
void sim_open(struct sim_world *w, uint32_t host);
void sim_restart(struct sim_world *w, uint32_t host);
/* The same; whoever opens from now on has this timeout. */
void sim_restart_with(struct sim_world *w, uint32_t host, uint64_t peer_timeout_ns);

#endif
