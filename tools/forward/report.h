/* SPDX-License-Identifier: BSD-2-Clause */
/* What --stats and SIGUSR1 print, on standard error. */
#ifndef FORWARD_REPORT_H
#define FORWARD_REPORT_H

#include "tools/forward/hub.h"

struct report;

/* With `stats` a line each second. NULL after it said why. */
struct report *report_open(struct hub *hub, bool stats);
/* All streams, peers and counters. */
void report_all(struct report *r);
void report_close(struct report *r);

#endif
