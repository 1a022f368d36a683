/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network namespace of the test's own: space_enter(), then space_run() commands of ip(8) in it.
 */
#ifndef MRD_TESTS_OFI_SPACE_H
#define MRD_TESTS_OFI_SPACE_H

#include <stdbool.h>

/* Without privilege, in a namespace of users in which the test has it. false: says why not. */
bool space_enter(void);
/* A line of sh. false: it failed. */
bool space_run(const char *commands);

#endif
