/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold between the options of a command line, once all are known.
 */
#ifndef MRD_PERF_OPTIONS_CHECK_H
#define MRD_PERF_OPTIONS_CHECK_H

#include "tools/perf/options.h"

/* A command line that is being read. */
struct perf_cli {
    struct perf_options *o;
    /* What is given, beyond the values: for conflicts that defaults would hide. */
    struct perf_given {
        bool size, transport, repeat, two_devices, peers;
    } given;
    char *error;
};

/* -EINVAL with a sentence. */
int perf_cli_wrong(const struct perf_cli *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Choose what was left open: the transport by the device, the size by the test. */
void perf_options_default(struct perf_cli *c);
/* 0, or -EINVAL with a sentence. */
int perf_options_check(const struct perf_cli *c);

#endif
