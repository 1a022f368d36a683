/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard input and output as one stream. */
#ifndef FORWARD_PIPE_H
#define FORWARD_PIPE_H

#include "tools/forward/hub.h"
#include "tools/forward/options.h"

struct pipe_end {
    struct hub *hub;
    const struct options *options;
    const char *name;      /* of the other end, for sentences */
    struct stream *stream; /* NULL: none yet, or over */
    bool is_over;
    int exit_code;
};

/* hub_ops whose arg is a struct pipe_end *: it accepts one other pipe. */
extern const struct hub_ops pipe_ops;

/* The loop ends when the stream does. -1 after it said why. */
int pipe_dial(struct pipe_end *p, struct link_peer *server);

#endif
