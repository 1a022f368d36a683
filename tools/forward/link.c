/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/link.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/forward/link_state.h"
#include "tools/forward/say.h"

struct mrd_context *link_context(struct link *link)
{
    return link->context;
}

const struct link_peer *link_peers(const struct link *link)
{
    return link->peers;
}

/* ------------------------------------------------------------------------------- receive buffers */

/* For an outstanding credit there is always a buffer in the pool, or one that is posted. */
static void post_receives(struct link *link)
{
    while (link->posted < LINK_RECEIVES) {
        uint8_t *bytes = pool_take(&link->rx);
        struct mrd_sge sge = {(uintptr_t)bytes, POOL_MESSAGE_BYTES, link->rx.mr->lkey};
        struct mrd_recv_wr wr = {.wr_id = (uintptr_t)bytes, .sg_list = &sge, .num_sge = 1}, *bad;

        if (!bytes)
            return;
        if (mrd_post_recv(link->qp, &wr, &bad) != 0) {
            pool_return(&link->rx, bytes);
            return;
        }
        link->posted++;
    }
}

uint32_t link_buffers(const struct link *link)
{
    return link->rx.num - LINK_RECEIVES;
}

uint32_t link_buffers_free(const struct link *link)
{
    return link_buffers(link) - link->granted;
}

void link_grant(struct link *link, uint32_t buffers)
{
    assert(buffers <= link_buffers_free(link));
    link->granted += buffers;
}

void link_take_back(struct link *link, uint32_t buffers)
{
    assert(buffers <= link->granted);
    link->granted -= buffers;
}

void link_return(struct link *link, uint8_t *bytes)
{
    pool_return(&link->rx, pool_of(&link->rx, bytes));
    if (link->posted < LINK_RECEIVES)
        post_receives(link);
}

/* ------------------------------------------------------------------------------------ completions */

static void on_receive_completed(struct link *link, const struct mrd_wc *wc)
{
    uint8_t *message = (uint8_t *)(uintptr_t)wc->wr_id;
    struct frame frame;

    if (wc->status == MRD_WC_SUCCESS && frame_get(message, wc->byte_len, &frame) &&
        link->ops->received(link->arg, wc, &frame, message + FRAME_HEAD_BYTES,
                            wc->byte_len - FRAME_HEAD_BYTES))
        return;
    pool_return(&link->rx, message);
}

static void on_send_completed(struct link *link, const struct mrd_wc *wc)
{
    uint8_t *message = (uint8_t *)(uintptr_t)wc->wr_id;
    struct pool_note note;

    if (wc->wr_id & 1) {
        enum frame_type type = (enum frame_type)(wc->wr_id >> 1 & 0x7f);

        uint16_t place = (uint16_t)(wc->wr_id >> 40);
        struct link_peer *peer = link->control_of[place];

        peer->id = wc->peer_id ? wc->peer_id : peer->id;

        link->signaled--;
        link->place[--link->controls] = place;
        peer->controls--;
        if (!link_repeat(link, peer, place, wc->status) &&
            (type == FRAME_OPEN || type == FRAME_OPENED || wc->status != MRD_WC_SUCCESS))
            link->ops->sent(link->arg, peer, (uint32_t)(wc->wr_id >> 8), type, wc->status);
        link_peer_release(link, peer);
        return;
    }
    note = *pool_note(&link->tx, message);
    note.peer->sending--;
    link->signaled--;
    pool_return(&link->tx, message);
    if (wc->status != MRD_WC_SUCCESS)
        link->ops->sent(link->arg, note.peer, note.stream, FRAME_DATA, wc->status);
    link_peer_release(link, note.peer);
}

static void on_async_event(struct link *link, const struct mrd_async_event *event)
{
    bool is_silent = event->event_type == MRD_EVENT_PEER_UNREACHABLE;

    if (!is_silent && event->event_type != MRD_EVENT_PEER_RESTARTED) {
        say("%s: %s", event->address, mrd_event_type_str(event->event_type));
        return;
    }
    for (struct link_peer *peer = link->peers; peer; peer = peer->next) {
        if (!link_peer_is(peer, event->peer_id))
            continue;
        peer->watched = false;
        if (is_silent)
            link_stop_repeats(link, peer);
    }
    link->ops->lost(link->arg, event->peer_id, event->address, is_silent);
}

static void take_events(struct link *link)
{
    struct mrd_async_event event;

    while (mrd_get_async_event(link->context, &event) == 0) {
        on_async_event(link, &event);
        mrd_ack_async_event(&event);
    }
}

/*
 * Events first, so that what a peer's new process sent is not taken for the old one's. Returns the
 * number of completions.
 */
static int take_completions(struct link *link)
{
    struct mrd_wc wc[POLL_MAX];
    int num = mrd_poll_cq(link->cq, POLL_MAX, wc);

    take_events(link);
    for (int i = 0; i < num; i++)
        link->posted -= wc[i].opcode >= MRD_WC_RECV;
    post_receives(link);
    for (int i = 0; i < num; i++) {
        if (wc[i].opcode >= MRD_WC_RECV)
            on_receive_completed(link, &wc[i]);
        else
            on_send_completed(link, &wc[i]);
    }
    post_receives(link);
    link_send_held(link);
    return num;
}

static void sleep_until_due(struct link *link)
{
    uint64_t ns = mrd_next_timeout_ns(link->context);
    struct timeval tv = {.tv_sec = (time_t)(ns / 1000000000),
                         .tv_usec = (suseconds_t)(ns % 1000000000 / 1000)};

    if (ns == UINT64_MAX)
        evtimer_del(link->timer);
    else if (ns < SPIN_NS)
        link_progress_soon(link);
    else
        evtimer_add(link->timer, &tv);
}

static void on_progress(evutil_socket_t fd, short what, void *arg)
{
    struct link *link = arg;
    int rounds = 0;
    (void)fd, (void)what;

    while (take_completions(link) > 0 && ++rounds < ROUNDS_MAX)
        ;
    link->ops->settled(link->arg);
    if (rounds == ROUNDS_MAX)
        link_progress_soon(link);
    else
        sleep_until_due(link);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    take_events(arg);
}

/* ----------------------------------------------------------------------------------------- opening */

/* NULL, or why not. */
static const char *make_objects(struct link *link, const struct link_options *o)
{
    uint64_t buffers = o->memory_bytes / POOL_STRIDE;
    uint32_t num_tx = (uint32_t)(buffers / 4), num_rx = (uint32_t)(buffers - num_tx);
    struct mrd_qp_init_attr qp = {.qkey = QKEY};

    link->pd = mrd_alloc_pd(link->context);
    if (!link->pd)
        return mrd_last_error();
    if (pool_init(&link->rx, link->pd, num_rx, MRD_ACCESS_LOCAL_WRITE) != 0 ||
        pool_init(&link->tx, link->pd, num_tx, 0) != 0)
        return "no memory for messages (--memory)";
    qp.cap = (struct mrd_qp_cap){.max_send_wr = num_tx + CONTROL_SENDS,
                                 .max_recv_wr = LINK_RECEIVES,
                                 .max_inline_data = FRAME_HEAD_BYTES + FRAME_TEXT_MAX};
    link->cq = mrd_create_cq(link->context, (int)(qp.cap.max_send_wr + qp.cap.max_recv_wr), NULL);
    if (!link->cq)
        return mrd_last_error();
    qp.send_cq = qp.recv_cq = link->cq;
    link->qp = mrd_create_qp(link->pd, &qp);
    return link->qp ? NULL : mrd_last_error();
}

/* NULL, or why not. */
static const char *watch_descriptors(struct link *link, struct event_base *base)
{
    int fd = mrd_context_fd(link->context);

    link->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_progress, link);
    link->events = event_new(base, link->context->async_fd, EV_READ | EV_PERSIST, on_event, link);
    link->timer = evtimer_new(base, on_progress, link);
    if (fd < 0)
        return mrd_last_error();
    if (!link->readable || !link->events || !link->timer || event_add(link->readable, NULL) ||
        event_add(link->events, NULL))
        return "no memory for events";
    return NULL;
}

struct link *link_open(const struct link_options *o, struct event_base *base,
                       const struct link_ops *ops, void *arg)
{
    struct link *link = calloc(1, sizeof(*link));
    struct mrd_context_attr attr = {.address = o->address,
                                    .port = o->port,
                                    .paths = o->paths,
                                    .key_file = o->key_file,
                                    .peer_timeout_ns = o->peer_timeout_ns,
                                    .progress = MRD_PROGRESS_MANUAL,
                                    .threading = MRD_THREADING_SINGLE};
    const char *why;

    if (!link) {
        say("no memory");
        return NULL;
    }
    link->ops = ops;
    link->arg = arg;
    link->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (unsigned i = 0; i < CONTROL_SENDS; i++)
        link->place[i] = (uint16_t)i;
    link->context = mrd_open_device(NULL, &attr);
    why = link->context ? make_objects(link, o) : mrd_last_error();
    if (!why)
        why = watch_descriptors(link, base);
    if (why) {
        say("%s", why);
        link_close(link, 0);
        return NULL;
    }
    post_receives(link);
    sleep_until_due(link);
    return link;
}

/* Without the event loop: there are no streams any more. */
static void wait_for_sends(struct link *link, int ms)
{
    struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < ms && (link->signaled || link->num_held); i++) {
        while (take_completions(link) > 0)
            ;
        nanosleep(&pause, NULL);
    }
}

void link_close(struct link *link, int ms)
{
    if (link->qp)
        wait_for_sends(link, ms);
    for (int i = 0; i < CONTROL_SENDS; i++)
        free(link->kept[i]);
    if (link->readable)
        event_free(link->readable);
    if (link->events)
        event_free(link->events);
    if (link->timer)
        event_free(link->timer);
    if (link->qp)
        (void)mrd_destroy_qp(link->qp);
    while (link->peers) { /* no send completes any more, so that nothing else releases them */
        struct link_peer *peer = link->peers;

        peer->uses = peer->num_held + 1;
        while (!mrd_list_empty(&peer->held))
            link_drop_held(link, peer);
        link_peer_release(link, peer);
    }
    if (link->cq)
        (void)mrd_destroy_cq(link->cq);
    pool_fini(&link->rx);
    pool_fini(&link->tx);
    if (link->pd)
        (void)mrd_dealloc_pd(link->pd);
    if (link->context)
        (void)mrd_close_device(link->context);
    if (link->spare_fd >= 0)
        close(link->spare_fd);
    free(link);
}
