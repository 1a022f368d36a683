/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of perftest that have no place here, each with what to use instead.
 */
#ifndef MRD_PERF_UNSUPPORTED_H
#define MRD_PERF_UNSUPPORTED_H

struct perf_unsupported {
    char letter;         /* 0: none */
    const char *name;    /* long option, without dashes */
    int has_arg;         /* as in struct option */
    const char *instead; /* a clause that ends "... is not supported: " */
};

/* All of them; ends with a NULL name. */
const struct perf_unsupported *perf_unsupported(void);

#endif
