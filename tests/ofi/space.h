/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network namespace of the test's own: space_enter(), then space_run() commands of ip(8) in it.
 */
#ifndef MRD_TESTS_OFI_SPACE_H
#define MRD_TESTS_OFI_SPACE_H

#include <stdbool.h>

enum { SPACE_SKIPPED = 77 }; /* exit status of a test that has none */

/* Without privilege, in a namespace of users in which the test has it. false: says why not. */
bool space_enter(void);
/* A line of sh. false: it failed. */
bool space_run(const char *commands);

#endif
