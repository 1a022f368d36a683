/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/run.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/message.h"

enum {
    HANDSHAKE_TIMEOUT_MS = 30 * 1000, /* opening a device and registering memory included */
    CLIENT_WATCH_MS = 100,
    SERVER_WATCH_MS = 1, /* how late the end of a run is noticed at most */
    ALIVE_EVERY_MS = 1000,
    LIVE_INTERVAL_MS = 200,
    SLEEP_MS = 100,
    THREAD_SLEEP_MS = 5,   /* of one of several, which the others do not wake */
    SILENT_MS = 10 * 1000, /* a stopped process keeps its connections: silence tells */
};

int perf_run_fail(struct perf_run *run, int rc, const char *format, ...)
{
    va_list args;

    if (run->error[0] == '\0') {
        va_start(args, format);
        vsnprintf(run->error, sizeof(run->error), format, args);
        va_end(args);
    }
    return rc;
}

static const char *other_end(const struct perf_run *run)
{
    return run->server ? "client" : "server";
}

static int fail_control(struct perf_run *run, int rc)
{
    run->peer.told = rc == -ECONNRESET || rc == -EPIPE;
    switch (rc) {
    case -ECONNRESET:
    case -EPIPE:
        return perf_run_fail(run, rc,
                             "the %s %s is gone: it closed the control connection in mid-run",
                             other_end(run), run->control->peer);
    case -ETIMEDOUT:
        return perf_run_fail(run, rc, "the %s %s does not answer", other_end(run),
                             run->control->peer);
    default:
        return perf_run_fail(run, rc, "what the %s %s says is not mrd_perf's language: %s",
                             other_end(run), run->control->peer, strerror(-rc));
    }
}

/* The other end gave up and said why. */
static int fail_told(struct perf_run *run, struct json_object *message)
{
    const char *text = json_get_string(message, "text");

    run->peer.told = true;
    return perf_run_fail(run, -ECANCELED, "the %s %s says: %s", other_end(run), run->control->peer,
                         text ? text : "it failed");
}

static int take_message(struct perf_run *run, struct json_object *message)
{
    if (perf_message_is(message, "error"))
        return fail_told(run, message);
    if (perf_message_is(message, "alive"))
        return 0;
    if (perf_message_is(message, "met")) {
        run->peer.connected = true;
        return 0;
    }
    if (run->server && perf_message_is(message, "whole")) {
        run->peer.finished = true;
        return 0;
    }
    if ((run->server || run->params.bidirectional) && perf_message_is(message, "done") &&
        json_get_u64(message, "sent", &run->peer.sent) == 0 &&
        (!run->thread.all || run->thread.ops->take_sent(run, message) == 0)) {
        run->peer.done = true;
        return 0;
    }
    if (!run->server && perf_message_is(message, "result")) {
        json_object_put(run->findings);
        run->findings = json_object_get(message);
        return 0;
    }
    return fail_control(run, -EPROTO);
}

/* Each end sends signs of life, and expects them of the other. */
static int watch_life(struct perf_run *run, uint64_t now_ns)
{
    if (run->watch.heard_ns == 0)
        run->watch.heard_ns = now_ns;
    if (now_ns > run->watch.heard_ns + SILENT_MS * PERF_MSEC_NS)
        return fail_control(run, -ETIMEDOUT);
    if (now_ns < run->watch.next_alive_ns)
        return 0;
    run->watch.next_alive_ns = now_ns + ALIVE_EVERY_MS * PERF_MSEC_NS;
    int rc = perf_control_send(run->control, perf_message("alive"));
    /* An end that has gone may have said why: the message is read before the error counts. */
    return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}

static void show_live(struct perf_run *run, uint64_t now_ns, uint64_t done)
{
    if (run->start_ns == 0 || now_ns < run->start_ns + PERF_SEC_NS || now_ns < run->live.next_ns)
        return;
    run->live.next_ns = now_ns + LIVE_INTERVAL_MS * PERF_MSEC_NS;
    if (!isatty(STDERR_FILENO))
        return;
    double elapsed_s = (double)(now_ns - run->start_ns) / 1e9;
    double share = run->params.duration_s
                       ? elapsed_s / run->params.duration_s
                       : (double)done / ((double)run->params.iterations * run->params.threads);
    fprintf(stderr, "\r%s %s  %.1f s  %3.0f%%  ", run->label ? run->label : run->params.transport,
            perf_test_name(run->params.test), elapsed_s, share > 1 ? 100 : 100 * share);
    if (perf_test_is_lat(run->params.test))
        fprintf(stderr, "%llu exchanges, %.2f us a round trip\033[K", (unsigned long long)done,
                done ? 1e6 * elapsed_s / (double)done : 0);
    else
        fprintf(stderr, "%.2f Gb/s sent, %.3f M msg/s\033[K",
                8e-9 * (double)done * (double)run->params.size_bytes / elapsed_s,
                1e-6 * (double)done / elapsed_s);
    fflush(stderr);
    run->live.shown = true;
}

static int fail_late(struct perf_run *run)
{
    return perf_run_fail(run, -ETIMEDOUT, "there is no time left for it");
}

int perf_run_watch(struct perf_run *run, uint64_t now_ns, uint64_t done)
{
    struct json_object *message;

    if (run->thread.main)
        return run->thread.ops->watch(run, now_ns, done);
    if (run->deadline_ns && now_ns >= run->deadline_ns)
        return fail_late(run);
    int rc = run->thread.all ? run->thread.ops->add_done(run, &done) : 0;
    if (rc)
        return rc;
    run->watch.next_ns = now_ns + (run->server ? SERVER_WATCH_MS : CLIENT_WATCH_MS) * PERF_MSEC_NS;
    if (run->params.run_infinitely)
        perf_infinite_print(run, now_ns, done);
    else if (!run->server)
        show_live(run, now_ns, done);
    rc = perf_control_recv(run->control, 0, &message);
    if (rc == -ETIMEDOUT)
        return watch_life(run, now_ns);
    if (rc)
        return fail_control(run, rc);
    run->watch.heard_ns = now_ns;
    rc = take_message(run, message);
    json_object_put(message);
    return rc;
}

int perf_run_sleep(struct perf_run *run, int fd)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
                           {.fd = run->control->fd, .events = POLLIN}};

    /* The control connection is the main thread's. */
    if (poll(fds, run->thread.main ? 1 : 2, run->thread.all ? THREAD_SLEEP_MS : SLEEP_MS) < 0 &&
        errno != EINTR)
        return perf_run_fail(run, -errno, "cannot sleep: %s", strerror(errno));
    if (fds[1].revents)
        run->watch.next_ns = 0;
    return 0;
}

int perf_run_patience_ms(const struct perf_run *run, int most_ms)
{
    uint64_t now_ns = clock_now_ns();

    if (run->deadline_ns == 0)
        return most_ms;
    if (now_ns >= run->deadline_ns)
        return 1;
    uint64_t left_ms = (run->deadline_ns - now_ns) / PERF_MSEC_NS + 1;
    return left_ms < (uint64_t)most_ms ? (int)left_ms : most_ms;
}

struct json_object *perf_run_expect(struct perf_run *run, const char *type)
{
    struct json_object *message;
    int rc;

    do {
        int ms = perf_run_patience_ms(run, HANDSHAKE_TIMEOUT_MS);
        rc = perf_control_recv(run->control, ms, &message);
        if (rc == -ETIMEDOUT && ms < HANDSHAKE_TIMEOUT_MS) {
            fail_late(run);
            return NULL;
        }
        if (rc) {
            fail_control(run, rc);
            return NULL;
        }
    } while (perf_message_is(message, "alive") && json_object_put(message));
    if (perf_message_is(message, type))
        return message;
    if (perf_message_is(message, "error"))
        fail_told(run, message);
    else
        fail_control(run, -EPROTO);
    json_object_put(message);
    return NULL;
}

int perf_run_say(struct perf_run *run, struct json_object *message)
{
    int rc = perf_control_send(run->control, message);

    return rc ? fail_control(run, rc) : 0;
}

void perf_run_clear_live(struct perf_run *run)
{
    if (run->live.shown)
        fputs("\r\033[K", stderr);
    run->live.shown = false;
}
