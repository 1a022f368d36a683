/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/stream.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/forward/clock.h"
#include "tools/forward/say.h"

enum {
    READS_MAX = 4, /* messages of a stream before the others have their turn */
    IOVECS_MAX = 16,
    WINDOW_FIRST = 4,
};

/* For what the other end has sent, while it is there. */
#define NETWORK_PATIENCE_NS UINT64_C(60000000000)

/* ---------------------------------------------------------------------------------- the beginning */

uint32_t stream_window_first(const struct stream_shared *shared)
{
    return shared->window_max < WINDOW_FIRST ? shared->window_max : WINDOW_FIRST;
}

/* Few messages where many streams share the buffers; 0: there are none. */
static uint32_t first_window(const struct stream_shared *shared)
{
    uint32_t free = link_buffers_free(shared->link);
    uint32_t window = stream_window_first(shared);

    if (free < link_buffers(shared->link) / 8 * 7)
        window = 1;
    return free < window ? free : window;
}

struct stream *stream_create(struct stream_shared *shared, struct link_peer *peer, char *why,
                             size_t why_bytes)
{
    uint32_t window = first_window(shared);
    struct stream *s;

    if (shared->table.num == shared->table.max || !window) {
        snprintf(why, why_bytes, "there are %u streams, as many as %s allows", shared->table.num,
                 window ? "--streams" : "--memory");
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        snprintf(why, why_bytes, "no memory");
        return NULL;
    }
    schedule_entry_init(&s->entry);
    s->shared = shared;
    s->id = stream_table_add(&shared->table, s);
    s->peer = peer;
    s->own = peer->own;
    s->in = s->out = -1;
    s->since_ns = s->asked_ns = forward_now_ns();
    peer->uses++;
    link_grant(shared->link, window);
    schedule_sweep_if_scarce(&shared->schedule);
    flow_rx_init(&s->rx, window);
    link_peer_watch(peer);
    return s;
}

void stream_destroy_ended(struct stream_shared *shared)
{
    for (struct schedule_entry *e; (e = schedule_next_ended(&shared->schedule));) {
        struct stream *s = stream_of(e);

        link_peer_release(shared->link, s->peer);
        free(s->target);
        free(s);
    }
}

/* -------------------------------------------------------------------------------------- frames out */

static void make_due(struct stream *s)
{
    schedule_make_due(&s->shared->schedule, &s->entry);
}

void stream_send(struct stream *s, const struct frame *frame, const void *bytes, uint32_t len)
{
    struct frame full = *frame;
    int rc;

    full.session = s->session;
    full.stream = s->remote;
    rc = link_send(s->shared->link, s->peer, s->id, &full, bytes, len);
    if (rc == 0)
        return;
    say_detail("%s: %s", s->peer->address, mrd_last_error());
    s->failed = -rc;
    make_due(s);
}

void stream_ask(struct stream *s)
{
    s->own = s->peer->own;

    struct frame frame = {.type = FRAME_OPEN, .seq = s->own, .arg = s->id, .credit = s->rx.window};
    int rc =
        link_send(s->shared->link, s->peer, s->id, &frame, s->target, (uint32_t)strlen(s->target));

    s->tries++;
    if (rc == 0)
        return;
    s->failed = -rc;
    make_due(s);
}

/* ---------------------------------------------------------------------------------------- the end */

/* Others may have the open file, too: it blocks again if it did. */
static void close_pipe(struct stream *s, int *fd)
{
    bool blocked = fd == &s->in ? s->in_blocked : s->out_blocked;
    bool in_use = s->is_one_file && s->in >= 0 && s->out >= 0;
    int flags = blocked && !in_use ? fcntl(*fd, F_GETFL) : -1;

    if (flags >= 0)
        (void)fcntl(*fd, F_SETFL, flags & ~O_NONBLOCK);
    close(*fd);
    *fd = -1;
}

static void close_both(struct stream *s, bool reset)
{
    struct linger at_once = {.l_onoff = 1};

    if (s->readable)
        event_free(s->readable);
    if (s->writable)
        event_free(s->writable);
    s->readable = s->writable = NULL;
    if (s->in >= 0 && s->in == s->out) {
        if (reset && !(s->in_ended && s->out_over)) /* else all was handed on that there was */
            (void)setsockopt(s->in, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(s->in);
        s->in = s->out = -1;
    }
    if (s->in >= 0)
        close_pipe(s, &s->in);
    if (s->out >= 0)
        close_pipe(s, &s->out);
}

static void end(struct stream *s, int error, const char *why)
{
    struct link *link = s->shared->link;

    assert(s->state != STREAM_ENDED);
    close_both(s, error != 0);
    for (uint8_t *buffer; (buffer = flow_take(&s->rx));)
        link_return(link, buffer);
    flow_rx_fini(&s->rx);
    link_take_back(link, s->rx.window);
    s->state = STREAM_ENDED;
    if (s->ops)
        s->ops->ended(s, error, why);
    s->shared->totals.bytes_in += s->bytes_in;
    s->shared->totals.bytes_out += s->bytes_out;
    stream_table_remove(&s->shared->table, s->id);
    schedule_end(&s->shared->schedule, &s->entry);
}

static void end_if_over(struct stream *s)
{
    if (s->in_over && s->out_over)
        end(s, 0, "");
}

void stream_reset(struct stream *s, int error, const char *why, bool tell)
{
    if (tell && s->state == STREAM_OPEN)
        stream_send(s,
                    &(struct frame){.type = FRAME_RESET,
                                    .seq = s->tx.sent,
                                    .arg = (uint32_t)error,
                                    .credit = s->in_ended},
                    NULL, 0);
    end(s, error, why);
}

static void be_patient(struct stream *s)
{
    s->moved_ns = forward_now_ns();
    schedule_sweep(&s->shared->schedule);
}

/* Only of a socket can there be something to read when nothing can be written. */
void stream_break(struct stream *s, int error, const char *why)
{
    if (s->cut || s->in_ended || s->in != s->out) {
        stream_reset(s, error, why, !s->cut);
        return;
    }
    s->broken = error;
    be_patient(s);
    (void)event_del(s->writable);
    make_due(s);
}

/* ---------------------------------------------------------------------------- from here to there */

static void wait_for_buffer(struct stream *s)
{
    schedule_wait_for_buffer(&s->entry, s->peer);
    if (s->readable)
        (void)event_del(s->readable);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;
    (void)fd, (void)what;

    if (!mrd_list_empty(&s->peer->waiting) && !s->cut)
        wait_for_buffer(s); /* behind the others */
    else
        stream_read(s);
}

/* A file is always readable, and nothing can wait for it. */
static void want_read(struct stream *s)
{
    if (!s->in_is_file)
        (void)event_add(s->readable, NULL);
    else
        event_active(s->readable, EV_READ, 0);
}

static void end_of_input(struct stream *s)
{
    s->in_ended = true;
    (void)event_del(s->readable);
    if (s->in != s->out)
        close_pipe(s, &s->in);
    stream_send(s, &(struct frame){.type = FRAME_FIN, .seq = s->tx.sent}, NULL, 0);
    schedule_sweep(&s->shared->schedule);
}

static ssize_t read_input(struct stream *s, uint8_t *buffer)
{
    uint32_t n = s->early_len;

    if (!n)
        return read(s->in, buffer, LINK_DATA_BYTES);
    memcpy(buffer, s->early, n);
    s->early_len = 0;
    return (ssize_t)n;
}

/* Nobody takes what it gives. But who cannot write may not read, either. */
static void discard_input(struct stream *s)
{
    static uint8_t scrap[LINK_DATA_BYTES];
    ssize_t n = read(s->in, scrap, sizeof(scrap));

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        (void)event_add(s->readable, NULL);
        return;
    }
    (void)event_del(s->readable);
    if (n < 0) {
        int error = errno;

        stream_reset(s, error, strerror(error), false);
    }
}

void stream_read(struct stream *s)
{
    if (s->state != STREAM_OPEN || s->in < 0 || s->in_ended)
        return;
    if (s->cut) {
        discard_input(s);
        return;
    }
    for (int i = 0; i < READS_MAX; i++) {
        if (!flow_may_send(&s->tx)) {
            (void)event_del(s->readable);
            schedule_sweep(&s->shared->schedule);
            return;
        }

        uint8_t *buffer = link_tx(s->shared->link, s->peer);

        if (!buffer) {
            wait_for_buffer(s);
            return;
        }

        ssize_t n = read_input(s, buffer);
        int error = errno;

        if (n <= 0)
            link_tx_unused(s->shared->link, buffer);
        if (n == 0 && s->broken) {
            stream_reset(s, s->broken, strerror(s->broken), true);
            return;
        }
        if (n == 0) {
            end_of_input(s);
            return;
        }
        if (n < 0 && (error == EAGAIN || error == EINTR))
            break;
        if (n < 0) {
            stream_reset(s, error, strerror(error), true);
            return;
        }
        s->bytes_in += (uint64_t)n;
        struct frame data = {.type = FRAME_DATA, .seq = flow_sent(&s->tx), .arg = (uint32_t)n};

        data.credit = !flow_may_send(&s->tx);
        stream_send(s, &data, buffer, (uint32_t)n);
        if (n < LINK_DATA_BYTES)
            break; /* there is probably no more */
    }
    want_read(s);
}

/* It reads again, if it waited for credit. */
static void go_on(struct stream *s, bool was_out)
{
    if (was_out && flow_may_send(&s->tx) && !schedule_is_waiting(&s->entry) && s->readable)
        on_readable(-1, EV_READ, s);
}

void stream_credit(struct stream *s, const struct frame *frame)
{
    bool was_out = !flow_may_send(&s->tx);

    if (s->cut || !flow_credited(&s->tx, frame->seq, frame->credit))
        return;
    s->is_answered = true;
    go_on(s, was_out);
}

/* It leaves some credit, perhaps more than has come: CREDIT of the last round does not count now. */
void stream_recall(struct stream *s, const struct frame *frame)
{
    bool was_out = !flow_may_send(&s->tx);

    if (s->state != STREAM_OPEN || s->cut || !flow_recalled(&s->tx, frame->seq, frame->credit))
        return;
    stream_send(s,
                &(struct frame){.type = FRAME_YIELD, .seq = s->tx.round, .credit = s->tx.allowed},
                NULL, 0);
    go_on(s, was_out);
}

void stream_done(struct stream *s)
{
    if (s->cut)
        return;
    if (!s->in_ended) {
        stream_reset(s, EPROTO, "the other end acknowledged an end that was not", true);
        return;
    }
    s->in_over = true;
    end_if_over(s);
}

/* ---------------------------------------------------------------------------- from there to here */

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    stream_write(arg);
}

/* The bytes of the oldest messages that are in order. Returns how many iovecs. */
static int gather(struct stream *s, struct iovec *iov)
{
    uint32_t skip = s->written;
    int num = 0;

    for (; num < IOVECS_MAX; num++, skip = 0) {
        struct flow_slot *slot = flow_next(&s->rx, (uint32_t)num);

        if (!slot)
            break;
        iov[num] = (struct iovec){slot->buffer + skip, slot->len - skip};
    }
    return num;
}

static void wrote(struct stream *s, size_t n)
{
    s->bytes_out += n;
    n += s->written;
    for (;;) {
        struct flow_slot *slot = flow_next(&s->rx, 0);

        if (!slot || n < slot->len)
            break;
        n -= slot->len;
        link_return(s->shared->link, slot->buffer);
        flow_drained(&s->rx);
    }
    s->written = (uint32_t)n;
}

/* A window grows while a quarter of all buffers is left for others. */
static void give_credit(struct stream *s)
{
    struct link *link = s->shared->link;
    uint32_t more = flow_wants(&s->rx, s->shared->window_max), credit;

    if (more && link_buffers_free(link) >= more + link_buffers(link) / 4 &&
        flow_grow(&s->rx, more)) {
        link_grant(link, more);
        schedule_sweep_if_scarce(&s->shared->schedule);
    }
    if (!flow_tell(&s->rx, &credit) && !(s->owes_credit && flow_answer(&s->rx, &credit)))
        return;
    s->owes_credit = false;
    stream_send(s, &(struct frame){.type = FRAME_CREDIT, .seq = s->rx.round, .credit = credit},
                NULL, 0);
}

void stream_asked(struct stream *s)
{
    if (s->state != STREAM_OPEN || s->cut)
        return;
    s->owes_credit = true;
    give_credit(s);
}

bool stream_shrink(struct stream *s, uint32_t keep)
{
    bool is_idle = s->came_before == s->rx.came;
    uint32_t credit;

    s->came_before = s->rx.came;
    if (s->state != STREAM_OPEN || s->cut || s->rx.has_end || s->rx.window <= keep)
        return false;
    if (is_idle && flow_recall(&s->rx, keep, &credit))
        stream_send(s, &(struct frame){.type = FRAME_RECALL, .seq = s->rx.round, .credit = credit},
                    NULL, 0);
    return true;
}

void stream_yield(struct stream *s, const struct frame *frame)
{
    link_take_back(s->shared->link, flow_yielded(&s->rx, frame->seq, frame->credit));
    if (s->state == STREAM_OPEN && !s->cut)
        give_credit(s);
}

static void end_of_output(struct stream *s)
{
    s->out_over = true;
    (void)event_del(s->writable);
    (void)shutdown(s->out, SHUT_WR); /* also if standard input is the same socket; else it fails */
    if (s->in != s->out)
        close_pipe(s, &s->out);
    stream_send(s, &(struct frame){.type = FRAME_DONE}, NULL, 0);
    if (s->in_follows_out && !s->in_ended)
        end_of_input(s);
    end_if_over(s);
}

/* Bytes that the kernel still has to send. */
static uint64_t unsent(const struct stream *s)
{
    int bytes = 0;

    if (s->out < 0 || ioctl(s->out, SIOCOUTQNSD, &bytes) != 0)
        return 0; /* no TCP: what is written has arrived */
    return (uint64_t)bytes;
}

/* A reset discards what has not left yet. */
static void end_if_cut(struct stream *s)
{
    int one = 1;

    if (!s->cut || !flow_is_over(&s->rx))
        return;
    if (unsent(s)) {
        /* Writable: nothing is left. After the end of output it always is; there is the sweep. */
        if (!s->out_over &&
            setsockopt(s->out, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &one, sizeof(one)) == 0)
            (void)event_add(s->writable, NULL);
        return;
    }
    if (s->cut_at_fin && !s->out_over) {
        (void)shutdown(s->out, SHUT_WR);
        s->out_over = true;
    }
    stream_reset(s, s->cut, "reset by the other end", false);
}

static void discard_output(struct stream *s)
{
    struct flow_slot *slot;

    while ((slot = flow_next(&s->rx, 0))) {
        link_return(s->shared->link, slot->buffer);
        flow_drained(&s->rx);
    }
    s->written = 0;
}

static void write_output(struct stream *s)
{
    struct iovec iov[IOVECS_MAX];
    int num;

    while ((num = gather(s, iov)) > 0) {
        ssize_t n = writev(s->out, iov, num);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            (void)event_add(s->writable, NULL);
            break;
        }
        if (n < 0) {
            int error = errno;

            stream_break(s, error, strerror(error));
            return;
        }
        wrote(s, (size_t)n);
    }
    if (num == 0)
        (void)event_del(s->writable);
    if (s->cut) {
        end_if_cut(s);
        return;
    }
    give_credit(s);
    if (flow_is_over(&s->rx))
        end_of_output(s);
}

void stream_write(struct stream *s)
{
    if (s->broken) {
        discard_output(s);
        give_credit(s);
        return;
    }
    if (s->out_over)
        end_if_cut(s);
    else if (s->out >= 0)
        write_output(s);
}

bool stream_data(struct stream *s, const struct frame *frame, uint8_t *bytes, uint32_t len)
{
    if (!flow_came(&s->rx, frame->seq, bytes, len, frame->credit == 1)) {
        stream_reset(s, EPROTO, "the other end sent more than its credit", true);
        return false;
    }
    make_due(s);
    return true;
}

void stream_fin(struct stream *s, uint32_t at)
{
    if (s->cut)
        return;
    if (flow_end(&s->rx, at))
        make_due(s);
    else
        stream_reset(s, EPROTO, "the other end ended twice, or before its data", true);
}

void stream_cut(struct stream *s, const struct frame *frame)
{
    int error = frame->arg ? (int)frame->arg : ECONNRESET;

    if (s->cut)
        return;
    if (s->broken || !flow_cut(&s->rx, frame->seq) ||
        (s->state == STREAM_OPENING && frame->seq == 0)) { /* perhaps no OPENED ever comes */
        stream_reset(s, error, "reset by the other end", false);
        return;
    }
    s->cut = error;
    s->cut_at_fin = frame->credit != 0;
    be_patient(s);
    make_due(s);
    if (s->in < 0 || s->in_ended)
        return;
    if (s->in == s->out) {
        (void)event_add(s->readable, NULL);
        return;
    }
    (void)event_del(s->readable);
    close_pipe(s, &s->in);
}

/* ------------------------------------------------------------------------------------------- both */

/* False: a regular file and the like, which never has to wait. */
static bool can_poll(int fd)
{
    struct epoll_event event = {0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    bool can = epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 || errno != EPERM;

    if (epoll >= 0)
        close(epoll);
    return can;
}

int stream_join(struct stream *s, int in, int out)
{
    s->in = in;
    s->out = out;
    s->in_is_file = !can_poll(in);
    s->readable =
        event_new(s->shared->base, s->in_is_file ? -1 : in, EV_READ | EV_PERSIST, on_readable, s);
    s->writable = event_new(s->shared->base, out, EV_WRITE | EV_PERSIST, on_writable, s);
    if (!s->readable || !s->writable) {
        stream_reset(s, ENOMEM, "no memory", true);
        return -ENOMEM;
    }
    make_due(s); /* data may have come before */
    want_read(s);
    if (s->early_len)
        event_active(s->readable, EV_READ, 0);
    return 0;
}

bool stream_is_deaf(const struct stream *s)
{
    return s->out >= 0 && s->readable && !event_pending(s->readable, EV_READ, NULL) &&
           !event_pending(s->writable, EV_WRITE, NULL);
}

bool stream_has_died(const struct stream *s)
{
    struct pollfd p = {.fd = s->out};

    if (poll(&p, 1, 0) <= 0)
        return false;
    return (p.revents & POLLERR) != 0; /* a hang-up alone may leave bytes to read */
}

/* Is it the network that takes long, and not the reader? */
static bool waits_for_network(struct stream *s, uint64_t now_ns)
{
    if (now_ns - s->moved_ns > NETWORK_PATIENCE_NS)
        return false;
    if (s->cut)
        return !s->is_left && !flow_next(&s->rx, 0) && !flow_is_over(&s->rx);
    if (!s->has_asked) {
        s->has_asked = true;
        s->is_answered = false;
        stream_send(s, &(struct frame){.type = FRAME_ASK}, NULL, 0);
    }
    return !s->is_answered;
}

void stream_hurry(struct stream *s, uint64_t now_ns, uint64_t patience_ns)
{
    uint64_t moved = s->bytes_in + s->bytes_out - unsent(s);

    if (moved != s->moved || (s->broken && flow_may_send(&s->tx))) {
        s->moved = moved;
        s->moved_ns = now_ns;
        s->has_asked = false;
    }
    if (s->cut && stream_is_deaf(s) && stream_has_died(s))
        stream_reset(s, s->cut, "reset by both ends", false);
    else if (now_ns - s->moved_ns > patience_ns && !waits_for_network(s, now_ns))
        stream_reset(s, s->cut ? s->cut : s->broken, "nobody read what came before a reset",
                     !s->cut);
    else if (s->cut)
        stream_write(s);
}
