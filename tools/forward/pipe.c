/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/pipe.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tools/forward/say.h"
#include "tools/forward/stream_join.h"

#define PIPE_TARGET "-" /* the standard streams of a listening pipe */

/* Standard input, or its end if it is not to be read. */
static int input_of(const struct options *o)
{
    return o->receive_only ? open("/dev/null", O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
}

static bool blocks(int fd)
{
    return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static bool set_blocking(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

/* Makes both descriptors non-blocking. False: it failed, and they are as they were. */
static bool prepare(struct stream *s, const struct options *o, int *in)
{
    const int out = STDOUT_FILENO;
    bool ok;

    *in = input_of(o);
    s->in.was_blocking = blocks(*in);
    s->out.was_blocking = blocks(out);
    ok = *in >= 0 && set_blocking(*in, false);
    s->is_one_file = s->out.was_blocking && !blocks(out);
    if (!ok || !set_blocking(out, false)) {
        say("standard input or output: %s", strerror(errno));
        if (ok && s->in.was_blocking)
            (void)set_blocking(*in, true);
        return false;
    }
    /* Else somebody at a terminal would have to type the end of the input. */
    s->in.ends_with_output = isatty(*in);
    return true;
}

static void on_opened(struct stream *s)
{
    struct pipe_end *p = s->owner;
    int in;

    if (prepare(s, p->options, &in))
        (void)stream_join(s, in, STDOUT_FILENO);
    else
        stream_reset(s, EIO, "its standard streams are closed", true);
}

static void on_ended(struct stream *s, int error, const char *why)
{
    struct pipe_end *p = s->owner;

    p->stream = NULL;
    p->is_over = true;
    p->exit_code = error ? FORWARD_FAILED : FORWARD_OK;
    if (error)
        say("%s: %s", s->peer->address, why);
    (void)event_base_loopbreak(p->hub->streams.base);
}

static const struct stream_ops stream_ops = {on_opened, on_ended};

static void on_asked(void *arg, struct stream *s, const char *target)
{
    struct pipe_end *p = arg;
    int in;

    if (strcmp(target, PIPE_TARGET) != 0) {
        hub_refuse(s, EACCES, "a pipe listens here, which has no targets");
        return;
    }
    if (p->stream || p->is_over) {
        hub_refuse(s, EBUSY, "another one is joined to this pipe");
        return;
    }
    s->ops = &stream_ops;
    s->owner = p;
    p->stream = s;
    say_detail("%s: joined", s->peer->address);
    if (prepare(s, p->options, &in))
        (void)hub_accept(s, in, STDOUT_FILENO);
    else
        hub_refuse(s, EIO, "its standard streams are closed");
}

const struct hub_ops pipe_ops = {.asked = on_asked};

int pipe_dial(struct pipe_end *p, struct link_peer *server)
{
    const char *target = p->options->target ? p->options->target : PIPE_TARGET;
    char why[256];

    p->stream = hub_dial(p->hub, server, target, &stream_ops, p, why, sizeof(why));
    if (p->stream)
        return 0;
    say("%s: %s", server->address, why);
    return -1;
}
