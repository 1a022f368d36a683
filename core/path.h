/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths to a peer: what is measured, suspended and counted for each entropy value.
 *
 * mrd_paths_init() when the send half is made; mrd_path_sent() as a packet leaves, followed by
 * exactly one of mrd_path_acked(), mrd_path_lost() and mrd_path_forgot(); mrd_path_usable() for
 * those that choose. What is measured (struct mrd_path) is kept apart from the entropy value that
 * reaches it (`ev`), so that a map of the paths can make several entropy values share one path.
 *
 * A path goes GOOD -> SUSPENDED on a declared loss, for a doubling time; an empty packet after that
 * is the probe: an ack makes it GOOD, a loss suspends it again. One that keeps failing while others
 * do not becomes DEAD: it is replaced by a fresh entropy value, or probed each second until a probe
 * is acked. At most half of the paths that are not dead are out at once, so that uniform loss, or
 * loss at the peer itself, kills nothing; where more fail, they take turns.
 */
#ifndef MRD_CORE_PATH_H
#define MRD_CORE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tune.h"
#include "mrd/mrd.h" /* enum mrd_path_state */

struct mrd_path {
    uint16_t ev;        /* the mover's path number: which source port, AH or QP pair */
    uint16_t id;        /* on the wire; new when a fresh entropy value takes the place */
    uint8_t state;      /* enum mrd_path_state: GOOD -> SUSPENDED -> GOOD | DEAD -> GOOD */
    uint8_t losses_row; /* suspensions since the last ack on it: a burst of losses counts once */
    uint8_t order_off;  /* same-path loss detection is off: it was wrong too often here */
    uint8_t wants_ev;   /* DEAD and no fresh entropy value was asked for yet */
    uint32_t pseq_next; /* next per-path sequence number; the wire carries the low 16 bits */
    uint32_t pseq_acked[2]; /* the highest and second highest acked */
    uint32_t head, tail;  /* of its out_packets in flight, by transmission: PSNs; owned by sent.c */
    uint32_t spurious;    /* losses declared by order that were none */
    uint64_t until_ns;    /* SUSPENDED: end; DEAD: next probe; UINT64_MAX: a probe is on its way */
    float loss_ewma;      /* EWMA(1/32) of the share of its packets lost */
    uint32_t bad_packets; /* packets resolved since loss_ewma was last at or below 10% */
    uint64_t lost_ns;     /* when a loss on it was last declared */
    uint64_t packets, lost, ce;
    uint32_t rx_count, rx_ce; /* the peer's cumulative counts as last told */
    bool rx_ce_now;           /* the last ack told of new marks on it */
    uint64_t srtt_ns, rtt_min_ns;
    uint64_t age_ns; /* from sent to acked: falls slowly from the greatest of late */
    float far_ns; /* its length beyond the least round trip: no queue, so nothing to give way to */
    uint32_t watch;   /* least_ns is of this watch */
    int64_t least_ns; /* least one-way delay since the watch began */
    /* What was known when it began: the least of the watch before, or the last one. */
    int64_t before_ns;
    int64_t last_ns;   /* the last one */
    int64_t full_ns;   /* the last one before our queue was drained */
    uint32_t watch_ce; /* ce when it began */
};

/* Constants that every packet needs, of mrd_tune.path, as the arithmetic wants them. */
struct mrd_path_gains {
    float loss, loss_avg, dead_share;
    float q, q_first, q_avg;
    uint32_t dead_packets;
};

/* What a choice weighs, apart from the rest: a look at all paths should touch few cache lines. */
struct mrd_path_load {
    uint64_t q_at_ns;     /* when the last sample of its delay came */
    float q_ns;           /* EWMA of its one-way queue delay; MRD_PATH_NO_DELAY: no sample yet */
    uint32_t out_packets; /* sent on it last, neither acked nor lost */
    float weight;         /* of a packet outstanding: a longer path holds more at the same rate */
};

#define MRD_PATH_NO_DELAY (-1.0f)

/* All paths of a peer and what they have in common. */
struct mrd_paths {
    struct mrd_path *path;      /* `num` of them, owned by the send half */
    struct mrd_path_load *load; /* the same */
    uint32_t num;
    uint32_t num_out;  /* not GOOD */
    uint32_t num_dead; /* of these */
    float q_avg_ns;    /* EWMA over all samples: what a path without a sample is taken to have */
    bool q_avg_valid;
    float loss_avg;    /* EWMA(1/512) of the share lost over all paths */
    uint64_t acked_ns; /* when a packet was last acked, on any path */
    /* Least rx stamp - tx stamp in this and the previous half window. */
    int64_t delay_min_cur, delay_min_prev;
    uint64_t delay_min_at_ns; /* when the current half window began */
    bool delay_min_valid;
    /*
     * Least RTT - one-way delay in the same half windows: the way back, and what the clocks
     * differ by.
     */
    int64_t back_cur, back_prev;
    bool back_valid;
    uint32_t watch;          /* counts mrd_path_watch() */
    float far_mean_ns;       /* of far_ns, as of the last lesson */
    uint32_t num_disordered; /* paths that a loss by order was spurious on */
    struct mrd_path_gains gain;
    const struct mrd_tune_path *tune; /* borrowed */
};

/* `num` zeroed paths at `path` and `load`; evs and ids 0 .. num-1. tune NULL: the defaults. */
void mrd_paths_init(struct mrd_paths *paths, struct mrd_path *path, struct mrd_path_load *load,
                    uint32_t num, const struct mrd_tune *tune, uint64_t now_ns);

/* A packet leaves on it: the PSEQ it gets. */
uint32_t mrd_path_sent(struct mrd_paths *paths, uint32_t index);
/*
 * A packet last sent on it was acked: ends a suspension and the row of losses. An acked probe
 * revives a DEAD path.
 */
void mrd_path_acked(struct mrd_paths *paths, uint32_t index, uint64_t now_ns);
/* PSEQ acked, for detection by order: keeps the two highest. */
void mrd_path_pseq_acked(struct mrd_path *path, uint32_t pseq);
/*
 * A packet last sent on it was declared lost: suspended for 4 base RTTs << min(row - 1, 4), unless
 * that would put more than half of the paths out at once. A path that loses clearly more than the
 * mean for long becomes DEAD.
 */
void mrd_path_lost(struct mrd_paths *paths, uint32_t index, uint64_t base_rtt_ns, uint64_t now_ns);
/* A packet in flight was given up, or sent again elsewhere, without judging the path. */
void mrd_path_forgot(struct mrd_paths *paths, uint32_t index);
/*
 * A loss by order on it was spurious; after a few, detection by order is switched off for it; on
 * two paths, for all.
 */
void mrd_path_order_spurious(struct mrd_paths *paths, uint32_t index);
/*
 * One sample: rx stamp - tx stamp (any constant offset), and the RTT or 0. Window of the least
 * delay: 16 RTT.
 */
void mrd_path_sample(struct mrd_paths *paths, uint32_t index, int64_t delay_ns, uint64_t rtt_ns,
                     uint64_t srtt_ns, uint64_t now_ns);
/*
 * The queue that a packet of one-way delay `delay_ns` met, as its sample told: its delay, with the
 * least way back of late, beyond the least round trip and its path's own length. So an ack that
 * came late counts for nothing.
 */
uint64_t mrd_path_queue_ns(struct mrd_paths *paths, uint32_t index, int64_t delay_ns,
                           uint64_t rtt_ns, uint64_t rtt_min_ns);
/* From now on, note the least delay of each path. */
void mrd_path_watch(struct mrd_paths *paths);
/* Our queue is drained from now on: note what each path had last. */
void mrd_path_drain(struct mrd_paths *paths);
/* What counts as a path's length. */
struct mrd_path_lesson {
    uint64_t rtt_min_ns;
    uint64_t most_ns; /* no path is longer by more than that */
    /* Our queue was drained: what fell by a good part of that is a queue. 0: it was not. */
    uint64_t fall_ns;
    uint64_t least_ns; /* no less than that is worth it */
    bool unmarked;     /* only of paths that carried packets of which none was marked */
};
/*
 * What each path had at least since mrd_path_watch() is its length beyond the least round trip. A
 * later sample that is less counts at once. Of those that nothing is known of, the least length of
 * the others. true: something was learnt.
 */
bool mrd_path_learn(struct mrd_paths *paths, const struct mrd_path_lesson *lesson, uint64_t now_ns);
/* A packet was acked so long after it was sent on it. */
static inline void mrd_path_age(struct mrd_path *path, uint64_t age_ns)
{
    path->age_ns = age_ns > path->age_ns ? age_ns : path->age_ns - (path->age_ns - age_ns) / 8;
}
/* A packet declared lost on it came: the loss is taken back, and a suspension by it. */
void mrd_path_found(struct mrd_paths *paths, uint32_t index);
/* New packets and retransmissions go on GOOD paths only. */
static inline bool mrd_path_is_good(const struct mrd_path *path)
{
    return path->state == MRD_PATH_GOOD;
}
/*
 * May any packet go on it now? A SUSPENDED or DEAD path whose time has come is let through once:
 * the packet is the probe (mrd_path_sent() moves until_ns on). Data is not put at risk for that:
 * the engine sends an empty packet.
 */
static inline bool mrd_path_usable(const struct mrd_path *path, uint64_t now_ns)
{
    return path->state == MRD_PATH_GOOD || now_ns >= path->until_ns;
}
/*
 * A fresh entropy value `ev` takes the place of a DEAD path: GOOD again, nothing measured; the id
 * moves on by `num`, so id % num stays the index. PSEQs go on: packets of the former path may still
 * be in flight.
 */
void mrd_path_replace(struct mrd_paths *paths, uint32_t index, uint16_t ev, uint64_t now_ns);
/* No fresh value is to be had: it stays DEAD and is probed each second. */
void mrd_path_keep(struct mrd_paths *paths, uint32_t index, uint64_t now_ns);

#endif
