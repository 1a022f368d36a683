/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants of the models of other transports, declared once: X(part, name, default, what
 * it is).
 *
 * Copy model_tune_default, change the copy by model_tune_set(), and give it to
 * model_flows_create(). model_tune_set() refuses values that are negative or not finite;
 * model_flows_create() refuses those that no model can work with.
 *
 * To add a constant, add a line. It is then set and listed by name, and read as `tune->part.name`.
 */
#ifndef MODELS_TUNE_H
#define MODELS_TUNE_H

#include "core/tune.h"

/* clang-format off */

/* InfiniBand Architecture Specification, volume 1, 9.7, as RoCEv2 carries it. */
#define MODEL_TUNE_RC(X)                                                                         \
    /*                                                                                             \
     * Adapters have no such window: 2^23 PSNs may be outstanding. With short queues a larger      \
     * window only makes more drops. One BDP is the least that fills the path, and so the kindest  \
     * to go-back-N, where each loss costs a window.                                               \
     */                                                                                            \
    X(rc, window_packets, 0,       "packets in flight; 0: BDP of the longest path + ack_packets")  \
    X(rc, ack_packets,    4,       "packets: an ack for so many, and where one is asked for")      \
    /*                                                                                             \
     * 4.096 us x 2^7: the least step of the specification that is longer than the delay of a few  \
     * full queues of 1 MiB at 100 Gb/s. Real fabrics use 2^14 and more: this is a kind choice.    \
     */                                                                                            \
    X(rc, rto_us,         524.288, "us: local ack timeout, without back-off")                      \
    X(rc, retries,        7,       "timeouts in a row that are counted as a broken connection")

/*
 * Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018, section 3. There RTO_high is
 * 320 us: the base RTT and the delay of a full queue. RTO_low is 100 us: what a short message
 * may wait.
 */
#define MODEL_TUNE_IRN(X)                                                                        \
    X(irn, window_packets,  0,   "packets in flight; 0: BDP of the longest path + 1")              \
    X(irn, range_windows,   4,   "windows: from the first packet not acked to the last sent")      \
    X(irn, rto_high_us,     0,   "us; 0: base RTT + a full queue of a link, or 320 without limit") \
    X(irn, rto_low_us,      0,   "us; 0: rto_high x 100 / 320, and at least two base RTTs")        \
    X(irn, rto_low_packets, 3,   "packets in flight below which rto_low holds: N")

/*
 * Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015. R_HAI, which is
 * ten times R_AI, and the least rate are those of the ns-3 model that the authors of
 * HPCC published.
 */
#define MODEL_TUNE_DCQCN(X)                                                                      \
    X(dcqcn, cnp_us,     50,        "us: least time between CNPs of a flow, N")                    \
    X(dcqcn, gain,       1.0 / 256, "gain of alpha, g")                                            \
    X(dcqcn, alpha_us,   55,        "us without a CNP until alpha decays, K")                      \
    X(dcqcn, timer_us,   55,        "us: increase timer, T")                                       \
    X(dcqcn, bytes,      10e6,      "bytes: byte counter, B")                                      \
    X(dcqcn, recoveries, 5,         "steps of fast recovery, F")                                   \
    X(dcqcn, ai_mbps,    40,        "Mb/s: additive increase, R_AI")                               \
    X(dcqcn, hai_mbps,   400,       "Mb/s: hyper increase, R_HAI")                                 \
    X(dcqcn, min_mbps,   100,       "Mb/s: least rate")

#define MODEL_TUNE(X)                                                                            \
    MODEL_TUNE_RC(X)                                                                             \
    MODEL_TUNE_IRN(X)                                                                            \
    MODEL_TUNE_DCQCN(X)
/* clang-format on */

#define X(part, name, value, help) double name;
struct model_tune_rc {
    MODEL_TUNE_RC(X)
};
struct model_tune_irn {
    MODEL_TUNE_IRN(X)
};
struct model_tune_dcqcn {
    MODEL_TUNE_DCQCN(X)
};
#undef X

struct model_tune {
    struct model_tune_rc rc;
    struct model_tune_irn irn;
    struct model_tune_dcqcn dcqcn;
};

extern const struct model_tune model_tune_default;

/* All constants, *num of them, in the order of the struct; `offset` is that in the struct. */
const struct mrd_tune_entry *model_tune_entries(unsigned *num);
/* Set a constant by "part.name". 0; -ENOENT: no such name; -EINVAL: negative, or not finite. */
int model_tune_set(struct model_tune *tune, const char *name, double value);

#endif
