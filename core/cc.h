/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: one window a peer. A policy is a const table with a name; mrd_cc_find()
 * finds it.
 *
 * init() when the send half is made; ack() for each ack that acks something new; lost() once a
 * burst of declared losses; timeout() at an RTO. The engine sends while mrd_cc.cwnd_bytes > bytes
 * in flight; a window below one packet is paced at SRTT / cwnd by the engine.
 *
 * Adding one: a file cc_NAME.c with a `const struct mrd_cc_ops mrd_cc_NAME`, and one line in the
 * table of cc.c.
 */
#ifndef MRD_CORE_CC_H
#define MRD_CORE_CC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/elastic.h"
#include "core/tune.h"

struct mrd_cc_ops;

/* What the engine knows of the way to the peer when a window is made. */
struct mrd_cc_config {
    uint32_t packet_bytes; /* a full packet */
    uint64_t link_bps;     /* 0: unknown, the delivered rate is measured */
    uint64_t base_rtt_ns;  /* least value taken for the base RTT; 0: the measured one */
    /*
     * Greatest value taken for the base RTT; 0: none. A mover that knows its fabric should give it:
     * a flow that begins while a queue stands has no sample without that queue, takes it for part
     * of the base RTT, and tolerates as much again and more on top, while those who know better
     * give way.
     */
    uint64_t base_rtt_max_ns;
    /* 0: none but the policy's own (3 BDP where the link's rate is known) */
    uint32_t cwnd_cap_bytes;
    uint32_t cwnd_start_bytes; /* 0: 1.5 BDP */
    /*
     * Constants, borrowed for the life of the window. NULL: mrd_tune_default, which mrd_cc_init()
     * puts here then.
     */
    const struct mrd_tune *tune;
};

/*
 * Measures the rate at which the peer takes data: the greatest of the last ten round trips that the
 * window limited.
 */
struct mrd_cc_rate {
    bool started;
    bool limited;             /* the window held the sender back in this round trip */
    uint32_t rounds;          /* limited round trips in the current half window */
    uint64_t bytes, start_ns; /* delivered in this round trip, and its begin */
    double cur_bps, prev_bps; /* greatest of this and the previous half window */
};

/* Delay above the minimum, least of the last four to eight samples. */
struct mrd_cc_delay_min {
    uint32_t samples; /* in the current half window */
    double cur_ns, prev_ns;
};

/* What swift keeps. */
struct mrd_cc_swift_state {
    double root_most, gain; /* of its flow scaling: 1 / sqrt(scaling_most), and 1 / the range */
    uint32_t timeouts;      /* in a row */
};

/* What the policy wants of the paths: the engine does it after each ack. */
enum mrd_cc_wish {
    MRD_CC_WISH_NONE = 0,
    MRD_CC_WISH_WATCH,          /* note from now on what delay each path has at least */
    MRD_CC_WISH_DRAIN,          /* note what each path had last: our queue is drained now */
    MRD_CC_WISH_LEARN,          /* that is its length, where it did not fall with the window */
    MRD_CC_WISH_LEARN_UNMARKED, /* likewise, where no packet was marked */
};

/* Is the delay our queue? What nscc keeps of that question. */
struct mrd_cc_watch {
    uint8_t state, wish;
    uint32_t rounds;            /* in this state */
    uint32_t rest;              /* rounds until it is asked again at the cap */
    uint32_t pause;             /* rounds until it may be drained again */
    double lately;              /* times that it was drained in the last `rest` rounds, about */
    double fall_ns;             /* by so much the delay falls if all of it was our queue */
    double least_ns;            /* less is not worth it */
    double ours_ns;             /* no more delay than that is asked about until `rest` is over */
    double before_ns, after_ns; /* delay before the window was drained; least since */
    double cwnd_bytes;          /* window to be restored */
};

/* The queue that may have dropped what is known to be lost now. */
struct mrd_cc_queue_losses {
    double delay_ns;                /* at the end of the last RTT */
    double least_ns, least_prev_ns; /* delay since `rounds` began, and in those before */
    uint32_t rounds;
};

/* Is the delay that comes with losses a queue's, or is it how late the hosts are? */
struct mrd_cc_jitter {
    double last_ns;                 /* RTT of the last sample */
    double jump_ns, rtt_ns;         /* mean change from sample to sample, and mean RTT */
    double least_ns, least_prev_ns; /* RTT since `samples` began, and in as many before */
    uint32_t samples;
    double sent, lost; /* packets of the last round trips */
    bool hosts;        /* it is the hosts */
};

/* Losses that cut the window, until it is known that they were losses. */
struct mrd_cc_undo {
    uint32_t packets;  /* that are to turn out as none; 0: nothing to undo */
    uint32_t rounds;   /* until it is too late for that */
    double cwnd_bytes; /* window before */
};

struct mrd_cc {
    const struct mrd_cc_ops *ops;
    struct mrd_cc_config config;
    double cwnd_bytes;
    double start_bytes; /* the start window */
    bool slow_start;
    bool ce_seen;     /* this peer marked a packet once */
    bool delay_valid; /* there was a sample */
    double delay_ns;  /* rtt, of nscc less the least: a mean, or the least of a few samples */
    struct mrd_cc_delay_min delay_min;
    double ce_rtt, ce_ewma;     /* share of CE in the last RTT; EWMA(1/4) of it (dctcp: alpha) */
    uint32_t losses_rtt;        /* packets lost in the last RTT */
    double sent_rtt;            /* packets whose fate the last RTT told */
    double loss_rtt, loss_ewma; /* share lost in the last RTT; EWMA(1/4) of it */
    uint64_t round_end_ns;      /* end of the current RTT round */
    uint64_t round_packets, round_ce, round_acked, round_lost; /* in this round */
    uint64_t round_bytes, round_start_ns;
    double round_bps;                   /* delivered in the last round; 0: none was measured */
    uint64_t cut_ok_ns;                 /* no second cut by marks or delay before this time */
    uint64_t loss_end_ns, loss_packets; /* losses declared in the RTT that ends then */
    uint64_t loss_ok_ns; /* before this time losses are of packets sent before the last cut */
    double measured_bps; /* greatest delivered rate lately; 0: unknown yet */
    double rate_bps;     /* greatest delivered rate lately, or link_bps; 0: unknown yet */
    struct mrd_cc_rate rate;
    /* A path lost packets in a row then: it, not a queue, loses them; 0: none did. */
    uint64_t failing_ns;
    uint32_t loss_delay_rounds; /* until that is forgotten */
    double loss_delay_ns; /* the queue that losses come at in a network without marks; 0: unknown */
    struct mrd_cc_queue_losses queue_losses;
    struct mrd_cc_jitter jitter;
    double length_ns; /* mean RTT less queues; 0: no sample yet */
    struct mrd_cc_watch watch;
    struct mrd_cc_undo undo;
    struct mrd_elastic elastic;
    struct mrd_cc_swift_state swift;
};

struct mrd_cc_ack {
    uint64_t now_ns;
    uint32_t acked_packets, acked_bytes; /* newly */
    uint32_t ce_packets;                 /* of counted_packets, those that came marked */
    uint32_t counted_packets;     /* what the peer counted since the last ack, over all paths */
    uint64_t rtt_ns;              /* sample, or 0 */
    bool queue_valid;             /* it is known what of the sample is a queue: */
    uint64_t queue_ns;            /* else all beyond the least RTT is taken for one */
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
};

/* NULL if there is none of that name. name NULL: "nscc". */
const struct mrd_cc_ops *mrd_cc_find(const char *name);

/* How much longer than the least round trip a path of the fabric may be. */
uint64_t mrd_cc_longest_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/* A path keeps losing what is sent on it. */
void mrd_cc_path_fails(struct mrd_cc *cc, uint64_t now_ns);
/* Paths are longer than was thought: this is the mean RTT without queues. */
void mrd_cc_learnt(struct mrd_cc *cc, uint64_t length_ns);
/*
 * Packets were lost, as the tail probes show that brought them. They are losses (RFC 8985, section
 * 7.4.2), but count only where losses follow the window: who has one packet in a queue that others
 * keep full would be cut to nothing.
 */
void mrd_cc_repaired(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                     uint64_t rtt_min_ns);
/* A packet that was declared lost came. */
void mrd_cc_found(struct mrd_cc *cc);
void mrd_cc_init(struct mrd_cc *cc, const struct mrd_cc_ops *ops,
                 const struct mrd_cc_config *config);
/*
 * The base RTT in force: the measured minimum within the configured bounds; 0 before the first
 * sample without a floor.
 */
uint64_t mrd_cc_base_rtt_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/*
 * rate x RTT without queues, as the mean of all paths has it, late acks included: so much may be in
 * flight. Never less than rate x base RTT. Before anything is known, the start window / 1.5.
 */
double mrd_cc_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/* Likewise by the rate that was measured, where another is known as well. */
double mrd_cc_measured_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns);
/*
 * rate x base RTT, likewise: what may leave at once is measured by it. By late acks it must not be:
 * a burst that keeps the host busy makes them late itself.
 */
double mrd_cc_base_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns);

/* --------------------------------------------------------------------------------- for policies */

/* The first call of a policy's ack(): counts the round, the marks and the delivered rate. */
void mrd_cc_count(struct mrd_cc *cc, const struct mrd_cc_ack *ack);
/*
 * An RTT round with at least one counted packet is over: ce_rtt, ce_ewma (by `gain`) and loss_ewma
 * are up to date.
 */
bool mrd_cc_round(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double gain);
/*
 * May the window grow on this ack? Not while it is twice what the application uses, nor in the RTT
 * after a loss cut.
 */
bool mrd_cc_may_grow(const struct mrd_cc *cc, const struct mrd_cc_ack *ack);
/* Hold the window between the least one and `most_bytes`, and below the configured cap. */
void mrd_cc_clamp(struct mrd_cc *cc, double most_bytes);
/*
 * Losses declared: true once when they make up `packets_needed` in an RTT; then not again for
 * an RTT.
 */
bool mrd_cc_losses(struct mrd_cc *cc, uint32_t packets, double packets_needed, uint64_t now_ns,
                   uint64_t rtt_ns);
/* delay_ns becomes the least of the last `samples` to twice as many samples. */
void mrd_cc_least_delay(struct mrd_cc *cc, double sample_ns, double samples);
/* The sample's part that is a queue; length_ns is up to date afterwards. Only with rtt_ns. */
double mrd_cc_queue_ns(struct mrd_cc *cc, const struct mrd_cc_ack *ack);
/*
 * A cut by loss: the window becomes `cwnd_bytes`, and gets back what it had if all these losses
 * turn out to be none.
 */
void mrd_cc_cut_lost(struct mrd_cc *cc, double cwnd_bytes, uint32_t packets);
/* Half the window, as at an RTO, but not from above one packet to below. */
void mrd_cc_halve(struct mrd_cc *cc);

#define MRD_CC_UNBOUNDED 1e18 /* bytes: no bound */

extern const struct mrd_cc_ops mrd_cc_nscc, mrd_cc_dctcp, mrd_cc_swift, mrd_cc_none;

#endif
