/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/hub_loss.h"

#include <errno.h>

#include "tools/common/clock.h"
#include "tools/forward/say.h"

enum { TRIES_MAX = 16 /* of an OPEN */ };

/* An OPEN that is not answered yet has arrived, or failed. */
static void on_open_sent(struct hub *hub, struct stream *s, enum mrd_wc_status status)
{
    if (status == MRD_WC_SUCCESS)
        return;
    /* A process that was restarted gets the next try. One that is silent got half the peer timeout. */
    if (status == MRD_WC_RETRY_EXC_ERR && s->request.tries < TRIES_MAX &&
        clock_now_ns() - s->request.asked_ns < hub->options->link.peer_timeout_ns / 2) {
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
        s->request.has_arrived = true; /* an OPEN that is answered arrived, whatever its status */
    if (type == FRAME_OPEN && s->state == STREAM_OPENING)
        on_open_sent(hub, s, status);
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
 * Has the peer, which was restarted or is silent, lost this stream? A stream of its new process has
 * not: frames of it may come before this event, and then nothing of ours has reached its session. The
 * completion of its OPEN or OPENED decides. One that was reset is not lost either: the peer had
 * forgotten it before.
 */
static bool is_lost_with_peer(const struct stream *s, bool is_silent)
{
    bool was_known = s->request.has_arrived || (s->peer->session && s->peer->is_known);

    if (s->state == STREAM_OPEN && stream_was_reset(s))
        return false;
    return was_known || (is_silent && s->state != STREAM_OPENING);
}

/* If the peer still has the stream, it is to give it up: what was on its way to it is lost. */
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
        if (!is_lost_with_peer(s, is_silent) || !link_peer_is(s->peer, id))
            continue;
        num++;
        if (!is_silent)
            tell_gone(s);
        stream_reset(s, ECONNRESET, why, false);
    }
    hub->streams.totals.reset += num;
    if (num)
        say("%s %s: %u streams reset", address, why, num);
    /* What is left talks to a new process: that one is watched, and gets a new session. */
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
