/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold between the options of a command line, once all are known.
 */
#ifndef MRD_PERF_OPTIONS_CHECK_H
#define MRD_PERF_OPTIONS_CHECK_H

#include "tools/perf/options.h"

/* What is given, beyond the values: for conflicts that defaults would hide. */
struct perf_given {
    bool size, transport, repeat, two_devices, peers;
};

/* Choose what was left open and depends on other options: the transport by the device, the size by the test. */
void perf_options_default(struct perf_options *options, const struct perf_given *given);
/* 0, or -EINVAL with a sentence. */
int perf_options_check(const struct perf_options *options, const struct perf_given *given,
                       char *error, size_t len);

#endif
