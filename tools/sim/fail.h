/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why something failed: a sentence, which mrd_last_error() returns as it does after a call of the
 * library that failed.
 */
#ifndef SIMX_FAIL_H
#define SIMX_FAIL_H

#include "mrd/mrd.h"

/* Sets the sentence; mrd_last_error(), the one before, may be an argument. */
void simx_error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Does so, and is `error`, which readers of the code and analysers see. */
#define simx_fail(error, ...) (simx_error_set(__VA_ARGS__), (error))

#endif
