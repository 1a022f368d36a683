/* SPDX-License-Identifier: BSD-2-Clause */
/* Some of everything that two ends can do to each other. */
#ifndef MRD_TESTS_OFI_TRAFFIC_H
#define MRD_TESTS_OFI_TRAFFIC_H

#include "pair.h"

/* Messages of all kinds both ways, with their source; then memory of each, written and read. */
void pair_exercise(struct pair *p);

#endif
