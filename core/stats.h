/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of a context, declared once: X(name, unit, what it counts). mrd_query_counters() reports
 * them by these names, which are stable.
 */
#ifndef MRD_CORE_STATS_H
#define MRD_CORE_STATS_H

#include <stdint.h>

/* clang-format off */
#define MRD_COUNTERS(X)                                                                          \
    X(tx_packets,             "packets",  "data packets sent, retransmissions included")         \
    X(tx_bytes,               "bytes",    "payload sent, retransmissions included")              \
    X(tx_wire_bytes,          "bytes",    "datagram bytes sent, all types")                      \
    X(tx_acks,                "packets",  "acks sent as packets of their own")                   \
    X(tx_acks_ridden,         "packets",  "acks that rode on data")                              \
    X(tx_resets,              "packets",  "resets sent")                                         \
    X(tx_challenges,          "packets",  "challenges sent")                                     \
    X(tx_busies,              "packets",  "peers turned away: told that there is no room")       \
    X(tx_refusals,            "messages", "refusals issued")                                     \
    X(tx_closes,              "packets",  "idle ordered flows closed at their target") \
    X(tx_readies,             "packets",  "peers told of receives that they had been refused for") \
    X(tx_aborts,              "messages", "messages ended at their target by ABORT")             \
    X(tx_messages,            "messages", "sends and writes completed with success")             \
    X(tx_messages_failed,     "messages", "sends and writes completed in error")                 \
    X(retx_packets,           "packets",  "retransmissions, all causes")                         \
    X(retx_order,             "packets",  "of these: two later packets of the path were acked")  \
    X(retx_rack,              "packets",  "of these: a packet sent later was acked in time")     \
    X(retx_tail,              "packets",  "of these: tail loss probes")                          \
    X(retx_copy,              "packets",  "of these: second copies on another path")             \
    X(retx_timeout,           "packets",  "of these: retransmission timeout")                    \
    X(retx_challenge,         "packets",  "of these: repeated to answer a challenge")            \
    X(retx_spurious,          "packets",  "retransmissions whose original had arrived")          \
    X(probes,                 "packets",  "empty packets to a silent peer that owes something")  \
    X(probes_path,            "packets",  "empty packets on paths that were out")                \
    X(probes_mtu,             "packets",  "padded packets, to find out what a path takes")       \
    X(tx_fragments,           "packets",  "pieces of packets that their path takes no more")     \
    X(ecn_off,                "events",   "packets to a silent peer left without ECT from then on")  \
    X(ecn_on,                 "events",   "a packet with ECT came through to such a peer: all have it again") \
    X(mtu_falls,              "events",   "large packets stopped coming through: small ones then") \
    X(rx_packets,             "packets",  "data packets taken")                                  \
    X(rx_bytes,               "bytes",    "payload taken, without duplicates")                   \
    X(rx_acks,                "packets",  "acks received as packets of their own")               \
    X(rx_ce,                  "packets",  "data packets that a switch marked")                   \
    X(rx_straight,            "packets",  "data packets received straight into place")           \
    X(rx_fragments,           "packets",  "pieces of packets received")                          \
    X(rx_straight_moved,      "packets",  "of planned packets: other than predicted")            \
    X(rx_messages,            "messages", "receives and writes with immediate completed")        \
    X(rx_refusals,            "messages", "refusals received")                                   \
    X(rx_requests,            "messages", "reads and atomics of peers executed")                 \
    X(rx_duplicates,          "packets",  "data packets that had been received before")          \
    X(rx_resets,              "packets",  "resets acted upon")                                   \
    X(rx_challenges,          "packets",  "challenges answered")                                 \
    X(rx_busies,              "packets",  "answers that a peer has no room for us")              \
    X(rx_drop_truncated,      "packets",  "shorter than its header says")                        \
    X(rx_drop_version,        "packets",  "of another protocol or version")                      \
    X(rx_drop_type,           "packets",  "of an unknown type")                                  \
    X(rx_drop_sealed,         "packets",  "sealed, and the context has no key file")             \
    X(rx_drop_length,         "packets",  "lengths that contradict each other")                  \
    X(rx_drop_checksum,       "packets",  "header or payload check failed")                      \
    X(rx_drop_malformed,      "packets",  "parts, or a port to answer to, that make no sense")   \
    X(rx_drop_incarnation,    "packets",  "speaks of another life of ours or of the peer's")     \
    X(rx_drop_epoch,          "packets",  "of an older epoch of the peer")                       \
    X(rx_drop_space,          "packets",  "of a space that is not held; answered by a reset")    \
    X(rx_drop_challenged,     "packets",  "first contact answered by a challenge")               \
    X(rx_drop_unanswered,     "packets",  "of strangers, of whom too many were answered lately")     \
    X(rx_drop_table_full,     "packets",  "first contact with the peer table full")              \
    X(peers_moved,            "events",   "peers whose address changed")                         \
    X(rx_nobody,              "events",   "ICMP: nobody listens at an address never heard of")   \
    X(rx_drop_window,         "packets",  "beyond psn_limit or the tracker")                     \
    X(rx_drop_stale_ack,      "packets",  "acks older than one seen")                            \
    X(rx_drop_ack,            "packets",  "acks of a space that is not ours")                    \
    X(rx_drop_reset,          "packets",  "resets, challenges, busies that do not match")        \
    X(rx_drop_resources,      "packets",  "no room even to refuse")                              \
    X(rx_drop_guesses,        "packets",  "of peers that name too many wrong memory keys")          \
    X(rx_refuse_rnr,          "messages", "refused: no receive, or no room for its completion")                          \
    X(rx_refuse_resources,    "messages", "refused: no memory")                                  \
    X(rx_refuse_qpn,          "messages", "refused: no such queue pair")                         \
    X(rx_refuse_qkey,         "messages", "refused: wrong qkey")                                 \
    X(rx_refuse_too_long,     "messages", "refused: longer than the receive")                    \
    X(rx_refuse_access,       "messages", "refused: rkey, range or permission")                  \
    X(rx_refuse_invalid,      "messages", "refused: contradicts itself")                         \
    X(rx_refuse_operation,    "messages", "refused: the receive was deregistered") \
    X(peers,                  "peers",    "known now, idle ones included")                      \
    X(peers_evicted,          "events",   "idle ones that made room")                            \
    X(peers_rested,           "events",   "idle peers of which little is kept")                  \
    X(peers_unreachable,      "events",   "peers given up")                                      \
    X(peers_restarted,        "events",   "peers that lost what they knew of us")                \
    X(paths_suspended,        "events",   "path suspensions")                                    \
    X(paths_replaced,         "events",   "dead paths given a fresh entropy value")              \
    X(stalls,                 "events",   "gaps in which our receive queue was not read")        \
    X(events_lost,            "events",   "asynchronous events dropped: nobody took them")
/* clang-format on */

struct mrd_stats {
#define X(name, unit, what) uint64_t name;
    MRD_COUNTERS(X)
#undef X
};

#endif
