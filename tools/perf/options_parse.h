/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line.
 *
 * perf_options_parse() fills perf_options or says what is wrong with the arguments; it prints
 * nothing and does not exit. perf_options_help() is the text of --help.
 */
#ifndef MRD_PERF_OPTIONS_PARSE_H
#define MRD_PERF_OPTIONS_PARSE_H

#include <stdio.h>

#include "tools/perf/options.h"

enum perf_parse {
    PERF_PARSE_RUN = 0,
    PERF_PARSE_HELP,
    PERF_PARSE_VERSION,
};

/* What to do (enum perf_parse), or -EINVAL with a sentence in `error`. */
int perf_options_parse(struct perf_options *options, int argc, char **argv, char *error);
void perf_options_help(FILE *out);

#endif
