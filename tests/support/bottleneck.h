/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows that share one queue, and how they share it: scenes as rows of data, and their bounds.
 *
 * bottleneck_run() plays a scene with one seed. Tests have tables of rows instead:
 * bottleneck_judge() plays each with several seeds and compares.
 *
 * By environment variables:
 *
 *   MRD_BOTTLENECK_PRINT=1        prints what was measured: of each figure the median and the worst
 *   MRD_BOTTLENECK_ROW=PATTERN    only rows whose names ("alone.3") match, as by fnmatch(3)
 *   MRD_BOTTLENECK_SEEDS=N        so many seeds a row
 *   MRD_TEST_SEED=SEED            the first of them; unless N is given too, the only one
 *
 * With fewer than three seeds there is no median: only the worst is compared.
 *
 * Bounds are what was reached with a dozen seeds, and some room. They tell when it gets worse, and
 * not what would be good.
 */
#ifndef MRD_TESTS_SUPPORT_BOTTLENECK_H
#define MRD_TESTS_SUPPORT_BOTTLENECK_H

#include <stdbool.h>

#include "mrd/sim.h"
#include "tests/support/check.h"

enum { BOTTLENECK_FLOWS_MAX = 256 };

enum bottleneck_shape {
    /* Each flow has hosts of its own, its source below one leaf and its target below another. */
    BOTTLENECK_DUMBBELL = 0,
    /* All flows go to one host: the bottleneck is the link to it. */
    BOTTLENECK_INCAST,
};

/* A scene. Zero means the default, which is in brackets. */
struct bottleneck {
    enum bottleneck_shape shape;
    uint32_t knows;      /* enum mrd_sim_knows */
    const char *cc;      /* congestion control [the library's] */
    double gbps;         /* of the bottleneck */
    double speedup;      /* the rate of the hosts' links, in rates of the bottleneck [1] */
    double rtt_us;       /* without queues and without the packets' own time on links */
    double far_rtt_us;   /* of the first half of the flows [rtt_us]; dumbbell only */
    double queue_bdp;    /* the bottleneck's queue, in gbps x rtt_us [queue_bytes] */
    double queue_bytes;  /* the same in bytes */
    bool ecn;            /* it marks, from a quarter of the queue to three quarters */
    uint32_t flows;      /* that always have data */
    uint32_t rpcs;       /* that have one message of 8 KiB at a time, one after the other */
    uint32_t cubics;     /* TCP flows that always have data; dumbbell only */
    uint32_t mtu, mss;   /* payload of our packets; of TCP's [4096 each] */
    double loss;         /* share of the packets that their hosts' links lose at random, acks too */
    double jitter_us;    /* each packet and each ack comes late by up to that */
    double stagger_ms;   /* from one flow's start to the next one's */
    double cubics_at_ms; /* when the TCP flows start; the first flow of ours starts at 0 */
    double warm_ms;      /* from the last start to the measured time */
    double span_ms;      /* the measured time */
};

/*
 * The figures, with what a good one is. NaN where a scene has no such thing. A fair share is what
 * each would have if all flows that always have data had the same.
 */
#define BOTTLENECK_EACH_FIGURE(X)                                                                  \
    X(UTILISATION, "util", GREAT)   /* bytes on the bottleneck's wire, of what it could carry */   \
    X(GOODPUT, "goodput", GREAT)    /* bytes of messages that were done, TCP's data included */    \
    X(DROPS, "drops", SMALL)        /* share of the packets offered to the queue */                \
    X(JAIN, "jain", GREAT)          /* Jain's index of our flows */                                \
    X(LEAST, "least", GREAT)        /* our slowest flow, in fair shares of what is ours */         \
    X(LAST, "last", GREAT)          /* the one that started last, likewise */                      \
    X(FAR, "far", GREAT)            /* the first half, of far_rtt_us: its mean, likewise */        \
    X(OURS, "ours", GREAT)          /* the mean of our flows, in fair shares of all */             \
    X(CUBIC, "cubic", GREAT)        /* that of TCP's */                                            \
    X(RPC_MEDIAN, "rpc50us", SMALL) /* from the post of a message to its completion, us */         \
    X(RPC_P99, "rpc99us", SMALL)

enum bottleneck_figure {
#define BOTTLENECK_X(name, text, good) BOTTLENECK_##name,
    BOTTLENECK_EACH_FIGURE(BOTTLENECK_X)
#undef BOTTLENECK_X
        BOTTLENECK_FIGURES
};

struct bottleneck_figures {
    double of[BOTTLENECK_FIGURES];
};

/* At least that, or at most; 0: no bound. */
struct bottleneck_bound {
    double median, worst;
};

enum { SOCKETS = MRD_SIM_KNOWS_SOCKETS, RDMA = MRD_SIM_KNOWS_RDMA, FABRIC = MRD_SIM_KNOWS_FABRIC };

enum { BOTTLENECK_BOUNDED_MAX = 4, BOTTLENECK_BDPS_MAX = 1000 };

/* What a table varies of a scene, 0: as all its rows; and the bounds of the figures that it names. */
struct bottleneck_row {
    uint32_t knows, flows;
    double gbps, speedup, rtt_us;
    double queue; /* in gbps x rtt_us; in bytes if it is more than BOTTLENECK_BDPS_MAX */
    double warm_ms, span_ms;
    struct bottleneck_bound bound[BOTTLENECK_BOUNDED_MAX];
    bool ecn, incast;
    double loss, jitter_us, stagger_ms;
    uint32_t mtu, mss;
    const char *cc;
};

/* Plays a scene. A work request that fails, fails the test. */
void bottleneck_run(const struct bottleneck *scene, uint64_t seed,
                    struct bottleneck_figures *figures);
/* Bytes of the bottleneck's queue. */
double bottleneck_queue_bytes(const struct bottleneck *scene);

/*
 * Plays rows of a table, in which `common` stands for what is 0, and compares: bound[i] is that of
 * bounded[i]. Fails the test if a row is out of bounds.
 */
void bottleneck_judge(const char *table, const struct bottleneck_row *rows, size_t num,
                      const struct bottleneck *common, const enum bottleneck_figure *bounded);

#endif
