/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd_forward: TCP connections, unix sockets and pipes over mrd. See mrd_forward(1).
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/forward/client.h"
#include "tools/forward/notify.h"
#include "tools/forward/options.h"
#include "tools/forward/pipe.h"
#include "tools/forward/report.h"
#include "tools/forward/say.h"
#include "tools/forward/server.h"
#include "tools/forward/targets.h"

enum { CLOSE_MS = 2000 }; /* how long a service waits for its last frames to arrive */

struct program {
    struct options options;
    struct event_base *base;
    struct hub hub;
    struct targets *targets;
    struct server server;
    struct client *client;
    struct pipe_end pipe;
    struct report *report;
    struct event *signals[4];
    struct mrd_context_info info;
};

static void on_end_signal(evutil_socket_t signal, short what, void *arg)
{
    struct program *p = arg;
    (void)signal, (void)what;

    p->pipe.exit_code = FORWARD_FAILED; /* a pipe that is interrupted has failed */
    (void)event_base_loopbreak(p->base);
}

static void on_report_signal(evutil_socket_t signal, short what, void *arg)
{
    (void)signal, (void)what;
    report_all(((struct program *)arg)->report);
}

static void on_keys_signal(evutil_socket_t signal, short what, void *arg)
{
    struct program *p = arg;
    (void)signal, (void)what;

    if (mrd_reload_keys(link_context(p->hub.streams.link)) == 0)
        say("the keys were read again");
    else
        say("the keys stay as they are: %s", mrd_last_error());
}

static bool watch_signal(struct program *p, int place, int signal, event_callback_fn on_signal)
{
    p->signals[place] = evsignal_new(p->base, signal, on_signal, p);
    return p->signals[place] && event_add(p->signals[place], NULL) == 0;
}

static bool watch_signals(struct program *p)
{
    return watch_signal(p, 0, SIGINT, on_end_signal) &&
           watch_signal(p, 1, SIGTERM, on_end_signal) &&
           watch_signal(p, 2, SIGUSR1, on_report_signal);
}

/*
 * What has keys reads them again at SIGHUP. Others end by it, as they do when their terminal goes;
 * so does a pipe, which ssh ends by it.
 */
static bool learn_sealing(struct program *p)
{
    int rc = mrd_query_context(link_context(p->hub.streams.link), &p->info, sizeof(p->info));
    bool reloads = rc == 0 && p->info.cipher[0] && p->options.mode != FORWARD_PIPE;

    if (rc == 0 && (!reloads || watch_signal(p, 3, SIGHUP, on_keys_signal)))
        return true;
    say("cannot watch SIGHUP: %s", rc ? mrd_last_error() : strerror(errno));
    return false;
}

/* As many descriptors as there may be: a connection takes one. */
static void raise_limits(const struct options *o)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < o->hub.max_streams + 64 &&
        o->mode != FORWARD_PIPE)
        say("the limit of %llu open files is below --streams %u",
            (unsigned long long)files.rlim_cur, o->hub.max_streams);
}

static bool become(const char *name)
{
    const struct passwd *user = getpwnam(name);

    if (!user) {
        say("there is no user '%s'", name);
        return false;
    }
    if (initgroups(name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0) {
        say("cannot become '%s': %s", name, strerror(errno));
        return false;
    }
    return true;
}

static bool open_client(struct program *p)
{
    bool is_pipe = p->options.mode == FORWARD_PIPE;

    if (!server_find(&p->server, &p->hub, p->options.server, !is_pipe))
        return false;
    if (is_pipe)
        return pipe_dial(&p->pipe, p->server.peer) == 0;
    p->client = client_open(&p->hub, &p->options, &p->server);
    return p->client != NULL;
}

static bool open_hub(struct program *p)
{
    const struct options *o = &p->options;
    const struct hub_ops *ops = NULL;
    void *arg = NULL;

    p->pipe = (struct pipe_end){.hub = &p->hub, .options = o, .exit_code = FORWARD_FAILED};
    if (o->mode == FORWARD_SERVE) {
        p->targets = targets_open(p->base, o);
        if (!p->targets)
            return false;
        ops = &targets_ops;
        arg = p->targets;
    } else if (o->mode == FORWARD_PIPE && o->listen) {
        ops = &pipe_ops;
        arg = &p->pipe;
    } else {
        ops = &server_ops;
        arg = &p->server;
    }
    return hub_open(&p->hub, p->base, &o->hub, ops, arg) == 0;
}

static bool open_base(struct program *p)
{
    struct event_config *config = event_config_new();

    if (config) {
        (void)event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
        p->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (!p->base || !watch_signals(p)) {
        say("no event loop: %s", strerror(errno));
        return false;
    }
    return true;
}

static void announce(struct program *p)
{
    static const char *const what[] = {"serves", "forwards", "waits for the other pipe"};
    const struct options *o = &p->options;
    char address[MRD_ADDRESS_MAX] = "";

    (void)mrd_query_address(link_context(p->hub.streams.link), address, sizeof(address));
    if (o->mode != FORWARD_PIPE || (o->listen && o->verbose))
        say("%s at %s; %s%s", what[o->mode], address,
            p->info.cipher[0]
                ? "sealed: "
                : "no encryption: for trusted networks, or streams that protect themselves",
            p->info.cipher);
    notify("READY=1");
}

static void close_all(struct program *p)
{
    if (p->report)
        report_close(p->report);
    hub_close(&p->hub, p->options.mode == FORWARD_PIPE
                           ? (int)(p->options.hub.link.peer_timeout_ns / 1000000)
                           : CLOSE_MS);
    if (p->client)
        client_close(p->client);
    server_close(&p->server);
    if (p->targets)
        targets_close(p->targets);
    for (int i = 0; i < 4; i++) {
        if (p->signals[i])
            event_free(p->signals[i]);
    }
    if (p->base)
        event_base_free(p->base);
}

static int run(struct program *p)
{
    const struct options *o = &p->options;
    bool is_client = o->mode == FORWARD_CONNECT || (o->mode == FORWARD_PIPE && !o->listen);
    int code = FORWARD_FAILED;

    if (open_base(p) && open_hub(p) && learn_sealing(p)) {
        p->report = report_open(&p->hub, o->stats);
        if (p->report && (!is_client || open_client(p)) && (!o->user || become(o->user))) {
            announce(p);
            if (event_base_dispatch(p->base) < 0)
                say("the event loop failed: %s", strerror(errno));
            else
                code = o->mode == FORWARD_PIPE ? p->pipe.exit_code : FORWARD_OK;
            notify("STOPPING=1");
        }
    }
    close_all(p);
    return code;
}

/*
 * If standard descriptors are closed, sockets must not get their numbers. They are opened the wrong
 * way round, so that their use still fails by EBADF.
 */
static void keep_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
}

int main(int argc, char **argv)
{
    static struct program p; /* large */

    keep_standard_descriptors();
    switch (options_parse(&p.options, argc, argv)) {
    case OPTIONS_RUN:
        break;
    case OPTIONS_HELP:
        options_help();
        return fflush(stdout) == 0 ? FORWARD_OK : FORWARD_FAILED;
    case OPTIONS_VERSION:
        printf("mrd_forward %d.%d.%d\n", MRD_VERSION_MAJOR, MRD_VERSION_MINOR, MRD_VERSION_PATCH);
        return fflush(stdout) == 0 ? FORWARD_OK : FORWARD_FAILED;
    default:
        return FORWARD_USAGE;
    }
    signal(SIGPIPE, SIG_IGN); /* write() fails by EPIPE */
    signal(SIGXFSZ, SIG_IGN);
    if (p.options.verbose)
        say_all();
    raise_limits(&p.options);
    return run(&p);
}
