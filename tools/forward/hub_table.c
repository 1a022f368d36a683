/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of streams, and the lists of those that can go on. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/forward/hub.h"

enum {
    STREAMS_MAX = 1 << 16, /* the low half of their ids */
    WINDOW_FIRST = 4,
};

uint64_t hub_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

struct stream *hub_find(const struct hub *hub, uint32_t id)
{
    uint32_t index = id % STREAMS_MAX;
    struct stream *s = index < hub->options->max_streams ? hub->slot[index] : NULL;

    return s && s->id == id ? s : NULL;
}

uint32_t hub_first_window(const struct hub *hub)
{
    return hub->options->window < WINDOW_FIRST ? hub->options->window : WINDOW_FIRST;
}

/* Few messages where many streams share the buffers; 0: there are none. */
static uint32_t first_window(const struct hub *hub)
{
    uint32_t free = link_buffers_free(hub->link);
    uint32_t window = hub_first_window(hub);

    if (free < link_buffers(hub->link) / 8 * 7)
        window = 1;
    return free < window ? free : window;
}

struct stream *hub_add(struct hub *hub, struct link_peer *peer, char *why, size_t why_bytes)
{
    uint32_t window = first_window(hub), index;
    struct stream *s;

    if (hub->num_streams == hub->options->max_streams || !window) {
        snprintf(why, why_bytes, "there are %u streams, as many as %s allows", hub->num_streams,
                 window ? "--streams" : "--memory");
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        snprintf(why, why_bytes, "no memory");
        return NULL;
    }
    index = hub->unused[hub->unused_first];
    hub->unused_first = (hub->unused_first + 1) % hub->options->max_streams;
    hub->num_streams++;
    hub->slot[index] = s;
    s->hub = hub;
    s->id = (uint32_t)hub->generation[index] << 16 | index;
    s->peer = peer;
    s->own = peer->own;
    s->in = s->out = -1;
    s->since_ns = s->asked_ns = hub_now_ns();
    peer->uses++;
    link_grant(hub->link, window);
    hub_wait_for_idle(hub);
    flow_rx_init(&s->rx, window);
    link_peer_watch(peer);
    return s;
}

static void stop_waiting(struct stream *s)
{
    struct stream **at = &s->peer->waiting;

    while (*at != s)
        at = &(*at)->waiting_next;
    *at = s->waiting_next;
    if (!*at)
        s->peer->waiting_last = at;
    s->is_waiting = false;
}

static void be_clean(struct stream *s)
{
    struct stream **at = &s->hub->dirty;

    while (*at != s)
        at = &(*at)->dirty_next;
    *at = s->dirty_next;
    if (!*at)
        s->hub->dirty_last = at;
    s->is_dirty = false;
}

void hub_release(struct stream *s)
{
    struct hub *hub = s->hub;
    uint32_t index = s->id % STREAMS_MAX, max = hub->options->max_streams;

    if (s->is_waiting)
        stop_waiting(s);
    if (s->is_dirty)
        be_clean(s);
    hub->totals.bytes_in += s->bytes_in;
    hub->totals.bytes_out += s->bytes_out;
    hub->slot[index] = NULL;
    if (++hub->generation[index] == 0) /* no id is 0 */
        hub->generation[index] = 1;
    hub->unused[(hub->unused_first + max - hub->num_streams) % max] = index;
    hub->num_streams--;
    link_peer_release(hub->link, s->peer);
    free(s->target);
    free(s);
}

/* --------------------------------------------------------------------------------- what waits */

void hub_make_dirty(struct stream *s)
{
    struct hub *hub = s->hub;

    if (s->is_dirty)
        return;
    s->is_dirty = true;
    s->dirty_next = NULL;
    *hub->dirty_last = s;
    hub->dirty_last = &s->dirty_next;
    link_progress_soon(hub->link);
}

void hub_wait_for_buffer(struct stream *s)
{
    if (s->is_waiting)
        return;
    s->is_waiting = true;
    s->waiting_next = NULL;
    *s->peer->waiting_last = s;
    s->peer->waiting_last = &s->waiting_next;
    if (s->readable)
        (void)event_del(s->readable);
}

static void serve_waiting(struct hub *hub, const struct link_peer *peer)
{
    struct stream *last = NULL;

    /* Each at most once: who could not be served, or has more, waits at the end again. */
    for (struct stream *s = peer->waiting; s; s = s->waiting_next)
        last = s;
    while (peer->waiting) {
        struct stream *s = peer->waiting;
        uint8_t *buffer = link_tx(hub->link, peer);

        if (!buffer)
            return;
        link_tx_unused(hub->link, buffer);

        bool is_last = s == last;

        stop_waiting(s);
        stream_read(s);
        if (is_last)
            return;
    }
}

static void serve_dirty(struct hub *hub)
{
    while (hub->dirty) {
        struct stream *s = hub->dirty;

        be_clean(s);
        if (s->failed)
            stream_reset(s, s->failed, strerror(s->failed), true);
        else
            stream_write(s);
    }
}

void hub_settle(struct hub *hub)
{
    const struct link_peer *next;

    serve_dirty(hub);
    for (const struct link_peer *peer = link_peers(hub->link); peer; peer = next) {
        struct link_peer *used = (struct link_peer *)peer;

        used->uses++; /* its last stream may end */
        serve_waiting(hub, peer);
        next = peer->next;
        link_peer_release(hub->link, used);
    }
}
