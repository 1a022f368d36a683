/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that a test writes, and what its reader says of it.
 *
 * exp_path is there during all tests: exp_file_put(), the reader with mrd_last_error() for its
 * sentence, and exp_file_assert_refused().
 */
#ifndef EXP_FILE_H
#define EXP_FILE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mrd/mrd.h"
#include "tests/kit/kit.h"

static char exp_path[] = "/tmp/mrd_test_exp_XXXXXX";

/* A text, the line at which it is refused, and the sentence after "expected". */
struct exp_file_refusal {
    const char *text;
    unsigned line;
    const char *sentence;
};

int kit_before_all(void)
{
    int fd = mkstemp(exp_path);

    return fd < 0 ? EXIT_FAILURE : close(fd);
}

int kit_after_all(void)
{
    return unlink(exp_path);
}

/* For a writer that has its own way; exp_file_close() is the end of it. */
static inline FILE *exp_file_open(void)
{
    FILE *out = fopen(exp_path, "we");

    assert_non_null(out);
    return out;
}

static inline void exp_file_close(FILE *out)
{
    assert_int_equal(fclose(out), 0);
}

static inline void exp_file_put(const void *text, size_t len)
{
    FILE *out = exp_file_open();

    assert_int_equal(fwrite(text, 1, len, out), len);
    exp_file_close(out);
}

/* Has it written and read: it is taken. */
static inline void exp_file_read(const char *text, int (*read)(void))
{
    exp_file_put(text, strlen(text));
    if (read())
        fail_msg("%s", mrd_last_error());
}

/* What a reader returned for `text` is -EINVAL, at the line, with exactly this sentence. */
static inline void exp_file_assert_refused(int rc, const char *text, unsigned line,
                                           const char *sentence)
{
    char expected[512];

    if (rc == 0)
        fail_msg("taken: %s", text);
    assert_int_equal(rc, -EINVAL);
    snprintf(expected, sizeof(expected), "%s:%u: expected %s", exp_path, line, sentence);
    assert_string_equal(mrd_last_error(), expected);
}

#endif
