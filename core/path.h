/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths to a peer: what is measured, suspended and counted for each entropy value.
 *
 * mrd_paths_init() when the send state is made; mrd_path_sent() as a packet leaves, followed by
 * exactly one of mrd_path_acked(), mrd_path_lost() and mrd_path_forgot(); mrd_path_usable() before
 * a path is chosen. Measurements belong to struct mrd_path, not to the entropy value `ev` that
 * reaches it: a map of the paths could make several values share one path.
 *
 * A declared loss takes a path from GOOD to SUSPENDED, each time in a row for twice as long. Then
 * an empty packet probes it: its ack makes the path GOOD, its loss suspends the path again. Where
 * all paths lose some packets, a path goes out only if it loses two in a row, or more than others.
 * A path that keeps failing while others do not becomes DEAD. A fresh entropy value replaces it, or
 * it is probed every dead_probe_ns until a probe is acked. At most half of the paths that are not
 * dead are out (not GOOD) at once; where more fail, they take turns. So uniform loss, or loss at
 * the peer itself, kills none. Constants named here are those of mrd_tune.path.
 */
#ifndef MRD_CORE_PATH_H
#define MRD_CORE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tune.h"
#include "mrd/mrd.h" /* enum mrd_path_state */

struct mrd_allocator;

struct mrd_path {
    uint16_t ev;        /* the mover's path number: which source port, AH or QP pair */
    uint16_t id;        /* on the wire; changes with each fresh entropy value */
    uint8_t state : 2;  /* enum mrd_path_state: GOOD -> SUSPENDED -> GOOD | DEAD -> GOOD */
    bool order_off : 1; /* loss detection by order is off: too many spurious losses */
    bool wants_ev : 1;  /* DEAD, and no fresh entropy value was requested yet */
    bool rx_ce_now : 1; /* the last ack reported new CE marks on it */
    bool suspect : 1;   /* mrd_path_suspect(), and nothing came by it since */
    /* Suspensions since a packet on it was last acked: a burst of losses counts once. */
    uint8_t losses_row;
    uint8_t spurious;         /* losses declared by order that were spurious; saturates */
    uint32_t pseq_next;       /* next per-path sequence number; the wire carries the low 16 bits */
    uint32_t pseq_acked[2];   /* highest and second highest PSEQ acked */
    uint32_t head, tail;      /* PSNs of its first and last packet in flight; owned by sent.c */
    float loss_ewma;          /* EWMA(loss_gain) of the share of its packets lost */
    uint16_t bad_packets;     /* packets acked or lost since loss_ewma was last <= dead_share */
    uint16_t watch;           /* least_ns is of this watch */
    uint32_t lost_acks;       /* mrd_paths.acks when a loss on it was last declared */
    uint32_t suspect_acks;    /* and when it was suspect */
    uint32_t rx_count, rx_ce; /* the peer's cumulative counts in its last ack */
    /* In ns. They saturate. age_ns: decaying maximum of the time from sent to acked. */
    uint32_t srtt_ns, rtt_min_ns, age_ns;
    float excess_ns; /* its length: base RTT beyond the least RTT of all paths; not a queue */
    /* SUSPENDED: its end; DEAD: next probe; UINT64_MAX: a probe is in flight. */
    uint64_t until_ns;
    int64_t last_ns;  /* last one-way delay */
    int64_t least_ns; /* least one-way delay since the watch began */
    uint64_t packets, lost, ce;
};

/* What mrd_path_watch() notes of a path. */
struct mrd_path_watch {
    /* least_ns of the previous watch if it had samples then, else last_ns of that time. */
    int64_t before_ns;
    int64_t full_ns; /* last_ns when the drain of our queue began */
    uint32_t ce;     /* rx_ce when the watch began */
};

/* What the spray policies compare, kept together: reading all paths touches few cache lines. */
struct mrd_path_load {
    uint64_t q_at_ns;     /* time of its last delay sample */
    float q_ns;           /* EWMA of its one-way queue delay; MRD_PATH_NO_DELAY: no sample yet */
    uint32_t out_packets; /* packets whose last transmission took it, neither acked nor lost */
    float weight;         /* of one packet in flight: a longer path holds more at the same rate */
    /* Low bits of when it last seemed no longer than others, or was first seen; 0: never seen. */
    uint32_t level_at_ns;
};

#define MRD_PATH_NO_DELAY (-1.0f)

/* All paths of a peer and what they have in common. */
struct mrd_paths {
    struct mrd_path *path;      /* `num` entries, borrowed until mrd_paths_add() */
    struct mrd_path_load *load; /* likewise */
    bool owned;                 /* both are one block of the allocator */
    bool q_avg_valid, delay_min_valid, back_valid;
    uint16_t watch;    /* counts mrd_path_watch(); it may wrap */
    uint32_t num;      /* paths in use: twice as many as packets were in flight, up to max */
    uint32_t max;      /* most paths; a path's id modulo it is the path's index */
    uint16_t num_out;  /* not GOOD */
    uint16_t num_dead; /* of num_out */
    float q_avg_ns;    /* EWMA over all samples; stands for the delay of a path without one */
    float loss_avg;    /* EWMA(loss_avg_gain) of the share lost over all paths */
    uint32_t acks;     /* packets acked, on any path; it may wrap */
    /* Least rx stamp - tx stamp in this and the previous half window. */
    int64_t delay_min_cur, delay_min_prev;
    uint64_t delay_min_at_ns; /* when the current half window began */
    /*
     * Least RTT - one-way delay in the same half windows: the delay of the way back, less the
     * offset of the clocks.
     */
    int64_t back_cur, back_prev;
    uint64_t failed_ns;               /* when a path last failed for sure; 0: never */
    struct mrd_path_watch *watched;   /* of each path; NULL: there was no watch yet */
    float excess_mean_ns;             /* mean of excess_ns when weights were last set */
    uint16_t num_disordered;          /* paths with a spurious loss by order */
    const struct mrd_tune_path *tune; /* borrowed */
};

/*
 * Initializes `num` zeroed paths of `max`, with evs and ids 0 .. num-1. All pointers are borrowed.
 * tune NULL: mrd_tune_default.
 */
void mrd_paths_init(struct mrd_paths *paths, struct mrd_path *path, struct mrd_path_load *load,
                    uint32_t num, uint32_t max, const struct mrd_tune *tune, uint64_t now_ns);
/*
 * Doubles the number of paths, up to max. The new ones are GOOD, as long as the shortest, and have
 * no sample. Returns whether any came: without memory those that are there go on. Pointers to paths
 * are no longer valid.
 */
bool mrd_paths_add(struct mrd_paths *paths, const struct mrd_allocator *allocator);

/* Returns the path of that id; NULL: none has it, or has it any more. */
static inline struct mrd_path *mrd_path_of_id(const struct mrd_paths *paths, uint32_t id)
{
    uint32_t index = id % paths->max;
    struct mrd_path *path = index < paths->num ? &paths->path[index] : NULL;

    return path && path->id == id ? path : NULL;
}

void mrd_paths_fini(struct mrd_paths *paths, const struct mrd_allocator *allocator);

/* A packet leaves on the path. Returns its PSEQ. */
uint32_t mrd_path_sent(struct mrd_paths *paths, uint32_t index);
/*
 * A packet last sent on it was acked. That ends a suspension and resets losses_row. A DEAD path
 * becomes GOOD only by the ack of its probe.
 */
void mrd_path_acked(struct mrd_paths *paths, uint32_t index);
/* The same for `n` packets of a GOOD path. */
void mrd_path_run_acked(struct mrd_paths *paths, uint32_t index, uint32_t n);
/* Notes an acked PSEQ for loss detection by order: keeps the two highest. */
void mrd_path_pseq_acked(struct mrd_path *path, uint32_t pseq);
/*
 * A packet last sent on it was declared lost. The path is suspended for suspend_rtts base RTTs <<
 * min(losses_row - 1, suspend_doublings), unless more than half of the paths would be out, or it is
 * a lone loss and no more than usual: the other paths' mean share of loss is at least usual_share,
 * and this one's at most usual_times that. It becomes DEAD if it lost far more than the other paths
 * for long.
 */
void mrd_path_lost(struct mrd_paths *paths, uint32_t index, uint64_t base_rtt_ns, uint64_t now_ns);
/*
 * Does the path fail, so that the loss just declared on it says nothing of a queue? It lost fails_row
 * packets in a row, or fewer, but more than the other paths' mean share of loss makes likely; or more than
 * one of its last packets, and dead_times_mean times that mean.
 */
bool mrd_path_fails(struct mrd_paths *paths, uint32_t index, uint64_t now_ns);
/*
 * May a packet lost on the path have been dropped by the queue that makes the paths' delay? If the path was
 * sampled in the last SRTT, its own delay tells: others' failures may have lost the packet if it is much
 * less than the mean. Else yes, if half of those that were sampled have that delay, as all may share a
 * queue, and no path failed for sure of late.
 */
bool mrd_path_in_queue(const struct mrd_paths *paths, uint32_t index, double delay_ns,
                       uint64_t srtt_ns, uint64_t now_ns);
/*
 * A tail probe is about to send a packet in flight on it again, elsewhere. Returns whether that is
 * to count as a loss: the same happened before, and since then packets were acked, but nothing came
 * by this path. A single time says nothing: the peer may be late.
 */
bool mrd_path_suspect(struct mrd_paths *paths, uint32_t index);
/* The peer counted packets that came by it. */
static inline void mrd_path_came(struct mrd_path *path)
{
    path->suspect = false;
}
/* A packet in flight on it was abandoned or sent elsewhere: that says nothing about the path. */
void mrd_path_forgot(struct mrd_paths *paths, uint32_t index);
/*
 * A loss by order on it was spurious. order_spurious of them switch detection by order off for the
 * path; spurious ones on two paths, for all paths.
 */
void mrd_path_order_spurious(struct mrd_paths *paths, uint32_t index);
/*
 * Takes a sample: one-way delay as rx stamp - tx stamp, with any constant offset, and the RTT, or 0
 * if unknown. The least delay is that of the last one to two half windows of delay_window_rtts.
 */
void mrd_path_sample(struct mrd_paths *paths, uint32_t index, int64_t delay_ns, uint64_t rtt_ns,
                     uint64_t srtt_ns, uint64_t now_ns);
/*
 * Returns the queue delay that the sample's packet met: its one-way delay plus the least recent
 * delay of the way back, less the least RTT and the path's length. So a late ack adds nothing.
 * Shortens the path's length if the sample proves it too long.
 */
uint64_t mrd_path_measure_queue_ns(struct mrd_paths *paths, uint32_t index, int64_t delay_ns,
                                   uint64_t rtt_ns, uint64_t rtt_min_ns);
/*
 * Starts a watch: notes the least delay of each path from now on. Without memory for that nothing
 * is learnt.
 */
void mrd_path_watch(struct mrd_paths *paths, const struct mrd_allocator *allocator);
/* Our queue is being drained from now on: notes the last delay of each path. */
void mrd_path_drain(struct mrd_paths *paths, const struct mrd_allocator *allocator);
/* What mrd_path_calibrate() takes for a path's length. */
struct mrd_path_calibration {
    uint64_t rtt_min_ns;
    uint64_t most_ns; /* upper bound of a path's length */
    /*
     * By how much delay would fall if all of it were our queue, which was drained; 0: it was not.
     * Delay that fell by more than fall_share of it is a queue.
     */
    uint64_t fall_ns;
    uint64_t least_ns; /* lengths that grow by less are left as they are */
    bool unmarked;     /* learn only from paths that carried packets, none of them marked */
};
/*
 * Takes the least delay of each path since mrd_path_watch() for its length beyond the least RTT, if
 * most paths are longer, or that one has been for long. A smaller later sample corrects it at once.
 * Paths not sampled since get the least length of the others. Returns whether a length changed.
 */
bool mrd_path_calibrate(struct mrd_paths *paths, const struct mrd_allocator *allocator,
                        const struct mrd_path_calibration *calibration, uint64_t now_ns);
/* A packet on the path was acked `age_ns` after it was sent. */
static inline void mrd_path_age(struct mrd_path *path, uint64_t age_ns)
{
    uint32_t ns = age_ns < UINT32_MAX ? (uint32_t)age_ns : UINT32_MAX;

    path->age_ns = ns > path->age_ns ? ns : path->age_ns - (path->age_ns - ns) / 8;
}
/* A packet declared lost on it arrived: undoes the loss, and the suspension if it is not DEAD. */
void mrd_path_found(struct mrd_paths *paths, uint32_t index);
/* New packets and retransmissions go on GOOD paths only. */
static inline bool mrd_path_is_good(const struct mrd_path *path)
{
    return path->state == MRD_PATH_GOOD;
}
/*
 * May a packet go on it now? A SUSPENDED or DEAD path whose time has come may take one: the probe
 * (mrd_path_sent() moves until_ns on). The engine sends an empty packet, to put no data at risk.
 */
static inline bool mrd_path_usable(const struct mrd_path *path, uint64_t now_ns)
{
    return path->state == MRD_PATH_GOOD || now_ns >= path->until_ns;
}
/*
 * A fresh entropy value `ev` replaces a DEAD path: it is GOOD, with nothing measured. Its id grows
 * by `max`, so id % max stays the index. PSEQs go on: packets of the old path may be in flight.
 */
void mrd_path_replace(struct mrd_paths *paths, uint32_t index, uint16_t ev);
/* There is no fresh entropy value: the path stays DEAD and is probed every dead_probe_ns. */
void mrd_path_keep(struct mrd_paths *paths, uint32_t index, uint64_t now_ns);

#endif
