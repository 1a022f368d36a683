/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: the whole protocol, sans-I/O.
 *
 * Time, seed and packets are arguments; memory comes from an allocator table; it makes no system
 * call. One engine serves one context. It is not thread-safe: the caller serialises.
 *
 * The loop of a caller, in this order:
 *     mrd_engine_begin(e, now);               one API call or one turn of the progress thread
 *     mrd_engine_rx(e, packets, n, now);      all that the mover has
 *     mrd_engine_drained(e, now);             only when the mover had nothing more
 *     mrd_engine_expire(e, now);              what is due
 *     mrd_engine_tx(e, packets, n, now);      until it returns less than n
 *     sleep until mrd_engine_deadline(e) or a packet
 * A call that makes work is begin, the call, and tx. After an absence the receive queue comes first, until it is
 * empty: who the peers are, and whether they are there, is judged by what was received.
 */
#ifndef MRD_CORE_ENGINE_ENGINE_H
#define MRD_CORE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/alloc.h"
#include "core/packet.h"
#include "mrd/mrd.h"

struct mrd_engine;
struct mrd_tune;
struct mrd_channel_impl;

/* What the mover tells the engine about itself. */
struct mrd_mover {
    uint64_t link_bps; /* rate of the link; 0: unknown, it is measured */
    uint64_t rto_floor_ns;
    uint64_t base_rtt_ns;     /* least value taken for the base RTT; 0: the measured one */
    uint64_t base_rtt_max_ns; /* greatest: of the longest way through the fabric; 0: unknown */
    uint32_t ack_every;       /* packets received before an ack */
    uint32_t ack_bytes;     /* of segments so many bytes instead; 0: they are packets like others */
    uint32_t ack_delay_ns;  /* longest time that an ack is held back */
    uint32_t payload_bytes; /* largest payload of a packet to any peer, multiple of 64 */
    uint32_t payload_usual; /* to peers of which no route is known; 0: payload_bytes */
    /* Payload that any network carries; 0: no path takes less than it did at first. */
    uint32_t payload_base;
    uint32_t quantum;     /* most packets sent on a path before switching: 1, or what GSO takes */
    uint32_t burst_bytes; /* and at most so many bytes; 0: no limit */
    uint32_t paths;       /* usable path numbers: 0 .. paths - 1 */
    uint32_t tracker;     /* PSNs tracked a peer at first: power of two, 512 .. 4096 */
    uint32_t cwnd_cap_bytes;   /* 0: none */
    uint32_t cwnd_start_bytes; /* 0: 1.5 BDP */
    uint32_t rx_buffer_bytes;  /* receive buffer shared by all senders; 0: no limit */
    /* What a base or usual payload costs there beyond its bytes; a larger one, in proportion. */
    uint32_t rx_packet_overhead;
    uint32_t header_bytes; /* below ours on the wire, for rates: Ethernet, IP, UDP */
    uint32_t reply_max;    /* a peer receives at port 1 to this one; 0: all that a header can say */
    bool probes;           /* packets begin with payload_base, and larger ones are probed for */
    bool copies; /* tx_burst copies: buffers are free when it returns, cookies are not needed */
    /* Constants of the policies; NULL: the defaults; borrowed, outlives the engine. */
    const struct mrd_tune *tune;
};

struct mrd_engine_config {
    struct mrd_mover mover;
    struct mrd_addr self; /* own receive address; the port is what peers answer to */
    uint64_t seed;
    uint64_t key[2];               /* random: what strangers must not guess follows from it */
    uint32_t incarnation;          /* random, not 0: tells lives with the same key apart */
    const char *spray, *cc;        /* NULL: defaults */
    uint32_t paths;                /* entropy values a peer, at most mover.paths */
    uint32_t max_peers, max_flows; /* 1 .. MRD_PEERS_MAX, 1 .. MRD_FLOWS_MAX of limits.h */
    uint64_t peer_timeout_ns;
    bool trusting; /* first contacts are executed without a proof of where they come from */
    uint8_t dscp;  /* of packets, 0 to 63, where no address handle has another */
    bool no_ect;   /* no packet says that it can be marked */
    bool no_check; /* payloads to and from peers that want the same have no check */
    bool sealed;   /* packets are sealed outside: payloads need no check */
};

/* NULL: bad policy name or number (-EINVAL), or no memory (-ENOMEM); *error then holds which. */
struct mrd_engine *mrd_engine_create(const struct mrd_engine_config *config,
                                     const struct mrd_allocator *allocator, uint64_t now_ns,
                                     int *error);
void mrd_engine_destroy(struct mrd_engine *e);
/* What it was created with. */
const struct mrd_engine_config *mrd_engine_config(const struct mrd_engine *e);

/* ----------------------------------------------------------------------------- packets and time */

void mrd_engine_begin(struct mrd_engine *e, uint64_t now_ns);
void mrd_engine_rx(struct mrd_engine *e, const struct mrd_rx_packet *packets, unsigned n,
                   uint64_t now_ns);
/*
 * Where the payloads of a burst of `segments` datagrams of `segment_len` bytes (the last may be
 * shorter: total_len in all), whose first header is `head`, should be received. Segments planned,
 * or 0: stage them.
 */
unsigned mrd_engine_rx_plan(struct mrd_engine *e, const uint8_t *head, unsigned head_len,
                            unsigned segments, unsigned segment_len, unsigned total_len,
                            const struct mrd_addr *from, struct mrd_rx_plan *plan);
void mrd_engine_drained(struct mrd_engine *e, uint64_t now_ns);
void mrd_engine_expire(struct mrd_engine *e, uint64_t now_ns);
/*
 * Fill up to n packets that may be sent now; how many. Packets for one peer and path come in runs.
 */
unsigned mrd_engine_tx(struct mrd_engine *e, struct mrd_tx_packet *packets, unsigned n,
                       uint64_t now_ns);
/*
 * Did the last mrd_engine_tx() leave packets free that could have been filled, as there was no room
 * for a whole burst? Then the next call goes on with that.
 */
bool mrd_engine_tx_cut_short(const struct mrd_engine *e);
/* The mover no longer reads the buffers of the packet with this cookie. */
void mrd_engine_tx_done(struct mrd_engine *e, uint64_t cookie, uint64_t now_ns);
/*
 * The mover could not send a packet of this peer because it does not fit: new packets get at
 * most payload_bytes.
 */
void mrd_engine_tx_too_big(struct mrd_engine *e, const struct mrd_addr *to, uint32_t payload_bytes);
/*
 * The network says that nobody listens at the address (ICMP port unreachable). Anyone can forge
 * that, so it counts only for a peer that was never heard of, and only if it goes on: then work to
 * it fails before the peer timeout. Returns whether it did.
 */
bool mrd_engine_tx_refused(struct mrd_engine *e, const struct mrd_addr *to, uint64_t now_ns);
/* Absolute time of the next work without a packet; 0: now; UINT64_MAX: never. */
uint64_t mrd_engine_deadline(struct mrd_engine *e);
/*
 * After mrd_engine_rx() that left nothing unread: there is nothing to send and nobody to judge yet,
 * unless a timer is due. A caller with completions to hand out may leave the rest of its turn to
 * its next call.
 */
bool mrd_engine_quiet(const struct mrd_engine *e);

/* -------------------------------------------------------------------------- objects (see mrd.h) */

struct mrd_pd *mrd_engine_alloc_pd(struct mrd_engine *e, struct mrd_context *context);
int mrd_engine_dealloc_pd(struct mrd_engine *e, struct mrd_pd *pd);
/*
 * `mover`: what the mover knows the memory by; it is the caller's to undo
 * after mrd_engine_dereg_mr().
 */
struct mrd_mr *mrd_engine_reg_mr(struct mrd_engine *e, struct mrd_pd *pd, void *addr, size_t length,
                                 int access, const struct mrd_mover_mr *mover, int *error);
struct mrd_mover_mr mrd_engine_mover_mr(const struct mrd_mr *mr);
int mrd_engine_dereg_mr(struct mrd_engine *e, struct mrd_mr *mr, uint64_t now_ns);
struct mrd_cq *mrd_engine_create_cq(struct mrd_engine *e, struct mrd_context *context, int cqe,
                                    void *cq_context, int *error);
int mrd_engine_resize_cq(struct mrd_engine *e, struct mrd_cq *cq, int cqe);
int mrd_engine_destroy_cq(struct mrd_engine *e, struct mrd_cq *cq);
int mrd_engine_poll_cq(struct mrd_engine *e, struct mrd_cq *cq, int n, struct mrd_wc *wc);
bool mrd_engine_cq_waits(const struct mrd_cq *cq);
/*
 * Completion channels (core/cq.h), in memory of the caller's. Events of a queue that was armed go
 * to its channel. mrd_engine_take_news() returns each channel that has new events, once; NULL: none.
 */
void mrd_engine_open_channel(struct mrd_engine *e, struct mrd_channel_impl *channel);
/* 0, or -EBUSY: completion queues use it. */
int mrd_engine_close_channel(struct mrd_engine *e, struct mrd_channel_impl *channel);
/* Of a new completion queue, before any queue pair uses it. */
void mrd_engine_set_channel(struct mrd_cq *cq, struct mrd_channel_impl *channel);
/* 0, or -EINVAL: it has no channel. */
int mrd_engine_arm_cq(struct mrd_engine *e, struct mrd_cq *cq, bool solicited_only);
/* NULL: it has none. */
struct mrd_comp_channel *mrd_engine_cq_channel(const struct mrd_cq *cq);
bool mrd_engine_cq_armed(const struct mrd_cq *cq);
/* Some queue is armed: a thread of the application may sleep. */
bool mrd_engine_is_awaited(const struct mrd_engine *e);
struct mrd_channel_impl *mrd_engine_take_news(struct mrd_engine *e);
/* The queue of the channel's oldest event; NULL: none. */
struct mrd_cq *mrd_engine_take_cq_event(struct mrd_channel_impl *channel);
/* 0, or -EINVAL: so many were not taken. */
int mrd_engine_ack_cq_events(struct mrd_engine *e, struct mrd_cq *cq, unsigned n);
struct mrd_srq *mrd_engine_create_srq(struct mrd_engine *e, struct mrd_pd *pd,
                                      const struct mrd_srq_init_attr *attr, int *error);
void mrd_engine_query_srq(const struct mrd_srq *srq, struct mrd_srq_attr *attr);
int mrd_engine_modify_srq(struct mrd_engine *e, struct mrd_srq *srq,
                          const struct mrd_srq_attr *attr, int mask);
int mrd_engine_destroy_srq(struct mrd_engine *e, struct mrd_srq *srq);
struct mrd_qp *mrd_engine_create_qp(struct mrd_engine *e, struct mrd_pd *pd,
                                    const struct mrd_qp_init_attr *attr, int *error);
/* What is in force: attributes that would make such a queue pair. */
void mrd_engine_query_qp(const struct mrd_qp *qp, struct mrd_qp_init_attr *attr);
int mrd_engine_modify_qp(struct mrd_engine *e, struct mrd_qp *qp, const struct mrd_qp_attr *attr,
                         int mask, uint64_t now_ns);
int mrd_engine_destroy_qp(struct mrd_engine *e, struct mrd_qp *qp, uint64_t now_ns);
/* The device is gone: all queue pairs go to the error state, with an event each. */
void mrd_engine_fail_qps(struct mrd_engine *e, uint64_t now_ns);
/* payload_bytes: what a packet to there may carry, 0: the mover's. */
struct mrd_ah *mrd_engine_create_ah(struct mrd_engine *e, struct mrd_pd *pd,
                                    const struct mrd_addr *to, uint32_t payload_bytes, int *error);
/* Packets to a peer have the DSCP of the handle last posted with; at first the context's. */
void mrd_engine_set_dscp(struct mrd_ah *ah, uint8_t dscp);
/* All packets to there take one way, whatever their path: the peer is on this machine. */
void mrd_engine_set_one_way(struct mrd_ah *ah);
int mrd_engine_destroy_ah(struct mrd_engine *e, struct mrd_ah *ah);
/* From now on events tell when the peer goes away, work or not. 0, or -EAGAIN. */
int mrd_engine_watch_peer(struct mrd_engine *e, struct mrd_ah *ah, bool on, uint64_t now_ns);
const struct mrd_addr *mrd_engine_ah_addr(const struct mrd_ah *ah);
/* Where the handle's peer is now, which may have moved; valid until the next call. */
const struct mrd_addr *mrd_engine_ah_now(const struct mrd_engine *e, const struct mrd_ah *ah);
/* 0 or -ENOENT. */
int mrd_engine_peer_addr(struct mrd_engine *e, uint32_t peer_id, struct mrd_addr *addr);
int mrd_engine_post_send(struct mrd_engine *e, struct mrd_qp *qp, struct mrd_send_wr *wr,
                         struct mrd_send_wr **bad_wr, uint64_t now_ns);
int mrd_engine_post_recv(struct mrd_engine *e, struct mrd_qp *qp, struct mrd_recv_wr *wr,
                         struct mrd_recv_wr **bad_wr);
int mrd_engine_post_srq_recv(struct mrd_engine *e, struct mrd_srq *srq, struct mrd_recv_wr *wr,
                             struct mrd_recv_wr **bad_wr);
/*
 * There are receives, or room for them to complete, that a peer waits for: it should be told soon,
 * by mrd_engine_tx().
 */
bool mrd_engine_says_ready(const struct mrd_engine *e);
/*
 * The context closes: its peers are told what was received, and that nothing more comes of it. The
 * caller sends all that mrd_engine_tx() gives, and then destroys the engine.
 */
void mrd_engine_farewell(struct mrd_engine *e, uint64_t now_ns);
/* Objects that keep a context from closing. */
unsigned mrd_engine_objects(const struct mrd_engine *e);
/* A sentence about the last call that failed, for mrd_last_error(). */
const char *mrd_engine_error(const struct mrd_engine *e);

/* --------------------------------------------------------------------------- events and figures */

struct mrd_engine_event {
    enum mrd_event_type type;
    uint32_t peer_id;
    struct mrd_addr addr;
    void *object; /* the queue pair or shared receive queue that it is about; or NULL */
};
/* 0, or -EAGAIN. */
int mrd_engine_get_event(struct mrd_engine *e, struct mrd_engine_event *event);
/* Adds one of the mover's; if too many wait, it is counted and dropped. */
void mrd_engine_add_event(struct mrd_engine *e, const struct mrd_engine_event *event);
/* The user gets the event, and gives it back: an object is not destroyed in between. */
void mrd_engine_hand_event(const struct mrd_engine_event *event);
void mrd_engine_ack_event(enum mrd_event_type type, void *object);

int mrd_engine_query_counters(const struct mrd_engine *e, struct mrd_counter *counters, int max);
/*
 * `address` strings are left empty: the caller formats addr. port of a path: the mover's
 * path number.
 */
int mrd_engine_query_peer(struct mrd_engine *e, const struct mrd_addr *addr,
                          struct mrd_peer_attr *attr);
int mrd_engine_query_path(struct mrd_engine *e, const struct mrd_addr *addr, uint32_t index,
                          struct mrd_path_attr *attr);
const char *mrd_engine_spray_name(const struct mrd_engine *e);
const char *mrd_engine_cc_name(const struct mrd_engine *e);
enum mrd_check mrd_engine_check(const struct mrd_engine *e);

/*
 * For tests: every pool full again, every derived figure equal to what it is derived from; else
 * what is not.
 */
const char *mrd_engine_audit(struct mrd_engine *e);

/*
 * Nothing that was sent to the address was answered for a while: the mover is to choose another source
 * for it. false: none is wanted. To be asked after mrd_engine_expire(); where there is but one source
 * it need not be.
 */
bool mrd_engine_other_source(struct mrd_engine *e, struct mrd_addr *to);

/* The mover is to say what the route to a peer takes; false: no peer's is asked for. */
bool mrd_engine_wants_route(struct mrd_engine *e, uint32_t *peer_id, struct mrd_addr *to);
/* The answer, as for an address handle. payload_bytes 0: it is not known. */
void mrd_engine_give_route(struct mrd_engine *e, uint32_t peer_id, uint32_t payload_bytes,
                           bool one_way);

/* A DEAD path wants a fresh source port: peer and path to ask for; false: none does. */
bool mrd_engine_wants_path(struct mrd_engine *e, uint32_t *peer_id, uint32_t *index);
/*
 * The mover's answer: `path` is its new path number, or -1: the old one stays and is probed
 * each second.
 */
void mrd_engine_give_path(struct mrd_engine *e, uint32_t peer_id, uint32_t index, int path,
                          uint64_t now_ns);

#endif
