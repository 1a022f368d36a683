/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: one window for each peer. A policy is a const table of functions with a name,
 * which mrd_cc_find() looks up.
 *
 * The engine calls init() when the send state is made; ack() for each ack that acks something new;
 * lost() once for each burst of declared losses; timeout() at an RTO. It sends while
 * mrd_cc.cwnd_bytes > bytes in flight, and paces a window below one packet at SRTT / cwnd.
 *
 * Adding one: a file cc_NAME.c with a `const struct mrd_cc_ops mrd_cc_NAME`, and its name in
 * MRD_CC_POLICIES.
 */
#ifndef MRD_CORE_CC_H
#define MRD_CORE_CC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/elastic.h"
#include "core/tune.h"

struct mrd_allocator;
struct mrd_cc_ops;

/* What the engine knows of the network to the peer when the send state is made. */
struct mrd_cc_config {
    uint64_t link_bps;    /* 0: unknown, the delivered rate is measured */
    uint64_t base_rtt_ns; /* lower bound of the base RTT; 0: none */
    /*
     * Upper bound of the base RTT; 0: none. A mover that knows its fabric should give it: a flow
     * that begins while a queue stands has no sample without that queue. It takes the queue for
     * part of the base RTT and tolerates a multiple of it on top, while older flows give way.
     */
    uint64_t base_rtt_max_ns;
    /* Upper bound of the window where no more is measured on its way; 0: only the policy's own. */
    uint32_t cwnd_cap_bytes;
    uint32_t cwnd_start_bytes; /* 0: by start_bdp and start_packets (tune.h) */
    /* Constants, borrowed; NULL: mrd_tune_default. */
    const struct mrd_tune *tune;
    /* For mrd_cc.losses, borrowed; NULL: losses are not examined. */
    const struct mrd_allocator *allocator;
};

/*
 * Measures the delivered rate: the greatest in the last rate_rounds to twice as many round trips
 * that the window limited.
 */
struct mrd_cc_rate {
    bool started;
    bool limited;             /* the window limited the sender in this round trip */
    uint32_t rounds;          /* limited round trips in the current half window */
    uint64_t bytes, start_ns; /* bytes delivered in this round trip; when it began */
    double cur_bps, prev_bps; /* greatest of this and the previous half window */
};

/* The least of the last samples: of this half window and of the previous one. */
struct mrd_cc_least {
    uint32_t samples; /* in the current half window */
    double cur_ns, prev_ns;
};

/* State of the policy swift. */
struct mrd_cc_swift_state {
    double root_most, gain; /* flow scaling: 1 / sqrt(scaling_most), and 1 / its range */
    uint32_t timeouts;      /* in a row */
};

/* What a policy requests of the paths (path.h). The engine does it after each ack. */
enum mrd_cc_request {
    MRD_CC_REQUEST_NONE = 0,
    /* mrd_path_watch(): note the least delay of each path from now on. */
    MRD_CC_REQUEST_WATCH,
    /* mrd_path_drain(): note the last delay of each path: our queue is being drained. */
    MRD_CC_REQUEST_DRAIN,
    /* mrd_path_calibrate(): delay that did not fall with the window is a path's length. */
    MRD_CC_REQUEST_CALIBRATE,
    /* Likewise, only for paths where no packet was marked. */
    MRD_CC_REQUEST_CALIBRATE_UNMARKED,
};

/* Of a request to calibrate. nscc keeps fall_ns there from the begin of a drain. */
struct mrd_cc_calibration {
    double fall_ns;  /* fall of the delay expected if all of it is our queue */
    double least_ns; /* least growth of a path's length to be taken over */
};

/* Is the delay our queue or the paths' length? nscc's state for that question. */
struct mrd_cc_watch {
    uint8_t state;
    uint32_t rounds;            /* in this state */
    uint32_t rest;              /* rounds until the same delay may be asked about again */
    uint32_t pause;             /* rounds until the window may be drained again */
    double lately;              /* decaying number of recent drains */
    double ours_ns;             /* until `rest` is over only more delay than this is asked about */
    double before_ns, after_ns; /* delay before the drain; least delay since */
    double cwnd_bytes;          /* window to be restored after the drain */
};

/* The queue that may have dropped packets that are now declared lost. */
struct mrd_cc_queue_losses {
    float delay_ns; /* at the end of the last RTT */
    /* Least delay in this half window of `rounds` and in the previous one. */
    float least_ns, least_prev_ns;
    uint16_t rounds;
    uint16_t gentle; /* rounds until growth is as usual again: a queue dropped packets */
    uint8_t settles; /* rounds until what was sent in slow start is acked */
};

/* Is the delay that comes with losses that of a queue, or of late hosts? */
struct mrd_cc_jitter {
    double last_ns;         /* RTT of the last sample */
    double jump_ns, rtt_ns; /* mean change between samples; mean RTT */
    struct mrd_cc_least least;
    double sent, lost; /* decaying numbers of packets */
    bool hosts;        /* the hosts are late */
};

/* State of the policy nscc. */
struct mrd_cc_nscc_state {
    struct mrd_cc_watch watch;
    struct mrd_cc_queue_losses queue_losses;
};

/* What nscc learns of losses, from the first one on; `elastic` only where the rate is unknown. */
struct mrd_cc_losses {
    struct mrd_cc_jitter jitter;
    struct mrd_elastic elastic;
};

/* Losses that cut the window, which may still turn out spurious. */
struct mrd_cc_undo {
    uint32_t packets;  /* losses not yet found spurious; 0: nothing to undo */
    uint32_t rounds;   /* rounds until the cut is final */
    double cwnd_bytes; /* window before the cut */
};

struct mrd_cc {
    const struct mrd_cc_ops *ops;
    const struct mrd_cc_config *config; /* borrowed */
    const struct mrd_tune *tune;        /* borrowed */
    uint32_t packet_bytes;              /* a full packet */
    bool slow_start;
    bool ce_seen;     /* the network marked a packet to this peer once */
    bool delay_valid; /* delay_ns is valid */
    uint8_t request;  /* enum mrd_cc_request, made in the last ack */
    double cwnd_bytes;
    double cap_bytes;   /* most of cwnd_bytes: config->cwnd_cap_bytes, or more on a long path */
    double start_bytes; /* the start window */
    double delay_ns;    /* swift: RTT; nscc: queue delay; a mean, or the least of a few samples */
    struct mrd_cc_least least_delay;
    double ce_rtt, ce_ewma;     /* share of CE in the last round; EWMA of it (dctcp: alpha) */
    uint32_t losses_rtt;        /* packets declared lost in the last round */
    uint32_t aside_rtt;         /* of losses_rtt: on paths without the queue */
    double sent_rtt;            /* packets acked or declared lost in the last round */
    double loss_rtt, loss_ewma; /* share lost in the last round; EWMA(loss_gain) of it */
    uint64_t round_end_ns;      /* end of the current RTT round */
    uint32_t round_packets, round_ce, round_acked, round_lost, round_aside; /* in this round */
    uint64_t round_bytes, round_start_ns;
    double round_bps; /* delivered in the last round; 0: none was measured */
    /* Time of the next cut by marks or delay, at the earliest. */
    uint64_t cut_ok_ns;
    uint32_t loss_packets; /* losses declared in the RTT that ends at loss_end_ns */
    uint64_t loss_end_ns;
    uint64_t loss_ok_ns; /* until then losses are of packets sent before the last cut */
    double measured_bps; /* greatest recent delivered rate; 0: unknown yet */
    double rate_bps;     /* link_bps, or else measured_bps */
    struct mrd_cc_rate rate;
    double length_ns; /* mean RTT less queue delay; 0: no sample yet */
    struct mrd_cc_undo undo;
    struct mrd_cc_losses *losses; /* NULL: nothing was lost yet, or there is no memory */
    struct mrd_cc_calibration calibration;
    union { /* by policy */
        struct mrd_cc_nscc_state nscc;
        struct mrd_cc_swift_state swift;
    };
};

struct mrd_cc_ack {
    uint64_t now_ns;
    uint32_t acked_packets, acked_bytes; /* newly */
    uint32_t ce_packets;                 /* those of counted_packets that were marked CE */
    /* Packets that the peer counted since its last ack, over all paths. */
    uint32_t counted_packets;
    uint64_t rtt_ns;  /* sample, or 0 */
    bool queue_valid; /* queue_ns was measured */
    /* Queue delay in rtt_ns. If not measured, all of rtt_ns beyond the least RTT counts. */
    uint64_t queue_ns;
    uint64_t srtt_ns, rtt_min_ns; /* 0 before the first sample */
    uint64_t inflight_bytes;      /* before this ack */
    bool limited;                 /* the window, not the application, held the sender back */
};

struct mrd_cc_ops {
    const char *name;
    void (*init)(struct mrd_cc *cc);
    void (*ack)(struct mrd_cc *cc, const struct mrd_cc_ack *ack);
    void (*lost)(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                 uint64_t rtt_min_ns);
    void (*timeout)(struct mrd_cc *cc, uint64_t now_ns);
    /*
     * Packets leave evenly, at so many windows an SRTT; 0: as the window lets them. NULL: 0.
     * A window below one packet leaves at one an SRTT whatever this says.
     */
    double (*pace)(const struct mrd_cc *cc);
    /* The paths were calibrated, and turned out longer. NULL: nothing depends on it. */
    void (*calibrated)(struct mrd_cc *cc);
    /* ce_seen was true, and is not any more. NULL: nothing depends on it. */
    void (*marks_forgotten)(struct mrd_cc *cc);
};

/* Returns the policy of that name; NULL: there is none. name NULL: the default. */
const struct mrd_cc_ops *mrd_cc_find(const char *name);

/* Returns how much longer than the least RTT a path of the fabric may be; UINT64_MAX: unknown. */
uint64_t mrd_cc_longest_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/* ops->lost() is about to be told of a packet: did its path have the queue that the delay is of? */
void mrd_cc_lost(struct mrd_cc *cc, bool in_queue);
/* A calibration found longer paths: `length_ns` is the new mean RTT without queues. */
void mrd_cc_calibrated(struct mrd_cc *cc, uint64_t length_ns);
/*
 * Tail loss probes repaired these losses. They are losses (RFC 8985, section 7.4.2), but count only
 * where losses follow the window. Otherwise a sender with one packet in a queue that others keep
 * full would be cut to nothing.
 */
void mrd_cc_repaired(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                     uint64_t rtt_min_ns);
/* A packet that was declared lost arrived. */
void mrd_cc_found(struct mrd_cc *cc);
/* From now on packets leave unmarkable: the network counts as one that never marks. */
void mrd_cc_forget_marks(struct mrd_cc *cc);
void mrd_cc_init(struct mrd_cc *cc, const struct mrd_cc_ops *ops,
                 const struct mrd_cc_config *config, uint32_t packet_bytes);
void mrd_cc_fini(struct mrd_cc *cc);
/* Returns the least RTT within the configured bounds; 0: no sample yet, and no lower bound. */
uint64_t mrd_cc_base_rtt_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/*
 * Returns the BDP: rate x mean RTT of all paths without queues, late acks included, and never less
 * than rate x base RTT. Before the rate is known: start window / start_bdp.
 */
double mrd_cc_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/* The same by the measured rate, even where the link's rate is known. */
double mrd_cc_measured_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/*
 * Returns rate x base RTT: the measure of bursts. Late acks must not enter it: a burst that keeps
 * the host busy makes acks late itself.
 */
double mrd_cc_base_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns);

/* --------------------------------------------------------------------------------- for policies */

/* Counts packets, marks and the delivered rate. A policy's ack() calls it first. */
void mrd_cc_count(struct mrd_cc *cc, const struct mrd_cc_ack *ack);
/*
 * Returns true if a round of an RTT with at least one counted packet ended: it updated ce_rtt,
 * ce_ewma (by `gain`), loss_rtt and loss_ewma.
 */
bool mrd_cc_end_round(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double gain);
/*
 * May the window grow on this ack? Not while it is used_times what the application uses, nor in the
 * RTT after a cut by loss.
 */
bool mrd_cc_may_grow(const struct mrd_cc *cc, const struct mrd_cc_ack *ack);
/* Bounds the window by least_packets, `most_bytes` and the configured cap. */
void mrd_cc_clamp(struct mrd_cc *cc, double most_bytes);
/* Counts losses. Returns true when they reach `packets_needed` in an RTT, then not for an RTT. */
bool mrd_cc_count_losses(struct mrd_cc *cc, uint32_t packets, double packets_needed,
                         uint64_t now_ns, uint64_t rtt_ns);
/* Adds a sample. A new half window begins after so many of them. */
void mrd_cc_least_add(struct mrd_cc_least *least, double ns, double samples);
/* Returns the least of the last `samples` to twice as many samples. */
double mrd_cc_least_ns(const struct mrd_cc_least *least);
/* Sets delay_ns to the least of the last `samples` to twice as many samples. */
void mrd_cc_set_least_delay(struct mrd_cc *cc, double sample_ns, double samples);
/* Returns the queue delay in the ack's RTT sample, which must exist, and updates length_ns. */
double mrd_cc_measure_queue_ns(struct mrd_cc *cc, const struct mrd_cc_ack *ack);
/* lost() and timeout() of a policy whose window does not depend on them. */
void mrd_cc_ignore_lost(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                        uint64_t rtt_min_ns);
void mrd_cc_ignore_timeout(struct mrd_cc *cc, uint64_t now_ns);
/* Cuts the window to `cwnd_bytes` for losses; mrd_cc_found() restores it if all were spurious. */
void mrd_cc_cut_lost(struct mrd_cc *cc, double cwnd_bytes, uint32_t packets);
/* Cuts by timeout_factor, as at an RTO, but not from one packet or more to less than one. */
void mrd_cc_halve(struct mrd_cc *cc);

/* Examines losses from now on, if there is memory. */
void mrd_cc_examine(struct mrd_cc *cc);
/* Is the window held to test whether losses follow it? */
static inline bool mrd_cc_tests_losses(const struct mrd_cc *cc)
{
    return cc->losses && cc->losses->elastic.testing;
}
/* Do they, so that the window grows by percents? */
static inline bool mrd_cc_is_elastic(const struct mrd_cc *cc)
{
    return cc->losses && cc->losses->elastic.gain > 0;
}

#define MRD_CC_UNBOUNDED 1e18 /* bytes: no bound */

/* The policies: mrd_cc_NAME of cc_NAME.c. The first is the default. */
#define MRD_CC_POLICIES(X) X(nscc) X(dctcp) X(swift) X(none) X(fixed)

#define X(name) extern const struct mrd_cc_ops mrd_cc_##name;
MRD_CC_POLICIES(X)
#undef X

#endif
