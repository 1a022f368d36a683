/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/lane.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/adapters/nccl/log.h"

enum {
    BATCH = 32,
    CQE_MIN = 1024,
    EVENTS_EVERY = 1024,       /* steps */
    SLEEP_MAX_NS = 1000000000, /* of a thread that nothing wakes */
    AWAIT_NS = 100000000,
    FAREWELL_NS = 20000000,      /* so long a closing lane acknowledges */
    FAREWELL_IDLE_NS = 10000000, /* a timer so far away is not one of an acknowledgement */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ------------------------------------------------------------------------------- completions */

static int poll_completions(struct lane *lane)
{
    struct mrd_wc wc[BATCH];
    int n = mrd_poll_cq(lane->cq, BATCH, wc);

    for (int i = 0; i < n; i++) {
        struct lane_op *op = (struct lane_op *)(uintptr_t)wc[i].wr_id;

        op->done(op, &wc[i]);
    }
    return n > 0 ? n : 0;
}

void lane_drain(struct lane *lane)
{
    while (poll_completions(lane) > 0)
        ;
}

void lane_await(struct lane *lane, const unsigned *count)
{
    uint64_t begin = now_ns();

    while (*count && now_ns() - begin < AWAIT_NS)
        if (!poll_completions(lane) && mrd_progress(lane->context) <= 0)
            sched_yield();
}

bool lane_reserve(struct lane *lane, int completions)
{
    int used = lane->cqe_used + completions, cqe = lane->cq->cqe;

    if (used > cqe) {
        while (cqe < used)
            cqe *= 2;
        if (mrd_resize_cq(lane->cq, cqe))
            return false;
    }
    lane->cqe_used = used;
    return true;
}

/* ------------------------------------------------------------------------------------- peers */

static void learn_id(struct lane_peer *peer)
{
    struct mrd_peer_attr attr;

    if (!mrd_query_peer(peer->ah, &attr, sizeof(attr)))
        peer->id = attr.peer_id;
}

/* Not by its address: it may have moved, or two addresses are one peer's. */
static bool is_peer(struct lane_peer *peer, uint32_t id)
{
    if (peer->id != id)
        learn_id(peer);
    return peer->id == id;
}

const char *lane_join(struct lane *lane, struct lane_user *user, const char *address)
{
    struct mrd_ah *ah = mrd_create_ah(lane->pd, address);
    char canonical[MRD_ADDRESS_MAX];
    struct lane_peer *peer;

    if (!ah)
        return mrd_last_error();
    (void)mrd_query_ah(ah, canonical, sizeof(canonical));
    for (peer = lane->peers; peer; peer = peer->next)
        if (!peer->gone && !strcmp(peer->address, canonical))
            break;
    if (peer) {
        mrd_destroy_ah(ah);
    } else {
        const char *why = NULL;

        peer = calloc(1, sizeof(*peer));
        if (!peer)
            why = "no memory for a peer";
        else if (mrd_watch_peer(ah, 1))
            why = mrd_last_error();
        if (why) {
            free(peer);
            mrd_destroy_ah(ah);
            return why;
        }
        peer->lane = lane;
        peer->ah = ah;
        strcpy(peer->address, canonical);
        learn_id(peer);
        peer->next = lane->peers;
        lane->peers = peer;
    }
    user->peer = peer;
    user->next = peer->users;
    peer->users = user;
    return NULL;
}

void lane_leave(struct lane_user *user)
{
    struct lane_peer *peer = user->peer;

    if (!peer)
        return;
    for (struct lane_user **at = &peer->users; *at; at = &(*at)->next)
        if (*at == user) {
            *at = user->next;
            break;
        }
    user->peer = NULL;
    if (peer->users)
        return;
    struct lane_peer **at = &peer->lane->peers;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    if (!peer->gone) /* the event ended that watch */
        (void)mrd_watch_peer(peer->ah, 0);
    mrd_destroy_ah(peer->ah);
    free(peer);
}

static void peer_gone(struct lane *lane, const struct mrd_async_event *event)
{
    const char *why = event->event_type == MRD_EVENT_PEER_RESTARTED
                          ? "it closed, or was started anew"
                          : "it does not answer";

    for (struct lane_peer *p = lane->peers; p; p = p->next) {
        if (p->gone || !is_peer(p, event->peer_id))
            continue;
        p->gone = true;
        for (struct lane_user *u = p->users; u; u = u->next)
            u->gone(u, why);
    }
}

void lane_take_events(struct lane *lane)
{
    struct mrd_async_event event;

    while (!mrd_get_async_event(lane->context, &event)) {
        /* What came in good order before is not lost by the event. */
        lane_drain(lane);
        if (event.event_type == MRD_EVENT_PEER_UNREACHABLE ||
            event.event_type == MRD_EVENT_PEER_RESTARTED)
            peer_gone(lane, &event);
        else
            log_warn("%s: %s", mrd_event_type_str(event.event_type), event.address);
        mrd_ack_async_event(&event);
    }
}

void lane_add_last(struct lane *lane, struct lane_last *last)
{
    last->next = lane->lasts;
    lane->lasts = last;
}

void lane_remove_last(struct lane *lane, struct lane_last *last)
{
    struct lane_last **at = &lane->lasts;

    while (*at && *at != last)
        at = &(*at)->next;
    if (*at)
        *at = last->next;
}

/* ------------------------------------------------------------------------------------ thread */

static int run_work(struct lane *lane)
{
    struct lane_work *newest = NULL, *list = NULL;
    int n = 0;

    if (!atomic_load_explicit(&lane->todo, memory_order_relaxed))
        return 0;
    newest = atomic_exchange(&lane->todo, NULL);
    while (newest) {
        struct lane_work *next = newest->next;

        newest->next = list;
        list = newest;
        newest = next;
    }
    for (; list; n++) {
        struct lane_work *work = list;

        list = work->next;
        work->run(work);
    }
    return n;
}

static void sleep_until_needed(struct lane *lane)
{
    struct pollfd fds[] = {
        {lane->fd, POLLIN, 0}, {lane->wake_fd, POLLIN, 0}, {lane->context->async_fd, POLLIN, 0}};
    uint64_t wait_ns = mrd_next_timeout_ns(lane->context), ignored;

    if (!wait_ns)
        return;
    if (wait_ns > SLEEP_MAX_NS)
        wait_ns = SLEEP_MAX_NS;
    struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    atomic_store(&lane->asleep, 1);
    if (!atomic_load(&lane->todo) && !atomic_load(&lane->stop) && ppoll(fds, 3, &wait, NULL) > 0) {
        if (fds[1].revents && read(lane->wake_fd, &ignored, sizeof(ignored)) < 0)
            log_warn("eventfd: %s", strerror(errno));
        if (fds[2].revents)
            lane_take_events(lane);
    }
    atomic_store(&lane->asleep, 0);
}

static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    uint64_t idle_since = 0;

    for (unsigned step = 1; !atomic_load_explicit(&lane->stop, memory_order_relaxed); step++) {
        int n = run_work(lane);

        n += poll_completions(lane);
        if (!n)
            n = mrd_progress(lane->context) > 0;
        if (!(step % EVENTS_EVERY))
            lane_take_events(lane);
        if (n) {
            idle_since = 0;
            continue;
        }
        uint64_t now = now_ns();
        if (!idle_since)
            idle_since = now;
        if (now - idle_since < lane->spin_ns) {
            sched_yield();
        } else {
            sleep_until_needed(lane);
            idle_since = 0;
        }
    }
    return NULL;
}

void lane_push(struct lane *lane, struct lane_work *work)
{
    static const uint64_t one = 1;

    work->next = atomic_load_explicit(&lane->todo, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&lane->todo, &work->next, work))
        ;
    if (atomic_load(&lane->asleep) && atomic_exchange(&lane->asleep, 0) &&
        write(lane->wake_fd, &one, sizeof(one)) < 0)
        log_warn("eventfd: %s", strerror(errno));
}

struct lane_call {
    struct lane_work work;
    struct lane *lane;
    void (*function)(struct lane *lane, void *argument);
    void *argument;
    sem_t done;
};

static void run_call(struct lane_work *work)
{
    struct lane_call *call = (struct lane_call *)work;

    call->function(call->lane, call->argument);
    sem_post(&call->done);
}

void lane_call(struct lane *lane, void (*function)(struct lane *lane, void *argument),
               void *argument)
{
    struct lane_call call = {
        .work.run = run_call, .lane = lane, .function = function, .argument = argument};

    sem_init(&call.done, 0, 0);
    lane_push(lane, &call.work);
    while (sem_wait(&call.done))
        ;
    sem_destroy(&call.done);
}

/* ------------------------------------------------------------------------------ open and close */

static struct mrd_context *open_context(const struct settings_device *device,
                                        const struct settings *settings)
{
    struct mrd_context_attr attr = {
        .address = device->address[0] ? device->address : NULL,
        .peer_timeout_ns = settings->timeout_ns,
        .progress = MRD_PROGRESS_MANUAL,
        .threading = MRD_THREADING_SINGLE,
        .rx_drop_ppm = settings->rx_drop_ppm,
    };

    return mrd_open_device(NULL, &attr);
}

static void free_lane(struct lane *lane)
{
    if (lane->cq)
        mrd_destroy_cq(lane->cq);
    if (lane->pd)
        mrd_dealloc_pd(lane->pd);
    if (lane->context)
        mrd_close_device(lane->context);
    if (lane->wake_fd >= 0)
        close(lane->wake_fd);
    free(lane);
}

struct lane *lane_open(const struct settings_device *device, const struct settings *settings,
                       char *error, size_t len)
{
    struct lane *lane = aligned_alloc(_Alignof(struct lane), sizeof(*lane));

    if (!lane) {
        snprintf(error, len, "no memory");
        return NULL;
    }
    *lane = (struct lane){.spin_ns = settings->spin_ns, .wake_fd = -1};
    if (!(lane->context = open_context(device, settings)) ||
        !(lane->pd = mrd_alloc_pd(lane->context)) ||
        !(lane->cq = mrd_create_cq(lane->context, CQE_MIN, NULL)) ||
        mrd_query_address(lane->context, lane->address, sizeof(lane->address)) ||
        (lane->fd = mrd_context_fd(lane->context)) < 0) {
        snprintf(error, len, "%s: %s", device->name, mrd_last_error());
        free_lane(lane);
        return NULL;
    }
    lane->on_demand = strcmp(lane->context->device->transport, "ibv") ? MRD_ACCESS_ON_DEMAND : 0;
    lane->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int rc = lane->wake_fd < 0 ? errno : pthread_create(&lane->thread, NULL, run_lane, lane);
    if (rc) {
        snprintf(error, len, "a thread: %s", strerror(rc));
        free_lane(lane);
        return NULL;
    }
    pthread_setname_np(lane->thread, "mrd-nccl");
    return lane;
}

static void say_farewell(struct lane *lane)
{
    uint64_t begin = now_ns();

    while (now_ns() - begin < FAREWELL_NS &&
           (lane->lasts || mrd_next_timeout_ns(lane->context) < FAREWELL_IDLE_NS)) {
        int n = run_work(lane) + poll_completions(lane);

        if (!n && mrd_progress(lane->context) <= 0)
            sched_yield();
    }
    while (lane->lasts) {
        struct lane_last *last = lane->lasts;

        lane->lasts = last->next;
        last->finish(last);
    }
}

void lane_close(struct lane *lane)
{
    static const uint64_t one = 1;

    atomic_store(&lane->stop, 1);
    if (write(lane->wake_fd, &one, sizeof(one)) < 0)
        log_warn("eventfd: %s", strerror(errno));
    pthread_join(lane->thread, NULL);
    say_farewell(lane);
    free_lane(lane);
}
