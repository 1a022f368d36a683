/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "transport/backend.h"

enum { SENTENCE_BYTES = 512 };

void simx_error_set(const char *format, ...)
{
    char sentence[SENTENCE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    mrd_error_set("%s", sentence);
}
