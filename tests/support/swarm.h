/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The swarm: a world drawn from a seed, with random traffic, faults and destruction of objects, in
 * which no rule may be broken.
 *
 * swarm_run() runs one seed: a phase with faults, in which all may fail that a fault explains, but
 * nothing else; then the faults end, and all work must complete within a budget of virtual time;
 * every host must reach every other one, and each receive must still take a message; then all QPs
 * are flushed, and all is destroyed and audited. A violation fails the running cmocka test and
 * names the seed.
 *
 * swarm.c           the phases
 * swarm_config.c    draws the world; swarm_profile.c adjusts it to the seed's profile
 * swarm_world.c     opens and destroys contexts and queue pairs
 * swarm_traffic.c   posts messages and receives
 * swarm_requests.c  draws and judges reads and atomics
 * swarm_chaos.c     makes and ends faults
 * swarm_packets.c   checks every packet
 * swarm_sealed.c    opens them where they are sealed
 * swarm_excuse.c    knows which errors the faults explain, and how long things may take
 * swarm_judge.c     checks every completion
 * swarm_end.c       checks messages and memory at the end
 * swarm_after.c     tries the world after the faults
 * swarm_network.c   several addresses, addresses that change, strangers
 * swarm_scene.c     plays courses of events that chance would hardly take
 */
#ifndef MRD_TESTS_SUPPORT_SWARM_H
#define MRD_TESTS_SUPPORT_SWARM_H

#include <stdbool.h>

#include "core/rng.h"
#include "core/seal.h"
#include "mrd/sim.h"
#include "tests/support/check.h"
#include "tests/support/ledger.h"
#include "tests/support/stranger.h"
#include "transport/movers/sim/sim_address.h"

enum {
    SWARM_HOSTS_MAX = 32,
    SWARM_SLOTS_MAX = 3,  /* live QPs a host */
    SWARM_SLOT_AFTER = 3, /* slot of one more QP, made after the faults */
    SWARM_QPS_MAX = 768,  /* QPs made in a run */
    SWARM_WINDOWS = 3,    /* memory regions of each host that others write to */
    SWARM_MESSAGES_MAX = 16384,
    SWARM_RECEIVES_MAX = 16384,
    SWARM_WORDS = 4,               /* of each host, for atomics */
    SWARM_STORE_BYTES = 128 << 10, /* of each host, for reads */
    SWARM_NO_QP = -1,
    SWARM_ANY = -1, /* as host or link: all of them */
};

/*
 * Fill bytes. BLANK: nobody wrote here yet; TAKEN: memory that is the application's again, after a
 * write or a send; USED: a receive buffer after its completion.
 */
enum { SWARM_BLANK = 0, SWARM_TAKEN = 0xee, SWARM_USED = 0x5a };

/* The kind of trouble that a seed looks for. */
enum swarm_profile {
    SWARM_MIXED = 0, /* a little of everything */
    SWARM_DEPTH,     /* thousands of messages, few and late receives */
    SWARM_STARVED,   /* a QP without receives must not stop others */
    SWARM_SQUEEZED,  /* windows below one packet, losses and refusals in both directions */
    SWARM_ONE_WAY,   /* one direction dead, for less or more than the peers' timeouts */
    SWARM_STALLED,   /* processes stopped, and networks cut, for less or more than the timeouts */
    SWARM_CHURN,     /* QPs come and go; small pools */
    SWARM_RESTARTS,  /* contexts close and open again, with traffic in both directions */
    /* No packet is lost, and receivers close as soon as they have what they want. */
    SWARM_CLOSING,
    SWARM_CROWD,    /* many hosts send to one */
    SWARM_IN_ORDER, /* ordered flows only, losses and destruction */
    SWARM_QUIET,    /* long silences, in which others restart or are forgotten */
    SWARM_PROFILES
};

/* What a seed may have on top of its profile: bits. */
enum swarm_networks {
    SWARM_TWO_ADDRESSES = 1, /* hosts with two addresses, which their paths leave from */
    SWARM_ROAM = 2,          /* addresses that fail, go or change for a while */
    SWARM_STRANGERS = 4,     /* packets of somebody who is no host */
    SWARM_TIMEOUTS = 8,      /* hosts with very different timeouts */
};

/* The pools of a context that its peers share. */
enum swarm_pool {
    SWARM_POOL_REFUSALS = 0,
    SWARM_POOL_SLOTS, /* open messages */
    SWARM_POOL_PENDS, /* ordered messages held back until earlier ones arrive */
    SWARM_POOL_PAGES, /* pages of records of sent packets, beyond the one that each peer may have */
    SWARM_POOL_RESPONSES,
    SWARM_POOLS
};

/* How a host opens its context. */
struct swarm_host_config {
    uint64_t peer_timeout_ns; /* 0: the default */
    uint64_t challenge_ns;
    bool challenge; /* false: never; true: for challenge_ns after open, 0: the default */
    const char *spray, *cc;
    uint32_t paths, max_peers, max_flows;
    uint8_t unchecked;  /* bit i: lives i, i + 8, ... want payloads without a check */
    uint32_t addresses; /* 0: it has one, as the simulator has it */
    bool hashed;        /* the address that a packet leaves from depends on its path */
};

/* What a seed draws. */
struct swarm_config {
    enum swarm_profile profile;
    struct mrd_sim_attr sim; /* .link: its state while faults are on */
    struct mrd_sim_link healthy;
    bool unequal_delays;
    struct swarm_host_config host[SWARM_HOSTS_MAX];
    bool sealed;
    uint32_t slots; /* QPs a host */
    uint32_t mtu;
    uint32_t payload_base; /* contexts probe for larger packets from there on; 0: they do not */
    bool payload_sure;     /* but begin with the largest */
    /* Between the two times all paths lose datagrams of more bytes; 0: they never do. */
    uint32_t narrow_bytes;
    uint64_t narrow_from_ns, narrow_to_ns;
    uint32_t recv_bytes; /* room of each receive */
    uint32_t recv_depth; /* receives a QP */
    bool shared;         /* the QPs of a host share them */
    uint32_t watch;      /* per thousand of the actions: a host watches another one, or no more */
    uint32_t recv_cqe;
    uint32_t tracker;         /* PSNs in flight to a peer; 0: the mover's */
    uint32_t rx_buffer_bytes; /* receive buffer shared by senders; 0: more than they can fill */
    uint32_t send_cqe, send_depth;
    uint32_t ordered;           /* per thousand of the QPs */
    uint32_t pool[SWARM_POOLS]; /* items in each shared pool; 0: all that there are */
    bool rnr_limited;           /* some QPs give up on a target without receives */
    bool straight;              /* receive in bursts, in place */
    /* Each message has memory and an MR of its own, which are freed when it is complete. */
    bool own_buffers;
    uint32_t actions;
    uint32_t messages;         /* at most */
    uint32_t burst;            /* at most, in each action */
    uint32_t sends;            /* per thousand of the messages: sends, not writes */
    uint32_t requests;         /* per thousand of the messages: reads and atomics */
    uint32_t fences;           /* per thousand of the messages: fenced */
    uint32_t max_rd_atomic;    /* 0: the default */
    uint32_t len_min, len_max; /* 0, 0: all sizes */
    uint32_t own;              /* per thousand of the messages: to the sender's own host */
    bool one_sided;            /* only the first host sends */
    bool numbered;             /* each message carries immediate data */
    uint64_t bytes_left;       /* what all messages together may still have */
    uint32_t pace_ns;          /* longest time between actions */
    /* Hosts post their first receives up to so late. */
    uint64_t late_ns;
    uint64_t cut_ns, stop_ns; /* longest cut and longest stop of the long kind */
    /* Faults, per thousand of the actions. */
    uint32_t flush, destroy, dereg, restart, stop, hole, partition, one_way, delay, late;
    /* Per thousand of the packets: delivered a second time, up to SWARM_OLDEST_NS later. */
    uint32_t old_copies;
    uint32_t longer; /* per thousand of stops and cuts: of the long kind */
    uint32_t busy;   /* per thousand of stops, cuts and restarts: amid traffic */
    uint32_t last;   /* per thousand: the seed ends with a fault, and nothing is posted after it */
    bool bad_requests;
    uint32_t flawed;   /* per thousand of the messages then: flawed */
    uint32_t networks; /* enum swarm_networks */
    uint32_t roam;     /* per thousand of the actions: an address fails, goes or changes */
    struct stranger_plan strangers;
};

/* A QP, live or destroyed. */
struct swarm_qp {
    struct mrd_qp *qp; /* NULL: destroyed */
    uint32_t host, life, slot, num, qkey;
    enum mrd_order order;
    bool error;        /* put into the error state */
    bool memory_gone;  /* an MR of receives posted to it was deregistered */
    bool oversized;    /* a message too long for its receives was sent to it */
    bool starved;      /* has no receives while faults are on */
    uint32_t receives; /* posted and not complete */
    uint32_t depth;    /* receives posted at most */
    bool shared;       /* its `receives` are the host's, counted here until somebody takes them */
    uint32_t owed;     /* receives used by other messages while its receives were being drained */
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
    struct mrd_srq *srq;     /* NULL: each QP has its own receives */
    uint32_t shared_posted;  /* receives of srq */
    bool shared_memory_gone; /* an MR of receives of srq was deregistered */
    bool shared_returned; /* some of them may have come back from a destroyed QP, and hold bytes */
    struct mrd_ah *ah[SWARM_HOSTS_MAX];
    struct mrd_mr *source_mr, *recv_mr;
    uint8_t *source, *recv; /* arenas */
    size_t source_used, recv_used;
    struct swarm_window window[SWARM_WINDOWS];
    int qp[SWARM_SLOTS_MAX + 1]; /* index of the QP in each slot, or SWARM_NO_QP */
    struct mrd_mr *words_mr, *store_mr;
    uint8_t *store; /* words, then what is read */
    uint32_t words_rkey, store_rkey;
    uint32_t life;
    uint64_t resume_ns, reopen_ns;   /* when a stop or a closure ends; 0: neither */
    uint64_t stopped_ns, resumed_ns; /* of the last stop */
    uint64_t late_until_ns;          /* posts no receives until then */
    bool cancelled;                  /* it has given up messages, perhaps half-way */
    uint32_t *unposted;              /* receive buffers that are not posted */
    uint32_t num_unposted;
    uint64_t refused; /* messages, when its turn was last looked at */
};

/* The links that are cut for a while. `link` SWARM_ANY: all in this direction. */
struct swarm_cut {
    int from, to, link;
    int spared;                  /* a host whose links are not cut, or SWARM_ANY: none */
    uint64_t since_ns, until_ns; /* until_ns 0: nothing is cut */
};

enum swarm_roam_kind {
    SWARM_ROAM_FAILS = 0, /* its link is down */
    SWARM_ROAM_LOST,
    SWARM_ROAM_CHANGES, /* to new_id */
    SWARM_ROAM_KINDS
};

/* The address that is not as it was, for a while. */
struct swarm_roam {
    uint32_t host, id, new_id, how; /* `how`: enum swarm_roam_kind */
    uint64_t until_ns;              /* 0: all are as they were */
};

/* The faults between two hosts. */
struct swarm_pair {
    uint64_t cut_ns;   /* how long of late they could not talk */
    uint64_t until_ns; /* when that ended */
    bool excused;      /* faults explain that one finds the other unreachable or restarted */
    bool was_excused;  /* they did at some time */
    uint64_t moved_ns; /* when a message last failed that is excused by a change of address */
};

/* What a host last acked of another host's space, as seen in its packets. */
struct swarm_told {
    uint32_t by, inc, epoch; /* incarnations of acker and sender */
    uint32_t serial, cum;
    uint32_t limit;     /* the greatest PSN limit granted */
    uint32_t farewells; /* acks with which a closing context ends */
};

/* When a space was first seen. */
struct swarm_begun {
    uint32_t inc, epoch;
    uint64_t at_ns;
};

/* What a host sends to one address of another's. */
struct swarm_way {
    struct mrd_addr source; /* of its last packet */
    uint64_t moved_ns;      /* when that was last another one than before; 0: never */
    bool first_contact;     /* its last packet with data was one */
    uint64_t hello_ns;      /* when the last row of these began */
    uint64_t contact_ns;    /* when the last one of these left */
    uint64_t last_ns;       /* when its last packet left */
    uint64_t quiet_ns;      /* when one last left after a silence longer than the peer's timeout */
};

/* What a host's engine knew of a peer after the last turn. */
struct swarm_view {
    struct swarm_way way[MRD_SIM_ADDRESSES_MAX]; /* to each of its addresses */
    uint32_t epoch, una, ack_serial, unanswered, unacked;
    uint32_t call_seq; /* mrd_calls.seq when it was last looked at */
    uint64_t stall_seen_ns;
    bool ack_seen;
    /* When it sent a packet without an ack request, by its clock, and nothing since; else 0. */
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
    uint32_t from_qp, to_qp; /* indices in qp[] */
    enum mrd_wr_opcode opcode;
    enum swarm_flaw flaw;
    uint32_t len;
    uint8_t *source;   /* NULL: it is the application's again */
    struct mrd_mr *mr; /* of its own, or NULL */
    bool lost_mr;      /* `mr` was deregistered while the message was in flight */
    uint8_t *target;   /* of a write */
    uint32_t window;   /* of a write */
    uint32_t offset;   /* of a read or atomic: in the target's store or words */
    uint64_t answer;   /* of an atomic; UINT64_MAX: it cannot be looked at */
    uint64_t wr_id, posted_ns;
    uint64_t sent_ns; /* when its completion was polled, once `sent` */
    uint64_t look_ns; /* of an unsignaled write: when to check next whether it is in place */
    bool signaled, is_inline;
    bool sent;     /* its send has completed */
    bool implied;  /* unsignaled, ordered, and a later message of its flow has succeeded */
    bool received; /* its receive has completed */
    bool placed;   /* a write was seen in place, before its target was overwritten */
    bool late;     /* a write that was not in place when a later ordered message was delivered */
    bool taken;    /* the test has overwritten its target, which must not change any more */
    enum mrd_wc_status status;
};

/* A receive buffer. */
struct swarm_receive {
    uint8_t *buf;
    uint32_t host, used_len; /* `used_len`: bytes that must still be SWARM_USED */
    uint32_t qp;
    bool posted;
    bool taken; /* its MR was deregistered while it was posted, and the test overwrote it */
};

/* The next numbers of a life: of packets to one peer, and to anybody. */
struct swarm_numbers {
    uint64_t life, next[2];
};

/* Of swarms that are sealed. */
struct swarm_sealed {
    char path[256]; /* of the key file */
    struct mrd_cipher *cipher;
    struct mrd_seal *seal; /* of the judge, who only opens; NULL: packets are in the clear */
    uint64_t now_ns;
    struct swarm_numbers numbers[SWARM_HOSTS_MAX];
    uint8_t opened[1 << 16];
};

struct swarm {
    uint64_t seed;
    struct mrd_rng rng, wire_rng, net_rng;
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
    /* Ordered flows: index + 1 of the last message delivered; up to where writes were checked. */
    uint32_t delivered[SWARM_QPS_MAX][SWARM_QPS_MAX], looked_at[SWARM_QPS_MAX][SWARM_QPS_MAX];
    /* Ordered flows: index + 1 of the last message whose send completed. */
    uint32_t completed[SWARM_QPS_MAX][SWARM_QPS_MAX];
    struct swarm_cut cut;
    struct swarm_roam roam;
    uint32_t num_roams;
    struct stranger *stranger; /* NULL: there is none */
    struct swarm_sealed sealed;
    struct swarm_pair pair[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    struct swarm_told told[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    struct swarm_begun begun[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    struct swarm_view view[SWARM_HOSTS_MAX][SWARM_HOSTS_MAX];
    bool tells; /* trace on stderr: MRD_SWARM_TRACE is set */
    bool healing;
    /* The faults ended with one that some hosts may not have noticed yet. */
    bool ends_with_fault;
    uint64_t faulty_ns;   /* when the last cut or stop ended; 0: there was none */
    uint32_t drain_first; /* receives are being drained by messages from this index on; 0: no */
    uint64_t posted_len;  /* bytes of all messages */
    uint32_t settled;     /* all messages below this index are settled */
    /* Freed at the end: a simulated device may read them until then. */
    uint8_t *deferred[SWARM_MESSAGES_MAX];
    uint32_t num_deferred;
    uint64_t digest;              /* of all packets: time, path, length */
    uint32_t successes, failures; /* of sends */
};

/* What a run did. */
struct swarm_report {
    uint64_t digest, virtual_ns;
    uint32_t messages, successes, failures;
};

struct swarm_report swarm_run(uint64_t seed);

/* ---------------------------------------------------------------------------- between the parts */

void swarm_seal_begin(struct swarm *s);
void swarm_seal_end(struct swarm *s);
/* NULL: packets are in the clear. */
const char *swarm_key_file(const struct swarm *s);
/* The packet as the engine made it: its bytes are valid until the next one's. */
struct mrd_sim_datagram swarm_opened(struct swarm *s, const struct mrd_sim_datagram *d);

void swarm_draw(struct swarm *s);
/* Adjusts what was drawn to the seed's profile. */
void swarm_draw_profile(struct swarm *s);
const char *swarm_profile_name(enum swarm_profile profile);
void swarm_describe(const struct swarm *s);
uint32_t swarm_below(struct swarm *s, uint32_t bound);
bool swarm_chance(struct swarm *s, uint32_t per_mille);
uint32_t swarm_pick(struct swarm *s, const uint32_t *values, uint32_t num);

#define SWARM_PICK(s, ...)                                                                         \
    swarm_pick(s, (const uint32_t[]){__VA_ARGS__},                                                 \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Draws what the seed has of enum swarm_networks, and prints that. */
void swarm_draw_networks(struct swarm *s);
void swarm_describe_networks(const struct swarm *s);
/* After the simulation was created; before it is destroyed. */
void swarm_open_networks(struct swarm *s);
void swarm_close_networks(struct swarm *s);
/* Writes an address at which others may reach the host. */
void swarm_address_of(struct swarm *s, uint32_t host, char *text, size_t len);
/* An address of the host fails, goes or changes for a while; the end of that. */
void swarm_roam(struct swarm *s, uint32_t host);
void swarm_end_roam(struct swarm *s);
/* When strangers send next; UINT64_MAX: never. Has them send what is due. */
uint64_t swarm_stranger_ns(const struct swarm *s);
void swarm_stranger_go(struct swarm *s);

void swarm_open_world(struct swarm *s);
void swarm_close_world(struct swarm *s);
void swarm_open_host(struct swarm *s, uint32_t host);
void swarm_close_host(struct swarm *s, uint32_t host);
void swarm_create_qp(struct swarm *s, uint32_t host, uint32_t slot);
void swarm_destroy_qp(struct swarm *s, uint32_t index);
/*
 * Makes a message's source the application's again. `by_completion`: its completion came; else a
 * device may still read it.
 */
void swarm_free_source(struct swarm *s, struct swarm_message *m, bool by_completion);

void swarm_post_message(struct swarm *s, uint32_t host);
/* Posts a drawn message between these QPs. 0; -ENOMEM or -EAGAIN: no room, nothing was posted. */
int swarm_post_drawn(struct swarm *s, uint32_t from_qp, uint32_t to_qp);
/* The same with a small message with immediate data. */
int swarm_post_small(struct swarm *s, uint32_t from_qp, uint32_t to_qp);
bool swarm_is_request(const struct swarm_message *m);
void swarm_fill_store(struct swarm *s, uint32_t host);
void swarm_open_store(struct swarm *s, struct swarm_host *h);
void swarm_close_store(struct swarm_host *h);
/* Turns a drawn message into a read or atomic, and what its work request says of memory. */
void swarm_draw_request(struct swarm *s, struct swarm_message *m);
void swarm_aim_request(const struct swarm *s, const struct swarm_message *m,
                       struct mrd_send_wr *wr);
/* Judges one that completed; all words, at the end. */
void swarm_judge_request(struct swarm *s, struct swarm_message *m);
void swarm_judge_words(struct swarm *s);
void swarm_post_receives(struct swarm *s, uint32_t host);
/* All queue pairs take messages from now on. */
void swarm_begin_qps(struct swarm *s);
void swarm_post_receive(struct swarm *s, uint32_t qp);

/* Lets time pass until `end_ns`. Faults end when they are due; nobody polls. */
void swarm_pass_time(struct swarm *s, uint64_t end_ns);
/* Gives the links unequal delays and losses. */
void swarm_draw_delays(struct swarm *s);
void swarm_act(struct swarm *s, uint32_t host);
void swarm_close_for_a_while(struct swarm *s, uint32_t host);
/* Makes the last fault, amid the last traffic. */
void swarm_last_fault(struct swarm *s);
/* Ends the faults that are due; all of them if `now`. */
void swarm_undo(struct swarm *s, bool now);
bool swarm_is_live(const struct swarm *s, uint32_t host);

/* Notes that two hosts cannot talk for `ns` from now on, or that a host closes. */
void swarm_note_cut(struct swarm *s, uint32_t a, uint32_t b, uint64_t ns);
void swarm_note_restart(struct swarm *s, uint32_t host);
void swarm_excuse(struct swarm *s, uint32_t a, uint32_t b);
/* Forgets all excuses. */
void swarm_end_excuses(struct swarm *s);
/* May one find the other unreachable or restarted? */
bool swarm_is_excused(const struct swarm *s, uint32_t a, uint32_t b);
/* May an event say so? Hosts with several addresses are several pairs, each told apart. */
bool swarm_may_be_told(const struct swarm *s, uint32_t a, uint32_t b);
/*
 * Did a host change its address before the peer answered the first contact that the message went by,
 * or before both were silent for so long that the peer forgot the change? The names that the two were
 * told are of the address before, and the message fails.
 */
bool swarm_has_moved(struct swarm *s, const struct swarm_message *m);
/* May a sender have given up, half-way, a message to this host? */
bool swarm_may_abort(const struct swarm *s, uint32_t host);
/* Is some host's peer table too small for all hosts? */
bool swarm_is_crowded(const struct swarm *s);
uint64_t swarm_timeout_ns(const struct swarm *s, uint32_t host);
uint64_t swarm_timeout_most_ns(const struct swarm *s);
/* The longest delay of a link, queues not counted. */
uint64_t swarm_delay_ns(const struct swarm *s);
uint64_t swarm_rtt_ns(const struct swarm *s);
/* Once all faults have ended, all that was posted must end within that time. */
uint64_t swarm_budget_ns(const struct swarm *s);
/* Checks that sends to a host that is unreachable since `since_ns`, posted by then, have ended. */
void swarm_check_given_up(struct swarm *s, uint32_t from, uint32_t to, uint64_t since_ns);

/* Called with each packet that leaves a host; after each turn of a host's loop. */
mrd_sim_tap swarm_judge_packet;
void swarm_judge_turn(void *s, uint32_t host);
/* Call when the host's context has closed; `kept` packets did not leave: their source is gone. */
void swarm_judge_closed(struct swarm *s, uint32_t host, uint64_t kept);
struct mrd_pool *swarm_pool(struct swarm *s, uint32_t host, enum swarm_pool which);

void swarm_poll_host(struct swarm *s, uint32_t host);
void swarm_poll_all(struct swarm *s);
/* Runs to the next event of the fabric; then all hosts poll. */
void swarm_step(struct swarm *s);
/*
 * Did a message that succeeded arrive? If not, a message that looks the same may stand for it, and
 * the two change their roles.
 */
bool swarm_match_arrived(struct swarm *s, struct swarm_message *m);
/*
 * Checks that messages to this QP that succeeded were received. All its completions must be polled.
 */
void swarm_check_arrived(struct swarm *s, uint32_t to_qp);
/* Does the memory at `at` hold the message? */
bool swarm_holds(const struct swarm *s, const struct swarm_message *m, const uint8_t *at);
/*
 * May all of a write have come, by what its target holds? Where the target orders the data
 * (MRD_ORDER_DATA), the last bytes may still wait for their turn.
 */
bool swarm_may_have_come(const struct swarm *s, const struct swarm_message *m);
/* Has every message ended, and arrived if it succeeded? */
bool swarm_is_settled(struct swarm *s);
/* The same of messages from `first` on. */
bool swarm_is_settled_from(struct swarm *s, uint32_t first);
void swarm_describe_unsettled(struct swarm *s);
/* May the message arrive at the QP of this index? */
bool swarm_is_for(const struct swarm *s, const struct swarm_message *m, uint32_t index);
/* At the end: checks that what succeeded has arrived, and that no other memory was changed. */
void swarm_judge_end(struct swarm *s);
/* A receiver closes as soon as it has received what it wants. */
void swarm_close_early(struct swarm *s);
/* One host without receives hears all others, and reaches only one of them. */
void swarm_crowd(struct swarm *s);
void swarm_cut_crowd(struct swarm *s, uint64_t ns);
/* A host that was unreachable restarts while nobody talks to it. */
void swarm_quiet(struct swarm *s);
/* Silences shorter than the timeouts do no harm. */
void swarm_patience(struct swarm *s);
/* Does the host hold a message of which only a part has arrived? */
bool swarm_is_half_way(const struct swarm *s, uint32_t host);
void swarm_stop_host(struct swarm *s, uint32_t host, uint64_t ns);
/* Cuts all links from this host for `ns`. */
void swarm_cut_off(struct swarm *s, uint32_t host, uint64_t ns);
/* A QP without receives does not stop the traffic of others. */
void swarm_starve(struct swarm *s);
/* After the faults: every host reaches every other one, and each receive still takes a message. */
void swarm_aftermath(struct swarm *s);

/* Greatest age of a copied packet: below MRD_PACKET_LIFE_NS, as it may also wait at the host. */
#define SWARM_OLDEST_NS     (1900 * MSEC_NS)
#define SWARM_DELAY_MOST_NS (1 * MSEC_NS) /* of links whose delays differ or change */

/* Trace of what the swarm does and what comes of it. */
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
