/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/stream_join.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>

#include "tools/forward/stream_in.h"
#include "tools/forward/stream_out.h"

int stream_join(struct stream *s, int in, int out)
{
    bool has_in = stream_in_open(s, in), has_out = stream_out_open(s, out);

    if (!has_in || !has_out) {
        stream_reset(s, ENOMEM, "no memory", true);
        return -ENOMEM;
    }
    stream_make_due(s); /* data may have come before */
    stream_in_start(s);
    return 0;
}

bool stream_input_is_unpolled(const struct stream *s)
{
    return s->out.fd >= 0 && s->in.readable && !event_pending(s->in.readable, EV_READ, NULL);
}

bool stream_is_unpolled(const struct stream *s)
{
    return stream_input_is_unpolled(s) && !event_pending(s->out.writable, EV_WRITE, NULL);
}

bool stream_socket_has_died(const struct stream *s)
{
    struct pollfd p = {.fd = s->out.fd};

    if (poll(&p, 1, 0) <= 0)
        return false;
    return (p.revents & POLLERR) != 0; /* a hang-up alone may leave bytes to read */
}
