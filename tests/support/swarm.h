/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The swarm: a world drawn from a seed, with random traffic, faults and destruction, in which
 * nothing wrong may happen.
 *
 * swarm_run() does it all: safety phase (faults on), heal, require completion within a budget of
 * virtual time, require that everybody reaches everybody and that no receive is lost, flush,
 * destroy, audit. It fails the running cmocka test with the seed. swarm_profile.c and
 * swarm_config.c draw the world, swarm_world.c opens and destroys what is in it, swarm_traffic.c
 * posts, swarm_chaos.c breaks, swarm_packets.c looks at every packet, swarm_excuse.c knows which
 * errors that explains, swarm_judge.c decides what each completion may be, swarm_end.c what must be
 * true in the end, swarm_after.c tries the healed world, swarm_scene.c plays what chance would not,
 * swarm.c is the plot.
 */
#ifndef MRD_TESTS_SUPPORT_SWARM_H
#define MRD_TESTS_SUPPORT_SWARM_H

#include <stdbool.h>

#include "core/rng.h"
#include "mrd/sim.h"
#include "tests/support/check.h"
#include "tests/support/ledger.h"

enum {
    SWARM_HOSTS_MAX = 32,
    SWARM_SLOTS_MAX = 3,  /* live QPs a host */
    SWARM_SLOT_AFTER = 3, /* the slot of one more, made when all is healed */
    SWARM_QPS_MAX = 768,  /* QPs ever made */
    SWARM_WINDOWS = 3,    /* memory regions a host that others write to */
    SWARM_MESSAGES_MAX = 16384,
    SWARM_RECEIVES_MAX = 16384,
    SWARM_NO_QP = -1,
    SWARM_ANY = -1, /* of hosts and links: all */
};

/*
 * Bytes of memory that nobody may have written, of writes that were read and given back, of
 * used receives.
 */
enum { SWARM_BLANK = 0, SWARM_TAKEN = 0xee, SWARM_USED = 0x5a };

/* What kind of trouble a seed looks for. */
enum swarm_profile {
    SWARM_MIXED = 0, /* a little of everything */
    SWARM_DEPTH,     /* thousands of messages, few and late receives */
    SWARM_STARVED,   /* a QP without receives must not stop the others */
    SWARM_SQUEEZED,  /* windows below a packet, losses and refusals both ways */
    SWARM_ONE_WAY,   /* one direction dead, for less or more than the peers' timeouts */
    SWARM_STALLED,   /* processes stopped, and networks cut, for less or more than the timeouts */
    SWARM_CHURN,     /* QPs come and go; small pools */
    SWARM_RESTARTS,  /* contexts close and open again, with traffic both ways */
    SWARM_CLOSING,   /* nothing is ever lost, and receivers close once they have what they want */
    SWARM_CROWD,     /* many hosts share one */
    SWARM_IN_ORDER,  /* ordered flows only, losses and destruction */
    SWARM_QUIET,     /* long silences, in which others restart or are forgotten */
    SWARM_PROFILES
};

/* What peers share. */
enum swarm_pool {
    SWARM_POOL_REFUSALS = 0,
    SWARM_POOL_SLOTS, /* open messages */
    SWARM_POOL_PENDS, /* messages that are held back */
    SWARM_POOL_PAGES, /* of records of sent packets, beyond the one that each may have */
    SWARM_POOLS
};

/* How a host opens its context. */
struct swarm_host_config {
    uint64_t peer_timeout_ns; /* 0: the default */
    uint64_t challenge_ns;
    bool challenge; /* false: never; else for challenge_ns after the open, 0: the default */
    const char *spray, *cc;
    uint32_t paths, max_peers, max_flows;
};

/* What a seed draws. */
struct swarm_config {
    enum swarm_profile profile;
    struct mrd_sim_attr sim; /* link: as it is while faults are on */
    struct mrd_sim_link healthy;
    bool unequal_delays;
    struct swarm_host_config host[SWARM_HOSTS_MAX];
    uint32_t slots; /* QPs a host */
    uint32_t mtu;
    uint32_t recv_bytes;      /* room of each receive */
    uint32_t recv_depth;      /* receives a QP */
    uint32_t tracker;         /* PSNs under way; 0: the mover's */
    uint32_t rx_buffer_bytes; /* what senders share; 0: more than they can fill */
    uint32_t send_cqe, send_depth;
    uint32_t ordered;           /* QPs, parts per thousand */
    uint32_t pool[SWARM_POOLS]; /* most items of what peers share; 0: as many as there are */
    bool rnr_limited;           /* some QPs give up on a target without receives */
    bool straight;              /* receive in bursts, in place */
    bool own_buffers; /* each message has memory and an MR of its own, freed once it is complete */
    uint32_t actions;
    uint32_t messages;         /* most of them */
    uint32_t burst;            /* most of them an action */
    uint32_t sends;            /* of all messages, not writes: parts per thousand */
    uint32_t len_min, len_max; /* 0, 0: of all sizes */
    uint32_t own;              /* of all messages, to the own host: parts per thousand */
    bool one_sided;            /* only the first host sends */
    bool numbered;             /* each message carries immediate data */
    uint64_t bytes_left;       /* budget of all messages together */
    uint32_t pace_ns;          /* time between actions: up to so much */
    uint64_t late_ns;          /* hosts post no receive for up to so long at the start */
    uint64_t cut_ns, stop_ns;  /* longest cut of a long kind; longest stop */
    /* Chaos, in parts per thousand of the actions. */
    uint32_t flush, destroy, dereg, restart, stop, hole, partition, one_way, delay, late;
    /* Of the packets: parts per thousand that come once more, up to 2 s late. */
    uint32_t old_copies;
    uint32_t longer; /* of stops and cuts, those of the long kind */
    uint32_t busy;   /* of stops, cuts and restarts, those that come amid traffic */
    uint32_t last;   /* of seeds: parts per thousand that end with a fault and nothing after it */
    bool bad_requests;
    uint32_t flawed; /* of the messages then: parts per thousand */
};

/* A QP, dead or alive. */
struct swarm_qp {
    struct mrd_qp *qp; /* NULL: destroyed */
    uint32_t host, life, slot, num, qkey;
    enum mrd_order order;
    bool error;        /* put into the error state */
    bool memory_gone;  /* receives posted to it lost their MR */
    bool oversized;    /* a message longer than its receives was sent to it */
    bool starved;      /* gets no receives while faults are on */
    uint32_t receives; /* posted and not complete */
    uint32_t depth;    /* most of them */
    uint32_t owed;     /* receives that others used up while it was being drained */
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
    int qp[SWARM_SLOTS_MAX + 1]; /* index of the QP in each slot, or SWARM_NO_QP */
    uint32_t life;
    uint64_t resume_ns, reopen_ns;   /* 0: not stopped, not closed */
    uint64_t stopped_ns, resumed_ns; /* when that happened last */
    uint64_t late_until_ns;          /* posts no receives before */
    bool cancelled;                  /* it gave something up half-way */
    uint32_t *unposted;              /* receive buffers that are not posted */
    uint32_t num_unposted;
};

/* Links that are dead for a while; link SWARM_ANY: in this direction all of them. */
struct swarm_cut {
    int from, to, link;
    int spared;                  /* a host whose links live all the same, or SWARM_ANY: none */
    uint64_t since_ns, until_ns; /* until 0: none */
};

/* What two hosts suffered of each other. */
struct swarm_pair {
    uint64_t cut_ns;   /* how long they could not talk, lately */
    uint64_t until_ns; /* when that ended */
    bool excused;      /* that, or a restart, explains that one finds the other gone */
};

/* What a host was seen to tell of another one's space, last. */
struct swarm_told {
    uint32_t by, inc, epoch; /* incarnations of the one and of the other */
    uint32_t serial, cum;
    uint32_t limit;     /* the greatest */
    uint32_t farewells; /* acks of a context that closes */
};

/* When a space was seen first. */
struct swarm_begun {
    uint32_t inc, epoch;
    uint64_t at_ns;
};

/* What a host knew of another one, last. */
struct swarm_view {
    uint32_t epoch, una, ack_serial, unanswered, unacked;
    uint64_t stall_seen_ns;
    bool ack_seen;
    /* When it sent what asks for no ack, by its clock, if nothing did since; 0: it asks. */
    uint64_t unasked_ns;
    uint32_t held[SWARM_POOLS];
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
    uint64_t wr_id, posted_ns;
    uint64_t look_ns; /* of an unsignaled write: when to see next whether it is in place */
    bool signaled, is_inline;
    bool sent;     /* the send completed */
    bool implied;  /* unsignaled and ordered, and a later message of its flow completed */
    bool received; /* its receive completed */
    bool placed;   /* a write was seen in its place, at the latest when that was overwritten */
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
    struct mrd_rng rng, wire_rng;
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
     * Ordered flows: message index + 1 of the last delivered, and up to which writes were
     * looked at.
     */
    uint32_t delivered[SWARM_QPS_MAX][SWARM_QPS_MAX], looked_at[SWARM_QPS_MAX][SWARM_QPS_MAX];
    /* Message index + 1 of the last whose send completed. */
    uint32_t completed[SWARM_QPS_MAX][SWARM_QPS_MAX];
    struct swarm_cut cut;
    struct swarm_pair pair[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    struct swarm_told told[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    struct swarm_begun begun[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    struct swarm_view view[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    bool tells; /* what happens, on stderr: MRD_SWARM_TRACE */
    bool healing;
    bool ends_with_fault; /* the last thing before that was one, and none was told of it since */
    uint64_t faulty_ns;   /* when the last cut or stop ended; 0: there was none */
    uint32_t drain_first; /* receives are being drained by messages from this one on; 0: no */
    uint64_t posted_len;  /* of all messages */
    uint32_t settled;     /* messages below that are */
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
/* Adjust what was drawn to the seed's profile. */
void swarm_draw_profile(struct swarm *s);
const char *swarm_profile_name(enum swarm_profile profile);
void swarm_describe(const struct swarm *s);
uint32_t swarm_below(struct swarm *s, uint32_t bound);
bool swarm_chance(struct swarm *s, uint32_t per_mille);
uint32_t swarm_pick(struct swarm *s, const uint32_t *values, uint32_t num);

#define SWARM_PICK(s, ...)                                                                         \
    swarm_pick(s, (const uint32_t[]){__VA_ARGS__},                                                 \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

void swarm_open_world(struct swarm *s);
void swarm_close_world(struct swarm *s);
void swarm_open_host(struct swarm *s, uint32_t host);
void swarm_close_host(struct swarm *s, uint32_t host);
void swarm_create_qp(struct swarm *s, uint32_t host, uint32_t slot);
void swarm_destroy_qp(struct swarm *s, uint32_t index);
/*
 * Give a message's source back; `by_completion`: the library said so, else a device may still
 * read it.
 */
void swarm_free_source(struct swarm *s, struct swarm_message *m, bool by_completion);

void swarm_post_message(struct swarm *s, uint32_t host);
/* Any message between these QPs; 0, or -ENOMEM, -EAGAIN: no room, nothing posted. */
int swarm_post_drawn(struct swarm *s, uint32_t from_qp, uint32_t to_qp);
/* A small message with immediate data instead. */
int swarm_post_small(struct swarm *s, uint32_t from_qp, uint32_t to_qp);
void swarm_post_receives(struct swarm *s, uint32_t host);
void swarm_post_receive(struct swarm *s, uint32_t qp);

/* On to `end_ns`, with faults that end in their time; nobody polls. */
void swarm_pass_time(struct swarm *s, uint64_t end_ns);
/* Links of unequal delays and losses. */
void swarm_draw_delays(struct swarm *s);
void swarm_act(struct swarm *s, uint32_t host);
void swarm_close_for_a_while(struct swarm *s, uint32_t host);
/* Amid traffic, the last of it. */
void swarm_last_fault(struct swarm *s);
/* Undo what is due; all of it when `now`. */
void swarm_undo(struct swarm *s, bool now);
bool swarm_is_live(const struct swarm *s, uint32_t host);

/* Two hosts cannot talk for `ns` from now on; a host closes. */
void swarm_note_cut(struct swarm *s, uint32_t a, uint32_t b, uint64_t ns);
void swarm_note_restart(struct swarm *s, uint32_t host);
void swarm_excuse(struct swarm *s, uint32_t a, uint32_t b);
/* What was explained so far is over. */
void swarm_end_excuses(struct swarm *s);
/* May one find the other gone? */
bool swarm_is_excused(const struct swarm *s, uint32_t a, uint32_t b);
/* May a message that came to this host have been given up half-way? */
bool swarm_may_abort(const struct swarm *s, uint32_t host);
/* A host's peer table cannot hold all hosts. */
bool swarm_is_crowded(const struct swarm *s);
uint64_t swarm_timeout_ns(const struct swarm *s, uint32_t host);
uint64_t swarm_timeout_most_ns(const struct swarm *s);
uint64_t swarm_rtt_ns(const struct swarm *s);
/* All that was posted is to be over within that time, once nothing fails any more. */
uint64_t swarm_budget_ns(const struct swarm *s);
/* Sends to a host that was not to be reached since `since_ns`, posted by then, must be over. */
void swarm_check_given_up(struct swarm *s, uint32_t from, uint32_t to, uint64_t since_ns);

/* Called with each packet that leaves a host, and after each turn of its loop. */
mrd_sim_tap swarm_judge_packet;
void swarm_judge_turn(void *s, uint32_t host);
/* The host's context closed. */
void swarm_judge_closed(struct swarm *s, uint32_t host);
struct mrd_pool *swarm_pool(struct swarm *s, uint32_t host, enum swarm_pool which);

void swarm_poll_host(struct swarm *s, uint32_t host);
void swarm_poll_all(struct swarm *s);
/* On to the next event of the fabric, all polling. */
void swarm_step(struct swarm *s);
/* Did it arrive? To be asked of messages that succeeded. */
bool swarm_arrived(struct swarm *s, struct swarm_message *m);
/* What this QP received is all polled: what succeeded must be among it. */
void swarm_check_arrived(struct swarm *s, uint32_t to_qp);
/* Does the message's memory hold it? */
bool swarm_holds(const struct swarm *s, const struct swarm_message *m, const uint8_t *at);
/* Is nothing left to wait for? */
bool swarm_is_settled(struct swarm *s);
/* The same of messages from `first` on. */
bool swarm_is_settled_from(struct swarm *s, uint32_t first);
void swarm_describe_unsettled(struct swarm *s);
/* May the message arrive at the QP of this index? */
bool swarm_is_for(const struct swarm *s, const struct swarm_message *m, uint32_t index);
/* After all is complete: what succeeded arrived, what nobody may touch was not touched. */
void swarm_judge_end(struct swarm *s);
/* A receiver closes as soon as it has what was sent to it. */
void swarm_close_early(struct swarm *s);
/* One host hears all and reaches only one of them, and has no receives. */
void swarm_crowd(struct swarm *s);
void swarm_cut_crowd(struct swarm *s, uint64_t ns);
/* A host that was given up restarts while nobody talks to it. */
void swarm_quiet(struct swarm *s);
/* Silences shorter than timeouts end well. */
void swarm_patience(struct swarm *s);
/* Is half a message here? */
bool swarm_is_half_way(const struct swarm *s, uint32_t host);
void swarm_stop_host(struct swarm *s, uint32_t host, uint64_t ns);
/* Nobody hears of this host. */
void swarm_cut_off(struct swarm *s, uint32_t host, uint64_t ns);
/* In a healed world: a QP without receives stops nobody else's traffic. */
void swarm_starve(struct swarm *s);
/* Everybody reaches everybody, and each receive still posted takes a message. */
void swarm_aftermath(struct swarm *s);

/* Of a copy: less than the life of a packet, in which it may also wait for the host. */
#define SWARM_OLDEST_NS     (1900 * MSEC_NS)
#define SWARM_DELAY_MOST_NS (1 * MSEC_NS) /* of links whose delays differ or change */

/* For who follows a seed: what the swarm does, and what comes of it. */
#define swarm_tell(s, format, ...)                                                                 \
    do {                                                                                           \
        if ((s)->tells)                                                                            \
            print_error("%12.3f us: " format "\n", (double)mrd_sim_now((s)->sim) / 1e3,            \
                        __VA_ARGS__);                                                              \
    } while (0)

#define swarm_check(s, condition, ...)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            swarm_describe(s);                                                                     \
            test_fail((s)->seed, __VA_ARGS__);                                                     \
        }                                                                                          \
    } while (0)

#endif
