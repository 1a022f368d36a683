/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers as they are written on the command line: sizes, shares, lists and ranges. All return 0,
 * or -EINVAL without changing the outputs.
 */
#ifndef MRD_PERF_LISTS_H
#define MRD_PERF_LISTS_H

#include <stdint.h>

#include "tools/perf/perf.h"

/* Decimal or 0x..., within low..high. */
int perf_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* A number with K, M or G (powers of 1024) behind it or nothing. */
int perf_parse_size(const char *text, uint64_t *bytes);
/* "0.01" or "1%" -> 10000 parts per million; below 1. */
int perf_parse_share(const char *text, uint32_t *ppm);
/* "5000-5031", "5000,5004,5100-5103": distinct ports 1..65535. */
int perf_parse_ports(const char *text, uint16_t ports[PERF_PORTS_MAX], unsigned *count);
/* "3" or "0,1". */
int perf_parse_cpus(const char *text, int cpus[2], unsigned *count);
/* "a,b,c" */
int perf_parse_names(const char *text, char names[PERF_TRANSPORTS_MAX][PERF_NAME_BYTES],
                     unsigned *count);

#endif
