/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All streams of a process: which frame is for which of them, and what becomes of them together.
 *
 * hub_open(). The client: hub_dial() for each connection. The server: hub_ops.asked() for each request,
 * which calls hub_accept() or hub_refuse(), at once or later. hub_close().
 */
#ifndef FORWARD_HUB_H
#define FORWARD_HUB_H

#include "tools/forward/link.h"
#include "tools/forward/stream.h"

struct hub_options {
    struct link_options link;
    uint32_t max_streams; /* up to 65,535 */
    uint32_t window;      /* most messages of a stream; up to FLOW_WINDOW_MAX */
};

/* Each may be NULL. */
struct hub_ops {
    /*
     * The peer asks for a stream to `target`, as it wrote it; s->target is the same for sentences.
     * Sets s->ops, and may set s->owner. NULL: all are refused.
     */
    void (*asked)(void *arg, struct stream *s, const char *target);
    /* The peer does not answer, or a request for a stream has not arrived after a second. */
    void (*silent)(void *arg, const struct link_peer *peer);
    /* The peer has opened a stream, or refused one. */
    void (*answered)(void *arg, const struct link_peer *peer);
};

enum {
    HUB_ANSWER_ROWS = 256,           /* of peers, by their numbers modulo this */
    HUB_ANSWER_PAUSE_NS = 100000000, /* between two GONEs to the peers of a row */
    HUB_OWED_MAX = 256,
};

/* A request that is refused, for which there was no memory to say so. */
struct hub_owed {
    struct mrd_wc wc;
    struct frame frame;
};

struct hub {
    struct stream_shared streams;
    const struct hub_options *options;
    const struct hub_ops *ops;
    void *arg;
    struct event *ping;                  /* owned */
    uint32_t pings;                      /* rounds of PING so far */
    uint64_t answer_ns[HUB_ANSWER_ROWS]; /* when the peers of the row may get a GONE again */
    struct hub_owed owed[HUB_OWED_MAX];  /* the oldest first; when it is full, others get nothing */
    uint32_t num_owed;
};

/* `options` stays the caller's, and there. -1 after it said why. */
int hub_open(struct hub *hub, struct event_base *base, const struct hub_options *options,
             const struct hub_ops *ops, void *arg);
/* Resets all streams, and waits up to `ms` for what was sent to arrive. */
void hub_close(struct hub *hub, int ms);

/*
 * Asks the peer for a stream to `target`: ops->opened() or ops->ended() is called later. NULL after it
 * wrote why to why[]; nothing is called then.
 */
struct stream *hub_dial(struct hub *hub, struct link_peer *peer, const char *target,
                        const struct stream_ops *ops, void *owner, char *why, size_t why_bytes);
/* As stream_join(), after the peer is sent OPENED. */
int hub_accept(struct stream *s, int in, int out);
void hub_refuse(struct stream *s, int error, const char *why);
/*
 * Those that wait for an answer of one peer, which has not got their requests as far as is known, ask
 * the other one. The caller uses both peers.
 */
void hub_move(struct hub *hub, struct link_peer *from, struct link_peer *to);

#endif
