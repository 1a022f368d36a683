/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A progress bar: one line on a terminal.
 *
 * simx_bar_init() when it starts, simx_bar_update() as often as one likes, simx_bar_clear() before
 * anything else is printed and at the end. Written to stderr, and only if that is a terminal.
 */
#ifndef SIMX_BAR_H
#define SIMX_BAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A bar; the caller's memory. */
struct simx_bar {
    const char *label; /* what is going on; borrowed */
    uint64_t start_ns; /* time is counted from here */
    uint64_t next_ns;  /* not written again before */
    bool terminal;     /* stderr is one */
    bool shown;        /* there is a line to clear */
};

/* Writes nothing yet: a run of less than a tenth of a second shows no bar. */
void simx_bar_init(struct simx_bar *bar, const char *label, uint64_t now_ns);

/*
 * Shows the share that is done, 0 to 1, and a text beside it. Writes at most ten times
 * a second.
 */
void simx_bar_update(struct simx_bar *bar, uint64_t now_ns, double share, const char *text);

/* Removes the line. */
void simx_bar_clear(struct simx_bar *bar);

/*
 * Formats the line that simx_bar_update() writes, cut to `columns`, without control characters.
 */
void simx_bar_format(const struct simx_bar *bar, uint64_t now_ns, double share, const char *text,
                     unsigned columns, char *line, size_t len);

#endif
