/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/bar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    INTERVAL_NS = 100000000,
    BAR_COLUMNS = 24,
    LINE_BYTES = 512,
    COLUMNS_IF_UNKNOWN = 80,
};

/* "0:07", "2:05:00" */
static void format_time(char *text, size_t len, double seconds)
{
    unsigned long s = (unsigned long)fmin(seconds, 1e7);

    if (s >= 3600)
        snprintf(text, len, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, len, "%lu:%02lu", s / 60, s % 60);
}

/* A line that wraps could not be taken away: leave so many characters of it. */
static void cut(char *line, unsigned columns)
{
    for (; *line; line++) {
        bool starts = ((unsigned char)*line & 0xc0) != 0x80; /* a character of UTF-8 */
        if (starts && columns-- == 0) {
            *line = '\0';
            return;
        }
    }
}

void simx_bar_format(const struct simx_bar *bar, uint64_t now_ns, double share, const char *text,
                     unsigned columns, char *line, size_t len)
{
    static const char full[] = "########################", empty[] = "........................";
    double elapsed_s = (double)(now_ns - bar->start_ns) / 1e9;
    char elapsed[32], rest[32] = "?";

    _Static_assert(sizeof(full) == BAR_COLUMNS + 1 && sizeof(empty) == sizeof(full), "a bar");
    share = share > 0 ? fmin(share, 1) : 0; /* 0 for NAN, too */
    int done = (int)(share * BAR_COLUMNS);
    format_time(elapsed, sizeof(elapsed), elapsed_s);
    if (share >= 0.005) /* before, the estimate would jump about */
        format_time(rest, sizeof(rest), elapsed_s * (1 - share) / share + 0.5);
    /* What may be cut comes last. */
    snprintf(line, len, "%s [%.*s%.*s] %3d%%  %s, %s left%s%s", bar->label, done, full,
             BAR_COLUMNS - done, empty, (int)(share * 100), elapsed, rest,
             text && *text ? "  " : "", text ? text : "");
    cut(line, columns);
}

void simx_bar_init(struct simx_bar *bar, const char *label, uint64_t now_ns)
{
    *bar = (struct simx_bar){
        .label = label,
        .start_ns = now_ns,
        .next_ns = now_ns + INTERVAL_NS,
        .terminal = isatty(STDERR_FILENO),
    };
}

void simx_bar_update(struct simx_bar *bar, uint64_t now_ns, double share, const char *text)
{
    struct winsize size;
    unsigned columns = COLUMNS_IF_UNKNOWN;
    char line[LINE_BYTES];

    if (!bar->terminal || now_ns < bar->next_ns)
        return;
    bar->next_ns = now_ns + INTERVAL_NS;
    if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 1)
        columns = size.ws_col;
    /* One less: in the last column, some terminals go on to the next line. */
    simx_bar_format(bar, now_ns, share, text, columns - 1, line, sizeof(line));
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    bar->shown = true;
}

void simx_bar_clear(struct simx_bar *bar)
{
    if (!bar->shown)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    bar->shown = false;
}
