/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress bar: its line, and when it is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tools/sim/bar.h"

#define MSEC_NS 1000000ULL
#define SEC_NS  (1000 * MSEC_NS)

TEST(simx_bar_format__table)
{
    static const struct {
        double seconds, share;
        const char *text;
        unsigned columns;
        const char *line;
    } cases[] = {
        {0, 0, "", 80, "incast [........................]   0%  0:00, ? left"},
        {0.9, NAN, NULL, 80, "incast [........................]   0%  0:00, ? left"},
        {9, 0.001, "", 80, "incast [........................]   0%  0:09, ? left"},
        {30, 0.25, "12 M packets", 80,
         "incast [######..................]  25%  0:30, 1:30 left  12 M packets"},
        {60, 0.999, "", 80, "incast [#######################.]  99%  1:00, 0:00 left"},
        {7265, 0.5, "", 80, "incast [############............]  50%  2:01:05, 2:01:05 left"},
        {5, 1, "", 80, "incast [########################] 100%  0:05, 0:00 left"},
        {5, 7, "", 80, "incast [########################] 100%  0:05, 0:00 left"},
        {30, 0.25, "12 M packets", 61,
         "incast [######..................]  25%  0:30, 1:30 left  12 M"},
        {30, 0.25, "\xc2\xb5\xc2\xb5\xc2\xb5", 58,
         "incast [######..................]  25%  0:30, 1:30 left  \xc2\xb5"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct simx_bar bar;
        char line[256];
        simx_bar_init(&bar, "incast", 3 * SEC_NS);
        uint64_t now_ns = 3 * SEC_NS + (uint64_t)(cases[i].seconds * 1e9);
        simx_bar_format(&bar, now_ns, cases[i].share, cases[i].text, cases[i].columns, line,
                        sizeof(line));
        assert_string_equal(line, cases[i].line);
    }
}

/* Have stderr lead to fd; returns what it led to before. */
static int stderr_to(int fd)
{
    int before = dup(STDERR_FILENO);

    fflush(stderr);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    return before;
}

static void stderr_back(int before)
{
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
}

/* What has been written to the terminal or pipe since. */
static const char *written(int fd)
{
    static char text[1024];
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    size_t len = 0;

    while (poll(&poll_fd, 1, 20) > 0 && len < sizeof(text) - 1) {
        ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    return text;
}

TEST(simx_bar_update__terminal)
{
    struct winsize size = {.ws_row = 24, .ws_col = 42};
    struct simx_bar bar;
    char texts[6][256];

    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) {
        print_message("skipped: no pseudo-terminals\n");
        skip();
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    int before = stderr_to(slave);
    simx_bar_init(&bar, "a", SEC_NS);
    simx_bar_update(&bar, SEC_NS + 99 * MSEC_NS, 0.1, "early");
    simx_bar_clear(&bar);
    strcpy(texts[0], written(master));
    simx_bar_update(&bar, SEC_NS + 100 * MSEC_NS, 0.5, "packets");
    strcpy(texts[1], written(master));
    simx_bar_update(&bar, SEC_NS + 199 * MSEC_NS, 0.6, "too soon");
    strcpy(texts[2], written(master));
    simx_bar_update(&bar, SEC_NS + 200 * MSEC_NS, 1, "packets");
    strcpy(texts[3], written(master));
    simx_bar_clear(&bar);
    strcpy(texts[4], written(master));
    simx_bar_clear(&bar);
    strcpy(texts[5], written(master));
    stderr_back(before);
    close(slave);
    close(master);
    assert_string_equal(texts[0], "");
    assert_string_equal(texts[1], "\ra [############............]  50%  0:00, \033[K");
    assert_string_equal(texts[2], "");
    assert_string_equal(texts[3], "\ra [########################] 100%  0:00, \033[K");
    assert_string_equal(texts[4], "\r\033[K");
    assert_string_equal(texts[5], "");
}

TEST(simx_bar_update__no_terminal)
{
    struct simx_bar bar;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    int before = stderr_to(fds[1]);
    simx_bar_init(&bar, "a", 0);
    simx_bar_update(&bar, SEC_NS, 0.5, "packets");
    simx_bar_clear(&bar);
    stderr_back(before);
    assert_string_equal(written(fds[0]), "");
    close(fds[0]);
    close(fds[1]);
}
