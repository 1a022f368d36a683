/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants of the policies, declared once: X(part, name, default, help). Experiments may set
 * them; users cannot.
 *
 * Copy mrd_tune_default, mrd_tune_set() what differs, and give the copy to the engine by
 * mrd_mover.tune. The parts borrow the copy: it must outlive them, and must not change meanwhile,
 * as some values are converted when a send state is made. mrd_tune_set() refuses only negative
 * values and those that are not finite.
 *
 * Adding one: a line here. Setting and listing work at once; code reads `tune->part.name`.
 */
#ifndef MRD_CORE_TUNE_H
#define MRD_CORE_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */

/* What all congestion control policies share. */
#define MRD_TUNE_CC(X)                                                                             \
    X(cc, start_bdp,          1.5,      "BDP: start window")                                       \
    /* RFC 6928 */                                                                                 \
    X(cc, start_packets,      10,       "packets: least start window, all if the rate is unknown") \
    /* Below a packet it is paced: of an incast not every sender can have a packet in flight. */   \
    X(cc, least_packets,      0.1,      "packets: least window, above 0")                          \
    /* That of a data centre fabric. */                                                            \
    X(cc, base_rtt_guess_ns,  10000,    "ns: base RTT before the first sample")                    \
    X(cc, rate_rounds,        5,        "round trips: half window of the delivered rate")          \
    X(cc, loss_gain,          1.0 / 4,  "gain of the mean share of loss")                          \
    /* Long enough for a mean over paths, and over late acks. */                                   \
    X(cc, length_gain,        1.0 / 64, "gain of the mean RTT without queues")                     \
    /* One RTT of slow start makes the window for it. */                                           \
    X(cc, anew_times,         2,        "a way so many times as long begins slow start anew")      \
    /* Late packets arrive within some RTTs; an older window says little. */                       \
    X(cc, undo_rtts,          16,       "RTTs in which a cut by needless losses is taken back")    \
    /* RFC 7661 in spirit */                                                                       \
    X(cc, used_times,         2,        "a window grows up to so many times what is used")         \
    /* A queue that holds so much of each flow drops nothing. More delays others' messages. */      \
    X(cc, cap_queue,          0.5,      "of the mover's cap: it rises to a BDP and that")          \
    /* Behind queues of 3 BDP TCP makes 4 of one: less would leave us no part. */                  \
    X(cc, cap_bdp,            4,        "measured BDPs: to that where the way is long")            \
    X(cc, cap_rtt_ns,         1e6,      "ns: RTT from which it is; to less on shorter ways")         \
    X(cc, timeout_factor,     0.5,      "factor of a cut by a timeout")

#define MRD_TUNE_NSCC(X)                                                                           \
    X(nscc, target_rtts,        2.25,     "base RTTs: delay target")                               \
    X(nscc, gain_bdp,           1.0 / 36, "BDP: a, the unit of the gains")                         \
    X(nscc, below_gain,         8,        "a: no CE, delay below the target")                      \
    X(nscc, above_gain,         0.75,     "a: no CE, delay above the target")                      \
    X(nscc, fair_gain,          0.15,     "a: always, per RTT")                                    \
    X(nscc, cut_gain,           0.8,      "delay above the target: cut, times the excess")         \
    X(nscc, cut_least,          0.5,      "least factor of that cut")                              \
    X(nscc, cut_rtts,           1,        "RTTs between such cuts, at least")                      \
    X(nscc, delay_gain,         1.0 / 8,  "gain of the mean delay")                                \
    X(nscc, delay_samples,      4,        "samples: half window of the least delay")               \
    X(nscc, incast_share,       0.85,     "share of CE: all paths are hot")                        \
    /* More, or marks of fewer RTTs, and 16 flows with windows of some packets swing in step. */   \
    X(nscc, mark_cut,           0.25,     "CE: cut an RTT when all are marked")                    \
    X(nscc, mark_share,         0.5,      "mean share of CE above which there is such a cut")      \
    X(nscc, mark_unit_bdp,      0.01,     "of the rate times the SRTT: unit of growth by marks")   \
    X(nscc, mark_unit_packets,  4,        "packets for an RTT of gentle_rtt_ns: rate unknown")     \
    X(nscc, mark_rtt_most,      6,        "of gentle_rtt_ns: for longer RTTs it is as for that")   \
    X(nscc, mark_grow,          8,        "units: growth an RTT while nothing is marked, and")     \
    /* 0.4 BDP: a flow whose last hop others leave is back within some RTTs. */                    \
    X(nscc, mark_grow_known,    40,       "the same where the rate is known")                      \
    X(nscc, mark_grow_least,    0.25,     "units: always, times the share unmarked, and")          \
    X(nscc, mark_fair,          0.12,     "a: always, per RTT")                                    \
    X(nscc, mark_pace,          1.25,     "windows an SRTT: then packets leave so fast")           \
    X(nscc, mark_pace_packets,  1.8,      "packets: if the rate is known, only smaller windows")   \
    X(nscc, ce_gain,            1.0 / 4,  "gain of the mean share of CE")                          \
    X(nscc, slow_start_delay,   0.5,      "targets: CE and more delay end slow start")             \
    X(nscc, slow_start_losses,  2,        "packets lost in an RTT end slow start")                 \
    X(nscc, most_bdp,           3,        "BDP: greatest window")                                  \
    /* Coalesced acks need that many packets in flight. */                                         \
    X(nscc, least_bdp_packets,  4,        "packets: a BDP is taken as at least so many")           \
    X(nscc, loss_share,         1.0 / 4,  "of the window, lost in an RTT: a cut")                  \
    X(nscc, loss_factor,        0.7,      "factor of that cut")                                    \
    /*                                                                                             \
     * Delay that is not our queue. With a window of a BDP we have none. What is left after some   \
     * RTTs is the paths' length, or a queue of other flows.                                       \
     */                                                                                            \
    X(nscc, watch_floor_rtts,   4,        "RTTs at the floor until that is asked")                 \
    X(nscc, watch_cap_rtts,     16,       "RTTs at the cap until our queue is drained for it")     \
    X(nscc, watch_drain_rtts,   2,        "RTTs at a BDP until our queue is gone")                 \
    X(nscc, watch_packets,      2,        "packets: least window that it is drained to")           \
    X(nscc, watch_rest_rtts,    256,      "RTTs until it is asked again, if it was ours")          \
    X(nscc, watch_again_rtts,   16,       "RTTs until then, if some of it was the way's length")   \
    X(nscc, watch_pause_rtts,   32,       "RTTs to the next drain, per drain lately but the")      \
    X(nscc, watch_free,         2,        "first of them, which cost no wait")                     \
    X(nscc, watch_slack,        0.2,      "share of the window: so near to the floor or the cap")  \
    X(nscc, watch_share,        0.25,     "base RTTs: delay that is worth asking")                 \
    /* More than the queue from which a switch marks, and than a short queue of ours leaves. */    \
    X(nscc, calibrate_share,    0.5,      "base RTTs: no less is taken for a path's length")       \
    X(nscc, unmarked_rtts,      16,       "RTTs without a mark until then")                        \
    /* Single packets and bursts of ours delay each other by less. */                              \
    X(nscc, queue_loss_share,   0.2,      "base RTTs: delay that makes losses those of a queue")   \
    X(nscc, queue_loss_known,   0.05,     "the same where the rate is known")                      \
    X(nscc, queue_loss_hosts_ns, 1e5,     "ns: and so much where it is not, if that is less: hosts") \
    X(nscc, queue_loss_few,     6,        "packets at the measured rate: less, if they take less") \
    X(nscc, queue_loss_jumps,   5,        "mean changes of RTTs: but not less than those")         \
    X(nscc, queue_loss_varies,  0.05,     "base RTTs: delay that varies less is not of a queue")   \
    X(nscc, queue_loss_known_varies, 0.5, "of that delay, where the rate is known: likewise")      \
    X(nscc, queue_loss_packets, 5,        "packets at the link's rate: likewise, but no more than") \
    X(nscc, queue_loss_some,    0.25,     "base RTTs")                                             \
    X(nscc, queue_loss_busy,    0.2,      "mean share of loss at which no delay means no queue")    \
    X(nscc, queue_loss_much,    0.1,      "mean share of loss: above it, too")                     \
    X(nscc, queue_loss_sure,    0.4,      "mean share of loss that is a queue's whatever the delay") \
    X(nscc, queue_loss_slow,    0.1,      "of the link: if less comes through")                   \
    X(nscc, queue_loss_small,   6,        "packets: below that window any delay may be of a queue")\
    X(nscc, queue_loss_least_rtts, 64,    "RTTs: half window of the least delay, for that")        \
    X(nscc, queue_loss_least,   0.1,      "cut by them, at least")                                 \
    X(nscc, queue_loss_bdp,     1.0 / 16, "BDP: such a cut is at least of that, rate known")       \
    X(nscc, queue_loss_drain,   0.35,     "cut that drains the queue, at most")                    \
    X(nscc, queue_loss_most,    0.5,      "cut by the share lost, at most")                        \
    X(nscc, queue_loss_rtts,    2,        "RTTs between such cuts")                                \
    X(nscc, gentle_rounds,      64,       "RTTs after such a cut with slow growth")                \
    X(nscc, gentle_ramp_rounds, 64,       "RTTs after these in which growth gets faster")          \
    X(nscc, gentle_ramp,        1.09,     "times in each of them")                                 \
    X(nscc, gentle_gain,        1,        "packets: growth an RTT of gentle_rtt_ns then")          \
    X(nscc, gentle_share,       0.04,     "of the window: at most so much")                        \
    X(nscc, gentle_empty,       0.1,      "of the window: growth an RTT while there is no queue")  \
    X(nscc, gentle_pace,        1.25,     "windows an SRTT that are paced then: rate unknown")     \
    X(nscc, gentle_rtt_ns,      200000,   "ns: RTT for which that gain is")                        \
    X(nscc, gentle_rtt_least,   0.15,     "of it: for shorter RTTs the gain is as for that")       \
    X(nscc, gentle_rtt_most,    1.5,      "of it: for longer RTTs the gain is as for that")        \
    /* A window at once fills a queue that holds a tenth of what a long way does. */               \
    X(nscc, far_rtt_ns,         1e6,      "ns: RTT of a long way, on which packets are always paced") \
    X(nscc, far_start_loss,     0.05,     "share lost as slow start ends there: slow growth is next") \
    X(nscc, far_back,           0.9,      "of what was measured: growth is fast again up to that") \
    /* Others there are TCP, which gives way by 0.3 and takes seconds to come back. */             \
    X(nscc, far_cut,            0.2,      "cut there by losses at a queue, rate unknown")           \
    X(nscc, gentle_calm,        16,       "RTTs after such a cut until delay is looked into again")\
    /* A full queue changes RTTs by a twentieth, late hosts by a fifth and more. */                \
    X(nscc, jitter_gain,        1.0 / 32, "gain of the mean change of the RTT, sample to sample")  \
    X(nscc, jitter_share,       0.15,     "of the RTT: a mean change that no queue makes")         \
    X(nscc, jitter_samples,     64,       "samples: half window of the least RTT, for a queue")    \
    X(nscc, jitter_queue,       0.2,      "of the mean RTT less the least: a queue leaves more")   \
    X(nscc, jitter_loss,        1.0 / 16, "share lost with it that is looked into")                \
    X(nscc, jitter_packets,     8,        "packets lost, likewise")                                \
    X(nscc, jitter_much,        0.3,      "mean share of loss: above it jumps may be a slow link's") \
    X(nscc, jitter_fades,       1.0 / 128, "of the packets for that, forgotten in an RTT")         \
    X(nscc, floor_loss_share,   1.0 / 8,  "above this share of loss a cut by delay has no floor")

#define MRD_TUNE_ELASTIC(X)                                                                        \
    X(elastic, ignored_share,   0.01,     "share of loss that is never looked into")               \
    X(elastic, usual_times,     2,        "times the usual share: likewise")                       \
    X(elastic, usual_fades,     1.0 / 4096, "of it, that is forgotten in an RTT")                  \
    X(elastic, alarm_packets,   8,        "packets lost beyond that: the window is cut for a test")\
    X(elastic, alarm_rounds,    3,        "and RTTs that lost some of them: a burst is no policer")\
    X(elastic, limited_packets, 2,        "the same where losses follow the window")               \
    X(elastic, limited_rounds,  2,        "and RTTs that lost some, likewise")                     \
    X(elastic, recent_fades,    1.0 / 16, "of the packets of late, that is forgotten in an RTT")   \
    X(elastic, rate_packets,    8,        "packets: least window that tells what gets through")    \
    X(elastic, margin,          0.05,     "cut below what seems to get through")                   \
    X(elastic, factor_least,    0.1,      "greatest cut")                                          \
    X(elastic, wait_rtts,       2,        "RTTs until losses are of packets sent after a cut")     \
    X(elastic, test_packets,    24,       "packets that a test would lose if the share stayed")    \
    X(elastic, look_rounds,     16,       "RTTs that a test looks at before its first cut")\
    X(elastic, test_rounds,     64,       "RTTs after a cut, at least: bursts come seldom")        \
    X(elastic, test_rounds_most, 256,     "RTTs after which it is judged by what there is")\
    X(elastic, falls_to,        0.3,      "of that share: the losses follow the window")           \
    X(elastic, steps,           4,        "cuts of a test until they do not")                      \
    X(elastic, cuts,            8,        "cuts until that is tested again")                       \
    X(elastic, gain,            0.01,     "of the window: growth an RTT after such a cut")         \
    X(elastic, gain_packets,    4,        "packets an RTT: with fewer it grows slower")\
    X(elastic, gain_rises,      1.014,    "times that in each RTT without one")                    \
    /* Buckets that were full let more through for some RTTs. */                                   \
    X(elastic, cap_bdp,         1.1,      "of what gets through in an SRTT: the window's cap while it grows so") \
    X(elastic, gain_most,       0.25,     "growth from which it is as usual again")

#define MRD_TUNE_DCTCP(X)                                                                          \
    /* RFC 8257 */                                                                                 \
    X(dctcp, gain,          1.0 / 16, "g, gain of the mean share of CE")                           \
    X(dctcp, most_bdp,      3,        "BDP: greatest window where the rate is known")              \
    /* So that delayed acks do not stall a link with a very short RTT. */                          \
    X(dctcp, least_packets, 8,        "packets: least value of that bound")                        \
    X(dctcp, loss_share,    1.0 / 4,  "of the window, lost in an RTT: a cut, once marks were seen")

/* Kumar et al., SIGCOMM 2020, where the paper gives a value. */
#define MRD_TUNE_SWIFT(X)                                                                          \
    X(swift, target_rtts,   2,       "base RTTs: base target, of the whole round trip")            \
    X(swift, scaling_rtts,  4,       "base RTTs: most that flow scaling adds")                     \
    X(swift, scaling_least, 0.1,     "packets: window from which down it adds all")                \
    X(swift, scaling_most,  100,     "packets: window from which up it adds nothing")              \
    X(swift, gain_packets,  1,       "packets: growth per RTT below the target")                   \
    X(swift, cut_gain,      0.8,     "beta: cut, times the share of the delay beyond the target")  \
    X(swift, most_cut,      0.5,     "greatest cut, and that by loss")                             \
    X(swift, delay_samples, 4,       "samples: half window of the least delay")                    \
    X(swift, most_bdp,      3,       "BDP: greatest window where the rate is known")               \
    /* So that delayed acks do not stall a link with a very short RTT. */                          \
    X(swift, least_packets, 8,       "packets: least value of that bound")                         \
    /* 0: any loss cuts, as in the paper. */                                                       \
    X(swift, loss_share,    1.0 / 4, "of the window, lost in an RTT: a cut")                       \
    X(swift, timeouts_most, 5,       "timeouts in a row that end at the least window")

#define MRD_TUNE_NONE(X)                                                                           \
    X(none, window_bdp,   3,        "BDP: the window where the rate is known")                     \
    X(none, window_bytes, 16 << 20, "bytes: the window where nothing bounds it")

#define MRD_TUNE_FIXED(X)                                                                          \
    X(fixed, window_packets, 64, "packets: the window")

#define MRD_TUNE_ADAPTIVE(X)                                                                       \
    X(adaptive, noise_rtts, 0.1, "RTTs: delays that differ by less are equal")               \
    X(adaptive, unit_rtts, 0.3, "RTTs: U, what a packet of our own counts against a delay")   \
    /*                                                                                             \
     * A path that looked bad once is not chosen, so not sampled, and would look bad for ever.     \
     * Longer than a flow of a few windows, which keeps what it learnt.                            \
     */                                                                                            \
    X(adaptive, fade_rtts, 64,  "base RTTs in which a delay fades into the average of all paths")

#define MRD_TUNE_PATH(X)                                                                           \
    X(path, suspend_rtts,      4,        "base RTTs: first suspension")                            \
    X(path, suspend_doublings, 4,        "how often it doubles, at most 62")                       \
    /*                                                                                             \
     * Where all paths lose alike another path is no better, and to suspend one costs a probe.     \
     */                                                                                            \
    X(path, usual_share,       0.003,    "mean loss of the other paths from which losses are usual") \
    X(path, usual_times,       1.2,        "of that mean: a path with more loses more than usual")   \
    X(path, order_spurious,    3,        "needless losses that end detection by order on a path")  \
    X(path, delay_window_rtts, 8,        "RTTs: half window of the least one-way delay")           \
    /*                                                                                             \
     * A path dies when its share of loss exceeds dead_share, and dead_times_mean times the mean   \
     * of the other GOOD paths. (Those that are out would hide a failure of a quarter of the       \
     * paths at once.) In addition one of these must hold:                                         \
     *  - dead_row probes in a row failed, as in a black hole. That takes 188 base RTTs from the   \
     *    first loss, plus the probes' own time. Uniform loss of 5% does it once in 2^35 losses;   \
     *    from 20% on the comparison with the mean cannot come true.                               \
     *  - Its last dead_packets packets all found the share above dead_share (a bad cable).        \
     */                                                                                            \
    X(path, dead_share,        0.10,     "share of loss of a path that may be dead")               \
    X(path, dead_times_mean,   4,        "means of the other paths' loss that it exceeds")         \
    X(path, dead_row,          8,        "probes in a row that failed")                            \
    X(path, dead_packets,      256,      "packets with the share exceeded")                        \
    X(path, dead_probe_ns,     1e9,      "ns: between the probes of a dead path")                  \
    /* Clocks drift by more than a path's length in a second. */                                   \
    X(path, last_rtts,         256,      "least RTTs for which the last delay of a path is known") \
    X(path, level_new_times,   16,        "times its length that a path was longer until it is known") \
    X(path, level_times,       128,      "the same of one that once was as short as others")       \
    X(path, level_once,        0.8,      "of its RTT: if its least is no less, it never was")      \
    X(path, level_share,       0.25,     "of the SRTT: it seems longer than the shortest by more") \
    /* Half of a fair share of two flows: a queue that falls by that is shared with few. */        \
    X(path, fall_share,        0.25,     "of what our queue would fall by: a queue falls by that") \
    X(path, rtt_unknown_ns,    100000,   "ns: base RTT before the first sample")                   \
    X(path, fails_row,         4,        "losses in a row that are of a failing path, whatever others lose") \
    X(path, fails_chance,      1e-2,     "chance of a row by the others' loss: less is a failing path") \
    X(path, fails_sure,        1e-6,     "the same: some path fails for sure")                          \
    X(path, fails_rtts,        100,      "RTTs for which that counts")                                  \
    X(path, in_queue,          0.25,     "of the mean delay: a path with less does not have that queue")     \
    X(path, loss_gain,         1.0 / 32, "gain of a path's mean share of loss")                    \
    X(path, loss_avg_gain,     1.0 / 512, "gain of that of all paths")                             \
    X(path, q_gain,            1.0 / 8,  "gain of a path's mean queue delay")                      \
    /* One sample is weak evidence: the mean of the other paths counts as much. */                 \
    X(path, q_first_gain,      1.0 / 2,  "weight of its first sample")                             \
    X(path, q_avg_gain,        1.0 / 32, "gain of the mean queue delay of all paths")

#define MRD_TUNE_LOSS(X)                                                                           \
    X(loss, initial_rtt_ns,     1000000, "ns: RTT before the first sample")                        \
    X(loss, min_window_ns,      5e9,     "ns: half window of the least RTT")                       \
    X(loss, rto_rttvars,        4,       "RTT variations in the RTO (RFC 6298)")                   \
    X(loss, window_min_rtts,    1.25,    "least RTTs: the window of loss by time, at least")       \
    X(loss, window_skews,       2,       "times the lateness seen: the same")                      \
    /* For paths longer than others; RFC 8985 allows 1/4 RTT for reordering. */                    \
    X(loss, window_ages,       1.25,    "times what a path's packets took of late, at least")      \
    X(loss, window_step_rtts,   0.25,    "RTTs: its growth by a needless retransmission")          \
    X(loss, steps_most,         16,      "such steps")                                             \
    X(loss, step_life_rtts,     64,      "RTTs until a step is taken back")                        \
    X(loss, skew_life_rtts,     8,       "RTTs until a lateness is forgotten")                     \
    X(loss, tail_probes,        3,       "tail probes before the RTO")                             \
    /* An RTO tests only the paths that it used: with most dead, several are needed. */            \
    X(loss, rto_tries,          4,       "timeouts until the RTO doubles")                         \
    X(loss, full_rtts,          1.25,    "full window: probe so many RTTs after the last packet")  \
    X(loss, full_progress_rtts, 0.25,    "and so many RTTs after the last ack")                    \
    X(loss, full_floors,        1.0 / 8, "and not before so many RTO floors")                      \
    X(loss, small_rtts,         2,       "small window: probe after so many RTTs")                 \
    X(loss, small_floors,       1.0 / 4, "and not before so many RTO floors")

#define MRD_TUNE_ENGINE(X)                                                                         \
    /* Else a small window is sent and acked as a whole, with each end idle in turn. */            \
    X(engine, requests_per_window, 5,   "acks asked for in a window, at least")                    \
    /* A burst waits for at most that part of the window to be free. */                            \
    X(engine, bursts_per_window,   4,   "bursts in a window, at least")                            \
    X(engine, quantum_rtts,        0.5, "base RTTs: longest quantum of a long message")

/* The parts, a row each: P(part, its constants). */
#define MRD_TUNE_PARTS(P)                                                                          \
    P(cc,       MRD_TUNE_CC)                                                                       \
    P(nscc,     MRD_TUNE_NSCC)                                                                     \
    P(elastic,  MRD_TUNE_ELASTIC)                                                                  \
    P(dctcp,    MRD_TUNE_DCTCP)                                                                    \
    P(swift,    MRD_TUNE_SWIFT)                                                                    \
    P(none,     MRD_TUNE_NONE)                                                                     \
    P(fixed,    MRD_TUNE_FIXED)                                                                    \
    P(adaptive, MRD_TUNE_ADAPTIVE)                                                                 \
    P(path,     MRD_TUNE_PATH)                                                                     \
    P(loss,     MRD_TUNE_LOSS)                                                                     \
    P(engine,   MRD_TUNE_ENGINE)
/* clang-format on */

/* struct mrd_tune_PART for each part, all of doubles; and struct mrd_tune, with one of each. */
#define X(part, name, value, help) double name;
#define P(part, constants)                                                                         \
    struct mrd_tune_##part {                                                                       \
        constants(X)                                                                               \
    };
MRD_TUNE_PARTS(P)
#undef P
#undef X

#define P(part, constants) struct mrd_tune_##part part;
struct mrd_tune {
    MRD_TUNE_PARTS(P)
};
#undef P

extern const struct mrd_tune mrd_tune_default;

/*
 * A constant as it is set and listed: "part.name", and the offset of its double in struct mrd_tune.
 */
struct mrd_tune_entry {
    const char *name, *help;
    double value_default;
    size_t offset;
};

/* Returns all `*num` entries, in the order of the struct. */
const struct mrd_tune_entry *mrd_tune_entries(unsigned *num);
/* Sets a constant. Returns 0; -ENOENT: no such name; -EINVAL: negative, or not finite. */
int mrd_tune_set(struct mrd_tune *tune, const char *name, double value);
/* The same for another struct of doubles, described by `list`. */
int mrd_tune_set_in(const struct mrd_tune_entry *list, unsigned num, void *constants,
                    const char *name, double value);
/* Reads a constant. false: no such name; *value is unchanged. */
bool mrd_tune_get(const struct mrd_tune *tune, const char *name, double *value);

/* Converts to whole nanoseconds, at most 31 years: always defined, and a sum with a time fits. */
static inline uint64_t mrd_tune_ns(double ns)
{
    return ns < 1e18 ? (uint64_t)ns : UINT64_C(1000000000000000000);
}

/* Converts to a count, saturated. */
static inline uint32_t mrd_tune_count(double value)
{
    return value < (double)UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

#endif
