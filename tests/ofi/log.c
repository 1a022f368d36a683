/* SPDX-License-Identifier: BSD-2-Clause */
#include "log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/kit/kit.h"

enum { LOG_BYTES = 1 << 16 };

static FILE *kept;
static int real_stderr;

void log_keep(void)
{
    kept = tmpfile();
    assert_non_null(kept);
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    assert_true(real_stderr >= 0);
    assert_true(dup2(fileno(kept), STDERR_FILENO) >= 0);
}

void log_says(const char *text)
{
    static char log[LOG_BYTES];

    fflush(stderr);
    assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);
    close(real_stderr);
    rewind(kept);
    size_t bytes = fread(log, 1, sizeof(log) - 1, kept);
    fclose(kept);
    log[bytes] = '\0';
    if (!strstr(log, text))
        fail_msg("the log does not say \"%s\", but: %s", text, log);
}
