/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint and processes with one each, some of which are killed. Run with FI_MRD_PEER_TIMEOUT of
 * a second. start() all processes before the first endpoint is opened, then meet() each of them.
 */
#ifndef MRD_TESTS_OFI_VICTIM_H
#define MRD_TESTS_OFI_VICTIM_H

#include "pair.h"

#include <netinet/in.h>

#include "tests/udp/udp_process.h"

enum {
    KEY = 4,
    MEMORY = 1 << 20,
    LONG = 1 << 20,
    TAG = 9,
    PEER_TIMEOUT_MS = 1000, /* FI_MRD_PEER_TIMEOUT */
    SLACK_S = 60,           /* beside the second that a peer has to answer */
};

extern const struct end_options options; /* of all endpoints */

/* What processes tell each other first. */
struct told {
    struct sockaddr_in name;
};

/* A child as the test sees it. */
struct peer {
    struct process process;
    struct told told;
    fi_addr_t to;
};

uint64_t patience_ns(void);
struct told name_of(const struct end *e);

/* Of a child: at `port`, or any; knows its parent as e->to. */
void child_open(int channel, struct end *e, uint16_t port);
void drive_until_told(int channel);
/* Receives one message and sends one. */
void answer(struct end *e);

/* What children do. This one answers once, and closes when it is told to. */
void alive(int channel);
/* Waits for the port that another one had; has memory under that one's key, and one more; answers. */
void reborn(int channel);

void start(struct peer *p, void (*body)(int channel));
void meet(struct end *e, struct peer *p);
/* And waits until it is ready. */
void meet_target(struct end *e, struct peer *p);
/* A message goes to it, and it answers: it was heard of. */
void hear_of(struct end *e, const struct peer *p);
/* It closes, as programs do. */
void part(struct peer *p);
/* The entry is an error that names the peer. */
void check_error(const struct entry *entry, const struct peer *p);
/* An operation of this context, or any if it is NULL, ends with an error that names the peer. */
void expect_error(struct fid_cq *cq, const struct peer *p, const void *context);

#endif
