/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream: one connection, between its two descriptors here and the ones at the other end.
 *
 * hub.h makes streams and hands them frames. stream_join() gives one its descriptors: from then on
 * what can be read is sent as far as credit goes, and what came is written. It ends when both
 * directions are over, or by a reset: then the descriptors are closed, ops->ended() is called, and
 * the stream is no more.
 *
 * A reset takes nothing back that was sent before it. Of a socket that takes no more, what it still
 * gives is sent before the other end is told: the stream is `broken`. Of a stream whose other end
 * broke off, what came, or is on its way, is written before the socket is reset: it is `cut`. What
 * goes the other way is discarded. Either ends when its reader takes nothing for the peer timeout. A
 * network that takes longer is waited for: a broken one ASKs, a cut one sees that nothing came.
 */
#ifndef FORWARD_STREAM_H
#define FORWARD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/forward/flow.h"
#include "tools/forward/frame.h"
#include "tools/forward/link.h"
#include "tools/forward/schedule.h"
#include "tools/forward/stream_table.h"

struct event;
struct event_base;
struct stream;

struct stream_totals {
    uint64_t opened, refused, reset;
    uint64_t bytes_in, bytes_out; /* of streams that ended */
};

/* What the streams of a hub share. The hub's. */
struct stream_shared {
    struct event_base *base;
    struct link *link;
    struct schedule schedule;
    struct stream_table table;
    struct stream_totals totals;
    uint32_t window_max; /* messages; up to FLOW_WINDOW_MAX */
};

struct stream_ops {
    /* The other end accepted: time to stream_join(). Of a client only. */
    void (*opened)(struct stream *s);
    /* `error`: 0 after both directions were over, else an errno, and `why` is a sentence. */
    void (*ended)(struct stream *s, int error, const char *why);
};

enum stream_state {
    STREAM_OPENING, /* OPEN is sent, no answer yet */
    STREAM_ASKED,   /* OPEN came, we have not answered */
    STREAM_OPEN,
    STREAM_ENDED, /* out of the table, and freed by stream_destroy_ended() */
};

struct stream {
    struct stream_shared *shared;
    const struct stream_ops *ops;
    void *owner;      /* the user's */
    uint32_t id;      /* by which the peer names it */
    uint32_t remote;  /* by which we name it to the peer; valid when OPEN or ASKED */
    uint32_t own;     /* our session that the peer names */
    uint32_t session; /* the peer's, likewise */
    enum stream_state state;
    struct link_peer *peer; /* used */
    char *target;           /* owned; what the server connects the stream to */
    uint64_t since_ns;
    uint64_t asked_ns; /* when the peer it has now was first asked */
    unsigned tries;    /* of OPEN */
    bool is_known;     /* OPEN or OPENED arrived */
    bool was_gone;     /* the peer said so once */
    int failed;        /* errno of a frame that could not be sent */
    int broken;        /* errno of the socket that takes no more; 0: it does */
    int cut;           /* errno of the RESET that came; 0: none. Never both */
    bool cut_at_fin;   /* the input that is cut has an end */
    bool has_asked;    /* a broken one: whether there is credit */
    bool is_answered;  /* CREDIT came since */
    bool owes_credit;  /* the other end has asked */
    bool is_left;      /* a cut one whose peer was lost since: nothing comes any more */
    uint64_t moved;    /* bytes of a broken or cut one, as they were last seen to grow */
    uint64_t moved_ns; /* and when */
    int in, out;       /* owned; the same for sockets; -1: none yet, or closed */
    struct event *readable, *writable;
    struct flow_tx tx;
    struct flow_rx rx;
    uint32_t came_before; /* rx.came at the last stream_shrink() */
    uint32_t written;     /* bytes of the oldest message that was not handed on */
    bool in_is_file;      /* always readable */
    bool in_follows_out;  /* the input ends when the output does */
    bool in_blocked;      /* the open file did block, and does again when it is closed here */
    bool out_blocked;     /* likewise; both: if they are one open file, the last one counts */
    bool is_one_file;     /* in and out are, by two descriptors */
    bool in_ended;        /* FIN is sent */
    bool in_over;         /* and DONE came */
    bool out_over;        /* all is handed on, and DONE sent */
    struct schedule_entry entry;
    const uint8_t *early; /* the user's: bytes that were read before the stream was joined */
    uint32_t early_len;
    uint64_t bytes_in, bytes_out; /* read and sent; came and written */
};

static inline struct stream *stream_of(struct schedule_entry *e)
{
    return mrd_container_of(e, struct stream, entry);
}

/* Most messages of the first window. */
uint32_t stream_window_first(const struct stream_shared *shared);
/* A new stream to the peer, which is used once more. NULL after it wrote why. */
struct stream *stream_create(struct stream_shared *shared, struct link_peer *peer, char *why,
                             size_t why_bytes);
/* Frees those that ended. Nobody walks streams or peers. */
void stream_destroy_ended(struct stream_shared *shared);
/* Sends a frame of an open stream. DATA: as link_send() takes it. */
void stream_send(struct stream *s, const struct frame *frame, const void *bytes, uint32_t len);
/* Sends its OPEN, perhaps once more. */
void stream_ask(struct stream *s);
/* `in` and `out` are the stream's now; non-blocking. 0, or -ENOMEM: it was reset. */
int stream_join(struct stream *s, int in, int out);
/* Reads and sends while there is credit, and buffers. */
void stream_read(struct stream *s);
/* Writes what came. */
void stream_write(struct stream *s);
/* Frames that came. True: keeps the buffer. */
bool stream_data(struct stream *s, const struct frame *frame, uint8_t *bytes, uint32_t len);
void stream_credit(struct stream *s, const struct frame *frame);
void stream_recall(struct stream *s, const struct frame *frame);
void stream_yield(struct stream *s, const struct frame *frame);
void stream_asked(struct stream *s);
void stream_fin(struct stream *s, uint32_t end);
void stream_done(struct stream *s);
/* RESET */
void stream_cut(struct stream *s, const struct frame *frame);
/* Ends it with an error, here and, with `tell`, at the other end. */
void stream_reset(struct stream *s, int error, const char *why, bool tell);
/*
 * Takes back the credit beyond `keep` messages if nothing came since the last call. False: it has no
 * more.
 */
bool stream_shrink(struct stream *s, uint32_t keep);
/* Does it wait for the other end, so that the loop would not tell that its socket has died? */
bool stream_is_deaf(const struct stream *s);
bool stream_has_died(const struct stream *s);
/* It has died. */
void stream_break(struct stream *s, int error, const char *why);
/* Of one that is broken or cut, from time to time: it ends if its reader took nothing for so long. */
void stream_hurry(struct stream *s, uint64_t now_ns, uint64_t patience_ns);

#endif
