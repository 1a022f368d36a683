/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream: one connection, between its two descriptors here and the ones at the other end.
 *
 * stream_create(), and stream_join() of stream_join.h when both ends agree: from then on stream_in.h
 * sends what can be read as far as credit goes, and stream_out.h writes what came. It ends when both
 * directions are done, or by stream_reset(): then the descriptors are closed, ops->ended() is called,
 * and stream_destroy_ended() frees it.
 *
 * A reset takes nothing back that was sent before it, so one that an event forces ends later: see
 * stream_drain.h.
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
    /* The server accepted: time to stream_join(). Of a client only. */
    void (*opened)(struct stream *s);
    /* `error`: 0 after both directions were done, else an errno, and `why` is a sentence. */
    void (*ended)(struct stream *s, int error, const char *why);
};

/* A client's stream begins OPENING, a server's ASKED. */
enum stream_state {
    STREAM_OPENING, /* OPEN is sent, no answer yet */
    STREAM_ASKED,   /* OPEN came, we have not answered */
    STREAM_OPEN,
    STREAM_ENDED, /* out of the table, and freed by stream_destroy_ended() */
};

/* READING, FIN_SENT, DONE; or READING, DISCARDING. */
enum stream_in_state {
    STREAM_IN_READING,    /* what is read is sent */
    STREAM_IN_FIN_SENT,   /* the input has ended */
    STREAM_IN_DONE,       /* and DONE came: the other end has handed on everything */
    STREAM_IN_DISCARDING, /* RESET came: what is read is dropped */
};

/* From the descriptor here to the other end. */
struct stream_in {
    enum stream_in_state state;
    int fd; /* owned; stream_out's too if it is a socket; -1: not joined yet, or closed */
    struct event *readable; /* owned */
    struct flow_tx flow;
    uint64_t bytes;        /* read and sent */
    bool is_file;          /* always readable */
    bool ends_with_output; /* FIN is sent when the output is done */
    bool was_blocking;     /* the open file did block, and does again when it is closed here */
    uint32_t early_len;
    const uint8_t *early; /* the user's: bytes that were read before the stream was joined */
};

/*
 * WRITING, DONE. RESET turns the one into DRAINING, the other into FLUSHING, and DRAINING with a FIN
 * becomes FLUSHING in the end. A socket that fails turns either into DISCARDING.
 */
enum stream_out_state {
    STREAM_OUT_WRITING,    /* what comes is written */
    STREAM_OUT_DONE,       /* all is written, and DONE sent */
    STREAM_OUT_DRAINING,   /* RESET came: what was sent before it is written */
    STREAM_OUT_FLUSHING,   /* RESET came, and all is written: the kernel has some of it still */
    STREAM_OUT_DISCARDING, /* the socket takes no more: what comes is dropped */
};

/* From the other end to the descriptor here. */
struct stream_out {
    enum stream_out_state state;
    int fd;                 /* owned; -1: not joined yet, or closed */
    struct event *writable; /* owned */
    struct flow_rx flow;
    uint64_t bytes;            /* came and written */
    uint32_t written;          /* bytes of the oldest message that was not handed on */
    uint32_t came_until_sweep; /* flow.came at the last stream_out_shrink() */
    bool owes_credit;          /* the other end has sent ASK */
    bool was_blocking;         /* as stream_in's; if both are one open file, the last one counts */
};

/* ASK is sent once for each time that nothing moves. */
enum stream_credit_query { STREAM_CREDIT_NOT_ASKED, STREAM_CREDIT_ASKED, STREAM_CREDIT_ANSWERED };

/* Of a stream whose end is certain, and waits for bytes on their way: see stream_drain.h. */
struct stream_drain {
    int error;          /* errno that it ends with: of the RESET that came, or of the socket */
    bool ends_with_fin; /* RESET came after a FIN */
    bool peer_was_lost; /* since RESET came: nothing else comes any more */
    enum stream_credit_query query;
    uint64_t moved;    /* bytes of both directions that left this process, as they last grew */
    uint64_t moved_ns; /* and when */
};

/* How far OPEN, or OPENED at the server, has got. */
struct stream_request {
    uint64_t began_ns;
    uint64_t asked_ns; /* when the peer that it has now was first asked */
    unsigned tries;    /* of OPEN */
    bool has_arrived;  /* the peer knows the stream */
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
    char *target;           /* owned; what the server connects the stream to, printable there */
    struct stream_request request;
    struct stream_in in;
    struct stream_out out;
    struct stream_drain drain;
    int send_error;   /* errno of a frame that could not be sent */
    bool is_one_file; /* in.fd and out.fd are two descriptors of one open file */
    bool had_gone;    /* GONE came once, while only DONE was missing */
    struct schedule_entry entry;
};

static inline struct stream *stream_of(struct schedule_entry *e)
{
    return mrd_container_of(e, struct stream, entry);
}

/* RESET came, and the stream ends when what was sent before it is handed on. */
static inline bool stream_was_reset(const struct stream *s)
{
    return s->out.state == STREAM_OUT_DRAINING || s->out.state == STREAM_OUT_FLUSHING;
}

/* The input is over: FIN is sent. */
static inline bool stream_in_has_ended(const struct stream *s)
{
    return s->in.state == STREAM_IN_FIN_SENT || s->in.state == STREAM_IN_DONE;
}

/* All that came in order, up to FIN, is handed on. */
static inline bool stream_out_has_ended(const struct stream *s)
{
    return s->out.state == STREAM_OUT_DONE || s->out.state == STREAM_OUT_FLUSHING;
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
/* Ends it with an error, here and, with `tell`, at the other end. */
void stream_reset(struct stream *s, int error, const char *why, bool tell);
/* Ends it if both directions are done. */
void stream_end_if_done(struct stream *s);

/* For stream_*.c: the hub writes what came, or ends it for its send_error, in this turn of the loop. */
void stream_make_due(struct stream *s);
/* It is going to end with `error`, when bytes on their way have arrived. */
void stream_start_drain(struct stream *s, int error);
/* Closes in.fd, or out.fd, unless it is closed or the other one needs it: it is a socket. */
void stream_close_in(struct stream *s);
void stream_close_out(struct stream *s);

#endif
