/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All streams of a process: their numbers, and which frame is for which of them.
 *
 * hub_open(). The near end: hub_dial() for each connection. The far end: hub_ops.asked() for each,
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
     * The peer asks for a stream to `s->target`. Sets s->ops, and may set s->owner. NULL: all are
     * refused.
     */
    void (*asked)(void *arg, struct stream *s);
    /* The peer does not answer, or takes its time: a request for a stream is not there after a second. */
    void (*silent)(void *arg, const struct link_peer *peer);
    /* It has opened a stream, or refused one. */
    void (*answered)(void *arg, const struct link_peer *peer);
};

struct hub_totals {
    uint64_t opened, refused, reset, bytes_in, bytes_out;
};

enum {
    HUB_ANSWER_ROWS = 256,           /* of peers, by their numbers modulo this */
    HUB_ANSWER_PAUSE_NS = 100000000, /* between answers to what is not known */
};

struct hub {
    struct event_base *base;
    struct link *link;
    const struct hub_options *options;
    const struct hub_ops *ops;
    void *arg;
    struct stream **slot; /* by the low 16 bits of their ids; owned */
    uint16_t *generation; /* the high 16 bits of the next one; owned */
    uint32_t *unused;     /* ring of free slots, the one free for longest first; owned */
    uint32_t unused_first, num_streams;
    struct stream *dirty, **dirty_last;
    struct event *sweep, *ping;
    uint32_t pings;                      /* rounds of them */
    uint64_t answer_ns[HUB_ANSWER_ROWS]; /* when those of the row may be answered again */
    struct hub_totals totals;            /* bytes: of streams that ended */
};

/* `options` stays the caller's, and there. -1 after it said why. */
int hub_open(struct hub *hub, struct event_base *base, const struct hub_options *options,
             const struct hub_ops *ops, void *arg);
/* Resets all streams, and waits up to `ms` for what was sent to arrive. */
void hub_close(struct hub *hub, int ms);

/*
 * Asks the peer for a stream to `target`. ops->opened() or ops->ended() tells. NULL after it wrote
 * why to why[]; nothing is called then.
 */
struct stream *hub_dial(struct hub *hub, struct link_peer *peer, const char *target,
                        const struct stream_ops *ops, void *owner, char *why, size_t why_bytes);
/* As stream_join(); the peer is told that there is a connection. */
int hub_accept(struct stream *s, int in, int out);
void hub_refuse(struct stream *s, int error, const char *why);
/*
 * Those that wait for an answer of one peer, which has not got their requests as far as is known, ask
 * the other one.
 */
void hub_move(struct hub *hub, struct link_peer *from, struct link_peer *to);

/* Of streams: */
void hub_send(struct stream *s, const struct frame *frame, const void *bytes, uint32_t len);
/* It has something to write. */
void hub_make_dirty(struct stream *s);
/* Calls stream_read() when there is a buffer for it again. */
void hub_wait_for_buffer(struct stream *s);
/* Looks from time to time whether its socket is alive. */
void hub_wait_for_peer(struct hub *hub);
/* Looks from time to time whose window lies idle, if there are few buffers. */
void hub_wait_for_idle(struct hub *hub);
void hub_release(struct stream *s);

/* Of hub.c, hub_loss.c and hub_table.c: */
uint64_t hub_now_ns(void); /* CLOCK_MONOTONIC */
/* NULL: there is no stream of that id any more. */
struct stream *hub_find(const struct hub *hub, uint32_t id);
/* Most messages of the first window. */
uint32_t hub_first_window(const struct hub *hub);
/* A new stream to the peer, which is used once more. NULL after it wrote why. */
struct stream *hub_add(struct hub *hub, struct link_peer *peer, char *why, size_t why_bytes);
/* Writes what came, and sends for those who waited for a buffer. */
void hub_settle(struct hub *hub);
/* Sends its OPEN, perhaps once more. */
void hub_ask(struct stream *s);
/* hub_ops.silent(). */
void hub_tell_silent(struct hub *hub, const struct link_peer *peer);
/* As in link_ops; `arg` is the hub. */
void hub_sent(void *arg, struct link_peer *peer, uint32_t stream, enum frame_type type,
              enum mrd_wc_status status);
void hub_lost(void *arg, uint32_t id, const char *address, bool is_silent);

#endif
