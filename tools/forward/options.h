/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line. */
#ifndef FORWARD_OPTIONS_H
#define FORWARD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/forward/address.h"
#include "tools/forward/hub.h"

enum { OPTIONS_ROWS_MAX = 256 };

enum forward_mode { FORWARD_SERVE, FORWARD_CONNECT, FORWARD_PIPE };

struct options {
    enum forward_mode mode;
    struct hub_options hub;
    char address[MRD_ADDRESS_MAX]; /* that hub.link.address points to */
    bool listen;                   /* pipe: waits for the other one */
    bool receive_only;             /* pipe: standard input is not read */
    const char *server;            /* connect, pipe */
    const char *target;            /* pipe: of a server; NULL: the other pipe */
    struct forward forwards[OPTIONS_ROWS_MAX];
    uint32_t num_forwards;
    struct address allow[OPTIONS_ROWS_MAX];
    uint32_t num_allow;
    uint32_t connect_timeout_s, peer_timeout_s; /* the latter is in `hub`, too */
    uint64_t window_bytes;                      /* likewise */
    const char *user; /* to become, after everything is open; NULL: none */
    bool stats, verbose;
};

enum options_result { OPTIONS_RUN = 0, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

/* WRONG: it said why. */
enum options_result options_parse(struct options *o, int argc, char **argv);
void options_help(void);

#endif
