/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/progress.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/limits.h"
#include "transport/error.h"
#include "transport/sealing.h"

enum {
    RX_BURSTS_MAX = 4,    /* a turn, so that sending gets its share of time */
    RX_CLOCK_PACKETS = 8, /* receiving so many takes so long that the clock is read again */
    TX_BATCHES_MAX = 16,  /* a turn or post, so that receiving gets its share of time */
    NEW_PATHS_MAX = 8,    /* a turn: each binds a socket */
    NEW_ROUTES_MAX = 8,   /* a turn: each asks the kernel, by a few system calls */
    LOOKS_MAX = 64,       /* turns before a call, until the receive queue was seen empty */
    TX_RETRY_NS = 10000,  /* time until packets that the mover did not take are offered again */
    /* From head to head: an odd number of cache lines, so that they share no few sets of a cache. */
    HEAD_STRIDE = ((MRD_TX_HEAD_BYTES + MRD_SEAL_BYTES) / 128 + 1) * 128 + 64,
};
#define QUIESCE_NS     1000000000ull
#define AWAY_NS        MRD_STALL_LONG_NS
#define OUTBOX_LIFE_NS (MRD_PACKET_LIFE_NS / 2)

int mrd_progress_init(struct mrd_context_impl *c)
{
    struct mrd_outbox *out = &c->outbox;

    out->batch = MRD_TX_BATCH_MAX;
    if (c->backend->batch && c->backend->batch < out->batch)
        out->batch = c->backend->batch;
    /* Zeroed by the allocator: heads that no packet ever uses can stay untouched pages. */
    out->heads = mrd_context_alloc(c, (size_t)out->batch * HEAD_STRIDE);
    if (!out->heads)
        return -ENOMEM;
    for (unsigned i = 0; i < out->batch; i++) {
        out->packets[i].head = out->heads + (size_t)i * HEAD_STRIDE;
        if (mrd_sealing_is_on(c))
            out->packets[i].head += MRD_SEAL_HEAD_BYTES;
        out->packets[i].head_cap = MRD_TX_HEAD_BYTES;
    }
    out->retry_ns = UINT64_MAX;
    return 0;
}

void mrd_progress_fini(struct mrd_context_impl *c)
{
    mrd_context_release(c, c->outbox.heads, (size_t)c->outbox.batch * HEAD_STRIDE);
    c->outbox.heads = NULL;
}

static unsigned plan_segments(void *arg, const uint8_t *head, unsigned head_len, unsigned segments,
                              unsigned segment_len, unsigned total_len, const struct mrd_addr *from,
                              struct mrd_rx_plan *plan)
{
    const struct mrd_context_impl *c = arg;

    return mrd_engine_rx_plan(c->engine, head, head_len, segments, segment_len, total_len, from,
                              plan);
}

/* `single_packet`: a packet that the mover gives alone is enough; else all that came. */
static unsigned receive(struct mrd_context_impl *c, bool single_packet, uint64_t *now_ns)
{
    /* Where a sealed payload belongs is known when it was opened. */
    mrd_plan_fn *plan = mrd_sealing_is_on(c) ? NULL : plan_segments;
    unsigned total = 0;

    for (unsigned i = 0; i < RX_BURSTS_MAX; i++) {
        bool more = false;
        unsigned n = c->ops->rx_burst(c->backend, c->rx_packets, MRD_RX_BATCH_MAX, &more, plan, c);

        if (n) {
            /*
             * The process may have been stopped since the clock was read: packets must not seem to
             * come from the future.
             */
            unsigned good = n;

            *now_ns = mrd_context_now(c);
            if (mrd_sealing_is_on(c))
                good = mrd_sealing_open_packets(c, c->rx_packets, n, *now_ns);
            mrd_engine_rx(c->engine, c->rx_packets, good, *now_ns);
            c->ops->rx_return(c->backend);
            total += n;
        }
        c->rx_more = more;
        if (!more || (single_packet && total == 1))
            break;
    }
    if (total >= RX_CLOCK_PACKETS)
        *now_ns = mrd_context_now(c);
    return total;
}

static void reap(struct mrd_context_impl *c, uint64_t now_ns)
{
    uint64_t cookies[MRD_TX_BATCH_MAX];
    unsigned n;

    do {
        n = c->ops->tx_reap(c->backend, cookies, MRD_TX_BATCH_MAX);
        for (unsigned i = 0; i < n; i++)
            mrd_engine_tx_done(c->engine, cookies[i], now_ns);
        assert(n <= c->outbox.unreaped);
        c->outbox.unreaped -= n;
    } while (n == MRD_TX_BATCH_MAX);
}

/*
 * Drops packets that waited in the outbox for longer than OUTBOX_LIFE_NS, as after a stop of the
 * process. They count as lost on the way. The peer may have forgotten their space by now, and would
 * then execute them a second time.
 */
static void throw_old_away(struct mrd_context_impl *c)
{
    struct mrd_outbox *out = &c->outbox;
    uint64_t now_ns;

    if (!out->count)
        return;
    now_ns = mrd_context_now(c);
    if (now_ns - out->built_ns < OUTBOX_LIFE_NS)
        return;
    for (unsigned i = out->first; i < out->count; i++) {
        if (out->packets[i].cookie != MRD_TX_COOKIE_NONE)
            mrd_engine_tx_done(c->engine, out->packets[i].cookie, now_ns);
    }
    out->old += out->count - out->first;
    out->first = out->count = 0;
    out->retry_ns = UINT64_MAX;
}

static void log_nobody(struct mrd_context_impl *c, const struct mrd_addr *to)
{
    char text[MRD_ADDRESS_MAX];

    if (!c->ops->format_address(c->backend, to, text, sizeof(text)))
        mrd_log(MRD_LOG_WARN, "nobody listens at %s: its port is closed (ICMP)", text);
}

/* Offers the outbox's packets to the mover. Returns how many it took; the others stay. */
static unsigned offer(struct mrd_context_impl *c, uint64_t now_ns)
{
    struct mrd_outbox *out = &c->outbox;
    const struct mrd_tx_packet *packets = &out->packets[out->first];
    unsigned offered = out->count - out->first;
    unsigned taken = c->ops->tx_burst(c->backend, packets, offered);
    struct mrd_addr to;
    uint32_t payload_bytes;

    assert(taken <= offered);
    if (!c->backend->mover.copies)
        for (unsigned i = 0; i < taken; i++)
            out->unreaped += packets[i].cookie != MRD_TX_COOKIE_NONE;
    while (c->ops->too_big && c->ops->too_big(c->backend, &to, &payload_bytes))
        mrd_engine_tx_too_big(c->engine, &to, mrd_sealing_payload(c, payload_bytes));
    while (c->ops->refused && c->ops->refused(c->backend, &to))
        if (mrd_engine_tx_refused(c->engine, &to, now_ns))
            log_nobody(c, &to);

    out->first += taken;
    if (taken == offered) {
        out->first = out->count = 0;
        out->retry_ns = UINT64_MAX;
    } else {
        out->partial++;
        out->retry_ns = now_ns + TX_RETRY_NS;
    }
    return taken;
}

unsigned mrd_progress_send(struct mrd_context_impl *c, uint64_t now_ns)
{
    struct mrd_outbox *out = &c->outbox;
    unsigned total = 0;

    throw_old_away(c);
    for (unsigned i = 0; i < TX_BATCHES_MAX; i++) {
        bool last = false;

        if (!out->count) {
            /* Sending a batch takes so long that the next one's time stamps need a new reading. */
            if (total)
                now_ns = mrd_context_now(c);
            out->built_ns = now_ns;
            for (; out->sealed; out->sealed--)
                out->packets[out->sealed - 1].head += MRD_SEAL_HEAD_BYTES;
            out->count = mrd_engine_tx(c->engine, out->packets, out->batch, now_ns);
            if (!out->count)
                break;
            for (; mrd_sealing_is_on(c) && out->sealed < out->count; out->sealed++)
                mrd_seal_packet(c->sealing.seal, &out->packets[out->sealed]);
            last = out->count < out->batch && !mrd_engine_tx_cut_short(c->engine);
        }
        total += offer(c, now_ns);
        if (last || out->count)
            break;
    }
    return total;
}

void mrd_progress_flush(struct mrd_context_impl *c, uint64_t now_ns)
{
    uint64_t deadline_ns = mrd_engine_deadline(c->engine);

    if (deadline_ns > now_ns && deadline_ns - now_ns > MRD_ACK_WITH_REPLY_NS)
        return;
    mrd_engine_begin(c->engine, now_ns);
    mrd_progress_send(c, now_ns);
}

/* Replaces dead paths by paths with fresh source ports, if the mover can make any. */
static void renew_paths(struct mrd_context_impl *c, uint64_t now_ns)
{
    uint32_t peer_id, index;

    for (unsigned i = 0; i < NEW_PATHS_MAX; i++) {
        if (!mrd_engine_wants_path(c->engine, &peer_id, &index))
            return;

        int path = c->ops->new_path ? c->ops->new_path(c->backend) : -ENOTSUP;

        if (path < 0)
            mrd_log(MRD_LOG_DEBUG, "no fresh source port for a dead path (%d)", path);
        mrd_engine_give_path(c->engine, peer_id, index, path < 0 ? -1 : path, now_ns);
    }
}

/*
 * Looks the routes to peers up that are known only by their requests. No call of the user's asked
 * for that, so what mrd_last_error() says of his stays.
 */
static void find_routes(struct mrd_context_impl *c)
{
    char error[MRD_SENTENCE_BYTES];
    struct mrd_addr to;
    uint32_t peer_id;

    for (unsigned i = 0; i < NEW_ROUTES_MAX && mrd_engine_wants_route(c->engine, &peer_id, &to);
         i++) {
        int payload_bytes;

        snprintf(error, sizeof(error), "%s", mrd_last_error());
        payload_bytes = c->ops->payload_bytes(c->backend, &to);
        if (payload_bytes < 0)
            mrd_error_set("%s", error);
        mrd_engine_give_route(c->engine, peer_id,
                              payload_bytes > 0 ? mrd_sealing_payload(c, (uint32_t)payload_bytes)
                                                : 0,
                              c->ops->one_way && c->ops->one_way(c->backend, &to));
    }
}

/* Peers that do not answer are tried from another address of ours. */
static void change_sources(struct mrd_context_impl *c)
{
    struct mrd_addr to;

    while (mrd_engine_other_source(c->engine, &to))
        if (c->ops->other_source)
            c->ops->other_source(c->backend, &to);
}

/*
 * Takes the device's events, also if nobody takes them from us: they are acted upon. They carry our
 * own address.
 */
static void take_device_events(struct mrd_context_impl *c)
{
    struct mrd_engine_event event = {0};

    while (c->ops->take_event && c->ops->take_event(c->backend, &event.type)) {
        if (!c->ops->self_address(c->backend, &event.addr))
            mrd_engine_add_event(c->engine, &event);
        if (event.type == MRD_EVENT_DEVICE_FATAL)
            mrd_engine_fail_qps(c->engine, mrd_context_now(c));
    }
}

void mrd_progress_collect_events(struct mrd_context_impl *c)
{
    struct mrd_event_ring *ring = &c->events;

    take_device_events(c);
    while (ring->tail - ring->head < MRD_EVENT_RING &&
           !mrd_engine_get_event(c->engine, &ring->events[ring->tail % MRD_EVENT_RING])) {
        uint64_t one = 1;

        if (mrd_sealing_is_on(c) &&
            ring->events[ring->tail % MRD_EVENT_RING].type == MRD_EVENT_PEER_UNREACHABLE)
            mrd_sealing_log_silence(c, &ring->events[ring->tail % MRD_EVENT_RING].addr);
        ring->tail++;
        if (c->context.async_fd < 0)
            continue;

        /* Neither blocks nor fails: the count stays at most MRD_EVENT_RING. */
        ssize_t written = write(c->context.async_fd, &one, sizeof(one));

        assert(written == sizeof(one));
    }
}

/* An event left the ring. */
static void uncount_event(const struct mrd_context_impl *c)
{
    uint64_t one;
    ssize_t bytes = c->context.async_fd < 0 ? 0 : read(c->context.async_fd, &one, sizeof(one));

    (void)bytes; /* fails only if the application has read the descriptor itself */
}

int mrd_progress_take_event(struct mrd_context_impl *c, struct mrd_engine_event *event)
{
    struct mrd_event_ring *ring = &c->events;

    mrd_progress_collect_events(c);
    if (ring->head == ring->tail)
        return -EAGAIN;
    *event = ring->events[ring->head++ % MRD_EVENT_RING];
    uncount_event(c);
    return 0;
}

void mrd_progress_forget_events(struct mrd_context_impl *c, const void *object)
{
    struct mrd_event_ring *ring = &c->events;
    uint32_t kept = ring->head;

    for (uint32_t i = ring->head; i != ring->tail; i++) {
        const struct mrd_engine_event *event = &ring->events[i % MRD_EVENT_RING];

        if (event->object == object)
            uncount_event(c);
        else
            ring->events[kept++ % MRD_EVENT_RING] = *event;
    }
    ring->tail = kept;
    mrd_progress_collect_events(c); /* there is room again */
}

/*
 * The first half of a turn: receives; `single_packet`: see receive(). *now_ns is the time before
 * and after. Returns the number of packets received.
 */
static unsigned begin(struct mrd_context_impl *c, bool single_packet, uint64_t *now_ns)
{
    mrd_engine_begin(c->engine, *now_ns);
    if (c->outbox.unreaped)
        reap(c, *now_ns);
    return receive(c, single_packet, now_ns);
}

static void end_turn(struct mrd_context_impl *c, uint64_t now_ns, bool whole)
{
    c->half_turn = !whole;
    c->last_step_ns = now_ns;
    c->polls_since_step = 0;
}

/* The second half of a turn: acts on deadlines, sends. Returns the number of packets sent. */
static unsigned finish(struct mrd_context_impl *c, uint64_t now_ns)
{
    unsigned sent = 0;

    if (!c->rx_more)
        mrd_engine_drained(c->engine, now_ns);
    /* An application that polls finds nothing due in most turns. */
    if (mrd_engine_deadline(c->engine) <= now_ns || c->outbox.count) {
        mrd_engine_expire(c->engine, now_ns);
        renew_paths(c, now_ns);
        find_routes(c);
        change_sources(c);
        sent = mrd_progress_send(c, now_ns);
    }
    mrd_progress_collect_events(c);
    end_turn(c, now_ns, true);
    return sent;
}

unsigned mrd_progress_step(struct mrd_context_impl *c, uint64_t now_ns)
{
    unsigned received = begin(c, false, &now_ns);

    return received + finish(c, now_ns);
}

/* No call of the user's asked for these turns: what mrd_last_error() says of his stays. */
static void look_first(struct mrd_context_impl *c)
{
    char error[MRD_SENTENCE_BYTES];

    snprintf(error, sizeof(error), "%s", mrd_last_error());
    for (unsigned i = 0; i < LOOKS_MAX && (i == 0 || c->rx_more); i++)
        mrd_progress_step(c, mrd_context_now(c));
    mrd_error_set("%s", error);
}

uint64_t mrd_progress_begin_call(struct mrd_context_impl *c)
{
    uint64_t now_ns = mrd_context_now(c);

    if (now_ns - c->last_step_ns > AWAY_NS) {
        look_first(c);
        now_ns = mrd_context_now(c);
    }
    mrd_engine_begin(c->engine, now_ns);
    return now_ns;
}

unsigned mrd_progress_step_for(struct mrd_context_impl *c, const struct mrd_cq *cq, uint64_t now_ns)
{
    /* No second half in a row is left out: timers would wait as long as messages come. */
    bool owed = c->half_turn;
    unsigned received = begin(c, !owed, &now_ns);
    /*
     * Whoever waits for one message, perhaps by looking at memory, has it a system call earlier:
     * whether more came is looked at in the next turn.
     */
    bool single_packet = c->rx_more && received == 1;

    if (!owed && received && (single_packet || (!c->rx_more && mrd_engine_cq_waits(cq))) &&
        !c->outbox.count && mrd_engine_quiet(c->engine)) {
        end_turn(c, now_ns, false);
        return received;
    }
    return received + finish(c, now_ns);
}

uint64_t mrd_progress_deadline(const struct mrd_context_impl *c)
{
    uint64_t deadline = mrd_engine_deadline(c->engine);

    if (c->rx_more || c->half_turn)
        return 0;
    /*
     * The mover must first take what the outbox holds: until then nothing that is due could
     * be sent.
     */
    return c->outbox.count ? c->outbox.retry_ns : deadline;
}

static void drop_user_packets(struct mrd_context_impl *c)
{
    struct mrd_outbox *out = &c->outbox;
    unsigned kept = out->first;
    uint64_t now_ns = mrd_context_now(c);

    for (unsigned i = out->first; i < out->count; i++) {
        struct mrd_tx_packet packet = out->packets[i];

        if (packet.num_iov) {
            if (packet.cookie != MRD_TX_COOKIE_NONE)
                mrd_engine_tx_done(c->engine, packet.cookie, now_ns);
            continue;
        }
        /* Swap, do not copy: each slot keeps its own head memory. */
        out->packets[i] = out->packets[kept];
        out->packets[kept++] = packet;
    }
    out->count = kept;
    if (out->first == out->count) {
        out->first = out->count = 0;
        out->retry_ns = UINT64_MAX;
    }
}

int mrd_progress_quiesce(struct mrd_context_impl *c)
{
    drop_user_packets(c);
    /* In virtual time nothing would change while we wait. */
    if (!c->backend->threaded)
        return 0;

    uint64_t start_ns = mrd_context_now(c);

    while (c->outbox.unreaped) {
        uint64_t now_ns = mrd_context_now(c);

        reap(c, now_ns);
        if (!c->outbox.unreaped)
            break;
        if (now_ns - start_ns > QUIESCE_NS) {
            mrd_error_set("the device still reads buffers of packets sent a second ago");
            return -EBUSY;
        }
        sched_yield();
    }
    return 0;
}
