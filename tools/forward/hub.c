/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/hub.h"

#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/forward/hub_loss.h"
#include "tools/forward/hub_sweep.h"
#include "tools/forward/say.h"
#include "tools/forward/stream_drain.h"
#include "tools/forward/stream_in.h"
#include "tools/forward/stream_join.h"
#include "tools/forward/stream_out.h"

#define SEC_NS UINT64_C(1000000000)

/* -------------------------------------------------------------------------------------- streams */

static void move_request(struct stream *s, struct link_peer *to)
{
    struct link_peer *from = s->peer;

    to->uses++;
    s->peer = to;
    s->request.tries = 0;
    s->request.asked_ns = clock_now_ns();
    link_peer_watch(to);
    stream_ask(s);
    link_peer_release(s->shared->link, from);
}

/* If the old peer opens one of them later, it is answered by RESET: on_unknown(). */
void hub_move(struct hub *hub, struct link_peer *from, struct link_peer *to)
{
    uint64_t now = clock_now_ns();
    struct stream *s;

    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        /* A request moves for one peer timeout: it ends if no address answers. */
        if (s->state == STREAM_OPENING && s->peer == from && !s->request.has_arrived &&
            now - s->request.began_ns < hub->options->link.peer_timeout_ns)
            move_request(s, to);
    }
}

struct stream *hub_dial(struct hub *hub, struct link_peer *peer, const char *target,
                        const struct stream_ops *ops, void *owner, char *why, size_t why_bytes)
{
    struct stream *s;

    if (strlen(target) > FRAME_TEXT_MAX) {
        snprintf(why, why_bytes, "a target has at most %d characters", FRAME_TEXT_MAX);
        return NULL;
    }
    s = stream_create(&hub->streams, peer, why, why_bytes);
    if (!s)
        return NULL;
    s->target = strdup(target);
    s->state = STREAM_OPENING;
    flow_tx_init(&s->in.flow, 0);
    if (!s->target) {
        stream_reset(s, ENOMEM, "no memory", false); /* it has no ops yet */
        snprintf(why, why_bytes, "no memory");
        return NULL;
    }
    s->ops = ops;
    s->owner = owner;
    stream_ask(s);
    schedule_sweep(&hub->streams.schedule);
    return s;
}

int hub_accept(struct stream *s, int in, int out)
{
    s->state = STREAM_OPEN;
    s->shared->totals.opened++;
    stream_send(
        s,
        &(struct frame){
            .type = FRAME_OPENED, .seq = s->own, .arg = s->id, .credit = s->out.flow.window},
        NULL, 0);
    return stream_join(s, in, out);
}

void hub_refuse(struct stream *s, int error, const char *why)
{
    s->shared->totals.refused++;
    stream_send(s, &(struct frame){.type = FRAME_REFUSED, .arg = (uint32_t)error}, why,
                (uint32_t)strnlen(why, FRAME_TEXT_MAX));
    stream_reset(s, error, why, false);
}

/* -------------------------------------------------------------------------------------- frames in */

static void refuse_unknown(struct hub *hub, const struct mrd_wc *wc, const struct frame *open,
                           int error, const char *why)
{
    struct frame frame = {.type = FRAME_REFUSED,
                          .session = open->seq,
                          .stream = open->arg,
                          .arg = (uint32_t)error,
                          .version = open->version};

    hub->streams.totals.refused++;
    hub_answer_refused(hub, wc, &frame, why);
}

/* Text of a peer, which is printed on terminals and in logs. */
static void make_printable(char *text)
{
    for (; text && *text; text++) {
        if (!isprint((unsigned char)*text))
            *text = '?';
    }
}

static void on_open(struct hub *hub, const struct mrd_wc *wc, const struct frame *frame,
                    const uint8_t *text, uint32_t len)
{
    char why[FRAME_TEXT_MAX], target[FRAME_TEXT_MAX + 1];
    struct link_peer *peer;
    struct stream *s;

    if (!hub->ops || !hub->ops->asked) {
        refuse_unknown(hub, wc, frame, EACCES, "this end does not serve");
        return;
    }
    peer = link_peer_of(hub->streams.link, wc, frame->seq);
    if (!peer) {
        int error = errno;

        if (error == ENOENT) /* the library has forgotten the sender already */
            return;
        say("a stream that is asked for: %s", strerror(error));
        refuse_unknown(hub, wc, frame, ENOBUFS, "no memory for a peer");
        return;
    }
    if (frame->version) {
        snprintf(why, sizeof(why), "version %u of mrd_forward's frames is asked for, and %u served",
                 frame->version, FRAME_VERSION);
        s = NULL;
    } else {
        s = stream_create(&hub->streams, peer, why, sizeof(why));
    }
    if (!s) {
        say("%s: refused: %s", peer->address, why);
        refuse_unknown(hub, wc, frame, frame->version ? EPROTONOSUPPORT : ENOBUFS, why);
        link_peer_release(hub->streams.link, peer);
        return;
    }
    link_peer_release(hub->streams.link, peer); /* the stream uses it */
    s->state = STREAM_ASKED;
    s->remote = frame->arg;
    s->session = frame->seq;
    flow_tx_init(&s->in.flow, frame->credit);
    memcpy(target, text, len);
    target[len] = '\0';
    s->target = strdup(target);
    make_printable(s->target);
    if (!s->target)
        hub_refuse(s, ENOMEM, "no memory");
    else
        hub->ops->asked(hub->arg, s, target);
}

static void tell_answered(struct hub *hub, const struct link_peer *peer)
{
    if (hub->ops && hub->ops->answered)
        hub->ops->answered(hub->arg, peer);
}

static void on_opened(struct hub *hub, const struct frame *frame, struct stream *s)
{
    s->state = STREAM_OPEN;
    s->remote = frame->arg;
    s->session = frame->seq;
    (void)flow_credited(&s->in.flow, 0, frame->credit);
    hub->streams.totals.opened++;
    tell_answered(hub, s->peer);
    s->ops->opened(s);
}

static void on_refused(struct hub *hub, const struct frame *frame, struct stream *s,
                       const uint8_t *text, uint32_t len)
{
    char why[FRAME_TEXT_MAX + 1];

    if (s->state != STREAM_OPENING)
        return;
    memcpy(why, text, len);
    why[len] = '\0';
    make_printable(why);
    s->shared->totals.refused++;
    tell_answered(hub, s->peer);
    stream_reset(s, frame->arg ? (int)frame->arg : ECONNREFUSED, why, false);
}

/*
 * Ends the streams of a session that the sender of `wc` does not know any more. One that waits for
 * DONE only ends at the second GONE: the peer has no stream after it sent DONE, which may come yet.
 */
static void on_gone(struct hub *hub, const struct mrd_wc *wc, const struct frame *gone)
{
    struct stream *s;

    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        if (s->state == STREAM_OPENING || s->session != gone->seq || stream_was_reset(s) ||
            (gone->stream && gone->stream != s->id) || !link_is_from(s->peer, wc))
            continue;
        if (stream_in_has_ended(s) && stream_out_has_ended(s) && !s->had_gone) {
            s->had_gone = true;
            continue;
        }
        hub->streams.totals.reset++;
        stream_reset(s, ECONNRESET, "the other end had given it up", false);
    }
}

/*
 * Did we draw this session for the sender, be it for a stream that began before link_renew()? Another
 * peer's session counts as unknown, so that the answer does not reveal that it exists.
 */
static bool is_session_of_sender(const struct hub *hub, const struct mrd_wc *wc, uint32_t own)
{
    const struct stream *s;

    if (link_knows(hub->streams.link, wc, own))
        return true;
    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        if (s->own == own && link_is_from(s->peer, wc))
            return true;
    }
    return false;
}

/*
 * A frame for a stream that is over, or of a session that we have given up. OPENED for a request that
 * we gave up is answered by RESET, so that the server does not keep its connection.
 */
static void on_unknown(struct hub *hub, const struct mrd_wc *wc, const struct frame *frame)
{
    bool asks = frame->type == FRAME_DATA || frame->type == FRAME_FIN || frame->type == FRAME_PING;
    bool opened = frame->type == FRAME_OPENED, is_known;
    uint64_t *at_ns = &hub->answer_ns[wc->peer_id % HUB_ANSWER_ROWS], now = clock_now_ns();
    struct frame reset = {
        .type = FRAME_RESET, .session = frame->seq, .stream = frame->arg, .arg = ECONNABORTED};

    if (!opened && (!asks || now < *at_ns))
        return;
    is_known = is_session_of_sender(hub, wc, frame->session);
    if (is_known && opened)
        link_answer(hub->streams.link, wc, &reset, "");
    if (is_known || now < *at_ns)
        return;
    /* The rate is limited, as anybody can ask. PING asks again. */
    *at_ns = now + HUB_ANSWER_PAUSE_NS;
    link_answer(hub->streams.link, wc, &(struct frame){.type = FRAME_GONE, .seq = frame->session},
                "");
}

/* A frame of a stream that both ends know. True: its bytes are kept. */
static bool on_stream_frame(struct hub *hub, struct stream *s, const struct frame *frame,
                            uint8_t *bytes, uint32_t len)
{
    switch (frame->type) {
    case FRAME_REFUSED:
        on_refused(hub, frame, s, bytes, len);
        break;
    case FRAME_DATA:
        return stream_out_on_data(s, frame, bytes, len);
    case FRAME_CREDIT:
        stream_in_on_credit(s, frame);
        break;
    case FRAME_RECALL:
        stream_in_on_recall(s, frame);
        break;
    case FRAME_YIELD:
        stream_out_on_yield(s, frame);
        break;
    case FRAME_FIN:
        stream_out_on_fin(s, frame);
        break;
    case FRAME_DONE:
        stream_in_on_done(s);
        break;
    case FRAME_ASK:
        stream_out_on_ask(s);
        break;
    default:
        hub->streams.totals.reset++;
        stream_drain_on_peer_reset(s, frame);
    }
    return false;
}

static bool on_frame(void *arg, const struct mrd_wc *wc, const struct frame *frame, uint8_t *bytes,
                     uint32_t len)
{
    struct hub *hub = arg;
    struct stream *s = stream_table_find(&hub->streams.table, frame->stream);
    bool opens = frame->type == FRAME_OPENED;

    if (s && (s->own != frame->session || !link_is_from(s->peer, wc)))
        s = NULL;
    if (frame->type == FRAME_OPEN)
        on_open(hub, wc, frame, bytes, len);
    else if (frame->type == FRAME_GONE)
        on_gone(hub, wc, frame);
    else if (s && opens && s->state == STREAM_OPENING)
        on_opened(hub, frame, s);
    else if (s && opens && s->session == frame->seq && s->remote == frame->arg)
        return false; /* OPENED is sent again if it seems lost */
    else if (!s || opens)
        on_unknown(hub, wc, frame);    /* given up meanwhile, or opened twice */
    else if (s->state != STREAM_ASKED) /* else the peer cannot know this stream yet */
        return on_stream_frame(hub, s, frame, bytes, len);
    return false;
}

/* --------------------------------------------------------------------------------------- settling */

/* Each stream at most once: what has more to send waits at the end of the list again. */
static void serve_waiting(struct hub *hub, struct link_peer *peer)
{
    struct mrd_node served, later;
    struct schedule_entry *e;

    mrd_list_init(&served);
    mrd_list_init(&later);
    mrd_list_splice(&served, &peer->waiting);
    while ((e = schedule_next_waiting(&hub->streams.schedule, peer, &served)))
        stream_in_read(stream_of(e));
    mrd_list_splice(&later, &peer->waiting);
    mrd_list_splice(&peer->waiting, &served);
    mrd_list_splice(&peer->waiting, &later);
}

static void serve_due(struct hub *hub)
{
    for (struct schedule_entry *e; (e = schedule_next_due(&hub->streams.schedule));) {
        struct stream *s = stream_of(e);

        if (s->send_error)
            stream_reset(s, s->send_error, strerror(s->send_error), true);
        else
            stream_out_write(s);
    }
}

/* Writes what came, sends what waited for a buffer, and frees what ended. */
static void on_settled(void *arg)
{
    struct hub *hub = arg;

    serve_due(hub);
    for (const struct link_peer *peer = link_peers(hub->streams.link); peer; peer = peer->next)
        serve_waiting(hub, (struct link_peer *)peer);
    stream_destroy_ended(&hub->streams);
    if (hub->num_owed)
        hub_answer_owed(hub);
}

/* --------------------------------------------------------------------------------------- opening */

int hub_open(struct hub *hub, struct event_base *base, const struct hub_options *options,
             const struct hub_ops *ops, void *arg)
{
    static const struct link_ops link_ops = {on_frame, hub_on_sent, hub_on_lost, on_settled};
    struct timeval ping_interval = {.tv_sec = (time_t)(options->link.peer_timeout_ns / SEC_NS)};

    *hub = (struct hub){.options = options, .ops = ops, .arg = arg};
    hub->streams.base = base;
    hub->streams.window_max = options->window;
    hub->ping = event_new(base, -1, EV_PERSIST, hub_on_ping, hub);
    if (schedule_init(&hub->streams.schedule, base, hub_on_sweep, hub) != 0 ||
        stream_table_init(&hub->streams.table, options->max_streams) != 0 || !hub->ping ||
        event_add(hub->ping, &ping_interval) != 0) {
        say("no memory");
        return -1;
    }
    hub->streams.link = link_open(&options->link, base, &link_ops, hub);
    hub->streams.schedule.link = hub->streams.link;
    return hub->streams.link ? 0 : -1;
}

void hub_close(struct hub *hub, int ms)
{
    struct stream *s;

    hub->ops = NULL; /* new requests are refused */
    if (hub->streams.link) {
        for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));)
            stream_reset(s, ECONNRESET, "mrd_forward ends", true);
        stream_destroy_ended(&hub->streams);
        link_close(hub->streams.link, ms);
    }
    schedule_fini(&hub->streams.schedule);
    if (hub->ping)
        event_free(hub->ping);
    stream_table_fini(&hub->streams.table);
}
