/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/hub_loss.h"

#include <errno.h>

#include "tools/forward/clock.h"
#include "tools/forward/say.h"

enum { TRIES_MAX = 16 /* of an OPEN */ };

/* Of an OPEN that is not answered yet. */
static void open_ended(struct hub *hub, struct stream *s, enum mrd_wc_status status)
{
    if (status == MRD_WC_SUCCESS)
        return;
    /* A process that was restarted is found so; one that does not answer has had its time. */
    if (status == MRD_WC_RETRY_EXC_ERR && s->request.tries < TRIES_MAX &&
        forward_now_ns() - s->request.asked_ns < hub->options->link.peer_timeout_ns / 2) {
        s->request.has_arrived = false;
        stream_ask(s);
        return;
    }
    stream_reset(s, status == MRD_WC_RETRY_EXC_ERR ? EHOSTUNREACH : ECONNREFUSED,
                 status == MRD_WC_RETRY_EXC_ERR ? "it does not answer"
                                                : "what answers there is no mrd_forward",
                 false);
}

void hub_on_sent(void *arg, struct link_peer *peer, uint32_t stream, enum frame_type type,
                 enum mrd_wc_status status)
{
    struct hub *hub = arg;
    struct stream *s = stream_table_find(&hub->streams.table, stream);

    if (type == FRAME_OPENED && status == MRD_WC_SUCCESS)
        peer->is_known = true;
    if (!s || s->peer != peer)
        return;
    if (type == FRAME_OPEN || status == MRD_WC_SUCCESS)
        s->request.has_arrived = true; /* an OPEN that failed, and is answered, was not lost */
    if (type == FRAME_OPEN && s->state == STREAM_OPENING)
        open_ended(hub, s, status);
    if (type == FRAME_OPEN || status == MRD_WC_SUCCESS || stream_was_reset(s))
        return;
    hub->streams.totals.reset++;
    stream_reset(s, ECONNRESET, mrd_wc_status_str(status), true);
}

void hub_tell_silent(struct hub *hub, const struct link_peer *peer)
{
    if (hub->ops && hub->ops->silent)
        hub->ops->silent(hub->arg, peer);
}

/*
 * Is the stream over with what its peer has lost? Not one that began with what is new there, whose
 * first frames may come before the news: none of ours has reached its session yet. What its OPEN
 * or OPENED ends in decides. Nor one that was cut: the peer had forgotten it.
 */
static bool is_lost(const struct stream *s, bool is_silent)
{
    bool was_known = s->request.has_arrived || (s->peer->session && s->peer->is_known);

    if (s->state == STREAM_OPEN && stream_was_reset(s))
        return false;
    return was_known || (is_silent && s->state != STREAM_OPENING);
}

/* The peer may be there, and have the stream still, but not what was on its way. */
static void tell_gone(const struct stream *s)
{
    struct frame gone = {.type = FRAME_GONE, .stream = s->remote, .seq = s->own};

    if (s->state != STREAM_OPENING)
        (void)link_send(s->shared->link, s->peer, 0, &gone, NULL, 0);
}

void hub_on_lost(void *arg, uint32_t id, const char *address, bool is_silent)
{
    struct hub *hub = arg;
    const char *why = is_silent ? "does not answer" : "was restarted";
    struct stream *s;
    uint32_t num = 0;

    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        if (!is_lost(s, is_silent) || !link_peer_is(s->peer, id))
            continue;
        num++;
        if (!is_silent)
            tell_gone(s);
        stream_reset(s, ECONNRESET, why, false);
    }
    hub->streams.totals.reset += num;
    if (num)
        say("%s %s: %u streams reset", address, why, num);
    /* Those that ask a new process are watched, and its answers are of a new session. */
    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        if (!link_peer_is(s->peer, id))
            continue;
        s->drain.peer_was_lost = stream_was_reset(s);
        link_peer_watch(s->peer);
    }
    link_renew(hub->streams.link, id);
    for (const struct link_peer *peer = link_peers(hub->streams.link); is_silent && peer;
         peer = peer->next) {
        if (link_peer_is((struct link_peer *)peer, id))
            hub_tell_silent(hub, peer);
    }
}
