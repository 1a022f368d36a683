/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/link.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "tools/forward/pool.h"
#include "tools/forward/say.h"

enum {
    CONTROL_SENDS = 1024, /* frames without a buffer that may be outstanding; a power of two */
    ANSWERS_MAX = 1024,   /* to those of whom nothing is known, held for a peer */
    POLL_MAX = 64,
    ROUNDS_MAX = 16,   /* of POLL_MAX, before the loop looks at sockets again */
    SPIN_NS = 20000,   /* a deadline so near is not worth a sleep */
    QKEY = 0x6d726466, /* programs of another kind at that address get an error */
};

/* A frame without a buffer that is not sent yet. Its peer is used. */
struct held {
    struct held *next;
    uint64_t wr_id;
    uint32_t len;
    uint8_t bytes[FRAME_HEAD_BYTES + FRAME_TEXT_MAX];
};

struct link {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct pool rx, tx;
    uint32_t posted;   /* receives */
    uint32_t granted;  /* messages that senders have credit for, or that are kept */
    uint32_t signaled; /* sends that will complete */
    uint32_t controls; /* of these, without a buffer; others are held: DATA has places */
    uint32_t num_held;
    uint16_t place[CONTROL_SENDS];               /* stack of the free ones */
    struct link_peer *control_of[CONTROL_SENDS]; /* by place; used */
    struct link_peer *peers;                     /* list, owned */
    struct event *readable, *timer, *events;
    const struct link_ops *ops;
    void *arg;
};

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

/* ------------------------------------------------------------------------------------------ peers */

static void draw_session(struct link_peer *peer)
{
    do {
        if (getrandom(&peer->own, sizeof(peer->own), 0) != sizeof(peer->own))
            peer->own++; /* cannot be, by getrandom(2) */
    } while (peer->own == 0);
}

static struct link_peer *peer_add(struct link *link, struct mrd_ah *ah, uint32_t qpn,
                                  uint32_t session)
{
    struct link_peer *peer = ah ? calloc(1, sizeof(*peer)) : NULL;

    if (!peer) {
        int error = errno;

        if (ah)
            (void)mrd_destroy_ah(ah);
        errno = error;
        return NULL;
    }
    *peer = (struct link_peer){
        .ah = ah, .qpn = qpn, .session = session, .uses = 1, .next = link->peers};
    peer->waiting_last = &peer->waiting;
    peer->held_last = &peer->held;
    draw_session(peer);
    (void)mrd_query_ah(ah, peer->address, sizeof(peer->address));
    link->peers = peer;
    return peer;
}

struct link_peer *link_peer_open(struct link *link, const char *address)
{
    return peer_add(link, mrd_create_ah(link->pd, address), MRD_FIRST_QP_NUM, 0);
}

struct link_peer *link_peer_of(struct link *link, const struct mrd_wc *wc, uint32_t session)
{
    struct mrd_ah *ah = mrd_create_ah_from_wc(link->pd, wc);
    char address[MRD_ADDRESS_MAX] = "";

    if (!ah)
        return NULL;
    (void)mrd_query_ah(ah, address, sizeof(address));
    for (struct link_peer *peer = link->peers; peer; peer = peer->next) {
        if (peer->session == session && peer->qpn == wc->src_qp &&
            strcmp(peer->address, address) == 0) {
            (void)mrd_destroy_ah(ah);
            peer->uses++;
            return peer;
        }
    }
    return peer_add(link, ah, wc->src_qp, session);
}

void link_renew(struct link *link, const char *address)
{
    for (struct link_peer *peer = link->peers; peer; peer = peer->next) {
        if (strcmp(peer->address, address) == 0)
            draw_session(peer);
    }
}

bool link_knows(const struct link *link, uint32_t own)
{
    for (const struct link_peer *peer = link->peers; peer; peer = peer->next) {
        if (peer->own == own)
            return true;
    }
    return false;
}

void link_peer_watch(struct link_peer *peer)
{
    if (!peer->watched)
        peer->watched = mrd_watch_peer(peer->ah, 1) == 0;
}

/* Is there another one at this address that is watched? */
static bool is_watched_twice(const struct link *link, const struct link_peer *peer)
{
    for (const struct link_peer *p = link->peers; p; p = p->next) {
        if (p != peer && p->watched && strcmp(p->address, peer->address) == 0)
            return true;
    }
    return false;
}

void link_peer_release(struct link *link, struct link_peer *peer)
{
    struct link_peer **at = &link->peers;

    assert(peer->uses > 0);
    if (--peer->uses > 0)
        return;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    if (peer->watched && !is_watched_twice(link, peer))
        (void)mrd_watch_peer(peer->ah, 0);
    (void)mrd_destroy_ah(peer->ah);
    free(peer);
}

/* ------------------------------------------------------------------------------------------ sends */

uint8_t *link_tx(struct link *link, const struct link_peer *peer)
{
    uint8_t *bytes = peer->sending < link->tx.num_free ? pool_take(&link->tx) : NULL;

    return bytes ? bytes + FRAME_HEAD_BYTES : NULL;
}

void link_tx_unused(struct link *link, uint8_t *buffer)
{
    pool_return(&link->tx, buffer - FRAME_HEAD_BYTES);
}

void link_progress_soon(struct link *link)
{
    event_active(link->readable, EV_READ, 0);
}

static int send_data(struct link *link, struct link_peer *peer, uint32_t stream,
                     const struct frame *frame, uint8_t *bytes, uint32_t len)
{
    struct mrd_sge sge = {(uintptr_t)bytes, FRAME_HEAD_BYTES + len, link->tx.mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = (uintptr_t)bytes,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_SIGNALED,
        .ud = {.ah = peer->ah, .remote_qpn = peer->qpn, .remote_qkey = QKEY},
    };
    struct mrd_send_wr *bad;
    int rc;

    frame_put(bytes, frame);
    rc = mrd_post_send(link->qp, &wr, &bad);
    if (rc != 0) {
        pool_return(&link->tx, bytes);
        return rc;
    }
    *pool_note(&link->tx, bytes) = (struct pool_note){peer, stream};
    peer->uses++;
    peer->sending++;
    link->signaled++;
    link_progress_soon(link);
    return 0;
}

/* Frames without a buffer have odd numbers. The place is above the stream. */
static uint64_t control_id(uint32_t stream, enum frame_type type)
{
    return (uint64_t)stream << 8 | (uint64_t)type << 1 | 1;
}

/* As with link_tx(): one that takes nothing leaves places for the others. */
static bool has_place(const struct link *link, const struct link_peer *peer)
{
    return peer->controls < CONTROL_SENDS - link->controls;
}

static int post_control(struct link *link, struct link_peer *peer, uint64_t wr_id,
                        const uint8_t *bytes, uint32_t len)
{
    uint16_t place;

    if (!has_place(link, peer))
        return -ENOMEM;
    place = link->place[link->controls];
    struct mrd_sge sge = {(uintptr_t)bytes, len, 0};
    struct mrd_send_wr wr = {
        .wr_id = wr_id | (uint64_t)place << 40,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_INLINE | MRD_SEND_SIGNALED,
        .ud = {.ah = peer->ah, .remote_qpn = peer->qpn, .remote_qkey = QKEY},
    };
    struct mrd_send_wr *bad;
    int rc = mrd_post_send(link->qp, &wr, &bad);

    if (rc == 0) {
        link->control_of[place] = peer;
        link->signaled++;
        link->controls++;
        peer->controls++;
        peer->uses++;
        link_progress_soon(link);
    }
    return rc;
}

/* Later, in order, when there is a place. */
static int hold(struct link *link, struct link_peer *peer, uint64_t wr_id, const uint8_t *bytes,
                uint32_t len)
{
    struct held *h = malloc(sizeof(*h));

    if (!h)
        return -ENOMEM;
    *h = (struct held){.wr_id = wr_id, .len = len};
    memcpy(h->bytes, bytes, len);
    peer->uses++;
    peer->num_held++;
    link->num_held++;
    *peer->held_last = h;
    peer->held_last = &h->next;
    return 0;
}

/* The oldest one of the peer's; the peer may be gone then. */
static void let_go(struct link *link, struct link_peer *peer)
{
    struct held *h = peer->held;

    peer->held = h->next;
    if (!peer->held)
        peer->held_last = &peer->held;
    peer->num_held--;
    link->num_held--;
    free(h);
    link_peer_release(link, peer);
}

static void send_held(struct link *link)
{
    struct link_peer *next;

    for (struct link_peer *peer = link->num_held ? link->peers : NULL; peer; peer = next) {
        peer->uses++;
        while (peer->held) {
            const struct held *h = peer->held;
            int rc = post_control(link, peer, h->wr_id, h->bytes, h->len);

            if (rc == -ENOMEM)
                break;
            if (rc != 0)
                say("%s: %s", peer->address, mrd_last_error());
            let_go(link, peer);
        }
        next = peer->next;
        link_peer_release(link, peer);
    }
}

int link_send(struct link *link, struct link_peer *peer, uint32_t stream, const struct frame *frame,
              const void *bytes, uint32_t len)
{
    uint8_t message[FRAME_HEAD_BYTES + FRAME_TEXT_MAX];
    uint64_t wr_id = control_id(stream, frame->type);

    if (frame->type == FRAME_DATA)
        return send_data(link, peer, stream, frame, (uint8_t *)bytes - FRAME_HEAD_BYTES, len);
    assert(len <= FRAME_TEXT_MAX);
    frame_put(message, frame);
    if (len)
        memcpy(message + FRAME_HEAD_BYTES, bytes, len);
    len += FRAME_HEAD_BYTES;

    int rc = peer->held ? -ENOMEM : post_control(link, peer, wr_id, message, len);

    return rc == -ENOMEM ? hold(link, peer, wr_id, message, len) : rc;
}

void link_answer(struct link *link, const struct mrd_wc *wc, const struct frame *frame,
                 const char *text)
{
    struct link_peer *peer = link_peer_of(link, wc, 0);

    if (!peer)
        return;
    if (peer->num_held < ANSWERS_MAX)
        (void)link_send(link, peer, 0, frame, text, (uint32_t)strlen(text));
    link_peer_release(link, peer);
}

/* ------------------------------------------------------------------------------------ completions */

static void received(struct link *link, const struct mrd_wc *wc)
{
    uint8_t *message = (uint8_t *)(uintptr_t)wc->wr_id;
    struct frame frame;

    if (wc->status == MRD_WC_SUCCESS && frame_get(message, wc->byte_len, &frame) &&
        link->ops->came(link->arg, wc, &frame, message + FRAME_HEAD_BYTES,
                        wc->byte_len - FRAME_HEAD_BYTES))
        return;
    pool_return(&link->rx, message);
}

static void sent(struct link *link, const struct mrd_wc *wc)
{
    uint8_t *message = (uint8_t *)(uintptr_t)wc->wr_id;
    struct pool_note note;

    if (wc->wr_id & 1) {
        enum frame_type type = (enum frame_type)(wc->wr_id >> 1 & 0x7f);

        uint16_t place = (uint16_t)(wc->wr_id >> 40);
        struct link_peer *peer = link->control_of[place];

        link->signaled--;
        link->place[--link->controls] = place;
        peer->controls--;
        if (type == FRAME_OPEN || wc->status != MRD_WC_SUCCESS)
            link->ops->sent(link->arg, (uint32_t)(wc->wr_id >> 8), type, wc->status);
        link_peer_release(link, peer);
        return;
    }
    note = *pool_note(&link->tx, message);
    note.peer->sending--;
    link->signaled--;
    pool_return(&link->tx, message);
    if (wc->status != MRD_WC_SUCCESS)
        link->ops->sent(link->arg, note.stream, FRAME_DATA, wc->status);
    link_peer_release(link, note.peer);
}

static void take_event(struct link *link, const struct mrd_async_event *event)
{
    const char *why = mrd_event_type_str(event->event_type);

    switch (event->event_type) {
    case MRD_EVENT_PEER_UNREACHABLE:
        why = "does not answer";
        break;
    case MRD_EVENT_PEER_RESTARTED:
        why = "was restarted";
        break;
    default:
        say("%s: %s", event->address, why);
        return;
    }
    for (struct link_peer *peer = link->peers; peer; peer = peer->next) {
        if (strcmp(peer->address, event->address) == 0)
            peer->watched = false;
    }
    link->ops->lost(link->arg, event->address, why);
}

static void take_events(struct link *link)
{
    struct mrd_async_event event;

    while (mrd_get_async_event(link->context, &event) == 0) {
        take_event(link, &event);
        mrd_ack_async_event(&event);
    }
}

/* Events first: what a peer's new process sent is not taken for the old one's. Returns how many. */
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
            received(link, &wc[i]);
        else
            sent(link, &wc[i]);
    }
    post_receives(link);
    send_held(link);
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

/* 0, or -1 after a call failed; mrd_last_error() or errno say why. */
static int make_objects(struct link *link, const struct link_options *o)
{
    uint64_t buffers = o->memory_bytes / POOL_STRIDE;
    uint32_t num_tx = (uint32_t)(buffers / 4), num_rx = (uint32_t)(buffers - num_tx);
    struct mrd_qp_init_attr qp = {.qkey = QKEY};

    link->pd = mrd_alloc_pd(link->context);
    if (!link->pd || pool_init(&link->rx, link->pd, num_rx, MRD_ACCESS_LOCAL_WRITE) != 0 ||
        pool_init(&link->tx, link->pd, num_tx, 0) != 0)
        return -1;
    qp.cap = (struct mrd_qp_cap){.max_send_wr = num_tx + CONTROL_SENDS,
                                 .max_recv_wr = LINK_RECEIVES,
                                 .max_inline_data = FRAME_HEAD_BYTES + FRAME_TEXT_MAX};
    link->cq = mrd_create_cq(link->context, (int)(qp.cap.max_send_wr + qp.cap.max_recv_wr), NULL);
    if (!link->cq)
        return -1;
    qp.send_cq = qp.recv_cq = link->cq;
    link->qp = mrd_create_qp(link->pd, &qp);
    return link->qp ? 0 : -1;
}

static int watch_descriptors(struct link *link, struct event_base *base)
{
    int fd = mrd_context_fd(link->context);

    link->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_progress, link);
    link->events = event_new(base, link->context->async_fd, EV_READ | EV_PERSIST, on_event, link);
    link->timer = evtimer_new(base, on_progress, link);
    if (fd < 0 || !link->readable || !link->events || !link->timer)
        return -1;
    return event_add(link->readable, NULL) || event_add(link->events, NULL) ? -1 : 0;
}

struct link *link_open(const struct link_options *o, struct event_base *base,
                       const struct link_ops *ops, void *arg)
{
    struct link *link = calloc(1, sizeof(*link));
    struct mrd_context_attr attr = {.address = o->address,
                                    .port = o->port,
                                    .paths = o->paths,
                                    .peer_timeout_ns = o->peer_timeout_ns,
                                    .progress = MRD_PROGRESS_MANUAL,
                                    .threading = MRD_THREADING_SINGLE};

    if (!link) {
        say("no memory");
        return NULL;
    }
    link->ops = ops;
    link->arg = arg;
    for (unsigned i = 0; i < CONTROL_SENDS; i++)
        link->place[i] = (uint16_t)i;
    link->context = mrd_open_device(NULL, &attr);
    if (!link->context || make_objects(link, o) != 0 || watch_descriptors(link, base) != 0) {
        say("%s", mrd_last_error());
        link_close(link, 0);
        return NULL;
    }
    post_receives(link);
    sleep_until_due(link);
    return link;
}

/* Without the loop: what streams are told no longer matters. */
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
    if (link->readable)
        event_free(link->readable);
    if (link->events)
        event_free(link->events);
    if (link->timer)
        event_free(link->timer);
    if (link->qp)
        (void)mrd_destroy_qp(link->qp);
    while (link->peers) { /* what they are sent never completes now */
        struct link_peer *peer = link->peers;

        peer->uses = peer->num_held + 1;
        while (peer->held)
            let_go(link, peer);
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
    free(link);
}
